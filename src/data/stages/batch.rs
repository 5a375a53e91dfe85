//! `batch`: several elements as one.

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::error::{Error, Result, message};
use crate::options::options;

options! {
    /// What [`Dataset::batch_with`] makes of the last elements.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct BatchOptions {
        /// Whether a last batch with fewer elements is left out.
        drop_remainder: bool = false,
    }
}

impl<T: Item> Dataset<T> {
    /// `batch_size` elements together, along a new first axis (`Dataset.batch`). The last batch may have fewer.
    ///
    /// An error among the elements stands before the batch, which is made of those that follow it.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// let batches = wgrad::data::range(0..5).batch(2)?;
    /// let sizes: Vec<usize> = batches.iter().map(|batch| Ok(batch?.len())).collect::<wgrad::Result<_>>()?;
    /// assert_eq!(sizes, [2, 2, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Data`] if `batch_size` is 0. A batch of elements of different shapes is an [`Error::Shape`] among the batches.
    pub fn batch(&self, batch_size: usize) -> Result<Dataset<T::Batch>> {
        self.batch_with(batch_size, BatchOptions::new())
    }

    /// As [`Dataset::batch`], which can leave out a smaller last batch.
    ///
    /// # Errors
    /// As [`Dataset::batch`].
    pub fn batch_with(
        &self,
        batch_size: usize,
        options: BatchOptions,
    ) -> Result<Dataset<T::Batch>> {
        if batch_size == 0 {
            return Err(Error::Data(
                "batch: batch_size is 0; a batch needs at least one element.".into(),
            ));
        }
        let input = self.clone();
        Ok(Dataset::new(Batch { input, size: batch_size, drop: options.drop_remainder }))
    }
}

struct Batch<T: Item> {
    input: Dataset<T>,
    size: usize,
    drop: bool,
}

struct BatchStream<T> {
    input: BoxStream<T>,
    pass: Pass,
    size: usize,
    drop: bool,
    /// The elements of a batch that an error interrupted.
    items: Vec<T>,
    given: u64,
}

impl<T: Item> Node<T::Batch> for Batch<T> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<T::Batch>> {
        Ok(Box::new(BatchStream {
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
        let whole = self.input.cardinality().known().is_some_and(|count| count % self.size == 0);
        self.input.element_spec().batched((self.drop || whole).then_some(self.size))
    }
}

impl<T: Item> Stream<T::Batch> for BatchStream<T> {
    fn next(&mut self) -> Option<Result<T::Batch>> {
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
        // The next batch is likely to be as large.
        let room = Vec::with_capacity(self.items.len());
        let items = std::mem::replace(&mut self.items, room);
        let number = self.given - 1;
        Some(T::stack(items).map_err(|error| match error {
            Error::Shape(text) => Error::Shape(message!("{} (batch {number})", &*text)),
            error => error,
        }))
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name("batch", out);
        out.number(self.given);
        out.number(self.items.len() as u64);
        self.items.iter().try_for_each(|item| item.write(out))?;
        self.input.save(out)
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("batch", from)?;
        self.given = from.number()?;
        for _ in 0..from.count(0)? {
            self.items.push(T::read(from)?);
        }
        self.input.restore(from)
    }
}
