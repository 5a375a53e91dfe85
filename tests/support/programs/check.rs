//! Judges programs: compares every value with the evaluation in `f64`, and fused kernels with single ops.

use std::panic::{AssertUnwindSafe, catch_unwind};

use wgrad::{DType, Result};

use super::super::driver;
use super::eval::{Against, Evaluator, Value};
use super::flavours::Flavour;
use super::generate::{cancels, generate};
use super::run::{Devices, Mode, Outcome, Read, run};
use super::shrink::shrink;
use super::{Op, Program};

/// Guarantees about a program's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Values stay where ops are smooth and `f32` is precise.
    Certain,
    /// There are NaNs and infinities; they are compared by their class.
    Special,
}

/// Runs `program` and converts a panic to an error text.
pub fn guarded(
    what: &str,
    f: impl FnOnce() -> Result<Outcome>,
) -> std::result::Result<Outcome, String> {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(Ok(outcome)) => Ok(outcome),
        Ok(Err(error)) => Err(format!("{what}: {error}")),
        Err(panic) => {
            let words = panic.downcast_ref::<String>().cloned();
            let words = words.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
            Err(format!("{what}: panicked: {}", words.unwrap_or_default()))
        }
    }
}

/// Describes where `got` differs from `want` by more than `bound`.
fn differs(got: &[f64], want: &[f64], bound: impl Fn(usize) -> f64) -> Option<String> {
    // A hostile driver regroups sums even if each step is exact.
    let slack = if driver::is_hostile() { 16.0 * f64::from(f32::EPSILON) } else { 0.0 };
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        // The largest f32 may be an infinity if the true value is close to overflow.
        let same = if w.is_nan() || g.is_nan() {
            g.is_nan() && w.is_nan()
        } else if w.is_infinite() || g.is_infinite() {
            g == w
        } else {
            (g - w).abs() <= bound(i) + slack * w.abs()
        };
        if !same {
            let by = bound(i);
            return Some(format!("element {i} is {g:?}, not {w:?}; the bound is {by:e}"));
        }
    }
    None
}

fn compare(what: &str, outcome: &Outcome, truth: &[Value]) -> std::result::Result<(), String> {
    for (i, read) in outcome.wanted.iter().chain(&outcome.kept) {
        let want = &truth[*i];
        if read.shape != want.shape || read.dtype != want.dtype {
            return Err(format!(
                "{what}: v{i} is {} {:?}, not {} {:?}",
                read.dtype, read.shape, want.dtype, want.shape
            ));
        }
        if let Some(words) = differs(&read.v, &want.v, |k| 2.0 * want.e[k]) {
            return Err(format!("{what}: v{i}, {words}"));
        }
    }
    Ok(())
}

/// Compares the same values of two runs.
pub fn between(
    what: &str,
    a: &[(usize, Read)],
    b: &[(usize, Read)],
    bound: impl Fn(usize, usize) -> f64,
) -> std::result::Result<(), String> {
    for ((i, x), (_, y)) in a.iter().zip(b) {
        if let Some(words) = differs(&x.v, &y.v, |k| bound(*i, k)) {
            return Err(format!("{what}: v{i}, {words}"));
        }
    }
    Ok(())
}

/// Runs `program` in both modes, the fused one twice, and compares all values.
pub fn judge(
    program: &Program,
    devices: &Devices,
    promise: Promise,
) -> std::result::Result<(), String> {
    let evaluator = |against| Evaluator { against, strict: promise == Promise::Certain };
    let evaluate = |against| evaluator(against).run(program);
    let (Some(truth), Some(twin)) = (evaluate(Against::Truth), evaluate(Against::Twin)) else {
        // Only a program that is being shrunk gets here.
        return Ok(());
    };
    if open(&truth) {
        return Ok(());
    }
    let apart = guarded("one by one", || run(program, devices, Mode::Apart))?;
    compare("one by one", &apart, &truth)?;
    let fused = guarded("fused", || run(program, devices, Mode::Fused))?;
    compare("fused", &fused, &truth)?;
    let bound = |i: usize, k: usize| 2.0 * twin[i].e[k];
    between("fused against one by one", &fused.wanted, &apart.wanted, bound)?;
    // With the cached plan.
    let again = guarded("fused again", || run(program, devices, Mode::Fused))?;
    between("fused again, of the same bits", &again.wanted, &fused.wanted, |_, _| 0.0)?;
    compare("fused again", &again, &truth)?;
    // Other numbers in the same structure: a cached plan must not depend on them.
    let other = varied(program, &evaluator(Against::Truth));
    let truth = evaluator(Against::Truth).run(&other).expect("it was tried");
    if open(&truth) {
        return Ok(());
    }
    let numbers = guarded("other numbers", || run(&other, devices, Mode::Fused))?;
    compare("fused, with other numbers in the same calls", &numbers, &truth)
}

