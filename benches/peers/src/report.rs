//! The output of a run: on the terminal, as JSON, and in `docs/benchmarks.md`.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

use crate::Result;

/// Ratios closer to 1 than this are meaningless on shared machines.
const TIE: f64 = 1.2;

/// The lines that enclose the tables.
const BEGIN: &str = "<!-- peers: begin, written by cargo xtask bench -->";
const END: &str = "<!-- peers: end -->";

/// A case and its results.
#[derive(Debug)]
pub struct Row {
    pub name: String,
    pub title: String,
    pub unit: String,
    /// By engine. A copy's figure is always in milliseconds.
    pub figures: BTreeMap<String, f64>,
    /// How many times as fast, or as small, wgrad is as Burn.
    pub ratio: Option<Ratio>,
    /// wgrad's time divided by the copy's.
    pub of_copy: Option<f64>,
    pub problems: Vec<String>,
}

/// The median of the ratios of all repetitions, the lowest and the highest.
#[derive(Clone, Copy, Debug)]
pub struct Ratio {
    pub median: f64,
    pub low: f64,
    pub high: f64,
}

impl Row {
    pub fn new(name: &str, title: &str, unit: &str) -> Self {
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            unit: unit.to_owned(),
            figures: BTreeMap::new(),
            ratio: None,
            of_copy: None,
            problems: Vec::new(),
        }
    }

    fn figure(&self, engine: &str) -> String {
        self.figures.get(engine).map_or_else(String::new, |&figure| digits(figure))
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tie = (1.0 / TIE..TIE).contains(&self.median);
        write!(f, "{}{}", digits(self.median), if tie { " (tie)" } else { "" })
    }
}

/// A number with three digits.
pub fn digits(figure: f64) -> String {
    match figure.abs() {
        x if x >= 99.95 => format!("{figure:.0}"),
        x if x >= 9.995 => format!("{figure:.1}"),
        x if x >= 0.9995 => format!("{figure:.2}"),
        _ => format!("{figure:.3}"),
    }
}

/// The adapter, machine and versions of the measurement.
#[derive(Debug)]
pub struct Setting {
    pub adapter: String,
    pub driver: String,
    pub api: String,
    pub machine: String,
    /// wgrad's commit first.
    pub versions: Vec<String>,
    pub date: String,
}

