//! Measures the host's part of a call, ops, kernels and a training step. `cargo bench`; comparisons with other libraries are in
//! `benches/peers`.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "support/idle_device.rs"]
mod idle_device;

use criterion::{BatchSize, Bencher, Criterion, Throughput, criterion_group, criterion_main};
use idle_device::idle_device;
use wgrad as tf;
use wgrad::Trackable;
use wgrad::keras::layers::{
    Conv2D, Dense, Dropout, Flatten, GlobalAveragePooling1D, Layer, LayerNormalization, Lstm,
    MaxPooling2D, MultiHeadAttention, Reshape,
};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Context, Sequential, TRAINING};
use wgrad::{Device, Tensor};

/// Ops in one chain, as many as a training step of a deep model has.
const CHAIN: usize = 1000;

fn chain(x: &Tensor, b: &Tensor) -> Tensor {
    (0..CHAIN).fold(x.clone(), |y, _| y.add(b).unwrap())
}

/// The host's cost of an op, without a driver's.
fn overhead(c: &mut Criterion) {
    let device = idle_device();
    let made = device.scope(|| (Tensor::zeros([16]).unwrap(), Tensor::ones([16]).unwrap()));
    let (x, b) = &made;
    let mut group = c.benchmark_group("host");
    group.throughput(Throughput::Elements(CHAIN as u64));
    // Earlier results are dropped without being read, so the flush in between has nothing to run.
    let calls = |c: &mut Bencher, call: &dyn Fn() -> Tensor| {
        c.iter_batched(|| device.flush().unwrap(), |()| call(), BatchSize::PerIteration);
    };
    group.bench_function("1000 adds, called", |c| calls(c, &|| chain(x, b)));
    group.bench_function("1000 adds of a number, called", |c| {
        calls(c, &|| (0..CHAIN).fold(x.clone(), |y, _| y.add(1.0).unwrap()));
    });
    for fusion in [true, false] {
        device.set_fusion(fusion);
        let how = if fusion { "fused" } else { "not fused" };
        group.bench_function(format!("1000 adds, called and flushed, {how}"), |c| {
            c.iter(|| {
                let y = chain(x, b);
                device.flush().unwrap();
                y
            });
        });
    }
    group.bench_function("1000 adds, each flushed", |c| {
        c.iter(|| {
            (0..CHAIN).fold(x.clone(), |y, _| {
                let y = y.add(b).unwrap();
                device.flush().unwrap();
                y
            })
        });
    });
}

/// The host's cost of a training step and of a single op: eager, and as a function.
fn functions(c: &mut Criterion) {
    let device = idle_device();
    device.scope(|| {
        let mut group = c.benchmark_group("function");
        let one = tf::function(|x: Tensor| x.add(1.0));
        let x = Tensor::ones([16]).unwrap();
        group.bench_function("an add, eager and flushed", |b| {
            b.iter(|| {
                let y = x.add(1.0).unwrap();
                device.flush().unwrap();
                y
            });
        });
        group.bench_function("an add, as a function", |b| b.iter(|| one(x.clone()).unwrap()));
        let steps = [
            ("MLP", TrainStep::mlp as fn() -> TrainStep),
            ("CNN", TrainStep::cnn),
            ("LSTM", TrainStep::lstm),
            ("transformer block", TrainStep::transformer),
        ];
        for (name, new) in steps {
            let eager = new();
            group.bench_function(format!("{name} step, eager"), |b| {
                b.iter(|| eager.run(&eager.x, &eager.y));
            });
            let step = std::sync::Arc::new(new());
            let train = tf::function({
                let step = step.clone();
                move |x: Tensor, y: Tensor| step.run(&x, &y)
            });
            group.bench_function(format!("{name} step, as a function"), |b| {
                b.iter(|| train(step.x.clone(), step.y.clone()).unwrap());
            });
            // The loss alone as a function, with a tape around its call.
            let gradients = |loss: &dyn Fn() -> tf::Result<Tensor>| {
                let tape = tf::GradientTape::new();
                let loss = loss().unwrap();
                let gradients = tape.gradient(&loss, &step.model.trainable_variables()[..]);
                device.flush().unwrap();
                gradients.unwrap()
            };
            group.bench_function(format!("{name} gradients, eager"), |b| {
                b.iter(|| gradients(&|| step.loss(&step.x, &step.y)));
            });
            let loss = tf::function({
                let step = step.clone();
                move |x: Tensor, y: Tensor| step.loss(&x, &y)
            });
            group.bench_function(format!("{name} gradients, the loss as a function"), |b| {
                b.iter(|| gradients(&|| loss(step.x.clone(), step.y.clone())));
            });
        }
    });
}

