//! [`States`]: the states that a stateful layer stores between calls.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::eager;
use crate::error::{Error, Result, message};
use crate::keras::DTypePolicy;
use crate::keras::trial::in_trial;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// The states after the last call, in variables that training does not change. As in Keras, they are not weights of the
/// layer.
#[derive(Debug, Default)]
pub(super) struct States(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// Each with its value before the first call.
    variables: Vec<(Variable, Tensor)>,
    /// There was no call since the last reset.
    reset: bool,
}

impl States {
    /// The states in the dtype of `x`; the first call makes them, from those that `initial` returns.
    pub fn read(
        &self,
        layer: &str,
        x: &Tensor,
        policy: DTypePolicy,
        initial: impl Fn() -> Result<Vec<Tensor>>,
    ) -> Result<Vec<Tensor>> {
        let states = initial()?;
        if is_trial() {
            // The batch size has changed.
            return states.iter().map(|state| state.cast(x.dtype())).collect();
        }
        let mut kept = self.kept();
        let shapes: Vec<&[usize]> =
            kept.variables.iter().map(|(variable, _)| variable.shape()).collect();
        let want: Vec<&[usize]> = states.iter().map(Tensor::shape).collect();
        let fits = shapes == want;
        if !fits && !kept.variables.is_empty() && !kept.reset {
            return Err(Error::Shape(message!(
                "{layer}: the layer is stateful, and its states are {shapes:?}; for the input {:?} they would be {want:?}. \
                 Give it batches of one size, or call reset_state of the layer, or reset_states of the model, between.",
                x.shape()
            )));
        }
        if !fits {
            let dtype = policy.variable_dtype();
            // The runs of a function begin with the states that exist then.
            let made = eager::lifted(|| {
                initial()?.iter().map(|state| state.cast(dtype)).collect::<Result<Vec<Tensor>>>()
            });
            let both = |state: Tensor| (Variable::untrainable(&state), state);
            kept.variables = made?.into_iter().map(both).collect();
        } else if kept.reset && !eager::traces_function() {
            for ((variable, _), state) in kept.variables.iter().zip(&states) {
                variable.assign(state.cast(variable.dtype())?)?;
            }
        }
        kept.reset = false;
        kept.variables.iter().map(|(variable, _)| variable.read().cast(x.dtype())).collect()
    }

    pub fn assign(&self, states: &[Tensor]) -> Result<()> {
        if is_trial() {
            return Ok(());
        }
        let kept = self.kept();
        for ((variable, _), state) in kept.variables.iter().zip(states) {
            variable.assign(&state.cast(variable.dtype())?)?;
        }
        Ok(())
    }

    /// Makes the next call begin with the initial states; it may have another batch size.
    pub fn reset(&self) {
        let mut kept = self.kept();
        // Functions that have been traced use these variables.
        let assigned =
            kept.variables.iter().try_for_each(|(variable, state)| variable.assign(state));
        if assigned.is_err() {
            kept.variables.clear();
        }
        kept.reset = true;
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the call only makes weights and finds shapes.
fn is_trial() -> bool {
    in_trial() && !eager::traces_function()
}
