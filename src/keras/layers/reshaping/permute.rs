//! [`Permute`]: permutes the axes of each example.

use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::tensor::Tensor;

layer! {
    /// Permutes the axes of each example into the order `dims`, counted from 1; axis 0 is the batch axis and stays.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::Permute};
    /// let layer = Permute::new([2, 1]);
    /// assert_eq!(layer.call(&tf::Tensor::zeros([5, 3, 4])?, INFERENCE)?.shape(), [5, 4, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Permute {
        /// Creates a layer that puts axis `dims[0]` after the batch axis, `dims[1]` after that, and so on.
        new(dims: Vec<usize> as impl Into<Vec<usize>>);
    }
}

impl Layer for Permute {
    configured!();
    unmasked!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let axes = self.dims.len();
        let each = (1..=axes).all(|axis| self.dims.contains(&axis));
        if !each || x.rank() != axes + 1 {
            return Err(Error::Shape(message!(
                "Permute: the input is {:?} and dims {:?}; dims must have each axis of an example once, counted from 1.",
                x.shape(),
                self.dims
            )));
        }
        let order: Vec<usize> = [0].iter().chain(&self.dims).copied().collect();
        self.policy.autocast(x)?.transpose(order)
    }
}
