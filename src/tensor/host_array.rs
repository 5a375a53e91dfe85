//! Tensors of arrays on the host, and arrays of tensors.

use super::{HostOptions, Tensor};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, Misfit};
use crate::shape::Shape;

impl HostArray<'_> {
    /// A tensor of the array, on the current device: `f64` and `bf16` as `f32`, other integers than `u32` and `u8` as `i32`, if
    /// every value can be represented.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::HostArray;
    /// let x = HostArray::from(ndarray::array![1i64, -2]).to_tensor()?;
    /// assert_eq!(x.to_vec::<i32>()?, [1, -2]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::DType`] with the first value that does not fit, or if no tensor has such values; [`Error::Device`] if there is no
    /// memory.
    pub fn to_tensor(&self) -> Result<Tensor> {
        self.to_tensor_of(self.dtype().tensor_dtype().unwrap_or(DType::F32), HostOptions::new())
    }

    /// As [`HostArray::to_tensor`], in `dtype`. With [`HostOptions::rounding`], each value may become the nearest one of `dtype`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{DType, HostArray, HostOptions};
    /// let array = HostArray::from(ndarray::array![0.1f64]);
    /// assert!(array.to_tensor().is_err());
    /// let x = array.to_tensor_of(DType::F32, HostOptions::new().rounding(true))?;
    /// assert_eq!(x.to_vec::<f32>()?, [0.1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`HostArray::to_tensor`].
    pub fn to_tensor_of(&self, dtype: DType, options: HostOptions) -> Result<Tensor> {
        if self.dtype() == dtype {
            return self.upload(dtype);
        }
        let converted = self.converted(dtype, options.rounding).map_err(|misfit| {
            let rounding = "Pass HostOptions::new().rounding(true) to take the nearest number.";
            Error::DType(match misfit {
                Misfit::Apart => message!(
                    "to_tensor: the array {:?} is {}, which cannot become {dtype}. Convert it first.",
                    self.shape(),
                    self.dtype().name()
                ),
                Misfit::Rounds => message!(
                    "to_tensor: the array {:?} is {}, and {dtype} would round its values. {rounding}",
                    self.shape(),
                    self.dtype().name()
                ),
                // Integers are never rounded.
                Misfit::Value(place, value) => message!(
                    "to_tensor: the value at {place:?} is {value}, which {dtype} cannot represent. {}",
                    if options.rounding || !dtype.is_float() { "Convert it first." } else { rounding }
                ),
            })
        })?;
        converted.upload(dtype)
    }

    /// A tensor of the array, which has this dtype.
    pub(crate) fn upload(&self, dtype: DType) -> Result<Tensor> {
        match dtype {
            DType::Bool => {
                let values: Vec<bool> = self.bytes().iter().map(|byte| *byte != 0).collect();
                Tensor::from_slice(&values, self.shape())
            }
            _ => Tensor::from_bytes(self.bytes(), self.shape(), dtype),
        }
    }
}

impl HostArray<'static> {
    /// The values of a tensor, as [`Tensor::to_array_async`] reads them, of any dtype.
    ///
    /// # Errors
    /// [`Error::Device`] if the device is lost.
    pub async fn from_tensor_async(tensor: &Tensor) -> Result<Self> {
        let bytes = tensor.to_bytes_async().await?;
        Ok(HostArray::from_device(bytes, tensor.shape(), tensor.dtype()))
    }

    /// As [`HostArray::from_tensor_async`]; blocks until the value is available.
    ///
    /// # Errors
    /// As [`HostArray::from_tensor_async`].
    #[cfg(not(target_family = "wasm"))]
    pub fn from_tensor(tensor: &Tensor) -> Result<Self> {
        Ok(HostArray::from_device(tensor.to_bytes()?, tensor.shape(), tensor.dtype()))
    }

    /// The array of a tensor's bytes on a device, which stores a Boolean in four of them.
    pub(crate) fn from_device(bytes: Vec<u8>, shape: impl Into<Shape>, dtype: DType) -> Self {
        let bytes = match dtype {
            DType::Bool => bytes.chunks_exact(4).map(|word| u8::from(word != [0; 4])).collect(),
            _ => bytes,
        };
        HostArray::of_bytes(dtype.into(), shape.into(), bytes)
    }
}
