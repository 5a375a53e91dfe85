//! What the page does without of the classes that it uses. Ops have a file of their own, and so have `fit` and making
//! tensors of all kinds of values.

use js_sys::{Array, Object, Promise, Reflect, Uint32Array};
use wasm_bindgen::prelude::*;
use wgrad::Error;

use crate::args::{self, show, whole};
use crate::device::{Device, Plan};
use crate::error::{Result, bad_type, promise};
use crate::images::Images;
use crate::profile::Profiler;
use crate::sequential::Sequential;
use crate::tensor::{Operand, Tensor, list};
use crate::tidy;
use crate::variable::Variable;

#[wasm_bindgen]
impl Tensor {
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

    /// Tensors joined along an axis.
    pub fn concat(
        #[wasm_bindgen(unchecked_param_type = "readonly (Tensor | Variable)[]")] values: &JsValue,
        axis: i32,
    ) -> Result<Tensor> {
        let values = list("Tensor.concat", values)?;
        let values: Vec<&wgrad::Tensor> = values.iter().collect();
        Ok(Tensor::new(wgrad::concat(&values, axis.into())?))
    }

    /// The element type.
    #[wasm_bindgen(getter, unchecked_return_type = "DType")]
    pub fn dtype(&self) -> Result<String> {
        Ok(self.get()?.dtype().tensorflow_name().to_string())
    }

    /// How many elements there are.
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

    #[wasm_bindgen(js_name = _keep, skip_typescript)]
    #[doc(hidden)]
    pub fn keep(&self) {
        tidy::keep(&self.0);
    }
}

#[wasm_bindgen]
impl Variable {
    /// A variable with this start value, which messages and files call `name`.
    #[wasm_bindgen(constructor)]
    pub fn new(start: &Tensor, name: Option<String>) -> Result<Variable> {
        let name = name.unwrap_or_else(|| "Variable".to_string());
        Ok(Variable(wgrad::Variable::named(name, &start.get()?)))
    }

    /// Puts `value` in the place of the old one; shape and dtype must be the same.
    pub fn assign(&self, value: &Tensor) -> Result<()> {
        Ok(self.0.assign(&value.get()?)?)
    }

    /// Adds a tensor of the same shape, or a number.
    #[wasm_bindgen(js_name = assignAdd)]
    pub fn assign_add(&self, delta: &Operand) -> Result<()> {
        Ok(self.0.assign_add(delta.beside(self.0.dtype())?)?)
    }

    /// Subtracts a tensor of the same shape, or a number.
    #[wasm_bindgen(js_name = assignSub)]
    pub fn assign_sub(&self, delta: &Operand) -> Result<()> {
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
        Variable(self.0.clone())
    }
}

#[wasm_bindgen]
impl Sequential {
    /// Sizes all layers for inputs of this shape, the batch axis first (any size, or null).
    pub fn build(
        &self,
        #[wasm_bindgen(unchecked_param_type = "readonly (number | null)[]")] shape: &JsValue,
    ) -> Result<()> {
        let size = |(at, size): (usize, JsValue)| match at == 0 && size.is_null() {
            true => Some(1),
            false => whole(size.as_f64()?),
        };
        let sizes: Option<Vec<usize>> =
            shape.dyn_ref::<Array>().and_then(|list| list.iter().enumerate().map(size).collect());
        let sizes = sizes.ok_or_else(|| {
            bad_type(format!(
                "build: {} is not a shape; give a list such as [null, 28, 28, 1].",
                show(shape)
            ))
        })?;
        Ok(self.0.layers.build(sizes)?)
    }

    /// Runs one step and reads its loss and accuracy.
    #[wasm_bindgen(
        js_name = trainOnBatch,
        unchecked_return_type = "Promise<{ loss: number; accuracy?: number }>"
    )]
    pub fn train_on_batch(&self, x: &Tensor, y: &Tensor) -> Promise {
        let step = (|| self.0.step(&x.get()?, &y.get()?))();
        promise(async move {
            let step = step?;
            let values: Vec<&wgrad::Tensor> =
                [Some(&step.loss), step.accuracy.as_ref()].into_iter().flatten().collect();
            let values = wgrad::Tensor::to_vecs_async::<f32>(&values).await?;
            let result = Object::new();
            for (key, value) in ["loss", "accuracy"].iter().zip(values) {
                Reflect::set(&result, &(*key).into(), &value[0].into())?;
            }
            Ok(result.into())
        })
    }

    /// The names of the layers, first to last.
    #[wasm_bindgen(getter, js_name = layerNames, unchecked_return_type = "string[]")]
    pub fn layer_names(&self) -> Array {
        self.0.layers.layers().map(|layer| JsValue::from(layer.name())).collect()
    }

    /// The size of the optimizer's steps; it may be set at any time.
    #[wasm_bindgen(getter, js_name = learningRate)]
    pub fn learning_rate(&self) -> Result<f32> {
        Ok(self.0.training()?.optimizer.learning_rate())
    }
}

