//! Values at any places of an image or a volume.
//!
//! Source: the specification of `GridSample` (opset 20) and `AffineGrid` (20), which are PyTorch's `grid_sample` and `affine_grid`.

use super::call::{Call, Results, Table, axis, tensor, unsupported};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::ops::{GatherOptions, stack};
use crate::tensor::{Tensor, range};

pub(super) static OPS: Table =
    &[("AffineGrid", affine_grid), ("CenterCropPad", center_crop_pad), ("GridSample", grid_sample)];

/// The places of an axis in the order of its indices, from -1 to 1: of the first and the last one, or of their outer edges.
fn places(size: usize, corners: bool) -> Result<Tensor> {
    let count =
        i64::try_from(size).map_err(|_| Error::Shape(message!("{size} is no size of an axis.")))?;
    let index = range(0, count, 1)?.cast(DType::F32)?;
    match corners {
        true => index.multiply(2.0 / (size as f32 - 1.0))?.subtract(1.0),
        false => index.multiply(2.0)?.add(1.0)?.divide(size as f32)?.subtract(1.0),
    }
}

fn affine_grid(c: &Call<'_>) -> Result<Results> {
    let (theta, sizes) = (c.tensor(0)?, c.ints(1)?);
    let sizes: Option<Vec<usize>> = sizes.iter().map(|size| usize::try_from(*size).ok()).collect();
    let Some([_, _, space @ ..]) = sizes.as_deref() else {
        return Err(Error::Shape(message!("its sizes are no [batch, channels, ...].")));
    };
    let n = space.len();
    let [batch, rows, columns] = theta.shape() else {
        return Err(Error::Shape(message!("{:?} are no matrices.", theta.shape())));
    };
    if *rows != n || *columns != n + 1 || !(2..=3).contains(&n) {
        return Err(Error::Shape(message!(
            "matrices of {:?} do not map places in {n} axes.",
            theta.shape()
        )));
    }
    let flat = space.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
    let flat = flat
        .filter(|count| *count < 1 << 31)
        .ok_or_else(|| Error::Shape(message!("a grid of {space:?} places is too large.")))?;
    let corners = c.attr_int("align_corners", 0) != 0;
    // The last axis of space is the first coordinate.
    let mut coordinates = Vec::with_capacity(n + 1);
    for at in (0..n).rev() {
        let mut shape = vec![1; n];
        shape[at] = space[at];
        coordinates.push(places(space[at], corners)?.reshape(shape)?.broadcast_to(space)?);
    }
    coordinates.push(Tensor::full_of(space, 1.0, DType::F32)?);
    let grid = stack(&coordinates, -1)?.reshape([flat, n + 1])?;
    let moved = grid.matmul(theta.transpose([0, 2, 1])?)?;
    let shape: Vec<usize> = [*batch].into_iter().chain(space.iter().copied()).chain([n]).collect();
    tensor(moved.reshape(shape)?)
}

#[derive(Clone, Copy, PartialEq)]
enum Beyond {
    Zeros,
    Border,
    Reflection,
}

/// An axis of what is sampled.
struct SampledAxis {
    size: usize,
    corners: bool,
    beyond: Beyond,
}

/// Indices along an axis, and what their values count.
type Tap = (Tensor, Tensor);

impl SampledAxis {
    fn last(&self) -> f32 {
        self.size as f32 - 1.0
    }

    /// Mirrors places at the ends of the axis, until they are inside.
    fn reflected(&self, x: &Tensor) -> Result<Tensor> {
        let (low, length) =
            if self.corners { (0.0, self.last()) } else { (-0.5, self.size as f32) };
        if length <= 0.0 {
            return x.zeros_like();
        }
        let way = x.subtract(low)?.abs()?;
        let way = way.subtract(way.divide(2.0 * length)?.floor()?.multiply(2.0 * length)?)?;
        way.subtract(length)?.abs()?.negative()?.add(length + low)
    }

    /// The indices that the places, from -1 to 1, read.
    fn taps(&self, x: &Tensor, mode: &str) -> Result<Vec<Tap>> {
        let mut x = match self.corners {
            true => x.add(1.0)?.multiply(self.last() / 2.0)?,
            false => x.add(1.0)?.multiply(self.size as f32)?.subtract(1.0)?.divide(2.0)?,
        };
        if mode == "nearest" {
            x = x.round()?;
        }
        x = match self.beyond {
            Beyond::Zeros => x,
            Beyond::Border => x.clip_by_value(0.0, self.last())?,
            Beyond::Reflection => self.reflected(&x)?,
        };
        let base = x.floor()?;
        let part = x.subtract(&base)?;
        let rest = part.negative()?.add(1.0)?;
        let weights = match mode {
            "nearest" => return Ok(vec![self.tap(&x, x.ones_like()?)?]),
            "linear" | "bilinear" => vec![(0.0, rest), (1.0, part)],
            "cubic" | "bicubic" => vec![
                (-1.0, outer(&part.add(1.0)?)?),
                (0.0, inner(&part)?),
                (1.0, inner(&rest)?),
                (2.0, outer(&rest.add(1.0)?)?),
            ],
            other => return Err(unsupported(format_args!("the mode {other}"))),
        };
        weights.into_iter().map(|(at, weight)| self.tap(&base.add(at)?, weight)).collect()
    }

