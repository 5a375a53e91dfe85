//! [`HostArray`]: an array on the host, of any dtype that a file may contain.
//!
//! `dtype` has the table of dtypes, `element` the conversions from and to `ndarray`, `convert` those from one dtype to another,
//! `hashes` TensorFlow's hashes of strings, `strings` how it splits them. Tensors of arrays, and arrays of tensors, are made in
//! `tensor/host_array.rs`.

mod convert;
mod dtype;
mod element;
#[cfg(any(feature = "preprocessing", feature = "saved-model"))]
pub(crate) mod hashes;
#[cfg(any(feature = "preprocessing", feature = "saved-model"))]
pub(crate) mod strings;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

pub(crate) use convert::{Misfit, Number};
#[cfg(feature = "keras-files")]
pub(crate) use dtype::Hdf5Class;
pub use dtype::HostDType;
pub use element::ArrayElement;

use crate::error::{Error, Result, message};
use crate::shape::Shape;

/// An array on the host: a dtype, a shape, and the elements in row-major order. Files of weights, checkpoints, NumPy's files and
/// event files are read as such arrays. Two arrays are equal if their bytes are.
///
/// ```
/// use wgrad::{HostArray, HostDType};
/// let array = HostArray::new(HostDType::I16, [2, 2], vec![1, 0, 2, 0, 3, 0, 255, 255])?;
/// assert_eq!(array.to_array::<i16>()?, ndarray::array![[1, 2], [3, -1]].into_dyn());
/// assert_eq!(HostArray::from(ndarray::array![[1i16, 2], [3, -1]]), array);
/// assert_eq!(array.to_tensor()?.to_vec::<i32>()?, [1, 2, 3, -1]);
/// assert!(HostArray::new(HostDType::F32, [3], vec![0; 11]).is_err());
/// # Ok::<(), wgrad::Error>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct HostArray<'a> {
    dtype: HostDType,
    shape: Shape,
    data: Data<'a>,
}

/// The elements.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data<'a> {
    /// Numbers, each with its lowest byte first; a Boolean is a byte, 0 or 1.
    Bytes(Cow<'a, [u8]>),
    Strings(Cow<'a, [Vec<u8>]>),
}

impl Data<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Data::Bytes(bytes) => bytes,
            Data::Strings(_) => &[],
        }
    }

    fn strings(&self) -> &[Vec<u8>] {
        match self {
            Data::Bytes(_) => &[],
            Data::Strings(strings) => strings,
        }
    }
}

impl<'a> HostArray<'a> {
    /// An array of these bytes: the elements in row-major order, each with its lowest byte first. A Boolean is one byte, which
    /// is true unless it is 0.
    ///
    /// # Errors
    /// [`Error::Shape`] if an array of this shape has another number of bytes, or does not fit into memory; [`Error::DType`] if
    /// the elements of `dtype` have no fixed size.
    pub fn new(
        dtype: HostDType,
        shape: impl Into<Shape>,
        bytes: impl Into<Cow<'a, [u8]>>,
    ) -> Result<Self> {
        let (shape, mut bytes) = (shape.into(), bytes.into());
        if dtype.array_bytes(&[]).is_none() && dtype.array_bytes(&[8]).is_none() {
            return Err(Error::DType(message!(
                "HostArray: elements of the dtype {dtype} have no fixed number of bytes; new needs a dtype that has one. Use \
                 from_strings for strings."
            )));
        }
        let wanted = dtype.array_bytes(&shape);
        if wanted != Some(bytes.len()) {
            return Err(Error::Shape(message!(
                "HostArray: an array {shape} of {} has {} bytes, and {} were passed. Pass bytes that fit the shape.",
                dtype.file_name(),
                wanted.map_or("more than any memory's".to_string(), |wanted| wanted.to_string()),
                bytes.len()
            )));
        }
        if dtype == HostDType::Bool && bytes.iter().any(|byte| *byte > 1) {
            bytes.to_mut().iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Ok(HostArray { dtype, shape, data: Data::Bytes(bytes) })
    }

    /// An array of strings, which may be any bytes, in row-major order.
    ///
    /// # Errors
    /// [`Error::Shape`] if an array of this shape has another number of strings.
    pub fn from_strings(
        shape: impl Into<Shape>,
        strings: impl Into<Cow<'a, [Vec<u8>]>>,
    ) -> Result<Self> {
        let (shape, strings) = (shape.into(), strings.into());
        // No element takes less than a byte.
        if HostDType::U8.array_bytes(&shape) != Some(strings.len()) {
            return Err(Error::Shape(message!(
                "HostArray: an array {shape} does not have {} strings. Pass one string for each element.",
                strings.len()
            )));
        }
        Ok(HostArray { dtype: HostDType::String, shape, data: Data::Strings(strings) })
    }

    /// An array whose number of bytes is known to be right.
    pub(crate) fn of_bytes(
        dtype: HostDType,
        shape: Shape,
        bytes: impl Into<Cow<'a, [u8]>>,
    ) -> Self {
        let bytes = bytes.into();
        debug_assert_eq!(dtype.array_bytes(&shape), Some(bytes.len()));
        HostArray { dtype, shape, data: Data::Bytes(bytes) }
    }

    /// An array of as many strings as its shape has elements.
    #[cfg(feature = "preprocessing")]
    pub(crate) fn of_strings(shape: Shape, strings: Vec<Vec<u8>>) -> HostArray<'static> {
        debug_assert_eq!(shape.elements(), strings.len());
        HostArray { dtype: HostDType::String, shape, data: Data::Strings(strings.into()) }
    }

