//! [`FixedLenFeature`], [`VarLenFeature`], [`FixedLenSequenceFeature`]: how a program describes a feature.

use std::marker::PhantomData;

use ndarray::{Array, Dimension, IntoDimension};

use super::messages::{Feature, FeatureKind, FeatureList};
use super::parse::{ParseFeature, ParseFeatureList};
use crate::error::{Error, Result, message};

/// The type of a feature's values: `i64` for an `int64_list`, `f32` for a `float_list`, `Vec<u8>` or `String` for a
/// `bytes_list`.
pub trait FeatureElement: Clone + Send + Sync + 'static {
    /// The name of the type and the list, for messages.
    const NAME: &'static str;

    /// The values, if they are of this kind.
    ///
    /// # Errors
    /// [`Error::Data`] if the type is `String` and the bytes are not UTF-8.
    fn values(name: &str, kind: &FeatureKind) -> Result<Option<Vec<Self>>>;
}

macro_rules! feature_element {
    ($($type:ty, $list:ident, $name:literal;)*) => {$(
        impl FeatureElement for $type {
            const NAME: &'static str = $name;

            fn values(_: &str, kind: &FeatureKind) -> Result<Option<Vec<Self>>> {
                Ok(match kind {
                    FeatureKind::$list(list) => Some(list.value.clone()),
                    _ => None,
                })
            }
        }
    )*};
}

feature_element! {
    i64, Int64List, "i64 of an int64_list";
    f32, FloatList, "f32 of a float_list";
    Vec<u8>, BytesList, "bytes of a bytes_list";
}

impl FeatureElement for String {
    const NAME: &'static str = "String of a bytes_list";

    fn values(name: &str, kind: &FeatureKind) -> Result<Option<Vec<Self>>> {
        let FeatureKind::BytesList(list) = kind else { return Ok(None) };
        let texts = list.value.iter().enumerate().map(|(i, bytes)| {
            std::str::from_utf8(bytes).map(str::to_string).map_err(|error| {
                Error::Data(message!(
                    "Example: value {i} of the feature \"{name}\" is not valid UTF-8 ({error}). Describe it as \
                     Vec<u8> if it is not text."
                ))
            })
        });
        texts.collect::<Result<Vec<String>>>().map(Some)
    }
}

/// The shape of a feature that is one value, not an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneValue;

/// A feature with as many values as its shape has elements: one value of type `T`, or an `ndarray` array.
#[derive(Debug, Clone)]
pub struct FixedLenFeature<T, S = OneValue> {
    shape: S,
    default: Option<Vec<T>>,
    /// The shape of the default, if it differs from the feature's.
    misshapen: Option<Vec<usize>>,
}

impl<T: FeatureElement> FixedLenFeature<T> {
    /// One value.
    pub fn scalar() -> Self {
        FixedLenFeature { shape: OneValue, default: None, misshapen: None }
    }

    /// An array of this shape: `[28, 28]` makes an `Array2`.
    #[allow(clippy::new_ret_no_self)] // The type of the shape follows from the argument.
    pub fn new<D: Dimension>(shape: impl IntoDimension<Dim = D>) -> FixedLenFeature<T, D> {
        FixedLenFeature { shape: shape.into_dimension(), default: None, misshapen: None }
    }

    /// The value to use if the feature is missing.
    #[must_use]
    pub fn default_value(mut self, value: impl Into<T>) -> Self {
        self.default = Some(vec![value.into()]);
        self
    }
}

impl<T: FeatureElement, D: Dimension> FixedLenFeature<T, D> {
    /// The array to use if the feature is missing; it has the feature's shape.
    #[must_use]
    pub fn default_value(mut self, value: impl Into<Array<T, D>>) -> Self {
        let value = value.into();
        self.misshapen = (value.raw_dim() != self.shape).then(|| value.shape().to_vec());
        self.default = Some(value.iter().cloned().collect());
        self
    }
}

impl<T: FeatureElement> ParseFeature for FixedLenFeature<T> {
    type Value = T;

    fn parse(&self, name: &str, feature: Option<&Feature>) -> Result<T> {
        let values = self.values(name, feature)?;
        let count = values.len();
        match <[T; 1]>::try_from(values) {
            Ok([value]) => Ok(value),
            Err(_) => Err(miscounted(name, count, &[])),
        }
    }
}

impl<T: FeatureElement, D: Dimension> ParseFeature for FixedLenFeature<T, D> {
    type Value = Array<T, D>;

