//! The libraries of the C API: built by cargo, linked with the versions of their symbols, and installed.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::run::{CommandLine, target_folder, workspace_root};

/// The names of the shared library: that of the files, and the one that programs record, which changes with the ABI.
const FILE: &str = "libwgrad.so.0.1.0";
const SONAME: &str = "libwgrad.so.0";
const LINK: &str = "libwgrad.so";
const STATIC: &str = "libwgrad.a";
/// The version of the package, and of the file.
pub const VERSION: &str = "0.1.0";
/// What `packaging/wgrad.map` calls the symbols' version.
const VERSION_NODE: &str = "WGRAD_0.1";
/// What the static library needs besides.
const SYSTEM_LIBRARIES: &[&str] = &["-ldl", "-lm", "-lpthread", "-lc", "-lgcc_s"];

/// How cargo builds the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// As programs get it.
    Release,
    /// With the checks of sums and products, and as `cargo xtask test` builds it, so that nothing is compiled twice.
    Tests,
}

/// What the static library needs. The tests' build has the feature `mpi`, if there is an MPI library.
pub fn system_libraries(profile: Profile) -> Vec<&'static str> {
    let mpi = (profile == Profile::Tests && crate::mpi::is_installed()).then_some("-lmpi");
    SYSTEM_LIBRARIES.iter().copied().chain(mpi).collect()
}

/// Builds the static library; returns its path.
fn build(profile: Profile) -> Result<PathBuf> {
    let (cargo, folder) = match profile {
        Profile::Release => {
            (CommandLine::cargo(["build", "--release", "--package", "wgrad-c"]), "release")
        }
        Profile::Tests => {
            // What only tests need stays among the dependencies.
            (CommandLine::cargo_test().args(["--test", "exports", "--no-run"]), "debug/deps")
        }
    };
    if !cargo.run()?.is_success() {
        bail!("the library cannot be built");
    }
    Ok(target_folder().join(folder).join("libwgrad_c.a"))
}

/// Builds the libraries and writes them to `folder`.
///
/// Cargo's shared library cannot have versions of its symbols, as rustc passes a script without any to the linker. So this one is
/// linked from the static library.
pub fn make(profile: Profile, folder: &Path) -> Result<()> {
    let archive = build(profile)?;
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    let script = workspace_root().join("wgrad-c/packaging/wgrad.map");
    let shared = folder.join(FILE);
    let mut link = CommandLine::new(compiler())
        .args(["-shared", "-o"])
        .args([shared.to_string_lossy()])
        .args([
            format!("-Wl,-soname,{SONAME}"),
            format!("-Wl,--version-script={}", script.display()),
        ])
        .args(["-Wl,--gc-sections", "-Wl,-z,relro,-z,now", "-Wl,--whole-archive"])
        .args([archive.to_string_lossy()])
        .args(["-Wl,--no-whole-archive"])
        .args(system_libraries(profile));
    if profile == Profile::Release {
        link = link.args(["-Wl,--strip-all"]);
    }
    if !link.run()?.is_success() {
        bail!("{FILE} cannot be linked");
    }
    for (link, to) in [(SONAME, FILE), (LINK, SONAME)] {
        symlink(to, &folder.join(link))?;
    }
    let archived = folder.join(STATIC);
    // A link from an earlier run must not be written through.
    let _ = fs::remove_file(&archived);
    fs::copy(&archive, &archived)
        .with_context(|| format!("cannot write {}", archived.display()))?;
    check_symbols(&shared)
}

/// Fails unless the library exports the functions of the header with their version, and nothing else.
fn check_symbols(shared: &Path) -> Result<()> {
    let listing = CommandLine::new("objdump").args(["-T"]).args([shared.to_string_lossy()]).probe();
    let listing = listing.context("objdump cannot read the library")?;
    let header = fs::read_to_string(workspace_root().join("wgrad-c/include/wgrad.h"))?;
    let mut exported: Vec<&str> = Vec::new();
    for line in listing.lines().filter(|line| !line.contains("*UND*")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [.., version, name] = words[..] else { continue };
        // The version itself is a symbol, too.
        match version {
            _ if name == VERSION_NODE => {}
            VERSION_NODE => exported.push(name),
            _ if line.contains(" g ") || line.contains(" w ") => {
                bail!("the library exports '{name}' with the version '{version}'");
            }
            _ => {}
        }
    }
    let missing = |name: &&&str| !header.contains(&format!("{name}("));
    if let Some(name) = exported.iter().find(missing) {
        bail!("the library exports '{name}', and the header does not declare it");
    }
    let declared = header
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .filter(|word| word.starts_with("wgrad_"));
    let functions: Vec<&str> =
        declared.filter(|word| header.contains(&format!("{word}("))).collect();
    if let Some(name) = functions.iter().find(|name| !exported.contains(name)) {
        bail!("the header declares '{name}', and the library does not export it");
    }
    eprintln!(
        "{}: {} functions, {} bytes",
        shared.display(),
        exported.len(),
        fs::metadata(shared)?.len()
    );
    Ok(())
}

/// The C compiler.
pub fn compiler() -> String {
    std::env::var("CC").unwrap_or_else(|_| "cc".to_owned())
}

#[cfg(unix)]
fn symlink(to: &str, link: &Path) -> Result<()> {
    let _ = fs::remove_file(link);
    std::os::unix::fs::symlink(to, link)
        .with_context(|| format!("cannot create {}", link.display()))
}

#[cfg(not(unix))]
fn symlink(_: &str, link: &Path) -> Result<()> {
    bail!("{}: this system has no links between files", link.display())
}

/// Installs the libraries, the headers, and the files that pkg-config and CMake look for.
pub fn install(profile: Profile, prefix: &Path) -> Result<()> {
    let source = workspace_root().join("wgrad-c");
    let (libraries, headers) = (prefix.join("lib"), prefix.join("include"));
    make(profile, &libraries)?;
    fs::create_dir_all(&headers)?;
    for name in ["include/wgrad.h", "include/wgrad.hpp", "packaging/module.modulemap"] {
        let file = source.join(name);
        fs::copy(&file, headers.join(file.file_name().unwrap_or_default()))
            .with_context(|| format!("cannot write {name}"))?;
    }
    let prefix = fs::canonicalize(prefix)?;
    let fill = |template: &str| -> Result<String> {
        let text = fs::read_to_string(source.join("packaging").join(template))?;
        Ok(text
            .replace("@PREFIX@", &prefix.display().to_string())
            .replace("@VERSION@", VERSION)
            .replace("@SYSTEM_LIBRARIES@", &system_libraries(profile).join(" ")))
    };
    for (template, folder) in [
        ("wgrad.pc", "pkgconfig"),
        ("wgradConfig.cmake", "cmake/wgrad"),
        ("wgradConfigVersion.cmake", "cmake/wgrad"),
    ] {
        let folder = libraries.join(folder);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join(template), fill(template)?)?;
    }
    Ok(())
}
