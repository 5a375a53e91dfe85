//! Profiles: every kernel that ran and its time, as a table and as a trace.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::files;
use crate::support::sort::sort_by;
use crate::support::text_table::{self, Column};

/// The record of [`Device::profile`](crate::Device::profile): every kernel that ran, and how long it took.
///
/// Prints as a table with one line for each kind of kernel, most expensive first.
#[derive(Debug, Clone)]
pub struct Profile {
    adapter: String,
    clock: Clock,
    kernels: Vec<ProfiledKernel>,
}

/// The clock that the times come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clock {
    /// The device's, between the dispatches of one pass.
    InsidePass = 1,
    /// The device's, around passes of one dispatch each.
    Pass,
    /// The host's, around submissions of one dispatch each.
    Host,
}

/// One run of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfiledKernel {
    /// The kernel's name.
    pub label: String,
    /// The start time, relative to the start of the first kernel.
    pub start: Duration,
    /// The kernel's duration.
    pub duration: Duration,
    /// Total bytes of the tensors that the kernel binds.
    pub bytes: u64,
    /// The number of additions and multiplications, if known.
    pub flops: Option<u64>,
}

impl Profile {
    pub(super) fn new(adapter: String, clock: Clock, kernels: Vec<ProfiledKernel>) -> Self {
        Profile { adapter, clock, kernels }
    }

    /// Every kernel run, in order of submission.
    pub fn kernels(&self) -> &[ProfiledKernel] {
        &self.kernels
    }

    /// The total time of all kernels, without the gaps between them.
    pub fn total(&self) -> Duration {
        self.kernels.iter().map(|kernel| kernel.duration).sum()
    }

    /// Writes the kernels as a trace that [Perfetto](https://ui.perfetto.dev) and Chrome's `chrome://tracing` can open: one bar
    /// for each run.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written.
    pub fn write_chrome_trace(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let trace = self.chrome_trace();
        files::replace(path, |file| file.write_all(trace.as_bytes()))
            .map_err(|error| Error::io(path, error))
    }

    /// The trace that [`Profile::write_chrome_trace`] writes, as text.
    pub fn chrome_trace(&self) -> String {
        let mut text = String::from("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
        text += "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{\"name\":";
        json_string(&mut text, &self.adapter);
        text += "}}";
        for kernel in &self.kernels {
            text += ",\n{\"name\":";
            json_string(&mut text, &kernel.label);
            text += ",\"cat\":\"kernel\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":";
            json_microseconds(&mut text, kernel.start);
            text += ",\"dur\":";
            json_microseconds(&mut text, kernel.duration);
            text += &format!(",\"args\":{{\"bytes\":{}", kernel.bytes);
            if let Some(flops) = kernel.flops {
                text += &format!(",\"flops\":{flops}");
            }
            text += "}}";
        }
        text += "\n]}\n";
        text
    }
}

fn json_string(text: &mut String, value: &str) {
    text.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            c if c < ' ' => *text += &format!("\\u{:04x}", u32::from(c)),
            c => text.push(c),
        }
    }
    text.push('"');
}

/// Whole nanoseconds as microseconds, exactly.
fn json_microseconds(text: &mut String, time: Duration) {
    let nanos = time.as_nanos() as u64;
    *text += &format!("{}.{:03}", nanos / 1000, nanos % 1000);
}

/// The runs of one kind of kernel together.
#[derive(Default)]
struct Sum {
    calls: usize,
    time: Duration,
    bytes: u64,
    /// `None` if one of the runs has not been counted.
    flops: Option<u64>,
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.total();
        let plural = if self.kernels.len() == 1 { "" } else { "s" };
        let milliseconds = |time: Duration| format!("{:.3}", time.as_secs_f64() * 1e3);
        let clock = match self.clock {
            Clock::InsidePass => "the device's clock between kernels",
            Clock::Pass => "the device's clock around passes of one kernel each",
            Clock::Host => {
                "no timestamps: the host's clock around submissions of one kernel each, waits included"
            }
        };
        let kernels = self.kernels.len();
        writeln!(f, "{kernels} kernel{plural} in {} ms on {}", milliseconds(total), self.adapter)?;
        writeln!(f, "({clock})")?;

