//! Random recurrences: a few states, an iteration that computes new states, hundreds of iterations.
//!
//! Every iteration is a contraction, or at least does not enlarge differences: so fused ops, single ops and an evaluation in
//! `f64` stay together although rounding errors pass through all iterations.

use std::fmt;
use std::slice::from_ref;

use wgrad::DType;

use super::check::{between, guarded};
use super::eval::{Against, Evaluator, Value};
use super::run::{Devices, Mode, Outcome, run, run_with_gradients};
use super::table::{Fold, binary, reduction};
use super::turns::Maker;
use super::{Node, Op, Program, Rng};

/// The calls of an iteration read, by index, the states, the constants, and earlier calls of the iteration.
#[derive(Clone, Debug)]
pub struct Recurrence {
    /// The uploads: initial states, then constants.
    pub inputs: Vec<Op>,
    pub states: usize,
    pub turn: Vec<(Op, Vec<usize>)>,
    /// The value that becomes each state after an iteration.
    pub next: Vec<usize>,
    pub turns: usize,
    /// A value of each iteration that is held, and whether all of them are stacked at the end.
    pub kept: Option<(usize, bool)>,
    /// `Device::flush` follows this iteration.
    pub flush: Option<usize>,
    /// The last value is a scalar, whose gradients are computed.
    pub gradients: bool,
}

impl Recurrence {
    /// Deterministic in the seed; a `smooth` one has gradients.
    pub fn random(seed: u64) -> Self {
        let mut rng = Rng(seed.wrapping_mul(0xd134_2543_de82_ef95) ^ 0x5eed);
        let gradients = seed % 4 == 3;
        // Log-uniform from 10 on, and often the maximum.
        let most: f64 = if gradients { 40.0 } else { 300.0 };
        let turns = (10.0 * (most / 10.0).powf(rng.between(0.0, 1.25).min(1.0))).round() as usize;
        let flush = rng.chance(0.25).then(|| rng.below(turns));
        let kept = !gradients && rng.chance(0.3);
        let stacked = rng.chance(0.7);
        let mut maker = Maker::new(rng, gradients);
        maker.make();
        let Maker { mut rng, inputs, states, turn, next, .. } = maker;
        let kept = kept.then(|| (next[rng.below(states)], stacked));
        let turns = if kept.is_some() { turns.min(80) } else { turns };
        Recurrence { inputs, states, turn, next, turns, kept, flush, gradients }
    }

    /// All calls of all iterations.
    pub fn unrolled(&self) -> Program {
        let mut program = Program::default();
        let mut push = |op: Op, inputs: Vec<usize>| {
            program.nodes.push(Node { op, inputs, wanted: false, flush: false });
            program.nodes.len() - 1
        };
        let inputs: Vec<usize> =
            self.inputs.iter().map(|op| push(op.clone(), Vec::new())).collect();
        let mut states = inputs[..self.states].to_vec();
        let (mut kept, mut flushed) = (Vec::new(), None);
        for turn in 0..self.turns {
            let mut values = states.clone();
            values.extend(&inputs[self.states..]);
            for (op, from) in &self.turn {
                let from = from.iter().map(|&k| values[k]).collect();
                values.push(push(op.clone(), from));
            }
            states = self.next.iter().map(|&k| values[k]).collect();
            kept.extend(self.kept.map(|(k, _)| values[k]));
            if self.flush == Some(turn) {
                flushed = values.last().copied();
            }
        }
        let mut wanted = states.clone();
        if let Some((k, true)) = self.kept {
            let shape = &self.specs()[k].0;
            let to = [&[1], &shape[..]].concat();
            let rows = kept.iter().map(|&y| push(Op::Reshape(to.clone()), vec![y])).collect();
            wanted.push(push(Op::Concat(0), rows));
        } else {
            wanted.extend(kept);
        }
        if self.gradients {
            let mut loss = None;
            for (&y, (shape, _)) in states.iter().zip(self.specs()) {
                let axes = (0..shape.len()).collect();
                let sum = push(Op::Reduce(reduction(Fold::Sum), axes, false), vec![y]);
                loss = Some(loss.map_or(sum, |loss| {
                    let half = push(Op::Scalar(binary("multiply"), 0.5), vec![sum]);
                    push(Op::Binary(binary("add")), vec![loss, half])
                }));
            }
            wanted.extend(loss);
        }
        wanted.into_iter().for_each(|i| program.nodes[i].wanted = true);
        flushed.into_iter().for_each(|i| program.nodes[i].flush = true);
        program
    }

