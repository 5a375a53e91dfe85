//! Ops of neural networks: convolutions, pools, normalizations and losses.

use super::call::{Call, Entry, Results, any, many, unsupported};
use super::matrices::matmul;
use crate::error::{Error, Result, message};
use crate::ops::{
    Conv2dOptions, Conv2dTransposeOptions, Conv3dOptions, Conv3dTransposeOptions,
    FusedBatchNormOptions, LocalResponseNormalizationOptions, MaxPoolWithArgmaxOptions, Padding,
    PoolOptions, PoolingType, softmax_cross_entropy_with_logits,
    sparse_softmax_cross_entropy_with_logits,
};
use crate::saved_model::graph_def::value::Value;
use crate::tensor::Tensor;

pub(super) static OPS: &[Entry] = &[
    any("AvgPool", |call| pool(call, PoolingType::Avg)),
    any("AvgPool3D", |call| pool(call, PoolingType::Avg)),
    any("BiasAdd", |call| {
        let (x, bias) = (call.tensor(0)?, call.tensor(1)?);
        if call.attr_text("data_format", "NHWC") != "NCHW" || x.rank() < 3 {
            return Ok(Value::Tensor(x.bias_add(bias)?));
        }
        let mut shape = vec![1; x.rank()];
        shape[1] = bias.len();
        Ok(Value::Tensor(x.add(bias.reshape(shape)?)?))
    }),
    any("Conv2D", |call| Layout::of(call)?.back(&conv2d(call)?)),
    any("Conv2DBackpropInput", |call| {
        let layout = Layout::of(call)?;
        let (strides, dilations) = (layout.pair(call, "strides")?, layout.pair(call, "dilations")?);
        let shape = layout.sizes_last(&call.sizes(0)?);
        let shape: [usize; 4] = array(&shape)?;
        let options = Conv2dTransposeOptions::new().output_shape(shape).strides(strides);
        let options = options.dilations(dilations).padding(layout.padding(call)?);
        let x = layout.channels_last(&call.tensor(2)?)?;
        layout.back(&x.conv2d_transpose(call.tensor(1)?, options)?)
    }),
    any("Conv3D", |call| {
        let layout = Layout::of(call)?;
        let strides: [usize; 3] = array(&layout.inner(call, "strides")?)?;
        let dilations: [usize; 3] = array(&layout.inner(call, "dilations")?)?;
        let options = Conv3dOptions::new().strides(strides).dilations(dilations);
        let options = options.padding(layout.padding(call)?);
        let x = layout.channels_last(&call.tensor(0)?)?;
        layout.back(&x.conv3d(call.tensor(1)?, options)?)
    }),
    any("Conv3DBackpropInputV2", |call| {
        let layout = Layout::of(call)?;
        let strides: [usize; 3] = array(&layout.inner(call, "strides")?)?;
        let dilations: [usize; 3] = array(&layout.inner(call, "dilations")?)?;
        let shape: [usize; 5] = array(&layout.sizes_last(&call.sizes(0)?))?;
        let options = Conv3dTransposeOptions::new().output_shape(shape).strides(strides);
        let options = options.dilations(dilations).padding(layout.padding(call)?);
        let x = layout.channels_last(&call.tensor(2)?)?;
        layout.back(&x.conv3d_transpose(call.tensor(1)?, options)?)
    }),
    any("DepthwiseConv2dNative", |call| Layout::of(call)?.back(&depthwise(call)?)),
    any("Dilation2D", |call| {
        let layout = Layout { first: false };
        let (strides, dilations) = (layout.pair(call, "strides")?, layout.pair(call, "rates")?);
        let options = Conv2dOptions::new().strides(strides).dilations(dilations);
        let options = options.padding(layout.padding(call)?);
        Ok(Value::Tensor(call.tensor(0)?.dilation2d(&call.tensor(1)?, options)?))
    }),
    many("FusedBatchNorm", BATCH_NORM, batch_norm),
    many("FusedBatchNormV2", BATCH_NORM, batch_norm),
    many("FusedBatchNormV3", BATCH_NORM, batch_norm),
    any("FusedDepthwiseConv2dNative", |call| fused(call, &depthwise(call)?)),
    any("LRN", |call| {
        let options = LocalResponseNormalizationOptions::new()
            .depth_radius(call.attr_size("depth_radius", 5)?)
            .bias(call.attr_float("bias", 1.0))
            .alpha(call.attr_float("alpha", 1.0))
            .beta(call.attr_float("beta", 0.5));
        Ok(Value::Tensor(call.tensor(0)?.local_response_normalization(options)?))
    }),
    any("MaxPool", |call| pool(call, PoolingType::Max)),
    any("MaxPool3D", |call| pool(call, PoolingType::Max)),
    many("MaxPoolWithArgmax", &["output", "argmax"], |call| {
        let layout = Layout { first: false };
        let options = MaxPoolWithArgmaxOptions::new()
            .strides(layout.pair(call, "strides")?)
            .padding(layout.padding(call)?)
            .include_batch_in_index(call.attr_bool("include_batch_in_index", false));
        let x = call.tensor(0)?;
        let (values, places) = x.max_pool_with_argmax(layout.pair(call, "ksize")?, options)?;
        Ok(Results::from_iter([Value::Tensor(values), Value::Tensor(places)]))
    }),
    any("Prelu", |call| Ok(Value::Tensor(prelu(&call.tensor(0)?, &call.tensor(1)?)?))),
    many("SoftmaxCrossEntropyWithLogits", &["loss", "backprop"], |call| {
        let (logits, labels) = (call.tensor(0)?, call.tensor(1)?);
        let loss = softmax_cross_entropy_with_logits(&labels, &logits)?;
        let backprop = logits.softmax(-1)?.subtract(&labels)?;
        Ok(Results::from_iter([Value::Tensor(loss), Value::Tensor(backprop)]))
    }),
    many("SparseSoftmaxCrossEntropyWithLogits", &["loss", "backprop"], |call| {
        let (logits, labels) = (call.tensor(0)?, call.tensor(1)?);
        let loss = sparse_softmax_cross_entropy_with_logits(&labels, &logits)?;
        let classes = logits.shape().last().copied().unwrap_or(0);
        let backprop = logits.softmax(-1)?.subtract(crate::ops::one_hot(&labels, classes)?)?;
        Ok(Results::from_iter([Value::Tensor(loss), Value::Tensor(backprop)]))
    }),
    any("_FusedConv2D", |call| fused(call, &conv2d(call)?)),
    any("_FusedDepthwiseConv2dNative", |call| fused(call, &depthwise(call)?)),
    any("_FusedMatMul", |call| fused(call, &matmul(call, "transpose_a", "transpose_b")?.tensor()?)),
];

