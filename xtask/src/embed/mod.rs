//! `cargo xtask embed`: builds and runs the examples of wgrad inside winit, egui and Bevy, in windows.
//!
//! They are a workspace of their own, `examples/embed`, so that nothing else builds winit, egui or Bevy. Each example checks what
//! its network has learned and what its window shows, and ends with an error if one of them is wrong.

mod display;

use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::draw::Draw;
use crate::run::{CommandLine, Status, in_turn, target_folder, workspace_root};
use crate::setup;
use crate::targets::declared_rust;
use crate::toolchain::{has_rustup, rustc};
use display::{Display, Screen};

/// The manifest of the examples' workspace, from the root.
pub const MANIFEST: &str = "examples/embed/Cargo.toml";
/// The examples' names, which are arguments of the command.
const NAMES: [&str; 3] = ["winit", "egui", "bevy"];
/// An example that runs longer hangs.
const LIMIT: Duration = Duration::from_secs(300);

const HELP: &str = "\
Usage: cargo xtask embed [winit] [egui] [bevy] [--sample] [--seed N] [-- ARGS]

Runs the examples of wgrad inside other programs in windows; on Linux without a display, on one that it starts. Each checks
what its network has learned. Pictures are in target/embed-screenshots.

  winit, egui, bevy  only these
  --sample           one of them, drawn by the day
  --seed N           decides which
  -- ARGS            ARGS go to the example; it runs until its window is closed, unless they have --frames N
";

/// An example: its package, and how many frames it takes to learn.
struct Example {
    name: &'static str,
    package: &'static str,
    frames: u32,
}

const EXAMPLES: [Example; 3] = [
    Example { name: NAMES[0], package: "wgrad-embed-winit", frames: 400 },
    Example { name: NAMES[1], package: "wgrad-embed-egui", frames: 300 },
    Example { name: NAMES[2], package: "bevy_wgrad", frames: 400 },
];

impl Example {
    /// The Rust that its `Cargo.toml`, or that of the workspace, declares.
    fn rust(&self) -> Result<String> {
        let workspace = workspace_root().join(MANIFEST);
        for path in [workspace.with_file_name(self.name).join("Cargo.toml"), workspace] {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            if let Some(rust) = declared_rust(&text) {
                return Ok(rust.to_owned());
            }
        }
        bail!("{MANIFEST} declares no rust-version")
    }
}

/// The examples that a sample runs, by the day. Bevy takes by far the longest to build.
const DAYS: [usize; 6] = [0, 1, 0, 1, 0, 2];

/// Runs the examples. With a failure, the others still run.
pub fn run(arguments: &[String]) -> Result<Status> {
    let mut parts = arguments.splitn(2, |argument| argument == "--");
    let own = parts.next().unwrap_or_default();
    let given = parts.next();
    let Some(draw) = Draw::of("embed", own, &NAMES)? else {
        print!("{HELP}");
        return Ok(Status::SUCCESS);
    };
    setup::run()?;
    // With a display, the windows open there.
    let display = if display::exists() { None } else { Some(Display::start()?) };
    let mut worst = Status::SUCCESS;
    for example in chosen(&draw) {
        let cargo = Cargo::find(example)?;
        let status = cargo.build(example)?;
        let status = match (status.is_success(), given) {
            (false, _) => status,
            (true, Some(given)) => cargo.line(example, display.as_ref()).args(given).run()?,
            (true, None) => check(&cargo, example, display.as_ref())?,
        };
        if worst.is_success() {
            worst = status;
        }
    }
    Ok(worst)
}

/// The examples to run.
fn chosen(draw: &Draw) -> Vec<&'static Example> {
    let named: Vec<_> = EXAMPLES.iter().filter(|example| draw.has(example.name)).collect();
    match (named.is_empty(), draw.sample) {
        (true, true) => vec![&EXAMPLES[DAYS[draw.pick(DAYS.len())]]],
        (true, false) => EXAMPLES.iter().collect(),
        (false, true) => vec![named[draw.pick(named.len())]],
        (false, false) => named,
    }
}

/// Runs an example's tests, then the example with its checks, then looks at the screen.
fn check(cargo: &Cargo, example: &Example, display: Option<&Display>) -> Result<Status> {
    let status = cargo.test(example)?;
    if !status.is_success() {
        return Ok(status);
    }
    let folder = workspace_root().join("target/embed-screenshots");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let picture = folder.join(format!("{}.png", example.name));
    // Not one of an earlier run.
    let _ = std::fs::remove_file(&picture);
    let line = cargo
        .line(example, display)
        .args(["--frames", &example.frames.to_string(), "--picture"])
        .args([picture.to_string_lossy()]);
    let (status, screen) = watch(&line, display)?;
    if !status.is_success() {
        return Ok(status);
    }
    ensure!(picture.is_file(), "`{line}` has left no picture");
    if let (Some(screen), Some(_)) = (&screen, display) {
        let path = folder.join(format!("{}-screen.png", example.name));
        screen.save(&path)?;
        let (drawn, colours) = (100.0 * screen.drawn(), screen.colours());
        eprintln!(
            "embed: {}: {drawn:.0} % of the screen is drawn; {}",
            example.name,
            path.display()
        );
        ensure!(
            drawn > 20.0 && colours >= 100,
            "{}: the window shows only {colours} colours on {drawn:.0} % of the screen",
            example.name
        );
    } else if display.is_some() {
        bail!("{}: nothing was seen on the screen while it ran", example.name);
    }
    if example.name == NAMES[0] {
        // The same frames without training and with a budget, to compare their times.
        let more = [&["--no-training"][..], &["--budget-ms", "4"]].map(|arguments| {
            cargo.line(example, display).args(["--frames", "400"]).args(arguments)
        });
        return in_turn(&more);
    }
    Ok(status)
}

