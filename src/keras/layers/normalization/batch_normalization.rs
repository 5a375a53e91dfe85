//! [`BatchNormalization`]: normalizes each channel of a batch to mean 0 and variance 1.

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::keras::{Context, Weight};
use crate::shape::{Axes, Shape, axis_index};
use crate::tensor::Tensor;

layer! {
    /// `y = gamma (x - mean) / sqrt(variance + epsilon) + beta` for each index of `axis` (Ioffe and Szegedy 2015). In
    /// training, the layer uses the mean and variance of the batch, and updates the moving mean and variance towards
    /// them by `1 - momentum`; in inference it uses the moving statistics. Masked positions do not count.
    ///
    /// A frozen layer ([`set_trainable(false)`](crate::Trackable::set_trainable)) computes as in inference and does not
    /// update its moving statistics. `f16` inputs are normalized in `f32`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::Trackable;
    /// use tf::keras::{Layer, TRAINING, layers::BatchNormalization};
    /// let layer = BatchNormalization::new();
    /// let y = layer.call(&tf::constant([[1.0, 10.0], [3.0, 30.0]])?, TRAINING)?.to_vec::<f32>()?;
    /// assert!(y.iter().zip([-1.0, -1.0, 1.0, 1.0]).all(|(y, want)| (y - want).abs() < 1e-3));
    /// let moved = layer.named_variables()[2].1.read().to_vec::<f32>()?; // moving_mean
    /// assert!((moved[0] - 0.02).abs() < 1e-6 && (moved[1] - 0.2).abs() < 1e-6);
    /// assert_eq!(layer.trainable_variables().len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub struct BatchNormalization {
        /// Creates a layer along the last axis, with a momentum of 0.99 and an epsilon of 0.001.
        new();
        options {
            /// Sets the axis to normalize, typically the channel axis; each index along it has its own statistics.
            axis: i64 = -1,
            /// Sets the momentum of the moving statistics.
            momentum: f32 = 0.99,
            /// Sets the small number added to the variance to avoid division by zero.
            epsilon: f32 = 1e-3,
            /// Sets whether the layer adds the offset `beta`.
            center: bool = true,
            /// Sets whether the layer multiplies by the scale `gamma`.
            scale: bool = true,
            /// Stored in the config only: whether to synchronize the batch statistics across devices. wgrad uses one
            /// device.
            synchronized: bool = false,
            /// Stored in the config only: the momentum of `renorm`, which wgrad does not support.
            renorm_momentum: f32 = 0.99,
        }
        weights {
            gamma if scale = Weight::ones() => [gamma_initializer, gamma_regularizer, gamma_constraint],
            beta if center = Weight::zeros() => [beta_initializer, beta_regularizer, beta_constraint],
            moving_mean = Weight::zeros().trainable(false) => [moving_mean_initializer],
            moving_variance = Weight::ones().trainable(false) => [moving_variance_initializer],
        }
        fixed {
            renorm: false,
        }
        class {
            positions(Positions::Kept);
            pytorch(&[
                Torch::new("gamma", &["weight"], Same).over_features(),
                Torch::new("beta", &["bias"], Same).over_features(),
                Torch::new("moving_mean", &["running_mean"], Same).over_features(),
                Torch::new("moving_variance", &["running_var"], Same).over_features(),
            ]);
        }
    }
}

/// Mean and variance of a batch over `axes`, of the unmasked positions.
///
/// `variance = mean((x - c)^2) - (mean(x) - c)^2` for any constant c. Here c is the mean with its gradient stopped: the second
/// term and its gradient are 0, but second derivatives need the term. With the gradient of the mean, the backward pass would
/// need one more sum over the batch.
fn moments(x: &Tensor, mask: Option<&Tensor>, axes: &Axes) -> Result<[Tensor; 2]> {
    let Some(mask) = mask else {
        let mean = x.reduce_mean(axes)?;
        let fixed = mean.stop_gradient();
        let squares = x.subtract(&fixed)?.square()?.reduce_mean(axes)?;
        let variance = squares.subtract(mean.subtract(&fixed)?.square()?)?;
        return Ok([mean, variance]);
    };
    if *mask.shape() != x.shape()[..x.rank() - 1] {
        return Err(Error::Shape(message!(
            "BatchNormalization: the input is {:?} and the mask {:?}; the mask must have all axes of the input but the last.",
            x.shape(),
            mask.shape()
        )));
    }
    let mask = mask.expand_dims(-1)?.cast(DType::F32)?.broadcast_to(x.shape())?;
    // Keras's constant to avoid a division by 0.
    let count = mask.reduce_sum(axes)?.add(1e-7)?;
    let mean = x.multiply(&mask)?.reduce_sum(axes)?.divide(&count)?;
    let squares = x.subtract(&mean)?.square()?.multiply(&mask)?;
    Ok([mean, squares.reduce_sum(axes)?.divide(&count)?])
}

impl Layer for BatchNormalization {
    configured!();

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        let given = self.policy.autocast(x)?;
        let dtype = if given.dtype().is_float() { given.dtype() } else { DType::F32 };
        // The precision of f16 is too low for a variance.
        let x = &given.cast(DType::F32)?;
        let axis = axis_index("BatchNormalization", self.axis, x.rank())?;
        let size = x.shape()[axis];
        let broadcast = |other: usize| if other == axis { size } else { 1 };
        let broadcast = Shape::from((0..x.rank()).map(broadcast).collect::<Vec<usize>>());
        let value = |used: bool, weight: &Weight| -> Result<Option<Tensor>> {
            let value = used.then(|| weight.get(x, [size])).transpose()?;
            value.map(|value| value.reshape_to(broadcast.clone())).transpose()
        };
        let (gamma, beta) = (value(self.scale, &self.gamma)?, value(self.center, &self.beta)?);
        let moving = [&self.moving_mean, &self.moving_variance];
        let [Some(mut mean), Some(mut variance)] =
            [value(true, moving[0])?, value(true, moving[1])?]
        else {
            unreachable!("both are used");
        };
        if cx.training() && !self.moving_mean.frozen() {
            let others: Vec<usize> = (0..x.rank()).filter(|other| *other != axis).collect();
            let of_batch = moments(x, cx.mask(), &Axes::from(others).keepdims(true))?;
            for (weight, (old, new)) in
                moving.into_iter().zip([mean, variance].iter().zip(&of_batch))
            {
                let kept = old.multiply(self.momentum)?;
                // The fraction in f64, because 1 - 0.99 in f32 has an error of a millionth.
                let share = (1.0 - f64::from(self.momentum)) as f32;
                let moved = kept.add(new.stop_gradient().multiply(share)?)?;
                let variable = weight.variable(x, [size])?;
                variable.assign(moved.reshape_to([size].into())?.cast(variable.dtype())?)?;
            }
            [mean, variance] = of_batch;
        }
        let y =
            x.batch_normalization(&mean, &variance, beta.as_ref(), gamma.as_ref(), self.epsilon)?;
        y.cast(dtype)
    }
}
