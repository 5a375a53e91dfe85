//! [`parse_single_example`], [`parse_single_sequence_example`]: extract a record's values by a description.

use super::messages::{Example, Feature, FeatureList, FeatureLists, Features, SequenceExample};
use crate::error::{Result, message};

/// The description of one feature: [`FixedLenFeature`](super::FixedLenFeature), [`VarLenFeature`](super::VarLenFeature) or
/// [`FixedLenSequenceFeature`](super::FixedLenSequenceFeature).
pub trait ParseFeature {
    /// The type of the feature's value.
    type Value;

    /// The value of the feature `name`, which may be missing.
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) if the feature is missing or of another kind or length.
    fn parse(&self, name: &str, feature: Option<&Feature>) -> Result<Self::Value>;
}

/// The description of the steps of one sequence.
pub trait ParseFeatureList {
    /// The type of the steps' values.
    type Value;

    /// The value of the sequence `name`, which may be missing.
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) if the sequence is missing, or a step has another kind or length.
    fn parse_list(&self, name: &str, list: Option<&FeatureList>) -> Result<Self::Value>;
}

/// The features to extract: a tuple of pairs of a name and a description, such as
/// `("label", FixedLenFeature::<i64>::scalar())`. The values are a tuple in the same order. `()` extracts none.
pub trait FeatureDescription {
    /// The values.
    type Value;

    /// The values of these features.
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) with the feature's name.
    fn parse(&self, features: &Features) -> Result<Self::Value>;
}

/// The sequences to extract: a tuple of pairs of a name and a description.
pub trait FeatureListDescription {
    /// The values.
    type Value;

    /// The values of these sequences.
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) with the sequence's name.
    fn parse_lists(&self, lists: &FeatureLists) -> Result<Self::Value>;
}

/// Parses an [`Example`]: returns the described features of a record's bytes as a tuple of values.
///
/// ```
/// use wgrad::data::example::{Example, Feature, FixedLenFeature, VarLenFeature, parse_single_example};
/// let example = Example::new([
///     ("label", Feature::from(7)),
///     ("size", Feature::from([2.5, 4.0])),
///     ("words", Feature::bytes_list(["a", "b", "c"])),
/// ]);
/// let (label, size, words) = parse_single_example(
///     &example.serialize(),
///     &(
///         ("label", FixedLenFeature::<i64>::scalar()),
///         ("size", FixedLenFeature::<f32>::new([2])),
///         ("words", VarLenFeature::<String>::new()),
///     ),
/// )?;
/// assert_eq!((label, words.len()), (7, 3));
/// assert_eq!(size, wgrad::ndarray::array![2.5, 4.0]);
/// # Ok::<(), wgrad::Error>(())
/// ```
///
/// # Errors
/// [`Error::Data`](crate::Error::Data) if the bytes are not an example, or one of its features is missing or does not match its
/// description.
pub fn parse_single_example<D: FeatureDescription>(
    serialized: &[u8],
    features: &D,
) -> Result<D::Value> {
    let example = Example::parse(serialized)?;
    features.parse(&example.features.unwrap_or_default())
}

/// Parses a [`SequenceExample`]: the features of the whole example, and those of its steps.
///
/// ```
/// use wgrad::data::example::{
///     Feature, FeatureList, FixedLenFeature, FixedLenSequenceFeature, SequenceExample,
///     parse_single_sequence_example,
/// };
/// let steps = FeatureList::new([[0.5, 1.0], [1.5, 2.0], [2.5, 3.0]]);
/// let record = SequenceExample::new([("label", Feature::from(1))], [("steps", steps)]).serialize();
/// let ((label,), (steps,)) = parse_single_sequence_example(
///     &record,
///     &(("label", FixedLenFeature::<i64>::scalar()),),
///     &(("steps", FixedLenSequenceFeature::<f32>::new([2])),),
/// )?;
/// assert_eq!(label, 1);
/// assert_eq!(steps, wgrad::ndarray::array![[0.5, 1.0], [1.5, 2.0], [2.5, 3.0]]);
/// # Ok::<(), wgrad::Error>(())
/// ```
///
/// # Errors
/// As [`parse_single_example`].
pub fn parse_single_sequence_example<C: FeatureDescription, S: FeatureListDescription>(
    serialized: &[u8],
    context_features: &C,
    sequence_features: &S,
) -> Result<(C::Value, S::Value)> {
    let example = SequenceExample::parse(serialized)?;
    let context = context_features.parse(&example.context.unwrap_or_default())?;
    let lists = example.feature_lists.unwrap_or_default();
    Ok((context, sequence_features.parse_lists(&lists)?))
}

