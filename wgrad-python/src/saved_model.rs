//! Models of other programs: TensorFlow's SavedModels, and ONNX.

use std::collections::BTreeMap;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use wgrad::saved_model::{self, SavedFunction, SavedModel, SavedSpec, SavedValue, Signature};
use wgrad::{TensorSpec, onnx};

use crate::arrays::to_tensor;
use crate::error::{Raise, invalid, keep};
use crate::host_layer::{Given, numpy};
use crate::interpreter::{Release, attached};
use crate::parts::part_of;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// The name, dtype and shape of what a function takes or returns; no shape if its rank varies.
type Spec = (String, String, Option<Vec<Option<usize>>>);

fn specs(specs: &[SavedSpec]) -> Vec<Spec> {
    let spec = |spec: &SavedSpec| (spec.name.clone(), spec.dtype.to_string(), spec.shape.clone());
    specs.iter().map(spec).collect()
}

/// Arrays of strings by their names.
type Texts<'py> = BTreeMap<String, Bound<'py, PyAny>>;

/// A function of a loaded model.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeSavedFunction(SavedFunction);

#[pymethods]
impl NativeSavedFunction {
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    fn inputs(&self) -> Vec<Spec> {
        specs(self.0.inputs())
    }

    fn outputs(&self) -> Vec<Spec> {
        specs(self.0.outputs())
    }

    /// The results by name for inputs by name: tensors, and strings.
    fn call<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'_, PyDict>,
        texts: BTreeMap<String, Given<'_>>,
    ) -> PyResult<(BTreeMap<String, Tensor>, Texts<'py>)> {
        let mut given: Vec<(String, SavedValue)> = Vec::new();
        for (name, value) in inputs {
            given.push((name.extract::<String>()?, to_tensor(&value, None)?.into()));
        }
        for (name, text) in texts {
            given.push((name, text.array()?.into()));
        }
        let results = py.released(|| self.0.call(given)).raised()?;
        let (mut tensors, mut texts) = (BTreeMap::new(), Texts::new());
        for (name, value) in results {
            match value {
                SavedValue::Host(array) if array.strings().is_some() => {
                    texts.insert(name, numpy(py, &array)?);
                }
                value => drop(tensors.insert(name, Tensor(value.tensor().raised()?))),
            }
        }
        Ok((tensors, texts))
    }
}

/// A loaded SavedModel.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeSavedModel(SavedModel);

#[pymethods]
impl NativeSavedModel {
    #[new]
    fn new(py: Python<'_>, path: &str) -> PyResult<Self> {
        crate::process::check()?;
        py.released(|| saved_model::load(path)).map(NativeSavedModel).raised()
    }

    fn signatures(&self) -> Vec<String> {
        self.0.signatures().map(String::from).collect()
    }

    fn signature(&self, py: Python<'_>, name: &str) -> PyResult<NativeSavedFunction> {
        py.released(|| self.0.signature(name)).map(NativeSavedFunction).raised()
    }

    fn functions(&self) -> Vec<String> {
        self.0.functions()
    }

    /// The traces of a function.
    fn function(&self, py: Python<'_>, path: &str) -> PyResult<Vec<NativeSavedFunction>> {
        let found = py.released(|| self.0.concrete_functions(path)).raised()?;
        Ok(found.into_iter().map(NativeSavedFunction).collect())
    }

    fn variables(&self) -> Vec<(String, Variable, bool)> {
        crate::parts::variables_of(&self.0)
    }
}

/// An ONNX model.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeOnnx(onnx::OnnxModel);

#[pymethods]
impl NativeOnnx {
    #[new]
    fn new(py: Python<'_>, path: &str) -> PyResult<Self> {
        crate::process::check()?;
        py.released(|| onnx::load(path)).map(NativeOnnx).raised()
    }

    fn function(&self) -> NativeSavedFunction {
        NativeSavedFunction(self.0.function().clone())
    }

    fn variables(&self) -> Vec<(String, Variable, bool)> {
        crate::parts::variables_of(&self.0)
    }
}

/// A function that is written: its name, its inputs, the names of its results if it has some, and a function of a list of tensors that
/// returns a list of them.
#[derive(FromPyObject)]
pub struct Written {
    #[pyo3(item)]
    name: String,
    #[pyo3(item)]
    inputs: Vec<(String, Vec<Option<usize>>, String)>,
    #[pyo3(item)]
    outputs: Option<Vec<String>>,
    #[pyo3(item)]
    body: Py<PyAny>,
}

impl Written {
    fn signature(&self) -> PyResult<Signature<'_>> {
        let inputs = self
            .inputs
            .iter()
            .map(|(name, shape, dtype)| {
                Ok((name.clone(), TensorSpec::new(shape.clone(), crate::arrays::dtype(dtype)?)))
            })
            .collect::<PyResult<Vec<_>>>()?;
        let body = |tensors: &[wgrad::Tensor]| {
            attached(|py| {
                let run = || -> PyResult<Vec<wgrad::Tensor>> {
                    let tensors: Vec<Tensor> = tensors.iter().cloned().map(Tensor).collect();
                    let results = self.body.bind(py).call1((tensors,))?;
                    results.try_iter()?.map(|y| to_tensor(&y?, None)).collect()
                };
                run().map_err(keep)
            })
        };
        let signature = Signature::new(self.name.clone(), inputs, body);
        Ok(match &self.outputs {
            Some(names) => signature.outputs(names.clone()),
            None => signature,
        })
    }
}

fn tracked(model: &Bound<'_, PyAny>) -> PyResult<Box<dyn wgrad::Trackable>> {
    part_of(model).ok_or_else(|| {
        invalid(format!(
            "save: {} has no variables; save a model, a layer, or a tf.Module.",
            model.get_type()
        ))
    })
}

/// Writes a SavedModel.
#[pyfunction]
pub fn save_saved_model(
    py: Python<'_>,
    model: &Bound<'_, PyAny>,
    path: &str,
    functions: Vec<Written>,
) -> PyResult<()> {
    let model = tracked(model)?;
    let write = || -> wgrad::Result<()> {
        let signatures = functions
            .iter()
            .map(|function| function.signature().map_err(keep))
            .collect::<wgrad::Result<Vec<_>>>()?;
        saved_model::save(&*model, path, &signatures)
    };
    py.released(write).raised()
}

/// Writes an ONNX model.
#[pyfunction]
pub fn save_onnx(
    py: Python<'_>,
    model: &Bound<'_, PyAny>,
    path: &str,
    function: Written,
) -> PyResult<()> {
    let model = tracked(model)?;
    py.released(|| onnx::save(&*model, path, &function.signature().map_err(keep)?)).raised()
}
