//! Compares wgrad with other libraries: the same work on the same adapter, alternating in one run.
//!
//! Without a subcommand (as in `cargo xtask bench`), this program is the harness: it starts itself as one child process for
//! each library and case, lets the children repeat the case alternately, and prints ratios. `wgrad-peers engine NAME --case
//! CASE` is such a child. `facts`, `variants` and `cases` serve `cargo xtask report`; `loading`
//! times ONNX models, `networks` known networks.

mod adapter;
mod alone;
#[cfg(feature = "burn")]
mod burn_engine;
mod cases;
mod child;
mod copy_engine;
mod harness;
mod inputs;
#[cfg(feature = "loading")]
mod loading;
mod networks;
mod options;
mod process;
mod report;
mod wgrad_engine;

use std::process::ExitCode;

/// Any error, as a message for the user.
pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.first().map(String::as_str) {
        Some("engine") => child::run(&arguments[1..]),
        Some("alone") => alone::child(&arguments[1..]),
        Some("facts") => adapter::facts(),
        Some("variants") => adapter::variants(&arguments[1..]),
        Some("cases") => cases(),
        #[cfg(feature = "loading")]
        Some("loading") => loading::run(&arguments[1..]),
        #[cfg(not(feature = "loading"))]
        Some("loading") => Err("this program was built without the feature `loading`".into()),
        Some("networks") => networks::run(&arguments[1..]),
        _ => match options::Options::parse(&arguments) {
            Ok(options::Parsed::Help) => {
                print!("{}", options::help());
                Ok(())
            }
            Ok(options::Parsed::Run(options)) if options.alone() => alone::run(&options),
            Ok(options::Parsed::Run(options)) => harness::run(&options),
            Err(problem) => {
                eprintln!("error: {problem}\n\n{}", options::help());
                return ExitCode::from(2);
            }
        },
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the names of all cases, including those for graphics cards, as a line of JSON.
fn cases() -> Result<()> {
    let names: Vec<String> = cases::all(true).into_iter().map(|case| case.name).collect();
    child::answer(serde_json::json!({ "names": names }))
}
