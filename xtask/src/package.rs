//! `cargo xtask package`: everything that a release consists of, in `target/packages`, and the checks before it: the crates, the npm
//! package, the Python wheel, the C library, their licences, a software bill of materials (SBOM) for each, and check sums.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::c::library;
use crate::run::{CommandLine, Status, target_folder, workspace_root};
use crate::{python, setup, web};

/// What goes to crates.io, each after those that it needs.
const CRATES: [&str; 2] = ["wgrad-derive", "wgrad"];
/// The packages that have a bill of materials: those that are published or compiled into what is published.
const WITH_BILLS: [&str; 4] = ["wgrad", "wgrad-c", "wgrad-python", "wgrad-web"];

/// The tools, in the versions that this command was tested with.
const DENY: Tool = Tool { name: "cargo-deny", version: "0.20.2" };
const SEMVER: Tool = Tool { name: "cargo-semver-checks", version: "0.51.0" };
const BILLS: Tool = Tool { name: "cargo-cyclonedx", version: "0.5.9" };

const HELP: &str = "\
Usage: cargo xtask package [--check] [--only PART,...]

Makes the parts of a release in target/packages: crates, npm, wheel, c, bills.

  --check           only the checks that take seconds: versions, the changelog, the files of the crates, and licences if cargo-deny
                    is installed
  --only PART,...   only these parts

It installs cargo-deny, cargo-semver-checks and cargo-cyclonedx in target/tools if PATH lacks them, which takes 10 to 20 minutes once.
Nothing is published.
";

/// The parts of a release.
const PARTS: [&str; 5] = ["crates", "npm", "wheel", "c", "bills"];

/// Runs the command.
pub fn run(arguments: &[String]) -> Result<Status> {
    let (mut check, mut parts) = (false, PARTS.map(str::to_owned).to_vec());
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        match argument.as_str() {
            "--help" => {
                print!("{HELP}");
                return Ok(Status::SUCCESS);
            }
            "--check" => check = true,
            "--only" => {
                let names = rest.next().context("--only needs names of parts")?;
                parts = names.split(',').map(|name| name.trim().to_owned()).collect();
                if let Some(name) = parts.iter().find(|name| !PARTS.contains(&name.as_str())) {
                    bail!("there is no part '{name}'; the parts are {}", PARTS.join(", "));
                }
            }
            _ => bail!("there is no option {argument}\n\n{HELP}"),
        }
    }
    let metadata = metadata()?;
    let version = common_version(&versions(&metadata)?)?;
    let changelog = fs::read_to_string(workspace_root().join("CHANGELOG.md"))?;
    eprintln!("package: version {version}, {}", entry(&changelog, &version)?);
    for name in CRATES {
        check_files(name)?;
    }
    if check {
        return match DENY.installed() {
            Some(path) => licences(&path),
            None => {
                eprintln!("package: licences: NOT CHECKED, as cargo-deny is not installed");
                Ok(Status::SUCCESS)
            }
        };
    }
    setup::run()?;
    let status = licences(&DENY.get()?)?;
    if !status.is_success() {
        return Ok(status);
    }
    let folder = workspace_root().join("target/packages");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    for part in &parts {
        let status = match part.as_str() {
            "crates" => crates(&version, &folder)?,
            "npm" => npm(&folder)?,
            "wheel" => wheel(&folder)?,
            "c" => c_library(&version, &folder)?,
            _ => bills(&version, &folder)?,
        };
        if !status.is_success() {
            eprintln!("package: {part} failed; see the output above");
            return Ok(status);
        }
    }
    let sums = sums(&folder)?;
    fs::write(folder.join("SHA256SUMS"), &sums)?;
    eprint!("package: {} has\n{sums}", folder.display());
    Ok(Status::SUCCESS)
}

/// A program of others.
struct Tool {
    name: &'static str,
    version: &'static str,
}

impl Tool {
    /// Its path if it is on PATH or in target/tools.
    fn installed(&self) -> Option<PathBuf> {
        let own = workspace_root().join("target/tools/bin").join(self.name);
        let found = |path: &PathBuf| self.command(path).args(["--version"]).probe().is_some();
        [PathBuf::from(self.name), own].into_iter().find(found)
    }

