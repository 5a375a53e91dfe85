//! Models: stacks and graphs of layers of the crate, and models written in Python, with `compile`, `fit` and files.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wgrad::data::Batch;
use wgrad::keras::losses::Loss;
use wgrad::keras::metrics::Metric;
use wgrad::keras::optimizers::Optimizer;
use wgrad::keras::saving::{LoadModelOptions, LoadedModel, load_model_with};
use wgrad::keras::{
    Choice, CompileOptions, Context, Functional, IntoLoss, IntoMetric, IntoOptimizer, Layer, Model,
    Sequential, StepLogs, Trainer,
};
use wgrad::{Parts, Trackable};

use crate::arrays::to_tensor;
use crate::error::{Raise, invalid, keep, raise};
use crate::fit;
use crate::layer::{NativeLayer, PyLayer, Symbol, variables_of};
use crate::optimizer::{NativeLoss, NativeMetric, NativeOptimizer};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A model of any kind.
#[derive(Clone)]
pub enum Kind {
    Sequential(Arc<Sequential>),
    Functional(Functional),
    Python(Arc<PyModel>),
}

/// A subclass of `keras.Model`, which may have steps of its own.
pub struct PyModel(Stepped);

/// The same with Keras's steps.
struct Stepped {
    layer: PyLayer,
    trainer: Trainer,
}

macro_rules! python_model {
    ($model:ty, |$this:ident| $layer:expr) => {
        impl Trackable for $model {
            fn track(&self, parts: &mut Parts<'_>) {
                let $this = self;
                $layer.track(parts);
            }

            fn kind(&self) -> &'static str {
                let $this = self;
                $layer.kind()
            }

            fn identity(&self) -> (usize, usize) {
                let $this = self;
                $layer.identity()
            }
        }

        impl Layer<[wgrad::Tensor], Vec<wgrad::Tensor>> for $model {
            fn call(
                &self,
                xs: &[wgrad::Tensor],
                cx: Context<'_>,
            ) -> wgrad::Result<Vec<wgrad::Tensor>> {
                let $this = self;
                $layer.call_all(xs, cx)
            }
        }
    };
}
python_model!(PyModel, |this| this.0.layer);
python_model!(Stepped, |this| this.layer);

impl Model<[wgrad::Tensor], Vec<wgrad::Tensor>> for Stepped {
    fn trainer(&self) -> &Trainer {
        &self.trainer
    }
}

impl PyModel {
    /// The logs of a step that the program's class defines; `None` if it does not.
    fn own_step(&self, method: &str, batch: &Batch) -> wgrad::Result<Option<StepLogs>> {
        Python::attach(|py| {
            let run = || -> PyResult<Option<Vec<(String, wgrad::Tensor)>>> {
                let list = |tensors: &[wgrad::Tensor]| {
                    tensors.iter().cloned().map(Tensor).collect::<Vec<_>>()
                };
                let data = (list(&batch.x), list(&batch.y), list(&batch.sample_weight));
                let answer = self.0.layer.get(py)?.call_method1("_wgrad_step", (method, data))?;
                if answer.is_none() {
                    return Ok(None);
                }
                let logs: Vec<(String, Bound<'_, PyAny>)> = answer.extract()?;
                logs.into_iter()
                    .map(|(name, value)| Ok((name, to_tensor(&value, None)?)))
                    .collect::<PyResult<_>>()
                    .map(Some)
            };
            let logs = run().map_err(keep)?;
            Ok(logs.map(|logs| {
                logs.iter().fold(StepLogs::new(), |logs, (name, value)| logs.add(name, value))
            }))
        })
    }
}

impl Model<[wgrad::Tensor], Vec<wgrad::Tensor>> for PyModel {
    fn trainer(&self) -> &Trainer {
        &self.0.trainer
    }

    fn train_step(&self, batch: &Batch) -> wgrad::Result<StepLogs> {
        match self.own_step("train_step", batch)? {
            Some(logs) => Ok(logs),
            None => self.0.train_step(batch),
        }
    }

