//! Reading values back: `async` on every target, blocking natively only.

use crate::error::{Error, Result};

use super::{Element, Tensor};

impl Tensor {
    /// The elements in row-major order.
    ///
    /// # Errors
    /// [`Error::DType`] if `T` is not the tensor's dtype; [`Error::Device`] if the device is lost or ran out of
    /// memory while it computed the value.
    pub async fn to_vec_async<T: Element>(&self) -> Result<Vec<T>> {
        self.check_read::<T>()?;
        Ok(T::load(&self.to_bytes_async().await?))
    }

    /// As [`Tensor::to_vec_async`]; blocks until the value is there.
    ///
    /// # Errors
    /// As [`Tensor::to_vec_async`].
    #[cfg(not(target_family = "wasm"))]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.check_read::<T>()?;
        Ok(T::load(&self.to_bytes()?))
    }

    /// The only element of a tensor that has one.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is not exactly one element; else as [`Tensor::to_vec_async`].
    pub async fn item_async<T: Element>(&self) -> Result<T> {
        self.check_item()?;
        Ok(self.to_vec_async::<T>().await?[0])
    }

    /// As [`Tensor::item_async`]; blocks until the value is there. This is how native control flow looks at
    /// values:
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// // The Collatz sequence of 12.
    /// let mut a = tf::constant(12)?;
    /// let mut steps = vec![];
    /// while a.item::<i32>()? != 1 {
    ///     a = if (&a % 2).item::<i32>()? == 0 { a.floordiv(2)? } else { 3 * &a + 1 };
    ///     steps.push(a.item::<i32>()?);
    /// }
    /// assert_eq!(steps, [6, 3, 10, 5, 16, 8, 4, 2, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::item_async`].
    #[cfg(not(target_family = "wasm"))]
    pub fn item<T: Element>(&self) -> Result<T> {
        self.check_item()?;
        Ok(self.to_vec::<T>()?[0])
    }

    /// What `Display` prints, on every target; does not block.
    ///
    /// # Errors
    /// As [`Tensor::to_vec_async`].
    pub async fn to_string_async(&self) -> Result<String> {
        Ok(super::display::text(self, &self.to_bytes_async().await?))
    }

    /// The elements as the device stores them.
    pub(crate) async fn to_bytes_async(&self) -> Result<Vec<u8>> {
        match self.is_empty() {
            true => Ok(Vec::new()),
            false => self.device().read(self.value()).await,
        }
    }

    /// As [`Tensor::to_bytes_async`]; blocks.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>> {
        match self.is_empty() {
            true => Ok(Vec::new()),
            false => self.device().read_blocking(self.value()),
        }
    }

    fn check_read<T: Element>(&self) -> Result<()> {
        if T::DTYPE == self.dtype() {
            return Ok(());
        }
        Err(Error::DType(format!(
            "to_vec: the tensor is {} and was asked for as {}. Read it as {0}, or cast it first: x.cast(DType::{:?}).",
            self.dtype(),
            T::DTYPE,
            T::DTYPE,
        )))
    }

    fn check_item(&self) -> Result<()> {
        if self.len() == 1 {
            return Ok(());
        }
        Err(Error::Shape(format!(
            "item: the tensor of shape {:?} has {} elements; item needs exactly one. Reduce it first, or use to_vec.",
            self.shape(),
            self.len()
        )))
    }
}
