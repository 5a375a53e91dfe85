//! Flips, rotations, crops and borders of images: views of their pixels.

use super::super::inventory::{Entry, OpKind, one};
use super::{check_target, sizes};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

/// Flips images from left to right: `y[i,j] = x[i, W - 1 - j]`.
///
/// # Errors
/// [`Error::Shape`] if the tensor is neither `[H,W,C]` nor `[N,H,W,C]`.
pub fn flip_left_right(image: &Tensor) -> Result<Tensor> {
    sizes("flip_left_right", image)?;
    image.reverse(-2)
}

/// Flips images from top to bottom: `y[i,j] = x[H - 1 - i, j]`.
///
/// # Errors
/// As [`flip_left_right`].
pub fn flip_up_down(image: &Tensor) -> Result<Tensor> {
    sizes("flip_up_down", image)?;
    image.reverse(-3)
}

/// Swaps rows and columns: `y[i,j] = x[j,i]`.
///
/// # Errors
/// As [`flip_left_right`].
pub fn transpose(image: &Tensor) -> Result<Tensor> {
    sizes("transpose", image)?;
    image.transpose(if image.rank() == 3 { &[1, 0, 2][..] } else { &[0, 2, 1, 3] })
}

/// Rotates images by `k * 90` degrees counter-clockwise.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant([[[1], [2]], [[3], [4]]])?;
/// assert_eq!(tf::image::rot90(&x, 1)?.to_vec::<i32>()?, [2, 4, 1, 3]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`flip_left_right`].
pub fn rot90(image: &Tensor, k: i64) -> Result<Tensor> {
    sizes("rot90", image)?;
    match k.rem_euclid(4) {
        1 => transpose(&image.reverse(-2)?),
        2 => image.reverse([-3, -2]),
        3 => transpose(image)?.reverse(-2),
        _ => Ok(image.clone()),
    }
}

/// Crops images to `target_height` rows starting at `offset_height` and `target_width` columns starting at `offset_width`.
///
/// # Errors
/// [`Error::Shape`] if the tensor is not an image, the target is empty, or the box extends beyond the image.
pub fn crop_to_bounding_box(
    image: &Tensor,
    offset_height: usize,
    offset_width: usize,
    target_height: usize,
    target_width: usize,
) -> Result<Tensor> {
    const OP: &str = "crop_to_bounding_box";
    let [_, h, w, _] = sizes(OP, image)?;
    check_target(OP, target_height, target_width)?;
    let inside =
        |offset: usize, target, size| offset.checked_add(target).is_some_and(|end| end <= size);
    if !inside(offset_height, target_height, h) || !inside(offset_width, target_width, w) {
        return Err(Error::Shape(message!(
            "{OP}: a box of {target_height} x {target_width} at ({offset_height}, {offset_width}) extends beyond the \
             image of {h} x {w}; offset and target together must not be larger than the image."
        )));
    }
    cut(image, [offset_height, offset_width], [target_height, target_width])
}

/// A box of an image, which must be inside it.
fn cut(image: &Tensor, offset: [usize; 2], size: [usize; 2]) -> Result<Tensor> {
    let rank = image.rank();
    let (mut begin, mut sizes) = (vec![0; rank], vec![-1; rank]);
    for (k, axis) in [rank - 3, rank - 2].into_iter().enumerate() {
        begin[axis] = offset[k];
        sizes[axis] = size[k] as i64;
    }
    image.slice(&begin, &sizes)
}

/// Pads images with black to `target_height` x `target_width`, with `offset_height` rows above and `offset_width` columns on
/// the left.
///
/// # Errors
/// [`Error::Shape`] if the tensor is not an image or does not fit.
pub fn pad_to_bounding_box(
    image: &Tensor,
    offset_height: usize,
    offset_width: usize,
    target_height: usize,
    target_width: usize,
) -> Result<Tensor> {
    const OP: &str = "pad_to_bounding_box";
    let [_, h, w, _] = sizes(OP, image)?;
    let after = |target: usize, offset, size| target.checked_sub(offset)?.checked_sub(size);
    let below = after(target_height, offset_height, h);
    let right = after(target_width, offset_width, w);
    let (Some(below), Some(right)) = (below, right) else {
        return Err(Error::Shape(message!(
            "{OP}: an image of {h} x {w} at ({offset_height}, {offset_width}) does not fit into {target_height} x \
             {target_width}; the target must be at least offset and image together."
        )));
    };
    let mut paddings = vec![(0, 0); image.rank()];
    paddings[image.rank() - 3] = (offset_height, below);
    paddings[image.rank() - 2] = (offset_width, right);
    image.pad(&paddings)
}

