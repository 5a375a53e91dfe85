//! Ops that move elements: reshape, slice, join, gather, scatter and pad.

use ndarray::{ArrayD, Axis, IxDyn, SliceInfoElem};

use super::call::{Call, Entry, Results, any, many, unsupported};
use super::reductions::wrap;
use super::shapes::moved;
use super::{host, on_host};
use crate::dtype::Scalar;
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::ops::{
    GatherOptions, OneHotOptions, PadMode, ReverseSequenceOptions, Side, concat, one_hot_with,
    scatter_nd, stack,
};
use crate::saved_model::graph_def::value::Value;
use crate::saved_model::waiting::wait;
use crate::tensor::Tensor;

pub(super) static OPS: &[Entry] = &[
    any("BatchToSpaceND", |call| {
        let crops = pairs(&call.sizes(2)?);
        Ok(Value::Tensor(call.tensor(0)?.batch_to_space(&call.sizes(1)?, &crops)?))
    }),
    any("BroadcastTo", |call| {
        let shape = call.sizes(1)?;
        let of_indices = |x: ArrayD<usize>| {
            small(&shape)?;
            Some(x.broadcast(IxDyn(&shape))?.to_owned())
        };
        moved(call, of_indices, |x| x.broadcast_to(&shape))
    }),
    any("Bucketize", |call| {
        let x = call.tensor(0)?;
        let boundaries = call.attr_floats("boundaries");
        let boundaries = Tensor::from_slice(boundaries, [boundaries.len()])?;
        let x = x.cast(crate::dtype::DType::F32)?;
        let flat = boundaries.searchsorted(&x.reshape([-1])?, Side::Right)?;
        Ok(Value::Tensor(flat.reshape(x.shape())?))
    }),
    any("Concat", |call| joined(call, 1..call.inputs.len(), 0)),
    any("ConcatV2", |call| {
        let last = call.inputs.len().saturating_sub(1);
        joined(call, 0..last, last)
    }),
    any("Const", constant),
    any("DepthToSpace", |call| {
        nhwc(call)?;
        Ok(Value::Tensor(call.tensor(0)?.depth_to_space(call.attr_size("block_size", 1)?)?))
    }),
    any("DynamicStitch", dynamic_stitch),
    any("EnsureShape", |call| {
        let shape = call.shape_of(0)?;
        let wanted = call.attr_shape("shape");
        let fits = wanted.as_ref().is_none_or(|wanted| {
            wanted.len() == shape.len()
                && wanted.iter().zip(&shape).all(|(wanted, size)| wanted.is_none_or(|w| w == *size))
        });
        if !fits {
            return Err(Error::Shape(message!("the shape is {shape:?}, and must be {wanted:?}.")));
        }
        call.input(0).cloned()
    }),
    any("ExpandDims", |call| {
        let axis = call.int(1)?;
        let of_indices = |x: ArrayD<usize>| {
            let axis = if axis < 0 { axis + x.ndim() as i64 + 1 } else { axis };
            let axis = usize::try_from(axis).ok().filter(|axis| *axis <= x.ndim())?;
            Some(x.insert_axis(Axis(axis)))
        };
        moved(call, of_indices, |x| x.expand_dims(axis))
    }),
    any("Gather", |call| gather(call, 0, 0)),
    any("GatherNd", |call| {
        let options = GatherOptions::new().batch_dims(call.attr_size("batch_dims", 0)?);
        Ok(Value::Tensor(call.tensor(0)?.gather_nd_with(&call.tensor(1)?, options)?))
    }),
    any("GatherV2", |call| gather(call, call.int(2)?, call.attr_int("batch_dims", 0))),
    any("Identity", |call| call.input(0).cloned()),
    many("IdentityN", &[], |call| Ok(call.inputs.drain(..).collect())),
    any("InvertPermutation", |call| {
        let x = call.ints(0)?;
        let mut inverse = vec![-1; x.len()];
        for (at, value) in x.iter().enumerate() {
            match usize::try_from(*value).ok().and_then(|value| inverse.get_mut(value)) {
                Some(place) if *place == -1 => *place = at as i64,
                _ => return Err(Error::Data(message!("{x:?} is not a permutation."))),
            }
        }
        Ok(Value::ints(call.attr_type("T", HostDType::I32), &inverse))
    }),
    any("LowerBound", |call| searchsorted(call, Side::Left)),
    any("MirrorPad", |call| {
        let mode = match call.attr_text("mode", "REFLECT") {
            "SYMMETRIC" => PadMode::Symmetric,
            _ => PadMode::Reflect,
        };
        Ok(Value::Tensor(call.tensor(0)?.pad_with(&pairs(&call.sizes(1)?), mode)?))
    }),
    many("NoOp", &[], |_| Ok(Results::new())),
    any("OneHot", |call| {
        let depth = call.size(1)?;
        let (on, off) = (scalar(call, 2)?, scalar(call, 3)?);
        let options = OneHotOptions::new().on_value(on).off_value(off);
        let options = options.axis(call.attr_int("axis", -1));
        let result = one_hot_with(&call.tensor(0)?, depth, options)?;
        let dtype = call.attr_type("T", HostDType::F32).tensor_dtype();
        Ok(Value::Tensor(match dtype {
            Some(dtype) if dtype != result.dtype() => result.cast(dtype)?,
            _ => result,
        }))
    }),
    any("Pack", pack),
    any("Pad", |call| Ok(Value::Tensor(call.tensor(0)?.pad(&pairs(&call.sizes(1)?))?))),
    any("PadV2", |call| {
        let mode = PadMode::Constant(scalar(call, 2)?);
        Ok(Value::Tensor(call.tensor(0)?.pad_with(&pairs(&call.sizes(1)?), mode)?))
    }),
    any("PlaceholderWithDefault", |call| call.input(0).cloned()),
    any("PreventGradient", |call| call.input(0).cloned()),
    any("Reshape", |call| {
        let sizes = call.ints(1)?;
        if let Value::Host(array) = call.input(0)? {
            if let Some(shape) = resolved(&sizes, array.len()) {
                let array = (**array).clone().reshaped(&shape);
                return array.map(Value::host).map_err(|array| {
                    Error::Shape(message!("{:?} cannot become {sizes:?}.", array.shape()))
                });
            }
        }
        Ok(Value::Tensor(call.tensor(0)?.reshape(&sizes)?))
    }),
    any("ReverseSequence", |call| {
        let options = ReverseSequenceOptions::new()
            .seq_axis(call.attr_int("seq_dim", 0))
            .batch_axis(call.attr_int("batch_dim", 0));
        Ok(Value::Tensor(call.tensor(0)?.reverse_sequence(&call.tensor(1)?, options)?))
    }),
    any("ReverseV2", |call| {
        let axes = call.ints(1)?;
        let of_indices = |mut x: ArrayD<usize>| {
            for axis in &axes {
                x.invert_axis(Axis(wrap(*axis, x.ndim()).ok()?));
            }
            Some(x)
        };
        moved(call, of_indices, |x| x.reverse(&axes))
    }),
    any("Roll", |call| Ok(Value::Tensor(call.tensor(0)?.roll(&call.ints(1)?, call.ints(2)?)?))),
    any("ScatterNd", |call| {
        Ok(Value::Tensor(scatter_nd(&call.tensor(0)?, &call.tensor(1)?, call.sizes(2)?)?))
    }),
    any("Slice", slice),
    any("Snapshot", |call| call.input(0).cloned()),
    any("SpaceToBatchND", |call| {
        let paddings = pairs(&call.sizes(2)?);
        Ok(Value::Tensor(call.tensor(0)?.space_to_batch(&call.sizes(1)?, &paddings)?))
    }),
    any("SpaceToDepth", |call| {
        nhwc(call)?;
        Ok(Value::Tensor(call.tensor(0)?.space_to_depth(call.attr_size("block_size", 1)?)?))
    }),
    many("Split", &[], |call| {
        let (axis, num) = (call.int(0)?, call.attr_size("num_split", 1)?);
        let size = call.shape_of(1)?;
        let size = size[wrap(axis, size.len())?];
        if !(1..1 << 20).contains(&num) || !size.is_multiple_of(num) {
            return Err(Error::Shape(message!(
                "{size} elements cannot be split into {num} parts."
            )));
        }
        split(call, 1, axis, &vec![size / num; num])
    }),
    many("SplitV", &[], |call| {
        let axis = call.int(2)?;
        let whole = call.shape_of(0)?;
        let whole = whole[wrap(axis, whole.len())?] as i64;
        let mut parts = call.ints(1)?;
        let known = parts.iter().filter(|size| **size >= 0);
        let known = known.fold(0i64, |sum, size| sum.saturating_add(*size));
        if let Some(open) = parts.iter_mut().find(|size| **size == -1) {
            *open = whole - known;
        }
        split(call, 0, axis, &super::call::sizes(&parts)?)
    }),
    any("Squeeze", |call| {
        let axes = call.attr_ints("squeeze_dims");
        let of_indices = |mut x: ArrayD<usize>| {
            let all = (0..x.ndim()).filter(|axis| x.shape()[*axis] == 1).collect();
            let rank = x.ndim();
            let mut list: Vec<usize> = match axes {
                [] => all,
                axes => axes.iter().map(|axis| wrap(*axis, rank).ok()).collect::<Option<_>>()?,
            };
            list.sort_unstable();
            list.dedup();
            for axis in list.into_iter().rev() {
                if x.shape()[axis] != 1 {
                    return None;
                }
                x = x.index_axis_move(Axis(axis), 0);
            }
            Some(x)
        };
        moved(call, of_indices, |x| if axes.is_empty() { x.squeeze(()) } else { x.squeeze(axes) })
    }),
    any("StopGradient", |call| match call.input(0)? {
        Value::Tensor(x) => Ok(Value::Tensor(x.stop_gradient())),
        other => Ok(other.clone()),
    }),
    any("StridedSlice", strided_slice),
    any("TensorScatterAdd", |call| scatter(call, Tensor::tensor_scatter_nd_add)),
    any("TensorScatterMax", |call| scatter(call, Tensor::tensor_scatter_nd_max)),
    any("TensorScatterMin", |call| scatter(call, Tensor::tensor_scatter_nd_min)),
    any("TensorScatterSub", |call| scatter(call, Tensor::tensor_scatter_nd_sub)),
    any("TensorScatterUpdate", |call| scatter(call, Tensor::tensor_scatter_nd_update)),
    any("Tile", |call| {
        let multiples = call.sizes(1)?;
        let of_indices = |x: ArrayD<usize>| {
            let mut x = x;
            let count = multiples.iter().try_fold(x.len(), |all, n| all.checked_mul(*n))?;
            if multiples.len() != x.ndim() || count > host::LARGEST {
                return None;
            }
            for (axis, times) in multiples.iter().enumerate() {
                let places: Vec<usize> =
                    (0..times * x.len_of(Axis(axis))).map(|at| at % x.len_of(Axis(axis))).collect();
                x = x.select(Axis(axis), &places);
            }
            Some(x)
        };
        moved(call, of_indices, |x| x.tile(&multiples))
    }),
    any("Transpose", |call| {
        let perm = call.ints(1)?;
        let of_indices = |x: ArrayD<usize>| {
            let rank = x.ndim();
            let axes: Vec<usize> =
                perm.iter().map(|axis| wrap(*axis, rank).ok()).collect::<Option<_>>()?;
            let mut sorted = axes.clone();
            sorted.sort_unstable();
            let whole = sorted.iter().copied().eq(0..rank);
            whole.then(|| x.permuted_axes(IxDyn(&axes)))
        };
        moved(call, of_indices, |x| x.transpose(&perm))
    }),
    many("Unique", &["y", "idx"], |call| {
        // Their number is a value.
        let x = call.tensor(0)?;
        let own = x.clone();
        let results = wait(&x, async move {
            let (values, places) = own.unique_async().await?;
            Ok(vec![Value::Tensor(values), Value::Tensor(places)])
        });
        Ok(results?.into())
    }),
    many("Unpack", &[], |call| {
        let axis = call.attr_int("axis", 0);
        let shape = call.shape_of(0)?;
        let at = wrap(axis, shape.len())?;
        if let Some(array) = on_host(call.input(0)?) {
            let each = (0..shape[at]).map(|index| {
                let places = host::indices(&shape)?.index_axis_move(Axis(at), index);
                host::pick(&[array], &places).map(Value::host)
            });
            if let Some(each) = each.collect::<Option<Results>>() {
                return Ok(each);
            }
        }
        Ok(call.tensor(0)?.unstack(axis)?.into_iter().map(Value::Tensor).collect())
    }),
    any("UpperBound", |call| searchsorted(call, Side::Right)),
    many("Where", &[], |call| {
        // Their number is a value.
        let x = call.tensor(0)?;
        let own = x.clone();
        let results =
            wait(&x, async move { Ok(vec![Value::Tensor(own.where_indices_async().await?)]) });
        Ok(results?.into())
    }),
];

