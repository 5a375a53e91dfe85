//! `cargo xtask report`: checks wgrad on this adapter, measures it briefly, and writes one Markdown file to attach to a report.
//! Users have GPUs that the authors do not have.
//!
//! Compilation comes first, without a limit: the tests, and the program in `benches/peers` without Burn. Then the parts share
//! the time.

mod checks;
mod limited;
mod machine;
mod pack;
mod page;
mod programs;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};

use crate::run::{CommandLine, Status, workspace_root};
use crate::setup;
use checks::{Check, Part, Verdict};
use programs::Programs;

const HELP: &str = "\
Usage: cargo xtask report [OPTIONS]

Runs TensorFlow's cases, random programs, all variants of the kernels for products and convolutions, and short benchmarks on
this adapter; then writes a Markdown file with the adapter, its driver, limits and features, what passed and what failed, and
the measurements. It contains no names of users, machines or folders.

WGRAD_ADAPTER selects one of several adapters. Compilation comes first and does not count towards the time.

Options:
  --quick      1 minute instead of 10
  --out FILE   the file to write (wgrad-report.md)
  --pack DIR   make a folder that does this, and more, on a machine without Rust, sources or network: copy it there, and start
               run.sh (Linux, macOS) or run.cmd (Windows) in it
";

const FULL: Duration = Duration::from_secs(600);
const QUICK: Duration = Duration::from_secs(60);
/// The parts' shares of the time.
const WEIGHTS: [u32; 4] = [8, 5, 4, 4];

/// The tests of random programs, in `tests/fusion`.
const RANDOM: &str = "random_programs::";
/// Those that run first. The longest ones run last.
const FIRST: [&str; 12] = [
    "everything_together",
    "gradients_of_programs",
    "patterns_of_models",
    "products_and_images",
    "reductions",
    "long_rows_and_columns",
    "views",
    "elementwise_programs",
    "integers_truth_and_indices",
    "nan_and_infinities",
    "empty_tensors",
    "wide_graphs",
];

/// The factors on the number of programs: in a short run, and in the second half of a long one.
const FEWER: &str = "0.25";
const MORE: u8 = 3;

/// Cases of the benchmark; the first ones also run with `--quick`.
const FIGURES: [&str; 14] = [
    "calls",
    "matmul_256",
    "pointwise",
    "mlp",
    "cnn",
    "matmul_1024",
    "batched_matmul",
    "conv2d_28",
    "conv2d_14",
    "conv2d_14_gradients",
    "softmax",
    "sum",
    "dependent_adds",
    "mlp_first_step",
];
const QUICK_FIGURES: usize = 4;

/// Runs the command. Fails if a check failed.
pub fn run(arguments: &[String]) -> Result<Status> {
    let options = Options::parse(arguments)?;
    if options.help {
        print!("{HELP}");
        return Ok(Status::SUCCESS);
    }
    if let Some(folder) = &options.pack {
        pack::make(folder)?;
        return Ok(Status::SUCCESS);
    }
    if let Some(folder) = &options.packed {
        return pack::run(folder);
    }
    writable(&options.out)?;
    setup::run()?;
    // Now, before the sources can change.
    let build = machine::Build::of_this_machine();
    let programs = Programs::build()?;
    let command = format!("cargo xtask report{}", if options.quick { " --quick" } else { "" });
    report(&programs, build, command, options.quick, &options.out)?;
    Ok(Status::SUCCESS)
}

