//! Protobuf messages of TensorFlow that several of its formats contain, with the same layout.

/// `TensorShapeProto`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct TensorShapeProto {
    #[prost(message, repeated, tag = "2")]
    pub(crate) dim: Vec<Dim>,
    #[prost(bool, tag = "3")]
    pub(crate) unknown_rank: bool,
}

/// The size of an axis, whose name TensorFlow leaves empty.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct Dim {
    #[prost(int64, tag = "1")]
    pub(crate) size: i64,
}

/// `VersionDef`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(crate) struct VersionDef {
    #[prost(int32, tag = "1")]
    pub(crate) producer: i32,
    #[prost(int32, tag = "2")]
    pub(crate) min_consumer: i32,
    #[prost(int32, repeated, tag = "3")]
    pub(crate) bad_consumers: Vec<i32>,
}

/// The maximum number of axes of TensorFlow's shapes.
pub(crate) const MOST_AXES: usize = 254;

impl TensorShapeProto {
    pub(crate) fn new(shape: &[usize]) -> Self {
        let dim = |&size: &usize| Dim { size: size as i64 };
        TensorShapeProto { dim: shape.iter().map(dim).collect(), unknown_rank: false }
    }
}
