//! Shapes, slices, and the movement of elements.

use super::super::builder::{Attribute, Builder, Out};
use super::{Write, missing};
use crate::dtype::DType;
use crate::graph::attributes::Value;
use crate::saved_model::traced::{Found, Number, Site, field};
use Attribute::{Int, Text};

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
    ("SegmentExtreme", counts),
    ("SegmentSum", segment_sum),
    ("Select", select),
    ("Slice", slice),
    ("Sort", sort),
    ("TopK", top_k),
    ("Transpose", transpose),
];

fn broadcast_to(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let shape = b.vector(&site.output_shape()?);
    Ok(b.op("Expand", &[&inputs[0], &shape], []))
}

fn concat(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let all: Vec<&Out> = inputs.iter().collect();
    Ok(b.op("Concat", &all, [("axis", Int(site.get("axis")?))]))
}

/// A number of a dtype whose bits differ from trace to trace if they depend on open sizes.
fn scalar(b: &mut Builder, site: &Site, dtype: DType, bits: &[u32]) -> Found<Out> {
    if bits.iter().all(|other| *other == bits[0]) {
        return Ok(b.scalar(dtype, bits[0]));
    }
    match dtype {
        DType::F32 => {
            let real = site.real(|trace| f32::from_bits(bits[trace]))?;
            Ok(b.real(&real))
        }
        DType::I32 => {
            let number = site.number(|trace| i64::from(bits[trace] as i32))?;
            let number = b.number(&number);
            Ok(b.cast(&number, dtype))
        }
        _ => Err(format!("is a number of {dtype} that depends on the open sizes")),
    }
}

fn fill(b: &mut Builder, site: &Site, _: &[Out]) -> Found<Out> {
    let (dtype, bits) = (site.dtype(), site.each::<u32>("bits")?);
    let shape = site.output_shape()?;
    if shape.is_empty() {
        return scalar(b, site, dtype, &bits);
    }
    if bits.iter().all(|other| *other == bits[0]) {
        return Ok(b.filled(dtype, &shape, bits[0]));
    }
    let value = scalar(b, site, dtype, &bits)?;
    let shape = b.vector(&shape);
    Ok(b.op("Expand", &[&value, &shape], []))
}

fn frame(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let axis: i64 = site.get("axis")?;
    let shape = site.output_shape()?;
    let step = b.i64(site.get("step")?);
    let starts = b.range(&shape[axis as usize]);
    let starts = b.op("Mul", &[&starts, &step], []);
    let starts = b.unsqueeze(&starts, &[1]);
    let within = b.range(&shape[axis as usize + 1]);
    let places = b.op("Add", &[&starts, &within], []);
    Ok(b.op("Gather", &[&inputs[0], &places], [("axis", Int(axis))]))
}

/// The elements along `axis`, which follows the axes of the batch.
fn gathered(b: &mut Builder, x: &Out, places: &Out, axis: i64, batch: i64) -> Found<Out> {
    if batch == 0 {
        return Ok(b.op("Gather", &[x, places], [("axis", Int(axis))]));
    }
    if axis != batch {
        return Err("takes elements of an axis far behind the batch, which ONNX cannot".to_string());
    }
    let places = b.cast_to_i64(places);
    let places = b.unsqueeze(&places, &[-1]);
    Ok(b.op("GatherND", &[x, &places], [("batch_dims", Int(batch))]))
}

fn gather(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    gathered(b, &inputs[0], &inputs[1], site.get("axis")?, site.get("batch_dims")?)
}

fn rearrange(b: &mut Builder, _: &Site, inputs: &[Out]) -> Found<Out> {
    gathered(b, &inputs[0], &inputs[1], 1, 1)
}

