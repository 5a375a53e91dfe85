//! The checks. Each runs in its own process with its own time limit, so that a check that hangs or crashes the driver does not
//! affect the others.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;

use super::limited::{self, End, Ended};
use crate::run::CommandLine;

/// The most lines of a failure in the report.
const REPORTED: usize = 40;
/// The most characters of a line.
const WIDTH: usize = 400;
/// No check is started with less time than this.
const LEAST: Duration = Duration::from_secs(1);

/// How a check ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Failed,
    /// How the process ended.
    Crashed(String),
    /// Stopped after this many seconds.
    Late(u64),
    /// The adapter lacks this feature that the check needs.
    LeftOut(String),
    /// The time was over before the check started.
    NotReached,
}

/// One check and its result.
#[derive(Debug)]
pub struct Check {
    pub name: String,
    pub verdict: Verdict,
    pub seconds: f64,
    /// The output of a failure.
    pub said: Vec<String>,
    /// Other notes on its results.
    pub notes: Vec<String>,
    /// Its findings, from the child's lines of JSON or of its own format.
    pub rows: Vec<Value>,
    pub warnings: Vec<String>,
}

/// Checks of one kind.
#[derive(Debug)]
pub struct Part {
    pub title: &'static str,
    pub checks: Vec<Check>,
}

impl Part {
    /// Runs `check` for each name with a limit, as long as there is time.
    pub fn run(
        title: &'static str,
        names: &[String],
        time: Duration,
        mut check: impl FnMut(&str, Duration) -> Result<Check>,
    ) -> Result<Self> {
        let end = Instant::now() + time;
        let mut checks = Vec::new();
        for (i, name) in names.iter().enumerate() {
            let rest = end.saturating_duration_since(Instant::now());
            let done = if rest < LEAST {
                Check::new(name, Verdict::NotReached)
            } else {
                check(name, limit(rest, names.len() - i))?
            };
            done.announce(title);
            checks.push(done);
        }
        Ok(Self { title, checks })
    }

    pub fn count(&self, is: impl Fn(&Verdict) -> bool) -> usize {
        self.checks.iter().filter(|check| is(&check.verdict)).count()
    }

    pub fn seconds(&self) -> f64 {
        self.checks.iter().map(|check| check.seconds).sum()
    }
}

/// The time limit of the next of `left` checks: a few times its share, so that a check that hangs leaves time for the others.
fn limit(rest: Duration, left: usize) -> Duration {
    let share = rest * 3 / u32::try_from(left).unwrap_or(u32::MAX).max(1);
    rest.min(share.max(Duration::from_secs(8)))
}

impl Check {
    pub fn new(name: &str, verdict: Verdict) -> Self {
        Self {
            name: name.to_owned(),
            verdict,
            seconds: 0.0,
            said: Vec::new(),
            notes: Vec::new(),
            rows: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The result of a child process; exit status 0 means that it passed.
    pub fn of(name: &str, limit: Duration, ended: &Ended) -> Self {
        let verdict = match &ended.end {
            End::Exit(0) => Verdict::Passed,
            End::Exit(_) => Verdict::Failed,
            End::Crash(how) => Verdict::Crashed(how.clone()),
            End::Late => Verdict::Late(limit.as_secs()),
        };
        let said = if verdict == Verdict::Passed { Vec::new() } else { reported(ended) };
        let warnings = ended.errors.iter().filter_map(|line| line.strip_prefix("warning: "));
        Self {
            seconds: ended.seconds,
            said,
            warnings: warnings.map(str::to_owned).collect(),
            ..Self::new(name, verdict)
        }
    }

    /// Prints the result to the terminal.
    pub fn announce(&self, part: &str) {
        eprintln!("report: {part}: {}: {}", self.name, self.words());
    }

    /// The result in a few words.
    pub fn words(&self) -> String {
        match &self.verdict {
            Verdict::Passed => format!("passed in {:.1} s", self.seconds),
            Verdict::Failed => format!("FAILED after {:.1} s", self.seconds),
            Verdict::Crashed(how) => format!("CRASHED after {:.1} s ({how})", self.seconds),
            Verdict::Late(limit) => format!("ended at its limit of {limit} s"),
            Verdict::LeftOut(why) => why.clone(),
            Verdict::NotReached => "not reached in time".to_owned(),
        }
    }
}

/// A failure's output: from its panic or error on, or else its last lines.
fn reported(ended: &Ended) -> Vec<String> {
    let begins = |line: &String| line.contains("panicked at ") || line.starts_with("error: ");
    let errors = match ended.errors.iter().position(begins) {
        Some(at) => &ended.errors[at..],
        None => &ended.errors[ended.errors.len().saturating_sub(REPORTED / 2)..],
    };
    let noise = |line: &&String| !line.starts_with("note: run with ") && !line.trim().is_empty();
    let mut lines: Vec<&String> = errors.iter().filter(noise).collect();
    if lines.is_empty() {
        let from = ended.output.len().saturating_sub(REPORTED / 2);
        lines = ended.output[from..].iter().filter(noise).collect();
    }
    let mut said: Vec<String> = lines.iter().take(REPORTED).map(|line| cut(line)).collect();
    if lines.len() > REPORTED {
        said.push(format!("... and {} lines more", lines.len() - REPORTED));
    }
    said
}

fn cut(line: &str) -> String {
    match line.char_indices().nth(WIDTH) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line.to_owned(),
    }
}

/// The tests that a test program runs by default and whose names begin with `module`. Those in `first` are moved to the front.
pub fn tests(program: &Path, module: &str, first: &[&str]) -> Result<Vec<String>> {
    let list = |extra: &[&str]| -> Result<Vec<String>> {
        let line = CommandLine::new(program.to_string_lossy()).args(["--list"]).args(extra);
        let ended = limited::run(&line, Duration::from_secs(60))?;
        let names = ended.output.iter().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.filter(|name| name.starts_with(module)).map(str::to_owned).collect())
    };
    let ignored = list(&["--ignored"])?;
    let mut names = list(&[])?;
    names.retain(|name| !ignored.contains(name));
    // Families of cases have short names; the test runner's own tests have long ones.
    names.sort_by_key(|name| {
        let name = &name[module.len()..];
        let place = first.iter().position(|first| *first == name).unwrap_or(first.len());
        (place, name.split('_').count() > 2)
    });
    Ok(names)
}

