//! Differences between images, and variation within them.

use super::super::inventory::{ANY, Answer, Args, Entry, OpKind, POSITIVE, one};
use super::super::{Conv2dOptions, PadMode, Padding, Pool2dOptions, stack};
use super::color::{convert_image_dtype, largest};
use super::sizes;
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::shape::{Shape, broadcast};
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// The window and the constants of the structural similarity index.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct SsimOptions {
        /// The height and width of the Gaussian window; 11 by default.
        filter_size: usize = 11,
        /// The standard deviation of the window; 1.5 by default.
        filter_sigma: f64 = 1.5,
        /// The constant that stabilizes quotients of means; 0.01 by default.
        k1: f64 = 0.01,
        /// The constant that stabilizes quotients of variances; 0.03 by default.
        k2: f64 = 0.03,
        /// Whether to return the value of each window, `[..,h,w]`, instead of the mean of each image; `false` by default.
        /// [`ssim_multiscale`] ignores it.
        return_index_map: bool = false,
    }
}

/// The sum of the absolute differences of neighboring pixels, `|x[i+1,j] - x[i,j]| + |x[i,j+1] - x[i,j]|`: one number for each
/// image.
///
/// # Errors
/// [`Error::Shape`] if the tensor is neither `[H,W,C]` nor `[N,H,W,C]`; [`Error::DType`] if it is not numeric.
pub fn total_variation(images: &Tensor) -> Result<Tensor> {
    const OP: &str = "total_variation";
    let [_, h, w, _] = sizes(OP, images)?;
    let rank = images.rank();
    let sum = |axis: usize, size: usize| {
        steps(images, axis, size)?.abs()?.reduce_sum([rank - 3, rank - 2, rank - 1])
    };
    sum(rank - 3, h)?.add(sum(rank - 2, w)?)
}

/// The difference between each element along an axis and the previous one, from the second on.
fn steps(x: &Tensor, axis: usize, size: usize) -> Result<Tensor> {
    let part = |from: usize| {
        let (mut begin, mut sizes) = (vec![0; x.rank()], vec![-1; x.rank()]);
        begin[axis] = from.min(size);
        sizes[axis] = size.saturating_sub(1) as i64;
        x.slice(&begin, &sizes)
    };
    part(1)?.subtract(part(0)?)
}

/// The differences of each pixel to its lower and its right neighbor, `(dy, dx)`; 0 in the last row and in the last column,
/// respectively.
///
/// # Errors
/// As [`total_variation`].
pub fn image_gradients(image: &Tensor) -> Result<(Tensor, Tensor)> {
    const OP: &str = "image_gradients";
    let [_, h, w, _] = sizes(OP, image)?;
    let rank = image.rank();
    let along = |axis: usize, size: usize| {
        let mut edges = vec![(0, 0); rank];
        edges[axis].1 = size.min(1);
        steps(image, axis, size)?.pad(&edges)
    };
    Ok((along(rank - 3, h)?, along(rank - 2, w)?))
}

/// Sobel derivatives in the y and x directions, `[..,H,W,C]` to `[..,H,W,C,2]`; the edges are reflected.
///
/// # Errors
/// [`Error::Shape`] if the tensor is not an image or has fewer than two rows or columns; [`Error::DType`] if it is not float.
pub fn sobel_edges(image: &Tensor) -> Result<Tensor> {
    let [n, h, w, c] = sizes("sobel_edges", image)?;
    let one = [
        [-1f32, -1.0],
        [-2.0, 0.0],
        [-1.0, 1.0],
        [0.0, -2.0],
        [0.0, 0.0],
        [0.0, 2.0],
        [1.0, -1.0],
        [2.0, 0.0],
        [1.0, 1.0],
    ];
    let filters: Vec<f32> = one.iter().flat_map(|pair| pair.repeat(c)).collect();
    let filters = image.device().scope(|| Tensor::from_slice(&filters, [3, 3, c, 2]))?;
    let padded = image
        .reshape_to([n, h, w, c].into())?
        .pad_with(&[(0, 0), (1, 1), (1, 1), (0, 0)], PadMode::Reflect)?;
    let plain = Conv2dOptions::new().padding(Padding::Valid);
    let mut shape = image.shape().to_vec();
    shape.push(2);
    padded.depthwise_conv2d(filters.cast(image.dtype())?, plain)?.reshape_to(shape.into())
}

