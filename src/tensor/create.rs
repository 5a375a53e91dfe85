//! Making tensors from host values, from constants and as ranges.

use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, message};
use crate::graph::Spec;
use crate::ops;
use crate::runtime::Device;
use crate::shape::Shape;
use crate::support::options::options;

use super::{Element, HostElement, Tensor};

/// Creates a tensor from a number, an array, or nested arrays and vectors, like `tf.constant`.
///
/// Literals are `f32` and `i32`. Values of type `i64` and `u64` become `i32` and `u32` if these hold every value.
/// Values of type `f64` need [`Tensor::from_slice_with`]: if this function took them, Rust would take every literal
/// with a point for `f64`, also the ones that `f32` does not hold exactly, such as 0.1.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant([[1, 2, 3], [4, 5, 6]])?;
/// assert_eq!(x.shape(), [2, 3]);
/// assert_eq!(x.dtype(), tf::DType::I32);
/// let sizes: Vec<i64> = vec![3, -4];
/// assert_eq!(tf::constant(&sizes)?.to_vec::<i32>()?, [3, -4]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if nested vectors differ in length; [`Error::DType`] if a value does not fit: the error names the
/// first one; [`Error::Device`] as for [`Device::current`].
pub fn constant<N: Nested>(values: N) -> Result<Tensor> {
    let mut shape = Vec::new();
    values.shape(&mut shape);
    let mut flat = Vec::new();
    values.flatten(&shape, &mut flat)?;
    Tensor::from_slice_with(&flat, shape, HostOptions::new())
}

/// The numbers `start, start + delta, ...` below `limit`, or above it if `delta` is negative; `f32` if an argument is a float,
/// else `i32`. The result is empty if `limit` is on the other side of `start`, as for Rust's ranges; TensorFlow raises an error
/// in this case.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// assert_eq!(tf::range(3, 18, 3)?.to_vec::<i32>()?, [3, 6, 9, 12, 15]);
/// assert_eq!(tf::range(1.0, 0.0, -0.5)?.to_vec::<f32>()?, [1.0, 0.5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Index`] if `delta` is 0 or not finite; [`Error::DType`] if the numbers do not fit in `i32`.
pub fn range(
    start: impl Into<Scalar>,
    limit: impl Into<Scalar>,
    delta: impl Into<Scalar>,
) -> Result<Tensor> {
    ops::arange(start.into(), limit.into(), delta.into())
}

/// Like [`range`], in `dtype`: `f32`, `f16`, `i32` or `u32`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// assert_eq!(tf::range_of(5, 0, -2, tf::DType::U32)?.to_vec::<u32>()?, [5, 3, 1]);
/// assert_eq!(tf::range_of(0, 3, 1, tf::DType::F32)?.to_vec::<f32>()?, [0.0, 1.0, 2.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Same as [`range`], and [`Error::DType`] if `dtype` is not one of these, or the numbers do not fit in it.
pub fn range_of(
    start: impl Into<Scalar>,
    limit: impl Into<Scalar>,
    delta: impl Into<Scalar>,
    dtype: DType,
) -> Result<Tensor> {
    ops::arange_of(start.into(), limit.into(), delta.into(), Some(dtype))
}

/// Creates a tensor filled with `value`, in the value's own dtype: TensorFlow's name for [`Tensor::full`].
///
/// # Errors
/// As [`Tensor::full`].
pub fn fill(shape: impl Into<Shape>, value: impl Into<Scalar>) -> Result<Tensor> {
    Tensor::full(shape, value)
}

/// The argument of [`constant`]: a number, or numbers in nested arrays, slices or vectors. All types of [`HostElement`]
/// but `f64`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a number or nested list of numbers that `constant` can turn into a tensor",
    note = "values of type `f64` go through `Tensor::from_slice_with`, whose `HostOptions` decide about rounding",
    note = "arrays of ndarray go through `Tensor::from_array` and `Tensor::from_array_with`"
)]
pub trait Nested {
    /// The type of the numbers.
    type Item: HostElement;

    /// Appends the sizes of this level and those below.
    #[doc(hidden)]
    fn shape(&self, shape: &mut Vec<usize>);

    /// Appends the numbers; every level must have the size that `shape` specifies.
    #[doc(hidden)]
    fn flatten(&self, shape: &[usize], out: &mut Vec<Self::Item>) -> Result<()>;
}

