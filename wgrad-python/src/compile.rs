//! What `compile` takes: losses and metrics by name, of the crate, or written in Python.

use std::sync::Arc;

use pyo3::prelude::*;
use wgrad::keras::losses::Loss;
use wgrad::keras::metrics::Metric;
use wgrad::keras::optimizers::Optimizer;
use wgrad::keras::{
    Choice, CompileOptions, IntoLoss, IntoLosses, IntoMetric, IntoOptimizer, OutputLosses,
};
use wgrad::{Parts, Trackable};

use crate::arrays::to_tensor;
use crate::error::{Raise, invalid, keep};
use crate::interpreter::attached;
use crate::optimizer::{NativeLoss, NativeMetric};
use crate::python_layer::PyLayer;
use crate::tensor::Tensor;

/// An optimizer, loss or metric that exists already.
pub struct Given<T>(pub T);

impl IntoOptimizer for Given<Arc<dyn Optimizer>> {
    fn into_optimizer(self) -> wgrad::Result<Arc<dyn Optimizer>> {
        Ok(self.0)
    }
}

impl IntoLoss for Given<Choice<dyn Loss>> {
    fn into_loss(self) -> wgrad::Result<Choice<dyn Loss>> {
        Ok(self.0)
    }
}

impl IntoMetric for Given<(String, Choice<dyn Metric>)> {
    fn into_metric(self) -> wgrad::Result<(String, Choice<dyn Metric>)> {
        Ok(self.0)
    }
}

/// A loss that a program wrote in Python: a function of `y_true` and `y_pred` whose result is averaged.
struct PyLoss {
    name: String,
    function: Py<PyAny>,
}

impl Loss for PyLoss {
    fn name(&self) -> &str {
        &self.name
    }

    fn losses(
        &self,
        y_true: &wgrad::Tensor,
        y_pred: &wgrad::Tensor,
    ) -> wgrad::Result<wgrad::Tensor> {
        attached(|py| {
            let run = || -> PyResult<wgrad::Tensor> {
                let arguments = (Tensor(y_true.clone()), Tensor(y_pred.clone()));
                to_tensor(&self.function.bind(py).call1(arguments)?, None)
            };
            run().map_err(keep)
        })
    }
}

fn loss(value: &Bound<'_, PyAny>) -> PyResult<Choice<dyn Loss>> {
    if let Ok(loss) = value.cast::<NativeLoss>() {
        return Ok(Choice::Value(loss.get().0.clone()));
    }
    if let Ok(name) = value.extract::<String>() {
        return name.as_str().into_loss().raised();
    }
    if value.is_callable() {
        let name = value
            .getattr("__name__")
            .and_then(|name| name.extract())
            .unwrap_or_else(|_| "loss".to_string());
        return Ok(Choice::Value(Arc::new(PyLoss { name, function: value.clone().unbind() })));
    }
    Err(invalid(format!(
        "compile: {value} is no loss; use a name, a keras.losses.Loss or a function of y_true and y_pred."
    )))
}

/// A metric whose class is written in Python: `update_state`, `result` and `reset_state`.
struct PyMetric {
    name: String,
    object: Arc<PyLayer>,
}

impl Trackable for PyMetric {
    fn track(&self, parts: &mut Parts<'_>) {
        self.object.track(parts);
    }

    fn kind(&self) -> &'static str {
        self.object.kind()
    }
}

impl Metric for PyMetric {
    fn name(&self) -> &str {
        &self.name
    }

    fn update(
        &self,
        y_true: &wgrad::Tensor,
        y_pred: &wgrad::Tensor,
        sample_weight: Option<&wgrad::Tensor>,
    ) -> wgrad::Result<()> {
        attached(|py| {
            let run = || -> PyResult<()> {
                let weight = sample_weight.cloned().map(Tensor);
                let arguments = (Tensor(y_true.clone()), Tensor(y_pred.clone()), weight);
                self.object.get(py)?.call_method1("update_state", arguments).map(drop)
            };
            run().map_err(keep)
        })
    }

    fn result(&self) -> wgrad::Result<wgrad::Tensor> {
        attached(|py| {
            let run = || to_tensor(&self.object.get(py)?.call_method0("result")?, None);
            run().map_err(keep)
        })
    }

    fn reset_state(&self) -> wgrad::Result<()> {
        attached(|py| {
            let run = || self.object.get(py)?.call_method0("reset_state").map(drop);
            run().map_err(keep)
        })
    }
}

