//! Models of all kinds, with `compile`, `fit` and files.

use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wgrad::keras::saving::{SaveModelOptions, bindings, restore_scaling};
use wgrad::keras::{Context, CustomObjects, Functional, Layer, LayerExt, Model, Sequential};
use wgrad::saved_model::FrontPlan;
use wgrad::{Parts, Trackable};

use crate::arrays::to_tensor;
use crate::compile::{self, Given, Losses, MetricsOf, Resolved};
use crate::error::{Raise, invalid, keep, raise};
use crate::fit;
use crate::interpreter::{Release, attached};
use crate::layer::{NativeLayer, Shared};
use crate::optimizer::NativeOptimizer;
use crate::parts::variables_of;
use crate::python_layer::PyLayer;
use crate::python_model::PyModel;
use crate::symbol::{Symbol, symbols_of};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A model of any kind.
#[derive(Clone)]
pub enum Kind {
    Sequential(Arc<Sequential>),
    Functional(Functional),
    Python(Arc<PyModel>),
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
    /// The results, and the losses that layers have added.
    fn call_all(
        &self,
        xs: &[wgrad::Tensor],
        training: bool,
    ) -> wgrad::Result<(Vec<wgrad::Tensor>, Vec<wgrad::Tensor>)> {
        let losses = wgrad::keras::Losses::new();
        let cx = Context::from(training).collect(&losses);
        let results = match &self.0 {
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
        }?;
        Ok((results, losses.to_vec()))
    }
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
        Ok(NativeModel(Kind::Python(Arc::new(PyModel::new(PyLayer::weak(model)?)))))
    }

    #[pyo3(signature = (inputs, training=false))]
    fn call(
        &self,
        py: Python<'_>,
        inputs: Vec<Bound<'_, PyAny>>,
        training: bool,
    ) -> PyResult<(Vec<Tensor>, Vec<Tensor>)> {
        let inputs = inputs.iter().map(|x| to_tensor(x, None)).collect::<PyResult<Vec<_>>>()?;
        let model = self.clone();
        let (results, losses) = py.released(move || model.call_all(&inputs, training)).raised()?;
        let list = |tensors: Vec<wgrad::Tensor>| tensors.into_iter().map(Tensor).collect();
        Ok((list(results), list(losses)))
    }

    /// The names of the inputs and the outputs of a model of symbols.
    fn names(&self) -> (Vec<String>, Vec<String>) {
        match &self.0 {
            Kind::Functional(model) => {
                let owned = |names: Vec<&str>| names.into_iter().map(String::from).collect();
                (owned(model.input_names()), owned(model.output_names()))
            }
            _ => (Vec::new(), Vec::new()),
        }
    }

    /// The model as a layer of a stack.
    fn as_layer(&self) -> PyResult<NativeLayer> {
        Ok(match &self.0 {
            Kind::Sequential(model) => Shared::One(model.clone()).into(),
            Kind::Functional(model) => Shared::One(Arc::new(model.clone())).into(),
            Kind::Python(_) => return Err(python_only("as_layer")),
        })
    }

    /// The symbols of the model's results for symbols: the model is a layer of another one.
    #[pyo3(signature = (inputs, name))]
    fn on(&self, inputs: Vec<Bound<'_, Symbol>>, name: &str) -> PyResult<Vec<Symbol>> {
        let symbols = symbols_of(&inputs);
        let made = match (&self.0, &symbols[..]) {
            (Kind::Sequential(model), [x]) => model.clone().on_named(name, x).map(|y| vec![y]),
            (Kind::Functional(model), _) => bindings::model_on(model, name, symbols),
            _ => return Err(python_only("on")),
        };
        Ok(made.raised()?.into_iter().map(Symbol).collect())
    }

    /// What distinguishes the model from other parts while it lives.
    #[getter(identity)]
    fn own_identity(&self) -> (usize, usize) {
        Trackable::identity(self)
    }

    /// The names of the layers, and what distinguishes each from others.
    fn layers(&self) -> Vec<(String, (usize, usize))> {
        let list = |layers: Vec<(&str, &dyn Trackable)>| {
            layers
                .into_iter()
                .map(|(name, part)| (name.to_string(), part.identity()))
                .collect::<Vec<_>>()
        };
        match &self.0 {
            Kind::Functional(model) => list(model.layers().collect()),
            Kind::Sequential(model) => {
                model.layers().map(|(name, layer)| (name.to_string(), layer.identity())).collect()
            }
            Kind::Python(_) => Vec::new(),
        }
    }

    fn build(&self, py: Python<'_>, shape: Vec<Option<usize>>) -> PyResult<()> {
        match &self.0 {
            Kind::Sequential(model) => py.released(|| model.build(&shape[..])).raised(),
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

    /// Sets the optimizer, the losses, and the metrics of outputs. Losses are one for all outputs, a list in their order, or pairs
    /// of names and losses; of the pairs of outputs and metrics, an output is an index, a name, or `None` for the only one.
    fn compile(
        &self,
        optimizer: &Bound<'_, NativeOptimizer>,
        losses: Losses<'_>,
        metrics: Vec<MetricsOf<'_>>,
        weighted_metrics: Vec<MetricsOf<'_>>,
        loss_weights: Vec<(Option<String>, f32)>,
        run_eagerly: bool,
    ) -> PyResult<()> {
        let optimizer = Given(optimizer.get().0.clone());
        let options = compile::options(metrics, weighted_metrics, &loss_weights, run_eagerly)?;
        let losses = Resolved::new(losses)?;
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

    /// Writes a `.keras` file of a model with this config. With the settings of `compile` as JSON, it gets the optimizer's state, too,
    /// and that of what scales its loss.
    #[pyo3(signature = (path, config, settings=None, optimizer=None, scaling=None))]
    fn save(
        &self,
        py: Python<'_>,
        path: &str,
        config: &str,
        settings: Option<String>,
        optimizer: Option<&Bound<'_, NativeOptimizer>>,
        scaling: Option<&Bound<'_, NativeOptimizer>>,
    ) -> PyResult<()> {
        let options = SaveModelOptions::new()
            .compile_settings(settings)
            .optimizer(optimizer.map(|optimizer| optimizer.get().0.clone()));
        let scaling = scaling.and_then(|scaling| scaling.get().1.clone());
        py.released(|| bindings::save_described(self, config, path, &options, scaling.as_deref()))
            .raised()
    }

    /// Sets the optimizer's state to that of a file, and that of what scales its loss.
    #[pyo3(signature = (optimizer, path, scaling=None))]
    fn restore_optimizer(
        &self,
        py: Python<'_>,
        optimizer: &Bound<'_, NativeOptimizer>,
        path: &str,
        scaling: Option<&Bound<'_, NativeOptimizer>>,
    ) -> PyResult<()> {
        let optimizer = optimizer.get().0.clone();
        let scaling = scaling.and_then(|scaling| scaling.get().1.clone());
        let path = Path::new(path);
        py.released(|| restore_scaling(self, &*optimizer, scaling.as_deref(), path)).raised()
    }

    /// A SavedModel with the function `serve`, which also computes the front that a plan describes.
    #[pyo3(signature = (path, plan = None))]
    fn export(&self, py: Python<'_>, path: &str, plan: Option<&str>) -> PyResult<()> {
        let front = plan.map(FrontPlan::new).transpose().raised()?;
        let to = Path::new(path);
        match (&self.0, front) {
            (Kind::Sequential(model), None) => py.released(|| model.export(path)).raised(),
            (Kind::Functional(model), None) => py.released(|| model.export(path)).raised(),
            (Kind::Sequential(model), Some(front)) => {
                py.released(|| front.export_sequential(model, to)).raised()
            }
            (Kind::Functional(model), Some(front)) => {
                py.released(|| front.export_functional(model, to)).raised()
            }
            (Kind::Python(_), _) => Err(invalid(
                "export: a model whose class is written in Python has no shapes of its own; use tf.saved_model.save with a \
                 tf.function that has an input_signature.",
            )),
        }
    }

    /// Files of Keras (`.weights.h5`) or safetensors.
    fn save_weights(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        let model = self.clone();
        py.released(move || match path.ends_with(".h5") {
            true => wgrad::keras::saving::save_weights(&model, path),
            false => Trackable::save_weights(&model, path),
        })
        .raised()
    }

    fn load_weights(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        let model = self.clone();
        let of_keras = [".h5", ".hdf5", ".keras"].iter().any(|end| path.ends_with(end));
        py.released(move || match of_keras {
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

/// A layer of a program's class, from its config.
fn made(make: &Py<PyAny>, config: &wgrad::keras::Config) -> wgrad::Result<Arc<PyLayer>> {
    attached(|py| {
        let run = || -> PyResult<Arc<PyLayer>> {
            let text = serde_json::Value::Object(config.options().clone()).to_string();
            let layer = make.bind(py).call1((text,))?;
            Ok(Arc::new(PyLayer::new(&layer)))
        };
        run().map_err(keep)
    })
}

/// A model as JSON, with the layers for strings of a front's plan.
#[pyfunction]
pub fn front_into_json(model: &str, front: &str) -> PyResult<String> {
    wgrad::keras::front_into_json(model, front).raised()
}

/// The classes of a program: a name, whether such layers merge several inputs, and a function that makes a layer of the JSON of its
/// options.
pub fn objects(custom: &[(String, bool, Py<PyAny>)]) -> CustomObjects {
    let mut objects = CustomObjects::new();
    for (class, merges, make) in custom {
        let make = attached(|py| make.clone_ref(py));
        objects = match merges {
            true => objects.merging_layer(class, move |config| {
                made(&make, config).map(crate::python_layer::Merging)
            }),
            false => objects
                .layer(class, move |config| made(&make, config).map(crate::layer::Shared::Python)),
        };
    }
    objects
}

/// The config of the model in a `.keras` file or an old HDF5 file, as JSON with its vocabularies.
#[pyfunction]
pub fn config_of_file(py: Python<'_>, path: &str) -> PyResult<String> {
    py.released(|| bindings::config_of_file(path)).raised()
}
