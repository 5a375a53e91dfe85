//! The arguments of long-running commands: `--sample` runs a part that a seed selects, and each command has its own flags.

use anyhow::{Context, Result, bail};

use crate::run::today;

/// The parsed arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Draw {
    /// Run a part that takes some minutes.
    pub sample: bool,
    /// Selects the part, and seeds everything random.
    pub seed: u64,
    flags: Vec<String>,
}

impl Draw {
    /// Parses the arguments of `cargo xtask` `command`, which supports these flags besides `--sample` and `--seed N`. The
    /// default seed is the day. `None` means that help was requested, with arguments that exist.
    pub fn of(command: &str, arguments: &[String], flags: &[&str]) -> Result<Option<Self>> {
        let (help, rest): (Vec<_>, Vec<_>) = arguments
            .iter()
            .cloned()
            .partition(|argument| argument == "--help" || argument == "-h");
        let draw = parsed(command, &rest, flags, today()?)?;
        Ok(help.is_empty().then_some(draw))
    }

    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|known| known == flag)
    }

    /// An index below `count`, determined by the seed.
    pub fn pick(&self, count: usize) -> usize {
        (self.seed % count.max(1) as u64) as usize
    }
}

fn parsed(command: &str, arguments: &[String], flags: &[&str], today: u64) -> Result<Draw> {
    let mut draw = Draw { sample: false, seed: today, flags: Vec::new() };
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--sample" => draw.sample = true,
            "--seed" => {
                let number = rest.next().and_then(|value| value.parse().ok());
                draw.seed = number.context("--seed takes a number")?;
            }
            flag if flags.contains(&flag) => draw.flags.push(flag.to_owned()),
            other => bail!("`cargo xtask {command}` has no {other}; --help lists its arguments"),
        }
    }
    Ok(draw)
}

#[cfg(test)]
impl Draw {
    /// Parses the arguments of a command that supports these flags.
    pub fn for_tests(arguments: &str, flags: &[&str]) -> Result<Self> {
        let words: Vec<String> = arguments.split_whitespace().map(str::to_owned).collect();
        parsed("test", &words, flags, 9)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_day_is_the_seed_unless_one_is_given() {
        let of = |arguments| Draw::for_tests(arguments, &["--kept"]);
        let none = of("").unwrap();
        assert!(!none.sample && none.seed == 9 && !none.has("--kept"));
        let some = of("--sample --seed 77 --kept").unwrap();
        assert!(some.sample && some.seed == 77 && some.has("--kept") && some.pick(10) == 7);
        for wrong in ["--seed", "--seed x", "--all", "sample"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }
}
