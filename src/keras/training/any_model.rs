//! Models of all types as one, so that the loops are compiled once.

use std::marker::PhantomData;

use super::Model;
use super::logs::StepLogs;
use super::trainer::Trainer;
use crate::data::Batch;
use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable};

/// A model, whatever its inputs and outputs are.
pub(crate) trait AnyModel: Trackable {
    fn trainer(&self) -> &Trainer;
    fn output_names(&self) -> Vec<String>;
    /// The outputs, and the mask of a single one.
    fn call_all(&self, inputs: &[Tensor], cx: Context<'_>)
    -> Result<(Vec<Tensor>, Option<Tensor>)>;
    fn train_step(&self, batch: &Batch) -> Result<StepLogs>;
    fn test_step(&self, batch: &Batch) -> Result<StepLogs>;
    fn predict_step(&self, batch: &Batch) -> Result<Vec<Tensor>>;
}

/// A model whose type is forgotten.
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

    fn call_all(
        &self,
        inputs: &[Tensor],
        cx: Context<'_>,
    ) -> Result<(Vec<Tensor>, Option<Tensor>)> {
        self.model.call_all(inputs, cx)
    }

    fn train_step(&self, batch: &Batch) -> Result<StepLogs> {
        self.model.train_step(batch)
    }

    fn test_step(&self, batch: &Batch) -> Result<StepLogs> {
        self.model.test_step(batch)
    }

    fn predict_step(&self, batch: &Batch) -> Result<Vec<Tensor>> {
        self.model.predict_step(batch)
    }
}

/// What a model's `call` takes, made of the tensors of a batch: one, an array, a pair, a slice.
pub trait Inputs {
    /// Calls `model` with them.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are more tensors or fewer; else the errors of `model`.
    fn with<R>(inputs: &[Tensor], model: impl FnOnce(&Self) -> Result<R>) -> Result<R>;
}

fn wrong_count(wanted: usize, given: usize) -> Error {
    Error::Shape(message!(
        "the model takes {wanted} inputs, and the batch has {given}. Give x as a tuple or an array of {wanted}."
    ))
}

impl Inputs for Tensor {
    fn with<R>(inputs: &[Tensor], model: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        match inputs {
            [only] => model(only),
            _ => Err(Error::Shape(message!(
                "the model takes one input, and the batch has {}. Join them, or write impl Layer<[Tensor; {}]> and \
                 impl Model<[Tensor; {}]> for the model.",
                inputs.len(),
                inputs.len(),
                inputs.len()
            ))),
        }
    }
}

impl<const N: usize> Inputs for [Tensor; N] {
    fn with<R>(inputs: &[Tensor], model: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        let array = inputs.to_vec().try_into();
        model(&array.map_err(|list: Vec<Tensor>| wrong_count(N, list.len()))?)
    }
}

impl Inputs for (Tensor, Tensor) {
    fn with<R>(inputs: &[Tensor], model: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        match inputs {
            [a, b] => model(&(a.clone(), b.clone())),
            _ => Err(wrong_count(2, inputs.len())),
        }
    }
}

impl Inputs for [Tensor] {
    fn with<R>(inputs: &[Tensor], model: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        model(inputs)
    }
}

/// What a model's `call` returns: one tensor, an array, a pair, a vector.
pub trait Outputs {
    /// The tensors in order.
    fn into_list(self) -> Vec<Tensor>;
}

impl Outputs for Tensor {
    fn into_list(self) -> Vec<Tensor> {
        vec![self]
    }
}

impl<const N: usize> Outputs for [Tensor; N] {
    fn into_list(self) -> Vec<Tensor> {
        self.into()
    }
}

impl Outputs for (Tensor, Tensor) {
    fn into_list(self) -> Vec<Tensor> {
        vec![self.0, self.1]
    }
}

impl Outputs for Vec<Tensor> {
    fn into_list(self) -> Vec<Tensor> {
        self
    }
}
