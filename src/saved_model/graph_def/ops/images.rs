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
];

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
