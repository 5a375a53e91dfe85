//! `random`: an infinite source of numbers.

use fastrand::Rng;

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::data::seed::Seed;
use crate::error::Result;
use crate::support::options::options;

options! {
    /// The numbers of [`random`].
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct RandomOptions {
        /// The seed; without one it is drawn from the global generator, which [`random::set_seed`](crate::random::set_seed)
        /// sets.
        seed: Option<u64> as impl Into<Option<u64>> = None,
        /// Whether each pass has different numbers; if not, all have those of the first.
        rerandomize_each_iteration: bool = false,
    }
}

/// Random integers from 0 to 2^32 - 1, without end (`Dataset.random`).
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::data::{self, RandomOptions};
/// let dice = data::random(RandomOptions::new().seed(1)).map(|n| n % 6 + 1).take(100);
/// let sixes = dice.reduce(0, |count, n| count + i64::from(n == 6))?;
/// assert!((5..35).contains(&sixes), "{sixes}");
/// # Ok(())
/// # }
/// ```
pub fn random(options: RandomOptions) -> Dataset<i64> {
    let seed = Seed::new(options.seed);
    Dataset::new(Random { seed, alike: !options.rerandomize_each_iteration })
}

struct Random {
    seed: Seed,
    alike: bool,
}

struct RandomStream {
    seed: Seed,
    rng: Rng,
}

impl Node<i64> for Random {
    fn open(&self, _: &Pass) -> Result<BoxStream<i64>> {
        Ok(Box::new(RandomStream { seed: self.seed.clone(), rng: self.seed.begin(self.alike) }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Infinite
    }
}

impl Stream<i64> for RandomStream {
    fn next(&mut self) -> Option<Result<i64>> {
        Some(Ok(i64::from(self.rng.u32(..))))
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name("random", out);
        out.number(self.rng.get_seed());
        self.seed.save(out);
        Ok(())
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("random", from)?;
        self.rng = Rng::with_seed(from.number()?);
        self.seed.restore(from)
    }
}
