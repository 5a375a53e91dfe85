//! TensorFlow's `tf.train.Example` and `SequenceExample`: named features in a record, written and read.
//!
//! `messages` defines the protocol buffers, `build` makes them, and `parse` extracts the features that a program
//! describes.

mod build;
mod describe;
mod messages;
mod parse;

pub use describe::{
    FeatureElement, FixedLenFeature, FixedLenSequenceFeature, OneValue, VarLenFeature,
};
pub use messages::{
    BytesList, Example, Feature, FeatureKind, FeatureList, FeatureLists, Features, FloatList,
    Int64List, SequenceExample,
};
pub use parse::{
    FeatureDescription, FeatureListDescription, ParseFeature, ParseFeatureList,
    parse_single_example, parse_single_sequence_example,
};
