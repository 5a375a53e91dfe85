//! Overlapping frames of signals, and short-time Fourier transforms.

use super::super::inventory::{ANY, Entry, Gradient, OpKind, one};
use super::super::{Backward, Grads, Keep, Operation, only, select};
use super::fft::{FftOptions, irfft_with, rfft_with};
use super::windows::{hamming_window, hann_window, kaiser_window, vorbis_window};
use super::{at_least, fit, take};
use crate::dtype::{DType, Scalar};
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::Attribute;
use crate::graph::lower::{Elementwise, Lowering, LoweringContext, View};
use crate::graph::{Op, Spec};
use crate::shape::{Axis, axis_index};
use crate::support::options::options;
use crate::tensor::Tensor;

options! {
    /// How a signal is split into frames.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct FrameOptions {
        /// Whether to pad the end of the signal so that incomplete last frames are included; `false` by default.
        pad_end: bool = false,
        /// The padding value; 0 by default.
        pad_value: Scalar as impl Into<Scalar> = Scalar::Int(0),
        /// The axis of the signal; the last by default.
        axis: Axis as impl Into<Axis> = Axis(-1),
    }
}

/// A window for [`stft`] and [`inverse_stft`].
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Window {
    /// [`hann_window`], periodic.
    #[default]
    Hann,
    /// [`hamming_window`], periodic.
    Hamming,
    /// [`kaiser_window`] with this `beta`.
    Kaiser(f64),
    /// [`vorbis_window`].
    Vorbis,
    /// No window: all weights are 1.
    Rectangular,
    /// Custom weights, one for each sample of a frame.
    Weights(Tensor),
}

impl Window {
    /// The weights on the device of `x`; `None` if all are 1.
    fn weights(&self, op: &str, x: &Tensor, length: usize) -> Result<Option<Tensor>> {
        let weights = x.device().scope(|| {
            Ok(Some(match self {
                Window::Hann => hann_window(length)?,
                Window::Hamming => hamming_window(length)?,
                Window::Kaiser(beta) => kaiser_window(length, *beta)?,
                Window::Vorbis => vorbis_window(length)?,
                Window::Rectangular => return Ok(None),
                Window::Weights(weights) => weights.clone(),
            }))
        })?;
        match weights {
            Some(weights) if weights.shape() != [length] => Err(Error::Shape(message!(
                "{op}: the window is {:?}; a frame of {length} samples needs as many weights.",
                weights.shape()
            ))),
            weights => Ok(weights),
        }
    }
}

options! {
    /// Options of the short-time Fourier transform and its inverse.
    #[derive(Debug, Clone)]
    pub struct StftOptions {
        /// The length of each transform; by default the smallest power of two that is at least the frame length.
        fft_length: Option<usize> as impl Into<Option<usize>> = None,
        /// The window; the Hann window by default.
        window: Window = Window::Hann,
        /// As [`FrameOptions::pad_end`]; `false` by default.
        pad_end: bool = false,
    }
}

impl StftOptions {
    fn length(&self, op: &str, frame: usize) -> Result<usize> {
        let usual = frame.max(1).checked_next_power_of_two();
        self.fft_length.or(usual).ok_or_else(|| {
            Error::Shape(message!("{op}: a frame of {frame} samples has no transform."))
        })
    }
}

/// Splits the last axis into frames of `frame_length` samples, which begin `frame_step` samples apart: `[..,n]` to
/// `[..,frames,frame_length]`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let y = tf::signal::frame(&tf::constant([1, 2, 3, 4, 5, 6])?, 3, 2)?;
/// assert_eq!(y.to_vec::<i32>()?, [1, 2, 3, 3, 4, 5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the signal is a scalar, or `frame_length` or `frame_step` is 0.
pub fn frame(signal: &Tensor, frame_length: usize, frame_step: usize) -> Result<Tensor> {
    frame_with(signal, frame_length, frame_step, FrameOptions::new())
}

