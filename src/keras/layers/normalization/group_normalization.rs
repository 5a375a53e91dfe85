//! [`GroupNormalization`]: normalizes groups of channels of each example to mean 0 and variance 1.

use crate::error::{Error, Result, message};
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::keras::{Context, Weight};
use crate::ops::NormalizationOptions;
use crate::shape::axis_index;
use crate::tensor::Tensor;

layer! {
    /// `y = gamma (x - mean) / sqrt(variance + epsilon) + beta`, with mean and variance over a group of adjacent
    /// channels of one example (Wu and He 2018): input `[N, .., C]`, gamma and beta `[C]`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::GroupNormalization};
    /// let x = tf::constant([[1.0, 3.0, 10.0, 30.0]])?;
    /// let y = GroupNormalization::new().groups(2).call(&x, INFERENCE)?.to_vec::<f32>()?;
    /// assert!(y.iter().zip([-1.0, 1.0, -1.0, 1.0]).all(|(y, want)| (y - want).abs() < 1e-3));
    /// # Ok(())
    /// # }
    /// ```
    pub struct GroupNormalization {
        /// Creates a layer with 32 groups along the last axis, with an epsilon of 0.001.
        new();
        options {
            /// Sets the number of groups, which must divide the number of channels; -1: one group per channel.
            groups: i64 = 32,
            /// Sets the channel axis.
            axis: i64 = -1,
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
        class {
            pytorch(&[Torch::new("gamma", &["weight"], Same), Torch::new("beta", &["bias"], Same)]);
        }
    }
}

impl Layer for GroupNormalization {
    configured!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let x = &self.policy.autocast(x)?;
        let axis = axis_index("GroupNormalization", self.axis, x.rank())?;
        let channels = x.shape()[axis];
        let groups = if self.groups == -1 { Some(channels) } else { self.groups.try_into().ok() };
        let Some(groups) = groups.filter(|&n| n > 0 && channels % n == 0 && axis > 0) else {
            return Err(Error::Shape(message!(
                "GroupNormalization: the input is {:?}, for {} groups along axis {axis}; the groups must divide the channels, \
                 and axis 0 is that of the batch.",
                x.shape(),
                self.groups
            )));
        };
        let value = |used: bool, weight: &Weight| -> Result<Option<Tensor>> {
            used.then(|| weight.get(x, [channels])).transpose()
        };
        let mut options = NormalizationOptions::new().epsilon(self.epsilon);
        options.scale = value(self.scale, &self.gamma)?;
        options.offset = value(self.center, &self.beta)?;
        let last = x.rank() - 1;
        if axis == last {
            return x.group_normalization(groups, options);
        }
        let exchanged: Vec<usize> = (0..=last)
            .map(|other| match other {
                _ if other == axis => last,
                _ if other == last => axis,
                _ => other,
            })
            .collect();
        x.transpose(&exchanged)?.group_normalization(groups, options)?.transpose(&exchanged)
    }
}