/// The images of a convolution, with their channels last, and its options.
fn images(call: &Call<'_>) -> Result<(Tensor, Conv2dOptions)> {
    let layout = Layout::of(call)?;
    let (strides, dilations) = (layout.pair(call, "strides")?, layout.pair(call, "dilations")?);
    let options = Conv2dOptions::new().strides(strides).dilations(dilations);
    Ok((layout.channels_last(&call.tensor(0)?)?, options.padding(layout.padding(call)?)))
}

/// The result has its channels last.
fn conv2d(call: &Call<'_>) -> Result<Tensor> {
    let (x, options) = images(call)?;
    x.conv2d(call.tensor(1)?, options)
}

/// The result has its channels last.
fn depthwise(call: &Call<'_>) -> Result<Tensor> {
    let (x, options) = images(call)?;
    x.depthwise_conv2d(call.tensor(1)?, options)
}

/// `x` above 0, and `alpha x` below, with an `alpha` for each channel.
fn prelu(x: &Tensor, alpha: &Tensor) -> Result<Tensor> {
    x.relu()?.subtract(x.negative()?.relu()?.multiply(alpha)?)
}

/// What a fused op does with the result `y` of its first part, by the inputs after the first two.
fn fused(call: &Call<'_>, y: &Tensor) -> Result<Value> {
    let (mut y, mut next) = (y.clone(), 2);
    let mut input = || {
        next += 1;
        call.tensor(next - 1)
    };
    for op in call.attr_texts("fused_ops") {
        y = match &op[..] {
            "BiasAdd" => y.add(input()?)?,
            "Relu" => y.relu()?,
            "Relu6" => y.relu6()?,
            "Elu" => y.elu()?,
            "Sigmoid" => y.sigmoid()?,
            "Tanh" => y.tanh()?,
            "LeakyRelu" => y.leaky_relu(call.attr_float("leakyrelu_alpha", 0.2))?,
            "Prelu" => prelu(&y, &input()?)?,
            "FusedBatchNorm" => {
                let (scale, offset, mean, variance) = (input()?, input()?, input()?, input()?);
                let options = FusedBatchNormOptions::new()
                    .epsilon(call.attr_float("epsilon", 1e-4))
                    .is_training(false)
                    .mean(mean)
                    .variance(variance);
                let [y, _, _] = y.fused_batch_norm(&scale, &offset, options)?;
                y
            }
            other => return Err(unsupported(format_args!("the fused op {other}"))),
        };
    }
    // A product has no layout.
    if call.node.op == "_FusedMatMul" { Ok(Value::Tensor(y)) } else { Layout::of(call)?.back(&y) }
}

/// Where the channels are: after the axes of space, as this crate has them, or before.
struct Layout {
    first: bool,
}

