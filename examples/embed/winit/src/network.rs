//! The network: it sees the water of the last two frames and predicts that of the present one.

use std::collections::VecDeque;

use wgrad as tf;
use wgrad::keras::layers::Conv2D;
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::prelude::*;

/// Frames whose losses are averaged at the start and at the end.
const AVERAGED: usize = 20;

pub struct Network {
    layers: Sequential,
    adam: Adam,
    /// The losses of the first frames, and of the last ones.
    first: Vec<Tensor>,
    last: VecDeque<Tensor>,
}

impl Network {
    pub fn new() -> Self {
        let layers = Sequential::new()
            .add(Conv2D::new(24, [3, 3]).padding(tf::Padding::Same).activation(Activation::Tanh))
            .add(Conv2D::new(1, [1, 1]));
        Network { layers, adam: Adam::new(0.01), first: Vec::new(), last: VecDeque::new() }
    }

    /// Predicts the heights `[1,H,W,1]` that follow those of two frames.
    pub fn predict(&self, now: &Tensor, before: &Tensor, speed: &Tensor) -> tf::Result<Tensor> {
        self.layers.call(&tf::concat([now, before, speed], -1)?, TRAINING)
    }

    /// Makes a training step, and returns the prediction before it.
    pub fn learn(
        &mut self,
        next: &Tensor,
        now: &Tensor,
        before: &Tensor,
        speed: &Tensor,
    ) -> tf::Result<Tensor> {
        let tape = tf::GradientTape::new();
        let predicted = self.predict(now, before, speed)?;
        let loss = predicted.subtract(next)?.square()?.mean()?;
        self.adam.minimize(&loss, tape, &self.layers)?;
        // Reading a loss would wait for the GPU, so they are read at the end.
        if self.first.len() < AVERAGED {
            self.first.push(loss.clone());
        }
        if self.last.len() == AVERAGED {
            self.last.pop_front();
        }
        self.last.push_back(loss);
        Ok(predicted)
    }

    /// The mean loss of the first and of the last frames; `None` if there was no training.
    pub fn losses(&self) -> tf::Result<Option<[f32; 2]>> {
        if self.first.is_empty() {
            return Ok(None);
        }
        let last: Vec<&Tensor> = self.last.iter().collect();
        let first = tf::stack(&self.first, 0)?.mean()?.item::<f32>()?;
        Ok(Some([first, tf::stack(last, 0)?.mean()?.item::<f32>()?]))
    }
}
