//! Finds or creates a Rust that compiles to `wasm32-unknown-unknown`: the active toolchain, to which rustup adds the target if
//! necessary, or else a nightly that compiles the standard library from its sources.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::run::CommandLine;
use crate::system::{Distribution, Packages};
use crate::toolchain::{add_target, has_rustup, has_target, rustc};
use crate::web::{debian, report};

/// The compilation target.
pub const TRIPLE: &str = "wasm32-unknown-unknown";

/// The package with the target's standard library for a Rust that is not managed by rustup.
const PACKAGES: Packages = Packages {
    debian: &["libstd-rust-dev-wasm32"],
    fedora: &["rust-std-static-wasm32-unknown-unknown"],
    arch: &["rust-wasm"],
    suse: &[],
    alpine: &["rust-wasm"],
    otherwise: "rustup (https://rustup.rs)",
    arch_note: "",
    suse_note: "",
    alpine_note: "",
};

/// The start of a cargo command line that builds for wasm, and the arguments after `build`.
#[derive(Debug)]
pub struct WasmCargo {
    nightly: bool,
}

impl WasmCargo {
    /// Finds one, installs what is missing, and reports its choice. `scratch` is a folder for downloads.
    pub fn find(scratch: &Path) -> Result<Self> {
        if has_target(TRIPLE) {
            report("wasm target", "the active toolchain has it");
            return Ok(Self { nightly: false });
        }
        if !has_rustup() {
            let lack = format!(
                "This Rust has no standard library for {TRIPLE}, and there is no rustup to add it"
            );
            PACKAGES.install(&lack, "cargo xtask web")?;
            if !has_target(TRIPLE) {
                bail!(
                    "{lack}, even after the installation. Install rustup from https://rustup.rs."
                );
            }
            report("wasm target", "installed as a package");
            return Ok(Self { nightly: false });
        }
        if add_target(TRIPLE)? {
            report("wasm target", "added by rustup");
            return Ok(Self { nightly: false });
        }
        report(
            "wasm target",
            "rustup could not add it; looking for a nightly that builds the standard library",
        );
        let Some(nightly) = Nightly::find() else {
            bail!(
                "The active toolchain has no standard library for {TRIPLE}, rustup could not add it (see its output \
                 above), and there is no nightly toolchain to build one with. Give this machine access to \
                 static.rust-lang.org and run `rustup target add {TRIPLE}`, or install a nightly with its sources: \
                 `rustup toolchain install nightly --component rust-src`."
            );
        };
        if nightly.has_sources() {
            report(
                "wasm target",
                &format!("built by nightly ({}) from its own sources", nightly.version),
            );
        } else {
            nightly.get_sources(scratch)?;
        }
        Ok(Self { nightly: true })
    }

    /// The command that builds `package` with `profile`, and arguments that set its features.
    pub fn build(&self, package: &str, profile: &str, features: &[&str]) -> CommandLine {
        let line = if self.nightly {
            CommandLine::new("rustup").args([
                "run",
                "nightly",
                "cargo",
                "build",
                "-Zbuild-std=std,panic_abort",
                // Every visitor of a page downloads this.
                "-Zbuild-std-features=optimize_for_size",
            ])
        } else {
            CommandLine::cargo(["build"])
        };
        line.args([
            "--locked",
            "--lib",
            "--package",
            package,
            "--profile",
            profile,
            "--target",
            TRIPLE,
        ])
        .args(features.iter().copied())
    }
}

/// Flags, in the format of `CARGO_ENCODED_RUSTFLAGS`, that keep the names of this machine's folders out of published files:
/// panic messages contain source paths.
pub fn remapped_paths() -> String {
    let home = |name: &str, folder: &str| {
        let own = std::env::var_os("HOME").or_else(|| std::env::var_os("USERPROFILE"));
        std::env::var_os(name).map(PathBuf::from).or_else(|| Some(PathBuf::from(own?).join(folder)))
    };
    [("CARGO_HOME", ".cargo", "cargo"), ("RUSTUP_HOME", ".rustup", "rustup")]
        .into_iter()
        .filter_map(|(name, folder, shown)| {
            Some(format!("--remap-path-prefix={}={shown}", home(name, folder)?.display()))
        })
        .collect::<Vec<_>>()
        .join("\u{1f}")
}

