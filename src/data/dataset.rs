//! [`Dataset`]: a description of elements and of the stages that transform them.

use std::any::Any;
use std::sync::Arc;

use super::cardinality::Cardinality;
use super::item::{Item, ItemSpec};
use super::iterator::{DatasetIter, IteratorState};
use super::node::{BoxStream, Node, Pass};
use crate::error::{Error, Result};

/// Elements that are read, changed, shuffled and batched on the host, like `tf.data.Dataset`.
///
/// A dataset is a description: it holds no element, and creating one reads nothing. Each pass begins from the start. An element
/// that cannot be made is an `Err` among the elements. A clone describes the same elements.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::data::Dataset;
/// let years = vec![2013, 2014, 2015, 2016, 2017];
/// let prices = vec![12000, 14000, 15000, 16500, 17500];
/// let dataset = Dataset::from_tensor_slices((years, prices))?;
/// for pair in &dataset {
///     let (year, price) = pair?;
///     println!("{year} {price}");
/// }
/// let doubled = dataset.map(|(year, price)| (year, 2 * price)).batch(2);
/// let (_, first) = doubled.iter().next().expect("five elements make three batches")?;
/// assert_eq!(first.as_slice(), Some(&[24000, 28000][..]));
/// # Ok(())
/// # }
/// ```
pub struct Dataset<T: Item> {
    node: Arc<dyn Node<T>>,
}

impl<T: Item> Dataset<T> {
    pub(crate) fn new(node: impl Node<T> + 'static) -> Self {
        Dataset { node: Arc::new(node) }
    }

    /// A dataset of a stage that cannot have these arguments: its passes begin with the error.
    pub(crate) fn refused(error: Error) -> Self {
        Dataset::new(Refused(error))
    }

    /// The last stage of the dataset.
    pub(crate) fn node(&self) -> &dyn Any {
        &*self.node
    }

    /// Begins a pass as part of another pass.
    pub(crate) fn open(&self, pass: &Pass) -> Result<BoxStream<T>> {
        self.node.open(pass)
    }

    /// Begins a pass.
    pub fn iter(&self) -> DatasetIter<T> {
        DatasetIter::new(&self.node)
    }

    /// Continues at the position of a saved iterator of this dataset, also in another process: the elements that follow are
    /// those that the iterator would have returned.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data;
    /// let dataset = data::range(0..100).shuffle(10);
    /// let mut iter = dataset.iter();
    /// iter.next();
    /// let state = iter.save()?;
    /// let rest: Vec<i64> = iter.collect::<wgrad::Result<_>>()?;
    /// let again: Vec<i64> = dataset.resume(&state)?.collect::<wgrad::Result<_>>()?;
    /// assert_eq!(rest, again);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) if the state is that of another dataset, or was truncated or changed.
    pub fn resume(&self, state: &IteratorState) -> Result<DatasetIter<T>> {
        DatasetIter::resume(&self.node, state)
    }

    /// The number of elements in a pass.
    pub fn cardinality(&self) -> Cardinality {
        self.node.cardinality()
    }

    /// The types and shapes of the elements, as far as they are known before one is made.
    pub fn element_spec(&self) -> ItemSpec {
        self.node.spec()
    }

    /// Calls a function with this dataset, so that several stages can be one step of a chain (`Dataset.apply`).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::{self, Dataset};
    /// fn even(numbers: Dataset<i64>) -> Dataset<i64> {
    ///     numbers.filter(|n| n % 2 == 0)
    /// }
    /// let numbers: Vec<i64> = data::range(0..6).apply(even).iter().collect::<wgrad::Result<_>>()?;
    /// assert_eq!(numbers, [0, 2, 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn apply<R>(self, function: impl FnOnce(Dataset<T>) -> R) -> R {
        function(self)
    }
}

struct Refused(Error);

impl<T: Item> Node<T> for Refused {
    fn open(&self, _: &Pass) -> Result<BoxStream<T>> {
        Err(self.0.clone())
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Unknown
    }
}

impl<T: Item> Clone for Dataset<T> {
    fn clone(&self) -> Self {
        Dataset { node: self.node.clone() }
    }
}

impl<T: Item> std::fmt::Debug for Dataset<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Dataset {{ {}, {:?} }}", self.element_spec(), self.cardinality())
    }
}

impl<T: Item> IntoIterator for &Dataset<T> {
    type Item = Result<T>;
    type IntoIter = DatasetIter<T>;

    fn into_iter(self) -> DatasetIter<T> {
        self.iter()
    }
}

impl<T: Item> IntoIterator for Dataset<T> {
    type Item = Result<T>;
    type IntoIter = DatasetIter<T>;

    fn into_iter(self) -> DatasetIter<T> {
        self.iter()
    }
}
