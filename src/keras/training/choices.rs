//! The arguments of `compile`: optimizers, losses and metrics, as values or by Keras's names.

use std::sync::Arc;

use crate::error::Result;
use crate::keras::losses::{self, Loss};
use crate::keras::metrics::{self, Metric};
use crate::keras::optimizers::{self, Optimizer};
use crate::tensor::Tensor;

/// An optimizer, or the name of one with Keras's defaults: `"adam"`.
pub trait IntoOptimizer {
    /// Converts to the optimizer.
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) if the name is unknown.
    fn into_optimizer(self) -> Result<Arc<dyn Optimizer>>;
}

impl<O: Optimizer + 'static> IntoOptimizer for O {
    fn into_optimizer(self) -> Result<Arc<dyn Optimizer>> {
        Ok(Arc::new(self))
    }
}

impl IntoOptimizer for &str {
    fn into_optimizer(self) -> Result<Arc<dyn Optimizer>> {
        Ok(optimizers::get(self)?.into())
    }
}

/// A choice, or a function that makes it once truth and predictions are known. A function, so that a program that uses no names
/// does not contain everything that has a name.
pub enum Choice<T: ?Sized> {
    /// This value.
    Value(Arc<T>),
    /// The value that this function creates for the first batch.
    ByShapes(fn(&Tensor, &Tensor) -> Result<Box<T>>),
}

impl<T: ?Sized> std::fmt::Debug for Choice<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Choice::Value(_) => "Choice::Value(..)",
            Choice::ByShapes(_) => "Choice::ByShapes(..)",
        })
    }
}

impl<T: ?Sized> Clone for Choice<T> {
    fn clone(&self) -> Self {
        match self {
            Choice::Value(value) => Choice::Value(value.clone()),
            Choice::ByShapes(make) => Choice::ByShapes(*make),
        }
    }
}

impl<T: ?Sized> Choice<T> {
    pub(super) fn resolve(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Arc<T>> {
        match self {
            Choice::Value(value) => Ok(value.clone()),
            Choice::ByShapes(make) => Ok(make(y_true, y_pred)?.into()),
        }
    }
}

/// A loss: a value, a closure, or a name. `"crossentropy"` selects the cross-entropy that fits truth and predictions.
pub trait IntoLoss {
    /// Converts to the loss.
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) if the name is unknown.
    fn into_loss(self) -> Result<Choice<dyn Loss>>;
}

impl<L: Loss + 'static> IntoLoss for L {
    fn into_loss(self) -> Result<Choice<dyn Loss>> {
        Ok(Choice::Value(Arc::new(self)))
    }
}

/// What Keras infers from the shapes: one prediction for each example, or a label rather than a distribution.
fn kind_of(y_true: &Tensor, y_pred: &Tensor) -> &'static str {
    let last = |x: &Tensor| x.shape().last().copied().unwrap_or(1);
    let sparse = y_true.rank() < y_pred.rank() || (last(y_true) == 1 && last(y_pred) > 1);
    match (last(y_pred) == 1, sparse) {
        (true, _) => "binary",
        (false, true) => "sparse_categorical",
        (false, false) => "categorical",
    }
}

impl IntoLoss for &str {
    fn into_loss(self) -> Result<Choice<dyn Loss>> {
        match self.to_lowercase().as_str() {
            "crossentropy" | "ce" => Ok(Choice::ByShapes(|y_true, y_pred| {
                losses::get(&format!("{}_crossentropy", kind_of(y_true, y_pred)))
            })),
            _ => Ok(Choice::Value(losses::get(self)?.into())),
        }
    }
}

/// A metric: a value or a name. `"accuracy"` selects the accuracy that fits truth and predictions.
pub trait IntoMetric {
    /// Converts to the metric, and its name in logs.
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) if the name is unknown.
    fn into_metric(self) -> Result<(String, Choice<dyn Metric>)>;
}

impl<M: Metric + 'static> IntoMetric for M {
    fn into_metric(self) -> Result<(String, Choice<dyn Metric>)> {
        Ok((self.name().to_string(), Choice::Value(Arc::new(self))))
    }
}

impl IntoMetric for &str {
    fn into_metric(self) -> Result<(String, Choice<dyn Metric>)> {
        let choice = match self.to_lowercase().as_str() {
            "accuracy" | "acc" => Choice::ByShapes(|y_true: &Tensor, y_pred: &Tensor| {
                metrics::get(&format!("{}_accuracy", kind_of(y_true, y_pred)))
            }),
            _ => Choice::Value(metrics::get(self)?.into()),
        };
        Ok((self.to_string(), choice))
    }
}

