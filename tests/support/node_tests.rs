//! The node tests of the package `onnx`: their arrays, and how results are compared with them. `benches/peers` uses this, too.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use wgrad::{HostArray, HostDType};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// By name; `in.*` are inputs and `out.*` are results.
pub type Arrays = BTreeMap<String, HostArray<'static>>;

/// The arrays of a `.safetensors` file; `None` if one has a dtype that wgrad lacks.
pub fn read(path: &Path) -> Result<Option<Arrays>> {
    let bytes = std::fs::read(path)?;
    let file = SafeTensors::deserialize(&bytes)?;
    let array = |view: &TensorView<'_>| {
        let dtype = match view.dtype() {
            Dtype::F32 => HostDType::F32,
            Dtype::F16 => HostDType::F16,
            Dtype::I32 => HostDType::I32,
            Dtype::I64 => HostDType::I64,
            Dtype::U32 => HostDType::U32,
            Dtype::U8 => HostDType::U8,
            Dtype::BOOL => HostDType::Bool,
            _ => return None,
        };
        HostArray::new(dtype, view.shape(), view.data().to_vec()).ok()
    };
    Ok(file.tensors().iter().map(|(name, view)| Some((name.clone(), array(view)?))).collect())
}

/// The numbers of an array.
pub fn numbers(array: &HostArray<'_>) -> Result<Vec<f64>> {
    Ok(array.to_f64().ok_or("the array has no numbers")?.iter().copied().collect())
}

/// Whether a result is the expected one, within 1e-3 of the number and 1e-5.
pub fn near(shape: &[usize], actual: &[f64], expected: &HostArray<'_>) -> Result<()> {
    if shape != expected.shape() {
        return Err(format!("wrong: the shape {shape:?}, not {:?}", expected.shape()).into());
    }
    for (&a, &b) in actual.iter().zip(&numbers(expected)?) {
        let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-5 + 1e-3 * b.abs();
        if !same {
            return Err(format!("wrong: {a}, not {b}").into());
        }
    }
    Ok(())
}
