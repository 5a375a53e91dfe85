//! Measurements of wgrad alone: planning time, programs that run once with empty caches, and sequences of changing lengths.
//! They run only when `--only` names them.
//!
//! Each case is a separate child process (`wgrad-peers alone --case NAME`) with limits on time and memory, so that a planner
//! that does not terminate is reported and does not affect the machine.

mod child;
mod cold;
mod graphs;
mod lstm;
mod models;
mod programs;
mod recurrences;
mod table;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub use child::run as child;
use table::Table;

use crate::Result;
use crate::harness;
use crate::options::Options;
use crate::process::{Engine, Recipe};
use crate::report::{self, Setting, digits};

/// The groups: names and descriptions.
pub const GROUPS: [(&str, &str); 3] = [
    ("planning", "milliseconds that making a plan takes, by the kind and size of the graph"),
    ("cold", "programs that run once, all caches empty: fused, and with WGRAD_FUSION=0"),
    ("lengths", "an LSTM over sequences of changing lengths"),
];

/// The numbers of MLPs and of convolutional networks.
const MODELS: [u64; 2] = [60, 12];

/// Numbers of nodes of a planned graph.
const SIZES: [usize; 3] = [500, 2_000, 20_000];

/// Kibibytes of address space that a child may use.
const MEMORY: usize = 10_000_000;

/// Whether this name, given to `--only`, belongs to a group here.
pub fn is_alone(name: &str) -> bool {
    let starts = |rest: &str| rest.is_empty() || rest.starts_with('_');
    GROUPS.iter().any(|(group, _)| name.strip_prefix(group).is_some_and(starts))
}

/// Measures the requested groups.
pub fn run(options: &Options) -> Result<()> {
    let (_, setting) = harness::setting(options)?;
    println!("{setting}");
    let bench = Bench { options };
    let mut figures = Vec::new();
    for (group, _) in GROUPS {
        let exactly = options.only.iter().any(|name| name == group);
        if !exactly && !options.only.iter().any(|name| name.starts_with(&format!("{group}_"))) {
            continue;
        }
        println!();
        let tables = match group {
            "planning" => vec![bench.planning()],
            "cold" => cold::measure(&bench),
            _ => bench.lengths(),
        };
        figures.extend(tables.iter().map(|table| json!({ "group": group, "rows": table.json() })));
        if options.docs == Some(true) && exactly && !options.quick {
            write(group, &setting, &tables)?;
        }
    }
    if let Some(file) = &options.json {
        std::fs::write(file, format!("{:#}\n", Value::Array(figures)))
            .map_err(|error| format!("{}: {error}", file.display()))?;
        println!("figures written to {}", file.display());
    }
    if options.docs == Some(true) {
        println!("docs/benchmarks.md has the tables of whole groups, measured without --quick");
    }
    Ok(())
}

/// Writes the tables of this adapter to the documentation in place of its old ones.
fn write(group: &str, setting: &Setting, tables: &[Table]) -> Result<()> {
    let page = harness::repository().join("docs/benchmarks.md");
    let text = std::fs::read_to_string(&page)?;
    let markers = [
        format!("<!-- {group}: begin, written by cargo xtask bench --only {group} --docs -->"),
        format!("<!-- {group}: end -->"),
    ];
    let tables: Vec<String> = tables.iter().map(Table::markdown).collect();
    let section = format!("{}\n\n{}", report::heading(setting), tables.join("\n\n"));
    let text = report::replaced(&text, [&markers[0], &markers[1]], &section)?;
    Ok(std::fs::write(&page, text)?)
}

/// The result of a child.
enum Outcome<T> {
    Done(T),
    /// It was killed at the limit.
    Late,
    Failed(String),
}

impl<T> Outcome<T> {
    fn done(&self) -> Option<&T> {
        match self {
            Outcome::Done(value) => Some(value),
            _ => None,
        }
    }
}

struct Bench<'a> {
    options: &'a Options,
}

