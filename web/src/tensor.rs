//! [`Tensor`]: making tensors from JavaScript's values and reading them back.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{Array, Float32Array, Int32Array, Promise, Uint8Array, Uint32Array};
use wasm_bindgen::prelude::*;
use wgrad::{DType, Scalar};

use crate::error::{Result, bad_type, promise};
use crate::{args, tidy};

/// An array on the device. Its value never changes; methods make new tensors.
///
/// Its memory is given back when the garbage collector finds it, which may take long, or at once by `dispose`
/// (or `using`). Reading waits for the device, so a training loop reads seldom.
#[wasm_bindgen]
pub struct Tensor(Slot);

/// Where a tensor is until it is disposed of.
pub(crate) type Slot = Rc<RefCell<Option<wgrad::Tensor>>>;

impl Tensor {
    pub(crate) fn new(tensor: wgrad::Tensor) -> Self {
        let slot = Rc::new(RefCell::new(Some(tensor)));
        tidy::made(&slot);
        Tensor(slot)
    }

    /// The tensor, unless it was disposed of.
    pub(crate) fn get(&self) -> Result<wgrad::Tensor> {
        let tensor = self.0.borrow().clone();
        tensor.ok_or_else(|| {
            bad_type(
                "Tensor: this tensor was disposed of, or made inside of tidy or valueAndGradients and not \
                 returned. Return what is needed later."
                    .to_string(),
            )
        })
    }
}

#[wasm_bindgen]
extern "C" {
    /// Objects that hand out a tensor: `Tensor` and `Variable`.
    #[wasm_bindgen(typescript_type = "Operand")]
    pub type Operand;

    #[wasm_bindgen(method, catch, js_name = _tensor)]
    fn tensor(this: &Operand) -> std::result::Result<Tensor, JsValue>;
}

impl Operand {
    /// What binary ops take, beside a tensor of `dtype`.
    pub(crate) fn beside(&self, dtype: DType) -> Result<wgrad::Operand> {
        let value: &JsValue = self.as_ref();
        if let Some(number) = value.as_f64() {
            let integer = dtype.is_int() && number as i64 as f64 == number;
            let scalar = if integer { Scalar::Int(number as i64) } else { Scalar::Float(number) };
            return Ok(wgrad::Operand::Scalar(scalar));
        }
        if let Some(truth) = value.as_bool() {
            return Ok(wgrad::Operand::Scalar(Scalar::Bool(truth)));
        }
        Ok(wgrad::Operand::Tensor(self.get()?))
    }

    /// The value of a tensor or a variable.
    pub(crate) fn get(&self) -> Result<wgrad::Tensor> {
        if !has(self.as_ref(), "_tensor") {
            return Err(bad_type(format!(
                "{} is neither a Tensor nor a Variable nor a number.",
                args::show(self.as_ref())
            )));
        }
        self.tensor()?.get()
    }
}

/// Whether `value` has a method of this name.
pub(crate) fn has(value: &JsValue, method: &str) -> bool {
    value.is_object()
        && js_sys::Reflect::get(value, &method.into()).is_ok_and(|found| found.is_function())
}

/// A dtype by TensorFlow's name.
pub(crate) fn dtype(name: &str) -> Result<DType> {
    DType::ALL.into_iter().find(|dtype| dtype.tensorflow_name() == name).ok_or_else(|| {
        let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.tensorflow_name()).collect();
        bad_type(format!("There is no dtype '{name}'. The known ones are {}.", names.join(", ")))
    })
}

