//! Ops that make and move elements.

use super::call::{
    Call, Results, Table, axis, cast, dtype_of, ints, list, long, number, one, tensor, tf,
    unsupported,
};
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::ops::{GatherOptions, linalg};
use crate::saved_model::graph_def::proto::Attr;
use crate::saved_model::graph_def::run_op;
use crate::saved_model::graph_def::value::Value;
use crate::tensor::{Tensor, range};

pub(super) static OPS: Table = &[
    ("Compress", |c| {
        let (mut x, mut at) = (c.input(0)?, c.attr_int("axis", 0));
        if !c.node.attributes.contains_key("axis") {
            (x, at) = (tf("Reshape", vec![x, long(&[-1])], vec![])?, 0);
        }
        let flags = ints(&cast(c.input(1)?, HostDType::I64)?[0])?;
        let chosen = flags.iter().enumerate().filter(|(_, flag)| **flag != 0);
        let places: Vec<i64> = chosen.map(|(at, _)| at as i64).collect();
        one(tf("GatherV2", vec![x, long(&places), long(&[at])], vec![])?)
    }),
    ("Concat", |c| {
        let mut all = c.all()?;
        all.push(long(&[c.attr_int("axis", 0)]));
        one(tf("ConcatV2", all, vec![])?)
    }),
    ("Constant", constant),
    ("ConstantOfShape", |c| {
        let zero = HostArray::new(HostDType::F32, [], vec![0; 4])?;
        let value = c.node.constants.get("value").cloned().unwrap_or(Value::host(zero));
        let value = tf("Reshape", vec![value, long(&[])], vec![])?;
        one(tf("Fill", vec![c.input(0)?, value], vec![])?)
    }),
    ("DepthToSpace", depth_to_space),
    ("Dropout", |c| {
        let x = c.input(0)?;
        let ones = tf("OnesLike", vec![x.clone()], vec![])?;
        if c.get(2).is_some() && ints(&cast(c.input(2)?, HostDType::I64)?[0])?.contains(&1) {
            return Err(unsupported(format_args!("Dropout in training mode")));
        }
        Ok(vec![x, cast(ones, HostDType::Bool)?.remove(0)])
    }),
    ("Expand", |c| {
        let x = c.input(0)?;
        let shape: Vec<i64> = x.shape()?.iter().map(|size| *size as i64).collect();
        let shape = tf("BroadcastArgs", vec![long(&shape), long(&c.ints(1)?)], vec![])?;
        one(tf("BroadcastTo", vec![x, shape], vec![])?)
    }),
    ("EyeLike", |c| {
        let x = c.input(0)?;
        let dtype = match c.attr_int("dtype", 0) {
            0 => dtype_of(&x),
            number => super::super::tensor::dtype(number as i32),
        };
        let [rows, columns] = x.shape()?[..] else {
            return Err(Error::Shape(message!(
                "EyeLike needs a matrix, and gets {}.",
                x.describe()
            )));
        };
        let (rows, columns) = (rows as i64, columns as i64);
        let place = range(0, columns, 1)?.subtract(range(0, rows, 1)?.expand_dims(1)?)?;
        cast(Value::Tensor(place.equal(c.attr_int("k", 0))?), dtype)
    }),
    ("Flatten", |c| {
        let x = c.input(0)?;
        let shape = x.shape()?;
        let at = c.attr_int("axis", 1);
        let at = usize::try_from(if at < 0 { at + shape.len() as i64 } else { at });
        let at = at
            .ok()
            .filter(|at| *at <= shape.len())
            .ok_or_else(|| Error::Index(message!("its axis is out of range for {shape:?}.")))?;
        let rows = shape[..at].iter().product::<usize>() as i64;
        let columns = shape[at..].iter().product::<usize>() as i64;
        one(tf("Reshape", vec![x, long(&[rows, columns])], vec![])?)
    }),
    ("Gather", |c| {
        let x = c.input(0)?;
        let shape = x.shape()?;
        let at = axis(c.attr_int("axis", 0), shape.len())?;
        let indices = positive(c.input(1)?, shape[at])?;
        one(tf("GatherV2", vec![x, indices, long(&[at as i64])], vec![])?)
    }),
    ("GatherElements", |c| {
        let x = c.tensor(0)?;
        let at = axis(c.attr_int("axis", 0), x.rank())?;
        let indices = positive(c.input(1)?, x.shape()[at])?.tensor()?;
        tensor(gather_elements(&x, &indices, at)?)
    }),
    ("GatherND", |c| {
        let x = c.tensor(0)?;
        let batch = c.attr_int("batch_dims", 0) as usize;
        let indices = c.input(1)?;
        let indices = positive_rows(indices, &x.shape()[batch.min(x.rank())..])?.tensor()?;
        tensor(x.gather_nd_with(&indices, GatherOptions::new().batch_dims(batch))?)
    }),
    ("Identity", |c| one(c.input(0)?)),
    ("NonZero", |c| {
        let x = c.input(0)?;
        let x = tf("NotEqual", vec![x.clone(), number(0.0, &x)?], vec![])
            .or_else(|_| Ok::<_, Error>(x))?;
        let places = tf("Where", vec![x], vec![])?;
        one(tf("Transpose", vec![places, long(&[1, 0])], vec![])?)
    }),
    ("OneHot", |c| {
        let depth = c.ints(1)?.first().copied().unwrap_or(0);
        let values = run_op("Unpack", vec![c.input(2)?], vec![])?;
        let [off, on] = &values[..] else {
            return Err(Error::Shape(message!("OneHot needs two values.")));
        };
        let indices = cast(c.input(0)?, HostDType::I64)?.remove(0);
        let indices = positive(indices, usize::try_from(depth).unwrap_or(0))?;
        let dtype = ("T", Attr::Type(dtype_of(on).number()));
        let at = ("axis", Attr::Int(c.attr_int("axis", -1)));
        let inputs = vec![indices, long(&[depth]), on.clone(), off.clone()];
        one(tf("OneHot", inputs, vec![at, dtype])?)
    }),
    ("Pad", pad),
    ("Range", |c| one(tf("Range", vec![c.input(0)?, c.input(1)?, c.input(2)?], vec![])?)),
    ("Reshape", |c| {
        let x = c.input(0)?;
        let old = x.shape()?;
        let mut sizes = c.ints_or(1, "shape")?.unwrap_or_default();
        if c.attr_int("allowzero", 0) == 0 {
            for (size, old) in sizes.iter_mut().zip(&old) {
                if *size == 0 {
                    *size = *old as i64;
                }
            }
        }
        one(tf("Reshape", vec![x, long(&sizes)], vec![])?)
    }),
    ("ReverseSequence", |c| {
        let attributes = vec![
            ("seq_dim", Attr::Int(c.attr_int("time_axis", 0))),
            ("batch_dim", Attr::Int(c.attr_int("batch_axis", 1))),
        ];
        one(tf("ReverseSequence", vec![c.input(0)?, c.input(1)?], attributes)?)
    }),
    ("Scatter", scatter_elements),
    ("ScatterElements", scatter_elements),
    ("ScatterND", |c| {
        let x = c.tensor(0)?;
        let indices = positive_rows(c.input(1)?, x.shape())?;
        let op = match c.attr_text("reduction", "none") {
            "none" => "TensorScatterUpdate",
            "add" => "TensorScatterAdd",
            "max" => "TensorScatterMax",
            "min" => "TensorScatterMin",
            other => return Err(unsupported(format_args!("the reduction {other} of ScatterND"))),
        };
        one(tf(op, vec![Value::Tensor(x), indices, c.input(2)?], vec![])?)
    }),
    ("Shape", |c| {
        let shape: Vec<i64> = c.input(0)?.shape()?.iter().map(|size| *size as i64).collect();
        let rank = shape.len() as i64;
        let at = |name: &str, default: i64| {
            let at = c.attr_int(name, default);
            (if at < 0 { at + rank } else { at }).clamp(0, rank) as usize
        };
        let (start, end) = (at("start", 0), at("end", rank));
        one(long(&shape[start..end.max(start)]))
    }),
    ("Size", |c| {
        let size = c.input(0)?.shape()?.iter().product::<usize>() as i64;
        one(Value::int(HostDType::I64, size))
    }),
    ("Slice", slice),
    ("SpaceToDepth", space_to_depth),
    ("Split", split),
    ("Squeeze", |c| {
        let axes = c.ints_or(1, "axes")?.unwrap_or_default();
        one(tf("Squeeze", vec![c.input(0)?], vec![("squeeze_dims", list(&axes))])?)
    }),
    ("Tile", |c| one(tf("Tile", vec![c.input(0)?, c.input(1)?], vec![])?)),
    ("Transpose", |c| {
        let x = c.input(0)?;
        let rank = x.shape()?.len() as i64;
        let reversed: Vec<i64> = (0..rank).rev().collect();
        let perm = c.attr_ints("perm").unwrap_or(&reversed);
        one(tf("Transpose", vec![x, long(perm)], vec![])?)
    }),
    ("Trilu", |c| {
        let k = match c.get(1) {
            Some(_) => c.ints(1)?.first().copied().unwrap_or(0),
            None => 0,
        };
        let x = c.tensor(0)?;
        tensor(if c.attr_int("upper", 1) != 0 {
            linalg::triu(&x, k)?
        } else {
            linalg::tril(&x, k)?
        })
    }),
    ("Unsqueeze", |c| {
        let x = c.input(0)?;
        let axes = c.ints_or(1, "axes")?.unwrap_or_default();
        let rank = x.shape()?.len() + axes.len();
        let mut sorted = axes.iter().map(|at| axis(*at, rank)).collect::<Result<Vec<_>>>()?;
        sorted.sort_unstable();
        let mut y = x;
        for at in sorted {
            y = tf("ExpandDims", vec![y, long(&[at as i64])], vec![])?;
        }
        one(y)
    }),
];

