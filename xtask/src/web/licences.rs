//! Collects the licence texts of the crates that are compiled into the wasm, to be published with it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::Value;

use crate::run::CommandLine;
use crate::web::package::CRATE;
use crate::web::target::TRIPLE;

/// The package's file with the texts.
pub const FILE: &str = "THIRD-PARTY-LICENSES.txt";

/// A crate's licence information.
struct Licensed {
    name: String,
    /// As an SPDX expression.
    licence: String,
    /// The licence texts; empty if the package has none.
    texts: Vec<String>,
}

/// The text of [`FILE`].
pub fn collect() -> Result<String> {
    let run = |line: CommandLine| {
        line.probe().ok_or_else(|| anyhow!("`{line}` failed; run it to see why"))
    };
    let tree =
        run(CommandLine::cargo(["tree", "--locked", "--package", CRATE, "--target", TRIPLE])
            .args(["--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"]))?;
    let all = CommandLine::cargo(["metadata", "--locked", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&run(all.args(["--filter-platform", TRIPLE]))?)
        .context("cargo's metadata is not JSON")?;
    let packages = metadata["packages"].as_array().context("cargo's metadata lacks `packages`")?;
    let mut crates = BTreeMap::new();
    for (name, version) in compiled(&tree) {
        let package = packages
            .iter()
            .find(|package| package["name"] == name && package["version"] == version)
            .with_context(|| format!("cargo's metadata lacks {name} {version}"))?;
        // A package without a source belongs to this workspace and has the package's own licence.
        if !package["source"].is_null() {
            crates.insert(format!("{name} {version}"), licensed(package)?);
        }
    }
    ensure!(!crates.is_empty(), "cargo tree names no crate in the wasm");
    written(crates.into_values().collect())
}

/// Names and versions, from the lines of `cargo tree` such as `bytes v1.12.1` and `wgrad v0.1.0 (/src/...)`.
fn compiled(tree: &str) -> Vec<(&str, &str)> {
    let mut pairs = Vec::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        if let (Some(name), Some(version)) = (words.next(), words.next()) {
            pairs.push((name, version.trim_start_matches('v')));
        }
    }
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}

fn licensed(package: &Value) -> Result<Licensed> {
    let word = |key: &str| {
        package[key].as_str().with_context(|| format!("{} lacks `{key}`", package["name"]))
    };
    let (name, licence) = (format!("{} {}", word("name")?, word("version")?), word("license")?);
    let manifest = Path::new(word("manifest_path")?);
    let folder = manifest.parent().with_context(|| format!("{name} has no folder"))?;
    let mut files = Vec::new();
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?
    {
        files.extend(entry?.file_name().into_string());
    }
    let texts = chosen(licence, files)
        .iter()
        .map(|file| {
            let path = folder.join(file);
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
        })
        .collect::<Result<_>>()?;
    Ok(Licensed { name, licence: licence.to_owned(), texts })
}

/// The files of a crate that must be included: MIT alone if there is a choice of licences, and always notices.
fn chosen(licence: &str, mut files: Vec<String>) -> Vec<String> {
    let begins = |file: &str, starts: &[&str]| {
        let file = file.to_uppercase();
        starts.iter().any(|start| file.starts_with(start))
    };
    files.retain(|file| begins(file, &["LICENSE", "LICENCE", "COPYING", "UNLICENSE", "NOTICE"]));
    files.sort();
    let is_mit = |file: &String| file.to_uppercase().contains("MIT");
    if !licence.contains("AND") && files.iter().any(is_mit) {
        files.retain(|file| is_mit(file) || begins(file, &["NOTICE"]));
    }
    files
}

/// Each text once, below the names of its crates.
fn written(crates: Vec<Licensed>) -> Result<String> {
    let mut by_texts: BTreeMap<Vec<String>, Vec<String>> = BTreeMap::new();
    for Licensed { name, licence, texts } in crates {
        if texts.is_empty() && !licence.contains("Apache-2.0") {
            bail!(
                "{name} ({licence}) has no licence file, and the package no text of that licence"
            );
        }
        by_texts.entry(texts).or_default().push(format!("{name}  ({licence})"));
    }
    let mut text = String::from(
        "wgrad_bg.wasm holds code of these projects, under their licences. wgrad's own are LICENSE-MIT and LICENSE-APACHE.\n",
    );
    let rule = "-".repeat(80);
    let mut groups: Vec<_> = by_texts.into_iter().collect();
    // By the name of the first crate.
    groups.sort_by(|(_, a), (_, b)| a.cmp(b));
    let std = "Rust's standard library  (MIT OR Apache-2.0)".to_owned();
    groups.push((Vec::new(), vec![std]));
    for (texts, names) in groups {
        write!(text, "\n{rule}\n{}\n{rule}\n", names.join("\n"))?;
        match texts.as_slice() {
            [] => text += "\nUnder the Apache License 2.0, whose text is LICENSE-APACHE.\n",
            texts => texts.iter().try_for_each(|each| writeln!(text, "\n{}", each.trim()))?,
        }
    }
    Ok(text)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_names_each_crate_once() {
        let tree = "wgrad v0.1.0 (/src/wgrad)\nbytes v1.12.1\nlog v0.4.35\nbytes v1.12.1 (*)\n\n";
        assert_eq!(compiled(tree), [("bytes", "1.12.1"), ("log", "0.4.35"), ("wgrad", "0.1.0")]);
    }

    #[test]
    fn of_a_choice_mit_is_taken_and_notices_stay() {
        let files = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let two = files(&["LICENSE-MIT", "NOTICE", "src", "LICENSE-APACHE", "README.md"]);
        assert_eq!(chosen("MIT OR Apache-2.0", two), ["LICENSE-MIT", "NOTICE"]);
        let both = files(&["LICENSE-MIT", "LICENSE-UNICODE"]);
        assert_eq!(chosen("MIT AND Unicode-3.0", both), ["LICENSE-MIT", "LICENSE-UNICODE"]);
        assert_eq!(chosen("Zlib", files(&["LICENSE", "Cargo.toml"])), ["LICENSE"]);
    }

    #[test]
    fn a_text_stands_once_and_none_is_missing() {
        let of = |name: &str, licence: &str, texts: &[&str]| Licensed {
            name: name.to_owned(),
            licence: licence.to_owned(),
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
        };
        let text = written(vec![
            of("a 1.0.0", "MIT", &["Words of MIT"]),
            of("b 1.0.0", "Apache-2.0", &[]),
            of("c 1.0.0", "MIT", &["Words of MIT"]),
        ])
        .unwrap();
        assert_eq!(text.matches("Words of MIT").count(), 1);
        assert!(text.contains("a 1.0.0  (MIT)\nc 1.0.0  (MIT)\n"), "{text}");
        assert!(
            text.contains("b 1.0.0  (Apache-2.0)") && text.contains("standard library"),
            "{text}"
        );
        assert!(written(vec![of("d 1.0.0", "MIT", &[])]).is_err());
    }
}
