//! Normalizations: with given moments, over a batch, over each example, over groups of its channels, and over
//! neighbouring channels.

use super::composed::mean_and_variance;
use super::inventory::{ANY, Entry, Input, OpKind, POSITIVE, Values, one};
use super::{FLOATS, expect_dtype};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::shape::{Axes, Shape, axis_list};
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// Scale and offset of a normalization: `y = x^ scale + offset`.
    #[derive(Debug, Clone)]
    pub struct NormalizationOptions {
        /// The scale, with the shape that the op specifies; none by default.
        scale: Option<Tensor> as impl Into<Option<Tensor>> = None,
        /// The offset, with the same shape; none by default.
        offset: Option<Tensor> as impl Into<Option<Tensor>> = None,
        /// A small number that avoids division by zero if all elements are equal; 0.001 by default.
        epsilon: f32 = 1e-3,
    }
}

options! {
    /// Options of [`Tensor::fused_batch_norm`].
    #[derive(Debug, Clone)]
    pub struct FusedBatchNormOptions {
        /// The previous moving averages, or, if `is_training` is false, the mean to normalize by, `[C]`; not needed by default.
        mean: Option<Tensor> as impl Into<Option<Tensor>> = None,
        /// Like `mean`, for the variance.
        variance: Option<Tensor> as impl Into<Option<Tensor>> = None,
        /// A small number that avoids division by zero, at least 0.00001001, as in TensorFlow; 0.001 by default.
        epsilon: f32 = 1e-3,
        /// Whether to normalize by the batch's own moments; `true` by default.
        is_training: bool = true,
        /// The weight of the batch's moments in the new averages; 1 by default.
        exponential_avg_factor: f32 = 1.0,
    }
}

options! {
    /// How neighboring channels are normalized.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct LocalResponseNormalizationOptions {
        /// The number of neighboring channels to include on either side; 5 by default.
        depth_radius: usize = 5,
        /// The bias that is added to the sum; 1 by default.
        bias: f32 = 1.0,
        /// The factor of the sum; 1 by default.
        alpha: f32 = 1.0,
        /// The exponent; 0.5 by default.
        beta: f32 = 0.5,
    }
}

/// Normalizations.
impl Tensor {
    /// `y = scale (x - mean) / sqrt(variance + variance_epsilon) + offset`; all arguments broadcast against `x`, as `[C]` does
    /// against `[.., C]`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1.0, 10.0], [3.0, 30.0]])?;
    /// let (mean, variance) = (x.reduce_mean(0)?, x.reduce_variance(0)?);
    /// let y = x.batch_normalization(&mean, &variance, None, None, 0.0)?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, -1.0, 1.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes cannot be broadcast together; [`Error::DType`] if the dtypes differ or are not float.
    pub fn batch_normalization(
        &self,
        mean: &Tensor,
        variance: &Tensor,
        offset: Option<&Tensor>,
        scale: Option<&Tensor>,
        variance_epsilon: f32,
    ) -> Result<Tensor> {
        expect_dtype("BatchNormalization", self.spec(), FLOATS)?;
        // An f16 has too few digits for a variance.
        let inverse = wide(variance)?.add(variance_epsilon)?.rsqrt()?;
        let y = wide(self)?.subtract(wide(mean)?)?.multiply(inverse)?;
        affine(y, scale, offset)?.cast_to(self.dtype())
    }