    fn parse(&self, name: &str, feature: Option<&Feature>) -> Result<Self::Value> {
        if let Some(found) = &self.misshapen {
            return Err(Error::Data(message!(
                "Example: the default_value of \"{name}\" is {found:?}, and the feature's shape is {:?}. \
                 They must be equal.",
                self.shape.slice()
            )));
        }
        shaped(name, self.values(name, feature)?, self.shape.clone())
    }
}

impl<T: FeatureElement, S> FixedLenFeature<T, S> {
    fn values(&self, name: &str, feature: Option<&Feature>) -> Result<Vec<T>> {
        match (values(name, feature)?, &self.default) {
            (Some(values), _) => Ok(values),
            (None, Some(default)) => Ok(default.clone()),
            (None, None) => Err(missing::<T>(name, "Give it a default_value, or check its name.")),
        }
    }
}

/// A feature with any number of values, as a `Vec`, which is empty if the feature is missing.
///
/// TensorFlow returns a sparse tensor instead. In a pipeline, `padded_batch` makes batches of such rows.
#[derive(Debug, Clone, Copy)]
pub struct VarLenFeature<T>(PhantomData<T>);

impl<T: FeatureElement> VarLenFeature<T> {
    /// Any number of values.
    #[allow(clippy::new_without_default)] // Its fellows have none: a feature is described in words.
    pub fn new() -> Self {
        VarLenFeature(PhantomData)
    }
}

impl<T: FeatureElement> ParseFeature for VarLenFeature<T> {
    type Value = Vec<T>;

    fn parse(&self, name: &str, feature: Option<&Feature>) -> Result<Vec<T>> {
        Ok(values(name, feature)?.unwrap_or_default())
    }
}

/// The values of each step; none if the sequence is missing.
impl<T: FeatureElement> ParseFeatureList for VarLenFeature<T> {
    type Value = Vec<Vec<T>>;

    fn parse_list(&self, name: &str, list: Option<&FeatureList>) -> Result<Self::Value> {
        let steps = list.map_or(&[][..], |list| &list.feature);
        let steps = steps.iter().enumerate().map(|(at, step)| {
            values(name, Some(step))
                .map(Option::unwrap_or_default)
                .map_err(|error| in_step(error, at))
        });
        steps.collect()
    }
}

/// A feature with any number of elements of one shape: a `Vec` of values, or an array with one more leading axis.
///
/// In a [`SequenceExample`](super::SequenceExample) each step has one element.
#[derive(Debug, Clone)]
pub struct FixedLenSequenceFeature<T, S = OneValue> {
    shape: S,
    allow_missing: bool,
    element: PhantomData<T>,
}

impl<T: FeatureElement> FixedLenSequenceFeature<T> {
    /// Elements of one value.
    pub fn scalar() -> Self {
        FixedLenSequenceFeature { shape: OneValue, allow_missing: false, element: PhantomData }
    }

    /// Elements of this shape.
    #[allow(clippy::new_ret_no_self)] // The type of the shape follows from the argument.
    pub fn new<D: Dimension>(shape: impl IntoDimension<Dim = D>) -> FixedLenSequenceFeature<T, D> {
        let shape = shape.into_dimension();
        FixedLenSequenceFeature { shape, allow_missing: false, element: PhantomData }
    }
}

impl<T: FeatureElement, S> FixedLenSequenceFeature<T, S> {
    /// Whether a record may lack the feature, which then has no elements; default: false.
    #[must_use]
    pub fn allow_missing(mut self, allow_missing: bool) -> Self {
        self.allow_missing = allow_missing;
        self
    }

    fn values(&self, name: &str, feature: Option<&Feature>) -> Result<Vec<T>> {
        match values(name, feature)? {
            Some(values) => Ok(values),
            None if self.allow_missing => Ok(Vec::new()),
            None => Err(self.missing(name)),
        }
    }

    fn missing(&self, name: &str) -> Error {
        missing::<T>(name, "Call allow_missing(true) if it may be missing, or check its name.")
    }

    /// The steps; none if they are missing and may be missing.
    fn steps<'a>(&self, name: &str, list: Option<&'a FeatureList>) -> Result<&'a [Feature]> {
        match list {
            Some(list) => Ok(&list.feature),
            None if self.allow_missing => Ok(&[]),
            None => Err(self.missing(name)),
        }
    }
}

impl<T: FeatureElement> ParseFeature for FixedLenSequenceFeature<T> {
    type Value = Vec<T>;

