//! The node tests of the package `onnx`, run by each library in a process that is replaced when it ends or takes too long.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::{Options, tensors, wgrad};
use crate::Result;
use crate::child::answer;
use crate::process::{Engine, Recipe};

/// How long one test may take.
const LIMIT: Duration = Duration::from_secs(20);

/// The engines: the name and what a pass means.
const ENGINES: [(&str, &str, bool); 4] = [
    ("wgrad", "wgrad", true),
    ("tract", "tract", cfg!(feature = "tract")),
    (
        "tract_constants",
        "tract, with inputs as constants where it needs them",
        cfg!(feature = "tract"),
    ),
    ("burn", "Burn's import: writes code (not compiled, not run)", cfg!(feature = "burn-onnx")),
];

pub fn run(options: &Options) -> Result<()> {
    let mut names = Vec::new();
    let mut other = 0;
    for name in options.models()? {
        let path = options.folder.join(format!("{name}.safetensors"));
        if !path.exists() {
            continue;
        }
        if tensors::read(&path)?.is_some() { names.push(name) } else { other += 1 }
    }
    names.sort();
    println!("{} tests with dtypes of wgrad, {other} with others\n", names.len());
    println!("| | pass | wrong result | error | crash or more than {} s |", LIMIT.as_secs());
    println!("|---|---|---|---|---|");
    for (engine, title, built) in ENGINES {
        if !built || !options.admits(engine.split('_').next().unwrap_or_default()) {
            continue;
        }
        let recipe = Recipe {
            name: engine.to_owned(),
            program: std::env::current_exe()?,
            arguments: ["loading", "nodes-child", engine]
                .map(str::to_owned)
                .into_iter()
                .chain([options.folder.to_string_lossy().into_owned()])
                .collect(),
            env: Vec::new(),
            folder: std::env::temp_dir().join("wgrad-loading-nodes"),
            limit: LIMIT,
        };
        let mut process: Option<Engine> = None;
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let mut report = String::new();
        for name in &names {
            let mut running = match process.take() {
                Some(running) => running,
                None => recipe.start("nodes", &[])?,
            };
            let (kind, why) = match running.ask(name) {
                Ok(said) => {
                    process = Some(running);
                    match said["error"].as_str() {
                        None => ("pass", String::new()),
                        Some(why) if why.starts_with("wrong") => ("wrong", why.to_owned()),
                        Some(why) => ("error", why.to_owned()),
                    }
                }
                Err(error) => ("crash", error.to_string()),
            };
            *counts.entry(kind).or_default() += 1;
            report.push_str(&format!("{kind} {name}: {}\n", why.replace('\n', " ")));
        }
        let count = |kind: &str| counts.get(kind).copied().unwrap_or_default().to_string();
        println!("| {title} | {} |", ["pass", "wrong", "error", "crash"].map(count).join(" | "));
        std::fs::write(options.folder.join(format!("{engine}.txt")), report)?;
    }
    Ok(())
}

/// `loading nodes-child ENGINE FOLDER`: answers the names of tests.
pub fn child(arguments: &[String]) -> Result<()> {
    let [engine, folder, ..] = arguments else {
        return Err("a library and a folder have to be named".into());
    };
    let folder = Path::new(folder);
    answer(json!({}))?;
    for name in std::io::stdin().lock().lines() {
        let name = name?;
        let done = catch_unwind(AssertUnwindSafe(|| one(engine, folder, &name)));
        let error = match done {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(format!("{error:#}")),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or(panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
                Some(format!("panic: {}", text.unwrap_or_default()))
            }
        };
        answer(json!({ "error": error }))?;
    }
    Ok(())
}

fn one(engine: &str, folder: &Path, name: &str) -> Result<()> {
    let file = folder.join(format!("{name}.onnx"));
    let arrays = tensors::read(&super::arrays_of(&file))?.ok_or("other dtypes")?;
    match engine {
        "wgrad" => wgrad::node(&file, &arrays),
        #[cfg(feature = "tract")]
        "tract" => super::tract::node(&file, &arrays, false),
        #[cfg(feature = "tract")]
        "tract_constants" => super::tract::node(&file, &arrays, true),
        #[cfg(feature = "burn-onnx")]
        "burn" => super::burn::generate(&file, &std::env::temp_dir().join("wgrad-loading-burn")),
        other => Err(format!("this program was built without `{other}`").into()),
    }
}
