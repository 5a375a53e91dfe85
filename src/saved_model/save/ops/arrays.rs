//! Shapes, slices, and the movement of elements.

use super::super::builder::{Builder, Out, type_of};
use super::math::range;
use super::{Write, int, t};
use crate::dtype::DType;
use crate::graph::Spec;
use crate::graph::attributes::Value;
use crate::saved_model::graph_def::proto::Attr;
use crate::saved_model::traced::{Found, Number, Site, field};

pub(super) const OPS: &[(&str, Write)] = &[
    ("BroadcastTo", broadcast_to),
    ("Concat", concat),
    ("Fill", fill),
    ("Frame", frame),
    ("Gather", gather),
    ("Iota", iota),
    ("Pad", pad),
    ("Rearrange", rearrange),
    ("Reshape", reshape),
    ("Reverse", reverse),
    ("Roll", roll),
    ("ScatterExtreme", scatter_extreme),
    ("ScatterUpdate", scatter_update),
    ("SearchSorted", search_sorted),
    ("SegmentExtreme", segment_extreme),
    ("SegmentSum", segment_sum),
    ("Select", select),
    ("Slice", slice),
    ("Sort", sort),
    ("TopK", top_k),
    ("Transpose", transpose),
];

fn broadcast_to(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let shape = b.vector(&site.output_shape()?);
    Ok(b.op("BroadcastTo", &[&inputs[0], &shape], [t(site.dtype()), int("Tidx")]))
}

fn concat(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let axis = b.i32(site.get("axis")?);
    let count = ("N", Attr::Int(inputs.len() as i64));
    let all: Vec<&Out> = inputs.iter().chain([&axis]).collect();
    Ok(b.op("ConcatV2", &all, [count, t(site.dtype()), int("Tidx")]))
}

/// A number of a dtype whose bits differ from trace to trace if they depend on open sizes.
fn scalar(b: &mut Builder, site: &Site, dtype: DType, bits: &[u32]) -> Found<Out> {
    if bits.iter().all(|other| *other == bits[0]) {
        return Ok(b.filled(dtype, &[], bits[0]));
    }
    match dtype {
        DType::F32 => {
            let real = site.real(|trace| f32::from_bits(bits[trace]))?;
            Ok(b.real(&real))
        }
        DType::I32 => {
            let number = site.number(|trace| i64::from(bits[trace] as i32))?;
            Ok(b.number(&number))
        }
        _ => Err(format!("is a number of {dtype} that depends on the open sizes")),
    }
}

fn fill(b: &mut Builder, site: &Site, _: &[Out]) -> Found<Out> {
    let (dtype, bits) = (site.dtype(), site.each::<u32>("bits")?);
    let shape = site.output_shape()?;
    let known: Option<Vec<usize>> = shape
        .iter()
        .map(|size| if let Number::Known(size) = size { usize::try_from(*size).ok() } else { None })
        .collect();
    if let (Some(sizes), true) = (known, bits.iter().all(|other| *other == bits[0])) {
        return Ok(b.filled(dtype, &sizes, bits[0]));
    }
    let value = scalar(b, site, dtype, &bits)?;
    if shape.is_empty() {
        return Ok(value);
    }
    let shape = b.vector(&shape);
    Ok(b.op("Fill", &[&shape, &value], [t(dtype), int("index_type")]))
}

/// `x` with a new last axis, or first one.
fn expanded(b: &mut Builder, x: &Out, dtype: DType, axis: i64) -> Out {
    let axis = b.i32(axis);
    b.op("ExpandDims", &[x, &axis], [t(dtype), int("Tdim")])
}

fn frame(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let axis: i64 = site.get("axis")?;
    let shape = site.output_shape()?;
    let step = b.i32(site.get("step")?);
    let starts = range(b, &shape[axis as usize]);
    let starts = b.op("Mul", &[&starts, &step], [t(DType::I32)]);
    let starts = expanded(b, &starts, DType::I32, 1);
    let within = range(b, &shape[axis as usize + 1]);
    let places = b.op("AddV2", &[&starts, &within], [t(DType::I32)]);
    Ok(gathered(b, &inputs[0], site.dtype(), &places, axis, 0))
}

fn gathered(b: &mut Builder, x: &Out, dtype: DType, places: &Out, axis: i64, batch: i64) -> Out {
    let axis = b.i32(axis);
    let attrs = [
        ("Tparams", type_of(dtype)),
        int("Tindices"),
        int("Taxis"),
        ("batch_dims", Attr::Int(batch)),
    ];
    b.op("GatherV2", &[x, places, &axis], attrs)
}

