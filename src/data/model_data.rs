//! [`ModelData`]: a model's training data: arrays, which can be shuffled and split, a dataset, or an iterator that can begin
//! again.

use std::rc::Rc;

use ndarray::{ArrayBase, Data, Dimension, OwnedRepr};

use super::batch::{Batch, IntoBatch};
use super::cardinality::Cardinality;
use super::columns::{Column, IntoColumns, lengths_differ};
use super::dataset::Dataset;
use super::images::Images;
use super::item::{Item, ItemSpec};
use super::iterator::DatasetIter;
use super::iterator::IteratorState;
use crate::error::{Error, Result, message};
use crate::tensor::{HostElement, Tensor};

/// The number of batches that a thread prepares for the next steps.
const AHEAD: usize = 2;

/// The data for training, evaluating or calling a model.
pub struct ModelData<'a>(pub(crate) DataKind<'a>);

impl std::fmt::Debug for ModelData<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            DataKind::Arrays(_) => "ModelData(arrays)",
            DataKind::Batches(_) => "ModelData(batches)",
        })
    }
}

/// The two kinds of data.
pub(crate) enum DataKind<'a> {
    Arrays(Rc<Arrays<'a>>),
    Batches(BatchSource<'a>),
}

/// The batches of one pass through the data.
pub(crate) type Batches<'a> = Box<dyn BatchPass + 'a>;

/// A pass, which may be able to report its position.
pub(crate) trait BatchPass: Iterator<Item = Result<Batch>> {
    /// The position of the pass; `None` if only counting its batches determines it.
    fn state(&self) -> Result<Option<IteratorState>> {
        Ok(None)
    }

    /// Continues a saved pass after this many batches.
    fn go_on(&mut self, _state: Option<&IteratorState>, given: usize) -> Result<()> {
        for _ in 0..given {
            match self.next() {
                Some(batch) => drop(batch?),
                None => break,
            }
        }
        Ok(())
    }
}

/// A program's own batches.
struct Plain<I>(I);

impl<I: Iterator<Item: IntoBatch>> Iterator for Plain<I> {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        self.0.next().map(IntoBatch::into_batch)
    }
}

impl<I: Iterator<Item: IntoBatch>> BatchPass for Plain<I> {}

/// A dataset's, and what makes a batch of an element.
struct OfDataset<T: Item, F>(DatasetIter<T>, F);

impl<T: Item, F: Fn(T) -> Result<Batch>> Iterator for OfDataset<T, F> {
    type Item = Result<Batch>;

    fn next(&mut self) -> Option<Result<Batch>> {
        self.0.next().map(|item| item.and_then(&self.1))
    }
}

impl<T: Item, F: Fn(T) -> Result<Batch>> BatchPass for OfDataset<T, F> {
    fn state(&self) -> Result<Option<IteratorState>> {
        self.0.save().map(Some)
    }

    fn go_on(&mut self, state: Option<&IteratorState>, _given: usize) -> Result<()> {
        state.map_or(Ok(()), |state| self.0.restore(state))
    }
}

/// What makes the batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Origin {
    Closure,
    Dataset,
}

/// Begins a new pass.
pub(crate) struct BatchSource<'a> {
    pub(crate) begin: Box<dyn FnMut() -> Batches<'a> + 'a>,
    /// The number of batches in a pass.
    pub(crate) count: Cardinality,
    pub(crate) origin: Origin,
    /// The specification of the batches, if it is known.
    pub(crate) spec: Option<ItemSpec>,
}

/// Arrays of all examples.
pub(crate) struct Arrays<'a> {
    pub(crate) x: Vec<Column<'a>>,
    pub(crate) y: Vec<Column<'a>>,
    pub(crate) sample_weight: Vec<Column<'a>>,
}