impl Bench<'_> {
    /// Whether a case, or a case whose name begins with it, is requested.
    fn wants(&self, case: &str) -> bool {
        self.options.wants(case)
    }

    /// The time limit of a case; `usual` by default.
    fn limit(&self, usual: u64) -> Duration {
        self.options.limit.unwrap_or(Duration::from_secs(usual))
    }

    /// Starts a child for a case; its first line is the answer, or reports that it is ready.
    fn start(
        &self,
        case: &str,
        arguments: &[&str],
        env: &[(String, String)],
        limit: Duration,
    ) -> Outcome<Engine> {
        let program = match std::env::current_exe() {
            Ok(program) => program.to_string_lossy().into_owned(),
            Err(error) => return Outcome::Failed(error.to_string()),
        };
        let mut words = vec![program, "alone".to_owned()];
        words.extend(arguments.iter().map(|&word| word.to_owned()));
        if cfg!(unix) {
            let limited = format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"");
            words.splice(0..0, ["/bin/sh".to_owned(), "-c".to_owned(), limited]);
        }
        let recipe = Recipe {
            name: "wgrad".to_owned(),
            program: words.remove(0).into(),
            arguments: words,
            env: Vec::new(),
            folder: self.options.cache.join("run"),
            limit,
        };
        outcome(limit, || recipe.start(case, env))
    }

    /// The answer of a child that prints one and ends.
    fn ask(
        &self,
        case: &str,
        arguments: &[&str],
        env: &[(String, String)],
        limit: Duration,
    ) -> Outcome<Value> {
        match self.start(case, arguments, env, limit) {
            Outcome::Done(engine) => Outcome::Done(engine.hello.clone()),
            Outcome::Late => Outcome::Late,
            Outcome::Failed(error) => Outcome::Failed(error),
        }
    }

    /// Like [`Bench::ask`], with an empty folder for all caches that is removed afterwards.
    fn ask_cold(
        &self,
        case: &str,
        arguments: &[&str],
        env: &[(String, String)],
        limit: Duration,
    ) -> Outcome<Value> {
        let folder = self.empty_folder("once");
        let answer = match harness::empty_caches(&folder) {
            Ok(caches) => self.ask(case, arguments, &[caches.as_slice(), env].concat(), limit),
            Err(error) => Outcome::Failed(error.to_string()),
        };
        let _ = std::fs::remove_dir_all(&folder);
        answer
    }

    fn empty_folder(&self, name: &str) -> PathBuf {
        let folder = self.options.cache.join(format!("empty-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        folder
    }

    fn planning(&self) -> Table {
        let limit = self.limit(20);
        let sizes = if self.options.quick { &SIZES[..2] } else { &SIZES[..] };
        let name = |size: usize| format!("{size} nodes");
        let mut heads = vec!["graph, ms of planning".to_owned()];
        heads.extend(sizes.iter().map(|&size| name(size)));
        heads.extend(sizes.windows(2).map(|pair| format!("{} / {}", pair[1], pair[0])));
        heads.push("kernels of the largest".to_owned());
        let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
        let arguments: &[&str] = if self.options.real { &["--real"] } else { &[] };
        for (kind, title) in graphs::KINDS {
            let mut times: Vec<Option<f64>> = Vec::new();
            let (mut cells, mut notes) = (vec![title.to_owned()], Vec::new());
            let (mut late, mut kernels) = (false, Value::Null);
            for &size in sizes {
                let case = format!("planning_{kind}_{size}");
                if late || !self.wants(&case) {
                    cells.push("not run".to_owned());
                    times.push(None);
                    continue;
                }
                let outcome = self.ask(&case, arguments, &[], limit);
                let time = outcome.done().and_then(|answer| answer["planning_ms"].as_f64());
                match &outcome {
                    Outcome::Done(answer) => {
                        kernels = answer["kernels"].clone();
                        cells.push(time.map(digits).unwrap_or_default());
                    }
                    Outcome::Late => {
                        late = true;
                        cells.push(format!("> {} s", limit.as_secs()));
                    }
                    Outcome::Failed(error) => {
                        cells.push("failed".to_owned());
                        notes.push(format!("{title}, {size} nodes: {error}"));
                    }
                }
                times.push(time);
            }
            for pair in times.windows(2) {
                let growth = pair[1].zip(pair[0]).map(|(more, less)| digits(more / less));
                cells.push(growth.unwrap_or_default());
            }
            cells.push(kernels.as_u64().map(|count| count.to_string()).unwrap_or_default());
            table.row(cells);
            notes.into_iter().for_each(|note| table.note(note));
        }
        table
    }

    fn lengths(&self) -> Vec<Table> {
        let count = self.options.count.unwrap_or(if self.options.quick { 60 } else { 500 });
        let limit = self.limit(600);
        // The steps of the fixed length follow.
        let budget = (limit.as_secs() * 3 / 4).to_string();
        let mut table = Table::new(&[
            "LSTM, lengths 5 to 40 drawn, steps/s",
            "steps",
            "lengths",
            "pipelines",
            "plans",
            "first visits",
            "later visits",
            "always 22",
        ]);
        for (case, title) in [
            ("forward", "by hand, forward, loss read"),
            ("gradients", "by hand, with gradients and SGD, loss read"),
            ("layer", "the layer, with Adam, loss read"),
            ("buckets", "the same, lengths rounded up to multiples of 8, masked"),
        ] {
            let case = format!("lengths_{case}");
            if !self.wants(&case) {
                continue;
            }
            let count = count.to_string();
            let arguments = ["--count", count.as_str(), "--seconds", budget.as_str()];
            let mut cells = vec![title.to_owned()];
            match self.ask_cold(&case, &arguments, &[], limit) {
                Outcome::Done(said) => {
                    for key in ["steps", "lengths", "pipelines", "plans"] {
                        cells.push(said[key].to_string());
                    }
                    for key in ["first", "later", "fixed"] {
                        cells.push(said[key].as_f64().map(digits).unwrap_or_default());
                    }
                    table.row(cells);
                }
                Outcome::Late => table.note(format!("{title}: > {} s", limit.as_secs())),
                Outcome::Failed(error) => table.note(format!("{title}: {error}")),
            }
        }
        let mut tables = vec![table];
        if self.wants("lengths_first") {
            tables.push(self.first_step());
        }
        tables
    }

    fn first_step(&self) -> Table {
        let limit = self.limit(120);
        println!();
        let mut table = Table::new(&["LSTM, first step, empty caches", "s", "pipelines", "plans"]);
        let title = "28 time steps, gradients, SGD";
        match self.ask_cold("lengths_first", &[], &[], limit) {
            Outcome::Done(said) => table.row(vec![
                title.to_owned(),
                said["seconds"].as_f64().map(digits).unwrap_or_default(),
                said["pipelines"].to_string(),
                said["plans"].to_string(),
            ]),
            Outcome::Late => table.note(format!("{title}: > {} s", limit.as_secs())),
            Outcome::Failed(error) => table.note(format!("{title}: {error}")),
        }
        table
    }
}

/// The result of `work`, which waits for a child until `limit` at most.
fn outcome<T>(limit: Duration, work: impl FnOnce() -> Result<T>) -> Outcome<T> {
    let began = Instant::now();
    match work() {
        Ok(value) => Outcome::Done(value),
        Err(_) if began.elapsed() >= limit => Outcome::Late,
        Err(error) => Outcome::Failed(error.to_string()),
    }
}

/// The largest difference between two lists of results, relative to the largest number in the same result.
fn difference(a: &Value, b: &Value) -> f64 {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    // JSON has null in place of NaN and infinities.
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let (a, b) = (list(a), list(b));
    if a.len() != b.len() {
        return f64::INFINITY;
    }
    let mut most = 0.0_f64;
    for (a, b) in a.iter().zip(&b) {
        let (a, b) = (list(a), list(b));
        let numbers = || a.iter().map(number).zip(b.iter().map(number));
        let scale = numbers().flat_map(|(a, b)| [a.abs(), b.abs()]).fold(0.0, f64::max);
        for (a, b) in numbers() {
            most = match (a - b).abs() / scale {
                _ if a == b || (a.is_nan() && b.is_nan()) => most,
                apart if apart.is_nan() => f64::INFINITY,
                apart => most.max(apart),
            };
        }
        if a.len() != b.len() {
            return f64::INFINITY;
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_known_by_their_names() {
        assert!(is_alone("planning") && is_alone("cold_life") && is_alone("lengths_first"));
        assert!(!is_alone("matmul") && !is_alone("colder"));
    }

    #[test]
    fn differences_are_parts_of_the_largest_number() {
        assert_eq!(difference(&json!([[1.0, 4.0]]), &json!([[1.5, 4.0]])), 0.125);
        assert_eq!(difference(&json!([[0.0]]), &json!([[0.0]])), 0.0);
        assert_eq!(difference(&json!([[null, 2.0]]), &json!([[null, 2.0]])), 0.0);
        assert_eq!(difference(&json!([[null]]), &json!([[2.0]])), f64::INFINITY);
        assert_eq!(difference(&json!([[1.0]]), &json!([[1.0], [2.0]])), f64::INFINITY);
    }
}
