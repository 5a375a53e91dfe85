//! A common trait for models of all types, so that the loops are compiled only once.

use std::marker::PhantomData;

use super::Model;
use super::logs::StepLogs;
use super::trainer::Trainer;
use crate::data::Batch;
use crate::error::Result;
use crate::keras::{Context, Inputs, Outputs};
use crate::tensor::Tensor;
use crate::trackable::{Class, Parts, Trackable};

/// A model of any input and output types.
pub(crate) trait AnyModel: Trackable {
    fn trainer(&self) -> &Trainer;
    fn output_names(&self) -> Vec<String>;
    /// Whether it accepts several tensors.
    fn takes_several(&self) -> bool;
    /// Returns the outputs, and the mask of a single output.
    fn call_all(&self, inputs: &[Tensor], cx: Context<'_>)
    -> Result<(Vec<Tensor>, Option<Tensor>)>;
    fn train_step(&self, batch: &Batch) -> Result<StepLogs>;
    fn test_step(&self, batch: &Batch) -> Result<StepLogs>;
    fn predict_step(&self, batch: &Batch) -> Result<Vec<Tensor>>;
    /// Returns the model in Keras's JSON, if it is a Keras model and all its layers can be written.
    #[cfg(all(feature = "json", any(feature = "summary", feature = "mpi")))]
    fn json(&self) -> Option<String>;
}

/// A model with its type erased.
pub(super) struct Erased<'a, M: ?Sized, X: ?Sized, Y> {
    model: &'a M,
    types: PhantomData<fn(&X) -> Y>,
}

impl<'a, M: ?Sized, X: ?Sized, Y> Erased<'a, M, X, Y> {
    pub(super) fn new(model: &'a M) -> Self {
        Erased { model, types: PhantomData }
    }
}

impl<M: Trackable + ?Sized, X: ?Sized, Y> Trackable for Erased<'_, M, X, Y> {
    fn track(&self, parts: &mut Parts<'_>) {
        self.model.track(parts);
    }

    fn kind(&self) -> &'static str {
        self.model.kind()
    }

    fn title(&self) -> String {
        self.model.title()
    }

    fn class(&self) -> Option<&'static Class> {
        self.model.class()
    }
}

impl<M, X, Y> AnyModel for Erased<'_, M, X, Y>
where
    M: Model<X, Y> + ?Sized,
    X: Inputs + ?Sized,
    Y: Outputs,
{
    fn trainer(&self) -> &Trainer {
        self.model.trainer()
    }

    fn output_names(&self) -> Vec<String> {
        self.model.output_names()
    }

    fn takes_several(&self) -> bool {
        X::SEVERAL
    }

    fn call_all(
        &self,
        inputs: &[Tensor],
        cx: Context<'_>,
    ) -> Result<(Vec<Tensor>, Option<Tensor>)> {
        self.model.call_all(inputs, cx)
    }

    fn train_step(&self, batch: &Batch) -> Result<StepLogs> {
        #[cfg(not(target_family = "wasm"))]
        return super::replicas::step(self, self.trainer(), batch, |batch| {
            self.model.train_step(batch)
        });
        #[cfg(target_family = "wasm")]
        self.model.train_step(batch)
    }

    fn test_step(&self, batch: &Batch) -> Result<StepLogs> {
        #[cfg(not(target_family = "wasm"))]
        return super::replicas::step(self, self.trainer(), batch, |batch| {
            self.model.test_step(batch)
        });
        #[cfg(target_family = "wasm")]
        self.model.test_step(batch)
    }

    fn predict_step(&self, batch: &Batch) -> Result<Vec<Tensor>> {
        #[cfg(not(target_family = "wasm"))]
        return super::replicas::predict(self, self.trainer(), batch, |batch| {
            self.model.predict_step(batch)
        });
        #[cfg(target_family = "wasm")]
        self.model.predict_step(batch)
    }

    #[cfg(all(feature = "json", any(feature = "summary", feature = "mpi")))]
    fn json(&self) -> Option<String> {
        let config = self.model.get_config().ok()?;
        let known = matches!(config.class(), "Sequential" | "Functional");
        known.then(|| crate::keras::layers::written(&config, None, None).to_string())
    }
}
