//! Ops composed of other ops, which have the shaders and gradient rules.

use std::borrow::Borrow;

use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, message};
use crate::shape::{Axes, Axis, Shape, axis_index, axis_list};
use crate::support::options::options;
use crate::tensor::{Operand, Tensor};

use super::inventory::{ANY, Entry, Gradient, OpKind, Stop, Values, one};
use super::iota::iota;
use super::{FLOATS, NUMERIC, concat, expect_dtype, select};

/// Adds tensors of the same shape element-wise.
///
/// # Errors
/// [`Error::Shape`] if the list is empty or the shapes are incompatible.
pub fn add_n<T: Borrow<Tensor>>(values: impl AsRef<[T]>) -> Result<Tensor> {
    let Some((first, rest)) = values.as_ref().split_first() else {
        return Err(Error::Shape("AddN: no tensors were given; it needs at least one.".into()));
    };
    rest.iter().try_fold(first.borrow().clone(), |sum, x| sum.add(x.borrow()))
}

/// Stacks tensors of the same shape along a new axis.
///
/// # Errors
/// [`Error::Shape`] if the list is empty or the shapes differ.
pub fn stack<T: Borrow<Tensor>>(values: impl AsRef<[T]>, axis: impl Into<Axis>) -> Result<Tensor> {
    let values: Vec<&Tensor> = values.as_ref().iter().map(Borrow::borrow).collect();
    if let Some(other) = values.iter().find(|x| x.shape() != values[0].shape()) {
        return Err(Error::Shape(message!(
            "Pack: the first tensor is {:?} and another is {:?}; all must have one shape.",
            values[0].shape(),
            other.shape()
        )));
    }
    let rank = values.first().map_or(0, |x| x.rank());
    let at = axis_index("Pack", axis, rank + 1)?;
    let columns: Result<Vec<Tensor>> = values.iter().map(|x| x.expand_dims(at)).collect();
    concat(&columns?, at)
}

options! {
    /// The two values in a one-hot tensor, and its axis.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct OneHotOptions {
        /// The value at each index; it determines the dtype of the result; 1.0 by default.
        on_value: Scalar as impl Into<Scalar> = Scalar::Float(1.0),
        /// The value at all other positions; 0 by default.
        off_value: Scalar as impl Into<Scalar> = Scalar::Int(0),
        /// The position of the new axis; the last by default.
        axis: Axis as impl Into<Axis> = Axis(-1),
    }
}

/// Puts a 1 at each index along a new last axis of size `depth`, and 0 elsewhere, as `f32`. An index outside the axis
/// returns zeros.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let y = tf::one_hot(&tf::constant([2, 0])?, 3)?;
/// assert_eq!(y.to_vec::<f32>()?, [0.0, 0.0, 1.0, 1.0, 0.0, 0.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::DType`] if `indices` is not an integer tensor.
pub fn one_hot(indices: &Tensor, depth: usize) -> Result<Tensor> {
    one_hot_with(indices, depth, OneHotOptions::new())
}

/// Like [`one_hot`], with other values, or along another axis.
///
/// # Errors
/// Same as [`one_hot`], and an error if one value does not fit the other's dtype; [`Error::Index`] if the axis does not exist
/// in the result.
pub fn one_hot_with(indices: &Tensor, depth: usize, options: OneHotOptions) -> Result<Tensor> {
    let (on, off) = (options.on_value, options.off_value);
    expect_dtype("OneHot (the indices)", indices.spec(), &[DType::I32, DType::U32, DType::U8])?;
    let bytes = indices.dtype() == DType::U8;
    let indices = if bytes { &indices.cast(DType::I32)? } else { indices };
    let places = iota(Some(indices.device()), depth, 0.into(), 1.into(), indices.dtype())?;
    let axis = axis_index("OneHot", options.axis, indices.rank() + 1)?;
    // The remaining axes of the indices follow the new axis.
    let mut column = vec![1; indices.rank() + 1 - axis];
    column[0] = depth;
    let hit = indices.expand_dims(axis)?.equal(places.reshape_to(column.into())?)?;
    let value =
        |v| super::fill(indices.device(), "OneHot", Default::default(), v, on.default_dtype());
    select(&hit, &value(on)?, &value(off)?)
}