/// Both images as floats, and the largest value on their scale.
fn floats(op: &str, a: &Tensor, b: &Tensor, max_val: f64) -> Result<(Tensor, Tensor, f64)> {
    let rank = a.rank().min(b.rank());
    let agree = rank >= 3 && a.shape()[a.rank() - 3..] == b.shape()[b.rank() - 3..];
    if !agree {
        return Err(Error::Shape(message!(
            "{op}: the images are {:?} and {:?}; both must be images [H,W,C] of one size, or batches of them.",
            a.shape(),
            b.shape()
        )));
    }
    let lead = |x: &Tensor| Shape::new(&x.shape()[..x.rank() - 3]);
    broadcast(op, &lead(a), &lead(b))?;
    let scale = if a.dtype().is_float() { 1.0 } else { largest(a.dtype()) as f64 };
    Ok((convert_image_dtype(a, DType::F32)?, convert_image_dtype(b, DType::F32)?, max_val / scale))
}

/// The peak signal-to-noise ratio in decibels, `20 log10(max_val) - 10 log10(mean((a - b)^2))`: one number for each pair of
/// images. `max_val` is the difference between the maximum and the minimum value that a pixel can have.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Tensor, image};
/// let (a, b) = (Tensor::full([4, 4, 3], 0.5f32)?, Tensor::full([4, 4, 3], 0.6f32)?);
/// assert!((image::psnr(&a, &b, 1.0)?.item::<f32>()? - 20.0).abs() < 1e-3);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the shapes of the images are incompatible; [`Error::DType`] if one is `bool`.
pub fn psnr(a: &Tensor, b: &Tensor, max_val: f64) -> Result<Tensor> {
    let (a, b, max) = floats("PSNR", a, b, max_val)?;
    let error = a.squared_difference(b)?.reduce_mean([-3, -2, -1])?;
    error.log()?.multiply(-10.0 / std::f64::consts::LN_10)?.add(20.0 * max.log10())
}

/// The structural similarity (SSIM) of images, at most 1 (Wang et al. 2004): one number for each pair of images.
///
/// # Errors
/// [`Error::Shape`] if the shapes of the images are incompatible or smaller than the window; [`Error::DType`] if one is `bool`.
pub fn ssim(img1: &Tensor, img2: &Tensor, max_val: f64) -> Result<Tensor> {
    ssim_with(img1, img2, max_val, SsimOptions::new())
}

/// As [`ssim`], with options.
///
/// # Errors
/// As [`ssim`].
pub fn ssim_with(
    img1: &Tensor,
    img2: &Tensor,
    max_val: f64,
    options: SsimOptions,
) -> Result<Tensor> {
    const OP: &str = "SSIM";
    let (a, b, max) = floats(OP, img1, img2, max_val)?;
    let (luminance, structure) = similarity(OP, &a, &b, max, options)?;
    let index = luminance.multiply(structure)?;
    let index = if options.return_index_map { index } else { index.reduce_mean([-3, -2])? };
    index.reduce_mean(-1)
}

/// The luminance and the contrast with structure of each window, `[..,h,w,C]`.
fn similarity(
    op: &str,
    a: &Tensor,
    b: &Tensor,
    max: f64,
    options: SsimOptions,
) -> Result<(Tensor, Tensor)> {
    let (c1, c2) = ((options.k1 * max).powi(2), (options.k2 * max).powi(2));
    let [_, h, w, c] = sizes(op, &a.reshape_to(flat(a))?)?;
    let size = options.filter_size;
    if size == 0 || size > h.min(w) {
        return Err(Error::Shape(message!(
            "{op}: the window has {size} rows and columns, and the images {h} x {w}; it must have at least one, and fit."
        )));
    }
    // The window is the product of a column and a row.
    let weight = |k: usize| {
        let far = k as f64 - (size - 1) as f64 / 2.0;
        (-0.5 * far * far / (options.filter_sigma * options.filter_sigma)).exp()
    };
    let weights: Vec<f64> = (0..size).map(weight).collect();
    let sum: f64 = weights.iter().sum();
    let filter: Vec<f32> = weights.iter().flat_map(|v| vec![(v / sum) as f32; c]).collect();
    let column = a.device().scope(|| Tensor::from_slice(&filter, [size, 1, c, 1]))?;
    let row = column.reshape_to([1, size, c, 1].into())?;
    let plain = Conv2dOptions::new().padding(Padding::Valid);
    let mean = |x: &Tensor| {
        let mut shape = x.shape().to_vec();
        let rank = shape.len();
        shape[rank - 3] = h + 1 - size;
        shape[rank - 2] = w + 1 - size;
        let x = x.reshape_to(flat(x))?;
        x.depthwise_conv2d(&column, plain)?.depthwise_conv2d(&row, plain)?.reshape_to(shape.into())
    };
    let (mean_a, mean_b) = (mean(a)?, mean(b)?);
    let product = mean_a.multiply(&mean_b)?.multiply(2.0)?;
    let squares = mean_a.square()?.add(mean_b.square()?)?;
    let luminance = product.add(c1)?.divide(squares.add(c1)?)?;
    let both = mean(&a.multiply(b)?)?.multiply(2.0)?;
    let own = mean(&a.square()?.add(b.square()?)?)?;
    let structure = both.subtract(product)?.add(c2)?.divide(own.subtract(squares)?.add(c2)?)?;
    Ok((luminance, structure))
}

