//! Arrays in a model's JSON.

use serde_json::Value;

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::python_json;
use crate::tensor::Tensor;

/// An array in a model's JSON.
#[derive(Debug, Clone)]
pub(crate) struct Constant {
    shape: Vec<usize>,
    numbers: Vec<f64>,
    dtype: DType,
}

impl Constant {
    /// The array of `{"value": [[1.0, 2.0]], "dtype": "float32"}`.
    pub(crate) fn read(config: &Value) -> std::result::Result<Self, String> {
        let dtype = config.get("dtype").and_then(Value::as_str).unwrap_or("float32");
        let dtype = dtype_named(dtype)?;
        let (mut shape, mut numbers) = (Vec::new(), Vec::new());
        let mut at = config.get("value").ok_or("an array without 'value'")?;
        while let Some(list) = at.as_array() {
            shape.push(list.len());
            let Some(first) = list.first() else { break };
            at = first;
        }
        elements(config.get("value").unwrap_or(&Value::Null), &shape, &mut numbers)?;
        Ok(Constant { shape, numbers, dtype })
    }

    /// Creates the tensor on the device of `other`.
    ///
    /// # Errors
    /// [`Error::Data`] if it has a number that the device's integers cannot hold.
    pub(super) fn tensor(&self, other: &Tensor) -> Result<Tensor> {
        let range = match self.dtype {
            DType::I32 => Some((f64::from(i32::MIN), f64::from(i32::MAX))),
            DType::U32 => Some((0.0, f64::from(u32::MAX))),
            _ => None,
        };
        let outside =
            |(low, high)| self.numbers.iter().find(|number| !(low..=high).contains(*number));
        if let Some(number) = range.and_then(outside) {
            return Err(Error::Data(message!(
                "from_json: an array has the number {number}, which {:?} cannot hold: integers have 32 bits here. Make it smaller in Keras, or a float.",
                self.dtype
            )));
        }
        other.device().scope(|| match self.dtype {
            DType::F32 | DType::F16 => {
                let numbers: Vec<f32> = self.numbers.iter().map(|&x| x as f32).collect();
                Tensor::from_slice(&numbers, &self.shape)?.cast(self.dtype)
            }
            DType::Bool => {
                let numbers: Vec<bool> = self.numbers.iter().map(|&x| x != 0.0).collect();
                Tensor::from_slice(&numbers, &self.shape)
            }
            DType::U32 => {
                let numbers: Vec<u32> = self.numbers.iter().map(|&x| x as u32).collect();
                Tensor::from_slice(&numbers, &self.shape)
            }
            dtype => {
                let numbers: Vec<i32> = self.numbers.iter().map(|&x| x as i32).collect();
                Tensor::from_slice(&numbers, &self.shape)?.cast(dtype)
            }
        })
    }
}

fn elements(
    value: &Value,
    shape: &[usize],
    numbers: &mut Vec<f64>,
) -> std::result::Result<(), String> {
    match (value, shape) {
        (Value::Array(list), [size, rest @ ..]) if list.len() == *size => {
            list.iter().try_for_each(|value| elements(value, rest, numbers))
        }
        (Value::Bool(truth), []) => {
            numbers.push(f64::from(u8::from(*truth)));
            Ok(())
        }
        (value, []) if python_json::float(value).is_some() => {
            numbers.extend(python_json::float(value));
            Ok(())
        }
        _ => Err("an array whose rows have different lengths, or that holds no numbers".into()),
    }
}

/// The dtype that Keras calls `name`. The device has 32 bits where Keras has 64.
pub(crate) fn dtype_named(name: &str) -> std::result::Result<DType, String> {
    Ok(match name {
        "int64" | "int16" | "int8" | "int" => DType::I32,
        "uint64" | "uint16" => DType::U32,
        "float64" | "float" | "bfloat16" => DType::F32,
        name => DType::ALL
            .into_iter()
            .find(|dtype| dtype.tensorflow_name() == name)
            .ok_or_else(|| format!("the dtype '{name}', which the device lacks"))?,
    })
}
