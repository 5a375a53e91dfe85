//! [`LoadedModel`]: a model of either kind, as a file specifies.

use crate::error::{Error, Result, message};
use crate::keras::{Functional, Model, Sequential, Trainer};
use crate::tensor::Tensor;
use crate::trackable::{Class, Parts, Trackable};

/// A model loaded from a file, of the kind that the file specifies.
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadedModel {
    /// A stack of layers.
    Sequential(Sequential),
    /// A graph of layers.
    Functional(Functional),
}

impl LoadedModel {
    /// Returns the stack of layers.
    ///
    /// # Errors
    /// [`Error::Data`] if the file contained a functional model.
    pub fn sequential(self) -> Result<Sequential> {
        match self {
            LoadedModel::Sequential(model) => Ok(model),
            LoadedModel::Functional(_) => Err(Error::Data(message!(
                "load_model: the file holds a functional model, and a Sequential was requested. Call functional()."
            ))),
        }
    }

    /// Returns the graph of layers.
    ///
    /// # Errors
    /// [`Error::Data`] if the file contained a stack of layers.
    pub fn functional(self) -> Result<Functional> {
        match self {
            LoadedModel::Functional(model) => Ok(model),
            LoadedModel::Sequential(_) => Err(Error::Data(message!(
                "load_model: the file holds a Sequential, and a functional model was requested. Call sequential()."
            ))),
        }
    }

    pub(super) fn trainer(&self) -> &Trainer {
        match self {
            LoadedModel::Sequential(model) => Model::<Tensor>::trainer(model),
            LoadedModel::Functional(model) => Model::<[Tensor], Vec<Tensor>>::trainer(model),
        }
    }
}

impl Trackable for LoadedModel {
    fn track(&self, parts: &mut Parts<'_>) {
        match self {
            LoadedModel::Sequential(model) => model.track(parts),
            LoadedModel::Functional(model) => model.track(parts),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            LoadedModel::Sequential(model) => model.kind(),
            LoadedModel::Functional(model) => model.kind(),
        }
    }

    fn title(&self) -> String {
        match self {
            LoadedModel::Sequential(model) => model.title(),
            LoadedModel::Functional(model) => model.title(),
        }
    }

    fn class(&self) -> Option<&'static Class> {
        match self {
            LoadedModel::Sequential(model) => model.class(),
            LoadedModel::Functional(model) => model.class(),
        }
    }
}