/// The shape with all axes of the batch as one.
fn flat(x: &Tensor) -> Shape {
    let (lead, image) = x.shape().split_at(x.rank() - 3);
    [lead.iter().product(), image[0], image[1], image[2]].into()
}

/// The weights of the scales, the finest first (Wang et al. 2003).
const SCALES: [f64; 5] = [0.0448, 0.2856, 0.3001, 0.2363, 0.1333];

/// The structural similarity at five scales, each half as large as the previous one (Wang et al. 2003): the product of all
/// contrasts and the last luminance, each to the power of its scale's weight; one number for each pair of images.
///
/// # Errors
/// Same as [`ssim`], at every scale: with the default window, images need at least 176 rows and columns.
pub fn ssim_multiscale(img1: &Tensor, img2: &Tensor, max_val: f64) -> Result<Tensor> {
    ssim_multiscale_with(img1, img2, max_val, &SCALES, SsimOptions::new())
}

/// Like [`ssim_multiscale`], with custom weights of the scales (`power_factors`) and the options of [`ssim_with`].
///
/// # Errors
/// Same as [`ssim_multiscale`], and [`Error::Shape`] if there are no weights.
pub fn ssim_multiscale_with(
    img1: &Tensor,
    img2: &Tensor,
    max_val: f64,
    power_factors: &[f64],
    options: SsimOptions,
) -> Result<Tensor> {
    const OP: &str = "MS-SSIM";
    let (mut a, mut b, max) = floats(OP, img1, img2, max_val)?;
    let mut factors = Vec::new();
    for (scale, &power) in power_factors.iter().enumerate() {
        if scale > 0 {
            (a, b) = (halved(&a)?, halved(&b)?);
        }
        let (luminance, structure) = similarity(OP, &a, &b, max, options)?;
        let last = scale + 1 == power_factors.len();
        let index = if last { luminance.multiply(structure)? } else { structure };
        factors.push(index.reduce_mean([-3, -2])?.relu()?.pow(power)?);
    }
    let Some(product) = factors.into_iter().map(Ok).reduce(|a: Result<Tensor>, b| a?.multiply(b?))
    else {
        return Err(Error::Shape(message!(
            "{OP}: no power_factors were given; it needs one for each scale."
        )));
    };
    product?.reduce_mean(-1)
}

/// The mean of each `2 x 2` pixels; an odd edge is mirrored.
fn halved(x: &Tensor) -> Result<Tensor> {
    let batch = flat(x);
    let (h, w) = (batch[1], batch[2]);
    let edges = [(0, 0), (0, h % 2), (0, w % 2), (0, 0)];
    let even = x.reshape_to(batch)?.pad_with(&edges, PadMode::Symmetric)?;
    let options = Pool2dOptions::new().strides([2, 2]).padding(Padding::Valid);
    let half = even.avg_pool2d([2, 2], options)?;
    let shape = super::with_size(x, h.div_ceil(2), w.div_ceil(2));
    half.reshape_to(shape.into())
}

const PIXELS: &[DType] = &[DType::F32, DType::F16, DType::I32, DType::U32, DType::U8];

