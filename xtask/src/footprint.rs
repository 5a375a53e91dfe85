//! `cargo xtask footprint`: what it costs to carry wgrad inside another program, in comparison with other libraries. It builds one
//! small program over each (benches/footprint), from nothing, and prints a table: dependencies, compile time, size, memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::run::{CommandLine, Status, workspace_root};
use crate::setup;

/// The manifest of the programs, from the workspace's root.
pub const MANIFEST: &str = "benches/footprint/Cargo.toml";

/// The features of benches/footprint, and what the table calls them.
const PROGRAMS: [(&str, &str); 6] = [
    ("wgrad", "wgrad, the core (GPU)"),
    ("burn", "Burn 0.22.1 with wgpu (GPU)"),
    ("candle", "candle 0.11.1 (CPU)"),
    ("wgrad-onnx", "wgrad with ONNX models (GPU)"),
    ("tract", "tract 0.23.9 (CPU)"),
    ("ort", "ort 2.0.0-rc.15 with ONNX Runtime (CPU)"),
];

/// Names ONNX Runtime's library, which `ort` opens.
const RUNTIME: &str = "ORT_DYLIB_PATH";

const HELP: &str = "\
Usage: cargo xtask footprint [--only NAME,...] [--built]

  --only NAME,...   of wgrad, burn, candle, wgrad-onnx, tract, ort (default: all, which takes an hour on two cores)
  --built           use the programs of an earlier run; compile times are left out

ort needs ONNX Runtime's library: set ORT_DYLIB_PATH to it. The PyPI package onnxruntime has it in onnxruntime/capi.
";

/// What one program costs.
#[derive(Debug, Default)]
struct Footprint {
    dependencies: usize,
    /// Seconds of the clock and of all processors.
    compiled: Option<[f64; 2]>,
    /// Bytes of the program, and of the library that it opens.
    program: u64,
    library: u64,
    /// Resident bytes at the start, once a device is open or a model loaded, and after a result.
    resident: [u64; 3],
}

/// Runs the command.
pub fn run(arguments: &[String]) -> Result<Status> {
    let (mut only, mut built) = (None, false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--help" => {
                print!("{HELP}");
                return Ok(Status::SUCCESS);
            }
            "--built" => built = true,
            "--only" => only = Some(rest.next().context("--only needs names")?.clone()),
            _ => bail!("there is no option {argument}\n\n{HELP}"),
        }
    }
    let selected = select(only.as_deref())?;
    setup::run()?;
    let mut rows = Vec::new();
    for (feature, name) in selected {
        if feature == "ort" && std::env::var_os(RUNTIME).is_none() {
            rows.push((name, Err(format!("{RUNTIME} is not set"))));
            continue;
        }
        let row = (name, measure(feature, built).map_err(|error| format!("{error:#}")));
        // What was measured is not lost if the next one is interrupted.
        eprint!("{}", table(std::slice::from_ref(&row)));
        rows.push(row);
    }
    print!("{}", table(&rows));
    let failed = rows.iter().any(|(_, found)| found.is_err());
    Ok(if failed { Status::FAILURE } else { Status::SUCCESS })
}

fn select(only: Option<&str>) -> Result<Vec<(&'static str, &'static str)>> {
    let Some(only) = only else { return Ok(PROGRAMS.to_vec()) };
    let find = |name: &str| {
        let found = PROGRAMS.iter().find(|(feature, _)| *feature == name.trim()).copied();
        found.with_context(|| format!("there is no program '{name}'\n\n{HELP}"))
    };
    only.split(',').map(find).collect()
}

fn measure(feature: &str, built: bool) -> Result<Footprint> {
    let package = workspace_root().join("benches/footprint");
    let target = workspace_root().join("target/footprint").join(feature);
    let mut found =
        Footprint { dependencies: dependencies(&package, feature)?, ..Footprint::default() };
    if !built {
        let _ = fs::remove_dir_all(&target);
        let (wall, before) = (Instant::now(), processor_seconds());
        let build = CommandLine::cargo(["build", "--release", "--locked", "--features", feature])
            .args(["--target-dir"])
            .args([target.to_string_lossy()])
            .folder(&package);
        if !build.run()?.is_success() {
            bail!("`{build}` failed; see the compiler's output above");
        }
        let processors = processor_seconds().zip(before).map_or(f64::NAN, |(now, then)| now - then);
        found.compiled = Some([wall.elapsed().as_secs_f64(), processors]);
    }
    let program = target.join("release/wgrad-footprint");
    let size = |path: &Path| {
        let data = fs::metadata(path).with_context(|| format!("cannot read {}", path.display()))?;
        anyhow::Ok(data.len())
    };
    found.program = size(&program)?;
    if feature == "ort" {
        found.library = size(&PathBuf::from(std::env::var_os(RUNTIME).unwrap_or_default()))?;
    }
    let (status, text) = CommandLine::new(program.to_string_lossy()).folder(&package).read()?;
    if !status.is_success() {
        bail!("the program of '{feature}' failed; see its output above");
    }
    found.resident = resident(&text).with_context(|| format!("'{feature}' printed: {text}"))?;
    Ok(found)
}

