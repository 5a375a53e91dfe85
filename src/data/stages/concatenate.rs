//! `concatenate`: one dataset after another.

use std::sync::Arc;

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::error::Result;

impl<T: Item> Dataset<T> {
    /// The elements of this dataset, then those of another (`Dataset.concatenate`).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data;
    /// let numbers = data::range(1..3).concatenate(&data::range(8..10));
    /// assert_eq!(numbers.iter().collect::<wgrad::Result<Vec<i64>>>()?, [1, 2, 8, 9]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn concatenate(&self, dataset: &Dataset<T>) -> Dataset<T> {
        let before = match self.node().downcast_ref::<Concatenate<T>>() {
            Some(concatenated) => concatenated.chain.clone(),
            None => Arc::new(Chain { before: None, last: self.clone() }),
        };
        let spec = self.element_spec().merge(dataset.element_spec()).unwrap_or_else(T::type_spec);
        let cardinality = sum(self.cardinality(), dataset.cardinality());
        let chain = Arc::new(Chain { before: Some(before), last: dataset.clone() });
        Dataset::new(Concatenate { chain, cardinality, spec })
    }
}

/// Datasets one after another, starting with the last one. A program may chain thousands in a loop, so nothing here recurses
/// into each of them, or the stack would overflow.
struct Chain<T: Item> {
    before: Option<Arc<Chain<T>>>,
    last: Dataset<T>,
}

impl<T: Item> Drop for Chain<T> {
    fn drop(&mut self) {
        let mut before = self.before.take();
        while let Some(mut chain) = before.and_then(Arc::into_inner) {
            before = chain.before.take();
        }
    }
}

fn sum(a: Cardinality, b: Cardinality) -> Cardinality {
    match (a, b) {
        (Cardinality::Infinite, _) | (_, Cardinality::Infinite) => Cardinality::Infinite,
        (Cardinality::Known(a), Cardinality::Known(b)) => {
            a.checked_add(b).map_or(Cardinality::Infinite, Cardinality::Known)
        }
        _ => Cardinality::Unknown,
    }
}

struct Concatenate<T: Item> {
    chain: Arc<Chain<T>>,
    cardinality: Cardinality,
    spec: ItemSpec,
}

struct ConcatenateStream<T> {
    streams: Vec<BoxStream<T>>,
    /// The streams that have ended.
    ended: usize,
}

impl<T: Item> Node<T> for Concatenate<T> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<T>> {
        let chains = std::iter::successors(Some(&self.chain), |chain| chain.before.as_ref());
        let datasets: Vec<&Dataset<T>> = chains.map(|chain| &chain.last).collect();
        let streams = datasets.iter().rev().map(|dataset| dataset.open(pass));
        Ok(Box::new(ConcatenateStream { streams: streams.collect::<Result<_>>()?, ended: 0 }))
    }

    fn cardinality(&self) -> Cardinality {
        self.cardinality
    }

    fn spec(&self) -> ItemSpec {
        self.spec.clone()
    }
}

impl<T: Item> Stream<T> for ConcatenateStream<T> {
    fn next(&mut self) -> Option<Result<T>> {
        while let Some(stream) = self.streams.get_mut(self.ended) {
            let next = stream.next();
            if next.is_some() {
                return next;
            }
            self.ended += 1;
        }
        None
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name("concatenate", out);
        out.number(self.ended as u64);
        self.streams.iter_mut().try_for_each(|stream| stream.save(out))
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("concatenate", from)?;
        self.ended = from.size()?;
        self.streams.iter_mut().try_for_each(|stream| stream.restore(from))
    }
}
