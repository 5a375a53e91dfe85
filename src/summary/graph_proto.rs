//! The messages of graphs and of execution times: TensorFlow's `graph.proto`, `config.proto` and `step_stats.proto`.

use std::collections::BTreeMap;

use crate::files::protobuf::{TensorShapeProto, VersionDef};

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GraphDef {
    #[prost(message, repeated, tag = "1")]
    pub(super) node: Vec<NodeDef>,
    #[prost(message, optional, tag = "4")]
    pub(super) versions: Option<VersionDef>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct NodeDef {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) op: String,
    #[prost(string, repeated, tag = "3")]
    pub(super) input: Vec<String>,
    #[prost(string, tag = "4")]
    pub(super) device: String,
    #[prost(btree_map = "string, message", tag = "5")]
    pub(super) attr: BTreeMap<String, AttrValue>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AttrValue {
    #[prost(oneof = "Attr", tags = "1, 2, 3")]
    pub(super) value: Option<Attr>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Attr {
    #[prost(message, tag = "1")]
    List(AttrList),
    #[prost(bytes = "vec", tag = "2")]
    Bytes(Vec<u8>),
    #[prost(int64, tag = "3")]
    Int(i64),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AttrList {
    #[prost(message, repeated, tag = "7")]
    pub(super) shape: Vec<TensorShapeProto>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct RunMetadata {
    #[prost(message, optional, tag = "1")]
    pub(super) step_stats: Option<StepStats>,
    #[prost(message, repeated, tag = "3")]
    pub(super) partition_graphs: Vec<GraphDef>,
    #[prost(message, repeated, tag = "4")]
    pub(super) function_graphs: Vec<FunctionGraphs>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct FunctionGraphs {
    #[prost(message, repeated, tag = "1")]
    pub(super) partition_graphs: Vec<GraphDef>,
    #[prost(message, optional, tag = "2")]
    pub(super) pre_optimization_graph: Option<GraphDef>,
    #[prost(message, optional, tag = "3")]
    pub(super) post_optimization_graph: Option<GraphDef>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StepStats {
    #[prost(message, repeated, tag = "1")]
    pub(super) dev_stats: Vec<DeviceStepStats>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct DeviceStepStats {
    #[prost(string, tag = "1")]
    pub(super) device: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) node_stats: Vec<NodeExecStats>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct NodeExecStats {
    #[prost(string, tag = "1")]
    pub(super) node_name: String,
    #[prost(int64, tag = "2")]
    pub(super) all_start_micros: i64,
    #[prost(int64, tag = "3")]
    pub(super) op_start_rel_micros: i64,
    #[prost(int64, tag = "4")]
    pub(super) op_end_rel_micros: i64,
    #[prost(int64, tag = "5")]
    pub(super) all_end_rel_micros: i64,
    #[prost(message, repeated, tag = "6")]
    pub(super) memory: Vec<AllocatorMemoryUsed>,
    #[prost(string, tag = "8")]
    pub(super) timeline_label: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AllocatorMemoryUsed {
    #[prost(string, tag = "1")]
    pub(super) allocator_name: String,
    #[prost(int64, tag = "2")]
    pub(super) total_bytes: i64,
}
