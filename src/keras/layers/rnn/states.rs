//! [`States`]: the states that a stateful layer stores between calls.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result, message};
use crate::keras::DTypePolicy;
use crate::keras::trial::in_trial;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// The states after the last call, in variables that training does not change. As in Keras, they are not weights of the
/// layer.
#[derive(Debug, Default)]
pub(super) struct States(Mutex<Option<Vec<Variable>>>);

impl States {
    /// The states in the dtype of `x`; the first call makes them, from `initial`.
    pub fn read(
        &self,
        layer: &str,
        x: &Tensor,
        policy: DTypePolicy,
        initial: Vec<Tensor>,
    ) -> Result<Vec<Tensor>> {
        if in_trial() {
            // The batch size has changed.
            return initial.iter().map(|state| state.cast(x.dtype())).collect();
        }
        let mut kept = self.kept();
        let variables = match &*kept {
            Some(variables) => variables.clone(),
            None => {
                let dtype = policy.variable_dtype();
                let make = |state: &Tensor| state.cast(dtype).map(Variable::untrainable);
                let made = initial.iter().map(make).collect::<Result<Vec<_>>>()?;
                kept.insert(made).clone()
            }
        };
        let shapes: Vec<&[usize]> = variables.iter().map(Variable::shape).collect();
        let want: Vec<&[usize]> = initial.iter().map(Tensor::shape).collect();
        if shapes != want {
            return Err(Error::Shape(message!(
                "{layer}: the layer is stateful, and its states are {shapes:?}; for the input {:?} they would be {want:?}. \
                 Give it batches of one size, or call reset_state of the layer, or reset_states of the model, between.",
                x.shape()
            )));
        }
        variables.iter().map(|variable| variable.read().cast(x.dtype())).collect()
    }

    pub fn assign(&self, states: &[Tensor]) -> Result<()> {
        if in_trial() {
            return Ok(());
        }
        let variables = self.kept().clone().unwrap_or_default();
        for (variable, state) in variables.iter().zip(states) {
            variable.assign(&state.cast(variable.dtype())?)?;
        }
        Ok(())
    }

    /// Makes the next call create the states again.
    pub fn reset(&self) {
        *self.kept() = None;
    }

    fn kept(&self) -> MutexGuard<'_, Option<Vec<Variable>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
