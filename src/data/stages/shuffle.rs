//! `shuffle`: elements in a random order, within a buffer.

use fastrand::Rng;

use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec, read_items, write_items};
use crate::data::seed::Seed;
use crate::data::stages::stage::{Input, Stage};
use crate::error::{Error, Result};
use crate::support::options::options;

options! {
    /// How [`Dataset::shuffle_with`] orders the elements.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ShuffleOptions {
        /// The seed; without one it is drawn from the global generator, which [`random::set_seed`](crate::random::set_seed)
        /// sets.
        seed: Option<u64> as impl Into<Option<u64>> = None,
        /// Whether each pass has its own order; if not, all have that of the first.
        reshuffle_each_iteration: bool = true,
    }
}

impl<T: Item> Dataset<T> {
    /// Returns the elements in a random order (`Dataset.shuffle`): a buffer holds `buffer_size` elements; each time one is
    /// drawn from it, the next element of the input replaces it.
    ///
    /// So the k-th element is one of the first k + `buffer_size`. With a buffer of 1 the order does not change; all orders are
    /// equally likely if the buffer holds all elements.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::{self, ShuffleOptions};
    /// let dataset = data::range(0..5).shuffle_with(5, ShuffleOptions::new().seed(1));
    /// let mut first: Vec<i64> = dataset.iter().collect::<wgrad::Result<_>>()?;
    /// let second: Vec<i64> = dataset.iter().collect::<wgrad::Result<_>>()?;
    /// assert_ne!(first, second);
    /// first.sort();
    /// assert_eq!(first, [0, 1, 2, 3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A buffer size of 0 is an [`Error::Data`] in place of the first element.
    #[must_use]
    pub fn shuffle(&self, buffer_size: usize) -> Dataset<T> {
        self.shuffle_with(buffer_size, ShuffleOptions::new())
    }

    /// As [`Dataset::shuffle`], with a seed, or with one order for all passes.
    #[must_use]
    pub fn shuffle_with(&self, buffer_size: usize, options: ShuffleOptions) -> Dataset<T> {
        if buffer_size == 0 {
            return Dataset::refused(Error::Data(
                "shuffle: buffer_size is 0; the buffer needs room for at least one element. To shuffle all, give the \
                 number of elements."
                    .into(),
            ));
        }
        self.stage(Shuffle {
            size: buffer_size,
            seed: Seed::new(options.seed),
            alike: !options.reshuffle_each_iteration,
            rng: Rng::with_seed(0),
            buffer: Vec::new(),
            ended: false,
        })
    }
}

#[derive(Clone)]
struct Shuffle<T> {
    size: usize,
    seed: Seed,
    alike: bool,
    /// The numbers of the pass.
    rng: Rng,
    buffer: Vec<T>,
    ended: bool,
}

impl<T: Item> Stage<T> for Shuffle<T> {
    type Out = T;

    fn name(&self) -> &'static str {
        "shuffle"
    }

    fn begin(&self) -> Self {
        Shuffle { rng: self.seed.begin(self.alike), ..self.clone() }
    }

    fn spec(&self, input: ItemSpec) -> ItemSpec {
        input
    }

    fn next(&mut self, input: &mut Input<T>) -> Option<Result<T>> {
        while !self.ended && self.buffer.len() < self.size {
            if input.stopped() {
                return None;
            }
            match input.next() {
                Some(Ok(item)) => self.buffer.push(item),
                None => self.ended = true,
                error => return error,
            }
        }
        match self.buffer.len() {
            0 => None,
            count => Some(Ok(self.buffer.swap_remove(self.rng.usize(..count)))),
        }
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        out.number(self.rng.get_seed());
        self.seed.save(out);
        out.flag(self.ended);
        write_items(&self.buffer, out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        self.rng = Rng::with_seed(from.number()?);
        self.seed.restore(from)?;
        self.ended = from.flag()?;
        self.buffer = read_items(from)?;
        Ok(())
    }
}