/// Whether the driver may return any result for computations from these values.
fn open(values: &[Value]) -> bool {
    driver::takes_nan_for_numbers() && values.iter().any(|value| !value.all(|v| !v.is_nan()))
}

/// The program with other scalars and other inputs, as far as its values stay certain.
fn varied(program: &Program, evaluator: &Evaluator) -> Program {
    let mut best = program.clone();
    for i in 0..program.nodes.len() {
        let mut other = best.clone();
        let step = if i % 2 == 0 { 1.0 } else { -1.0 };
        match &mut other.nodes[i].op {
            Op::Scalar(_, v) => *v = f64::from((*v + step) as f32),
            Op::Full { value, dtype, .. } if *dtype != DType::Bool => *value += step,
            Op::Input { values, .. } if values.len() > 1 => values.rotate_left(1),
            Op::Slice(ranges) => {
                let Some(values) = evaluator.run(&best) else { continue };
                move_boxes(ranges, &values[best.nodes[i].inputs[0]].shape, i);
            }
            Op::Pad(edges, _) => edges.iter_mut().for_each(|(low, high)| {
                (*low, *high) = if i % 2 == 0 { (*high, *low) } else { (0, *low + *high) };
            }),
            Op::Roll(by, _) => *by += 1,
            _ => continue,
        }
        let kept = |values: &[Value]| {
            let open = other.nodes.iter().any(|node| {
                let x: Vec<&Value> = node.inputs.iter().map(|&input| &values[input]).collect();
                cancels(&node.op, &x)
            });
            values.iter().all(|x| x.certain(evaluator.strict)) && (evaluator.strict || !open)
        };
        if evaluator.run(&other).is_some_and(|values| kept(&values)) {
            best = other;
        }
    }
    best
}

/// Moves the start of each range that does not cover its whole axis.
fn move_boxes(ranges: &mut [(usize, usize, i64)], shape: &[usize], by: usize) {
    for ((from, n, step), size) in ranges.iter_mut().zip(shape) {
        if *n == 0 {
            continue;
        }
        let span = (*n - 1) * step.unsigned_abs() as usize;
        let low = if *step > 0 { *from } else { *from - span };
        let low = (low + 1 + by % 3) % (size - span);
        *from = if *step > 0 { low } else { low + span };
    }
}

/// The number of programs per flavour: `share` of them, or multiplied by `WGRAD_PROPERTY_CASES`, and at least one.
pub fn cases(share: u64) -> u64 {
    let factor = std::env::var("WGRAD_PROPERTY_CASES").ok().map(|v| {
        let factor = v.parse::<f64>().ok().filter(|factor| *factor > 0.0 && *factor <= 1e6);
        factor.unwrap_or_else(|| {
            panic!("WGRAD_PROPERTY_CASES is {v:?}, which is not a number above 0")
        })
    });
    ((share as f64 * factor.unwrap_or(1.0)).ceil() as u64).max(1)
}

/// Judges programs of a flavour; shrinks and prints those that fail.
pub fn check(flavour: Flavour, seeds: std::ops::Range<u64>, promise: Promise) {
    let devices = Devices::new();
    let mut failures = Vec::new();
    let mut calls = 0;
    for seed in seeds.clone() {
        let program = generate(flavour, seed);
        calls += program.nodes.len();
        let Err(why) = judge(&program, &devices, promise) else { continue };
        // A panic may have left the device in any state.
        let small = shrink(&program, |p| judge(p, &Devices::new(), promise).is_err());
        let now = judge(&small, &Devices::new(), promise).err();
        failures.push(format!(
            "{} {seed}: {why}\nshrunk: {}\n{small}",
            flavour.name,
            now.as_deref().unwrap_or("(does not fail on new devices)")
        ));
        if failures.len() >= 3 {
            break;
        }
    }
    // A generator that makes almost nothing would pass everything.
    let least = (seeds.end - seeds.start) as usize * flavour.calls / 2;
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(calls >= least, "only {calls} calls in {} programs", seeds.end - seeds.start);
}