/// The nightly toolchain.
struct Nightly {
    /// As in `1.97.0-nightly`.
    version: String,
    sysroot: PathBuf,
}

impl Nightly {
    fn find() -> Option<Self> {
        let version = rustc(Some("nightly")).args(["--version"]).probe()?;
        let sysroot = rustc(Some("nightly")).args(["--print", "sysroot"]).probe()?;
        let version = version.split_whitespace().nth(1)?.to_owned();
        Some(Self { version, sysroot: PathBuf::from(sysroot.trim()) })
    }

    /// The folder where cargo looks for the sources.
    fn sources(&self) -> PathBuf {
        self.sysroot.join("lib/rustlib/src/rust")
    }

    fn has_sources(&self) -> bool {
        self.sources().join("library/std/Cargo.toml").is_file()
    }

    /// Gets the standard library's sources from rustup, or from Debian's archive.
    fn get_sources(&self, scratch: &Path) -> Result<()> {
        let add = ["component", "add", "rust-src", "--toolchain", "nightly"];
        if CommandLine::new("rustup").args(add).run()?.is_success() && self.has_sources() {
            report(
                "wasm target",
                &format!("built by nightly ({}) from sources that rustup added", self.version),
            );
            return Ok(());
        }
        let remedy = "Give this machine access to static.rust-lang.org and run `rustup component add rust-src --toolchain \
                      nightly`, or run `cargo xtask web` on a machine that has one.";
        if Distribution::of_this_machine() != Distribution::Debian {
            bail!(
                "The nightly toolchain lacks the standard library's sources, and rustup could not add them. {remedy}"
            );
        }
        let (folder, version) = match debian::std_sources(&self.version, scratch) {
            Ok(found) => found,
            Err(error) => bail!(
                "The nightly toolchain lacks the standard library's sources, rustup could not add them, and Debian's \
                 package rust-src did not serve: {error:#}. {remedy}"
            ),
        };
        link(&folder, &self.sources())?;
        if !self.has_sources() {
            bail!(
                "{} was unpacked from Debian's package rust-src but has no library/std. {remedy}",
                folder.display()
            );
        }
        let text = format!("built by nightly ({}) from Debian's rust-src {version}", self.version);
        report("wasm target", &text);
        Ok(())
    }
}

/// Makes `place` a link to `folder`; replaces an existing link but nothing else.
#[cfg(unix)]
fn link(folder: &Path, place: &Path) -> Result<()> {
    use anyhow::Context;
    let words = || {
        format!(
            "cannot link the standard library's sources into the nightly toolchain at {}",
            place.display()
        )
    };
    if place.is_symlink() {
        std::fs::remove_file(place).with_context(words)?;
    }
    if let Some(parent) = place.parent() {
        std::fs::create_dir_all(parent).with_context(words)?;
    }
    std::os::unix::fs::symlink(folder, place).with_context(words)
}

#[cfg(not(unix))]
fn link(_folder: &Path, _place: &Path) -> Result<()> {
    bail!("Debian's sources can be used on Debian only")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_nightly_builds_the_standard_library_too() {
        let own = WasmCargo { nightly: false }.build("a", "web", &[]).to_string();
        assert_eq!(
            own,
            format!("cargo build --locked --lib --package a --profile web --target {TRIPLE}")
        );
        let part =
            WasmCargo { nightly: false }.build("a", "web", &["--no-default-features"]).to_string();
        assert_eq!(part, format!("{own} --no-default-features"));
        let nightly = WasmCargo { nightly: true }.build("a", "web", &[]).to_string();
        let start = "rustup run nightly cargo build -Zbuild-std=std,panic_abort -Zbuild-std-features=optimize_for_size ";
        assert!(nightly.starts_with(start), "{nightly}");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_replaces_a_link_but_no_folder() {
        let scratch = std::env::temp_dir().join(format!("wgrad-xtask-{}-link", std::process::id()));
        let (a, place) = (scratch.join("a"), scratch.join("deep/place"));
        std::fs::create_dir_all(&a).unwrap();
        link(&scratch.join("gone"), &place).unwrap();
        link(&a, &place).unwrap();
        assert_eq!(std::fs::read_link(&place).unwrap(), a);
        let folder = scratch.join("folder");
        std::fs::create_dir_all(&folder).unwrap();
        assert!(link(&a, &folder).is_err());
        std::fs::remove_dir_all(&scratch).unwrap();
    }
}
