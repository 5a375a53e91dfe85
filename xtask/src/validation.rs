//! `cargo xtask validation`: runs tests under Khronos's validation layer. It checks every Vulkan call that wgpu makes for
//! wgrad, and reports memory that is accessed while something else writes it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};

use crate::draw::Draw;
use crate::run::{CommandLine, Status, workspace_root};
use crate::setup;
use crate::system::Packages;

const HELP: &str = "\
Usage: cargo xtask validation [--sample] [--seed N]

Runs each test file under Vulkan's validation layer, and fails if the layer reports anything. Needs a Vulkan driver.

  --sample   three files, drawn by the day
  --seed N   decides what is drawn
";

const LAYER: &str = "VK_LAYER_KHRONOS_validation";

const PACKAGES: Packages = Packages {
    debian: &["vulkan-validationlayers"],
    fedora: &["vulkan-validation-layers"],
    arch: &["vulkan-validation-layers"],
    suse: &["vulkan-validationlayers"],
    alpine: &["vulkan-validation-layers"],
    otherwise: "Vulkan's validation layers (LunarG's SDK has them)",
    arch_note: "",
    suse_note: "",
    alpine_note: "",
};

/// Errors and warnings go to the program's output, each at most ten times.
const SETTINGS: &str = "\
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error,warn
khronos_validation.log_filename = stdout
khronos_validation.enable_message_limit = true
khronos_validation.duplicate_message_limit = 10
khronos_validation.enables = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT
";

/// Prefixes of message names: a rule of the specification, a hazard, or a check of the layer itself.
const KINDS: [&str; 3] = ["VUID-", "SYNC-HAZARD", "UNASSIGNED-"];

/// Parts of messages that do not concern wgrad: WGSL is language number 10 in SPIR-V's debug information, which older layers do
/// not know.
const EXCUSED: [&str; 1] = ["Invalid source language operand: 10"];

/// Runs the command.
pub fn run(arguments: &[String]) -> Result<Status> {
    let Some(draw) = Draw::of("validation", arguments, &[])? else {
        print!("{HELP}");
        return Ok(Status::SUCCESS);
    };
    setup::run()?;
    let root = workspace_root();
    let settings = root.join("target/vk_layer_settings.txt");
    fs::write(&settings, SETTINGS).with_context(|| format!("cannot write {settings:?}"))?;
    if !loaded(&settings)?.0 {
        PACKAGES.install("Vulkan's validation layer is not installed", "cargo xtask validation")?;
        let (loaded, output) = loaded(&settings)?;
        if !loaded {
            bail!("Vulkan's loader does not load {LAYER}, so nothing was validated:\n{output}");
        }
    }
    let files = files(&root.join("tests"))?;
    let files: Vec<&String> = match draw.sample {
        true => (0..3).map(|i| &files[(draw.pick(files.len()) * 3 + i) % files.len()]).collect(),
        false => files.iter().collect(),
    };
    eprintln!("validation: seed {}; `--seed {}` repeats this run", draw.seed, draw.seed);
    let mut good = true;
    for file in files {
        let began = Instant::now();
        let (status, output) = under(test(file), &settings).read_quietly()?;
        let output = String::from_utf8_lossy(&output);
        let messages = messages(&output);
        let came = if status.is_success() { "passed" } else { "FAILED" };
        println!(
            "{came} {:5.0} s  {file}: {} kinds of messages",
            began.elapsed().as_secs_f64(),
            messages.len()
        );
        for (kind, (count, first)) in &messages {
            println!("  {count} of {kind}: {first}");
        }
        if !status.is_success() {
            let lines: Vec<&str> = output.lines().collect();
            println!("{}", lines[lines.len().saturating_sub(30)..].join("\n"));
        }
        good &= status.is_success() && messages.is_empty();
    }
    Ok(if good { Status::SUCCESS } else { Status::FAILURE })
}

fn test(file: &str) -> CommandLine {
    CommandLine::cargo_test().args(["--test", file, "--no-fail-fast"])
}

/// The command line, run under the layer.
fn under(line: CommandLine, settings: &Path) -> CommandLine {
    let settings = settings.to_string_lossy();
    line.env("VK_INSTANCE_LAYERS", LAYER).env("VK_LAYER_SETTINGS_PATH", &settings)
}

/// Whether a test passes under the layer and the loader reports loading it; also the output of both.
fn loaded(settings: &Path) -> Result<(bool, String)> {
    let line = test("ops").args(["--", "--exact", "traps::matrices_of_one_element"]);
    let line = under(line, settings).env("VK_LOADER_DEBUG", "layer");
    let (status, output) = line.read_quietly()?;
    let output = String::from_utf8_lossy(&output).into_owned();
    let is_there = |line: &str| line.contains("Insert instance layer") && line.contains(LAYER);
    Ok((status.is_success() && output.lines().any(is_there), output))
}

/// The names of the test files, sorted.
fn files(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read {folder:?}"))?;
    let mut names = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.join("main.rs").is_file()
            || path.extension().is_some_and(|extension| extension == "rs")
        {
            names.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
        }
    }
    names.sort();
    Ok(names)
}

/// The layer's messages by kind: their number, and the first one.
fn messages(output: &str) -> BTreeMap<String, (usize, String)> {
    let mut all: BTreeMap<String, (usize, String)> = BTreeMap::new();
    let excused = |line: &str| EXCUSED.iter().any(|part| line.contains(part));
    let lines = output.lines().filter(|line| line.contains("Validation") && !excused(line));
    for line in lines {
        let words = line.split(|c: char| c.is_whitespace() || "[](),'\"".contains(c));
        let kind = words.into_iter().find(|word| KINDS.iter().any(|kind| word.starts_with(kind)));
        if let Some(kind) = kind {
            let said = all.entry(kind.to_owned()).or_insert_with(|| (0, line.to_owned()));
            said.0 += 1;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_by_their_kinds() {
        let output = "running 1 test\n\
            Validation Error: [ VUID-vkCmdDispatch-None-02699 ] Object 0: handle = 0x1 | MessageID = 0x2 | one\n\
            Validation Error: [ VUID-vkCmdDispatch-None-02699 ] Object 0: handle = 0x3 | MessageID = 0x2 | two\n\
            Validation Error: [ SYNC-HAZARD-READ-AFTER-WRITE ] Object 0: three\n\
            Validation Error: [ UNASSIGNED-CoreValidation-Shader ] SPIR-V module not valid: Invalid source language operand: 10\n\
            test a ... ok\n";
        let found = messages(output);
        assert_eq!(found.len(), 2);
        let (count, first) = &found["VUID-vkCmdDispatch-None-02699"];
        assert!(*count == 2 && first.ends_with("one"), "{first}");
        assert_eq!(found["SYNC-HAZARD-READ-AFTER-WRITE"].0, 1);
        assert!(messages("test result: ok. 1 passed").is_empty());
    }
}
