//! `TensorList`: the arrays that TensorFlow's loops fill and read by index.

use std::sync::Arc;

use super::call::{Call, Entry, Results, any, many};
use super::host;
use crate::error::{Error, Result, message};
use crate::host_array::HostDType;
use crate::ops::{concat, stack};
use crate::saved_model::graph_def::value::{TensorList, Value};
use crate::tensor::Tensor;

/// The most elements of a list.
const LARGEST: usize = 1 << 20;

pub(super) static OPS: &[Entry] = &[
    any("EmptyTensorList", |call| empty(call, 0)),
    many("TensorListConcatV2", &["tensor", "lengths"], concatenated),
    any("TensorListElementShape", |call| {
        let list = list(call, 0)?;
        let shape = list.shape.as_ref().ok_or_else(|| {
            Error::Shape(message!("the shape of the list's elements is not known."))
        })?;
        let sizes: Vec<i64> = shape.iter().map(|size| size.map_or(-1, |s| s as i64)).collect();
        Ok(Value::ints(call.attr_type("shape_type", HostDType::I32), &sizes))
    }),
    any("TensorListFromTensor", from_tensor),
    any("TensorListGather", |call| {
        let indices = call.ints(1)?;
        let elements = indices.iter().map(|index| element(call, *index, 2)?.tensor());
        Ok(Value::Tensor(stack(elements.collect::<Result<Vec<_>>>()?, 0)?))
    }),
    any("TensorListGetItem", |call| element(call, call.int(1)?, 2)),
    any("TensorListLength", |call| {
        Ok(Value::int(HostDType::I32, list(call, 0)?.elements.len() as i64))
    }),
    many("TensorListPopBack", &["output_handle", "tensor"], |call| {
        let last = list(call, 0)?.elements.len() as i64 - 1;
        let element = element(call, last, 1)?;
        let mut list = taken(call)?;
        Arc::make_mut(&mut list).elements.pop();
        Ok(Results::from_iter([Value::List(list), element]))
    }),
    many("TensorListPushBack", &[], |call| {
        let item = call.input(1)?.clone();
        let mut list = taken(call)?;
        if list.elements.len() >= LARGEST {
            return Err(too_large(list.elements.len() + 1));
        }
        Arc::make_mut(&mut list).elements.push(Some(item));
        Ok(Results::from_iter([Value::List(list)]))
    }),
    any("TensorListReserve", |call| empty(call, call.size(1)?)),
    many("TensorListResize", &[], |call| {
        let size = call.size(1)?;
        if size > LARGEST {
            return Err(too_large(size));
        }
        let mut list = taken(call)?;
        Arc::make_mut(&mut list).elements.resize(size, None);
        Ok(Results::from_iter([Value::List(list)]))
    }),
    many("TensorListSetItem", &[], |call| {
        let (index, item) = (call.int(1)?, call.input(2)?.clone());
        let grows = call.attr_bool("resize_if_index_out_of_bounds", false);
        let mut list = taken(call)?;
        let count = list.elements.len();
        let at = usize::try_from(index).ok().filter(|at| *at < if grows { LARGEST } else { count });
        let at = at.ok_or_else(|| out_of_range(index, count))?;
        let elements = &mut Arc::make_mut(&mut list).elements;
        if at >= count {
            elements.resize(at + 1, None);
        }
        elements[at] = Some(item);
        Ok(Results::from_iter([Value::List(list)]))
    }),
    any("TensorListStack", stacked),
];

fn too_large(count: usize) -> Error {
    Error::Index(message!("a list of {count} tensors is too large; {LARGEST} are the most."))
}

fn out_of_range(index: i64, count: usize) -> Error {
    Error::Index(message!("the index {index} is out of range for a list of {count} tensors."))
}

fn list<'a>(call: &'a Call<'_>, at: usize) -> Result<&'a Arc<TensorList>> {
    match call.input(at)? {
        Value::List(list) => Ok(list),
        other => Err(Error::Data(message!("it expects a list and gets {}.", other.describe()))),
    }
}

/// The list of input 0, which is changed in place if nobody else has it.
fn taken(call: &mut Call<'_>) -> Result<Arc<TensorList>> {
    list(call, 0)?;
    match call.take(0)? {
        Value::List(list) => Ok(list),
        _ => unreachable!("it was a list"),
    }
}

/// The sizes in an input, of which -1 are unknown; `None` if the input is -1.
fn shape(call: &Call<'_>, at: usize) -> Result<Option<Vec<Option<usize>>>> {
    let scalar = call.shape_of(at)?.is_empty();
    let sizes = call.ints(at)?;
    Ok((!scalar).then(|| sizes.iter().map(|size| usize::try_from(*size).ok()).collect()))
}

