//! `keras.ops.pad`.

use serde_json::Value;

use super::Argument;
use super::call::{Call, one};
use super::dtypes::{Number, narrow, wide};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::keras::config::shown;
use crate::ops::PadMode;
use crate::tensor::Tensor;

pub(super) fn pad(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let mut pairs: Vec<(usize, usize)> = match call.given("pad_width") {
        Some(Value::Number(_)) => vec![(call.need("pad_width")?, call.need("pad_width")?)],
        Some(Value::Array(list)) if list.first().is_some_and(Value::is_number) => {
            vec![call.need("pad_width")?]
        }
        _ => call.need("pad_width")?,
    };
    if pairs.len() == 1 {
        pairs = vec![pairs[0]; x.rank()];
    }
    let fill = match call.argument(1, "constant_values") {
        None | Some(Argument::Value(Value::Null)) => None,
        Some(Argument::Value(value)) if Number::parse(value).is_some() || value.is_boolean() => {
            Some(value)
        }
        Some(_) => {
            return Err(call.wrong("fills with something that is not a number; give it a number"));
        }
    };
    let mode: String = call.option("mode")?.unwrap_or("constant".to_string());
    if let (Some(value), true) = (fill, mode != "constant") {
        return Err(call.wrong(&format!(
            "fills with {} and has the mode '{mode}'; only 'constant' fills with a number",
            shown(value)
        )));
    }
    let wide_x = wide(&x)?;
    let y = match &*mode {
        "constant" => wide_x.pad_with(&pairs, PadMode::Constant(filling(call, fill, x.dtype())?)),
        "reflect" | "symmetric" | "edge" | "wrap" => continued(call, &wide_x, &pairs, &mode),
        mode => Err(call.wrong(&format!(
            "has the mode '{mode}'; it can be constant, reflect, symmetric, edge or wrap"
        ))),
    };
    one(narrow(y?, x.dtype()))
}

/// The fill value of a padding of this dtype. For integers, a fraction is truncated.
fn filling(call: &Call<'_>, value: Option<&Value>, dtype: DType) -> Result<Scalar> {
    let number = match value {
        None => Number::Int(0),
        Some(Value::Bool(truth)) => Number::Int(i64::from(*truth)),
        Some(value) => Number::parse(value).unwrap_or(Number::Int(0)),
    };
    match number {
        Number::Int(number) if dtype == DType::Bool => Ok(Scalar::Int(i64::from(number != 0))),
        Number::Float(number) if dtype == DType::Bool => Ok(Scalar::Int(i64::from(number != 0.0))),
        Number::Float(number) if !dtype.is_float() && number.is_finite() => {
            Ok(Scalar::Int(number as i64))
        }
        Number::Float(number) if !dtype.is_float() => {
            Err(call.wrong(&format!("fills integers with {number}; give it a whole number")))
        }
        Number::Int(number) => Ok(Scalar::Int(number)),
        Number::Float(number) => Ok(Scalar::Float(number)),
    }
}

/// A padding that repeats the tensor's own elements, of any length, as in NumPy.
fn continued(call: &Call<'_>, x: &Tensor, pairs: &[(usize, usize)], mode: &str) -> Result<Tensor> {
    // Refuses invalid paddings before the indices are computed.
    x.pad(pairs)?;
    let mut y = x.clone();
    for (axis, &(low, high)) in pairs.iter().enumerate().filter(|(_, pair)| **pair != (0, 0)) {
        let size = x.shape()[axis];
        let whole =
            (low.checked_add(high)).and_then(|more| i32::try_from(more.checked_add(size)?).ok());
        if size == 0 || whole.is_none() {
            return Err(call.wrong(&format!(
                "pads axis {axis} of {:?} by {:?}",
                x.shape(),
                (low, high)
            )));
        }
        let (low, high, size) = (low as i64, high as i64, size as i64);
        let place = |at: i64| match mode {
            "edge" => at.clamp(0, size - 1),
            "wrap" => at.rem_euclid(size),
            "symmetric" => {
                let at = at.rem_euclid(2 * size);
                at.min(2 * size - 1 - at)
            }
            _ => {
                let at = at.rem_euclid((2 * size - 2).max(1));
                at.min(2 * size - 2 - at)
            }
        };
        let places: Vec<i32> = (-low..size + high).map(|at| place(at) as i32).collect();
        let places = x.device().scope(|| Tensor::from_slice(&places, [places.len()]))?;
        y = y.gather(&places, axis as i64)?;
    }
    Ok(y)
}
