//! [`Dropout`]: leaves out elements at random while training.

use std::sync::OnceLock;

use super::{Layer, in_layer, named};
use crate::error::Result;
use crate::random::{self, Generator};
use crate::tensor::Tensor;

/// While training, elements become 0 with probability `rate` and the others `x / (1 - rate)`; else `x` itself.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{Layer, layers::Dropout};
/// let layer = Dropout::new(0.5).seed(1);
/// let x = tf::Tensor::ones([1000])?;
/// assert_eq!(layer.call(&x, false)?.to_vec::<f32>()?, [1.0; 1000]);
/// assert!(layer.call(&x, true)?.to_vec::<f32>()?.iter().all(|&y| y == 0.0 || y == 2.0));
/// # Ok(())
/// # }
/// ```
pub struct Dropout {
    name: String,
    rate: f32,
    /// Split from the global generator when it is needed first, where no seed was given.
    generator: OnceLock<Generator>,
}

impl Dropout {
    /// A layer that leaves out this part of the elements, at least 0 and below 1.
    pub fn new(rate: f32) -> Self {
        Dropout { name: "dropout".into(), rate, generator: OnceLock::new() }
    }

    /// Draws from a generator of this seed.
    pub fn seed(mut self, seed: u64) -> Self {
        self.generator = OnceLock::from(Generator::from_seed(seed));
        self
    }

    /// The layer's name.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    fn generator(&self) -> &Generator {
        self.generator.get_or_init(|| random::global().split())
    }
}

impl Layer for Dropout {
    named!();

    fn call(&self, x: &Tensor, training: bool) -> Result<Tensor> {
        if !training || self.rate == 0.0 {
            return Ok(x.clone());
        }
        in_layer(&self.name, x.dropout(self.rate, self.generator()))
    }

    fn generators(&self) -> Vec<&Generator> {
        vec![self.generator()]
    }
}
