//! [`Dropout`]: drops elements at random while training.

use std::sync::OnceLock;

use super::Layer;
use crate::error::Result;
use crate::keras::Context;
use crate::random::{self, Generator};
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable};

/// In training, an element `x` becomes 0 with probability `rate` and else `x / (1 - rate)`; in inference it stays `x`.
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
    /// Without a seed, the first use splits this from the global generator.
    generator: OnceLock<Generator>,
}

impl Dropout {
    /// A layer that drops elements with probability `rate`, at least 0 and below 1.
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
        // Only a checkpoint makes the generator; if other walks did, the global generator would differ afterwards.
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
