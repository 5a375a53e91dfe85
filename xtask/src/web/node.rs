//! Node.js: finds or installs it, installs npm packages, and runs the bundler and the server.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::run::{CommandLine, Status};
use crate::system::Packages;
use crate::web::{Project, report};

/// The oldest Node.js that can run the bundler and the tests.
const OLDEST: u32 = 20;

const PACKAGES: Packages = Packages {
    debian: &["nodejs", "npm"],
    fedora: &["nodejs", "npm"],
    arch: &["nodejs", "npm"],
    suse: &["nodejs", "npm"],
    alpine: &["nodejs", "npm"],
    otherwise: "Node.js 20 or newer, with npm, from https://nodejs.org or",
    arch_note: "",
    suse_note: "",
    alpine_note: "",
};

/// Looks for Node.js and npm, and installs them if possible.
pub fn require() -> Result<()> {
    if let Some(version) = version() {
        return new_enough(&version);
    }
    PACKAGES.install(
        "This machine has no Node.js with npm, which bundles the page",
        "cargo xtask web",
    )?;
    match version() {
        Some(version) => new_enough(&version),
        None => bail!(
            "there is still no Node.js with npm; install Node.js {OLDEST} or newer from https://nodejs.org"
        ),
    }
}

fn version() -> Option<String> {
    let version = CommandLine::new("node").args(["--version"]).probe()?;
    npm().args(["--version"]).probe()?;
    Some(version.trim().to_owned())
}

/// Fails if a version such as `v18.19.0` is too old.
fn new_enough(version: &str) -> Result<()> {
    let major = version
        .trim_start_matches('v')
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok());
    match major {
        Some(major) if major >= OLDEST => {
            report("Node.js", version);
            Ok(())
        }
        _ => {
            bail!("Node.js {version} is too old; install {OLDEST} or newer from https://nodejs.org")
        }
    }
}

fn npm() -> CommandLine {
    CommandLine::new(if cfg!(windows) { "npm.cmd" } else { "npm" })
}

/// Installs the npm packages in `folder`'s lock file, unless they are there.
pub fn install_modules(folder: &Path) -> Result<()> {
    let lock = folder.join("package-lock.json");
    let changed = |path: &Path| fs::metadata(path).and_then(|data| data.modified()).ok();
    let locked = changed(&lock).with_context(|| format!("there is no {}", lock.display()))?;
    // npm writes this file at the end of an installation.
    if up_to_date(locked, changed(&folder.join("node_modules/.package-lock.json"))) {
        return Ok(());
    }
    let line = npm().args(["ci", "--no-audit", "--no-fund"]).folder(folder);
    if !line.run()?.is_success() {
        bail!("`{line}` failed. Read its output above; it needs access to npm's registry.");
    }
    Ok(())
}

fn up_to_date(locked: SystemTime, installed: Option<SystemTime>) -> bool {
    installed.is_some_and(|installed| installed >= locked)
}

/// Bundles the page into `web/dist` and prints the size of a visitor's download; with `check`, fails if that is too large.
pub fn bundle(project: &Project, check: bool, links: &[String]) -> Result<Status> {
    let line = CommandLine::new("node").args(["build.mjs"]).args(links).folder(&project.web());
    if check { line.args(["--check"]) } else { line }.run()
}

/// Serves `web/dist` on localhost until the process is stopped.
pub fn serve(project: &Project, port: u16) -> Result<Status> {
    CommandLine::new("node")
        .args(["serve.mjs", "--port", &port.to_string()])
        .folder(&project.web())
        .run()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_old_node_is_refused() {
        assert!(new_enough("v20.0.0").is_ok() && new_enough("v24.1.0").is_ok());
        for version in ["v18.19.0", "", "node"] {
            assert!(new_enough(version).is_err(), "{version}");
        }
    }

    #[test]
    fn packages_older_than_their_lock_are_installed_again() {
        let (now, second) =
            (SystemTime::UNIX_EPOCH + Duration::from_secs(9), Duration::from_secs(1));
        assert!(up_to_date(now, Some(now)) && up_to_date(now, Some(now + second)));
        assert!(!up_to_date(now, Some(now - second)) && !up_to_date(now, None));
    }
}
