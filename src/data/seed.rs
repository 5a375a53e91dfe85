//! Seeds of datasets: given, or taken from the global generator at the first pass.

use std::sync::OnceLock;

use fastrand::Rng;

use crate::random::{self, fold_in};

/// A seed.
#[derive(Debug, Clone, Default)]
pub(super) struct Seed(OnceLock<u64>);

impl Seed {
    pub(super) fn new(seed: Option<u64>) -> Self {
        Seed(seed.map_or_else(OnceLock::new, OnceLock::from))
    }

    /// The seed; the first call draws it if none was given.
    pub(super) fn get(&self) -> u64 {
        *self.0.get_or_init(|| {
            let [key, counter, more] = random::global().split().state();
            key ^ counter.rotate_left(21) ^ more.rotate_left(42)
        })
    }
}

/// The numbers of pass `number` of a seed.
pub(super) fn rng(seed: u64, number: u64) -> Rng {
    let words = [seed as i32, (seed >> 32) as i32];
    let [a, b] = fold_in(fold_in(words, number as i32), (number >> 32) as i32);
    Rng::with_seed(u64::from(a as u32) << 32 | u64::from(b as u32))
}