impl Layout {
    fn of(call: &Call<'_>) -> Result<Self> {
        match call.attr_text("data_format", "NHWC") {
            "NHWC" | "NDHWC" => Ok(Layout { first: false }),
            "NCHW" | "NCDHW" => Ok(Layout { first: true }),
            other => Err(unsupported(format_args!("the data format {other}"))),
        }
    }

    /// The numbers for the axes of space of an attribute with one for each axis; 1 if it is missing.
    fn inner(&self, call: &Call<'_>, name: &str) -> Result<Vec<usize>> {
        let all = call.attr_sizes(name)?;
        match (all.len(), self.first) {
            // Two axes of space have four axes, three have five.
            (0, _) => Ok(vec![1; if call.node.op.contains("3D") { 3 } else { 2 }]),
            (4.., true) => Ok(all[2..].to_vec()),
            (n @ 4.., false) => Ok(all[1..n - 1].to_vec()),
            _ => Err(Error::Data(message!("its {name} are {all:?}. The file is damaged."))),
        }
    }

    fn pair(&self, call: &Call<'_>, name: &str) -> Result<[usize; 2]> {
        array(&self.inner(call, name)?)
    }

    fn padding(&self, call: &Call<'_>) -> Result<Padding> {
        match call.attr_text("padding", "VALID") {
            "VALID" => Ok(Padding::Valid),
            "SAME" => Ok(Padding::Same),
            "EXPLICIT" => {
                let all = call.attr_sizes("explicit_paddings")?;
                let edges: Vec<(usize, usize)> =
                    all.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
                match (&edges[..], self.first) {
                    ([_, a, b, _], false) | ([_, _, a, b], true) => Ok([*a, *b].into()),
                    ([_, a, b, c, _], false) | ([_, _, a, b, c], true) => Ok([*a, *b, *c].into()),
                    _ => Err(Error::Data(message!("its padding is {all:?}. The file is damaged."))),
                }
            }
            other => Err(unsupported(format_args!("the padding {other}"))),
        }
    }

    /// The tensor with its channels last.
    fn channels_last(&self, x: &Tensor) -> Result<Tensor> {
        if !self.first || x.rank() < 3 {
            return Ok(x.clone());
        }
        let mut perm: Vec<usize> = (0..x.rank()).collect();
        perm.remove(1);
        perm.push(1);
        x.transpose(perm)
    }

    /// A result with its channels where the model has them.
    fn back(&self, x: &Tensor) -> Result<Value> {
        if !self.first || x.rank() < 3 {
            return Ok(Value::Tensor(x.clone()));
        }
        let mut perm: Vec<usize> = (0..x.rank() - 1).collect();
        perm.insert(1, x.rank() - 1);
        Ok(Value::Tensor(x.transpose(perm)?))
    }

    /// Sizes with the channels last.
    fn sizes_last(&self, sizes: &[usize]) -> Vec<usize> {
        let mut sizes = sizes.to_vec();
        if self.first && sizes.len() > 2 {
            let channels = sizes.remove(1);
            sizes.push(channels);
        }
        sizes
    }
}

fn array<const N: usize>(values: &[usize]) -> Result<[usize; N]> {
    values
        .try_into()
        .map_err(|_| Error::Shape(message!("{N} numbers are needed, and {values:?} were found.")))
}

fn pool(call: &Call<'_>, kind: PoolingType) -> Result<Value> {
    let layout = Layout::of(call)?;
    let window = layout.inner(call, "ksize")?;
    let options = PoolOptions::new()
        .strides(layout.inner(call, "strides")?)
        .dilations(vec![1; window.len()])
        .padding(layout.padding(call)?);
    let x = layout.channels_last(&call.tensor(0)?)?;
    layout.back(&x.pool(&window, kind, options)?)
}

const BATCH_NORM: &[&str] =
    &["y", "batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2", "reserve_space_3"];

fn batch_norm(call: &mut Call<'_>) -> Result<Results> {
    let layout = Layout::of(call)?;
    let is_training = call.attr_bool("is_training", true);
    let mut options = FusedBatchNormOptions::new()
        .epsilon(call.attr_float("epsilon", 1e-4))
        .is_training(is_training)
        .exponential_avg_factor(call.attr_float("exponential_avg_factor", 1.0));
    if !is_training {
        options = options.mean(call.tensor(3)?).variance(call.tensor(4)?);
    }
    let x = layout.channels_last(&call.tensor(0)?)?;
    let [y, mean, variance] = x.fused_batch_norm(&call.tensor(1)?, &call.tensor(2)?, options)?;
    let (mean, variance) = (Value::Tensor(mean), Value::Tensor(variance));
    Ok(Results::from_iter([
        layout.back(&y)?,
        mean.clone(),
        variance.clone(),
        mean,
        variance.clone(),
        variance,
    ]))
}
