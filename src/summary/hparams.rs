//! [`hparams`]: the hyperparameters of a training run and its outcome, for TensorBoard's table of runs.

use std::collections::BTreeMap;

use prost::Message;

use super::batch::wall_time;
use super::payload::Payload;
use super::plugin_proto::{
    AnyKind, AnyValue, DomainProto, Experiment, HParamInfo, HParamsData, HParamsPluginData,
    Interval, ListValue, MetricInfo, MetricName, SessionEnd, SessionStart,
};
use super::proto::{TensorProto, metadata};
use super::scope::write;
use super::step::Step;
use crate::error::Result;
use crate::host_array::HostDType;

/// The value of a hyperparameter: a number, a text, or a Boolean.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum HParamValue {
    /// A number.
    Number(f64),
    /// A text.
    Text(String),
    /// A Boolean.
    Bool(bool),
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl From<$t> for HParamValue {
            fn from(number: $t) -> Self {
                HParamValue::Number(number as f64)
            }
        }
    )*};
}
numbers!(f32, f64, i32, i64, u32, u64, usize);

impl From<bool> for HParamValue {
    fn from(on: bool) -> Self {
        HParamValue::Bool(on)
    }
}

impl From<&str> for HParamValue {
    fn from(text: &str) -> Self {
        HParamValue::Text(text.to_string())
    }
}

impl From<String> for HParamValue {
    fn from(text: String) -> Self {
        HParamValue::Text(text)
    }
}

impl HParamValue {
    fn proto(&self) -> AnyValue {
        let kind = match self {
            HParamValue::Number(number) => AnyKind::Number(*number),
            HParamValue::Text(text) => AnyKind::Text(text.clone()),
            HParamValue::Bool(on) => AnyKind::Bool(*on),
        };
        AnyValue { kind: Some(kind) }
    }

    /// The plugin's number of the type.
    fn kind(&self) -> i32 {
        match self {
            HParamValue::Text(_) => 1,
            HParamValue::Bool(_) => 2,
            HParamValue::Number(_) => 3,
        }
    }
}

/// The hyperparameters of one training run, and its name.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::summary::{self, HParams, MemoryWriter, TrialStatus};
/// let writer = MemoryWriter::new();
/// let _default = writer.as_default();
/// summary::hparams(HParams::new().with("units", 16).with("optimizer", "adam").with("dropout", 0.1))?;
/// summary::scalar("accuracy", 0.95, 1)?;
/// summary::hparams_end(TrialStatus::Success)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct HParams {
    values: BTreeMap<String, HParamValue>,
    trial_id: Option<String>,
}

impl HParams {
    /// Without hyperparameters.
    pub fn new() -> Self {
        HParams::default()
    }

    /// Adds a hyperparameter, or replaces one of the same name.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<HParamValue>) -> Self {
        self.values.insert(name.to_string(), value.into());
        self
    }

    /// The name of the run; runs with the same name are a group. Without a name, runs with equal hyperparameters are a
    /// group.
    #[must_use]
    pub fn trial_id(mut self, id: impl Into<String>) -> Self {
        self.trial_id = Some(id.into());
        self
    }

    /// A name derived from the hyperparameters: FNV-1a of their text, in 128 bits.
    fn group(&self) -> String {
        let text = format!("{:?}", self.values);
        let step = |hash: u128, byte: u8| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000000001000000000000000000013b)
        };
        let hash = text.bytes().fold(0x6c62272e07bb014262b821756295c58d, step);
        format!("{hash:032x}")
    }
}

/// A hyperparameter that an experiment varies.
#[derive(Debug, Clone)]
pub struct HParam {
    info: HParamInfo,
}

impl HParam {
    /// A hyperparameter without a domain.
    pub fn new(name: &str) -> Self {
        HParam { info: HParamInfo { name: name.to_string(), ..HParamInfo::default() } }
    }

