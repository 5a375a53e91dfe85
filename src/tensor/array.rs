//! Tensors from `ndarray` arrays, and back.

use ndarray::{ArrayBase, ArrayD, Data, Dimension, IxDyn};

use crate::error::{Error, Result, message};

use super::{Element, HostElement, HostOptions, Tensor};

impl Tensor {
    /// Copies an `ndarray` array of any layout into a tensor.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// # use wgrad::Tensor;
    /// let x = Tensor::from_array(&wgrad::ndarray::arr2(&[[1.0f32, 2.0], [3.0, 4.0]]).t())?;
    /// assert_eq!(x.to_array::<f32>()?[[0, 1]], 3.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Same as [`Tensor::from_slice`].
    pub fn from_array<S, D>(array: &ArrayBase<S, D>) -> Result<Self>
    where
        S: Data,
        S::Elem: Element,
        D: Dimension,
    {
        match array.as_slice() {
            Some(values) => Tensor::from_slice(values, array.shape()),
            None => {
                let values: Vec<S::Elem> = array.iter().copied().collect();
                Tensor::from_slice(&values, array.shape())
            }
        }
    }

    /// Like [`Tensor::from_array`], but also accepts `i64`, `u64` and `f64`: see [`Tensor::from_slice_with`].
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// # use wgrad::{HostOptions, Tensor};
    /// let x = Tensor::from_array_with(&wgrad::ndarray::arr1(&[0.5, 0.25]), HostOptions::new())?;
    /// assert_eq!(x.to_array::<f64>()?[[1]], 0.25);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Same as [`Tensor::from_slice_with`].
    pub fn from_array_with<S, D>(array: &ArrayBase<S, D>, options: HostOptions) -> Result<Self>
    where
        S: Data,
        S::Elem: HostElement,
        D: Dimension,
    {
        match array.as_slice() {
            Some(values) => Tensor::from_slice_with(values, array.shape(), options),
            None => {
                let values: Vec<S::Elem> = array.iter().copied().collect();
                Tensor::from_slice_with(&values, array.shape(), options)
            }
        }
    }

    /// Reads the values as an `ndarray` array.
    ///
    /// # Errors
    /// Same as [`Tensor::to_vec_async`].
    pub async fn to_array_async<T: HostElement>(&self) -> Result<ArrayD<T>> {
        self.shaped(self.to_vec_async().await?)
    }

    pub(super) fn shaped<T>(&self, values: Vec<T>) -> Result<ArrayD<T>> {
        ArrayD::from_shape_vec(IxDyn(self.shape()), values)
            .map_err(|e| Error::Shape(message!("to_array: {e}.")))
    }
}