/// The options of a call by name.
fn asked(c: &Args) -> Answer<SsimOptions> {
    let mut options = SsimOptions::new().return_index_map(c.flag("return_index_map")?);
    options.filter_size = c.int("filter_size")?.map_or(options.filter_size, |n| n as usize);
    options.filter_sigma = c.float("filter_sigma")?.unwrap_or(options.filter_sigma);
    options.k1 = c.float("k1")?.unwrap_or(options.k1);
    options.k2 = c.float("k2")?.unwrap_or(options.k2);
    Ok(options)
}

/// The inventory of this file.
pub(in crate::ops) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "image::total_variation", &["tf.image.total_variation"], |c| {
        one(total_variation(c.arg("images")?))
    })
    .takes(super::super::NUMERIC)
    .cases(|cases| {
        let far = super::super::inventory::Values::Distinct(0.0);
        cases.add("image::total_variation", &[(&[2, 3, 2, 2], far)], |x| total_variation(&x[0]));
    }),
    Entry::new(OpKind::Composed, "image::image_gradients", &["tf.image.image_gradients"], |c| {
        let (dy, dx) = image_gradients(c.arg("image")?)?;
        Ok(vec![dy, dx])
    })
    .takes(super::super::NUMERIC)
    .cases(|cases| {
        cases.of_shape("image::image_gradients", &[3, 4, 2], |x| {
            let (dy, dx) = image_gradients(x)?;
            stack([dy, dx], 0)
        });
    }),
    Entry::new(OpKind::Composed, "image::sobel_edges", &["tf.image.sobel_edges"], |c| {
        one(sobel_edges(c.arg("image")?))
    })
    .cases(|cases| cases.of_shape("image::sobel_edges", &[2, 3, 4, 2], sobel_edges)),
    Entry::new(OpKind::Composed, "image::psnr", &["tf.image.psnr"], |c| {
        one(psnr(c.arg("a")?, c.arg("b")?, c.need("max_val", c.float("max_val")?)?))
    })
    .takes(PIXELS)
    .cases(|cases| {
        let inputs = &[(&[2, 3, 3, 2][..], POSITIVE), (&[3, 3, 2][..], ANY)];
        cases.add("image::psnr", inputs, |x| psnr(&x[0], &x[1], 2.0));
    }),
    Entry::new(OpKind::Composed, "image::ssim", &["tf.image.ssim"], |c| {
        let max = c.need("max_val", c.float("max_val")?)?;
        one(ssim_with(c.arg("img1")?, c.arg("img2")?, max, asked(c)?))
    })
    .forms(&["image::ssim_with"])
    .takes(PIXELS)
    .cases(|cases| {
        let inputs = &[(&[11, 12, 1][..], POSITIVE), (&[11, 12, 1][..], POSITIVE)];
        cases.add("image::ssim", inputs, |x| ssim(&x[0], &x[1], 2.0));
        let inputs = &[(&[4, 5, 2][..], POSITIVE), (&[4, 5, 2][..], POSITIVE)];
        cases.add("image::ssim_with", inputs, |x| {
            let options = SsimOptions::new().filter_size(3).k2(0.5).return_index_map(true);
            ssim_with(&x[0], &x[1], 2.0, options)
        });
    }),
    Entry::new(OpKind::Composed, "image::ssim_multiscale", &["tf.image.ssim_multiscale"], |c| {
        let powers = c.floats("power_factors")?.unwrap_or(SCALES.to_vec());
        let max = c.need("max_val", c.float("max_val")?)?;
        one(ssim_multiscale_with(c.arg("img1")?, c.arg("img2")?, max, &powers, asked(c)?))
    })
    .forms(&["image::ssim_multiscale_with"])
    .takes(PIXELS)
    .cases(|cases| {
        let near = |x: &Tensor| x.multiply(0.1);
        let inputs = &[(&[7, 8, 1][..], POSITIVE), (&[7, 8, 1][..], POSITIVE)];
        // The second order of both parts is checked above; the second order of their product loses more digits to
        // cancellation than f32 has.
        cases.add_first_order("image::ssim_multiscale_with", inputs, move |x| {
            let options = SsimOptions::new().filter_size(3).k2(0.5);
            let other = x[0].add(near(&x[1])?)?;
            ssim_multiscale_with(&x[0], &other, 2.0, &[0.6, 0.4], options)
        });
    }),
];