    /// Normalizes each channel of a batch `[N, .., C]` with scale and offset `[C]`, like TensorFlow's `fused_batch_norm`.
    /// Returns the result, the mean and the variance. In training, mean and variance are the moving averages,
    /// `old (1 - factor) + of the batch factor`, where the batch variance is unbiased; otherwise they are the given ones. They
    /// have no gradient.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1.0], [3.0]])?;
    /// let (scale, offset) = (tf::Tensor::ones([1])?, tf::Tensor::zeros([1])?);
    /// let [y, mean, variance] =
    ///     x.fused_batch_norm(&scale, &offset, tf::FusedBatchNormOptions::new())?;
    /// assert!((y.to_vec::<f32>()?[1] - 1.0 / 1.001f32.sqrt()).abs() < 1e-6);
    /// assert_eq!((mean.item::<f32>()?, variance.item::<f32>()?), (2.0, 2.0));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes are incompatible, or required moments are missing; [`Error::DType`] if the dtype is not
    /// float.
    pub fn fused_batch_norm(
        &self,
        scale: &Tensor,
        offset: &Tensor,
        options: FusedBatchNormOptions,
    ) -> Result<[Tensor; 3]> {
        const OP: &str = "FusedBatchNormV3";
        expect_dtype(OP, self.spec(), FLOATS)?;
        let Some((&channels, lead)) = self.shape().split_last() else {
            return Err(Error::Shape(message!(
                "{OP}: x is a scalar; it needs a last axis of channels."
            )));
        };
        let given = options.mean.iter().chain(&options.variance);
        for of in given.chain([scale, offset]) {
            if of.shape() != [channels] {
                return Err(Error::Shape(message!(
                    "{OP}: x is {:?}, and scale, offset, mean and variance must be [{channels}]; one is {:?}.",
                    self.shape(),
                    of.shape()
                )));
            }
        }
        let FusedBatchNormOptions { is_training, exponential_avg_factor: factor, .. } = options;
        let averages = options.mean.zip(options.variance);
        if averages.is_none() && (!is_training || factor != 1.0) {
            return Err(Error::Shape(message!(
                "{OP}: with is_training {is_training} and exponential_avg_factor {factor} it needs mean and variance."
            )));
        }
        let epsilon = options.epsilon.max(1.001e-5);
        if let (false, Some((mean, variance))) = (is_training, &averages) {
            let fixed = [mean.stop_gradient(), variance.stop_gradient()];
            let y =
                self.batch_normalization(&fixed[0], &fixed[1], Some(offset), Some(scale), epsilon)?;
            let [mean, variance] = fixed;
            return Ok([y, mean, variance]);
        }
        let x = wide(self)?;
        let axes: Vec<i64> = (0..lead.len() as i64).collect();
        let axes = Axes::from(&axes[..]);
        let [mean, variance] = mean_and_variance(&x, &axes)?;
        let mean = mean.reshape_to([channels].into())?;
        let y = x.subtract(&mean)?.multiply(variance.add(epsilon)?.rsqrt()?)?;
        let y = affine(y, Some(scale), Some(offset))?.cast_to(self.dtype())?;
        let count = Shape::new(lead).elements();
        // One element has no unbiased variance; TensorFlow returns the biased one.
        let unbiased = count as f32 / count.saturating_sub(1).max(1) as f32;
        let moved = |of_batch: Tensor, old: Option<&Tensor>| -> Result<Tensor> {
            let of_batch = of_batch.stop_gradient();
            match old {
                Some(old) if factor != 1.0 => {
                    old.stop_gradient().multiply(1.0 - factor)?.add(of_batch.multiply(factor)?)
                }
                _ => Ok(of_batch),
            }
        };
        let (old_mean, old_variance) = averages.unzip();
        Ok([
            y,
            moved(mean, old_mean.as_ref())?.stop_gradient(),
            moved(variance.multiply(unbiased)?, old_variance.as_ref())?.stop_gradient(),
        ])
    }

    /// `(x - mean) / sqrt(variance + epsilon)`, with mean and variance over `axes` of each example (Ba et al. 2016); scale and
    /// offset have the sizes of these axes, in their order in `x`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1.0, 3.0], [10.0, 30.0]])?;
    /// let y = x.layer_normalization(-1, tf::NormalizationOptions::new().epsilon(1e-6))?;
    /// assert!((y.to_vec::<f32>()?[3] - 1.0).abs() < 1e-5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`] if an axis does not exist; [`Error::Shape`] if the shape of scale or offset does not fit;
    /// [`Error::DType`] if the dtype is not float.
    pub fn layer_normalization(
        &self,
        axes: impl Into<Axes>,
        options: NormalizationOptions,
    ) -> Result<Tensor> {
        self.normalized("LayerNormalization", &axes.into(), options, true)
    }

    /// `x / sqrt(mean of squares + epsilon)` over `axes` of each example (Zhang and Sennrich 2019); scale and offset as for
    /// [`Tensor::layer_normalization`].
    ///
    /// # Errors
    /// As [`Tensor::layer_normalization`].
    pub fn rms_normalization(
        &self,
        axes: impl Into<Axes>,
        options: NormalizationOptions,
    ) -> Result<Tensor> {
        self.normalized("RMSNormalization", &axes.into(), options, false)
    }

