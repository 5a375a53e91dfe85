//! Seeds of datasets: given, or drawn from the global generator when the dataset is made.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fastrand::Rng;

use crate::data::codec::{Reader, Writer};
use crate::error::Result;
use crate::random::{self, fold_in};

/// A seed, and the number of passes that have drawn their numbers from it. Clones share both.
#[derive(Debug, Clone)]
pub(super) struct Seed(Arc<[AtomicU64; 2]>);

impl Seed {
    /// A missing seed is drawn here, in program order, and not by a thread that begins a pass.
    pub(super) fn new(seed: Option<u64>) -> Self {
        let seed = seed.unwrap_or_else(|| {
            let [key, counter, more] = random::global().split().state();
            key ^ counter.rotate_left(21) ^ more.rotate_left(42)
        });
        Seed(Arc::new([seed.into(), 0.into()]))
    }

    /// The numbers of the next pass; those of the first if all passes are to be equal.
    pub(super) fn begin(&self, alike: bool) -> Rng {
        let number = if alike { 0 } else { self.0[1].fetch_add(1, Ordering::Relaxed) };
        let seed = self.0[0].load(Ordering::Relaxed);
        let words = [seed as i32, (seed >> 32) as i32];
        let [a, b] = fold_in(fold_in(words, number as i32), (number >> 32) as i32);
        Rng::with_seed(u64::from(a as u32) << 32 | u64::from(b as u32))
    }

    /// Writes the seed and the number of passes, so that the passes after a resumed one have the numbers that they
    /// would have had.
    pub(super) fn save(&self, out: &mut Writer) {
        self.0.iter().for_each(|number| out.number(number.load(Ordering::Relaxed)));
    }

    pub(super) fn restore(&self, from: &mut Reader<'_>) -> Result<()> {
        for number in self.0.iter() {
            number.store(from.number()?, Ordering::Relaxed);
        }
        Ok(())
    }
}