fn metric(value: &Bound<'_, PyAny>) -> PyResult<(String, Choice<dyn Metric>)> {
    if let Ok(metric) = value.cast::<NativeMetric>() {
        let metric = metric.get().0.clone();
        return Ok((metric.name().to_string(), Choice::Value(metric)));
    }
    if let Ok(name) = value.extract::<String>() {
        return name.as_str().into_metric().raised();
    }
    if value.hasattr("update_state")? {
        let name: String = value.getattr("name")?.extract()?;
        let object = Arc::new(PyLayer::new(value));
        let metric: Arc<dyn Metric> = Arc::new(PyMetric { name: name.clone(), object });
        return Ok((name, Choice::Value(metric)));
    }
    if value.is_callable() {
        let name: String = value
            .getattr("__name__")
            .and_then(|name| name.extract())
            .unwrap_or_else(|_| "metric".to_string());
        let loss = PyLoss { name: name.clone(), function: value.clone().unbind() };
        let metric = wgrad::keras::metrics::MeanMetricWrapper::new(name.clone(), loss);
        return Ok((name, Choice::Value(Arc::new(metric))));
    }
    Err(invalid(format!(
        "compile: {value} is no metric; use a name, a keras.metrics.Metric or a function of y_true and y_pred."
    )))
}

/// The argument `loss` of `compile`.
#[derive(FromPyObject)]
pub enum Losses<'py> {
    Named(Vec<(String, Bound<'py, PyAny>)>),
    InOrder(Vec<Bound<'py, PyAny>>),
}

/// An output of a model.
#[derive(FromPyObject)]
pub enum OutputName {
    At(usize),
    Named(String),
}

pub type MetricsOf<'py> = (Option<OutputName>, Vec<Bound<'py, PyAny>>);

/// The losses as the crate takes them.
pub enum Resolved {
    Named(Vec<(String, Choice<dyn Loss>)>),
    InOrder(Vec<Choice<dyn Loss>>),
}

impl Resolved {
    pub fn new(losses: Losses<'_>) -> PyResult<Self> {
        Ok(match losses {
            Losses::Named(losses) => Resolved::Named(
                losses
                    .iter()
                    .map(|(name, value)| Ok((name.clone(), loss(value)?)))
                    .collect::<PyResult<_>>()?,
            ),
            Losses::InOrder(losses) => {
                Resolved::InOrder(losses.iter().map(loss).collect::<PyResult<_>>()?)
            }
        })
    }
}

impl IntoLosses for Resolved {
    fn into_losses(self) -> wgrad::Result<OutputLosses> {
        match self {
            Resolved::Named(losses) => {
                let pairs: Vec<(&str, Given<Choice<dyn Loss>>)> =
                    losses.iter().map(|(name, loss)| (&**name, Given(loss.clone()))).collect();
                pairs.into_losses()
            }
            Resolved::InOrder(mut losses) => match (losses.len(), losses.pop()) {
                (1, Some(loss)) => Given(loss).into_losses(),
                (_, last) => {
                    losses.into_iter().chain(last).map(Given).collect::<Vec<_>>().into_losses()
                }
            },
        }
    }
}

/// The options of `compile`. Of the pairs of outputs and metrics, an output is an index, a name, or `None` for the only one.
pub fn options(
    metrics: Vec<MetricsOf<'_>>,
    weighted_metrics: Vec<MetricsOf<'_>>,
    loss_weights: &[(Option<String>, f32)],
    run_eagerly: bool,
) -> PyResult<CompileOptions> {
    // The package wraps the optimizer of a model that computes in half precision, so that the program sees it.
    let mut options = CompileOptions::new().run_eagerly(run_eagerly).auto_scale_loss(false);
    for (weighted, of) in [(false, metrics), (true, weighted_metrics)] {
        for (output, list) in of {
            let list =
                list.iter().map(|value| metric(value).map(Given)).collect::<PyResult<Vec<_>>>()?;
            options = match (output, weighted) {
                (None, false) => options.metrics(list),
                (None, true) => options.weighted_metrics(list),
                (Some(OutputName::At(at)), false) => options.metrics_of(at, list),
                (Some(OutputName::At(at)), true) => options.weighted_metrics_of(at, list),
                (Some(OutputName::Named(name)), false) => options.metrics_of(&*name, list),
                (Some(OutputName::Named(name)), true) => options.weighted_metrics_of(&*name, list),
            };
        }
    }
    let in_order: Vec<f32> = loss_weights
        .iter()
        .filter_map(|(name, weight)| name.is_none().then_some(*weight))
        .collect();
    if !in_order.is_empty() {
        options = options.loss_weights(in_order);
    }
    for (name, weight) in loss_weights {
        if let Some(name) = name {
            options = options.loss_weight_of(name, *weight);
        }
    }
    Ok(options)
}
