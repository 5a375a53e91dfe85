//! `cargo xtask bench`: builds the program in `benches/peers` that measures wgrad beside other libraries, and runs it.
//!
//! The program is a workspace of its own, so that nobody builds Burn who does not ask for it.

use anyhow::{Result, bail};

use crate::run::{CommandLine, Status};
use crate::{setup, web};

/// The manifest of the program, from the workspace's root.
pub const MANIFEST: &str = "benches/peers/Cargo.toml";

/// Arguments that decide what is built, and are therefore handled here.
const WITHOUT_BURN: &str = "--without-burn";
const SPIRV: &str = "--spirv";

/// Groups of cases that measure wgrad alone. They never run beside others, so Burn is not built for them.
const ALONE: [&str; 3] = ["planning", "cold", "lengths"];

/// Measures in a browser, beside TensorFlow.js and jax-js, rather than here.
const WEB: &str = "--web";

/// Measures. The arguments are the program's own, `--without-burn` and `--spirv`; or `--web` and that one's own.
pub fn run(arguments: &[String]) -> Result<Status> {
    if arguments.iter().any(|argument| argument == WEB) {
        let rest: Vec<String> = arguments.iter().filter(|a| *a != WEB).cloned().collect();
        return web::bench(&rest);
    }
    let Commands { build, measure } = commands(arguments);
    if arguments.iter().any(|argument| argument == "--help" || argument == "-h") {
        return measure.run();
    }
    setup::run()?;
    if !build.run()?.is_success() {
        bail!(
            "the benchmarks in benches/peers did not build; the compiler's words stand above. Burn needs Rust 1.95 or \
             newer (`rustup update stable`), access to the crates' registry and about 4 GB of disk, and takes 10 to \
             30 minutes on two cores. `cargo xtask bench {WITHOUT_BURN}` measures wgrad alone."
        );
    }
    measure.run()
}

/// What is run, in this order.
#[derive(Debug, PartialEq, Eq)]
struct Commands {
    build: CommandLine,
    measure: CommandLine,
}

fn commands(arguments: &[String]) -> Commands {
    let given = |name: &str| arguments.iter().any(|argument| argument == name);
    let cargo = |command: &str| {
        let mut line = CommandLine::cargo([command, "--release", "--manifest-path", MANIFEST]);
        // The help is the same without Burn, and sooner there.
        if given(WITHOUT_BURN) || given("--help") || given("-h") || is_alone(arguments) {
            line = line.args(["--no-default-features"]);
        } else if given(SPIRV) {
            line = line.args(["--features", "spirv"]);
        }
        line
    };
    let rest = arguments.iter().filter(|a| ![WITHOUT_BURN, SPIRV].contains(&a.as_str()));
    Commands { build: cargo("build"), measure: cargo("run").args(["--quiet", "--"]).args(rest) }
}

/// Whether the cases that `--only` names are of wgrad alone.
fn is_alone(arguments: &[String]) -> bool {
    let names = arguments.windows(2).filter(|pair| pair[0] == "--only").map(|pair| &pair[1]);
    let mut names = names.flat_map(|list| list.split(',')).peekable();
    let alone = |name: &str| ALONE.contains(&name.trim().split('_').next().unwrap_or_default());
    names.peek().is_some() && names.all(alone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(arguments: &[&str]) -> [String; 2] {
        let arguments: Vec<String> = arguments.iter().map(|&a| a.to_owned()).collect();
        let Commands { build, measure } = commands(&arguments);
        [build.to_string(), measure.to_string()]
    }

    #[test]
    fn arguments_go_to_the_program() {
        let common = format!("--release --manifest-path {MANIFEST}");
        let expected = [
            format!("cargo build {common}"),
            format!("cargo run {common} --quiet -- --only matmul"),
        ];
        assert_eq!(lines(&["--only", "matmul"]), expected);
    }

    #[test]
    fn some_arguments_change_what_is_built() {
        let [build, measure] = lines(&["--quick", "--without-burn"]);
        assert!(build.ends_with("--no-default-features"), "{build}");
        assert!(measure.ends_with("--no-default-features --quiet -- --quick"), "{measure}");
        let [build, _] = lines(&["--only", "planning_chain,cold"]);
        assert!(build.ends_with("--no-default-features"), "{build}");
        let [build, _] = lines(&["--only", "planning,matmul"]);
        assert!(build.ends_with(MANIFEST), "{build}");
        let [build, measure] = lines(&["--spirv", "--json", "a.json"]);
        assert!(build.ends_with("--features spirv"), "{build}");
        assert!(measure.ends_with("--features spirv --quiet -- --json a.json"), "{measure}");
    }
}