/// Runs one test of a test program; `line` is the program with its environment.
pub fn test(line: &CommandLine, name: &str, limit: Duration) -> Result<Check> {
    let line = line.clone().args([name, "--exact", "--nocapture", "--test-threads=1"]);
    let ended = limited::run(&line.env("RUST_BACKTRACE", "0"), limit)?;
    let mut check = Check::of(name, limit, &ended);
    let counted = ended.output.iter().any(|line| line.contains("1 passed"));
    if check.verdict == Verdict::Passed && !counted {
        check.verdict = Verdict::Failed;
        check.said.push("the test program ended without running it".to_owned());
    }
    for line in &ended.output {
        let Some((_, words)) = line.split_once("oracle: ") else { continue };
        let reported = |failure: &str| check.said.iter().any(|said| said.contains(failure));
        if let Some(row) = family(words) {
            check.rows.push(row);
        } else if let Some((_, failure)) = words.split_once(": failed: ") {
            // The test's panic message lists them, too.
            if check.said.len() < REPORTED && !reported(&cut(failure)) {
                check.said.push(cut(failure));
            }
        } else {
            check.notes.push(cut(words));
        }
    }
    Ok(check)
}

/// The line of a family in the output of the oracle's runner: `FAMILY: N run, N listed, N elements excused, N failed`. Other
/// lines are `FAMILY: failed: ...`, and listed or excused cases.
fn family(words: &str) -> Option<Value> {
    let (name, counts) = words.split_once(": ")?;
    let mut row = serde_json::json!({ "family": name.trim() });
    for count in counts.split(", ") {
        let number = count.split_whitespace().next()?.parse::<u64>().ok()?;
        row[count.split_whitespace().last()?] = number.into();
    }
    row["run"].is_u64().then_some(row)
}

/// Compares the variants of one op: `line` is the program that compares them, and whose output ends with `{"end": ...}`.
pub fn variants(line: &CommandLine, name: &str, limit: Duration) -> Result<Check> {
    let ended = limited::run(&line.clone().args([name]), limit)?;
    let mut check = Check::of(name, limit, &ended);
    let rows = ended.output.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    check.rows = rows.filter(Value::is_object).collect();
    let end = check.rows.iter().find_map(|row| row["end"].as_str()).map(str::to_owned);
    match end {
        Some(why) if why.starts_with("left out") => check.verdict = Verdict::LeftOut(why),
        None if check.verdict == Verdict::Passed => check.verdict = Verdict::Failed,
        _ => {}
    }
    let wrong = check.rows.iter().any(|row| row["wrong"].as_array().is_some_and(|w| !w.is_empty()));
    if wrong && check.verdict == Verdict::Passed {
        check.verdict = Verdict::Failed;
        check.said.clone_from(&check.warnings);
    }
    Ok(check)
}

