//! `ragged_batch`: arrays of different lengths one after another, and their lengths.

use ndarray::{Array, ArrayD, Axis, Dimension};

use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemScalar};
use crate::data::stages::batch::{BatchOptions, group};
use crate::error::{Error, Result, message};

/// The types that [`Dataset::ragged_batch`] accepts: numbers and texts, arrays, `Vec`s, and tuples of these.
pub trait RaggedItem: Item {
    /// The type of a batch: for a number an array with one axis; for an array the pair of all rows and of each element's number
    /// of rows.
    type Ragged: Item;

    /// Concatenates elements.
    ///
    /// # Errors
    /// [`Error::Shape`] if they differ in other axes than the first.
    fn ragged(items: Vec<Self>) -> Result<Self::Ragged>;
}

impl<A: ItemScalar> RaggedItem for A {
    type Ragged = ArrayD<A>;

    fn ragged(items: Vec<Self>) -> Result<ArrayD<A>> {
        Self::stack(items)
    }
}

impl<A: ItemScalar> RaggedItem for Vec<A> {
    type Ragged = (ArrayD<A>, ArrayD<i64>);

    fn ragged(items: Vec<Self>) -> Result<Self::Ragged> {
        let lengths: Vec<i64> = items.iter().map(|item| item.len() as i64).collect();
        Ok((A::stack(items.concat())?, i64::stack(lengths)?))
    }
}

impl<A: ItemScalar, D: Dimension + 'static> RaggedItem for Array<A, D> {
    type Ragged = (ArrayD<A>, ArrayD<i64>);

    fn ragged(items: Vec<Self>) -> Result<Self::Ragged> {
        let mut lengths = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let (shape, first) = (item.shape(), items[0].shape());
            if shape.is_empty() || shape.get(1..) != first.get(1..) {
                return Err(Error::Shape(message!(
                    "ragged_batch: element {at} of the batch is {shape:?}, and the first is {first:?}; arrays may \
                     differ only in the first axis, and need one."
                )));
            }
            lengths.push(shape[0] as i64);
        }
        let views: Vec<_> = items.iter().map(|item| item.view().into_dyn()).collect();
        let rows = ndarray::concatenate(Axis(0), &views)
            .map_err(|e| Error::Shape(message!("ragged_batch: {} arrays: {e}.", views.len())))?;
        Ok((rows, i64::stack(lengths)?))
    }
}

macro_rules! tuples {
    ($(($($item:ident $at:tt),+))*) => {$(
        impl<$($item: RaggedItem),+> RaggedItem for ($($item,)+) {
            type Ragged = ($($item::Ragged,)+);

            #[allow(non_snake_case)]
            fn ragged(items: Vec<Self>) -> Result<Self::Ragged> {
                $(let mut $item = Vec::with_capacity(items.len());)+
                for item in items {
                    $($item.push(item.$at);)+
                }
                Ok(($($item::ragged($item)?,)+))
            }
        }
    )*};
}
// Each part of a tuple separately.
tuples!((A 0)(A 0, B 1)(A 0, B 1, C 2)(A 0, B 1, C 2, D 3)(A 0, B 1, C 2, D 3, E 4)(A 0, B 1, C 2, D 3, E 4, F 5));

impl<T: RaggedItem> Dataset<T> {
    /// Concatenates `batch_size` elements, without padding: each array becomes the pair of all its rows, one after another, and
    /// of the number of rows of each element (`Dataset.ragged_batch`, whose `RaggedTensor` calls them `values` and
    /// `row_lengths`).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::Dataset;
    /// let words = Dataset::from_tensor_slices((vec![vec![1, 2, 3], vec![4]], vec![0.5, 0.25]))?;
    /// let batch = words.ragged_batch(2).iter().next().expect("one batch")?;
    /// let ((values, row_lengths), scores) = batch;
    /// assert_eq!(values.as_slice(), Some(&[1, 2, 3, 4][..]));
    /// assert_eq!(row_lengths.as_slice(), Some(&[3, 1][..]));
    /// assert_eq!(scores.len(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A `batch_size` of 0 is an [`Error::Data`] in place of the first batch. A batch of elements that differ in axes
    /// other than the first is an [`Error::Shape`] among the batches.
    #[must_use]
    pub fn ragged_batch(&self, batch_size: usize) -> Dataset<T::Ragged> {
        self.ragged_batch_with(batch_size, BatchOptions::new())
    }

    /// As [`Dataset::ragged_batch`], but can drop a smaller last batch.
    #[must_use]
    pub fn ragged_batch_with(
        &self,
        batch_size: usize,
        options: BatchOptions,
    ) -> Dataset<T::Ragged> {
        let drop = options.drop_remainder;
        group("ragged_batch", self, batch_size, drop, |_, _| T::Ragged::type_spec(), T::ragged)
    }
}
