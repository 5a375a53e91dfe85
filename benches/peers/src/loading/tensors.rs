//! The arrays of a test: those of its `.safetensors` file, and how results are compared with them.

use std::collections::BTreeMap;
use std::path::Path;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use wgrad::{HostArray, HostDType};

use crate::Result;

/// By name; `in.*` are inputs and `out.*` are results.
pub type Arrays = BTreeMap<String, HostArray<'static>>;

/// `None` if an array has a dtype that wgrad lacks.
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

/// Whether a result is the expected one, within 1e-3 of the number and 1e-5, as in tests/judge/onnx.rs.
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

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn results_are_compared_by_shape_and_within_a_thousandth() {
        let bytes: Vec<u8> = [1.0_f32, 2.0].iter().flat_map(|x| x.to_le_bytes()).collect();
        let expected = HostArray::new(HostDType::F32, [2], bytes).unwrap();
        assert!(near(&[2], &[1.0005, 2.0], &expected).is_ok());
        assert!(near(&[2], &[1.01, 2.0], &expected).unwrap_err().to_string().contains("1.01"));
        assert!(near(&[1, 2], &[1.0, 2.0], &expected).unwrap_err().to_string().contains("shape"));
    }
}