    fn parse(&self, name: &str, feature: Option<&Feature>) -> Result<Vec<T>> {
        self.values(name, feature)
    }
}

impl<T: FeatureElement, D: Dimension> ParseFeature for FixedLenSequenceFeature<T, D> {
    type Value = Array<T, D::Larger>;

    fn parse(&self, name: &str, feature: Option<&Feature>) -> Result<Self::Value> {
        let values = self.values(name, feature)?;
        let (count, each) = (values.len(), elements(self.shape.slice()));
        let steps = match each {
            Some(each) if each > 0 && count % each == 0 => count / each,
            _ if count == 0 => 0,
            _ => {
                return Err(Error::Data(message!(
                    "Example: the feature \"{name}\" has {count} values, and its elements have the shape {:?}, whose \
                     size does not divide that number.",
                    self.shape.slice()
                )));
            }
        };
        shaped(name, values, stacked(steps, &self.shape))
    }
}

impl<T: FeatureElement> ParseFeatureList for FixedLenSequenceFeature<T> {
    type Value = Vec<T>;

    fn parse_list(&self, name: &str, list: Option<&FeatureList>) -> Result<Self::Value> {
        let steps = self.steps(name, list)?.iter().enumerate();
        let each = FixedLenFeature::<T>::scalar();
        steps.map(|(at, step)| each.parse(name, Some(step)).map_err(|e| in_step(e, at))).collect()
    }
}

impl<T: FeatureElement, D: Dimension> ParseFeatureList for FixedLenSequenceFeature<T, D> {
    type Value = Array<T, D::Larger>;

    fn parse_list(&self, name: &str, list: Option<&FeatureList>) -> Result<Self::Value> {
        let steps = self.steps(name, list)?;
        let wanted = elements(self.shape.slice());
        let mut all = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let values = match values::<T>(name, Some(step)).map_err(|error| in_step(error, at))? {
                Some(values) => values,
                None => return Err(in_step(missing::<T>(name, "Each step must have it."), at)),
            };
            if Some(values.len()) != wanted {
                return Err(in_step(miscounted(name, values.len(), self.shape.slice()), at));
            }
            all.extend(values);
        }
        shaped(name, all, stacked(steps.len(), &self.shape))
    }
}

/// The feature's values; none if the feature is missing or has no kind.
fn values<T: FeatureElement>(name: &str, feature: Option<&Feature>) -> Result<Option<Vec<T>>> {
    let Some(kind) = feature.and_then(|feature| feature.kind.as_ref()) else { return Ok(None) };
    match T::values(name, kind)? {
        Some(values) => Ok(Some(values)),
        None => {
            let found = match kind {
                FeatureKind::BytesList(_) => <Vec<u8>>::NAME,
                FeatureKind::FloatList(_) => f32::NAME,
                FeatureKind::Int64List(_) => i64::NAME,
            };
            Err(Error::Data(message!(
                "Example: the feature \"{name}\" should be {}, and the record has {found}. Correct the description.",
                T::NAME
            )))
        }
    }
}

fn missing<T: FeatureElement>(name: &str, remedy: &str) -> Error {
    let wanted = T::NAME;
    Error::Data(message!(
        "Example: the feature \"{name}\" ({wanted}) is required, and it is missing. {remedy}"
    ))
}

fn miscounted(name: &str, found: usize, shape: &[usize]) -> Error {
    let wanted = elements(shape).map_or("more values than there can be".to_string(), |count| {
        format!("{count} value{}", if count == 1 { "" } else { "s" })
    });
    Error::Data(message!(
        "Example: the feature \"{name}\" should have {wanted}, for the shape {shape:?}, and the record has {found}. \
         Correct the description; a VarLenFeature takes any number."
    ))
}

fn in_step(error: Error, at: usize) -> Error {
    error.reworded(|words| message!("{words} It happened at step {at} of the sequence."))
}

fn elements(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size))
}

fn stacked<D: Dimension>(steps: usize, shape: &D) -> D::Larger {
    let mut larger = D::Larger::zeros(shape.ndim() + 1);
    larger[0] = steps;
    larger.slice_mut()[1..].copy_from_slice(shape.slice());
    larger
}

fn shaped<T, D: Dimension>(name: &str, values: Vec<T>, shape: D) -> Result<Array<T, D>> {
    let (found, wanted) = (values.len(), shape.clone());
    Array::from_shape_vec(shape, values).map_err(|_| miscounted(name, found, wanted.slice()))
}
