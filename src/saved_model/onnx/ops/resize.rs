//! Resize and Upsample, as ONNX's reference defines them: along each axis, a result is a weighted sum of elements.

use super::call::{Call, Results, Table, axis, ints, long, tensor, tf, unsupported};
use crate::error::{Error, Result, message};
use crate::ops::TensordotAxes;
use crate::saved_model::graph_def::value::Value;
use crate::tensor::Tensor;

pub(super) static OPS: Table = &[("Resize", resize), ("Upsample", resize)];

/// The most weights of an axis.
const LARGEST: usize = 1 << 24;

/// How an axis is resized.
struct Along {
    from: usize,
    to: usize,
    scale: f64,
}

fn resize(c: &Call<'_>) -> Result<Results> {
    let x = c.input(0)?;
    let shape = x.shape()?;
    let upsample = c.node.op == "Upsample" || c.opset < 11;
    let axes: Vec<usize> = match c.attr_ints("axes") {
        Some(axes) => axes.iter().map(|at| axis(*at, shape.len())).collect::<Result<_>>()?,
        None => (0..shape.len()).collect(),
    };
    let mut along = Vec::with_capacity(axes.len());
    let named = |given: usize| match given == axes.len() {
        true => Ok(()),
        false => Err(Error::Shape(message!("it resizes {given} of {} axes.", axes.len()))),
    };
    if let Some(sizes) = c.get(3).filter(|_| !upsample) {
        let sizes = ints(sizes)?;
        named(sizes.len())?;
        let ratio = |at: usize| sizes[at] as f64 / shape[axes[at]].max(1) as f64;
        let all = (0..axes.len()).map(ratio);
        let common = match c.attr_text("keep_aspect_ratio_policy", "stretch") {
            "not_larger" => Some(all.fold(f64::INFINITY, f64::min)),
            "not_smaller" => Some(all.fold(0.0, f64::max)),
            _ => None,
        };
        for (at, axis) in axes.iter().enumerate() {
            let (from, scale) = (shape[*axis], common.unwrap_or_else(|| ratio(at)));
            let size = common.map_or(sizes[at] as f64, |scale| (scale * from as f64 + 0.5).floor());
            along.push((*axis, Along { from, to: size.max(0.0) as usize, scale }));
        }
    } else {
        let scales = match c.get(if upsample { 1 } else { 2 }) {
            Some(_) => c.floats(if upsample { 1 } else { 2 })?,
            None => c
                .attr_floats("scales")
                .unwrap_or(&[])
                .iter()
                .map(|scale| f64::from(*scale))
                .collect(),
        };
        named(scales.len())?;
        for (scale, axis) in scales.iter().zip(&axes) {
            let from = shape[*axis];
            // The scale is an f32, whose product with a size may be a little below a whole number.
            let to = (from as f32 * *scale as f32).floor().max(0.0) as usize;
            along.push((*axis, Along { from, to, scale: *scale }));
        }
    }
    let default = if upsample { "asymmetric" } else { "half_pixel" };
    let pixels = c.attr_text("coordinate_transformation_mode", default);
    let mode = c.attr_text("mode", "nearest");
    let nearest =
        c.attr_text("nearest_mode", if upsample { "floor" } else { "round_prefer_floor" });
    let mut y = x;
    for (axis, along) in along {
        if along.from == along.to && along.scale == 1.0 {
            continue;
        }
        if along.from == 0 || along.from.saturating_mul(along.to) > LARGEST {
            return Err(unsupported(format_args!("a resize from {} to {}", along.from, along.to)));
        }
        let places = along.places(pixels)?;
        if mode == "nearest" {
            let last = along.from as f64 - 1.0;
            let places = places.iter().map(|x| whole(*x, nearest).clamp(0.0, last) as i64);
            let places: Vec<i64> = places.collect();
            y = tf("GatherV2", vec![y, long(&places), long(&[axis as i64])], vec![])?;
            continue;
        }
        let antialias = c.attr_int("antialias", 0) != 0;
        let scale = if antialias { along.scale.min(1.0) } else { 1.0 };
        let kernel = Kernel {
            radius: if mode == "cubic" { 2.0 } else { 1.0 },
            sharpness: f64::from(c.attr_float("cubic_coeff_a", -0.75)),
            scale,
            exclude_outside: c.attr_int("exclude_outside", 0) != 0,
        };
        let weights = kernel.weights(&places, along.from);
        y = Value::Tensor(combined(&y.tensor()?, axis, &weights, along.to)?);
    }
    tensor(y.tensor()?)
}

