//! [`Variable`]: a cell that holds a tensor.

use js_sys::Array;
use wasm_bindgen::prelude::*;

use crate::tensor::{Tensor, sizes};

/// A value that training changes. Tapes that are open when it is read watch it.
#[wasm_bindgen]
pub struct Variable(pub(crate) wgrad::Variable);

#[wasm_bindgen]
impl Variable {
    /// The value now.
    pub fn read(&self) -> Tensor {
        Tensor::new(self.0.read())
    }

    /// What messages and files call it.
    #[wasm_bindgen(getter)]
    pub fn name(&self) -> String {
        self.0.name().to_string()
    }

    /// The shape, which never changes.
    #[wasm_bindgen(getter, unchecked_return_type = "number[]")]
    pub fn shape(&self) -> Array {
        sizes(self.0.shape())
    }
}
