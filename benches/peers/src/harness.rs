//! The run: engines are started at the same time and repeat each case alternately, so that all see the same machine.
//!
//! Speeds of a shared machine change by nearly a factor of two within minutes. The ratio of two engines is therefore computed
//! within each repetition, and the result is the median of those ratios.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::Result;
use crate::cases::{self, Case, Peers, Unit};
use crate::options::Options;
use crate::process::{Engine, Recipe, numbers};
use crate::report::{self, Row, Setting};

/// Additional rows besides `cases.rs`: fresh processes of the training cases.
pub const EXTRAS: &[(&str, &str)] = &[
    (
        "mlp_first_step",
        "from the start of a process to the loss of the first step: empty caches, warm caches",
    ),
    ("cnn_first_step", "the same for the CNN"),
    ("mlp_memory", "peak memory of 20 steps in a process of its own: host, device"),
    ("cnn_memory", "the same for the CNN, 10 steps"),
];

/// The Python frameworks that take part in some cases.
const FRAMEWORKS: [&str; 2] = ["torch", "tensorflow"];

pub fn run(options: &Options) -> Result<()> {
    let bench = Bench::new(options)?;
    let mut rows: Vec<Row> = Vec::new();
    let mut done = |row: Row| {
        print!("{}", report::line(&row));
        for problem in &row.problems {
            println!("    {problem}");
        }
        rows.push(row);
    };
    println!("{}", bench.setting);
    print!("{}", report::headings());
    for case in cases::all(options.gpu) {
        if options.wants(&case.name) {
            done(bench.measure(&case));
        }
    }
    for (model, steps) in [("mlp", 20), ("cnn", 10)] {
        if options.wants(&format!("{model}_first_step")) {
            bench.first_steps(model).into_iter().for_each(&mut done);
        }
        if options.wants(&format!("{model}_memory")) {
            bench.memory(model, steps).into_iter().for_each(&mut done);
        }
    }
    if rows.is_empty() {
        return Err(format!("no case is called {}; see --help", options.only.join(", ")).into());
    }
    if let Some(file) = &options.json {
        std::fs::write(file, report::json(&rows))
            .map_err(|error| format!("{}: {error}", file.display()))?;
        println!("figures written to {}", file.display());
    }
    let full = options.only.is_empty() && options.engines.is_empty() && !options.quick;
    if full && options.docs != Some(false) && bench.has("burn") {
        let page = repository().join("docs/benchmarks.md");
        let text = std::fs::read_to_string(&page)?;
        std::fs::write(&page, report::rewritten(&text, &bench.setting, &rows)?)?;
        println!("table written to {}", page.display());
    } else {
        println!("docs/benchmarks.md was left alone: only full runs with Burn rewrite its table");
    }
    Ok(())
}

/// The repository's root.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

struct Bench<'a> {
    options: &'a Options,
    setting: Setting,
    /// The engines that are available and requested.
    recipes: Vec<Recipe>,
}

/// wgrad's own recipe, and the adapter and machine that it is measured on.
pub fn setting(options: &Options) -> Result<(Recipe, Setting)> {
    let cache = options.cache.join("xdg").to_string_lossy().into_owned();
    let wgrad = Recipe {
        name: "wgrad".to_owned(),
        program: std::env::current_exe()?,
        arguments: vec!["engine".to_owned(), "wgrad".to_owned()],
        env: vec![("XDG_CACHE_HOME".to_owned(), cache)],
        folder: options.cache.join("run"),
        limit: options.limit.unwrap_or(Duration::from_secs(1200)),
    };
    let probe = wgrad.start("calls", &[]).map_err(|error| {
        format!(
            "wgrad found no adapter to measure on ({error}). `cargo xtask setup` says what this machine lacks; \
             WGRAD_ADAPTER chooses among several adapters"
        )
    })?;
    let said = |key: &str| probe.hello[key].as_str().unwrap_or_default();
    let (adapter, driver, api) = (said("adapter"), said("driver"), said("api"));
    let setting = Setting::of_machine(&repository(), adapter, driver, api);
    Ok((wgrad, setting))
}

