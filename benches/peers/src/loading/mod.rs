//! `wgrad-peers loading`: how long ONNX models take to load and to give a first result, in wgrad and in other libraries, and how
//! many of ONNX's node tests each of them passes.
//!
//! Every time is that of a process of its own. wgrad has four, one after another: with empty caches; with the driver's cache that the
//! first one left; with the plan that it saved; and once more. onnxruntime has two: the second loads the file that the first optimized.

#[cfg(feature = "burn-onnx")]
mod burn;
mod child;
mod nodes;
#[path = "../../../../tests/support/node_tests.rs"]
mod tensors;
#[cfg(feature = "tract")]
mod tract;
mod wgrad;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::Result;
use crate::harness::{empty_caches, load_average, median, repository};
use crate::report::{Setting, digits};

const HELP: &str = "Usage: cargo xtask bench loading COMMAND FOLDER [OPTIONS]

Times the loading of ONNX models. benches/peers/loading.py writes them into FOLDER (`make`), and nodes.py of tests/data/onnx
writes the node tests of the package onnx.

Commands:
  time FOLDER       times wgrad, tract, onnxruntime and Burn with the models of FOLDER, and prints a table
  burn FOLDER       generates Burn's code for the models and builds a program of it in FOLDER/burn, for `time`
  nodes FOLDER      runs the node tests in FOLDER, and prints a table and writes FOLDER/ENGINE.txt

Options:
  --python PROGRAM  the Python that has onnxruntime and safetensors (python3)
  --repetitions N   processes of each kind (5)
  --engines LIST    of wgrad,tract,onnxruntime,burn; all that are there by default
  --without-burn    do not build Burn's import, which takes minutes
";

/// What the command line asks for.
pub struct Options {
    folder: PathBuf,
    python: String,
    repetitions: usize,
    engines: Vec<String>,
}

/// `wgrad-peers loading COMMAND ...`.
pub fn run(arguments: &[String]) -> Result<()> {
    let Some((command, rest)) = arguments.split_first() else {
        print!("{HELP}");
        return Ok(());
    };
    match command.as_str() {
        "child" => return child::run(rest),
        "nodes-child" => return nodes::child(rest),
        _ => {}
    }
    let Some(options) = parse(rest)? else {
        print!("{HELP}");
        return Ok(());
    };
    match command.as_str() {
        "time" => time(&options),
        "nodes" => nodes::run(&options),
        #[cfg(feature = "burn-onnx")]
        "burn" => burn::build(&options),
        #[cfg(not(feature = "burn-onnx"))]
        "burn" => Err("this program was built without Burn's import".into()),
        "--help" | "-h" => {
            print!("{HELP}");
            Ok(())
        }
        other => Err(format!("`loading {other}` is not a command; see `loading --help`").into()),
    }
}

/// `None` without a folder.
fn parse(arguments: &[String]) -> Result<Option<Options>> {
    let Some((folder, rest)) = arguments.split_first() else { return Ok(None) };
    let mut options = Options {
        folder: std::path::absolute(folder)?,
        python: "python3".to_owned(),
        repetitions: 5,
        engines: Vec::new(),
    };
    for pair in rest.chunks(2) {
        let [name, value] = pair else {
            return Err(format!("`{}` needs a value behind it", pair[0]).into());
        };
        match name.as_str() {
            "--python" => options.python = value.clone(),
            "--repetitions" => options.repetitions = value.parse()?,
            "--engines" => options.engines = value.split(',').map(str::to_owned).collect(),
            other => return Err(format!("`{other}` is not an option of `loading`").into()),
        }
    }
    Ok(Some(options))
}

impl Options {
    fn admits(&self, engine: &str) -> bool {
        self.engines.is_empty() || self.engines.iter().any(|name| name == engine)
    }

    /// The names of the models in the folder, by the sizes of their files.
    fn models(&self) -> Result<Vec<String>> {
        let mut models = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if let Some(name) = name.strip_suffix(".onnx") {
                models.push((entry.metadata()?.len(), name.to_owned()));
            }
        }
        models.sort();
        Ok(models.into_iter().map(|(_, name)| name).collect())
    }
}

/// What the processes of one kind said about one model.
struct Row {
    engine: &'static str,
    title: &'static str,
    said: Vec<Value>,
    problem: Option<String>,
}

impl Row {
    fn new(engine: &'static str, title: &'static str) -> Self {
        Row { engine, title, said: Vec::new(), problem: None }
    }

