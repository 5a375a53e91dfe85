//! Ops by TensorFlow's names, through the crate's list of ops.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use wgrad::inventory::{self, Args, Entry, Stop, Value};

use crate::arrays::{self, to_tensor};
use crate::error::{Raise, invalid, raise};
use crate::tensor::Tensor;

/// An op that is called often.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeOp {
    name: String,
    entry: &'static Entry,
    /// The keys of its tensors, in the order of TensorFlow's arguments.
    keys: Vec<String>,
}

#[pymethods]
impl NativeOp {
    #[new]
    fn new(name: String, keys: Vec<String>) -> PyResult<Self> {
        let entry = inventory::find(&name)
            .ok_or_else(|| invalid(format!("{name}: wgrad has no op of this name.")))?;
        Ok(NativeOp { name, entry, keys })
    }

    /// Calls the op with tensors only.
    #[pyo3(signature = (*tensors))]
    fn __call__(&self, tensors: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        let py = tensors.py();
        let shared = first_dtype(self.keys.iter().map(String::as_str).zip(tensors.iter()));
        let mut given = Vec::with_capacity(self.keys.len());
        for (key, value) in self.keys.iter().zip(tensors) {
            given.push((key.clone(), vec![converted(&value, shared)?]));
        }
        let mut results = run(&self.name, self.entry, &Args::new(given, []))?;
        match (results.len(), results.pop()) {
            (1, Some(result)) => Ok(Py::new(py, Tensor(result))?.into_any()),
            (_, last) => {
                let all: Vec<Tensor> = results.into_iter().chain(last).map(Tensor).collect();
                Ok(PyList::new(py, all)?.into_any().unbind())
            }
        }
    }

    /// Calls the op with `tensors`, each a value or a list of values, and with `attributes`. Values that are not tensors yet take the
    /// dtype of the first tensor among them, as in TensorFlow.
    fn call(
        &self,
        tensors: &Bound<'_, PyDict>,
        attributes: &Bound<'_, PyDict>,
    ) -> PyResult<Vec<Tensor>> {
        let mut named = Vec::with_capacity(tensors.len());
        for (key, value) in tensors {
            named.push((key.extract::<String>()?, value));
        }
        let shared = first_dtype(named.iter().map(|(key, value)| (key.as_str(), value.clone())));
        let mut given = Vec::with_capacity(named.len());
        for (key, value) in named {
            let is_list = value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>();
            let list = if ["coeffs", "xs"].contains(&key.as_str()) && is_list {
                value
                    .try_iter()?
                    .map(|item| converted(&item?, shared))
                    .collect::<PyResult<Vec<_>>>()?
            } else {
                vec![converted(&value, shared)?]
            };
            given.push((key, list));
        }
        let attributes = attributes
            .iter()
            .filter(|(_, value)| !value.is_none())
            .map(|(key, value)| Ok((key.extract::<String>()?, attribute(&value)?)))
            .collect::<PyResult<Vec<_>>>()?;
        let results = run(&self.name, self.entry, &Args::new(given, attributes))?;
        Ok(results.into_iter().map(Tensor).collect())
    }
}

fn run(name: &str, entry: &Entry, args: &Args) -> PyResult<Vec<wgrad::Tensor>> {
    let results = (entry.call)(args).map_err(|stop| match stop {
        Stop::Failed(error) => raise(error),
        Stop::Lacks(what) if what.is_empty() => {
            invalid(format!("{name}: wgrad has no such function."))
        }
        Stop::Lacks(what) => invalid(format!(
            "{name}: the argument '{what}' is missing, or its value is not supported."
        )),
    })?;
    match args.unread() {
        Some(ignored) => {
            Err(invalid(format!("{name}: the argument '{ignored}' is not supported.")))
        }
        None => Ok(results),
    }
}

