//! Variables.

use pyo3::prelude::*;

use crate::arrays::{self, to_numpy, to_tensor};
use crate::error::Raise;
use crate::tensor::Tensor;

/// A value that training updates. The package derives `tf.Variable` from it.
#[pyclass(frozen, subclass, module = "wgrad")]
pub struct Variable(pub wgrad::Variable);

#[pymethods]
impl Variable {
    #[new]
    #[pyo3(signature = (initial_value, trainable=true, dtype=None, name=None))]
    fn new(
        initial_value: &Bound<'_, PyAny>,
        trainable: bool,
        dtype: Option<&Bound<'_, PyAny>>,
        name: Option<&str>,
    ) -> PyResult<Self> {
        // A variable's name is the one that its layer gives it.
        let _ = name;
        let dtype = dtype.map(arrays::dtype_of).transpose()?;
        let value = to_tensor(initial_value, dtype)?;
        Ok(Variable(match trainable {
            true => wgrad::Variable::new(&value),
            false => wgrad::Variable::untrainable(&value),
        }))
    }

    /// The value as a tensor.
    fn read_value(&self) -> Tensor {
        Tensor(self.0.read())
    }

    fn _assign(&self, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.assign(&to_tensor(value, Some(self.0.dtype()))?).raised()
    }

    fn _assign_add(&self, delta: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.assign_add(&to_tensor(delta, Some(self.0.dtype()))?).raised()
    }

    fn _assign_sub(&self, delta: &Bound<'_, PyAny>) -> PyResult<()> {
        self.0.assign_sub(&to_tensor(delta, Some(self.0.dtype()))?).raised()
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

    /// Whether both are handles to one variable.
    fn _is(&self, other: &Variable) -> bool {
        self.0.ptr_eq(&other.0)
    }
}