/// Runs the checks, and writes the file. Fails if a check failed.
fn report(
    programs: &Programs,
    build: machine::Build,
    command: String,
    quick: bool,
    out: &Path,
) -> Result<()> {
    let scratch = Scratch::new()?;
    let hidden = machine::Secrets::of_this_machine(&scratch.0);
    let (facts, mut warnings) = programs.facts()?;
    let parts = Parts::run(programs, &scratch.0, quick)?;
    for warning in parts.checks().flat_map(|check| &check.warnings) {
        if !warnings.contains(warning) {
            warnings.push(warning.clone());
        }
    }
    let report = page::Report {
        version: build.version,
        system: machine::system(),
        compiler: build.compiler,
        date: machine::today(),
        command,
        switches: machine::switches(),
        facts,
        warnings,
        parts: &parts,
    };
    let text = hidden.hidden(&report.markdown());
    std::fs::write(out, text).with_context(|| out.display().to_string())?;
    let count = |is: fn(&Verdict) -> bool| parts.checks().filter(|c| is(&c.verdict)).count();
    let all = count(|_| true);
    let failed = count(|verdict| matches!(verdict, Verdict::Failed | Verdict::Crashed(_)));
    let open = count(|verdict| matches!(verdict, Verdict::Late(_) | Verdict::NotReached));
    let out = out.display();
    eprintln!(
        "report: {all} checks, {failed} failed, {open} without a result in the time; see {out}"
    );
    if failed > 0 {
        bail!("{failed} of {all} checks failed on this adapter; please attach {out} to a report");
    }
    Ok(())
}

/// The parts, in this order.
struct Parts {
    oracle: Part,
    programs: Part,
    variants: Part,
    figures: Part,
}

impl Parts {
    fn run(programs: &Programs, scratch: &Path, quick: bool) -> Result<Self> {
        let time = if quick { QUICK } else { FULL };
        eprintln!("report: starts; it takes at most {} s from now", time.as_secs());
        let end = Instant::now() + time;
        // A part may take its weighted share of the remaining time.
        let share = |part: usize| {
            let of: u32 = WEIGHTS[part..].iter().sum();
            end.saturating_duration_since(Instant::now()) * WEIGHTS[part] / of
        };
        let folder = |name: &str| scratch.join(name).to_string_lossy().into_owned();
        // Uses neither earlier tuning results nor compiled kernels of this machine.
        let tests = |program: &Path| {
            // Tests look for their data in the folder that cargo sets.
            CommandLine::new(program.to_string_lossy())
                .env("WGRAD_CACHE", &folder("cache"))
                .env("CARGO_MANIFEST_DIR", &workspace_root().to_string_lossy())
        };

        let names = checks::tests(&programs.oracle, "", &[])?;
        let line = tests(&programs.oracle);
        let oracle = Part::run("TensorFlow's cases", &names, share(0), |name, limit| {
            checks::test(&line, name, limit)
        })?;

        let random = random_programs(&tests(&programs.fusion), programs, share(1), quick)?;

        let line =
            programs.peers(&["variants"]).env("WGRAD_CACHE", "off").env("WGRAD_TUNE", "found");
        let names = programs.variants()?;
        let variants = Part::run("kernel variants", &names, share(2), |name, limit| {
            checks::variants(&line, name, limit)
        })?;

        let names: Vec<String> = FIGURES.iter().map(|&name| name.to_owned()).collect();
        let names = if quick { &names[..QUICK_FIGURES] } else { &names };
        let options = ["--quick", "--exact", "--no-docs", "--engines", "wgrad,copy", "--cache"];
        let line = programs.peers(&options).args([folder("bench")]);
        let figures = Part::run("figures", names, share(3), |name, limit| {
            checks::figure(&line, name, limit, &scratch.join("figures.json"))
        })?;
        Ok(Self { oracle, programs: random, variants, figures })
    }

    fn all(&self) -> [&Part; 4] {
        [&self.oracle, &self.programs, &self.variants, &self.figures]
    }

    fn checks(&self) -> impl Iterator<Item = &Check> {
        self.all().into_iter().flat_map(|part| &part.checks)
    }
}

