//! The messages of TensorFlow's `tensor_bundle.proto` and of those that it includes, with the same layout.

/// The value of the empty key.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct BundleHeader {
    #[prost(int32, tag = "1")]
    pub num_shards: i32,
    /// 0: lowest byte first.
    #[prost(int32, tag = "2")]
    pub endianness: i32,
    #[prost(message, optional, tag = "3")]
    pub version: Option<Version>,
}

/// `VersionDef`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Version {
    #[prost(int32, tag = "1")]
    pub producer: i32,
    #[prost(int32, tag = "2")]
    pub min_consumer: i32,
    #[prost(int32, repeated, tag = "3")]
    pub bad_consumers: Vec<i32>,
}

/// The value of a tensor's name.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct BundleEntry {
    /// The number of a [`HostDType`](crate::HostDType).
    #[prost(int32, tag = "1")]
    pub dtype: i32,
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShape>,
    #[prost(int32, tag = "3")]
    pub shard_id: i32,
    #[prost(int64, tag = "4")]
    pub offset: i64,
    #[prost(int64, tag = "5")]
    pub size: i64,
    #[prost(fixed32, tag = "6")]
    pub crc32c: u32,
    /// For a tensor in slices, which have separate entries: the part that each covers.
    #[prost(message, repeated, tag = "7")]
    pub slices: Vec<TensorSlice>,
}

/// `TensorShapeProto`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TensorShape {
    #[prost(message, repeated, tag = "2")]
    pub dim: Vec<Dim>,
    #[prost(bool, tag = "3")]
    pub unknown_rank: bool,
}

/// The size of an axis, whose name TensorFlow leaves empty.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Dim {
    #[prost(int64, tag = "1")]
    pub size: i64,
}

/// `TensorSliceProto`.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct TensorSlice {
    #[prost(message, repeated, tag = "1")]
    pub extent: Vec<Extent>,
}

/// The part of one axis that a slice covers; without a length, the whole axis.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Extent {
    #[prost(int64, tag = "1")]
    pub start: i64,
    #[prost(int64, optional, tag = "2")]
    pub length: Option<i64>,
}
