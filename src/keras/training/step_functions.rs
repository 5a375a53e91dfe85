//! [`StepFunctions`]: the default steps of a model in `fit`, `evaluate` and `predict`, which run as functions.

use std::sync::atomic::{AtomicBool, Ordering};

use super::logs::StepLogs;
use super::phase::Phase;
use crate::data::Batch;
use crate::error::Result;
use crate::function::{Nest, Repeated, Signature};
use crate::tensor::Tensor;

/// The steps of one model, while it is trained, evaluated or asked for predictions. Between two calls of `fit` the program may
/// change its layers, so no trace outlives the call.
pub(super) struct StepFunctions {
    pub(super) train: StepFunction<StepLogs>,
    pub(super) test: StepFunction<StepLogs>,
    pub(super) predict: StepFunction<Vec<Tensor>>,
}

/// A step, which runs as a function in passes that are long enough.
pub(super) struct StepFunction<R> {
    function: Repeated<R>,
    used: AtomicBool,
}

/// A shorter pass has eager steps: its traces would cost more than they save.
const STEPS: usize = 16;

impl<R: Nest> StepFunction<R> {
    fn new(call: &'static str) -> Self {
        StepFunction { function: Repeated::new(call), used: AtomicBool::new(false) }
    }

    /// Runs `step`, or what it did on an earlier batch of these shapes.
    pub(super) fn call(&self, batch: &Batch, step: &dyn Fn(&Batch) -> Result<R>) -> Result<R> {
        match self.used.load(Ordering::Relaxed) {
            true => self.function.call(batch.clone(), &|batch| step(&batch)),
            false => step(batch),
        }
    }

    /// Begins a pass of so many steps, if the number is known.
    fn begin(&self, steps: Option<usize>) {
        self.used.store(steps.is_none_or(|steps| steps >= STEPS), Ordering::Relaxed);
    }
}

impl StepFunctions {
    pub(super) fn new() -> Self {
        StepFunctions {
            train: StepFunction::new("fit"),
            test: StepFunction::new("evaluate"),
            predict: StepFunction::new("predict"),
        }
    }

    /// Begins a pass of so many steps, if the number is known. Since the last one, callbacks may have frozen layers or changed
    /// other settings.
    pub(super) fn begin(&self, phase: Phase, steps: Option<usize>) {
        match phase {
            Phase::Train => self.train.begin(steps),
            Phase::Test | Phase::Validate => self.test.begin(steps),
        }
        // A callback evaluates the model during an epoch of its training.
        self.settings_changed();
    }

    pub(super) fn begin_prediction(&self, steps: Option<usize>) {
        self.predict.begin(steps);
        self.settings_changed();
    }

    /// The steps may do something else than before.
    pub(super) fn settings_changed(&self) {
        self.train.function.begin();
        self.test.function.begin();
        self.predict.function.begin();
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