#[wasm_bindgen]
impl Tensor {
    /// A tensor of `values`: a typed array, a number, or nested lists. A typed array needs a shape unless it is to
    /// be one axis. The dtype is that of the typed array, else `float32` for numbers and `bool` for truth values.
    pub fn from(
        #[wasm_bindgen(unchecked_param_type = "TypedArray | Nested")] values: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "readonly number[]")] shape: &JsValue,
        #[wasm_bindgen(unchecked_optional_param_type = "DType")] dtype: Option<String>,
    ) -> Result<Tensor> {
        let wanted = dtype.as_deref().map(self::dtype).transpose()?;
        let given = match shape.is_undefined() || shape.is_null() {
            true => None,
            false => Some(args::shape("Tensor.from", shape)?),
        };
        macro_rules! typed {
            ($($array:ty),*) => {$(
                if let Some(array) = values.dyn_ref::<$array>() {
                    let values = array.to_vec();
                    let shape = given.unwrap_or_else(|| vec![values.len()]);
                    let tensor = wgrad::Tensor::from_slice(&values, shape)?;
                    return Ok(Tensor::new(cast(tensor, wanted)?));
                }
            )*};
        }
        // Each kind of array is uploaded as it is.
        typed!(Float32Array, Int32Array, Uint32Array, Uint8Array);
        let (mut flat, mut found, mut truths) = (Vec::new(), Vec::new(), 0);
        flatten(values, 0, &mut found, &mut flat, &mut truths)?;
        let shape = given.unwrap_or(found);
        if truths > 0 && truths == flat.len() {
            let flat: Vec<bool> = flat.iter().map(|value| *value != 0.0).collect();
            return Ok(Tensor::new(cast(wgrad::Tensor::from_slice(&flat, shape)?, wanted)?));
        }
        // Integers are made without passing through 32-bit floats, which round large ones.
        let tensor = match wanted {
            Some(DType::I32) => {
                wgrad::Tensor::from_slice(&exact(&flat, |v| v as i32, f64::from)?, shape)?
            }
            Some(DType::U32) => {
                wgrad::Tensor::from_slice(&exact(&flat, |v| v as u32, f64::from)?, shape)?
            }
            Some(DType::U8) => {
                wgrad::Tensor::from_slice(&exact(&flat, |v| v as u8, f64::from)?, shape)?
            }
            _ => {
                let flat: Vec<f32> = flat.iter().map(|value| *value as f32).collect();
                cast(wgrad::Tensor::from_slice(&flat, shape)?, wanted)?
            }
        };
        Ok(Tensor::new(tensor))
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

    /// The sizes of the axes, outermost first; empty for a scalar.
    #[wasm_bindgen(getter, unchecked_return_type = "number[]")]
    pub fn shape(&self) -> Result<Array> {
        Ok(sizes(self.get()?.shape()))
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

    /// The elements in row-major order: a `Float32Array` for `float32` and `float16`, else the array of the dtype; a
    /// `Uint8Array` of 0 and 1 for `bool`. Rejects if the device is lost or could not compute the value.
    #[wasm_bindgen(unchecked_return_type = "Promise<TypedArray>")]
    pub fn data(&self) -> Promise {
        let tensor = self.get();
        promise(async move { read(&tensor?).await })
    }

    /// The only element of a tensor that has one; `bool` as 0 or 1.
    #[wasm_bindgen(unchecked_return_type = "Promise<number>")]
    pub fn item(&self) -> Promise {
        let tensor = self.get();
        promise(async move {
            let tensor = tensor?;
            if tensor.len() != 1 {
                // The crate's own words.
                tensor.item_async::<f32>().await?;
            }
            let values = read(&tensor).await?;
            Ok(js_sys::Reflect::get_u32(&values, 0)?)
        })
    }

    /// The tensor as TensorFlow prints it; long ones are shortened.
    #[cfg(feature = "ops")]
    #[wasm_bindgen(js_name = toStringAsync, unchecked_return_type = "Promise<string>")]
    pub fn to_string_async(&self) -> Promise {
        let tensor = self.get();
        promise(async move {
            let text = tensor?.to_string_async().await?;
            Ok(text.into())
        })
    }

    /// Gives the memory back now. Using the tensor afterwards throws.
    pub fn dispose(&self) {
        self.0.borrow_mut().take();
    }

    #[wasm_bindgen(js_name = _keep, skip_typescript)]
    #[doc(hidden)]
    pub fn keep(&self) {
        tidy::keep(&self.0);
    }

    #[wasm_bindgen(js_name = _tensor, skip_typescript)]
    #[doc(hidden)]
    pub fn share(&self) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?))
    }
}

fn cast(tensor: wgrad::Tensor, dtype: Option<DType>) -> Result<wgrad::Tensor> {
    match dtype {
        Some(dtype) if dtype != tensor.dtype() => Ok(tensor.cast(dtype)?),
        _ => Ok(tensor),
    }
}

pub(crate) fn sizes(shape: &[usize]) -> Array {
    shape.iter().map(|size| JsValue::from(*size as f64)).collect()
}

