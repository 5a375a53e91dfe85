//! Reads images at computed positions: crops of any size and position, and projective transforms. Positions are
//! computed by ops, so boxes and transforms may be on the device and have gradients.

use super::super::inventory::{ANY, Entry, OpKind, Stop, Values, one};
use super::super::iota::iota;
use super::super::{expect_dtype, fill, select};
use super::pixels::{Interpolation, PIXELS, Read, Source};
use super::{check_target, sizes};
use crate::dtype::{DType, Scalar};
use crate::error::{Error, Result, message};
use crate::support::options::options;
use crate::tensor::Tensor;

/// How to fill pixels outside an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum FillMode {
    /// A constant value.
    #[default]
    Constant,
    /// Reflects the image, repeating the edge pixels: `dcba|abcd|dcba`.
    Reflect,
    /// Repeats the image: `abcd|abcd|abcd`.
    Wrap,
    /// Repeats the edge pixels: `aaaa|abcd|dddd`.
    Nearest,
}

options! {
    /// Options of [`crop_and_resize_with`].
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct CropAndResizeOptions {
        /// The interpolation between pixels; bilinear by default.
        method: Interpolation = Interpolation::Bilinear,
        /// The value outside the image; 0 by default.
        extrapolation_value: f32 = 0.0,
    }
}

options! {
    /// Options of [`affine_transform_with`].
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct AffineTransformOptions {
        /// The interpolation between pixels; bilinear by default.
        interpolation: Interpolation = Interpolation::Bilinear,
        /// How to fill pixels outside the image; a constant value by default.
        fill_mode: FillMode = FillMode::Constant,
        /// The constant value; 0 by default.
        fill_value: f32 = 0.0,
        /// The height and width of the result; those of the image by default.
        output_shape: Option<[usize; 2]> as impl Into<Option<[usize; 2]>> = None,
    }
}

/// `start + k` for k below `n`, as `f32`.
fn places(like: &Tensor, n: usize) -> Result<Tensor> {
    iota(Some(like.device()), n, 0.into(), 1.into(), DType::F32)
}

/// Crops boxes from images and resizes each to `crop_size`. `boxes` is `[M,4]`: top, left, bottom, right, where 0 is the first
/// and 1 the last row or column. A box may extend beyond its image, and may be flipped. `box_indices` `[M]` (`i32`) specifies
/// the image of each box in `[N,H,W,C]`; a box with an invalid index contains `extrapolation_value` everywhere. The result is
/// `f32`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::Tensor::from_slice(&[0.0f32, 1.0, 2.0, 3.0], [1, 2, 2, 1])?;
/// let boxes = tf::constant([[0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]])?;
/// let y = tf::image::crop_and_resize(&x, &boxes, &tf::constant([0, 0])?, [1, 3])?;
/// // The middle of the height, from left to right and from right to left.
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 1.5, 2.0, 2.0, 1.5, 1.0]);
/// # Ok(())
/// # }
/// ```
///
/// Boxes have a gradient, too: that of the interpolation, which is 0 for nearest-pixel interpolation.
///
/// # Errors
/// [`Error::Shape`] if the shapes differ from these, there are no pixels, or the crops are empty; [`Error::DType`] if `boxes`
/// is not `f32` or `box_indices` not `i32`.
pub fn crop_and_resize(
    image: &Tensor,
    boxes: &Tensor,
    box_indices: &Tensor,
    crop_size: [usize; 2],
) -> Result<Tensor> {
    crop_and_resize_with(image, boxes, box_indices, crop_size, CropAndResizeOptions::new())
}

