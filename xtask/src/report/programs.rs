//! The programs that a report runs: compiles them, and queries their lists.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use super::limited::{self, End};
use crate::bench;
use crate::run::CommandLine;

pub const MESSAGES: &str = "--message-format=json-render-diagnostics";

/// The time limit for the facts about the adapter, without which there is no report.
const FACTS: Duration = Duration::from_secs(60);

/// The compiled programs.
pub struct Programs {
    pub oracle: PathBuf,
    /// Tests of plans, among them the random programs.
    pub fusion: PathBuf,
    pub peers: PathBuf,
}

impl Programs {
    /// The programs of a pack, in its folder.
    pub fn packed(folder: &Path) -> Self {
        let program = |name: &str| folder.join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
        Self { oracle: program("oracle"), fusion: program("fusion"), peers: program("wgrad-peers") }
    }

    pub fn build() -> Result<Self> {
        let tests = [
            "test",
            "--no-run",
            MESSAGES,
            "--features=inventory",
            "--test",
            "oracle",
            "--test",
            "fusion",
        ];
        let tests = compiled(&CommandLine::cargo(tests))?;
        let peers = [
            "build",
            "--release",
            "--no-default-features",
            MESSAGES,
            "--manifest-path",
            bench::MANIFEST,
        ];
        let peers = compiled(&CommandLine::cargo(peers))?;
        Ok(Self {
            oracle: named(&tests, "oracle")?,
            fusion: named(&tests, "fusion")?,
            peers: named(&peers, "wgrad-peers")?,
        })
    }

    pub fn peers(&self, words: &[&str]) -> CommandLine {
        CommandLine::new(self.peers.to_string_lossy()).args(words)
    }

    /// The adapter's properties, and the warnings of opening it; an error if there is no adapter.
    pub fn facts(&self) -> Result<(Value, Vec<String>)> {
        let ended = limited::run(&self.peers(&["facts"]), FACTS)?;
        let warnings = ended.errors.iter().filter_map(|line| line.strip_prefix("warning: "));
        let warnings = warnings.map(str::to_owned).collect();
        let facts = ended.output.iter().find_map(|line| serde_json::from_str::<Value>(line).ok());
        match (ended.end, facts) {
            (End::Exit(0), Some(facts)) => Ok((facts, warnings)),
            (End::Late, _) => bail!(
                "the adapter did not answer within {} s. WGRAD_ADAPTER selects another one.",
                FACTS.as_secs()
            ),
            (End::Crash(how), _) => bail!(
                "the driver ended the program ({how}) when the adapter was opened. WGRAD_ADAPTER selects another one.\n{}",
                ended.errors.join("\n")
            ),
            _ => {
                let words = ended.errors.iter().filter_map(|line| line.strip_prefix("error: "));
                let words: Vec<&str> = words.collect();
                bail!("there is no adapter to report on. {}", words.join(" "))
            }
        }
    }

    /// The names of the ops whose kernel variants are compared.
    pub fn variants(&self) -> Result<Vec<String>> {
        let text = self.peers(&["variants"]).probe().unwrap_or_default();
        let names: Value = serde_json::from_str(&text).context("`wgrad-peers variants`")?;
        let names = names["names"].as_array().into_iter().flatten().filter_map(Value::as_str);
        Ok(names.map(str::to_owned).collect())
    }
}

/// Runs a cargo command, and returns the programs that it built, by name.
pub fn compiled(line: &CommandLine) -> Result<Vec<(String, PathBuf)>> {
    let (status, text) = line.read()?;
    if !status.is_success() {
        bail!("`{line}` failed; see the compiler's output above");
    }
    Ok(executables(&text))
}

fn executables(messages: &str) -> Vec<(String, PathBuf)> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let program = |message: Value| {
        let name = message["target"]["name"].as_str()?.to_owned();
        Some((name, PathBuf::from(message["executable"].as_str()?)))
    };
    messages.filter_map(program).collect()
}

pub fn named(programs: &[(String, PathBuf)], name: &str) -> Result<PathBuf> {
    let program = programs.iter().find(|(known, _)| known == name);
    program.map(|(_, path)| path.clone()).ok_or_else(|| anyhow!("cargo built no program `{name}`"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_in_what_cargo_says() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"wgrad"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"oracle"},"executable":"/t/oracle-1"}
{"reason":"build-finished","success":true}"#;
        let programs = executables(messages);
        assert_eq!(named(&programs, "oracle").unwrap(), Path::new("/t/oracle-1"));
        let error = named(&programs, "wgrad").unwrap_err().to_string();
        assert_eq!(error, "cargo built no program `wgrad`");
    }
}