fn gather(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let (axis, batch) = (site.get("axis")?, site.get("batch_dims")?);
    Ok(gathered(b, &inputs[0], site.dtype(), &inputs[1], axis, batch))
}

fn rearrange(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    Ok(gathered(b, &inputs[0], site.dtype(), &inputs[1], 1, 1))
}

fn iota(b: &mut Builder, site: &Site, _: &[Out]) -> Found<Out> {
    let dtype = site.dtype();
    if !matches!(dtype, DType::F32 | DType::I32) {
        return Err(format!("is a range of {dtype}, which TensorFlow has no kernel for"));
    }
    let words = site.each::<[u32; 2]>("words")?;
    let part = |at: usize| words.iter().map(|words| words[at]).collect::<Vec<u32>>();
    let mut line = range(b, &site.output_shape()?[0]);
    if dtype == DType::F32 {
        line = b.cast(&line, DType::I32, dtype);
    }
    let (start, delta) = (part(0), part(1));
    let one = if dtype == DType::F32 { 1f32.to_bits() } else { 1 };
    if delta.iter().any(|bits| *bits != one) {
        let delta = scalar(b, site, dtype, &delta)?;
        line = b.op("Mul", &[&line, &delta], [t(dtype)]);
    }
    if start.iter().any(|bits| *bits != 0) {
        let start = scalar(b, site, dtype, &start)?;
        line = b.op("AddV2", &[&line, &start], [t(dtype)]);
    }
    Ok(line)
}

/// An axis of a padding, in one trace.
struct Padded {
    low: i64,
    high: i64,
    step: i64,
}

/// The paddings of all axes, for each trace.
fn paddings(site: &Site) -> Found<Vec<Vec<Padded>>> {
    let axis = |value: &Value| -> Found<Padded> {
        let low: i64 = value.field("low")?;
        Ok(Padded { low, high: value.field::<i64>("more")? - low, step: value.field("step")? })
    };
    let all = site.calls.iter().map(|call| match field(&call.attributes, "axes") {
        Some(Value::List(axes)) => axes.iter().map(axis).collect(),
        _ => Err("has no attribute \"axes\"".to_string()),
    });
    all.collect()
}

fn pad(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let (dtype, all) = (site.dtype(), paddings(site)?);
    let bits: u32 = site.get("bits")?;
    let (value, rank) = (b.filled(dtype, &[], bits), site.input_rank(0));
    let mut x = inputs[0].clone();
    let mut sizes: Vec<Vec<i64>> = site.inputs[0]
        .iter()
        .map(|spec| spec.shape.iter().map(|size| *size as i64).collect())
        .collect();
    for axis in 0..rank {
        let step = all[0][axis].step;
        if all.iter().any(|axes| axes[axis].step != step) {
            return Err("has a step that depends on the open sizes".to_string());
        }
        if step == 1 {
            continue;
        }
        // Each element gets an axis of its own, on which values follow it; those of the last one are cut off.
        let apart = expanded(b, &x, dtype, axis as i64 + 1);
        let mut edges = vec![Number::Known(0); 2 * (rank + 1)];
        edges[2 * axis + 3] = Number::Known(step - 1);
        let wide = padded(b, &apart, dtype, &edges, &value);
        let numbers = |sizes: &[Vec<i64>]| -> Found<Vec<Number>> {
            (0..rank).map(|axis| site.number(|trace| sizes[trace][axis])).collect()
        };
        sizes.iter_mut().for_each(|sizes| sizes[axis] *= step);
        let merged = numbers(&sizes)?;
        x = b.reshape(&wide, dtype, &merged);
        sizes.iter_mut().for_each(|sizes| sizes[axis] = (sizes[axis] - step + 1).max(0));
        let begins = b.i32s(&vec![0; rank]);
        let kept = numbers(&sizes)?;
        let kept = b.vector(&kept);
        x = b.op("Slice", &[&x, &begins, &kept], [t(dtype), ("Index", type_of(DType::I32))]);
    }
    // Negative edges remove elements.
    let cuts = all.iter().flatten().any(|axis| axis.low < 0 || axis.high < 0);
    if cuts {
        let begin = (0..rank)
            .map(|axis| site.number(|trace| (-all[trace][axis].low).max(0)))
            .collect::<Found<Vec<_>>>()?;
        let size = (0..rank)
            .map(|axis| {
                site.number(|trace| {
                    let Padded { low, high, .. } = all[trace][axis];
                    sizes[trace][axis] - (-low).max(0) - (-high).max(0)
                })
            })
            .collect::<Found<Vec<_>>>()?;
        let (begin, size) = (b.vector(&begin), b.vector(&size));
        x = b.op("Slice", &[&x, &begin, &size], [t(dtype), ("Index", type_of(DType::I32))]);
    }
    let edge = |place: usize| {
        site.number(|trace| {
            let Padded { low, high, .. } = all[trace][place / 2];
            (if place.is_multiple_of(2) { low } else { high }).max(0)
        })
    };
    let edges = (0..2 * rank).map(edge).collect::<Found<Vec<_>>>()?;
    Ok(padded(b, &x, dtype, &edges, &value))
}

