//! Cuts images into patches, which may overlap, have gaps or reach beyond the edges.

use super::super::conv2d::{FARTHEST, Padding, windows};
use super::super::gather::GatherOptions;
use super::super::inventory::{Entry, OpKind, one};
use super::super::select;
use super::sizes;
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// The positions of patches, each as (rows, columns).
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub struct ExtractPatchesOptions {
        /// The stride between patches; 1 by default.
        strides: [usize; 2] = [1, 1],
        /// The distance between the elements within a patch; 1 by default.
        rates: [usize; 2] = [1, 1],
        /// The padding of the image, with zeros; `Valid` by default.
        padding: Padding as impl Into<Padding> = Padding::Valid,
    }
}

/// Extracts patches of `sizes` (rows, columns) from images `[N,H,W,C]`, and flattens each patch row by row into the channels of
/// one position: `[N,OH,OW,KH*KW*C]`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::range(0, 9, 1)?.reshape([1, 3, 3, 1])?;
/// let y = tf::image::extract_patches(&x, [2, 2], tf::image::ExtractPatchesOptions::new())?;
/// assert_eq!(y.shape(), [1, 2, 2, 4]);
/// assert_eq!(y.to_vec::<i32>()?[..8], [0, 1, 3, 4, 1, 2, 4, 5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the rank is neither 3 nor 4, or a size, stride or rate is 0.
pub fn extract_patches(
    images: &Tensor,
    patch: [usize; 2],
    options: ExtractPatchesOptions,
) -> Result<Tensor> {
    const OP: &str = "ExtractImagePatches";
    let [n, h, w, c] = sizes(OP, images)?;
    let ([kh, kw], ExtractPatchesOptions { strides, rates, padding }) = (patch, options);
    let all = [kh, kw, strides[0], strides[1], rates[0], rates[1], h + 1, w + 1];
    let reach = [kh.saturating_mul(rates[0]), kw.saturating_mul(rates[1]), h.saturating_mul(w)];
    if all.iter().chain(&reach[..2]).any(|n| !(1..=FARTHEST).contains(n)) || reach[2] > FARTHEST {
        return Err(Error::Shape(message!(
            "{OP}: patches of {patch:?}, strides {strides:?} and rates {rates:?} for images of {h} x {w} pixels; all \
             must be at least 1, and none may span more than {FARTHEST} positions."
        )));
    }
    padding.check(OP, 2, c)?;
    // The positions of all window elements along an axis: -1 beyond the edges.
    let along = |size: usize, k: usize, step: usize, rate: usize, padding: Padding| {
        let (out, low) = windows(size, k, step, rate, padding);
        if out.saturating_mul(k) > MOST {
            return Err(Error::Shape(message!(
                "{OP}: {out} patches of {k} positions along an axis are more than {MOST} positions, and the host \
                 lists each of them."
            )));
        }
        let place = |i: usize, u: usize| (i * step + u * rate).checked_sub(low);
        let inside = |at: Option<usize>| at.filter(|at| *at < size).map_or(-1, |at| at as i32);
        let places: Vec<i32> =
            (0..out).flat_map(|i| (0..k).map(move |u| inside(place(i, u)))).collect();
        Ok((places, out))
    };
    let (rows, oh) = along(h, kh, strides[0], rates[0], padding)?;
    let (columns, ow) = along(w, kw, strides[1], rates[1], padding.of_axes_from(1))?;
    let (rows, columns) = images.device().scope(|| -> Result<(Tensor, Tensor)> {
        Ok((
            Tensor::from_slice(&rows, [oh, 1, kh, 1])?,
            Tensor::from_slice(&columns, [1, ow, 1, kw])?,
        ))
    })?;
    let outside = rows.minimum(&columns)?.less(0)?;
    let flat = rows.multiply(w)?.add(&columns)?;
    // The index -1 returns zeros.
    let places = select(&outside, &flat.zeros_like()?.subtract(1)?, &flat)?.reshape([-1])?;
    let area = images.reshape_to([n, h * w, c].into())?;
    let taken = area.gather_with(&places, 1, GatherOptions::new())?;
    let mut shape = vec![n, oh, ow, kh * kw * c];
    shape.drain(..4 - images.rank());
    taken.reshape_to(shape.into())
}

/// The most positions along an axis that the host lists.
const MOST: usize = 1 << 24;

/// The inventory of this file.
pub(in super::super) const ENTRIES: &[Entry] =
    &[Entry::new(OpKind::Composed, "image::extract_patches", &["tf.image.extract_patches"], |c| {
        let options = ExtractPatchesOptions::new()
            .strides(c.two("strides")?.unwrap_or([1, 1]))
            .rates(c.two("rates")?.unwrap_or([1, 1]))
            .padding(Padding::from_args(c)?);
        one(extract_patches(c.x()?, c.need("sizes", c.two("sizes")?)?, options))
    })
    .takes(&[DType::F32, DType::F16, DType::I32, DType::U32, DType::Bool])
    .cases(|cases| {
        let base = ExtractPatchesOptions::new();
        cases.of_shape("image::extract_patches", &[2, 4, 5, 2], |x| {
            extract_patches(x, [3, 2], ExtractPatchesOptions::new())
        });
        let name = "image::extract_patches with gaps and padding";
        let options = base.strides([2, 1]).rates([2, 3]).padding(Padding::Same);
        cases.add(name, &[(&[4, 5, 1], super::super::inventory::ANY)], move |x| {
            extract_patches(&x[0], [2, 2], options)
        });
    })];