macro_rules! nested_number {
    ($($t:ty),*) => {$(
        impl Nested for $t {
            type Item = $t;

            fn shape(&self, _: &mut Vec<usize>) {}

            fn flatten(&self, _: &[usize], out: &mut Vec<$t>) -> Result<()> {
                out.push(*self);
                Ok(())
            }
        }
    )*};
}
// A number is the innermost level: it adds no size and pushes itself. Without `f64`, a literal with a point can only be
// `f32`.
nested_number!(f32, half::f16, i32, u32, u8, i64, u64, bool);

impl<T: Nested> Nested for [T] {
    type Item = T::Item;

    fn shape(&self, shape: &mut Vec<usize>) {
        shape.push(self.len());
        if let Some(first) = self.first() {
            first.shape(shape);
        }
    }

    fn flatten(&self, shape: &[usize], out: &mut Vec<T::Item>) -> Result<()> {
        if self.len() != shape[0] {
            return Err(Error::Shape(message!(
                "Const: nested values differ in length: one has {} items, another {}. Every row must be as long \
                 as the first.",
                shape[0],
                self.len()
            )));
        }
        self.iter().try_for_each(|item| item.flatten(&shape[1..], out))
    }
}

macro_rules! nested_list {
    ($([$($generic:tt)*] $t:ty),*) => {$(
        impl<$($generic)*> Nested for $t {
            type Item = T::Item;

            fn shape(&self, shape: &mut Vec<usize>) {
                self[..].shape(shape);
            }

            fn flatten(&self, shape: &[usize], out: &mut Vec<T::Item>) -> Result<()> {
                self[..].flatten(shape, out)
            }
        }
    )*};
}
// Lists of every kind behave like slices.
nested_list!([T: Nested] Vec<T>, [T: Nested] &[T], [T: Nested, const N: usize] [T; N], [T: Nested] &Vec<T>,
             [T: Nested, const N: usize] &[T; N]);

options! {
    /// How to convert host values that a device cannot hold.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct HostOptions {
        /// Whether an `f64` is rounded to the nearest `f32`, or to infinity beyond the range of `f32`; by default (`false`) an
        /// error names the first value that is not exactly an `f32`.
        rounding: bool = false,
    }
}

/// The error for the value at the flat index `at` of `shape`.
fn not_held<T: HostElement>(value: T, at: usize, shape: &[usize]) -> Error {
    let mut rest = at;
    let mut place: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&size| {
            let coordinate = rest % size.max(1);
            rest /= size.max(1);
            coordinate
        })
        .collect();
    place.reverse();
    let remedy = match T::DTYPE {
        DType::F32 => "Round it first, or give HostOptions::new().rounding(true).",
        _ => "Give it as f64 with HostOptions::new().rounding(true), which makes f32 of it.",
    };
    Error::DType(message!(
        "Const: the value at {place:?} is {value:?}, which {} does not hold. {remedy}",
        T::DTYPE
    ))
}

fn check_count(values: usize, shape: &Shape) -> Result<()> {
    if shape.checked_elements() == Some(values) {
        return Ok(());
    }
    Err(Error::Shape(message!(
        "Const: {values} values do not fill the shape {shape}, which has {} elements.",
        shape.checked_elements().map_or("more than 2^64".to_string(), |n| n.to_string())
    )))
}

impl Tensor {
    /// Creates a tensor from `values` in row-major order on the current device.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// # use wgrad::Tensor;
    /// let x = Tensor::from_slice(&[1, 2, 3, 4, 5, 6], [2, 3])?;
    /// assert_eq!(x.reduce_sum(1)?.to_vec::<i32>()?, [6, 15]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the number of values does not match the shape; [`Error::DType`] if the adapter lacks `f16`;
    /// [`Error::Device`] if there is no device, it is out of memory, or the tensor exceeds the adapter's limits.
    pub fn from_slice<T: Element>(values: &[T], shape: impl Into<Shape>) -> Result<Self> {
        let shape = shape.into();
        check_count(values.len(), &shape)?;
        Tensor::from_bytes(&T::store(values), &shape, T::DTYPE)
    }