fn constant(c: &Call<'_>) -> Result<Results> {
    if let Some(value) = c.node.constants.get("value") {
        return one(value.clone());
    }
    let attributes = &c.node.attributes;
    let floats = |values: &[f32], shape: &[usize]| {
        let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        HostArray::new(HostDType::F32, shape, bytes).map(Value::host)
    };
    let strings = |values: Vec<Vec<u8>>, shape: &[usize]| {
        HostArray::from_strings(shape, values).map(Value::host)
    };
    let count = |name: &str| attributes.get(name);
    if let Some(a) = count("value_float") {
        return one(floats(&[a.f], &[])?);
    }
    if let Some(a) = count("value_floats") {
        return one(floats(&a.floats, &[a.floats.len()])?);
    }
    if let Some(a) = count("value_int") {
        return one(Value::int(HostDType::I64, a.i));
    }
    if let Some(a) = count("value_ints") {
        return one(long(&a.ints));
    }
    if let Some(a) = count("value_string") {
        return one(strings(vec![a.s.clone()], &[])?);
    }
    if let Some(a) = count("value_strings") {
        return one(strings(a.strings.clone(), &[a.strings.len()])?);
    }
    Err(unsupported(format_args!("a constant without a dense value")))
}

/// Indices that may count from the end, counted from the start.
fn positive(indices: Value, size: usize) -> Result<Value> {
    if let Some(array) = indices.as_host() {
        let wrapped: Vec<i64> = ints(&Value::Host(array.clone()))?
            .into_iter()
            .map(|at| if at < 0 { at + size as i64 } else { at })
            .collect();
        let shape: Vec<i64> = array.shape().iter().map(|size| *size as i64).collect();
        return tf("Reshape", vec![long(&wrapped), long(&shape)], vec![]);
    }
    let x = indices.tensor()?;
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    Ok(Value::Tensor(crate::ops::where_(&x.less(0)?, &x.add(size)?, &x)?))
}

