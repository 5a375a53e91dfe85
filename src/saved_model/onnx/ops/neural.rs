//! Convolutions, pools and normalizations. ONNX has the channels before the axes of space; this crate has them last.

use super::call::{Call, Results, Table, axis, number, tensor, tf, unsupported};
use super::math::mean;
use crate::dtype::Scalar;
use crate::error::{Error, Result, message};
use crate::ops::{Conv1dTransposeOptions, Conv2dTransposeOptions, Conv3dTransposeOptions};
use crate::ops::{
    ConvolutionOptions, LocalResponseNormalizationOptions, PadMode, Padding, PoolOptions,
    PoolingType, concat, one_hot,
};
use crate::saved_model::graph_def::value::Value;
use crate::shape::Axes;
use crate::tensor::Tensor;

pub(super) static OPS: Table = &[
    ("AveragePool", |c| pool(c, PoolingType::Avg)),
    ("BatchNormalization", batch_normalization),
    ("Conv", conv),
    ("ConvTranspose", conv_transpose),
    ("GlobalAveragePool", |c| global(c, |x, axes| x.reduce_mean(axes))),
    ("GlobalMaxPool", |c| global(c, |x, axes| x.reduce_max(axes))),
    ("GroupNormalization", group_normalization),
    ("Hardmax", |c| {
        along(c, |x, at| {
            let size = x.shape()[at];
            let last = one_hot(&x.argmax(at)?, size)?;
            let mut perm: Vec<usize> = (0..x.rank() - 1).collect();
            perm.insert(at, x.rank() - 1);
            last.transpose(perm)
        })
    }),
    ("InstanceNormalization", |c| {
        let x = c.tensor(0)?;
        let axes: Vec<usize> = (2..x.rank()).collect();
        let y = standardized(&x, axes, c.attr_float("epsilon", 1e-5))?[0].clone();
        tensor(scaled(&y, &c.tensor(1)?, Some(&c.tensor(2)?), 1)?)
    }),
    ("LRN", |c| {
        let size = c.attr_int("size", 1);
        if size < 1 || size % 2 == 0 {
            return Err(unsupported(format_args!("LRN over {size} channels")));
        }
        let options = LocalResponseNormalizationOptions::new()
            .depth_radius((size as usize - 1) / 2)
            .alpha(c.attr_float("alpha", 1e-4) / size as f32)
            .beta(c.attr_float("beta", 0.75))
            .bias(c.attr_float("bias", 1.0));
        let x = channels_last(&c.tensor(0)?)?;
        tensor(channels_first(&x.local_response_normalization(options)?)?)
    }),
    ("LayerNormalization", |c| {
        let x = c.tensor(0)?;
        let at = axis(c.attr_int("axis", -1), x.rank())?;
        let axes: Vec<usize> = (at..x.rank()).collect();
        let [y, mean, deviation] = standardized(&x, axes, c.attr_float("epsilon", 1e-5))?;
        let mut y = y.multiply(c.tensor(1)?)?;
        if c.get(2).is_some() {
            y = y.add(c.tensor(2)?)?;
        }
        Ok(vec![Value::Tensor(y), Value::Tensor(mean), Value::Tensor(deviation)])
    }),
    ("LogSoftmax", |c| along(c, |x, at| x.log_softmax(at))),
    ("LpPool", lp_pool),
    ("LpNormalization", |c| {
        let x = c.tensor(0)?;
        let axes = Axes::from(c.attr_int("axis", -1)).keepdims(true);
        let norm = match c.attr_int("p", 2) {
            1 => x.abs()?.reduce_sum(axes)?,
            _ => x.square()?.reduce_sum(axes)?.sqrt()?,
        };
        tensor(x.divide_no_nan(norm)?)
    }),
    ("MaxPool", |c| pool(c, PoolingType::Max)),
    ("MeanVarianceNormalization", |c| {
        let x = c.input(0)?;
        let axes = c.attr_ints("axes").unwrap_or(&[0, 2, 3]);
        let centered = tf("Sub", vec![x.clone(), mean(&x, axes)?], vec![])?;
        let square = tf("Square", vec![centered.clone()], vec![])?;
        let deviation = tf("Sqrt", vec![mean(&square, axes)?], vec![])?;
        let small = number(1e-9, &x)?;
        let deviation = tf("AddV2", vec![deviation, small], vec![])?;
        Ok(vec![tf("RealDiv", vec![centered, deviation], vec![])?])
    }),
    ("RMSNormalization", |c| {
        let x = c.tensor(0)?;
        let at = axis(c.attr_int("axis", -1), x.rank())?;
        let axes = Axes::from((at..x.rank()).collect::<Vec<_>>()).keepdims(true);
        let mean = x.square()?.reduce_mean(axes)?;
        let root = mean.add(c.attr_float("epsilon", 1e-5))?.rsqrt()?;
        tensor(x.multiply(root)?.multiply(c.tensor(1)?)?)
    }),
    ("Softmax", |c| along(c, |x, at| x.softmax(at))),
];

