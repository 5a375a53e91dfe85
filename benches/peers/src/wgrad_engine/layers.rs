//! Training steps of a layer in wgrad.

use std::time::Duration;

use wgrad as tf;
use wgrad::keras::layers::{Dense, Layer, LayerNormalization, Lstm, MultiHeadAttention};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Context, TRAINING};
use wgrad::{Device, Tensor, Trackable};

use crate::Result;
use crate::cases::LayerStep;
use crate::child::{Prepared, timed};
use crate::inputs;

/// A transformer block, normalized after attention and after the dense layers.
#[derive(Trackable)]
struct Block {
    attention: MultiHeadAttention,
    norm_1: LayerNormalization,
    inner: Dense,
    outer: Dense,
    norm_2: LayerNormalization,
}

impl Layer for Block {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> tf::Result<Tensor> {
        let x = self.norm_1.call(&x.add(self.attention.call(x, cx)?)?, cx)?;
        let y = self.outer.call(&self.inner.call(&x, cx)?, cx)?;
        self.norm_2.call(&x.add(y)?, cx)
    }
}

pub struct Training {
    device: Device,
    model: Box<dyn Layer>,
    adam: Adam,
    x: Tensor,
    target: Tensor,
}

impl Training {
    pub fn new(device: Device, step: LayerStep) -> Result<Self> {
        let model: Box<dyn Layer> = match step {
            LayerStep::Lstm { units, .. } => {
                Box::new(Lstm::new(units).use_bias(false).return_sequences(true))
            }
            LayerStep::Transformer { width, heads, hidden, .. } => {
                let norm = || LayerNormalization::new().epsilon(1e-5);
                Box::new(Block {
                    attention: MultiHeadAttention::new(heads, width / heads),
                    norm_1: norm(),
                    inner: Dense::new(hidden).activation(Activation::Gelu),
                    outer: Dense::new(width),
                    norm_2: norm(),
                })
            }
        };
        let (x, target) = step.shapes();
        let uniform = |shape: [usize; 3], seed| {
            Tensor::from_slice(&inputs::uniform(shape.iter().product(), seed), shape)
        };
        let (x, target) = (uniform(x, 1)?, uniform(target, 2)?);
        model.call(&x, TRAINING)?;
        // The heads' biases have two axes, and start at 0 like the others.
        let is_kernel =
            |shape: &[usize]| shape.len() > 2 || (shape.len() == 2 && shape[0] != step.heads());
        let variables = model.trainable_variables();
        let kernels = variables.iter().filter(|variable| is_kernel(variable.shape()));
        for (variable, seed) in kernels.zip(3..) {
            let len = variable.shape().iter().product();
            variable.assign(&Tensor::from_slice(&inputs::kernel(len, seed), variable.shape())?)?;
        }
        let adam = Adam::new(inputs::LEARNING_RATE).epsilon(f64::from(inputs::EPSILON));
        Ok(Self { device, model, adam, x, target })
    }

    fn step(&mut self) -> Result<f32> {
        let tape = tf::GradientTape::new();
        let y = self.model.call(&self.x, TRAINING)?;
        let loss = y.subtract(&self.target)?.square()?.reduce_mean(())?;
        self.adam.minimize(&loss, tape, &self.model)?;
        let value = loss.item::<f32>()?;
        self.device.synchronize()?;
        Ok(value)
    }
}

impl Prepared for Training {
    fn run(&mut self) -> Result<Duration> {
        let (time, loss) = timed(|| self.step())?;
        if !loss.is_finite() {
            return Err(format!("the loss became {loss}").into());
        }
        Ok(time)
    }

    fn check(&mut self) -> Result<Vec<f64>> {
        (0..3).map(|_| Ok(f64::from(self.step()?))).collect()
    }

    fn device_bytes(&self) -> Option<u64> {
        Some(self.device.stats().peak_bytes)
    }
}
