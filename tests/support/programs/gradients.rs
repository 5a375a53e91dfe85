//! Judges gradients of programs: against central differences of the evaluation in `f64`, and fused kernels against
//! another process that runs every op by itself.

use std::fmt::Write;
use std::process::Command;

use wgrad::Device;

use super::check::{differs, guarded};
use super::eval::{Against, Evaluator};
use super::flavours::Flavour;
use super::generate::generate_loss;
use super::run::{Mode, Outcome, is_source, run_with_gradients};
use super::shrink::shrink;
use super::{Op, Program};

/// The last value of `program`, with an element of an input moved.
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

/// Central differences in `f64` for some elements of each input: (input, element, derivative). Where two steps give
/// two answers there is a kink or a jump; those are counted in the second number.
fn differences(program: &Program) -> (Vec<(usize, usize, f64)>, usize) {
    let (mut found, mut kinks) = (Vec::new(), 0);
    for i in (0..program.nodes.len()).filter(|&i| is_source(program, i)) {
        let Op::Input { values, .. } = &program.nodes[i].op else { continue };
        // All of a small input, else every so many.
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

/// The largest gradient, by which errors are measured: sums cancel.
fn scale(outcome: &Outcome) -> f64 {
    let all = outcome.gradients.iter().flat_map(|(_, g)| &g.v);
    all.fold(1.0, |m, g| if g.is_finite() { m.max(g.abs()) } else { m })
}

/// Runs `program`, and compares its gradients with differences.
fn judge(program: &Program, device: &Device) -> Result<(Outcome, [usize; 2]), String> {
    let fused = guarded("fused", || run_with_gradients(program, device, Mode::Fused))?;
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
    let again = guarded("fused again", || run_with_gradients(program, device, Mode::Fused))?;
    for ((i, a), (_, b)) in fused.gradients.iter().zip(&again.gradients) {
        if let Some(words) = differs(&b.v, &a.v, |_| 0.0) {
            return Err(format!("the second time the gradient of v{i} has other bits: {words}"));
        }
    }
    Ok((fused, [found.len(), kinks]))
}

/// What a process writes for another to compare: a line for each gradient.
fn lines(seed: u64, outcome: &Outcome) -> String {
    let mut text = String::new();
    for (i, gradient) in &outcome.gradients {
        let bits: Vec<String> =
            gradient.v.iter().map(|v| format!("{:08x}", (*v as f32).to_bits())).collect();
        let _ = writeln!(text, "gradient {seed} {i} {}", bits.join(","));
    }
    text
}

/// Judges programs of a flavour.
pub fn check(flavour: Flavour, seeds: std::ops::Range<u64>, child: &str) {
    let device = Device::new().unwrap();
    let (mut failures, mut elements, mut kinks) = (Vec::new(), 0, 0);
    let mut outcomes = Vec::new();
    for seed in seeds.clone() {
        let program = generate_loss(flavour, seed);
        assert!(!program.nodes.is_empty(), "seed {seed} gives no program");
        match judge(&program, &device) {
            Ok((outcome, [checked, skipped])) => {
                elements += checked;
                kinks += skipped;
                outcomes.push((seed, outcome));
            }
            Err(why) => {
                let fails = |p: &Program| {
                    let scalar = p.nodes.last().is_some_and(|node| node.wanted);
                    scalar && loss(p, None).is_some() && judge(p, &Device::new().unwrap()).is_err()
                };
                let small = shrink(&program, fails);
                let now = judge(&small, &Device::new().unwrap()).err().unwrap_or_default();
                failures.push(format!("{} {seed}: {why}\nshrunk: {now}\n{small}", flavour.name));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    assert!(kinks * 5 < elements, "{kinks} of {elements} differences are at kinks");

    // Each op by itself, in a process that is told so.
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", child, "--ignored", "--nocapture", "--test-threads=1"])
        .env("WGRAD_EAGER_SYNC", "1")
        .env("WGRAD_FUSION", "0")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{child}: {text}");
    let mut compared = 0;
    for (seed, outcome) in &outcomes {
        let bound = 1e-4 * scale(outcome);
        for (i, gradient) in &outcome.gradients {
            let head = format!("gradient {seed} {i} ");
            let bits = text
                .lines()
                .find_map(|line| line.split_once(&head))
                .expect("every gradient is there")
                .1;
            let apart: Vec<f64> = bits
                .split(',')
                .filter(|word| !word.is_empty())
                .map(|word| f64::from(f32::from_bits(u32::from_str_radix(word, 16).unwrap())))
                .collect();
            assert_eq!(apart.len(), gradient.v.len());
            if let Some(words) = differs(&gradient.v, &apart, |_| bound) {
                let program = generate_loss(flavour, *seed);
                panic!(
                    "{} {seed}: fused against one by one, v{i}: {words}\n{program}",
                    flavour.name
                );
            }
            compared += 1;
        }
    }
    assert!(compared > outcomes.len(), "only {compared} gradients were compared");
}

/// The other process: prints all gradients.
pub fn print(flavour: Flavour, seeds: std::ops::Range<u64>) {
    let device = Device::new().unwrap();
    for seed in seeds {
        let program = generate_loss(flavour, seed);
        let outcome = run_with_gradients(&program, &device, Mode::Apart).unwrap();
        print!("\n{}", lines(seed, &outcome));
    }
}
