//! The tests in real browsers: finds or installs the browsers, and runs `web/tests` in them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::run::{CommandLine, Status, first_failure, in_turn, side_by_side};
use crate::setup;
use crate::system::Packages;
use crate::web::{Project, node, report};

/// A browser that the tests can control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Browser {
    Chromium,
    Firefox,
}

const CHROMIUM: Packages = Packages {
    debian: &["chromium"],
    fedora: &["chromium"],
    arch: &["chromium"],
    suse: &["chromium"],
    alpine: &["chromium"],
    otherwise: "Chromium or Chrome",
    arch_note: "",
    suse_note: "",
    alpine_note: "",
};

const FIREFOX: Packages = Packages {
    debian: &["firefox-esr"],
    fedora: &["firefox"],
    arch: &["firefox"],
    suse: &["MozillaFirefox"],
    alpine: &["firefox"],
    otherwise: "Firefox 141 or newer",
    arch_note: "",
    suse_note: "",
    alpine_note: "",
};

impl Browser {
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Chromium, Self::Firefox].into_iter().find(|browser| browser.name() == name)
    }

    fn name(self) -> &'static str {
        match self {
            Self::Chromium => "chromium",
            Self::Firefox => "firefox",
        }
    }

    /// The variable with the program's path, for the tests and for installations at other locations.
    fn variable(self) -> &'static str {
        match self {
            Self::Chromium => "WGRAD_CHROMIUM",
            Self::Firefox => "WGRAD_FIREFOX",
        }
    }

    fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Chromium => {
                &["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
            }
            Self::Firefox => &["firefox-esr", "firefox"],
        }
    }

    /// The usual locations on macOS and Windows.
    fn places(self) -> &'static [&'static str] {
        match self {
            Self::Chromium => &[
                "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
                "/Applications/Chromium.app/Contents/MacOS/Chromium",
                r"C:\Program Files\Google\Chrome\Application\chrome.exe",
            ],
            Self::Firefox => &[
                "/Applications/Firefox.app/Contents/MacOS/firefox",
                r"C:\Program Files\Mozilla Firefox\firefox.exe",
            ],
        }
    }

    fn packages(self) -> &'static Packages {
        match self {
            Self::Chromium => &CHROMIUM,
            Self::Firefox => &FIREFOX,
        }
    }

    fn find(self) -> Option<PathBuf> {
        if let Some(path) = std::env::var_os(self.variable()) {
            return Some(PathBuf::from(path)).filter(|path| path.is_file());
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        in_folders(std::env::split_paths(&path), self.programs())
            .or_else(|| self.places().iter().map(PathBuf::from).find(|place| place.is_file()))
    }

    /// Finds the program, or installs it if possible.
    pub fn require(self) -> Result<PathBuf> {
        let found = self.find().map_or_else(
            || {
                if let Some(path) = std::env::var_os(self.variable()) {
                    bail!(
                        "{} is '{}', which is not a file; correct or unset it",
                        self.variable(),
                        path.display()
                    );
                }
                let lack = format!("This machine has no {}, in which the tests run", self.name());
                self.packages().install(&lack, "cargo xtask web --test")?;
                self.find().with_context(|| {
                    format!("{} is not on PATH; set {} to it", self.name(), self.variable())
                })
            },
            Ok,
        )?;
        report(self.name(), &found.display().to_string());
        Ok(found)
    }
}

fn in_folders(folders: impl Iterator<Item = PathBuf>, names: &[&str]) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = folders.collect();
    // Names before folders: the names are in order of preference.
    names
        .iter()
        .find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file()))
}

/// The ending of test files with time limits that hold only on an otherwise idle machine.
const TIMED: &str = ".timed.test.mjs";

/// What a sample always has: the page and the API as most people use them, and what the native half reads.
const ALWAYS: [&str; 3] = ["tests/api.test.mjs", "tests/names.test.mjs", "tests/page.test.mjs"];
/// Into how many parts the other test files are divided.
const PARTS: usize = 3;

