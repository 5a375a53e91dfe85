//! The network, its training, and its losses, which arrive without a wait.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use wgrad as tf;
use wgrad::keras::layers::Dense;
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::prelude::*;

use crate::points::Points;

/// A value that the GPU has not returned yet.
type Arriving = Pin<Box<dyn Future<Output = tf::Result<Vec<f32>>>>>;

pub struct Learner {
    layers: Sequential,
    adam: Adam,
    /// Losses of steps that no read has requested yet.
    steps: Vec<Tensor>,
    arriving: Option<Arriving>,
    /// The losses that have arrived, one for each step.
    pub losses: Vec<f32>,
}

impl Learner {
    /// A new network with two hidden layers.
    pub fn new(units: usize, learning_rate: f32) -> Self {
        let layers = Sequential::new()
            .add(Dense::new(units).activation(Activation::Tanh))
            .add(Dense::new(units).activation(Activation::Tanh))
            .add(Dense::new(1));
        Learner {
            layers,
            adam: Adam::new(learning_rate),
            steps: Vec::new(),
            arriving: None,
            losses: Vec::new(),
        }
    }

    /// Makes a training step with points `[N,2]` and classes `[N,1]`.
    pub fn learn(
        &mut self,
        places: &Tensor,
        classes: &Tensor,
        learning_rate: f32,
    ) -> tf::Result<()> {
        self.adam.set_learning_rate(learning_rate)?;
        let tape = tf::GradientTape::new();
        let logits = self.layers.call(places, TRAINING)?;
        let loss = tf::sigmoid_cross_entropy_with_logits(classes, &logits)?.mean()?;
        self.adam.minimize(&loss, tape, &self.layers)?;
        self.steps.push(loss);
        Ok(())
    }

    /// The probability of class 1 at places `[N,2]`.
    pub fn predict(&self, places: &Tensor) -> tf::Result<Tensor> {
        self.layers.call(places, INFERENCE)?.sigmoid()
    }

    /// Takes losses that have arrived, and requests those of later steps. It does not wait: `item` would, and the frame with it.
    pub fn receive(&mut self) -> tf::Result<()> {
        if let Some(arriving) = &mut self.arriving {
            // It is called in every frame, so nobody has to wake it.
            let Poll::Ready(losses) =
                arriving.as_mut().poll(&mut Context::from_waker(Waker::noop()))
            else {
                return Ok(());
            };
            self.arriving = None;
            self.losses.extend(losses?);
        }
        if !self.steps.is_empty() {
            let losses = tf::stack(std::mem::take(&mut self.steps), 0)?;
            self.arriving = Some(Box::pin(async move { losses.to_vec_async::<f32>().await }));
        }
        Ok(())
    }

    /// Waits for the losses of all steps.
    pub fn receive_all(&mut self) -> tf::Result<()> {
        while self.arriving.is_some() || !self.steps.is_empty() {
            if let Some(arriving) = self.arriving.take() {
                self.losses.extend(pollster::block_on(arriving)?);
            }
            self.receive()?;
        }
        Ok(())
    }
}

/// The points as tensors `[N,2]` and `[N,1]`.
pub fn tensors(points: &Points) -> tf::Result<(Tensor, Tensor)> {
    let count = points.places.len();
    let places = Tensor::from_slice(points.places.as_flattened(), [count, 2])?;
    Ok((places, Tensor::from_slice(&points.classes, [count, 1])?))
}
