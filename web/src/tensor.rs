//! [`Tensor`]: making, reading and joining tensors. Ops are in `ops`, conversions of JavaScript values in `values`.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, Float32Array, Int32Array, Promise};
use wasm_bindgen::prelude::*;
use wgrad::DType;

use crate::args;
use crate::error::{Result, bad_type, promise};

/// An array on the device. Its value never changes; methods return new tensors.
///
/// Its memory is released when the garbage collector finds it, which may take long, or at once by `dispose` (or `using`).
/// Reading waits for the device, so a training loop should read seldom.
#[wasm_bindgen]
pub struct Tensor(pub(crate) Slot);

/// The tensor; `None` once it is disposed of.
pub(crate) type Slot = Rc<RefCell<Option<Held>>>;

#[cfg(feature = "ops")]
use crate::idle::Held;
#[cfg(not(feature = "ops"))]
type Held = wgrad::Tensor;

impl Tensor {
    pub(crate) fn new(tensor: wgrad::Tensor) -> Self {
        #[cfg(feature = "ops")]
        let tensor = Held::new(tensor);
        let slot = Rc::new(RefCell::new(Some(tensor)));
        #[cfg(feature = "ops")]
        crate::tidy::made(&slot);
        Tensor(slot)
    }

    /// The tensor, unless it was disposed of.
    pub(crate) fn get(&self) -> Result<wgrad::Tensor> {
        #[cfg(feature = "ops")]
        let tensor = self.0.borrow().as_ref().map(|held| held.tensor.clone());
        #[cfg(not(feature = "ops"))]
        let tensor = self.0.borrow().clone();
        tensor.ok_or_else(|| {
            bad_type(
                "Tensor: this tensor was disposed of, or made inside of tidy, valueAndGradients or tfFunction and not \
                 returned. Return what is needed later."
                    .to_string(),
            )
        })
    }
}

#[wasm_bindgen]
extern "C" {
    /// Objects that hold a tensor: `Tensor` and `Variable`.
    #[wasm_bindgen(typescript_type = "Operand")]
    pub type Operand;

    #[wasm_bindgen(method, catch, js_name = _tensor)]
    fn tensor(this: &Operand) -> std::result::Result<Tensor, JsValue>;
}

impl Operand {
    /// The value of a tensor or a variable.
    pub(crate) fn get(&self) -> Result<wgrad::Tensor> {
        if !has(self.as_ref(), "_tensor") {
            return Err(bad_type(format!(
                "{} stands where a Tensor or a Variable is needed.",
                args::show(self.as_ref())
            )));
        }
        self.tensor()?.get()
    }
}

/// The version of the page's own build; `values` has the full one.
#[cfg(not(feature = "ops"))]
#[wasm_bindgen]
impl Tensor {
    /// A `float32` tensor with the values of a typed array.
    pub fn from(
        values: &Float32Array,
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] shape: &JsValue,
    ) -> Result<Tensor> {
        let shape = args::shape("Tensor.from", shape)?;
        Ok(Tensor::new(wgrad::Tensor::from_slice(&values.to_vec(), shape)?))
    }
}

/// Whether `value` has a method of this name.
pub(crate) fn has(value: &JsValue, method: &str) -> bool {
    value.is_object()
        && js_sys::Reflect::get(value, &method.into()).is_ok_and(|found| found.is_function())
}

#[wasm_bindgen]
impl Tensor {
    /// The sizes of the axes, outermost first; empty for a scalar.
    #[wasm_bindgen(getter, unchecked_return_type = "number[]")]
    pub fn shape(&self) -> Result<Array> {
        Ok(sizes(self.get()?.shape()))
    }

    /// The elements in row-major order: a `Float32Array` for `float32` and `float16`, else the array of the dtype; a
    /// `Uint8Array` of 0 and 1 for `bool`. Rejects if the device is lost or could not compute the value.
    #[wasm_bindgen(unchecked_return_type = "Promise<TypedArray>")]
    pub fn data(&self) -> Promise {
        let tensor = self.get();
        promise(async move { read(&tensor?).await })
    }

    /// The elements of `float32` tensors, concatenated: for example the losses of many steps. Waits for the device once and
    /// computes nothing.
    #[wasm_bindgen(unchecked_return_type = "Promise<Float32Array>")]
    pub fn items(
        #[wasm_bindgen(unchecked_param_type = "readonly Tensor[]")] tensors: &JsValue,
    ) -> Promise {
        let tensors = list("Tensor.items", tensors);
        promise(async move {
            let tensors = tensors?;
            let tensors: Vec<&wgrad::Tensor> = tensors.iter().collect();
            let values = wgrad::Tensor::to_vecs_async::<f32>(&tensors).await?;
            Ok(Float32Array::from(&values.concat()[..]).into())
        })
    }

    /// Releases the memory now. Using the tensor afterwards throws.
    pub fn dispose(&self) {
        self.0.borrow_mut().take();
    }

    #[wasm_bindgen(js_name = _tensor, skip_typescript)]
    #[doc(hidden)]
    pub fn share(&self) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?))
    }
}

