//! The messages of TensorFlow's `example.proto` and `feature.proto`, with the same layout.

use std::collections::BTreeMap;

/// Bytes, each value of any length: strings, compressed images, serialized tensors.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct BytesList {
    /// The values.
    #[prost(bytes = "vec", repeated, tag = "1")]
    pub value: Vec<Vec<u8>>,
}

/// Floats.
#[derive(Clone, PartialEq, prost::Message)]
pub struct FloatList {
    /// The values.
    #[prost(float, repeated, tag = "1")]
    pub value: Vec<f32>,
}

/// Integers.
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
    /// Floats.
    #[prost(message, tag = "2")]
    FloatList(FloatList),
    /// Integers.
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

/// One example: the usual content of a record of a TFRecord file.
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

/// An example with sequences: `context` has the features of the whole example, `feature_lists` the features
/// of each step.
#[derive(Clone, PartialEq, prost::Message)]
pub struct SequenceExample {
    /// The features of the whole example.
    #[prost(message, optional, tag = "1")]
    pub context: Option<Features>,
    /// The features of each step.
    #[prost(message, optional, tag = "2")]
    pub feature_lists: Option<FeatureLists>,
}