    fn test_step(&self, batch: &Batch) -> wgrad::Result<StepLogs> {
        match self.own_step("test_step", batch)? {
            Some(logs) => Ok(logs),
            None => self.0.test_step(batch),
        }
    }
}

/// Runs the same code with the model of each kind.
macro_rules! each {
    ($kind:expr, $model:ident => $body:expr) => {
        match $kind {
            Kind::Sequential($model) => $body,
            Kind::Functional($model) => $body,
            Kind::Python($model) => $body,
        }
    };
}

#[pyclass(frozen, module = "wgrad")]
#[derive(Clone)]
pub struct NativeModel(pub Kind);

impl Trackable for NativeModel {
    fn track(&self, parts: &mut Parts<'_>) {
        each!(&self.0, model => model.track(parts));
    }

    fn kind(&self) -> &'static str {
        each!(&self.0, model => model.kind())
    }

    fn class(&self) -> Option<&'static wgrad::Class> {
        each!(&self.0, model => model.class())
    }

    fn identity(&self) -> (usize, usize) {
        match &self.0 {
            Kind::Sequential(model) => model.identity(),
            Kind::Functional(model) => model.identity(),
            Kind::Python(model) => model.identity(),
        }
    }
}

impl NativeModel {
    fn call_all(&self, xs: &[wgrad::Tensor], training: bool) -> wgrad::Result<Vec<wgrad::Tensor>> {
        let losses = wgrad::keras::Losses::new();
        let cx = Context::from(training).collect(&losses);
        match &self.0 {
            Kind::Sequential(model) => match xs {
                [x] => Ok(vec![Layer::<wgrad::Tensor>::call(&**model, x, cx)?]),
                _ => Err(wgrad::Error::Shape(
                    format!("Sequential takes one input; it was called with {}.", xs.len()).into(),
                )),
            },
            Kind::Functional(model) => {
                Layer::<[wgrad::Tensor], Vec<wgrad::Tensor>>::call(model, xs, cx)
            }
            Kind::Python(model) => model.call(xs, cx),
        }
    }
}