/// The `rows x columns` matrix with ones on its diagonal, in `f32`.
///
/// # Errors
/// [`Error::Device`] if there is no device or it is out of memory.
pub fn eye_of(rows: usize, columns: usize) -> Result<Tensor> {
    eye(rows, columns)
}

pub(crate) fn eye(rows: usize, columns: usize) -> Result<Tensor> {
    let line = |n| iota(None, n, 0.into(), 1.into(), DType::I32);
    line(rows)?.expand_dims(-1)?.equal(line(columns)?)?.cast(DType::F32)
}

pub(crate) fn arange(start: Scalar, limit: Scalar, delta: Scalar) -> Result<Tensor> {
    arange_of(start, limit, delta, None)
}

/// As [`arange`], in `dtype` if there is one.
pub(crate) fn arange_of(
    start: Scalar,
    limit: Scalar,
    delta: Scalar,
    dtype: Option<DType>,
) -> Result<Tensor> {
    let value = |s: Scalar| match s {
        Scalar::Float(v) => v,
        Scalar::Int(v) => v as f64,
        Scalar::Unsigned(v) => v as f64,
        Scalar::Bool(v) => f64::from(u8::from(v)),
    };
    let count = ((value(limit) - value(start)) / value(delta)).ceil();
    if !count.is_finite() {
        return Err(Error::Index(message!(
            "Range: from {start} to {limit} in steps of {delta} never ends; delta must not be 0, and all three finite."
        )));
    }
    let float = [start, limit, delta].iter().any(|s| matches!(s, Scalar::Float(_)));
    let dtype = dtype.unwrap_or(if float { DType::F32 } else { DType::I32 });
    if float && !dtype.is_float() {
        return Err(Error::DType(message!(
            "Range: from {start} to {limit} in steps of {delta} in {dtype}; give three integers, or take a float dtype."
        )));
    }
    // The sum is exact where it matters: the integers are far below those that `f64` cannot represent.
    let last = value(start) + (count - 1.0) * value(delta);
    let bounds = match dtype {
        DType::I32 => Some(f64::from(i32::MIN)..=f64::from(i32::MAX)),
        DType::U32 => Some(0.0..=f64::from(u32::MAX)),
        _ => None,
    };
    if let Some(bounds) = bounds.filter(|bounds| count > 0.0 && !bounds.contains(&last)) {
        return Err(Error::DType(message!(
            "Range: from {start} to {limit} in steps of {delta} the last number is {last}, and {dtype} holds {} to {}. \
             Give one of the three as a float.",
            bounds.start(),
            bounds.end()
        )));
    }
    let count = count.max(0.0) as usize;
    match dtype {
        // The steps of unsigned numbers may go down.
        DType::U32 if value(delta) < 0.0 => {
            let down = iota(None, count, 0.into(), Scalar::Int(-value(delta) as i64), dtype)?;
            super::fill(down.device(), "Range", Default::default(), start, dtype)?.subtract(down)
        }
        DType::Bool | DType::U8 => {
            Err(Error::DType(message!("Range: not defined for {dtype}; use f32, f16, i32 or u32.")))
        }
        _ => iota(None, count, start, delta, dtype),
    }
}

fn mean(x: &Tensor, axes: &Axes) -> Result<Tensor> {
    let list = axis_list("Mean", axes, x.rank())?;
    let reduced: Vec<usize> = list.iter().map(|&axis| x.shape()[axis]).collect();
    let count = Shape::from(reduced).elements();
    if x.dtype() == DType::F16 {
        // The sum may be far beyond the range of `f16` while the mean is not.
        return mean(&x.cast(DType::F32)?, axes)?.cast(DType::F16);
    }
    if matches!(x.dtype(), DType::I32 | DType::U32) {
        return integer_mean(x, axes, count);
    }
    let sum = x.reduce_sum(axes)?;
    // The result of 0 / 0 depends on the driver.
    if count == 0 { sum.add(f32::NAN) } else { sum.divide(count) }
}

