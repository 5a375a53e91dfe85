//! [`RmsNormalization`]: scales each example to a mean square of 1.

use crate::error::Result;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::keras::{Context, Weight};
use crate::ops::NormalizationOptions;
use crate::shape::{Axes, axis_list};
use crate::tensor::Tensor;

layer! {
    /// `y = scale x / sqrt(mean of squares + epsilon)` over `axis` of each example (Zhang and Sennrich 2019).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::RmsNormalization};
    /// let y = RmsNormalization::new().call(&tf::constant([[3.0, 3.0, -3.0]])?, INFERENCE)?;
    /// let y = y.to_vec::<f32>()?;
    /// assert!(y.iter().zip([1.0, 1.0, -1.0]).all(|(y, want)| (y - want).abs() < 1e-5));
    /// # Ok(())
    /// # }
    /// ```
    pub struct RmsNormalization["RMSNormalization"] {
        /// Creates a layer over the last axis, with an epsilon of 1e-6 and a scale of ones.
        new();
        options {
            /// Sets the axis or axes to normalize over.
            axis: Axes as impl Into<Axes> = (-1).into(),
            /// Sets the small number added to the mean of squares to avoid division by zero.
            epsilon: f32 = 1e-6,
        }
        weights {
            scale = Weight::ones(),
        }
        class {
            positions(Positions::Kept);
            pytorch(&[Torch::new("scale", &["weight"], Same).over_features()]);
        }
    }
}

impl Layer for RmsNormalization {
    configured!();
    unmasked!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let x = &self.policy.autocast(x)?;
        let mut axes = axis_list("RMSNormalization", &self.axis, x.rank())?;
        axes.sort_unstable();
        let sizes: Vec<usize> = axes.iter().map(|&axis| x.shape()[axis]).collect();
        let scale = self.scale.get(x, sizes)?;
        let options = NormalizationOptions::new().epsilon(self.epsilon).scale(scale);
        x.rms_normalization(&axes[..], options)
    }
}