    /// Its path; it is installed if it is missing.
    fn get(&self) -> Result<PathBuf> {
        if let Some(path) = self.installed() {
            return Ok(path);
        }
        let package = format!("{}@{}", self.name, self.version);
        let install =
            CommandLine::cargo(["install", "--locked", "--root", "target/tools", &package]);
        if !install.run()?.is_success() {
            bail!("`{install}` failed; see its output above");
        }
        self.installed().with_context(|| format!("`{install}` did not install {}", self.name))
    }

    /// `cargo NAME`, which the tools expect to be called as.
    fn command(&self, path: &Path) -> CommandLine {
        let subcommand = self.name.trim_start_matches("cargo-");
        let line = CommandLine::new(path.to_string_lossy());
        // cargo-deny takes its arguments without the name.
        if self.name == DENY.name { line } else { line.args([subcommand]) }
    }
}

fn metadata() -> Result<Value> {
    let line = CommandLine::cargo(["metadata", "--locked", "--no-deps", "--format-version", "1"]);
    let text = line.probe().with_context(|| format!("`{line}` failed; run it to see why"))?;
    serde_json::from_str(&text).context("cargo's metadata is not JSON")
}

/// Every place that has the version, and the version there.
fn versions(metadata: &Value) -> Result<Vec<(String, String)>> {
    let packages = metadata["packages"].as_array().context("cargo's metadata lacks `packages`")?;
    let mut versions = Vec::new();
    for name in ["wgrad", "wgrad-derive", "wgrad-c", "wgrad-python", "wgrad-web"] {
        let package = packages.iter().find(|package| package["name"] == name);
        let package = package.with_context(|| format!("the workspace lacks {name}"))?;
        let version = package["version"].as_str().unwrap_or_default().to_owned();
        if name == "wgrad" {
            let dependencies = package["dependencies"].as_array().into_iter().flatten();
            let derive = dependencies.into_iter().find(|found| found["name"] == "wgrad-derive");
            let requirement = derive.and_then(|found| found["req"].as_str()).unwrap_or_default();
            let needed = requirement.trim_start_matches('^').to_owned();
            versions.push(("wgrad's dependency on wgrad-derive".to_owned(), needed));
        }
        versions.push((name.to_owned(), version));
    }
    versions.push(("the C library".to_owned(), library::VERSION.to_owned()));
    Ok(versions)
}

/// The version that all have.
fn common_version(versions: &[(String, String)]) -> Result<String> {
    let Some((_, first)) = versions.first() else { bail!("nothing has a version") };
    match versions.iter().all(|(_, version)| version == first) {
        true => Ok(first.clone()),
        false => {
            let lines: Vec<String> =
                versions.iter().map(|(place, version)| format!("{place}: {version}")).collect();
            bail!("the versions differ; set all of them:\n{}", lines.join("\n"))
        }
    }
}

/// What the changelog says after the version: a date, or "unreleased".
fn entry(changelog: &str, version: &str) -> Result<String> {
    let start = format!("## [{version}] - ");
    let line = changelog.lines().find_map(|line| line.strip_prefix(&start));
    let said = line.with_context(|| format!("CHANGELOG.md has no line \"{start}...\""))?;
    Ok(said.to_owned())
}

/// Fails unless a crate has its licences, and nothing that only the repository needs.
fn check_files(name: &str) -> Result<()> {
    let line =
        CommandLine::cargo(["package", "--list", "--allow-dirty", "--locked", "--package", name]);
    let (status, text) = line.read()?;
    if !status.is_success() {
        bail!("`{line}` failed; see its output above");
    }
    let files: Vec<&str> = text.lines().collect();
    if let Some(problem) = problem_with(&files) {
        bail!("the crate {name} {problem}; see `exclude` in its Cargo.toml");
    }
    eprintln!("package: {name}: {} files", files.len());
    Ok(())
}

