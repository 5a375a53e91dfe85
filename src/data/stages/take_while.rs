//! `take_while` and `shard`: the elements until a predicate fails, and every n-th element.

use std::sync::Arc;

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{IntoItem, Item, ItemSpec};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::data::pool::guarded;
use crate::error::{Error, Result, message};

impl<T: Item> Dataset<T> {
    /// The elements up to the first for which `predicate` returns `false` (`Dataset.take_while`). An error, or a panic,
    /// replaces the element, and the predicate is called for the next one.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// let numbers = wgrad::data::range(0..9).take_while(|n| n * n < 10);
    /// assert_eq!(numbers.iter().collect::<wgrad::Result<Vec<i64>>>()?, [0, 1, 2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn take_while<R: IntoItem<Item = bool>>(
        &self,
        predicate: impl Fn(&T) -> R + Send + Sync + 'static,
    ) -> Dataset<T> {
        let predicate: Predicate<T> = Arc::new(move |item| predicate(item).into_item());
        Dataset::new(TakeWhile { input: self.clone(), predicate })
    }

    /// Element `index` and each `num_shards`-th after it (`Dataset.shard`), so that several programs share the elements. An
    /// error among the elements counts as one.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// let numbers = wgrad::data::range(0..9).shard(4, 1);
    /// assert_eq!(numbers.iter().collect::<wgrad::Result<Vec<i64>>>()?, [1, 5]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// If `index` is not less than `num_shards`, an [`Error::Data`] takes the place of the first element.
    #[must_use]
    pub fn shard(&self, num_shards: usize, index: usize) -> Dataset<T> {
        if index >= num_shards {
            return Dataset::refused(Error::Data(message!(
                "shard: index is {index} and num_shards {num_shards}; the index must be below the number."
            )));
        }
        Dataset::new(Shard { input: self.clone(), of: num_shards, index })
    }
}

type Predicate<T> = Arc<dyn Fn(&T) -> Result<bool> + Send + Sync>;

struct TakeWhile<T: Item> {
    input: Dataset<T>,
    predicate: Predicate<T>,
}

struct TakeWhileStream<T> {
    input: BoxStream<T>,
    predicate: Predicate<T>,
    ended: bool,
}

impl<T: Item> Node<T> for TakeWhile<T> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<T>> {
        let input = self.input.open(pass)?;
        Ok(Box::new(TakeWhileStream { input, predicate: self.predicate.clone(), ended: false }))
    }

    fn cardinality(&self) -> Cardinality {
        match self.input.cardinality() {
            Cardinality::Known(0) => Cardinality::Known(0),
            _ => Cardinality::Unknown,
        }
    }

    fn spec(&self) -> ItemSpec {
        self.input.element_spec()
    }
}

impl<T: Item> Stream<T> for TakeWhileStream<T> {
    fn next(&mut self) -> Option<Result<T>> {
        if self.ended {
            return None;
        }
        let item = match self.input.next()? {
            Ok(item) => item,
            error => return Some(error),
        };
        match guarded("take_while", || (self.predicate)(&item)) {
            Ok(true) => Some(Ok(item)),
            Ok(false) => {
                self.ended = true;
                None
            }
            Err(error) => Some(Err(error)),
        }
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name("take_while", out);
        out.flag(self.ended);
        self.input.save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("take_while", from)?;
        self.ended = from.flag()?;
        self.input.restore(from)
    }
}

struct Shard<T: Item> {
    input: Dataset<T>,
    of: usize,
    index: usize,
}

struct ShardStream<T> {
    pass: Pass,
    input: BoxStream<T>,
    of: usize,
    /// The number of elements to skip before the next one.
    skip: usize,
}

impl<T: Item> Node<T> for Shard<T> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<T>> {
        let input = self.input.open(pass)?;
        Ok(Box::new(ShardStream { pass: pass.clone(), input, of: self.of, skip: self.index }))
    }

    fn cardinality(&self) -> Cardinality {
        let count = self.input.cardinality();
        count.map(|count| count.saturating_sub(self.index).div_ceil(self.of))
    }

    fn spec(&self) -> ItemSpec {
        self.input.element_spec()
    }
}

impl<T: Item> Stream<T> for ShardStream<T> {
    fn next(&mut self) -> Option<Result<T>> {
        while self.skip > 0 {
            if self.pass.stopped() {
                return None;
            }
            self.input.next()?.ok();
            self.skip -= 1;
        }
        self.skip = self.of - 1;
        self.input.next()
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name("shard", out);
        out.number(self.skip as u64);
        self.input.save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("shard", from)?;
        self.skip = from.size()?;
        self.input.restore(from)
    }
}
