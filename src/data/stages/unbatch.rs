//! `unbatch` and `rebatch`: split elements along their first axis, and combine them again.

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec};
use crate::data::stages::batch::{BatchOptions, group};
use crate::data::stages::stage::{Input, Stage};
use crate::error::{Error, Result, message};

impl<T: Item> Dataset<T> {
    /// Returns each row of each element separately (`Dataset.unbatch`), without the first axis. Rows are arrays, even
    /// those without an axis.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::Dataset;
    /// let dataset = Dataset::from_tensor_slices(vec![vec![1, 2, 3], vec![4]])?.unbatch();
    /// let numbers: Vec<i32> = dataset.map(|row| row.sum()).iter().collect::<wgrad::Result<_>>()?;
    /// assert_eq!(numbers, [1, 2, 3, 4]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// An element without a first axis, or whose arrays differ in it, is replaced by an [`Error::Shape`].
    #[must_use]
    pub fn unbatch(&self) -> Dataset<T::Batch> {
        self.stage(Unbatch { element: None })
    }
}

impl<T: Item<Batch = T>> Dataset<T> {
    /// Batches of `batch_size` rows, made from batches of other sizes (`Dataset.rebatch`).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// let batches = wgrad::data::range(0..7).batch(3).rebatch(2);
    /// let sizes: Vec<usize> = batches.iter().map(|b| Ok(b?.len())).collect::<wgrad::Result<_>>()?;
    /// assert_eq!(sizes, [2, 2, 2, 1]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A `batch_size` of 0 is an [`Error::Data`] in place of the first batch.
    #[must_use]
    pub fn rebatch(&self, batch_size: usize) -> Dataset<T> {
        self.rebatch_with(batch_size, BatchOptions::new())
    }

    /// As [`Dataset::rebatch`], but can drop a smaller last batch.
    #[must_use]
    pub fn rebatch_with(&self, batch_size: usize, options: BatchOptions) -> Dataset<T> {
        let drop = options.drop_remainder;
        let spec = |spec: ItemSpec, size| spec.batched(size);
        group("rebatch", &self.unbatch(), batch_size, drop, spec, T::stack)
    }
}

#[derive(Clone)]
struct Unbatch<T> {
    /// An element, its number of rows, and how many of them were returned.
    element: Option<(T, usize, usize)>,
}

impl<T: Item> Stage<T> for Unbatch<T> {
    type Out = T::Batch;

    fn name(&self) -> &'static str {
        "unbatch"
    }

    fn cardinality(&self, input: &Dataset<T>) -> Cardinality {
        match (input.cardinality(), input.element_spec().rows()) {
            (Cardinality::Known(0), _) => Cardinality::Known(0),
            (Cardinality::Known(count), Some(rows)) => {
                count.checked_mul(rows).map_or(Cardinality::Infinite, Cardinality::Known)
            }
            (Cardinality::Infinite, Some(1..)) => Cardinality::Infinite,
            _ => Cardinality::Unknown,
        }
    }

    fn spec(&self, input: ItemSpec) -> ItemSpec {
        let row = |shape: Option<Vec<Option<usize>>>| {
            shape.map(|shape| shape.get(1..).map_or_else(Vec::new, <[_]>::to_vec))
        };
        input.map(&row)
    }

    fn next(&mut self, input: &mut Input<T>) -> Option<Result<T::Batch>> {
        while !input.stopped() {
            if let Some((element, rows, at)) = &mut self.element {
                if at < rows {
                    *at += 1;
                    return Some(element.row(*at - 1));
                }
            }
            self.element = None;
            match input.next()?.and_then(|item| Ok((item.rows()?, item))) {
                Ok((rows, item)) => self.element = Some((item, rows, 0)),
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        out.flag(self.element.is_some());
        if let Some((element, _, at)) = &self.element {
            out.number(*at as u64);
            element.write(out)?;
        }
        Ok(())
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        if from.flag()? {
            let at = from.number()?;
            let element = T::read(from)?;
            let rows = element.rows()?;
            let at = usize::try_from(at).ok().filter(|at| *at <= rows).ok_or_else(|| {
                Error::Data(message!("resume: the state is at row {at} of {rows}; it is corrupt."))
            })?;
            self.element = Some((element, rows, at));
        }
        Ok(())
    }
}
