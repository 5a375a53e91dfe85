//! `padded_batch`: batches of arrays with different shapes, padded to one shape.

use crate::data::dataset::Dataset;
use crate::data::item::{Item, PaddedShapes};
use crate::data::stages::batch::group;
use crate::support::options::options;

options! {
    /// The shapes and the padding values of [`Dataset::padded_batch_with`].
    #[derive(Debug, Clone)]
    pub struct PaddedBatchOptions<T: Item> {
        /// A shape for each array of an element; -1, or no shape at all, means the longest of the batch.
        padded_shapes: PaddedShapes as impl Into<PaddedShapes> = PaddedShapes::default(),
        /// A padding value for each array of an element: a number, a text, a tuple of them.
        padding_values: T::Padding = T::Padding::default(),
        /// Whether a last batch with fewer elements is dropped.
        drop_remainder: bool = false,
    }
}

impl<T: Item> Dataset<T> {
    /// Stacks `batch_size` elements along a new first axis, padded with zeros (empty texts) to the longest of the batch
    /// (`Dataset.padded_batch`).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::Dataset;
    /// let words = Dataset::from_tensor_slices(vec![vec![1, 2, 3], vec![4]])?;
    /// let batch = words.padded_batch(2).iter().next().expect("one batch")?;
    /// assert_eq!(batch, wgrad::ndarray::arr2(&[[1, 2, 3], [4, 0, 0]]).into_dyn());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A `batch_size` of 0 is an [`Error::Data`](crate::Error::Data) in place of the first batch. A batch of elements
    /// with different numbers of axes is an [`Error::Shape`](crate::Error::Shape) among the batches.
    #[must_use]
    pub fn padded_batch(&self, batch_size: usize) -> Dataset<T::Batch> {
        self.padded_batch_with(batch_size, PaddedBatchOptions::new())
    }

    /// As [`Dataset::padded_batch`], to given shapes, or with other padding values.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::{Dataset, PaddedBatchOptions};
    /// let pairs = Dataset::from_tensor_slices((vec![vec![1, 2, 3], vec![4]], vec![0.5, 0.25]))?;
    /// let options = PaddedBatchOptions::new().padded_shapes(([4], ())).padding_values((-1, 0.0));
    /// let (words, scores) = pairs.padded_batch_with(2, options).iter().next().expect("one batch")?;
    /// assert_eq!(words, wgrad::ndarray::arr2(&[[1, 2, 3, -1], [4, -1, -1, -1]]).into_dyn());
    /// assert_eq!(scores.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// More or fewer shapes than arrays are an [`Error::Shape`](crate::Error::Shape) in place of the first batch, and
    /// an element that is larger than its shape is one in place of its batch.
    #[must_use]
    pub fn padded_batch_with(
        &self,
        batch_size: usize,
        options: PaddedBatchOptions<T>,
    ) -> Dataset<T::Batch> {
        const NAME: &str = "padded_batch";
        let PaddedBatchOptions { padded_shapes: shapes, padding_values: values, drop_remainder } =
            options;
        if let Err(error) = shapes.check(NAME, self.element_spec().arrays()) {
            return Dataset::refused(error);
        }
        let to = shapes.clone();
        let stack = move |items| T::pad(items, &mut to.pad_to(NAME, None), &values);
        group(NAME, self, batch_size, drop_remainder, |spec, size| shapes.spec(spec, size), stack)
    }
}
