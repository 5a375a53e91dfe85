//! `cargo xtask bench`: builds and runs the program in `benches/peers`, which compares wgrad with other libraries.
//!
//! The program is a separate workspace, so that Burn is built only on request.

use anyhow::{Result, bail};

use crate::run::{CommandLine, Status};
use crate::{setup, web};

/// The manifest of the program, from the workspace's root.
pub const MANIFEST: &str = "benches/peers/Cargo.toml";

/// Decides what is built, so it is handled here.
const WITHOUT_BURN: &str = "--without-burn";
const SPIRV: &str = "--spirv";

/// Groups of cases that measure wgrad alone. Burn is not built for them.
const ALONE: [&str; 3] = ["planning", "cold", "lengths"];

/// Measures in a browser instead, next to TensorFlow.js and jax-js.
const WEB: &str = "--web";

/// Times the loading of ONNX models: the first argument. It builds tract and Burn's import in place of Burn.
const LOADING: &str = "loading";

/// Measures known networks: the first argument. It also builds candle.
const NETWORKS: &str = "networks";

/// Runs the benchmark. The arguments are those of the program, `--without-burn` and `--spirv`; or `--web` with its own.
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
            "the benchmarks in benches/peers did not build; see the compiler's output above. Burn needs Rust 1.95 or \
             newer (`rustup update stable`), access to the crates' registry and about 4 GB of disk, and takes 10 to \
             30 minutes on two cores. `cargo xtask bench {WITHOUT_BURN}` measures wgrad alone."
        );
    }
    measure.run()
}

/// The commands to run, in this order.
#[derive(Debug, PartialEq, Eq)]
struct Commands {
    build: CommandLine,
    measure: CommandLine,
}

fn commands(arguments: &[String]) -> Commands {
    let given = |name: &str| arguments.iter().any(|argument| argument == name);
    let help = given("--help") || given("-h");
    let cargo = |command: &str| {
        let mut line = CommandLine::cargo([command, "--release", "--manifest-path", MANIFEST]);
        let first = arguments.first().map(String::as_str);
        // The help is the same without Burn and is available sooner.
        if first == Some(NETWORKS) && !help {
            if given(WITHOUT_BURN) {
                line = line.args(["--no-default-features"]);
            }
            line = line.args(["--features", "candle"]);
        } else if first == Some(LOADING) {
            let features = match (help, given(WITHOUT_BURN)) {
                (true, _) => "loading",
                (_, true) => "tract",
                _ => "tract,burn-onnx",
            };
            line = line.args(["--no-default-features", "--features", features]);
        } else if given(WITHOUT_BURN) || help || is_alone(arguments) {
            line = line.args(["--no-default-features"]);
        } else if given(SPIRV) {
            line = line.args(["--features", "spirv"]);
        }
        line
    };
    let rest = arguments.iter().filter(|a| ![WITHOUT_BURN, SPIRV].contains(&a.as_str()));
    Commands { build: cargo("build"), measure: cargo("run").args(["--quiet", "--"]).args(rest) }
}

/// Whether all cases of `--only` measure wgrad alone.
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
        let [build, measure] = lines(&["loading", "time", "folder", "--without-burn"]);
        assert!(build.ends_with("--no-default-features --features tract"), "{build}");
        assert!(measure.ends_with("--features tract --quiet -- loading time folder"), "{measure}");
        let [build, _] = lines(&["loading", "nodes", "folder"]);
        assert!(build.ends_with("--features tract,burn-onnx"), "{build}");
        let [build, _] = lines(&["loading", "--help"]);
        assert!(build.ends_with("--features loading"), "{build}");
        let [build, measure] = lines(&["networks", "folder", "--without-burn"]);
        assert!(build.ends_with("--no-default-features --features candle"), "{build}");
        assert!(measure.ends_with("--features candle --quiet -- networks folder"), "{measure}");
        let [build, _] = lines(&["networks", "folder"]);
        assert!(build.ends_with("peers/Cargo.toml --features candle"), "{build}");
        let [build, _] = lines(&["networks", "--help"]);
        assert!(build.ends_with("--no-default-features"), "{build}");
        let [build, _] = lines(&["--only", "planning_chain,cold"]);
        assert!(build.ends_with("--no-default-features"), "{build}");
        let [build, _] = lines(&["--only", "planning,matmul"]);
        assert!(build.ends_with(MANIFEST), "{build}");
        let [build, measure] = lines(&["--spirv", "--json", "a.json"]);
        assert!(build.ends_with("--features spirv"), "{build}");
        assert!(measure.ends_with("--features spirv --quiet -- --json a.json"), "{measure}");
    }
}