impl<'a> Arrays<'a> {
    fn new(x: Vec<Column<'a>>, y: Vec<Column<'a>>, sample_weight: Vec<Column<'a>>) -> Result<Self> {
        let arrays = Arrays { x, y, sample_weight };
        let named: Vec<(&str, &Column<'_>)> =
            [("x", &arrays.x), ("y", &arrays.y), ("sample_weight", &arrays.sample_weight)]
                .into_iter()
                .flat_map(|(name, columns)| columns.iter().map(move |column| (name, column)))
                .collect();
        match named.iter().all(|(_, column)| column.len() == arrays.len()) {
            true => Ok(arrays),
            false => Err(lengths_differ(&named)),
        }
    }

    /// The number of examples.
    pub(crate) fn len(&self) -> usize {
        self.x.first().map_or(0, Column::len)
    }

    /// The examples at the indices `places`, which must exist.
    pub(crate) fn batch(&self, places: &[usize]) -> Result<Batch> {
        let rows = |columns: &[Column<'_>]| {
            columns.iter().map(|column| column.rows(places)).collect::<Result<Vec<Tensor>>>()
        };
        Ok(Batch {
            x: rows(&self.x)?,
            y: rows(&self.y)?,
            sample_weight: rows(&self.sample_weight)?,
        })
    }
}

impl<'a> ModelData<'a> {
    /// Calls `begin` for the batches of each pass.
    pub fn from_fn<I>(mut begin: impl FnMut() -> I + 'a) -> Self
    where
        I: IntoIterator<IntoIter: 'a, Item: IntoBatch + 'a>,
    {
        ModelData(DataKind::Batches(BatchSource {
            begin: Box::new(move || Box::new(Plain(begin().into_iter()))),
            count: Cardinality::Unknown,
            origin: Origin::Closure,
            spec: None,
        }))
    }

    /// The dataset's work runs ahead in a thread; the caller uploads the batches.
    fn of_dataset<T: Item + IntoBatch>(dataset: &Dataset<T>) -> Result<Self> {
        let mut data = ModelData::of_prepared(dataset, IntoBatch::into_batch)?;
        if let DataKind::Batches(source) = &mut data.0 {
            source.spec = Some(dataset.element_spec());
        }
        Ok(data)
    }

    /// As `of_dataset`; the caller's thread makes a batch of each element.
    pub(crate) fn of_prepared<T: Item>(
        dataset: &Dataset<T>,
        prepare: impl Fn(T) -> Result<Batch> + Copy + 'a,
    ) -> Result<Self> {
        let spec = dataset.element_spec();
        if has_scalar(&spec) {
            return Err(Error::Shape(message!(
                "the dataset's elements are {spec}: a part of each is a scalar, so they are single examples. Batch them: \
                 dataset.batch(32)."
            )));
        }
        let ahead = dataset.prefetch(AHEAD);
        Ok(ModelData(DataKind::Batches(BatchSource {
            begin: Box::new(move || Box::new(OfDataset(ahead.iter(), prepare))),
            count: dataset.cardinality(),
            origin: Origin::Dataset,
            spec: None,
        })))
    }

    /// True if the data consist of batches.
    pub(crate) fn in_batches(&self) -> bool {
        matches!(self.0, DataKind::Batches(_))
    }

    pub(crate) fn arrays(
        x: Vec<Column<'a>>,
        y: Vec<Column<'a>>,
        w: Vec<Column<'a>>,
    ) -> Result<Self> {
        Ok(ModelData(DataKind::Arrays(Rc::new(Arrays::new(x, y, w)?))))
    }
}

/// Whether a part of the elements is known to have no axis.
fn has_scalar(spec: &ItemSpec) -> bool {
    match spec {
        ItemSpec::Array { shape, .. } => shape.as_ref().is_some_and(Vec::is_empty),
        ItemSpec::Tuple(parts) => parts.iter().any(has_scalar),
        ItemSpec::Struct(_, fields) => fields.iter().any(|(_, part)| has_scalar(part)),
    }
}

/// The data for training, evaluating or calling a model.
///
/// - Arrays: `(x, y)`, `(x, y, sample_weight)`, and `x` or `(x,)` for `predict`. Each is a [`Tensor`], an `ndarray` array, a
///   slice, a `Vec`, nested ones, or a tuple of them for several inputs or outputs: `((&images, &ages), &labels)`.
/// - [`Images`](super::mnist::Images): MNIST and similar data sets, by reference.
/// - A [`Dataset`](super::Dataset) of batches, by value or by reference: `x`, `(x, y)` or `(x, y, sample_weight)` of host
///   arrays, of tensors, or of tuples of them. Each epoch begins a new pass, which shuffles again. A thread makes the next
///   batches while the device computes.
/// - Batches: a closure that returns an iterator of batches for each pass, or a reference to a `Vec` or slice of batches. A
///   batch is an element like those of a dataset, or a [`Batch`].
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::data::{Dataset, IntoModelData, drawn_digits::draw_digits};
/// let digits = draw_digits(100, 1);
/// let images = wgrad::ndarray::Array2::<f32>::zeros((100, 784));
/// (&images, &digits.labels).into_model_data()?;
/// (&digits).into_model_data()?;
/// Dataset::from_tensor_slices(digits.clone())?.batch(10).into_model_data()?;
/// let error = (&images, &digits.labels[..99]).into_model_data().err().expect("they differ").to_string();
/// assert!(error.contains("x is [100, 784], y is [99]"), "{error}");
/// # Ok(())
/// # }
/// ```
pub trait IntoModelData<'a> {
    /// The data.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if arrays differ in their numbers of examples, or a dataset is not batched.
    fn into_model_data(self) -> Result<ModelData<'a>>;
}

impl<'a> IntoModelData<'a> for ModelData<'a> {
    fn into_model_data(self) -> Result<ModelData<'a>> {
        Ok(self)
    }
}

