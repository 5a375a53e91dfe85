//! The measurements: one row per case. Sizes are defined here only; every engine reads them from here.

/// A kind of work with its sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// `[N,N] x [N,N]`.
    Matmul { n: usize, half: bool },
    /// `[B,M,K] x [B,K,N]`.
    BatchedMatmul { b: usize, m: usize, k: usize, n: usize },
    /// With gradients: those of `sum(y^2)` for images and filters.
    Conv2d { convolution: Convolution, gradients: bool },
    /// `tanh(a*b+c) * sigmoid(a)` on vectors.
    Pointwise { len: usize },
    /// The sum of all elements of `[R,C]`.
    Sum { rows: usize, columns: usize },
    /// Softmax over the last axis of `[R,C]`.
    Softmax { rows: usize, columns: usize },
    /// One of many kinds of ops or layers.
    Op(Op),
    /// Training steps on MNIST-like digits, batch 50, Adam, sparse cross-entropy; each step uploads its batch and reads its
    /// loss.
    Train(Model),
    /// Training steps of a layer with the library's own modules: forward, the mean squared difference from a target, gradients,
    /// Adam. Input and target stay on the device; each step reads its loss.
    Layer(LayerStep),
    /// A pass over pairs of a float and an integer on the host, in a new random order, in batches.
    Data(Pairs),
    /// Additions on 16 floats, each of the previous result.
    DependentAdds { count: usize },
    /// The host's time for calling an addition on 16 floats, without waiting.
    Calls { count: usize },
    /// The host's time for an addition on 16 floats from the call to its submission, with one kernel each.
    Submissions { count: usize },
}

/// Images `[N,S,S,C]`, filters `[K,K,C,O]` with odd `K`, and `K / 2` zeros around the images.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Convolution {
    pub images: usize,
    pub side: usize,
    pub channels: usize,
    pub kernel: usize,
    pub filters: usize,
    pub stride: usize,
}

impl Convolution {
    fn title(self) -> String {
        let Self { images, side, channels, kernel, filters, stride } = self;
        let padding = match (stride, kernel / 2) {
            (1, _) => "SAME".to_owned(),
            (_, zeros) => format!("padding {zeros}, stride {stride}"),
        };
        format!(
            "conv2d [{images},{side},{side},{channels}] -> {filters}, {kernel}x{kernel} {padding}"
        )
    }
}

/// The data to shuffle and batch. Pair `i` is `(i, i % 10)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pairs {
    pub len: usize,
    pub batch: usize,
    /// Threads or processes in addition to the one that uses the batches.
    pub workers: usize,
}

/// Ops that are neither products nor element-wise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Op {
    /// `bhqd,bhkd->bhqk` on `[8,8,L,64]`.
    Einsum { length: usize },
    /// Scaled dot-product attention on `[1,heads,L,64]`, with the gradients of `sum(y^2)`.
    Attention { heads: usize, length: usize },
    /// An LSTM on `[B,T,28]`; with gradients: of the sum of squares over all steps, for the kernels.
    Lstm { batch: usize, steps: usize, units: usize, gradients: bool },
    /// Sorts a vector in ascending order.
    Sort { len: usize },
    /// The `k` largest elements of a vector, and their indices.
    TopK { len: usize, k: usize },
    /// Cumulative sums along the rows of `[R,C]`.
    CumSum { rows: usize, columns: usize },
    /// Adds elements to `rows` sums.
    ScatterAdd { len: usize, rows: usize },
    /// Images `[N,S,S,3]` to `[N,T,T,3]`, bilinear, with half-pixel centres.
    Resize { count: usize, side: usize, to: usize },
    /// Over the last axis of `[R,C]` with scale and offset, and the gradients of `sum(y^2)` for all three.
    LayerNormalization { rows: usize, columns: usize },
    /// Of `[B,N,N]`.
    Cholesky { count: usize, n: usize },
}

/// Layers that are trained alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LayerStep {
    /// An LSTM on `[B,T,F]` without biases that returns all steps.
    Lstm { batch: usize, steps: usize, features: usize, units: usize },
    /// A transformer block on `[B,T,W]`: attention and two dense layers with GELU in between, both with a residual connection
    /// and normalization.
    Transformer { batch: usize, length: usize, width: usize, heads: usize, hidden: usize },
}