    /// Shape and dtype of all values of one iteration, by index, found by computing it.
    fn specs(&self) -> Vec<(Vec<usize>, DType)> {
        let evaluator = Evaluator { against: Against::Truth, strict: false };
        let mut values: Vec<Value> = Vec::new();
        for (op, from) in self.calls() {
            let x: Vec<&Value> = from.iter().map(|&k| &values[k]).collect();
            values.push(evaluator.apply(op, &x).expect("a turn can be computed"));
        }
        values.into_iter().map(|value| (value.shape, value.dtype)).collect()
    }

    /// The uploads and the calls of one iteration.
    fn calls(&self) -> impl Iterator<Item = (&Op, &[usize])> {
        let uploads = self.inputs.iter().map(|op| (op, &[][..]));
        uploads.chain(self.turn.iter().map(|(op, from)| (op, &from[..])))
    }
}

/// The permitted difference, relative to the largest value, plus a little for values near 0.
const TWIN: f64 = 1e-4;
/// The same compared with `f64`, where a driver's functions add errors in every iteration.
const TRUTH: f64 = 1e-2;

fn largest(v: &[f64]) -> f64 {
    v.iter().fold(0.0, |m, v| m.max(v.abs()))
}

fn alike(what: &str, got: &Outcome, want: &Outcome) -> Result<(), String> {
    for (got, want) in [(&got.wanted, &want.wanted), (&got.gradients, &want.gradients)] {
        if got.len() != want.len() {
            return Err(format!("{what}: {} values are there, not {}", got.len(), want.len()));
        }
        for (got, want) in got.iter().zip(want) {
            if got.1.shape != want.1.shape {
                return Err(format!("{what}: v{} is {:?}", got.0, got.1.shape));
            }
            let bound = TWIN * largest(&want.1.v) + 1e-6;
            between(what, from_ref(got), from_ref(want), |_, _| bound)?;
        }
    }
    Ok(())
}

/// Runs all iterations fused, twice, and op by op, and compares the results with each other and with `f64`. A recurrence that
/// is not a contraction is not run, and the result is false.
pub fn judge(recurrence: &Recurrence, devices: &Devices) -> Result<bool, String> {
    let program = recurrence.unrolled();
    let compute = |what: &str, mode: Mode| {
        guarded(what, || match recurrence.gradients {
            true => run_with_gradients(&program, devices, mode),
            false => run(&program, devices, mode),
        })
    };
    let evaluator = Evaluator { against: Against::Truth, strict: false };
    let truth = evaluator.run(&program).ok_or("it cannot be computed")?;
    if truth.iter().any(|y| !y.all(|v| v.abs() < 1000.0)) {
        return Ok(false);
    }
    let apart = compute("one by one", Mode::Apart)?;
    let fused = compute("fused", Mode::Fused)?;
    alike("fused against one by one", &fused, &apart)?;
    for (what, outcome) in [("one by one", &apart), ("fused", &fused)] {
        for (i, read) in &outcome.wanted {
            let want = &truth[*i];
            let bound = TRUTH * largest(&want.v) + 1e-5;
            if read.shape != want.shape {
                return Err(format!("{what}: v{i} is {:?}, not {:?}", read.shape, want.shape));
            }
            for (k, (got, want)) in read.v.iter().zip(&want.v).enumerate() {
                if got.is_nan() || (got - want).abs() > bound {
                    return Err(format!("{what}: v{i}, element {k} is {got}, not {want}"));
                }
            }
        }
    }
    let again = compute("fused again", Mode::Fused)?;
    between("fused again, of the same bits", &again.wanted, &fused.wanted, |_, _| 0.0)?;
    between("fused again, of the same bits", &again.gradients, &fused.gradients, |_, _| 0.0)?;
    Ok(true)
}

