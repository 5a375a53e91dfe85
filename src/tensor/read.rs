//! Reading values back: `async` on every target, and blocking on native ones.

use crate::dtype::DType;
use crate::eager;
use crate::error::{Error, Result, message};

use super::{HostElement, Tensor};

/// One copy reads several tensors of at most this many bytes together.
const TOGETHER: usize = 64 << 20;

impl Tensor {
    /// Reads the elements in row-major order. 64-bit types read the smaller ones: `f64` reads `f32` and `f16`, `i64` reads all
    /// integers, `u64` reads unsigned integers.
    ///
    /// # Errors
    /// [`Error::DType`] if `T` cannot read the tensor's dtype; [`Error::Device`] if the device is lost or ran out of memory
    /// while it computed the value.
    pub async fn to_vec_async<T: HostElement>(&self) -> Result<Vec<T>> {
        self.check_read::<T>()?;
        Ok(T::load_as(&self.to_bytes_async().await?, self.dtype()))
    }

    /// Reads the element of a tensor that has exactly one element.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is not exactly one element; otherwise same as [`Tensor::to_vec_async`].
    pub async fn item_async<T: HostElement>(&self) -> Result<T> {
        self.check_item()?;
        Ok(self.to_vec_async::<T>().await?[0])
    }

    /// Reads the elements of several tensors with a single wait: for example the losses of many steps, or all weights.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// # use wgrad::{Tensor, constant};
    /// let (a, b) = (constant([1.0, 2.0])?, constant(3.0)?.square()?);
    /// let values = pollster::block_on(Tensor::to_vecs_async::<f32>(&[&a, &b]))?;
    /// assert_eq!(values, [vec![1.0, 2.0], vec![9.0]]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::to_vec_async`].
    pub async fn to_vecs_async<T: HostElement>(tensors: &[&Tensor]) -> Result<Vec<Vec<T>>> {
        tensors.iter().try_for_each(|tensor| tensor.check_read::<T>())?;
        let bytes = Tensor::all_bytes_async(tensors).await?;
        let loaded = tensors.iter().zip(&bytes);
        Ok(loaded.map(|(tensor, bytes)| T::load_as(bytes, tensor.dtype())).collect())
    }

    /// Reads several tensors as [`Tensor::to_bytes_async`] reads one.
    pub(crate) async fn all_bytes_async(tensors: &[&Tensor]) -> Result<Vec<Vec<u8>>> {
        let mut all = Vec::with_capacity(tensors.len());
        let mut rest = tensors;
        while let Some(first) = rest.first() {
            // One copy reads the tensors that are on one device and fit in a buffer that any adapter supports.
            let mut bytes = 0;
            let fits = |tensor: &&&Tensor| {
                bytes += tensor.len().saturating_mul(4);
                bytes <= TOGETHER && tensor.device().same(first.device()) && !tensor.is_empty()
            };
            let count = rest.iter().take_while(fits).count();
            let (now, later) = rest.split_at(count.max(1));
            match now {
                [alone] => all.push(alone.to_bytes_async().await?),
                _ => {
                    now.iter().try_for_each(|tensor| eager::release(tensor))?;
                    let values: Vec<_> = now.iter().map(|tensor| tensor.value()).collect();
                    all.extend(first.device().read_all(&values).await?);
                }
            }
            rest = later;
        }
        Ok(all)
    }

    /// The text that `Display` prints; does not block, and works on every target.
    ///
    /// # Errors
    /// As [`Tensor::to_vec_async`].
    pub async fn to_string_async(&self) -> Result<String> {
        Ok(super::display::text(self, &self.to_bytes_async().await?))
    }

    /// Reads the elements as the device stores them.
    pub(crate) async fn to_bytes_async(&self) -> Result<Vec<u8>> {
        match self.is_empty() {
            true => Ok(Vec::new()),
            false => {
                eager::release(self)?;
                self.device().read(self.value()).await
            }
        }
    }

    /// As [`Tensor::to_bytes_async`]; blocks, which a browser does not allow.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        match self.is_empty() {
            true => Ok(Vec::new()),
            false => {
                eager::release(self)?;
                self.device().read_blocking(self.value())
            }
        }
    }

    pub(super) fn check_read<T: HostElement>(&self) -> Result<()> {
        if T::reads(self.dtype()) { Ok(()) } else { Err(self.not_read(T::NAME, T::DTYPE)) }
    }

    fn not_read(&self, name: &str, dtype: DType) -> Error {
        Error::DType(message!(
            "to_vec: the tensor is {} and was requested as {name}. Read it as {0}, or cast it first: \
             x.cast(DType::{dtype:?}).",
            self.dtype(),
        ))
    }

    pub(super) fn check_item(&self) -> Result<()> {
        if self.len() == 1 {
            return Ok(());
        }
        Err(Error::Shape(message!(
            "item: the tensor of shape {:?} has {} elements; item needs exactly one. Reduce it first, or use to_vec.",
            self.shape(),
            self.len()
        )))
    }
}