/// An optimizer, loss or metric that exists already.
struct Given<T>(T);

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
        Python::attach(|py| {
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

fn metric(value: &Bound<'_, PyAny>) -> PyResult<(String, Choice<dyn Metric>)> {
    if let Ok(metric) = value.cast::<NativeMetric>() {
        let metric = metric.get().0.clone();
        return Ok((metric.name().to_string(), Choice::Value(metric)));
    }
    if let Ok(name) = value.extract::<String>() {
        return name.as_str().into_metric().raised();
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

#[pymethods]
impl NativeModel {
    #[staticmethod]
    fn sequential(
        name: Option<&str>,
        layers: Vec<(Option<String>, Bound<'_, NativeLayer>)>,
    ) -> Self {
        let mut model = Sequential::new();
        if let Some(name) = name {
            model = model.with_name(name);
        }
        for (name, layer) in layers {
            let layer = layer.get().0.clone();
            model = match name {
                Some(name) => model.add_named(&name, layer),
                None => model.add(layer),
            };
        }
        NativeModel(Kind::Sequential(Arc::new(model)))
    }

    #[staticmethod]
    fn functional(
        name: Option<&str>,
        inputs: Vec<Bound<'_, Symbol>>,
        outputs: Vec<Bound<'_, Symbol>>,
    ) -> PyResult<Self> {
        let list = |symbols: &[Bound<'_, Symbol>]| -> Vec<_> {
            symbols.iter().map(|symbol| symbol.get().0.clone()).collect()
        };
        let mut model = Functional::new(&list(&inputs)[..], &list(&outputs)[..]).raised()?;
        if let Some(name) = name {
            model = model.with_name(name);
        }
        Ok(NativeModel(Kind::Functional(model)))
    }

    #[staticmethod]
    fn of_python(model: &Bound<'_, PyAny>) -> PyResult<Self> {
        let model = Stepped { layer: PyLayer::weak(model)?, trainer: Trainer::new() };
        Ok(NativeModel(Kind::Python(Arc::new(PyModel(model)))))
    }

    #[pyo3(signature = (inputs, training=false))]
    fn call(
        &self,
        py: Python<'_>,
        inputs: Vec<Bound<'_, PyAny>>,
        training: bool,
    ) -> PyResult<Vec<Tensor>> {
        let inputs = inputs.iter().map(|x| to_tensor(x, None)).collect::<PyResult<Vec<_>>>()?;
        let model = self.clone();
        let called = py.detach(move || model.call_all(&inputs, training)).raised()?;
        Ok(called.into_iter().map(Tensor).collect())
    }

    /// The number of inputs and outputs; 1 and 1 if any number is accepted.
    #[getter]
    fn arity(&self) -> (usize, usize) {
        match &self.0 {
            Kind::Functional(model) => (model.inputs().len(), model.outputs().len()),
            _ => (1, 1),
        }
    }

    fn build(&self, py: Python<'_>, shape: Vec<Option<usize>>) -> PyResult<()> {
        match &self.0 {
            Kind::Sequential(model) => py.detach(|| model.build(&shape[..])).raised(),
            // Built by its symbols.
            Kind::Functional(_) => Ok(()),
            Kind::Python(_) => Err(raise(wgrad::Error::Data(
                "build: a model written in Python makes its variables in its first call; call it with data.".into(),
            ))),
        }
    }

    fn variables(&self) -> Vec<(String, Variable, bool)> {
        variables_of(self)
    }

    fn set_trainable(&self, trainable: bool) {
        Trackable::set_trainable(self, trainable);
    }

    fn summary(&self) -> String {
        each!(&self.0, model => model.summary())
    }

    fn to_svg(&self) -> String {
        each!(&self.0, model => model.to_svg())
    }

    /// Sets the optimizer, the losses of the outputs, and metrics of the first output.
    fn compile(
        &self,
        optimizer: &Bound<'_, NativeOptimizer>,
        losses: Vec<Bound<'_, PyAny>>,
        metrics: Vec<Bound<'_, PyAny>>,
        weighted_metrics: Vec<Bound<'_, PyAny>>,
        loss_weights: Option<Vec<f32>>,
        run_eagerly: bool,
    ) -> PyResult<()> {
        let optimizer = Given(optimizer.get().0.clone());
        let losses =
            losses.iter().map(|value| loss(value).map(Given)).collect::<PyResult<Vec<_>>>()?;
        let list = |metrics: &[Bound<'_, PyAny>]| {
            metrics.iter().map(|value| metric(value).map(Given)).collect::<PyResult<Vec<_>>>()
        };
        let mut options = CompileOptions::new().run_eagerly(run_eagerly);
        // A list without metrics does not say which of several outputs it is for, and need not.
        if !metrics.is_empty() {
            options = options.metrics(list(&metrics)?);
        }
        if !weighted_metrics.is_empty() {
            options = options.weighted_metrics(list(&weighted_metrics)?);
        }
        if let Some(weights) = loss_weights {
            options = options.loss_weights(weights);
        }
        match &self.0 {
            Kind::Sequential(model) => {
                Model::<wgrad::Tensor>::compile(&**model, optimizer, losses, options)
            }
            Kind::Functional(model) => Model::<[wgrad::Tensor], Vec<wgrad::Tensor>>::compile(
                model, optimizer, losses, options,
            ),
            Kind::Python(model) => model.compile(optimizer, losses, options),
        }
        .raised()
    }

    /// The optimizer, after `compile` or with a loaded file.
    fn optimizer(&self) -> Option<NativeOptimizer> {
        let optimizer = match &self.0 {
            Kind::Sequential(model) => Model::<wgrad::Tensor>::trainer(&**model).optimizer(),
            Kind::Functional(model) => {
                Model::<[wgrad::Tensor], Vec<wgrad::Tensor>>::trainer(model).optimizer()
            }
            Kind::Python(model) => model.0.trainer.optimizer(),
        };
        optimizer.ok().map(NativeOptimizer)
    }

    /// Trains; the history as names with their values, and the epochs.
    #[pyo3(signature = (data, options))]
    fn fit(
        &self,
        py: Python<'_>,
        data: &Bound<'_, fit::Data>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<fit::History> {
        fit::fit(py, self, data, options)
    }

    #[pyo3(signature = (data, options))]
    fn evaluate(
        &self,
        py: Python<'_>,
        data: &Bound<'_, fit::Data>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Vec<(String, f64)>> {
        fit::evaluate(py, self, data, options)
    }

    #[pyo3(signature = (data, options))]
    fn predict<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, fit::Data>,
        options: &Bound<'py, PyDict>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        fit::predict(py, self, data, options)
    }

    /// One training step (`train`) or evaluation on a batch: names and values.
    fn on_batch(
        &self,
        py: Python<'_>,
        x: Vec<Bound<'_, PyAny>>,
        y: Vec<Bound<'_, PyAny>>,
        weights: Vec<Bound<'_, PyAny>>,
        train: bool,
    ) -> PyResult<Vec<(String, f64)>> {
        fit::on_batch(py, self, fit::batch(&x, &y, &weights)?, train)
    }

    fn to_json(&self) -> PyResult<String> {
        match &self.0 {
            Kind::Sequential(model) => model.to_json().raised(),
            Kind::Functional(model) => model.to_json().raised(),
            Kind::Python(_) => Err(python_only("to_json")),
        }
    }

    fn save(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        match &self.0 {
            Kind::Sequential(model) => py.detach(|| model.save(path)).raised(),
            Kind::Functional(model) => py.detach(|| model.save(path)).raised(),
            Kind::Python(_) => Err(python_only("save")),
        }
    }

    /// Files of Keras (`.weights.h5`) or safetensors.
    fn save_weights(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        let model = self.clone();
        py.detach(move || match path.ends_with(".h5") {
            true => wgrad::keras::saving::save_weights(&model, path),
            false => Trackable::save_weights(&model, path),
        })
        .raised()
    }

    fn load_weights(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        let model = self.clone();
        py.detach(move || match path.ends_with(".h5") {
            true => wgrad::keras::saving::load_weights(&model, path),
            false => Trackable::load_weights(&model, path),
        })
        .raised()
    }
}

fn python_only(call: &str) -> PyErr {
    invalid(format!(
        "{call}: a model whose class is written in Python has no config. Use save_weights and load_weights, or \
         tf.train.Checkpoint."
    ))
}

/// A `.keras` file, or Keras's JSON, as a model. Custom layers are made by `make` from their configs.
#[pyfunction]
#[pyo3(signature = (path=None, json=None, compile=true))]
pub fn load(
    py: Python<'_>,
    path: Option<&str>,
    json: Option<&str>,
    compile: bool,
) -> PyResult<NativeModel> {
    let loaded = match (path, json) {
        (Some(path), _) => py
            .detach(|| load_model_with(path, LoadModelOptions::new().compile(compile)))
            .raised()?,
        (None, Some(text)) => {
            let value: serde_json::Value = serde_json::from_str(text)
                .map_err(|error| invalid(format!("from_json: {error}")))?;
            match value["class_name"].as_str() {
                Some("Sequential") => {
                    LoadedModel::Sequential(Sequential::from_json(text).raised()?)
                }
                _ => LoadedModel::Functional(Functional::from_json(text).raised()?),
            }
        }
        (None, None) => return Err(invalid("load: neither a path nor JSON was given.")),
    };
    Ok(NativeModel(match loaded {
        LoadedModel::Sequential(model) => Kind::Sequential(Arc::new(model)),
        LoadedModel::Functional(model) => Kind::Functional(model),
        _ => {
            return Err(invalid(
                "load: the file has a model of a kind that this version does not know.",
            ));
        }
    }))
}