impl<'a> Bench<'a> {
    fn new(options: &'a Options) -> Result<Self> {
        let (wgrad, mut setting) = setting(options)?;
        let (adapter, api) = (setting.adapter.clone(), setting.api.clone());
        let recipe = |name: &str| Recipe {
            name: name.to_owned(),
            arguments: vec!["engine".to_owned(), name.to_owned()],
            ..wgrad.clone()
        };

        let mut recipes = Vec::new();
        if options.admits("wgrad") {
            recipes.push(wgrad.clone());
        }
        for name in ["burn", "copy"] {
            if (name == "burn" && !cfg!(feature = "burn")) || !options.admits(name) {
                continue;
            }
            let mut peer = recipe(name);
            peer.arguments.extend(["--adapter", &adapter, "--api", &api].map(str::to_owned));
            if name == "burn" {
                let burn = peer.start("calls", &[]).map_err(|error| {
                    format!("Burn cannot be measured on this adapter: {error}; --engines wgrad,copy leaves it out")
                })?;
                let other = burn.hello["adapter"].as_str().unwrap_or_default();
                if other != adapter {
                    return Err(format!(
                        "wgrad took `{adapter}` and Burn `{other}`: nothing to compare"
                    )
                    .into());
                }
                setting
                    .versions
                    .push(burn.hello["version"].as_str().unwrap_or_default().to_owned());
            }
            recipes.push(peer);
        }
        let script = repository().join("benches/peers/peers.py");
        for name in FRAMEWORKS.into_iter().filter(|name| options.admits(name)) {
            if let Some(version) = framework(&options.python, name) {
                setting.versions.push(format!("{name} {version} on the processor"));
                recipes.push(Recipe {
                    program: options.python.clone().into(),
                    arguments: vec![script.to_string_lossy().into_owned(), name.to_owned()],
                    env: Vec::new(),
                    ..recipe(name)
                });
            }
        }
        Ok(Self { options, setting, recipes })
    }

    fn has(&self, engine: &str) -> bool {
        self.recipes.iter().any(|recipe| recipe.name == engine)
    }

    /// The engines that support a case.
    fn engines(&self, case: &Case) -> Vec<&Recipe> {
        let takes_part = |recipe: &&Recipe| match (recipe.name.as_str(), case.peers) {
            ("wgrad", _) => true,
            ("burn", peers) => peers != Peers::None,
            ("copy", peers) => matches!(peers, Peers::BurnAndCopy(_)),
            (_, peers) => peers == Peers::All,
        };
        self.recipes.iter().filter(takes_part).collect()
    }

    fn repetitions(&self) -> usize {
        self.options.repetitions.unwrap_or(if self.options.quick { 3 } else { 7 })
    }

    /// Measures all engines at one case, alternately.
    fn measure(&self, case: &Case) -> Row {
        let mut row = Row::new(&case.name, &case.title, case.unit.name());
        let (target, limit) = if self.options.quick { (0.1, 50) } else { (0.3, 500) };
        let mut runners: Vec<Runner> = Vec::new();
        for recipe in self.engines(case) {
            match Runner::warmed(recipe, case, target, limit) {
                Ok(runner) => runners.push(runner),
                Err(error) => row.problems.push(error.to_string()),
            }
        }
        if let Some(problem) = disagreement(&runners, cases::tolerance(case.work)) {
            row.problems.push(problem);
        }
        for repetition in 0..self.repetitions() {
            // The engine that starts one repetition is second in the next.
            let count = runners.len();
            for turn in 0..count {
                let runner = &mut runners[(turn + repetition) % count];
                if runner.failure.is_some() {
                    continue;
                }
                match runner.engine.run(runner.iterations) {
                    Ok(seconds) => runner.times.push(median(seconds)),
                    Err(error) => runner.failure = Some(error.to_string()),
                }
            }
        }
        row.problems.extend(runners.iter().filter_map(|runner| runner.failure.clone()));
        runners.retain(|runner| runner.failure.is_none());
        for runner in &runners {
            // A copy is a reference for times, whatever the case's unit is.
            let unit = if runner.engine.name == "copy" { Unit::Milliseconds } else { case.unit };
            let figure = unit.figure(median(runner.times.clone()));
            row.figures.insert(runner.engine.name.clone(), figure);
        }
        let times = |name: &str| {
            let runner = runners.iter().find(|runner| runner.engine.name == name)?;
            Some(runner.times.as_slice())
        };
        row.ratio = ratio(times("burn"), times("wgrad"));
        row.of_copy = ratio(times("wgrad"), times("copy")).map(|ratio| ratio.median);
        row
    }

