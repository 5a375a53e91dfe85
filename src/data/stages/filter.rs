//! `filter`: the elements that a predicate accepts.

use std::sync::Arc;

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{IntoItem, Item, ItemSpec};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::data::pool::guarded;
use crate::error::Result;

impl<T: Item> Dataset<T> {
    /// Only the elements for which `predicate` returns `true` (`Dataset.filter`). It may return a `Result`; an error, or a
    /// panic, replaces the element.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// let odd = wgrad::data::range(0..6).filter(|n| n % 2 == 1);
    /// assert_eq!(odd.iter().collect::<wgrad::Result<Vec<i64>>>()?, [1, 3, 5]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn filter<R: IntoItem<Item = bool>>(
        &self,
        predicate: impl Fn(&T) -> R + Send + Sync + 'static,
    ) -> Dataset<T> {
        let predicate: Predicate<T> = Arc::new(move |item| predicate(item).into_item());
        Dataset::new(Filter { input: self.clone(), predicate })
    }
}

type Predicate<T> = Arc<dyn Fn(&T) -> Result<bool> + Send + Sync>;

struct Filter<T: Item> {
    input: Dataset<T>,
    predicate: Predicate<T>,
}

struct FilterStream<T> {
    pass: Pass,
    input: BoxStream<T>,
    predicate: Predicate<T>,
}

impl<T: Item> Node<T> for Filter<T> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<T>> {
        let input = self.input.open(pass)?;
        Ok(Box::new(FilterStream { pass: pass.clone(), input, predicate: self.predicate.clone() }))
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

impl<T: Item> Stream<T> for FilterStream<T> {
    fn next(&mut self) -> Option<Result<T>> {
        while !self.pass.stopped() {
            let item = match self.input.next()? {
                Ok(item) => item,
                error => return Some(error),
            };
            match guarded("filter", || (self.predicate)(&item)) {
                Ok(true) => return Some(Ok(item)),
                Ok(false) => {}
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name("filter", out);
        self.input.save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("filter", from)?;
        self.input.restore(from)
    }
}