/// The mean of integers, truncated. Their sum may have up to 62 bits, so digits of few bits are summed separately, and
/// the sums are divided one after the other, as in long division.
fn integer_mean(x: &Tensor, axes: &Axes, count: usize) -> Result<Tensor> {
    if count <= 1 {
        return x.reduce_sum(axes);
    }
    // With this many bits per digit, the remainder of a division combined with the next sum stays below 2^32.
    let bits = (count as u64).next_power_of_two().leading_zeros().saturating_sub(32).min(16);
    if bits == 0 {
        return Err(Error::Shape(message!(
            "Mean: {count} integers of shape {:?}; with more than 2^30 the intermediate sums do not fit. Cast them \
             to f32.",
            x.shape()
        )));
    }
    let signed = x.dtype() == DType::I32;
    // Counted from the lowest number, so that no digit is negative.
    let lowest = 1u32 << 31;
    let wide = if signed { x.cast(DType::U32)?.bitwise_xor(lowest)? } else { x.clone() };
    let (mut quotient, mut rest) = (None::<Tensor>, None::<Tensor>);
    for at in (0..32u32.div_ceil(bits)).rev() {
        let digit = wide.right_shift(at * bits)?.bitwise_and((1u32 << bits) - 1)?;
        let sum = digit.reduce_sum(axes)?;
        let sum = match &rest {
            Some(rest) => sum.add(rest.left_shift(bits)?)?,
            None => sum,
        };
        let part = sum.truncatediv(count)?;
        rest = Some(sum.truncatemod(count)?);
        quotient = Some(match &quotient {
            Some(quotient) => quotient.left_shift(bits)?.add(part)?,
            None => part,
        });
    }
    let (Some(quotient), Some(rest)) = (quotient, rest) else { unreachable!("there is a digit") };
    if !signed {
        return Ok(quotient);
    }
    // The quotient is rounded down so far.
    let floor = quotient.bitwise_xor(lowest)?.cast(DType::I32)?;
    let up = floor.less(0)?.logical_and(rest.not_equal(0u32)?)?;
    floor.add(up.cast(DType::I32)?)
}

/// The mean, its axes kept, and the variance over `axes`. If the numbers are far from 0, the rounding error of the mean
/// is large compared with the distances to it, so the mean of the distances is subtracted as well. The variance does
/// not depend on the number subtracted first, so this number has no gradient.
pub(super) fn mean_and_variance(x: &Tensor, axes: &Axes) -> Result<[Tensor; 2]> {
    let kept = axes.clone().keepdims(true);
    let mean = x.reduce_mean(&kept)?;
    let apart = x.subtract(mean.stop_gradient())?;
    let variance = apart.squared_difference(apart.reduce_mean(kept)?)?.reduce_mean(axes)?;
    Ok([mean, variance])
}

options! {
    /// Which form of GELU to compute.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct GeluOptions {
        /// Whether to use the tanh approximation; `false` by default.
        approximate: bool = false,
    }
}

options! {
    /// What [`Tensor::nan_to_num_with`] puts in place of NaN and the infinities.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct NanToNumOptions {
        /// The number for NaN; 0 by default.
        nan: f32 = 0.0,
        /// The number for infinity; the largest of the dtype by default (`None`).
        posinf: Option<f32> as impl Into<Option<f32>> = None,
        /// The number for minus infinity; the lowest of the dtype by default (`None`).
        neginf: Option<f32> as impl Into<Option<f32>> = None,
    }
}

