//! Spectra of signals, windows, and sums of overlapping blocks.
//!
//! Source: the specification of `DFT` (opset 17 and 20), `STFT` (17) and `Col2Im` (18).

use std::f64::consts::TAU;

use super::call::{Call, Results, Table, axis, cast, tensor, unsupported};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::ops::signal;
use crate::saved_model::graph_def::value::Value;
use crate::tensor::Tensor;

pub(super) static OPS: Table = &[
    ("BlackmanWindow", |c| window(c, [0.42, -0.5, 0.08])),
    ("Col2Im", col2im),
    ("DFT", dft),
    ("HammingWindow", |c| window(c, [25.0 / 46.0, -21.0 / 46.0, 0.0])),
    ("HannWindow", |c| window(c, [0.5, -0.5, 0.0])),
    ("STFT", stft),
];

/// The most numbers of a matrix or of indices that an op makes.
const MOST: usize = 1 << 26;

/// A window of cosines, of 0, 1 and 2 periods.
fn window(c: &Call<'_>, weights: [f64; 3]) -> Result<Results> {
    let size = c.ints(0)?.first().copied().unwrap_or(0);
    let count = usize::try_from(size).ok().filter(|count| *count <= MOST);
    let count = count.ok_or_else(|| Error::Shape(message!("{size} is no size of a window.")))?;
    let period = if c.attr_int("periodic", 1) != 0 { count } else { count.max(2) - 1 };
    let [constant, first, second] = weights;
    let value = |at: usize| {
        let turn = TAU * at as f64 / period as f64;
        (constant + first * turn.cos() + second * (2.0 * turn).cos()) as f32
    };
    let values: Vec<f32> = (0..count).map(value).collect();
    let dtype = super::super::tensor::dtype(c.attr_int("output_datatype", 1) as i32);
    cast(Value::Tensor(Tensor::from_slice(&values, [count])?), dtype)
}

/// What `spectrum` computes.
struct Form {
    length: usize,
    inverse: bool,
    onesided: bool,
}

/// The spectra along an axis of real or complex numbers, whose parts are the last axis.
fn spectrum(x: &Tensor, at: usize, form: &Form) -> Result<Tensor> {
    let Form { length, inverse, onesided } = *form;
    let rank = x.rank();
    let (have, parts) = (x.shape()[at], x.shape()[rank - 1]);
    if !(1..=2).contains(&parts) {
        return Err(Error::Shape(message!(
            "the last axis of {:?} has {parts} elements, not 1 of real or 2 of complex numbers.",
            x.shape()
        )));
    }
    // The axis becomes the one before the parts.
    let (mut there, mut back): (Vec<usize>, Vec<usize>) =
        ((0..rank - 1).filter(|axis| *axis != at).collect(), (0..rank - 2).collect());
    there.extend([at, rank - 1]);
    back.insert(at, rank - 2);
    back.push(rank - 1);
    let mut x = x.transpose(there)?;
    // A longer signal is cut off, and a shorter one gets zeros behind it.
    if have > length {
        let mut sizes = vec![-1; rank];
        sizes[rank - 2] = length as i64;
        x = x.slice(&vec![0; rank], &sizes)?;
    }
    let mut more = vec![(0, 0); rank];
    more[rank - 2].1 = length.saturating_sub(have);
    more[rank - 1].1 = 2 - parts;
    let pairs = x.pad(&more)?;
    let mut whole = if inverse { signal::ifft(&pairs)? } else { signal::fft(&pairs)? };
    if onesided {
        let mut sizes = vec![-1; rank];
        sizes[rank - 2] = (length / 2 + 1) as i64;
        whole = whole.slice(&vec![0; rank], &sizes)?;
    }
    whole.transpose(back)
}

/// A size that an input has.
fn size(c: &Call<'_>, at: usize) -> Result<Option<usize>> {
    if c.get(at).is_none() {
        return Ok(None);
    }
    let number = c.ints(at)?.first().copied().unwrap_or(0);
    let known = usize::try_from(number).ok().filter(|size| (1..1 << 31).contains(size));
    let wrong = || Error::Shape(message!("its input {at} is {number}, which is no size."));
    known.ok_or_else(wrong).map(Some)
}

fn dft(c: &Call<'_>) -> Result<Results> {
    let x = c.tensor(0)?;
    let along = match c.get(2) {
        Some(_) => c.ints(2)?.first().copied().unwrap_or(-2),
        None => c.attr_int("axis", if c.opset < 20 { 1 } else { -2 }),
    };
    let at = axis(along, x.rank())?;
    if at + 1 >= x.rank() {
        return Err(Error::Index(message!(
            "the axis {along} of {:?} is that of the parts of complex numbers.",
            x.shape()
        )));
    }
    let length = size(c, 1)?.unwrap_or(x.shape()[at]);
    let inverse = c.attr_int("inverse", 0) != 0;
    let onesided = c.attr_int("onesided", 0) != 0;
    if inverse && onesided {
        return Err(unsupported(format_args!("an inverse DFT of one side")));
    }
    tensor(spectrum(&x, at, &Form { length, inverse, onesided })?)
}