        let mut sums: Vec<(&str, Sum)> = Vec::new();
        for kernel in &self.kernels {
            let at = sums.iter().position(|(label, _)| *label == kernel.label);
            let at = at.unwrap_or_else(|| {
                sums.push((&kernel.label, Sum { flops: Some(0), ..Sum::default() }));
                sums.len() - 1
            });
            let sum = &mut sums[at].1;
            sum.calls += 1;
            sum.time += kernel.duration;
            sum.bytes = sum.bytes.saturating_add(kernel.bytes);
            sum.flops = sum.flops.zip(kernel.flops).map(|(a, b)| a.saturating_add(b));
        }
        // The most expensive first; equal times are sorted by name.
        sort_by(&mut sums, |(a, x), (b, y)| y.time.cmp(&x.time).then(a.cmp(b)));
        let columns = [
            Column::left("kernel"),
            Column::right("calls"),
            Column::right("total ms"),
            Column::right("mean us"),
            Column::right("share"),
            Column::right("GB/s"),
            Column::right("GFLOP/s"),
        ];
        let rows = sums.into_iter().map(|(label, sum)| {
            let seconds = sum.time.as_secs_f64();
            let share = 100.0 * seconds / total.as_secs_f64();
            let rate = |n: Option<u64>| match n {
                Some(n) if seconds > 0.0 => format!("{:.1}", n as f64 / 1e9 / seconds),
                _ => "-".to_string(),
            };
            vec![
                label.to_string(),
                sum.calls.to_string(),
                milliseconds(sum.time),
                format!("{:.1}", seconds * 1e6 / sum.calls as f64),
                if share.is_finite() { format!("{share:.1}%") } else { "-".to_string() },
                rate(Some(sum.bytes)),
                rate(sum.flops),
            ]
        });
        text_table::write(f, &columns, rows.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(label: &str, start: u64, nanos: u64, flops: Option<u64>) -> ProfiledKernel {
        ProfiledKernel {
            label: label.to_string(),
            start: Duration::from_nanos(start),
            duration: Duration::from_nanos(nanos),
            bytes: 3000,
            flops,
        }
    }

    fn profile() -> Profile {
        let kernels = vec![
            kernel("matmul", 0, 1_000, Some(8000)),
            kernel("a \"b\" \\\n", 1_500, 6_000, None),
            kernel("matmul", 8_000, 3_000, Some(8000)),
        ];
        Profile::new("adapter".into(), Clock::Pass, kernels)
    }

    #[test]
    fn the_table_adds_up_and_begins_with_the_costliest() {
        let text = profile().to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "3 kernels in 0.010 ms on adapter");
        assert_eq!(lines[1], "(the device's clock around passes of one kernel each)");
        // 6000 bytes and 16000 operations in 4 us; 3000 bytes in 6 us.
        let words = |at: usize| lines[at].split_whitespace().collect::<Vec<_>>();
        assert_eq!(words(2)[..3], ["kernel", "calls", "total"]);
        assert!(lines[3].starts_with("a "), "{text}");
        assert_eq!(
            words(lines.len() - 2)[..],
            ["1", "0.006", "6.0", "60.0%", "0.5", "-"][..],
            "{text}"
        );
        assert_eq!(words(lines.len() - 1), ["matmul", "2", "0.004", "2.0", "40.0%", "1.5", "4.0"]);
    }

    #[test]
    fn an_empty_profile_prints() {
        let text = Profile::new("adapter".into(), Clock::InsidePass, Vec::new()).to_string();
        assert!(text.starts_with("0 kernels in 0.000 ms on adapter\n"), "{text}");
    }

    #[test]
    fn the_trace_is_json() {
        let trace: serde_json::Value = serde_json::from_str(&profile().chrome_trace()).unwrap();
        let events = trace["traceEvents"].as_array().unwrap();
        assert_eq!(events.len(), 4);
        assert_eq!(events[0]["args"]["name"], "adapter");
        assert_eq!(events[2]["name"], "a \"b\" \\\n");
        assert_eq!(events[2]["ph"], "X");
        assert_eq!(events[2]["ts"], 1.5);
        assert_eq!(events[2]["dur"], 6.0);
        assert_eq!(events[3]["args"], serde_json::json!({ "bytes": 3000, "flops": 8000 }));
        assert!(events[2]["args"].get("flops").is_none());
    }
}
