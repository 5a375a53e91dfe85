//! Computes programs with the crate's public functions.

use ndarray::SliceInfoElem;
use wgrad::{
    Conv2dOptions, DType, Device, GradientTape, PadMode, Padding, Pool2dOptions, Result, Scalar,
    Tensor, concat, linalg, sparse_softmax_cross_entropy_with_logits, where_,
};

use super::{Op, Program};

/// Which ops share a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All ops between two flushes of the program.
    Fused,
    /// Each op has its own plan.
    Apart,
}

/// A device for each mode. Both reuse their pipelines between programs.
pub struct Devices {
    fused: Device,
    apart: Device,
}

impl Devices {
    pub fn new() -> Self {
        let (fused, apart) = (Device::new().unwrap(), Device::new().unwrap());
        fused.set_fusion(true);
        // Composed ops consist of several; these get one kernel each, too.
        apart.set_fusion(false);
        Devices { fused, apart }
    }

    fn of(&self, mode: Mode) -> &Device {
        match mode {
            Mode::Fused => &self.fused,
            Mode::Apart => &self.apart,
        }
    }
}

/// A value that was read: its shape and its elements.
#[derive(Clone, Debug)]
pub struct Read {
    pub shape: Vec<usize>,
    pub dtype: DType,
    pub v: Vec<f64>,
}

/// The result of a run: wanted values by node, and kept inputs after the run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub wanted: Vec<(usize, Read)>,
    pub kept: Vec<(usize, Read)>,
    /// Gradients of inputs by node.
    pub gradients: Vec<(usize, Read)>,
}

pub fn read(x: &Tensor) -> Result<Read> {
    let v = match x.dtype() {
        DType::F32 => x.to_vec::<f32>()?.into_iter().map(f64::from).collect(),
        DType::I32 => x.to_vec::<i32>()?.into_iter().map(f64::from).collect(),
        DType::U8 => x.to_vec::<u8>()?.into_iter().map(f64::from).collect(),
        DType::Bool => x.to_vec::<bool>()?.into_iter().map(|b| f64::from(u8::from(b))).collect(),
        _ => x.cast(DType::F32)?.to_vec::<f32>()?.into_iter().map(f64::from).collect(),
    };
    Ok(Read { shape: x.shape().to_vec(), dtype: x.dtype(), v })
}

pub fn upload(values: &[f64], shape: &[usize], dtype: DType) -> Result<Tensor> {
    match dtype {
        DType::I32 => {
            Tensor::from_slice(&values.iter().map(|&v| v as i32).collect::<Vec<_>>(), shape)
        }
        DType::U8 => {
            Tensor::from_slice(&values.iter().map(|&v| v as u8).collect::<Vec<_>>(), shape)
        }
        DType::Bool => {
            Tensor::from_slice(&values.iter().map(|&v| v != 0.0).collect::<Vec<_>>(), shape)
        }
        _ => Tensor::from_slice(&values.iter().map(|&v| v as f32).collect::<Vec<_>>(), shape),
    }
}

fn signed(axes: &[usize]) -> Vec<i64> {
    axes.iter().map(|&axis| axis as i64).collect()
}

/// A number in the form in which a caller would combine it with a tensor of `dtype`.
fn scalar(v: f64, dtype: DType) -> Scalar {
    match dtype {
        DType::Bool => Scalar::Bool(v != 0.0),
        dtype if dtype.is_int() => Scalar::Int(v as i64),
        _ => Scalar::Float(v),
    }
}

/// Makes one call.
pub fn call(op: &Op, x: &[&Tensor]) -> Result<Tensor> {
    let padding = |same: bool| if same { Padding::Same } else { Padding::Valid };
    match op {
        Op::Input { values, shape, dtype, .. } => upload(values, shape, *dtype),
        Op::Full { value, shape, dtype } => Tensor::full_of(shape, scalar(*value, *dtype), *dtype),
        Op::Range { start, step, n } => wgrad::range(*start, start + step * *n as i64, *step),
        Op::Unary(row) => (row.call)(x[0]),
        Op::Binary(row) => (row.call)(x[0], x[1]),
        Op::Scalar(row, v) => (row.scalar)(x[0], scalar(*v, x[0].dtype())),
        Op::Select => where_(x[0], x[1], x[2]),
        Op::Cast(dtype) => x[0].cast(*dtype),
        Op::Reshape(to) => x[0].reshape(signed(to)),
        Op::Transpose(order) => x[0].transpose(signed(order)),
        Op::Slice(ranges) => {
            let parts = ranges.iter().zip(x[0].shape()).map(|(&range, &size)| slice(range, size));
            x[0].strided_slice(parts.collect::<Vec<_>>())
        }
        Op::BroadcastTo(to) => x[0].broadcast_to(to),
        Op::Reverse(along) => x[0].reverse(signed(along)),
        Op::Roll(by, axis) => x[0].roll(&[*by], *axis),
        Op::Pad(edges, v) => x[0].pad_with(edges, PadMode::Constant(scalar(*v, x[0].dtype()))),
        Op::Band(low, high) => linalg::triu(&linalg::tril(x[0], *high)?, *low),
        Op::DiagPart(k) => linalg::diag_part_with(x[0], *k),
        Op::Diag(k) => linalg::diag_with(x[0], linalg::DiagOptions::new().k(*k)),
        Op::Concat(axis) => concat(x, *axis as i64),
        Op::Reduce(row, axes, keep) => (row.call)(x[0], &signed(axes), *keep),
        Op::Softmax(axis) => x[0].softmax(*axis as i64),
        Op::LogSoftmax(axis) => x[0].log_softmax(*axis as i64),
        Op::CrossEntropy => sparse_softmax_cross_entropy_with_logits(x[0], x[1]),
        Op::MatMul { ta, tb } => {
            x[0].matmul_with(x[1], wgrad::MatmulOptions::new().transpose_a(*ta).transpose_b(*tb))
        }
        Op::Conv { strides, same, dilations } => {
            let (strides, dilations) = (*strides, *dilations);
            x[0].conv2d(
                x[1],
                Conv2dOptions::new().strides(strides).padding(padding(*same)).dilations(dilations),
            )
        }
        Op::Pool { max, window, strides, same } => {
            let options = Pool2dOptions::new().strides(*strides).padding(padding(*same));
            if *max { x[0].max_pool2d(*window, options) } else { x[0].avg_pool2d(*window, options) }
        }
        Op::Gather(axis) => x[0].gather(x[1], *axis as i64),
        Op::ArgMax { axis, largest: true } => x[0].argmax(*axis as i64),
        Op::ArgMax { axis, largest: false } => x[0].argmin(*axis as i64),
        Op::SegmentSum(n) => x[0].unsorted_segment_sum(x[1], *n),
    }
}