#[wasm_bindgen]
impl Images {
    /// The images from `begin` up to but without `end`, or those that a list of indices names: `x` is
    /// `[n, 28, 28, 1]` in 0 to 1, `y` the labels.
    #[wasm_bindgen(unchecked_return_type = "{ x: Tensor; y: Tensor }")]
    pub fn batch(
        &self,
        #[wasm_bindgen(
            js_name = beginOrIndices,
            unchecked_optional_param_type = "number | Uint32Array | readonly number[]"
        )]
        begin: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "number")] end: Option<f64>,
    ) -> Result<Object> {
        let indices: Vec<usize> = if let Some(indices) = begin.dyn_ref::<Uint32Array>() {
            indices.to_vec().into_iter().map(|i| i as usize).collect()
        } else if let Some(indices) = begin.dyn_ref::<Array>() {
            let place = |i: JsValue| self.check(i.as_f64().unwrap_or(f64::NAN));
            indices.iter().map(place).collect::<Result<_>>()?
        } else {
            let all = self.0.len();
            let bound = |value: Option<f64>, or| value.map_or(Some(or), whole);
            let begin_at = match begin.is_undefined() {
                true => Some(0),
                false => begin.as_f64().and_then(whole),
            };
            match (begin_at, bound(end, all)) {
                (Some(begin), Some(end)) if begin <= end && end <= all => (begin..end).collect(),
                _ => {
                    return Err(Error::Index(
                        format!(
                            "Images.batch: there is no range from {} to {} among {all} images.",
                            show(begin),
                            end.map_or("the end".to_string(), |end| end.to_string())
                        )
                        .into(),
                    )
                    .into());
                }
            }
        };
        self.pair(&indices)
    }

    #[wasm_bindgen(js_name = _images, skip_typescript)]
    #[doc(hidden)]
    pub fn share(&self) -> Images {
        Images(self.0.clone())
    }
}

#[wasm_bindgen]
impl Device {
    /// Sends the waiting ops to the GPU; does not wait for them.
    pub fn flush(&self) -> Result<()> {
        Ok(self.0.flush()?)
    }

    /// Flushes and resolves when the GPU has finished.
    #[wasm_bindgen(unchecked_return_type = "Promise<void>")]
    pub fn synchronize(&self) -> Promise {
        let device = self.0.clone();
        promise(async move {
            device.synchronize_async().await?;
            Ok(JsValue::UNDEFINED)
        })
    }

    /// Limits the bytes that tensors may take; without `bytes` the limit is lifted. What is held already stays.
    #[wasm_bindgen(js_name = setMemoryLimit)]
    pub fn set_memory_limit(&self, bytes: Option<f64>) -> Result<()> {
        let limit = match bytes {
            None => None,
            Some(bytes) => Some(whole(bytes).ok_or_else(|| {
                bad_type(format!("Device.setMemoryLimit: {bytes} is not a whole number of bytes."))
            })? as u64),
        };
        self.0.set_memory_limit(limit);
        Ok(())
    }

    /// Whether several ops may become one kernel; so it is unless this is set to false, to find the op that is slow or
    /// wrong.
    #[wasm_bindgen(js_name = setFusion)]
    pub fn set_fusion(&self, on: bool) {
        self.0.set_fusion(on);
    }
}

#[wasm_bindgen]
impl Plan {
    /// A table of the kernels.
    #[wasm_bindgen(getter)]
    pub fn text(&self) -> String {
        self.0.to_string()
    }

    /// The shaders of all kernels, each text once.
    #[wasm_bindgen(getter)]
    pub fn wgsl(&self) -> String {
        self.0.wgsl()
    }
}

#[wasm_bindgen]
impl Profiler {
    /// Ends the recording without a result.
    pub fn cancel(&self) {
        self.0.borrow_mut().take();
    }
}

/// Adds a table of the kernels to a profile, and what browsers show as a time line.
pub(crate) fn describe(profile: &wgrad::Profile, object: &Object) -> Result<()> {
    Reflect::set(object, &"text".into(), &profile.to_string().into())?;
    Reflect::set(object, &"trace".into(), &profile.chrome_trace().into())?;
    Ok(())
}
