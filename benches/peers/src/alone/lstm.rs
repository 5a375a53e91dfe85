//! A manual LSTM with 16 hidden units, 8 features and a batch of 4; the LSTM layer with 64 units, 32 features and a batch of
//! 32; and their speed when every batch has a different length.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wgrad as tf;
use wgrad::keras::layers::{self, Layer};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Sequential, TRAINING};
use wgrad::{Device, Tensor, Variable};

use crate::Result;
use crate::inputs::uniform;

const HIDDEN: usize = 16;
const FEATURES: usize = 8;
pub const BATCH: usize = 4;
/// The range of random lengths, and the fixed length.
const LENGTHS: std::ops::RangeInclusive<usize> = 5..=40;
const FIXED: usize = 22;
const RATE: f32 = 0.1;

/// The weights of the input and of the state, and the bias: four gates next to each other.
pub struct Lstm {
    pub parameters: [Variable; 3],
}

impl Lstm {
    pub fn new() -> tf::Result<Self> {
        let weights = |rows: usize, seed| {
            let values: Vec<f32> =
                uniform(rows * 4 * HIDDEN, seed).iter().map(|w| w * 0.4).collect();
            Ok(Variable::new(&Tensor::from_slice(&values, [rows, 4 * HIDDEN])?))
        };
        let bias = Variable::new(&Tensor::zeros([4 * HIDDEN])?);
        Ok(Lstm { parameters: [weights(FEATURES, 1)?, weights(HIDDEN, 2)?, bias] })
    }

    pub fn input(steps: usize, batch: usize, seed: u64) -> tf::Result<Tensor> {
        Tensor::from_slice(&uniform(batch * steps * FEATURES, seed), [batch, steps, FEATURES])
    }

    /// The mean of the squares of all states.
    pub fn loss(&self, x: &Tensor) -> tf::Result<Tensor> {
        let [w, u, b] = &self.parameters;
        let (batch, steps) = (x.shape()[0], x.shape()[1]);
        let mut h = Tensor::zeros([batch, HIDDEN])?;
        let mut c = Tensor::zeros([batch, HIDDEN])?;
        let mut total = Tensor::zeros([])?;
        for t in 0..steps {
            let now = x.slice(&[0, t, 0], &[-1, 1, -1])?.squeeze([1])?;
            let gates = now.matmul(w)? + h.matmul(u)? + b;
            let gates = gates.split(4, 1)?;
            let (i, f, o) = (gates[0].sigmoid()?, gates[1].sigmoid()?, gates[2].sigmoid()?);
            c = f * c + i * gates[3].tanh()?;
            h = o * c.tanh()?;
            total = total + h.square()?.reduce_mean(())?;
        }
        Ok(total / steps as f32)
    }

    /// A step from a batch on the host to the loss on the host.
    fn step(&self, steps: usize, seed: u64, gradients: bool) -> tf::Result<f32> {
        let x = Self::input(steps, BATCH, seed)?;
        if !gradients {
            return self.loss(&x)?.item::<f32>();
        }
        let tape = tf::GradientTape::new();
        let loss = self.loss(&x)?;
        let gradients = tape.required_gradient(&loss, self.parameters.as_slice())?;
        for (parameter, gradient) in self.parameters.iter().zip(gradients) {
            parameter.assign_sub(gradient * RATE)?;
        }
        loss.item::<f32>()
    }
}

/// The first step of a process, 28 time steps with gradients and the update.
pub fn first_step(device: &Device) -> Result<Value> {
    let began = Instant::now();
    let loss = Lstm::new()?.step(28, 1, true)?;
    let seconds = began.elapsed().as_secs_f64();
    let stats = device.stats();
    Ok(json!({
        "seconds": seconds, "loss": loss, "pipelines": stats.pipelines, "plans": stats.plan_misses,
    }))
}

/// The LSTM layer and a dense layer, trained by Adam.
struct Model {
    network: Sequential,
    adam: Adam,
    /// Lengths are rounded up to a multiple, and a mask marks the real steps.
    bucket: usize,
}

impl Model {
    const FEATURES: usize = 32;
    const BATCH: usize = 32;

    fn new(bucket: usize) -> Self {
        let network = Sequential::new().add(layers::Lstm::new(64)).add(layers::Dense::new(1));
        Model { network, adam: Adam::new(1e-3), bucket }
    }

    /// A step from a batch on the host to the loss on the host.
    fn step(&self, steps: usize, seed: u64) -> tf::Result<f32> {
        let length = steps.next_multiple_of(self.bucket);
        let mut values = uniform(Self::BATCH * length * Self::FEATURES, seed);
        let mut mask = Vec::new();
        for row in values.chunks_mut(length * Self::FEATURES) {
            row[steps * Self::FEATURES..].fill(0.0);
            mask.extend((0..length).map(|step| step < steps));
        }
        let x = Tensor::from_slice(&values, [Self::BATCH, length, Self::FEATURES])?;
        let mask = Tensor::from_slice(&mask, [Self::BATCH, length])?;
        let cx = TRAINING.with_mask((self.bucket > 1).then_some(&mask));
        let tape = tf::GradientTape::new();
        let y = self.network.call(&x, cx)?;
        let loss = y.subtract(1.0)?.square()?.reduce_mean(())?;
        self.adam.minimize(&loss, tape, &self.network)?;
        loss.item::<f32>()
    }
}

/// `count` steps of random lengths, then steps of the fixed length. No step begins after `budget`.
pub fn lengths(device: &Device, what: &str, count: usize, budget: Duration) -> Result<Value> {
    let step: Box<dyn Fn(usize, u64) -> tf::Result<f32>> = match what {
        "layer" | "buckets" => {
            let model = Model::new(if what == "layer" { 1 } else { 8 });
            Box::new(move |steps, seed| model.step(steps, seed))
        }
        _ => {
            let (lstm, gradients) = (Lstm::new()?, what == "gradients");
            Box::new(move |steps, seed| lstm.step(steps, seed, gradients))
        }
    };
    let mut rng = fastrand::Rng::with_seed(1);
    let mut seen = Vec::new();
    let (mut first, mut later) = (Vec::new(), Vec::new());
    let began = Instant::now();
    for turn in 0..count {
        if began.elapsed() > budget {
            break;
        }
        let length = rng.usize(LENGTHS);
        let new = !seen.contains(&length);
        let start = Instant::now();
        let loss = step(length, turn as u64)?;
        let seconds = start.elapsed().as_secs_f64();
        if !loss.is_finite() {
            return Err(format!("the loss became {loss}").into());
        }
        if new {
            seen.push(length);
            first.push(seconds);
        } else {
            later.push(seconds);
        }
    }
    let drawn = device.stats();
    let mut fixed = Vec::new();
    for turn in 0..(count / 5).max(10) {
        let start = Instant::now();
        step(FIXED, turn as u64)?;
        fixed.push(start.elapsed().as_secs_f64());
    }
    // The first steps compiled kernels.
    let fixed = fixed.split_off(5);
    Ok(json!({
        "steps": first.len() + later.len(), "lengths": seen.len(),
        "pipelines": drawn.pipelines, "plans": drawn.plan_misses,
        "first": rate(&first), "later": rate(&later), "fixed": rate(&fixed),
    }))
}

/// Steps per second.
fn rate(seconds: &[f64]) -> Option<f64> {
    (!seconds.is_empty()).then(|| seconds.len() as f64 / seconds.iter().sum::<f64>())
}
