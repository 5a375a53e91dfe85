//! `from_tensor_slices` and `from_tensors`: elements from arrays of the program.

use std::sync::Arc;

use ndarray::{Array, Axis, Ix1, Ix2, Ix3, Ix4, Ix5, Ix6, IxDyn};

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemScalar, ItemSpec};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

/// What [`Dataset::from_tensor_slices`] slices along the first axis: a `Vec` of elements, an `ndarray` array, a tensor, a tuple
/// of these; or one of them in an `Arc`.
pub trait TensorSlices: Send + Sync + 'static {
    /// The type of a slice.
    type Item: Item;

    /// The sizes of the first axes, one for each array.
    #[doc(hidden)]
    fn lengths(&self, lengths: &mut Vec<Option<usize>>);

    /// Slice `at`, which must exist.
    #[doc(hidden)]
    fn slice(&self, at: usize) -> Result<Self::Item>;

    /// The specification of a slice.
    #[doc(hidden)]
    fn spec(&self) -> ItemSpec;
}

impl<T: Item> TensorSlices for Vec<T> {
    type Item = T;

    fn lengths(&self, lengths: &mut Vec<Option<usize>>) {
        lengths.push(Some(self.len()));
    }

    fn slice(&self, at: usize) -> Result<T> {
        Ok(self[at].clone())
    }

    fn spec(&self) -> ItemSpec {
        let merge = |spec: Option<ItemSpec>, item: &T| match spec {
            None => Some(item.spec()),
            Some(spec) => spec.merge(item.spec()),
        };
        self.iter()
            .take(1000)
            .fold(None, merge)
            .filter(|_| self.len() <= 1000)
            .unwrap_or_else(T::type_spec)
    }
}

impl<A: ItemScalar> TensorSlices for Array<A, Ix1> {
    type Item = A;

    fn lengths(&self, lengths: &mut Vec<Option<usize>>) {
        lengths.push(Some(self.len()));
    }

    fn slice(&self, at: usize) -> Result<A> {
        Ok(self[at].clone())
    }

    fn spec(&self) -> ItemSpec {
        A::type_spec()
    }
}

macro_rules! arrays {
    ($($d:ty => $slice:ty),*) => {$(
        impl<A: ItemScalar> TensorSlices for Array<A, $d> {
            type Item = Array<A, $slice>;

            fn lengths(&self, lengths: &mut Vec<Option<usize>>) {
                lengths.push(self.shape().first().copied());
            }

            fn slice(&self, at: usize) -> Result<Self::Item> {
                Ok(self.index_axis(Axis(0), at).to_owned())
            }

            fn spec(&self) -> ItemSpec {
                ItemSpec::array(A::NAME, self.shape().get(1..).unwrap_or_default())
            }
        }
    )*};
}
// `Array2<A>` has slices `Array1<A>`.
arrays!(Ix2 => Ix1, Ix3 => Ix2, Ix4 => Ix3, Ix5 => Ix4, Ix6 => Ix5, IxDyn => IxDyn);

impl<S: TensorSlices> TensorSlices for Arc<S> {
    type Item = S::Item;

    fn lengths(&self, lengths: &mut Vec<Option<usize>>) {
        (**self).lengths(lengths);
    }

    fn slice(&self, at: usize) -> Result<Self::Item> {
        (**self).slice(at)
    }

    fn spec(&self) -> ItemSpec {
        (**self).spec()
    }
}

impl TensorSlices for Tensor {
    type Item = Tensor;

    fn lengths(&self, lengths: &mut Vec<Option<usize>>) {
        lengths.push(self.shape().first().copied());
    }

    fn slice(&self, at: usize) -> Result<Tensor> {
        self.row(at)
    }

    fn spec(&self) -> ItemSpec {
        ItemSpec::array(self.dtype().name(), self.shape().get(1..).unwrap_or_default())
    }
}

