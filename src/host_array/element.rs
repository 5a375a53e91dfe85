//! [`ArrayElement`]: the Rust types of an array's elements; conversions from and to `ndarray`.

use half::{bf16, f16};
use ndarray::{Array, ArrayD, Dimension, IxDyn};

use super::dtype::HostDType;
use super::{Data, HostArray};
use crate::error::{Error, Result, message};

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that is the element type of a [`HostArray`]: `bool`, the integers of 8 to 64 bits, [`half::f16`],
/// [`half::bf16`], `f32`, `f64`, complex numbers as `[f32; 2]` and `[f64; 2]` (real and imaginary part), and strings of any
/// bytes as `Vec<u8>`.
pub trait ArrayElement: Clone + sealed::Sealed + 'static {
    /// The dtype of arrays of this type.
    const DTYPE: HostDType;

    #[doc(hidden)]
    fn load(data: &Data<'_>) -> Vec<Self>;

    #[doc(hidden)]
    fn store(values: &[Self]) -> Data<'static>;
}

macro_rules! elements {
    ($($dtype:ident $type:ty, |$data:ident| $load:expr, |$values:ident| $store:expr;)*) => {$(
        impl sealed::Sealed for $type {}
        impl ArrayElement for $type {
            const DTYPE: HostDType = HostDType::$dtype;

            fn load($data: &Data<'_>) -> Vec<Self> {
                $load
            }

            fn store($values: &[Self]) -> Data<'static> {
                $store
            }
        }
    )*};
}

macro_rules! numbers {
    ($($dtype:ident $type:ty;)*) => {
        elements! {$(
            $dtype $type, |data| bytemuck::pod_collect_to_vec(data.bytes()), |values| {
                Data::Bytes(bytemuck::cast_slice::<_, u8>(values).to_vec().into())
            };
        )*}
    };
}

numbers! {
    F16 f16; Bf16 bf16; F32 f32; F64 f64; Complex64 [f32; 2]; Complex128 [f64; 2];
    I8 i8; I16 i16; I32 i32; I64 i64; U8 u8; U16 u16; U32 u32; U64 u64;
}

elements! {
    Bool bool, |data| data.bytes().iter().map(|byte| *byte != 0).collect(), |values| {
        Data::Bytes(values.iter().map(|value| u8::from(*value)).collect())
    };
    String Vec<u8>, |data| data.strings().to_vec(), |values| Data::Strings(values.to_vec().into());
}

impl HostArray<'_> {
    /// Copies the values into an `ndarray` array.
    ///
    /// # Errors
    /// [`Error::DType`] if the elements are not of type `T`.
    pub fn to_array<T: ArrayElement>(&self) -> Result<ArrayD<T>> {
        if self.dtype != T::DTYPE {
            return Err(Error::DType(message!(
                "to_array: the array {:?} has elements of type {}, and {} is wanted. Ask for what it is, and convert it with \
                 mapv.",
                self.shape,
                self.dtype.name(),
                T::DTYPE.name()
            )));
        }
        self.shaped(T::load(&self.data))
    }

    /// The values, one for each element, as an `ndarray` array.
    pub(super) fn shaped<T>(&self, values: Vec<T>) -> Result<ArrayD<T>> {
        ArrayD::from_shape_vec(IxDyn(&self.shape), values)
            .map_err(|error| Error::Shape(message!("to_array: {error}.")))
    }
}

impl<T: ArrayElement, D: Dimension> From<Array<T, D>> for HostArray<'static> {
    fn from(array: Array<T, D>) -> Self {
        let data = match array.as_slice() {
            Some(values) => T::store(values),
            None => T::store(&array.iter().cloned().collect::<Vec<T>>()),
        };
        HostArray { dtype: T::DTYPE, shape: array.shape().into(), data }
    }
}
