//! Ops that choose and order elements.

use ndarray::SliceInfoElem;
use serde_json::{Value, json};

use super::Argument;
use super::call::{Call, one};
use super::constant::dtype_named;
use super::dtypes::{narrow, wide};
use crate::dtype::DType;
use crate::error::Result;
use crate::keras::config::shown;
use crate::ops::{self, where_};
use crate::shape::Axes;
use crate::tensor::Tensor;

fn axis_of(axis: i64, rank: usize) -> Option<usize> {
    let axis = if axis < 0 { axis.checked_add(rank as i64)? } else { axis };
    usize::try_from(axis).ok().filter(|axis| *axis < rank)
}

/// `x[:, 0, 1:3, ..., None]`.
pub(super) fn item(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let keys: Vec<&Value> = match call.argument(1, "key") {
        Some(Argument::Value(Value::Array(list))) => list.iter().collect(),
        Some(Argument::Value(one)) => vec![one],
        Some(_) => {
            return Err(call.wrong(
                "takes elements by a tensor; only numbers and slices are supported. Use ops.take",
            ));
        }
        None => return Err(call.wrong("lacks its argument 'key'")),
    };
    let class = |value: &Value, name: &str| {
        value.get("class_name").and_then(Value::as_str).is_some_and(|class| class == name)
    };
    let dots = |value: &Value| class(value, "__ellipsis__");
    if keys.iter().filter(|key| dots(key)).count() > 1 {
        return Err(call.wrong("has several ellipses in its key; one is possible"));
    }
    let named = keys.iter().filter(|key| !key.is_null() && !dots(key)).count();
    let left = x.rank().checked_sub(named);
    let left = left.ok_or_else(|| call.wrong(&format!("names {named} axes of {:?}", x.shape())))?;
    let whole = SliceInfoElem::Slice { start: 0, end: None, step: 1 };
    let (mut parts, mut axis) = (Vec::new(), 0);
    for key in keys {
        if key.is_null() {
            parts.push(SliceInfoElem::NewAxis);
            continue;
        }
        if dots(key) {
            parts.extend(vec![whole; left]);
            axis += left;
            continue;
        }
        let size = x.shape()[axis] as i64;
        axis += 1;
        if let Some(at) = key.as_i64() {
            parts.push(SliceInfoElem::Index(at as isize));
            continue;
        }
        if !class(key, "__slice__") {
            let key = shown(key);
            return Err(call.wrong(&format!("has the index {key}; it must be a number or a slice")));
        }
        parts.push(slice(call, key, size)?);
    }
    Ok(vec![x.strided_slice(&parts)?])
}

/// The slice that `key` describes, of an axis of this size.
fn slice(call: &Call<'_>, key: &Value, size: i64) -> Result<SliceInfoElem> {
    let end = |name: &str| -> Result<Option<i64>> {
        match key.pointer(&format!("/config/{name}")) {
            None | Some(Value::Null) => Ok(None),
            Some(number) => number.as_i64().map(Some).ok_or_else(|| {
                call.wrong(&format!(
                    "has a slice whose {name} is {}; it must be a number",
                    shown(number)
                ))
            }),
        }
    };
    let step = end("step")?.unwrap_or(1);
    if step == 0 {
        return Err(call.wrong("has a slice whose step is 0"));
    }
    // Same as Python's `slice.indices`.
    let (low, high) = if step > 0 { (0, size) } else { (-1, size - 1) };
    let place = |given: Option<i64>, default: i64| match given {
        None => default,
        Some(at) => (if at < 0 { at.saturating_add(size) } else { at }).clamp(low, high),
    };
    let (start, stop) = match step > 0 {
        true => (place(end("start")?, low), place(end("stop")?, high)),
        false => (place(end("start")?, high), place(end("stop")?, low)),
    };
    // A slice with a negative step begins at the end of its range.
    let (start, stop) = if step > 0 { (start, stop) } else { (stop + 1, start + 1) };
    Ok(SliceInfoElem::Slice {
        start: start as isize,
        end: Some(stop.max(start) as isize),
        step: step as isize,
    })
}

pub(super) fn split(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let axis = call.option::<i64>("axis")?.unwrap_or(0);
    let at = axis_of(axis, x.rank())
        .ok_or_else(|| call.wrong(&format!("splits axis {axis} of {:?}", x.shape())))?;
    if let Some(Value::Number(_)) = call.given("indices_or_sections") {
        return x.split(call.need("indices_or_sections")?, axis);
    }
    let size = x.shape()[at];
    let ends: Vec<usize> = call.need("indices_or_sections")?;
    let (mut sizes, mut before) = (Vec::new(), 0);
    for end in ends.into_iter().chain([size]) {
        let end = end.min(size);
        sizes.push(end.checked_sub(before).ok_or_else(|| {
            let what =
                format!("has {end} behind {before} in 'indices_or_sections'; they must increase");
            call.wrong(&what)
        })?);
        before = end;
    }
    x.split_sizes(&sizes, axis)
}

