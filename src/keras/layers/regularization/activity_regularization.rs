//! [`ActivityRegularization`]: a penalty on the layer's input.

use crate::error::Result;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::keras::{Context, Regularizer};
use crate::tensor::Tensor;

layer! {
    /// Returns `x` unchanged and adds the penalty `(l1 sum(|x|) + l2 sum(x^2)) / n` to the loss, where `n` is the size of the batch.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{Layer, Losses, TRAINING, layers::ActivityRegularization};
    /// let (layer, losses) = (ActivityRegularization::new().l2(0.5), Losses::new());
    /// layer.call(&tf::constant([[1.0, 3.0]])?, TRAINING.collect(&losses))?;
    /// assert_eq!(losses.sum()?.item::<f32>()?, 5.0);
    /// # Ok(())
    /// # }
    /// ```
    pub struct ActivityRegularization {
        /// Creates a layer whose penalties are 0 until they are set.
        new();
        options {
            /// Sets the L1 factor, applied to the absolute values.
            l1: f32 = 0.0,
            /// Sets the L2 factor, applied to the squares.
            l2: f32 = 0.0,
        }
        class {
            positions(Positions::Kept);
        }
    }
}

impl Layer for ActivityRegularization {
    configured!();

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        let x = self.policy.autocast(x)?;
        cx.regularize(Some(&Regularizer::l1_l2(self.l1, self.l2)), &x)?;
        Ok(x)
    }
}
