//! Golden cases: runs them in three ways, compares and counts. `tests/data/README.md` describes the output of a family's test.

pub mod call;
pub mod derivatives;
pub mod exceptions;
pub mod keras;
pub mod missing;
pub mod run;
pub mod sequence_layers;
pub mod sheet;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::io::Write as _;

use exceptions::EXCEPTIONS;
use run::{Fate, Way};
use sheet::Excused;
use wgrad::Device;

use super::oracle::{Case, Oracle};
use super::{calls, driver, oracle, root};

/// The results of a family's cases.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub run: usize,
    /// Cases by the reason why they did not run, and their ops.
    pub listed: BTreeMap<String, BTreeMap<String, usize>>,
    /// The entries of [`missing::MISSING`] that matched a case.
    pub used: BTreeSet<(String, String)>,
    /// Elements by the index of the exception that excuses them.
    pub excused: BTreeMap<usize, usize>,
    pub failures: Vec<String>,
}

impl Tally {
    pub fn listed(&self) -> usize {
        self.listed.values().flat_map(BTreeMap::values).sum()
    }

    pub fn excused(&self) -> usize {
        self.excused.values().sum()
    }

    pub fn list(&mut self, what: impl Into<String>, reason: impl Into<String>) {
        *self.listed.entry(reason.into()).or_default().entry(what.into()).or_default() += 1;
    }

    pub fn add(&mut self, other: &Tally) {
        self.run += other.run;
        self.used.extend(other.used.iter().cloned());
        for (reason, ops) in &other.listed {
            for (op, count) in ops {
                let own = self.listed.entry(reason.clone()).or_default();
                *own.entry(op.clone()).or_default() += count;
            }
        }
        for (exception, count) in &other.excused {
            *self.excused.entry(*exception).or_default() += count;
        }
        self.failures.extend(other.failures.iter().cloned());
    }

    /// The line that a program may search for.
    pub fn summary(&self, name: &str) -> String {
        format!(
            "oracle: {name}: {} run, {} listed, {} elements excused, {} failed\n",
            self.run,
            self.listed(),
            self.excused(),
            self.failures.len()
        )
    }

    /// The summary with everything that it counts except the cases that ran well.
    pub fn report(&self, name: &str) -> String {
        let mut text = self.summary(name);
        for (reason, ops) in &self.listed {
            let count: usize = ops.values().sum();
            let ops: Vec<String> = ops.iter().map(|(op, n)| format!("{op} ({n})")).collect();
            _ = writeln!(text, "oracle: {name}: listed {count}: {reason}: {}", ops.join(", "));
        }
        for (exception, count) in &self.excused {
            let reason = EXCEPTIONS[*exception].reason;
            _ = writeln!(text, "oracle: {name}: excused {count} elements: {reason}");
        }
        for failure in &self.failures {
            _ = writeln!(text, "oracle: {name}: failed: {failure}");
        }
        text
    }
}

/// Prints even if the test's output is captured.
pub fn print(text: &str) {
    _ = std::io::stdout().lock().write_all(format!("\n{text}").as_bytes());
}

/// Runs all cases of a family in all ways.
pub fn run_family(golden: &Oracle, family: &str) -> Tally {
    let mut tally = Tally::default();
    let (fused, unfused) = (Device::new().unwrap(), Device::new().unwrap());
    fused.set_fusion(true);
    unfused.set_fusion(false);
    let cases = golden.cases(family);
    for case in &cases {
        let mut excused = Excused::new();
        let mut fate = Fate::Run;
        let mut failures = Vec::new();
        for way in Way::ALL {
            let device = if way == Way::Unfused { &unfused } else { &fused };
            let (came, misses) = run::run(golden, case, device, way, &mut excused);
            fate = came;
            let reported = |miss| format!("{} ({}) {way}, {miss}", case.name, case.op);
            failures.extend(misses.into_iter().map(reported));
            if matches!(fate, Fate::Lacks(_)) {
                break;
            }
        }
        for (exception, ..) in excused.keys() {
            *tally.excused.entry(*exception).or_default() += 1;
        }
        enter(&mut tally, case, &fate);
        tally.failures.extend(failures);
    }
    let adapter = fused.adapter().name.clone();
    for (i, exception) in EXCEPTIONS.iter().enumerate() {
        let about = cases
            .iter()
            .any(|case| exception.ops.contains(&case.op.as_str()) && case.special_values);
        // A hostile driver may flush numbers that the real adapter does not.
        let seen =
            !driver::is_hostile() && exception.seen_on.iter().any(|name| adapter.contains(name));
        if about && seen && !tally.excused.contains_key(&i) {
            let (ops, reason) = (exception.ops.join(", "), exception.reason);
            tally.failures.push(format!("{ops}: nothing is excused any more because \"{reason}\""));
        }
    }
    tally
}

/// Counts a case by its fate. A case that the tables do not know is a failure, and so is an entry that is not needed.
pub fn enter(tally: &mut Tally, case: &Case, fate: &Fate) {
    let (Fate::Lacks(what) | Fate::Composed(what)) = fate else {
        tally.run += 1;
        if missing::reason(&case.op, "").is_some() {
            let op = &case.op;
            tally.failures.push(format!("{} ran, and {op} is in MISSING", case.name));
        }
        return;
    };
    tally.used.insert((case.op.clone(), what.clone()));
    let name = if what.is_empty() { case.op.clone() } else { format!("{} {what}", case.op) };
    match missing::reason(&case.op, what) {
        Some(reason) => tally.list(name, reason),
        None => {
            tally.list(&name, "unknown");
            let why = "has no call in tests/support/calls.rs, and is not in MISSING";
            tally.failures.push(format!("{}: {name} {why}", case.name));
        }
    }
}