/// The losses of a model's outputs.
pub struct OutputLosses(pub(super) LossesOf);

impl std::fmt::Debug for OutputLosses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutputLosses").finish_non_exhaustive()
    }
}

pub(super) enum LossesOf {
    /// The same for every output.
    All(Choice<dyn Loss>),
    /// One for each output, in order.
    InOrder(Vec<Choice<dyn Loss>>),
    /// One for each named output.
    Named(Vec<(String, Choice<dyn Loss>)>),
}

/// The losses of a model: one; for several outputs a tuple, an array or a `Vec`, in the order of the outputs or with their
/// names: `[("class", "sparse_categorical_crossentropy"), ("box", "mse")]`.
pub trait IntoLosses {
    /// Converts to the losses.
    ///
    /// # Errors
    /// Same as [`IntoLoss::into_loss`].
    fn into_losses(self) -> Result<OutputLosses>;
}

impl<L: IntoLoss> IntoLosses for L {
    fn into_losses(self) -> Result<OutputLosses> {
        Ok(OutputLosses(LossesOf::All(self.into_loss()?)))
    }
}

fn in_order<L: IntoLoss>(losses: impl IntoIterator<Item = L>) -> Result<OutputLosses> {
    let losses = losses.into_iter().map(L::into_loss).collect::<Result<_>>()?;
    Ok(OutputLosses(LossesOf::InOrder(losses)))
}

fn named<'a, L: IntoLoss>(losses: impl IntoIterator<Item = (&'a str, L)>) -> Result<OutputLosses> {
    let one = |(name, loss): (&str, L)| Ok((name.to_string(), loss.into_loss()?));
    Ok(OutputLosses(LossesOf::Named(losses.into_iter().map(one).collect::<Result<_>>()?)))
}

impl<L: IntoLoss> IntoLosses for Vec<L> {
    fn into_losses(self) -> Result<OutputLosses> {
        in_order(self)
    }
}

impl<L: IntoLoss, const N: usize> IntoLosses for [L; N] {
    fn into_losses(self) -> Result<OutputLosses> {
        in_order(self)
    }
}

impl<L: IntoLoss> IntoLosses for Vec<(&str, L)> {
    fn into_losses(self) -> Result<OutputLosses> {
        named(self)
    }
}

impl<L: IntoLoss, const N: usize> IntoLosses for [(&str, L); N] {
    fn into_losses(self) -> Result<OutputLosses> {
        named(self)
    }
}

/// Several metrics: one, a tuple, an array or a `Vec` of values or names.
pub trait IntoMetrics {
    /// Converts to the metrics in order, with their names in logs.
    ///
    /// # Errors
    /// Same as [`IntoMetric::into_metric`].
    fn into_metrics(self) -> Result<Vec<(String, Choice<dyn Metric>)>>;
}

impl<M: IntoMetric> IntoMetrics for M {
    fn into_metrics(self) -> Result<Vec<(String, Choice<dyn Metric>)>> {
        Ok(vec![self.into_metric()?])
    }
}

impl<M: IntoMetric> IntoMetrics for Vec<M> {
    fn into_metrics(self) -> Result<Vec<(String, Choice<dyn Metric>)>> {
        self.into_iter().map(M::into_metric).collect()
    }
}

impl<M: IntoMetric, const N: usize> IntoMetrics for [M; N] {
    fn into_metrics(self) -> Result<Vec<(String, Choice<dyn Metric>)>> {
        self.into_iter().map(M::into_metric).collect()
    }
}

macro_rules! tuples {
    ($(($($item:ident),+))*) => {$(
        impl<$($item: IntoLoss),+> IntoLosses for ($($item,)+) {
            #[allow(non_snake_case)]
            fn into_losses(self) -> Result<OutputLosses> {
                let ($($item,)+) = self;
                Ok(OutputLosses(LossesOf::InOrder(vec![$($item.into_loss()?),+])))
            }
        }

        impl<$($item: IntoMetric),+> IntoMetrics for ($($item,)+) {
            #[allow(non_snake_case)]
            fn into_metrics(self) -> Result<Vec<(String, Choice<dyn Metric>)>> {
                let ($($item,)+) = self;
                Ok(vec![$($item.into_metric()?),+])
            }
        }
    )*};
}
// Tuples may mix names and values.
tuples!((A)(A, B)(A, B, C)(A, B, C, D)(A, B, C, D, E)(A, B, C, D, E, F));
