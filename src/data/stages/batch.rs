//! `batch`: combines several elements into one.

use std::sync::Arc;

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::error::{Error, Result, message};
use crate::options::options;

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
    Dataset::new(Group { name, input: input.clone(), size, drop, spec, stack: Arc::new(stack) })
}

type Stack<T, B> = Arc<dyn Fn(Vec<T>) -> Result<B> + Send + Sync>;

struct Group<T: Item, B> {
    name: &'static str,
    input: Dataset<T>,
    size: usize,
    drop: bool,
    spec: ItemSpec,
    stack: Stack<T, B>,
}

struct GroupStream<T, B> {
    name: &'static str,
    input: BoxStream<T>,
    pass: Pass,
    size: usize,
    drop: bool,
    stack: Stack<T, B>,
    /// The elements of a batch that was interrupted by an error.
    items: Vec<T>,
    given: u64,
}

impl<T: Item, B: Item> Node<B> for Group<T, B> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<B>> {
        Ok(Box::new(GroupStream {
            name: self.name,
            stack: self.stack.clone(),
            input: self.input.open(pass)?,
            pass: pass.clone(),
            size: self.size,
            drop: self.drop,
            items: Vec::new(),
            given: 0,
        }))
    }

    fn cardinality(&self) -> Cardinality {
        self.input.cardinality().map(|count| match self.drop {
            true => count / self.size,
            false => count.div_ceil(self.size),
        })
    }

    fn spec(&self) -> ItemSpec {
        self.spec.clone()
    }
}

impl<T: Item, B: Item> Stream<B> for GroupStream<T, B> {
    fn next(&mut self) -> Option<Result<B>> {
        while self.items.len() < self.size {
            if self.pass.stopped() {
                return None;
            }
            match self.input.next() {
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
        write_name(self.name, out);
        out.number(self.given);
        out.number(self.items.len() as u64);
        self.items.iter().try_for_each(|item| item.write(out))?;
        self.input.save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name(self.name, from)?;
        self.given = from.number()?;
        for _ in 0..from.count(0)? {
            self.items.push(T::read(from)?);
        }
        self.input.restore(from)
    }
}
