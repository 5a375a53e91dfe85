//! Resizes an image on the host, before it becomes part of a batch, by the same rules as [`resize`](super::resize) on the
//! device.

use std::collections::VecDeque;

use ndarray::{Array3, ArrayView3};

use super::ResizeOptions;
use crate::error::{Error, Result, message};
use crate::ops::image::{Span, resize_axes};

/// The element type of an image on the host.
pub trait Pixel: Copy + Into<f32> {}

impl Pixel for u8 {}
impl Pixel for u16 {}
impl Pixel for f32 {}

/// Resizes an image `[H,W,C]` on the host to `size`, height and width, by bilinear interpolation, in `f32`.
///
/// The result equals that of [`resize`](super::resize) on a device. For images of one size, resizing there in a batch is
/// better; for images of many sizes, such as photographs, this function is.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::ndarray::arr3;
/// let image = arr3(&[[[0u8], [4]]]);
/// let wide = wgrad::image::resize_array(&image, [1, 4])?;
/// assert_eq!(wide, arr3(&[[[0.0], [1.0], [3.0], [4.0]]]));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if there is nothing to read or to write, or an axis is longer than 2^22.
pub fn resize_array<'a, T: Pixel + 'a>(
    image: impl Into<ArrayView3<'a, T>>,
    size: [usize; 2],
) -> Result<Array3<f32>> {
    resize_array_with(image, size, ResizeOptions::new())
}

/// As [`resize_array`], with options.
///
/// # Errors
/// As [`resize_array`].
pub fn resize_array_with<'a, T: Pixel + 'a>(
    image: impl Into<ArrayView3<'a, T>>,
    size: [usize; 2],
    options: ResizeOptions,
) -> Result<Array3<f32>> {
    const OP: &str = "resize_array";
    let image = image.into();
    let (_, width, channels) = image.dim();
    let [rows, columns] = resize_axes(OP, image.shape(), size, options)?;
    let shape = [rows.len(), columns.len(), channels];
    let values = shape.iter().try_fold(1usize, |size, &dim| size.checked_mul(dim));
    let mut resized = Vec::new();
    if values.is_none_or(|values| resized.try_reserve_exact(values).is_err()) {
        return Err(Error::Shape(message!("{OP}: there is no memory for an image of {shape:?}.")));
    }
    let pixels = image.as_standard_layout();
    let pixels = pixels.as_slice().unwrap_or_default();
    let source = |row: usize| &pixels[row * width * channels..(row + 1) * width * channels];
    // Rows of the source that the next rows of the result may read, already resized along the row.
    let mut ready: VecDeque<(usize, Vec<f32>)> = VecDeque::new();
    for span in &rows {
        while ready.front().is_some_and(|(row, _)| *row < span.start) {
            ready.pop_front();
        }
        let end = span.start + span.weights.len();
        for row in ready.back().map_or(span.start, |(row, _)| row + 1)..end {
            ready.push_back((row, across(source(row), &columns, channels)));
        }
        down(&ready, span, columns.len() * channels, &mut resized);
    }
    Array3::from_shape_vec(shape, resized).map_err(|error| Error::Shape(message!("{OP}: {error}.")))
}

/// One row of the source, resized along the row.
fn across<T: Pixel>(row: &[T], columns: &[Span], channels: usize) -> Vec<f32> {
    match channels {
        1 => across_of::<T, 1>(row, columns),
        3 => across_of::<T, 3>(row, columns),
        4 => across_of::<T, 4>(row, columns),
        _ => {
            let mut resized = Vec::with_capacity(columns.len() * channels);
            for span in columns {
                resized.extend((0..channels).map(|channel| {
                    let place = |t: usize| row[(span.start + t) * channels + channel].into();
                    sum(span, place)
                }));
            }
            resized
        }
    }
}

/// As [`across`], for a number of channels that is known at compile time.
fn across_of<T: Pixel, const C: usize>(row: &[T], columns: &[Span]) -> Vec<f32> {
    let mut resized = Vec::with_capacity(columns.len() * C);
    for span in columns {
        let places = &row[span.start * C..(span.start + span.weights.len()) * C];
        let at = |t: usize, c: usize| places[t * C + c].into();
        let place: [f32; C] = match span.weights.as_slice() {
            [1.0] => std::array::from_fn(|c| at(0, c)),
            [_, share] => std::array::from_fn(|c| between(at(0, c), at(1, c), *share)),
            _ => std::array::from_fn(|c| sum(span, |t| at(t, c))),
        };
        resized.extend_from_slice(&place);
    }
    resized
}

/// One row of the result, of `length` values, from the rows in `span`.
fn down(ready: &VecDeque<(usize, Vec<f32>)>, span: &Span, length: usize, resized: &mut Vec<f32>) {
    let rows: Vec<&[f32]> = ready.iter().map(|(_, row)| row.as_slice()).collect();
    match (rows.as_slice(), span.weights.as_slice()) {
        ([a, ..], [1.0]) => resized.extend_from_slice(a),
        ([a, b, ..], [_, share]) => {
            resized.extend(a.iter().zip(*b).map(|(&a, &b)| between(a, b, *share)));
        }
        (rows, _) => resized.extend((0..length).map(|i| sum(span, |t| rows[t][i]))),
    }
}

/// Interpolates between two positions, rounded like TensorFlow's `ResizeBilinear`.
fn between(a: f32, b: f32, share: f32) -> f32 {
    a + (b - a) * share
}

fn sum(span: &Span, place: impl Fn(usize) -> f32) -> f32 {
    match span.weights.as_slice() {
        [_, share] => between(place(0), place(1), *share),
        weights => weights.iter().enumerate().map(|(t, weight)| weight * place(t)).sum(),
    }
}