fn empty(call: &Call<'_>, count: usize) -> Result<Value> {
    if count > LARGEST {
        return Err(too_large(count));
    }
    let dtype = call.attr_type("element_dtype", HostDType::F32);
    let elements = vec![None; count];
    Ok(Value::List(Arc::new(TensorList { dtype, shape: shape(call, 0)?, elements })))
}

fn from_tensor(call: &Call<'_>) -> Result<Value> {
    let sizes = call.shape_of(0)?;
    let Some((count, inner)) = sizes.split_first() else {
        return Err(Error::Shape(message!("a scalar has no elements along its first axis.")));
    };
    if *count > LARGEST {
        return Err(too_large(*count));
    }
    let dtype = call.attr_type("element_dtype", HostDType::F32);
    let elements: Vec<Option<Value>> = match call.input(0)? {
        Value::Host(array) => (0..*count)
            .map(|at| {
                let size: usize = inner.iter().product();
                let places = host::indices(inner)?.mapv(|place| place + at * size);
                host::pick(&[array], &places).map(Value::host)
            })
            .collect(),
        _ => call.tensor(0)?.unstack(0)?.into_iter().map(|x| Some(Value::Tensor(x))).collect(),
    };
    let shape = Some(inner.iter().map(|size| Some(*size)).collect());
    Ok(Value::List(Arc::new(TensorList { dtype, shape, elements })))
}

/// An element; zeros if it was not written. Input `shape_at` has its shape.
fn element(call: &Call<'_>, index: i64, shape_at: usize) -> Result<Value> {
    let list = list(call, 0)?;
    let found = usize::try_from(index).ok().and_then(|index| list.elements.get(index));
    match found {
        Some(Some(value)) => Ok(value.clone()),
        Some(None) => Ok(Value::Tensor(unwritten(list, shape(call, shape_at)?)?)),
        None => Err(out_of_range(index, list.elements.len())),
    }
}

/// Zeros in the shape of the list's elements, as far as the list, its elements and `shape` know it.
fn unwritten(list: &TensorList, shape: Option<Vec<Option<usize>>>) -> Result<Tensor> {
    let whole = |shape: Option<Vec<Option<usize>>>| {
        shape.and_then(|shape| shape.into_iter().collect::<Option<Vec<usize>>>())
    };
    let written = list.elements.iter().flatten().next().map(Value::shape).transpose()?;
    let known = written.or_else(|| whole(list.shape.clone())).or_else(|| whole(shape));
    let known = known.ok_or_else(|| {
        Error::Shape(message!(
            "it reads an element that was not written, and whose shape is unknown."
        ))
    })?;
    let dtype = list.dtype.tensor_dtype().unwrap_or(crate::dtype::DType::F32);
    Tensor::full_of(known, 0, dtype)
}

fn stacked(call: &Call<'_>) -> Result<Value> {
    let list = list(call, 0)?;
    let wanted = call.attr_int("num_elements", -1);
    if wanted >= 0 && wanted != list.elements.len() as i64 {
        return Err(Error::Shape(message!(
            "it stacks {wanted} elements, and the list has {}.",
            list.elements.len()
        )));
    }
    let given = shape(call, 1)?;
    if list.elements.is_empty() {
        let mut sizes = vec![0];
        sizes.extend(unwritten(list, given)?.shape());
        let dtype = list.dtype.tensor_dtype().unwrap_or(crate::dtype::DType::F32);
        return Ok(Value::Tensor(Tensor::full_of(sizes, 0, dtype)?));
    }
    let arrays: Option<Vec<_>> =
        list.elements.iter().map(|value| value.as_ref().and_then(Value::as_host)).collect();
    let same = arrays.filter(|all| {
        let count: usize = all.iter().map(|array| array.len()).sum();
        count <= host::LARGEST && all.iter().all(|array| array.shape() == all[0].shape())
    });
    if let Some(arrays) = same {
        let mut sizes = vec![arrays.len()];
        sizes.extend(arrays[0].shape());
        let sources: Vec<_> = arrays.iter().map(|array| &***array).collect();
        let picked = host::indices(&sizes).and_then(|all| host::pick(&sources, &all));
        if let Some(array) = picked {
            return Ok(Value::host(array));
        }
    }
    let elements = list.elements.iter().map(|value| match value {
        Some(value) => value.tensor(),
        None => unwritten(list, given.clone()),
    });
    Ok(Value::Tensor(stack(elements.collect::<Result<Vec<_>>>()?, 0)?))
}

fn concatenated(call: &mut Call<'_>) -> Result<Results> {
    let list = list(call, 0)?;
    let elements: Vec<Tensor> =
        list.elements.iter().flatten().map(Value::tensor).collect::<Result<_>>()?;
    let lengths: Vec<i64> =
        elements.iter().map(|x| x.shape().first().copied().unwrap_or(0) as i64).collect();
    let lengths = Value::ints(HostDType::I64, &lengths);
    Ok(Results::from_iter([Value::Tensor(concat(elements, 0)?), lengths]))
}
