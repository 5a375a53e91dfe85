//! Python's virtual environments below `target`, for tests that need packages from PyPI.

use anyhow::{Result, bail};

use crate::run::{CommandLine, workspace_root};

/// The path of the Python in `target/NAME`. The environment is created if it does not exist or lacks one of `modules`, a list for
/// Python's `import`; each of `installs` has the arguments of one `pip install`.
pub fn python(name: &str, modules: &str, installs: &[&[&str]]) -> Result<String> {
    let folder = workspace_root().join("target").join(name);
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let python = python.to_string_lossy().into_owned();
    let import = format!("import {modules}");
    let has_all = || CommandLine::new(python.as_str()).args(["-c", &import]).probe().is_some();
    if has_all() {
        return Ok(python);
    }
    let system = ["python3", "python"]
        .into_iter()
        .find(|name| CommandLine::new(*name).args(["-m", "venv", "--help"]).probe().is_some());
    let Some(system) = system else {
        bail!("there is no Python 3 with venv; install it (on Debian: python3-venv)");
    };
    let make = CommandLine::new(system).args(["-m", "venv"]).args([folder.to_string_lossy()]);
    let pip = |packages: &&[&str]| {
        CommandLine::new(python.as_str())
            .args(["-m", "pip", "install", "--quiet"])
            .args(packages.iter().copied())
    };
    for step in [make].into_iter().chain(installs.iter().map(pip)) {
        if !step.run()?.is_success() {
            bail!("`{step}` failed; see its output above");
        }
    }
    match has_all() {
        true => Ok(python),
        false => bail!("{python} cannot import all of {modules}"),
    }
}