    /// The same elements in a shape that has as many.
    #[cfg(feature = "preprocessing")]
    pub(crate) fn with_shape(mut self, shape: impl Into<Shape>) -> Self {
        let shape = shape.into();
        debug_assert_eq!(shape.elements(), self.shape.elements());
        self.shape = shape;
        self
    }

    /// The type of the elements.
    pub fn dtype(&self) -> HostDType {
        self.dtype
    }

    /// The sizes of the axes, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.shape.elements()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// The elements in row-major order, each with its lowest byte first; a Boolean is one byte, 0 or 1. Strings have none.
    pub fn bytes(&self) -> &[u8] {
        self.data.bytes()
    }

    /// The strings in row-major order; none if the elements are not strings.
    pub fn strings(&self) -> Option<&[Vec<u8>]> {
        (self.dtype == HostDType::String).then(|| self.data.strings())
    }

    /// The array with its own copy of the elements, if it does not own them.
    pub fn into_owned(self) -> HostArray<'static> {
        let data = match self.data {
            Data::Bytes(bytes) => Data::Bytes(bytes.into_owned().into()),
            Data::Strings(strings) => Data::Strings(strings.into_owned().into()),
        };
        HostArray { dtype: self.dtype, shape: self.shape, data }
    }

    /// The same elements in another shape, or this array if its number of elements differs.
    #[cfg(feature = "safetensors")]
    pub(crate) fn reshaped(mut self, shape: &[usize]) -> Result<Self, Self> {
        let shape = Shape::from(shape);
        if shape.checked_elements() != self.shape.checked_elements() {
            return Err(self);
        }
        self.shape = shape;
        Ok(self)
    }

    /// An array of `i64` as one of `u64`, with the same bytes; any other array as it is.
    #[cfg(any(feature = "checkpoint", feature = "keras-files"))]
    pub(crate) fn unsigned(mut self) -> Self {
        if self.dtype == HostDType::I64 {
            self.dtype = HostDType::U64;
        }
        self
    }

    /// The reverse of [`unsigned`](Self::unsigned).
    #[cfg(any(feature = "checkpoint", feature = "keras-files"))]
    pub(crate) fn signed(mut self) -> Self {
        if self.dtype == HostDType::U64 {
            self.dtype = HostDType::I64;
        }
        self
    }

    /// The array with its axes in another order: axis `i` of the result is axis `axes[i]` of this one, as in `transpose`. The
    /// elements must have whole bytes.
    #[cfg(any(feature = "npy", feature = "safetensors"))]
    pub(crate) fn permuted(&self, axes: &[usize]) -> Result<HostArray<'static>> {
        let (shape, bytes, size) = (&self.shape, self.bytes(), self.dtype.size().unwrap_or(1));
        let mut strides = vec![size; shape.len()];
        for at in (1..shape.len()).rev() {
            // Only an array without elements, which is never read, wraps.
            strides[at - 1] = strides[at].wrapping_mul(shape[at]);
        }
        let sizes: Vec<usize> = axes.iter().map(|axis| shape[*axis]).collect();
        let steps: Vec<usize> = axes.iter().map(|axis| strides[*axis]).collect();
        let mut moved = Vec::with_capacity(bytes.len());
        let mut index = vec![0; sizes.len()];
        let mut at = 0;
        while moved.len() < bytes.len() {
            moved.extend_from_slice(&bytes[at..at + size]);
            for axis in (0..sizes.len()).rev() {
                index[axis] += 1;
                at += steps[axis];
                if index[axis] < sizes[axis] {
                    break;
                }
                at -= steps[axis] * sizes[axis];
                index[axis] = 0;
            }
        }
        HostArray::new(self.dtype, sizes, moved)
    }

    /// The same array, which borrows the elements of this one.
    pub fn view(&self) -> HostArray<'_> {
        let data = match &self.data {
            Data::Bytes(bytes) => Data::Bytes(Cow::Borrowed(bytes)),
            Data::Strings(strings) => Data::Strings(Cow::Borrowed(strings)),
        };
        HostArray { dtype: self.dtype, shape: self.shape.clone(), data }
    }
}

/// The dtype, the shape, and the first elements.
impl fmt::Debug for HostArray<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 16;
        write!(f, "HostArray({} {:?}: ", self.dtype, self.shape)?;
        let mut list = f.debug_list();
        match (&self.data, self.numbers()) {
            (Data::Strings(strings), _) => {
                let texts = strings.iter().map(|text| String::from_utf8_lossy(text));
                list.entries(texts.take(SHOWN));
            }
            (_, Some(numbers)) => {
                for number in numbers.take(SHOWN) {
                    list.entry(&format_args!("{number}"));
                }
            }
            (Data::Bytes(bytes), None) => {
                list.entries(bytes.iter().take(SHOWN));
            }
        }
        match self.len() > SHOWN {
            true => list.finish_non_exhaustive()?,
            false => list.finish()?,
        }
        f.write_str(")")
    }
}
