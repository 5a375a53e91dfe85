//! Convolutions and pools on all rows: rows are images of one batch if they share the filters, and groups of channels
//! otherwise.

use std::any::Any;

use super::super::conv2d::{self, Conv2d};
use super::super::depthwise_conv2d::{self, DepthwiseConv2d};
use super::super::pool::{AvgPoolGrad, MaxPoolGrad, MaxPoolPick, Pool, PoolKind};
use super::{Lane, spread};
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// Calls `op` on all rows, if it is a convolution, a pool or a gradient of one.
pub(super) fn call(op: &dyn Any, inputs: &[Lane], rows: usize) -> Result<Option<Tensor>> {
    let y = match inputs {
        [a, b] => {
            if let Some(y) = convolution(op, a, b, rows)? {
                y
            } else if let Some(y) = depthwise(op, a, b, rows)? {
                y
            } else if let Some(MaxPoolGrad { image, options }) = op.downcast_ref() {
                let (dy, image) = (joined(&spread(a, rows)?)?, more_images(image, rows));
                let Some(places) = places_in_all(b, image.elements(), rows)? else {
                    return Ok(None);
                };
                apart(&dispatch(MaxPoolGrad { image, options: *options }, &[&dy, &places])?, rows)?
            } else if let Some(MaxPoolPick { options }) = op.downcast_ref() {
                let x = joined(&spread(a, rows)?)?;
                let Some(places) = places_in_all(b, x.len(), rows)? else { return Ok(None) };
                apart(&dispatch(MaxPoolPick { options: *options }, &[&x, &places])?, rows)?
            } else {
                return Ok(None);
            }
        }
        [Lane::Rows(x)] => {
            if let Some(&Pool { kind, options }) = op.downcast_ref() {
                let y = apart(&dispatch(Pool { kind, options }, &[&joined(x)?])?, rows)?;
                if kind != PoolKind::ArgMax {
                    return Ok(Some(y));
                }
                // Indices in all rows become indices in one row.
                let Some(first) = first_places(x.len(), rows, y.rank())? else { return Ok(None) };
                y.subtract(&first)?
            } else if let Some(AvgPoolGrad { image, options }) = op.downcast_ref() {
                let image = more_images(image, rows);
                apart(&dispatch(AvgPoolGrad { image, options: *options }, &[&joined(x)?])?, rows)?
            } else {
                return Ok(None);
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(y))
}

fn convolution(op: &dyn Any, a: &Lane, b: &Lane, rows: usize) -> Result<Option<Tensor>> {
    let y = if let Some(Conv2d { options }) = op.downcast_ref() {
        match (a, b) {
            (Lane::Rows(x), Lane::One(w)) => apart(&joined(x)?.conv2d(w, *options)?, rows)?,
            _ => {
                let (x, w) = (grouped(&spread(a, rows)?)?, grouped(&spread(b, rows)?)?);
                ungrouped(&x.conv2d(&w, *options)?, rows)?
            }
        }
    } else if let Some(conv2d::InputGradient { image, options }) = op.downcast_ref() {
        match (a, b) {
            (Lane::Rows(dy), Lane::One(w)) => {
                let image = more_images(image, rows);
                apart(&conv2d::input_gradient(&image, &joined(dy)?, w, *options)?, rows)?
            }
            _ => {
                let (dy, w) = (grouped(&spread(a, rows)?)?, grouped(&spread(b, rows)?)?);
                let image = more_channels(image, 3, rows);
                ungrouped(&conv2d::input_gradient(&image, &dy, &w, *options)?, rows)?
            }
        }
    } else if let Some(conv2d::FilterGradient { filter, options }) = op.downcast_ref() {
        let options = *options;
        let &[kh, kw, c, o] = &filter[..] else { return Ok(None) };
        match (a, b) {
            // One product for all rows: within each group of channels, the rows are filters.
            (Lane::One(x), Lane::Rows(dy)) => {
                let groups = x.shape()[3] / c.max(1);
                let each = o / groups.max(1);
                let &[_, n, oh, ow, _] = dy.shape() else { return Ok(None) };
                let dy = dy
                    .reshape_to([rows, n, oh, ow, groups, each].into())?
                    .transpose([1, 2, 3, 4, 0, 5])?
                    .reshape_to([n, oh, ow, rows * o].into())?;
                let filter = Shape::new(&[kh, kw, c, rows * o]);
                dispatch(conv2d::FilterGradient { filter, options }, &[x, &dy])?
                    .reshape_to([kh, kw, c, groups, rows, each].into())?
                    .transpose([4, 0, 1, 2, 3, 5])?
                    .reshape_to([rows, kh, kw, c, o].into())?
            }
            _ => {
                let (x, dy) = (grouped(&spread(a, rows)?)?, grouped(&spread(b, rows)?)?);
                let filter = more_channels(filter, 3, rows);
                let dw = dispatch(conv2d::FilterGradient { filter, options }, &[&x, &dy])?;
                ungrouped(&dw, rows)?
            }
        }
    } else {
        return Ok(None);
    };
    Ok(Some(y))
}

fn depthwise(op: &dyn Any, a: &Lane, b: &Lane, rows: usize) -> Result<Option<Tensor>> {
    // The filters' third axis has the channels of the images.
    let filters = |w: &Tensor| {
        let &[rows, kh, kw, c, m] = w.shape() else { return Ok(w.clone()) };
        w.transpose([1, 2, 0, 3, 4])?.reshape_to([kh, kw, rows * c, m].into())
    };
    let y = if let Some(DepthwiseConv2d { options }) = op.downcast_ref() {
        match (a, b) {
            (Lane::Rows(x), Lane::One(w)) => {
                apart(&joined(x)?.depthwise_conv2d(w, *options)?, rows)?
            }
            _ => {
                let (x, w) = (grouped(&spread(a, rows)?)?, filters(&spread(b, rows)?)?);
                ungrouped(&x.depthwise_conv2d(&w, *options)?, rows)?
            }
        }
    } else if let Some(depthwise_conv2d::InputGradient { image, options }) = op.downcast_ref() {
        let options = *options;
        match (a, b) {
            (Lane::Rows(dy), Lane::One(w)) => {
                let image = more_images(image, rows);
                let op = depthwise_conv2d::InputGradient { image, options };
                apart(&dispatch(op, &[&joined(dy)?, w])?, rows)?
            }
            _ => {
                let (dy, w) = (grouped(&spread(a, rows)?)?, filters(&spread(b, rows)?)?);
                let image = more_channels(image, 3, rows);
                let op = depthwise_conv2d::InputGradient { image, options };
                ungrouped(&dispatch(op, &[&dy, &w])?, rows)?
            }
        }
    } else if let Some(depthwise_conv2d::FilterGradient { filter, options }) = op.downcast_ref() {
        let (x, dy) = (grouped(&spread(a, rows)?)?, grouped(&spread(b, rows)?)?);
        let &[kh, kw, c, m] = &filter[..] else { return Ok(None) };
        let filter = more_channels(filter, 2, rows);
        let op = depthwise_conv2d::FilterGradient { filter, options: *options };
        dispatch(op, &[&x, &dy])?
            .reshape_to([kh, kw, rows, c, m].into())?
            .transpose([2, 0, 1, 3, 4])?
    } else {
        return Ok(None);
    };
    Ok(Some(y))
}

/// `[R,N,..]` as `[R*N,..]`.
fn joined(x: &Tensor) -> Result<Tensor> {
    let mut shape = vec![x.shape()[0] * x.shape()[1]];
    shape.extend_from_slice(&x.shape()[2..]);
    x.reshape_to(shape[..].into())
}

/// `[R*N,..]` as `[R,N,..]`.
fn apart(x: &Tensor, rows: usize) -> Result<Tensor> {
    let mut shape = vec![rows, x.shape()[0] / rows];
    shape.extend_from_slice(&x.shape()[1..]);
    x.reshape_to(shape[..].into())
}

/// `[R,A,B,C,D]` as `[A,B,C,R*D]`.
fn grouped(x: &Tensor) -> Result<Tensor> {
    let &[rows, a, b, c, d] = x.shape() else { return Ok(x.clone()) };
    x.transpose([1, 2, 3, 0, 4])?.reshape_to([a, b, c, rows * d].into())
}

/// `[A,B,C,R*D]` as `[R,A,B,C,D]`.
fn ungrouped(x: &Tensor, rows: usize) -> Result<Tensor> {
    let &[a, b, c, d] = x.shape() else { return Ok(x.clone()) };
    x.reshape_to([a, b, c, rows, d / rows].into())?.transpose([3, 0, 1, 2, 4])
}

/// The shape of the images of all rows in one batch.
fn more_images(image: &Shape, rows: usize) -> Shape {
    more_channels(image, 0, rows)
}

/// `shape` with an axis `rows` times as long.
fn more_channels(shape: &Shape, axis: usize, rows: usize) -> Shape {
    let mut sizes = shape.to_vec();
    sizes[axis] *= rows;
    Shape::new(&sizes)
}

/// The index at which each row begins among `elements` of all rows, as `[R,1,..]` of this rank; `None` if it exceeds
/// `i32`.
fn first_places(elements: usize, rows: usize, rank: usize) -> Result<Option<Tensor>> {
    let (Ok(_), Ok(own)) = (i32::try_from(elements), i32::try_from(elements / rows)) else {
        return Ok(None);
    };
    let mut shape = vec![1; rank];
    shape[0] = rows;
    let first = super::super::arange(0.into(), (rows as i32).into(), 1.into())?;
    first.multiply(own)?.reshape_to(shape[..].into()).map(Some)
}

/// Indices in one row as indices among `elements` of all rows; `None` if they exceed `i32`.
fn places_in_all(places: &Lane, elements: usize, rows: usize) -> Result<Option<Tensor>> {
    let places = spread(places, rows)?;
    debug_assert!(places.dtype() == DType::I32, "places are i32");
    let first = places.device().scope(|| first_places(elements, rows, places.rank()))?;
    first.map(|first| joined(&places.add(&first)?)).transpose()
}