/// The layout of images that this crate has.
fn nhwc(call: &Call<'_>) -> Result<()> {
    match call.attr_text("data_format", "NHWC") {
        "NHWC" => Ok(()),
        other => Err(unsupported(format_args!("the data format {other}"))),
    }
}

fn pairs(values: &[usize]) -> Vec<(usize, usize)> {
    values.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect()
}

/// `None` if an array of this shape is too large for the host.
fn small(shape: &[usize]) -> Option<()> {
    let count = shape.iter().try_fold(1usize, |all, size| all.checked_mul(*size))?;
    (count <= host::LARGEST).then_some(())
}

/// The only number of an input, as a plain one.
fn scalar(call: &Call<'_>, at: usize) -> Result<Scalar> {
    let array = call.host(at)?;
    Ok(match array.dtype() {
        HostDType::Bool => Scalar::Bool(array.bytes().first() == Some(&1)),
        dtype if dtype.is_float() => Scalar::Float(call.float(at)?),
        _ => Scalar::Int(call.int(at)?),
    })
}

fn constant(call: &Call<'_>) -> Result<Value> {
    if let Some(tensor) = call.node.uploaded.get() {
        return Ok(Value::Tensor(tensor.clone()));
    }
    match &call.node.constant {
        Some(Ok(value)) => Ok(value.clone()),
        Some(Err(why)) => Err(Error::Data(message!("its value {why}."))),
        None => Err(Error::Data(message!("it has no value. The file is damaged."))),
    }
}