    fn cells(&self, name: &str) -> Vec<String> {
        let mut title = self.title.to_owned();
        if let Some(problem) = &self.problem {
            return vec![name.to_owned(), title, format!("failed: {problem}")];
        }
        let unused = self.said.iter().filter(|said| said["kept"] == false).count();
        if title.contains("plan kept") && unused > 0 {
            title.push_str(&format!(" (not used by {unused} of {})", self.said.len()));
        }
        let column = |key: &str| -> Vec<f64> {
            self.said.iter().filter_map(|said| said[key].as_f64()).collect()
        };
        let shown = |figures: Vec<f64>| match median(figures) {
            figure if figure.is_nan() => String::new(),
            figure => digits(figure),
        };
        let sum = |said: &Value| {
            let parts = ["device", "load", "first"];
            parts.iter().filter_map(|&part| said[part].as_f64()).sum()
        };
        let mut cells = vec![name.to_owned(), title];
        cells.extend(["device", "load", "first"].map(|key| shown(column(key))));
        cells.push(shown(self.said.iter().map(sum).collect()));
        cells.push(shown(column("steady")));
        cells.extend(["trace", "planning", "plans", "pipelines"].map(|key| shown(column(key))));
        cells.push(format!("{:.0e}", column("difference").into_iter().fold(0.0, f64::max)));
        cells
    }
}

fn time(options: &Options) -> Result<()> {
    let models = options.models()?;
    if models.is_empty() {
        let folder = options.folder.display();
        return Err(
            format!("{folder} has no models; benches/peers/loading.py make {folder}").into()
        );
    }
    let (adapter, driver, api) = wgrad::adapter()?;
    let mut setting = Setting::of_machine(&repository(), &adapter, &driver, &api);
    let scratch = std::env::temp_dir().join(format!("wgrad-loading-{}", std::process::id()));
    let before = load_average();
    let mut versions = BTreeMap::new();
    let mut lines = Vec::new();
    for name in models {
        for row in time_one(options, &name, &scratch)? {
            if let Some(version) = row.said.first().and_then(|said| said["version"].as_str()) {
                versions.insert(row.engine, version.to_owned());
            }
            lines.push(row.cells(&name).join(" | "));
        }
        eprintln!("{name}");
    }
    let _ = std::fs::remove_dir_all(&scratch);
    setting.versions.extend(versions.iter().map(|(name, version)| format!("{name} {version}")));
    println!("{setting}; load average {before} before and {} after\n", load_average());
    println!(
        "| model | | device, ms | load, ms | first result, ms | all three, ms | later calls, ms | tracing, ms | \
         planning, ms | plans | pipelines | largest difference |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for line in lines {
        println!("| {line} |");
    }
    Ok(())
}

/// The rows of a model. The kinds of processes alternate.
fn time_one(options: &Options, name: &str, scratch: &Path) -> Result<Vec<Row>> {
    let own = std::env::current_exe()?;
    let burn = options.folder.join("burn/target/release/loading-burn");
    let file = options.folder.join(format!("{name}.onnx"));
    let mut rows = vec![
        Row::new("wgrad", "wgrad, cold"),
        Row::new("wgrad", "wgrad, driver's cache kept"),
        Row::new("wgrad", "wgrad, plan kept, next start"),
        Row::new("wgrad", "wgrad, plan kept, later starts"),
        Row::new("onnxruntime", "onnxruntime"),
        Row::new("onnxruntime", "onnxruntime, optimized file kept"),
        Row::new("tract", "tract"),
        Row::new("burn", "Burn's import, flex"),
    ];
    rows.retain(|row| match row.engine {
        "tract" => cfg!(feature = "tract") && options.admits("tract"),
        "burn" => burn.exists() && options.admits("burn"),
        engine => options.admits(engine),
    });
    for _ in 0..options.repetitions {
        let _ = std::fs::remove_dir_all(scratch);
        let caches = empty_caches(scratch)?;
        for row in &mut rows {
            if row.problem.is_some() {
                continue;
            }
            let mut command = match row.engine {
                "onnxruntime" => Command::new(&options.python),
                "burn" => Command::new(&burn),
                _ => Command::new(&own),
            };
            match row.engine {
                "onnxruntime" => command
                    .arg(repository().join("benches/peers/loading.py"))
                    .arg("time")
                    .arg(&file)
                    .arg(scratch.join("optimized.onnx")),
                "burn" => command.arg(name).arg(&options.folder),
                engine => {
                    let plain = row.title.contains("driver's cache");
                    let engine = if plain { "wgrad-without-plan" } else { engine };
                    command.args(["loading", "child", engine]).arg(&file)
                }
            };
            command.envs(caches.iter().map(|(name, value)| (name, value)));
            match answer(&mut command) {
                Ok(said) => row.said.push(said),
                Err(error) => row.problem = Some(error.to_string()),
            }
        }
    }
    Ok(rows)
}

/// The answer of a process: its last line of JSON.
fn answer(command: &mut Command) -> Result<Value> {
    let output = command.output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().rev().find(|line| line.starts_with('{'));
    match line.filter(|_| output.status.success()) {
        Some(line) => Ok(serde_json::from_str(line)?),
        None => {
            let text = String::from_utf8_lossy(&output.stderr);
            let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
            Err(lines[lines.len().saturating_sub(3)..].join(" ").into())
        }
    }
}

/// The `.safetensors` file of a model.
fn arrays_of(model: &Path) -> PathBuf {
    model.with_extension("safetensors")
}