/// Runs an example, and returns the last state of the screen on which something was drawn.
fn watch(line: &CommandLine, display: Option<&Display>) -> Result<(Status, Option<Screen>)> {
    eprintln!("$ {line}");
    let mut child = Running(line.spawn_with(Stdio::inherit(), Stdio::inherit())?);
    let began = Instant::now();
    let mut last = None;
    loop {
        if let Some(status) = child.0.try_wait()? {
            return Ok((Status::of(status), last));
        }
        if let Some(display) = display {
            let screen = display.screen()?;
            if screen.drawn() > 0.01 {
                last = Some(screen);
            }
        }
        if began.elapsed() > LIMIT {
            bail!("`{line}` has not ended after {} s, so it was stopped", LIMIT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// A process that ends when the value is dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The cargo that builds the examples.
struct Cargo {
    /// The toolchain, if it is not the active one.
    toolchain: Option<String>,
    target: PathBuf,
}

impl Cargo {
    /// The active toolchain, or if it is too old for the example, one that rustup has or installs.
    fn find(example: &Example) -> Result<Self> {
        let needed = example.rust()?;
        let target = target_folder().join("embed");
        let active = rustc(None).args(["--version"]).probe().unwrap_or_default();
        if version(&active) >= version(&needed) {
            return Ok(Cargo { toolchain: None, target });
        }
        ensure!(
            has_rustup(),
            "the example '{}' needs Rust {needed}, and this is {}. Install a newer one.",
            example.name,
            active.trim()
        );
        if rustc(Some(&needed)).args(["--version"]).probe().is_none() {
            let install = ["toolchain", "install", &needed, "--profile", "minimal"];
            let line = CommandLine::new("rustup").args(install).args(["--no-self-update"]);
            ensure!(line.run()?.is_success(), "`{line}` failed; see its output above");
        }
        Ok(Cargo { toolchain: Some(needed), target })
    }

    fn command(&self, command: &str, packages: &[&str]) -> CommandLine {
        let line = match &self.toolchain {
            None => CommandLine::cargo([command]),
            Some(toolchain) => {
                CommandLine::new("rustup").args(["run", toolchain.as_str(), "cargo", command])
            }
        };
        let line = line.args(["--locked", "--manifest-path", MANIFEST, "--target-dir"]);
        let line = line.args([self.target.to_string_lossy()]);
        packages.iter().fold(line, |line, package| line.args(["--package", package]))
    }

    fn build(&self, example: &Example) -> Result<Status> {
        self.command("build", &[example.package]).run()
    }

    /// Runs the tests of the example and of what all share: together, so that both use the build of the example.
    fn test(&self, example: &Example) -> Result<Status> {
        self.command("test", &[example.package, "wgrad-embed-support"]).args(["--quiet"]).run()
    }

    /// The example as a command, on a display.
    fn line(&self, example: &Example, display: Option<&Display>) -> CommandLine {
        let name = format!("{}{}", example.package, std::env::consts::EXE_SUFFIX);
        let program: &Path = &self.target.join("debug").join(name);
        let line = CommandLine::new(program.to_string_lossy());
        match display {
            Some(display) => line.env("DISPLAY", &display.name),
            None => line,
        }
    }
}

/// The first version number in a text, as `[1, 97, 1]` in `rustc 1.97.1 (8bab26f4f 2026-07-14)`.
fn version(text: &str) -> Vec<u32> {
    let word = text.split_whitespace().find(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    // A nightly is `1.101.0-nightly`.
    let number = word.unwrap_or_default().split('-').next().unwrap_or_default();
    number.split('.').map_while(|part| part.parse().ok()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn names(arguments: &str) -> Vec<&'static str> {
        let draw = Draw::for_tests(arguments, &NAMES).unwrap();
        chosen(&draw).iter().map(|example| example.name).collect()
    }

    #[test]
    fn a_name_or_the_day_chooses() {
        assert_eq!(names(""), NAMES);
        assert_eq!(names("egui"), ["egui"]);
        assert_eq!(names("bevy winit"), ["winit", "bevy"]);
        let days: Vec<_> =
            (0..6).flat_map(|day| names(&format!("--sample --seed {day}"))).collect();
        assert_eq!(days, ["winit", "egui", "winit", "egui", "winit", "bevy"]);
        assert_eq!(names("egui --sample --seed 5"), ["egui"]);
        assert!(Draw::for_tests("gtk", &NAMES).is_err());
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        let rustc = version("rustc 1.97.1 (8bab26f4f 2026-07-14)");
        assert_eq!(rustc, [1, 97, 1]);
        assert!(version("rustc 1.101.0-nightly (92b5b8c87 2026-10-29)") > rustc);
        assert!(version("rustc 1.95.0") < rustc && version("1.97") < rustc);
        assert!(version("") < rustc);
    }

    #[test]
    fn the_examples_are_packages_of_their_workspace() {
        let path = workspace_root().join(MANIFEST);
        let manifest = std::fs::read_to_string(&path).unwrap();
        assert!(version(declared_rust(&manifest).unwrap()) >= vec![1, 95]);
        assert!(version(&EXAMPLES[2].rust().unwrap()) > version(&EXAMPLES[0].rust().unwrap()));
        for example in &EXAMPLES {
            let own = path.with_file_name(example.name).join("Cargo.toml");
            let text = std::fs::read_to_string(own).unwrap();
            assert!(text.contains(&format!("name = \"{}\"", example.package)), "{}", example.name);
        }
    }
}
