//! `cargo xtask check`: static checks, with warnings as errors, and builds with each feature alone.

use anyhow::{Context, Result};

use crate::draw::Draw;
use crate::run::{CommandLine, Status, workspace_root};
use crate::{bench, embed, footprint, mpi};

const HELP: &str = "\
Usage: cargo xtask check [--sample] [--seed N]

Checks formatting, clippy and the documentation with all features, and that the library compiles without features and with each
feature alone.

  --sample   an eighth of the features, drawn by the day
  --seed N   decides which
";

/// Stops at the first failure.
pub fn run(arguments: &[String]) -> Result<Status> {
    let Some(draw) = Draw::of("check", arguments, &[])? else {
        print!("{HELP}");
        return Ok(Status::SUCCESS);
    };
    mpi::require("cargo xtask check")?;
    let formatted = |manifest| {
        CommandLine::cargo(["fmt", "--all", "--manifest-path", manifest, "--", "--check"])
    };
    let mut steps = vec![
        CommandLine::cargo(["fmt", "--all", "--", "--check"]),
        // Formatting only: building them would build Burn and Bevy.
        formatted(bench::MANIFEST),
        formatted(footprint::MANIFEST),
        formatted(embed::MANIFEST),
        CommandLine::cargo(["clippy", "--workspace", "--all-targets", "--all-features"])
            .args(["--", "-D", "warnings"]),
        CommandLine::cargo(["doc", "--workspace", "--no-deps", "--all-features"])
            .env("RUSTDOCFLAGS", "-D warnings"),
    ];
    let manifest = std::fs::read_to_string(workspace_root().join("Cargo.toml"))
        .context("cannot read Cargo.toml")?;
    let alone = features(&manifest).context("Cargo.toml declares no features")?;
    for feature in std::iter::once("").chain(drawn(alone, &draw)) {
        let core = ["check", "--quiet", "--package", "wgrad", "--lib", "--no-default-features"];
        steps.push(CommandLine::cargo(core).args(["--features", feature]));
    }
    for step in steps {
        let status = step.run()?;
        if !status.is_success() {
            return Ok(status);
        }
    }
    Ok(Status::SUCCESS)
}

/// The features in the text of a `Cargo.toml`, except `default`.
fn features(manifest: &str) -> Option<Vec<&str>> {
    let (_, section) = manifest.split_once("\n[features]\n")?;
    let section = section.split_once("\n[").map_or(section, |(section, _)| section);
    let names = section.lines().filter_map(|line| line.split_once(" = ").map(|(name, _)| name));
    Some(names.filter(|name| !name.starts_with('#') && *name != "default").collect())
}

fn drawn<'a>(features: Vec<&'a str>, draw: &Draw) -> Vec<&'a str> {
    let part = |at: &usize| !draw.sample || at % 8 == draw.pick(8);
    features.iter().enumerate().filter(|(at, _)| part(at)).map(|(_, name)| *name).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_is_checked_on_one_of_eight_days() {
        let text = "[package]\nname = \"a\"\n\n[features]\ndefault = [\"b\"]\n# With c = d.\nb = []\nc-d = [\"dep:e\"]\n\n\
                    [dependencies]\nf = \"1\"\n";
        assert_eq!(features(text).unwrap(), ["b", "c-d"]);
        assert_eq!(features("[package]\n"), None);
        let own = std::fs::read_to_string(workspace_root().join("Cargo.toml")).unwrap();
        let own = features(&own).unwrap();
        assert!(own.contains(&"keras") && own.contains(&"summary") && !own.contains(&"default"));

        let on = |day: usize| {
            let draw = Draw::for_tests(&format!("--sample --seed {day}"), &[]).unwrap();
            drawn(own.clone(), &draw)
        };
        let mut all = (0..8).flat_map(on).collect::<Vec<_>>();
        all.sort_unstable();
        let mut expected = own.clone();
        expected.sort_unstable();
        assert_eq!(all, expected);
        assert_eq!(drawn(own.clone(), &Draw::for_tests("", &[]).unwrap()), own);
    }
}
