//! Layers: the crate's, from Keras's configs, and those that a program writes in Python, as layers of the crate.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyWeakrefReference};
use wgrad::keras::layers::{layer_from_config, merging_layer_from_config};
use wgrad::keras::{Config, Context, Input, Layer, LayerExt, SymbolicTensor};
use wgrad::{Parts, Trackable};

use crate::arrays::to_tensor;
use crate::error::{Raise, invalid, keep};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A layer that several models may share.
#[derive(Clone)]
pub enum Shared {
    One(Arc<dyn Layer>),
    Many(Arc<dyn Layer<[wgrad::Tensor]>>),
    Python(Arc<PyLayer>),
}

impl Trackable for Shared {
    fn track(&self, parts: &mut Parts<'_>) {
        match self {
            Shared::One(layer) => layer.track(parts),
            Shared::Many(layer) => layer.track(parts),
            Shared::Python(layer) => layer.track(parts),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Shared::One(layer) => layer.kind(),
            Shared::Many(layer) => layer.kind(),
            Shared::Python(layer) => layer.kind(),
        }
    }

    fn class(&self) -> Option<&'static wgrad::Class> {
        match self {
            Shared::One(layer) => layer.class(),
            Shared::Many(layer) => layer.class(),
            Shared::Python(_) => None,
        }
    }

    fn title(&self) -> String {
        match self {
            Shared::One(layer) => layer.title(),
            Shared::Many(layer) => layer.title(),
            Shared::Python(layer) => layer.title(),
        }
    }

    fn makes_mask(&self) -> bool {
        match self {
            Shared::One(layer) => layer.makes_mask(),
            Shared::Many(layer) => layer.makes_mask(),
            Shared::Python(_) => false,
        }
    }

    fn identity(&self) -> (usize, usize) {
        match self {
            Shared::One(layer) => layer.identity(),
            Shared::Many(layer) => layer.identity(),
            Shared::Python(layer) => layer.identity(),
        }
    }
}

fn several(layer: &Shared) -> wgrad::Error {
    wgrad::Error::Shape(
        format!("{} merges a list of inputs; it was called with one.", layer.kind()).into(),
    )
}

impl Layer for Shared {
    fn call(&self, x: &wgrad::Tensor, cx: Context<'_>) -> wgrad::Result<wgrad::Tensor> {
        match self {
            Shared::One(layer) => layer.call(x, cx),
            Shared::Many(layer) => layer.call(std::slice::from_ref(x), cx),
            Shared::Python(layer) => one(layer.call_all(std::slice::from_ref(x), cx)?),
        }
    }

    fn compute_mask(
        &self,
        x: &wgrad::Tensor,
        mask: Option<&wgrad::Tensor>,
    ) -> wgrad::Result<Option<wgrad::Tensor>> {
        match self {
            Shared::One(layer) => layer.compute_mask(x, mask),
            _ => Ok(mask.cloned()),
        }
    }

    fn get_config(&self) -> wgrad::Result<Config> {
        match self {
            Shared::One(layer) => layer.get_config(),
            Shared::Many(layer) => layer.get_config(),
            Shared::Python(layer) => layer.config(),
        }
    }

    fn call_with_mask(
        &self,
        x: &wgrad::Tensor,
        cx: Context<'_>,
    ) -> wgrad::Result<(wgrad::Tensor, Option<wgrad::Tensor>)> {
        match self {
            Shared::One(layer) => layer.call_with_mask(x, cx),
            Shared::Many(_) => Err(several(self)),
            Shared::Python(_) => Ok((self.call(x, cx)?, cx.mask().cloned())),
        }
    }
}

impl Layer<[wgrad::Tensor], Vec<wgrad::Tensor>> for Shared {
    fn call(&self, xs: &[wgrad::Tensor], cx: Context<'_>) -> wgrad::Result<Vec<wgrad::Tensor>> {
        match (self, xs) {
            (Shared::One(layer), [x]) => Ok(vec![layer.call(x, cx)?]),
            (Shared::One(layer), _) => Err(wgrad::Error::Shape(
                format!("{} takes one input; it was called with {}.", layer.kind(), xs.len())
                    .into(),
            )),
            (Shared::Many(layer), xs) => Ok(vec![layer.call(xs, cx)?]),
            (Shared::Python(layer), xs) => layer.call_all(xs, cx),
        }
    }