fn problem_with(files: &[&str]) -> Option<String> {
    let missing = ["LICENSE-APACHE", "LICENSE-MIT", "src/lib.rs"];
    let missing = missing.into_iter().find(|file| !files.contains(file));
    let apart = ["tests/data/", "target/", "web/", ".ci/", "xtask/", "wgrad-c/", "wgrad-python/"];
    let extra = files.iter().find(|file| apart.iter().any(|folder| file.starts_with(folder)));
    missing
        .map(|file| format!("lacks {file}"))
        .or(extra.map(|file| format!("contains {file}, which belongs to the repository only")))
}

fn licences(deny: &Path) -> Result<Status> {
    DENY.command(deny)
        .args(["--workspace", "--locked", "check", "licenses", "bans", "sources"])
        .run()
}

/// The crates, each compiled from its package; and whether the interface has changed more than the version says.
fn crates(version: &str, folder: &Path) -> Result<Status> {
    let named = CRATES.iter().flat_map(|name| ["--package", name]);
    let status = CommandLine::cargo(["package", "--locked"]).args(named).run()?;
    if !status.is_success() {
        return Ok(status);
    }
    for name in CRATES {
        let file = format!("{name}-{version}.crate");
        copy(&target_folder().join("package").join(&file), &folder.join(&file))?;
    }
    let tags = CommandLine::new("git").args(["tag", "--list", "v*", "--sort=-version:refname"]);
    let tags = tags.probe().unwrap_or_default();
    let Some(tag) = tags.lines().find(|tag| *tag != format!("v{version}")) else {
        eprintln!(
            "package: there is no earlier release (a tag such as v0.1.0) to compare the interface with"
        );
        return Ok(Status::SUCCESS);
    };
    let tool = SEMVER.get()?;
    SEMVER.command(&tool).args(["--package", "wgrad", "--baseline-rev", tag]).run()
}

fn npm(folder: &Path) -> Result<Status> {
    let status = web::run(&[])?;
    if !status.is_success() {
        return Ok(status);
    }
    let to = folder.to_string_lossy().into_owned();
    CommandLine::new("npm").args(["pack", "./web/pkg", "--pack-destination", &to]).run()
}

fn wheel(folder: &Path) -> Result<Status> {
    let wheels = target_folder().join("wheels");
    let _ = fs::remove_dir_all(&wheels);
    let status = python::run(&["--wheel".to_owned()])?;
    if !status.is_success() {
        return Ok(status);
    }
    for file in fs::read_dir(&wheels).context("there is no wheel in target/wheels")? {
        let file = file?;
        copy(&file.path(), &folder.join(file.file_name()))?;
    }
    Ok(Status::SUCCESS)
}

/// The C library with its headers and the files for pkg-config and CMake, as an archive.
fn c_library(version: &str, folder: &Path) -> Result<Status> {
    if !cfg!(target_os = "linux") {
        eprintln!("package: c: NOT MADE, as the C library is linked on Linux so far");
        return Ok(Status::SUCCESS);
    }
    let name = format!("wgrad-{version}-{}-linux", std::env::consts::ARCH);
    let staged = target_folder().join("c").join(&name);
    let _ = fs::remove_dir_all(&staged);
    library::install(library::Profile::Release, &staged)?;
    for file in ["LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md"] {
        copy(&workspace_root().join(file), &staged.join(file))?;
    }
    let archive = folder.join(format!("{name}.tar.gz"));
    CommandLine::new("tar")
        .args(["--create", "--gzip", "--file"])
        .args([archive.to_string_lossy()])
        .args(["--directory"])
        .args([target_folder().join("c").to_string_lossy()])
        .args([name.as_str()])
        .run()
}