    /// The allowed values.
    #[must_use]
    pub fn discrete<V: Into<HParamValue>>(mut self, values: impl IntoIterator<Item = V>) -> Self {
        let values: Vec<HParamValue> = values.into_iter().map(Into::into).collect();
        self.info.kind = values.first().map_or(0, HParamValue::kind);
        let values = values.iter().map(HParamValue::proto).collect();
        self.info.domain = Some(DomainProto::Discrete(ListValue { values }));
        self
    }

    /// The minimum and the maximum.
    #[must_use]
    pub fn interval(mut self, min_value: f64, max_value: f64) -> Self {
        self.info.kind = 3;
        self.info.domain = Some(DomainProto::Interval(Interval { min_value, max_value }));
        self
    }

    /// The name in the table.
    #[must_use]
    pub fn display_name(mut self, name: &str) -> Self {
        self.info.display_name = name.to_string();
        self
    }

    /// The description that TensorBoard shows, in Markdown.
    #[must_use]
    pub fn description(mut self, text: &str) -> Self {
        self.info.description = text.to_string();
        self
    }
}

/// A metric by which runs are compared: the tag of a scalar.
#[derive(Debug, Clone)]
pub struct HParamMetric {
    info: MetricInfo,
}

impl HParamMetric {
    /// The last value of the scalar `tag` in the run's own folder.
    pub fn new(tag: &str) -> Self {
        let name = MetricName { group: String::new(), tag: tag.to_string() };
        HParamMetric { info: MetricInfo { name: Some(name), display_name: String::new() } }
    }

    /// The subfolder of the run's folder that contains the scalar, such as "validation".
    #[must_use]
    pub fn group(mut self, folder: &str) -> Self {
        if let Some(name) = &mut self.info.name {
            name.group = folder.to_string();
        }
        self
    }

    /// The name in the table.
    #[must_use]
    pub fn display_name(mut self, name: &str) -> Self {
        self.info.display_name = name.to_string();
        self
    }
}

/// The outcome of a training run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrialStatus {
    /// Success.
    Success = 1,
    /// Failure.
    Failure = 2,
    /// Still running.
    Running = 3,
}

/// Writes the hyperparameters of the run to whose folder the writer writes, for the tab HParams (`hp.hparams`).
///
/// # Errors
/// As [`scalar`](super::scalar), without shape and step.
pub fn hparams(hparams: HParams) -> Result<bool> {
    let group_name = hparams.trial_id.clone().unwrap_or_else(|| hparams.group());
    let values = hparams.values.iter().map(|(name, value)| (name.clone(), value.proto()));
    let start =
        SessionStart { hparams: values.collect(), group_name, start_time_secs: wall_time() };
    record("hparams", "_hparams_/session_start_info", HParamsData::Start(start))
}

/// Writes which hyperparameters an experiment varies and which metrics it measures, once, to the parent folder of the
/// runs (`hp.hparams_config`).
///
/// # Errors
/// As [`hparams`].
pub fn hparams_config(
    hparams: impl IntoIterator<Item = HParam>,
    metrics: impl IntoIterator<Item = HParamMetric>,
) -> Result<bool> {
    let experiment = Experiment {
        time_created_secs: wall_time(),
        hparam_infos: hparams.into_iter().map(|hparam| hparam.info).collect(),
        metric_infos: metrics.into_iter().map(|metric| metric.info).collect(),
    };
    record("hparams_config", "_hparams_/experiment", HParamsData::Experiment(experiment))
}

/// Writes the outcome of the run.
///
/// # Errors
/// As [`hparams`].
pub fn hparams_end(status: TrialStatus) -> Result<bool> {
    let end = SessionEnd { status: status as i32, end_time_secs: wall_time() };
    record("hparams_end", "_hparams_/session_end_info", HParamsData::End(end))
}

fn record(function: &str, tag: &str, data: HParamsData) -> Result<bool> {
    let data = HParamsPluginData { version: 0, data: Some(data) };
    // As TensorFlow: a tensor without elements, because a summary needs one.
    write(function, tag, String::new(), Step::from(0), false, || {
        let shown = metadata("hparams", &data.encode_to_vec());
        Ok(Payload::Made(shown, TensorProto::numbers(HostDType::F32, &[0], Vec::new())))
    })
}