/// Runs every test of random programs, then repeats them with more programs as time permits.
fn random_programs(
    line: &CommandLine,
    programs: &Programs,
    time: Duration,
    quick: bool,
) -> Result<Part> {
    let end = Instant::now() + time;
    let names = checks::tests(&programs.fusion, RANDOM, &FIRST)?;
    let few = if quick { line.clone().env("WGRAD_PROPERTY_CASES", FEWER) } else { line.clone() };
    let title = "random programs";
    let mut part = Part::run(title, &names, time, |name, limit| checks::test(&few, name, limit))?;
    if quick {
        return Ok(part);
    }
    let many = line.clone().env("WGRAD_PROPERTY_CASES", &MORE.to_string());
    for at in 0..part.checks.len() {
        let Check { name, verdict, seconds, .. } = &part.checks[at];
        let rest = end.saturating_duration_since(Instant::now());
        // A run that may not finish has no value, and durations of programs vary much.
        if *verdict != Verdict::Passed || 4.0 * f64::from(MORE) * seconds > rest.as_secs_f64() {
            continue;
        }
        let title = format!("{name}, {MORE} times as many");
        let check = Check { name: title, ..checks::test(&many, name, rest)? };
        check.announce(part.title);
        part.checks.push(check);
    }
    Ok(part)
}

/// Fails early if the file could not be written at the end.
fn writable(out: &Path) -> Result<()> {
    let folder = out.parent().filter(|folder| folder.is_dir());
    if out.is_dir() || folder.is_none() {
        bail!("--out {}: this is not a file in an existing folder", out.display());
    }
    Ok(())
}

/// A temporary folder that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("wgrad-report-{}", std::process::id()));
        std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Self(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The parsed command line.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    help: bool,
    quick: bool,
    out: PathBuf,
    pack: Option<PathBuf>,
    /// The pack that is running.
    packed: Option<PathBuf>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            help: false,
            quick: false,
            out: "wgrad-report.md".into(),
            pack: None,
            packed: None,
        };
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match argument.as_str() {
                "--help" | "-h" => options.help = true,
                "--quick" => options.quick = true,
                "--out" => {
                    options.out = rest.next().ok_or_else(|| anyhow!("--out takes a file"))?.into();
                }
                "--pack" => {
                    let folder = rest.next().ok_or_else(|| anyhow!("--pack takes a folder"))?;
                    options.pack = Some(folder.into());
                }
                // For the scripts of a pack.
                "--packed" => {
                    let folder = rest.next().ok_or_else(|| anyhow!("--packed takes a folder"))?;
                    options.packed = Some(folder.into());
                }
                other => bail!("`cargo xtask report` has no argument `{other}`.\n\n{HELP}"),
            }
        }
        options.out = std::path::absolute(&options.out)
            .with_context(|| format!("--out {}", options.out.display()))?;
        Ok(options)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn options_are_distinguished() {
        let plain = parse("").unwrap();
        assert!(!plain.quick && plain.out.is_absolute() && plain.out.ends_with("wgrad-report.md"));
        let quick = parse("--quick --out a/b.md").unwrap();
        assert!(quick.quick && quick.out.ends_with("a/b.md"));
        assert_eq!(parse("--out").unwrap_err().to_string(), "--out takes a file");
        assert_eq!(parse("--pack").unwrap_err().to_string(), "--pack takes a folder");
        assert_eq!(parse("--pack p").unwrap().pack, Some("p".into()));
        let error = parse("--slow").unwrap_err().to_string();
        assert!(
            error.starts_with("`cargo xtask report` has no argument `--slow`.\n\nUsage: "),
            "{error}"
        );
    }

    #[test]
    fn a_place_that_cannot_be_written_is_refused_early() {
        let folder = std::env::temp_dir();
        assert!(writable(&folder.join("report.md")).is_ok());
        for wrong in [folder.join("no such folder/report.md"), folder] {
            let error = writable(&wrong).unwrap_err().to_string();
            assert!(error.ends_with("this is not a file in an existing folder"), "{error}");
        }
    }

    #[test]
    fn the_parts_of_the_benchmark_are_named_once() {
        let mut names = FIGURES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), FIGURES.len());
    }
}