/// The same for rows of indices, one for each of the first axes of `shape`.
fn positive_rows(indices: Value, shape: &[usize]) -> Result<Value> {
    let width = indices.shape()?.last().copied().unwrap_or(0);
    let sizes: Vec<i32> = shape.iter().take(width).map(|size| *size as i32).collect();
    if sizes.len() != width {
        return Err(Error::Shape(message!(
            "rows of {width} indices do not fit the shape {shape:?}."
        )));
    }
    let x = indices.tensor()?;
    let sizes = Tensor::from_slice(&sizes, [width])?;
    let sizes = if x.dtype() == sizes.dtype() { sizes } else { sizes.cast(x.dtype())? };
    Ok(Value::Tensor(crate::ops::where_(&x.less(0)?, &x.add(&sizes)?, &x)?))
}

/// For each index, the indices of its element along all axes.
fn element_rows(indices: &Tensor, at: usize) -> Result<Tensor> {
    let shape = indices.shape();
    let mut columns = Vec::with_capacity(shape.len());
    for (axis, size) in shape.iter().enumerate() {
        if axis == at {
            columns.push(indices.clone());
            continue;
        }
        let mut sizes = vec![1; shape.len()];
        sizes[axis] = *size;
        let own = range(0, *size as i64, 1)?.reshape(sizes)?.broadcast_to(shape)?;
        columns.push(if own.dtype() == indices.dtype() { own } else { own.cast(indices.dtype())? });
    }
    crate::ops::stack(&columns, -1)
}