/// The tensors in a list, or the values of the variables in it.
pub(crate) fn list(name: &str, values: &JsValue) -> Result<Vec<wgrad::Tensor>> {
    let Some(values) = values.dyn_ref::<Array>() else {
        return Err(bad_type(format!("{name}: {} is not a list.", args::show(values))));
    };
    let of = |value: JsValue| {
        if !has(&value, "_tensor") {
            return Err(bad_type(format!("{name}: {} is no Tensor.", args::show(&value))));
        }
        value.unchecked_ref::<Operand>().get()
    };
    values.iter().map(of).collect()
}

pub(crate) fn sizes(shape: &[usize]) -> Array {
    shape.iter().map(|size| JsValue::from(*size as f64)).collect()
}

/// The elements as a typed array.
pub(crate) async fn read(tensor: &wgrad::Tensor) -> Result<JsValue> {
    Ok(match tensor.dtype() {
        DType::F32 => Float32Array::from(&tensor.to_vec_async::<f32>().await?[..]).into(),
        DType::I32 => Int32Array::from(&tensor.to_vec_async::<i32>().await?[..]).into(),
        #[cfg(feature = "ops")]
        _ => crate::values::read(tensor).await?,
        #[cfg(not(feature = "ops"))]
        other => return Err(bad_type(format!("Tensor: {other} is read by the whole API alone."))),
    })
}

#[wasm_bindgen]
impl Tensor {
    /// `e^x / sum(e^x)` along an axis; by default the last.
    pub fn softmax(&self, axis: Option<i32>) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.softmax(axis.unwrap_or(-1))?))
    }

    /// The index of the largest element along an axis; by default the last.
    pub fn argmax(&self, axis: Option<i32>) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.argmax(axis.unwrap_or(-1))?))
    }
}

// Not part of the page's own build.
#[cfg(feature = "ops")]
#[wasm_bindgen]
impl Tensor {
    /// The only element of a tensor; `bool` as 0 or 1.
    #[wasm_bindgen(unchecked_return_type = "Promise<number>")]
    pub fn item(&self) -> Promise {
        let tensor = self.get();
        promise(async move {
            let tensor = tensor?;
            if tensor.len() != 1 {
                // Returns the crate's own error.
                tensor.item_async::<f32>().await?;
            }
            let values = read(&tensor).await?;
            Ok(js_sys::Reflect::get_u32(&values, 0)?)
        })
    }

    /// The same elements in another shape; one size may be -1 and is then inferred.
    pub fn reshape(
        &self,
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] shape: &JsValue,
    ) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.reshape(args::integers("reshape", shape)?)?))
    }

    /// All elements 0.
    pub fn zeros(
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] shape: &JsValue,
    ) -> Result<Tensor> {
        Ok(Tensor::new(wgrad::Tensor::zeros(args::shape("Tensor.zeros", shape)?)?))
    }

    /// All elements 1.
    pub fn ones(
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] shape: &JsValue,
    ) -> Result<Tensor> {
        Ok(Tensor::new(wgrad::Tensor::ones(args::shape("Tensor.ones", shape)?)?))
    }

    /// All elements `value`, as `float32`.
    pub fn full(
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] shape: &JsValue,
        value: f64,
    ) -> Result<Tensor> {
        Ok(Tensor::new(wgrad::Tensor::full(args::shape("Tensor.full", shape)?, value)?))
    }

    /// Joins tensors along an axis.
    pub fn concat(
        #[wasm_bindgen(unchecked_param_type = "readonly (Tensor | Variable)[]")] values: &JsValue,
        axis: i32,
    ) -> Result<Tensor> {
        let values = list("Tensor.concat", values)?;
        let values: Vec<&wgrad::Tensor> = values.iter().collect();
        Ok(Tensor::new(wgrad::concat(&values, axis)?))
    }

    /// The element type.
    #[wasm_bindgen(getter, unchecked_return_type = "DType")]
    pub fn dtype(&self) -> Result<String> {
        Ok(self.get()?.dtype().tensorflow_name().to_string())
    }

    /// The number of elements.
    #[wasm_bindgen(getter)]
    pub fn size(&self) -> Result<usize> {
        Ok(self.get()?.len())
    }

    /// The tensor as TensorFlow prints it; long ones are shortened.
    #[wasm_bindgen(js_name = toStringAsync, unchecked_return_type = "Promise<string>")]
    pub fn to_string_async(&self) -> Promise {
        let tensor = self.get();
        promise(async move {
            let text = tensor?.to_string_async().await?;
            Ok(text.into())
        })
    }

    /// Dtype and shape, for the console.
    #[wasm_bindgen(js_name = _text, skip_typescript)]
    #[doc(hidden)]
    pub fn text(&self) -> String {
        match self.0.borrow().as_ref() {
            Some(held) => {
                format!("{} {:?}", held.tensor.dtype().tensorflow_name(), held.tensor.shape())
            }
            None => String::new(),
        }
    }

    #[wasm_bindgen(js_name = _keep, skip_typescript)]
    #[doc(hidden)]
    pub fn keep(&self) {
        crate::tidy::keep(&self.0);
    }
}