/// Composed ops of one tensor.
impl Tensor {
    /// The mean over `axes`; NaN for an empty reduction. The mean of integers is truncated to an integer, and 0 for an empty
    /// reduction; their sum may exceed the range of the dtype.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([i32::MAX, i32::MAX, i32::MAX - 4])?;
    /// assert_eq!(x.reduce_mean(())?.item::<i32>()?, i32::MAX - 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Index`] if an axis does not exist; [`Error::DType`] if the dtype is not numeric; [`Error::Shape`] if more than
    /// 2^30 integers are averaged.
    pub fn reduce_mean(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        mean(self, &axes.into())
    }

    /// The mean of all elements: [`reduce_mean`](Tensor::reduce_mean) over every axis.
    ///
    /// # Errors
    /// As [`Tensor::reduce_mean`].
    pub fn mean(&self) -> Result<Tensor> {
        self.reduce_mean(())
    }

    /// The sum over `axes`: an alias of [`reduce_sum`](Tensor::reduce_sum).
    ///
    /// # Errors
    /// As [`Tensor::reduce_sum`].
    pub fn sum(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        self.reduce_sum(axes)
    }

    /// The variance over `axes`: the mean squared distance from the mean; accurate even if the numbers are close together and
    /// far from 0.
    ///
    /// # Errors
    /// [`Error::Index`] if an axis does not exist; [`Error::DType`] if the dtype is not float.
    pub fn reduce_variance(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        expect_dtype("ReduceVariance", self.spec(), FLOATS)?;
        let axes = axes.into();
        if self.dtype() == DType::F16 {
            // The squares, and the variance, may exceed the range of `f16` even if the square root does not.
            return self.cast(DType::F32)?.reduce_variance(axes)?.cast(DType::F16);
        }
        let [_, variance] = mean_and_variance(self, &axes)?;
        Ok(variance)
    }

    /// The square root of [`Tensor::reduce_variance`].
    ///
    /// # Errors
    /// As [`Tensor::reduce_variance`].
    pub fn reduce_std(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        if self.dtype() == DType::F16 {
            return self.cast(DType::F32)?.reduce_std(axes)?.cast(DType::F16);
        }
        self.reduce_variance(axes)?.sqrt()
    }

    /// The square root of the sum of squares over `axes`.
    ///
    /// # Errors
    /// As [`Tensor::reduce_mean`].
    pub fn reduce_euclidean_norm(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        self.square()?.reduce_sum(axes)?.sqrt()
    }

    /// `log(sum(exp(x)))` over `axes`, stable for large `x`.
    ///
    /// # Errors
    /// As [`Tensor::reduce_mean`].
    pub fn reduce_logsumexp(&self, axes: impl Into<Axes>) -> Result<Tensor> {
        let axes = axes.into();
        let kept = axes.clone().keepdims(true);
        // An infinite maximum would lead to inf - inf; a shift by the largest number works as well.
        let largest = self.dtype().largest();
        let max = self.stop_gradient().reduce_max(&kept)?;
        let max = max.clip_by_value(-largest, largest)?.stop_gradient();
        let sum = self.subtract(&max)?.exp()?.reduce_sum(&kept)?.log()?.add(&max)?;
        if axes.keepdims {
            return Ok(sum);
        }
        let list = axis_list("Logsumexp", &axes, self.rank())?;
        sum.reshape_to(super::reduce::reduced_shape(&self.spec().shape, &list, false))
    }

    /// `log(e^a + e^b)`, broadcast, stable for every `a` and `b`: equal infinities give that infinity.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let a = tf::constant([1000.0, f32::NEG_INFINITY, f32::NEG_INFINITY])?;
    /// let b = tf::constant([0.0, 2.0, f32::NEG_INFINITY])?;
    /// assert_eq!(a.logaddexp(&b)?.to_vec::<f32>()?, [1000.0, 2.0, f32::NEG_INFINITY]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes cannot be broadcast together; [`Error::DType`] if the dtypes differ or are not float.
    pub fn logaddexp(&self, other: impl Into<Operand>) -> Result<Tensor> {
        let other = other.into().into_tensor_like("LogAddExp", self)?;
        // If a equals b, each is once the larger and once the smaller one, so both get half of the gradient.
        let (high, low) = (self.maximum(&other)?, other.minimum(self)?);
        // high + log(1 + e^(low - high)); the difference of equal infinities would be NaN.
        let gap = select(&high.is_finite()?, &low.subtract(&high)?, &high.zeros_like()?)?;
        high.add(gap.softplus()?)
    }