/// A loop of 100 turns whose end only the device knows, on this machine's adapter.
fn loops(c: &mut Criterion) {
    let mut group = c.benchmark_group("loop");
    group.sample_size(20);
    // A step of gradient descent on a parabola.
    let descend = |x: Tensor| -> tf::Result<Tensor> {
        let body = |x: Tensor| x.subtract(x.multiply(0.05)?);
        tf::while_loop(|x: &Tensor| x.reduce_max(())?.greater(1.0), body, x)
    };
    let start = Tensor::full([256], 0.95f32.powi(-100) * 0.999).unwrap();
    let read = |x: Tensor| x.to_vec::<f32>().unwrap()[0];
    group.bench_function("100 turns, eager", |b| {
        b.iter(|| read(descend(start.clone()).unwrap()));
    });
    let function = tf::function(descend);
    group.bench_function("100 turns, as a function", |b| {
        b.iter(|| read(function(start.clone()).unwrap()));
    });
}

/// A training step with Adam on a batch of 50 that is on the device.
struct TrainStep {
    model: Sequential,
    adam: Adam,
    x: Tensor,
    y: Tensor,
}

impl TrainStep {
    /// A model for digits, in `[50,28,28,1]`.
    fn of(model: Sequential) -> Self {
        let digits = tf::data::drawn_digits::draw_digits(50, 1);
        let all: Vec<usize> = (0..50).collect();
        let (x, y) = digits.tensors(&all).unwrap();
        TrainStep { model, adam: Adam::new(1e-3), x, y }
    }

    /// The MLP of `examples/mnist`.
    fn mlp() -> Self {
        let hidden = Dense::new(100).activation(Activation::Relu);
        TrainStep::of(Sequential::new().add(Flatten::new()).add(hidden).add(Dense::new(10)))
    }

    fn cnn() -> Self {
        let filters = |count| Conv2D::new(count, [3, 3]).activation(Activation::Relu);
        let model = Sequential::new()
            .add(filters(8))
            .add(MaxPooling2D::new([2, 2]))
            .add(filters(16))
            .add(Flatten::new())
            .add(Dropout::new(0.2));
        TrainStep::of(model.add(Dense::new(10)))
    }

    /// An LSTM over the rows.
    fn lstm() -> Self {
        let rows = Sequential::new().add(Reshape::new([28, 28]));
        TrainStep::of(rows.add(Lstm::new(16)).add(Dense::new(10)))
    }

    /// A transformer block over the rows.
    fn transformer() -> Self {
        let rows = Sequential::new().add(Reshape::new([28, 28])).add(Dense::new(32));
        let model = rows.add(Block::new(32)).add(GlobalAveragePooling1D::new());
        TrainStep::of(model.add(Dense::new(10)))
    }

    fn loss(&self, x: &Tensor, y: &Tensor) -> tf::Result<Tensor> {
        let logits = self.model.call(x, TRAINING)?;
        tf::sparse_softmax_cross_entropy_with_logits(y, &logits)?.reduce_mean(())
    }

    fn run(&self, x: &Tensor, y: &Tensor) -> tf::Result<Tensor> {
        let tape = tf::GradientTape::new();
        let loss = self.loss(x, y)?;
        self.adam.minimize(&loss, tape, &self.model)?;
        Ok(loss)
    }
}

/// Attention and two dense layers, each with a residual connection and a normalization.
#[derive(Trackable)]
struct Block {
    attention: MultiHeadAttention,
    norm1: LayerNormalization,
    wide: Dense,
    narrow: Dense,
    norm2: LayerNormalization,
}

impl Block {
    fn new(width: usize) -> Self {
        Block {
            attention: MultiHeadAttention::new(4, width / 4),
            norm1: LayerNormalization::new(),
            wide: Dense::new(4 * width).activation(Activation::Relu),
            narrow: Dense::new(width),
            norm2: LayerNormalization::new(),
        }
    }
}