/// As [`crop_and_resize`], with options.
///
/// # Errors
/// As [`crop_and_resize`].
pub fn crop_and_resize_with(
    image: &Tensor,
    boxes: &Tensor,
    box_indices: &Tensor,
    crop_size: [usize; 2],
    options: CropAndResizeOptions,
) -> Result<Tensor> {
    const OP: &str = "CropAndResize";
    let [height, width] = crop_size;
    check_target(OP, height, width)?;
    expect_dtype(&format!("{OP} (the boxes)"), boxes.spec(), &[DType::F32])?;
    expect_dtype(&format!("{OP} (the box indices)"), box_indices.spec(), &[DType::I32])?;
    let count = match (boxes.shape(), box_indices.shape()) {
        (&[count, 4], &[indices]) if count == indices && image.rank() == 4 => count,
        _ => {
            return Err(Error::Shape(message!(
                "{OP}: the images are {:?}, the boxes {:?} and their indices {:?}; they must be [N,H,W,C], [M,4] and [M].",
                image.shape(),
                boxes.shape(),
                box_indices.shape()
            )));
        }
    };
    let source = Source::new(OP, image, DType::F32)?;
    let side = |k: usize| boxes.slice(&[0, k], &[-1, 1]);
    // The positions along one axis, [M,size].
    let along = |from: usize, size: usize, len: usize| -> Result<[Tensor; 2]> {
        let (low, high) = (side(from)?, side(from + 2)?);
        let last = (len - 1) as f64;
        let at = if size > 1 {
            let step = high.subtract(&low)?.multiply(last / (size - 1) as f64)?;
            low.multiply(last)?.add(step.multiply(places(boxes, size)?)?)?
        } else {
            low.add(high)?.multiply(0.5 * last)?
        };
        let inside = at.greater_equal(0.0)?.logical_and(at.less_equal(last)?)?;
        Ok([at, inside.cast(DType::F32)?])
    };
    let ([y, rows], [x, columns]) = (along(0, height, source.h)?, along(1, width, source.w)?);
    let number = |v: f32| fill(boxes.device(), OP, Default::default(), v.into(), DType::F32);
    let outside = number(options.extrapolation_value)?;
    let read = Read { how: options.method, edged: true, outside: 0 };
    let values = source.at(box_indices, [&y.expand_dims(2)?, &x.expand_dims(1)?], read)?;
    let index = box_indices.reshape_to([count, 1, 1].into())?;
    let known = rows.expand_dims(2)?.multiply(columns.expand_dims(1)?)?.equal(1.0)?;
    let own = index.greater_equal(0)?.logical_and(index.less(image.shape()[0])?)?;
    select(&known.logical_and(own)?.expand_dims(-1)?, &values, &outside)
}

/// Applies projective transforms to images: the pixel at column x and row y of the result is the image's pixel at
/// `((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k)`, `k = c0 x + c1 y + 1`. `transform` is `[8]`, or `[N,8]` with one for
/// each image: `a0, a1, a2, b0, b1, b2, c0, c1`. The dtype does not change.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::Tensor::from_slice(&[1.0f32, 2.0, 3.0], [1, 3, 1])?;
/// let left = tf::constant([1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0])?;
/// assert_eq!(tf::image::affine_transform(&x, &left)?.to_vec::<f32>()?, [2.0, 3.0, 0.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the tensor is not an image, or the transforms are not `[8]` or `[N,8]`; [`Error::DType`] if the
/// transforms are not `f32`, or the images are `bool`.
pub fn affine_transform(images: &Tensor, transform: &Tensor) -> Result<Tensor> {
    affine_transform_with(images, transform, AffineTransformOptions::new())
}

