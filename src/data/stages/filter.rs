//! `filter`: the elements that a predicate accepts.

use std::sync::Arc;

use crate::data::cardinality::Cardinality;
use crate::data::dataset::Dataset;
use crate::data::item::{IntoItem, Item, ItemSpec};
use crate::data::pool::guarded;
use crate::data::stages::stage::{Input, Stage};
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
        self.stage(Filter(Arc::new(move |item| predicate(item).into_item())))
    }
}

#[derive(Clone)]
struct Filter<T>(Predicate<T>);

type Predicate<T> = Arc<dyn Fn(&T) -> Result<bool> + Send + Sync>;

impl<T: Item> Stage<T> for Filter<T> {
    type Out = T;

    fn name(&self) -> &'static str {
        "filter"
    }

    fn cardinality(&self, input: &Dataset<T>) -> Cardinality {
        input.cardinality().varies()
    }

    fn spec(&self, input: ItemSpec) -> ItemSpec {
        input
    }

    fn next(&mut self, input: &mut Input<T>) -> Option<Result<T>> {
        while !input.stopped() {
            let item = match input.next()? {
                Ok(item) => item,
                error => return Some(error),
            };
            match guarded("filter", || (self.0)(&item)) {
                Ok(true) => return Some(Ok(item)),
                Ok(false) => {}
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }
}
