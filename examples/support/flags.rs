//! The flags that the examples share: `--steps`, `--seed`, `--data`, `--text` and `--out`.

use std::path::PathBuf;

use lexopt::prelude::*;

pub struct Flags {
    /// Training steps.
    pub steps: usize,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Folder of the four MNIST files, or what else the example reads.
    pub data: Option<PathBuf>,
    /// The beginning of a text, if the example continues one.
    #[allow(dead_code)] // Only one does.
    pub text: Option<String>,
    /// Folder for pictures and files.
    pub out: PathBuf,
}

impl Flags {
    /// Reads the program's arguments. For `--help` or an invalid argument, prints the usage and ends the program.
    pub fn parse(about: &str, steps: usize) -> Flags {
        read(steps).unwrap_or_else(|problem| {
            let usage = format!(
                "{about}\n\nOptions:\n  --steps <STEPS>  Steps of training [default: {steps}]\n  \
                 --seed <SEED>    Seed of the random numbers [default: 1]\n  \
                 --data <DATA>    Folder of the four MNIST files, or what else the example reads\n  \
                 --text <TEXT>    Beginning of a text, if the example continues one\n  \
                 --out <OUT>      Folder for pictures and files [default: out]"
            );
            match problem {
                None => {
                    println!("{usage}");
                    std::process::exit(0)
                }
                Some(problem) => {
                    eprintln!("error: {problem}\n\n{usage}");
                    std::process::exit(2)
                }
            }
        })
    }
}

/// `Err(None)` if help was requested.
fn read(steps: usize) -> Result<Flags, Option<lexopt::Error>> {
    let mut flags = Flags { steps, seed: 1, data: None, text: None, out: "out".into() };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("steps") => {
                flags.steps = parser.value()?.parse()?;
                if flags.steps == 0 {
                    return Err(Some("--steps must be a whole number from 1 on".into()));
                }
            }
            Long("seed") => flags.seed = parser.value()?.parse()?,
            Long("data") => flags.data = Some(parser.value()?.into()),
            Long("text") => flags.text = Some(parser.value()?.string()?),
            Long("out") => flags.out = parser.value()?.into(),
            Short('h') | Long("help") => return Err(None),
            other => return Err(Some(other.unexpected())),
        }
    }
    Ok(flags)
}