    /// The time from the start of a process to its first loss: with all caches empty, and then again.
    fn first_steps(&self, model: &str) -> [Row; 2] {
        let row = |name: &str, what: &str| {
            let title = format!("{} first step of a process, {what}", model.to_uppercase());
            Row::new(&format!("{model}_first_step_{name}"), &title, "s")
        };
        let mut rows = [row("cold", "empty caches"), row("warm", "warm caches")];
        let mut times: [BTreeMap<&str, Vec<f64>>; 2] = Default::default();
        let repetitions = self.repetitions().div_ceil(2).min(3);
        'repetitions: for repetition in 0..repetitions {
            for recipe in
                self.recipes.iter().filter(|r| ["wgrad", "burn"].contains(&r.name.as_str()))
            {
                let folder = self.options.cache.join(format!("empty-{}", std::process::id()));
                let started = std::time::Instant::now();
                for (state, row) in rows.iter_mut().enumerate() {
                    match first_step(recipe, model, &folder) {
                        Ok(seconds) => times[state].entry(&recipe.name).or_default().push(seconds),
                        Err(error) => row.problems.push(error.to_string()),
                    }
                }
                let _ = std::fs::remove_dir_all(&folder);
                let slow = started.elapsed().as_secs() > 120 && recipe.name == "burn";
                if slow && repetition + 1 < repetitions {
                    rows[0]
                        .problems
                        .push(format!("repeated {} times only: it takes long", repetition + 1));
                    break 'repetitions;
                }
            }
        }
        for (row, times) in rows.iter_mut().zip(&times) {
            for (name, times) in times {
                row.figures.insert((*name).to_owned(), median(times.clone()));
            }
            let of = |name: &str| times.get(name).map(Vec::as_slice);
            row.ratio = ratio(of("burn"), of("wgrad"));
        }
        rows
    }

    /// The peak memory of a separate process during some training steps, with warm caches.
    fn memory(&self, model: &str, steps: usize) -> [Row; 2] {
        let row = |name: &str, what: &str| {
            let title = format!("{} training, peak {what}", model.to_uppercase());
            Row::new(&format!("{model}_memory_{name}"), &title, "MB")
        };
        let mut rows =
            [row("host", "memory of the process"), row("device", "memory of the device")];
        for recipe in self.recipes.iter().filter(|r| ["wgrad", "burn"].contains(&r.name.as_str())) {
            let asked = recipe.start(model, &[]).and_then(|mut engine| {
                engine.run(steps)?;
                engine.ask("memory")
            });
            match asked {
                Ok(answer) => {
                    for (row, key) in rows.iter_mut().zip(["host", "device"]) {
                        match answer[key].as_f64() {
                            Some(bytes) => {
                                row.figures.insert(recipe.name.clone(), bytes / 1e6);
                            }
                            None => row.problems.push(format!("{} does not state it", recipe.name)),
                        }
                    }
                }
                Err(error) => rows[0].problems.push(error.to_string()),
            }
        }
        for row in &mut rows {
            let of = |name: &str| row.figures.get(name).map(std::slice::from_ref);
            row.ratio = ratio(of("burn"), of("wgrad"));
        }
        rows
    }
}

/// An engine that is ready for timing.
struct Runner {
    engine: Engine,
    iterations: usize,
    check: Vec<f64>,
    times: Vec<f64>,
    failure: Option<String>,
}

