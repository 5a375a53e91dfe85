//! The messages of TensorFlow's `example.proto` and `feature.proto`, laid down as there.

use std::collections::BTreeMap;

/// Bytes, each value of any length: strings, packed pictures, serialized tensors.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct BytesList {
    /// The values.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub value: Vec<Vec<u8>>,
}

/// Numbers with a point.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FloatList {
    /// The values.
    #[prost(float, repeated, tag = "1")]
    pub value: Vec<f32>,
}

/// Whole numbers.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct Int64List {
    /// The values.
    #[prost(int64, repeated, tag = "1")]
    pub value: Vec<i64>,
}

/// The values of a [`Feature`].
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum FeatureKind {
    /// Bytes.
    #[prost(message, tag = "1")]
    BytesList(BytesList),
    /// Numbers with a point.
    #[prost(message, tag = "2")]
    FloatList(FloatList),
    /// Whole numbers.
    #[prost(message, tag = "3")]
    Int64List(Int64List),
}

/// One feature: any number of values of one kind.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Feature {
    /// The values; a feature without a kind counts as missing.
    #[prost(oneof = "FeatureKind", tags = "1, 2, 3")]
    pub kind: Option<FeatureKind>,
}

/// Features by their names.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Features {
    /// The features; they are written in the order of their names.
    #[prost(btree_map = "string, message", tag = "1")]
    pub feature: BTreeMap<String, Feature>,
}

/// One example: what a record of a TFRecord file mostly holds.
///
/// ```
/// use wgrad::data::example::{Example, Feature};
/// let example = Example::new([("label", Feature::from(7)), ("name", Feature::from("seven"))]);
/// let record: Vec<u8> = example.serialize();
/// assert_eq!(Example::parse(&record)?, example);
/// # Ok::<(), wgrad::Error>(())
/// ```
#[derive(Clone, PartialEq, prost::Message)]
pub struct Example {
    /// The features.
    #[prost(message, optional, tag = "1")]
    pub features: Option<Features>,
}

/// A sequence: the same feature at each of its steps.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FeatureList {
    /// The steps.
    #[prost(message, repeated, tag = "1")]
    pub feature: Vec<Feature>,
}

/// Sequences by their names.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FeatureLists {
    /// The sequences; they are written in the order of their names.
    #[prost(btree_map = "string, message", tag = "1")]
    pub feature_list: BTreeMap<String, FeatureList>,
}

/// An example with sequences: `context` belongs to the whole, `feature_lists` have a feature for each step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SequenceExample {
    /// What belongs to the whole.
    #[prost(message, optional, tag = "1")]
    pub context: Option<Features>,
    /// What changes from step to step.
    #[prost(message, optional, tag = "2")]
    pub feature_lists: Option<FeatureLists>,
}
