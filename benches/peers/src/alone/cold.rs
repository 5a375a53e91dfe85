//! Programs that run once with empty caches: fused, and with one kernel per op.

use std::cmp::Ordering;
use std::time::Duration;

use serde_json::Value;

use super::table::Table;
use super::{Bench, MODELS, Outcome, difference, outcome, programs};
use crate::harness;
use crate::process::Engine;
use crate::report::digits;

/// The permitted difference between results of recurrences, relative to the largest number.
const TOLERANCE: f64 = 1e-4;

/// The name of each way to run, and its environment.
fn ways() -> [(&'static str, Vec<(String, String)>); 2] {
    [("fused", Vec::new()), ("single", vec![("WGRAD_FUSION".to_owned(), "0".to_owned())])]
}

pub fn measure(bench: &Bench) -> Vec<Table> {
    let mut tables = Vec::new();
    if programs::ALL.iter().any(|(name, ..)| bench.wants(&format!("cold_{name}"))) {
        tables.push(all_programs(bench));
    }
    if bench.wants("cold_models") {
        println!();
        tables.push(all_models(bench));
    }
    if bench.wants("cold_recurrences") {
        println!();
        tables.push(all_recurrences(bench));
    }
    tables
}

fn all_programs(bench: &Bench) -> Table {
    let limit = bench.limit(60);
    let mut table = Table::new(&[
        "program, empty caches",
        "fused, s",
        "single, s",
        "fused / single",
        "planning, s",
        "pipelines",
        "pipelines single",
        "plans",
        "plans single",
        "difference",
    ]);
    let mut totals = [0.0; 2];
    let mut count = 0;
    for (name, title, _) in programs::ALL {
        let case = format!("cold_{name}");
        if !bench.wants(&case) {
            continue;
        }
        let runs = in_turn(bench, &case, limit);
        let seconds = runs.each_ref().map(|run| number(run.done()?, "seconds"));
        if let [Some(fused), Some(single)] = seconds {
            totals = [totals[0] + fused, totals[1] + single];
            count += 1;
        }
        let mut cells = vec![title.to_owned()];
        for (run, seconds) in runs.iter().zip(seconds) {
            cells.push(match run {
                Outcome::Done(_) => seconds.map(digits).unwrap_or_default(),
                Outcome::Late => format!("> {}", limit.as_secs()),
                Outcome::Failed(_) => "failed".to_owned(),
            });
        }
        cells.push(quotient(seconds));
        let planning = runs[0].done().and_then(|said| number(said, "planning"));
        cells.push(planning.map(digits).unwrap_or_default());
        for key in ["pipelines", "plans"] {
            for run in &runs {
                cells.push(run.done().map(|said| said[key].to_string()).unwrap_or_default());
            }
        }
        cells.push(match &runs {
            [Outcome::Done(fused), Outcome::Done(single)] => {
                format!("{:.1e}", difference(&fused["results"], &single["results"]))
            }
            _ => String::new(),
        });
        table.row(cells);
        for (run, (way, _)) in runs.iter().zip(ways()) {
            if let Outcome::Failed(error) = run {
                table.note(format!("{title}, {way}: {error}"));
            }
        }
    }
    let mut cells = vec![format!("all that ended both ways ({count})")];
    cells.extend(totals.map(digits));
    cells.push(quotient(totals.map(Some)));
    cells.resize(10, String::new());
    table.row(cells);
    table
}

/// Many small models, each trained for three steps: one process per way.
fn all_models(bench: &Bench) -> Table {
    let limit = bench.limit(600);
    let mut table = Table::new(&[
        "small models, three steps each, empty caches",
        "fused, s",
        "single, s",
        "fused / single",
        "planning, s",
        "pipelines",
        "pipelines single",
        "plans",
        "plans single",
        "difference",
    ]);
    let [mlps, conv_nets] = MODELS;
    let title = format!("{mlps} MLPs, {conv_nets} conv nets");
    let runs = in_turn(bench, "cold_models", limit);
    for (run, (way, _)) in runs.iter().zip(ways()) {
        match run {
            Outcome::Done(_) => {}
            Outcome::Late => table.note(format!("{title}, {way}: > {} s", limit.as_secs())),
            Outcome::Failed(error) => table.note(format!("{title}, {way}: {error}")),
        }
    }
    let [Outcome::Done(fused), Outcome::Done(single)] = &runs else { return table };
    let seconds = [fused, single].map(|said| number(said, "seconds"));
    let mut cells = vec![title];
    cells.extend(seconds.iter().map(|seconds| seconds.map(digits).unwrap_or_default()));
    cells.push(quotient(seconds));
    cells.push(number(fused, "planning").map(digits).unwrap_or_default());
    for key in ["pipelines", "plans"] {
        cells.extend([fused, single].map(|said| said[key].to_string()));
    }
    cells.push(format!("{:.1e}", difference(&fused["results"], &single["results"])));
    table.row(cells);
    table
}

/// Runs a program alternately in both ways, as often as requested. Returns for each way the run with the median time, or the
/// first run that did not end.
fn in_turn(bench: &Bench, case: &str, limit: Duration) -> [Outcome<Value>; 2] {
    let mut runs = [Vec::new(), Vec::new()];
    for _ in 0..bench.options.repetitions.unwrap_or(1) {
        for (runs, (_, env)) in runs.iter_mut().zip(ways()) {
            if runs.iter().all(|run: &Outcome<Value>| run.done().is_some()) {
                runs.push(bench.ask_cold(case, &[], &env, limit));
            }
        }
    }
    runs.map(|mut runs| {
        let time = |run: &Outcome<Value>| run.done().and_then(|said| number(said, "seconds"));
        // A run that did not end has no time, and is sorted first.
        runs.sort_by(|a, b| time(a).partial_cmp(&time(b)).unwrap_or(Ordering::Equal));
        let at = if time(&runs[0]).is_none() { 0 } else { runs.len() / 2 };
        runs.swap_remove(at)
    })
}

/// One process per way; they run the same recurrence alternately. A process that ends or takes too long is replaced.
fn all_recurrences(bench: &Bench) -> Table {
    let limit = bench.limit(60);
    let count = bench.options.count.unwrap_or(if bench.options.quick { 20 } else { 200 });
    let mut table = Table::new(&[
        "random recurrences, empty caches",
        "fused, s",
        "single, s",
        "fused / single",
        "pipelines",
        "pipelines single",
        "slower fused",
        "differ by > 1e-4",
        "did not end",
    ]);
    let child = |(way, env)| Child { bench, way, env, limit, engine: None };
    let mut children = ways().map(child);
    let (mut totals, mut pipelines) = ([0.0; 2], [0; 2]);
    let (mut ended, mut slower, mut differ, mut lost) = (0, 0, Vec::new(), Vec::new());
    let mut worst: Option<(f64, u64)> = None;
    for seed in 0..count as u64 {
        let runs = children.each_mut().map(|child| child.recurrence(seed));
        let [Outcome::Done(fused), Outcome::Done(single)] = &runs else {
            lost.push(seed);
            for (run, (way, _)) in runs.iter().zip(ways()) {
                match run {
                    Outcome::Done(_) => {}
                    Outcome::Late => {
                        table.note(format!("seed {seed}, {way}: > {} s", limit.as_secs()))
                    }
                    Outcome::Failed(error) => table.note(format!("seed {seed}, {way}: {error}")),
                }
            }
            continue;
        };
        ended += 1;
        let seconds = [fused, single].map(|said| number(said, "seconds").unwrap_or_default());
        slower += usize::from(seconds[0] > seconds[1]);
        let ratio = seconds[0] / seconds[1];
        if worst.is_none_or(|(most, _)| ratio > most) {
            worst = Some((ratio, seed));
        }
        for (i, said) in [fused, single].into_iter().enumerate() {
            totals[i] += seconds[i];
            pipelines[i] += said["pipelines"].as_u64().unwrap_or_default();
        }
        let apart = difference(&fused["results"], &single["results"]);
        if apart > TOLERANCE {
            differ.push(seed);
            table.note(format!("seed {seed}: the results differ by {apart:.1e}"));
        }
    }
    for child in &mut children {
        child.engine = None;
        let _ = std::fs::remove_dir_all(bench.empty_folder(child.way));
    }
    let mut cells = vec![format!("{ended} of {count}, seeds from 0")];
    cells.extend(totals.map(digits));
    cells.push(quotient(totals.map(Some)));
    cells.extend(pipelines.map(|n| n.to_string()));
    cells.extend([slower, differ.len(), lost.len()].map(|n| n.to_string()));
    table.row(cells);
    if let Some((ratio, seed)) = worst {
        table.note(format!(
            "the worst fused is seed {seed}: {} times the single one",
            digits(ratio)
        ));
    }
    table
}

struct Child<'a> {
    bench: &'a Bench<'a>,
    way: &'static str,
    env: Vec<(String, String)>,
    limit: Duration,
    engine: Option<Engine>,
}

impl Child<'_> {
    fn recurrence(&mut self, seed: u64) -> Outcome<Value> {
        let engine = match self.engine.take() {
            Some(engine) => Outcome::Done(engine),
            None => self.started(),
        };
        match engine {
            Outcome::Done(mut engine) => {
                let said = outcome(self.limit, || engine.ask(&format!("recurrence {seed}")));
                if matches!(said, Outcome::Done(_)) {
                    self.engine = Some(engine);
                }
                said
            }
            Outcome::Late => Outcome::Late,
            Outcome::Failed(error) => Outcome::Failed(error),
        }
    }

    fn started(&self) -> Outcome<Engine> {
        match harness::empty_caches(&self.bench.empty_folder(self.way)) {
            Ok(caches) => {
                let env = [caches.as_slice(), &self.env].concat();
                self.bench.start("cold_recurrences", &[], &env, self.limit)
            }
            Err(error) => Outcome::Failed(error.to_string()),
        }
    }
}

fn number(said: &Value, key: &str) -> Option<f64> {
    said[key].as_f64()
}

fn quotient(seconds: [Option<f64>; 2]) -> String {
    match seconds {
        [Some(fused), Some(single)] if single > 0.0 => digits(fused / single),
        _ => String::new(),
    }
}