    /// Normalizes `groups` groups of adjacent channels of each example `[N, .., C]` (Wu and He 2018), as
    /// [`Tensor::layer_normalization`] normalizes a whole example; scale and offset are `[C]`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([[1.0, 3.0, 10.0, 30.0]])?;
    /// let y = x.group_normalization(2, tf::NormalizationOptions::new().epsilon(0.0))?;
    /// assert_eq!(y.to_vec::<f32>()?, [-1.0, 1.0, -1.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the channels cannot be divided into these groups, or scale or offset do not fit; [`Error::DType`] if
    /// the dtype is not float.
    pub fn group_normalization(
        &self,
        groups: usize,
        options: NormalizationOptions,
    ) -> Result<Tensor> {
        self.grouped("GroupNormalization", Some(groups), options)
    }

    /// [`Tensor::group_normalization`] with one group for each channel (Ulyanov et al. 2016).
    ///
    /// # Errors
    /// As [`Tensor::group_normalization`].
    pub fn instance_normalization(&self, options: NormalizationOptions) -> Result<Tensor> {
        self.grouped("InstanceNormalization", None, options)
    }

    /// `x / (bias + alpha s)^beta`, where `s` is the sum of squares of the channels at most `depth_radius` away (Krizhevsky et
    /// al. 2012); the channels are the last of four axes.
    ///
    /// # Errors
    /// [`Error::Shape`] if the rank is not 4; [`Error::DType`] if the dtype is not float.
    pub fn local_response_normalization(
        &self,
        options: LocalResponseNormalizationOptions,
    ) -> Result<Tensor> {
        const OP: &str = "LRN";
        expect_dtype(OP, self.spec(), FLOATS)?;
        let &[_, _, _, channels] = self.shape() else {
            return Err(Error::Shape(message!(
                "{OP}: the input is {:?}; it must be [N, H, W, C].",
                self.shape()
            )));
        };
        let LocalResponseNormalizationOptions { depth_radius, bias, alpha, beta } = options;
        let x = wide(self)?;
        let squares = x.square()?;
        let radius = depth_radius.min(channels);
        let sum = if radius <= NEIGHBOURS {
            let padded = squares.pad(&[(0, 0), (0, 0), (0, 0), (radius, radius)])?;
            let one = |at: usize| padded.slice(&[0, 0, 0, at], &[-1, -1, -1, channels as i64]);
            (1..=2 * radius).try_fold(one(0)?, |sum, at| sum.add(one(at)?))?
        } else {
            // A matrix product with a band of ones.
            let number = |n| super::iota::iota(Some(x.device()), n, 0.into(), 1.into(), DType::I32);
            let apart = number(channels)?.expand_dims(-1)?.subtract(number(channels)?)?.abs()?;
            squares.matmul(apart.less_equal(radius)?.cast(DType::F32)?)?
        };
        let scale = sum.multiply(alpha)?.add(bias)?.pow(-beta)?;
        x.multiply(scale)?.cast_to(self.dtype())
    }

    /// The normalization over axes of each example, with or without the mean.
    fn normalized(
        &self,
        op: &str,
        axes: &Axes,
        options: NormalizationOptions,
        center: bool,
    ) -> Result<Tensor> {
        expect_dtype(op, self.spec(), FLOATS)?;
        let axes = axis_list(op, axes, self.rank())?;
        // Scale and offset have the sizes of these axes, and broadcast against x along the others.
        let sizes: Vec<usize> = axes.iter().map(|&axis| self.shape()[axis]).collect();
        let size = |(axis, size): (usize, &usize)| if axes.contains(&axis) { *size } else { 1 };
        let along_x = Shape::from(self.shape().iter().enumerate().map(size).collect::<Vec<_>>());
        let [scale, offset] =
            broadcast_along_x(op, self, options.scale, options.offset, &sizes, &along_x)?;
        // An f16 has too few digits for a variance.
        let x = wide(self)?;
        let kept = Axes::from(&axes[..]).keepdims(true);
        let x = if center { x.subtract(x.reduce_mean(&kept)?)? } else { x };
        let square = x.square()?.reduce_mean(&kept)?;
        let y = x.multiply(square.add(options.epsilon)?.rsqrt()?)?;
        affine(y, scale.as_ref(), offset.as_ref())?.cast_to(self.dtype())
    }

