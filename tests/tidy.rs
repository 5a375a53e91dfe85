//! Conventions of this repository that no compiler checks: locations, lengths of files, their headers, which module may use
//! which.

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

/// Fails with the full list.
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

/// Advice, printed with `--nocapture`: a file whose parts belong together need not be split because of its length.
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
    // WGSL in Rust files is in string literals; the generator's own loops are not.
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

/// The string literals of a Rust file; sufficient for files without raw strings that contain quotes.
fn literals(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let code: Vec<&str> =
        text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
    let mut chars = code.join("\n").chars().collect::<Vec<_>>().into_iter().peekable();
    while let Some(c) = chars.next() {
        match c {
            // A quote character literal ends right after it.
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
    // An exported model runs without the crate.
    let allowed = ["src/device/submit.rs", "src/saved_model/webgpu_tests.rs"];
    let elsewhere = sources().into_iter().filter(|file| !allowed.contains(&file.path.as_str()));
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

/// The modules of `src` from the bottom up, a folder or a file each, and the modules that each may use. The same table is in
/// docs/architecture.md.
const ROOMS: &[(&str, &[&str])] = &[
    ("error", &[]),
    ("support", &[]),
    ("files", &["error"]),
    ("wgsl", &["support"]),
    ("shape", &["error"]),
    ("dtype", &["error"]),
    ("host_array", &["error", "shape", "dtype"]),
    ("device", &["error", "support", "files", "shape", "dtype"]),
    ("warnings", &["device"]),
    ("graph", &["error", "support", "wgsl", "shape", "dtype", "device"]),
    ("plan", &["error", "support", "files", "wgsl", "shape", "dtype", "device", "graph"]),
    ("runtime", &["error", "support", "dtype", "device", "graph", "plan"]),
    // An op is a method of tensors, an operator calls an op, and both use the single entry point, which notifies observers of
    // tensors and variables: these four depend on each other.
    (
        "ops",
        &[
            "error", "support", "wgsl", "shape", "dtype", "device", "graph", "runtime", "tensor",
            "eager",
        ],
    ),
    (
        "tensor",
        &[
            "error",
            "support",
            "shape",
            "dtype",
            "host_array",
            "device",
            "graph",
            "runtime",
            "ops",
            "eager",
        ],
    ),
    ("variable", &["error", "support", "dtype", "device", "graph", "runtime", "tensor", "eager"]),
    ("eager", &["error", "graph", "runtime", "ops", "tensor", "variable"]),
    (
        "random",
        &["error", "support", "shape", "dtype", "graph", "runtime", "ops", "tensor", "eager"],
    ),
    (
        "debugging",
        &[
            "error", "support", "shape", "dtype", "device", "graph", "runtime", "ops", "tensor",
            "eager",
        ],
    ),
    (
        "tape",
        &[
            "error", "support", "shape", "dtype", "warnings", "graph", "runtime", "ops", "tensor",
            "variable", "eager",
        ],
    ),
    ("config", &["error", "device", "runtime"]),
    (
        "function",
        &[
            "error", "support", "shape", "dtype", "warnings", "graph", "plan", "runtime", "ops",
            "tensor", "variable", "eager", "tape",
        ],
    ),
    ("interop", &["error", "shape", "dtype", "graph", "runtime", "ops", "tensor"]),
    ("hdf5", &["error", "host_array"]),
    ("image", &["error", "support", "ops"]),
    (
        "trackable",
        &[
            "error",
            "support",
            "files",
            "shape",
            "dtype",
            "host_array",
            "device",
            "graph",
            "runtime",
            "ops",
            "tensor",
            "variable",
            "random",
        ],
    ),
    (
        "data",
        &[
            "error",
            "support",
            "files",
            "shape",
            "dtype",
            "host_array",
            "ops",
            "tensor",
            "random",
            "trackable",
        ],
    ),
    (
        "distribute",
        &[
            "error",
            "shape",
            "dtype",
            "host_array",
            "warnings",
            "runtime",
            "ops",
            "tensor",
            "variable",
            "eager",
            "random",
            "data",
        ],
    ),
    (
        "weights",
        &[
            "error",
            "support",
            "files",
            "shape",
            "dtype",
            "host_array",
            "tensor",
            "trackable",
            "data",
        ],
    ),
    (
        "train",
        &[
            "error",
            "support",
            "files",
            "shape",
            "dtype",
            "host_array",
            "warnings",
            "graph",
            "runtime",
            "tensor",
            "variable",
            "random",
            "trackable",
        ],
    ),
    (
        "summary",
        &[
            "error",
            "support",
            "files",
            "shape",
            "dtype",
            "host_array",
            "device",
            "graph",
            "plan",
            "runtime",
            "ops",
            "tensor",
            "variable",
            "function",
            "trackable",
            "data",
        ],
    ),
    (
        "keras",
        &[
            "error",
            "support",
            "files",
            "shape",
            "dtype",
            "host_array",
            "warnings",
            "graph",
            "runtime",
            "ops",
            "tensor",
            "variable",
            "eager",
            "distribute",
            "function",
            "random",
            "tape",
            "debugging",
            "hdf5",
            "image",
            "trackable",
            "data",
            "weights",
            "train",
            "summary",
        ],
    ),
    ("text", &["error", "support", "files", "tensor"]),
    ("hub", &["error", "support", "files", "trackable", "keras", "text"]),
    (
        "estimator",
        &[
            "error",
            "support",
            "files",
            "dtype",
            "host_array",
            "tensor",
            "variable",
            "tape",
            "trackable",
            "data",
            "keras",
        ],
    ),
    (
        "saved_model",
        &[
            "error",
            "support",
            "files",
            "shape",
            "dtype",
            "host_array",
            "device",
            "graph",
            "plan",
            "runtime",
            "ops",
            "tensor",
            "variable",
            "eager",
            "function",
            "random",
            "image",
            "debugging",
            "trackable",
            "train",
            "keras",
        ],
    ),
    (
        "compat",
        &[
            "error",
            "files",
            "dtype",
            "host_array",
            "graph",
            "runtime",
            "tensor",
            "variable",
            "eager",
            "function",
            "tape",
            "trackable",
            "train",
            "keras",
        ],
    ),
    (
        "prelude",
        &["error", "dtype", "runtime", "tensor", "variable", "tape", "trackable", "data", "keras"],
    ),
    ("docs", &[]),
    ("lib", &[]),
];

/// Modules that may use each other.
const KNOT: [&str; 4] = ["ops", "tensor", "variable", "eager"];

/// The module that a file under src/ belongs to.
fn room_of(path: &str) -> &str {
    let inside = path.trim_start_matches("src/");
    let first = inside.split('/').next().unwrap_or(inside);
    let name = first.trim_end_matches(".rs");
    // A file's tests are next to it, under its name.
    name.trim_end_matches("_tests")
}

/// The first names of all paths that begin with `crate::` in `code`, with groups in braces expanded.
fn rooms_named(code: &str) -> Vec<String> {
    names_after("crate::", code)
}

/// The first names after each `start` in `code`, with groups in braces expanded.
fn names_after(start: &str, code: &str) -> Vec<String> {
    let name = |text: &str| -> String {
        let text = text.trim_start();
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut names = Vec::new();
    for rest in code.split(start).skip(1) {
        let Some(group) = rest.strip_prefix('{') else {
            names.push(name(rest));
            continue;
        };
        let (mut depth, mut at_start) = (0, true);
        for (i, c) in group.char_indices() {
            match c {
                '}' if depth == 0 => break,
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => at_start = true,
                c if at_start && !c.is_whitespace() => {
                    names.push(name(&group[i..]));
                    at_start = false;
                }
                _ => {}
            }
        }
    }
    names
}

#[test]
fn groups_in_braces_are_taken_apart() {
    let code =
        "use crate::{error::{Result, Error}, a,\n b::c};\nuse crate::plan::{x, y}; crate::ops::f()";
    assert_eq!(rooms_named(code), ["error", "a", "b", "plan", "ops"]);
    assert_eq!(room_of("src/plan/tuner/report.rs"), "plan");
    assert_eq!(room_of("src/files_tests.rs"), "files");
}

#[test]
fn rooms_know_only_those_below() {
    let mut wrong = Vec::new();
    for file in sources() {
        let room = room_of(&file.path);
        let Some((_, allowed)) = ROOMS.iter().find(|(name, _)| *name == room) else {
            wrong.push(format!("{}: the table has no room {room}", file.path));
            continue;
        };
        // Tests may use everything.
        if file.under("src/ops/catalog") || file.path.ends_with("tests.rs") || room == "lib" {
            continue;
        }
        let code = file.text.split("#[cfg(test)]\nmod tests").next().unwrap_or("").to_string();
        let outside_tests = File { path: file.path.clone(), text: code };
        let code: Vec<&str> = outside_tests.code().map(|(_, line)| line).collect();
        for name in rooms_named(&code.join("\n")) {
            if name != room && !allowed.contains(&name.as_str()) {
                wrong.push(format!("{}: {room} uses {name}", file.path));
            }
        }
    }
    none(wrong, "These files look into a room that theirs may not use (ROOMS in tests/tidy.rs):");
}

/// The files next to `file` that it uses with `super::`, by their paths without an ending.
fn neighbours(file: &File, modules: &[String]) -> Vec<String> {
    let code = file.text.split("#[cfg(test)]\nmod tests").next().unwrap_or("").to_string();
    let outside_tests = File { path: file.path.clone(), text: code };
    let code: Vec<&str> = outside_tests.code().map(|(_, line)| line).collect();
    let own = module_of(&file.path);
    let folder = own.rsplit_once('/').map_or("", |(folder, _)| folder);
    let names = names_after("super::", &code.join("\n")).into_iter();
    names
        .map(|name| format!("{folder}/{name}"))
        .filter(|other| *other != own && modules.contains(other))
        .collect()
}

/// A source's path without its ending; a folder's for its `mod.rs`.
fn module_of(path: &str) -> String {
    path.trim_end_matches(".rs").trim_end_matches("/mod").to_string()
}

/// Code that two files need is in a third one. A folder's `mod.rs` and the files in it may use each other, and so may the
/// inventory and the ops that it lists.
#[test]
fn files_of_a_folder_form_no_cycle() {
    let files: Vec<File> =
        sources().into_iter().filter(|file| !file.path.ends_with("tests.rs")).collect();
    let inventory = "src/ops/inventory";
    let modules: Vec<String> = files.iter().map(|file| module_of(&file.path)).collect();
    let mut arrows: Vec<Vec<String>> =
        files.iter().map(|file| neighbours(file, &modules)).collect();
    arrows.iter_mut().for_each(|arrows| arrows.retain(|other| other != inventory));
    assert!(arrows.iter().any(|arrows| !arrows.is_empty()), "no file names another");
    // A file that uses none of the remaining files is not in a cycle.
    let mut left: Vec<&String> = modules.iter().collect();
    loop {
        let before = left.len();
        for (module, arrows) in modules.iter().zip(&mut arrows) {
            arrows.retain(|other| left.contains(&other));
            if arrows.is_empty() {
                left.retain(|other| *other != module);
            }
        }
        if left.len() == before {
            break;
        }
    }
    let circles = modules.iter().zip(&arrows).filter(|(_, arrows)| !arrows.is_empty());
    none(
        circles.map(|(module, arrows)| format!("{module} uses {}", arrows.join(", "))),
        "These files use each other, or one that does; put what both need into a third:",
    );
}

#[test]
fn the_table_of_rooms_has_no_circle_but_the_knot() {
    let at = |room: &str| ROOMS.iter().position(|(name, _)| *name == room);
    let wrong = ROOMS.iter().enumerate().flat_map(|(i, (room, allowed))| {
        let upward = allowed.iter().filter(move |other| {
            let knot = KNOT.contains(room) && KNOT.contains(other);
            !knot && at(other).is_none_or(|below| below >= i)
        });
        upward.map(move |other| format!("{room} -> {other}"))
    });
    none(wrong, "These arrows of ROOMS point up, or to no room:");
}

#[test]
fn the_map_has_the_same_arrows() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/architecture.md");
    let map = fs::read_to_string(path).unwrap();
    let words = |line: &str| line.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = map.lines().map(words).collect();
    let lacking = ROOMS.iter().filter(|(room, _)| *room != "lib").filter_map(|(room, allowed)| {
        let below = if allowed.is_empty() { "nothing".to_string() } else { allowed.join(", ") };
        let line = format!("{room} -> {below}");
        (!lines.contains(&words(&line))).then_some(line)
    });
    none(lacking, "docs/architecture.md lacks these lines of the table of arrows:");
}

/// Compares the right column of each table in docs/keras-for-wgrad.md, in backticks, with the program below the table.
#[test]
fn rows_of_keras_tables_stand_in_the_programs_below() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/keras-for-wgrad.md");
    let page = fs::read_to_string(path).unwrap();
    let (mut missing, mut rows) = (Vec::new(), 0);
    for section in page.split("\n## ").skip(1) {
        let program = section.split("```rust\n").nth(1).unwrap_or("");
        for row in section.lines().filter(|line| line.starts_with("| `")) {
            rows += 1;
            let here = row.replace("\\|", "\u{1}");
            let here = here.split('|').nth(2).unwrap_or("").replace('\u{1}', "|");
            let calls: Vec<&str> = here.split('`').skip(1).step_by(2).collect();
            if calls.is_empty() || calls.iter().any(|call| !program.contains(call)) {
                missing.push(row.to_string());
            }
        }
    }
    assert!(rows > 40, "only {rows} rows were found");
    none(missing, "The programs below do not have what these rows say:");
}

/// The public parts of `text`, without bodies: `pub` items with their whole signatures, all of a `pub enum` or `pub trait`, and
/// implementations.
fn public_text(file: &File) -> Vec<(usize, String)> {
    let lines: Vec<(usize, &str)> = file.code().collect();
    let mut found = Vec::new();
    for (i, (at, line)) in lines.iter().enumerate() {
        let indent = line.len() - line.trim_start().len();
        let item = line.trim_start();
        let rest = || lines[i..].iter().map(|(_, line)| *line);
        if item.starts_with("pub enum ") || item.starts_with("pub trait ") {
            let end =
                |line: &&str| !(line.trim_start().starts_with('}') && line.len() - 1 <= indent);
            found.push((*at, rest().take_while(end).collect::<Vec<_>>().join(" ")));
        } else if item.starts_with("pub ") || item.starts_with("impl") {
            let function = item.contains("fn ");
            let ends = |line: &str| {
                line.ends_with('{')
                    || line.ends_with(';')
                    || line.ends_with('}')
                    || (!function && line.ends_with(','))
            };
            let all: Vec<&str> = rest().collect();
            let last = all.iter().position(|line| ends(line.trim_end())).unwrap_or(0);
            found.push((*at, all[..=last].join(" ")));
        }
    }
    found
}

/// True if `text` has a type of wgpu's, or wgpu itself; `fn wgpu()` is a name of this crate.
fn names_wgpu(text: &str) -> bool {
    text.contains("wgpu::") || text.contains("use wgpu;")
}

/// A new version of wgpu changes its types; then only one module changes.
#[test]
fn types_of_wgpu_are_public_in_one_module() {
    let (own, others): (Vec<File>, Vec<File>) =
        sources().into_iter().partition(|file| file.path == "src/interop.rs");
    let named = |file: &File| {
        let items = public_text(file).into_iter().filter(|(_, text)| names_wgpu(text));
        items.map(|(at, text)| format!("{}:{at}: {}", file.path, text.trim())).collect::<Vec<_>>()
    };
    // The search finds them where they are: the re-export, and two traits.
    let here = own.iter().flat_map(named).collect::<Vec<_>>().join("\n");
    for item in ["pub use wgpu;", "pub trait DeviceExt", "pub trait TensorExt"] {
        assert!(
            here.contains(item),
            "{item} is not found in src/interop.rs, where it stands: {here}"
        );
    }
    // Imports from wgpu would be used without its prefix.
    let imports = others.iter().flat_map(|file| file.find("use wgpu::").collect::<Vec<_>>());
    let imports =
        imports.filter(|line| !line.contains("use wgpu::CooperativeScalarType as Scalar;"));
    let wrong: Vec<String> = others.iter().flat_map(named).chain(imports).collect();
    none(wrong, "These public items name a type of wgpu; that is for src/interop.rs alone:");
}

#[test]
fn public_items_are_read_whole() {
    let sample = |text: &str| File { path: String::new(), text: text.to_string() };
    for wrong in [
        "    pub fn a(\n        x: u32,\n        y: wgpu::Buffer,\n    ) -> u32 {\n",
        "pub struct A(wgpu::Queue);\n",
        "    pub kind: wgpu::DeviceType,\n",
        "pub enum A {\n    One(u32),\n    Two(wgpu::Device),\n}\n",
        "impl From<wgpu::RequestDeviceError> for Error {\n",
        "pub use wgpu;\n",
    ] {
        let items = public_text(&sample(wrong));
        assert!(items.iter().any(|(_, text)| names_wgpu(text)), "{wrong}");
    }
    for right in [
        "    pub fn a(&self) {\n        let x = wgpu::Limits::default();\n",
        "    pub(crate) fn a(x: wgpu::Buffer) {\n",
        "pub struct A {\n    kind: wgpu::DeviceType,\n}\n",
        "pub enum A {\n    One,\n}\nfn b(x: wgpu::Buffer) {}\n",
    ] {
        let items = public_text(&sample(right));
        assert!(!items.iter().any(|(_, text)| names_wgpu(text)), "{right}");
    }
}

/// The page names what covers each trap here.
#[test]
fn what_covers_a_trap_is_there() {
    let page = fs::read_to_string("docs/portability.md").unwrap();
    let section = page.split("\n## ").find(|section| section.starts_with("Known traps")).unwrap();
    let rows = section.lines().filter(|line| line.starts_with('|'));
    let quoted = rows.flat_map(|row| row.split('`').skip(1).step_by(2));
    let files: Vec<File> =
        [sources(), shaders(), files("tests", "rs")].into_iter().flatten().collect();
    let commands = fs::read_to_string("xtask/src/main.rs").unwrap();
    let is_there = |name: &str| match name {
        command if command.starts_with("cargo xtask ") => {
            let command = command.split(' ').nth(2).unwrap();
            commands.contains(&format!("name: \"{command}\""))
        }
        path if path.contains('/') => Path::new(path).exists(),
        name if name.contains('_')
            && !name.contains(|c: char| c.is_ascii_uppercase() || c == ' ') =>
        {
            files.iter().any(|file| file.text.contains(&format!("fn {name}(")))
        }
        _ => true,
    };
    none(
        quoted.filter(|name| !is_there(name)).map(str::to_owned),
        "these cover a trap and are gone",
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

/// Words with which these pages once hid what they meant, and the plain ones.
const PLAIN_WORDS: [(&str, &str); 15] = [
    ("told", "given, set, informed"),
    ("anew", "again"),
    ("beside", "next to, compared with, besides"),
    ("goes on", "continues"),
    ("go on", "continue"),
    ("mend", "fix"),
    ("mends", "fixes"),
    ("mended", "fixed"),
    ("read as what", "confusion matrix"),
    ("is no utf-8", "is not valid UTF-8"),
    ("is no json", "is not valid JSON"),
    ("one at least", "at least one"),
    ("stands behind", "follows, is after"),
    ("stands twice", "occurs twice"),
    ("go round", "loop"),
];

/// Whether `text` has `word` between other characters than letters.
fn has_word(text: &str, word: &str) -> bool {
    let text = text.to_lowercase();
    let letter = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(letter) && !text[at + word.len()..].starts_with(letter)
    })
}

#[test]
fn pages_and_documentation_use_plain_words() {
    let mut files: Vec<File> = [files("docs", "md"), sources()].into_iter().flatten().collect();
    for name in ["README.md", "FEATURES.md", "CONTRIBUTING.md", "CHANGELOG.md", "web/README.md"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
        files.push(File { path: name.to_string(), text: fs::read_to_string(path).unwrap() });
    }
    let found = files.iter().flat_map(|file| {
        let page = file.path.ends_with(".md");
        file.text.lines().enumerate().flat_map(move |(at, line)| {
            let comment = page || line.trim_start().starts_with("//");
            // Outside comments only what messages say; functions and variables of kernels may be called `beside`.
            let text = match line.find('"') {
                _ if comment || line.ends_with('\\') => line,
                Some(quote) => &line[quote..],
                None => "",
            };
            let words = PLAIN_WORDS.iter().filter(move |(word, _)| comment || *word != "beside");
            let words = words.filter(move |(word, _)| has_word(text, word));
            words.map(move |(word, plain)| format!("{}:{}: '{word}': {plain}", file.path, at + 1))
        })
    });
    none(found, "These words have plain ones (PLAIN_WORDS in tests/tidy.rs):");
    assert!(has_word("As told.", "told") && has_word("Beside it", "beside"));
    assert!(!has_word("untold besides", "told") && !has_word("besides", "beside"));
}
