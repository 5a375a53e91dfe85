//! The messages of event files, with the same layout as in TensorFlow's `event.proto`, `summary.proto` and `tensor.proto`.

use crate::files::protobuf::TensorShapeProto;
use crate::host_array::HostDType;

/// A record of an event file.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct EventProto {
    #[prost(double, tag = "1")]
    pub(super) wall_time: f64,
    #[prost(int64, tag = "2")]
    pub(super) step: i64,
    #[prost(oneof = "What", tags = "3, 4, 5, 6, 7, 8, 9")]
    pub(super) what: Option<What>,
    #[prost(message, optional, tag = "10")]
    pub(super) source: Option<SourceMetadata>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum What {
    #[prost(string, tag = "3")]
    FileVersion(String),
    #[prost(bytes = "vec", tag = "4")]
    GraphDef(Vec<u8>),
    #[prost(message, tag = "5")]
    Summary(Summary),
    #[prost(bytes = "vec", tag = "6")]
    LogMessage(Vec<u8>),
    #[prost(bytes = "vec", tag = "7")]
    SessionLog(Vec<u8>),
    #[prost(message, tag = "8")]
    RunMetadata(TaggedRunMetadata),
    #[prost(bytes = "vec", tag = "9")]
    MetaGraph(Vec<u8>),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SourceMetadata {
    #[prost(string, tag = "1")]
    pub(super) writer: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TaggedRunMetadata {
    #[prost(string, tag = "1")]
    pub(super) tag: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) run_metadata: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Summary {
    /// Each is a [`SummaryValue`], decoded when a reader requests it.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub(super) value: Vec<Vec<u8>>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SummaryValue {
    #[prost(string, tag = "1")]
    pub(super) tag: String,
    #[prost(message, optional, tag = "9")]
    pub(super) metadata: Option<SummaryMetadata>,
    #[prost(oneof = "Content", tags = "2, 4, 5, 6, 8")]
    pub(super) content: Option<Content>,
}

/// All but the tensor, which is the large one, are from TensorFlow 1: they are read and never written.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Content {
    #[prost(float, tag = "2")]
    SimpleValue(f32),
    #[prost(message, tag = "4")]
    Image(OldImage),
    #[prost(message, tag = "5")]
    Histogram(OldHistogram),
    #[prost(message, tag = "6")]
    Audio(OldAudio),
    #[prost(message, tag = "8")]
    Tensor(TensorProto),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OldImage {
    #[prost(int32, tag = "1")]
    pub(super) height: i32,
    #[prost(int32, tag = "2")]
    pub(super) width: i32,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) encoded: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OldAudio {
    #[prost(bytes = "vec", tag = "4")]
    pub(super) encoded: Vec<u8>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OldHistogram {
    #[prost(double, tag = "1")]
    pub(super) min: f64,
    #[prost(double, tag = "2")]
    pub(super) max: f64,
    #[prost(double, repeated, tag = "6")]
    pub(super) bucket_limit: Vec<f64>,
    #[prost(double, repeated, tag = "7")]
    pub(super) bucket: Vec<f64>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SummaryMetadata {
    #[prost(message, optional, tag = "1")]
    pub(super) plugin_data: Option<PluginData>,
    #[prost(string, tag = "2")]
    pub(super) display_name: String,
    #[prost(string, tag = "3")]
    pub(super) description: String,
    #[prost(int32, tag = "4")]
    pub(super) data_class: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct PluginData {
    #[prost(string, tag = "1")]
    pub(super) plugin_name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub(super) content: Vec<u8>,
}

/// Numbers are in `tensor_content`, or one by one in the list of their kind, whose last value represents all that follow.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct TensorProto {
    #[prost(int32, tag = "1")]
    pub(super) dtype: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) shape: Option<TensorShapeProto>,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) content: Vec<u8>,
    #[prost(int32, repeated, tag = "13")]
    pub(super) half_val: Vec<i32>,
    #[prost(float, repeated, tag = "5")]
    pub(super) float_val: Vec<f32>,
    #[prost(double, repeated, tag = "6")]
    pub(super) double_val: Vec<f64>,
    #[prost(int32, repeated, tag = "7")]
    pub(super) int_val: Vec<i32>,
    #[prost(bytes = "vec", repeated, tag = "8")]
    pub(super) string_val: Vec<Vec<u8>>,
    #[prost(int64, repeated, tag = "10")]
    pub(super) int64_val: Vec<i64>,
    #[prost(bool, repeated, tag = "11")]
    pub(super) bool_val: Vec<bool>,
    #[prost(uint32, repeated, tag = "16")]
    pub(super) uint32_val: Vec<u32>,
    #[prost(uint64, repeated, tag = "17")]
    pub(super) uint64_val: Vec<u64>,
}

impl TensorProto {
    /// Numbers from their bytes.
    pub(super) fn numbers(dtype: HostDType, shape: &[usize], content: Vec<u8>) -> Self {
        let shape = Some(TensorShapeProto::new(shape));
        TensorProto { dtype: dtype.number(), shape, content, ..TensorProto::default() }
    }

    pub(super) fn strings(shape: &[usize], string_val: Vec<Vec<u8>>) -> Self {
        let shape = Some(TensorShapeProto::new(shape));
        TensorProto {
            dtype: HostDType::String.number(),
            shape,
            string_val,
            ..TensorProto::default()
        }
    }
}

/// The plugin of TensorBoard that displays a value, with its own data. As in TensorFlow, the class of the data is left open:
/// TensorBoard sets it for the plugins that it knows.
pub(super) fn metadata(plugin: &str, content: &[u8]) -> SummaryMetadata {
    let plugin_data = PluginData { plugin_name: plugin.to_string(), content: content.to_vec() };
    SummaryMetadata { plugin_data: Some(plugin_data), ..SummaryMetadata::default() }
}