/// Judges random recurrences; shrinks and prints those that fail.
pub fn check(seeds: std::ops::Range<u64>) {
    let devices = Devices::new();
    let mut failures = Vec::new();
    for seed in seeds {
        let recurrence = Recurrence::random(seed);
        // With `--nocapture`, the last of these lines identifies one that never ends.
        println!("recurrence {seed}: {} turns of {}", recurrence.turns, recurrence.turn.len());
        let why = match judge(&recurrence, &devices) {
            Ok(contracts) => {
                assert!(contracts, "recurrence {seed} is none to be judged:\n{recurrence}");
                continue;
            }
            Err(why) => why,
        };
        // A panic may have left the devices in any state.
        let small = shrink(recurrence, |r| judge(r, &Devices::new()).is_err());
        let now = judge(&small, &Devices::new()).err();
        let now = now.as_deref().unwrap_or("(does not fail on new devices)");
        failures.push(format!("recurrence {seed}: {why}\nshrunk: {now}\n{small}"));
        if failures.len() >= 3 {
            break;
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Reduces iterations and calls while it still fails.
fn shrink(recurrence: Recurrence, fails: impl Fn(&Recurrence) -> bool) -> Recurrence {
    let mut best = recurrence;
    let mut tries = 0;
    loop {
        let mut candidates = Vec::new();
        let with = |change: &dyn Fn(&mut Recurrence)| {
            let mut candidate = best.clone();
            change(&mut candidate);
            candidate
        };
        for turns in [best.turns / 2, best.turns * 3 / 4, best.turns.saturating_sub(1)] {
            candidates.push(with(&|r| r.turns = turns));
        }
        candidates.push(with(&|r| r.kept = None));
        candidates.push(with(&|r| r.flush = None));
        candidates.push(with(&|r| r.gradients = false));
        candidates.extend((0..best.turn.len()).rev().filter_map(|call| best.without(call)));
        let smaller = candidates.into_iter().find(|candidate| {
            let size = |r: &Recurrence| {
                let extras = [r.kept.is_some(), r.flush.is_some(), r.gradients];
                (r.turns, r.turn.len(), extras.iter().filter(|on| **on).count())
            };
            let new = candidate.turns > 0 && size(candidate) != size(&best);
            tries += usize::from(new);
            new && tries <= 120 && fails(candidate)
        });
        match smaller {
            Some(smaller) => best = smaller,
            None => return best,
        }
    }
}

impl Recurrence {
    /// Removes one call: its readers read its input instead, if that has the same shape and dtype.
    fn without(&self, call: usize) -> Option<Recurrence> {
        let index = self.inputs.len() + call;
        let (specs, from) = (self.specs(), &self.turn[call].1);
        let unread = self.turn.iter().all(|(_, from)| !from.contains(&index))
            && !self.next.contains(&index)
            && self.kept.is_none_or(|(k, _)| k != index);
        let other = from.iter().copied().find(|&k| specs[k] == specs[index]);
        let instead = if unread { Some(0) } else { other }?;
        let moved = |k: usize| match k {
            k if k == index => instead,
            k => k - usize::from(k > index),
        };
        let mut smaller = self.clone();
        smaller.turn.remove(call);
        for (_, from) in &mut smaller.turn {
            from.iter_mut().for_each(|k| *k = moved(*k));
        }
        smaller.next.iter_mut().for_each(|k| *k = moved(*k));
        smaller.kept = self.kept.map(|(k, stacked)| (moved(k), stacked));
        Some(smaller)
    }
}

/// Written as a loop in Rust.
impl fmt::Display for Recurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = |(op, from): (&Op, &[usize])| Node {
            op: op.clone(),
            inputs: from.to_vec(),
            wanted: false,
            flush: false,
        };
        let text = Program { nodes: self.calls().map(node).collect() }.to_string();
        let names = |of: &[usize]| -> String {
            let names: Vec<String> = of.iter().map(|k| format!("v{k}.clone()")).collect();
            names.join(", ")
        };
        for (i, line) in text.lines().enumerate() {
            if i == self.inputs.len() {
                writeln!(f, "for turn in 0..{} {{", self.turns)?;
            }
            match i {
                i if i < self.states => writeln!(f, "{}", line.replacen("let ", "let mut ", 1))?,
                i if i < self.inputs.len() => writeln!(f, "{line}")?,
                _ => writeln!(f, "    {line}")?,
            }
        }
        if self.turn.is_empty() {
            writeln!(f, "for turn in 0..{} {{", self.turns)?;
        }
        if let Some((k, _)) = self.kept {
            writeln!(f, "    kept.push(v{k}.clone());")?;
        }
        let states: Vec<String> = (0..self.states).map(|k| format!("v{k}")).collect();
        writeln!(f, "    ({}) = ({});", states.join(", "), names(&self.next))?;
        if let Some(turn) = self.flush {
            writeln!(f, "    if turn == {turn} {{ device.flush()?; }}")?;
        }
        writeln!(f, "}}")?;
        if let Some((_, true)) = self.kept {
            writeln!(f, "stack(&kept, 0)?;")?;
        }
        if self.gradients {
            writeln!(f, "// gradients of the states' sums, each but the first halved")?;
        }
        Ok(())
    }
}
