//! `cargo xtask COMMAND`: wgrad's developer commands, in plain Rust so that they work the same on Linux, macOS and Windows.
//!
//! A command is one row of [`COMMANDS`]: its name, its line in the help and its function. The exit status of the child process
//! that ended a command is the exit status of `cargo xtask`.

mod adapters;
mod bench;
mod c;
mod check;
mod draw;
mod embed;
mod footprint;
mod hostile;
mod judge;
mod mpi;
mod package;
mod python;
mod races;
mod report;
mod run;
mod setup;
mod system;
mod targets;
mod toolchain;
mod validation;
mod virtual_environment;
mod web;

use std::io::Write;
use std::process::ExitCode;

use anyhow::Result;

use crate::run::{CommandLine, Status, UNIT_TESTS, first_failure, side_by_side};

/// Exit status for a command line without a known command.
const USAGE_ERROR: u8 = 2;

/// One command of `cargo xtask`.
struct Command {
    name: &'static str,
    /// The arguments that the help shows after the name; empty for a command without arguments.
    arguments: &'static str,
    summary: &'static str,
    run: fn(&[String]) -> Result<Status>,
}

/// Every command, in the order of the help. Add new ones here.
const COMMANDS: &[Command] = &[
    Command {
        name: "setup",
        arguments: "",
        summary: "prepare this machine to run wgrad, or report what is missing",
        run: |_| setup::run().map(|()| Status::SUCCESS),
    },
    Command {
        name: "mnist",
        arguments: "[ARGS...]",
        summary: "setup, then train the MNIST example (ARGS go to the example)",
        run: mnist,
    },
    Command {
        name: "test",
        arguments: "[ARGS...]",
        summary: "setup, then run the whole test suite (ARGS go to cargo test)",
        run: test,
    },
    Command {
        name: "judge",
        arguments: "[ARGS...]",
        summary: "check with TensorFlow, from PyPI, the files that wgrad writes (--sample: a third; other ARGS go to the tests)",
        run: judge::run,
    },
    Command {
        name: "mpi",
        arguments: "[--mpich] [ARGS...]",
        summary: "setup with an MPI library, then the tests of several processes (ARGS go to cargo test); --mpich: with MPICH",
        run: mpi::run,
    },
    Command {
        name: "python",
        arguments: "[--release] [ARGS...]",
        summary: "setup, then build the Python module and run its tests (ARGS go to unittest); --wheel makes a wheel",
        run: python::run,
    },
    Command {
        name: "hostile",
        arguments: "[ARGS...]",
        summary: "run tests on drivers that compute as badly as WGSL permits (--help lists ARGS)",
        run: hostile::run,
    },
    Command {
        name: "races",
        arguments: "[ARGS...]",
        summary: "interpret all kernels to find races and diverging barriers (--help lists ARGS)",
        run: races::run,
    },
    Command {
        name: "adapters",
        arguments: "[ARGS...]",
        summary: "plan for every known adapter, and check the kernels with other compilers (--help lists ARGS)",
        run: adapters::run,
    },
    Command {
        name: "validation",
        arguments: "[ARGS...]",
        summary: "run tests under Vulkan's validation layer (--sample: three files of them)",
        run: validation::run,
    },
    Command {
        name: "kernels",
        arguments: "[ARGS...]",
        summary: "compile kernels with AMD's compiler, without a GPU, and show the result (--help lists ARGS)",
        run: kernels,
    },
    Command {
        name: "bench",
        arguments: "[ARGS...]",
        summary: "compare wgrad with Burn (--web: with other libraries in Chromium) (--help lists ARGS)",
        run: bench::run,
    },
    Command {
        name: "footprint",
        arguments: "[ARGS...]",
        summary: "compare the size, the memory and the compile time of small programs over several libraries (--help lists ARGS)",
        run: footprint::run,
    },
    Command {
        name: "report",
        arguments: "[ARGS...]",
        summary: "check wgrad on this GPU and write a file to attach to a report (--help lists ARGS)",
        run: report::run,
    },
    Command {
        name: "web",
        arguments: "[ARGS...]",
        summary: "build the page and the npm package; --serve, --test (--help lists ARGS)",
        run: web::run,
    },
    Command {
        name: "c",
        arguments: "[ARGS...]",
        summary: "build the C API, and run programs in C, C++ and Lua, also under sanitizers (--help lists ARGS)",
        run: c::run,
    },
    Command {
        name: "embed",
        arguments: "[ARGS...]",
        summary: "run wgrad inside winit, egui and Bevy, in windows (--sample: one of them; --help lists ARGS)",
        run: embed::run,
    },
    Command {
        name: "package",
        arguments: "[ARGS...]",
        summary: "make and check everything that a release consists of, and publish nothing (--help lists ARGS)",
        run: package::run,
    },
    Command {
        name: "check",
        arguments: "[ARGS...]",
        summary: "formatting, clippy, documentation, and each feature alone (--sample: an eighth of the features)",
        run: check::run,
    },
    Command {
        name: "targets",
        arguments: "[ARGS...]",
        summary: "check that the library compiles for Windows, macOS and Android, and with the oldest Rust (--sample: two of them)",
        run: targets::run,
    },
];

