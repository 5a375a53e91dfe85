//! Functions in the golden cases that wgrad does not have: the reasons why cases are listed and not run.
//!
//! The table is checked in both directions. A case without a call and an entry here fails its family; so does an entry whose
//! case runs. If a missing function appears among wgrad's public names, the tests demand its call.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::root::root;

/// A reason, and the ops that it applies to: `op`, or `op/what` for one of its attributes or arguments.
type Reason = (&'static str, &'static [&'static str]);

pub const MISSING: &[Reason] = &[];

/// An op that no case has: the table's tests list it, as all real ones may be implemented.
pub const LISTED_BY_TESTS: &str = "keras.layers.NoSuchLayer";

/// Every entry as (op, what, reason).
fn entries() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    MISSING.iter().flat_map(|(reason, ops)| {
        ops.iter().map(|entry| {
            let (op, what) = entry.split_once('/').unwrap_or((entry, ""));
            (op, what, *reason)
        })
    })
}

/// The reason why a case of `op` that needs `what` does not run.
pub fn reason(op: &str, what: &str) -> Option<&'static str> {
    if op == LISTED_BY_TESTS {
        return Some("an entry for the table's own tests");
    }
    entries().find(|(known, of, _)| *known == op && *of == what).map(|(_, _, reason)| reason)
}

/// Entries that match nothing in `used`.
pub fn idle(used: &BTreeSet<(String, String)>) -> Vec<String> {
    let idle =
        entries().filter(|(op, what, _)| !used.contains(&(op.to_string(), what.to_string())));
    idle.map(|(op, what, _)| format!("MISSING: no case asks for {op} {what}")).collect()
}

/// Entries that wgrad seems to have, according to its public names.
pub fn no_longer_missing() -> Vec<String> {
    let sources = sources();
    let mut found = Vec::new();
    for (op, what, _) in entries() {
        let (folder, name) = place(op);
        let in_folder = |file: &&File| file.path.starts_with(folder) && file.defines(name);
        let by_now = match what {
            "" => sources.iter().find(in_folder),
            // An option is in the op's file; what a formula lacks may be anywhere.
            _ if op.contains('.') => sources.iter().filter(in_folder).find(|f| f.defines(what)),
            _ => sources.iter().find(|file| file.defines(what) || in_folder(file)),
        };
        found.extend(by_now.map(|file| format!("{op} {what}: see {}", file.path)));
    }
    found
}

/// The folder and the name to search for an op.
fn place(op: &str) -> (&str, &str) {
    let name = op.rsplit('.').next().unwrap_or(op);
    if op.starts_with("tf.image.") {
        return ("src/ops/image", name);
    }
    let folder = ["layers", "losses", "metrics", "optimizers", "activations"];
    let folder = folder.iter().find(|room| op.starts_with(&format!("keras.{room}.")));
    match folder {
        Some(&"layers") => ("src/keras/layers/", name),
        Some(&"losses") => ("src/keras/losses", name),
        Some(&"metrics") => ("src/keras/metrics", name),
        Some(&"optimizers") => ("src/keras/optimizers/", name),
        Some(_) => ("src/keras/activations", name),
        None => ("src/ops/", name),
    }
}

struct File {
    path: String,
    /// Public functions, types and fields, and table rows of ops, in lower case without underscores.
    names: Vec<String>,
}

impl File {
    fn defines(&self, name: &str) -> bool {
        self.names.contains(&plain(name))
    }
}

fn plain(name: &str) -> String {
    name.replace('_', "").to_lowercase()
}

fn sources() -> Vec<File> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { walk(&path, found) } else { found.push(path) }
        }
    }
    let root = root();
    let mut paths = Vec::new();
    walk(&root.join("src"), &mut paths);
    let read = |path: PathBuf| File {
        names: public_names(&fs::read_to_string(&path).unwrap()),
        path: path.strip_prefix(&root).unwrap().to_string_lossy().replace('\\', "/"),
    };
    paths.into_iter().map(read).collect()
}

fn public_names(text: &str) -> Vec<String> {
    let word = |text: &str| -> String {
        text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
    };
    let mut names = Vec::new();
    for line in text.lines().map(str::trim_start) {
        if let Some(item) = line.strip_prefix("pub ") {
            let kinds = ["const fn ", "async fn ", "fn ", "struct ", "enum ", "trait "];
            let name = kinds.iter().find_map(|kind| item.strip_prefix(kind)).unwrap_or(item);
            names.push(plain(&word(name)));
        } else if let Some((row, _)) = line.split_once(", \"") {
            // A row of a table: `sigmoid, "Sigmoid", [..`.
            names.extend(Some(row).filter(|row| word(row) == *row).map(plain));
        } else if let Some((layer, _)) = line.split_once(" calls ") {
            // A layer that calls an op: `MaxPooling2D calls max_pool2d`.
            names.extend(Some(layer).filter(|layer| word(layer) == *layer).map(plain));
        } else if let (Some((field, _)), true) = (line.split_once(": "), line.contains(" = ")) {
            // A field of `options!`: `strides: [usize; 2] = [1, 1],`.
            names.extend(Some(field).filter(|field| word(field) == *field).map(plain));
        }
    }
    names
}

#[test]
fn names_of_functions_options_and_rows_are_found() {
    let ops = sources();
    let has = |path: &str, name: &str| {
        ops.iter().any(|file| file.path.starts_with(path) && file.defines(name))
    };
    assert!(has("src/ops/", "unsorted_segment_sum") && has("src/ops/", "log1p"));
    assert!(has("src/ops/conv2d", "dilations") && has("src/keras/optimizers/", "SGD"));
    assert!(has("src/keras/optimizers/", "beta_1") && has("src/keras/losses", "from_logits"));
    assert!(has("src/keras/layers/", "MaxPooling2D"));
}

#[test]
fn nothing_is_called_missing_that_is_there() {
    let found = no_longer_missing();
    assert!(
        found.is_empty(),
        "wgrad has these by now; give them a call in tests/support/calls.rs or golden/keras.rs, and take them out of \
         MISSING:\n  {}",
        found.join("\n  ")
    );
}
