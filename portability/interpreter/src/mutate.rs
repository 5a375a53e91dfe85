//! Whether the interpreter notices that a barrier is missing. Every barrier of every captured text is left out in turn; the
//! launches of the text then have to show a fault that they do not have with it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;

use crate::capture::{Launch, Plan};
use crate::replay::{Programs, Run};
use crate::replay_all::{Options, chosen, for_each};
use crate::{Finding, Kind, Memory, Mutation, Order, Program, Settings};

/// A barrier of a text: how often it was tried without it, and whether that was noticed.
#[derive(Debug)]
struct Barrier {
    label: String,
    /// The lines before it and at it.
    place: String,
    tries: usize,
    noticed: bool,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Summary {
    /// By the text's file and the barrier's number.
    barriers: BTreeMap<(String, usize), Barrier>,
    errors: BTreeMap<String, usize>,
    time: Duration,
}

/// A barrier that so many launches do not miss is redundant.
const TRIES: usize = 12;

/// Leaves out each barrier of each text.
///
/// # Errors
/// If the folder has no plan.
pub fn mutate(options: &Options) -> Result<Summary> {
    let began = Instant::now();
    let paths = chosen(options)?;
    let programs = Programs::default();
    let summary = Mutex::new(Summary::default());
    for_each(options, &paths, |plan| {
        let result = plan.and_then(|plan| without_barriers(&plan, &programs, &summary, options));
        if let Err(error) = result {
            let mut summary = summary.lock().unwrap_or_else(PoisonError::into_inner);
            *summary.errors.entry(format!("{error:#}")).or_default() += 1;
        }
    });
    let summary = summary.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Summary { time: began.elapsed(), ..summary })
}

fn without_barriers(
    plan: &Plan,
    programs: &Programs,
    summary: &Mutex<Summary>,
    options: &Options,
) -> Result<()> {
    let lock = || summary.lock().unwrap_or_else(PoisonError::into_inner);
    let mut kernels = Vec::new();
    for launch in &plan.launches {
        kernels.push(programs.get(plan, launch, Mutation::None)?);
    }
    // The launches behind the last with a barrier change nothing here.
    let Some(last) = kernels.iter().rposition(|kernel| !kernel.barriers.is_empty()) else {
        return Ok(());
    };
    let mut run = Run::new(plan, options.seed);
    for (launch, kernel) in plan.launches.iter().zip(&kernels).take(last + 1) {
        let open = lock().open(launch, kernel);
        let settings = Settings {
            subgroup: plan.subgroups.map_or(32, |[least, _]| least as usize),
            order: Order::Straight,
            ..Settings::default()
        };
        let before = if open.is_empty() { Vec::new() } else { run.memory.buffers.clone() };
        let right = run.launch(launch, kernel, &settings)?.findings;
        for number in open {
            let mutant = programs.get(plan, launch, Mutation::WithoutBarrier(number))?;
            let mut other = Run::new(plan, options.seed);
            other.memory = Memory::new(before.clone());
            let found = other.launch(launch, &mutant, &settings)?.findings;
            lock().tried(launch, number, is_new(&found, &right));
        }
    }
    Ok(())
}

/// True if a fault is there that was not there before.
fn is_new(found: &[Finding], before: &[Finding]) -> bool {
    let key = |finding: &Finding| (finding.kind, finding.line, finding.variable.clone());
    let before: Vec<(Kind, u32, String)> = before.iter().map(key).collect();
    found.iter().any(|finding| finding.kind.is_fault() && !before.contains(&key(finding)))
}

impl Summary {
    /// True if every barrier is missed.
    pub fn is_clean(&self) -> bool {
        self.errors.is_empty() && self.barriers.values().all(|barrier| barrier.noticed)
    }

    /// The barriers of a text that nobody has missed yet.
    fn open(&mut self, launch: &Launch, kernel: &Program) -> Vec<usize> {
        let mut open = Vec::new();
        for (number, point) in kernel.barriers.iter().enumerate() {
            let barrier = self.barriers.entry((launch.text.clone(), number)).or_insert_with(|| {
                let before = (1..point.line).rev().map(|line| kernel.line(line));
                let before = before.into_iter().find(|text| text.len() > 1).unwrap_or("");
                Barrier {
                    label: launch.label.clone(),
                    place: format!("`{}` behind `{before}`", kernel.line(point.line)),
                    tries: 0,
                    noticed: false,
                }
            });
            if !barrier.noticed && barrier.tries < TRIES {
                open.push(number);
            }
        }
        open
    }

    fn tried(&mut self, launch: &Launch, number: usize, noticed: bool) {
        if let Some(barrier) = self.barriers.get_mut(&(launch.text.clone(), number)) {
            barrier.tries += 1;
            barrier.noticed |= noticed;
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.barriers.len();
        let noticed = self.barriers.values().filter(|barrier| barrier.noticed).count();
        writeln!(
            f,
            "{noticed} of {all} missing barriers are noticed, {:.0} s",
            self.time.as_secs_f64()
        )?;
        let mut open: BTreeMap<(&str, &str, usize), (usize, &str)> = BTreeMap::new();
        for ((text, number), barrier) in &self.barriers {
            if !barrier.noticed {
                let key = (&*barrier.label, &*barrier.place, *number);
                open.entry(key).or_insert((0, text)).0 += 1;
            }
        }
        for ((label, place, number), (texts, first)) in open {
            writeln!(
                f,
                "NOT MISSED: {label}, barrier {number}: {place}, in {texts} texts ({first}.wgsl)"
            )?;
        }
        for (error, count) in &self.errors {
            writeln!(f, "ERROR in {count} plans: {error}")?;
        }
        Ok(())
    }
}
