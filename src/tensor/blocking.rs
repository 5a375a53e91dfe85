//! Reading values while the thread waits for them, which only native targets allow.

use std::panic::Location;

use ndarray::ArrayD;

use super::{HostElement, Tensor};
use crate::error::{Error, Result, message};

impl Tensor {
    /// Like [`Tensor::to_vec_async`]; blocks until the value is available.
    ///
    /// # Errors
    /// As [`Tensor::to_vec_async`].
    #[track_caller]
    pub fn to_vec<T: HostElement>(&self) -> Result<Vec<T>> {
        self.check_read::<T>()?;
        let caller = Location::caller();
        let bytes = self.to_bytes().map_err(|error| match &error {
            // In a trace; the program's own line tells which value it is.
            Error::Trace(_) => error.reworded(|text| message!(
                "{text} (It is read at {caller}. Tensor::print prints it in each run, and host_call runs Rust code on it.)"
            )),
            _ => error,
        })?;
        Ok(T::load_as(&bytes, self.dtype()))
    }

    /// Like [`Tensor::item_async`]; blocks until the value is available. Use it for native control flow that depends on values:
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
    #[track_caller]
    pub fn item<T: HostElement>(&self) -> Result<T> {
        self.check_item()?;
        Ok(self.to_vec::<T>()?[0])
    }

    /// The values as an `ndarray` array. Blocks.
    ///
    /// # Errors
    /// As [`Tensor::to_vec`].
    #[track_caller]
    pub fn to_array<T: HostElement>(&self) -> Result<ArrayD<T>> {
        self.shaped(self.to_vec()?)
    }
}