fn iota(b: &mut Builder, site: &Site, _: &[Out]) -> Found<Out> {
    let dtype = site.dtype();
    if !matches!(dtype, DType::F32 | DType::I32) {
        return Err(format!("is a range of {dtype}, which ONNX lacks"));
    }
    let words = site.each::<[u32; 2]>("words")?;
    let part = |at: usize| words.iter().map(|words| words[at]).collect::<Vec<u32>>();
    let line = b.range(&site.output_shape()?[0]);
    let mut line = b.cast(&line, dtype);
    let (start, delta) = (part(0), part(1));
    let one = if dtype == DType::F32 { 1f32.to_bits() } else { 1 };
    if delta.iter().any(|bits| *bits != one) {
        let delta = scalar(b, site, dtype, &delta)?;
        line = b.op("Mul", &[&line, &delta], []);
    }
    if start.iter().any(|bits| *bits != 0) {
        let start = scalar(b, site, dtype, &start)?;
        line = b.op("Add", &[&line, &start], []);
    }
    Ok(line)
}

/// An axis of a padding: the values before and after it, and the distance of its elements.
fn padding(value: &Value) -> Found<(i64, i64, i64)> {
    let low: i64 = value.field("low")?;
    Ok((low, value.field::<i64>("more")? - low, value.field("step")?))
}

fn pad(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let all = site.calls.iter().map(|call| match field(&call.attributes, "axes") {
        Some(Value::List(axes)) => axes.iter().map(padding).collect::<Found<Vec<_>>>(),
        _ => Err("has no attribute \"axes\"".to_string()),
    });
    let all = all.collect::<Found<Vec<_>>>()?;
    let value = b.scalar(site.dtype(), site.get("bits")?);
    let rank = site.input_rank(0);
    let mut x = inputs[0].clone();
    let mut sizes: Vec<Vec<i64>> = site.inputs[0]
        .iter()
        .map(|spec| spec.shape.iter().map(|size| *size as i64).collect())
        .collect();
    for axis in 0..rank {
        let step = all[0][axis].2;
        if all.iter().any(|axes| axes[axis].2 != step) {
            return Err("has a step that depends on the open sizes".to_string());
        }
        if step == 1 {
            continue;
        }
        // Each element gets an axis of its own, on which values follow it; those of the last one are cut off below.
        let apart = b.unsqueeze(&x, &[axis as i64 + 1]);
        let mut edges = vec![0; 2 * (rank + 1)];
        edges[rank + 1 + axis + 1] = step - 1;
        let edges = b.i64s(&edges);
        let wide = b.op("Pad", &[&apart, &edges, &value], []);
        sizes.iter_mut().for_each(|sizes| sizes[axis] *= step);
        let merged = (0..rank)
            .map(|axis| site.number(|trace| sizes[trace][axis]))
            .collect::<Found<Vec<_>>>()?;
        x = b.reshape(&wide, &merged);
    }
    let cut = |axis: usize| all[0][axis].2 - 1;
    let low = |axis: usize| site.number(|trace| all[trace][axis].0);
    let high = |axis: usize| site.number(|trace| all[trace][axis].1 - cut(axis));
    let edges = (0..rank).map(low).chain((0..rank).map(high)).collect::<Found<Vec<_>>>()?;
    if edges.iter().all(|edge| *edge == Number::Known(0)) {
        return Ok(x);
    }
    let edges = b.vector(&edges);
    // Negative edges remove elements.
    Ok(b.op("Pad", &[&x, &edges, &value], []))
}

fn reshape(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let shape = site.output_shape()?;
    Ok(b.reshape(&inputs[0], &shape))
}

fn sliced(b: &mut Builder, x: &Out, starts: &Out, ends: &Out, axes: &[i64], steps: &Out) -> Out {
    let axes = b.i64s(axes);
    b.op("Slice", &[x, starts, ends, &axes, steps], [])
}

fn reverse(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let axes: Vec<i64> = site.get("axes")?;
    let all = |b: &mut Builder, value: i64| b.i64s(&vec![value; axes.len()]);
    let (starts, ends, steps) = (all(b, -1), all(b, i64::MIN), all(b, -1));
    Ok(sliced(b, &inputs[0], &starts, &ends, &axes, &steps))
}