macro_rules! tuples {
    ($(($($item:ident $at:tt),+))*) => {$(
        impl<$($item: TensorSlices),+> TensorSlices for ($($item,)+) {
            type Item = ($($item::Item,)+);

            fn lengths(&self, lengths: &mut Vec<Option<usize>>) {
                $(self.$at.lengths(lengths);)+
            }

            fn slice(&self, at: usize) -> Result<Self::Item> {
                Ok(($(self.$at.slice(at)?,)+))
            }

            fn spec(&self) -> ItemSpec {
                ItemSpec::Tuple(vec![$(self.$at.spec()),+])
            }
        }
    )*};
}
// `(A, B)` has slices `(A::Item, B::Item)`.
tuples!((A 0)(A 0, B 1)(A 0, B 1, C 2)(A 0, B 1, C 2, D 3)(A 0, B 1, C 2, D 3, E 4)(A 0, B 1, C 2, D 3, E 4, F 5));

impl<T: Item> Dataset<T> {
    /// The slices of arrays along their first axis.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::Dataset;
    /// let images = wgrad::ndarray::Array3::<u8>::zeros((60, 28, 28));
    /// let labels = vec![7u8; 60];
    /// let dataset = Dataset::from_tensor_slices((images, labels))?;
    /// let (image, label) = dataset.iter().next().expect("60 elements")?;
    /// assert_eq!((image.shape(), label), (&[28, 28][..], 7));
    /// let error = Dataset::from_tensor_slices((vec![1, 2, 3], vec![1, 2])).unwrap_err();
    /// assert!(error.to_string().contains("[3, 2]"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if an array has no axis, or the first axes differ.
    pub fn from_tensor_slices(slices: impl TensorSlices<Item = T>) -> Result<Self> {
        let mut lengths = Vec::new();
        slices.lengths(&mut lengths);
        let Some(known): Option<Vec<usize>> = lengths.into_iter().collect() else {
            return Err(Error::Shape(
                "from_tensor_slices: an array is a scalar; the first axis of each counts the elements. Use `from_tensors` \
                 for a single element."
                    .into(),
            ));
        };
        if known.iter().any(|length| *length != known[0]) {
            return Err(Error::Shape(message!(
                "from_tensor_slices: the first axes are {known:?}; they count the elements and must be equal."
            )));
        }
        Ok(Dataset::new(Slices { slices: Arc::new(slices), count: known[0] }))
    }

    /// A dataset with this single element.
    ///
    /// ```
    /// use wgrad::data::Dataset;
    /// let dataset = Dataset::from_tensors([1.0f32, 2.0]);
    /// assert_eq!(dataset.element_spec().to_string(), "f32[2]");
    /// ```
    pub fn from_tensors(element: T) -> Self {
        Dataset::new(Slices { slices: Arc::new(vec![element]), count: 1 })
    }
}

struct Slices<S> {
    slices: Arc<S>,
    count: usize,
}

struct SlicesStream<S> {
    slices: Arc<S>,
    count: usize,
    at: usize,
}

impl<S: TensorSlices> Node<S::Item> for Slices<S> {
    fn open(&self, _: &Pass) -> Result<BoxStream<S::Item>> {
        Ok(Box::new(SlicesStream { slices: self.slices.clone(), count: self.count, at: 0 }))
    }

    fn cardinality(&self) -> Cardinality {
        Cardinality::Known(self.count)
    }

    fn spec(&self) -> ItemSpec {
        self.slices.spec()
    }
}

impl<S: TensorSlices> Stream<S::Item> for SlicesStream<S> {
    fn next(&mut self) -> Option<Result<S::Item>> {
        if self.at == self.count {
            return None;
        }
        self.at += 1;
        Some(self.slices.slice(self.at - 1))
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name("from_tensor_slices", out);
        out.number(self.at as u64);
        Ok(())
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name("from_tensor_slices", from)?;
        let at = from.number()?;
        self.at = usize::try_from(at).ok().filter(|at| *at <= self.count).ok_or_else(|| {
            Error::Data(message!(
                "resume: the state is at element {at}, and the arrays have {}. Resume with the dataset that the \
                 iterator came from.",
                self.count
            ))
        })?;
        Ok(())
    }
}