/// Like [`frame`], with options; the axes of the frames and their samples replace the axis.
///
/// # Errors
/// As [`frame`]; [`Error::Index`] if the axis does not exist; [`Error::DType`] if the pad value does not fit.
pub fn frame_with(
    signal: &Tensor,
    frame_length: usize,
    frame_step: usize,
    options: FrameOptions,
) -> Result<Tensor> {
    const OP: &str = "frame";
    at_least(OP, signal, 1, "[..,n]")?;
    check_frame(OP, frame_length, frame_step)?;
    let axis = axis_index(OP, options.axis, signal.rank())?;
    let len = signal.shape()[axis];
    let (signal, frames) = if options.pad_end {
        let frames = len.div_ceil(frame_step);
        let end = frames.saturating_sub(1).saturating_mul(frame_step).saturating_add(frame_length);
        let mut edges = vec![(0, 0); signal.rank()];
        edges[axis].1 = end.saturating_sub(len);
        let value = super::super::PadMode::Constant(options.pad_value);
        (signal.pad_with(&edges, value)?, frames)
    } else {
        let frames = len.checked_sub(frame_length).map_or(0, |rest| rest / frame_step + 1);
        (signal.clone(), frames)
    };
    dispatch(Frame { axis, frames, length: frame_length, step: frame_step }, &[&signal])
}

fn check_frame(op: &str, length: usize, step: usize) -> Result<()> {
    if length > 0 && step > 0 {
        return Ok(());
    }
    Err(Error::Shape(message!(
        "{op}: frames of {length} samples in steps of {step}; both numbers must be above 0."
    )))
}

/// Adds overlapping frames, `[..,frames,length]` to `[..,(frames - 1) * frame_step + length]`: each begins `frame_step`
/// samples after the previous one.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let y = tf::signal::overlap_and_add(&tf::constant([[1, 1, 1], [2, 2, 2]])?, 2)?;
/// assert_eq!(y.to_vec::<i32>()?, [1, 1, 3, 2, 2]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the tensor has fewer than two axes, or `frame_step` is 0; [`Error::DType`] if it is not numeric.
pub fn overlap_and_add(signal: &Tensor, frame_step: usize) -> Result<Tensor> {
    const OP: &str = "overlap_and_add";
    at_least(OP, signal, 2, "[..,frames,length]")?;
    let at = signal.rank() - 2;
    let (outer, frames, length) =
        (&signal.shape()[..at], signal.shape()[at], signal.shape()[at + 1]);
    check_frame(OP, length.max(1), frame_step)?;
    let rows: usize = outer.iter().product();
    let sized = |sizes: &[usize]| [outer, sizes].concat();
    let end = frames.saturating_sub(1).saturating_mul(frame_step).saturating_add(length);
    if frames == 0 || length == 0 {
        let none = if frames == 0 { length.saturating_sub(frame_step) } else { end };
        return super::super::fill(
            signal.device(),
            OP,
            sized(&[none])[..].into(),
            0.into(),
            signal.dtype(),
        );
    }
    // Frame f fills `segments` steps from step f on. The frames are followed by as many empty steps; rows that are one
    // step shorter then align each segment with the step that it fills.
    let segments = length.div_ceil(frame_step);
    let whole = segments.saturating_mul(frame_step);
    let wide = fit(&signal.reshape_to([rows, frames, length].into())?, 2, whole)?;
    let steps =
        fit(&wide.reshape_to([rows, frames, segments, frame_step].into())?, 1, frames + segments)?;
    let turned = steps.transpose([0, 2, 1, 3])?;
    let line = (frames + segments) * segments;
    let turned = turned.reshape_to([rows, line, frame_step].into())?;
    let shorter = take(&turned, 1, 0, (frames + segments - 1) * segments)?;
    let shorter = shorter.reshape_to([rows, segments, frames + segments - 1, frame_step].into())?;
    let sum = shorter.reduce_sum(1)?;
    let sum = sum.reshape_to([rows, (frames + segments - 1) * frame_step].into())?;
    take(&sum, 1, 0, end)?.reshape_to(sized(&[end])[..].into())
}

/// The spectra of overlapping frames: `[..,n]` to `[..,frames,fft_length/2+1,2]`. Each frame is multiplied by a window
/// and padded with zeros to a power of two.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let spectra = tf::signal::stft(&tf::Tensor::ones([1000])?, 256, 128)?;
/// assert_eq!(spectra.shape(), [6, 129, 2]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`frame`] and [`rfft`](super::rfft).
pub fn stft(signals: &Tensor, frame_length: usize, frame_step: usize) -> Result<Tensor> {
    stft_with(signals, frame_length, frame_step, StftOptions::new())
}

