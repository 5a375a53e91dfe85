//! `batch`: combines several elements into one.

use std::sync::Arc;

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec, read_items, write_items};
use crate::data::stages::stage::{Input, Stage};
use crate::error::{Error, Result, message};
use crate::support::options::options;

options! {
    /// How [`Dataset::batch_with`] treats the last elements.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct BatchOptions {
        /// Whether a last batch with fewer elements is dropped.
        drop_remainder: bool = false,
    }
}

impl<T: Item> Dataset<T> {
    /// Stacks `batch_size` elements along a new first axis (`Dataset.batch`). The last batch may have fewer.
    ///
    /// An error among the elements comes before the batch, which is made of the elements after it.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// let batches = wgrad::data::range(0..5).batch(2);
    /// let sizes: Vec<usize> = batches.iter().map(|batch| Ok(batch?.len())).collect::<wgrad::Result<_>>()?;
    /// assert_eq!(sizes, [2, 2, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A `batch_size` of 0 is an [`Error::Data`] in place of the first batch. A batch of elements of different shapes
    /// is an [`Error::Shape`] among the batches.
    #[must_use]
    pub fn batch(&self, batch_size: usize) -> Dataset<T::Batch> {
        self.batch_with(batch_size, BatchOptions::new())
    }

    /// As [`Dataset::batch`], but can drop a smaller last batch.
    #[must_use]
    pub fn batch_with(&self, batch_size: usize, options: BatchOptions) -> Dataset<T::Batch> {
        let drop = options.drop_remainder;
        let spec = |spec: ItemSpec, size| spec.batched(size);
        group("batch", self, batch_size, drop, spec, T::stack)
    }
}

/// A dataset of elements made of `size` elements each, which `stack` combines; `spec` derives their specification.
pub(super) fn group<T: Item, B: Item>(
    name: &'static str,
    input: &Dataset<T>,
    size: usize,
    drop: bool,
    spec: impl Fn(ItemSpec, Option<usize>) -> ItemSpec,
    stack: impl Fn(Vec<T>) -> Result<B> + Send + Sync + 'static,
) -> Dataset<B> {
    if size == 0 {
        return Dataset::refused(Error::Data(message!(
            "{name}: batch_size is 0; a batch needs at least one element."
        )));
    }
    let whole = input.cardinality().known().is_some_and(|count| count % size == 0);
    let spec = spec(input.element_spec(), (drop || whole).then_some(size));
    let (stack, items) = (Arc::new(stack), Vec::new());
    input.stage(Group { name, size, drop, spec, stack, items, given: 0 })
}

type Stack<T, B> = Arc<dyn Fn(Vec<T>) -> Result<B> + Send + Sync>;

#[derive(Clone)]
struct Group<T, B> {
    name: &'static str,
    size: usize,
    drop: bool,
    spec: ItemSpec,
    stack: Stack<T, B>,
    /// The elements of a batch that was interrupted by an error.
    items: Vec<T>,
    given: u64,
}

impl<T: Item, B: Item> Stage<T> for Group<T, B> {
    type Out = B;

    fn name(&self) -> &'static str {
        self.name
    }

    fn cardinality(&self, input: &Dataset<T>) -> Cardinality {
        input.cardinality().map(|count| match self.drop {
            true => count / self.size,
            false => count.div_ceil(self.size),
        })
    }

    fn spec(&self, _input: ItemSpec) -> ItemSpec {
        self.spec.clone()
    }

    fn next(&mut self, input: &mut Input<T>) -> Option<Result<B>> {
        while self.items.len() < self.size {
            if input.stopped() {
                return None;
            }
            match input.next() {
                Some(Ok(item)) => self.items.push(item),
                Some(Err(error)) => return Some(Err(error)),
                None if self.drop => return None,
                None => break,
            }
        }
        if self.items.is_empty() {
            return None;
        }
        self.given += 1;
        // The next batch is likely to have the same size.
        let room = Vec::with_capacity(self.items.len());
        let items = std::mem::replace(&mut self.items, room);
        let number = self.given - 1;
        Some((self.stack)(items).map_err(|error| match error {
            Error::Shape(text) => Error::Shape(message!("{} (batch {number})", &*text)),
            error => error,
        }))
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        out.number(self.given);
        write_items(&self.items, out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        self.given = from.number()?;
        self.items = read_items(from)?;
        Ok(())
    }
}