impl Along {
    /// Where each result lies among the elements.
    fn places(&self, pixels: &str) -> Result<Vec<f64>> {
        let (from, scale) = (self.from as f64, self.scale);
        let width = scale * from;
        let place = |at: f64| match pixels {
            "half_pixel" => Some((at + 0.5) / scale - 0.5),
            "pytorch_half_pixel" if self.to <= 1 => Some(0.0),
            "pytorch_half_pixel" => Some((at + 0.5) / scale - 0.5),
            "asymmetric" => Some(at / scale),
            "align_corners" if width == 1.0 => Some(0.0),
            "align_corners" => Some(at * (from - 1.0) / (width - 1.0)),
            "half_pixel_symmetric" => {
                let offset = from / 2.0 * (1.0 - self.to as f64 / width);
                Some(offset + (at + 0.5) / scale - 0.5)
            }
            _ => None,
        };
        let places: Option<Vec<f64>> = (0..self.to).map(|at| place(at as f64)).collect();
        let places = places.filter(|all| all.iter().all(|place| place.is_finite()));
        places.ok_or_else(|| unsupported(format_args!("a resize with {pixels} by {scale}")))
    }
}

/// The nearest whole number.
fn whole(x: f64, mode: &str) -> f64 {
    match mode {
        "floor" => x.floor(),
        "ceil" => x.ceil(),
        "round_prefer_ceil" => (x + 0.5).floor(),
        _ => (x - 0.5).ceil(),
    }
}

/// How much an element counts, by its distance.
struct Kernel {
    radius: f64,
    /// The constant of the cubic kernel.
    sharpness: f64,
    /// Below 1 if the kernel is wider, so that no element is left out.
    scale: f64,
    exclude_outside: bool,
}

impl Kernel {
    fn at(&self, distance: f64) -> f64 {
        let (x, a) = (distance.abs(), self.sharpness);
        if self.radius == 1.0 {
            return (1.0 - x).max(0.0);
        }
        if x <= 1.0 {
            ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
        } else if x < 2.0 {
            ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
        } else {
            0.0
        }
    }

    /// The weights of `from` elements for each place; those outside count for the nearest one inside.
    fn weights(&self, places: &[f64], from: usize) -> Vec<f32> {
        let reach = (self.radius / self.scale).ceil() as i64;
        let mut all = vec![0f32; places.len() * from];
        for (row, place) in all.chunks_exact_mut(from).zip(places) {
            let base = place.ceil() as i64 - 1;
            let each = (1 - reach..=reach).map(|step| {
                let element = base + step;
                let outside = element < 0 || element >= from as i64;
                let weight = match outside && self.exclude_outside {
                    true => 0.0,
                    false => self.at(self.scale * (element as f64 - place)),
                };
                (element.clamp(0, from as i64 - 1) as usize, weight)
            });
            let each: Vec<(usize, f64)> = each.collect();
            let sum: f64 = each.iter().map(|(_, weight)| weight).sum();
            for (element, weight) in each {
                row[element] += (weight / sum) as f32;
            }
        }
        all
    }
}

/// The sums along an axis with these weights, a row of them for each result.
fn combined(x: &Tensor, axis: usize, weights: &[f32], to: usize) -> Result<Tensor> {
    let from = x.shape()[axis];
    let matrix = Tensor::from_slice(weights, [to, from])?.cast(x.dtype())?;
    let axes = TensordotAxes::from((vec![axis as i64], vec![1i64]));
    // The results are along a new last axis.
    let y = x.tensordot(matrix, axes)?;
    let mut perm: Vec<usize> = (0..x.rank() - 1).collect();
    perm.insert(axis, x.rank() - 1);
    y.transpose(perm)
}