fn channels_last(x: &Tensor) -> Result<Tensor> {
    if x.rank() < 3 {
        return Ok(x.clone());
    }
    let mut perm: Vec<usize> = (0..x.rank()).collect();
    let channels = perm.remove(1);
    perm.push(channels);
    x.transpose(perm)
}

fn channels_first(x: &Tensor) -> Result<Tensor> {
    if x.rank() < 3 {
        return Ok(x.clone());
    }
    let mut perm: Vec<usize> = (0..x.rank() - 1).collect();
    perm.insert(1, x.rank() - 1);
    x.transpose(perm)
}

/// A function along an axis. Before opset 13, all axes from this one on were one.
fn along(c: &Call<'_>, f: fn(&Tensor, usize) -> Result<Tensor>) -> Result<Results> {
    let x = c.tensor(0)?;
    if c.opset >= 13 {
        return tensor(f(&x, axis(c.attr_int("axis", -1), x.rank())?)?);
    }
    let at = axis(c.attr_int("axis", 1), x.rank())?;
    let rows: usize = x.shape()[..at].iter().product();
    let columns: usize = x.shape()[at..].iter().product();
    tensor(f(&x.reshape([rows, columns])?, 1)?.reshape(x.shape())?)
}

/// The standardized values, the means and the reciprocals of the deviations.
fn standardized(x: &Tensor, axes: Vec<usize>, epsilon: f32) -> Result<[Tensor; 3]> {
    let axes = Axes::from(axes).keepdims(true);
    let mean = x.reduce_mean(axes.clone())?;
    let centered = x.subtract(&mean)?;
    let root = centered.square()?.reduce_mean(axes)?.add(epsilon)?.rsqrt()?;
    Ok([centered.multiply(&root)?, mean, root])
}

/// `x * scale + offset` along one axis.
fn scaled(x: &Tensor, scale: &Tensor, offset: Option<&Tensor>, at: usize) -> Result<Tensor> {
    let mut shape = vec![1; x.rank()];
    *shape
        .get_mut(at)
        .ok_or_else(|| Error::Shape(message!("{:?} has no axis {at}.", x.shape())))? = scale.len();
    let y = x.multiply(scale.reshape(shape.clone())?)?;
    match offset {
        Some(offset) => y.add(offset.reshape(shape)?),
        None => Ok(y),
    }
}

fn batch_normalization(c: &Call<'_>) -> Result<Results> {
    if c.attr_int("training_mode", 0) != 0 {
        return Err(unsupported(format_args!("BatchNormalization in training mode")));
    }
    let (scale, offset) = (c.tensor(1)?, c.tensor(2)?);
    let (mean, variance) = (c.tensor(3)?, c.tensor(4)?);
    let factor = variance.add(c.attr_float("epsilon", 1e-5))?.rsqrt()?.multiply(&scale)?;
    let offset = offset.subtract(mean.multiply(&factor)?)?;
    tensor(scaled(&c.tensor(0)?, &factor, Some(&offset), 1)?)
}

fn group_normalization(c: &Call<'_>) -> Result<Results> {
    let x = c.tensor(0)?;
    let groups = usize::try_from(c.attr_int("num_groups", 1)).unwrap_or(0);
    let (batch, channels) = match x.shape() {
        [batch, channels, ..] if groups > 0 && channels.is_multiple_of(groups) => {
            (*batch, *channels)
        }
        shape => {
            return Err(Error::Shape(message!("{shape:?} has no {groups} groups of channels.")));
        }
    };
    let inner: usize = x.shape()[2..].iter().product();
    let flat = x.reshape([batch, groups, channels / groups * inner])?;
    let [y, _, _] = standardized(&flat, vec![2], c.attr_float("epsilon", 1e-5))?;
    let (scale, offset) = (c.tensor(1)?, c.tensor(2)?);
    // Before opset 21, each group had one factor.
    let y = match scale.len() == channels {
        true => scaled(&y.reshape(x.shape())?, &scale, Some(&offset), 1)?,
        false => scaled(&y, &scale, Some(&offset), 1)?,
    };
    tensor(y.reshape(x.shape())?)
}

