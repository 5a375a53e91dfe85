//! All plans of a folder, on all processors.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::capture::{Plan, plans};
use crate::replay::{self, Played, Programs};
use crate::{Finding, Random};

/// What is run, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder that `WGRAD_KERNEL_CAPTURE` named.
    pub folder: PathBuf,
    /// Decides the order of plans and all that is random in them.
    pub seed: u64,
    /// No plan begins after so much time.
    pub time: Option<Duration>,
    /// Plans that run at once.
    pub threads: usize,
    /// Only plans that have a kernel with these letters in its name or its text's file.
    pub only: Option<String>,
    /// Runs of each plan in random order.
    pub random_runs: usize,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Summary {
    plans: usize,
    of: usize,
    launches: usize,
    texts: BTreeSet<String>,
    /// Those that read beyond the end of a buffer.
    beyond: BTreeSet<String>,
    time: Duration,
    /// By the kernel's name and what is wrong.
    findings: BTreeMap<(String, String), Found>,
    mismatches: Vec<String>,
    errors: BTreeMap<String, usize>,
    /// The most turns of each loop of a text: by the text's file, and the loop's number.
    turns: BTreeMap<(String, usize), Turns>,
    /// The plans that took longest.
    slowest: Vec<(Duration, String)>,
}

#[derive(Debug)]
struct Found {
    plans: usize,
    first: String,
}

#[derive(Debug)]
struct Turns {
    most: u32,
    label: String,
    text: String,
}

/// The files to go through, in random order.
pub(crate) fn chosen(options: &Options) -> Result<Vec<PathBuf>> {
    let mut paths = plans(&options.folder)?;
    if paths.is_empty() {
        bail!("{} has no captured plan", options.folder.display());
    }
    Random::new(options.seed).shuffle(&mut paths);
    Ok(paths)
}

/// Calls `each` with every plan, on all threads, until time is up. Returns how many there were.
pub(crate) fn for_each(
    options: &Options,
    paths: &[PathBuf],
    each: impl Fn(Result<Plan>) + Sync,
) -> usize {
    let (next, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..options.threads {
            scope.spawn(|| {
                while options.time.is_none_or(|time| began.elapsed() < time) {
                    let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                    let plan = Plan::read(path);
                    let named = |letters: &String| {
                        plan.as_ref().is_ok_and(|plan| {
                            let mut launches = plan.launches.iter();
                            launches.any(|l| l.label.contains(letters) || l.text.contains(letters))
                        })
                    };
                    if options.only.as_ref().is_none_or(named) {
                        each(plan);
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    done.into_inner()
}

/// Runs all plans.
///
/// # Errors
/// If the folder has none. What is wrong with a plan is in the summary.
pub fn replay(options: &Options) -> Result<Summary> {
    let began = Instant::now();
    let paths = chosen(options)?;
    let programs = Programs::default();
    let summary = Mutex::new(Summary { of: paths.len(), ..Summary::default() });
    let how = replay::Options { seed: options.seed, random_runs: options.random_runs };
    let plans = for_each(options, &paths, |plan| {
        let began = Instant::now();
        let played = plan.and_then(|plan| Ok((replay::play(&plan, &programs, &how)?, plan)));
        let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
        match played {
            Ok((played, plan)) => summary.note(&plan, played, &programs, began.elapsed()),
            Err(error) => *summary.errors.entry(format!("{error:#}")).or_default() += 1,
        }
    });
    let summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Summary { plans, time: began.elapsed(), ..summary })
}

impl Summary {
    /// True if nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.mismatches.is_empty() && self.errors.is_empty()
    }

    fn note(&mut self, plan: &Plan, played: Played, programs: &Programs, time: Duration) {
        let name = plan.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        self.launches += plan.launches.len();
        self.texts.extend(plan.launches.iter().map(|launch| launch.text.clone()));
        for (launch, finding) in &played.findings {
            if !finding.kind.is_fault() {
                self.beyond.insert(plan.launches[*launch].text.clone());
                continue;
            }
            let launch = &plan.launches[*launch];
            let key = (launch.label.clone(), in_short(finding));
            let first = format!("{name} ({}), {}.wgsl: {finding}", plan.adapter, launch.text);
            self.findings.entry(key).or_insert(Found { plans: 0, first }).plans += 1;
        }
        for (result, mismatch) in &played.mismatches {
            let result = &plan.results[*result];
            self.mismatches.push(format!(
                "{name} ({}): {} of {} elements of {} ({}), first [{}]: {} on the device, {} here, tolerance {:.3e}; kernels: {}",
                plan.adapter,
                mismatch.count,
                result.elements,
                result.op,
                result.dtype,
                mismatch.element,
                mismatch.device,
                mismatch.here,
                mismatch.tolerance,
                plan.launches.iter().map(|launch| &*launch.label).collect::<Vec<_>>().join(", "),
            ));
        }
        for (launch, turns) in plan.launches.iter().zip(&played.turns) {
            for (number, &most) in turns.iter().enumerate() {
                let program = || programs.get(plan, launch, crate::Mutation::None);
                let key = (launch.text.clone(), number);
                let known = self.turns.entry(key).or_insert_with(|| Turns {
                    most: 0,
                    label: launch.label.clone(),
                    text: program().map_or(String::new(), |p| p.line(p.loops[number]).to_string()),
                });
                known.most = most.max(known.most);
            }
        }
        self.slowest.push((time, format!("{name} ({})", plan.adapter)));
        self.slowest.sort_by_key(|(time, _)| std::cmp::Reverse(*time));
        self.slowest.truncate(5);
    }
}

/// A finding without what differs from text to text.
fn in_short(finding: &Finding) -> String {
    let variable = &finding.variable;
    format!("{} of `{variable}` at `{}`", finding.kind.words(), finding.text)
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let loops = self.turns.len();
        let twice = self.turns.values().filter(|turns| turns.most >= 2).count();
        writeln!(
            f,
            "{} of {} plans, {} launches, {} texts, {:.0} s",
            self.plans,
            self.of,
            self.launches,
            self.texts.len(),
            self.time.as_secs_f64()
        )?;
        writeln!(
            f,
            "{} texts read beyond the end of a buffer, where any element may answer",
            self.beyond.len()
        )?;
        writeln!(f, "{twice} of {loops} loops turned twice or more")?;
        let mut few: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        for turns in self.turns.values().filter(|turns| turns.most < 2) {
            *few.entry((&turns.label, &turns.text)).or_default() += 1;
        }
        for ((label, text), count) in few {
            writeln!(f, "  fewer turns: {label} ({count} texts): `{text}`")?;
        }
        for (time, name) in &self.slowest {
            writeln!(f, "  slow: {name}: {:.1} s", time.as_secs_f64())?;
        }
        for ((label, what), found) in &self.findings {
            writeln!(f, "FAULT in {label}: {what}, in {} plans", found.plans)?;
            writeln!(f, "    {}", found.first)?;
        }
        for mismatch in &self.mismatches {
            writeln!(f, "DIFFERS: {mismatch}")?;
        }
        for (error, count) in &self.errors {
            writeln!(f, "ERROR in {count} plans: {error}")?;
        }
        Ok(())
    }
}
