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
        if self.is_empty() {
            return Ok(Vec::new());
        }
        Ok(T::load(&self.device().read(self.value()).await?))
    }

    /// As [`Tensor::to_vec_async`]; blocks until the value is there.
    ///
    /// # Errors
    /// As [`Tensor::to_vec_async`].
    #[cfg(not(target_family = "wasm"))]
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>> {
        self.check_read::<T>()?;
        if self.is_empty() {
            return Ok(Vec::new());
        }
        Ok(T::load(&self.device().read_blocking(self.value())?))
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
