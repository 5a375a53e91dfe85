//! The functions that write: a number, a histogram, images, sounds, texts, tensors.

use std::borrow::Borrow;

use super::payload::Payload;
use super::scope::write;
use super::step::Step;
use super::text::Text;
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::support::options::options;
use crate::tensor::Tensor;

/// The argument of [`scalar`]: a number, or a tensor with one element.
#[derive(Debug, Clone)]
pub struct Number(NumberSource);

#[derive(Debug, Clone)]
enum NumberSource {
    Host(f64),
    Tensor(Tensor),
}

macro_rules! hosts {
    ($($t:ty),*) => {$(
        impl From<$t> for Number {
            fn from(number: $t) -> Self {
                Number(NumberSource::Host(number as f64))
            }
        }
    )*};
}
hosts!(f32, f64, i32, i64, u8, u32, u64, usize);

impl From<&Tensor> for Number {
    fn from(tensor: &Tensor) -> Self {
        Number(NumberSource::Tensor(tensor.clone()))
    }
}

impl From<Tensor> for Number {
    fn from(tensor: Tensor) -> Self {
        Number(NumberSource::Tensor(tensor))
    }
}

options! {
    /// The descriptions of [`scalar_with`] and [`text_with`].
    #[derive(Debug, Clone)]
    pub struct DescriptionOptions {
        /// The description that TensorBoard shows, in Markdown; default: none.
        description: String as impl Into<String> = String::new(),
    }
}

options! {
    /// Options of [`histogram_with`].
    #[derive(Debug, Clone)]
    pub struct HistogramOptions {
        /// The number of buckets; default: 30.
        buckets: usize = 30,
        /// The description that TensorBoard shows, in Markdown; default: none.
        description: String as impl Into<String> = String::new(),
    }
}

options! {
    /// Options of [`image_with`] and [`audio_with`].
    #[derive(Debug, Clone)]
    pub struct MediaOptions {
        /// The number of images or sounds of the batch that are written, from the first; default: 3.
        max_outputs: usize = 3,
        /// The description that TensorBoard shows, in Markdown; default: none.
        description: String as impl Into<String> = String::new(),
    }
}

/// Writes a number, for a curve over the steps; returns true if a writer accepts it.
///
/// The call reads nothing: the tensor waits until the writer reads many together. Without a default writer, or if the condition
/// of [`record_if`](super::record_if) is false, the call does nothing.
///
/// # Errors
/// [`Error::Shape`] if the tensor does not have exactly one element; [`Error::Data`] without a step, or if the writer is
/// closed; and errors of the writer since the last call: writing failed ([`Error::Io`]), or a tensor failed.
pub fn scalar(name: &str, value: impl Into<Number>, step: impl Into<Step>) -> Result<bool> {
    scalar_with(name, value, step, DescriptionOptions::new())
}

/// As [`scalar`], with a description.
///
/// # Errors
/// As [`scalar`].
pub fn scalar_with(
    name: &str,
    value: impl Into<Number>,
    step: impl Into<Step>,
    options: DescriptionOptions,
) -> Result<bool> {
    let value = value.into();
    write("scalar", name, options.description, step.into(), true, || match value.0 {
        NumberSource::Host(number) => Ok(Payload::Number(number)),
        NumberSource::Tensor(tensor) if tensor.len() == 1 => Ok(Payload::Scalar(tensor)),
        NumberSource::Tensor(tensor) => Err(Error::Shape(message!(
            "scalar: \"{name}\" is {:?}; a scalar is one number. Reduce it first, or write a histogram.",
            tensor.shape()
        ))),
    })
}

/// Writes the distribution of the elements of a tensor of any shape, for TensorBoard's histograms and distributions.
///
/// The writer's thread counts. NaN and infinities are in no bucket, and a warning states their number.
///
/// # Errors
/// As [`scalar`], for tensors of any shape.
pub fn histogram(name: &str, data: impl Borrow<Tensor>, step: impl Into<Step>) -> Result<bool> {
    histogram_with(name, data, step, HistogramOptions::new())
}

/// As [`histogram`], with options.
///
/// # Errors
/// As [`histogram`], and [`Error::Data`] for 0 buckets or more than 65,536.
pub fn histogram_with(
    name: &str,
    data: impl Borrow<Tensor>,
    step: impl Into<Step>,
    options: HistogramOptions,
) -> Result<bool> {
    let buckets = options.buckets;
    write("histogram", name, options.description, step.into(), true, || {
        if !(1..=65_536).contains(&buckets) {
            return Err(Error::Data(message!(
                "histogram: buckets is {buckets}; there are 1 to 65536 of them."
            )));
        }
        Ok(Payload::Histogram { values: data.borrow().clone(), buckets })
    })
}

/// Writes the first three of the images `[N,H,W,C]`, with 1 (grey), 2 (grey and alpha), 3 (RGB) or 4 channels (RGBA), as PNG.
///
/// Bytes are pixels as they are; floats from 0 to 1 become 0 to 255, and values outside are clipped.
///
/// # Errors
/// As [`scalar`]; [`Error::Shape`] for another rank or number of channels and for images without pixels, [`Error::DType`] for
/// integers and bools.
pub fn image(name: &str, data: impl Borrow<Tensor>, step: impl Into<Step>) -> Result<bool> {
    image_with(name, data, step, MediaOptions::new())
}

