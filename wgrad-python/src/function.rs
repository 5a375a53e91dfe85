//! `tf.function`: a Python function that is traced once for each signature.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use wgrad::Tensor as Native;

use crate::arrays::{dtype, to_tensor};
use crate::error::{Raise, keep};
use crate::interpreter::{Release, attached};
use crate::tensor::Tensor;

type Traced = dyn Fn(Vec<Native>, String) -> wgrad::Result<Vec<Native>> + Send + Sync;

/// What `body` returned when it was traced, by the signature: a description of the structure around the tensors.
type Structures = Arc<Mutex<HashMap<String, Py<PyAny>>>>;

thread_local! {
    /// The function that rebuilds the arguments of the call that runs, from its tensors.
    static CALL: RefCell<Vec<Py<PyAny>>> = const { RefCell::new(Vec::new()) };
}

/// A traced function of tensors and a text, which stands for all other arguments.
#[pyclass(frozen, module = "wgrad")]
pub struct NativeFunction {
    traced: wgrad::Function<Traced>,
    structures: Structures,
}

#[pymethods]
impl NativeFunction {
    /// `body` of (the function that rebuilds the arguments, the tensors) returns tensors and their structure.
    #[new]
    #[pyo3(signature = (body, reduce_retracing=false))]
    fn new(body: Py<PyAny>, reduce_retracing: bool) -> Self {
        let structures = Structures::default();
        let known = structures.clone();
        let run = move |tensors: Vec<Native>, key: String| -> wgrad::Result<Vec<Native>> {
            attached(|py| {
                let run = || -> PyResult<Vec<Native>> {
                    let call =
                        CALL.with_borrow(|calls| calls.last().map(|call| call.clone_ref(py)));
                    let tensors: Vec<Tensor> = tensors.iter().cloned().map(Tensor).collect();
                    let answer = body.bind(py).call1((call, tensors))?;
                    let (results, structure): (Vec<Bound<'_, PyAny>>, Py<PyAny>) =
                        answer.extract()?;
                    known
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .insert(key.clone(), structure);
                    results.iter().map(|y| to_tensor(y, None)).collect()
                };
                run().map_err(keep)
            })
        };
        let options = wgrad::FunctionOptions::new().reduce_retracing(reduce_retracing);
        NativeFunction { traced: wgrad::function_with(run, options), structures }
    }

    /// The result's tensors and structure. `key` describes all arguments that are not tensors, and the shapes and dtypes of those that
    /// are, as results may depend on them.
    fn call(
        &self,
        py: Python<'_>,
        rebuild: Py<PyAny>,
        tensors: Vec<Bound<'_, PyAny>>,
        key: String,
    ) -> PyResult<(Vec<Tensor>, Py<PyAny>)> {
        let tensors = tensors.iter().map(|x| to_tensor(x, None)).collect::<PyResult<Vec<_>>>()?;
        CALL.with_borrow_mut(|calls| calls.push(rebuild));
        let answer = py.released(|| (self.traced)(tensors, key.clone()));
        CALL.with_borrow_mut(|calls| calls.pop());
        let results = answer.raised()?;
        let structures = self.structures.lock().unwrap_or_else(PoisonError::into_inner);
        let structure =
            structures.get(&key).map_or_else(|| py.None(), |structure| structure.clone_ref(py));
        Ok((results.into_iter().map(Tensor).collect(), structure))
    }

    /// What the function records for these arguments, without running it; an error in the trace of another function.
    fn trace(
        &self,
        py: Python<'_>,
        rebuild: Py<PyAny>,
        tensors: Vec<Bound<'_, PyAny>>,
        key: String,
    ) -> PyResult<String> {
        let tensors = tensors.iter().map(|x| to_tensor(x, None)).collect::<PyResult<Vec<_>>>()?;
        CALL.with_borrow_mut(|calls| calls.push(rebuild));
        let answer = py.released(|| self.traced.get_concrete_function((tensors, key)));
        CALL.with_borrow_mut(|calls| calls.pop());
        answer.map(|concrete| concrete.graph_text()).raised()
    }

    fn tracing_count(&self) -> usize {
        self.traced.tracing_count()
    }

    fn graph_text(&self) -> String {
        self.traced.graph_text()
    }
}

/// A function of tensors, as a list, that returns tensors.
fn call(f: &Py<PyAny>, tensors: &[Native]) -> wgrad::Result<Vec<Native>> {
    attached(|py| {
        let run = || -> PyResult<Vec<Native>> {
            let tensors: Vec<Tensor> = tensors.iter().cloned().map(Tensor).collect();
            f.bind(py).call1((tensors,))?.try_iter()?.map(|y| to_tensor(&y?, None)).collect()
        };
        run().map_err(keep)
    })
}

/// `tf.cond`: each branch takes an empty list and returns a list of tensors.
#[pyfunction]
pub fn cond(
    py: Python<'_>,
    pred: &Bound<'_, PyAny>,
    true_fn: Py<PyAny>,
    false_fn: Py<PyAny>,
) -> PyResult<Vec<Tensor>> {
    let pred = to_tensor(pred, None)?;
    let made = py.released(|| wgrad::cond(&pred, || call(&true_fn, &[]), || call(&false_fn, &[])));
    Ok(made.raised()?.into_iter().map(Tensor).collect())
}

/// `tf.while_loop`: `condition` and `body` take a list of tensors.
#[pyfunction]
pub fn while_loop(
    py: Python<'_>,
    condition: Py<PyAny>,
    body: Py<PyAny>,
    variables: Vec<Bound<'_, PyAny>>,
) -> PyResult<Vec<Tensor>> {
    let variables = variables.iter().map(|x| to_tensor(x, None)).collect::<PyResult<Vec<_>>>()?;
    let test = |variables: &Vec<Native>| {
        let answer = call(&condition, variables)?.pop();
        answer
            .ok_or_else(|| wgrad::Error::Data("while_loop: the condition returned nothing.".into()))
    };
    let made =
        py.released(|| wgrad::while_loop(test, |variables| call(&body, &variables), variables));
    Ok(made.raised()?.into_iter().map(Tensor).collect())
}

/// `tf.py_function` with results of known shapes and dtypes: `f` takes a list of tensors and returns one. In a function, each run
/// calls it.
#[pyfunction]
pub fn host_call(
    py: Python<'_>,
    f: Py<PyAny>,
    inputs: Vec<Bound<'_, PyAny>>,
    tout: Vec<(Vec<usize>, String)>,
) -> PyResult<Vec<Tensor>> {
    let inputs = inputs.iter().map(|x| to_tensor(x, None)).collect::<PyResult<Vec<_>>>()?;
    let kinds = tout
        .into_iter()
        .map(|(shape, name)| Ok((shape, dtype(&name)?)))
        .collect::<PyResult<Vec<_>>>()?;
    let made = py.released(|| {
        let inputs: Vec<&Native> = inputs.iter().collect();
        let tout: Vec<_> = kinds.iter().map(|(shape, dtype)| (&shape[..], *dtype)).collect();
        wgrad::host_call(move |tensors| call(&f, tensors), &inputs, &tout)
    });
    Ok(made.raised()?.into_iter().map(Tensor).collect())
}

/// Reports an error with this message unless all of `holds` is true; in a function, each run does. The next read raises it.
#[pyfunction]
pub fn check(holds: &Bound<'_, PyAny>, message: &str) -> PyResult<()> {
    let holds = to_tensor(holds, None)?.cast(wgrad::DType::I32).raised()?;
    wgrad::debugging::assert_equal(&holds, 1, message).raised()
}

/// `tf.vectorized_map`: `f` takes a list of tensors, those of one row, and returns a list of tensors.
#[pyfunction]
pub fn vectorized_map(
    py: Python<'_>,
    f: Py<PyAny>,
    elems: Vec<Bound<'_, PyAny>>,
) -> PyResult<Vec<Tensor>> {
    let elems = elems.iter().map(|x| to_tensor(x, None)).collect::<PyResult<Vec<_>>>()?;
    let made = py.released(|| wgrad::vectorized_map(|row: Vec<Native>| call(&f, &row), &elems));
    Ok(made.raised()?.into_iter().map(Tensor).collect())
}
