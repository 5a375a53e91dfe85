//! [`HostLayer`]: layers whose inputs are on the host, as strings always are; [`HostInput`]: what they accept.

use std::fmt::Debug;

use ndarray::{ArrayBase, Data, Dimension};

use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType, Number};
use crate::shape::Shape;
use crate::trackable::Trackable;

/// A preprocessing layer that computes on the host: its inputs are strings, or numbers of any dtype, and so are its results.
/// Call it in [`Dataset::map`](crate::data::Dataset::map), or make a tensor of the result with
/// [`to_tensor`](HostArray::to_tensor).
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::layers::{HostLayer, StringLookup};
/// let layer = StringLookup::new().vocabulary(["cat", "dog"]);
/// let y = layer.apply(&[["dog", "bird"], ["cat", "cat"]])?;
/// assert_eq!(y.to_array::<i64>()?, ndarray::array![[2, 0], [1, 1]].into_dyn());
/// assert_eq!(y.to_tensor()?.to_vec::<i32>()?, [2, 0, 1, 1]);
/// # Ok(())
/// # }
/// ```
pub trait HostLayer: Trackable + Debug {
    /// Computes the layer's result for an array.
    ///
    /// # Errors
    /// [`Error::DType`] if the layer does not accept the dtype, [`Error::Shape`] if it does not accept the shape, or if the result
    /// would not fit into memory; [`Error::Data`] if the layer's options contradict each other, or a value is one that it cannot
    /// represent.
    fn call_host(&self, x: &HostArray<'_>) -> Result<HostArray<'static>>;

    /// Same as [`call_host`](HostLayer::call_host), for anything that can become an array: strings, numbers, lists, `ndarray`
    /// arrays.
    ///
    /// # Errors
    /// Same as [`call_host`](HostLayer::call_host).
    fn apply<X: HostInput + ?Sized>(&self, x: &X) -> Result<HostArray<'static>>
    where
        Self: Sized,
    {
        self.call_host(&x.host_array())
    }

    /// Whether the layer learns from data.
    fn is_adaptable(&self) -> bool {
        false
    }

    /// Forgets what the layer has seen since [`finalize_state`](HostLayer::finalize_state).
    fn reset_state(&self) {}

    /// Adds a batch to what the layer learns from. [`adapt`](HostLayer::adapt) does this for all data.
    ///
    /// # Errors
    /// [`Error::DType`] if the layer does not accept the dtype; [`Error::Data`] if the layer does not learn, or the program has set
    /// what it would learn.
    fn update_state(&self, batch: &HostArray<'_>) -> Result<()> {
        let _ = batch;
        Err(Error::Data(message!(
            "{}: the layer learns nothing from data. Leave out adapt.",
            self.kind()
        )))
    }

    /// Replaces what the layer knows by what it has learnt.
    ///
    /// # Errors
    /// [`Error::Data`] if it has seen no data.
    fn finalize_state(&self) -> Result<()> {
        Ok(())
    }

    /// Learns from `data`: a vocabulary, bin boundaries. What it has learnt before is discarded. A list of one axis counts as a batch
    /// of examples with one value each.
    ///
    /// # Errors
    /// [`Error::Data`] if the data is empty, the layer learns nothing, or the program has set what it would learn;
    /// [`Error::DType`] if the layer does not accept the dtype.
    fn adapt<X: HostInput + ?Sized>(&self, data: &X) -> Result<()>
    where
        Self: Sized,
    {
        self.reset_state();
        self.update_state(&column(data.host_array()))?;
        self.finalize_state()
    }

    /// Same as [`adapt`](HostLayer::adapt), from the batches of a dataset. As in Keras, a batch of one axis is then one example.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::data::Dataset;
    /// use wgrad::keras::layers::{HostLayer, StringLookup};
    /// let words = Dataset::from_tensor_slices(["b", "a", "b", "c"].map(String::from).to_vec())?.batch(3);
    /// let layer = StringLookup::new();
    /// layer.adapt_batches(&words)?;
    /// assert_eq!(layer.get_vocabulary()?, ["[UNK]", "b", "c", "a"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of the batches; else the same as [`adapt`](HostLayer::adapt).
    fn adapt_batches<B: HostInput>(
        &self,
        batches: impl IntoIterator<Item = Result<B>>,
    ) -> Result<()>
    where
        Self: Sized,
    {
        self.reset_state();
        for batch in batches {
            self.update_state(&batch?.host_array())?;
        }
        self.finalize_state()
    }

    /// Returns the words by index, special tokens included, as an array of one axis; `None` if the layer has no vocabulary. For
    /// code that does not know the layer's type, whose own `get_vocabulary` returns a list.
    ///
    /// # Errors
    /// [`Error::Data`] if the vocabulary that was set is invalid.
    fn vocabulary_array(&self) -> Result<Option<HostArray<'static>>> {
        Ok(None)
    }

