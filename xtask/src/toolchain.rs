//! The compilation targets of the installed Rust.

use std::path::Path;

use anyhow::Result;

use crate::run::CommandLine;

/// The compiler of the active toolchain or of a named one.
pub fn rustc(toolchain: Option<&str>) -> CommandLine {
    match toolchain {
        None => CommandLine::new("rustc"),
        Some(name) => CommandLine::new("rustup").args(["run", name, "rustc"]),
    }
}

/// Whether the active toolchain has the standard library of `triple`. rustc prints the folder's name even if the folder does
/// not exist.
pub fn has_target(triple: &str) -> bool {
    let folder = rustc(None).args(["--print", "target-libdir", "--target", triple]).probe();
    folder.is_some_and(|path| Path::new(path.trim()).is_dir())
}

/// Whether rustup is installed, which could add what is missing.
pub fn has_rustup() -> bool {
    CommandLine::new("rustup").args(["--version"]).probe().is_some()
}

/// Adds the standard library of `triple` to the active toolchain with rustup, and returns whether it is there now.
pub fn add_target(triple: &str) -> Result<bool> {
    let added = CommandLine::new("rustup").args(["target", "add", triple]).run()?;
    Ok(added.is_success() && has_target(triple))
}
