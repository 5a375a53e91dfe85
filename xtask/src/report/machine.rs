//! The facts about the machine in a report, without the names of people, machines and folders.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::Value;

use crate::run::{CommandLine, workspace_root};

/// Variables that change wgrad's behaviour. Others, such as folders, are private.
const SWITCHES: [&str; 10] = [
    "WGRAD_ADAPTER",
    "WGRAD_EAGER_SYNC",
    "WGRAD_FUSION",
    "WGRAD_PORTABLE",
    "WGRAD_PRINT_PLANS",
    "WGRAD_PROPERTY_CASES",
    "WGRAD_TUNE",
    "WGPU_BACKEND",
    "WGPU_VALIDATION",
    "WGPU_DEBUG",
];

/// The version of wgrad, and the compiler that compiled it.
pub struct Build {
    pub version: String,
    pub compiler: String,
}

impl Build {
    pub fn of_this_machine() -> Self {
        Self { version: version(), compiler: compiler() }
    }
}

/// `0.1.0, commit 1234567 with changes`.
fn version() -> String {
    let metadata = CommandLine::cargo(["metadata", "--format-version", "1", "--no-deps"]).probe();
    let metadata: Value =
        metadata.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let package = metadata["packages"].as_array().into_iter().flatten();
    let package = package.into_iter().find(|package| package["name"] == "wgrad");
    let version = package.and_then(|package| package["version"].as_str()).unwrap_or("unknown");
    let git = |words: &[&str]| CommandLine::new("git").args(words).probe();
    let commit = match git(&["rev-parse", "--short", "HEAD"]) {
        Some(commit) => {
            let changed = git(&["status", "--porcelain", "--untracked-files=no"]);
            let changed = changed.is_some_and(|list| !list.trim().is_empty());
            format!("commit {}{}", commit.trim(), if changed { " with changes" } else { "" })
        }
        None => "an unknown commit".to_owned(),
    };
    format!("{version}, {commit}")
}

/// The system, its version and the processor's kind.
pub fn system() -> String {
    let words = match std::env::consts::OS {
        "linux" => std::fs::read_to_string("/etc/os-release").ok().and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
            Some(line.trim_matches('"').to_owned())
        }),
        "macos" => CommandLine::new("sw_vers").args(["-productVersion"]).probe(),
        "windows" => CommandLine::new("cmd").args(["/C", "ver"]).probe(),
        _ => None,
    };
    let os = std::env::consts::OS;
    let words = words.map(|words| format!(", {}", words.trim())).unwrap_or_default();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    format!("{os} {}{words}, {cores} cores", std::env::consts::ARCH)
}

/// The compiler's name and version.
fn compiler() -> String {
    let words = CommandLine::new("rustc").args(["--version"]).probe();
    words.map_or_else(|| "an unknown compiler".to_owned(), |words| words.trim().to_owned())
}

/// The switches that are set, in shell syntax.
pub fn switches() -> Vec<String> {
    let set = |name: &&str| Some(format!("{name}={}", std::env::var(name).ok()?));
    let mut all: Vec<String> = SWITCHES.iter().filter_map(set).collect();
    // The set of cases depends on it, but its value is a folder.
    if std::env::var_os("WGRAD_ORACLE").is_some() {
        all.push("WGRAD_ORACLE=...".to_owned());
    }
    all
}

/// Today, as `2026-11-22`.
pub fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    date(seconds / 86_400)
}

/// The day this many days after 1970-01-01.
fn date(mut days: u64) -> String {
    let leap =
        |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 0;
    while days >= lengths[month] {
        days -= lengths[month];
        month += 1;
    }
    format!("{year}-{:02}-{:02}", month + 1, days + 1)
}

/// Texts that must not appear in a report, and their replacements.
pub struct Secrets(Vec<(String, &'static str)>);

impl Secrets {
    /// The names of the user and this machine. `scratch` is a temporary folder of the report.
    pub fn of_this_machine(scratch: &Path) -> Self {
        let variable = |name: &str| std::env::var(name).unwrap_or_default();
        let host = CommandLine::new("hostname").probe().unwrap_or_default();
        let folder = |path: &Path| path.to_string_lossy().into_owned();
        Self::new(
            [
                (folder(&workspace_root()), "."),
                (folder(scratch), "[temporary]"),
                (variable("CARGO_HOME"), "[cargo]"),
                (variable("HOME"), "~"),
                (variable("USERPROFILE"), "~"),
                (folder(&std::env::temp_dir()), "[temporary]"),
            ],
            [
                (variable("USER"), "[user]"),
                (variable("USERNAME"), "[user]"),
                (host.trim().to_owned(), "[host]"),
                (variable("COMPUTERNAME"), "[host]"),
            ],
        )
    }

    fn new(folders: [(String, &'static str); 6], names: [(String, &'static str); 4]) -> Self {
        // A root folder and an account that every machine has are not private, and short names are parts of other words.
        let folders = folders.into_iter().filter(|(folder, _)| folder.len() > 4);
        let names = names.into_iter().filter(|(name, _)| name.len() > 2 && name != "root");
        let mut all: Vec<_> = folders.chain(names).collect();
        // Longer texts first, since they may contain shorter ones.
        all.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        Self(all)
    }

    /// `text` with these replaced.
    pub fn hidden(&self, text: &str) -> String {
        self.0
            .iter()
            .fold(text.to_owned(), |text, (secret, instead)| replaced(&text, secret, instead))
    }
}

/// `text` with each `word` replaced by `instead`, unless it is part of a longer word.
fn replaced(text: &str, word: &str, instead: &str) -> String {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut result = String::new();
    let mut rest = text;
    let mut before = None;
    while let Some(at) = rest.find(word) {
        let (head, tail) = (&rest[..at], &rest[at + word.len()..]);
        let whole = !part(head.chars().next_back().or(before)) && !part(tail.chars().next());
        result.push_str(head);
        result.push_str(if whole { instead } else { word });
        before = word.chars().next_back();
        rest = tail;
    }
    result + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_become_dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(59), "1970-03-01");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(20_779), "2026-11-22");
    }

    #[test]
    fn folders_and_names_are_hidden() {
        let no = || (String::new(), "");
        let folders = [
            ("/people/ada/wgrad".to_owned(), "."),
            ("/people/ada".to_owned(), "~"),
            ("/tmp".to_owned(), "[temporary]"),
            no(),
            no(),
            no(),
        ];
        let names = [
            ("ada".to_owned(), "[user]"),
            ("root".to_owned(), "[user]"),
            ("box".to_owned(), "[host]"),
            no(),
        ];
        let secrets = Secrets::new(folders, names);
        for (text, hidden) in [
            ("at /people/ada/wgrad/src/a.rs:1", "at ./src/a.rs:1"),
            ("/people/ada/.cargo/registry", "~/.cargo/registry"),
            ("/people/adam adapter ada@box", "/people/adam adapter [user]@[host]"),
            ("ada", "[user]"),
            ("adaada root boxes", "adaada root boxes"),
        ] {
            assert_eq!(secrets.hidden(text), hidden);
        }
    }

    #[test]
    fn the_machine_is_described_without_its_name() {
        assert!(system().starts_with(std::env::consts::OS));
        assert!(version().contains(", "), "{}", version());
        assert!(compiler().starts_with("rustc "));
    }
}