impl LayerStep {
    /// The shapes of the input and of the target.
    pub fn shapes(self) -> ([usize; 3], [usize; 3]) {
        match self {
            LayerStep::Lstm { batch, steps, features, units } => {
                ([batch, steps, features], [batch, steps, units])
            }
            LayerStep::Transformer { batch, length, width, .. } => {
                ([batch, length, width], [batch, length, width])
            }
        }
    }

    pub fn heads(self) -> usize {
        match self {
            LayerStep::Lstm { .. } => 0,
            LayerStep::Transformer { heads, .. } => heads,
        }
    }
}

/// The networks that are trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// 784-100-10.
    Mlp,
    /// Two convolutions 5x5 with pooling, two dense layers.
    Cnn,
}

/// The meaning of a case's figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// Billions of floating-point operations per second, for this many operations.
    Gflops(f64),
    /// Milliseconds.
    Milliseconds,
    /// Training steps per second.
    StepsPerSecond,
    /// Microseconds for each of this many calls.
    MicrosecondsEach(usize),
}

impl Unit {
    pub fn name(self) -> &'static str {
        match self {
            Unit::Gflops(_) => "GFLOP/s",
            Unit::Milliseconds => "ms",
            Unit::StepsPerSecond => "steps/s",
            Unit::MicrosecondsEach(_) => "us",
        }
    }

    /// The figure for an iteration of `seconds`.
    pub fn figure(self, seconds: f64) -> f64 {
        match self {
            Unit::Gflops(operations) => operations / seconds / 1e9,
            Unit::Milliseconds => seconds * 1e3,
            Unit::StepsPerSecond => 1.0 / seconds,
            Unit::MicrosecondsEach(calls) => seconds * 1e6 / calls as f64,
        }
    }
}

/// The engines that are compared with wgrad in a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Peers {
    /// Burn and the Python libraries.
    All,
    /// Burn alone.
    Burn,
    /// Burn, and a plain copy of this many bytes for scale.
    BurnAndCopy(usize),
    /// None: wgrad alone.
    None,
}

/// One row of the table.
#[derive(Clone, Debug)]
pub struct Case {
    pub name: String,
    pub title: String,
    pub work: Work,
    pub unit: Unit,
    pub peers: Peers,
    /// An environment variable for wgrad's process.
    pub env: Option<(&'static str, &'static str)>,
}

/// The largest relative difference between two engines' results that counts as rounding.
pub fn tolerance(work: Work) -> f64 {
    match work {
        Work::Matmul { half: true, .. } => 2e-2,
        // Three training steps amplify differences of rounding.
        Work::Train(_) | Work::Layer(_) => 1e-2,
        _ => 1e-3,
    }
}

/// All cases, in the order of the table. `gpu` adds sizes that only a graphics card computes in reasonable time.
pub fn all(gpu: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for n in [256, 512, 1024, 2048] {
        cases.push(matmul(n, false));
    }
    if gpu {
        cases.extend([matmul(2048, true), matmul(4096, false), matmul(4096, true)]);
        cases.extend([matmul(8192, false), matmul(8192, true)]);
    }
    let (b, m, k, n) = (32, 128, 64, 128);
    cases.push(case(
        "batched_matmul",
        format!("matmul [{b},{m},{k}] x [{b},{k},{n}]"),
        Work::BatchedMatmul { b, m, k, n },
        Unit::Gflops(2.0 * (b * m * k * n) as f64),
        Peers::Burn,
    ));
    for (side, channels, filters) in [(28, 1, 32), (14, 32, 64)] {
        let convolution = Convolution { images: 64, side, channels, kernel: 5, filters, stride: 1 };
        cases.extend(conv2d(&format!("conv2d_{side}"), convolution));
    }
    if gpu {
        cases.extend(resnet());
    }
    cases.extend(memory_bound("", 4 << 20, 4096));
    if gpu {
        cases.extend(memory_bound("_large", 64 << 20, 65_536));
    }
    cases.extend(ops(gpu));
    for (name, title, model) in [
        ("mlp", "MNIST MLP 784-100-10, batch 50", Model::Mlp),
        ("cnn", "MNIST CNN, batch 50", Model::Cnn),
    ] {
        let work = Work::Train(model);
        cases.push(case(name, title.into(), work, Unit::StepsPerSecond, Peers::All));
    }
    let lstm = LayerStep::Lstm { batch: 64, steps: 28, features: 28, units: 128 };
    let block =
        LayerStep::Transformer { batch: 16, length: 128, width: 256, heads: 8, hidden: 1024 };
    let mut steps = vec![
        ("train_lstm", "training step of an LSTM, 28 steps, 128 units, batch 64", lstm),
        (
            "train_transformer",
            "training step of a transformer block, length 128, width 256, 8 heads, batch 16",
            block,
        ),
    ];
    if gpu {
        steps.extend(large_steps());
    }
    for (name, title, step) in steps {
        let work = Work::Layer(step);
        cases.push(case(name, title.into(), work, Unit::StepsPerSecond, Peers::Burn));
    }
    for workers in [0, 2] {
        let (len, batch) = (1_000_000, 100);
        cases.push(case(
            if workers == 0 { "data" } else { "data_workers" },
            format!(
                "shuffle and batch 1 M small elements, {}",
                if workers == 0 { "one process" } else { "two workers" }
            ),
            Work::Data(Pairs { len, batch, workers }),
            Unit::Milliseconds,
            Peers::All,
        ));
    }
    cases.push(case(
        "dependent_adds",
        "1,000 dependent adds on 16 floats".into(),
        Work::DependentAdds { count: 1000 },
        Unit::Milliseconds,
        Peers::Burn,
    ));
    cases.push(case(
        "calls",
        "host time of a call, an add on 16 floats".into(),
        Work::Calls { count: 100 },
        Unit::MicrosecondsEach(100),
        Peers::Burn,
    ));
    let count = 1000;
    cases.push(Case {
        env: Some(("WGRAD_FUSION", "0")),
        ..case(
            "eager_op",
            "host time of an add on 16 floats with its launch, fusion off".into(),
            Work::Submissions { count },
            Unit::MicrosecondsEach(count),
            Peers::None,
        )
    });
    cases
}

