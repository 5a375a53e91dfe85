//! Brightness, contrast and colour of images: functions of each pixel's channels, which fuse into one kernel.

use super::super::inventory::{Entry, OpKind, Values, one};
use super::super::iota::iota;
use super::super::{concat, expect_dtype, fill, select};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, message};
use crate::shape::Axes;
use crate::support::options::options;
use crate::tensor::{Operand, Tensor};

options! {
    /// How integers are converted to narrower integers.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct ConvertImageDtypeOptions {
        /// Whether to clip numbers outside the range, as conversions from floats always do; `false` by default.
        saturate: bool = false,
    }
}

/// The dtypes of images.
const PIXELS: &[DType] = &[DType::F32, DType::F16, DType::I32, DType::U32, DType::U8];

/// The largest number of an integer dtype.
pub(super) fn largest(dtype: DType) -> i64 {
    match dtype {
        DType::U8 => 255,
        DType::I32 => i64::from(i32::MAX),
        _ => i64::from(u32::MAX),
    }
}

/// Converts images and scales their range: floats are 0 to 1, integers 0 to their maximum.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let bytes = tf::Tensor::from_slice(&[0u8, 255], [1, 1, 2])?;
/// let image = tf::image::convert_image_dtype(&bytes, tf::DType::F32)?;
/// assert_eq!(image.to_vec::<f32>()?, [0.0, 1.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::DType`] if one of the dtypes is `bool`, or the adapter lacks `f16`.
pub fn convert_image_dtype(image: &Tensor, dtype: DType) -> Result<Tensor> {
    convert_image_dtype_with(image, dtype, ConvertImageDtypeOptions::new())
}

/// As [`convert_image_dtype`], with options.
///
/// # Errors
/// As [`convert_image_dtype`].
pub fn convert_image_dtype_with(
    image: &Tensor,
    dtype: DType,
    options: ConvertImageDtypeOptions,
) -> Result<Tensor> {
    const OP: &str = "convert_image_dtype";
    let from = image.dtype();
    expect_dtype(OP, image.spec(), PIXELS)?;
    if !PIXELS.contains(&dtype) {
        return Err(Error::DType(message!(
            "{OP}: an image cannot be of the dtype {dtype}; use f32, f16, i32, u32 or u8."
        )));
    }
    if from == dtype || (from.is_float() && dtype.is_float()) {
        return image.cast(dtype);
    }
    if dtype.is_float() {
        return image.cast(dtype)?.multiply(1.0 / largest(from) as f64);
    }
    if from.is_float() {
        return image.multiply(largest(dtype) as f64 + 0.5)?.cast(dtype);
    }
    let (wide, narrow) = (largest(from) + 1, largest(dtype) + 1);
    if wide > narrow {
        // Only bytes and negative numbers can be outside the range.
        let scaled = image.floordiv(wide / narrow)?;
        let low = if from == DType::I32 { scaled.maximum(0)? } else { scaled.clone() };
        return if options.saturate { low } else { scaled }.cast(dtype);
    }
    let cast = match options.saturate && from == DType::I32 {
        true => image.maximum(0)?.cast(dtype)?,
        false => image.cast(dtype)?,
    };
    cast.multiply(narrow / wide)
}

