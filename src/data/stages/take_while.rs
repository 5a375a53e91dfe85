//! `take_while` and `shard`: the elements until a predicate fails, and every n-th element.

use std::sync::Arc;

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{IntoItem, Item, ItemSpec};
use crate::data::pool::guarded;
use crate::data::stages::stage::{Input, Stage};
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
        self.stage(TakeWhile { predicate, ended: false })
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
        self.stage(Shard { of: num_shards, skip: index })
    }
}

type Predicate<T> = Arc<dyn Fn(&T) -> Result<bool> + Send + Sync>;

#[derive(Clone)]
struct TakeWhile<T> {
    predicate: Predicate<T>,
    ended: bool,
}

impl<T: Item> Stage<T> for TakeWhile<T> {
    type Out = T;

    fn name(&self) -> &'static str {
        "take_while"
    }

    fn cardinality(&self, input: &Dataset<T>) -> Cardinality {
        input.cardinality().varies()
    }

    fn spec(&self, input: ItemSpec) -> ItemSpec {
        input
    }

    fn next(&mut self, input: &mut Input<T>) -> Option<Result<T>> {
        if self.ended {
            return None;
        }
        let item = match input.next()? {
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
        out.flag(self.ended);
        Ok(())
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        self.ended = from.flag()?;
        Ok(())
    }
}

#[derive(Clone)]
struct Shard {
    of: usize,
    /// The number of elements to skip before the next one.
    skip: usize,
}

impl<T: Item> Stage<T> for Shard {
    type Out = T;

    fn name(&self) -> &'static str {
        "shard"
    }

    fn cardinality(&self, input: &Dataset<T>) -> Cardinality {
        input.cardinality().map(|count| count.saturating_sub(self.skip).div_ceil(self.of))
    }

    fn spec(&self, input: ItemSpec) -> ItemSpec {
        input
    }

    fn next(&mut self, input: &mut Input<T>) -> Option<Result<T>> {
        input.skip(&mut self.skip)?;
        self.skip = self.of - 1;
        input.next()
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        out.number(self.skip as u64);
        Ok(())
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        self.skip = from.size()?;
        Ok(())
    }
}
