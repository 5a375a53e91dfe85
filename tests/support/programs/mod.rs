//! Random programs of ops and their expected results: for tests that compare the planner's kernels with the same ops run one by
//! one, and both with an evaluation in `f64` that shares no code with the crate.
//!
//! A [`Program`] is a list of nodes in the order of their calls. `table` defines each element-wise op, `eval` computes a
//! program in `f64` with a bound on the `f32` error, `run` computes it with the crate, `generate` makes programs, `shrink`
//! makes a failing one smaller, and `check` combines all of these. `recurrences` are programs of hundreds of equal iterations,
//! which `turns` makes.
#![allow(dead_code)]

pub mod check;
pub mod eval;
pub mod flavours;
pub mod folds;
pub mod generate;
pub mod gradients;
pub mod kernels;
pub mod motifs;
pub mod recurrences;
pub mod run;
pub mod shrink;
pub mod table;
pub mod turns;
pub mod views;

use std::fmt;

use wgrad::DType;

pub use table::{Binary, Reduction, Unary};

/// One call. Numbers that are not tensors are stored in `f64`; all of them are exact in `f32`.
#[derive(Clone, Debug)]
pub enum Op {
    /// Uploaded values. The program holds a `kept` input beyond the run, and reads it again after it.
    Input {
        values: Vec<f64>,
        shape: Vec<usize>,
        dtype: DType,
        kept: bool,
    },
    /// `Tensor::full_of`.
    Full {
        value: f64,
        shape: Vec<usize>,
        dtype: DType,
    },
    /// `wgrad::range(start, start + n * step, step)` of integers.
    Range {
        start: i64,
        step: i64,
        n: usize,
    },
    Unary(&'static Unary),
    Binary(&'static Binary),
    /// A tensor and a number.
    Scalar(&'static Binary, f64),
    Select,
    Cast(DType),
    Reshape(Vec<usize>),
    Transpose(Vec<usize>),
    /// `strided_slice`: first element, count and step of each axis; the step may be negative.
    Slice(Vec<(usize, usize, i64)>),
    BroadcastTo(Vec<usize>),
    Reverse(Vec<usize>),
    /// `roll` by this many elements along this axis.
    Roll(i64, usize),
    Pad(Vec<(usize, usize)>, f64),
    /// `linalg::tril` of the first diagonal, and `triu` of the second.
    Band(i64, i64),
    /// `linalg::diag_part_with` of this diagonal.
    DiagPart(i64),
    /// `linalg::diag_with` on this diagonal.
    Diag(i64),
    Concat(usize),
    Reduce(&'static Reduction, Vec<usize>, bool),
    Softmax(usize),
    LogSoftmax(usize),
    /// Labels and logits.
    CrossEntropy,
    MatMul {
        ta: bool,
        tb: bool,
    },
    Conv {
        strides: [usize; 2],
        same: bool,
        dilations: [usize; 2],
    },
    Pool {
        max: bool,
        window: [usize; 2],
        strides: [usize; 2],
        same: bool,
    },
    Gather(usize),
    ArgMax {
        axis: usize,
        largest: bool,
    },
    SegmentSum(usize),
}

/// A call with its inputs, which are earlier nodes.
#[derive(Clone, Debug)]
pub struct Node {
    pub op: Op,
    pub inputs: Vec<usize>,
    /// Held until the end of the program, and read.
    pub wanted: bool,
    /// `Device::flush` follows this call.
    pub flush: bool,
}

#[derive(Clone, Debug, Default)]
pub struct Program {
    pub nodes: Vec<Node>,
}

impl Program {
    /// The last node that reads each node.
    pub fn last_readers(&self) -> Vec<Option<usize>> {
        let mut last = vec![None; self.nodes.len()];
        for (i, node) in self.nodes.iter().enumerate() {
            for &input in &node.inputs {
                last[input] = Some(i);
            }
        }
        last
    }
}

fn list<T: fmt::Display>(items: &[T]) -> String {
    let items: Vec<String> = items.iter().map(T::to_string).collect();
    format!("[{}]", items.join(", "))
}

fn number(v: f64, dtype: DType) -> String {
    match dtype {
        DType::Bool => (v != 0.0).to_string(),
        DType::F32 if v.is_nan() => "f32::NAN".into(),
        DType::F32 if v.is_infinite() => {
            (if v > 0.0 { "f32::INFINITY" } else { "f32::NEG_INFINITY" }).into()
        }
        DType::F32 => format!("{:?}", v as f32),
        _ => format!("{v}"),
    }
}

/// Written as Rust, so that a failing program can be pasted into a test.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, node) in self.nodes.iter().enumerate() {
            let x = |k: usize| format!("v{}", node.inputs[k]);
            let axes = |a: &[usize]| list(a);
            let call = match &node.op {
                Op::Input { values, shape, dtype, .. } => {
                    let shown: Vec<String> =
                        values.iter().take(40).map(|&v| number(v, *dtype)).collect();
                    let more = if values.len() > 40 {
                        format!(" /* and {} more */", values.len() - 40)
                    } else {
                        String::new()
                    };
                    let t = dtype.name();
                    format!(
                        "Tensor::from_slice::<{t}>(&[{}{more}], {})?",
                        shown.join(", "),
                        list(shape)
                    )
                }
                Op::Full { value, shape, dtype } => {
                    let value = number(*value, *dtype);
                    format!("Tensor::full_of({}, {value}, DType::{dtype:?})?", list(shape))
                }
                Op::Range { start, step, n } => {
                    format!("wgrad::range({start}, {}, {step})?", start + step * *n as i64)
                }
                Op::Unary(row) => format!("{}.{}?", x(0), row.text.replace(" (", "(")),
                Op::Binary(row) => format!("{}.{}(&{})?", x(0), row.name, x(1)),
                Op::Scalar(row, v) => format!("{}.{}({v:?} /* a number */)?", x(0), row.name),
                Op::Select => format!("where_(&{}, &{}, &{})?", x(0), x(1), x(2)),
                Op::Cast(dtype) => format!("{}.cast(DType::{dtype:?})?", x(0)),
                Op::Reshape(to) => format!("{}.reshape({})?", x(0), axes(to)),
                Op::Transpose(order) => format!("{}.transpose(&{})?", x(0), axes(order)),
                Op::Slice(ranges) => {
                    let ranges: Vec<String> = ranges
                        .iter()
                        .map(|(from, n, step)| format!("{n} from {from} by {step}"))
                        .collect();
                    format!("{}.strided_slice(/* {} */)?", x(0), ranges.join("; "))
                }
                Op::BroadcastTo(to) => format!("{}.broadcast_to({})?", x(0), axes(to)),
                Op::Reverse(along) => format!("{}.reverse(&{})?", x(0), axes(along)),
                Op::Roll(by, axis) => format!("{}.roll(&[{by}], {axis})?", x(0)),
                Op::Pad(edges, v) => {
                    format!("{}.pad_with(&{edges:?}, PadMode::Constant({v:?}.into()))?", x(0))
                }
                Op::Band(low, high) => {
                    format!("linalg::triu(&linalg::tril(&{}, {high})?, {low})?", x(0))
                }
                Op::DiagPart(k) => format!("linalg::diag_part_with(&{}, {k})?", x(0)),
                Op::Diag(k) => {
                    format!("linalg::diag_with(&{}, DiagOptions::new().k({k}))?", x(0))
                }
                Op::Concat(axis) => {
                    let parts: Vec<String> = node.inputs.iter().map(|k| format!("&v{k}")).collect();
                    format!("concat(&[{}], {axis})?", parts.join(", "))
                }
                Op::Reduce(row, along, keep) => {
                    format!("{}.{}(Axes::from({}).keepdims({keep}))?", x(0), row.name, axes(along))
                }
                Op::Softmax(axis) => format!("{}.softmax({axis})?", x(0)),
                Op::LogSoftmax(axis) => format!("{}.log_softmax({axis})?", x(0)),
                Op::CrossEntropy => {
                    format!("sparse_softmax_cross_entropy_with_logits(&{}, &{})?", x(0), x(1))
                }
                Op::MatMul { ta, tb } => {
                    format!(
                        "{}.matmul_with(&{}, wgrad::MatmulOptions::new().transpose_a({ta}).transpose_b({tb}))?",
                        x(0),
                        x(1)
                    )
                }
                Op::Conv { strides, same, dilations } => format!(
                    "{}.conv2d(&{}, /* strides {strides:?} same {same} dilations {dilations:?} */)?",
                    x(0),
                    x(1)
                ),
                Op::Pool { max, window, strides, same } => format!(
                    "{}.{}(/* window {window:?} strides {strides:?} same {same} */)?",
                    x(0),
                    if *max { "max_pool2d" } else { "avg_pool2d" }
                ),
                Op::Gather(axis) => format!("{}.gather(&{}, {axis})?", x(0), x(1)),
                Op::ArgMax { axis, largest } => {
                    format!("{}.{}({axis})?", x(0), if *largest { "argmax" } else { "argmin" })
                }
                Op::SegmentSum(n) => {
                    format!("{}.unsorted_segment_sum(&{}, {n})?", x(0), x(1))
                }
            };
            write!(f, "let v{i} = {call};")?;
            if node.wanted {
                write!(f, " // wanted")?;
            }
            if let Op::Input { kept: true, .. } = node.op {
                write!(f, " // kept")?;
            }
            writeln!(f)?;
            if node.flush {
                writeln!(f, "device.flush()?;")?;
            }
        }
        Ok(())
    }
}

/// Random numbers, the same in every run: SplitMix64 (Steele et al. 2014).
#[derive(Clone, Debug)]
pub struct Rng(pub u64);

impl Rng {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In 0 to 1, without 1.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn below(&mut self, n: usize) -> usize {
        ((self.unit() * n as f64) as usize).min(n.saturating_sub(1))
    }

    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}
