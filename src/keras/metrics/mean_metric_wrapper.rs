//! [`MeanMetricWrapper`]: any loss or function as a metric.

use super::{Mean, Metric};
use crate::dtype::DType;
use crate::error::Result;
use crate::keras::losses::{Loss, same_rank};
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable};

/// The weighted mean of the results of a loss, a function or a closure for each example.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Tensor};
/// use tf::keras::metrics::{MeanMetricWrapper, Metric};
/// let within = MeanMetricWrapper::new("within_1", |y_true: &Tensor, y_pred: &Tensor| {
///     y_pred.subtract(y_true)?.abs()?.less_equal(1.0)?.cast(tf::DType::F32)
/// });
/// within.update_state(&tf::constant([1.0, 2.0])?, &tf::constant([1.5, 4.0])?)?;
/// assert_eq!(within.result()?.item::<f32>()?, 0.5);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MeanMetricWrapper<L> {
    name: String,
    pub(super) loss: L,
    mean: Mean,
}

impl<L: Loss> MeanMetricWrapper<L> {
    /// Creates a metric from a loss.
    pub fn new(name: impl Into<String>, loss: L) -> Self {
        MeanMetricWrapper { name: name.into(), loss, mean: Mean::default() }
    }
}

impl<L: Loss> Metric for MeanMetricWrapper<L> {
    fn name(&self) -> &str {
        &self.name
    }

    fn update(
        &self,
        y_true: &Tensor,
        y_pred: &Tensor,
        sample_weight: Option<&Tensor>,
    ) -> Result<()> {
        let y_pred = &y_pred.stop_gradient();
        let values = self.loss.losses(y_true, y_pred)?;
        let masked = match (sample_weight, self.loss.mask(y_true, y_pred)?) {
            (Some(weight), Some(mask)) => {
                let [weight, mask] = same_rank(&weight.cast(DType::F32)?, &mask.cast(DType::F32)?)?;
                Some(weight.multiply(mask)?)
            }
            // As in Keras: without weights, a position that the loss ignores counts as 0.
            _ => None,
        };
        self.mean.add(&self.name, &values, masked.as_ref().or(sample_weight))
    }

    fn result(&self) -> Result<Tensor> {
        self.mean.result()
    }

    fn reset_state(&self) -> Result<()> {
        self.mean.reset_state()
    }
}

impl<L: Loss> Trackable for MeanMetricWrapper<L> {
    fn track(&self, parts: &mut Parts<'_>) {
        self.mean.track(parts);
    }
}

/// Defines a metric that is the mean of a loss, with the loss's options.
macro_rules! loss_metric {
    ($($(#[$doc:meta])* pub struct $name:ident $([$class:literal])? = $keras:literal of $loss:ident {
        $($(#[$field_doc:meta])* $field:ident: $argument:ty,)*
    })*) => {$(
        $(#[$doc])*
        $(#[doc(alias = $class)])?
        #[derive(Debug)]
        pub struct $name(
            crate::keras::metrics::MeanMetricWrapper<crate::keras::losses::$loss>,
        );

        impl Default for $name {
            #[doc = concat!("Creates a metric with the name `", $keras, "`.")]
            fn default() -> Self {
                $name::new($keras)
            }
        }

        impl $name {
            /// Creates a metric with this name.
            pub fn new(name: impl Into<String>) -> Self {
                let loss = crate::keras::losses::$loss::new();
                $name(crate::keras::metrics::MeanMetricWrapper::new(name, loss))
            }

            $(
                $(#[$field_doc])*
                #[must_use]
                pub fn $field(mut self, $field: $argument) -> Self {
                    self.0.loss = self.0.loss.$field($field);
                    self
                }
            )*
        }

        impl crate::trackable::Trackable for $name {
            fn track(&self, parts: &mut crate::trackable::Parts<'_>) {
                self.0.track(parts);
            }

            $(fn kind(&self) -> &'static str {
                $class
            })?
        }

        impl crate::keras::metrics::Metric for $name {
            fn name(&self) -> &str {
                self.0.name()
            }

            fn update(
                &self,
                y_true: &crate::tensor::Tensor,
                y_pred: &crate::tensor::Tensor,
                sample_weight: Option<&crate::tensor::Tensor>,
            ) -> crate::error::Result<()> {
                self.0.update(y_true, y_pred, sample_weight)
            }

            fn result(&self) -> crate::error::Result<crate::tensor::Tensor> {
                self.0.result()
            }

            fn reset_state(&self) -> crate::error::Result<()> {
                self.0.reset_state()
            }
        }
    )*};
}
pub(super) use loss_metric;