impl Runner {
    /// Starts an engine, lets it compile and tune, and determines how many iterations take about `target` seconds.
    fn warmed(recipe: &Recipe, case: &Case, target: f64, limit: usize) -> Result<Self> {
        let env = case.env.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut engine = recipe.start(&case.name, env.as_slice())?;
        let check = numbers(&engine.ask("check")?, "check")?;
        let mut seconds = Vec::new();
        while seconds.len() < 3 || (seconds.len() < 10 && seconds.iter().sum::<f64>() < target) {
            seconds.extend(engine.run(1)?);
        }
        // The first iterations compiled and tuned.
        let usual = median(seconds.split_off(seconds.len() / 2));
        let iterations = ((target / usual) as usize).clamp(1, limit);
        Ok(Self { engine, iterations, check, times: Vec::new(), failure: None })
    }
}

/// Reports engines' results that differ by more than rounding. Python frameworks draw different numbers.
fn disagreement(runners: &[Runner], tolerance: f64) -> Option<String> {
    let results = |name: &str| runners.iter().find(|runner| runner.engine.name == name);
    let (wgrad, burn) = (&results("wgrad")?.check, &results("burn")?.check);
    let close = |(a, b): (&[f64], &[f64])| {
        let scale = a.iter().chain(b).fold(0.0, |most: f64, x| most.max(x.abs()));
        a.iter().zip(b).all(|(a, b)| (a - b).abs() <= tolerance * scale)
    };
    // Three numbers per result: a mean may be near zero, so the largest of the three is the scale.
    let agree = wgrad.len() == burn.len() && wgrad.chunks(3).zip(burn.chunks(3)).all(close);
    (!agree).then(|| format!("the results differ: wgrad {wgrad:?}, burn {burn:?}"))
}

/// Environment variables that place all caches below `folder`.
pub fn empty_caches(folder: &Path) -> Result<Vec<(String, String)>> {
    let caches =
        ["XDG_CACHE_HOME", "MESA_SHADER_CACHE_DIR", "__GL_SHADER_DISK_CACHE_PATH", "WGRAD_CACHE"];
    let mut env = Vec::new();
    for name in caches {
        let place = folder.join(name);
        std::fs::create_dir_all(&place)?;
        env.push((name.to_owned(), place.to_string_lossy().into_owned()));
    }
    Ok(env)
}

/// How many processes wanted to run, over the last 1, 5 and 15 minutes; Linux only.
pub fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(", ")
}

/// Starts a process with caches in `folder` and trains for one step.
fn first_step(recipe: &Recipe, model: &str, folder: &Path) -> Result<f64> {
    let mut engine = recipe.start(model, &empty_caches(folder)?)?;
    engine.run(1)?;
    Ok(engine.started.elapsed().as_secs_f64())
}

/// The version of a framework, if this Python has it installed.
fn framework(python: &str, name: &str) -> Option<String> {
    let script = format!("import {name}; print({name}.__version__)");
    let output = Command::new(python).args(["-c", &script]).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    output.status.success().then(|| text.lines().last().unwrap_or_default().trim().to_owned())
}

/// The ratio of `a`'s times to `b`'s, by repetition.
fn ratio(a: Option<&[f64]>, b: Option<&[f64]>) -> Option<report::Ratio> {
    let mut ratios: Vec<f64> = a?.iter().zip(b?).map(|(a, b)| a / b).collect();
    ratios.sort_by(f64::total_cmp);
    let (low, high) = (*ratios.first()?, *ratios.last()?);
    Some(report::Ratio { median: median(ratios), low, high })
}

pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_are_of_the_sorted_values() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(Vec::new()).is_nan());
    }

    #[test]
    fn ratios_are_taken_within_a_repetition() {
        // The machine became twice as slow in between; the ratio did not change.
        let ratio = ratio(Some(&[3.0, 6.0, 3.3]), Some(&[1.0, 2.0, 1.0]))
            .map(|r| (r.median, r.low, r.high));
        assert_eq!(ratio, Some((3.0, 3.0, 3.3)));
        assert!(super::ratio(None, Some(&[1.0])).is_none());
    }
}