fn main() -> ExitCode {
    let arguments: Vec<String> =
        std::env::args_os().skip(1).map(|a| a.to_string_lossy().into_owned()).collect();
    match dispatch(&arguments) {
        Action::Help => {
            // A closed pipe, as in `| head`, is not an error.
            let _ = std::io::stdout().write_all(help().as_bytes());
            ExitCode::SUCCESS
        }
        Action::Misuse(problem) => {
            eprintln!("error: {problem}\n");
            eprint!("{}", help());
            ExitCode::from(USAGE_ERROR)
        }
        Action::Run(command, rest) => match (command.run)(rest) {
            Ok(status) => status.into(),
            Err(error) => {
                eprintln!("error: {error:#}");
                ExitCode::FAILURE
            }
        },
    }
}

/// What the command line requests.
enum Action<'a> {
    Help,
    Misuse(String),
    Run(&'static Command, &'a [String]),
}

fn dispatch(arguments: &[String]) -> Action<'_> {
    let Some((name, rest)) = arguments.split_first() else {
        return Action::Help;
    };
    if matches!(name.as_str(), "help" | "-h" | "--help") {
        return Action::Help;
    }
    match COMMANDS.iter().find(|command| command.name == name) {
        None => Action::Misuse(format!("`cargo xtask` has no command `{name}`.")),
        Some(command) if command.arguments.is_empty() && !rest.is_empty() => {
            Action::Misuse(format!("`cargo xtask {name}` takes no arguments."))
        }
        Some(command) => Action::Run(command, rest),
    }
}

fn help() -> String {
    let usages: Vec<String> = COMMANDS
        .iter()
        .map(|command| format!("{} {}", command.name, command.arguments).trim_end().to_owned())
        .collect();
    let width = usages.iter().map(String::len).max().unwrap_or(0);
    let mut text = String::from("Usage: cargo xtask COMMAND\n\nCommands:\n");
    for (usage, command) in usages.iter().zip(COMMANDS) {
        text.push_str(&format!("  {usage:width$}  {}\n", command.summary));
    }
    text
}

fn mnist(arguments: &[String]) -> Result<Status> {
    setup::run()?;
    // Same as the alias `cargo example`.
    CommandLine::cargo([
        "run",
        "--release",
        "--package",
        "wgrad-examples",
        "--features",
        "download",
    ])
    .args(["--bin", "mnist", "--"])
    .args(arguments)
    .run()
}

