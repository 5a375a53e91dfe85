//! TensorFlow's names of devices: `/job:localhost/replica:0/task:0/device:GPU:0`, and the shorter forms that programs write.

use std::fmt;

use crate::error::{DeviceFault, Error, Result, message};

/// The kinds that TensorFlow's names distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    Cpu,
    Gpu,
}

impl Kind {
    pub(crate) const ALL: [Kind; 2] = [Kind::Cpu, Kind::Gpu];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Cpu => "CPU",
            Kind::Gpu => "GPU",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        Kind::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(text))
    }
}

/// A device of this process, as in `/device:GPU:0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct DeviceName {
    pub(crate) kind: Kind,
    pub(crate) index: usize,
}

/// The prefix of the devices of a process that is the only one.
const TASK: &str = "/job:localhost/replica:0/task:0";

impl DeviceName {
    /// Reads a name in any of TensorFlow's forms: `/job:localhost/replica:0/task:0/device:GPU:0`, `/device:GPU:0`, `/gpu:0`,
    /// `GPU:0` or `gpu`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let refused = |what: &str| {
            Err(Error::Device(
                DeviceFault::NoAdapter,
                message!(
                    "device: {text:?} {what}. Write a name such as \"/gpu:0\", \"/cpu:0\" or \
                     \"{TASK}/device:GPU:0\"; tf::config::list_logical_devices lists the devices."
                ),
            ))
        };
        let mut device = None;
        for part in text.trim().trim_start_matches('/').split('/') {
            let fields: Vec<&str> = part.split(':').collect();
            let number = |text: &str| match text.is_empty() || text.len() > 9 {
                false => {
                    text.parse::<usize>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()))
                }
                true => None,
            };
            let (kind, index) = match fields[..] {
                ["job", "localhost"] | ["replica", "0"] | ["task", "0"] => continue,
                ["job" | "replica" | "task", _] => {
                    return refused(&format!("names another process, as this one is {TASK}"));
                }
                ["device", kind] | [kind] => (kind, None),
                ["device", kind, index] | [kind, index] => (kind, Some(index)),
                _ => return refused("is not the name of a device"),
            };
            let Some(kind) = Kind::parse(kind) else {
                return refused(&format!(
                    "names the kind {kind:?}, and there are only CPU and GPU"
                ));
            };
            let index = match index {
                // Any device of the kind will do.
                None | Some("*") => 0,
                Some(index) => match number(index) {
                    Some(index) => index,
                    None => {
                        return refused(&format!("has the index {index:?}, which is not a number"));
                    }
                },
            };
            if device.replace(DeviceName { kind, index }).is_some() {
                return refused("names two devices");
            }
        }
        match device {
            Some(device) => Ok(device),
            None => refused("names no device"),
        }
    }

    /// The name with the process in front.
    pub(crate) fn full(self) -> String {
        format!("{TASK}{self}")
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/device:{}:{}", self.kind.name(), self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_of_tensorflow_are_read() {
        let gpu = |index| DeviceName { kind: Kind::Gpu, index };
        for (text, name) in [
            ("/gpu:0", gpu(0)),
            ("/GPU:1", gpu(1)),
            ("GPU:12", gpu(12)),
            ("gpu", gpu(0)),
            ("/device:GPU:2", gpu(2)),
            ("/device:GPU:*", gpu(0)),
            ("/job:localhost/replica:0/task:0/device:GPU:3", gpu(3)),
            ("/job:localhost/device:CPU:1", DeviceName { kind: Kind::Cpu, index: 1 }),
            (" /cpu:0 ", DeviceName { kind: Kind::Cpu, index: 0 }),
        ] {
            assert_eq!(DeviceName::parse(text).unwrap(), name, "{text}");
        }
        assert_eq!(gpu(1).full(), "/job:localhost/replica:0/task:0/device:GPU:1");
    }

    #[test]
    fn other_texts_are_errors_that_say_what_a_name_is() {
        for (text, what) in [
            ("", "names the kind \"\", and there are only CPU and GPU"),
            ("nonsense", "names the kind \"nonsense\""),
            ("/tpu:0", "names the kind \"tpu\""),
            ("/gpu:", "has the index \"\", which is not a number"),
            ("/gpu:-1", "has the index \"-1\""),
            ("/gpu:+1", "has the index \"+1\""),
            ("/gpu:99999999999999999999", "has the index \"99999999999999999999\""),
            ("/job:localhost", "names no device"),
            (
                "/job:worker/replica:0/task:1/device:GPU:0",
                "names another process, as this one is /job:localhost",
            ),
            ("/gpu:0/cpu:0", "names two devices"),
            ("/a:b:c:d", "is not the name of a device"),
        ] {
            let error = DeviceName::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("device: {text:?} {what}")), "{error}");
            assert!(error.contains("Write a name such as \"/gpu:0\""), "{error}");
        }
    }
}
