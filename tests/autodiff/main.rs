//! Tapes, gradients and their edges.

#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod edges;
mod extremes;
mod gradients;
mod second_order;
mod tape_calls;
mod tapes;

use support::compare::Random;
use wgrad::inventory::{Input, Values};
use wgrad::{Result, Tensor};

/// Random numbers for the inputs of cases.
struct Numbers(Random);

impl Numbers {
    fn new(seed: u64) -> Self {
        Numbers(Random(seed))
    }

    fn next(&mut self) -> f32 {
        self.0.next()
    }

    fn sign(&mut self) -> f32 {
        if self.next() < 0.5 { -1.0 } else { 1.0 }
    }

    /// A number whose size is from 0.5 to 1.5.
    fn away(&mut self) -> f64 {
        f64::from((0.5 + self.next()) * self.sign())
    }

    fn values(&mut self, (shape, values): Input) -> Vec<f32> {
        let n: usize = shape.iter().product();
        match values {
            Values::Within(low, high) => (0..n).map(|_| low + (high - low) * self.next()).collect(),
            Values::Away => (0..n).map(|_| self.sign() * (0.5 + self.next())).collect(),
            Values::Distinct(by) => {
                let mut places: Vec<usize> = (0..n).collect();
                for i in (1..n).rev() {
                    places.swap(i, (self.next() * (i + 1) as f32) as usize);
                }
                places.iter().map(|&at| (at as f32 - (n / 2) as f32) * 0.2 + by).collect()
            }
        }
    }

    fn of(&mut self, input: Input) -> Result<Tensor> {
        Tensor::from_slice(&self.values(input), input.0)
    }

    fn like(&mut self, x: &Tensor) -> Result<Tensor> {
        let numbers: Vec<f32> = (0..x.len()).map(|_| self.next() - 0.5).collect();
        Tensor::from_slice(&numbers, x.shape())
    }
}
