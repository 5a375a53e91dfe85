//! [`RepeatVector`]: repeats a row as a sequence.

use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::tensor::Tensor;

layer! {
    /// Repeats each row `n` times: input `[N,D]`, result `[N,n,D]`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::RepeatVector};
    /// let y = RepeatVector::new(2).call(&tf::constant([[1.0, 2.0]])?, INFERENCE)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 2.0, 1.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct RepeatVector {
        /// Creates a layer that repeats each row `n` times.
        new(n: usize);
    }
}

impl Layer for RepeatVector {
    configured!();
    unmasked!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let &[rows, size] = x.shape() else {
            return Err(Error::Shape(message!(
                "RepeatVector: the input is {:?}; it must be [N, D].",
                x.shape()
            )));
        };
        self.policy.autocast(x)?.expand_dims(1)?.broadcast_to([rows, self.n, size])
    }
}