/// `n` elements from `from` in steps of `step`, in ndarray's notation for a range of an axis of `size`: with a negative step,
/// the range covers the same elements and is traversed from its end.
fn slice((from, n, step): (usize, usize, i64), size: usize) -> SliceInfoElem {
    if n == 0 {
        return SliceInfoElem::Slice { start: size as isize, end: None, step: 1 };
    }
    let last = (from as i64 + step * (n as i64 - 1)) as isize;
    let (low, high) = ((from as isize).min(last), (from as isize).max(last));
    SliceInfoElem::Slice { start: low, end: Some(high + 1), step: step as isize }
}

/// Runs `program`.
pub fn run(program: &Program, devices: &Devices, mode: Mode) -> Result<Outcome> {
    let device = devices.of(mode);
    device.scope(|| {
        let values = calls(program, device, mode, |_, _| Ok(()))?;
        finish(program, device, &values)
    })
}

/// Makes all calls; an unwanted value is dropped after its last reader, like a program's variables.
fn calls(
    program: &Program,
    device: &Device,
    mode: Mode,
    mut made: impl FnMut(usize, &Tensor) -> Result<()>,
) -> Result<Vec<Option<Tensor>>> {
    let last = program.last_readers();
    let mut values: Vec<Option<Tensor>> = Vec::with_capacity(program.nodes.len());
    let kept = |i: usize| {
        let node = &program.nodes[i];
        node.wanted || matches!(node.op, Op::Input { kept: true, .. })
    };
    for (i, node) in program.nodes.iter().enumerate() {
        let inputs: Vec<&Tensor> =
            node.inputs.iter().map(|&k| values[k].as_ref().expect("held until read")).collect();
        let y = call(&node.op, &inputs)?;
        made(i, &y)?;
        values.push(Some(y));
        if mode == Mode::Apart {
            device.flush()?;
        }
        for k in 0..=i {
            if last[k].unwrap_or(k) <= i && !kept(k) {
                values[k] = None;
            }
        }
        if node.flush {
            device.flush()?;
        }
    }
    Ok(values)
}

fn finish(program: &Program, device: &Device, values: &[Option<Tensor>]) -> Result<Outcome> {
    device.flush()?;
    let mut outcome = Outcome::default();
    for (i, node) in program.nodes.iter().enumerate() {
        let Some(value) = &values[i] else { continue };
        if node.wanted {
            outcome.wanted.push((i, read(value)?));
        } else {
            outcome.kept.push((i, read(value)?));
        }
    }
    Ok(outcome)
}

/// Runs `program`, whose last value is a scalar, and also reads its gradients for all `f32` inputs. One flush computes all of
/// them, unless the program has its own flushes.
pub fn run_with_gradients(program: &Program, devices: &Devices, mode: Mode) -> Result<Outcome> {
    let device = devices.of(mode);
    device.scope(|| {
        let tape = GradientTape::new();
        let mut sources: Vec<(usize, Tensor)> = Vec::new();
        let values = calls(program, device, mode, |i, y| {
            if is_source(program, i) {
                tape.watch(y)?;
                sources.push((i, y.clone()));
            }
            Ok(())
        })?;
        let loss = values.last().cloned().flatten().expect("the last value is wanted");
        let (nodes, tensors): (Vec<usize>, Vec<Tensor>) = sources.into_iter().unzip();
        let gradients = tape.gradient(&loss, &tensors)?;
        drop((loss, tensors));
        let mut outcome = finish(program, device, &values)?;
        for (i, gradient) in nodes.into_iter().zip(gradients) {
            if let Some(gradient) = gradient {
                outcome.gradients.push((i, read(&gradient)?));
            }
        }
        Ok(outcome)
    })
}

/// Whether the gradient of this node is computed.
pub fn is_source(program: &Program, i: usize) -> bool {
    matches!(program.nodes[i].op, Op::Input { dtype: DType::F32, .. })
}
