//! The stage that decays weights towards 0, independently of the gradient.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::options::{Excluded, Options, Round, Stage, StepStage, Within};
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;
use crate::trackable;
use crate::variable::Variable;

/// `w -= lr decay w`, before the formula.
#[derive(Debug, Default)]
pub(super) struct WeightDecay {
    /// Which variables decay, by their identities. Their names are looked up only once.
    known: Mutex<HashMap<u64, bool>>,
}

/// Sets the weight decay.
pub(super) fn set(options: &mut Options, weight_decay: f64) {
    options.require("weight_decay", weight_decay, Within::NotNegative);
    options.weight_decay = weight_decay;
    options.set(StepStage::Decay, Some(Arc::new(WeightDecay::default())));
}

/// Changes the set of excluded weights.
pub(super) fn exclude(options: &mut Options, change: impl FnOnce(&mut Excluded)) {
    change(&mut options.excluded);
    if options.stage(StepStage::Decay).is_some() {
        options.set(StepStage::Decay, Some(Arc::new(WeightDecay::default())));
    }
}

impl WeightDecay {
    fn decays(&self, round: &Round<'_>, variable: &Variable) -> Result<bool> {
        let Excluded { names, variables } = &round.options.excluded;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(decays) = known.get(&variable.id()) {
            return Ok(*decays);
        }
        let mut nameless = !names.is_empty();
        for (path, found) in trackable::named_trainable(round.variables.root) {
            let excluded = variables.contains(&found.id())
                || names.iter().any(|name| path.contains(name.as_str()));
            known.insert(found.id(), !excluded);
            nameless &= path == "variable" || !path.contains(char::is_alphabetic);
        }
        if nameless {
            return Err(Error::Check(message!(
                "{}: exclude_from_weight_decay uses names, [{}], and the step was given variables without names. \
                 Give it the model, or exclude variables.",
                round.options.name,
                names.join(", ")
            )));
        }
        Ok(known.get(&variable.id()).copied().unwrap_or(true))
    }
}

impl Stage for WeightDecay {
    fn start(&self, round: &Round<'_>, variable: &Variable, w: Tensor) -> Result<Tensor> {
        if !self.decays(round, variable)? {
            return Ok(w);
        }
        let own = round.options.stages().find_map(|stage| stage.decay(variable));
        let decay = own.unwrap_or(round.options.weight_decay);
        w.subtract(w.multiply(round.step.scalar(move |_, lr| decay * lr))?)
    }
}