    /// Like [`Tensor::from_slice`], but also accepts `i64`, `u64` and `f64`, which become `i32`, `u32` and `f32` if these hold
    /// every value exactly.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let options = tf::HostOptions::new();
    /// let x = tf::Tensor::from_slice_with(&[1i64, -2], [2], options)?;
    /// assert_eq!((x.dtype(), x.to_vec::<i64>()?), (tf::DType::I32, vec![1, -2]));
    /// assert!(tf::Tensor::from_slice_with(&[0.5, 0.1f64], [2], options).is_err());
    /// let near = tf::Tensor::from_slice_with(&[0.5, 0.1f64], [2], options.rounding(true))?;
    /// assert_eq!(near.to_vec::<f64>()?, [0.5, f64::from(0.1f32)]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Same as [`Tensor::from_slice`], and [`Error::DType`] if a value does not fit: the error names the first one.
    pub fn from_slice_with<T: HostElement>(
        values: &[T],
        shape: impl Into<Shape>,
        options: HostOptions,
    ) -> Result<Self> {
        let shape = shape.into();
        check_count(values.len(), &shape)?;
        match T::store_exactly(values, options.rounding) {
            Ok(bytes) => Tensor::from_bytes(&bytes, &shape, T::DTYPE),
            Err(at) => Err(not_held(values[at], at, &shape)),
        }
    }

    /// Makes a tensor of bytes in the device's format; they must be as many elements as `shape` has.
    pub(crate) fn from_bytes(bytes: &[u8], shape: &[usize], dtype: DType) -> Result<Self> {
        let device = Device::current()?;
        ops::check_dtype(&device, "Const", dtype)?;
        let value = device.upload("Const", Spec::new(shape, dtype), bytes)?;
        Ok(Tensor::new(device, value))
    }

    /// Creates a scalar.
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    pub fn scalar<T: Element>(value: T) -> Result<Self> {
        Tensor::from_slice(&[value], [])
    }

    /// Creates a tensor filled with `value`: `f32` for a float, `i32` for an integer, `bool` for a boolean.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// # use wgrad::Tensor;
    /// assert_eq!(Tensor::full([2], 7)?.to_vec::<i32>()?, [7, 7]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    pub fn full(shape: impl Into<Shape>, value: impl Into<Scalar>) -> Result<Self> {
        let value = value.into();
        Tensor::full_of(shape, value, value.default_dtype())
    }

    /// Creates a tensor filled with `value`, in `dtype`.
    ///
    /// # Errors
    /// Same as [`Tensor::from_slice`], and [`Error::DType`] if the value does not fit.
    pub fn full_of(
        shape: impl Into<Shape>,
        value: impl Into<Scalar>,
        dtype: DType,
    ) -> Result<Self> {
        let device = Device::current()?;
        ops::fill(&device, "Fill", shape.into(), value.into(), dtype)
    }

    /// Creates a tensor of zeros in `f32`. Use [`Tensor::full_of`] for other dtypes.
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    pub fn zeros(shape: impl Into<Shape>) -> Result<Self> {
        Tensor::full(shape, 0.0)
    }

    /// Creates a tensor of ones in `f32`.
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    pub fn ones(shape: impl Into<Shape>) -> Result<Self> {
        Tensor::full(shape, 1.0)
    }

    /// Creates a tensor of zeros with this tensor's shape and dtype, on its device.
    ///
    /// # Errors
    /// [`Error::Device`] as for [`Tensor::from_slice`].
    pub fn zeros_like(&self) -> Result<Self> {
        self.full_like(if self.dtype() == DType::Bool {
            Scalar::Bool(false)
        } else {
            Scalar::Int(0)
        })
    }

    /// Creates a tensor of ones with this tensor's shape and dtype, on its device.
    ///
    /// # Errors
    /// [`Error::Device`] as for [`Tensor::from_slice`].
    pub fn ones_like(&self) -> Result<Self> {
        self.full_like(if self.dtype() == DType::Bool {
            Scalar::Bool(true)
        } else {
            Scalar::Int(1)
        })
    }

    fn full_like(&self, value: Scalar) -> Result<Self> {
        ops::fill(self.device(), "Fill", self.spec().shape.clone(), value, self.dtype())
    }

    /// The `n x n` identity matrix in `f32`.
    ///
    /// # Errors
    /// As [`Tensor::from_slice`].
    pub fn eye(n: usize) -> Result<Self> {
        ops::eye(n, n)
    }
}
