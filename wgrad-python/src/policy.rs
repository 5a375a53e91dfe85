//! Keras's dtype policies: in which dtype layers compute, and which dtype their weights have.

use std::cell::Cell;

use pyo3::prelude::*;
use wgrad::DType;
use wgrad::keras::DTypePolicy;

use crate::arrays;
use crate::error::{Raise, invalid};
use crate::variable::Variable;

/// The policy of layers that are made now, by Keras's name.
#[pyfunction]
pub fn dtype_policy() -> &'static str {
    wgrad::keras::dtype_policy().name()
}

/// Sets the policy of layers that are made from now on.
#[pyfunction]
pub fn set_dtype_policy(name: &str) -> PyResult<()> {
    wgrad::keras::set_dtype_policy(match name {
        "float32" => DTypePolicy::FLOAT32,
        "float16" => DTypePolicy::FLOAT16,
        "mixed_float16" => DTypePolicy::MIXED_FLOAT16,
        _ => {
            return Err(invalid(format!(
                "set_dtype_policy: there is no policy '{name}'; there are float32, float16 and mixed_float16."
            )));
        }
    });
    Ok(())
}

thread_local! {
    /// The dtype in which the layer that this thread calls reads its weights.
    static AUTOCAST: Cell<Option<DType>> = const { Cell::new(None) };
}

/// Sets the dtype in which layers of a program read their weights on this thread, and returns what it was. `None` leaves
/// weights as they are.
#[pyfunction]
#[pyo3(signature = (dtype=None))]
pub fn set_autocast(dtype: Option<&str>) -> PyResult<Option<&'static str>> {
    let dtype = dtype.map(arrays::dtype).transpose()?;
    Ok(AUTOCAST.replace(dtype).map(DType::tensorflow_name))
}

/// The dtype in which a variable is read now.
pub fn dtype_of(variable: &Bound<'_, Variable>) -> DType {
    let own = variable.get().0.dtype();
    match AUTOCAST.get() {
        Some(wanted) if own.is_float() => wanted,
        _ => own,
    }
}

/// The value of a variable, in the dtype in which it is read now.
pub fn read(variable: &Bound<'_, Variable>) -> PyResult<wgrad::Tensor> {
    let (value, wanted) = (variable.get().0.read(), dtype_of(variable));
    if value.dtype() == wanted { Ok(value) } else { value.cast(wanted).raised() }
}
