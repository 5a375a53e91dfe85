//! The findings of a measurement, as a table.

use std::fmt;
use std::time::Duration;

use crate::dtype::rounded_text;
use crate::support::text_table::{self, Column};

/// The findings of [`Device::tune`](crate::Device::tune): for each op that it measured, the variants and their times.
///
/// Prints as a table with one line for each op.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TuningReport {
    ops: Vec<TunedOp>,
}

/// One op, with its attributes and the shapes of its inputs, and how fast its variants are.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TunedOp {
    /// The op, its attributes, and the dtypes and shapes of its inputs.
    pub op: String,
    /// The variant that plans use from now on.
    pub chosen: String,
    /// All variants. The first is the one that would be used without measuring.
    pub variants: Vec<TunedVariant>,
}

/// One way to compute an op.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TunedVariant {
    /// Its name, as in findings.
    pub name: String,
    /// Its usual time: the median, or the mean if the clock's resolution is too coarse. `None` if it was rejected
    /// before it was timed.
    pub time: Option<Duration>,
    /// Its results differed from those of the plain variant, or the driver rejected it.
    pub wrong: bool,
}

impl TuningReport {
    pub(crate) fn new(ops: Vec<TunedOp>) -> Self {
        TuningReport { ops }
    }

    /// The ops that were measured.
    pub fn ops(&self) -> &[TunedOp] {
        &self.ops
    }
}

impl TunedOp {
    /// The time of the variant with this name.
    fn time(&self, name: &str) -> Option<Duration> {
        self.variants.iter().find(|variant| variant.name == name)?.time
    }

    /// The speedup gained by measuring: the first choice's time divided by that of the chosen variant.
    pub fn gain(&self) -> Option<f64> {
        let first = self.variants.first()?.time?.as_secs_f64();
        let chosen = self.time(&self.chosen)?.as_secs_f64();
        (chosen > 0.0).then(|| first / chosen)
    }
}

impl fmt::Display for TuningReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} op{} measured",
            self.ops.len(),
            if self.ops.len() == 1 { "" } else { "s" }
        )?;
        let columns = [
            Column::left("op"),
            Column::left("chosen"),
            Column::right("us"),
            Column::left("instead of"),
            Column::right("us"),
            Column::right("gain"),
            Column::right("wrong"),
        ];
        let micros = |time: Option<Duration>| match time {
            Some(time) => rounded_text(time.as_secs_f64() * 1e6, 1),
            None => "-".to_string(),
        };
        let rows = self.ops.iter().map(|op| {
            let first = op.variants.first().map_or("", |variant| variant.name.as_str());
            vec![
                op.op.clone(),
                op.chosen.clone(),
                micros(op.time(&op.chosen)),
                first.to_string(),
                micros(op.time(first)),
                op.gain().map_or("-".to_string(), |gain| rounded_text(gain, 2)),
                op.variants.iter().filter(|variant| variant.wrong).count().to_string(),
            ]
        });
        text_table::write(f, &columns, rows.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_a_line_for_each_op() {
        let variant = |name: &str, micros: Option<u64>, wrong| TunedVariant {
            name: name.into(),
            time: micros.map(Duration::from_micros),
            wrong,
        };
        let op = TunedOp {
            op: "MatMul".into(),
            chosen: "b".into(),
            variants: vec![
                variant("a", Some(30), false),
                variant("b", Some(20), false),
                variant("c", None, true),
            ],
        };
        assert_eq!(op.gain(), Some(1.5));
        let text = TuningReport::new(vec![op]).to_string();
        let lines: Vec<Vec<&str>> = text.lines().map(|l| l.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["1", "op", "measured"]);
        assert_eq!(lines[2], ["MatMul", "b", "20.0", "a", "30.0", "1.50", "1"]);
        assert!(TuningReport::default().to_string().starts_with("0 ops measured\n"));
    }
}
