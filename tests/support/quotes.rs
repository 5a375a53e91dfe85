//! Code in documentation pages: a block marked `rust` is a doc test, as the pages are modules of the documentation
//! (`src/docs.rs`). Any other block of Rust or WGSL quotes a file, which the line before it names:
//!
//! ```text
//! <!-- from src/ops/composed.rs -->
//! ```
//!
//! Its lines are consecutive lines of that file, regardless of indentation. A line `// ...` represents omitted lines.

use std::fs;
use std::path::Path;

/// Represents omitted lines.
const GAP: &str = "// ...";

/// A block of code in a page.
struct Block<'a> {
    /// Its first line in the page, counted from 1.
    at: usize,
    language: &'a str,
    /// The quoted file.
    from: Option<&'a str>,
    lines: Vec<&'a str>,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut found: Vec<Block> = Vec::new();
    let (mut inside, mut from) = (false, None);
    for (at, line) in (1..).zip(page.lines().map(str::trim)) {
        if let Some(language) = line.strip_prefix("```") {
            if !inside {
                found.push(Block { at: at + 1, language, from: from.take(), lines: Vec::new() });
            }
            inside = !inside;
        } else if inside {
            found.last_mut().expect("a block is open").lines.push(line);
        } else {
            let named = line.strip_prefix("<!-- from ").and_then(|line| line.strip_suffix(" -->"));
            // Only the line right before a block names its file.
            from = named;
        }
    }
    found
}

/// The first line of `block` that does not continue the previous lines as in `source`.
fn first_stray<'a>(block: &[&'a str], source: &[&str]) -> Option<&'a str> {
    let mut left = source;
    for run in block.split(|line| *line == GAP) {
        let length = |at: usize| {
            run.iter().zip(&left[at..]).take_while(|(line, source)| **line == source.trim()).count()
        };
        let best = (0..left.len()).rev().max_by_key(|&at| length(at)).unwrap_or(0);
        if length(best) < run.len() {
            return Some(run[length(best)]);
        }
        left = &left[best + run.len()..];
    }
    None
}

/// The blocks of a page that are neither doc tests nor accurate quotations.
fn wrong_blocks(page: &str, read: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    for block in blocks(page) {
        let code = block.language.starts_with("rust") || block.language == "wgsl";
        let problem = match block.from {
            None if code && block.language != "rust" => {
                Some("is no doc test and names no file that it is from".to_string())
            }
            None => None,
            Some(from) => match read(from) {
                None => Some(format!("is from {from}, which is no file")),
                Some(source) => first_stray(&block.lines, &source.lines().collect::<Vec<_>>())
                    .map(|line| format!("differs from {from}, which does not go on with `{line}`")),
            },
        };
        wrong.extend(problem.map(|problem| format!("the block at line {} {problem}", block.at)));
    }
    wrong
}

#[test]
fn pages_show_code_as_it_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec!["README.md".to_string(), "FEATURES.md".into(), "CONTRIBUTING.md".into()];
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        pages.push(format!("docs/{}", entry.unwrap().file_name().to_string_lossy()));
    }
    let mut wrong = Vec::new();
    for page in pages.iter().filter(|page| page.ends_with(".md")) {
        let text = fs::read_to_string(root.join(page)).unwrap();
        let found = wrong_blocks(&text, |from| fs::read_to_string(root.join(from)).ok());
        wrong.extend(found.into_iter().map(|problem| format!("{page}: {problem}")));
    }
    assert!(wrong.is_empty(), "Code in pages is compiled or quoted:\n  {}", wrong.join("\n  "));
}

#[test]
fn a_block_that_has_rotted_is_found() {
    let source = "fn a() {}\n\nfn b() {\n    one();\n    two();\n    three();\n}\n";
    let read = |from: &str| (from == "src/b.rs").then(|| source.to_string());
    let page = |body: &str| {
        format!("1. Text\n\n   <!-- from src/b.rs -->\n   ```rust,ignore\n{body}\n   ```\n")
    };
    for kept in [
        "fn b() {\n    one();",
        "   fn b() {\n   // ...\n       three();\n   }",
        "fn a() {}\n\nfn b() {",
    ] {
        assert!(wrong_blocks(&page(kept), read).is_empty(), "{kept}");
    }
    for (rotten, stray) in [
        ("fn b() {\n    two();", "two();"),
        ("fn b(x: u8) {", "fn b(x: u8) {"),
        ("three();\n// ...\none();", "one();"),
    ] {
        let wrong = wrong_blocks(&page(rotten), read);
        assert_eq!(wrong.len(), 1, "{rotten}");
        assert!(wrong[0].ends_with(&format!("does not go on with `{stray}`")), "{wrong:?}");
    }
    let unnamed =
        "```rust,ignore\nfn b() {\n```\n\n```rust\nfn c() {}\n```\n\n```text\ncargo\n```\n";
    let wrong = wrong_blocks(unnamed, read);
    assert_eq!(wrong, ["the block at line 2 is no doc test and names no file that it is from"]);
    let lost = page("fn b() {").replace("src/b.rs", "src/c.rs");
    assert!(wrong_blocks(&lost, read)[0].ends_with("is from src/c.rs, which is no file"));
}
