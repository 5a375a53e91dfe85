//! [`Variable`]: a cell that holds a tensor.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use crate::tensor::{Tensor, sizes};

/// A value that training changes. Open tapes watch it when it is read.
#[wasm_bindgen]
pub struct Variable(pub(crate) wgrad::Variable, String);

impl Variable {
    pub(crate) fn named(name: String, variable: wgrad::Variable) -> Self {
        Variable(variable, name)
    }
}

#[wasm_bindgen]
impl Variable {
    /// The present value.
    pub fn read(&self) -> Tensor {
        Tensor::new(self.0.read())
    }

    /// Its name. For a model's variable this is its path, such as `dense/kernel`, which files also use.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        self.1.clone()
    }

    /// The shape, which never changes.
    #[wasm_bindgen(getter, unchecked_return_type = "number[]")]
    pub fn shape(&self) -> Array {
        sizes(self.0.shape())
    }
}

// Not part of the page's own build.
#[cfg(feature = "ops")]
#[wasm_bindgen]
impl Variable {
    /// A variable with this initial value and name.
    #[wasm_bindgen(constructor)]
    pub fn new(start: &Tensor, name: Option<String>) -> crate::error::Result<Variable> {
        let name = name.unwrap_or_else(|| "Variable".to_string());
        Ok(Variable(wgrad::Variable::new(&start.get()?), name))
    }

    /// Replaces the value; shape and dtype must be the same.
    pub fn assign(&self, value: &Tensor) -> crate::error::Result<()> {
        Ok(self.0.assign(&value.get()?)?)
    }

    /// Adds a tensor of the same shape, or a number.
    #[wasm_bindgen(js_name = assignAdd)]
    pub fn assign_add(&self, delta: &crate::tensor::Operand) -> crate::error::Result<()> {
        Ok(self.0.assign_add(delta.beside(self.0.dtype())?)?)
    }

    /// Subtracts a tensor of the same shape, or a number.
    #[wasm_bindgen(js_name = assignSub)]
    pub fn assign_sub(&self, delta: &crate::tensor::Operand) -> crate::error::Result<()> {
        Ok(self.0.assign_sub(delta.beside(self.0.dtype())?)?)
    }

    /// The dtype, which never changes.
    #[wasm_bindgen(getter, unchecked_return_type = "DType")]
    pub fn dtype(&self) -> String {
        self.0.dtype().tensorflow_name().to_string()
    }

    #[wasm_bindgen(js_name = _tensor, skip_typescript)]
    #[doc(hidden)]
    pub fn share(&self) -> Tensor {
        self.read()
    }

    #[wasm_bindgen(js_name = _variable, skip_typescript)]
    #[doc(hidden)]
    pub fn share_variable(&self) -> Variable {
        Variable(self.0.clone(), self.1.clone())
    }
}
