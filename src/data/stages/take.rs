//! `take` and `skip`: the first elements, and the rest.

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
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
        Dataset::new(Take { input: self.clone(), skip: 0, take: Some(count) })
    }

    /// All but the first `count` elements (`Dataset.skip`). An error among the elements counts as one, and is skipped, too.
    #[must_use]
    pub fn skip(&self, count: usize) -> Dataset<T> {
        Dataset::new(Take { input: self.clone(), skip: count, take: None })
    }
}

struct Take<T: Item> {
    input: Dataset<T>,
    skip: usize,
    take: Option<usize>,
}

struct TakeStream<T> {
    pass: Pass,
    input: BoxStream<T>,
    /// How many elements are still to be skipped, and to be returned.
    skip: usize,
    take: Option<usize>,
}

impl<T: Item> Node<T> for Take<T> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<T>> {
        let input = self.input.open(pass)?;
        Ok(Box::new(TakeStream { pass: pass.clone(), input, skip: self.skip, take: self.take }))
    }

    fn cardinality(&self) -> Cardinality {
        let count = self.input.cardinality().map(|count| count.saturating_sub(self.skip));
        match (count, self.take) {
            (_, Some(0)) => Cardinality::Known(0),
            (Cardinality::Known(count), Some(take)) => Cardinality::Known(count.min(take)),
            (Cardinality::Infinite, Some(take)) => Cardinality::Known(take),
            (count, _) => count,
        }
    }

    fn spec(&self) -> ItemSpec {
        self.input.element_spec()
    }
}

impl<T: Item> Stream<T> for TakeStream<T> {
    fn next(&mut self) -> Option<Result<T>> {
        while self.skip > 0 {
            if self.pass.stopped() {
                return None;
            }
            self.input.next()?.ok();
            self.skip -= 1;
        }
        if let Some(take) = &mut self.take {
            *take = take.checked_sub(1)?;
        }
        self.input.next()
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name("take", out);
        out.number(self.skip as u64);
        out.number(self.take.map_or(u64::MAX, |take| take as u64));
        self.input.save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("take", from)?;
        self.skip = from.size()?;
        let take = from.number()?;
        if self.take.is_some() {
            self.take = Some(usize::try_from(take).unwrap_or(usize::MAX));
        }
        self.input.restore(from)
    }
}