/// Calls `f` with a float image, and converts the result back to the dtype of `image`, saturated.
fn as_float(op: &str, image: &Tensor, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Result<Tensor> {
    expect_dtype(op, image.spec(), PIXELS)?;
    if image.dtype().is_float() {
        return f(image);
    }
    let saturate = ConvertImageDtypeOptions::new().saturate(true);
    let changed = f(&convert_image_dtype(image, DType::F32)?)?;
    convert_image_dtype_with(&changed, image.dtype(), saturate)
}

/// `x + delta`; integers represent the range 0 to 1, and saturate.
///
/// # Errors
/// [`Error::DType`] if the tensor is `bool`.
pub fn adjust_brightness(image: &Tensor, delta: impl Into<Operand>) -> Result<Tensor> {
    let delta = delta.into();
    as_float("adjust_brightness", image, |x| x.add(delta))
}

/// `(x - mean) contrast_factor + mean`, where the mean is computed for each channel of each image.
///
/// # Errors
/// [`Error::Shape`] if the tensor has fewer than three axes; [`Error::DType`] if it is `bool`.
pub fn adjust_contrast(images: &Tensor, contrast_factor: impl Into<Operand>) -> Result<Tensor> {
    const OP: &str = "adjust_contrast";
    at_least(OP, images, 3)?;
    let factor = contrast_factor.into();
    as_float(OP, images, |x| {
        let mean = x.reduce_mean(Axes::from([-3, -2]).keepdims(true))?;
        x.subtract(&mean)?.multiply(factor)?.add(mean)
    })
}

/// `gain x^gamma`.
///
/// # Errors
/// [`Error::Index`] if `gamma` is a negative number; [`Error::DType`] if the tensor is `bool`.
pub fn adjust_gamma(
    image: &Tensor,
    gamma: impl Into<Operand>,
    gain: impl Into<Operand>,
) -> Result<Tensor> {
    const OP: &str = "adjust_gamma";
    let (gamma, gain) = (gamma.into(), gain.into());
    if let Some(gamma) = number(&gamma).filter(|gamma| gamma.is_nan() || *gamma < 0.0) {
        return Err(Error::Index(message!("{OP}: gamma is {gamma}; it must be 0 or more.")));
    }
    as_float(OP, image, |x| x.pow(gamma)?.multiply(gain))
}

/// The operand's number, if it is a number.
fn number(operand: &Operand) -> Option<f64> {
    match operand {
        Operand::Scalar(Scalar::Float(v)) => Some(*v),
        Operand::Scalar(Scalar::Int(v)) => Some(*v as f64),
        _ => None,
    }
}

/// Returns an error for a tensor with fewer axes.
fn at_least(op: &str, x: &Tensor, rank: usize) -> Result<()> {
    if x.rank() >= rank {
        return Ok(());
    }
    Err(Error::Shape(message!(
        "{op}: the image is {:?}; it must have at least {rank} axes.",
        x.shape()
    )))
}

/// Returns an error for a tensor whose last axis does not have `count` channels.
fn check_channels(op: &str, x: &Tensor, count: usize) -> Result<()> {
    if x.shape().last() == Some(&count) {
        return Ok(());
    }
    Err(Error::Shape(message!(
        "{op}: the image is {:?}; its last axis must have {count} channel{}.",
        x.shape(),
        if count == 1 { "" } else { "s" }
    )))
}

/// The three channels of an image, each `[.., 1]`.
fn channels(op: &str, x: &Tensor) -> Result<[Tensor; 3]> {
    check_channels(op, x, 3)?;
    let channel = |c: usize| {
        let (mut begin, mut size) = (vec![0; x.rank()], vec![-1; x.rank()]);
        begin[x.rank() - 1] = c;
        size[x.rank() - 1] = 1;
        x.slice(&begin, &size)
    };
    Ok([channel(0)?, channel(1)?, channel(2)?])
}

/// Three numbers, one for each channel; each reader computes them itself.
fn per_channel(like: &Tensor, values: [f64; 3]) -> Result<Tensor> {
    let device = like.device();
    let at = iota(Some(device), 3, 0.into(), 1.into(), DType::I32)?;
    let number = |value: f64| fill(device, "Const", Default::default(), value.into(), like.dtype());
    let later = select(&at.equal(1)?, &number(values[1])?, &number(values[2])?)?;
    select(&at.equal(0)?, &number(values[0])?, &later)
}

/// `y[o] = sum over i of x[i] kernel[i][o]` for each pixel.
fn mix(op: &str, images: &Tensor, kernel: [[f64; 3]; 3]) -> Result<Tensor> {
    expect_dtype(op, images.spec(), super::super::FLOATS)?;
    let [a, b, c] = channels(op, images)?;
    let [first, second, third] = kernel;
    a.multiply(per_channel(&a, first)?)?
        .add(b.multiply(per_channel(&b, second)?)?)?
        .add(c.multiply(per_channel(&c, third)?)?)
}

/// `0.2989 R + 0.587 G + 0.114 B`, from `[..,3]` to `[..,1]`.
///
/// # Errors
/// [`Error::Shape`] if the last axis does not have three channels; [`Error::DType`] if the tensor is `bool`.
pub fn rgb_to_grayscale(images: &Tensor) -> Result<Tensor> {
    const OP: &str = "rgb_to_grayscale";
    let [r, g, b] = channels(OP, &convert_image_dtype(images, DType::F32)?)?;
    let gray = r.multiply(0.2989)?.add(g.multiply(0.587)?)?.add(b.multiply(0.114)?)?;
    convert_image_dtype(&gray, images.dtype())
}

/// Repeats the value in three channels, from `[..,1]` to `[..,3]`.
///
/// # Errors
/// [`Error::Shape`] if the last axis does not have one channel.
pub fn grayscale_to_rgb(images: &Tensor) -> Result<Tensor> {
    check_channels("grayscale_to_rgb", images, 1)?;
    let mut shape = images.shape().to_vec();
    shape[images.rank() - 1] = 3;
    images.broadcast_to(shape)
}

/// The hue, and the largest and the smallest channel that it is computed from.
struct Hue {
    max: Tensor,
    min: Tensor,
    /// 0 to 1; 0 where all channels are equal.
    hue: Tensor,
}

fn hue(op: &str, x: &Tensor) -> Result<Hue> {
    let [r, g, b] = channels(op, x)?;
    let (max, min) = (r.maximum(&g)?.maximum(&b)?, r.minimum(&g)?.minimum(&b)?);
    // The quotient is 0 where all channels are equal, and so are the differences and their gradients.
    let sixth = max.subtract(&min)?.multiply(6.0)?;
    let third = |k: f64, a: &Tensor, b: &Tensor| a.subtract(b)?.divide_no_nan(&sixth)?.add(k / 3.0);
    let later = select(&g.equal(&max)?, &third(1.0, &b, &r)?, &third(2.0, &r, &g)?)?;
    let turn = select(&r.equal(&max)?, &g.subtract(&b)?.divide_no_nan(&sixth)?, &later)?;
    let hue = select(&turn.less(0.0)?, &turn.add(1.0)?, &turn)?;
    Ok(Hue { max, min, hue })
}

/// The fraction of the range from the smallest to the largest channel that each channel has at a hue: `[..,1]` to
/// `[..,3]`.
fn shares(hue: &Tensor) -> Result<Tensor> {
    // Red is |6h - 3| - 1, green 2 - |6h - 2|, blue 2 - |6h - 4|, each clipped to 0 to 1.
    let far = hue.multiply(6.0)?.subtract(per_channel(hue, [3.0, 2.0, 4.0])?)?.abs()?;
    let shares = far
        .multiply(per_channel(hue, [1.0, -1.0, -1.0])?)?
        .add(per_channel(hue, [-1.0, 2.0, 2.0])?)?;
    shares.clip_by_value(0.0, 1.0)
}

/// Hue, saturation and value, each 0 to 1 for channels of 0 to 1. For ties between channels, the gradient treats the first one
/// as the largest and as the smallest.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let hsv = tf::image::rgb_to_hsv(&tf::constant([0.0, 0.5, 0.25])?)?.to_vec::<f32>()?;
/// assert!((hsv[0] - 2.5 / 6.0).abs() < 1e-6);
/// assert_eq!(hsv[1..], [1.0, 0.5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the last axis does not have three channels; [`Error::DType`] if the dtype is not float.
pub fn rgb_to_hsv(images: &Tensor) -> Result<Tensor> {
    const OP: &str = "RGBToHSV";
    expect_dtype(OP, images.spec(), super::super::FLOATS)?;
    let Hue { max, min, hue } = hue(OP, images)?;
    let saturation = saturation(&max, &min)?;
    concat([&hue, &saturation, &max], -1)
}

/// The range of the channels over the largest, and 0 for black.
fn saturation(max: &Tensor, min: &Tensor) -> Result<Tensor> {
    let range = max.subtract(min)?;
    select(&max.greater(0.0)?, &range.divide_no_nan(max)?, &range.zeros_like()?)
}

/// The inverse of [`rgb_to_hsv`].
///
/// # Errors
/// As [`rgb_to_hsv`].
pub fn hsv_to_rgb(images: &Tensor) -> Result<Tensor> {
    const OP: &str = "HSVToRGB";
    expect_dtype(OP, images.spec(), super::super::FLOATS)?;
    let [hue, saturation, value] = channels(OP, images)?;
    from_hsv(&hue, &saturation, &value)
}

fn from_hsv(hue: &Tensor, saturation: &Tensor, value: &Tensor) -> Result<Tensor> {
    let lost = saturation.multiply(shares(hue)?.subtract(1.0)?)?;
    lost.add(1.0)?.multiply(value)
}

/// Rotates the hue by `delta`, a fraction of a full rotation from -1 to 1; the smallest and the largest channel value do not
/// change.
///
/// # Errors
/// [`Error::Index`] if `delta` is a number outside -1 to 1; [`Error::Shape`] if the last axis does not have three channels;
/// [`Error::DType`] if the tensor is `bool`.
pub fn adjust_hue(image: &Tensor, delta: impl Into<Operand>) -> Result<Tensor> {
    const OP: &str = "AdjustHue";
    let delta = delta.into();
    if let Some(delta) = number(&delta).filter(|delta| !(-1.0..=1.0).contains(delta)) {
        return Err(Error::Index(message!("{OP}: delta is {delta}; it must be in -1 to 1.")));
    }
    at_least(OP, image, 3)?;
    as_float(OP, image, |x| {
        let Hue { max, min, hue } = hue(OP, x)?;
        let turned = hue.add(delta)?;
        let turned = turned.subtract(turned.floor()?)?;
        shares(&turned)?.multiply(max.subtract(&min)?)?.add(min)
    })
}

/// Multiplies the saturation by a factor and clips it to 0 to 1; hue and value do not change.
///
/// # Errors
/// [`Error::Shape`] if the last axis does not have three channels; [`Error::DType`] if the tensor is `bool`.
pub fn adjust_saturation(image: &Tensor, saturation_factor: impl Into<Operand>) -> Result<Tensor> {
    const OP: &str = "AdjustSaturation";
    at_least(OP, image, 3)?;
    let factor = saturation_factor.into();
    as_float(OP, image, |x| {
        let Hue { max, min, hue } = hue(OP, x)?;
        let saturation = saturation(&max, &min)?.multiply(factor)?.clip_by_value(0.0, 1.0)?;
        from_hsv(&hue, &saturation, &max)
    })
}

/// Converts to YUV: luma and two color differences, as in PAL.
///
/// # Errors
/// As [`rgb_to_hsv`].
pub fn rgb_to_yuv(images: &Tensor) -> Result<Tensor> {
    mix(
        "rgb_to_yuv",
        images,
        [
            [0.299, -0.14714119, 0.61497538],
            [0.587, -0.28886916, -0.51496512],
            [0.114, 0.43601035, -0.10001026],
        ],
    )
}

/// The inverse of [`rgb_to_yuv`].
///
/// # Errors
/// As [`rgb_to_hsv`].
pub fn yuv_to_rgb(images: &Tensor) -> Result<Tensor> {
    mix(
        "yuv_to_rgb",
        images,
        [[1.0, 1.0, 1.0], [0.0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0.0]],
    )
}

/// Converts to YIQ: luma and two color differences, as in NTSC.
///
/// # Errors
/// As [`rgb_to_hsv`].
pub fn rgb_to_yiq(images: &Tensor) -> Result<Tensor> {
    mix(
        "rgb_to_yiq",
        images,
        [
            [0.299, 0.59590059, 0.2115],
            [0.587, -0.27455667, -0.52273617],
            [0.114, -0.32134392, 0.31119955],
        ],
    )
}

/// The inverse of [`rgb_to_yiq`].
///
/// # Errors
/// As [`rgb_to_hsv`].
pub fn yiq_to_rgb(images: &Tensor) -> Result<Tensor> {
    mix(
        "yiq_to_rgb",
        images,
        [
            [1.0, 1.0, 1.0],
            [0.95598634, -0.27201283, -1.10674021],
            [0.6208248, -0.64720424, 1.70423049],
        ],
    )
}

/// `(x - mean) / max(std, 1 / sqrt(count))` over each image's elements, in `f32`.
///
/// # Errors
/// [`Error::Shape`] if the tensor has fewer than three axes.
pub fn per_image_standardization(image: &Tensor) -> Result<Tensor> {
    const OP: &str = "per_image_standardization";
    at_least(OP, image, 3)?;
    let x = image.cast(DType::F32)?;
    let own = Axes::from([-3, -2, -1]).keepdims(true);
    let count: usize = image.shape()[image.rank() - 3..].iter().product();
    let centred = x.subtract(x.reduce_mean(&own)?)?;
    let deviation = centred.square()?.reduce_mean(own)?.sqrt()?;
    centred.divide(deviation.maximum(1.0 / (count as f64).sqrt())?)
}

/// Colours whose channels differ by much more than the steps of the numeric differences.
const COLORS: Values = Values::Distinct(4.0);

/// The inventory of this file.
pub(in crate::ops) const ENTRIES: &[Entry] = &[
    Entry::new(
        OpKind::Composed,
        "image::convert_image_dtype",
        &["tf.image.convert_image_dtype"],
        |c| {
            let options = ConvertImageDtypeOptions::new().saturate(c.flag("saturate")?);
            one(convert_image_dtype_with(c.x()?, c.dtype("dtype")?, options))
        },
    )
    .forms(&["image::convert_image_dtype_with"])
    .takes(PIXELS)
    .cases(|cases| {
        cases.of_shape("image::convert_image_dtype", &[2, 2, 3], |x| {
            convert_image_dtype(x, DType::F32)
        });
        cases.of_shape("image::convert_image_dtype_with", &[2, 2, 3], |x| {
            convert_image_dtype_with(x, DType::F32, ConvertImageDtypeOptions::new().saturate(true))
        });
    }),
    Entry::new(
        OpKind::Composed,
        "image::adjust_brightness",
        &["tf.image.adjust_brightness"],
        |c| one(adjust_brightness(c.x()?, c.f32("delta")?)),
    )
    .takes(PIXELS)
    .cases(|cases| {
        cases.of_shape("image::adjust_brightness", &[2, 2, 3], |x| adjust_brightness(x, 0.2));
    }),
    Entry::new(OpKind::Composed, "image::adjust_contrast", &["tf.image.adjust_contrast"], |c| {
        one(adjust_contrast(c.x()?, c.f32("contrast_factor")?))
    })
    .takes(PIXELS)
    .cases(|cases| {
        cases.of_shape("image::adjust_contrast", &[2, 3, 2, 2], |x| adjust_contrast(x, 1.7));
    }),
    Entry::new(OpKind::Composed, "image::adjust_gamma", &["tf.image.adjust_gamma"], |c| {
        one(adjust_gamma(c.x()?, c.f32("gamma")?, c.f32("gain")?))
    })
    .takes(PIXELS)
    .cases(|cases| {
        let inputs = &[(&[2, 2, 3][..], super::super::inventory::POSITIVE)];
        cases.add("image::adjust_gamma", inputs, |x| adjust_gamma(&x[0], 1.4, 0.8));
    }),
    Entry::new(OpKind::Composed, "image::rgb_to_grayscale", &["tf.image.rgb_to_grayscale"], |c| {
        one(rgb_to_grayscale(c.x()?))
    })
    .takes(PIXELS)
    .cases(|cases| cases.of_shape("image::rgb_to_grayscale", &[2, 2, 3], rgb_to_grayscale)),
    Entry::new(OpKind::Composed, "image::grayscale_to_rgb", &["tf.image.grayscale_to_rgb"], |c| {
        one(grayscale_to_rgb(c.x()?))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("image::grayscale_to_rgb", &[2, 2, 1], grayscale_to_rgb)),
    Entry::new(OpKind::Composed, "image::rgb_to_hsv", &["tf.image.rgb_to_hsv"], |c| {
        one(rgb_to_hsv(c.x()?))
    })
    .cases(|cases| cases.add("image::rgb_to_hsv", &[(&[3, 2, 3], COLORS)], |x| rgb_to_hsv(&x[0]))),
    Entry::new(OpKind::Composed, "image::hsv_to_rgb", &["tf.image.hsv_to_rgb"], |c| {
        one(hsv_to_rgb(c.x()?))
    })
    .cases(|cases| {
        let inputs = &[(&[3, 2, 3][..], Values::Within(0.21, 0.29))];
        cases.add("image::hsv_to_rgb", inputs, |x| hsv_to_rgb(&x[0]));
    }),
    Entry::new(OpKind::Composed, "image::adjust_hue", &["tf.image.adjust_hue"], |c| {
        one(adjust_hue(c.x()?, c.f32("delta")?))
    })
    .takes(PIXELS)
    .cases(|cases| {
        cases.add("image::adjust_hue", &[(&[2, 2, 3], COLORS)], |x| adjust_hue(&x[0], 0.013));
    }),
    Entry::new(
        OpKind::Composed,
        "image::adjust_saturation",
        &["tf.image.adjust_saturation"],
        |c| one(adjust_saturation(c.x()?, c.f32("saturation_factor")?)),
    )
    .takes(PIXELS)
    .cases(|cases| {
        cases.add("image::adjust_saturation", &[(&[2, 2, 3], COLORS)], |x| {
            adjust_saturation(&x[0], 0.6)
        });
    }),
    Entry::new(OpKind::Composed, "image::rgb_to_yuv", &["tf.image.rgb_to_yuv"], |c| {
        one(rgb_to_yuv(c.x()?))
    })
    .cases(|cases| cases.of_shape("image::rgb_to_yuv", &[2, 2, 3], rgb_to_yuv)),
    Entry::new(OpKind::Composed, "image::yuv_to_rgb", &["tf.image.yuv_to_rgb"], |c| {
        one(yuv_to_rgb(c.x()?))
    })
    .cases(|cases| cases.of_shape("image::yuv_to_rgb", &[2, 2, 3], yuv_to_rgb)),
    Entry::new(OpKind::Composed, "image::rgb_to_yiq", &["tf.image.rgb_to_yiq"], |c| {
        one(rgb_to_yiq(c.x()?))
    })
    .cases(|cases| cases.of_shape("image::rgb_to_yiq", &[2, 2, 3], rgb_to_yiq)),
    Entry::new(OpKind::Composed, "image::yiq_to_rgb", &["tf.image.yiq_to_rgb"], |c| {
        one(yiq_to_rgb(c.x()?))
    })
    .cases(|cases| cases.of_shape("image::yiq_to_rgb", &[2, 2, 3], yiq_to_rgb)),
    Entry::new(
        OpKind::Composed,
        "image::per_image_standardization",
        &["tf.image.per_image_standardization"],
        |c| one(per_image_standardization(c.x()?)),
    )
    .takes(PIXELS)
    .cases(|cases| {
        let f = |x: &Tensor| per_image_standardization(x);
        cases.of_shape("image::per_image_standardization", &[2, 2, 3, 3], f);
    }),
];