/// As [`affine_transform`], with options.
///
/// # Errors
/// As [`affine_transform`], and [`Error::Shape`] if `output_shape` is empty.
pub fn affine_transform_with(
    images: &Tensor,
    transform: &Tensor,
    options: AffineTransformOptions,
) -> Result<Tensor> {
    const OP: &str = "ImageProjectiveTransform";
    let dtype = images.dtype();
    // Bytes are storage only, and interpolation is in f32.
    let exact = options.interpolation == Interpolation::Nearest && dtype != DType::U8;
    let source = Source::new(OP, images, if exact { dtype } else { DType::F32 })?;
    let [n, h, w, c] = sizes(OP, images)?;
    let [height, width] = options.output_shape.unwrap_or([h, w]);
    check_target(OP, height, width)?;
    expect_dtype(&format!("{OP} (the transforms)"), transform.spec(), &[DType::F32])?;
    let each = match *transform.shape() {
        [8] => transform.reshape_to([1, 8].into())?,
        [count, 8] if count == n || count == 1 => transform.clone(),
        _ => {
            return Err(Error::Shape(message!(
                "{OP}: the transforms are {:?} for {n} images; they must be [8], or [{n},8].",
                transform.shape()
            )));
        }
    };
    let number = |k: usize| each.slice(&[0, k], &[-1, 1])?.expand_dims(-1);
    let (x, y) = (places(transform, width)?, places(transform, height)?.expand_dims(-1)?);
    let sum = |k: usize| number(k)?.multiply(&x)?.add(number(k + 1)?.multiply(&y)?);
    let below = sum(6)?.add(1.0)?;
    let zero = below.equal(0.0)?;
    let safe = select(&zero, &below.ones_like()?, &below)?;
    let nowhere = fill(transform.device(), OP, Default::default(), (-2.0).into(), DType::F32)?;
    let at = |k: usize, size: usize| -> Result<Tensor> {
        let at = sum(k)?.add(number(k + 2)?)?.divide(&safe)?;
        mapped(&at, size, options.fill_mode)
    };
    let (column, row) = (at(0, w)?, at(3, h)?);
    // A position at infinity is outside the image in every mode.
    let (column, row) = (select(&zero, &nowhere, &column)?, select(&zero, &nowhere, &row)?);
    let index = iota(Some(images.device()), n, 0.into(), 1.into(), DType::I32)?;
    let value = match source.images.dtype().is_float() {
        true => Scalar::from(options.fill_value),
        false => Scalar::Int(options.fill_value as i64),
    };
    let outside = value.bits(OP, source.images.dtype())?;
    let read = Read { how: options.interpolation, edged: false, outside };
    let every = row.broadcast_to([n, height, width])?;
    let values = source.at(&index, [&every, &column], read)?;
    let mut shape = super::with_size(images, height, width);
    let rank = shape.len();
    shape[rank - 1] = c;
    values.cast(dtype)?.reshape_to(shape.into())
}

/// The position inside an axis to which a position outside is mapped, by the rules of TensorFlow's kernel.
fn mapped(at: &Tensor, size: usize, mode: FillMode) -> Result<Tensor> {
    let (len, last) = (size as f64, size as f64 - 1.0);
    let inside = |x: Tensor| x.maximum(0.0)?.minimum(last);
    let (below, above) = (at.less(0.0)?, at.greater(last)?);
    let whole = |x: Tensor, by: f64| x.divide(by)?.floor();
    match mode {
        FillMode::Constant => Ok(at.clone()),
        FillMode::Nearest => inside(at.clone()),
        _ if size <= 1 => at.zeros_like(),
        FillMode::Reflect => {
            let turn = 2.0 * len;
            let low = whole(at.negative()?, turn)?.multiply(turn)?.add(at)?;
            let low = select(&low.less(-len)?, &low.add(turn)?, &low.negative()?.subtract(1.0)?)?;
            let high = at.subtract(whole(at.clone(), turn)?.multiply(turn)?)?;
            let mirrored = high.negative()?.add(turn - 1.0)?;
            let high = select(&high.greater_equal(len)?, &mirrored, &high)?;
            inside(select(&below, &low, &select(&above, &high, at)?)?)
        }
        FillMode::Wrap => {
            let low = at.add(whole(at.negative()?, last)?.add(1.0)?.multiply(len)?)?;
            let high = at.subtract(whole(at.clone(), last)?.multiply(len)?)?;
            inside(select(&below, &low, &select(&above, &high, at)?)?)
        }
    }
}

/// The interpolation by TensorFlow's name.
fn interpolation(name: Option<&str>) -> Option<Interpolation> {
    match name.map(str::to_lowercase).as_deref() {
        None | Some("bilinear") => Some(Interpolation::Bilinear),
        Some("nearest") => Some(Interpolation::Nearest),
        Some(_) => None,
    }
}

