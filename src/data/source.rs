//! [`Source`]: where a model's batches come from: arrays, which can be shuffled and split, or an iterator that can begin
//! anew.

use std::rc::Rc;

use ndarray::{ArrayBase, Data, Dimension, OwnedRepr};

use super::batch::{Batch, IntoBatch};
use super::columns::{Column, IntoColumns, lengths_differ};
use super::images::Images;
use crate::error::Result;
use crate::tensor::{HostElement, Tensor};

/// Where batches come from.
pub struct Source<'a>(pub(crate) Kind<'a>);

/// The two kinds of sources.
pub(crate) enum Kind<'a> {
    Arrays(Rc<Arrays<'a>>),
    Batches(Begin<'a>),
}

/// The batches of one pass through the data.
pub(crate) type Pass<'a> = Box<dyn Iterator<Item = Result<Batch>> + 'a>;

/// Begins a pass.
pub(crate) type Begin<'a> = Box<dyn FnMut() -> Result<Pass<'a>> + 'a>;

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

    /// The examples at `places`, which must exist.
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

impl<'a> Source<'a> {
    /// A source that calls `begin` for the batches of each pass.
    pub fn from_fn<I>(mut begin: impl FnMut() -> I + 'a) -> Self
    where
        I: IntoIterator<IntoIter: 'a, Item: IntoBatch + 'a>,
    {
        Source(Kind::Batches(Box::new(move || {
            Ok(Box::new(begin().into_iter().map(IntoBatch::into_batch)))
        })))
    }

    /// True if the data come in batches.
    pub(crate) fn in_batches(&self) -> bool {
        matches!(self.0, Kind::Batches(_))
    }

    fn arrays(x: Vec<Column<'a>>, y: Vec<Column<'a>>, w: Vec<Column<'a>>) -> Result<Self> {
        Ok(Source(Kind::Arrays(Rc::new(Arrays::new(x, y, w)?))))
    }
}

/// What a model is trained on, measured on, or called on.
///
/// - Arrays: `(x, y)`, `(x, y, sample_weight)`, and `x` or `(x,)` for `predict`. Each is a [`Tensor`], an `ndarray` array, a
///   slice, a `Vec`, nested ones, or a tuple of them for several inputs or outputs: `((&images, &ages), &labels)`.
/// - [`Images`](super::mnist::Images): MNIST and its like, behind a reference.
/// - Batches: a closure that gives an iterator of batches for each pass, such as `|| images.batches(32, None)`, or a
///   reference to a `Vec` or slice of batches. A batch is a [`Batch`], `(x, y)` or `(x, y, sample_weight)` of tensors.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::data::{IntoSource, drawn_digits::draw_digits};
/// let digits = draw_digits(100, 1);
/// let images = ndarray::Array2::<f32>::zeros((100, 784));
/// (&images, &digits.labels).into_source()?;
/// (&digits).into_source()?;
/// (|| digits.batches(10, None)).into_source()?;
/// let error = (&images, &digits.labels[..99]).into_source().err().expect("they differ").to_string();
/// assert!(error.contains("x is [100, 784], y is [99]"), "{error}");
/// # Ok(())
/// # }
/// ```
pub trait IntoSource<'a> {
    /// The source.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if arrays differ in their numbers of examples.
    fn into_source(self) -> Result<Source<'a>>;
}

impl<'a> IntoSource<'a> for Source<'a> {
    fn into_source(self) -> Result<Source<'a>> {
        Ok(self)
    }
}

impl<'a> IntoSource<'a> for &'a Images {
    fn into_source(self) -> Result<Source<'a>> {
        let [x, y] = Column::of_images(self)?;
        Source::arrays(vec![x], vec![y], Vec::new())
    }
}

impl<'a> IntoSource<'a> for Tensor {
    fn into_source(self) -> Result<Source<'a>> {
        (self,).into_source()
    }
}

impl<'a> IntoSource<'a> for &Tensor {
    fn into_source(self) -> Result<Source<'a>> {
        (self,).into_source()
    }
}

impl<'a, S, D, T> IntoSource<'a> for &'a ArrayBase<S, D>
where
    S: Data<Elem = T>,
    D: Dimension,
    T: HostElement,
{
    fn into_source(self) -> Result<Source<'a>> {
        (self,).into_source()
    }
}

impl<'a, D: Dimension, T: HostElement> IntoSource<'a> for ArrayBase<OwnedRepr<T>, D> {
    fn into_source(self) -> Result<Source<'a>> {
        (self,).into_source()
    }
}

impl<'a, X: IntoColumns<'a>> IntoSource<'a> for (X,) {
    fn into_source(self) -> Result<Source<'a>> {
        Source::arrays(self.0.into_columns()?, Vec::new(), Vec::new())
    }
}

impl<'a, X: IntoColumns<'a>, Y: IntoColumns<'a>> IntoSource<'a> for (X, Y) {
    fn into_source(self) -> Result<Source<'a>> {
        Source::arrays(self.0.into_columns()?, self.1.into_columns()?, Vec::new())
    }
}

impl<'a, X, Y, W> IntoSource<'a> for (X, Y, W)
where
    X: IntoColumns<'a>,
    Y: IntoColumns<'a>,
    W: IntoColumns<'a>,
{
    fn into_source(self) -> Result<Source<'a>> {
        let (x, y) = (self.0.into_columns()?, self.1.into_columns()?);
        Source::arrays(x, y, self.2.into_columns()?)
    }
}

impl<'a, B: Clone + IntoBatch> IntoSource<'a> for &'a [B] {
    fn into_source(self) -> Result<Source<'a>> {
        Ok(Source::from_fn(|| self.iter().cloned()))
    }
}

impl<'a, B: Clone + IntoBatch> IntoSource<'a> for &'a Vec<B> {
    fn into_source(self) -> Result<Source<'a>> {
        self[..].into_source()
    }
}

impl<'a, B: Clone + IntoBatch + 'a> IntoSource<'a> for Vec<B> {
    fn into_source(self) -> Result<Source<'a>> {
        Ok(Source::from_fn(move || self.clone()))
    }
}

impl<'a, F, I> IntoSource<'a> for F
where
    F: FnMut() -> I + 'a,
    I: IntoIterator<IntoIter: 'a, Item: IntoBatch + 'a>,
{
    fn into_source(self) -> Result<Source<'a>> {
        Ok(Source::from_fn(self))
    }
}
