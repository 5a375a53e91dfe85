//! Ops of images.

use super::call::{Call, Entry, any, unsupported};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::image::{self, CropAndResizeOptions, Interpolation, ResizeMethod, ResizeOptions};
use crate::saved_model::graph_def::value::Value;

pub(super) static OPS: &[Entry] = &[
    any("AdjustContrastv2", |call| {
        Ok(Value::Tensor(image::adjust_contrast(&call.tensor(0)?, call.tensor(1)?)?))
    }),
    any("AdjustHue", |call| {
        Ok(Value::Tensor(image::adjust_hue(&call.tensor(0)?, call.tensor(1)?)?))
    }),
    any("AdjustSaturation", |call| {
        Ok(Value::Tensor(image::adjust_saturation(&call.tensor(0)?, call.tensor(1)?)?))
    }),
    any("CropAndResize", |call| {
        let method = match call.attr_text("method", "bilinear") {
            "nearest" => Interpolation::Nearest,
            _ => Interpolation::Bilinear,
        };
        let options = CropAndResizeOptions::new()
            .method(method)
            .extrapolation_value(call.attr_float("extrapolation_value", 0.0));
        let (images, boxes, places) = (call.tensor(0)?, call.tensor(1)?, call.tensor(2)?);
        let size = size(call, 3)?;
        Ok(Value::Tensor(image::crop_and_resize_with(&images, &boxes, &places, size, options)?))
    }),
    any("HSVToRGB", |call| Ok(Value::Tensor(image::hsv_to_rgb(&call.tensor(0)?)?))),
    any("RGBToHSV", |call| Ok(Value::Tensor(image::rgb_to_hsv(&call.tensor(0)?)?))),
    any("ResizeArea", |call| resize(call, ResizeMethod::Area)),
    any("ResizeBicubic", |call| resize(call, ResizeMethod::Bicubic)),
    any("ResizeBilinear", |call| resize(call, ResizeMethod::Bilinear)),
    any("ResizeNearestNeighbor", |call| resize(call, ResizeMethod::NearestNeighbor)),
    any("ScaleAndTranslate", scale_and_translate),
];

/// TensorFlow's resize with a sampling kernel; only with the scale that the sizes have, and without a translation.
fn scale_and_translate(call: &Call<'_>) -> Result<Value> {
    let (x, size) = (call.tensor(0)?, size(call, 1)?);
    let numbers = |at: usize| -> Result<Vec<f64>> {
        let values = call.host(at)?.to_f64();
        Ok(values.map_or(Vec::new(), |values| values.iter().copied().collect()))
    };
    let from = x.shape().get(1..3).unwrap_or(&[]);
    let scale = from.iter().zip(size).map(|(from, to)| to as f64 / *from as f64);
    let wanted: Vec<f64> = scale.collect();
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-5 * b.abs();
    let scales = numbers(2)?;
    let whole = scales.len() == wanted.len() && scales.iter().zip(&wanted).all(near);
    let antialias = call.attr_bool("antialias", true);
    let method = match (call.attr_text("kernel_type", "lanczos3"), antialias) {
        ("triangle", _) => ResizeMethod::Bilinear,
        ("keyscubic", true) => ResizeMethod::Bicubic,
        ("mitchellcubic", _) => ResizeMethod::MitchellCubic,
        ("gaussian", _) => ResizeMethod::Gaussian,
        ("lanczos3", _) => ResizeMethod::Lanczos3,
        ("lanczos5", _) => ResizeMethod::Lanczos5,
        (other, _) => return Err(unsupported(format_args!("the sampling kernel {other}"))),
    };
    if !whole || numbers(3)?.iter().any(|offset| *offset != 0.0) {
        return Err(unsupported(format_args!(
            "a resize from {from:?} to {size:?} by another scale ({scales:?}), or with a translation"
        )));
    }
    let y = image::resize_with(&x, size, ResizeOptions::new().method(method).antialias(antialias))?;
    Ok(Value::Tensor(if y.dtype().is_float() { y } else { y.cast(DType::F32)? }))
}

fn size(call: &Call<'_>, at: usize) -> Result<[usize; 2]> {
    let sizes = call.sizes(at)?;
    sizes[..]
        .try_into()
        .map_err(|_| Error::Shape(message!("two sizes are needed, and {sizes:?} were found.")))
}

/// TensorFlow 2 resizes with half-pixel centers, as this crate does.
fn resize(call: &Call<'_>, method: ResizeMethod) -> Result<Value> {
    let (x, size) = (call.tensor(0)?, size(call, 1)?);
    let same = x.shape().get(1..3) == Some(&size[..]);
    let half_pixels = call.attr_bool("half_pixel_centers", false);
    let old =
        call.attr_bool("align_corners", false) || (!half_pixels && method != ResizeMethod::Area);
    if old && !same && !whole_multiples(call, x.shape(), size, method) {
        return Err(unsupported(format_args!(
            "a resize without half_pixel_centers, as in TensorFlow 1, from {:?} to {size:?}",
            x.shape()
        )));
    }
    let y = image::resize_with(&x, size, ResizeOptions::new().method(method))?;
    // All methods but this one give floats.
    let keeps = method == ResizeMethod::NearestNeighbor;
    Ok(Value::Tensor(if keeps || y.dtype().is_float() { y } else { y.cast(DType::F32)? }))
}

/// Whether each pixel becomes a block of equal ones, for which all ways to count pixels agree.
fn whole_multiples(
    call: &Call<'_>,
    shape: &[usize],
    size: [usize; 2],
    method: ResizeMethod,
) -> bool {
    let from = shape.get(1..3).unwrap_or(&[]);
    method == ResizeMethod::NearestNeighbor
        && !call.attr_bool("align_corners", false)
        && from.len() == 2
        && from.iter().zip(size).all(|(from, to)| *from > 0 && to % from == 0)
}
