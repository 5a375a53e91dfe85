//! The report as one page of Markdown, for readers who know neither the machine nor this program.

use std::fmt::Write;

use serde_json::Value;

use super::Parts;
use super::checks::{Check, Verdict};

/// The content of the page.
pub struct Report<'a> {
    /// The version of wgrad, with its commit.
    pub version: String,
    pub system: String,
    pub compiler: String,
    pub date: String,
    pub command: String,
    pub switches: Vec<String>,
    /// The adapter's properties, as `wgrad-peers facts` prints them.
    pub facts: Value,
    pub warnings: Vec<String>,
    pub parts: &'a Parts,
}

impl Report<'_> {
    pub fn markdown(&self) -> String {
        let sections = [
            self.head(),
            self.summary(),
            self.troubles(),
            self.oracle(),
            self.programs(),
            self.variants(),
            self.figures(),
            self.adapter(),
        ];
        let sections: Vec<String> = sections.into_iter().filter(|text| !text.is_empty()).collect();
        sections.join("\n")
    }

    fn head(&self) -> String {
        let facts = |key: &str| self.facts[key].as_str().unwrap_or("unknown").to_owned();
        let mut rows = vec![
            ["adapter".to_owned(), format!("{} ({})", facts("name"), facts("kind"))],
            ["vendor, device".to_owned(), format!("{}, {}", facts("vendor"), facts("device"))],
            ["backend".to_owned(), facts("backend")],
            ["driver".to_owned(), facts("driver")],
            ["system".to_owned(), self.system.clone()],
            ["wgrad".to_owned(), self.version.clone()],
            ["compiler".to_owned(), self.compiler.clone()],
            ["made".to_owned(), format!("{} by `{}`", self.date, self.command)],
        ];
        if !self.switches.is_empty() {
            rows.push(["set".to_owned(), format!("`{}`", self.switches.join(" "))]);
        }
        let title = format!("# wgrad on {}\n\n", cell(&facts("name")));
        title + &table(["what", "it is"], rows)
    }

    fn summary(&self) -> String {
        let rows = self.parts.all().map(|part| {
            let count = |is: fn(&Verdict) -> bool| part.count(is).to_string();
            [
                part.title.to_owned(),
                count(|verdict| *verdict == Verdict::Passed),
                count(|verdict| *verdict == Verdict::Failed),
                count(|verdict| matches!(verdict, Verdict::Crashed(_))),
                count(|verdict| matches!(verdict, Verdict::Late(_))),
                count(|verdict| matches!(verdict, Verdict::LeftOut(_))),
                count(|verdict| *verdict == Verdict::NotReached),
                format!("{:.0}", part.seconds()),
            ]
        });
        let heads = [
            "part",
            "passed",
            "failed",
            "crashed",
            "ended at a limit",
            "left out",
            "not reached",
            "s",
        ];
        let text = table(heads, rows.into());
        format!(
            "## Summary\n\n{text}\nEach check is a separate process with a time limit. A check that was ended at its limit may \
             have hung, or this machine is slow; a check that was not reached has no result.\n"
        )
    }

    /// All failures and warnings with their output.
    fn troubles(&self) -> String {
        let mut text = String::new();
        for part in self.parts.all() {
            for check in &part.checks {
                let fine = matches!(
                    check.verdict,
                    Verdict::Passed | Verdict::LeftOut(_) | Verdict::NotReached
                );
                if !fine {
                    let _ =
                        writeln!(text, "### {}: {}\n\n{}\n", part.title, check.name, check.words());
                    if !check.said.is_empty() {
                        let _ = writeln!(text, "{}", block(&check.said));
                    }
                }
            }
        }
        if !self.warnings.is_empty() {
            let _ = writeln!(text, "### Warnings of wgrad and wgpu\n\n{}", block(&self.warnings));
        }
        if text.is_empty() {
            "Nothing failed.\n".to_owned()
        } else {
            format!("## What did not pass\n\n{text}")
        }
    }

    fn oracle(&self) -> String {
        let row = |check: &Check, counts: Option<&Value>| {
            let count = |key: &str| {
                let number = counts.and_then(|counts| counts[key].as_u64());
                number.map_or_else(String::new, |number| number.to_string())
            };
            let family = counts.and_then(|counts| counts["family"].as_str());
            [
                family.unwrap_or(&check.name).to_owned(),
                count("run"),
                count("listed"),
                count("excused"),
                count("failed"),
                check.words(),
            ]
        };
        let rows = self.parts.oracle.checks.iter().flat_map(|check| match &check.rows[..] {
            [] => vec![row(check, None)],
            families => families.iter().map(|family| row(check, Some(family))).collect(),
        });
        let heads =
            ["family", "cases run", "not run, listed", "elements excused", "failed", "result"];
        let text = table(heads, rows.collect());
        let notes: Vec<String> =
            self.parts.oracle.checks.iter().flat_map(|check| check.notes.clone()).collect();
        let notes = if notes.is_empty() {
            String::new()
        } else {
            let lines = block(&notes);
            format!(
                "\n<details><summary>What is listed and excused</summary>\n\n{lines}\n</details>\n"
            )
        };
        format!("## Against TensorFlow's results\n\n{text}{notes}")
    }

    fn programs(&self) -> String {
        let rows = self
            .parts
            .programs
            .checks
            .iter()
            .map(|check| [check.name.replace('_', " "), check.words()]);
        let text = table(["programs", "result"], rows.collect());
        format!(
            "## Random programs\n\nFused, op by op, and evaluated on the processor in `f64`.\n\n{text}"
        )
    }

    fn variants(&self) -> String {
        let mut rows = Vec::new();
        for check in &self.parts.variants.checks {
            let ops = check.rows.iter().filter(|row| row["op"].is_string());
            let before = rows.len();
            for op in ops {
                let words = |key: &str| op[key].as_str().unwrap_or_default().to_owned();
                let micros = |key: &str| {
                    op[key].as_f64().map_or_else(|| "-".to_owned(), |us| format!("{us:.1}"))
                };
                let wrong: Vec<&str> = op["wrong"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Value::as_str)
                    .collect();
                rows.push([
                    words("op"),
                    op["variants"].to_string(),
                    if wrong.is_empty() { "none".to_owned() } else { wrong.join("; ") },
                    words("chosen"),
                    micros("chosen_us"),
                    words("first"),
                    micros("first_us"),
                ]);
            }
            if rows.len() == before {
                let [empty] = [const { String::new() }];
                let words = format!("{}: {}", check.name, check.words());
                rows.push([
                    words,
                    empty.clone(),
                    empty.clone(),
                    empty.clone(),
                    empty.clone(),
                    empty.clone(),
                    empty,
                ]);
            }
        }
        let heads = ["op", "variants", "wrong", "fastest", "us", "chosen without measuring", "us"];
        let units = self.parts.variants.checks.iter().filter(|check| {
            check
                .rows
                .iter()
                .any(|row| row["end"].as_str().is_some_and(|end| end.starts_with("takes")))
        });
        let units: Vec<&str> = units.map(|check| check.name.as_str()).collect();
        let units = if units.is_empty() {
            "No op took cooperative matrices.".to_owned()
        } else {
            format!("Cooperative matrices were proven, and taken for: {}.", units.join("; "))
        };
        let text = table(heads, rows);
        format!(
            "## Kernels for products and convolutions\n\nEach variant is compared with the plainest on this adapter. \
             {units}\n\n{text}"
        )
    }

    fn figures(&self) -> String {
        let mut rows = Vec::new();
        for check in &self.parts.figures.checks {
            let before = rows.len();
            for row in &check.rows {
                let words = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
                let figure = |key: &str| row[key].as_f64().map_or_else(String::new, digits);
                rows.push([words("title"), words("unit"), figure("wgrad"), figure("copy_ms")]);
            }
            if rows.len() == before {
                rows.push([check.name.clone(), check.words(), String::new(), String::new()]);
            }
        }
        let text = table(["case", "unit", "wgrad", "copy of its bytes, ms"], rows);
        format!(
            "## Figures\n\nMedians of three short runs; other load on the machine affects them.\n\n{text}"
        )
    }

    fn adapter(&self) -> String {
        let list = |key: &str| {
            let all = self.facts[key].as_array().into_iter().flatten().filter_map(Value::as_str);
            all.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
        };
        let or_none = |text: String| if text.is_empty() { "none".to_owned() } else { text };
        let adapters = self.facts["adapters"].as_array().into_iter().flatten();
        let adapters = adapters.filter_map(Value::as_str).map(|name| format!("- {}\n", cell(name)));
        let limits = self.facts["limits"].as_array().into_iter().flatten();
        let limits =
            limits.map(|row| [0, 1, 2].map(|i| row[i].as_str().unwrap_or_default().to_owned()));
        // A limit of 0 means a feature that the adapter lacks or that wgrad did not request.
        let limits = limits.filter(|[_, value, _]| value != "0");
        let subgroups = &self.facts["subgroups"];
        format!(
            "## The adapter\n\nAll adapters of the machine:\n\n{}\nFeatures that wgrad asked for: {}\n\nFeatures that the \
             adapter has: {}\n\nThreads of a subgroup: {} to {}. Cooperative matrices: {}\n\n<details><summary>Limits\
             </summary>\n\n{}\n</details>\n",
            adapters.collect::<String>(),
            or_none(list("features")),
            or_none(list("adapter_features")),
            subgroups[0],
            subgroups[1],
            or_none(list("cooperative")),
            table(["limit", "of the adapter", "WebGPU guarantees"], limits.collect()),
        )
    }
}