    fn get_config(&self) -> wgrad::Result<Config> {
        Layer::<wgrad::Tensor, wgrad::Tensor>::get_config(self)
    }
}

fn one(mut results: Vec<wgrad::Tensor>) -> wgrad::Result<wgrad::Tensor> {
    match (results.len(), results.pop()) {
        (1, Some(result)) => Ok(result),
        (count, _) => Err(wgrad::Error::Shape(
            format!("the layer has {count} results; one is needed here.").into(),
        )),
    }
}

/// A layer that a program writes in Python: an object with the methods `_wgrad_call` and `_wgrad_parts`.
pub struct PyLayer {
    /// The object, or a weak reference to it.
    object: Py<PyAny>,
    weak: bool,
    address: usize,
}

impl PyLayer {
    pub fn new(object: &Bound<'_, PyAny>) -> Self {
        PyLayer { object: object.clone().unbind(), weak: false, address: object.as_ptr() as usize }
    }

    /// For what the object itself holds: two references would keep each other alive.
    pub fn weak(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let reference = PyWeakrefReference::new(object)?;
        Ok(PyLayer {
            object: reference.into_any().unbind(),
            weak: true,
            address: object.as_ptr() as usize,
        })
    }

    pub fn get<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let object = self.object.bind(py).clone();
        match self.weak {
            false => Ok(object),
            true => match object.call0()? {
                gone if gone.is_none() => Err(invalid("the model was dropped while it was used.")),
                object => Ok(object),
            },
        }
    }

    pub fn call_all(
        &self,
        xs: &[wgrad::Tensor],
        cx: Context<'_>,
    ) -> wgrad::Result<Vec<wgrad::Tensor>> {
        Python::attach(|py| {
            let run = || -> PyResult<Vec<wgrad::Tensor>> {
                let xs = PyTuple::new(py, xs.iter().cloned().map(Tensor))?;
                let mask = cx.mask().cloned().map(Tensor);
                let y = self.get(py)?.call_method1("_wgrad_call", (xs, cx.training(), mask))?;
                y.try_iter()?.map(|y| to_tensor(&y?, None)).collect()
            };
            let results = run().map_err(keep)?;
            // The losses that the layer added in its call.
            let losses = || -> PyResult<Vec<wgrad::Tensor>> {
                let list = self.get(py)?.call_method0("_wgrad_take_losses")?;
                list.try_iter()?.map(|loss| to_tensor(&loss?, None)).collect()
            };
            for loss in losses().map_err(keep)? {
                cx.add_loss(loss)?;
            }
            Ok(results)
        })
    }

    fn config(&self) -> wgrad::Result<Config> {
        Python::attach(|py| {
            let text = self
                .get(py)
                .and_then(|object| object.call_method0("_wgrad_config")?.extract::<String>());
            let value = text.map_err(keep)?;
            config_of(&value)
        })
    }
}

/// A config from the JSON `{"class_name": .., "config": {..}}`.
pub fn config_of(text: &str) -> wgrad::Result<Config> {
    let wrong = |what: String| wgrad::Error::Data(format!("from_config: {what}").into());
    let value: serde_json::Value =
        serde_json::from_str(text).map_err(|error| wrong(error.to_string()))?;
    let class = value["class_name"]
        .as_str()
        .ok_or_else(|| wrong("the config has no 'class_name'.".into()))?;
    let options =
        value["config"].as_object().ok_or_else(|| wrong("the config has no 'config'.".into()))?;
    Ok(Config::with_options(class, options.clone()))
}

/// Names that live as long as the program: one for each class of a program's layers.
fn interned(name: String) -> &'static str {
    static NAMES: Mutex<Option<HashSet<&'static str>>> = Mutex::new(None);
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    let names = names.get_or_insert_default();
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    let name: &'static str = Box::leak(name.into_boxed_str());
    names.insert(name);
    name
}

