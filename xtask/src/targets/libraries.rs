//! The C library for other systems, as released: a static library for all, and a shared one where it can be linked.
//!
//! For Android, the linker is Rust's own and the system's libraries are empty stand-ins: a shared library may leave symbols to the
//! system that loads it, so its size is right, but it is not for phones. The NDK's linker makes that one.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::{HELP, lacks};
use crate::draw::Draw;
use crate::run::{CommandLine, Status, target_folder};
use crate::system::Packages;

/// A target, and how it is linked here.
struct Target {
    triple: &'static str,
    linker: Linker,
    /// The names of the libraries that cargo makes.
    shared: &'static str,
    archive: &'static str,
}

enum Linker {
    /// The compiler that links for it, from these packages.
    Compiler(&'static str, Packages),
    /// Rust's own, and stand-ins for these libraries.
    StandIns(&'static [&'static str]),
    /// None: an application's build links the static library.
    None,
}

const fn packages(debian: &'static [&'static str], otherwise: &'static str) -> Packages {
    Packages {
        debian,
        fedora: &[],
        arch: &[],
        suse: &[],
        alpine: &[],
        otherwise,
        arch_note: "",
        suse_note: "",
        alpine_note: "",
    }
}

const TARGETS: [Target; 4] = [
    Target {
        triple: "aarch64-linux-android",
        linker: Linker::StandIns(&["c", "dl", "log", "m", "unwind", "gcc"]),
        shared: "libwgrad_c.so",
        archive: "libwgrad_c.a",
    },
    Target {
        triple: "aarch64-apple-ios",
        linker: Linker::None,
        shared: "",
        archive: "libwgrad_c.a",
    },
    Target {
        triple: "x86_64-pc-windows-gnu",
        linker: Linker::Compiler(
            "x86_64-w64-mingw32-gcc",
            packages(&["gcc-mingw-w64-x86-64"], "MinGW's gcc for x86_64"),
        ),
        shared: "wgrad_c.dll",
        archive: "libwgrad_c.a",
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        linker: Linker::Compiler(
            "aarch64-linux-gnu-gcc",
            packages(&["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"], "gcc for aarch64"),
        ),
        shared: "libwgrad_c.so",
        archive: "libwgrad_c.a",
    },
];

/// The bytes of the libraries: shared and stripped, static.
type Sizes = [Option<u64>; 2];

/// Compiles faster, and not as released.
const DEV: &str = "--dev";

/// Builds for the targets with these names, for the drawn one, or for all.
pub fn run(arguments: &[String]) -> Result<Status> {
    let triples = TARGETS.map(|target| target.triple);
    let Some(draw) = Draw::of("targets --libraries", arguments, &[&[DEV][..], &triples].concat())?
    else {
        print!("{HELP}");
        return Ok(Status::SUCCESS);
    };
    let mut names = triples.to_vec();
    names.retain(|triple| draw.has(triple));
    match (draw.sample, names.is_empty()) {
        (true, _) => names = vec![triples[draw.pick(triples.len())]],
        (false, true) => names = triples.to_vec(),
        (false, false) => {}
    }
    let mut rows = Vec::new();
    let mut worst = Status::SUCCESS;
    for target in &TARGETS {
        if !names.contains(&target.triple) {
            continue;
        }
        let built = match lacks(target.triple)? {
            Some(why) => Err(why),
            None => build(target, draw.has(DEV))?,
        };
        if built.is_err() {
            worst = Status::FAILURE;
        }
        rows.push((target.triple, built));
    }
    if draw.has(DEV) {
        println!("Not as released: compiled without optimization.");
    }
    print!("{}", table(&rows));
    Ok(worst)
}

/// The sizes, or why there are none.
fn build(target: &Target, dev: bool) -> Result<Result<Sizes, String>> {
    let kinds =
        if matches!(target.linker, Linker::None) { "staticlib" } else { "cdylib,staticlib" };
    let variable = target.triple.replace('-', "_").to_uppercase();
    let (profile, folder) = if dev { ("dev", "debug") } else { ("release", "release") };
    let mut line = CommandLine::cargo(["rustc", "--locked", "--package", "wgrad-c", "--lib"])
        .args(["--profile", profile, "--target", target.triple, "--crate-type", kinds])
        .args(["--config"])
        .args([format!("profile.{profile}.strip=true")]);
    match &target.linker {
        Linker::Compiler(compiler, packages) => {
            if CommandLine::new(*compiler).args(["--version"]).probe().is_none() {
                packages.install(
                    &format!("{compiler} was not found"),
                    "cargo xtask targets --libraries",
                )?;
            }
            line = line.env(&format!("CARGO_TARGET_{variable}_LINKER"), compiler);
        }
        Linker::StandIns(names) => {
            let folder = stand_ins(names)?;
            let flags = format!("-Clinker-flavor=ld.lld -Lnative={}", folder.display());
            line = line
                .env(&format!("CARGO_TARGET_{variable}_LINKER"), "rust-lld")
                .env(&format!("CARGO_TARGET_{variable}_RUSTFLAGS"), &flags);
        }
        Linker::None => {}
    }
    if !line.run()?.is_success() {
        return Ok(Err(format!("`{line}` failed; see its output above")));
    }
    let folder = target_folder().join(target.triple).join(folder);
    let size = |name: &str| -> Result<Option<u64>> {
        if name.is_empty() {
            return Ok(None);
        }
        let file = folder.join(name);
        let data =
            fs::metadata(&file).with_context(|| format!("cargo made no {}", file.display()))?;
        Ok(Some(data.len()))
    };
    Ok(Ok([size(target.shared)?, size(target.archive)?]))
}

/// A folder of linker scripts that name nothing, one for each library.
fn stand_ins(names: &[&str]) -> Result<PathBuf> {
    let folder = target_folder().join("stand-ins");
    fs::create_dir_all(&folder)?;
    for name in names {
        write(&folder.join(format!("lib{name}.so")))?;
    }
    Ok(folder)
}

fn write(path: &Path) -> Result<()> {
    fs::write(path, "INPUT()\n").with_context(|| format!("cannot write {}", path.display()))
}

fn table(rows: &[(&str, Result<Sizes, String>)]) -> String {
    let mut text =
        "| target | shared library, stripped | static library |\n|---|---|---|\n".to_owned();
    for (triple, built) in rows {
        let cells = match built {
            Err(why) => format!("NOT BUILT, as {why} | "),
            Ok(sizes) => {
                let size = |bytes: Option<u64>| match bytes {
                    Some(bytes) => format!("{:.1} MB", bytes as f64 / 1e6),
                    None => "not linked here".to_owned(),
                };
                format!("{} | {}", size(sizes[0]), size(sizes[1]))
            }
        };
        text.push_str(&format!("| `{triple}` | {cells} |\n"));
    }
    text
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_what_was_not_linked_or_built() {
        let rows = [
            ("a", Ok([Some(12_345_678), Some(99_000_000)])),
            ("b", Ok([None, Some(99_000_000)])),
            ("c", Err("there is no rustup".to_owned())),
        ];
        assert_eq!(
            table(&rows),
            "| target | shared library, stripped | static library |\n|---|---|---|\n\
             | `a` | 12.3 MB | 99.0 MB |\n| `b` | not linked here | 99.0 MB |\n\
             | `c` | NOT BUILT, as there is no rustup |  |\n"
        );
    }

    #[test]
    fn unknown_targets_are_refused() {
        let error = run(&["sparc".to_owned()]).map(drop).unwrap_err().to_string();
        assert!(error.contains("`cargo xtask targets --libraries` has no sparc"), "{error}");
    }
}