impl Layer for Block {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> tf::Result<Tensor> {
        let x = self.norm1.call(&x.add(self.attention.call(x, cx)?)?, cx)?;
        let y = self.narrow.call(&self.wide.call(&x, cx)?, cx)?;
        self.norm2.call(&x.add(y)?, cx)
    }
}

/// Small and large ops, each followed by a wait, and a chain that is read.
fn ops(c: &mut Criterion) {
    let device = Device::current().unwrap();
    let mut group = c.benchmark_group("ops");
    group.sample_size(20);
    for n in [16usize, 1 << 20] {
        let (x, b) = (Tensor::ones([n]).unwrap(), Tensor::ones([n]).unwrap());
        device.synchronize().unwrap();
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(format!("add of {n} floats"), |c| {
            c.iter(|| {
                let y = x.add(&b).unwrap();
                device.synchronize().unwrap();
                y
            });
        });
    }
    let (x, b) = (Tensor::zeros([16]).unwrap(), Tensor::ones([16]).unwrap());
    group.throughput(Throughput::Elements(CHAIN as u64));
    group.bench_function("1000 adds of 16 floats, read", |c| {
        c.iter(|| assert_eq!(chain(&x, &b).to_vec::<f32>().unwrap(), [CHAIN as f32; 16]));
    });
}

fn kernels(c: &mut Criterion) {
    let device = Device::current().unwrap();
    let generator = tf::random::Generator::from_seed(1);
    let mut group = c.benchmark_group("kernels");
    group.sample_size(10);
    for n in [256usize, 512, 1024] {
        let a = generator.normal([n, n]).unwrap();
        let b = generator.normal([n, n]).unwrap();
        device.synchronize().unwrap();
        group.throughput(Throughput::Elements(2 * (n * n * n) as u64));
        group.bench_function(format!("matmul {n}"), |bench| {
            bench.iter(|| {
                let product = a.matmul(&b).unwrap();
                device.synchronize().unwrap();
                product
            });
        });
    }
    let x = generator.normal([4096, 1024]).unwrap();
    group.throughput(Throughput::Bytes(4 * x.len() as u64));
    group.bench_function("sum of [4096, 1024]", |b| {
        b.iter(|| x.reduce_sum(()).unwrap().item::<f32>().unwrap());
    });
}

/// The step of `examples/mnist/main.rs` for the MLP, batch 50.
fn step(c: &mut Criterion) {
    let device = Device::current().unwrap();
    let model = Sequential::new()
        .add(Flatten::new())
        .add(Dense::new(100).activation(Activation::Relu))
        .add(Dense::new(10));
    let adam = Adam::new(1e-3);
    let digits = tf::data::drawn_digits::draw_digits(50, 1);
    let all: Vec<usize> = (0..50).collect();
    let mut group = c.benchmark_group("training");
    group.sample_size(30);
    let eager = TrainStep::mlp();
    group.bench_function("MNIST MLP step of one batch, eager", |b| {
        b.iter(|| {
            eager.run(&eager.x, &eager.y).unwrap();
            device.synchronize().unwrap();
        });
    });
    let step = std::sync::Arc::new(TrainStep::mlp());
    let train = tf::function({
        let step = step.clone();
        move |x: Tensor, y: Tensor| step.run(&x, &y)
    });
    group.bench_function("MNIST MLP step of one batch, as a function", |b| {
        b.iter(|| {
            train(step.x.clone(), step.y.clone()).unwrap();
            device.synchronize().unwrap();
        });
    });
    group.bench_function("MNIST MLP step, batch 50", |b| {
        b.iter(|| {
            let (x, y) = digits.tensors(&all).unwrap();
            let tape = tf::GradientTape::new();
            let logits = model.call(&x, TRAINING).unwrap();
            let loss = tf::sparse_softmax_cross_entropy_with_logits(&y, &logits).unwrap();
            let loss = loss.reduce_mean(()).unwrap();
            let variables = model.trainable_variables();
            let grads = tape.gradient(&loss, &variables).unwrap();
            adam.apply_gradients(&grads, &variables).unwrap();
            device.synchronize().unwrap();
        });
    });
}

criterion_group!(benches, overhead, functions, loops, ops, kernels, step);
criterion_main!(benches);
