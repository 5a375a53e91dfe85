//! `bucket_by_sequence_length`: batches of elements of similar length.

use std::sync::Arc;

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec, PaddedShapes, read_items, write_items};
use crate::data::pool::guarded;
use crate::data::stages::stage::{Input, Stage};
use crate::error::{Error, Result, message};
use crate::support::options::options;

const NAME: &str = "bucket_by_sequence_length";

options! {
    /// How [`Dataset::bucket_by_sequence_length_with`] makes its batches.
    #[derive(Debug, Clone)]
    pub struct BucketOptions<T: Item> {
        /// A shape for each array of an element; -1, or no shape at all, means the longest of the batch.
        padded_shapes: PaddedShapes as impl Into<PaddedShapes> = PaddedShapes::default(),
        /// A padding value for each array of an element: a number, a text, a tuple of them.
        padding_values: T::Padding = T::Padding::default(),
        /// Whether -1 in the shapes means one less than the bucket's boundary, instead of the longest of the batch. An element
        /// beyond the last boundary is then an error.
        pad_to_bucket_boundary: bool = false,
        /// Whether to use no padding: the elements of a batch must then have the same shape.
        no_padding: bool = false,
        /// Whether buckets that are not full at the end are dropped.
        drop_remainder: bool = false,
    }
}

impl<T: Item> Dataset<T> {
    /// Padded batches of elements of similar length, so that little padding is needed (`Dataset.bucket_by_sequence_length`).
    ///
    /// Bucket `i` has the elements that are shorter than `bucket_boundaries[i]`, the last bucket all others; it returns a batch
    /// when it has `bucket_batch_sizes[i]` of them. The elements that are left in the buckets follow at the end.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::Dataset;
    /// let words = vec![vec![0], vec![1, 2, 3, 4], vec![5, 6, 7], vec![7, 8, 9, 10, 11], vec![21, 22]];
    /// let batches = Dataset::from_tensor_slices(words)?
    ///     .bucket_by_sequence_length(Vec::len, &[3, 5], &[2, 2, 2]);
    /// let shapes: Vec<Vec<usize>> = batches.iter().map(|b| Ok(b?.shape().to_vec())).collect::<wgrad::Result<_>>()?;
    /// assert_eq!(shapes, [[2, 4], [2, 2], [1, 5]]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Boundaries that do not increase, a size of 0, and any other number of sizes than one more than boundaries are an
    /// [`Error::Data`] in place of the first batch.
    #[must_use]
    pub fn bucket_by_sequence_length(
        &self,
        element_length_func: impl Fn(&T) -> usize + Send + Sync + 'static,
        bucket_boundaries: &[usize],
        bucket_batch_sizes: &[usize],
    ) -> Dataset<T::Batch> {
        let options = BucketOptions::new();
        self.bucket_by_sequence_length_with(
            element_length_func,
            bucket_boundaries,
            bucket_batch_sizes,
            options,
        )
    }

    /// As [`Dataset::bucket_by_sequence_length`], with other padding, or without padding.
    #[must_use]
    pub fn bucket_by_sequence_length_with(
        &self,
        element_length_func: impl Fn(&T) -> usize + Send + Sync + 'static,
        bucket_boundaries: &[usize],
        bucket_batch_sizes: &[usize],
        options: BucketOptions<T>,
    ) -> Dataset<T::Batch> {
        let refused = |what: &str| {
            Dataset::refused(Error::Data(message!(
                "{NAME}: the boundaries are {bucket_boundaries:?} and the sizes {bucket_batch_sizes:?}; {what}."
            )))
        };
        if bucket_batch_sizes.len() != bucket_boundaries.len() + 1 {
            return refused("there must be one size more than boundaries");
        }
        if bucket_batch_sizes.contains(&0) {
            return refused("a batch needs at least one element");
        }
        if bucket_boundaries.windows(2).any(|pair| pair[0] >= pair[1])
            || bucket_boundaries.first() == Some(&0)
        {
            return refused("boundaries must increase and start above 0");
        }
        if let Err(error) = options.padded_shapes.check(NAME, self.element_spec().arrays()) {
            return Dataset::refused(error);
        }
        self.stage(Bucket {
            buckets: vec![Vec::new(); bucket_batch_sizes.len()],
            ended: false,
            rule: Arc::new(Rule {
                length: Box::new(element_length_func),
                boundaries: bucket_boundaries.to_vec(),
                sizes: bucket_batch_sizes.to_vec(),
                options,
            }),
        })
    }
}

struct Rule<T: Item> {
    length: Box<dyn Fn(&T) -> usize + Send + Sync>,
    boundaries: Vec<usize>,
    sizes: Vec<usize>,
    options: BucketOptions<T>,
}

impl<T: Item> Rule<T> {
    /// The bucket of an element.
    fn bucket(&self, item: &T) -> Result<usize> {
        let length = guarded(NAME, || Ok((self.length)(item)))?;
        let bucket = self.boundaries.partition_point(|boundary| *boundary <= length);
        if self.options.pad_to_bucket_boundary && bucket == self.boundaries.len() {
            return Err(Error::Data(message!(
                "{NAME}: an element has length {length}; with pad_to_bucket_boundary it must be below the last boundary, of {:?}.",
                self.boundaries
            )));
        }
        Ok(bucket)
    }

    fn stack(&self, bucket: usize, items: Vec<T>) -> Result<T::Batch> {
        if self.options.no_padding {
            return T::stack(items);
        }
        let fill = self.boundaries.get(bucket).filter(|_| self.options.pad_to_bucket_boundary);
        let mut to = self.options.padded_shapes.pad_to(NAME, fill.map(|boundary| boundary - 1));
        T::pad(items, &mut to, &self.options.padding_values)
    }
}

#[derive(Clone)]
struct Bucket<T: Item> {
    rule: Arc<Rule<T>>,
    buckets: Vec<Vec<T>>,
    ended: bool,
}

impl<T: Item> Stage<T> for Bucket<T> {
    type Out = T::Batch;

    fn name(&self) -> &'static str {
        NAME
    }

    fn cardinality(&self, input: &Dataset<T>) -> Cardinality {
        input.cardinality().varies()
    }

    fn spec(&self, input: ItemSpec) -> ItemSpec {
        match self.rule.options.no_padding {
            true => input.batched(None),
            false => self.rule.options.padded_shapes.spec(input, None),
        }
    }

    fn next(&mut self, input: &mut Input<T>) -> Option<Result<T::Batch>> {
        while !self.ended {
            if input.stopped() {
                return None;
            }
            let item = match input.next() {
                Some(Ok(item)) => item,
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    self.ended = true;
                    break;
                }
            };
            let bucket = match self.rule.bucket(&item) {
                Ok(bucket) => bucket,
                Err(error) => return Some(Err(error)),
            };
            self.buckets[bucket].push(item);
            if self.buckets[bucket].len() == self.rule.sizes[bucket] {
                let items = std::mem::take(&mut self.buckets[bucket]);
                return Some(self.rule.stack(bucket, items));
            }
        }
        if self.rule.options.drop_remainder {
            return None;
        }
        let bucket = self.buckets.iter().position(|items| !items.is_empty())?;
        Some(self.rule.stack(bucket, std::mem::take(&mut self.buckets[bucket])))
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        out.flag(self.ended);
        self.buckets.iter().try_for_each(|items| write_items(items, out))
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        self.ended = from.flag()?;
        for items in &mut self.buckets {
            *items = read_items(from)?;
        }
        Ok(())
    }
}
