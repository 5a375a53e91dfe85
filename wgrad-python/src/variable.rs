//! Variables.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrays::{self, to_numpy, to_tensor};
use crate::error::{Raise, keep};
use crate::interpreter::{Release, attached};
use crate::ops::NativeConstraint;
use crate::policy;
use crate::tensor::Tensor;

/// A value that training updates. The package derives `tf.Variable` from it.
#[pyclass(frozen, subclass, dict, weakref, module = "wgrad")]
pub struct Variable(pub wgrad::Variable);

/// A new value as a function of Python, or of the crate, makes it fit.
fn constrained(constraint: &Py<PyAny>, w: &wgrad::Tensor) -> wgrad::Result<wgrad::Tensor> {
    attached(|py| {
        if let Ok(native) = constraint.bind(py).cast::<NativeConstraint>() {
            return native.get().0.call(w);
        }
        let made = constraint.bind(py).call1((Tensor(w.clone()),));
        made.and_then(|made| to_tensor(&made, Some(w.dtype()))).map_err(keep)
    })
}

impl Variable {
    /// Changes the value. A replica of a strategy may wait for the others here, which run Python, too.
    fn change(
        &self,
        value: &Bound<'_, PyAny>,
        f: fn(&wgrad::Variable, &wgrad::Tensor) -> wgrad::Result<()>,
    ) -> PyResult<()> {
        let tensor = to_tensor(value, Some(self.0.dtype()))?;
        value.py().released(|| f(&self.0, &tensor)).raised()
    }
}

#[pymethods]
impl Variable {
    #[new]
    #[pyo3(signature = (initial_value, trainable=true, dtype=None, name=None, constraint=None, **_options))]
    fn new(
        initial_value: &Bound<'_, PyAny>,
        trainable: bool,
        dtype: Option<&Bound<'_, PyAny>>,
        name: Option<&str>,
        constraint: Option<Py<PyAny>>,
        _options: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        // A variable's name is the one that its layer gives it; `__init__` of the package checks the options.
        let _ = name;
        let dtype = dtype.map(arrays::dtype_of).transpose()?;
        // A function without arguments gives the first value.
        let made = initial_value.is_callable().then(|| initial_value.call0()).transpose()?;
        let value = to_tensor(made.as_ref().unwrap_or(initial_value), dtype)?;
        Ok(Variable(match (trainable, constraint) {
            (true, None) => wgrad::Variable::new(&value),
            (true, Some(constraint)) => {
                wgrad::Variable::with_constraint(&value, move |w| constrained(&constraint, w))
            }
            // Only optimizers apply constraints.
            (false, _) => wgrad::Variable::untrainable(&value),
        }))
    }

    /// The value as a tensor.
    fn read_value(this: &Bound<'_, Self>) -> PyResult<Tensor> {
        policy::read(this).map(Tensor)
    }

    fn _assign(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.change(value, |v, x| v.assign(x))
    }

    fn _assign_add(&self, delta: &Bound<'_, PyAny>) -> PyResult<()> {
        self.change(delta, |v, x| v.assign_add(x))
    }

    fn _assign_sub(&self, delta: &Bound<'_, PyAny>) -> PyResult<()> {
        self.change(delta, |v, x| v.assign_sub(x))
    }

    /// Whether both are the same variable.
    fn _is(&self, other: &Bound<'_, Variable>) -> bool {
        self.0.ptr_eq(&other.get().0)
    }

    fn numpy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_numpy(py, &self.0.read())
    }

    #[getter]
    fn _shape(&self) -> Vec<usize> {
        self.0.shape().to_vec()
    }

    #[getter]
    fn _dtype(&self) -> &'static str {
        self.0.dtype().tensorflow_name()
    }

    #[getter]
    fn trainable(&self) -> bool {
        self.0.trainable()
    }
}
