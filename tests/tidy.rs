//! Habits of this repository that no compiler checks: where things stand, how long files are, what they open
//! with, which room knows which.

#![allow(clippy::unwrap_used)]

#[path = "support/quotes.rs"]
mod quotes;

use std::fs;
use std::path::{Path, PathBuf};

/// A file of the repository.
struct File {
    /// Its path from the root, with forward slashes.
    path: String,
    text: String,
}

impl File {
    fn under(&self, folder: &str) -> bool {
        self.path.starts_with(folder)
    }

    /// The text without its comments, line by line.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let comment = |line: &&str| line.trim_start().starts_with("//");
        let lines = self.text.lines().enumerate().filter(move |(_, line)| !comment(line));
        lines.map(|(i, line)| (i + 1, line.split(" // ").next().unwrap_or(line)))
    }

    /// Lines of code with `word` in them.
    fn find<'a>(&'a self, word: &'a str) -> impl Iterator<Item = String> + 'a {
        self.code()
            .filter(move |(_, line)| line.contains(word))
            .map(move |(at, line)| format!("{}:{at}: {}", self.path, line.trim()))
    }
}

/// Every file below `folder` whose name ends with `.ending`.
fn files(folder: &str, ending: &str) -> Vec<File> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() { walk(&path, found) } else { found.push(path) }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    walk(&root.join(folder), &mut paths);
    paths.sort();
    let wanted = paths.iter().filter(|path| path.extension().is_some_and(|e| e == ending));
    wanted
        .map(|path| File {
            path: path.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/"),
            text: fs::read_to_string(path).unwrap(),
        })
        .collect()
}

fn sources() -> Vec<File> {
    let sources = files("src", "rs");
    assert!(sources.len() > 30, "only {} files were found under src/", sources.len());
    sources
}

fn shaders() -> Vec<File> {
    let shaders = files("shaders", "wgsl");
    assert!(shaders.len() > 3, "only {} shaders were found", shaders.len());
    shaders
}

/// Fails with the whole list.
#[track_caller]
fn none(found: impl IntoIterator<Item = String>, rule: &str) {
    let found: Vec<String> = found.into_iter().collect();
    assert!(found.is_empty(), "{rule}\n  {}", found.join("\n  "));
}

#[test]
fn every_module_says_what_it_is_for() {
    let silent = sources().into_iter().filter(|file| !file.text.starts_with("//! "));
    none(silent.map(|file| file.path), "These files do not open with `//!`:");
}

#[test]
fn every_shader_has_a_header() {
    let wrong = shaders().into_iter().filter_map(|file| {
        let header: Vec<&str> =
            file.text.lines().take_while(|line| line.starts_with("// ")).collect();
        let says = |word: &str| header.iter().any(|line| line.contains(word));
        let binds = header.iter().any(|line| {
            line.starts_with("// 0 ") && line.contains(" read") && line.contains("uniform")
        });
        let what = match file.path.as_str() {
            _ if header.is_empty() || !says(".") => "a sentence that says what it does",
            "shaders/prelude.wgsl" => return None,
            _ if !binds => "a line of bindings (`0 x: [M,K] read`)",
            _ if !says("Host declares") => "what the host declares in front",
            _ if !says("Grid:") => "the grid of workgroups",
            _ => return None,
        };
        Some(format!("{} lacks {what}", file.path))
    });
    none(wrong, "Comments at the top of a shader are its documentation:");
}

/// Advice, printed with `--nocapture`: no length forces a file apart whose parts belong together.
#[test]
fn long_files_are_named() {
    let aims = |files: Vec<File>, aim: usize| {
        for file in files {
            let lines = file.text.lines().count();
            if lines > aim {
                println!("{} has {lines} lines; about 200 are the aim", file.path);
            }
        }
    };
    aims(sources(), 500);
    aims(shaders(), 150);
}

#[test]
fn shaders_loop_with_for_only() {
    let word = |line: &str, wanted: &str| {
        line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == wanted)
    };
    let mut wrong = Vec::new();
    for file in shaders() {
        for (at, line) in file.code() {
            if word(line, "while") || word(line, "loop") {
                wrong.push(format!("{}:{at}: {}", file.path, line.trim()));
            }
        }
    }
    // WGSL inside Rust stands in string literals; the generator's own loops do not.
    for file in sources().into_iter().filter(|file| file.under("src/ops") || file.under("src/plan"))
    {
        for text in literals(&file.text).into_iter().filter(|text| text.contains('{')) {
            if text.contains("while (") || text.contains("loop {") {
                wrong.push(format!("{}: {text}", file.path));
            }
        }
    }
    none(
        wrong,
        "src/device/trusted.rs turns off the check for endless loops; only `for` is allowed here:",
    );
}