    fn grouped(
        &self,
        op: &str,
        groups: Option<usize>,
        options: NormalizationOptions,
    ) -> Result<Tensor> {
        expect_dtype(op, self.spec(), FLOATS)?;
        let channels = self.shape().last().copied().unwrap_or(0);
        let groups = groups.unwrap_or(channels);
        if self.rank() < 2 || groups == 0 || channels % groups != 0 {
            return Err(Error::Shape(message!(
                "{op}: the input is {:?}, for {groups} groups; it must be [N, .., C], and the groups divide the channels.",
                self.shape()
            )));
        }
        let [scale, offset] = broadcast_along_x(
            op,
            self,
            options.scale,
            options.offset,
            &[channels],
            &[channels].into(),
        )?;
        let (batch, rank) = (self.shape()[0], self.rank());
        let places = Shape::new(&self.shape()[1..rank - 1]).elements();
        let x = wide(self)?.reshape_to([batch, places, groups, channels / groups].into())?;
        let kept = Axes::from([1, 3]).keepdims(true);
        let centered = x.subtract(x.reduce_mean(&kept)?)?;
        let variance = centered.square()?.reduce_mean(&kept)?;
        let y = centered.multiply(variance.add(options.epsilon)?.rsqrt()?)?;
        let y = y.reshape_to(self.spec().shape.clone())?;
        affine(y, scale.as_ref(), offset.as_ref())?.cast_to(self.dtype())
    }

    fn cast_to(self, dtype: DType) -> Result<Tensor> {
        if self.dtype() == dtype { Ok(self) } else { self.cast(dtype) }
    }
}

/// Sums of up to this many neighbours on either side are one kernel that reads each of them.
const NEIGHBOURS: usize = 8;

/// `y scale + offset`, in `f32`.
fn affine(y: Tensor, scale: Option<&Tensor>, offset: Option<&Tensor>) -> Result<Tensor> {
    let y = match scale {
        Some(scale) => y.multiply(wide(scale)?)?,
        None => y,
    };
    match offset {
        Some(offset) => y.add(wide(offset)?),
        None => Ok(y),
    }
}

/// Scale and offset, which must have the sizes `sizes`, in the shape that broadcasts against x.
fn broadcast_along_x(
    op: &str,
    x: &Tensor,
    scale: Option<Tensor>,
    offset: Option<Tensor>,
    sizes: &[usize],
    along_x: &Shape,
) -> Result<[Option<Tensor>; 2]> {
    let fit = |weight: Option<Tensor>| -> Result<Option<Tensor>> {
        let Some(weight) = weight else { return Ok(None) };
        expect_dtype(op, weight.spec(), FLOATS)?;
        if weight.shape() != sizes {
            return Err(Error::Shape(message!(
                "{op}: x is {:?}, so scale and offset must be {sizes:?}; one is {:?}.",
                x.shape(),
                weight.shape()
            )));
        }
        weight.reshape_to(along_x.clone()).map(Some)
    };
    Ok([fit(scale)?, fit(offset)?])
}

fn wide(x: &Tensor) -> Result<Tensor> {
    if x.dtype() == DType::F16 { x.cast(DType::F32) } else { Ok(x.clone()) }
}

/// The options of a call by Keras's names.
fn named(c: &super::inventory::Args) -> super::inventory::Answer<NormalizationOptions> {
    let given = |name: &str| c.tensors().iter().any(|(known, _)| known == name);
    let mut options = NormalizationOptions::new();
    if let Some(epsilon) = c.float("epsilon")? {
        options.epsilon = epsilon as f32;
    }
    if given("gamma") {
        options.scale = Some(c.arg("gamma")?.clone());
    }
    if given("beta") {
        options.offset = Some(c.arg("beta")?.clone());
    }
    Ok(options)
}

/// x, scale and offset of channels.
const OF_CHANNELS: [Input; 3] = [(&[2, 3, 4], ANY), (&[4], ANY), (&[4], ANY)];