impl<'a> IntoModelData<'a> for &'a Images {
    fn into_model_data(self) -> Result<ModelData<'a>> {
        let [x, y] = Column::of_images(self)?;
        ModelData::arrays(vec![x], vec![y], Vec::new())
    }
}

impl<'a, T: Item + IntoBatch> IntoModelData<'a> for Dataset<T> {
    fn into_model_data(self) -> Result<ModelData<'a>> {
        ModelData::of_dataset(&self)
    }
}

impl<'a, T: Item + IntoBatch> IntoModelData<'a> for &Dataset<T> {
    fn into_model_data(self) -> Result<ModelData<'a>> {
        ModelData::of_dataset(self)
    }
}

impl<'a> IntoModelData<'a> for Tensor {
    fn into_model_data(self) -> Result<ModelData<'a>> {
        (self,).into_model_data()
    }
}

impl<'a> IntoModelData<'a> for &Tensor {
    fn into_model_data(self) -> Result<ModelData<'a>> {
        (self,).into_model_data()
    }
}

impl<'a, S, D, T> IntoModelData<'a> for &'a ArrayBase<S, D>
where
    S: Data<Elem = T>,
    D: Dimension,
    T: HostElement,
{
    fn into_model_data(self) -> Result<ModelData<'a>> {
        (self,).into_model_data()
    }
}

impl<'a, D: Dimension, T: HostElement> IntoModelData<'a> for ArrayBase<OwnedRepr<T>, D> {
    fn into_model_data(self) -> Result<ModelData<'a>> {
        (self,).into_model_data()
    }
}

impl<'a, X: IntoColumns<'a>> IntoModelData<'a> for (X,) {
    fn into_model_data(self) -> Result<ModelData<'a>> {
        ModelData::arrays(self.0.into_columns()?, Vec::new(), Vec::new())
    }
}

impl<'a, X: IntoColumns<'a>, Y: IntoColumns<'a>> IntoModelData<'a> for (X, Y) {
    fn into_model_data(self) -> Result<ModelData<'a>> {
        ModelData::arrays(self.0.into_columns()?, self.1.into_columns()?, Vec::new())
    }
}

impl<'a, X, Y, W> IntoModelData<'a> for (X, Y, W)
where
    X: IntoColumns<'a>,
    Y: IntoColumns<'a>,
    W: IntoColumns<'a>,
{
    fn into_model_data(self) -> Result<ModelData<'a>> {
        let (x, y) = (self.0.into_columns()?, self.1.into_columns()?);
        ModelData::arrays(x, y, self.2.into_columns()?)
    }
}

impl<'a, B: Clone + IntoBatch> IntoModelData<'a> for &'a [B] {
    fn into_model_data(self) -> Result<ModelData<'a>> {
        Ok(ModelData::from_fn(|| self.iter().cloned()))
    }
}

impl<'a, B: Clone + IntoBatch> IntoModelData<'a> for &'a Vec<B> {
    fn into_model_data(self) -> Result<ModelData<'a>> {
        self[..].into_model_data()
    }
}

impl<'a, B: Clone + IntoBatch + 'a> IntoModelData<'a> for Vec<B> {
    fn into_model_data(self) -> Result<ModelData<'a>> {
        Ok(ModelData::from_fn(move || self.clone()))
    }
}

impl<'a, F, I> IntoModelData<'a> for F
where
    F: FnMut() -> I + 'a,
    I: IntoIterator<IntoIter: 'a, Item: IntoBatch + 'a>,
{
    fn into_model_data(self) -> Result<ModelData<'a>> {
        Ok(ModelData::from_fn(self))
    }
}
