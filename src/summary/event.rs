//! [`Event`]: a value in an event file, by its kind.

use std::sync::Arc;

use ndarray::ArrayD;

use super::proto::{Content, OldHistogram, SummaryValue};
use super::tensor_proto;
use crate::host_array::HostArray;

/// A value in an event file.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// The folder of the file, relative to the folder that was read; "." for that folder itself.
    pub run: String,
    /// When it was written, in seconds since 1970.
    pub wall_time: f64,
    /// The training step.
    pub step: i64,
    /// The name, with its scopes.
    pub tag: String,
    /// The plugin of TensorBoard that displays it: "scalars", "histograms", "images", "audio", "text", "hparams", ...
    pub plugin: String,
    /// The plugin's own data for the value. Events of one tag share them.
    pub plugin_content: Arc<[u8]>,
    /// The description that TensorBoard shows. Events of one tag share it.
    pub description: Arc<str>,
    /// The value.
    pub value: Value,
}

impl Event {
    /// The number, if the value is one.
    pub fn scalar(&self) -> Option<f64> {
        match self.value {
            Value::Scalar(value) => Some(value),
            _ => None,
        }
    }
}

/// The content of an [`Event`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A number, of TensorFlow 2 or 1.
    Scalar(f64),
    /// Buckets in order.
    Histogram(Vec<Bucket>),
    /// Images as files, mostly PNG.
    Images {
        /// Pixels in a row.
        width: usize,
        /// Rows.
        height: usize,
        /// The files.
        files: Vec<Vec<u8>>,
    },
    /// Sounds as files, mostly WAV.
    Audio(Vec<Vec<u8>>),
    /// Texts; several are a list or a table. Invalid UTF-8 is replaced by U+FFFD.
    Text(ArrayD<String>),
    /// A tensor whose plugin is missing or not known here, or that does not have its plugin's form.
    Tensor(HostArray<'static>),
    /// A `GraphDef`, serialized.
    Graph(Vec<u8>),
    /// A `RunMetadata`, serialized.
    RunMetadata(Vec<u8>),
    /// Only the plugin's own data.
    Empty,
}

/// A bucket of a histogram.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Bucket {
    /// Its lower edge.
    pub left: f64,
    /// Its upper edge.
    pub right: f64,
    /// The number of values in it.
    pub count: f64,
}

impl Value {
    /// The content of `value` for `plugin`; `bytes` is its size in the file.
    pub(super) fn from_proto(
        value: &SummaryValue,
        plugin: &str,
        bytes: usize,
    ) -> Result<Self, String> {
        Ok(match &value.content {
            None => Value::Empty,
            Some(Content::SimpleValue(number)) => Value::Scalar(f64::from(*number)),
            Some(Content::Image(image)) => Value::Images {
                width: usize::try_from(image.width).unwrap_or_default(),
                height: usize::try_from(image.height).unwrap_or_default(),
                files: vec![image.encoded.clone()],
            },
            Some(Content::Audio(audio)) => Value::Audio(vec![audio.encoded.clone()]),
            Some(Content::Histogram(histogram)) => Value::Histogram(old(histogram)),
            Some(Content::Tensor(tensor)) => {
                let array = tensor_proto::array(tensor, bytes)?;
                by_plugin(plugin, &array).unwrap_or(Value::Tensor(array))
            }
        })
    }
}

/// The array as `plugin` displays it, if it has the plugin's form.
fn by_plugin(plugin: &str, array: &HostArray<'_>) -> Option<Value> {
    let shape = array.shape();
    match plugin {
        "scalars" => {
            let values = array.to_f64().filter(|values| values.len() == 1)?;
            values.first().map(|value| Value::Scalar(*value))
        }
        "histograms" if shape.len() == 2 && shape[1] == 3 => {
            let rows = array.to_f64()?;
            let bucket = |row: ndarray::ArrayView1<'_, f64>| {
                let mut row = row.iter().copied();
                Some(Bucket { left: row.next()?, right: row.next()?, count: row.next()? })
            };
            rows.view()
                .into_dimensionality()
                .ok()
                .and_then(|rows: ndarray::ArrayView2<'_, f64>| {
                    rows.rows().into_iter().map(bucket).collect::<Option<Vec<_>>>()
                })
                .map(Value::Histogram)
        }
        "images" if shape.len() == 1 => {
            let mut strings = array.strings()?.iter();
            let mut number = || std::str::from_utf8(strings.next()?).ok()?.parse().ok();
            let (width, height) = (number()?, number()?);
            Some(Value::Images { width, height, files: strings.cloned().collect() })
        }
        "audio" if matches!(shape, [_] | [_, 2]) => {
            let every = shape.get(1).copied().unwrap_or(1);
            Some(Value::Audio(array.strings()?.iter().step_by(every).cloned().collect()))
        }
        "text" => {
            let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
            Some(Value::Text(array.to_array().ok()?.map(text)))
        }
        _ => None,
    }
}

/// TensorFlow 1 stores upper limits only; the first bucket begins at the least value.
fn old(histogram: &OldHistogram) -> Vec<Bucket> {
    let mut left = histogram.min;
    let mut buckets = Vec::with_capacity(histogram.bucket.len());
    for (limit, count) in histogram.bucket_limit.iter().zip(&histogram.bucket) {
        buckets.push(Bucket { left, right: limit.min(histogram.max), count: *count });
        left = limit.min(histogram.max);
    }
    buckets
}
