//! Mathematical ops that need more than a line.

use serde_json::Value;

use super::Argument;
use super::call::{Call, one};
use super::dtypes::{Number, Sides, floats, joint_dtype, narrow, of_bytes, wide};
use crate::dtype::DType;
use crate::error::Result;
use crate::keras::config::shown;
use crate::shape::Axes;
use crate::tensor::{Operand, Tensor};

pub(super) fn absolute(x: &Tensor) -> Result<Tensor> {
    match x.dtype() {
        DType::Bool | DType::U8 | DType::U32 => Ok(x.clone()),
        _ => x.abs(),
    }
}

pub(super) fn largest(x: &Tensor, axes: Axes) -> Result<Tensor> {
    narrow(wide(x)?.reduce_max(axes)?, x.dtype())
}

pub(super) fn smallest(x: &Tensor, axes: Axes) -> Result<Tensor> {
    narrow(wide(x)?.reduce_min(axes)?, x.dtype())
}

pub(super) fn extreme(
    call: &Call<'_>,
    find: fn(&Tensor, i64) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    let x = wide(&call.x()?)?;
    let keeps = call.option::<bool>("keepdims")?.unwrap_or(false);
    match call.option::<i64>("axis")? {
        Some(axis) if keeps => one(find(&x, axis)?.expand_dims(axis)),
        Some(axis) => one(find(&x, axis)),
        None => {
            let place = find(&x.reshape([-1])?, 0)?;
            one(if keeps {
                place.reshape_to(vec![1; x.rank()].as_slice().into())
            } else {
                Ok(place)
            })
        }
    }
}

/// The largest or smallest element, or `initial` if that is larger or smaller.
pub(super) fn bounded(
    call: &Call<'_>,
    find: fn(&Tensor, Axes) -> Result<Tensor>,
    further: fn(&Tensor, Operand) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let y = find(&wide(&x)?, call.axes()?)?;
    let y = match call.given("initial").filter(|value| !value.is_null()) {
        Some(value) => {
            let number = Number::parse(value).ok_or_else(|| {
                call.wrong(&format!("has {} as 'initial'; it must be a number", shown(value)))
            })?;
            further(&y, call.number_with(&y, number)?)?
        }
        None => y,
    };
    one(narrow(y, x.dtype()))
}

/// A function of two operands in which booleans count as integers.
pub(super) fn whole(
    call: &Call<'_>,
    f: fn(&Tensor, Operand) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    let Sides { a, b, dtype } = call.sides()?;
    one(narrow(f(&a, b)?, if dtype == DType::Bool { DType::I32 } else { dtype }))
}

/// The remainder of a division. Next to a whole number, Keras computes with bytes as integers.
pub(super) fn modulo(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let number =
        |place, name| matches!(call.argument(place, name), Some(Argument::Value(Value::Number(_))));
    let Sides { a, b, dtype } = call.sides()?;
    let dtype = match dtype {
        DType::Bool => DType::I32,
        DType::U8 if number(0, "x1") || number(1, "x2") => DType::I32,
        dtype => dtype,
    };
    one(narrow(a.floormod(b)?, dtype))
}

/// A product of the tensors of `list`. Keras multiplies integers as floats.
pub(super) fn product(
    list: Vec<Tensor>,
    f: impl FnOnce(&[Tensor]) -> Result<Tensor>,
) -> Result<Tensor> {
    let dtype = list.iter().map(Tensor::dtype).reduce(joint_dtype).unwrap_or(DType::F32);
    let computed = if dtype.is_float() { dtype } else { DType::F32 };
    let list: Vec<Tensor> = list.iter().map(|x| x.cast(computed)).collect::<Result<_>>()?;
    narrow(f(&list)?, dtype)
}

pub(super) fn dot(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let [a, b] = [call.tensor(0, "x1")?, call.tensor(1, "x2")?];
    one(product(vec![a, b], |list| {
        let (a, b) = (&list[0], &list[1]);
        match (a.rank(), b.rank()) {
            (0, _) | (_, 0) => a.multiply(b),
            (_, 1) => a.tensordot(b, [[-1], [-1]]),
            _ => a.tensordot(b, [[-1], [-2]]),
        }
    }))
}