/// `edges` are the values before and after each axis.
fn padded(b: &mut Builder, x: &Out, dtype: DType, edges: &[Number], value: &Out) -> Out {
    if edges.iter().all(|edge| *edge == Number::Known(0)) {
        return x.clone();
    }
    let flat = b.vector(edges);
    let form = b.i32s(&[-1, 2]);
    let edges = b.op("Reshape", &[&flat, &form], [t(DType::I32), int("Tshape")]);
    b.op("PadV2", &[x, &edges, value], [t(dtype), int("Tpaddings")])
}

fn reshape(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let shape = site.output_shape()?;
    Ok(b.reshape(&inputs[0], site.dtype(), &shape))
}

fn reverse(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let axes: Vec<i64> = site.get("axes")?;
    let axes = b.i32s(&axes);
    Ok(b.op("ReverseV2", &[&inputs[0], &axes], [t(site.dtype()), int("Tidx")]))
}

fn roll(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let by = site.each::<i64>("by")?;
    let by = site.number(|trace| by[trace])?;
    let (by, axis) = (b.number(&by), b.i32(site.get("axis")?));
    Ok(b.op("Roll", &[&inputs[0], &by, &axis], [t(site.dtype()), int("Tshift"), int("Taxis")]))
}

fn scattered(b: &mut Builder, site: &Site, inputs: &[Out], op: &str) -> Out {
    let places = expanded(b, &inputs[1], DType::I32, -1);
    b.op(op, &[&inputs[0], &places, &inputs[2]], [t(site.dtype()), int("Tindices")])
}

fn scatter_extreme(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let largest: bool = site.get("largest")?;
    let op = if largest { "TensorScatterMax" } else { "TensorScatterMin" };
    Ok(scattered(b, site, inputs, op))
}

fn scatter_update(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    Ok(scattered(b, site, inputs, "TensorScatterUpdate"))
}

fn search_sorted(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let attrs = [t(site.input_dtype(0)), int("out_type")];
    Ok(b.op(site.call().name, &[&inputs[0], &inputs[1]], attrs))
}

fn segments(b: &mut Builder, op: &str, x: &Out, dtype: DType, ids: &Out, rows: &Number) -> Out {
    let rows = b.number(rows);
    let attrs = [t(dtype), int("Tindices"), int("Tnumsegments")];
    b.op(op, &[x, ids, &rows], attrs)
}

/// The ids, with -1, which TensorFlow leaves out, in the place of those that are no row.
fn inside(b: &mut Builder, ids: &Out, moved: &Out, rows: &Number) -> Out {
    let (zero, none, rows) = (b.i32(0), b.i32(-1), b.number(rows));
    let low = b.op("GreaterEqual", &[ids, &zero], [t(DType::I32)]);
    let high = b.op("Less", &[ids, &rows], [t(DType::I32)]);
    let both = b.op("LogicalAnd", &[&low, &high], []);
    b.op("SelectV2", &[&both, moved, &none], [t(DType::I32)])
}

fn segment_extreme(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let op = site.call().name;
    let rows = site.output_shape()?.swap_remove(0);
    if op == "Bincount" {
        let ids = inside(b, &inputs[0], &inputs[0], &rows);
        let (one, empty) = (b.i32(1), site.input_shape(0)?);
        let form = b.vector(&empty);
        let ones = b.op("Fill", &[&form, &one], [t(DType::I32), int("index_type")]);
        return Ok(segments(b, "UnsortedSegmentSum", &ones, DType::I32, &ids, &rows));
    }
    let ids = inside(b, &inputs[1], &inputs[1], &rows);
    Ok(segments(b, op, &inputs[0], site.dtype(), &ids, &rows))
}