/// Runs the timed tests in each browser, one after another, then the other tests in all of `browsers` at once, then the native
/// half, which reads what the browsers saved.
/// `part` selects a part of the test files, unless `only` names tests.
pub fn test(
    project: &Project,
    browsers: &[Browser],
    part: Option<usize>,
    only: Option<&str>,
) -> Result<Status> {
    setup::run()?;
    let types = CommandLine::new("node")
        .args(["node_modules/typescript/bin/tsc", "--noEmit"])
        .folder(&project.web());
    let status = types.run()?;
    if !status.is_success() {
        return Ok(status);
    }
    // Bundlers, and tools that check packages.
    node::install_modules(&project.web().join("tests/bundlers"))?;
    let exchange = exchange(project)?;
    let native = |test: &str| native_half(test, &exchange);
    // Weights and models for the browsers, and the expected predictions.
    let status = native("files_for_the_browsers").run()?;
    if !status.is_success() {
        return Ok(status);
    }
    let mut files = test_files(&project.web().join("tests"))?;
    if let (Some(part), None) = (part, only) {
        files = drawn(files, part);
    }
    let (timed, others): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|name| name.ends_with(TIMED));
    let programs = browsers
        .iter()
        .map(|&browser| Ok((browser, browser.require()?)))
        .collect::<Result<Vec<_>>>()?;
    let failed =
        |browser: Browser| project.scratch().join(format!("failed-{}.txt", browser.name()));
    let line = |(browser, program): &(Browser, PathBuf), files: &[String]| {
        let screenshots = project.target.join("web-screenshots").display().to_string();
        let mut line = CommandLine::new("node")
            .args(["--test", "--test-concurrency=1", "--test-reporter=spec"])
            .args(["--test-reporter-destination=stdout", "--test-reporter=./tests/failed.mjs"])
            .args([format!("--test-reporter-destination={}", failed(*browser).display())])
            .env("WGRAD_BROWSER", browser.name())
            .env(browser.variable(), &program.display().to_string())
            .env("WGRAD_WEB_EXCHANGE", &exchange.display().to_string())
            .env("WGRAD_WEB_SCREENSHOTS", &screenshots)
            .folder(&project.web());
        if let Some(text) = only {
            line = line.args([format!("--test-name-pattern={text}")]);
        }
        line.args(files)
    };
    let lines = |files: &[String]| -> Vec<CommandLine> {
        programs.iter().map(|program| line(program, files)).collect()
    };
    // The two kinds are independent of each other. Tests in browsers wait more than they compute.
    let alone = in_turn(&lines(&timed))?;
    let mut statuses = side_by_side(&lines(&others), programs.len())?;
    if browsers.len() > 1 {
        // Browsers that run at the same time slow each other down, sometimes too much. A file that also fails alone has failed.
        for (status, program) in statuses.iter_mut().zip(&programs) {
            let files = failed_files(&failed(program.0));
            if !status.is_success() && !files.is_empty() {
                report("failed while another browser ran, and runs once more", &files.join(", "));
                *status = line(program, &files).run()?;
            }
        }
    }
    let status = first_failure([alone].into_iter().chain(statuses));
    if !status.is_success() {
        return Ok(status);
    }
    if only.is_some() {
        return Ok(Status::SUCCESS);
    }
    let status = native("weights_from_the_browsers").run()?;
    if !status.is_success() {
        return Ok(status);
    }
    let status = native("models_from_the_browsers").run()?;
    if !status.is_success() {
        return Ok(status);
    }
    native("checkpoints_from_the_browsers").run()
}

/// A native test of `tests/web`, and the folder that it exchanges with the browsers.
fn native_half(test: &str, exchange: &Path) -> CommandLine {
    let test = format!("native_half::{test}");
    let arguments = ["--test", "web", "--", "--include-ignored", "--exact", &test];
    CommandLine::cargo_test()
        .args(arguments)
        .env("WGRAD_WEB_EXCHANGE", &exchange.display().to_string())
}

/// Exports the models that `benches/peers/web/models.mjs` times to a folder.
pub fn models_for_the_benchmark(folder: &Path) -> Result<Status> {
    empty(folder)?;
    native_half("models_for_the_benchmark", folder).run()
}

/// An empty folder for files exchanged between the native tests and the browsers' tests.
fn exchange(project: &Project) -> Result<PathBuf> {
    let folder = project.scratch().join("exchange");
    empty(&folder)?;
    Ok(folder)
}

/// Makes an empty folder, in the place of an old one.
fn empty(folder: &Path) -> Result<()> {
    let words = || format!("cannot make the empty folder {}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(words)?;
    }
    fs::create_dir_all(folder).with_context(words)
}

/// The files that `web/tests/failed.mjs` recorded.
fn failed_files(list: &Path) -> Vec<String> {
    fs::read_to_string(list).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// The test files, by their paths from `web/`.
fn test_files(folder: &Path) -> Result<Vec<String>> {
    let mut files: Vec<String> = fs::read_dir(folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".test.mjs"))
        .map(|name| format!("tests/{name}"))
        .collect();
    files.sort();
    if files.is_empty() {
        bail!("there are no tests in {}", folder.display());
    }
    Ok(files)
}

/// The files that always run, and one part of the others.
fn drawn(files: Vec<String>, part: usize) -> Vec<String> {
    let (always, others): (Vec<_>, Vec<_>) =
        files.into_iter().partition(|file| ALWAYS.contains(&file.as_str()));
    let others = others.into_iter().skip(part % PARTS).step_by(PARTS);
    always.into_iter().chain(others).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::run::workspace_root;

    #[test]
    fn each_file_is_in_one_part_or_in_all() {
        let files = test_files(&workspace_root().join("web/tests")).unwrap();
        let parts: Vec<_> = (3..6).map(|part| drawn(files.clone(), part)).collect();
        for file in &files {
            let count = parts.iter().filter(|part| part.contains(file)).count();
            let always = ALWAYS.contains(&file.as_str());
            assert_eq!(count, if always { PARTS } else { 1 }, "{file}");
        }
        assert!(ALWAYS.iter().all(|file| files.iter().any(|other| other == file)));
    }

    #[test]
    fn a_browser_is_found_by_the_name_that_comes_first() {
        let folder =
            std::env::temp_dir().join(format!("wgrad-xtask-{}-browsers", std::process::id()));
        let (one, two) = (folder.join("one"), folder.join("two"));
        fs::create_dir_all(&one).unwrap();
        fs::create_dir_all(&two).unwrap();
        fs::write(one.join("firefox"), "").unwrap();
        fs::write(two.join("firefox-esr"), "").unwrap();
        let found = in_folders([one.clone(), two.clone()].into_iter(), Browser::Firefox.programs());
        assert_eq!(found, Some(two.join("firefox-esr")));
        let none = in_folders([one, two].into_iter(), Browser::Chromium.programs());
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(none, None);
    }

    #[test]
    fn the_tests_are_the_files_that_say_so() {
        let folder = std::env::temp_dir().join(format!("wgrad-xtask-{}-tests", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        assert!(test_files(&folder).is_err());
        for name in ["b.test.mjs", "a.test.mjs", "driver.mjs"] {
            fs::write(folder.join(name), "").unwrap();
        }
        let files = test_files(&folder).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(files, ["tests/a.test.mjs", "tests/b.test.mjs"]);
    }
}
