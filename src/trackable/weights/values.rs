//! Conversions of an array before it is assigned to a variable: to another dtype if no value changes, and to other
//! orders of axes.
//!
//! These functions round only on request.

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType, Misfit};
use crate::trackable::NamedArray;

/// The bytes of an element of `array`, if they are whole.
pub(crate) fn check_size(array: &NamedArray<'_>) -> Result<usize> {
    let NamedArray { name, array } = array;
    array.dtype().size().ok_or_else(|| {
        Error::Checkpoint(message!(
            "load: '{name}' {:?} has the dtype {}, which is not supported. Convert it with the library that wrote \
             it, such as to F32.",
            array.shape(),
            array.dtype().file_name()
        ))
    })
}

/// `array` in `dtype`, if every value is preserved, or with `round` if every value can be approximated. An `f32` becomes
/// an `f16` only with `round`.
pub(crate) fn converted<'a>(
    array: NamedArray<'a>,
    dtype: DType,
    round: bool,
) -> Result<NamedArray<'a>> {
    if array.array.dtype() == dtype {
        return Ok(array);
    }
    let NamedArray { name, array } = array;
    let misfit = match array.converted(dtype, round) {
        Ok(converted) => return Ok(NamedArray::new(name, converted)),
        Err(misfit) => misfit,
    };
    let (shape, found) = (array.shape(), array.dtype().file_name());
    let wanted = HostDType::from(dtype).file_name();
    Err(Error::Checkpoint(match misfit {
        Misfit::Apart => message!(
            "load: '{name}' {shape:?} is {found} in the weights and {wanted} in the model, and neither can become \
             the other. Convert the weights, or make a model of that dtype."
        ),
        Misfit::Rounds => message!(
            "load: '{name}' {shape:?} is {found} in the weights and {wanted} in the model, which would round its values. \
             Load with LoadOptions::new().round(true), or make a model of that dtype."
        ),
        Misfit::Value(place, value) => {
            let remedy = match round || !array.dtype().is_float() {
                false => "Load with LoadOptions::new().round(true) if the nearest value will do",
                true => "Convert the weights where they were made",
            };
            message!(
                "load: '{name}' {shape:?} is {found} in the weights and {wanted} in the model, which has no {value}: that is \
                 element {place:?}. {remedy}."
            )
        }
    }))
}

/// `array` with its axes in another order: axis `i` of the result is axis `axes[i]` of the array, as in `transpose`.
pub(super) fn permuted<'a>(array: &NamedArray<'a>, axes: &[usize]) -> Result<NamedArray<'a>> {
    let (name, shape) = (&array.name, array.array.shape());
    let mut sorted = axes.to_vec();
    sorted.sort_unstable();
    if sorted.len() != shape.len() || sorted.iter().enumerate().any(|(at, axis)| at != *axis) {
        return Err(Error::Checkpoint(message!(
            "load: '{name}' is {shape:?} in the weights, and its axes cannot be put in the order {axes:?}. Give each of its \
             {} axes once.",
            shape.len()
        )));
    }
    check_size(array)?;
    Ok(NamedArray::new(name.clone(), array.array.permuted(axes)?))
}

/// An array with the name and dtype of `array`.
fn with_bytes<'a>(
    array: &NamedArray<'a>,
    shape: Vec<usize>,
    bytes: Vec<u8>,
) -> Result<NamedArray<'a>> {
    let made = HostArray::new(array.array.dtype(), shape, bytes)?;
    Ok(NamedArray::new(array.name.clone(), made))
}

/// The same elements in another shape.
pub(super) fn reshaped<'a>(array: NamedArray<'a>, shape: Vec<usize>) -> Result<NamedArray<'a>> {
    let NamedArray { name, array } = array;
    let array = array.reshaped(&shape).map_err(|array| {
        Error::Checkpoint(message!(
            "load: '{name}' is {:?} in the weights, which cannot be {shape:?} as the model needs it. Load weights of the same \
             layers.",
            array.shape()
        ))
    })?;
    Ok(NamedArray { name, array })
}

/// The single element of `array`, repeated in a shape of the model.
pub(super) fn repeated<'a>(array: NamedArray<'a>, shape: &[usize]) -> Result<NamedArray<'a>> {
    let bytes = array.array.bytes().repeat(shape.iter().product());
    with_bytes(&array, shape.to_vec(), bytes)
}

/// Reorders equal pieces of `array` along its first axis.
pub(super) fn blocks<'a>(array: &NamedArray<'a>, order: &[usize]) -> Result<NamedArray<'a>> {
    let (name, shape, bytes) = (&array.name, array.array.shape(), array.array.bytes());
    let size = bytes.len() / order.len();
    if shape.first().is_none_or(|first| first % order.len() != 0) {
        return Err(Error::Checkpoint(message!(
            "load: '{name}' is {shape:?} in the weights, and its first axis should hold {} gates of equal size. Load the \
             weights of a layer of the same kind.",
            order.len()
        )));
    }
    let mut moved = Vec::with_capacity(bytes.len());
    order.iter().for_each(|at| moved.extend_from_slice(&bytes[at * size..(at + 1) * size]));
    with_bytes(array, shape.to_vec(), moved)
}

/// The rows of the part numbered `part` of `of` equal ones.
pub(super) fn rows<'a>(array: &NamedArray<'a>, part: usize, of: usize) -> Result<NamedArray<'a>> {
    let (name, shape, bytes) = (&array.name, array.array.shape(), array.array.bytes());
    let Some(first) = shape.first().filter(|first| *first % of == 0) else {
        return Err(Error::Checkpoint(message!(
            "load: '{name}' is {shape:?} in the weights, and its first axis should hold {of} equal parts. Load the weights of \
             a layer of the same kind."
        )));
    };
    let size = bytes.len() / of;
    let shape = [&[first / of], &shape[1..]].concat();
    with_bytes(array, shape, bytes[part * size..(part + 1) * size].to_vec())
}

/// The sum of two arrays of one shape, in `f32`.
pub(super) fn sum<'a>(a: NamedArray<'a>, b: NamedArray<'a>, round: bool) -> Result<NamedArray<'a>> {
    let (a, b) = (converted(a, DType::F32, round)?, converted(b, DType::F32, round)?);
    same_shape(&a, &b)?;
    let sum = a.array.to_array::<f32>()? + b.array.to_array::<f32>()?;
    Ok(NamedArray::new(a.name, sum.into()))
}

/// Two arrays of one shape, stacked as rows.
pub(super) fn stacked<'a>(a: NamedArray<'a>, b: NamedArray<'a>) -> Result<NamedArray<'a>> {
    same_shape(&a, &b)?;
    let shape = [&[2], a.array.shape()].concat();
    with_bytes(&a, shape, [a.array.bytes(), b.array.bytes()].concat())
}

fn same_shape(a: &NamedArray<'_>, b: &NamedArray<'_>) -> Result<()> {
    if a.array.shape() == b.array.shape() && a.array.dtype() == b.array.dtype() {
        return Ok(());
    }
    Err(Error::Checkpoint(message!(
        "load: '{}' is {:?} of {} in the weights and '{}' {:?} of {}; one variable is made of both, so they should be equal. \
         Load the weights of a layer of the same kind.",
        a.name,
        a.array.shape(),
        a.array.dtype().file_name(),
        b.name,
        b.array.shape(),
        b.array.dtype().file_name()
    )))
}