/// Sizes of which one may be -1, for this number of elements.
fn resolved(sizes: &[i64], count: usize) -> Option<Vec<usize>> {
    let mut known = sizes.iter().filter(|size| **size >= 0);
    let known =
        known.try_fold(1usize, |all, size| all.checked_mul(usize::try_from(*size).ok()?))?;
    let open = sizes.iter().filter(|size| **size < 0).count();
    if open > 1 || (open == 1 && (known == 0 || !count.is_multiple_of(known))) {
        return None;
    }
    sizes
        .iter()
        .map(|size| if *size == -1 { Some(count / known) } else { usize::try_from(*size).ok() })
        .collect()
}

/// The inputs, if all are small arrays on the host.
fn all_on_host<'a>(
    call: &'a Call<'_>,
    inputs: std::ops::Range<usize>,
) -> Option<Vec<&'a HostArray<'static>>> {
    let list = call.inputs.get(inputs)?;
    let list: Vec<_> = list.iter().map(on_host).collect::<Option<_>>()?;
    (list.iter().map(|array| array.len()).sum::<usize>() <= host::LARGEST).then_some(list)
}

/// The indices of each of `arrays`, counted through all of them.
fn counted(arrays: &[&HostArray<'_>]) -> Option<Vec<ArrayD<usize>>> {
    let mut start = 0;
    let each = arrays.iter().map(|array| {
        let indices = host::indices(array.shape())?.mapv(|at| at + start);
        start += array.len();
        Some(indices)
    });
    each.collect()
}

fn joined(call: &Call<'_>, values: std::ops::Range<usize>, axis: usize) -> Result<Value> {
    let axis = call.int(axis)?;
    if let Some(arrays) = all_on_host(call, values.clone()) {
        let joined = counted(&arrays).and_then(|each| {
            let axis = Axis(wrap(axis, each.first()?.ndim()).ok()?);
            ndarray::concatenate(axis, &each.iter().map(|x| x.view()).collect::<Vec<_>>()).ok()
        });
        if let Some(array) = joined.and_then(|joined| host::pick(&arrays, &joined)) {
            return Ok(Value::host(array));
        }
    }
    Ok(Value::Tensor(concat(call.tensors(values.start, values.end)?, axis)?))
}

fn pack(call: &Call<'_>) -> Result<Value> {
    let axis = call.attr_int("axis", 0);
    if let Some(arrays) = all_on_host(call, 0..call.inputs.len()) {
        let joined = counted(&arrays).and_then(|each| {
            let axis = Axis(wrap(axis, each.first()?.ndim() + 1).ok()?);
            ndarray::stack(axis, &each.iter().map(|x| x.view()).collect::<Vec<_>>()).ok()
        });
        if let Some(array) = joined.and_then(|joined| host::pick(&arrays, &joined)) {
            return Ok(Value::host(array));
        }
    }
    Ok(Value::Tensor(stack(call.tensors(0, call.inputs.len())?, axis)?))
}

fn split(call: &Call<'_>, value: usize, axis: i64, parts: &[usize]) -> Result<Results> {
    if let Some(array) = on_host(call.input(value)?) {
        let at = wrap(axis, array.shape().len())?;
        let mut start = 0;
        let each = parts.iter().map(|size| {
            let all = host::indices(array.shape())?;
            let end = start + size;
            if end > all.len_of(Axis(at)) {
                return None;
            }
            let part = all.slice_axis(Axis(at), ndarray::Slice::from(start..end)).to_owned();
            start = end;
            host::pick(&[array], &part).map(Value::host)
        });
        if let Some(each) = each.collect::<Option<Results>>() {
            return Ok(each);
        }
    }
    let parts = call.tensor(value)?.split_sizes(parts, axis)?;
    Ok(parts.into_iter().map(Value::Tensor).collect())
}

fn slice(call: &Call<'_>) -> Result<Value> {
    let (begin, size) = (call.sizes(1)?, call.ints(2)?);
    let of_indices = |x: ArrayD<usize>| {
        if begin.len() != x.ndim() || size.len() != x.ndim() {
            return None;
        }
        let mut info = Vec::with_capacity(x.ndim());
        for (axis, whole) in x.shape().iter().enumerate() {
            let end = match size[axis] {
                -1 => *whole,
                size => begin[axis].checked_add(usize::try_from(size).ok()?)?,
            };
            if end > *whole || begin[axis] > end {
                return None;
            }
            let (start, end) = (begin[axis] as isize, Some(end as isize));
            info.push(SliceInfoElem::Slice { start, end, step: 1 });
        }
        Some(x.slice(&info[..]).to_owned())
    };
    moved(call, of_indices, |x| x.slice(&begin, &size))
}

/// TensorFlow's `StridedSlice`: the masks say which bounds to ignore, and which axes to add or drop.
fn strided_slice(call: &Call<'_>) -> Result<Value> {
    let shape = call.shape_of(0)?;
    let (begin, end, strides) = (call.ints(1)?, call.ints(2)?, call.ints(3)?);
    if begin.len() != end.len() || begin.len() != strides.len() || begin.len() > 32 {
        return Err(Error::Shape(message!(
            "begin, end and strides have {}, {} and {} elements, and must have as many.",
            begin.len(),
            end.len(),
            strides.len()
        )));
    }
    let has = |mask: &str, at: usize| call.attr_int(mask, 0) >> at & 1 == 1;
    let new_axes =
        (0..begin.len()).filter(|at| has("new_axis_mask", *at) && !has("ellipsis_mask", *at));
    let ellipses = (0..begin.len()).filter(|at| has("ellipsis_mask", *at)).count();
    let named = begin.len() - new_axes.count() - ellipses;
    let open = shape.len().checked_sub(named).filter(|_| ellipses < 2).ok_or_else(|| {
        Error::Index(message!("{named} axes are sliced of a tensor of the shape {shape:?}."))
    })?;
    let mut sizes = shape.iter().copied();
    let mut info = Vec::new();
    let whole = SliceInfoElem::Slice { start: 0, end: None, step: 1 };
    for at in 0..begin.len() {
        if has("ellipsis_mask", at) {
            info.extend(sizes.by_ref().take(open).map(|_| whole));
            continue;
        }
        if has("new_axis_mask", at) {
            info.push(SliceInfoElem::NewAxis);
            continue;
        }
        let size = sizes.next().unwrap_or(0) as i64;
        if has("shrink_axis_mask", at) {
            let index = if begin[at] < 0 { begin[at].saturating_add(size) } else { begin[at] };
            if !(0..size).contains(&index) {
                return Err(Error::Index(message!(
                    "the index {} is out of range for an axis of {size} elements.",
                    begin[at]
                )));
            }
            info.push(SliceInfoElem::Index(index as isize));
            continue;
        }
        let step = strides[at];
        if step == 0 || step == i64::MIN {
            return Err(Error::Index(message!("a stride is {step}.")));
        }
        let wrapped = |bound: i64| if bound < 0 { bound.saturating_add(size) } else { bound };
        // The first element, and the first one after the last in the direction of the step.
        let (start, stop) = if step > 0 {
            let start = if has("begin_mask", at) { 0 } else { wrapped(begin[at]).clamp(0, size) };
            let stop = if has("end_mask", at) { size } else { wrapped(end[at]).clamp(0, size) };
            (start, stop)
        } else {
            let start = if has("begin_mask", at) {
                size - 1
            } else {
                wrapped(begin[at]).clamp(-1, size - 1)
            };
            let stop = if has("end_mask", at) { -1 } else { wrapped(end[at]).clamp(-1, size - 1) };
            (start, stop)
        };
        let span = if step > 0 { stop - start } else { start - stop };
        let count = if span <= 0 { 0 } else { (span - 1) / step.abs() + 1 };
        // ndarray names the elements from the lowest to the highest one, and a negative step starts at the highest one.
        let (low, high) = match (count, step > 0) {
            (0, _) => (0, 0),
            (_, true) => (start, start + (count - 1) * step + 1),
            (_, false) => (start + (count - 1) * step, start + 1),
        };
        let (start, end, step) = (low as isize, Some(high as isize), step as isize);
        info.push(SliceInfoElem::Slice { start, end, step });
    }
    info.extend(sizes.map(|_| whole));
    moved(call, |x| Some(x.slice(&info[..]).to_owned()), |x| x.strided_slice(&info))
}

fn gather(call: &Call<'_>, axis: i64, batch_dims: i64) -> Result<Value> {
    if let (Some(array), Some(_), 0) =
        (on_host(call.input(0)?), on_host(call.input(1)?), batch_dims)
    {
        let indices = call.ints(1)?;
        let rank = array.shape().len();
        let at = wrap(axis, rank)?;
        let size = array.shape()[at];
        let places: Option<Vec<usize>> = indices
            .iter()
            .map(|index| usize::try_from(*index).ok().filter(|index| *index < size))
            .collect();
        let Some(places) = places else {
            return Err(Error::Index(message!(
                "the indices {indices:?} are out of range for an axis of {size} elements."
            )));
        };
        let mut shape = array.shape()[..at].to_vec();
        shape.extend(call.shape_of(1)?);
        shape.extend(&array.shape()[at + 1..]);
        let picked = small(&shape)
            .and_then(|()| host::indices(array.shape()))
            .map(|x| x.select(Axis(at), &places))
            .and_then(|x| x.into_shape_with_order(IxDyn(&shape)).ok())
            .and_then(|x| host::pick(&[array], &x));
        if let Some(picked) = picked {
            return Ok(Value::host(picked));
        }
    }
    let (x, indices) = (call.tensor(0)?, call.tensor(1)?);
    let batch_dims = if batch_dims < 0 { batch_dims + indices.rank() as i64 } else { batch_dims };
    let options =
        GatherOptions::new().batch_dims(usize::try_from(batch_dims).unwrap_or(usize::MAX));
    Ok(Value::Tensor(x.gather_with(&indices, axis, options)?))
}

fn scatter(call: &Call<'_>, f: fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>) -> Result<Value> {
    Ok(Value::Tensor(f(&call.tensor(0)?, &call.tensor(1)?, &call.tensor(2)?)?))
}

/// For each row, how many elements are below each value, or not above it.
fn searchsorted(call: &Call<'_>, side: Side) -> Result<Value> {
    Ok(Value::Tensor(call.tensor(0)?.searchsorted(&call.tensor(1)?, side)?))
}

/// The rows of several arrays, at the indices that come with them.
fn dynamic_stitch(call: &Call<'_>) -> Result<Value> {
    let n = call.inputs.len() / 2;
    let Some(arrays) = all_on_host(call, n..2 * n) else {
        return Err(unsupported(format_args!("DynamicStitch of tensors on a device")));
    };
    let mut rows: Vec<Option<ArrayD<usize>>> = Vec::new();
    let mut start = 0;
    for (at, array) in arrays.iter().enumerate() {
        let indices = super::call::sizes(&call.ints(at)?)?;
        let rank = call.shape_of(at)?.len();
        let inner = array.shape().get(rank..).unwrap_or(&[]);
        let all = host::indices(array.shape()).map(|all| all.mapv(|place| place + start));
        let mut shape = vec![indices.len()];
        shape.extend(inner);
        let all = all.and_then(|all| all.into_shape_with_order(IxDyn(&shape)).ok());
        let all = all.ok_or_else(|| {
            Error::Shape(message!("the indices {indices:?} do not fit {:?}.", array.shape()))
        })?;
        for (row, index) in indices.into_iter().enumerate() {
            if index >= host::LARGEST {
                return Err(Error::Index(message!("the index {index} is too large.")));
            }
            if rows.len() <= index {
                rows.resize(index + 1, None);
            }
            let row = all.index_axis(Axis(0), row);
            if rows.len().saturating_mul(row.len()) > host::LARGEST {
                return Err(unsupported(format_args!("DynamicStitch of large arrays")));
            }
            rows[index] = Some(row.to_owned());
        }
        start += array.len();
    }
    let rows: Option<Vec<_>> = rows.into_iter().collect();
    let joined = rows.and_then(|rows| {
        ndarray::stack(Axis(0), &rows.iter().map(|row| row.view()).collect::<Vec<_>>()).ok()
    });
    let array = joined.and_then(|joined| host::pick(&arrays, &joined)).ok_or_else(|| {
        Error::Data(message!("its rows have different shapes, or some are missing."))
    })?;
    Ok(Value::host(array))
}