pub(super) fn permuted(
    call: &Call<'_>,
    from: &'static str,
    to: &'static str,
    swap: bool,
) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let places = |key: &'static str| -> Result<Vec<usize>> {
        let place = |axis: i64| {
            axis_of(axis, x.rank())
                .ok_or_else(|| call.wrong(&format!("names axis {axis} of {:?}", x.shape())))
        };
        call.list::<i64>(key)?.into_iter().map(place).collect()
    };
    let (from, to) = (places(from)?, places(to)?);
    if from.len() != to.len() || (swap && from.len() != 1) {
        return Err(call.wrong(&format!("moves axes {from:?} to {to:?}")));
    }
    let mut order: Vec<usize> = (0..x.rank()).collect();
    if swap {
        order.swap(from[0], to[0]);
    } else {
        let mut moved: Vec<(usize, usize)> = to.into_iter().zip(from.iter().copied()).collect();
        moved.sort_unstable();
        order.retain(|axis| !from.contains(axis));
        for (to, from) in moved {
            order.insert(to.min(order.len()), from);
        }
    }
    Ok(vec![x.transpose(&order[..])?])
}

pub(super) fn expand_dims(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let list = call.list::<i64>("axis")?;
    // The axes are counted in the result.
    let mut new = vec![false; x.rank().saturating_add(list.len())];
    for axis in list {
        let at = axis_of(axis, new.len()).filter(|at| !new[*at]);
        let at = at.ok_or_else(|| {
            call.wrong(&format!(
                "adds axis {axis} to {:?}, which is out of range or named twice",
                x.shape()
            ))
        })?;
        new[at] = true;
    }
    let mut own = x.shape().iter().copied();
    let size = |new: bool| if new { 1 } else { own.next().unwrap_or(1) };
    let sizes: Vec<usize> = new.into_iter().map(size).collect();
    one(x.reshape_to(sizes.as_slice().into()))
}

pub(super) fn one_hot(call: &Call<'_>) -> Result<Vec<Tensor>> {
    call.only("sparse", &[json!(false)])?;
    let x = call.x()?;
    let name: String = call.option("dtype")?.unwrap_or("float32".to_string());
    let dtype = dtype_named(&name).map_err(|what| call.wrong(&format!("wants {what}")))?;
    let y = ops::one_hot(&x.cast(DType::I32)?, call.need("num_classes")?)?.cast(dtype)?;
    let axis = call.option::<i64>("axis")?.unwrap_or(-1);
    let at = axis_of(axis, y.rank())
        .ok_or_else(|| call.wrong(&format!("puts its new axis at {axis} of {} axes", y.rank())))?;
    let mut order: Vec<usize> = (0..x.rank()).collect();
    order.insert(at, x.rank());
    one(y.transpose(&order[..]))
}

pub(super) fn roll(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let mut shift: Vec<i64> = call.list("shift")?;
    match call.option::<Axes>("axis")? {
        Some(axes) => {
            if let ([one], Some(list)) = (&shift[..], axes.list.as_deref()) {
                shift = vec![*one; list.len()];
            }
            one(x.roll(&shift, axes))
        }
        None => one(x.reshape([-1])?.roll(&shift, 0)?.reshape_to(x.shape().into())),
    }
}

pub(super) fn take(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let indices = call.tensor(1, "indices")?;
    if indices.dtype().is_float() {
        return Err(call.wrong("has floats as 'indices'; ops.cast them to int32"));
    }
    let indices = indices.cast(DType::I32)?;
    let dtype = x.dtype();
    let x = if dtype == DType::U8 { wide(&x)? } else { x };
    let (x, axis) = match call.option::<i64>("axis")? {
        Some(axis) => (x, axis),
        None => (x.reshape([-1])?, 0),
    };
    // Keras counts negative indices from the end.
    let size = axis_of(axis, x.rank()).map_or(0, |axis| x.shape()[axis]) as i32;
    let from_end = indices.add(size)?;
    let indices = where_(&indices.less(0)?, &from_end, &indices)?;
    one(narrow(x.gather(&indices, axis)?, dtype))
}

pub(super) fn tile(call: &Call<'_>) -> Result<Vec<Tensor>> {
    let x = call.x()?;
    let mut repeats: Vec<usize> = call.list("repeats")?;
    let mut sizes = x.shape().to_vec();
    // Both get as many axes as the longer one.
    for list in [&mut repeats, &mut sizes] {
        list.splice(0..0, vec![1; x.rank().saturating_sub(list.len())]);
    }
    sizes.splice(0..0, vec![1; repeats.len() - sizes.len()]);
    one(x.reshape_to(sizes.as_slice().into())?.tile(&repeats))
}
