//! Converts between arrays and tensors: `np.save` and `np.load` for values on a device.

use super::array::NpyArray;
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::host_array::ArrayElement;
use crate::tensor::Tensor;
use crate::trackable::NamedArray;
use crate::trackable::weights::values::converted;

macro_rules! rows {
    ($($variant:ident $type:ty;)*) => {
        impl NpyArray {
            /// The array as a weight file stores it.
            pub(crate) fn to_named(&self, name: &str) -> NamedArray<'static> {
                let array = match self {
                    $(NpyArray::$variant(array) => array.clone().into(),)*
                };
                NamedArray::new(name.to_string(), array)
            }

            /// The array that a weight file stores; none for a dtype that NumPy lacks.
            pub(crate) fn from_named(array: &NamedArray<'_>) -> Result<Self> {
                Ok(match array.array.dtype() {
                    $(<$type as ArrayElement>::DTYPE => array.array.to_array::<$type>()?.into(),)*
                    _ => {
                        return Err(Error::Data(message!(
                            "npy: '{}' {:?} of {} is no array that NumPy has: the dtype is unknown.",
                            array.name,
                            array.array.shape(),
                            array.array.dtype()
                        )));
                    }
                })
            }
        }
    };
}
rows! {
    F16 half::f16; F32 f32; F64 f64; Bool bool;
    I8 i8; I16 i16; I32 i32; I64 i64;
    U8 u8; U16 u16; U32 u32; U64 u64;
}

impl NpyArray {
    /// A tensor of the array, on the current device: floats as they are or, of 64 bits, as `f32`, integers as `i32` (`u32` and
    /// `u8` as they are), if every value can be represented.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::npy::NpyArray;
    /// let x = NpyArray::from(wgrad::ndarray::array![1i64, -2]).to_tensor()?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, -2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Checkpoint`] with the first value that does not fit; [`Error::Device`] if there is no memory.
    pub fn to_tensor(&self) -> Result<Tensor> {
        let dtype = match self {
            NpyArray::F16(_) => DType::F16,
            NpyArray::F32(_) | NpyArray::F64(_) => DType::F32,
            NpyArray::U32(_) => DType::U32,
            NpyArray::U8(_) => DType::U8,
            NpyArray::Bool(_) => DType::Bool,
            _ => DType::I32,
        };
        converted(self.to_named("array"), dtype, false)?.to_tensor(self.shape(), dtype)
    }

    /// The values of a tensor.
    ///
    /// # Errors
    /// [`Error::Device`] if the device is lost.
    pub async fn from_tensor_async(tensor: &Tensor) -> Result<Self> {
        Ok(match tensor.dtype() {
            DType::F16 => tensor.to_array_async::<half::f16>().await?.into(),
            DType::I32 => tensor.to_array_async::<i32>().await?.into(),
            DType::U32 => tensor.to_array_async::<u32>().await?.into(),
            DType::U8 => tensor.to_array_async::<u8>().await?.into(),
            DType::Bool => tensor.to_array_async::<bool>().await?.into(),
            DType::F32 => tensor.to_array_async::<f32>().await?.into(),
        })
    }
}

/// Reads the `.npy` file at `path` as a tensor: [`NpyArray::to_tensor`] defines its dtype.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::data::npy;
/// let path = std::env::temp_dir().join(format!("wgrad-tensor-{}.npy", std::process::id()));
/// npy::save_tensor(&path, &wgrad::constant([[1.0, 2.0]])?)?;
/// assert_eq!(npy::load_tensor(&path)?.shape(), [1, 2]);
/// # std::fs::remove_file(&path).expect("it was written");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`load`](super::load) and [`NpyArray::to_tensor`].
#[cfg(not(target_family = "wasm"))]
pub fn load_tensor(path: impl AsRef<std::path::Path>) -> Result<Tensor> {
    let path = path.as_ref();
    crate::trackable::weights::in_file(path, super::load(path)?.to_tensor())
}

/// Writes the tensor's values as the `.npy` file at `path`. Blocks.
///
/// # Errors
/// As [`save`](super::save); [`Error::Device`] if the device is lost.
#[cfg(not(target_family = "wasm"))]
pub fn save_tensor(path: impl AsRef<std::path::Path>, tensor: &Tensor) -> Result<()> {
    super::save(path, pollster::block_on(NpyArray::from_tensor_async(tensor))?)
}
