//! Makes a failing program smaller: replaces parts of it with their values while it still fails.

use wgrad::DType;

use super::eval::{Against, Evaluator};
use super::{Op, Program};

/// The maximum number of programs to try.
const TRIES: usize = 160;

pub fn shrink(program: &Program, fails: impl Fn(&Program) -> bool) -> Program {
    let mut best = program.clone();
    let mut tries = 0;
    let mut attempt = |candidate: Program, best: &mut Program| -> bool {
        tries += 1;
        let better = tries <= TRIES && fails(&candidate);
        if better {
            *best = candidate;
        }
        better
    };
    // One wanted value, if that is enough.
    for i in (0..best.nodes.len()).rev() {
        if best.nodes[i].wanted {
            let mut one = best.clone();
            one.nodes.iter_mut().enumerate().for_each(|(k, node)| node.wanted = k == i);
            if attempt(without_dead(&one), &mut best) {
                break;
            }
        }
    }
    let swept = without_dead(&best);
    attempt(swept, &mut best);
    let mut plain = best.clone();
    plain.nodes.iter_mut().for_each(|node| node.flush = false);
    attempt(plain, &mut best);
    loop {
        let before = best.nodes.len();
        // Large cuts first: the first half of the program replaced with its values, then single calls.
        for share in [2, 4] {
            let cut: Vec<usize> = (0..best.nodes.len() * (share - 1) / share).collect();
            if let Some(candidate) = given(&best, &cut) {
                attempt(candidate, &mut best);
            }
        }
        let mut i = best.nodes.len();
        while i > 0 {
            i -= 1;
            if i >= best.nodes.len() {
                continue;
            }
            if best.nodes[i].wanted {
                let mut fewer = best.clone();
                fewer.nodes[i].wanted = false;
                if fewer.nodes.iter().any(|node| node.wanted)
                    && attempt(without_dead(&fewer), &mut best)
                {
                    continue;
                }
            }
            if let Some(candidate) = given(&best, &[i]) {
                attempt(candidate, &mut best);
            }
        }
        if best.nodes.len() == before {
            break;
        }
    }
    for i in 0..best.nodes.len() {
        let mut candidate = best.clone();
        if let Op::Input { values, dtype: DType::F32, .. } = &mut candidate.nodes[i].op {
            values.iter_mut().enumerate().for_each(|(k, v)| *v = (k * 7 % 13) as f64 / 4.0 - 1.5);
            attempt(candidate, &mut best);
        }
    }
    best
}

/// The program with these calls replaced by uploads of their values, without unused calls.
fn given(program: &Program, calls: &[usize]) -> Option<Program> {
    let evaluator = Evaluator { against: Against::Truth, strict: false };
    let values = evaluator.run(program)?;
    let mut candidate = program.clone();
    let mut changed = false;
    for &i in calls {
        let node = &mut candidate.nodes[i];
        let leaf = matches!(node.op, Op::Input { .. } | Op::Full { .. } | Op::Range { .. });
        if leaf || node.wanted || values[i].dtype == DType::F16 {
            continue;
        }
        let exact = |v: &f64| f64::from(*v as f32);
        node.op = Op::Input {
            values: values[i].v.iter().map(exact).collect(),
            shape: values[i].shape.clone(),
            dtype: values[i].dtype,
            kept: false,
        };
        node.inputs.clear();
        changed = true;
    }
    changed.then(|| without_dead(&candidate))
}

/// The program without calls that no wanted value depends on.
pub fn without_dead(program: &Program) -> Program {
    let n = program.nodes.len();
    let mut live = vec![false; n];
    for i in (0..n).rev() {
        live[i] |= program.nodes[i].wanted;
        if live[i] {
            program.nodes[i].inputs.iter().for_each(|&k| live[k] = true);
        }
    }
    let mut place = vec![0; n];
    let mut swept = Program::default();
    for i in (0..n).filter(|&i| live[i]) {
        place[i] = swept.nodes.len();
        let mut node = program.nodes[i].clone();
        node.inputs.iter_mut().for_each(|k| *k = place[*k]);
        swept.nodes.push(node);
    }
    swept
}
