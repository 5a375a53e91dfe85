//! `shuffle`: elements in a random order, within a buffer.

use fastrand::Rng;

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::data::seed::Seed;
use crate::error::{Error, Result};
use crate::options::options;

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
                "shuffle: buffer_size is 0; the buffer needs a place for at least one element. To shuffle all, give the number \
                 of elements."
                    .into(),
            ));
        }
        Dataset::new(Shuffle {
            input: self.clone(),
            size: buffer_size,
            seed: Seed::new(options.seed),
            alike: !options.reshuffle_each_iteration,
        })
    }
}

struct Shuffle<T: Item> {
    input: Dataset<T>,
    size: usize,
    seed: Seed,
    alike: bool,
}

struct ShuffleStream<T> {
    input: BoxStream<T>,
    pass: Pass,
    size: usize,
    seed: Seed,
    rng: Rng,
    buffer: Vec<T>,
    ended: bool,
}

impl<T: Item> Node<T> for Shuffle<T> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<T>> {
        Ok(Box::new(ShuffleStream {
            input: self.input.open(pass)?,
            pass: pass.clone(),
            size: self.size,
            seed: self.seed.clone(),
            rng: self.seed.begin(self.alike),
            buffer: Vec::new(),
            ended: false,
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality()
    }

    fn spec(&self) -> ItemSpec {
        self.input.element_spec()
    }
}

impl<T: Item> Stream<T> for ShuffleStream<T> {
    fn next(&mut self) -> Option<Result<T>> {
        while !self.ended && self.buffer.len() < self.size {
            if self.pass.stopped() {
                return None;
            }
            match self.input.next() {
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
        write_name("shuffle", out);
        out.number(self.rng.get_seed());
        self.seed.save(out);
        out.flag(self.ended);
        out.number(self.buffer.len() as u64);
        self.buffer.iter().try_for_each(|item| item.write(out))?;
        self.input.save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("shuffle", from)?;
        self.rng = Rng::with_seed(from.number()?);
        self.seed.restore(from)?;
        self.ended = from.flag()?;
        for _ in 0..from.count(1)? {
            self.buffer.push(T::read(from)?);
        }
        self.input.restore(from)
    }
}