fn roll(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let (by, axis) = (site.each::<i64>("by")?, site.get::<i64>("axis")?);
    let place = site.number(|trace| -by[trace])?;
    let place = b.vector(&[place]);
    let (first, last, one) = (b.i64s(&[0]), b.i64s(&[i64::MAX]), b.i64s(&[1]));
    let end = sliced(b, &inputs[0], &place, &last, &[axis], &one);
    let start = sliced(b, &inputs[0], &first, &place, &[axis], &one);
    Ok(b.op("Concat", &[&end, &start], [("axis", Int(axis))]))
}

/// `x` with rows that `reduction` combines with those of `updates`.
fn scattered(
    b: &mut Builder,
    x: &Out,
    places: &Out,
    updates: &Out,
    reduction: &'static str,
) -> Out {
    let places = b.unsqueeze(places, &[-1]);
    b.op("ScatterND", &[x, &places, updates], [("reduction", Text(reduction))])
}

fn scatter_extreme(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let places = b.cast_to_i64(&inputs[1]);
    let reduction = if site.get("largest")? { "max" } else { "min" };
    Ok(scattered(b, &inputs[0], &places, &inputs[2], reduction))
}

fn scatter_update(b: &mut Builder, _: &Site, inputs: &[Out]) -> Found<Out> {
    let places = b.cast_to_i64(&inputs[1]);
    Ok(scattered(b, &inputs[0], &places, &inputs[2], "none"))
}

fn search_sorted(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let lines = b.unsqueeze(&inputs[0], &[1]);
    let values = b.unsqueeze(&inputs[1], &[2]);
    let op = if site.call().name == "LowerBound" { "Less" } else { "LessOrEqual" };
    let before = b.op(op, &[&lines, &values], []);
    let before = b.cast(&before, DType::I32);
    let last = b.i64s(&[2]);
    Ok(b.op("ReduceSum", &[&before, &last], [("keepdims", Int(0))]))
}

/// The ids as `int64`, with `other` in the place of those that are no row.
fn inside(b: &mut Builder, ids: &Out, moved: &Out, rows: &Number, other: &Number) -> Out {
    let (zero, rows, other) = (b.i64(0), b.number(rows), b.number(other));
    let low = b.op("GreaterOrEqual", &[ids, &zero], []);
    let high = b.op("Less", &[ids, &rows], []);
    let both = b.op("And", &[&low, &high], []);
    b.op("Where", &[&both, moved, &other], [])
}

/// All rows but the last, which took what belongs to none.
fn without_last(b: &mut Builder, x: &Out) -> Out {
    let (first, last, one) = (b.i64s(&[0]), b.i64s(&[-1]), b.i64s(&[1]));
    sliced(b, x, &first, &last, &[0], &one)
}

fn counts(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    if site.call().name != "Bincount" {
        return Err(missing());
    }
    let rows = site.output_shape()?.swap_remove(0);
    let more = site.number(|trace| site.calls[trace].spec.shape[0] as i64 + 1)?;
    let ids = b.cast_to_i64(&inputs[0]);
    let ids = inside(b, &ids, &ids, &rows, &rows);
    let start = b.filled(DType::I32, &[more], 0);
    let ones = b.filled(DType::I32, &site.input_shape(0)?, 1);
    let sums = scattered(b, &start, &ids, &ones, "add");
    Ok(without_last(b, &sums))
}

