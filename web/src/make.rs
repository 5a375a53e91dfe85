//! Tensors made from a rule.

use wasm_bindgen::prelude::*;
use wgrad::{DType, Scalar};

use crate::args::{shape, show_number, whole};
use crate::error::{Result, bad_type};
use crate::shapes::scalar;
use crate::tensor::{Operand, Tensor};
use crate::values::dtype;

/// A number of things.
fn count(what: &str, number: f64) -> Result<usize> {
    whole(number).ok_or_else(|| {
        bad_type(format!("{what} is {}; it must be a whole number from 0.", show_number(number)))
    })
}

#[wasm_bindgen]
impl Tensor {
    /// The numbers from `start` up to but not including `stop`, `step` apart (by default 1); by default `float32`.
    pub fn range(
        start: f64,
        stop: f64,
        #[wasm_bindgen(unchecked_optional_param_type = "number | null")] step: Option<f64>,
        #[wasm_bindgen(unchecked_optional_param_type = "DType")] dtype: Option<String>,
    ) -> Result<Tensor> {
        let dtype = dtype.as_deref().map_or(Ok(DType::F32), self::dtype)?;
        let number = |value| scalar(value, dtype);
        let step = step.unwrap_or(1.0);
        Ok(Tensor::new(wgrad::range_of(number(start), number(stop), number(step), dtype)?))
    }

    /// `count` evenly spaced numbers from `start` to `stop`.
    pub fn linspace(start: f64, stop: f64, count: f64) -> Result<Tensor> {
        let count = self::count("Tensor.linspace: count", count)?;
        let end = |value| wgrad::Operand::Scalar(Scalar::Float(value));
        Ok(Tensor::new(wgrad::linspace(end(start), end(stop), count)?))
    }

    /// A matrix with ones on its diagonal and zeros elsewhere; square unless `columns` is given.
    pub fn eye(rows: f64, columns: Option<f64>) -> Result<Tensor> {
        let high = count("Tensor.eye: rows", rows)?;
        let wide = columns.map_or(Ok(high), |columns| count("Tensor.eye: columns", columns))?;
        Ok(Tensor::new(wgrad::eye_of(high, wide)?))
    }

    /// All elements `value`; by default `float32`.
    pub fn fill(
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] shape: &JsValue,
        value: f64,
        #[wasm_bindgen(unchecked_optional_param_type = "DType")] dtype: Option<String>,
    ) -> Result<Tensor> {
        let dtype = dtype.as_deref().map_or(Ok(DType::F32), self::dtype)?;
        let shape = self::shape("Tensor.fill", shape)?;
        let value = match dtype {
            DType::Bool => Scalar::Bool(value != 0.0),
            _ => scalar(value, dtype),
        };
        Ok(Tensor::new(wgrad::Tensor::full_of(shape, value, dtype)?))
    }

    /// The sum of tensors of the same shape.
    #[wasm_bindgen(js_name = addN)]
    pub fn add_n(
        #[wasm_bindgen(unchecked_param_type = "readonly (Tensor | Variable)[]")] values: &JsValue,
    ) -> Result<Tensor> {
        Ok(Tensor::new(wgrad::add_n(crate::tensor::list("Tensor.addN", values)?)?))
    }

    /// The elements as `float32`.
    #[wasm_bindgen(js_name = toFloat)]
    pub fn to_float(&self) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.cast(DType::F32)?))
    }

    /// The elements as `int32`, rounded towards 0.
    #[wasm_bindgen(js_name = toInt)]
    pub fn to_int(&self) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.cast(DType::I32)?))
    }

    /// Whether elements are not 0.
    #[wasm_bindgen(js_name = toBool)]
    pub fn to_bool(&self) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.cast(DType::Bool)?))
    }

    /// The product of each element of this and each of `other`.
    #[wasm_bindgen(js_name = outerProduct)]
    pub fn outer_product(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Tensor | Variable")] other: &Operand,
    ) -> Result<Tensor> {
        Ok(Tensor::new(wgrad::linalg::outer(&self.get()?, &other.get()?)?))
    }
}