impl Setting {
    pub fn of_machine(repository: &Path, adapter: &str, driver: &str, api: &str) -> Self {
        let git = |arguments: &[&str]| {
            let output =
                Command::new("git").arg("-C").arg(repository).args(arguments).output().ok()?;
            let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            output.status.success().then_some(text)
        };
        let commit =
            git(&["rev-parse", "--short", "HEAD"]).unwrap_or_else(|| "unknown commit".to_owned());
        // The table that this program writes does not count as a change of the measured code.
        let changes =
            git(&["status", "--porcelain", "--", ".", ":!docs"]).is_some_and(|s| !s.is_empty());
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
        Self {
            adapter: adapter.to_owned(),
            driver: driver.to_owned(),
            api: api.to_owned(),
            machine: format!("{} {}, {cores} cores", std::env::consts::OS, std::env::consts::ARCH),
            versions: vec![format!("wgrad {commit}{}", if changes { " with changes" } else { "" })],
            date: date(seconds / 86_400),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { adapter, driver, api, machine, versions, date } = self;
        write!(f, "{adapter}, {driver}, {api}; {machine}; {}; {date}", versions.join(", "))
    }
}

/// The day `days` after 1970-01-01, in the Gregorian calendar.
fn date(days: u64) -> String {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let (mut year, mut rest) = (1970, days);
    while rest >= 365 + u64::from(leap(year)) {
        rest -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    for length in [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if rest < length {
            break;
        }
        rest -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", rest + 1)
}

pub fn headings() -> String {
    format!(
        "{:<62} {:>8} {:>9} {:>9} {:>12} {:>9}  {}\n",
        "case", "unit", "wgrad", "burn", "ratio", "copy, ms", "others"
    )
}

/// A row for the terminal.
pub fn line(row: &Row) -> String {
    let ratio = row.ratio.map(|ratio| ratio.to_string()).unwrap_or_default();
    let mut others = Vec::new();
    if let Some(of_copy) = row.of_copy {
        others.push(format!("{} of a copy", digits(of_copy)));
    }
    for name in ["torch", "tensorflow"].into_iter().filter(|name| row.figures.contains_key(*name)) {
        others.push(format!("{name} {}", row.figure(name)));
    }
    format!(
        "{:<62} {:>8} {:>9} {:>9} {:>12} {:>9}  {}\n",
        row.title,
        row.unit,
        row.figure("wgrad"),
        row.figure("burn"),
        ratio,
        row.figure("copy"),
        others.join(", ")
    )
}

pub fn json(rows: &[Row]) -> String {
    let list: Vec<serde_json::Value> = rows
        .iter()
        .map(|row| {
            let figure = |engine: &str| row.figures.get(engine);
            let mut value = json!({
                "case": row.name,
                "title": row.title,
                "unit": row.unit,
                "wgrad": figure("wgrad"),
                "burn": figure("burn"),
                "ratio": row.ratio.map(|ratio| ratio.median),
            });
            if let Some(Ratio { low, high, .. }) = row.ratio {
                value["ratio_range"] = json!([low, high]);
            }
            if let Some(of_copy) = row.of_copy {
                value["copy_ms"] = json!(figure("copy"));
                value["of_copy"] = json!(of_copy);
            }
            for name in ["torch", "tensorflow"] {
                if let Some(figure) = figure(name) {
                    value[name] = json!(figure);
                }
            }
            if !row.problems.is_empty() {
                value["problems"] = json!(row.problems);
            }
            value
        })
        .collect();
    format!("{:#}\n", serde_json::Value::Array(list))
}

/// `page` with the table of this adapter, which replaces its old one, if any.
pub fn rewritten(page: &str, setting: &Setting, rows: &[Row]) -> Result<String> {
    replaced(page, [BEGIN, END], &format!("{}\n\n{}", heading(setting), table(rows)))
}

/// The title of an adapter's tables, and what they were measured on.
pub fn heading(setting: &Setting) -> String {
    let Setting { adapter, driver, api, machine, versions, date } = setting;
    format!("### {adapter}\n\n{driver}, {api}; {machine}; {}; {date}.", versions.join(", "))
}

/// `page` with `section` between two lines, replacing the section of the same title.
pub fn replaced(page: &str, [begin, end]: [&str; 2], section: &str) -> Result<String> {
    let missing = || format!("docs/benchmarks.md lacks the lines `{begin}` and `{end}`");
    let (head, rest) = page.split_once(begin).ok_or_else(missing)?;
    let (tables, tail) = rest.split_once(end).ok_or_else(missing)?;
    let title = section.lines().next();
    let mut sections: Vec<String> = Vec::new();
    for other in tables.trim().split("\n### ").filter(|other| !other.is_empty()) {
        let other = format!("### {}", other.trim_start_matches("### ").trim());
        if other.lines().next() != title {
            sections.push(other);
        }
    }
    sections.push(section.to_owned());
    Ok(format!("{head}{begin}\n\n{}\n\n{end}{tail}", sections.join("\n\n")))
}

fn table(rows: &[Row]) -> String {
    let others: Vec<&str> = ["torch", "tensorflow"]
        .into_iter()
        .filter(|name| rows.iter().any(|row| row.figures.contains_key(*name)))
        .collect();
    let mut text = String::new();
    let mut heads = vec!["case", "unit", "wgrad", "Burn", "ratio", "of a copy"];
    heads.extend(&others);
    text.push_str(&format!("| {} |\n|{}\n", heads.join(" | "), "---|".repeat(heads.len())));
    for row in rows {
        let mut cells = vec![
            row.title.clone(),
            row.unit.clone(),
            row.figure("wgrad"),
            row.figure("burn"),
            row.ratio.map(|ratio| ratio.to_string()).unwrap_or_default(),
            row.of_copy.map(digits).unwrap_or_default(),
        ];
        cells.extend(others.iter().map(|name| row.figure(name)));
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    let problems = rows.iter().flat_map(|row| row.problems.iter().map(move |p| (&row.title, p)));
    for (i, (title, problem)) in problems.enumerate() {
        text.push_str(&format!("{}- {title}: {problem}\n", if i == 0 { "\n" } else { "" }));
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn setting(adapter: &str) -> Setting {
        Setting {
            adapter: adapter.to_owned(),
            driver: "driver 1".to_owned(),
            api: "vulkan".to_owned(),
            machine: "linux x86_64, 2 cores".to_owned(),
            versions: vec!["wgrad abc".to_owned(), "Burn 1".to_owned()],
            date: "2026-01-02".to_owned(),
        }
    }

    fn row(wgrad: f64, burn: f64, ratio: f64) -> Row {
        let mut row = Row::new("sum", "sum of x", "ms");
        row.figures.extend([("wgrad".to_owned(), wgrad), ("burn".to_owned(), burn)]);
        row.ratio = Some(Ratio { median: ratio, low: ratio, high: ratio });
        row
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(date(0), "1970-01-01");
        assert_eq!(date(11_016), "2000-02-29");
        assert_eq!(date(11_017), "2000-03-01");
        assert_eq!(date(20_453), "2025-12-31");
    }

    #[test]
    fn small_ratios_are_called_ties() {
        let text = |median| Ratio { median, low: median, high: median }.to_string();
        assert_eq!(text(1.19), "1.19 (tie)");
        assert_eq!(text(1.2), "1.20");
        assert_eq!(text(0.84), "0.840 (tie)");
        assert_eq!(text(0.5), "0.500");
        assert_eq!(text(123.4), "123");
    }

    #[test]
    fn json_has_the_promised_fields() {
        let value: serde_json::Value = serde_json::from_str(&json(&[row(1.0, 2.0, 2.0)])).unwrap();
        assert_eq!(value[0]["case"], "sum");
        assert_eq!((&value[0]["wgrad"], &value[0]["burn"]), (&json!(1.0), &json!(2.0)));
        assert_eq!((&value[0]["unit"], &value[0]["ratio"]), (&json!("ms"), &json!(2.0)));
    }

    #[test]
    fn an_adapters_table_is_replaced_and_others_stay() {
        let page = format!("# Page\n\n{BEGIN}\n{END}\n\nrest\n");
        let page = rewritten(&page, &setting("One"), &[row(1.0, 2.0, 2.0)]).unwrap();
        let page = rewritten(&page, &setting("Two"), &[row(3.0, 3.0, 1.0)]).unwrap();
        let page = rewritten(&page, &setting("One"), &[row(1.0, 4.0, 4.0)]).unwrap();
        assert!(page.starts_with("# Page\n\n<!--") && page.ends_with(&format!("{END}\n\nrest\n")));
        assert_eq!(page.matches("### One").count(), 1);
        assert!(page.contains("| sum of x | ms | 1.00 | 4.00 | 4.00 |  |"), "{page}");
        assert!(!page.contains("| 2.00 | 2.00 |"), "{page}");
        assert!(
            page.contains("### Two\n\ndriver 1, vulkan;") && page.contains("1.00 (tie)"),
            "{page}"
        );
        assert!(rewritten("no markers", &setting("One"), &[]).is_err());
    }
}
