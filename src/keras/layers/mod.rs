//! [`Layer`] and the built-in layers: functions with weights, which are created at the first call, when the input shape
//! is known.
//!
//! A layer owns weights and calls tensor ops; it contains no gradient rules and no shaders.

mod activations;
mod attention;
mod convolutional;
mod core;
pub(crate) mod formats;
mod macros;
mod merging;
mod noise;
mod normalization;
#[cfg(feature = "json")]
pub(crate) mod options;
mod pooling;
mod preprocessing;
#[cfg(feature = "json")]
mod registry;
mod regularization;
mod reshaping;
mod rnn;
mod seed_generator;
mod shapes;
#[cfg(feature = "json")]
mod written;

pub use self::core::{
    BiasAxes, Dense, EinsumDense, Embedding, Identity, Lambda, Masking, OutputShape,
};
pub use activations::{Activate, Elu, LeakyRelu, Prelu, Relu, Softmax};
pub use attention::{
    AdditiveAttention, AttendCall, AttendOptions, Attention, AttentionLayer, GroupQueryAttention,
    MultiHeadAttention, ScoreMode,
};
pub use convolutional::{
    Conv1D, Conv1DTranspose, Conv2D, Conv2DTranspose, Conv3D, Conv3DTranspose, DepthwiseConv1D,
    DepthwiseConv2D, SeparableConv1D, SeparableConv2D, SignalPadding,
};
pub use merging::{Add, Average, Concatenate, Dot, DotAxes, Maximum, Minimum, Multiply, Subtract};
pub use noise::NoiseShape;
pub use normalization::{
    BatchNormalization, GroupNormalization, LayerNormalization, RmsNormalization,
    SpectralNormalization, UnitNormalization,
};
pub use pooling::{
    AdaptiveAveragePooling1D, AdaptiveAveragePooling2D, AdaptiveAveragePooling3D,
    AdaptiveMaxPooling1D, AdaptiveMaxPooling2D, AdaptiveMaxPooling3D, AveragePooling1D,
    AveragePooling2D, AveragePooling3D, GlobalAveragePooling1D, GlobalAveragePooling2D,
    GlobalAveragePooling3D, GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalMaxPooling3D,
    MaxPooling1D, MaxPooling2D, MaxPooling3D,
};
#[cfg(all(feature = "json", feature = "preprocessing"))]
pub use preprocessing::host_layer_from_config;
pub use preprocessing::{
    Boundaries, CategoryEncoding, CenterCrop, Discretization, Factor, FlipMode, Normalization,
    OutputMode, RandomBrightness, RandomContrast, RandomCrop, RandomFlip, RandomRotation,
    RandomTranslation, RandomZoom, Rescaling, Resizing, Solarization,
};
#[cfg(feature = "preprocessing")]
pub use preprocessing::{
    Cross, Feature, FeatureMode, FeatureSpace, HashedCrossing, Hashing, HostInput, HostLayer,
    HostValue, IntegerLookup, MaskValue, Ngrams, OovMethod, Salt, Split, Standardize, StringLookup,
    Table, TextVectorization,
};
pub use regularization::{
    ActivityRegularization, AlphaDropout, Dropout, GaussianDropout, GaussianNoise,
    SpatialDropout1D, SpatialDropout2D, SpatialDropout3D,
};
pub use reshaping::{
    Cropping1D, Cropping2D, Cropping3D, Flatten, Permute, RepeatVector, Reshape, UpSampling1D,
    UpSampling2D, UpSampling3D, ZeroPadding1D, ZeroPadding2D, ZeroPadding3D,
};
#[cfg(feature = "json")]
pub(crate) use rnn::AnyRnn;
#[cfg(feature = "json")]
pub use rnn::cell_from_config;
pub use rnn::{
    Bidirectional, ConvLstm1D, ConvLstm2D, ConvLstm3D, Gru, GruCell, Lstm, LstmCell, MergeMode,
    Mirror, RecurrentLayer, Rnn, RnnCell, SequenceLayer, SimpleRnn, SimpleRnnCell, StackedRnnCells,
    TimeDistributed,
};
pub use shapes::Borders;

#[cfg(feature = "json")]
pub(crate) use registry::{AnyLayer, any_from_config, with_others};
#[cfg(feature = "json")]
pub use registry::{
    attention_layer_from_config, layer_from_config, merging_layer_from_config,
    recurrent_layer_from_config,
};
pub(crate) use seed_generator::SeedGenerator;
#[cfg(feature = "json")]
pub(crate) use written::{written, written_input};

use std::sync::Arc;

#[cfg(feature = "json")]
use super::Config;
use super::Context;
use crate::error::{Result, message};
use crate::tensor::Tensor;
use crate::trackable::Trackable;