/// The string literals of a Rust file; good enough for files without raw strings full of quotes.
fn literals(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let code: Vec<&str> =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut chars = code.join("\n").chars().collect::<Vec<_>>().into_iter().peekable();
    while let Some(c) = chars.next() {
        match c {
            // A quote as a character ends right after it.
            '\'' if chars.peek() == Some(&'"') => drop(chars.next()),
            '"' => {
                let mut literal = String::new();
                while let Some(c) = chars.next() {
                    match c {
                        '"' => break,
                        '\\' => drop(chars.next()),
                        c => literal.push(c),
                    }
                }
                found.push(literal);
            }
            _ => {}
        }
    }
    found
}

#[test]
fn compute_passes_begin_in_one_place() {
    let elsewhere = sources().into_iter().filter(|file| file.path != "src/device/submit.rs");
    none(
        elsewhere.flat_map(|file| file.find("begin_compute_pass").collect::<Vec<_>>()),
        "Only src/device/submit.rs begins compute passes:",
    );
}

#[test]
fn unsafe_stands_in_one_place() {
    let elsewhere = sources().into_iter().filter(|file| file.path != "src/device/trusted.rs");
    none(
        elsewhere.flat_map(|file| {
            let blocks = ["unsafe {", "unsafe fn", "unsafe impl", "allow(unsafe_code)"];
            blocks.into_iter().flat_map(|b| file.find(b).collect::<Vec<_>>()).collect::<Vec<_>>()
        }),
        "Only src/device/trusted.rs may contain unsafe code:",
    );
}

#[test]
fn nothing_is_left_half_done() {
    let words =
        ["todo!", "unimplemented!", "dbg!", "println!", "eprintln!", "TODO", "FIXME", "XXX"];
    let found = sources().into_iter().flat_map(|file| {
        // Tests may print.
        let tests = file.under("src/ops/catalog") || file.path.ends_with("tests.rs");
        let code = file.text.split("#[cfg(test)]\nmod tests").next().unwrap_or("").to_string();
        let file = File { text: if tests { String::new() } else { code }, ..file };
        words.into_iter().flat_map(|word| file.find(word).collect::<Vec<_>>()).collect::<Vec<_>>()
    });
    none(found, "A library neither prints nor puts off:");
}

#[test]
fn rooms_know_only_those_below() {
    let rules: [(&str, &[&str]); 5] = [
        ("src/device/", &["ops", "tensor", "graph", "plan", "keras", "tape", "eager"]),
        ("src/graph/", &["tensor", "ops", "tape", "plan", "keras", "eager"]),
        ("src/plan/", &["tape", "tensor", "ops", "keras", "eager"]),
        ("src/ops/", &["keras"]),
        ("src/tensor/", &["keras", "tape"]),
    ];
    let files = sources();
    let mut wrong = Vec::new();
    for (room, others) in rules {
        for file in files.iter().filter(|file| file.under(room) && !file.under("src/ops/catalog")) {
            for (at, line) in file.code() {
                // What follows `crate::`, up to the end of the name; a group in braces hides names.
                let mut paths = line.split("crate::").skip(1).map(|rest| {
                    rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or("")
                });
                if paths.any(|name| name.is_empty() || others.contains(&name)) {
                    wrong.push(format!("{}:{at}: {}", file.path, line.trim()));
                }
            }
        }
    }
    none(
        wrong,
        "These lines look into a room above their own (see the map in docs/architecture.md):",
    );
}

#[test]
fn every_shader_is_used() {
    let sources = sources();
    let unused = shaders().into_iter().filter(|shader| {
        let name = shader.path.trim_start_matches("shaders/");
        !sources.iter().any(|file| file.text.contains(&format!("shaders/{name}\"")))
    });
    none(unused.map(|shader| shader.path), "No source includes these shaders:");
}

#[test]
fn files_hold_only_what_everyone_may_read() {
    let mut files = sources();
    for (folder, ending) in
        [("tests", "rs"), ("examples", "rs"), ("benches", "rs"), ("xtask", "rs"), ("docs", "md")]
    {
        files.extend(self::files(folder, ending));
    }
    files.extend(shaders());
    for name in ["README.md", "FEATURES.md", "CONTRIBUTING.md", "CHANGELOG.md", "Cargo.toml"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        files.push(File { path: name.to_string(), text: fs::read_to_string(path).unwrap() });
    }
    let own = |file: &File| file.path == "tests/tidy.rs";
    let hosts = [
        "index.crates.io",
        "static.crates.io",
        "pypi.org",
        "files.pythonhosted.org",
        "registry.npmjs.org",
    ];
    let folders = ["/home/", "/root/", "/Users/", "/tmp/"];
    let found = files.iter().filter(|file| !own(file)).flat_map(|file| {
        let words = hosts.iter().chain(&folders);
        let lines = |word: &&str| {
            let word = *word;
            let lines = file.text.lines().enumerate().filter(move |(_, line)| line.contains(word));
            lines
                .map(|(i, line)| format!("{}:{}: {}", file.path, i + 1, line.trim()))
                .collect::<Vec<_>>()
        };
        words.flat_map(lines).collect::<Vec<_>>()
    });
    none(found, "Package registries and folders of one machine have no place in the repository:");
}
