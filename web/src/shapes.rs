//! Ops that rearrange, split and join tensors, with the names of TensorFlow.js.

use js_sys::{Array, Object, Promise};
use ndarray::SliceInfoElem;
use wasm_bindgen::prelude::*;
use wgrad::{DType, NormOrder, PadMode, Scalar, SortOptions};

use crate::args::{Options, integers, show, whole};
use crate::device::object;
use crate::error::{Result, bad_type, promise};
use crate::ops::axes;
use crate::tensor::{Operand, Tensor, list};

fn many(tensors: Vec<wgrad::Tensor>) -> Array {
    tensors.into_iter().map(|tensor| JsValue::from(Tensor::new(tensor))).collect()
}

fn named<const N: usize>(tensors: [(&str, wgrad::Tensor); N]) -> Object {
    object(tensors.map(|(name, tensor)| (name, Tensor::new(tensor).into())))
}

/// A number as an element of `dtype`.
pub(crate) fn scalar(value: f64, dtype: DType) -> Scalar {
    match dtype.is_int() && value as i64 as f64 == value {
        true => Scalar::Int(value as i64),
        false => Scalar::Float(value),
    }
}

/// The numbers of elements to add before and after each axis.
fn paddings(op: &str, value: &JsValue) -> Result<Vec<(usize, usize)>> {
    let pair = |pair: JsValue| {
        let pair = pair.dyn_into::<Array>().ok().filter(|pair| pair.length() == 2)?;
        Some((whole(pair.get(0).as_f64()?)?, whole(pair.get(1).as_f64()?)?))
    };
    let pairs: Option<Vec<_>> =
        value.dyn_ref::<Array>().and_then(|pairs| pairs.iter().map(pair).collect());
    pairs.ok_or_else(|| {
        bad_type(format!(
            "{op}: the paddings are {}; they must be a list of pairs of whole numbers from 0, one pair an axis, such as \
             [[1, 1], [0, 2]].",
            show(value)
        ))
    })
}

#[wasm_bindgen]
impl Tensor {
    /// The number of axes.
    #[wasm_bindgen(getter)]
    pub fn rank(&self) -> Result<usize> {
        Ok(self.get()?.rank())
    }