/// Whole numbers in their own type.
fn exact<T: Copy>(values: &[f64], to: fn(f64) -> T, back: fn(T) -> f64) -> Result<Vec<T>> {
    let fits = |&value: &f64| {
        let number = to(value);
        match back(number) == value {
            true => Ok(number),
            false => Err(bad_type(format!(
                "Tensor.from: {value} is not a number of this dtype; round it, or choose another dtype."
            ))),
        }
    };
    values.iter().map(fits).collect()
}

/// Levels of nested lists.
const DEEPEST: usize = 32;

/// Appends the numbers of nested lists; all lists of a level must be as long as its first.
fn flatten(
    value: &JsValue,
    level: usize,
    shape: &mut Vec<usize>,
    flat: &mut Vec<f64>,
    truths: &mut usize,
) -> Result<()> {
    if let Some(list) = value.dyn_ref::<Array>() {
        // A list may hold itself.
        if level == DEEPEST {
            return Err(bad_type(format!(
                "Tensor.from: the lists are nested deeper than {DEEPEST} levels."
            )));
        }
        let length = list.length() as usize;
        if level == shape.len() && flat.is_empty() {
            shape.push(length);
        }
        if shape.get(level) != Some(&length) {
            return Err(bad_type(format!(
                "Tensor.from: nested lists differ: one has {length} items where {} were expected. Every row must \
                 be as long as the first.",
                shape.get(level).map_or("numbers".to_string(), usize::to_string)
            )));
        }
        return list.iter().try_for_each(|item| flatten(&item, level + 1, shape, flat, truths));
    }
    if level != shape.len() {
        return Err(bad_type(
            "Tensor.from: a number stands where a list was expected.".to_string(),
        ));
    }
    let truth = value.as_bool();
    *truths += usize::from(truth.is_some());
    match value.as_f64().or(truth.map(f64::from)) {
        Some(number) => flat.push(number),
        None => {
            return Err(bad_type(format!(
                "Tensor.from: {} is neither a number nor a list of numbers.",
                args::show(value)
            )));
        }
    }
    Ok(())
}

/// The elements as a typed array.
pub(crate) async fn read(tensor: &wgrad::Tensor) -> Result<JsValue> {
    Ok(match tensor.dtype() {
        DType::F32 => Float32Array::from(&tensor.to_vec_async::<f32>().await?[..]).into(),
        DType::I32 => Int32Array::from(&tensor.to_vec_async::<i32>().await?[..]).into(),
        DType::U32 => Uint32Array::from(&tensor.to_vec_async::<u32>().await?[..]).into(),
        DType::U8 => Uint8Array::from(&tensor.to_vec_async::<u8>().await?[..]).into(),
        DType::Bool => {
            let values: Vec<u8> =
                tensor.to_vec_async::<bool>().await?.iter().map(|value| u8::from(*value)).collect();
            Uint8Array::from(&values[..]).into()
        }
        _ => {
            let values = tensor.cast(DType::F32)?.to_vec_async::<f32>().await?;
            Float32Array::from(&values[..]).into()
        }
    })
}

#[wasm_bindgen]
impl Tensor {
    /// `e^x / sum(e^x)` along an axis; the last unless given.
    pub fn softmax(&self, axis: Option<i32>) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.softmax(axis.unwrap_or(-1).into())?))
    }

    /// The place of the largest element along an axis; the last unless given.
    pub fn argmax(&self, axis: Option<i32>) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.argmax(axis.unwrap_or(-1).into())?))
    }

    /// The same elements in another shape; one size may be -1, which stands for what is left.
    pub fn reshape(
        &self,
        #[wasm_bindgen(unchecked_param_type = "readonly number[]")] shape: &JsValue,
    ) -> Result<Tensor> {
        Ok(Tensor::new(self.get()?.reshape(args::integers("reshape", shape)?)?))
    }

    /// Tensors joined along an axis.
    pub fn concat(
        #[wasm_bindgen(unchecked_param_type = "readonly (Tensor | Variable)[]")] values: &JsValue,
        axis: i32,
    ) -> Result<Tensor> {
        let Some(values) = values.dyn_ref::<js_sys::Array>() else {
            return Err(bad_type(format!("Tensor.concat: {} is not a list.", args::show(values))));
        };
        let values: Vec<wgrad::Tensor> = values
            .iter()
            .map(|value| value.unchecked_ref::<Operand>().get())
            .collect::<Result<_>>()?;
        let values: Vec<&wgrad::Tensor> = values.iter().collect();
        Ok(Tensor::new(wgrad::concat(&values, axis.into())?))
    }
}
