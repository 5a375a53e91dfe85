//! The data of TensorBoard's plugins in the metadata of their values: hyperparameters, layouts, sounds.

use std::collections::BTreeMap;

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AudioPluginData {
    #[prost(int32, tag = "1")]
    pub(super) version: i32,
    /// 11 is WAV.
    #[prost(int32, tag = "2")]
    pub(super) encoding: i32,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HParamsPluginData {
    #[prost(int32, tag = "1")]
    pub(super) version: i32,
    #[prost(oneof = "HParamsData", tags = "2, 3, 4")]
    pub(super) data: Option<HParamsData>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum HParamsData {
    #[prost(message, tag = "2")]
    Experiment(Experiment),
    #[prost(message, tag = "3")]
    Start(SessionStart),
    #[prost(message, tag = "4")]
    End(SessionEnd),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Experiment {
    #[prost(double, tag = "3")]
    pub(super) time_created_secs: f64,
    #[prost(message, repeated, tag = "4")]
    pub(super) hparam_infos: Vec<HParamInfo>,
    #[prost(message, repeated, tag = "5")]
    pub(super) metric_infos: Vec<MetricInfo>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct HParamInfo {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) display_name: String,
    #[prost(string, tag = "3")]
    pub(super) description: String,
    /// 1 string, 2 bool, 3 number.
    #[prost(int32, tag = "4")]
    pub(super) kind: i32,
    #[prost(oneof = "DomainProto", tags = "5, 6")]
    pub(super) domain: Option<DomainProto>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum DomainProto {
    #[prost(message, tag = "5")]
    Discrete(ListValue),
    #[prost(message, tag = "6")]
    Interval(Interval),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Interval {
    #[prost(double, tag = "1")]
    pub(super) min_value: f64,
    #[prost(double, tag = "2")]
    pub(super) max_value: f64,
}

/// `google.protobuf.ListValue`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ListValue {
    #[prost(message, repeated, tag = "1")]
    pub(super) values: Vec<AnyValue>,
}

/// `google.protobuf.Value`.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct AnyValue {
    #[prost(oneof = "AnyKind", tags = "2, 3, 4")]
    pub(super) kind: Option<AnyKind>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum AnyKind {
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(string, tag = "3")]
    Text(String),
    #[prost(bool, tag = "4")]
    Bool(bool),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MetricInfo {
    #[prost(message, optional, tag = "1")]
    pub(super) name: Option<MetricName>,
    #[prost(string, tag = "3")]
    pub(super) display_name: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct MetricName {
    #[prost(string, tag = "1")]
    pub(super) group: String,
    #[prost(string, tag = "2")]
    pub(super) tag: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SessionStart {
    #[prost(btree_map = "string, message", tag = "1")]
    pub(super) hparams: BTreeMap<String, AnyValue>,
    #[prost(string, tag = "4")]
    pub(super) group_name: String,
    #[prost(double, tag = "5")]
    pub(super) start_time_secs: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct SessionEnd {
    /// 1 success, 2 failure, 3 running.
    #[prost(int32, tag = "1")]
    pub(super) status: i32,
    #[prost(double, tag = "2")]
    pub(super) end_time_secs: f64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct LayoutProto {
    #[prost(int32, tag = "1")]
    pub(super) version: i32,
    #[prost(message, repeated, tag = "2")]
    pub(super) category: Vec<CategoryProto>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct CategoryProto {
    #[prost(string, tag = "1")]
    pub(super) title: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) chart: Vec<ChartProto>,
    #[prost(bool, tag = "3")]
    pub(super) closed: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ChartProto {
    #[prost(string, tag = "1")]
    pub(super) title: String,
    #[prost(oneof = "ChartContent", tags = "2, 3")]
    pub(super) content: Option<ChartContent>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum ChartContent {
    #[prost(message, tag = "2")]
    Multiline(Multiline),
    #[prost(message, tag = "3")]
    Margin(Margin),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Multiline {
    #[prost(string, repeated, tag = "1")]
    pub(super) tag: Vec<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Margin {
    #[prost(message, repeated, tag = "1")]
    pub(super) series: Vec<Series>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Series {
    #[prost(string, tag = "1")]
    pub(super) value: String,
    #[prost(string, tag = "2")]
    pub(super) lower: String,
    #[prost(string, tag = "3")]
    pub(super) upper: String,
}