fn global(c: &Call<'_>, f: fn(&Tensor, Axes) -> Result<Tensor>) -> Result<Results> {
    let x = c.tensor(0)?;
    let axes: Vec<usize> = (2..x.rank()).collect();
    tensor(f(&x, Axes::from(axes).keepdims(true))?)
}

/// The numbers for each axis of space, of which there are as many as in `sizes`.
struct Space {
    kernel: Vec<usize>,
    strides: Vec<usize>,
    dilations: Vec<usize>,
    pads: Vec<(usize, usize)>,
}

impl Space {
    fn new(c: &Call<'_>, sizes: &[usize], kernel: &[usize]) -> Result<Self> {
        let n = sizes.len();
        let list = |name: &str| -> Result<Vec<usize>> {
            let Some(all) = c.attr_ints(name) else { return Ok(vec![1; n]) };
            let all: Option<Vec<usize>> = all.iter().map(|v| usize::try_from(*v).ok()).collect();
            // Bounded, so that no product of them overflows.
            all.filter(|all| all.len() == n && all.iter().all(|v| (1..1 << 20).contains(v)))
                .ok_or_else(|| Error::Shape(message!("its {name} do not fit {n} axes.")))
        };
        let (strides, dilations) = (list("strides")?, list("dilations")?);
        let extent = |at: usize| dilations[at] * kernel[at].saturating_sub(1) + 1;
        let pads = match c.attr_text("auto_pad", "NOTSET") {
            "VALID" => vec![(0, 0); n],
            word @ ("SAME_UPPER" | "SAME_LOWER") => (0..n)
                .map(|at| {
                    let results = sizes[at].div_ceil(strides[at]);
                    let needed = results.saturating_sub(1) * strides[at] + extent(at);
                    let all = needed.saturating_sub(sizes[at]);
                    let small = all / 2;
                    if word == "SAME_UPPER" { (small, all - small) } else { (all - small, small) }
                })
                .collect(),
            _ => match c.attr_ints("pads") {
                None => vec![(0, 0); n],
                Some(pads)
                    if pads.len() == 2 * n && pads.iter().all(|pad| (0..1 << 30).contains(pad)) =>
                {
                    (0..n).map(|at| (pads[at] as usize, pads[n + at] as usize)).collect()
                }
                Some(pads) => {
                    return Err(Error::Shape(message!("its pads {pads:?} do not fit {n} axes.")));
                }
            },
        };
        Ok(Space { kernel: kernel.to_vec(), strides, dilations, pads })
    }

    /// The axes of a tensor with its channels last, padded.
    fn padded(&self, x: &Tensor, extra: &[usize], value: Scalar) -> Result<Tensor> {
        let mut all = vec![(0, 0)];
        all.extend(
            self.pads.iter().zip(extra).map(|((before, after), extra)| (*before, after + extra)),
        );
        all.push((0, 0));
        if all.iter().all(|pads| *pads == (0, 0)) {
            return Ok(x.clone());
        }
        x.pad_with(&all, PadMode::Constant(value))
    }
}

fn conv(c: &Call<'_>) -> Result<Results> {
    let (x, w) = (c.tensor(0)?, c.tensor(1)?);
    let n = x.rank().saturating_sub(2);
    if w.rank() != x.rank() || !(1..=3).contains(&n) {
        return Err(unsupported(format_args!(
            "a convolution of {:?} by {:?}",
            x.shape(),
            w.shape()
        )));
    }
    let space = Space::new(c, &x.shape()[2..], &w.shape()[2..])?;
    // [O, C/G, k...] to [k..., C/G, O].
    let mut perm: Vec<usize> = (2..w.rank()).collect();
    perm.extend([1, 0]);
    let filters = w.transpose(perm)?;
    let padding: Padding = match space.pads[..] {
        [a] => [a].into(),
        [a, b] => [a, b].into(),
        [a, b, c] => [a, b, c].into(),
        _ => Padding::Valid,
    };
    let options = ConvolutionOptions::new()
        .strides(space.strides)
        .dilations(space.dilations)
        .padding(padding);
    let y = channels_first(&channels_last(&x)?.convolution(filters, options)?)?;
    with_bias(c, y)
}

/// Adds input 2, a number for each channel, if there is one.
fn with_bias(c: &Call<'_>, y: Tensor) -> Result<Results> {
    match c.get(2) {
        Some(_) => {
            let bias = c.tensor(2)?;
            let mut shape = vec![1; y.rank()];
            shape[1] = bias.len();
            tensor(y.add(bias.reshape(shape)?)?)
        }
        None => tensor(y),
    }
}