thread_local! {
    /// The layers written in Python whose parts this thread visits, from the outermost to the innermost.
    static ENTERED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

impl Trackable for PyLayer {
    fn track(&self, parts: &mut Parts<'_>) {
        // A layer may hold one that holds it.
        if ENTERED.with_borrow(|entered| entered.contains(&self.address)) {
            return;
        }
        ENTERED.with_borrow_mut(|entered| entered.push(self.address));
        Python::attach(|py| {
            let Ok(list) = self.get(py).and_then(|object| object.call_method0("_wgrad_parts"))
            else {
                return;
            };
            let Ok(list) = list.extract::<Vec<(String, Bound<'_, PyAny>)>>() else { return };
            for (name, part) in list {
                if let Some(part) = part_of(&part) {
                    parts.add(&name, &*part);
                }
            }
        });
        ENTERED.with_borrow_mut(|entered| entered.pop());
    }

    fn kind(&self) -> &'static str {
        Python::attach(|py| match self.get(py).and_then(|object| object.get_type().name()) {
            Ok(name) => interned(name.to_string()),
            Err(_) => "Layer",
        })
    }

    fn identity(&self) -> (usize, usize) {
        (self.address, 1)
    }
}

/// A Python object as a part of a model.
pub fn part_of(value: &Bound<'_, PyAny>) -> Option<Box<dyn Trackable>> {
    if let Ok(variable) = value.cast::<Variable>() {
        return Some(Box::new(variable.get().0.clone()));
    }
    if let Ok(optimizer) = value.cast::<crate::optimizer::NativeOptimizer>() {
        return Some(Box::new(optimizer.get().0.clone()));
    }
    if let Ok(layer) = value.cast::<NativeLayer>() {
        return Some(Box::new(layer.get().0.clone()));
    }
    if let Ok(model) = value.cast::<crate::model::NativeModel>() {
        return Some(Box::new(model.get().clone()));
    }
    // The package's own classes hold one of these.
    if let Ok(Some(native)) = value.getattr_opt("_native") {
        if let Some(part) = part_of(&native) {
            return Some(part);
        }
    }
    let is_layer = value.hasattr("_wgrad_parts").unwrap_or(false);
    is_layer.then(|| Box::new(PyLayer::new(value)) as Box<dyn Trackable>)
}

/// The names and variables of a Python object.
pub fn variables_of(part: &dyn Trackable) -> Vec<(String, Variable, bool)> {
    let named = part.named_variables();
    named
        .into_iter()
        .map(|(name, v)| {
            let trainable = v.trainable();
            (name, Variable(v), trainable)
        })
        .collect()
}

#[pyclass(frozen, module = "wgrad")]
pub struct NativeLayer(pub Shared);

#[pymethods]
impl NativeLayer {
    /// The layer of a config; `merges` says whether it takes a list of inputs.
    #[new]
    #[pyo3(signature = (config, merges=false))]
    fn new(config: &str, merges: bool) -> PyResult<Self> {
        let config = config_of(config).raised()?;
        Ok(NativeLayer(match merges {
            true => Shared::Many(Arc::from(merging_layer_from_config(&config).raised()?)),
            false => Shared::One(Arc::from(layer_from_config(&config).raised()?)),
        }))
    }

    /// A layer written in Python.
    #[staticmethod]
    fn of_python(layer: &Bound<'_, PyAny>) -> Self {
        NativeLayer(Shared::Python(Arc::new(PyLayer::new(layer))))
    }

    /// A symbol, or the value of the layer for tensors.
    #[pyo3(signature = (inputs, training=false, mask=None))]
    fn call(
        &self,
        py: Python<'_>,
        inputs: Vec<Bound<'_, PyAny>>,
        training: bool,
        mask: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Tensor>> {
        let inputs = inputs.iter().map(|x| to_tensor(x, None)).collect::<PyResult<Vec<_>>>()?;
        let mask = mask.map(|mask| to_tensor(mask, None)).transpose()?;
        let layer = self.0.clone();
        let called = py.detach(move || {
            let losses = wgrad::keras::Losses::new();
            let cx = Context::from(training).with_mask(mask.as_ref()).collect(&losses);
            Layer::<[wgrad::Tensor], Vec<wgrad::Tensor>>::call(&layer, &inputs, cx)
        });
        Ok(called.raised()?.into_iter().map(Tensor).collect())
    }

    /// The symbols of the layer's results for symbols.
    #[pyo3(signature = (inputs, name=None))]
    fn on(&self, inputs: Vec<Bound<'_, Symbol>>, name: Option<&str>) -> PyResult<Vec<Symbol>> {
        let inputs: Vec<SymbolicTensor> = inputs.iter().map(|x| x.get().0.clone()).collect();
        let layer = self.0.clone();
        let results = match (&self.0, &inputs[..]) {
            (Shared::One(_), [x]) => vec![
                match name {
                    Some(name) => layer.on_named(name, x),
                    None => layer.on(x),
                }
                .raised()?,
            ],
            _ => {
                let results: Vec<SymbolicTensor> = match name {
                    Some(name) => {
                        layer.on_all_named::<[wgrad::Tensor], Vec<wgrad::Tensor>>(name, &inputs[..])
                    }
                    None => layer.on_all::<[wgrad::Tensor], Vec<wgrad::Tensor>>(&inputs[..]),
                }
                .raised()?;
                results
            }
        };
        Ok(results.into_iter().map(Symbol).collect())
    }

    /// Names, variables, and whether training changes them.
    fn variables(&self) -> Vec<(String, Variable, bool)> {
        variables_of(&self.0)
    }

    fn set_trainable(&self, trainable: bool) {
        self.0.set_trainable(trainable);
    }

    fn config(&self) -> PyResult<String> {
        let config = Layer::<wgrad::Tensor, wgrad::Tensor>::get_config(&self.0).raised()?;
        Ok(serde_json::json!({"class_name": config.class(), "config": config.options()})
            .to_string())
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind()
    }
}

/// A tensor of a model that is being defined. The package notes which layer made it.
#[pyclass(frozen, dict, module = "wgrad")]
pub struct Symbol(pub SymbolicTensor);

#[pymethods]
impl Symbol {
    #[getter]
    fn shape(&self) -> Vec<Option<usize>> {
        self.0.shape().to_vec()
    }

    #[getter]
    fn _dtype(&self) -> &'static str {
        self.0.dtype().tensorflow_name()
    }

    /// `op` of this symbol and another one or a number.
    #[pyo3(signature = (op, other, swapped=false))]
    fn with_op(&self, op: &str, other: &Bound<'_, PyAny>, swapped: bool) -> PyResult<Symbol> {
        use wgrad::keras::SymbolicOperand;
        let x = &self.0;
        let other: SymbolicOperand = match other.cast::<Symbol>() {
            Ok(other) => (&other.get().0).into(),
            Err(_) => other
                .extract::<f32>()
                .map_err(|_| {
                    invalid("symbol: the other operand is neither a symbol nor a number.")
                })?
                .into(),
        };
        let made = match (op, swapped) {
            ("add", _) => x.add(other),
            ("multiply", _) => x.multiply(other),
            ("subtract", false) => x.subtract(other),
            ("divide", false) => x.divide(other),
            ("subtract", true) => x.multiply(-1.0).and_then(|x| x.add(other)),
            _ => {
                return Err(invalid(format!(
                    "symbol: {op} of a number and a symbol is not supported; use a layer."
                )));
            }
        };
        made.map(Symbol).raised()
    }
}

/// `keras.Input`.
#[pyfunction]
#[pyo3(signature = (shape, batch_size=None, dtype=None, name=None))]
pub fn input(
    shape: Vec<Option<usize>>,
    batch_size: Option<usize>,
    dtype: Option<&str>,
    name: Option<&str>,
) -> PyResult<Symbol> {
    let mut input = Input::new(&shape[..]);
    if let Some(dtype) = dtype {
        input = input.with_dtype(crate::arrays::dtype(dtype)?);
    }
    if let Some(name) = name {
        input = input.with_name(name);
    }
    if let Some(size) = batch_size {
        input = input.with_batch_size(size);
    }
    Ok(Symbol((*input).clone()))
}

/// Options of a call as a dictionary.
pub fn option<'py, T>(options: &Bound<'py, PyDict>, key: &str) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    match options.get_item(key)? {
        Some(value) if !value.is_none() => value.extract().map(Some),
        _ => Ok(None),
    }
}
