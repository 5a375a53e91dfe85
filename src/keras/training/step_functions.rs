//! [`StepFunctions`]: the default steps of a model in `fit`, `evaluate` and `predict`, which run as functions.

use super::logs::StepLogs;
use crate::data::Batch;
use crate::function::{Nest, Repeated, Signature};
use crate::tensor::Tensor;

/// The steps of one model, while it is trained, evaluated or asked for predictions. Between two calls of `fit` the program may
/// change its layers, so no trace outlives the call.
pub(super) struct StepFunctions {
    pub(super) train: Repeated<StepLogs>,
    pub(super) test: Repeated<StepLogs>,
    pub(super) predict: Repeated<Vec<Tensor>>,
}

impl StepFunctions {
    pub(super) fn new() -> Self {
        StepFunctions {
            train: Repeated::new("fit"),
            test: Repeated::new("evaluate"),
            predict: Repeated::new("predict"),
        }
    }

    /// Begins a pass: since the last one, callbacks may have frozen layers or changed other settings.
    pub(super) fn begin(&self) {
        self.train.begin();
        self.test.begin();
    }
}

impl Nest for Batch {
    fn write_signature(&self, signature: &mut Signature) {
        let Batch { x, y, sample_weight } = self;
        // By reference: a signature is written at each step.
        [x, y, sample_weight].into_iter().for_each(|part| part.write_signature(signature));
    }

    fn map_tensors(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        Batch {
            x: self.x.map_tensors(f),
            y: self.y.map_tensors(f),
            sample_weight: self.sample_weight.map_tensors(f),
        }
    }
}
