//! [`Elu`]: the exponential linear unit with a factor.

use crate::error::Result;
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::ops::EluOptions;
use crate::tensor::Tensor;

layer! {
    /// Exponential linear unit: `x` if `x > 0`, else `alpha (e^x - 1)` (Clevert et al. 2016).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::Elu};
    /// let y = Elu::new().alpha(0.5).call(&tf::constant([-1.0, 2.0])?, INFERENCE)?.to_vec::<f32>()?;
    /// assert!((y[0] + 0.31606).abs() < 1e-5 && y[1] == 2.0);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Elu["ELU"] {
        /// Creates a layer with an alpha of 1.
        new();
        options {
            /// Sets `alpha`, the factor for negative inputs.
            alpha: f32 = 1.0,
        }
        class {
            positions(Positions::Kept);
        }
    }
}

impl Layer for Elu {
    configured!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let x = self.policy.autocast(x)?;
        if self.alpha == 1.0 { x.elu() } else { x.elu_with(EluOptions::new().alpha(self.alpha)) }
    }
}