/// A matrix product. A vector is a row on the left and a column on the right.
pub(super) fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let (row, column) = (a.rank() == 1, b.rank() == 1);
    let left = if row { a.expand_dims(0)? } else { a.clone() };
    let right = if column { b.expand_dims(-1)? } else { b.clone() };
    let y = left.matmul(&right)?;
    let y = if column { y.squeeze(-1)? } else { y };
    if row { y.squeeze(if column { -1 } else { -2 }) } else { Ok(y) }
}

/// A running sum or product.
pub(super) fn running(
    call: &Call<'_>,
    f: fn(&Tensor, i64) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    let x = call.in_dtype(call.x()?)?;
    let dtype = if x.dtype() == DType::Bool { DType::I32 } else { x.dtype() };
    let x = wide(&x)?;
    let y = match call.axis_or(-1)? {
        Some(axis) => f(&x, axis),
        None => f(&x.reshape([-1])?, 0),
    };
    one(narrow(y?, dtype))
}

/// Ones or zeros in the shape of `x`.
pub(super) fn like(call: &Call<'_>, f: fn(&Tensor) -> Result<Tensor>) -> Result<Vec<Tensor>> {
    let x = call.in_dtype(call.x()?)?;
    one(narrow(f(&wide(&x)?)?, x.dtype()))
}

pub(super) fn clip(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let dtype = if x.dtype() == DType::Bool { DType::I32 } else { x.dtype() };
    // Integers stay integers. No integer is between a fractional bound and the same bound
    // truncated.
    let whole = match dtype {
        DType::I32 => Some((i64::from(i32::MIN), i64::from(i32::MAX))),
        DType::U32 => Some((0, i64::from(u32::MAX))),
        DType::U8 => Some((0, i64::from(u8::MAX))),
        _ => None,
    };
    let bound = |place: usize, key: &'static str| -> Result<Operand> {
        let value = match call.argument(place, key) {
            Some(Argument::Value(value)) => Some(value),
            _ => call.given(key),
        };
        match (value.and_then(Number::parse), whole) {
            (Some(Number::Int(bound)), None) => Ok(bound.into()),
            (Some(Number::Float(bound)), None) => Ok(bound.into()),
            (Some(Number::Int(bound)), Some((low, high))) => Ok(bound.clamp(low, high).into()),
            (Some(Number::Float(bound)), Some((low, high))) if !bound.is_nan() => {
                Ok((bound as i64).clamp(low, high).into())
            }
            _ => {
                let value = value.map_or("nothing".to_string(), shown);
                Err(call.wrong(&format!("has {value} as '{key}'; it must be a number")))
            }
        }
    };
    let (low, high) = (bound(1, "x_min")?, bound(2, "x_max")?);
    one(narrow(wide(&x)?.clip_by_value(low, high)?, dtype))
}

pub(super) fn normalize(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let order = match call.given("order") {
        None => 2,
        Some(order) => order.as_u64().filter(|order| *order > 0).ok_or_else(|| {
            call.wrong(&format!("has {} as 'order'; it must be a whole number", shown(order)))
        })?,
    };
    let epsilon = call.option::<f32>("epsilon")?.unwrap_or(1e-7);
    let x = floats(&call.x()?)?;
    let axes = match call.given("axis") {
        Some(Value::Null) => Axes::ALL,
        _ => call.option::<Axes>("axis")?.unwrap_or(Axes::from(-1)),
    };
    let several = axes.list.as_deref().map_or(x.rank(), <[i64]>::len) > 1;
    if order != 2 && several {
        return Err(call.wrong(&format!(
            "has the order {order} and several axes, where Keras takes a norm of matrices; it can only be 2"
        )));
    }
    let axes = axes.keepdims(true);
    let norm = match order {
        1 => x.abs()?.reduce_sum(axes)?,
        2 => x.square()?.reduce_sum(axes)?.sqrt()?,
        order => x.abs()?.pow(order as f32)?.reduce_sum(axes)?.pow(1.0 / order as f32)?,
    };
    one(x.divide(norm.maximum(epsilon)?))
}

/// Rounds to decimals; negative decimals round integers to tens, hundreds and so on.
pub(super) fn round(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let decimals = call.option::<i64>("decimals")?.unwrap_or(0);
    if decimals == 0 || (x.dtype().is_int() && decimals > 0) {
        return one(of_bytes(&x, |x| x.round()));
    }
    let factor = 10f64.powi(decimals.clamp(-400, 400) as i32) as f32;
    one(narrow(floats(&x)?.multiply(factor)?.round()?.divide(factor)?, x.dtype()))
}