/// `y[i, j] = x[indices[i, j], j]`, if the axis is the first one.
pub(super) fn gather_elements(x: &Tensor, indices: &Tensor, at: usize) -> Result<Tensor> {
    if indices.is_empty() {
        return Tensor::full_of(indices.shape(), 0, x.dtype());
    }
    x.gather_nd(&element_rows(indices, at)?)
}

fn scatter_elements(c: &Call<'_>) -> Result<Results> {
    let x = c.tensor(0)?;
    let at = axis(c.attr_int("axis", 0), x.rank())?;
    let indices = positive(c.input(1)?, x.shape()[at])?.tensor()?;
    let rows = element_rows(&indices, at)?;
    let updates = c.tensor(2)?;
    tensor(match c.attr_text("reduction", "none") {
        "none" => x.tensor_scatter_nd_update(&rows, &updates)?,
        "add" => x.tensor_scatter_nd_add(&rows, &updates)?,
        "max" => x.tensor_scatter_nd_max(&rows, &updates)?,
        "min" => x.tensor_scatter_nd_min(&rows, &updates)?,
        other => return Err(unsupported(format_args!("the reduction {other} of ScatterElements"))),
    })
}

fn depth_to_space(c: &Call<'_>) -> Result<Results> {
    let x = c.tensor(0)?;
    let [n, channels, h, w] = x.shape()[..] else {
        return Err(Error::Shape(message!("DepthToSpace needs four axes, not {:?}.", x.shape())));
    };
    let block = usize::try_from(c.attr_int("blocksize", 1)).unwrap_or(0);
    if !(1..1 << 16).contains(&block) || !channels.is_multiple_of(block * block) {
        return Err(Error::Shape(message!(
            "{channels} channels are no blocks of {block} by {block}."
        )));
    }
    let inner = channels / block / block;
    let (parts, perm) = match c.attr_text("mode", "DCR") {
        "CRD" => ([n, inner, block, block, h, w], [0, 1, 4, 2, 5, 3]),
        _ => ([n, block, block, inner, h, w], [0, 3, 4, 1, 5, 2]),
    };
    tensor(x.reshape(parts)?.transpose(perm)?.reshape([n, inner, h * block, w * block])?)
}

fn space_to_depth(c: &Call<'_>) -> Result<Results> {
    let x = c.tensor(0)?;
    let [n, channels, h, w] = x.shape()[..] else {
        return Err(Error::Shape(message!("SpaceToDepth needs four axes, not {:?}.", x.shape())));
    };
    let block = usize::try_from(c.attr_int("blocksize", 1)).unwrap_or(0);
    if !(1..1 << 16).contains(&block) || !h.is_multiple_of(block) || !w.is_multiple_of(block) {
        return Err(Error::Shape(message!(
            "{h} by {w} pixels are no blocks of {block} by {block}."
        )));
    }
    let perm = match c.attr_text("mode", "DCR") {
        "CRD" => [0, 1, 3, 5, 2, 4],
        _ => [0, 3, 5, 1, 2, 4],
    };
    let parts = x.reshape([n, channels, h / block, block, w / block, block])?.transpose(perm)?;
    tensor(parts.reshape([n, channels * block * block, h / block, w / block])?)
}