/// A convolution alone, and with both gradients.
fn conv2d(name: &str, convolution: Convolution) -> [Case; 2] {
    [(false, "", "forward"), (true, "_gradients", "forward, both gradients")].map(
        |(gradients, suffix, what)| {
            case(
                &format!("{name}{suffix}"),
                format!("{}, {what}", convolution.title()),
                Work::Conv2d { convolution, gradients },
                Unit::Milliseconds,
                Peers::Burn,
            )
        },
    )
}

/// ResNet-50's convolutions: its first, those of 3x3 at each of four sizes, and one of 1x1.
fn resnet() -> Vec<Case> {
    let shapes = [
        (224, 3, 7, 64, 2),
        (56, 64, 3, 64, 1),
        (56, 64, 1, 256, 1),
        (28, 128, 3, 128, 1),
        (14, 256, 3, 256, 1),
        (7, 512, 3, 512, 1),
    ];
    let cases = shapes.into_iter().flat_map(|(side, channels, kernel, filters, stride)| {
        let convolution = Convolution { images: 32, side, channels, kernel, filters, stride };
        conv2d(&format!("resnet_{side}_{kernel}x{kernel}"), convolution)
    });
    cases.collect()
}

/// Layer trainings large enough to fill a graphics card.
fn large_steps() -> [(&'static str, &'static str, LayerStep); 2] {
    [
        (
            "train_lstm_large",
            "training step of an LSTM, 64 steps, 512 units, batch 256",
            LayerStep::Lstm { batch: 256, steps: 64, features: 128, units: 512 },
        ),
        (
            "train_transformer_large",
            "training step of a transformer block, length 512, width 1024, 16 heads, batch 16",
            LayerStep::Transformer { batch: 16, length: 512, width: 1024, heads: 16, hidden: 4096 },
        ),
    ]
}

