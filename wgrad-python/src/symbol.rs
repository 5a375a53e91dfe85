//! Tensors of a model that is being defined.

use pyo3::prelude::*;
use wgrad::keras::saving::bindings;
use wgrad::keras::{Input, SymbolicTensor};

use crate::error::{Raise, invalid};

/// A tensor of a model that is being defined. The package notes which layer made it.
#[pyclass(frozen, dict, weakref, module = "wgrad")]
pub struct Symbol(pub SymbolicTensor);

pub fn symbols_of(symbols: &[Bound<'_, Symbol>]) -> Vec<SymbolicTensor> {
    symbols.iter().map(|symbol| symbol.get().0.clone()).collect()
}

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

/// The results of an op of Keras's `module` for symbols, where `node` has the arguments of the call as JSON. They name the symbols by
/// place.
#[pyfunction]
pub fn op_on(
    name: &str,
    module: &str,
    config: &str,
    node: &str,
    symbols: Vec<Bound<'_, Symbol>>,
) -> PyResult<Vec<Symbol>> {
    let config = crate::layer::config_of(config).raised()?;
    let made = bindings::op_on(name, module, &config, node, &symbols_of(&symbols));
    Ok(made.raised()?.into_iter().map(Symbol).collect())
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