fn segment_sum(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let (x, shape) = (site.input_shape(0)?, site.output_shape()?);
    let rows = &shape[1];
    let mut moved = inputs[1].clone();
    let all = if shape[0] == Number::Known(1) {
        rows.clone()
    } else {
        // Each batch has rows of its own.
        let batches = range(b, &shape[0]);
        let count = b.number(rows);
        let starts = b.op("Mul", &[&batches, &count], [t(DType::I32)]);
        let starts = expanded(b, &starts, DType::I32, 1);
        moved = b.op("AddV2", &[&inputs[1], &starts], [t(DType::I32)]);
        site.number(|trace| {
            let shape = &site.calls[trace].spec.shape;
            (shape[0] * shape[1]) as i64
        })?
    };
    let ids = inside(b, &inputs[1], &moved, rows);
    let line = b.i32s(&[-1]);
    let ids = b.op("Reshape", &[&ids, &line], [t(DType::I32), int("Tshape")]);
    let count = site.number(|trace| {
        let shape = &site.inputs[0][trace].shape;
        (shape[0] * shape[1]) as i64
    })?;
    let flat = b.reshape(&inputs[0], site.dtype(), &[count, x[2].clone()]);
    let sums = segments(b, site.call().name, &flat, site.dtype(), &ids, &all);
    Ok(b.reshape(&sums, site.dtype(), &shape))
}

fn select(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    Ok(b.op("SelectV2", &[&inputs[0], &inputs[1], &inputs[2]], [t(site.dtype())]))
}

fn slice(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let boxes = site.each::<Vec<(i64, i64)>>("boxes")?;
    let begins = site.each::<Vec<i64>>("begins")?;
    let size = |trace: usize, axis: usize| -> i64 {
        let spec: &Spec = &site.inputs[0][trace];
        spec.shape[axis] as i64
    };
    let rank = site.input_rank(0);
    let axes = 0..rank;
    let begin = axes
        .clone()
        .map(|axis| site.number(|trace| begins[trace][axis]))
        .collect::<Found<Vec<_>>>()?;
    let begin = b.vector(&begin);
    if boxes.iter().flatten().all(|(_, step)| *step == 1) {
        // To the end of an axis is -1.
        let traces = 0..boxes.len();
        let length = |axis: usize| {
            let rest =
                |trace: usize| boxes[trace][axis].0 == size(trace, axis) - begins[trace][axis];
            match traces.clone().all(rest) {
                true => Ok(Number::Known(-1)),
                false => site.number(|trace| boxes[trace][axis].0),
            }
        };
        let lengths = axes.map(length).collect::<Found<Vec<_>>>()?;
        let lengths = b.vector(&lengths);
        let attrs = [t(site.dtype()), ("Index", type_of(DType::I32))];
        return Ok(b.op("Slice", &[&inputs[0], &begin, &lengths], attrs));
    }
    let end = |axis: usize| {
        site.number(|trace| {
            let (length, step) = boxes[trace][axis];
            let span = if length == 0 { 0 } else { (length - 1) * step + 1 };
            begins[trace][axis] + span
        })
    };
    let ends = axes.clone().map(end).collect::<Found<Vec<_>>>()?;
    let steps =
        axes.map(|axis| site.number(|trace| boxes[trace][axis].1)).collect::<Found<Vec<_>>>()?;
    let (ends, steps) = (b.vector(&ends), b.vector(&steps));
    let attrs = [t(site.dtype()), ("Index", type_of(DType::I32))];
    Ok(b.op("StridedSlice", &[&inputs[0], &begin, &ends, &steps], attrs))
}

/// The places of the `k` largest elements of each row, or the elements.
fn largest(b: &mut Builder, x: &Out, dtype: DType, k: &Number, places: bool) -> Out {
    let k = b.number(k);
    let top = b.op("TopKV2", &[x, &k], [t(dtype), ("sorted", Attr::Bool(true))]);
    if places { top.replace(":values:", ":indices:") } else { top }
}

fn top_k(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let k = site.output_shape()?.swap_remove(1);
    Ok(largest(b, &inputs[0], site.input_dtype(0), &k, true))
}

fn sort(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let (down, places) = (site.get::<bool>("descending")?, site.get::<bool>("places")?);
    let (dtype, n) = (site.input_dtype(0), site.output_shape()?.swap_remove(1));
    if down {
        return Ok(largest(b, &inputs[0], dtype, &n, places));
    }
    // Upside down; the lowest integer has no negative, but every one has a complement.
    let turn = |b: &mut Builder, x: &Out| match dtype {
        DType::F32 | DType::F16 => b.op("Neg", &[x], [t(dtype)]),
        _ => b.op("Invert", &[x], [t(dtype)]),
    };
    let turned = turn(b, &inputs[0]);
    let found = largest(b, &turned, dtype, &n, places);
    Ok(if places { found } else { turn(b, &found) })
}

fn transpose(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let order: Vec<i64> = site.get("order")?;
    let order = b.i32s(&order);
    Ok(b.op("Transpose", &[&inputs[0], &order], [t(site.dtype()), int("Tperm")]))
}