fn ops(gpu: bool) -> Vec<Case> {
    let mega = 1 << 20;
    let op = |name: &str, title: String, op, peers| {
        case(name, title, Work::Op(op), Unit::Milliseconds, peers)
    };
    let mut cases = vec![op(
        "einsum",
        "einsum bhqd,bhkd->bhqk, [8,8,128,64]".into(),
        Op::Einsum { length: 128 },
        Peers::Burn,
    )];
    for length in if gpu { &[128, 1024, 4096][..] } else { &[128, 1024] } {
        let length = *length;
        cases.push(op(
            &format!("attention_{length}"),
            format!("attention [1,8,{length},64], with gradients"),
            Op::Attention { heads: 8, length },
            Peers::Burn,
        ));
    }
    for gradients in [false, true] {
        cases.push(op(
            if gradients { "lstm_layer_gradients" } else { "lstm_layer" },
            format!(
                "LSTM [64,28,28] -> 128 units, {}",
                if gradients { "with gradients" } else { "forward" }
            ),
            Op::Lstm { batch: 64, steps: 28, units: 128, gradients },
            Peers::Burn,
        ));
    }
    cases.extend([
        op("sort", "sort of 1 M floats".into(), Op::Sort { len: mega }, Peers::Burn),
        op(
            "top_k",
            "the 100 largest of 1 M floats".into(),
            Op::TopK { len: mega, k: 100 },
            Peers::BurnAndCopy(4 * mega),
        ),
        op(
            "cumsum_rows",
            "cumulative sum of [2048,2048] along rows".into(),
            Op::CumSum { rows: 2048, columns: 2048 },
            Peers::BurnAndCopy(4 * 4 * mega),
        ),
        op(
            "cumsum_vector",
            "cumulative sum of 4 M floats".into(),
            Op::CumSum { rows: 1, columns: 4 * mega },
            Peers::BurnAndCopy(4 * 4 * mega),
        ),
        op(
            "scatter_add",
            "1 M floats added into 10,000 places".into(),
            Op::ScatterAdd { len: mega, rows: 10_000 },
            Peers::BurnAndCopy(4 * mega),
        ),
        op(
            "resize",
            "bilinear resize [32,256,256,3] -> [224,224]".into(),
            Op::Resize { count: 32, side: 256, to: 224 },
            Peers::BurnAndCopy(4 * 32 * 256 * 256 * 3),
        ),
        op(
            "layer_normalization",
            "layer normalization [4096,1024], with gradients".into(),
            Op::LayerNormalization { rows: 4096, columns: 1024 },
            Peers::BurnAndCopy(4 * 4096 * 1024),
        ),
        op(
            "cholesky",
            "Cholesky of 64 x [32,32]".into(),
            Op::Cholesky { count: 64, n: 32 },
            // Burn 0.22.1 does not have this.
            Peers::None,
        ),
    ]);
    cases
}

fn matmul(n: usize, half: bool) -> Case {
    let (suffix, dtype) = if half { ("_f16", ", f16") } else { ("", "") };
    // The Python libraries run on the processor, which emulates f16.
    let peers = if half { Peers::Burn } else { Peers::All };
    case(
        &format!("matmul_{n}{suffix}"),
        format!("matmul {n} x {n} x {n}{dtype}"),
        Work::Matmul { n, half },
        Unit::Gflops(2.0 * (n as f64).powi(3)),
        peers,
    )
}

/// Cases limited by memory bandwidth, each compared with a copy of the same bytes.
fn memory_bound(suffix: &str, len: usize, rows: usize) -> [Case; 3] {
    let columns = 1024;
    let bytes = 4 * rows * columns;
    let millions = len >> 20;
    [
        case(
            &format!("pointwise{suffix}"),
            format!("tanh(a*b+c) * sigmoid(a) on {millions} M floats"),
            Work::Pointwise { len },
            Unit::Milliseconds,
            // Three vectors are read and one is written: twice the traffic of a copy of one vector.
            Peers::BurnAndCopy(2 * 4 * len),
        ),
        case(
            &format!("sum{suffix}"),
            format!("sum of [{rows},{columns}]"),
            Work::Sum { rows, columns },
            Unit::Milliseconds,
            Peers::BurnAndCopy(bytes),
        ),
        case(
            &format!("softmax{suffix}"),
            format!("softmax of [{rows},{columns}]"),
            Work::Softmax { rows, columns },
            Unit::Milliseconds,
            Peers::BurnAndCopy(bytes),
        ),
    ]
}

fn case(name: &str, title: String, work: Work, unit: Unit, peers: Peers) -> Case {
    Case { name: name.to_owned(), title, work, unit, peers, env: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut names: Vec<String> = all(true).into_iter().map(|case| case.name).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        assert!(all(true).len() > all(false).len());
    }

    #[test]
    fn figures_are_what_their_unit_says() {
        // 2 GFLOP in half a second are 4 GFLOP/s.
        assert_eq!(Unit::Gflops(2e9).figure(0.5), 4.0);
        assert_eq!(Unit::Milliseconds.figure(0.5), 500.0);
        assert_eq!(Unit::StepsPerSecond.figure(0.5), 2.0);
        assert_eq!(Unit::MicrosecondsEach(1000).figure(0.5), 500.0);
    }
}