/// Like [`stft`], with options.
///
/// # Errors
/// As [`stft`], and [`Error::Shape`] if the window does not have `frame_length` weights.
pub fn stft_with(
    signals: &Tensor,
    frame_length: usize,
    frame_step: usize,
    options: StftOptions,
) -> Result<Tensor> {
    const OP: &str = "stft";
    let cut = FrameOptions::new().pad_end(options.pad_end);
    let frames = frame_with(signals, frame_length, frame_step, cut)?;
    let length = options.length(OP, frame_length)?;
    let frames = match options.window.weights(OP, signals, frame_length)? {
        Some(weights) => frames.multiply(weights)?,
        None => frames,
    };
    rfft_with(&frames, FftOptions::new().fft_length(length))
}

/// The signals of spectra, `[..,frames,fft_length/2+1,2]` to `[..,n]`: the inverse transforms are multiplied by a
/// window and overlap-added. With the window of [`inverse_stft_window`] this is the inverse of [`stft`].
///
/// # Errors
/// As [`irfft`](super::irfft) and [`overlap_and_add`].
pub fn inverse_stft(stfts: &Tensor, frame_length: usize, frame_step: usize) -> Result<Tensor> {
    inverse_stft_with(stfts, frame_length, frame_step, StftOptions::new())
}

/// Like [`inverse_stft`], with options; `pad_end` has no effect.
///
/// # Errors
/// As [`inverse_stft`], and [`Error::Shape`] if the window does not have `frame_length` weights.
pub fn inverse_stft_with(
    stfts: &Tensor,
    frame_length: usize,
    frame_step: usize,
    options: StftOptions,
) -> Result<Tensor> {
    const OP: &str = "inverse_stft";
    super::pairs::check_pairs(OP, stfts)?;
    at_least(OP, stfts, 3, "[..,frames,fft_length/2+1,2]")?;
    check_frame(OP, frame_length, frame_step)?;
    let length = options.length(OP, frame_length)?;
    let frames = irfft_with(stfts, FftOptions::new().fft_length(length))?;
    let frames = fit(&frames, frames.rank() - 1, frame_length)?;
    let frames = match options.window.weights(OP, stfts, frame_length)? {
        Some(weights) => frames.multiply(weights)?,
        None => frames,
    };
    overlap_and_add(&frames, frame_step)
}

/// The window with which [`inverse_stft`] reconstructs the signal of [`stft`] with `window`, provided that every sample
/// is in a frame: the window divided by the sum of the squares of all windows that overlap there
/// (`tf.signal.inverse_stft_window_fn`).
///
/// # Errors
/// As [`frame`], and [`Error::Shape`] if the window does not have `frame_length` weights.
pub fn inverse_stft_window(
    frame_length: usize,
    frame_step: usize,
    window: Window,
) -> Result<Tensor> {
    const OP: &str = "inverse_stft_window";
    check_frame(OP, frame_length, frame_step)?;
    let one = Tensor::ones([])?;
    let own = match window.weights(OP, &one, frame_length)? {
        Some(weights) => weights,
        None => one.broadcast_to([frame_length])?,
    };
    let overlaps = frame_length.div_ceil(frame_step);
    let squares = fit(&own.square()?, 0, overlaps.saturating_mul(frame_step))?;
    let sums = squares.reshape_to([overlaps, frame_step].into())?.reduce_sum(0)?;
    let sums = sums.expand_dims(0)?.broadcast_to([overlaps, frame_step])?;
    let sums = take(&sums.reshape_to([overlaps * frame_step].into())?, 0, 0, frame_length)?;
    select(&sums.equal(0.0)?, &own.zeros_like()?, &own.divide(sums)?)
}

/// A view: frame f begins at index f * step of the axis.
#[derive(Debug, Attribute)]
#[op("Frame")]
pub(crate) struct Frame {
    axis: usize,
    frames: usize,
    length: usize,
    step: usize,
}

impl Op for Frame {
    fn name(&self) -> &'static str {
        "Frame"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let x = inputs[0];
        let mut sizes = x.shape.to_vec();
        sizes[self.axis] = self.frames;
        sizes.insert(self.axis + 1, self.length);
        Ok(Spec::new(sizes, x.dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let mut strides = cx.inputs[0].shape.strides().to_vec();
        let place = strides[self.axis];
        strides[self.axis] = place.wrapping_mul(self.step as i64);
        strides.insert(self.axis + 1, place);
        Elementwise::view(View::strided(0, &strides)).into()
    }
}

impl Operation for Frame {
    fn keep(&self) -> Keep {
        Keep::Nothing
    }