    /// Sets the words by index, without special tokens or beginning with all of them, and with
    /// [`OutputMode::TfIdf`](super::OutputMode::TfIdf) their weights. For code that does not know the layer's type, which has
    /// `set_vocabulary`.
    ///
    /// # Errors
    /// [`Error::Data`] if the layer has no vocabulary, or this one is invalid; [`Error::DType`] if the words have another dtype.
    fn set_vocabulary_array(
        &self,
        words: &HostArray<'_>,
        idf_weights: Option<&[f32]>,
    ) -> Result<()> {
        let _ = (words, idf_weights);
        Err(Error::Data(message!(
            "{}: the layer has no vocabulary that could be set.",
            self.kind()
        )))
    }

    /// The number of indices, if the layer's results are indices.
    #[doc(hidden)]
    fn cardinality(&self) -> Result<Option<usize>> {
        Ok(None)
    }

    /// The layer's class and options, including what it has learnt; Keras's `get_config`.
    ///
    /// # Errors
    /// [`Error::Data`] if an option is a custom function, or a learnt word is not valid UTF-8, which JSON cannot hold.
    #[cfg(feature = "json")]
    fn describe(&self) -> Result<crate::keras::Config>;
}

impl<L: HostLayer + ?Sized> HostLayer for Box<L> {
    fn call_host(&self, x: &HostArray<'_>) -> Result<HostArray<'static>> {
        (**self).call_host(x)
    }

    fn is_adaptable(&self) -> bool {
        (**self).is_adaptable()
    }

    fn reset_state(&self) {
        (**self).reset_state();
    }

    fn update_state(&self, batch: &HostArray<'_>) -> Result<()> {
        (**self).update_state(batch)
    }

    fn finalize_state(&self) -> Result<()> {
        (**self).finalize_state()
    }

    fn vocabulary_array(&self) -> Result<Option<HostArray<'static>>> {
        (**self).vocabulary_array()
    }

    fn set_vocabulary_array(
        &self,
        words: &HostArray<'_>,
        idf_weights: Option<&[f32]>,
    ) -> Result<()> {
        (**self).set_vocabulary_array(words, idf_weights)
    }

    fn cardinality(&self) -> Result<Option<usize>> {
        (**self).cardinality()
    }

    #[cfg(feature = "json")]
    fn describe(&self) -> Result<crate::keras::Config> {
        (**self).describe()
    }
}

/// A list of one axis as a batch of examples with one value each.
pub(super) fn column(array: HostArray<'_>) -> HostArray<'_> {
    match array.shape() {
        &[rows] => array.with_shape([rows, 1]),
        _ => array,
    }
}

/// What [`HostLayer::apply`] and [`HostLayer::adapt`] accept: a [`HostArray`], a string or a number, and lists, nested lists of two
/// levels, `Vec`s and `ndarray` arrays of them.
pub trait HostInput {
    /// The values as an array.
    fn host_array(&self) -> HostArray<'_>;
}

/// A string or a number.
pub trait HostValue: Sized {
    #[doc(hidden)]
    fn array<'a>(shape: Shape, values: impl Iterator<Item = &'a Self>) -> HostArray<'static>
    where
        Self: 'a;
}

macro_rules! numbers {
    ($($dtype:ident $type:ty),*) => {$(
        impl HostValue for $type {
            fn array<'a>(shape: Shape, values: impl Iterator<Item = &'a Self>) -> HostArray<'static> {
                let bytes: Vec<u8> = values.flat_map(|value| value.to_le_bytes()).collect();
                HostArray::of_bytes(HostDType::$dtype, shape, bytes)
            }
        }
    )*};
}
numbers!(F32 f32, F64 f64, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64);

impl HostValue for bool {
    fn array<'a>(shape: Shape, values: impl Iterator<Item = &'a Self>) -> HostArray<'static> {
        let bytes: Vec<u8> = values.map(|value| u8::from(*value)).collect();
        HostArray::of_bytes(HostDType::Bool, shape, bytes)
    }
}

