//! Random recurrences: two or three states, and a few statements repeated 10 to 300 times.

use wgrad as tf;
use wgrad::Tensor;

use crate::inputs::uniform;

/// A statement: a value for state `to`. Statements do not make numbers grow, or small differences much larger.
#[derive(Clone, Copy, Debug)]
struct Statement {
    kind: u32,
    to: usize,
    a: usize,
    b: usize,
    axis: i64,
}

/// The states after all iterations of the recurrence with this seed.
pub fn run(seed: u64) -> tf::Result<Vec<Tensor>> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let shape = [[1, 4, 8][rng.usize(..3)], [4, 6, 16][rng.usize(..3)]];
    let mut draw =
        |shape: [usize; 2]| Tensor::from_slice(&uniform(shape[0] * shape[1], rng.u64(..)), shape);
    let mut states = vec![draw(shape)?, draw(shape)?, draw(shape)?];
    let (drive, weights) = (draw(shape)?, draw([shape[1], shape[1]])? / shape[1] as f32);
    states.truncate(rng.usize(2..=3));
    // Log-uniform, so that small numbers of iterations are as frequent as large ones.
    let turns = (10.0 * 30f64.powf(rng.f64())).round() as usize;
    let statements: Vec<Statement> = (0..rng.usize(2..=6))
        .map(|_| Statement {
            kind: rng.u32(..10),
            to: rng.usize(..states.len()),
            a: rng.usize(..states.len()),
            b: rng.usize(..states.len()),
            axis: rng.i64(0..2),
        })
        .collect();
    for _ in 0..turns {
        for statement in &statements {
            states[statement.to] = statement.value(&states, &drive, &weights)?;
        }
        states.rotate_left(1);
    }
    Ok(states)
}

impl Statement {
    fn value(&self, states: &[Tensor], drive: &Tensor, weights: &Tensor) -> tf::Result<Tensor> {
        let (a, b, axis) = (&states[self.a], &states[self.b], self.axis);
        Ok(match self.kind {
            0 => (a + b) * 0.5,
            1 => a * b * 0.3 + b * 0.4 + drive * 0.3,
            2 => (a * 0.7 + b * 0.3).tanh()?,
            3 => (a * 0.6 + drive).tanh()?,
            4 => tf::where_(&a.greater(b)?, a, b)?,
            5 => tf::where_(&a.greater(0.0)?, a, &(a * 0.3))?,
            6 => roll(a, axis)?,
            7 => {
                (a - a.reduce_mean(wgrad::Axes::from(axis).keepdims(true))? * 0.5) * 0.6
                    + drive * 0.1
            }
            8 => b * 0.5 + a.reduce_max(wgrad::Axes::from(axis).keepdims(true))? * 0.5,
            _ => (a.matmul(weights)? + b * 0.5).tanh()?,
        })
    }
}

/// The tensor rotated by one along `axis`.
fn roll(x: &Tensor, axis: i64) -> tf::Result<Tensor> {
    let len = x.shape()[axis as usize];
    if len == 1 {
        return Ok(x.clone());
    }
    let parts = x.split_sizes(&[len - 1, 1], axis)?;
    tf::concat([&parts[1], &parts[0]], axis)
}