/// Crops the same amount from opposite edges, so that `central_fraction` of the height and of the width remain.
///
/// # Errors
/// [`Error::Shape`] if the tensor is not an image; [`Error::Index`] if the fraction is not above 0 and at most 1.
pub fn central_crop(image: &Tensor, central_fraction: f64) -> Result<Tensor> {
    const OP: &str = "central_crop";
    if !(central_fraction > 0.0 && central_fraction <= 1.0) {
        return Err(Error::Index(message!(
            "{OP}: central_fraction is {central_fraction}; it must be above 0 and at most 1."
        )));
    }
    let [_, h, w, _] = sizes(OP, image)?;
    let start = |size: usize| ((size as f64 - size as f64 * central_fraction) / 2.0) as usize;
    let offset = [start(h), start(w)];
    cut(image, offset, [h - 2 * offset[0], w - 2 * offset[1]])
}

/// Changes the size of images without scaling: crops or pads opposite edges equally, padding with black.
///
/// # Errors
/// [`Error::Shape`] if the tensor is not an image or the target is empty.
pub fn resize_with_crop_or_pad(
    image: &Tensor,
    target_height: usize,
    target_width: usize,
) -> Result<Tensor> {
    const OP: &str = "resize_with_crop_or_pad";
    let [_, h, w, _] = sizes(OP, image)?;
    check_target(OP, target_height, target_width)?;
    let off = |size: usize, target: usize| size.saturating_sub(target) / 2;
    let cropped = cut(
        image,
        [off(h, target_height), off(w, target_width)],
        [h.min(target_height), w.min(target_width)],
    )?;
    let (above, left) = (off(target_height, h), off(target_width, w));
    pad_to_bounding_box(&cropped, above, left, target_height, target_width)
}

/// The inventory of this file.
pub(in crate::ops) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "image::flip_left_right", &["tf.image.flip_left_right"], |c| {
        one(flip_left_right(c.x()?))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("image::flip_left_right", &[2, 3, 2], flip_left_right)),
    Entry::new(OpKind::Composed, "image::flip_up_down", &["tf.image.flip_up_down"], |c| {
        one(flip_up_down(c.x()?))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("image::flip_up_down", &[2, 3, 2, 1], flip_up_down)),
    Entry::new(OpKind::Composed, "image::transpose", &["tf.image.transpose"], |c| {
        one(transpose(c.x()?))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("image::transpose", &[2, 2, 3, 2], transpose)),
    Entry::new(OpKind::Composed, "image::rot90", &["tf.image.rot90"], |c| {
        one(rot90(c.x()?, c.int("k")?.unwrap_or(1)))
    })
    .takes(&DType::ALL)
    .cases(|cases| {
        for k in [-1, 1, 2] {
            let name = format!("image::rot90 by {k}");
            cases
                .add(name, &[(&[2, 3, 2], super::super::inventory::ANY)], move |x| rot90(&x[0], k));
        }
    }),
    Entry::new(
        OpKind::Composed,
        "image::crop_to_bounding_box",
        &["tf.image.crop_to_bounding_box"],
        |c| {
            let (top, left) = (c.size("offset_height")?, c.size("offset_width")?);
            let (height, width) = (c.size("target_height")?, c.size("target_width")?);
            one(crop_to_bounding_box(c.x()?, top, left, height, width))
        },
    )
    .takes(&DType::ALL)
    .cases(|cases| {
        cases.of_shape("image::crop_to_bounding_box", &[4, 5, 2], |x| {
            crop_to_bounding_box(x, 1, 2, 3, 2)
        });
    }),
    Entry::new(
        OpKind::Composed,
        "image::pad_to_bounding_box",
        &["tf.image.pad_to_bounding_box"],
        |c| {
            let (top, left) = (c.size("offset_height")?, c.size("offset_width")?);
            let (height, width) = (c.size("target_height")?, c.size("target_width")?);
            one(pad_to_bounding_box(c.x()?, top, left, height, width))
        },
    )
    .takes(&DType::ALL)
    .cases(|cases| {
        cases.of_shape("image::pad_to_bounding_box", &[2, 3, 2], |x| {
            pad_to_bounding_box(x, 1, 0, 4, 5)
        });
    }),
    Entry::new(OpKind::Composed, "image::central_crop", &["tf.image.central_crop"], |c| {
        one(central_crop(c.x()?, c.need("central_fraction", c.float("central_fraction")?)?))
    })
    .takes(&DType::ALL)
    .cases(|cases| cases.of_shape("image::central_crop", &[5, 6, 1], |x| central_crop(x, 0.5))),
    Entry::new(
        OpKind::Composed,
        "image::resize_with_crop_or_pad",
        &["tf.image.resize_with_crop_or_pad"],
        |c| {
            let (height, width) = (c.size("target_height")?, c.size("target_width")?);
            one(resize_with_crop_or_pad(c.x()?, height, width))
        },
    )
    .takes(&DType::ALL)
    .cases(|cases| {
        cases.of_shape("image::resize_with_crop_or_pad", &[3, 4, 2], |x| {
            resize_with_crop_or_pad(x, 5, 3)
        });
    }),
];
