//! `take` and `skip`: the first elements, and the rest.

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec};
use crate::data::stages::stage::{Input, Stage};
use crate::error::Result;

impl<T: Item> Dataset<T> {
    /// The first `count` elements (`Dataset.take`). An error among the elements counts as one.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data;
    /// let first: Vec<i64> = data::range(0..9).take(2).iter().collect::<wgrad::Result<_>>()?;
    /// let rest: Vec<i64> = data::range(0..9).skip(7).iter().collect::<wgrad::Result<_>>()?;
    /// assert_eq!((first, rest), (vec![0, 1], vec![7, 8]));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn take(&self, count: usize) -> Dataset<T> {
        self.stage(Take { skip: 0, take: Some(count) })
    }

    /// All but the first `count` elements (`Dataset.skip`). An error among the elements counts as one, and is skipped, too.
    #[must_use]
    pub fn skip(&self, count: usize) -> Dataset<T> {
        self.stage(Take { skip: count, take: None })
    }
}

/// How many elements are still to be skipped, and to be returned.
#[derive(Clone)]
struct Take {
    skip: usize,
    take: Option<usize>,
}

impl<T: Item> Stage<T> for Take {
    type Out = T;

    fn name(&self) -> &'static str {
        "take"
    }

    fn cardinality(&self, input: &Dataset<T>) -> Cardinality {
        let count = input.cardinality().map(|count| count.saturating_sub(self.skip));
        match (count, self.take) {
            (_, Some(0)) => Cardinality::Known(0),
            (Cardinality::Known(count), Some(take)) => Cardinality::Known(count.min(take)),
            (Cardinality::Infinite, Some(take)) => Cardinality::Known(take),
            (count, _) => count,
        }
    }

    fn spec(&self, input: ItemSpec) -> ItemSpec {
        input
    }

    fn next(&mut self, input: &mut Input<T>) -> Option<Result<T>> {
        input.skip(&mut self.skip)?;
        if let Some(take) = &mut self.take {
            *take = take.checked_sub(1)?;
        }
        input.next()
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        out.number(self.skip as u64);
        out.number(self.take.map_or(u64::MAX, |take| take as u64));
        Ok(())
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        self.skip = from.size()?;
        let take = from.number()?;
        if self.take.is_some() {
            self.take = Some(usize::try_from(take).unwrap_or(usize::MAX));
        }
        Ok(())
    }
}
