//! Makes messages: [`Example::new`], [`Feature::from`], and their bytes.

use prost::Message as _;

use super::messages::{
    BytesList, Example, Feature, FeatureKind, FeatureList, FeatureLists, Features, FloatList,
    Int64List, SequenceExample,
};
use crate::error::{Error, Result, message};

impl Example {
    /// An example with these features.
    pub fn new<N: Into<String>>(features: impl IntoIterator<Item = (N, Feature)>) -> Self {
        Example { features: Some(Features::new(features)) }
    }

    /// The bytes of the message, as a record holds them.
    pub fn serialize(&self) -> Vec<u8> {
        self.encode_to_vec()
    }

    /// The message in `record`.
    ///
    /// # Errors
    /// [`Error::Data`] if the bytes are not such a message.
    pub fn parse(record: &[u8]) -> Result<Self> {
        Example::decode(record).map_err(|error| no_message("Example", record, &error))
    }
}

impl SequenceExample {
    /// An example with context features and with features for each step.
    pub fn new<N: Into<String>, M: Into<String>>(
        context: impl IntoIterator<Item = (N, Feature)>,
        feature_lists: impl IntoIterator<Item = (M, FeatureList)>,
    ) -> Self {
        let lists = feature_lists.into_iter().map(|(name, list)| (name.into(), list));
        SequenceExample {
            context: Some(Features::new(context)),
            feature_lists: Some(FeatureLists { feature_list: lists.collect() }),
        }
    }

    /// The bytes of the message, as a record holds them.
    pub fn serialize(&self) -> Vec<u8> {
        self.encode_to_vec()
    }

    /// The message in `record`.
    ///
    /// # Errors
    /// [`Error::Data`] if the bytes are not such a message.
    pub fn parse(record: &[u8]) -> Result<Self> {
        SequenceExample::decode(record)
            .map_err(|error| no_message("SequenceExample", record, &error))
    }
}

fn no_message(kind: &str, record: &[u8], error: &prost::DecodeError) -> Error {
    Error::Data(message!(
        "{kind}: these {} bytes are not a tf.train.{kind} ({error}). Check what the records of this file hold.",
        record.len()
    ))
}

impl Features {
    /// Features by their names; if several have the same name, the last one counts.
    pub fn new<N: Into<String>>(features: impl IntoIterator<Item = (N, Feature)>) -> Self {
        let features = features.into_iter().map(|(name, feature)| (name.into(), feature));
        Features { feature: features.collect() }
    }
}

impl FeatureList {
    /// A feature for each step.
    pub fn new<F: Into<Feature>>(steps: impl IntoIterator<Item = F>) -> Self {
        FeatureList { feature: steps.into_iter().map(Into::into).collect() }
    }
}

impl Feature {
    /// Any number of integers.
    pub fn int64_list(values: impl IntoIterator<Item = i64>) -> Self {
        let value = values.into_iter().collect();
        Feature { kind: Some(FeatureKind::Int64List(Int64List { value })) }
    }

    /// Any number of floats.
    pub fn float_list(values: impl IntoIterator<Item = f32>) -> Self {
        let value = values.into_iter().collect();
        Feature { kind: Some(FeatureKind::FloatList(FloatList { value })) }
    }

    /// Any number of byte strings.
    pub fn bytes_list<B: AsRef<[u8]>>(values: impl IntoIterator<Item = B>) -> Self {
        let value = values.into_iter().map(|bytes| bytes.as_ref().to_vec()).collect();
        Feature { kind: Some(FeatureKind::BytesList(BytesList { value })) }
    }
}

macro_rules! feature_from {
    ($($list:ident: $($type:ty)*;)*) => {$($(
        #[doc = concat!("One value of a `", stringify!($list), "`.")]
        impl From<$type> for Feature {
            fn from(value: $type) -> Self {
                Feature::$list([value.into()])
            }
        }
    )*)*};
}

feature_from! {
    int64_list: i64 i32 u32 i16 u16 i8 u8 bool;
    float_list: f32;
}

macro_rules! feature_from_bytes {
    ($($type:ty)*) => {$(
        /// One value of a `bytes_list`.
        impl From<$type> for Feature {
            fn from(value: $type) -> Self {
                Feature::bytes_list([value])
            }
        }
    )*};
}

feature_from_bytes! { &str String &String &[u8] Vec<u8> &Vec<u8> }

macro_rules! feature_from_lists {
    ($($list:ident: $type:ty;)*) => {$(
        #[doc = concat!("The values of a `", stringify!($list), "`.")]
        impl From<&[$type]> for Feature {
            fn from(values: &[$type]) -> Self {
                Feature::$list(values.iter().copied())
            }
        }

        #[doc = concat!("The values of a `", stringify!($list), "`.")]
        impl From<Vec<$type>> for Feature {
            fn from(values: Vec<$type>) -> Self {
                Feature::$list(values)
            }
        }

        #[doc = concat!("The values of a `", stringify!($list), "`.")]
        impl<const N: usize> From<[$type; N]> for Feature {
            fn from(values: [$type; N]) -> Self {
                Feature::$list(values)
            }
        }
    )*};
}

feature_from_lists! {
    int64_list: i64;
    float_list: f32;
}
