//! [`Dropout`]: leaves out elements at random while training.

use std::sync::OnceLock;

use super::Layer;
use crate::error::Result;
use crate::keras::Context;
use crate::random::{self, Generator};
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable};

/// While training, elements become 0 with probability `rate` and the others `x / (1 - rate)`; else `x` itself.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{INFERENCE, Layer, TRAINING, layers::Dropout};
/// let layer = Dropout::new(0.5).seed(1);
/// let x = tf::Tensor::ones([1000])?;
/// assert_eq!(layer.call(&x, INFERENCE)?.to_vec::<f32>()?, [1.0; 1000]);
/// assert!(layer.call(&x, TRAINING)?.to_vec::<f32>()?.iter().all(|&y| y == 0.0 || y == 2.0));
/// # Ok(())
/// # }
/// ```
pub struct Dropout {
    rate: f32,
    /// Split from the global generator when it is needed first, where no seed was given.
    generator: OnceLock<Generator>,
}

impl Dropout {
    /// A layer that leaves out this part of the elements, at least 0 and below 1.
    pub fn new(rate: f32) -> Self {
        Dropout { rate, generator: OnceLock::new() }
    }

    /// Draws from a generator of this seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.generator = OnceLock::from(Generator::from_seed(seed));
        self
    }

    fn generator(&self) -> &Generator {
        self.generator.get_or_init(|| random::global().split())
    }
}

impl Trackable for Dropout {
    fn track(&self, parts: &mut Parts<'_>) {
        // Made for a checkpoint, and not by other walks, from which the global generator would then differ.
        parts.generator("generator", &|| self.generator());
    }
}

impl Layer for Dropout {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        if !cx.training() || self.rate == 0.0 {
            return Ok(x.clone());
        }
        x.dropout(self.rate, self.generator())
    }
}
