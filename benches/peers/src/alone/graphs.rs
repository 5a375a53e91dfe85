//! Graphs of any size, of kinds that are hard for planners.

use wgrad as tf;
use wgrad::{Device, Tensor, Variable};

use crate::Result;
use crate::inputs::uniform;

/// The kinds and their descriptions.
pub const KINDS: [(&str, &str); 5] = [
    ("chain", "chain of tanh, sums and products"),
    ("diamonds", "ladder of diamonds, y = tanh(y) + sigmoid(y)"),
    ("net", "deep net of small dense layers, with gradients"),
    ("sum", "sum of many small values, one after another"),
    ("dag", "random graph"),
];

/// A graph of about `nodes` pending nodes on `device`. The returned tensors hold its outputs.
pub fn graph(device: &Device, kind: &str, nodes: usize) -> Result<Vec<Tensor>> {
    let made = Made { device, before: device.stats().nodes, nodes };
    match kind {
        "chain" => chain(&made),
        "diamonds" => diamonds(&made),
        "net" => net(&made),
        "sum" => sum(&made),
        "dag" => dag(&made),
        _ => Err(format!("there is no kind of graph called `{kind}`").into()),
    }
}

/// The part of a graph that was built so far.
struct Made<'a> {
    device: &'a Device,
    before: u64,
    nodes: usize,
}

impl Made<'_> {
    fn so_far(&self) -> usize {
        (self.device.stats().nodes - self.before) as usize
    }

    fn enough(&self) -> bool {
        self.so_far() >= self.nodes
    }
}

fn values(shape: [usize; 2], seed: u64) -> Result<Tensor> {
    Ok(Tensor::from_slice(&uniform(shape[0] * shape[1], seed), shape)?)
}

fn chain(made: &Made) -> Result<Vec<Tensor>> {
    let [mut y, b, c] = [values([8, 8], 1)?, values([8, 8], 2)?, values([1, 8], 3)?];
    while !made.enough() {
        y = ((y.tanh()? + &b) * &c + 0.1) * 0.9;
    }
    Ok(vec![y])
}

fn diamonds(made: &Made) -> Result<Vec<Tensor>> {
    let mut y = values([8, 8], 1)?;
    while !made.enough() {
        y = y.tanh()? + y.sigmoid()?;
    }
    Ok(vec![y])
}

fn net(made: &Made) -> Result<Vec<Tensor>> {
    let gradients = |layers: usize| -> Result<Vec<Tensor>> {
        let mut parameters = Vec::new();
        for layer in 0..layers as u64 {
            parameters.push(Variable::new(&values([16, 16], 2 * layer)?));
            parameters.push(Variable::new(&values([1, 16], 2 * layer + 1)?));
        }
        let mut y = values([4, 16], 7)?;
        let tape = tf::GradientTape::new();
        for layer in parameters.chunks(2) {
            y = (y.matmul(&layer[0])? * 0.5 + &layer[1]).relu()?;
        }
        let loss = y.square()?.reduce_mean(())?;
        let mut wanted = tape.required_gradient(&loss, &parameters)?;
        wanted.push(loss);
        Ok(wanted)
    };
    // Counts a layer's nodes in a graph whose results are not held, so that it never runs.
    let count = |layers| -> Result<usize> {
        let before = made.so_far();
        drop(gradients(layers)?);
        Ok(made.so_far() - before)
    };
    let (few, more) = (count(2)?, count(12)?);
    let each = (more - few) / 10;
    gradients(2 + made.nodes.saturating_sub(few) / each)
}

fn sum(made: &Made) -> Result<Vec<Tensor>> {
    let mut total = values([4, 4], 0)?;
    let mut seed = 0;
    while !made.enough() {
        seed += 1;
        total = total + values([4, 4], seed)?.tanh()?;
    }
    Ok(vec![total])
}

/// Sixteen matrices and eight columns. Each node replaces one of them with a value computed from it, so that the results depend
/// on every node.
fn dag(made: &Made) -> Result<Vec<Tensor>> {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut squares = (0..16).map(|i| values([8, 8], i)).collect::<Result<Vec<_>>>()?;
    let mut columns = (0..8).map(|i| values([8, 1], 16 + i)).collect::<Result<Vec<_>>>()?;
    while !made.enough() {
        let i = rng.usize(..squares.len());
        let (x, other) = (&squares[i], &squares[rng.usize(..squares.len())]);
        let k = rng.usize(..columns.len());
        squares[i] = match rng.u32(..12) {
            0 => x.tanh()?,
            1 => x.sigmoid()?,
            2 => x.abs()? * 0.5,
            3 | 4 => (x + other) * 0.5,
            5 => x * other,
            6 => x.maximum(other)?,
            7 => x + &columns[k],
            8 => x.matmul(other)? * 0.125,
            9 => {
                let cut = rng.usize(1..8);
                tf::concat(
                    [&x.slice(&[cut, 0], &[-1, -1])?, &x.slice(&[0, 0], &[cut as i64, -1])?],
                    0,
                )?
            }
            10 => x - x.reduce_mean(wgrad::Axes::from(rng.i64(0..2)).keepdims(true))?,
            _ => {
                columns[k] =
                    (x.reduce_sum(wgrad::Axes::from(1).keepdims(true))? + &columns[k]) * 0.1;
                continue;
            }
        };
    }
    squares.extend(columns);
    Ok(squares)
}
