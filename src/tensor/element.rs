//! The Rust types of tensor elements, and of their values on the host.

use std::borrow::Cow;
use std::fmt::Debug;

use half::f16;

use crate::dtype::DType;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type for values on the host: the element types of tensors, and `i64`, `u64` and `f64`, which a device stores as
/// `i32`, `u32` and `f32`.
///
/// Reading can widen losslessly: [`Tensor::to_vec::<f64>`](crate::Tensor::to_vec) reads `f32` and `f16`; `i64` reads `i32`,
/// `u32` and `u8`; `u64` reads `u32` and `u8`. [`Tensor::from_slice_with`](crate::Tensor::from_slice_with) converts values that
/// fit.
pub trait HostElement: Copy + Debug + Send + Sync + 'static + sealed::Sealed {
    /// The dtype in which a device stores such values.
    const DTYPE: DType;

    /// The type's name, for messages.
    #[doc(hidden)]
    const NAME: &'static str;

    /// True if values of `dtype` can be read as this type.
    #[doc(hidden)]
    fn reads(dtype: DType) -> bool;

    /// Decodes values from a device buffer's bytes, which hold a dtype that can be read.
    #[doc(hidden)]
    fn load_as(bytes: &[u8], dtype: DType) -> Vec<Self>;

    /// The values as bytes in the format of a device buffer; or, unless `rounding` is set, the index of the first value that
    /// [`HostElement::DTYPE`] does not hold exactly.
    #[doc(hidden)]
    fn store_exactly(values: &[Self], rounding: bool) -> Result<Cow<'_, [u8]>, usize>;

    /// The value as `f64`, rounded if it has more than 53 bits; true is 1.
    #[doc(hidden)]
    fn to_f64(self) -> f64;
}

/// A Rust type that is the element type of tensors: `f32`, [`half::f16`], `i32`, `u32`, `u8`, `bool`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not the element type of tensors",
    note = "values of type `f64`, `i64` and `u64` go through `Tensor::from_slice_with` and `Tensor::from_array_with`"
)]
pub trait Element: HostElement {
    /// The values as bytes in the format of a device buffer.
    #[doc(hidden)]
    fn store(values: &[Self]) -> Cow<'_, [u8]>;

    /// Decodes the values from a device buffer's bytes.
    #[doc(hidden)]
    fn load(bytes: &[u8]) -> Vec<Self>;
}

/// Implements `HostElement` for an element type, which represents itself.
macro_rules! host_element {
    ($t:ty, $dtype:ident) => {
        impl sealed::Sealed for $t {}
        impl HostElement for $t {
            const DTYPE: DType = DType::$dtype;
            const NAME: &'static str = stringify!($t);

            fn reads(dtype: DType) -> bool {
                dtype == Self::DTYPE
            }

            fn load_as(bytes: &[u8], _: DType) -> Vec<Self> {
                Self::load(bytes)
            }

            fn store_exactly(values: &[Self], _: bool) -> Result<Cow<'_, [u8]>, usize> {
                Ok(Self::store(values))
            }

            fn to_f64(self) -> f64 {
                f64::from(self)
            }
        }
    };
}

macro_rules! plain_element {
    ($($t:ty => $dtype:ident),*) => {$(
        host_element!($t, $dtype);
        impl Element for $t {
            fn store(values: &[Self]) -> Cow<'_, [u8]> {
                Cow::Borrowed(bytemuck::cast_slice(values))
            }

            fn load(bytes: &[u8]) -> Vec<Self> {
                bytemuck::pod_collect_to_vec(bytes)
            }
        }
    )*};
}
// For example: `f32` is stored as it is, `store` being a cast of the slice.
plain_element!(f32 => F32, f16 => F16, i32 => I32, u32 => U32, u8 => U8);

host_element!(bool, Bool);

impl Element for bool {
    fn store(values: &[Self]) -> Cow<'_, [u8]> {
        let words: Vec<u32> = values.iter().map(|&v| u32::from(v)).collect();
        Cow::Owned(bytemuck::pod_collect_to_vec(&words))
    }

    fn load(bytes: &[u8]) -> Vec<Self> {
        bytes.chunks_exact(4).map(|word| word != [0; 4]).collect()
    }
}

/// A type of 64 bits: what the device holds of a value, if it holds it, and the dtypes that can be read.
macro_rules! wide_element {
    ($($t:ty as $narrow:ty => $dtype:ident, |$v:ident, $rounding:ident| $narrowed:expr, [$($read:ident $from:ty),+];)*) => {$(
        impl sealed::Sealed for $t {}
        impl HostElement for $t {
            const DTYPE: DType = DType::$dtype;
            const NAME: &'static str = stringify!($t);

            fn reads(dtype: DType) -> bool {
                matches!(dtype, $(DType::$read)|+)
            }

            fn load_as(bytes: &[u8], dtype: DType) -> Vec<Self> {
                match dtype {
                    $(DType::$read => <$from>::load(bytes).into_iter().map(<$t>::from).collect(),)+
                    _ => Vec::new(),
                }
            }

            fn store_exactly(values: &[Self], $rounding: bool) -> Result<Cow<'_, [u8]>, usize> {
                let mut narrow: Vec<$narrow> = Vec::with_capacity(values.len());
                for (at, &$v) in values.iter().enumerate() {
                    narrow.push($narrowed.ok_or(at)?);
                }
                Ok(Cow::Owned(bytemuck::pod_collect_to_vec(&narrow)))
            }

            fn to_f64(self) -> f64 {
                self as f64
            }
        }
    )*};
}
wide_element! {
    i64 as i32 => I32, |v, _rounding| i32::try_from(v).ok(), [I32 i32, U32 u32, U8 u8];
    u64 as u32 => U32, |v, _rounding| u32::try_from(v).ok(), [U32 u32, U8 u8];
    f64 as f32 => F32, |v, rounding| {
        let near = v as f32;
        (rounding || f64::from(near) == v || v.is_nan()).then_some(near)
    }, [F32 f32, F16 f16];
}
