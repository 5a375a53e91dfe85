//! Decides when two variants' results agree.

use half::f16;

use crate::dtype::{DType, float_text};

/// Compares two results, which may differ by the order in which `terms` products are summed: rounding errors grow with
/// the square root of their number, and correct results never differ by eight times that. With `half` the kernels may
/// have rounded factors to `f16`. The error describes the difference.
pub(super) fn agree(
    dtype: DType,
    half: bool,
    terms: usize,
    plain: &[u8],
    other: &[u8],
) -> std::result::Result<(), String> {
    let values = |bytes: &[u8]| -> Vec<f64> {
        match dtype {
            DType::F16 => {
                let number = |b: &[u8]| f16::from_ne_bytes([b[0], b[1]]).to_f64();
                bytes.chunks_exact(2).map(number).collect()
            }
            _ => {
                let number = |b: &[u8]| f64::from(f32::from_ne_bytes([b[0], b[1], b[2], b[3]]));
                bytes.chunks_exact(4).map(number).collect()
            }
        }
    };
    let stored = match dtype {
        DType::F32 if !half => f64::from(f32::EPSILON),
        DType::F32 => f64::from(f16::EPSILON),
        DType::F16 => f64::from(f16::EPSILON),
        _ if plain == other => return Ok(()),
        _ => return Err("its whole numbers are not those of the plain variant.".to_string()),
    };
    let (plain, other) = (values(plain), values(other));
    let squares: f64 = plain.iter().map(|x| x * x).sum();
    let scale = (squares / plain.len().max(1) as f64).sqrt();
    let root = (terms.max(1) as f64).sqrt();
    let tolerance = 8.0 * (stored + root * f64::from(f32::EPSILON)) * scale;
    // A NaN is as wrong as any difference.
    let near = |a: f64, b: f64| (a - b).abs() <= tolerance;
    match plain.iter().zip(&other).enumerate().find(|(_, (a, b))| !near(**a, **b)) {
        Some((at, (a, b))) => Err(format!(
            "element {at} is {} and that of the plain variant {}, beyond rounding ({}).",
            float_text(*b),
            float_text(*a),
            float_text(tolerance)
        )),
        None if plain.len() != other.len() => Err("it has another number of elements.".to_string()),
        None => Ok(()),
    }
}