/// As [`image`], with options.
///
/// # Errors
/// As [`image`].
pub fn image_with(
    name: &str,
    data: impl Borrow<Tensor>,
    step: impl Into<Step>,
    options: MediaOptions,
) -> Result<bool> {
    let data = data.borrow();
    write("image", name, options.description, step.into(), true, || {
        let shape = data.shape();
        let refused = |rule: &str| {
            Error::Shape(message!("image: the pictures of \"{name}\" are {shape:?}; {rule}."))
        };
        let &[_, height, width, channels] = shape else {
            return Err(refused(
                "they must be [N, H, W, C]. Give one picture a first axis by expand_dims(0)",
            ));
        };
        if !(1..=4).contains(&channels) {
            return Err(refused("a picture has 1 to 4 channels"));
        }
        if height == 0 || width == 0 {
            return Err(refused("a picture has pixels"));
        }
        if !(data.dtype() == DType::U8 || data.dtype().is_float()) {
            return Err(Error::DType(message!(
                "image: the pictures of \"{name}\" are {}; they must be u8, or floats from 0 to 1. Cast them first.",
                data.dtype()
            )));
        }
        Ok(Payload::Images(first(data, options.max_outputs)?))
    })
}

/// Writes the first three of the sounds `[N,T,C]`: samples from -1 to 1, `sample_rate` of them per second, as WAV.
///
/// # Errors
/// As [`scalar`]; [`Error::Shape`] for another rank, for no or more than 65,535 channels and for more than 2 GiB,
/// [`Error::DType`] if the samples are not floats, [`Error::Data`] for a rate of 0.
pub fn audio(
    name: &str,
    data: impl Borrow<Tensor>,
    sample_rate: u32,
    step: impl Into<Step>,
) -> Result<bool> {
    audio_with(name, data, sample_rate, step, MediaOptions::new())
}

/// As [`audio`], with options.
///
/// # Errors
/// As [`audio`].
pub fn audio_with(
    name: &str,
    data: impl Borrow<Tensor>,
    sample_rate: u32,
    step: impl Into<Step>,
    options: MediaOptions,
) -> Result<bool> {
    let data = data.borrow();
    write("audio", name, options.description, step.into(), true, || {
        let shape = data.shape();
        let refused = |rule: &str| {
            Error::Shape(message!("audio: the sounds of \"{name}\" are {shape:?}; {rule}."))
        };
        let &[_, frames, channels] = shape else {
            return Err(refused("they must be [N, T, C]: sounds, samples, channels"));
        };
        if !(1..=65_535).contains(&channels) {
            return Err(refused("a sound has 1 to 65535 channels"));
        }
        if frames.saturating_mul(channels) > (1 << 30) {
            return Err(refused("a WAV file holds at most 2 GiB"));
        }
        if !data.dtype().is_float() {
            return Err(Error::DType(message!(
                "audio: the sounds of \"{name}\" are {}; they must be floats from -1 to 1. Cast them first.",
                data.dtype()
            )));
        }
        if sample_rate == 0 {
            return Err(Error::Data(message!(
                "audio: the sample_rate of \"{name}\" is 0; it is the number of samples in a second."
            )));
        }
        let sounds = first(data, options.max_outputs)?;
        Ok(Payload::Audio { sounds, sample_rate })
    })
}

/// The first `count` elements along the first axis; nothing is computed if these are all.
fn first(data: &Tensor, count: usize) -> Result<Tensor> {
    if data.shape()[0] <= count {
        return Ok(data.clone());
    }
    let mut size = vec![-1; data.rank()];
    size[0] = i64::try_from(count).unwrap_or(i64::MAX);
    data.detached().slice(&vec![0; data.rank()], &size)
}

/// Writes a text, a list or a table of texts, in Markdown.
///
/// # Errors
/// As [`scalar`], without the shape.
pub fn text(name: &str, data: impl Into<Text>, step: impl Into<Step>) -> Result<bool> {
    text_with(name, data, step, DescriptionOptions::new())
}

/// As [`text`], with a description.
///
/// # Errors
/// As [`text`].
pub fn text_with(
    name: &str,
    data: impl Into<Text>,
    step: impl Into<Step>,
    options: DescriptionOptions,
) -> Result<bool> {
    let data = data.into();
    write("text", name, options.description, step.into(), true, || Ok(Payload::Text(data)))
}

/// Writes a tensor as it is (`tf.summary.write`): TensorBoard does not display it, and [`read`](super::read()) returns it.
///
/// # Errors
/// As [`scalar`], for tensors of any shape.
pub fn tensor(name: &str, data: impl Borrow<Tensor>, step: impl Into<Step>) -> Result<bool> {
    let data = data.borrow();
    let payload = || Ok(Payload::Tensor(data.clone()));
    write("tensor", name, String::new(), step.into(), true, payload)
}
