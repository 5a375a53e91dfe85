//! Judges gradients of programs: compares them with central differences of the evaluation in `f64`, and fused kernels with
//! single ops.

use super::check::{between, guarded};
use super::eval::{Against, Evaluator};
use super::flavours::Flavour;
use super::generate::generate_loss;
use super::run::{Devices, Mode, Outcome, is_source, run_with_gradients};
use super::shrink::shrink;
use super::{Op, Program};

/// The last value of `program` after changing an element of an input.
fn loss(program: &Program, moved: Option<(usize, usize, f64)>) -> Option<f64> {
    let evaluator = Evaluator { against: Against::Twin, strict: false };
    let Some((i, k, by)) = moved else {
        return evaluator.run(program)?.last().map(|y| y.v[0]);
    };
    let mut program = program.clone();
    if let Op::Input { values, .. } = &mut program.nodes[i].op {
        values[k] += by;
    }
    evaluator.run(&program)?.last().map(|y| y.v[0])
}

/// Central differences in `f64` for some elements of each input: (input, element, derivative). If two step sizes give two
/// results, there is a kink or a jump; those are counted in the second number.
fn differences(program: &Program) -> (Vec<(usize, usize, f64)>, usize) {
    let (mut found, mut kinks) = (Vec::new(), 0);
    for i in (0..program.nodes.len()).filter(|&i| is_source(program, i)) {
        let Op::Input { values, .. } = &program.nodes[i].op else { continue };
        // All elements of a small input, else every n-th.
        for k in (0..values.len()).step_by(values.len().div_ceil(8).max(1)) {
            let slope = |h: f64| {
                Some(
                    (loss(program, Some((i, k, h)))? - loss(program, Some((i, k, -h)))?)
                        / (2.0 * h),
                )
            };
            match (slope(1e-4), slope(5e-5)) {
                (Some(a), Some(b)) if (a - b).abs() <= 1e-5 * (1.0 + a.abs()) => {
                    found.push((i, k, b))
                }
                _ => kinks += 1,
            }
        }
    }
    (found, kinks)
}

/// The largest gradient, which errors are relative to: sums cancel.
fn scale(outcome: &Outcome) -> f64 {
    let all = outcome.gradients.iter().flat_map(|(_, g)| &g.v);
    all.fold(1.0, |m, g| if g.is_finite() { m.max(g.abs()) } else { m })
}

/// Runs `program` fused, twice, and op by op, and compares its gradients. Counts the central differences, and the kinks.
fn judge(program: &Program, devices: &Devices) -> Result<[usize; 2], String> {
    let fused = guarded("fused", || run_with_gradients(program, devices, Mode::Fused))?;
    let (found, kinks) = differences(program);
    let scale = scale(&fused);
    for &(i, k, want) in &found {
        // An input that the loss does not depend on has no gradient.
        let got = fused.gradients.iter().find(|(node, _)| *node == i).map_or(0.0, |(_, g)| g.v[k]);
        if (got - want).is_nan() || (got - want).abs() > 1e-3 * scale {
            return Err(format!(
                "the gradient of v{i}[{k}] is {got}, differences give {want}, of at most {scale}"
            ));
        }
    }
    let again = guarded("fused again", || run_with_gradients(program, devices, Mode::Fused))?;
    between("fused again, of the same bits", &again.gradients, &fused.gradients, |_, _| 0.0)?;
    // Rounding errors of some tens of calls, each of a few units of 2^-24, with terms that may cancel.
    let apart = guarded("one by one", || run_with_gradients(program, devices, Mode::Apart))?;
    let bound = 5e-5 * scale;
    between("fused against one by one", &fused.gradients, &apart.gradients, |_, _| bound)?;
    Ok([found.len(), kinks])
}

/// Judges programs of a flavour; shrinks and prints those that fail.
pub fn check(flavour: Flavour, seeds: std::ops::Range<u64>) {
    let devices = Devices::new();
    let (mut failures, mut elements, mut kinks) = (Vec::new(), 0, 0);
    for seed in seeds {
        let program = generate_loss(flavour, seed);
        assert!(!program.nodes.is_empty(), "seed {seed} gives no program");
        match judge(&program, &devices) {
            Ok([checked, skipped]) => {
                elements += checked;
                kinks += skipped;
            }
            Err(why) => {
                let fails = |p: &Program| {
                    let scalar = p.nodes.last().is_some_and(|node| node.wanted);
                    scalar && loss(p, None).is_some() && judge(p, &Devices::new()).is_err()
                };
                let small = shrink(&program, fails);
                let now = judge(&small, &Devices::new()).err().unwrap_or_default();
                failures.push(format!("{} {seed}: {why}\nshrunk: {now}\n{small}", flavour.name));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(kinks * 5 < elements, "{kinks} of {elements} differences are at kinks");
}
