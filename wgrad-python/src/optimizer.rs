//! Optimizers, losses and metrics from Keras's classes and options.

use std::sync::Arc;

use pyo3::prelude::*;
use wgrad::keras::losses::Loss;
use wgrad::keras::metrics::Metric;
use wgrad::keras::optimizers::{LossScaleOptimizer, Optimizer};
use wgrad::keras::{losses, metrics, optimizers};
use wgrad::{Parts, Trackable};

use crate::arrays::to_tensor;
use crate::error::Raise;
use crate::interpreter::Release;
use crate::layer::config_of;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// An optimizer from its name, or from the JSON of Keras's config.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeOptimizer(pub Arc<dyn Optimizer>, pub Option<Arc<Scaling>>);

/// An optimizer of a model that computes in half precision.
type Scaling = LossScaleOptimizer<Arc<dyn Optimizer>>;

impl From<Arc<dyn Optimizer>> for NativeOptimizer {
    fn from(optimizer: Arc<dyn Optimizer>) -> Self {
        NativeOptimizer(optimizer, None)
    }
}

#[pymethods]
impl NativeOptimizer {
    #[new]
    fn new(config: &str) -> PyResult<Self> {
        let made = match config.starts_with('{') {
            true => config_of(config).and_then(|config| optimizers::from_config(&config)),
            false => optimizers::get(config),
        };
        Ok(NativeOptimizer(Arc::from(made.raised()?), None))
    }

    /// The same optimizer for losses that are scaled.
    fn scaling(&self, initial_scale: f64, dynamic_growth_steps: u32) -> Self {
        let scaling = LossScaleOptimizer::new(self.0.clone())
            .initial_scale(initial_scale)
            .dynamic_growth_steps(dynamic_growth_steps);
        let scaling = Arc::new(scaling);
        NativeOptimizer(scaling.clone(), Some(scaling))
    }

    /// The loss of which gradients are computed.
    fn scale_loss(&self, loss: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        self.0.scale_loss(&to_tensor(loss, None)?).map(Tensor).raised()
    }

    /// The scale of the next step, if losses are scaled.
    fn dynamic_scale(&self) -> PyResult<Option<Tensor>> {
        let scale = self.1.as_ref().map(|scaling| scaling.dynamic_scale());
        Ok(scale.transpose().raised()?.map(Tensor))
    }

    /// Names, variables, and whether training changes them.
    fn variables(&self) -> Vec<(String, Variable, bool)> {
        crate::parts::variables_of(&self.0)
    }

    fn apply(
        &self,
        py: Python<'_>,
        gradients: Vec<Option<Bound<'_, Tensor>>>,
        variables: Vec<Bound<'_, Variable>>,
    ) -> PyResult<()> {
        let gradients: Vec<_> =
            gradients.iter().map(|g| g.as_ref().map(|g| g.get().0.clone())).collect();
        let variables: Vec<_> = variables.iter().map(|v| v.get().0.clone()).collect();
        py.released(|| self.0.apply_gradients(&gradients, &variables)).raised()
    }

    /// Creates the slots of the variables.
    fn build(&self, py: Python<'_>, variables: Vec<Bound<'_, Variable>>) -> PyResult<()> {
        let variables: Vec<_> = variables.iter().map(|v| v.get().0.clone()).collect();
        py.released(|| self.0.build(&variables)).raised()
    }

    #[getter]
    fn iterations(&self) -> u64 {
        self.0.iterations()
    }

    fn set_iterations(&self, iterations: u64) {
        self.0.set_iterations(iterations);
    }

    #[getter]
    fn learning_rate(&self) -> f32 {
        self.0.learning_rate()
    }

    fn set_learning_rate(&self, learning_rate: f32) -> PyResult<()> {
        self.0.set_learning_rate(learning_rate).raised()
    }

    #[getter]
    fn name(&self) -> String {
        self.0.name()
    }
}

/// A loss from its name, or from the JSON of Keras's config.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeLoss(pub Arc<dyn Loss>);

#[pymethods]
impl NativeLoss {
    #[new]
    fn new(config: &str) -> PyResult<Self> {
        let made = match config.starts_with('{') {
            true => config_of(config).and_then(|config| losses::from_config(&config)),
            false => losses::get(config),
        };
        Ok(NativeLoss(Arc::from(made.raised()?)))
    }

