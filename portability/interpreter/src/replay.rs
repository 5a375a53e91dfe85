//! Runs captured plans, launch by launch, and compares their results with the device's.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result};

use crate::capture::{Bound as Captured, Launch, Plan};
use crate::compare::{Exactness, Mismatch, compare};
use crate::{
    Bound, Buffer, Dispatch, Finding, Kind, Memory, Mutation, Order, Program, Random, Report, Seen,
    Settings, compile, run,
};

/// Kernels that were compiled, by their texts' files and what was left out of them.
#[derive(Default)]
pub struct Programs(Mutex<HashMap<Key, Arc<Program>>>);

type Key = (String, Option<usize>);

impl Programs {
    /// The kernel of a launch.
    ///
    /// # Errors
    /// As [`compile`].
    pub fn get(&self, plan: &Plan, launch: &Launch, mutation: Mutation) -> Result<Arc<Program>> {
        let left_out = match mutation {
            Mutation::None => None,
            Mutation::WithoutBarrier(number) => Some(number),
        };
        let key = (launch.text.clone(), left_out);
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = lock().get(&key) {
            return Ok(program.clone());
        }
        let text = plan.text(launch)?;
        let program = compile(&text, mutation)
            .with_context(|| format!("the kernel {} ({}.wgsl)", launch.label, launch.text))?;
        let program = Arc::new(program);
        // Mutants are run a few times and never again.
        if mutation == Mutation::None {
            lock().insert(key, program.clone());
        }
        Ok(program)
    }
}

/// The memory of a plan, as a run goes through it.
pub struct Run<'a> {
    plan: &'a Plan,
    /// The plan's buffers, and behind them one for the parameters of the current launch.
    pub memory: Memory,
}

impl<'a> Run<'a> {
    /// The memory before the first launch. What nobody may count on is random.
    pub fn new(plan: &'a Plan, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let buffer = |storage: &crate::capture::Storage| match &storage.contents {
            Some(contents) => Buffer::from_bytes(contents),
            None => {
                Buffer::new((0..storage.bytes.div_ceil(4)).map(|_| random.bits() as u32).collect())
            }
        };
        let mut buffers: Vec<Buffer> = plan.buffers.iter().map(buffer).collect();
        buffers.push(Buffer::default());
        Run { plan, memory: Memory::new(buffers) }
    }

    /// Runs a launch.
    ///
    /// # Errors
    /// If its bindings are not those of the kernel.
    pub fn launch(
        &mut self,
        launch: &Launch,
        program: &Program,
        settings: &Settings,
    ) -> Result<Report> {
        let bounds = self.bind(launch);
        let dispatch = Dispatch { program, grid: launch.grid, bounds: &bounds };
        run(&dispatch, &mut self.memory, settings)
            .with_context(|| format!("the kernel {} ({}.wgsl)", launch.label, launch.text))
    }

    /// Puts the launch's parameters into memory, and says what is bound.
    fn bind(&mut self, launch: &Launch) -> Vec<Bound> {
        let parameters = self.plan.buffers.len();
        let mut words: Vec<u32> = Vec::new();
        let mut bounds = Vec::new();
        for bound in &launch.bindings {
            bounds.push(match bound {
                Captured::Buffer { buffer, bytes, .. } => {
                    Bound { buffer: self.plan.buffers[*buffer].first, offset: 0, bytes: *bytes }
                }
                Captured::Uniform { uniform } => {
                    let offset = 4 * words.len();
                    words.extend(uniform);
                    Bound { buffer: parameters, offset, bytes: 4 * uniform.len() }
                }
            });
        }
        self.memory.buffers[parameters] = Buffer::new(words);
        bounds
    }

    /// The bytes of the plan's results.
    fn results(&self) -> Vec<Vec<u8>> {
        let bytes = |buffer: usize, count: usize| {
            self.memory.buffers[self.plan.buffers[buffer].first].bytes(count)
        };
        self.plan.results.iter().map(|result| bytes(result.buffer, result.bytes.len())).collect()
    }
}

/// What came of a plan.
#[derive(Debug, Default)]
pub struct Played {
    /// Findings, each with the launch's number.
    pub findings: Vec<(usize, Finding)>,
    /// Results that differ from the device's, by their numbers.
    pub mismatches: Vec<(usize, Mismatch)>,
    /// For each launch the most turns of each loop.
    pub turns: Vec<Vec<u32>>,
}