/// A function with trainable weights. It takes a tensor, or an `X`, and returns a tensor, or a `Y`.
///
/// A custom layer is a struct with `#[derive(Trackable)]` and a `call`:
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Tensor, Trackable};
/// use tf::keras::{Context, INFERENCE, Layer, Weight};
///
/// /// `scale x`, with a scale for each feature.
/// #[derive(Trackable)]
/// struct Scale {
///     scale: Weight,
/// }
///
/// impl Layer for Scale {
///     fn call(&self, x: &Tensor, _cx: Context<'_>) -> tf::Result<Tensor> {
///         let features = x.shape()[x.shape().len() - 1];
///         x.multiply(self.scale.get(x, [features])?)
///     }
/// }
///
/// let layer = Scale { scale: Weight::ones() };
/// assert_eq!(layer.call(&tf::constant([[2.0, 3.0]])?, INFERENCE)?.to_vec::<f32>()?, [2.0, 3.0]);
/// assert_eq!(layer.count_params(), 2);
/// # Ok(())
/// # }
/// ```
///
/// Use tuples, arrays or structs for several inputs or outputs: `impl Layer<[Tensor; 2]> for Ranker`,
/// `impl Layer<(Tensor, State), State> for LstmCell`. `docs/layers.md` has an example program for each.
pub trait Layer<X: ?Sized = Tensor, Y = Tensor>: Trackable {
    /// Computes the layer's result for `x`. Layers such as [`Dropout`] read `cx`; a layer passes it on to its inner layers.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the shape of `x` does not fit the layer,
    /// [`Error::DType`](crate::Error::DType) if its dtype does not.
    fn call(&self, x: &X, cx: Context<'_>) -> Result<Y>;

    /// Returns the mask of the result, given the mask of the input: the same mask, unless the layer moves or removes
    /// masked elements.
    ///
    /// # Errors
    /// Same as [`Layer::call`].
    fn compute_mask(&self, x: &X, mask: Option<&Tensor>) -> Result<Option<Tensor>> {
        let _ = x;
        Ok(mask.cloned())
    }

    /// Returns the layer's class and options, from which an equivalent layer can be created; Keras's `get_config`.
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) if an option is a custom function, or if the layer is a custom layer that
    /// does not describe its options.
    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<Config> {
        Err(crate::error::Error::Data(message!(
            "get_config: {} does not say what its options are. Give its `impl Layer` a get_config.",
            self.kind()
        )))
    }

    /// Returns the result and its mask. A layer that contains layers computes their masks as it calls them, and returns
    /// the last one.
    ///
    /// # Errors
    /// Same as [`Layer::call`].
    fn call_with_mask(&self, x: &X, cx: Context<'_>) -> Result<(Y, Option<Tensor>)> {
        Ok((self.call(x, cx)?, self.compute_mask(x, cx.mask())?))
    }
}

macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<X: ?Sized, Y, L: Layer<X, Y> + ?Sized> Layer<X, Y> for $pointer {
            fn call(&self, x: &X, cx: Context<'_>) -> Result<Y> {
                (**self).call(x, cx)
            }

            fn compute_mask(&self, x: &X, mask: Option<&Tensor>) -> Result<Option<Tensor>> {
                (**self).compute_mask(x, mask)
            }

            fn call_with_mask(&self, x: &X, cx: Context<'_>) -> Result<(Y, Option<Tensor>)> {
                (**self).call_with_mask(x, cx)
            }

            #[cfg(feature = "json")]
            fn get_config(&self) -> Result<Config> {
                (**self).get_config()
            }
        }
    )*};
}
// A pointer to a layer is a layer.
pointers!(&L, Box<L>, Arc<L>);

/// A layer whose options are data; [`macros::layer`] implements it.
#[cfg(feature = "json")]
pub(crate) trait Configured: Sized {
    fn class_name() -> &'static str;
    fn config(&self) -> Result<Config>;
    fn from_config(config: &Config) -> Result<Self>;
}

/// Puts the layer's name at the beginning of an error's message: `layer 'trunk/dense': MatMul: ...`.
pub(super) fn in_layer<T>(name: &str, result: Result<T>) -> Result<T> {
    result.map_err(|error| {
        error.reworded(|text| match text.strip_prefix("layer '") {
            Some(inner) => message!("layer '{name}/{inner}"),
            None => message!("layer '{name}': {text}"),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn errors_keep_their_kind_and_name_the_way_to_the_layer() {
        let inner = in_layer::<()>("dense", Err(Error::Shape("MatMul: no.".into())));
        let error = in_layer("trunk", inner).unwrap_err();
        assert!(
            matches!(&error, Error::Shape(text) if text == "layer 'trunk/dense': MatMul: no."),
            "{error}"
        );
    }
}
