//! Layers that preprocess images and numbers. The random ones are active only in training, and draw separately for each
//! example; a single image, `[H,W,C]`, counts as a batch of one.

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

pub use category_encoding::{CategoryEncoding, OutputMode};
pub use center_crop::CenterCrop;
pub use discretization::Discretization;
pub use images::Factor;
pub use normalization::Normalization;
pub use random_colors::{RandomBrightness, RandomContrast};
pub use random_crop::RandomCrop;
pub use random_flip::{FlipMode, RandomFlip};
pub use random_moves::{RandomRotation, RandomTranslation, RandomZoom};
pub use rescaling::Rescaling;
pub use resizing::Resizing;
pub use solarization::Solarization;
