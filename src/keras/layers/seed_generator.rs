//! [`SeedGenerator`]: the source of a layer's random numbers.

use std::sync::OnceLock;

use crate::random::replicated::for_all;
use crate::random::{self, Generator};
use crate::trackable::Parts;

/// A generator with a seed, or one that the first use splits from the global generator.
#[derive(Debug, Default)]
pub(crate) struct SeedGenerator {
    /// For the config.
    seed: Option<u64>,
    generator: OnceLock<Generator>,
}

impl SeedGenerator {
    pub(super) fn new(seed: u64) -> Self {
        SeedGenerator { seed: Some(seed), generator: OnceLock::from(Generator::from_seed(seed)) }
    }

    pub(super) fn seed(&self) -> Option<u64> {
        self.seed
    }

    pub(super) fn get(&self) -> &Generator {
        self.generator.get_or_init(|| for_all(|| random::global().split()))
    }

    /// Names the generator. Only a checkpoint creates it: if other walks did, they would change the state of the global
    /// generator.
    pub(super) fn track(&self, name: &str, parts: &mut Parts<'_>) {
        parts.generator(name, &|| self.get());
    }
}
