//! Layers that preprocess images, numbers, tables and text. The random ones are active only in training, and draw separately for
//! each example; a single image, `[H,W,C]`, counts as a batch of one. Those for strings compute on the host (`host_layer`).

mod category_encoding;
mod center_crop;
mod discretization;
mod images;
mod normalization;
mod random_colors;
mod random_crop;
mod random_flip;
mod random_moves;
mod rescaling;
mod resizing;
mod solarization;

// Tables and text.
#[cfg(feature = "preprocessing")]
mod feature_space;
#[cfg(feature = "preprocessing")]
mod hashed_crossing;
#[cfg(feature = "preprocessing")]
mod hashing;
#[cfg(feature = "preprocessing")]
mod host_encoding;
#[cfg(feature = "preprocessing")]
mod host_layer;
#[cfg(all(feature = "json", feature = "preprocessing"))]
mod host_registry;
#[cfg(feature = "preprocessing")]
mod integer_lookup;
#[cfg(feature = "preprocessing")]
mod lookup;
#[cfg(feature = "preprocessing")]
mod lookup_layer;
#[cfg(feature = "preprocessing")]
mod quantiles;
#[cfg(feature = "preprocessing")]
mod salt;
#[cfg(feature = "preprocessing")]
mod string_lookup;
#[cfg(feature = "preprocessing")]
mod text;
#[cfg(feature = "preprocessing")]
mod text_vectorization;
#[cfg(feature = "preprocessing")]
mod vocabulary;

pub use category_encoding::{CategoryEncoding, OutputMode};
pub use center_crop::CenterCrop;
pub use discretization::{Boundaries, Discretization};
#[cfg(feature = "preprocessing")]
pub use feature_space::{Cross, Feature, FeatureMode, FeatureSpace, Table};
#[cfg(feature = "preprocessing")]
pub use hashed_crossing::HashedCrossing;
#[cfg(feature = "preprocessing")]
pub use hashing::{Hashing, MaskValue};
#[cfg(feature = "preprocessing")]
pub use host_layer::{HostInput, HostLayer, HostValue};
#[cfg(all(feature = "json", feature = "preprocessing"))]
pub use host_registry::host_layer_from_config;
pub use images::Factor;
#[cfg(feature = "preprocessing")]
pub use integer_lookup::IntegerLookup;
#[cfg(feature = "preprocessing")]
pub use lookup::OovMethod;
pub use normalization::Normalization;
pub use random_colors::{RandomBrightness, RandomContrast};
pub use random_crop::RandomCrop;
pub use random_flip::{FlipMode, RandomFlip};
pub use random_moves::{RandomRotation, RandomTranslation, RandomZoom};
pub use rescaling::Rescaling;
pub use resizing::Resizing;
#[cfg(feature = "preprocessing")]
pub use salt::Salt;
pub use solarization::Solarization;
#[cfg(feature = "preprocessing")]
pub use string_lookup::StringLookup;
#[cfg(feature = "preprocessing")]
pub use text::{Split, Standardize};
#[cfg(feature = "preprocessing")]
pub use text_vectorization::{Ngrams, TextVectorization};
