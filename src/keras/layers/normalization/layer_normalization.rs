//! [`LayerNormalization`]: normalizes each example to mean 0 and variance 1.

use crate::error::Result;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::keras::{Context, Weight};
use crate::ops::NormalizationOptions;
use crate::shape::{Axes, axis_list};
use crate::tensor::Tensor;

layer! {
    /// `y = gamma (x - mean) / sqrt(variance + epsilon) + beta`, with mean and variance over `axis` of each example (Ba
    /// et al. 2016): input of any shape; gamma and beta have the shape of the axes `axis`; the result has the shape of
    /// the input.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::LayerNormalization};
    /// let x = tf::constant([[1.0, 3.0], [10.0, 30.0]])?;
    /// let y = LayerNormalization::new().epsilon(1e-6).call(&x, INFERENCE)?.to_vec::<f32>()?;
    /// assert!(y.iter().zip([-1.0, 1.0, -1.0, 1.0]).all(|(y, want)| (y - want).abs() < 1e-5));
    /// # Ok(())
    /// # }
    /// ```
    pub struct LayerNormalization {
        /// Creates a layer over the last axis, with an epsilon of 0.001, a gamma of ones and a beta of zeros.
        new();
        options {
            /// Sets the axis or axes to normalize over.
            axis: Axes as impl Into<Axes> = (-1).into(),
            /// Sets the small number added to the variance to avoid division by zero.
            epsilon: f32 = 1e-3,
            /// Sets whether the layer adds the offset `beta`.
            center: bool = true,
            /// Sets whether the layer multiplies by the scale `gamma`.
            scale: bool = true,
        }
        weights {
            gamma if scale = Weight::ones() => [gamma_initializer, gamma_regularizer, gamma_constraint],
            beta if center = Weight::zeros() => [beta_initializer, beta_regularizer, beta_constraint],
        }
        fixed {
            rms_scaling: false,
        }
        class {
            positions(Positions::Kept);
            pytorch(&GAMMA_BETA);
        }
    }
}

impl Layer for LayerNormalization {
    configured!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let x = &self.policy.autocast(x)?;
        let axes = axis_list("LayerNormalization", &self.axis, x.shape().len())?;
        let sizes: Vec<usize> = axes.iter().map(|&axis| x.shape()[axis]).collect();
        let weight = |used: bool, weight: &Weight| -> Result<Option<Tensor>> {
            used.then(|| weight.get(x, &sizes[..])).transpose()
        };
        let mut options = NormalizationOptions::new().epsilon(self.epsilon);
        options.scale = weight(self.scale, &self.gamma)?;
        options.offset = weight(self.center, &self.beta)?;
        x.layer_normalization(&axes[..], options)
    }
}
