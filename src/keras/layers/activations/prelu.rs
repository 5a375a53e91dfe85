//! [`Prelu`]: a rectifier whose slope below 0 is learned.

use crate::error::{Error, Result, message};
use crate::keras::layers::Layer;
use crate::keras::layers::macros::layer;
use crate::keras::{Context, Weight};
use crate::tensor::Tensor;

layer! {
    /// Parametric ReLU: `x` if `x > 0`, else `alpha x` (He et al. 2015). Alpha has the shape of one example, with size
    /// 1 along each of `shared_axes`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::Trackable;
    /// use tf::keras::{INFERENCE, Initializer, Layer, layers::Prelu};
    /// let layer = Prelu::new().alpha_initializer(Initializer::Constant(0.25)).shared_axes([1, 2]);
    /// let y = layer.call(&tf::Tensor::full([2, 4, 4, 3], -1.0)?, INFERENCE)?;
    /// assert_eq!(y.to_vec::<f32>()?[0], -0.25);
    /// assert_eq!(layer.variables()[0].shape(), [1, 1, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Prelu["PReLU"] {
        /// Creates a layer with one alpha for each element of an example, initialized to 0.
        new();
        options {
            /// Sets the axes along which one alpha is shared. Default: none. Axis 0 is the batch axis, which always
            /// shares its alphas.
            shared_axes: Vec<usize> as impl Into<Vec<usize>> = Vec::new(),
        }
        weights {
            alpha = Weight::zeros() => [alpha_initializer, alpha_regularizer, alpha_constraint],
        }
        class {
            positions(Positions::Kept);
            pytorch(&[Torch::new("alpha", &["weight"], PerChannel).over_features()]);
        }
    }
}

impl Layer for Prelu {
    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<crate::keras::Config> {
        let mut config = crate::keras::layers::Configured::config(self)?;
        if self.shared_axes.is_empty() {
            // In Keras's format.
            config.set_json("shared_axes", serde_json::Value::Null);
        }
        Ok(config)
    }

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let x = &self.policy.autocast(x)?;
        let mut shape = x.shape().get(1..).unwrap_or_default().to_vec();
        for &axis in &self.shared_axes {
            let place = axis.checked_sub(1).and_then(|place| shape.get_mut(place));
            *place.ok_or_else(|| {
                Error::Index(message!(
                    "PReLU: the input is {:?} and shared_axes {:?}; they must be axes of the input other than 0.",
                    x.shape(),
                    self.shared_axes
                ))
            })? = 1;
        }
        let below = x.negative()?.relu()?.multiply(self.alpha.get(x, shape)?)?;
        x.relu()?.subtract(below)
    }
}