    #[pyo3(signature = (y_true, y_pred, sample_weight=None))]
    fn __call__(
        &self,
        y_true: &Bound<'_, PyAny>,
        y_pred: &Bound<'_, PyAny>,
        sample_weight: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Tensor> {
        let (y_true, y_pred) = (to_tensor(y_true, None)?, to_tensor(y_pred, None)?);
        let weight = sample_weight.map(|w| to_tensor(w, Some(wgrad::DType::F32))).transpose()?;
        match weight {
            None => self.0.call(&y_true, &y_pred),
            weight => self.0.call_weighted(&y_true, &y_pred, weight.as_ref()),
        }
        .map(Tensor)
        .raised()
    }
}

/// A metric from its name, or from the JSON of Keras's config.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeMetric(pub Arc<dyn Metric>);

#[pymethods]
impl NativeMetric {
    #[new]
    fn new(config: &str) -> PyResult<Self> {
        let made = match config.starts_with('{') {
            true => config_of(config).and_then(|config| metrics::from_config(&config)),
            false => metrics::get(config),
        };
        Ok(NativeMetric(Arc::from(made.raised()?)))
    }

    #[getter]
    fn name(&self) -> String {
        self.0.name().to_string()
    }

    #[pyo3(signature = (y_true, y_pred, sample_weight=None))]
    fn update(
        &self,
        py: Python<'_>,
        y_true: &Bound<'_, PyAny>,
        y_pred: &Bound<'_, PyAny>,
        sample_weight: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (y_true, y_pred) = (to_tensor(y_true, None)?, to_tensor(y_pred, None)?);
        let weight = sample_weight.map(|w| to_tensor(w, Some(wgrad::DType::F32))).transpose()?;
        // Replicas of a strategy may wait for each other in all of these.
        py.released(|| self.0.update(&y_true, &y_pred, weight.as_ref())).raised()
    }

    fn result(&self, py: Python<'_>) -> PyResult<Tensor> {
        py.released(|| self.0.result()).map(Tensor).raised()
    }

    fn reset_state(&self, py: Python<'_>) -> PyResult<()> {
        py.released(|| self.0.reset_state()).raised()
    }
}

/// `Mean` or `Sum` of the values that it is given.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeMean(Accumulated);

enum Accumulated {
    Mean(metrics::Mean),
    Sum(metrics::Sum),
}

impl Trackable for NativeMean {
    fn track(&self, parts: &mut Parts<'_>) {
        match &self.0 {
            Accumulated::Mean(mean) => mean.track(parts),
            Accumulated::Sum(sum) => sum.track(parts),
        }
    }

    fn kind(&self) -> &'static str {
        match &self.0 {
            Accumulated::Mean(mean) => mean.kind(),
            Accumulated::Sum(sum) => sum.kind(),
        }
    }
}

#[pymethods]
impl NativeMean {
    #[new]
    fn new(name: &str, sums: bool) -> Self {
        NativeMean(match sums {
            true => Accumulated::Sum(metrics::Sum::new(name)),
            false => Accumulated::Mean(metrics::Mean::new(name)),
        })
    }

    #[pyo3(signature = (values, sample_weight=None))]
    fn update(
        &self,
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        sample_weight: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let values = to_tensor(values, None)?;
        let weight = sample_weight.map(|w| to_tensor(w, Some(wgrad::DType::F32))).transpose()?;
        py.released(|| match &self.0 {
            Accumulated::Mean(mean) => mean.update(&values, weight.as_ref()),
            Accumulated::Sum(sum) => sum.update(&values, weight.as_ref()),
        })
        .raised()
    }

    fn result(&self, py: Python<'_>) -> PyResult<Tensor> {
        py.released(|| match &self.0 {
            Accumulated::Mean(mean) => mean.result(),
            Accumulated::Sum(sum) => sum.result(),
        })
        .map(Tensor)
        .raised()
    }

    fn reset_state(&self, py: Python<'_>) -> PyResult<()> {
        py.released(|| match &self.0 {
            Accumulated::Mean(mean) => mean.reset_state(),
            Accumulated::Sum(sum) => sum.reset_state(),
        })
        .raised()
    }
}
