//! Ops of shapes: their results are on the host, as the shapes of all tensors are known when a node runs.

use super::call::{Call, Entry, any, many, unsupported};
use super::host;
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::saved_model::graph_def::value::Value;
use crate::shape::broadcast;
use crate::tensor::Tensor;

pub(super) static OPS: &[Entry] = &[
    any("BroadcastArgs", |call| {
        let sizes = |at| Ok::<_, Error>(call.sizes(at)?.into());
        let shape = broadcast("BroadcastArgs", &sizes(0)?, &sizes(1)?)?;
        Ok(ints(call.attr_type("T", HostDType::I32), &shape))
    }),
    any("Fill", fill),
    any("LinSpace", |call| {
        let (start, stop) = (call.float(0)?, call.float(1)?);
        Ok(Value::Tensor(crate::ops::linspace(start, stop, call.size(2)?)?))
    }),
    any("OnesLike", |call| like(call, 1)),
    any("Range", range),
    any("Rank", |call| Ok(Value::int(HostDType::I32, call.shape_of(0)?.len() as i64))),
    any("Shape", |call| Ok(ints(call.attr_type("out_type", HostDType::I32), &call.shape_of(0)?))),
    many("ShapeN", &[], |call| {
        let dtype = call.attr_type("out_type", HostDType::I32);
        (0..call.inputs.len()).map(|at| Ok(ints(dtype, &call.shape_of(at)?))).collect()
    }),
    any("Size", |call| {
        let size = call.shape_of(0)?.iter().product::<usize>();
        Ok(Value::int(call.attr_type("out_type", HostDType::I32), size as i64))
    }),
    any("ZerosLike", |call| like(call, 0)),
    any("Empty", |call| {
        let dtype = call.attr_type("dtype", HostDType::F32);
        filled(&call.sizes(0)?, &zero(dtype)?)
    }),
];

impl Call<'_> {
    /// The sizes of an input.
    pub(super) fn shape_of(&self, at: usize) -> Result<Vec<usize>> {
        self.input(at)?.shape()
    }
}

/// The sizes along one axis.
fn ints(dtype: HostDType, sizes: &[usize]) -> Value {
    Value::ints(dtype, &sizes.iter().map(|size| *size as i64).collect::<Vec<_>>())
}

fn fill(call: &Call<'_>) -> Result<Value> {
    let shape = call.sizes(0)?;
    match call.input(1)? {
        Value::Host(value) if value.len() == 1 => filled(&shape, value),
        _ => Ok(Value::Tensor(call.tensor(1)?.reshape(())?.broadcast_to(shape)?)),
    }
}

/// An array of one value: on the host if it may be a shape, otherwise on the device.
fn filled(shape: &[usize], value: &HostArray<'static>) -> Result<Value> {
    let count = shape.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
    let small = count.is_some_and(|count| count <= host::LARGEST);
    if small && (!value.dtype().is_float() || shape.is_empty()) {
        let indices = host::indices(shape).map(|indices| indices.mapv(|_| 0));
        if let Some(array) = indices.and_then(|indices| host::pick(&[value], &indices)) {
            return Ok(Value::host(array));
        }
    }
    let value = Value::host(value.clone().reshaped(&[]).unwrap_or_else(|array| array));
    Ok(Value::Tensor(value.tensor()?.broadcast_to(shape)?))
}

fn like(call: &Call<'_>, number: i64) -> Result<Value> {
    match call.input(0)? {
        Value::Host(array) => {
            let one = Value::int(HostDType::I32, number).read()?;
            let one = host::cast(&one, array.dtype());
            match one {
                Some(one) => filled(array.shape(), &one),
                None => Err(unsupported(format_args!("this of {}", array.dtype()))),
            }
        }
        Value::List(list) => {
            let mut list = (**list).clone();
            for element in list.elements.iter_mut().flatten() {
                *element = Value::Tensor(element.tensor()?.zeros_like()?);
            }
            Ok(Value::List(list.into()))
        }
        _ => {
            let x = call.tensor(0)?;
            Ok(Value::Tensor(if number == 0 { x.zeros_like()? } else { x.ones_like()? }))
        }
    }
}

/// A zero of this dtype.
fn zero(dtype: HostDType) -> Result<HostArray<'static>> {
    let zero = Value::int(HostDType::I32, 0).read()?;
    host::cast(&zero, dtype).ok_or_else(|| unsupported(format_args!("an array of {dtype}")))
}

fn range(call: &Call<'_>) -> Result<Value> {
    let dtype = call.host(0)?.dtype();
    if dtype.is_float() {
        let (start, limit, delta) = (call.float(0)?, call.float(1)?, call.float(2)?);
        return Ok(Value::Tensor(crate::tensor::range(start, limit, delta)?));
    }
    let (start, limit, delta) = (call.int(0)?, call.int(1)?, call.int(2)?);
    if delta == 0 {
        return Err(Error::Index(message!("its delta is 0.")));
    }
    let span = i128::from(limit) - i128::from(start);
    let (span, step) = if delta < 0 { (-span, -i128::from(delta)) } else { (span, delta.into()) };
    let count = if span <= 0 { 0 } else { (span + step - 1) / step };
    if count <= host::LARGEST as i128 {
        let values: Vec<i64> =
            (0..count).map(|at| (i128::from(start) + at * i128::from(delta)) as i64).collect();
        return Ok(Value::ints(dtype, &values));
    }
    Ok(Value::Tensor(crate::tensor::range(start, limit, delta)?))
}

/// The elements of a host array that are the same, moved; otherwise those of a tensor.
pub(super) fn moved(
    call: &Call<'_>,
    indices: impl FnOnce(ndarray::ArrayD<usize>) -> Option<ndarray::ArrayD<usize>>,
    tensor: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Result<Value> {
    if let Some(array) = super::on_host(call.input(0)?) {
        let moved = host::indices(array.shape()).and_then(indices);
        if let Some(array) = moved.and_then(|moved| host::pick(&[array], &moved)) {
            return Ok(Value::host(array));
        }
    }
    Ok(Value::Tensor(tensor(&call.tensor(0)?)?))
}