/// How plans are run.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Decides orders, noise, and what memory holds that nobody has written.
    pub seed: u64,
    /// Runs in random order, in addition to the one in order.
    pub random_runs: usize,
}

/// Runs a plan in order, and then in random orders with noise, with subgroups of each size that its adapter may have.
///
/// # Errors
/// If a kernel has something that the interpreter does not know.
pub fn play(plan: &Plan, programs: &Programs, options: &Options) -> Result<Played> {
    let mut kernels = Vec::new();
    for launch in &plan.launches {
        kernels.push(programs.get(plan, launch, Mutation::None)?);
    }
    let subgroups = kernels.iter().any(|kernel| kernel.uses_subgroups);
    let sizes = subgroup_sizes(plan.subgroups.filter(|_| subgroups));
    let random_runs = options.random_runs.max(sizes.len() - 1);
    let most_runs = random_runs + MORE_RUNS;
    let mut played = Played::default();
    for (at, kernel) in kernels.iter().enumerate() {
        for line in kernel.diverging() {
            let text = kernel.line(line).to_string();
            let (kind, variable, first) = (Kind::MayDiverge, String::new(), Seen::default());
            played.findings.push((at, Finding { kind, variable, line, text, count: 1, first }));
        }
    }
    let mut results = Vec::new();
    let mut exactness = Exactness::Exact;
    for number in 0..=most_runs {
        let seed = options.seed.wrapping_add(number as u64);
        let settings = Settings {
            order: if number == 0 { Order::Straight } else { Order::Random(seed) },
            subgroup: sizes[number % sizes.len()],
            noise: (number > 0).then_some(seed),
            ..Settings::default()
        };
        // Garbage is the same in all runs, so that what depends on it is no latitude.
        let mut run = Run::new(plan, options.seed);
        for (at, (launch, kernel)) in plan.launches.iter().zip(&kernels).enumerate() {
            let report = run.launch(launch, kernel, &settings)?;
            if report.inexact {
                exactness = Exactness::Rounded;
            }
            played.note(at, report);
        }
        results.push(run.results());
        if number < random_runs {
            continue;
        }
        played.mismatches = mismatches(plan, &results, exactness)?;
        if played.mismatches.is_empty() || exactness == Exactness::Exact {
            break;
        }
    }
    Ok(played)
}

/// Results that seem to differ from the device's may only lie where so few runs have not been yet.
const MORE_RUNS: usize = 8;

/// Factors rounded to f16 carry a longer plan anywhere: a ReLU lets through what it held back.
const MOST_ROUGH: usize = 4;

/// The results that differ from the device's, by their numbers.
fn mismatches(
    plan: &Plan,
    runs: &[Vec<Vec<u8>>],
    exactness: Exactness,
) -> Result<Vec<(usize, Mismatch)>> {
    let rough = plan.adapter.starts_with("matrices");
    if rough && plan.launches.len() > MOST_ROUGH {
        return Ok(Vec::new());
    }
    let exactness = if rough { Exactness::Rough } else { exactness };
    let mut found = Vec::new();
    for (at, result) in plan.results.iter().enumerate() {
        let runs: Vec<Vec<u8>> = runs.iter().map(|run| run[at].clone()).collect();
        let mismatch = compare(&result.dtype, result.elements, &result.bytes, &runs, exactness)?;
        found.extend(mismatch.map(|mismatch| (at, mismatch)));
    }
    Ok(found)
}

/// The sizes that subgroups of an adapter may have: powers of two.
fn subgroup_sizes(range: Option<[u32; 2]>) -> Vec<usize> {
    let [least, most] = range.unwrap_or([32, 32]);
    let sizes = (0..=7).map(|bits| 1 << bits);
    let sizes: Vec<usize> =
        sizes.filter(|size| (least as usize..=most as usize).contains(size)).collect();
    if sizes.is_empty() { vec![32] } else { sizes }
}

impl Played {
    fn note(&mut self, launch: usize, report: Report) {
        for finding in report.findings {
            let same = |(at, known): &(usize, Finding)| {
                *at == launch
                    && (known.kind, known.line, &known.variable)
                        == (finding.kind, finding.line, &finding.variable)
            };
            if !self.findings.iter().any(same) {
                self.findings.push((launch, finding));
            }
        }
        if self.turns.len() <= launch {
            self.turns.push(report.turns);
        } else {
            let known = self.turns[launch].iter_mut();
            known.zip(report.turns).for_each(|(most, turns)| *most = turns.max(*most));
        }
    }
}
