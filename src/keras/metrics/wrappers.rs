//! Pointers to metrics are metrics.

use std::sync::Arc;

use super::Metric;
use crate::error::Result;
use crate::tensor::Tensor;

macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<M: Metric + ?Sized> Metric for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn update(
                &self,
                y_true: &Tensor,
                y_pred: &Tensor,
                sample_weight: Option<&Tensor>,
            ) -> Result<()> {
                (**self).update(y_true, y_pred, sample_weight)
            }

            // A metric may override this method.
            fn update_state(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<()> {
                (**self).update_state(y_true, y_pred)
            }

            fn result(&self) -> Result<Tensor> {
                (**self).result()
            }

            fn reset_state(&self) -> Result<()> {
                (**self).reset_state()
            }
        }
    )*};
}
pointers!(&M, Box<M>, Arc<M>);