    // Every sample receives the gradients of all frames that contain it.
    fn grad(&self, back: &Backward) -> Result<Grads> {
        let x = back.spec(0);
        let rank = x.shape.len();
        // The frames are moved to the end, added, and moved back to the original axis.
        let mut order: Vec<i64> = (0..=rank as i64).collect();
        let moved: Vec<i64> = order.drain(self.axis..self.axis + 2).collect();
        order.extend(moved);
        let sum = overlap_and_add(&back.dy.transpose(&order)?, self.step)?;
        let sum = fit(&sum, rank - 1, x.shape[self.axis])?;
        let mut order: Vec<i64> = (0..rank as i64 - 1).collect();
        order.insert(self.axis, rank as i64 - 1);
        only(sum.transpose(&order)?)
    }
}

const SINGLE: &[DType] = &[DType::F32];

/// The inventory of this file.
pub(in crate::ops) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Kernel, "signal::frame", &["tf.signal.frame"], |c| {
        let options = FrameOptions::new()
            .pad_end(c.flag("pad_end")?)
            .pad_value(c.float("pad_value")?.unwrap_or(0.0))
            .axis(c.int("axis")?.unwrap_or(-1));
        let (length, step) = (c.size("frame_length")?, c.size("frame_step")?);
        one(frame_with(c.arg("signal")?, length, step, options))
    })
    .forms(&["signal::frame_with"])
    .takes(&DType::ALL)
    .cases(|cases| {
        cases.of_shape("signal::frame", &[2, 9], |x| frame(x, 4, 2));
        cases.of_shape("signal::frame with gaps", &[10], |x| frame(x, 2, 3));
        for axis in [0, 1, -1] {
            let options = FrameOptions::new().pad_end(true).axis(axis);
            cases.add(format!("signal::frame_with {axis}"), &[(&[3, 5, 2], ANY)], move |x| {
                frame_with(&x[0], 3, 2, options)
            });
        }
    }),
    Entry::new(OpKind::Composed, "signal::overlap_and_add", &["tf.signal.overlap_and_add"], |c| {
        one(overlap_and_add(c.arg("signal")?, c.size("frame_step")?))
    })
    .takes(super::super::NUMERIC)
    .cases(|cases| {
        cases.of_shape("signal::overlap_and_add", &[2, 3, 5], |x| overlap_and_add(x, 2));
        cases.of_shape("signal::overlap_and_add with gaps", &[3, 2], |x| overlap_and_add(x, 3));
    }),
    Entry::new(OpKind::Composed, "signal::stft", &["tf.signal.stft"], |c| {
        let options = StftOptions::new()
            .fft_length(c.int("fft_length")?.map(|n| n as usize))
            .pad_end(c.flag("pad_end")?);
        let (length, step) = (c.size("frame_length")?, c.size("frame_step")?);
        one(stft_with(c.arg("signals")?, length, step, options))
    })
    .forms(&["signal::stft_with"])
    .takes(SINGLE)
    .cases(|cases| {
        cases.of_shape("signal::stft", &[2, 11], |x| stft(x, 5, 2));
        cases.of_shape("signal::stft_with", &[11], |x| {
            stft_with(
                x,
                4,
                3,
                StftOptions::new().fft_length(6).window(Window::Hamming).pad_end(true),
            )
        });
    }),
    Entry::new(OpKind::Composed, "signal::inverse_stft", &["tf.signal.inverse_stft"], |c| {
        let options = StftOptions::new().fft_length(c.int("fft_length")?.map(|n| n as usize));
        let (length, step) = (c.size("frame_length")?, c.size("frame_step")?);
        one(inverse_stft_with(c.arg("stfts")?, length, step, options))
    })
    .forms(&["signal::inverse_stft_with"])
    .takes(SINGLE)
    .cases(|cases| {
        cases.of_shape("signal::inverse_stft", &[3, 5, 2], |x| inverse_stft(x, 7, 2));
        cases.of_shape("signal::inverse_stft_with", &[3, 4, 2], |x| {
            let options = StftOptions::new().fft_length(6).window(Window::Rectangular);
            inverse_stft_with(x, 6, 3, options)
        });
    }),
    Entry::new(
        OpKind::Composed,
        "signal::inverse_stft_window",
        &["tf.signal.inverse_stft_window_fn"],
        |c| {
            let (length, step) = (c.size("frame_length")?, c.size("frame_step")?);
            one(inverse_stft_window(length, step, Window::Hann))
        },
    )
    .takes(SINGLE)
    .gradient(Gradient::None("a window: a constant")),
];