macro_rules! texts {
    ($($type:ty),*) => {$(
        impl HostValue for $type {
            fn array<'a>(shape: Shape, values: impl Iterator<Item = &'a Self>) -> HostArray<'static>
            where
                Self: 'a,
            {
                HostArray::of_strings(shape, values.map(|text| text.as_bytes().to_vec()).collect())
            }
        }
    )*};
}
texts!(&str, String);

impl HostInput for HostArray<'_> {
    fn host_array(&self) -> HostArray<'_> {
        self.view()
    }
}

impl HostInput for str {
    fn host_array(&self) -> HostArray<'_> {
        <&str>::array(Shape::from([]), std::iter::once(&self))
    }
}

macro_rules! scalars {
    ($($type:ty),*) => {$(
        impl HostInput for $type {
            fn host_array(&self) -> HostArray<'_> {
                <$type>::array(Shape::from([]), std::iter::once(self))
            }
        }
    )*};
}
scalars!(f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, bool, String);

impl<T: HostInput + ?Sized> HostInput for &T {
    fn host_array(&self) -> HostArray<'_> {
        (**self).host_array()
    }
}

impl<T: HostValue> HostInput for [T] {
    fn host_array(&self) -> HostArray<'_> {
        T::array(Shape::from([self.len()]), self.iter())
    }
}

impl<T: HostValue> HostInput for Vec<T> {
    fn host_array(&self) -> HostArray<'_> {
        self[..].host_array()
    }
}

impl<T: HostValue, const N: usize> HostInput for [T; N] {
    fn host_array(&self) -> HostArray<'_> {
        self[..].host_array()
    }
}

impl<T: HostValue, const N: usize, const M: usize> HostInput for [[T; N]; M] {
    fn host_array(&self) -> HostArray<'_> {
        T::array(Shape::from([M, N]), self.iter().flatten())
    }
}

impl<T: HostValue, S: Data<Elem = T>, D: Dimension> HostInput for ArrayBase<S, D> {
    fn host_array(&self) -> HostArray<'_> {
        T::array(Shape::from(self.shape()), self.iter())
    }
}

/// The strings of an array.
pub(super) fn strings<'a>(layer: &str, x: &'a HostArray<'_>) -> Result<&'a [Vec<u8>]> {
    x.strings().ok_or_else(|| {
        Error::DType(message!(
            "{layer}: the input {:?} is {}; it must be strings. Convert numbers to strings, or take a layer for integers.",
            x.shape(),
            x.dtype()
        ))
    })
}

/// The integers of an array.
pub(super) fn integers(layer: &str, x: &HostArray<'_>) -> Result<Vec<i64>> {
    let wrong = || {
        Error::DType(message!(
            "{layer}: the input {:?} is {}; it must be integers. Convert it, or take a layer for strings.",
            x.shape(),
            x.dtype()
        ))
    };
    if x.dtype().is_float() || x.dtype() == HostDType::Bool {
        return Err(wrong());
    }
    x.numbers()
        .ok_or_else(wrong)?
        .map(|number| match number {
            Number::Int(x) => i64::try_from(x).map_err(|_| {
                Error::Data(message!(
                    "{layer}: the input has {x}, which 64 bits with a sign cannot represent."
                ))
            }),
            Number::Float(_) => Err(wrong()),
        })
        .collect()
}

/// The numbers of an array as `f32`.
pub(super) fn floats(layer: &str, x: &HostArray<'_>) -> Result<Vec<f32>> {
    let numbers = x.numbers().ok_or_else(|| {
        Error::DType(message!(
            "{layer}: the input {:?} is {}; it must be numbers. Parse strings first.",
            x.shape(),
            x.dtype()
        ))
    })?;
    Ok(numbers
        .map(|number| match number {
            Number::Float(x) => x as f32,
            Number::Int(x) => x as f32,
        })
        .collect())
}

/// A string for a message, in quotes and not too long.
pub(super) fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("{:?}..", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// A string that must be UTF-8.
pub(super) fn utf8<'a>(layer: &str, what: &str, text: &'a [u8]) -> Result<&'a str> {
    std::str::from_utf8(text).map_err(|error| {
        Error::Data(message!(
            "{layer}: {what} needs text, and {} is not valid UTF-8 from byte {} on. Convert the data to UTF-8.",
            shown(text),
            error.valid_up_to()
        ))
    })
}
