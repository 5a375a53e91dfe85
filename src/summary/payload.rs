//! [`Payload`]: the content of a summary, before its tensors are read, and its conversion to a message.

use half::f16;

use super::histogram;
use super::picture;
use super::plugin_proto::AudioPluginData;
use super::proto::{SummaryMetadata, TensorProto, metadata};
use super::text::Text;
use super::wav::wav;
use crate::dtype::DType;
use crate::error::Result;
use crate::host_array::{HostArray, HostDType};
use crate::tensor::Tensor;

/// The content of a summary.
#[allow(clippy::large_enum_variant)] // Few wait at once.
pub(super) enum Payload {
    Number(f64),
    /// A tensor of one number.
    Scalar(Tensor),
    Histogram {
        values: Tensor,
        buckets: usize,
    },
    /// Images `[N,H,W,C]`.
    Images(Tensor),
    /// Sounds `[N,T,C]`.
    Audio {
        sounds: Tensor,
        sample_rate: u32,
    },
    Tensor(Tensor),
    Text(Text),
    /// A complete message.
    Made(SummaryMetadata, TensorProto),
    /// A graph, which is a separate event.
    Graph(Vec<u8>),
}

impl Payload {
    /// The tensor that must be read.
    pub(super) fn unread(&self) -> Option<&Tensor> {
        match self {
            Payload::Scalar(tensor)
            | Payload::Images(tensor)
            | Payload::Tensor(tensor)
            | Payload::Histogram { values: tensor, .. }
            | Payload::Audio { sounds: tensor, .. } => Some(tensor),
            Payload::Number(_) | Payload::Text(_) | Payload::Made(..) | Payload::Graph(_) => None,
        }
    }

    /// Its approximate size in bytes.
    pub(super) fn bytes(&self) -> usize {
        let tensor = |tensor: &Tensor| tensor.len().saturating_mul(tensor.dtype().size());
        match self {
            Payload::Text(text) => text.strings.iter().map(|text| text.len() + 24).sum(),
            Payload::Made(metadata, proto) => {
                let plugin = metadata.plugin_data.as_ref().map_or(0, |plugin| plugin.content.len());
                let strings: usize = proto.string_val.iter().map(Vec::len).sum();
                plugin + strings + proto.content.len()
            }
            Payload::Graph(bytes) => bytes.len(),
            other => other.unread().map_or(0, tensor),
        }
    }

    /// The message, from the bytes of the tensor that was read. A graph has none.
    pub(super) fn message(
        self,
        tag: &str,
        bytes: &[u8],
    ) -> Result<Option<(SummaryMetadata, TensorProto)>> {
        Ok(Some(match self {
            Payload::Number(value) => scalar(value),
            Payload::Scalar(tensor) => {
                scalar(numbers(bytes, tensor.dtype()).next().unwrap_or(f64::NAN))
            }
            Payload::Histogram { values, buckets } => {
                let (rows, lost) = histogram::rows(numbers(bytes, values.dtype()), buckets);
                if lost > 0 {
                    log::warn!(
                        "histogram: {lost} of the {} values of \"{tag}\" are NaN or infinite, and no bucket has them.",
                        values.len()
                    );
                }
                (histogram::described(), histogram::tensor(&rows))
            }
            Payload::Images(tensor) => images(&tensor, bytes)?,
            Payload::Audio { sounds, sample_rate } => audio(&sounds, sample_rate, bytes),
            Payload::Tensor(tensor) => (raw(), proto(&tensor, bytes)),
            Payload::Text(text) => {
                let shown = metadata("text", &[]);
                (shown, TensorProto::strings(&text.shape, text.strings))
            }
            Payload::Made(shown, tensor) => (shown, tensor),
            Payload::Graph(_) => return Ok(None),
        }))
    }
}

fn scalar(value: f64) -> (SummaryMetadata, TensorProto) {
    // TensorFlow's scalars are f32, too.
    let content = (value as f32).to_le_bytes().to_vec();
    (metadata("scalars", &[]), TensorProto::numbers(HostDType::F32, &[], content))
}

/// The numbers in a device's bytes.
pub(super) fn numbers(bytes: &[u8], dtype: DType) -> impl Iterator<Item = f64> + Clone + '_ {
    let size = dtype.size();
    bytes.chunks_exact(size).map(move |bytes| {
        let four = || [bytes[0], bytes[1], bytes[2], bytes[3]];
        match dtype {
            DType::F32 => f64::from(f32::from_le_bytes(four())),
            DType::F16 => f16::from_le_bytes([bytes[0], bytes[1]]).to_f64(),
            DType::I32 => f64::from(i32::from_le_bytes(four())),
            DType::U32 | DType::Bool => f64::from(u32::from_le_bytes(four())),
            DType::U8 => f64::from(bytes[0]),
        }
    })
}

fn images(tensor: &Tensor, bytes: &[u8]) -> Result<(SummaryMetadata, TensorProto)> {
    let &[count, height, width, channels] = tensor.shape() else {
        unreachable!("the caller of `image` has checked the rank")
    };
    let pixels: Vec<u8> = match tensor.dtype() {
        DType::U8 => bytes.to_vec(),
        dtype => numbers(bytes, dtype).map(|value| picture::byte(value as f32)).collect(),
    };
    let mut strings = vec![width.to_string().into_bytes(), height.to_string().into_bytes()];
    for one in pixels.chunks_exact((height * width * channels).max(1)) {
        strings.push(picture::png(height, width, channels, one)?);
    }
    let shape = [2 + count];
    Ok((metadata("images", &[]), TensorProto::strings(&shape, strings)))
}

fn audio(tensor: &Tensor, sample_rate: u32, bytes: &[u8]) -> (SummaryMetadata, TensorProto) {
    let shape = tensor.shape();
    let (count, samples, channels) = (shape[0], shape[1] * shape[2], shape[2] as u16);
    let values: Vec<f32> = numbers(bytes, tensor.dtype()).map(|value| value as f32).collect();
    let mut strings = Vec::with_capacity(2 * count);
    for at in 0..count {
        strings.push(wav(&values[at * samples..][..samples], channels, sample_rate));
        // The label, which earlier versions of TensorBoard show next to the sound.
        strings.push(Vec::new());
    }
    let data = AudioPluginData { version: 0, encoding: 11 };
    let content = prost::Message::encode_to_vec(&data);
    let shown = metadata("audio", &content);
    (shown, TensorProto::strings(&[count, 2], strings))
}

/// TensorBoard warns about a tensor without a plugin.
fn raw() -> SummaryMetadata {
    /// TensorBoard's `DATA_CLASS_TENSOR`.
    const TENSOR: i32 = 2;
    SummaryMetadata { data_class: TENSOR, ..metadata("tensor", &[]) }
}

/// A tensor as TensorFlow stores it.
fn proto(tensor: &Tensor, bytes: &[u8]) -> TensorProto {
    let array = HostArray::from_device(bytes.to_vec(), tensor.shape(), tensor.dtype());
    TensorProto::numbers(array.dtype(), array.shape(), array.bytes().to_vec())
}