/// The inventory of this file.
pub(in crate::ops) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "image::crop_and_resize", &["tf.image.crop_and_resize"], |c| {
        let method = interpolation(c.text("method")?.as_deref());
        let options = CropAndResizeOptions::new()
            .method(method.ok_or(Stop::Lacks("method".into()))?)
            .extrapolation_value(c.float("extrapolation_value")?.unwrap_or(0.0) as f32);
        let size = c.need("crop_size", c.two("crop_size")?)?;
        one(crop_and_resize_with(
            c.arg("image")?,
            c.arg("boxes")?,
            c.arg("box_indices")?,
            size,
            options,
        ))
    })
    .forms(&["image::crop_and_resize_with"])
    .takes(PIXELS)
    .cases(|cases| {
        let boxes = |x: &Tensor| -> Result<(Tensor, Tensor)> {
            let boxes = Tensor::from_slice(&[0.1f32, 0.2, 0.8, 0.7, 0.9, -0.3, 0.15, 1.2], [2, 4]);
            x.device().scope(|| Ok((boxes?, Tensor::from_slice(&[1i32, 0], [2])?)))
        };
        cases.add("image::crop_and_resize", &[(&[2, 4, 5, 2], ANY)], move |x| {
            let (boxes, indices) = boxes(&x[0])?;
            crop_and_resize(&x[0], &boxes, &indices, [3, 4])
        });
        cases.add("image::crop_and_resize_with", &[(&[2, 4, 5, 2], ANY)], move |x| {
            let (boxes, indices) = boxes(&x[0])?;
            let options =
                CropAndResizeOptions::new().method(Interpolation::Nearest).extrapolation_value(0.5);
            crop_and_resize_with(&x[0], &boxes, &indices, [2, 1], options)
        });
        // All positions are well between pixels.
        let near = Values::Within(0.2, 0.25);
        cases.add("image::crop_and_resize by its boxes", &[(&[3, 4], near)], |x| {
            let image = x[0]
                .device()
                .scope(|| Tensor::from_slice(&[1.0f32, 5.0, 2.0, 4.0], [1, 2, 2, 1]))?;
            let indices = x[0].device().scope(|| Tensor::from_slice(&[0i32; 3], [3]))?;
            crop_and_resize(&image, &x[0], &indices, [2, 2])
        });
    }),
    Entry::new(
        OpKind::Kernel,
        "image::affine_transform",
        &["keras.ops.image.affine_transform", "tf.raw_ops.ImageProjectiveTransformV3"],
        |c| {
            let how = interpolation(c.text("interpolation")?.as_deref());
            let fill = match c.text("fill_mode")?.map(|mode| mode.to_lowercase()).as_deref() {
                None | Some("constant") => FillMode::Constant,
                Some("reflect") => FillMode::Reflect,
                Some("wrap") => FillMode::Wrap,
                Some("nearest") => FillMode::Nearest,
                Some(_) => return Err(Stop::Lacks("fill_mode".into())),
            };
            let options = AffineTransformOptions::new()
                .interpolation(how.ok_or(Stop::Lacks("interpolation".into()))?)
                .fill_mode(fill)
                .fill_value(c.float("fill_value")?.unwrap_or(0.0) as f32)
                .output_shape(c.two("output_shape")?);
            one(affine_transform_with(c.arg("images")?, c.arg("transforms")?, options))
        },
    )
    .forms(&["image::affine_transform_with"])
    .takes(PIXELS)
    .cases(|cases| {
        let turn = |x: &Tensor| {
            let numbers = [0.9f32, -0.3, 0.4, 0.25, 1.1, -0.7, 0.01, -0.02];
            x.device().scope(|| Tensor::from_slice(&numbers, [8]))
        };
        cases.add("image::affine_transform", &[(&[2, 4, 5, 2], ANY)], move |x| {
            affine_transform(&x[0], &turn(&x[0])?)
        });
        for mode in [FillMode::Reflect, FillMode::Wrap, FillMode::Nearest] {
            let options = AffineTransformOptions::new().fill_mode(mode).output_shape([3, 6]);
            let name = format!("image::affine_transform_with {mode:?}");
            cases.add(name, &[(&[4, 5, 1], ANY)], move |x| {
                affine_transform_with(&x[0], &turn(&x[0])?, options)
            });
        }
    })
    .kernels(&[|make, dtype| {
        let mut read = Vec::new();
        for c in [1, 2, 3, 4, 5, 8] {
            for how in [Interpolation::Bilinear, Interpolation::Nearest] {
                let options = AffineTransformOptions::new().interpolation(how);
                let (images, turn) = (make(&[2, 4, 5, c], dtype), make(&[8], DType::F32));
                read.push(affine_transform_with(&images, &turn, options)?);
                let options = CropAndResizeOptions::new().method(how);
                let (boxes, indices) = (make(&[3, 4], DType::F32), make(&[3], DType::I32));
                read.push(crop_and_resize_with(&images, &boxes, &indices, [2, 4], options)?);
            }
        }
        Ok(read)
    }]),
];
