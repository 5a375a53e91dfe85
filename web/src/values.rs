//! Tensors made from JavaScript values (typed arrays, numbers, nested lists), and read as dtypes that the page never reads.

use js_sys::{
    Array, Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Uint8Array,
    Uint8ClampedArray, Uint16Array, Uint32Array,
};
use wasm_bindgen::prelude::*;
use wgrad::{DType, Scalar};

use crate::args;
use crate::error::{Result, bad_type};
use crate::tensor::{Operand, Tensor};

/// A dtype by TensorFlow's name.
pub(crate) fn dtype(name: &str) -> Result<DType> {
    DType::ALL.into_iter().find(|dtype| dtype.tensorflow_name() == name).ok_or_else(|| {
        let names: Vec<&str> = DType::ALL.iter().map(|dtype| dtype.tensorflow_name()).collect();
        bad_type(format!("There is no dtype '{name}'. The known ones are {}.", names.join(", ")))
    })
}

impl Operand {
    /// The operand of a binary op whose other side is a tensor of `dtype`.
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
}

#[wasm_bindgen]
impl Tensor {
    /// A tensor of `values`: a typed array, a number, or nested lists. Without a shape, a typed array becomes one axis. The
    /// dtype is that of the typed array (`float32` for a `Float64Array`, `int32` for small integers), else `float32` for
    /// numbers and `bool` for booleans.
    pub fn from(
        #[wasm_bindgen(
            unchecked_param_type = "TypedArray | Float64Array | Int8Array | Int16Array | Uint16Array | Uint8ClampedArray | Nested"
        )]
        values: &JsValue,
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
        // These arrays are uploaded without a conversion.
        typed!(Float32Array, Int32Array, Uint32Array, Uint8Array);
        // A canvas returns its pixels in the first of these; the others have no matching dtype.
        let other = match () {
            () if values.has_type::<Uint8ClampedArray>() => Some(DType::U8),
            () if values.has_type::<Float64Array>() => Some(DType::F32),
            () if values.has_type::<Int8Array>()
                || values.has_type::<Int16Array>()
                || values.has_type::<Uint16Array>() =>
            {
                Some(DType::I32)
            }
            () => None,
        };
        let list = other.map(|_| JsValue::from(Array::from(values)));
        let (values, wanted) = (list.as_ref().unwrap_or(values), wanted.or(other));
        let (mut flat, mut found, mut truths) = (Vec::new(), Vec::new(), 0);
        flatten(values, 0, &mut found, &mut flat, &mut truths)?;
        let shape = given.unwrap_or(found);
        if truths > 0 && truths == flat.len() {
            let flat: Vec<bool> = flat.iter().map(|value| *value != 0.0).collect();
            return Ok(Tensor::new(cast(wgrad::Tensor::from_slice(&flat, shape)?, wanted)?));
        }
        // Integers are not made from 32-bit floats, which would round large ones.
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
}

fn cast(tensor: wgrad::Tensor, dtype: Option<DType>) -> Result<wgrad::Tensor> {
    match dtype {
        Some(dtype) if dtype != tensor.dtype() => Ok(tensor.cast(dtype)?),
        _ => Ok(tensor),
    }
}

/// Whole numbers, converted exactly.
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

/// The most levels of nested lists.
const DEEPEST: usize = 32;

/// Appends the numbers of nested lists; all lists of a level must have the same length.
fn flatten(
    value: &JsValue,
    level: usize,
    shape: &mut Vec<usize>,
    flat: &mut Vec<f64>,
    truths: &mut usize,
) -> Result<()> {
    if let Some(list) = value.dyn_ref::<Array>() {
        // A list may contain itself.
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
                "Tensor.from: {} is neither a number nor a list of numbers, nor a typed array.",
                args::show(value)
            )));
        }
    }
    Ok(())
}

/// The elements of a dtype that the page never reads, as a typed array.
pub(crate) async fn read(tensor: &wgrad::Tensor) -> Result<JsValue> {
    Ok(match tensor.dtype() {
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