fn kernels(arguments: &[String]) -> Result<Status> {
    const FAMILY: &str = "RADV_FORCE_FAMILY";
    setup::run()?;
    let family = std::env::var(FAMILY).unwrap_or_else(|_| "navi21".to_owned());
    let portable = std::env::var("WGRAD_PORTABLE").unwrap_or_else(|_| "1".to_owned());
    CommandLine::cargo(["run", "--quiet", "--package", "wgrad-kernels", "--"])
        .args(arguments)
        .env(FAMILY, &family)
        .env("WGRAD_PORTABLE", &portable)
        .run()
}

fn test(arguments: &[String]) -> Result<Status> {
    setup::run()?;
    mpi::set_up();
    let mut cargo = CommandLine::cargo_test();
    // With llvmpipe, tests mostly wait for its compiler, which takes two thirds of the time without LLVM's optimizer. The
    // judge's programs, Firefox and the real MNIST run with the optimizer.
    if std::env::var_os("GALLIVM_PERF").is_none() {
        cargo = cargo.env("GALLIVM_PERF", "nopt");
    }
    if !arguments.is_empty() {
        return cargo.args(arguments).run();
    }
    let status = cargo.clone().args(["--no-run"]).run()?;
    if !status.is_success() {
        return Ok(status);
    }
    // Cargo runs one test program after the other, and a software driver compiles a program's kernels on one core. Two at a time
    // use two cores. Each test matches exactly one of the patterns; the longest parts come first.
    let cargo = cargo.args(["--no-fail-fast"]);
    let parts = [
        cargo.clone().args(UNIT_TESTS),
        cargo.clone().args(["--test", "[p-z]*"]),
        cargo.clone().args(["--test", "[!f-z]*"]),
        cargo.clone().args(["--test", "[f-l]*"]),
        cargo.clone().args(["--test", "[m-o]*"]),
    ];
    let statuses = [first_failure(side_by_side(&parts, 2)?), cargo.args(["--doc"]).run()?];
    Ok(first_failure(statuses))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn no_command_and_help_ask_for_the_help() {
        for line in ["", "help", "-h", "--help"] {
            assert!(matches!(dispatch(&words(line)), Action::Help), "{line:?}");
        }
    }

    #[test]
    fn a_command_gets_the_arguments_behind_its_name() {
        let line = words("test --release -- --nocapture");
        let Action::Run(command, rest) = dispatch(&line) else {
            panic!("`test` was not recognised");
        };
        assert_eq!(command.name, "test");
        assert_eq!(rest, ["--release", "--", "--nocapture"]);
    }

    #[test]
    fn an_unknown_command_and_needless_arguments_are_misuse() {
        for line in ["bake", "setup now"] {
            assert!(matches!(dispatch(&words(line)), Action::Misuse(_)), "{line:?}");
        }
    }

    /// Parts run on few days, so a wrong argument would be noticed late.
    #[test]
    fn continuous_integration_passes_arguments_that_exist() {
        let script = run::workspace_root().join(".ci/run");
        let script = std::fs::read_to_string(script).unwrap();
        let lines = script.lines().filter_map(|line| line.split_once("cargo xtask "));
        let lines: Vec<_> = lines.map(|(_, line)| words(&line.replace("\"$turn\"", "7"))).collect();
        let parsing = ["hostile", "races", "adapters", "embed", "targets", "check", "web"];
        for parsing in parsing {
            assert!(lines.iter().any(|line| line[0] == parsing), "CI does not run {parsing}");
        }
        for line in lines {
            let Action::Run(command, rest) = dispatch(&line) else {
                panic!("`cargo xtask` does not support {line:?}");
            };
            if parsing.contains(&command.name) {
                // All arguments are parsed before the help is printed.
                let result = (command.run)(&[rest, &["--help".to_owned()]].concat());
                assert!(result.is_ok(), "{line:?}: {:?}", result.err());
            }
        }
    }

    #[test]
    fn the_help_has_one_line_for_each_command() {
        let text = help();
        for command in COMMANDS {
            let lines = text.lines().filter(|line| {
                line.starts_with("  ") && line.split_whitespace().next() == Some(command.name)
            });
            assert_eq!(lines.count(), 1, "{}", command.name);
        }
    }
}