/// A number with three digits.
fn digits(figure: f64) -> String {
    match figure.abs() {
        x if x >= 99.95 => format!("{figure:.0}"),
        x if x >= 9.995 => format!("{figure:.1}"),
        x if x >= 0.9995 => format!("{figure:.2}"),
        _ => format!("{figure:.3}"),
    }
}

fn table<const N: usize>(heads: [&str; N], rows: Vec<[String; N]>) -> String {
    let line = |cells: [String; N]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(heads.map(str::to_owned)) + &line([const { "---" }; N].map(str::to_owned));
    for row in rows {
        text.push_str(&line(row.map(|words| cell(&words))));
    }
    text
}

/// `text` escaped for a table cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").replace(['\n', '\r'], " ")
}

/// A block of lines that are shown unchanged.
fn block(lines: &[String]) -> String {
    let fence = "`".repeat(lines.iter().map(|line| ticks(line)).max().unwrap_or(0).max(2) + 1);
    format!("{fence}text\n{}\n{fence}\n", lines.join("\n"))
}

/// The length of the longest run of backticks.
fn ticks(line: &str) -> usize {
    line.split(|c| c != '`').map(str::len).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::super::checks::Part;
    use super::*;
    use serde_json::json;

    fn part(title: &'static str, checks: Vec<Check>) -> Part {
        Part { title, checks }
    }

    fn page(oracle: Vec<Check>, variants: Vec<Check>, figures: Vec<Check>) -> String {
        let parts = Parts {
            oracle: part("oracle", oracle),
            programs: part("random programs", Vec::new()),
            variants: part("variants", variants),
            figures: part("figures", figures),
        };
        let report = Report {
            version: "0.1.0, commit abc".into(),
            system: "linux x86_64".into(),
            compiler: "rustc 1.95".into(),
            date: "2026-11-22".into(),
            command: "cargo xtask report".into(),
            switches: vec!["WGRAD_FUSION=0".into()],
            facts: json!({
                "name": "GPU | 1", "kind": "DiscreteGpu", "backend": "vulkan", "driver": "d 2", "vendor": "0x10de",
                "device": "0x0001", "adapters": ["GPU | 1 (discrete)"], "features": ["SHADER_F16"], "subgroups": [32, 32],
                "limits": [["max_bind_groups", "8", "4"], ["max_mesh_output_layers", "0", "0"]],
            }),
            warnings: Vec::new(),
            parts: &parts,
        };
        report.markdown()
    }

    #[test]
    fn a_page_lists_what_passed() {
        let mut unary = Check::new("unary", Verdict::Passed);
        unary
            .rows
            .push(json!({ "family": "unary", "run": 120, "listed": 3, "excused": 7, "failed": 0 }));
        unary.notes.push("unary: listed 3: no sorting: tf.sort (3)".into());
        let mut product = Check::new("product", Verdict::Passed);
        product.rows.push(json!({
            "op": "MatMul f32[2]", "variants": 9, "wrong": [], "chosen": "b", "chosen_us": 20.04, "first": "a",
            "first_us": 30.0,
        }));
        product.rows.push(json!({ "end": "takes cooperative matrices" }));
        let mut sum = Check::new("sum", Verdict::Passed);
        sum.rows.push(json!({ "title": "sum of x", "unit": "ms", "wgrad": 1.234, "copy_ms": 0.5 }));
        let late = Check::new("cnn", Verdict::NotReached);
        let text = page(vec![unary], vec![product], vec![sum, late]);
        for line in [
            "# wgrad on GPU \\| 1",
            "| adapter | GPU \\| 1 (DiscreteGpu) |",
            "| set | `WGRAD_FUSION=0` |",
            "| figures | 1 | 0 | 0 | 0 | 0 | 1 | 0 |",
            "Nothing failed.",
            "| unary | 120 | 3 | 7 | 0 | passed in 0.0 s |",
            "unary: listed 3: no sorting: tf.sort (3)",
            "| MatMul f32[2] | 9 | none | b | 20.0 | a | 30.0 |",
            "| sum of x | ms | 1.23 | 0.500 |",
            "| cnn | not reached in time |  |  |",
            "| max_bind_groups | 8 | 4 |",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n\n{text}");
        }
        assert!(text.contains("taken for: product."), "{text}");
        assert!(!text.contains("max_mesh_output_layers"), "{text}");
    }

    #[test]
    fn a_page_quotes_what_failed() {
        let mut failed = Check::new("unary", Verdict::Failed);
        failed.said = vec!["3 for 4 <a>".into(), "```".into()];
        let crashed = Check::new("conv", Verdict::Crashed("signal 11".into()));
        let text = page(vec![failed, crashed], Vec::new(), Vec::new());
        assert!(
            text.contains("## What did not pass\n\n### oracle: unary\n\nFAILED after 0.0 s\n"),
            "{text}"
        );
        assert!(text.contains("````text\n3 for 4 <a>\n```\n````\n"), "{text}");
        assert!(text.contains("### oracle: conv\n\nCRASHED after 0.0 s (signal 11)\n"), "{text}");
        assert!(text.contains("| oracle | 0 | 1 | 1 | 0 | 0 | 0 | 0 |"), "{text}");
        assert!(!text.contains("Nothing failed"));
    }
}