/// Bills of materials in CycloneDX's format.
fn bills(version: &str, folder: &Path) -> Result<Status> {
    let tool = BILLS.get()?;
    let file = "wgrad-bill";
    let status = BILLS
        .command(&tool)
        .args(["--format", "json", "--all-features", "--target", "all"])
        .args(["--override-filename", file])
        .run()?;
    if !status.is_success() {
        return Ok(status);
    }
    let metadata = metadata()?;
    let mut status = Status::SUCCESS;
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
        // The tool writes a bill next to each manifest.
        let Some(made) = manifest.parent().map(|parent| parent.join(format!("{file}.json"))) else {
            continue;
        };
        if WITH_BILLS.contains(&name) {
            match fs::read_to_string(&made).map_err(Into::into).and_then(|text| components(&text)) {
                Ok(count) => eprintln!("package: {name}: a bill of {count} components"),
                Err(error) => {
                    eprintln!("package: {name}: {error:#}");
                    status = Status::FAILURE;
                }
            }
            copy(&made, &folder.join(format!("{name}-{version}.cdx.json")))?;
        }
        let _ = fs::remove_file(&made);
    }
    Ok(status)
}

/// The number of components in a bill, each of which must have a version and a licence.
fn components(text: &str) -> Result<usize> {
    let bill: Value = serde_json::from_str(text).context("the bill is not JSON")?;
    let components = bill["components"].as_array().filter(|components| !components.is_empty());
    let components = components.context("the bill has no components")?;
    for component in components {
        if component["version"].is_null()
            || component["licenses"].as_array().is_none_or(Vec::is_empty)
        {
            bail!("the bill has no version or no licence of {}", component["name"]);
        }
    }
    Ok(components.len())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let copied = fs::copy(from, to);
    copied.map(drop).with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))
}

/// The check sums of the files, in the format of `sha256sum`.
fn sums(folder: &Path) -> Result<String> {
    let mut lines = Vec::new();
    for file in fs::read_dir(folder)? {
        let file = file?;
        let sum = Sha256::digest(fs::read(file.path())?);
        let digits: String = sum.iter().map(|byte| format!("{byte:02x}")).collect();
        lines.push(format!("{digits}  {}\n", file.file_name().to_string_lossy()));
    }
    // By the files' names.
    lines.sort_by(|a, b| a.split("  ").nth(1).cmp(&b.split("  ").nth(1)));
    Ok(lines.concat())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn all_places_have_one_version_and_the_changelog_has_it() {
        let version = common_version(&versions(&metadata().unwrap()).unwrap()).unwrap();
        let changelog = fs::read_to_string(workspace_root().join("CHANGELOG.md")).unwrap();
        assert!(!entry(&changelog, &version).unwrap().is_empty());
        assert!(entry(&changelog, "99.0.0").unwrap_err().to_string().contains("## [99.0.0] - "));
    }

    #[test]
    fn different_versions_are_listed() {
        let versions = [("a", "1.0.0"), ("b", "1.1.0")].map(|(a, b)| (a.to_owned(), b.to_owned()));
        let error = common_version(&versions).unwrap_err().to_string();
        assert!(error.ends_with("a: 1.0.0\nb: 1.1.0"), "{error}");
    }

    #[test]
    fn a_crate_has_its_licences_and_no_files_of_the_repository() {
        let whole = ["LICENSE-APACHE", "LICENSE-MIT", "src/lib.rs", "docs/guide.md"];
        assert_eq!(problem_with(&whole), None);
        assert_eq!(problem_with(&whole[1..]).unwrap(), "lacks LICENSE-APACHE");
        let more = [&whole[..], &["tests/data/x.npy"]].concat();
        assert!(problem_with(&more).unwrap().starts_with("contains tests/data/x.npy"));
    }

    #[test]
    fn a_bill_without_a_licence_is_refused() {
        let bill = |licences: &str| {
            format!(
                r#"{{"components":[{{"name":"a","version":"1.0.0","licenses":[{licences}]}}]}}"#
            )
        };
        assert_eq!(components(&bill(r#"{"expression":"MIT"}"#)).unwrap(), 1);
        assert!(components(&bill("")).unwrap_err().to_string().contains("\"a\""));
        assert!(components("{}").is_err() && components(r#"{"components":[]}"#).is_err());
    }

    #[test]
    fn check_sums_are_those_of_sha256sum() {
        let folder = std::env::temp_dir().join(format!("xtask-sums-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("b"), "").unwrap();
        fs::write(folder.join("a"), "abc").unwrap();
        let sums = sums(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(
            sums,
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n\
             e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
        );
    }
}