/// The dtype of the first value that has one, apart from those that choose among others.
fn first_dtype<'a, 'py: 'a>(
    values: impl Iterator<Item = (&'a str, Bound<'py, PyAny>)>,
) -> Option<wgrad::DType> {
    let mut values = values.filter(|(key, _)| !["cond", "mask", "indices", "ids"].contains(key));
    values.find_map(|(_, value)| {
        if let Ok(tensor) = value.cast::<Tensor>() {
            return Some(tensor.get().0.dtype());
        }
        if let Ok(variable) = value.cast::<crate::variable::Variable>() {
            return Some(crate::policy::dtype_of(variable));
        }
        if value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>() {
            return None;
        }
        // An array of NumPy, but no scalar.
        let sizes = value.getattr("shape").ok()?;
        match sizes.len() {
            Ok(rank) if rank > 0 => arrays::dtype_of(&value.getattr("dtype").ok()?).ok(),
            _ => None,
        }
    })
}

/// A number or a list of Python's numbers next to tensors of a dtype takes it if it can; everything else keeps its own.
fn converted(value: &Bound<'_, PyAny>, shared: Option<wgrad::DType>) -> PyResult<wgrad::Tensor> {
    let plain = value.is_instance_of::<PyFloat>()
        || value.is_instance_of::<PyInt>() && !value.is_instance_of::<PyBool>();
    let made = to_tensor(value, None)?;
    match shared {
        Some(dtype)
            if plain && dtype != made.dtype() && (dtype.is_float() || !made.dtype().is_float()) =>
        {
            made.cast(dtype).raised()
        }
        _ => Ok(made),
    }
}

fn attribute(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    if let Ok(yes) = value.cast::<PyBool>() {
        return Ok(Value::Bool(yes.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(Value::Int(value.extract()?));
    }
    if value.is_instance_of::<PyFloat>() {
        return Ok(Value::Float(value.extract()?));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Value::Text(text.to_string()));
    }
    if value.is_instance_of::<Tensor>() || value.hasattr("tolist")? {
        let array = match value.cast::<Tensor>() {
            Ok(tensor) => arrays::to_numpy(value.py(), &tensor.get().0)?,
            Err(_) => value.clone(),
        };
        return attribute(&array.call_method0("tolist")?);
    }
    if let Ok(name) = value.getattr("name") {
        // A dtype.
        return Ok(Value::Text(name.extract()?));
    }
    let items = value
        .try_iter()
        .map_err(|_| invalid(format!("{value} cannot be an argument of an op.")))?;
    Ok(Value::List(items.map(|item| attribute(&item?)).collect::<PyResult<_>>()?))
}

/// A penalty on weights, from the JSON of Keras's config.
#[pyclass(frozen, module = "wgrad")]
#[derive(Clone)]
pub struct NativeRegularizer(pub wgrad::keras::Regularizer);

#[pymethods]
impl NativeRegularizer {
    #[new]
    fn new(config: &str) -> PyResult<Self> {
        let value = serde_json::from_str(config).map_err(|error| invalid(error.to_string()))?;
        let mut options = wgrad::keras::Config::new("Regularizer");
        options.set_json("regularizer", value);
        Ok(NativeRegularizer(options.need("regularizer").raised()?))
    }

    fn __call__(&self, x: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        self.0.call(&to_tensor(x, None)?).map(Tensor).raised()
    }
}

/// A constraint of weights, from the JSON of Keras's config.
#[pyclass(frozen, module = "wgrad")]
#[derive(Clone)]
pub struct NativeConstraint(pub wgrad::keras::Constraint);

#[pymethods]
impl NativeConstraint {
    #[new]
    fn new(config: &str) -> PyResult<Self> {
        let value = serde_json::from_str(config).map_err(|error| invalid(error.to_string()))?;
        let mut options = wgrad::keras::Config::new("Constraint");
        options.set_json("constraint", value);
        Ok(NativeConstraint(options.need("constraint").raised()?))
    }

    fn __call__(&self, w: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        self.0.call(&to_tensor(w, None)?).map(Tensor).raised()
    }
}