fn segment_sum(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let (x, shape) = (site.input_shape(0)?, site.output_shape()?);
    let rows = &shape[1];
    let product = site.call().name == "UnsortedSegmentProd";
    let total = |trace: usize| {
        let shape = &site.calls[trace].spec.shape;
        (shape[0] * shape[1]) as i64
    };
    let (all, more) = (site.number(total)?, site.number(|trace| total(trace) + 1)?);
    // Each batch has rows of its own; one row more takes what belongs to none.
    let ids = b.cast_to_i64(&inputs[1]);
    let batches = b.range(&shape[0]);
    let count = b.number(rows);
    let starts = b.op("Mul", &[&batches, &count], []);
    let starts = b.unsqueeze(&starts, &[1]);
    let moved = b.op("Add", &[&ids, &starts], []);
    let ids = inside(b, &ids, &moved, rows, &all);
    let line = b.i64s(&[-1]);
    let ids = b.op("Reshape", &[&ids, &line], []);
    let count = site.number(|trace| {
        let shape = &site.inputs[0][trace].shape;
        (shape[0] * shape[1]) as i64
    })?;
    let flat = b.reshape(&inputs[0], &[count, x[2].clone()]);
    let one = if site.dtype().is_float() { 1f32.to_bits() } else { 1 };
    let first = if product { one } else { 0 };
    let start = b.filled(site.dtype(), &[more, x[2].clone()], first);
    let sums = scattered(b, &start, &ids, &flat, if product { "mul" } else { "add" });
    let sums = without_last(b, &sums);
    Ok(b.reshape(&sums, &shape))
}

fn select(b: &mut Builder, _: &Site, inputs: &[Out]) -> Found<Out> {
    Ok(b.op("Where", &[&inputs[0], &inputs[1], &inputs[2]], []))
}

fn slice(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let boxes = site.each::<Vec<(i64, i64)>>("boxes")?;
    let begins = site.each::<Vec<i64>>("begins")?;
    let size = |trace: usize, axis: usize| site.inputs[0][trace].shape[axis] as i64;
    let (mut axes, mut starts, mut ends, mut steps) = (vec![], vec![], vec![], vec![]);
    for axis in 0..site.input_rank(0) {
        let span = |trace: usize| {
            let (length, step) = boxes[trace][axis];
            if length == 0 { 0 } else { (length - 1) * step + 1 }
        };
        let traces = 0..boxes.len();
        let to_end = |trace: usize| begins[trace][axis] + span(trace) == size(trace, axis);
        let start = site.number(|trace| begins[trace][axis])?;
        let step = site.number(|trace| boxes[trace][axis].1)?;
        let whole = traces.clone().all(to_end);
        if whole && start == Number::Known(0) && step == Number::Known(1) {
            continue;
        }
        axes.push(axis as i64);
        starts.push(start);
        steps.push(step);
        ends.push(match whole {
            true => Number::Known(i64::MAX),
            false => site.number(|trace| begins[trace][axis] + span(trace))?,
        });
    }
    if axes.is_empty() {
        return Ok(b.op("Identity", &[&inputs[0]], []));
    }
    let (starts, ends, steps) = (b.vector(&starts), b.vector(&ends), b.vector(&steps));
    Ok(sliced(b, &inputs[0], &starts, &ends, &axes, &steps))
}

/// The `k` first elements of each row, sorted, or their places.
fn first(b: &mut Builder, x: &Out, k: &Number, largest: bool, places: bool) -> Out {
    let k = b.vector(std::slice::from_ref(k));
    let outs = vec![b.name("TopK_values"), b.name("TopK_places")];
    let attributes = [("largest", Int(i64::from(largest)))];
    b.node("TopK", [x.clone(), k], outs.clone(), attributes);
    if places { b.cast(&outs[1], DType::I32) } else { outs[0].clone() }
}

fn top_k(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let k = site.output_shape()?.swap_remove(1);
    Ok(first(b, &inputs[0], &k, true, true))
}

fn sort(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let n = site.output_shape()?.swap_remove(1);
    Ok(first(b, &inputs[0], &n, site.get("descending")?, site.get("places")?))
}

fn transpose(b: &mut Builder, site: &Site, inputs: &[Out]) -> Found<Out> {
    let order: Vec<i64> = site.get("order")?;
    Ok(b.transpose(&inputs[0], &order))
}