    fn tap(&self, index: &Tensor, weight: Tensor) -> Result<Tap> {
        let weight = match self.beyond {
            Beyond::Zeros => {
                let inside =
                    index.greater_equal(0.0)?.logical_and(index.less_equal(self.last())?)?;
                weight.multiply(inside.cast(DType::F32)?)?
            }
            _ => weight,
        };
        let index = match self.beyond {
            Beyond::Reflection => self.reflected(index)?.floor()?,
            _ => index.clone(),
        };
        Ok((index.clip_by_value(0.0, self.last())?.cast(DType::I32)?, weight))
    }
}

/// Keys's cubic kernel, with -0.75 as its number: at distances below 1, and from 1 to 2.
fn inner(d: &Tensor) -> Result<Tensor> {
    d.multiply(1.25)?.subtract(2.25)?.multiply(d)?.multiply(d)?.add(1.0)
}

fn outer(d: &Tensor) -> Result<Tensor> {
    let cubic = d.multiply(-0.75)?.add(3.75)?.multiply(d)?.subtract(6.0)?;
    cubic.multiply(d)?.add(3.0)
}

fn grid_sample(c: &Call<'_>) -> Result<Results> {
    let (x, grid) = (c.tensor(0)?, c.tensor(1)?.cast(DType::F32)?);
    let n = x.rank().saturating_sub(2);
    if !(1..=3).contains(&n) || grid.rank() != n + 2 || grid.shape()[n + 1] != n {
        return Err(Error::Shape(message!(
            "a grid {:?} names no places of {:?}.",
            grid.shape(),
            x.shape()
        )));
    }
    let (batch, channels, space) = (x.shape()[0], x.shape()[1], x.shape()[2..].to_vec());
    if space.contains(&0) {
        return Err(Error::Shape(message!("{:?} has no values to sample.", x.shape())));
    }
    let results = grid.shape()[1..=n].to_vec();
    let count: usize = results.iter().product();
    let beyond = match c.attr_text("padding_mode", "zeros") {
        "zeros" => Beyond::Zeros,
        "border" => Beyond::Border,
        "reflection" => Beyond::Reflection,
        other => return Err(unsupported(format_args!("the padding mode {other}"))),
    };
    let corners = c.attr_int("align_corners", 0) != 0;
    let mode = c.attr_text("mode", "linear");
    // The first coordinate is that of the last axis.
    let coordinates = grid.reshape([batch, count, n])?.unstack(2)?;
    let mut taps: Vec<Tap> = Vec::new();
    let mut stride = 1;
    for at in (0..n).rev() {
        let axis = SampledAxis { size: space[at], corners, beyond };
        let own = axis.taps(&coordinates[n - 1 - at], mode)?;
        let step = i64::try_from(stride)
            .map_err(|_| Error::Shape(message!("{space:?} are too many values.")))?;
        let own = own.into_iter().map(|(index, weight)| Ok((index.multiply(step)?, weight)));
        let own = own.collect::<Result<Vec<Tap>>>()?;
        taps = match taps.is_empty() {
            true => own,
            false => {
                let mut all = Vec::with_capacity(taps.len() * own.len());
                for (index, weight) in &taps {
                    for (other, part) in &own {
                        all.push((index.add(other)?, weight.multiply(part)?));
                    }
                }
                all
            }
        };
        stride *= space[at];
    }
    // [batch, values, channels]
    let values = x.reshape([batch, channels, stride])?.transpose([0, 2, 1])?;
    let mut sums = Vec::with_capacity(taps.len());
    for (index, weight) in &taps {
        let found = values.gather_with(index, 1, GatherOptions::new().batch_dims(1))?;
        sums.push(found.multiply(weight.expand_dims(-1)?.cast(x.dtype())?)?);
    }
    let y = crate::ops::add_n(&sums)?.transpose([0, 2, 1])?;
    let shape: Vec<usize> = [batch, channels].into_iter().chain(results).collect();
    tensor(y.reshape(shape)?)
}

/// Pads or crops axes at both ends.
fn center_crop_pad(c: &Call<'_>) -> Result<Results> {
    let (mut x, sizes) = (c.tensor(0)?, c.ints(1)?);
    let rank = x.rank();
    let axes: Vec<usize> = match c.attr_ints("axes") {
        Some(axes) => axes.iter().map(|at| axis(*at, rank)).collect::<Result<_>>()?,
        None => (0..rank).collect(),
    };
    if axes.len() != sizes.len() {
        return Err(Error::Shape(message!("{sizes:?} are not the sizes of {} axes.", axes.len())));
    }
    for (at, size) in axes.into_iter().zip(sizes) {
        let wanted = usize::try_from(size).ok().filter(|size| *size < 1 << 31);
        let wanted =
            wanted.ok_or_else(|| Error::Shape(message!("{size} is no size of an axis.")))?;
        let have = x.shape()[at];
        if wanted < have {
            let (mut begin, mut kept) = (vec![0; rank], vec![-1; rank]);
            (begin[at], kept[at]) = ((have - wanted) / 2, size);
            x = x.slice(&begin, &kept)?;
        } else {
            let more = wanted - have;
            let mut pads = vec![(0, 0); rank];
            pads[at] = (more / 2, more - more / 2);
            x = x.pad(&pads)?;
        }
    }
    tensor(x)
}