/// How many packages are compiled into the program, besides itself.
fn dependencies(package: &Path, feature: &str) -> Result<usize> {
    let (status, text) = CommandLine::cargo(["tree", "--locked", "--features", feature])
        .args(["--edges", "normal", "--prefix", "none", "--format", "{p}"])
        .folder(package)
        .read()?;
    if !status.is_success() {
        bail!("cargo cannot list the dependencies of '{feature}'");
    }
    Ok(distinct(&text).saturating_sub(1))
}

/// The number of distinct packages in the output of `cargo tree`, which marks repeated ones with `(*)`.
fn distinct(text: &str) -> usize {
    let lines = text.lines().map(|line| line.trim_end_matches(" (*)").trim());
    lines.filter(|line| !line.is_empty()).collect::<std::collections::HashSet<_>>().len()
}

/// The seconds that all children so far took on all processors; Linux's kernel counts them in hundredths.
fn processor_seconds() -> Option<f64> {
    let text = fs::read_to_string("/proc/self/stat").ok()?;
    // The second field, the program's name, may contain spaces.
    let fields: Vec<&str> = text.rsplit(')').next()?.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<f64>().ok();
    Some((ticks(13)? + ticks(14)?) / 100.0)
}

fn resident(text: &str) -> Option<[u64; 3]> {
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some([number("start ")?, number("ready ")?, number("done ")?])
}

fn table(rows: &[(&str, Result<Footprint, String>)]) -> String {
    let mut text = "| program | dependencies | compile: clock, processors | stripped program | memory at the start, ready, after a \
                    result |\n|---|---|---|---|---|\n"
        .to_owned();
    for (name, found) in rows {
        let cells = match found {
            Err(why) => format!("not measured, as {why} | | | "),
            Ok(found) => {
                let mb = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
                let compiled = found
                    .compiled
                    .map_or(String::new(), |[wall, all]| format!("{wall:.0} s, {all:.0} s"));
                let library = match found.library {
                    0 => String::new(),
                    bytes => format!(" + {}", mb(bytes)),
                };
                let [start, ready, done] = found.resident.map(mb);
                let program = mb(found.program);
                format!(
                    "{} | {compiled} | {program}{library} | {start}, {ready}, {done}",
                    found.dependencies
                )
            }
        };
        text.push_str(&format!("| {name} | {cells} |\n"));
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_counted_once() {
        let text = "wgrad-footprint v0.0.0 (/x)\nlog v0.4.27\n\nwgpu v30.0.2\nlog v0.4.27 (*)\nlog v0.3.0\n";
        assert_eq!(distinct(text), 4);
    }

    #[test]
    fn what_a_program_prints_is_read() {
        let text = "start 2000\nready 4000 after 3ms\ndone 5000 after 4ms; the result is 64\n";
        assert_eq!(resident(text), Some([2000, 4000, 5000]));
        assert_eq!(resident("start 2000\n"), None);
    }

    #[test]
    fn programs_are_selected_by_name() {
        assert_eq!(select(None).unwrap().len(), PROGRAMS.len());
        assert_eq!(select(Some("tract, ort")).unwrap().len(), 2);
        assert!(select(Some("torch")).unwrap_err().to_string().contains("no program 'torch'"));
    }

    #[test]
    fn the_table_has_a_row_for_each_program() {
        let found = Footprint {
            dependencies: 12,
            compiled: Some([61.2, 100.4]),
            program: 2_300_000,
            library: 21_000_000,
            resident: [2_000_000, 40_000_000, 50_000_000],
        };
        let rows = [("a", Ok(found)), ("b", Err("X is not set".to_owned()))];
        let text = table(&rows);
        assert!(
            text.contains(
                "| a | 12 | 61 s, 100 s | 2.3 MB + 21.0 MB | 2.0 MB, 40.0 MB, 50.0 MB |\n"
            )
        );
        assert!(text.ends_with("| b | not measured, as X is not set | | |  |\n"), "{text}");
    }
}