fn stft(c: &Call<'_>) -> Result<Results> {
    let x = c.tensor(0)?;
    let x = if x.rank() == 2 { x.expand_dims(-1)? } else { x };
    let [_, samples, _] = x.shape()[..] else {
        return Err(Error::Shape(message!("{:?} are no signals [batch, samples, 1].", x.shape())));
    };
    let step = size(c, 1)?
        .ok_or_else(|| Error::Data(message!("it lacks its step from frame to frame.")))?;
    let window = c.get(2).map(Value::tensor).transpose()?;
    let length = match (size(c, 3)?, &window) {
        (Some(length), _) => length,
        (None, Some(window)) => window.len(),
        (None, None) => {
            return Err(Error::Data(message!("it lacks its window and its length of a frame.")));
        }
    };
    if window.as_ref().is_some_and(|window| window.len() != length)
        || length > samples
        || length == 0
    {
        return Err(Error::Shape(message!(
            "frames of {length} samples do not fit its window or {samples} samples. Pass longer signals."
        )));
    }
    let frames = signal::frame(&x.transpose([0, 2, 1])?, length, step)?;
    let mut cut = frames.transpose([0, 2, 3, 1])?;
    if let Some(window) = window {
        cut = cut.multiply(window.cast(DType::F32)?.reshape([length, 1])?)?;
    }
    let onesided = c.attr_int("onesided", 1) != 0;
    tensor(spectrum(&cut, 2, &Form { length, inverse: false, onesided })?)
}

/// Adds blocks of an image at their places: what `Im2Col` takes apart.
fn col2im(c: &Call<'_>) -> Result<Results> {
    let x = c.tensor(0)?;
    let sizes = |at: usize| -> Result<Vec<usize>> {
        let sizes = c.ints(at)?;
        let known = sizes
            .iter()
            .map(|size| usize::try_from(*size).ok().filter(|s| (1..1 << 24).contains(s)));
        known.collect::<Option<_>>().ok_or_else(|| {
            Error::Shape(message!(
                "its input {at} is {sizes:?}, which are no sizes of an image or a block."
            ))
        })
    };
    let (image, block) = (sizes(1)?, sizes(2)?);
    let rank = image.len();
    let numbers = |name: &str, count: usize, default: i64| -> Result<Vec<i64>> {
        let all = c.attr_ints(name).map_or(vec![default; count], <[i64]>::to_vec);
        let fits = all.len() == count && all.iter().all(|n| (0..1 << 24).contains(n));
        if fits {
            Ok(all)
        } else {
            Err(Error::Data(message!("its {name} are {all:?}, which do not fit {rank} axes.")))
        }
    };
    let (steps, wide) = (numbers("strides", rank, 1)?, numbers("dilations", rank, 1)?);
    let pads = numbers("pads", 2 * rank, 0)?;
    let wrong = || {
        Error::Shape(message!("blocks {block:?} in {:?} do not fit an image {image:?}.", x.shape()))
    };
    let [batch, columns, windows] = x.shape()[..] else { return Err(wrong()) };
    if block.len() != rank || rank == 0 || steps.contains(&0) {
        return Err(wrong());
    }
    // How many blocks there are along each axis.
    let mut counts = Vec::with_capacity(rank);
    for at in 0..rank {
        let taken = wide[at] * (block[at] as i64 - 1) + 1;
        let room = image[at] as i64 + pads[at] + pads[rank + at] - taken;
        counts.push(
            usize::try_from(room / steps[at]).ok().filter(|_| room >= 0).ok_or_else(wrong)? + 1,
        );
    }
    let product =
        |sizes: &[usize]| sizes.iter().try_fold(1usize, |all, size| all.checked_mul(*size));
    let (Some(inside), Some(pixels)) = (product(&block), product(&image)) else {
        return Err(wrong());
    };
    let count = inside.checked_mul(windows).filter(|count| *count <= MOST && pixels <= MOST);
    let (true, Some(_)) = (product(&counts) == Some(windows) && columns % inside == 0, count)
    else {
        return Err(wrong());
    };
    // The pixel of each element of a block; one behind the last for those that are padding.
    let mut places = Vec::with_capacity(inside * windows);
    for element in 0..inside {
        for window in 0..windows {
            let (mut element, mut window, mut place, mut stride) = (element, window, Some(0), 1);
            for at in (0..rank).rev() {
                let start = (window % counts[at]) as i64 * steps[at] - pads[at];
                let own = start + (element % block[at]) as i64 * wide[at];
                let own = usize::try_from(own).ok().filter(|own| *own < image[at]);
                place = place.zip(own).map(|(place, own)| place + own * stride);
                (element, window, stride) =
                    (element / block[at], window / counts[at], stride * image[at]);
            }
            places.push(place.unwrap_or(pixels) as i32);
        }
    }
    let channels = columns / inside;
    let rows = x.reshape([batch * channels, inside * windows])?.transpose([1, 0])?;
    let sums =
        rows.unsorted_segment_sum(&Tensor::from_slice(&places, [inside * windows])?, pixels + 1)?;
    let sums = sums.slice(&[0, 0], &[pixels as i64, -1])?.transpose([1, 0])?;
    let shape: Vec<usize> = [batch, channels].into_iter().chain(image).collect();
    tensor(sums.reshape(shape)?)
}