/// Measures one case: `line` is the benchmark, which writes `file`.
pub fn figure(line: &CommandLine, name: &str, limit: Duration, file: &Path) -> Result<Check> {
    let _ = std::fs::remove_file(file);
    let path = file.to_string_lossy();
    let ended = limited::run(&line.clone().args(["--only", name, "--json", &path]), limit)?;
    let mut check = Check::of(name, limit, &ended);
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let rows: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
    let problems = rows.iter().filter_map(|row| row["problems"].as_array()).flatten();
    let problems: Vec<String> = problems.filter_map(Value::as_str).map(cut).collect();
    if check.verdict == Verdict::Passed && (rows.is_empty() || !problems.is_empty()) {
        check.verdict = Verdict::Failed;
        check.said = problems;
    }
    check.rows = rows;
    Ok(check)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use serde_json::json;

    #[cfg(unix)]
    fn shell(script: &str) -> CommandLine {
        CommandLine::new("/bin/sh").args(["-c", script])
    }

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_check_may_take_a_few_times_its_share() {
        let seconds = Duration::from_secs;
        assert_eq!(limit(seconds(120), 36), seconds(10));
        assert_eq!(limit(seconds(100), 2), seconds(100));
        assert_eq!(limit(seconds(12), 40), seconds(8));
        assert_eq!(limit(seconds(3), 40), seconds(3));
    }

    #[test]
    fn lines_of_the_oracle_are_read() {
        let row = json!({ "family": "unary", "run": 120, "listed": 3, "excused": 7, "failed": 0 });
        assert_eq!(family("unary: 120 run, 3 listed, 7 elements excused, 0 failed"), Some(row));
        assert_eq!(family("unary: 120 run"), Some(json!({ "family": "unary", "run": 120 })));
        for other in [
            "unary: failed: sin (tf.sin) fused, out.0: 1 for 2",
            "unary: listed 3: no sorting: tf.sort (3)",
            "",
            "a: b: 1",
        ] {
            assert_eq!(family(other), None, "{other}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_test_passes_only_if_it_ran() {
        let run = |script: &str| test(&shell(script), "t", MINUTE).unwrap();
        let passed = run("echo 'test t ... oracle: conv: 9 run, 0 listed, 0 elements excused'; \
             echo 'test result: ok. 1 passed; 0 failed'");
        assert_eq!((&passed.verdict, passed.said.len()), (&Verdict::Passed, 0));
        assert_eq!(passed.rows[0]["run"], 9);
        let none = run("echo 'test result: ok. 0 passed'");
        assert_eq!(none.verdict, Verdict::Failed);
        let failed = run("echo 'oracle: conv: 1 run, 0 listed, 0 elements excused, 2 failed'; \
             echo 'oracle: conv: excused 3 elements: why'; echo 'oracle: conv: failed: a: 3 for 4'; \
             echo 'oracle: conv: failed: b: 5 for 6'; echo noise >&2; \
             echo 'thread t panicked at tests/a.rs:1:2:' >&2; echo '  a: 3 for 4' >&2; exit 101");
        assert_eq!(failed.verdict, Verdict::Failed);
        let said = ["thread t panicked at tests/a.rs:1:2:", "  a: 3 for 4", "b: 5 for 6"];
        assert_eq!(failed.said, said);
        assert_eq!(failed.notes, ["conv: excused 3 elements: why"]);
        assert_eq!(failed.rows[0]["failed"], 2);
        assert_eq!(run("kill -ABRT $$").verdict, Verdict::Crashed("signal 6".into()));
    }

    #[cfg(unix)]
    #[test]
    fn a_wrong_variant_is_a_failure_and_a_missing_feature_none() {
        let run = |script: &str| variants(&shell(script), "v", MINUTE).unwrap();
        let good = run(r#"echo '{"op":"MatMul","wrong":[]}'; echo '{"end":""}'"#);
        assert_eq!((good.verdict, good.rows.len()), (Verdict::Passed, 2));
        let wrong =
            run(r#"echo '{"op":"MatMul","wrong":["a"]}'; echo 'warning: a is off by 3' >&2;
            echo '{"end":""}'"#);
        assert_eq!(
            (wrong.verdict, &wrong.said[..]),
            (Verdict::Failed, &["a is off by 3".to_owned()][..])
        );
        let without = run(r#"echo '{"end":"left out: no f16"}'"#);
        assert_eq!(without.verdict, Verdict::LeftOut("left out: no f16".into()));
        assert_eq!(run("true").verdict, Verdict::Failed);
    }

    #[test]
    fn unreached_parts_are_reported() {
        let names = ["a".to_owned(), "b".to_owned()];
        let part = Part::run("part", &names, Duration::ZERO, |_, _| unreachable!()).unwrap();
        assert_eq!(part.count(|verdict| *verdict == Verdict::NotReached), 2);
    }

    #[test]
    fn a_failure_is_reported_from_its_panic_on() {
        let lines = |count: usize| (0..count).map(|i| i.to_string()).collect::<Vec<_>>();
        let mut errors = vec!["before".to_owned(), "thread panicked at x:".to_owned()];
        errors.extend(lines(100));
        let ended = |errors| Ended { end: End::Exit(1), seconds: 0.0, output: lines(50), errors };
        let said = reported(&ended(errors));
        assert_eq!((said[0].as_str(), said.len()), ("thread panicked at x:", REPORTED + 1));
        assert_eq!(said[REPORTED], "... and 61 lines more");
        assert_eq!(reported(&ended(Vec::new())), lines(50)[30..]);
    }
}