fn pad(c: &Call<'_>) -> Result<Results> {
    let x = c.input(0)?;
    let rank = x.shape()?.len();
    let name = if c.opset < 2 { "paddings" } else { "pads" };
    let pads = c.ints_or(1, name)?.unwrap_or_default();
    let axes = match c.get(3) {
        Some(_) => c.ints(3)?.iter().map(|at| axis(*at, rank)).collect::<Result<Vec<_>>>()?,
        None => (0..rank).collect(),
    };
    // Bounded, so that no sum of them overflows.
    let bounded = pads.iter().all(|pad| pad.unsigned_abs() < 1 << 30);
    if pads.len() != 2 * axes.len() || !bounded {
        return Err(Error::Shape(message!("the pads {pads:?} do not fit {} axes.", axes.len())));
    }
    let (mut before, mut after) = (vec![0i64; rank], vec![0i64; rank]);
    for (at, axis) in axes.iter().enumerate() {
        (before[*axis], after[*axis]) = (pads[at], pads[axes.len() + at]);
    }
    // Negative ones cut off elements.
    let mut x = x;
    if before.iter().chain(&after).any(|pad| *pad < 0) {
        let shape = x.shape()?;
        let begin: Vec<i64> = before.iter().map(|pad| (-pad).max(0)).collect();
        let size: Vec<i64> = (0..rank)
            .map(|at| (shape[at] as i64 - begin[at] - (-after[at]).max(0)).max(0))
            .collect();
        x = tf("Slice", vec![x, long(&begin), long(&size)], vec![])?;
        before.iter_mut().chain(&mut after).for_each(|pad| *pad = (*pad).max(0));
    }
    let flat: Vec<i64> = before.iter().zip(&after).flat_map(|(a, b)| [*a, *b]).collect();
    let pairs = tf("Reshape", vec![long(&flat), long(&[rank as i64, 2])], vec![])?;
    match c.attr_text("mode", "constant") {
        "constant" => {
            let value = match c.get(2) {
                Some(value) => tf("Reshape", vec![value.clone(), long(&[])], vec![])?,
                None => number(f64::from(c.attr_float("value", 0.0)), &x)?,
            };
            one(tf("PadV2", vec![x, pairs, value], vec![])?)
        }
        "reflect" => {
            one(tf("MirrorPad", vec![x, pairs], vec![("mode", Attr::Text(b"REFLECT".to_vec()))])?)
        }
        mode @ ("edge" | "wrap") => {
            let shape = x.shape()?;
            for at in 0..rank {
                let size = shape[at] as i64;
                if (before[at], after[at]) == (0, 0) || size == 0 {
                    continue;
                }
                if before[at] + after[at] > 1 << 20 {
                    return Err(unsupported(format_args!(
                        "a pad of {} and {}",
                        before[at], after[at]
                    )));
                }
                let places: Vec<i64> = (-before[at]..size + after[at])
                    .map(|place| match mode {
                        "edge" => place.clamp(0, size - 1),
                        _ => place.rem_euclid(size),
                    })
                    .collect();
                x = tf("GatherV2", vec![x, long(&places), long(&[at as i64])], vec![])?;
            }
            one(x)
        }
        other => Err(unsupported(format_args!("padding with the mode {other}"))),
    }
}

fn slice(c: &Call<'_>) -> Result<Results> {
    let x = c.input(0)?;
    let shape = x.shape()?;
    let starts = c.ints_or(1, "starts")?.unwrap_or_default();
    let ends = c.ints_or(2, "ends")?.unwrap_or_default();
    let axes = match c.ints_or(3, "axes")? {
        Some(axes) => axes,
        None => (0..starts.len() as i64).collect(),
    };
    let steps = match c.get(4) {
        Some(_) => c.ints(4)?,
        None => vec![1; starts.len()],
    };
    if [ends.len(), axes.len(), steps.len()] != [starts.len(); 3] || shape.len() > 32 {
        return Err(Error::Shape(message!("its starts, ends, axes and steps differ in length.")));
    }
    let (mut begin, mut end, mut stride) =
        (vec![0i64; shape.len()], vec![0i64; shape.len()], vec![1i64; shape.len()]);
    // An axis that is not named is taken whole.
    let (mut begin_mask, mut end_mask) = (u64::MAX, u64::MAX);
    for (at, named) in axes.iter().enumerate() {
        let axis = axis(*named, shape.len())?;
        begin_mask &= !(1 << axis);
        end_mask &= !(1 << axis);
        (begin[axis], end[axis], stride[axis]) = (starts[at], ends[at], steps[at]);
        // Before the first element, for a step back; -1 would be the last one.
        if steps[at] < 0 && ends[at] < -(shape[axis] as i64) {
            end_mask |= 1 << axis;
        }
    }
    let whole = (1u64 << shape.len().min(63)) - 1;
    let attributes = vec![
        ("begin_mask", Attr::Int((begin_mask & whole) as i64)),
        ("end_mask", Attr::Int((end_mask & whole) as i64)),
    ];
    one(tf("StridedSlice", vec![x, long(&begin), long(&end), long(&stride)], attributes)?)
}

fn split(c: &Call<'_>) -> Result<Results> {
    let x = c.input(0)?;
    let shape = x.shape()?;
    let at = axis(c.attr_int("axis", 0), shape.len())?;
    let sizes = match c.ints_or(1, "split")? {
        Some(sizes) if !sizes.is_empty() => sizes,
        _ => {
            let parts = c.attr_int("num_outputs", c.node.outputs.len() as i64).clamp(1, 1 << 20);
            let (whole, size) = (shape[at] as i64, (shape[at] as i64 + parts - 1) / parts);
            (0..parts).map(|part| (whole - part * size).clamp(0, size)).collect()
        }
    };
    Ok(run_op("SplitV", vec![x, long(&sizes), long(&[at as i64])], vec![])?.into_vec())
}
