//! Pointers to optimizers are optimizers: `Box<dyn Optimizer>`, `Arc<dyn Optimizer>`.

use std::sync::Arc;

use super::{Optimizer, OptimizerState, Step};
use crate::error::Result;
use crate::tape::GradientTape;
use crate::tensor::Tensor;
use crate::trackable::Trackable;
use crate::variable::Variable;

macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<O: Optimizer + ?Sized> Optimizer for $pointer {
            fn state(&self) -> &OptimizerState {
                (**self).state()
            }

            fn slot_names(&self, variable: &Variable) -> Vec<&'static str> {
                (**self).slot_names(variable)
            }

            fn slot_start(&self, name: &str, variable: &Variable) -> Result<Tensor> {
                (**self).slot_start(name, variable)
            }

            fn update(
                &self,
                step: &Step,
                w: &Tensor,
                g: &Tensor,
                slots: &[Tensor],
            ) -> Result<(Tensor, Vec<Tensor>)> {
                (**self).update(step, w, g, slots)
            }

            fn apply_gradients(
                &self,
                grads: &[Option<Tensor>],
                variables: &dyn Trackable,
            ) -> Result<()> {
                (**self).apply_gradients(grads, variables)
            }

            fn minimize(
                &self,
                loss: &Tensor,
                tape: GradientTape,
                variables: &dyn Trackable,
            ) -> Result<()> {
                (**self).minimize(loss, tape, variables)
            }

            fn build(&self, variables: &dyn Trackable) -> Result<()> {
                (**self).build(variables)
            }
        }
    )*};
}
// Methods that the trait derives from `state` need no forwarding here.
pointers!(&O, Box<O>, Arc<O>);