fn both(x: &[Tensor]) -> NormalizationOptions {
    NormalizationOptions::new().scale(x[1].clone()).offset(x[2].clone()).epsilon(0.1)
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "batch_normalization", &["tf.nn.batch_normalization"], |c| {
        c.remark("training");
        let (mean, variance) = (c.arg("mean")?, c.arg("var")?);
        let (offset, scale) = (Some(c.arg("beta")?), Some(c.arg("gamma")?));
        one(c.x()?.batch_normalization(mean, variance, offset, scale, c.f32("epsilon")?))
    })
    .cases(|cases| {
        let inputs: [Input; 5] =
            [(&[2, 3, 4], ANY), (&[4], ANY), (&[4], POSITIVE), (&[4], ANY), (&[4], ANY)];
        cases.add("batch_normalization", &inputs, |x| {
            x[0].batch_normalization(&x[1], &x[2], Some(&x[3]), Some(&x[4]), 1e-3)
        });
        let inputs: [Input; 3] = [(&[2, 3], ANY), (&[1, 3], ANY), (&[2, 1], POSITIVE)];
        cases.add("batch_normalization without affine", &inputs, |x| {
            x[0].batch_normalization(&x[1], &x[2], None, None, 0.0)
        });
    }),
    Entry::new(OpKind::Composed, "fused_batch_norm", &["tf.compat.v1.nn.fused_batch_norm"], |c| {
        let options = FusedBatchNormOptions::new().epsilon(c.f32("epsilon")?);
        let (scale, offset) = (c.arg("scale")?, c.arg("offset")?);
        Ok(c.x()?.fused_batch_norm(scale, offset, options)?.to_vec())
    })
    .cases(|cases| {
        cases.add("fused_batch_norm", &OF_CHANNELS, |x| {
            let options = FusedBatchNormOptions::new().epsilon(0.1);
            let [y, ..] = x[0].fused_batch_norm(&x[1], &x[2], options)?;
            Ok(y)
        });
    }),
    Entry::new(OpKind::Composed, "layer_normalization", &["keras.ops.layer_normalization"], |c| {
        let axis = c.ints("axis")?.unwrap_or(vec![-1]);
        one(c.x()?.layer_normalization(&axis[..], named(c)?))
    })
    .cases(|cases| {
        cases.add("layer_normalization", &OF_CHANNELS, |x| x[0].layer_normalization(-1, both(x)));
        let inputs: [Input; 3] = [(&[2, 3, 4], ANY), (&[3, 4], ANY), (&[3, 4], ANY)];
        cases.add("layer_normalization of two axes", &inputs, |x| {
            x[0].layer_normalization([1, 2], both(x))
        });
    }),
    Entry::new(OpKind::Composed, "rms_normalization", &["keras.ops.rms_normalization"], |c| {
        let axis = c.ints("axis")?.unwrap_or(vec![-1]);
        one(c.x()?.rms_normalization(&axis[..], named(c)?))
    })
    .cases(|cases| {
        cases.add("rms_normalization", &OF_CHANNELS, |x| x[0].rms_normalization(-1, both(x)));
    }),
    Entry::new(
        OpKind::Composed,
        "group_normalization",
        &["keras.layers.GroupNormalization"],
        |c| one(c.x()?.group_normalization(c.size("groups")?, named(c)?)),
    )
    .cases(|cases| {
        cases.add("group_normalization", &OF_CHANNELS, |x| x[0].group_normalization(2, both(x)));
    }),
    Entry::new(OpKind::Composed, "instance_normalization", &[], |c| {
        one(c.x()?.instance_normalization(named(c)?))
    })
    .cases(|cases| {
        cases.add("instance_normalization", &OF_CHANNELS, |x| x[0].instance_normalization(both(x)));
    }),
    Entry::new(
        OpKind::Composed,
        "local_response_normalization",
        &["tf.nn.local_response_normalization"],
        |c| {
            let mut options = LocalResponseNormalizationOptions::new();
            if let Some(radius) = c.int("depth_radius")? {
                options.depth_radius = c.need("depth_radius", usize::try_from(radius).ok())?;
            }
            for (name, field) in [
                ("bias", &mut options.bias),
                ("alpha", &mut options.alpha),
                ("beta", &mut options.beta),
            ] {
                *field = c.float(name)?.map_or(*field, |v| v as f32);
            }
            one(c.x()?.local_response_normalization(options))
        },
    )
    .cases(|cases| {
        for (name, radius) in [("near", 2), ("far", 9)] {
            let options = LocalResponseNormalizationOptions::new().depth_radius(radius).beta(0.75);
            let inputs: [Input; 1] = [(&[1, 2, 1, 12], Values::Away)];
            cases.add(format!("local_response_normalization {name}"), &inputs, move |x| {
                x[0].local_response_normalization(options)
            });
        }
    }),
];