impl FeatureDescription for () {
    type Value = ();

    fn parse(&self, _: &Features) -> Result<()> {
        Ok(())
    }
}

impl FeatureListDescription for () {
    type Value = ();

    fn parse_lists(&self, _: &FeatureLists) -> Result<()> {
        Ok(())
    }
}

macro_rules! describe_tuples {
    ($(($($name:ident $spec:ident $at:tt)*))*) => {$(
        impl<$($name: AsRef<str>, $spec: ParseFeature),*> FeatureDescription for ($(($name, $spec),)*) {
            type Value = ($($spec::Value,)*);

            fn parse(&self, features: &Features) -> Result<Self::Value> {
                Ok(($({
                    let (name, wanted) = (self.$at.0.as_ref(), &self.$at.1);
                    let found = features.feature.get(name);
                    wanted.parse(name, found).map_err(|error| error.reworded(|words| {
                        message!("{words}{}", others(found.is_none(), features.feature.keys()))
                    }))?
                },)*))
            }
        }

        impl<$($name: AsRef<str>, $spec: ParseFeatureList),*> FeatureListDescription for ($(($name, $spec),)*) {
            type Value = ($($spec::Value,)*);

            fn parse_lists(&self, lists: &FeatureLists) -> Result<Self::Value> {
                Ok(($({
                    let (name, wanted) = (self.$at.0.as_ref(), &self.$at.1);
                    let found = lists.feature_list.get(name);
                    wanted.parse_list(name, found).map_err(|error| error.reworded(|words| {
                        message!("{words}{}", others(found.is_none(), lists.feature_list.keys()))
                    }))?
                },)*))
            }
        }
    )*};
}

describe_tuples! {
    (N0 F0 0)
    (N0 F0 0 N1 F1 1)
    (N0 F0 0 N1 F1 1 N2 F2 2)
    (N0 F0 0 N1 F1 1 N2 F2 2 N3 F3 3)
    (N0 F0 0 N1 F1 1 N2 F2 2 N3 F3 3 N4 F4 4)
    (N0 F0 0 N1 F1 1 N2 F2 2 N3 F3 3 N4 F4 4 N5 F5 5)
    (N0 F0 0 N1 F1 1 N2 F2 2 N3 F3 3 N4 F4 4 N5 F5 5 N6 F6 6)
    (N0 F0 0 N1 F1 1 N2 F2 2 N3 F3 3 N4 F4 4 N5 F5 5 N6 F6 6 N7 F7 7)
    (N0 F0 0 N1 F1 1 N2 F2 2 N3 F3 3 N4 F4 4 N5 F5 5 N6 F6 6 N7 F7 7 N8 F8 8)
    (N0 F0 0 N1 F1 1 N2 F2 2 N3 F3 3 N4 F4 4 N5 F5 5 N6 F6 6 N7 F7 7 N8 F8 8 N9 F9 9)
    (N0 F0 0 N1 F1 1 N2 F2 2 N3 F3 3 N4 F4 4 N5 F5 5 N6 F6 6 N7 F7 7 N8 F8 8 N9 F9 9 N10 F10 10)
    (N0 F0 0 N1 F1 1 N2 F2 2 N3 F3 3 N4 F4 4 N5 F5 5 N6 F6 6 N7 F7 7 N8 F8 8 N9 F9 9 N10 F10 10 N11 F11 11)
}

/// The end of the message about a missing feature: the names that exist.
fn others<'a>(missing: bool, names: impl ExactSizeIterator<Item = &'a String>) -> String {
    /// At most this many names are listed.
    const NAMED: usize = 12;
    /// A name is cut after this many characters.
    const LONG: usize = 60;
    if !missing {
        return String::new();
    }
    let count = names.len();
    let quoted = |name: &String| format!("\"{}\"", name.chars().take(LONG).collect::<String>());
    let names: Vec<String> = names.take(NAMED).map(quoted).collect();
    match count {
        0 => " The record has none at all.".to_string(),
        _ if count > NAMED => {
            format!(" The record has {}, and {} more.", names.join(", "), count - NAMED)
        }
        _ => format!(" The record has {}.", names.join(", ")),
    }
}
