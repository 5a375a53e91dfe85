//! Pointers to losses, functions and closures are losses.

use std::sync::Arc;

use super::{ClassLabels, Loss, Reduction};
use crate::error::Result;
use crate::tensor::Tensor;

macro_rules! pointers {
    ($([$($generics:tt)*] $pointer:ty),* $(,)?) => {$(
        impl<$($generics)*> Loss for $pointer {
            fn name(&self) -> &str {
                (**self).name()
            }

            fn losses(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
                (**self).losses(y_true, y_pred)
            }

            fn reduction(&self) -> Reduction {
                (**self).reduction()
            }

            fn mask(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Option<Tensor>> {
                (**self).mask(y_true, y_pred)
            }

            fn class_labels(&self, y_pred: &Tensor) -> Option<ClassLabels> {
                (**self).class_labels(y_pred)
            }

            // A loss may override these methods.
            fn call(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
                (**self).call(y_true, y_pred)
            }

            fn call_weighted(
                &self,
                y_true: &Tensor,
                y_pred: &Tensor,
                sample_weight: Option<&Tensor>,
            ) -> Result<Tensor> {
                (**self).call_weighted(y_true, y_pred, sample_weight)
            }

            fn call_masked(
                &self,
                y_true: &Tensor,
                y_pred: &Tensor,
                sample_weight: Option<&Tensor>,
                mask: Option<&Tensor>,
            ) -> Result<Tensor> {
                (**self).call_masked(y_true, y_pred, sample_weight, mask)
            }
        }
    )*};
}
// A box of a closure is itself a closure, so this cannot be implemented for boxes of any loss.
pointers!(['a] Box<dyn Loss + 'a>, ['a] &(dyn Loss + 'a), [L: Loss + ?Sized] Arc<L>);

/// The name of the loss is that of the function, or `loss` for a closure.
impl<F> Loss for F
where
    F: Fn(&Tensor, &Tensor) -> Result<Tensor> + Send + Sync,
{
    fn name(&self) -> &str {
        let path = std::any::type_name::<F>();
        match path.rsplit("::").next() {
            Some(name) if !path.contains(['{', '<']) => name,
            _ => "loss",
        }
    }

    fn losses(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
        self(y_true, y_pred)
    }
}