fn conv_transpose(c: &Call<'_>) -> Result<Results> {
    let (x, w) = (c.tensor(0)?, c.tensor(1)?);
    let n = x.rank().saturating_sub(2);
    let groups = usize::try_from(c.attr_int("group", 1)).unwrap_or(0);
    if w.rank() != x.rank() || !(1..=3).contains(&n) || !(1..1 << 20).contains(&groups) {
        return Err(unsupported(format_args!(
            "a convolution of {:?} by {:?}",
            x.shape(),
            w.shape()
        )));
    }
    let sizes = x.shape()[2..].to_vec();
    let mut space = Space::new(c, &sizes, &w.shape()[2..])?;
    let zeros = vec![0; n];
    let extra = c.attr_ints("output_padding").unwrap_or(&zeros);
    let mut extra: Vec<usize> = extra.iter().map(|v| usize::try_from(*v).unwrap_or(0)).collect();
    if extra.len() != n || extra.iter().any(|size| *size >= 1 << 20) {
        return Err(Error::Shape(message!("its output_padding does not fit {n} axes.")));
    }
    let full: Vec<usize> = (0..n)
        .map(|at| {
            let extent = space.dilations[at] * space.kernel[at].saturating_sub(1) + 1;
            sizes[at].saturating_sub(1) * space.strides[at] + extent
        })
        .collect();
    let same = matches!(c.attr_text("auto_pad", "NOTSET"), "SAME_UPPER" | "SAME_LOWER");
    let wanted: Option<Vec<usize>> = match c.attr_ints("output_shape") {
        Some(shape) => {
            let shape = &shape[shape.len().saturating_sub(n)..];
            shape.iter().map(|size| usize::try_from(*size).ok()).collect()
        }
        None if same => Some((0..n).map(|at| sizes[at] * space.strides[at]).collect()),
        None => None,
    };
    if let Some(wanted) = wanted.filter(|wanted| wanted.len() == n) {
        for at in 0..n {
            // What the windows do not reach is added at the end.
            extra[at] = extra[at].max(wanted[at].saturating_sub(full[at]));
            let all = (full[at] + extra[at]).saturating_sub(wanted[at]);
            let upper = c.attr_text("auto_pad", "NOTSET") == "SAME_UPPER";
            let small = all / 2;
            space.pads[at] = if upper { (small, all - small) } else { (all - small, small) };
        }
    }
    let outputs = w.shape()[1];
    let (xs, ws) = (x.split(groups, 1)?, w.split(groups, 0)?);
    let mut parts = Vec::with_capacity(groups);
    for (x, w) in xs.iter().zip(&ws) {
        // [C, O, k...] to [k..., O, C].
        let mut perm: Vec<usize> = (2..w.rank()).collect();
        perm.extend([1, 0]);
        parts.push(transposed(&channels_last(x)?, &w.transpose(perm)?, &space, &full, outputs)?);
    }
    let mut y = concat(&parts, -1)?;
    // Pads are cut off; what output_padding adds at the end lies beyond them.
    for at in 0..n {
        let (before, after) = space.pads[at];
        let mut pads = vec![(0, 0); y.rank()];
        pads[at + 1] = (0, extra[at]);
        y = if extra[at] > 0 { y.pad(&pads)? } else { y };
        let length = (full[at] + extra[at])
            .checked_sub(before + after)
            .ok_or_else(|| Error::Shape(message!("its pads are larger than its result.")))?;
        let (mut begin, mut size) = (vec![0; y.rank()], vec![-1; y.rank()]);
        (begin[at + 1], size[at + 1]) = (before, length as i64);
        y = y.slice(&begin, &size)?;
    }
    let y = channels_first(&y)?;
    with_bias(c, y)
}

/// The whole transposed convolution, without pads.
fn transposed(
    x: &Tensor,
    w: &Tensor,
    space: &Space,
    full: &[usize],
    channels: usize,
) -> Result<Tensor> {
    let batch = x.shape()[0];
    let (s, d) = (&space.strides, &space.dilations);
    match *full {
        [a] => {
            let options = Conv1dTransposeOptions::new().output_shape([batch, a, channels]);
            let options = options.strides(s[0]).dilations(d[0]).padding(Padding::Valid);
            x.conv1d_transpose(w, options)
        }
        [a, b] => {
            let options = Conv2dTransposeOptions::new().output_shape([batch, a, b, channels]);
            let options = options.strides([s[0], s[1]]).dilations([d[0], d[1]]);
            x.conv2d_transpose(w, options.padding(Padding::Valid))
        }
        [a, b, e] => {
            let options = Conv3dTransposeOptions::new().output_shape([batch, a, b, e, channels]);
            let options = options.strides([s[0], s[1], s[2]]).dilations([d[0], d[1], d[2]]);
            x.conv3d_transpose(w, options.padding(Padding::Valid))
        }
        _ => Err(unsupported(format_args!("a convolution along {} axes", full.len()))),
    }
}

