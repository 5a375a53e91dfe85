//! The Rust types whose values tensors hold.

use std::borrow::Cow;

use half::f16;

use crate::dtype::DType;

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that is the element type of tensors: `f32`, [`half::f16`], `i32`, `u32`, `u8`, `bool`.
pub trait Element: Copy + Send + Sync + 'static + sealed::Sealed {
    /// The matching dtype.
    const DTYPE: DType;

    /// The values as bytes in the format of a device buffer.
    #[doc(hidden)]
    fn store(values: &[Self]) -> Cow<'_, [u8]>;

    /// The values in a device buffer's bytes.
    #[doc(hidden)]
    fn load(bytes: &[u8]) -> Vec<Self>;
}

macro_rules! plain_element {
    ($($t:ty => $dtype:ident),*) => {$(
        impl sealed::Sealed for $t {}
        impl Element for $t {
            const DTYPE: DType = DType::$dtype;

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

impl sealed::Sealed for bool {}

impl Element for bool {
    const DTYPE: DType = DType::Bool;

    fn store(values: &[Self]) -> Cow<'_, [u8]> {
        let words: Vec<u32> = values.iter().map(|&v| u32::from(v)).collect();
        Cow::Owned(bytemuck::pod_collect_to_vec(&words))
    }

    fn load(bytes: &[u8]) -> Vec<Self> {
        bytes.chunks_exact(4).map(|word| word != [0; 4]).collect()
    }
}