    /// `e^x / sum(e^x)` along `axis`.
    ///
    /// # Errors
    /// [`Error::Index`] if the axis does not exist; [`Error::DType`] if the dtype is not float.
    pub fn softmax(&self, axis: impl Into<Axis>) -> Result<Tensor> {
        // The shift cancels, so it has no gradient.
        let axis = Axes::from(axis.into()).keepdims(true);
        let e = self.subtract(self.stop_gradient().reduce_max(&axis)?.stop_gradient())?.exp()?;
        e.divide(e.reduce_sum(axis)?)
    }

    /// `log(softmax(x))` along `axis`, without the loss of precision of computing the two separately.
    ///
    /// # Errors
    /// As [`Tensor::softmax`].
    pub fn log_softmax(&self, axis: impl Into<Axis>) -> Result<Tensor> {
        let axis = Axes::from(axis.into()).keepdims(true);
        let shifted = self.subtract(self.stop_gradient().reduce_max(&axis)?.stop_gradient())?;
        shifted.subtract(shifted.exp()?.reduce_sum(axis)?.log()?)
    }

    /// `x sigmoid(x)`, also called swish.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn silu(&self) -> Result<Tensor> {
        self.multiply(self.sigmoid()?)
    }

    /// `log(sigmoid(x))`, stable for every `x`.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn log_sigmoid(&self) -> Result<Tensor> {
        self.negative()?.softplus()?.negative()
    }

    /// Clips `x` to 0 to 6; the gradient at both ends is 0.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn relu6(&self) -> Result<Tensor> {
        let six = super::fill(self.device(), "Relu6", Default::default(), 6.into(), self.dtype())?;
        select(&self.less(6.0)?.logical_or(self.is_nan()?)?, &self.relu()?, &six)
    }

    /// `x` above 0, `alpha x` below.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn leaky_relu(&self, alpha: f32) -> Result<Tensor> {
        select(&self.greater(0.0)?, self, &self.multiply(alpha)?)
    }

    /// `x Phi(x)`, where `Phi` is the cumulative distribution function of the standard normal distribution.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn gelu(&self) -> Result<Tensor> {
        self.gelu_with(GeluOptions::new())
    }

    /// Like [`Tensor::gelu`], optionally with the tanh approximation (Hendrycks and Gimpel 2016).
    ///
    /// # Errors
    /// As [`Tensor::gelu`].
    pub fn gelu_with(&self, options: GeluOptions) -> Result<Tensor> {
        let cdf = if options.approximate {
            let cubic = self.square()?.multiply(self)?.multiply(0.044_715)?.add(self)?;
            cubic.multiply(0.797_884_560_802_865_4)?.tanh()?.add(1.0)?
        } else {
            self.multiply(-std::f64::consts::FRAC_1_SQRT_2)?.erfc()?
        };
        self.multiply(0.5)?.multiply(cdf)
    }

    /// `x tanh(softplus(x))`.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn mish(&self) -> Result<Tensor> {
        self.multiply(self.softplus()?.tanh()?)
    }

    /// `x / 6 + 1/2`, clipped to 0 to 1.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not float.
    pub fn hard_sigmoid(&self) -> Result<Tensor> {
        self.add(3.0)?.relu6()?.divide(6.0)
    }

    /// Clips the elements to the range `low` to `high`.
    ///
    /// # Errors
    /// [`Error::DType`] if the bounds do not fit the dtype.
    pub fn clip_by_value(
        &self,
        low: impl Into<Operand>,
        high: impl Into<Operand>,
    ) -> Result<Tensor> {
        self.minimum(high)?.maximum(low)
    }

    /// `x`, with 0 in place of NaN and the dtype's largest and lowest numbers in place of the infinities; their gradient is
    /// 0. Integers and truth values are returned as they are.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let x = tf::constant([f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 2.0])?;
    /// assert_eq!(x.nan_to_num()?.to_vec::<f32>()?, [0.0, f32::MAX, f32::MIN, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Device`] if the device is out of memory.
    pub fn nan_to_num(&self) -> Result<Tensor> {
        self.nan_to_num_with(NanToNumOptions::new())
    }

    /// Like [`Tensor::nan_to_num`], with other numbers.
    ///
    /// # Errors
    /// As [`Tensor::nan_to_num`].
    pub fn nan_to_num_with(&self, options: NanToNumOptions) -> Result<Tensor> {
        let dtype = self.dtype();
        if !dtype.is_float() {
            return Ok(self.clone());
        }
        let largest = dtype.largest();
        let fill =
            |v: f32| super::fill(self.device(), "NanToNum", Default::default(), v.into(), dtype);
        let high = fill(options.posinf.unwrap_or(largest))?;
        let low = fill(options.neginf.unwrap_or(-largest))?;
        let far = select(&self.greater(0.0)?, &high, &low)?;
        let finite = select(&self.is_inf()?, &far, self)?;
        select(&self.is_nan()?, &fill(options.nan)?, &finite)
    }

    /// Repeats the tensor `multiples[axis]` times along each axis.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is not one number for each axis.
    pub fn tile(&self, multiples: &[usize]) -> Result<Tensor> {
        if multiples.len() != self.rank() {
            return Err(Error::Shape(message!(
                "Tile: {} multiples for a tensor of rank {} ({:?}); give one an axis.",
                multiples.len(),
                self.rank(),
                self.shape()
            )));
        }
        let pairs = || multiples.iter().zip(self.shape());
        let apart: Vec<usize> = self.shape().iter().flat_map(|&size| [1, size]).collect();
        let wide: Vec<usize> = pairs().flat_map(|(&n, &size)| [n, size]).collect();
        let flat: Option<Vec<usize>> = pairs().map(|(n, size)| n.checked_mul(*size)).collect();
        let Some(flat) = flat else {
            return Err(Error::Shape(message!(
                "Tile: {:?} repeated {multiples:?} times has an axis of more than 2^64 elements.",
                self.shape()
            )));
        };
        self.reshape_to(apart.into())?.broadcast_to(wide)?.reshape_to(flat.into())
    }

    /// The same value; no gradient passes through it.
    pub fn stop_gradient(&self) -> Tensor {
        crate::eager::stop_gradient(self)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "add_n", &["tf.math.add_n"], |c| one(add_n(&c.list("xs")?)))
        .takes(NUMERIC)
        .cases(|cases| {
            cases.add("add_n", &[(&[2, 3], ANY), (&[2, 3], ANY)], |x| add_n([&x[0], &x[1], &x[0]]));
        }),
    Entry::new(OpKind::Composed, "stack", &["tf.stack"], |c| one(stack(&c.list("xs")?, c.axis()?)))
        .takes(&DType::ALL)
        .cases(|cases| {
            cases.add("stack", &[(&[2, 3], ANY), (&[2, 3], ANY)], |x| stack([&x[0], &x[1]], 1));
        }),
    Entry::new(OpKind::Composed, "one_hot", &["tf.one_hot"], |c| {
        let options =
            OneHotOptions::new().on_value(c.f32("on_value")?).off_value(c.f32("off_value")?);
        let axis = c.int("axis")?.unwrap_or(-1);
        one(one_hot_with(c.x()?, c.size("depth")?, options.axis(axis)))
    })
    .forms(&["one_hot_with"])
    .takes(&[DType::I32, DType::U32])
    .gradient(Gradient::None("OneHot: an index")),
    Entry::new(OpKind::Composed, "eye_of", &["tf.eye"], |c| {
        let rows = c.size("num_rows")?;
        one(eye_of(rows, c.int("num_columns")?.map_or(rows, |n| n as usize)))
    })
    .gradient(Gradient::None("a constant")),
    Entry::new(OpKind::Composed, "sum", &[], |c| one(c.x()?.sum(c.axes("axis")?)))
        .takes(NUMERIC)
        .cases(|cases| cases.of_one("sum", ANY, |x| x.sum(-1))),
    Entry::new(OpKind::Composed, "reduce_mean", &["tf.math.reduce_mean"], |c| {
        one(c.x()?.reduce_mean(c.axes("axis")?.keepdims(c.flag("keepdims")?)))
    })
    .forms(&["mean"])
    .takes(NUMERIC)
    .cases(|cases| {
        cases.of_one("mean", ANY, Tensor::mean);
        cases.of_fold("reduce_mean", ANY, |x, axes| x.reduce_mean(axes));
    }),
    Entry::new(OpKind::Composed, "reduce_variance", &["tf.math.reduce_variance"], |c| {
        one(c.x()?.reduce_variance(c.axes("axis")?.keepdims(c.flag("keepdims")?)))
    })
    .cases(|cases| {
        cases.of_fold("reduce_variance", ANY, |x, axes| x.reduce_variance(axes));
    }),
    Entry::new(OpKind::Composed, "reduce_std", &["tf.math.reduce_std"], |c| {
        one(c.x()?.reduce_std(c.axes("axis")?.keepdims(c.flag("keepdims")?)))
    })
    .cases(|cases| cases.of_fold("reduce_std", ANY, |x, axes| x.reduce_std(axes))),
    Entry::new(
        OpKind::Composed,
        "reduce_euclidean_norm",
        &["tf.math.reduce_euclidean_norm"],
        |c| one(c.x()?.reduce_euclidean_norm(c.axes("axis")?.keepdims(c.flag("keepdims")?))),
    )
    .cases(|cases| {
        let f = |x: &Tensor, axes: Axes| x.reduce_euclidean_norm(axes);
        cases.of_fold("reduce_euclidean_norm", ANY, f);
    }),
    Entry::new(OpKind::Composed, "reduce_logsumexp", &["tf.math.reduce_logsumexp"], |c| {
        one(c.x()?.reduce_logsumexp(c.axes("axis")?.keepdims(c.flag("keepdims")?)))
    })
    .cases(|cases| {
        cases.of_fold("reduce_logsumexp", ANY, |x, axes| x.reduce_logsumexp(axes));
    }),
    Entry::new(OpKind::Composed, "logaddexp", &["tf.experimental.numpy.logaddexp"], |c| {
        one(c.arg("x1")?.logaddexp(c.arg("x2")?))
    })
    .cases(|cases| {
        cases.of_two("logaddexp", [ANY, ANY], |a, b| a.logaddexp(b));
        cases.of_one("logaddexp with itself", ANY, |x| x.logaddexp(x));
    }),
    Entry::new(OpKind::Composed, "softmax", &["tf.nn.softmax"], |c| {
        one(c.x()?.softmax(c.int("axis")?.unwrap_or(-1)))
    })
    .cases(|cases| {
        cases.of_one("softmax", ANY, |x| x.softmax(-1));
        cases.of_one("softmax of columns", ANY, |x| x.softmax(0));
    }),
    Entry::new(OpKind::Composed, "log_softmax", &["tf.nn.log_softmax"], |c| {
        one(c.x()?.log_softmax(c.int("axis")?.unwrap_or(-1)))
    })
    .cases(|cases| {
        cases.of_one("log_softmax", ANY, |x| x.log_softmax(-1));
        cases.of_one("log_softmax of columns", ANY, |x| x.log_softmax(0));
    }),
    Entry::new(OpKind::Composed, "silu", &["tf.nn.silu"], |c| one(c.x()?.silu()))
        .cases(|cases| cases.of_one("silu", Values::Within(-3.0, 3.0), Tensor::silu)),
    Entry::new(OpKind::Composed, "log_sigmoid", &["tf.math.log_sigmoid"], |c| {
        one(c.x()?.log_sigmoid())
    })
    .cases(|cases| cases.of_one("log_sigmoid", Values::Within(-3.0, 3.0), Tensor::log_sigmoid)),
    Entry::new(OpKind::Composed, "relu6", &["tf.nn.relu6"], |c| one(c.x()?.relu6())).cases(
        |cases| {
            cases.of_one("relu6", Values::Distinct(0.1), |x| x.multiply(8.0)?.relu6());
        },
    ),
    Entry::new(OpKind::Composed, "leaky_relu", &["tf.nn.leaky_relu"], |c| {
        one(c.x()?.leaky_relu(c.f32("alpha")?))
    })
    .cases(|cases| cases.of_one("leaky_relu", Values::Away, |x| x.leaky_relu(0.2))),
    Entry::new(OpKind::Composed, "gelu", &["tf.nn.gelu"], |c| {
        one(c.x()?.gelu_with(GeluOptions::new().approximate(c.flag("approximate")?)))
    })
    .forms(&["gelu_with"])
    .cases(|cases| {
        cases.of_one("gelu", ANY, Tensor::gelu);
        let approximate = |x: &Tensor| x.gelu_with(GeluOptions::new().approximate(true));
        cases.of_one("gelu_with tanh", ANY, approximate);
    }),
    Entry::new(OpKind::Composed, "mish", &["keras.activations.mish"], |c| one(c.x()?.mish()))
        .cases(|cases| cases.of_one("mish", ANY, Tensor::mish)),
    Entry::new(OpKind::Composed, "hard_sigmoid", &["keras.activations.hard_sigmoid"], |c| {
        one(c.x()?.hard_sigmoid())
    })
    .cases(|cases| cases.of_one("hard_sigmoid", ANY, Tensor::hard_sigmoid)),
    Entry::new(OpKind::Composed, "clip_by_value", &["tf.clip_by_value"], |c| {
        one(c.x()?.clip_by_value(c.f32("min")?, c.f32("max")?))
    })
    .takes(NUMERIC)
    .cases(|cases| {
        cases.of_one("clip_by_value", Values::Distinct(0.0), |x| x.clip_by_value(-0.3, 0.3));
    }),
    Entry::new(OpKind::Composed, "nan_to_num", &["keras.ops.nan_to_num"], |c| {
        let bound = |key| Ok::<_, Stop>(c.float(key)?.map(|bound| bound as f32));
        let options = NanToNumOptions::new().nan(c.float("nan")?.unwrap_or(0.0) as f32);
        let options = options.posinf(bound("posinf")?).neginf(bound("neginf")?);
        one(c.x()?.nan_to_num_with(options))
    })
    .forms(&["nan_to_num_with"])
    .takes(&DType::ALL)
    .cases(|cases| {
        cases.of_one("nan_to_num", ANY, Tensor::nan_to_num);
        cases.of_one("nan_to_num_with another number", ANY, |x| {
            x.nan_to_num_with(NanToNumOptions::new().nan(1.0))
        });
    }),
    Entry::new(OpKind::Composed, "tile", &["tf.tile"], |c| {
        one(c.x()?.tile(&c.need("multiples", c.sizes("multiples")?)?))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("tile", &[2, 3], |x| x.tile(&[2, 3]))),
    Entry::new(OpKind::Composed, "stop_gradient", &["tf.stop_gradient"], |c| {
        Ok(vec![c.x()?.stop_gradient()])
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("stop_gradient", &[3, 4], |x| Ok(x + x.stop_gradient() * 0.0))),
];