/// The windows of a pool.
struct Windows {
    space: Space,
    kernel: Vec<usize>,
    /// What the last window of each axis needs beyond the pads.
    extra: Vec<usize>,
    options: PoolOptions,
}

impl Windows {
    fn new(c: &Call<'_>, x: &Tensor) -> Result<Self> {
        let n = x.rank().saturating_sub(2);
        let kernel = c.attr_ints("kernel_shape").unwrap_or(&[]);
        let kernel: Vec<usize> = kernel.iter().map(|v| usize::try_from(*v).unwrap_or(0)).collect();
        let sound = kernel.iter().all(|size| (1..1 << 20).contains(size));
        if kernel.len() != n || !sound || !(1..=3).contains(&n) {
            return Err(unsupported(format_args!("a pool of {:?} by {kernel:?}", x.shape())));
        }
        let space = Space::new(c, &x.shape()[2..], &kernel)?;
        let sizes = &x.shape()[2..];
        // With ceil_mode, the last window may reach beyond the pads, but not begin there.
        let extra: Vec<usize> = (0..n)
            .map(|at| {
                let (before, after) = space.pads[at];
                let extent = space.dilations[at] * (kernel[at] - 1) + 1;
                let Some(room) = (sizes[at] + before + after).checked_sub(extent) else { return 0 };
                let stride = space.strides[at];
                let mut windows = room.div_ceil(stride);
                if c.attr_int("ceil_mode", 0) == 0 || windows * stride >= sizes[at] + before {
                    windows = room / stride;
                }
                (windows * stride + extent).saturating_sub(sizes[at] + before + after)
            })
            .collect();
        let options = PoolOptions::new()
            .strides(space.strides.clone())
            .dilations(space.dilations.clone())
            .padding(Padding::Valid);
        Ok(Windows { space, kernel, extra, options })
    }
}

/// The root of the sum of the powers in each window.
fn lp_pool(c: &Call<'_>) -> Result<Results> {
    let x = c.tensor(0)?;
    let Windows { space, kernel, extra, options } = Windows::new(c, &x)?;
    let p = c.attr_int("p", 2);
    if p < 1 {
        return Err(unsupported(format_args!("LpPool with the power {p}")));
    }
    let p = p as f32;
    let powers = channels_last(&x)?.abs()?.pow(p)?;
    let zeros = space.padded(&powers, &extra, Scalar::Float(0.0))?;
    let count = kernel.iter().product::<usize>() as f32;
    let sums = zeros.pool(&kernel, PoolingType::Avg, options)?.multiply(count)?;
    tensor(channels_first(&sums.pow(1.0 / p)?)?)
}

fn pool(c: &Call<'_>, kind: PoolingType) -> Result<Results> {
    let x = c.tensor(0)?;
    let Windows { space, kernel, extra, options } = Windows::new(c, &x)?;
    let n = kernel.len();
    if c.node.outputs.get(1).is_some_and(|name| !name.is_empty()) {
        return Err(unsupported(format_args!("the second result of MaxPool, the indices")));
    }
    let x = channels_last(&x)?;
    if kind == PoolingType::Max {
        let padded = space.padded(&x, &extra, Scalar::Float(f64::NEG_INFINITY))?;
        return tensor(channels_first(&padded.pool(&kernel, kind, options)?)?);
    }
    let zeros = space.padded(&x, &extra, Scalar::Float(0.0))?;
    let sums = zeros.pool(&kernel, kind, options.clone())?;
    if zeros.shape() == x.shape() {
        return tensor(channels_first(&sums)?);
    }
    // The share of each window that counts: without the pads, or with those that the model names.
    let ones = if c.attr_int("count_include_pad", 0) != 0 {
        let inner = space.padded(&x.ones_like()?, &vec![0; n], Scalar::Float(1.0))?;
        Space { pads: vec![(0, 0); n], ..space }.padded(&inner, &extra, Scalar::Float(0.0))?
    } else {
        space.padded(&x.ones_like()?, &extra, Scalar::Float(0.0))?
    };
    let share = ones.pool(&kernel, kind, options)?;
    tensor(channels_first(&sums.divide(share)?)?)
}
