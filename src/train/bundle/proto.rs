//! The messages of TensorFlow's `tensor_bundle.proto` and of those that it includes, with the same layout.

use crate::files::protobuf::{TensorShapeProto, VersionDef};

/// The value of the empty key.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct BundleHeader {
    #[prost(int32, tag = "1")]
    pub(super) num_shards: i32,
    /// 0: lowest byte first.
    #[prost(int32, tag = "2")]
    pub(super) endianness: i32,
    #[prost(message, optional, tag = "3")]
    pub(super) version: Option<VersionDef>,
}

/// The value of a tensor's name.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct BundleEntry {
    /// The number of a [`HostDType`](crate::HostDType).
    #[prost(int32, tag = "1")]
    pub(super) dtype: i32,
    #[prost(message, optional, tag = "2")]
    pub(super) shape: Option<TensorShapeProto>,
    #[prost(int32, tag = "3")]
    pub(super) shard_id: i32,
    #[prost(int64, tag = "4")]
    pub(super) offset: i64,
    #[prost(int64, tag = "5")]
    pub(super) size: i64,
    #[prost(fixed32, tag = "6")]
    pub(super) crc32c: u32,
    /// For a tensor in slices, which have separate entries: the part that each covers.
    #[prost(message, repeated, tag = "7")]
    pub(super) slices: Vec<TensorSlice>,
}

/// `TensorSliceProto`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct TensorSlice {
    #[prost(message, repeated, tag = "1")]
    pub(super) extent: Vec<Extent>,
}

/// The part of one axis that a slice covers; without a length, the whole axis.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct Extent {
    #[prost(int64, tag = "1")]
    pub(super) start: i64,
    #[prost(int64, optional, tag = "2")]
    pub(super) length: Option<i64>,
}