    /// The same tensor as another object; each must be disposed of separately.
    #[wasm_bindgen(js_name = clone)]
    pub fn twin(&self) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?))
    }

    /// Inserts an axis of size 1, by default the first.
    #[wasm_bindgen(js_name = expandDims)]
    pub fn expand_dims(&self, axis: Option<i32>) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.expand_dims(axis.unwrap_or(0))?))
    }

    /// Removes axes of size 1, by default all of them.
    pub fn squeeze(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "number | readonly number[] | null")]
        axis: &JsValue,
    ) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.squeeze(axes("squeeze", axis)?)?))
    }

    /// All elements in one axis.
    pub fn flatten(&self) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.reshape([-1])?))
    }

    /// Repeats the tensor along axes of size 1, and along new leading axes, until it has the shape.
    #[wasm_bindgen(js_name = broadcastTo)]
    pub fn broadcast_to(
        &self,
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] shape: &JsValue,
    ) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.broadcast_to(crate::args::shape("broadcastTo", shape)?)?))
    }

    /// Repeats the tensor `reps[axis]` times along each axis.
    pub fn tile(
        &self,
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] reps: &JsValue,
    ) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.tile(&crate::args::shape("tile", reps)?)?))
    }

    /// Adds `value`, by default 0, before and after each axis; `paddings[axis]` are the two counts.
    pub fn pad(
        &self,
        #[wasm_bindgen(unchecked_param_type = "readonly (readonly [number, number])[]")]
        paddings: &JsValue,
        value: Option<f64>,
    ) -> Result<Tensor> {
        let (x, pairs) = (self.get()?, self::paddings("pad", paddings)?);
        let mode = PadMode::Constant(scalar(value.unwrap_or(0.0), x.dtype()));
        Ok(Tensor::new(x.pad_with(&pairs, mode)?))
    }

    /// Pads with the tensor mirrored at its edges: `reflect` does not repeat the edge elements, `symmetric` does.
    #[wasm_bindgen(js_name = mirrorPad)]
    pub fn mirror_pad(
        &self,
        #[wasm_bindgen(unchecked_param_type = "readonly (readonly [number, number])[]")]
        paddings: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "'reflect' | 'symmetric'")] mode: &str,
    ) -> Result<Tensor> {
        let mode = match mode {
            "reflect" => PadMode::Reflect,
            "symmetric" => PadMode::Symmetric,
            _ => {
                return Err(bad_type(format!(
                    "mirrorPad: there is no mode '{mode}'. The known ones are reflect, symmetric."
                )));
            }
        };
        Ok(Tensor::new(self.get()?.pad_with(&self::paddings("mirrorPad", paddings)?, mode)?))
    }

    /// Reverses the elements along axes, by default all of them.
    pub fn reverse(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "number | readonly number[] | null")]
        axis: &JsValue,
    ) -> Result<Tensor> {
        let x = self.get()?;
        if axis.is_undefined() || axis.is_null() {
            let all: Vec<i64> = (0..x.rank() as i64).collect();
            return Ok(Tensor::new(x.reverse(all)?));
        }
        Ok(Tensor::new(x.reverse(axes("reverse", axis)?)?))
    }

    /// Shifts the elements along an axis, by default the first; elements that leave it reappear at the other end.
    pub fn roll(&self, shift: i32, axis: Option<i32>) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.roll(&[i64::from(shift)], axis.unwrap_or(0))?))
    }

    /// Splits along an axis, by default the first, into a number of equal parts or into parts of these sizes.
    #[wasm_bindgen(unchecked_return_type = "Tensor[]")]
    pub fn split(
        &self,
        #[wasm_bindgen(unchecked_param_type = "number | readonly number[]")] num_or_sizes: &JsValue,
        axis: Option<i32>,
    ) -> Result<Array> {
        let (x, axis) = (self.get()?, axis.unwrap_or(0));
        match num_or_sizes.as_f64() {
            Some(number) => {
                let parts = whole(number).filter(|parts| *parts > 0).ok_or_else(|| {
                    bad_type(format!("split: {} is not a number of parts.", show(num_or_sizes)))
                })?;
                Ok(many(x.split(parts, axis)?))
            }
            None => Ok(many(x.split_sizes(&crate::args::shape("split", num_or_sizes)?, axis)?)),
        }
    }

    /// The slices along an axis, by default the first, without that axis.
    #[wasm_bindgen(unchecked_return_type = "Tensor[]")]
    pub fn unstack(&self, axis: Option<i32>) -> Result<Array> {
        Ok(many(self.get()?.unstack(axis.unwrap_or(0))?))
    }

    /// Joins tensors of one shape along a new axis, by default the first.
    pub fn stack(
        #[wasm_bindgen(unchecked_param_type = "readonly (Tensor | Variable)[]")] values: &JsValue,
        axis: Option<i32>,
    ) -> Result<Tensor> {
        Ok(Tensor::new(wgrad::stack(list("Tensor.stack", values)?, axis.unwrap_or(0))?))
    }

    /// The elements from `begin` up to but not including `end` along each axis, every `strides[axis]`-th of them; negative
    /// indices count from the end.
    #[wasm_bindgen(js_name = stridedSlice)]
    pub fn strided_slice(
        &self,
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] begin: &JsValue,
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] end: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "readonly number[]")] strides: &JsValue,
    ) -> Result<Tensor> {
        let (begin, end) = (integers("stridedSlice", begin)?, integers("stridedSlice", end)?);
        let steps = match strides.is_undefined() {
            true => vec![1; begin.len()],
            false => integers("stridedSlice", strides)?,
        };
        if begin.len() != end.len() || begin.len() != steps.len() {
            return Err(bad_type(format!(
                "stridedSlice: {} places to begin, {} to end and {} strides; give as many of each.",
                begin.len(),
                end.len(),
                steps.len()
            )));
        }
        let ranges =
            begin.iter().zip(&end).zip(&steps).map(|((begin, end), step)| SliceInfoElem::Slice {
                start: *begin as isize,
                end: Some(*end as isize),
                step: *step as isize,
            });
        Ok(Tensor::new(self.get()?.strided_slice(ranges.collect::<Vec<_>>())?))
    }

    /// The elements, or slices, at the indices in the rows of `indices`.
    #[wasm_bindgen(js_name = gatherND)]
    pub fn gather_nd(&self, indices: &Tensor) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.gather_nd(&indices.get()?)?))
    }

    /// Zeros of a shape, with `updates` added at the indices in the rows of `indices`.
    #[wasm_bindgen(js_name = scatterND)]
    pub fn scatter_nd(
        indices: &Tensor,
        updates: &Tensor,
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] shape: &JsValue,
    ) -> Result<Tensor> {
        let shape = crate::args::shape("Tensor.scatterND", shape)?;
        Ok(Tensor::new(wgrad::scatter_nd(&indices.get()?, &updates.get()?, shape)?))
    }

    /// The elements of `a` where `condition` is true, and those of `b` elsewhere. A number gets the other's dtype; two numbers
    /// give a `float32`, two booleans a `bool`.
    #[wasm_bindgen(js_name = where)]
    pub fn where_(
        #[wasm_bindgen(unchecked_param_type = "Tensor | Variable | boolean")] condition: &Operand,
        a: &Operand,
        b: &Operand,
    ) -> Result<Tensor> {
        let full = |element: wgrad::Scalar, dtype: DType| {
            Ok::<_, crate::error::Thrown>(wgrad::Tensor::full_of(
                Vec::<usize>::new(),
                element,
                dtype,
            )?)
        };
        let number = |value: &Operand| AsRef::<JsValue>::as_ref(value).as_f64();
        let truth = |value: &Operand| AsRef::<JsValue>::as_ref(value).as_bool();
        let tensor = |value: &Operand, other: &Operand| {
            let plain = match (number(value), truth(value)) {
                (Some(_), _) => DType::F32,
                (_, Some(_)) => DType::Bool,
                _ => return value.get(),
            };
            let dtype = match (number(other), truth(other)) {
                (None, None) => other.get()?.dtype(),
                (Some(_), _) => DType::F32,
                (_, Some(_)) => plain,
            };
            let element = match truth(value) {
                Some(truth) if dtype == DType::Bool => wgrad::Scalar::Bool(truth),
                Some(truth) => scalar(f64::from(truth), dtype),
                None => scalar(number(value).unwrap_or_default(), dtype),
            };
            full(element, dtype)
        };
        let (first, second) = (tensor(a, b)?, tensor(b, a)?);
        let condition = match truth(condition) {
            Some(truth) => full(wgrad::Scalar::Bool(truth), DType::Bool)?,
            None => condition.get()?,
        };
        Ok(Tensor::new(wgrad::where_(&condition, &first, &second)?))
    }

    /// Sums of products in Einstein notation: `Tensor.einsum('ij,jk->ik', a, b)`.
    #[wasm_bindgen(variadic)]
    pub fn einsum(
        equation: &str,
        #[wasm_bindgen(unchecked_param_type = "(Tensor | Variable)[]")] tensors: &JsValue,
    ) -> Result<Tensor> {
        Ok(Tensor::new(wgrad::einsum(equation, list("Tensor.einsum", tensors)?)?))
    }

    /// The sum of products along the last axis of this tensor and the first of `other`.
    pub fn dot(
        &self,
        #[wasm_bindgen(unchecked_param_type = "Tensor | Variable")] other: &Operand,
    ) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.tensordot(other.get()?, 1)?))
    }

    /// The cumulative products along an axis; by default the first.
    pub fn cumprod(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "number | null")] axis: Option<i32>,
        #[wasm_bindgen(
            unchecked_optional_param_type = "{ exclusive?: boolean; reverse?: boolean }"
        )]
        options: &JsValue,
    ) -> Result<Tensor> {
        let options = crate::ops::sums("cumprod", options)?;
        Ok(Tensor::new(self.get()?.cumprod_with(axis.unwrap_or(0), options)?))
    }

    /// The elements sorted along an axis; by default the last.
    pub fn sort(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "number | null")] axis: Option<i32>,
        #[wasm_bindgen(unchecked_optional_param_type = "{ descending?: boolean }")]
        options: &JsValue,
    ) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.sort_with(axis.unwrap_or(-1), order("sort", options)?)?))
    }

    /// The indices that sort the elements along an axis; by default the last.
    pub fn argsort(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "number | null")] axis: Option<i32>,
        #[wasm_bindgen(unchecked_optional_param_type = "{ descending?: boolean }")]
        options: &JsValue,
    ) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.argsort_with(axis.unwrap_or(-1), order("argsort", options)?)?))
    }

    /// The `k` largest elements of each row, the largest first, and their indices.
    #[wasm_bindgen(unchecked_return_type = "{ values: Tensor; indices: Tensor }")]
    pub fn topk(&self, k: usize) -> Result<Object> {
        let (values, indices) = self.get()?.top_k(k)?;
        Ok(named([("values", values), ("indices", indices)]))
    }

    /// The mean and the variance along axes, by default all of them.
    #[wasm_bindgen(unchecked_return_type = "{ mean: Tensor; variance: Tensor }")]
    pub fn moments(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "number | readonly number[] | null")]
        axis: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "boolean")] keepdims: Option<bool>,
    ) -> Result<Object> {
        let axes = axes("moments", axis)?.keepdims(keepdims.unwrap_or(false));
        let (mean, variance) = self.get()?.moments(axes)?;
        Ok(named([("mean", mean), ("variance", variance)]))
    }

    /// A norm along axes: by default `'euclidean'`; or of an order above 0, such as 1 or `Infinity`.
    pub fn norm(
        &self,
        #[wasm_bindgen(unchecked_optional_param_type = "number | 'euclidean' | 'fro'")]
        order: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "number | readonly number[] | null")]
        axis: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "boolean")] keepdims: Option<bool>,
    ) -> Result<Tensor> {
        let order = match (order.as_f64(), order.as_string().as_deref()) {
            (Some(p), _) => NormOrder::P(p),
            (_, Some("euclidean" | "fro")) => NormOrder::Euclidean,
            _ if order.is_undefined() || order.is_null() => NormOrder::Euclidean,
            _ => {
                return Err(bad_type(format!(
                    "norm: {} is no order; give a number above 0, Infinity or 'euclidean'.",
                    show(order)
                )));
            }
        };
        let axes = axes("norm", axis)?.keepdims(keepdims.unwrap_or(false));
        Ok(Tensor::new(self.get()?.norm(order, axes)?))
    }

    /// The elements, limited to at least `min` and at most `max`.
    #[wasm_bindgen(js_name = clipByValue)]
    pub fn clip_by_value(&self, min: &Operand, max: &Operand) -> Result<Tensor> {
        let x = self.get()?;
        let (min, max) = (min.beside(x.dtype())?, max.beside(x.dtype())?);
        Ok(Tensor::new(x.clip_by_value(min, max)?))
    }

    /// The elements, or slices along `axis`, where `mask` is true. Their number is read from the device.
    #[wasm_bindgen(js_name = booleanMask, unchecked_return_type = "Promise<Tensor>")]
    pub fn boolean_mask(&self, mask: &Tensor, axis: Option<i32>) -> Promise {
        let (x, mask) = (self.get(), mask.get());
        promise(async move {
            Ok(Tensor::new(x?.boolean_mask_async(&mask?, axis.unwrap_or(0)).await?).into())
        })
    }

    /// The indices where the tensor is true, one row each. Their number is read from the device.
    #[wasm_bindgen(js_name = whereAsync, unchecked_return_type = "Promise<Tensor>")]
    pub fn where_async(&self) -> Promise {
        let x = self.get();
        promise(async move { Ok(Tensor::new(x?.where_indices_async().await?).into()) })
    }

    /// The elements as nested lists; for a tensor without axes, the number.
    #[wasm_bindgen(unchecked_return_type = "Promise<Nested>")]
    pub fn array(&self) -> Promise {
        let x = self.get();
        promise(async move {
            let x = x?;
            let values: JsValue = crate::tensor::read(&x).await?;
            let flat: Vec<JsValue> = Array::from(&values).to_vec();
            Ok(nested(&mut flat.into_iter(), x.shape()))
        })
    }

    /// Writes the tensor to the console, as TensorFlow prints it, once it has been read.
    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn print(&self) -> Promise {
        let x = self.get();
        promise(async move {
            let text = x?.to_string_async().await?;
            let console = js_sys::Reflect::get(&js_sys::global(), &"console".into())?;
            let log: js_sys::Function =
                js_sys::Reflect::get(&console, &"log".into())?.dyn_into()?;
            log.call1(&console, &text.into())?;
            Ok(JsValue::UNDEFINED)
        })
    }
}

fn order(op: &'static str, options: &JsValue) -> Result<SortOptions> {
    let options = Options::new(op, options, &["descending"])?;
    Ok(SortOptions::new().descending(options.bool("descending")?.unwrap_or(false)))
}

/// The next numbers as nested lists of these sizes.
fn nested(values: &mut impl Iterator<Item = JsValue>, shape: &[usize]) -> JsValue {
    match shape.split_first() {
        None => values.next().unwrap_or_default(),
        Some((size, rest)) => (0..*size).map(|_| nested(values, rest)).collect::<Array>().into(),
    }
}
