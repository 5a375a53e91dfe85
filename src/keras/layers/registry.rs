//! The layers that a config can describe, by Keras's class.

use std::cell::RefCell;
use std::rc::Rc;

use super::*;
use crate::error::Error;
use crate::keras::Config;

/// A layer of one tensor or several.
pub(crate) enum AnyLayer {
    One(Box<dyn Layer>),
    Many(Box<dyn Layer<[Tensor]>>),
    /// Of query, value and key, with masks.
    Attention(Box<dyn AttentionLayer>),
    /// Of sequences, with states.
    Recurrent(Box<dyn SequenceLayer>),
}

impl AnyLayer {
    /// The layer as a layer of one tensor.
    pub(crate) fn into_one(self) -> Option<Box<dyn Layer>> {
        match self {
            AnyLayer::One(layer) => Some(layer),
            AnyLayer::Recurrent(layer) => Some(layer),
            AnyLayer::Attention(layer) => layer.into_layer(),
            AnyLayer::Many(_) => None,
        }
    }
}

type Make = fn(&Config) -> Result<AnyLayer>;

/// A row for each class, with the code that creates its layer.
macro_rules! classes {
    ($($kind:ident [$($(#[$attribute:meta])* $layer:ident),* $(,)?])*) => {
        fn classes() -> impl Iterator<Item = (&'static str, Make)> {
            [$($($(#[$attribute])* (
                $layer::class_name(),
                (|config: &Config| Ok(AnyLayer::$kind(Box::new($layer::from_config(config)?)))) as Make,
            ),)*)*].into_iter()
        }
    };
}

classes! {
    One [
        Activate,
        ActivityRegularization,
        AdaptiveAveragePooling1D,
        AdaptiveAveragePooling2D,
        AdaptiveAveragePooling3D,
        AdaptiveMaxPooling1D,
        AdaptiveMaxPooling2D,
        AdaptiveMaxPooling3D,
        AlphaDropout,
        AveragePooling1D,
        AveragePooling2D,
        AveragePooling3D,
        BatchNormalization,
        CategoryEncoding,
        CenterCrop,
        Conv1D,
        Conv1DTranspose,
        Conv2D,
        Conv2DTranspose,
        Conv3D,
        Conv3DTranspose,
        Cropping1D,
        Cropping2D,
        Cropping3D,
        Dense,
        DepthwiseConv1D,
        DepthwiseConv2D,
        Discretization,
        Dropout,
        Elu,
        EinsumDense,
        Embedding,
        Flatten,
        GaussianDropout,
        GaussianNoise,
        GlobalAveragePooling1D,
        GlobalAveragePooling2D,
        GlobalAveragePooling3D,
        GlobalMaxPooling1D,
        GlobalMaxPooling2D,
        GlobalMaxPooling3D,
        GroupNormalization,
        Identity,
        #[cfg(feature = "preprocessing")]
        IntegerLookup,
        LayerNormalization,
        LeakyRelu,
        Masking,
        MaxPooling1D,
        MaxPooling2D,
        MaxPooling3D,
        Normalization,
        Prelu,
        Permute,
        RmsNormalization,
        RandomBrightness,
        RandomContrast,
        RandomCrop,
        RandomFlip,
        RandomRotation,
        RandomTranslation,
        RandomZoom,
        Relu,
        RepeatVector,
        Rescaling,
        Reshape,
        Resizing,
        SeparableConv1D,
        SeparableConv2D,
        Softmax,
        Solarization,
        SpatialDropout1D,
        SpatialDropout2D,
        SpatialDropout3D,
        SpectralNormalization,
        TimeDistributed,
        UnitNormalization,
        UpSampling1D,
        UpSampling2D,
        UpSampling3D,
        ZeroPadding1D,
        ZeroPadding2D,
        ZeroPadding3D,
    ]
    Many [
        Add,
        Average,
        Concatenate,
        Dot,
        Maximum,
        Minimum,
        Multiply,
        Subtract,
    ]
    Attention [
        AdditiveAttention,
        Attention,
        GroupQueryAttention,
        MultiHeadAttention,
    ]
    Recurrent [
        AnyRnn,
        Bidirectional,
        ConvLstm1D,
        ConvLstm2D,
        ConvLstm3D,
        Gru,
        Lstm,
        SimpleRnn,
    ]
}

/// Creates layers of classes that are not in this file; `None` for unknown classes.
pub(crate) type Others = Rc<dyn Fn(&Config) -> Option<Result<AnyLayer>>>;

thread_local! {
    static OTHERS: RefCell<Vec<Others>> = const { RefCell::new(Vec::new()) };
}

/// Runs `f`, in which `others` creates the layers that it knows: custom layers, and models.
pub(crate) fn with_others<R>(others: Others, f: impl FnOnce() -> R) -> R {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            OTHERS.with_borrow_mut(|others| drop(others.pop()));
        }
    }
    OTHERS.with_borrow_mut(|list| list.push(others));
    let _leave = Leave;
    f()
}

/// True if `class` is a supported Keras class.
pub(super) fn is_known(class: &str) -> bool {
    classes().any(|(known, _)| known == class)
}

/// The layer that `config` describes.
pub(crate) fn any_from_config(config: &Config) -> Result<AnyLayer> {
    let others = OTHERS.with_borrow(|others| others.last().cloned());
    if let Some(made) = others.and_then(|others| others(config)) {
        return made;
    }
    // Keras exports this class as GroupQueryAttention.
    let class = match config.class() {
        "GroupedQueryAttention" => "GroupQueryAttention",
        class => class,
    };
    if let Some((_, make)) = classes().find(|(known, _)| *known == class) {
        return make(config);
    }
    if matches!(class, "HashedCrossing" | "Hashing" | "StringLookup" | "TextVectorization") {
        return Err(Error::Data(message!(
            "from_config: a {class} computes on the host, so the model is a FrontModel: load its file with FrontModel::load (a \
             Sequential) or FrontModel::load_functional (feature preprocessing)."
        )));
    }
    let known: Vec<&str> = classes().map(|(class, _)| class).collect();
    Err(Error::Data(message!(
        "from_config: there is no layer '{}'. The known ones are {}; a model's JSON may name a program's own, too \
         (CustomObjects).",
        config.class(),
        known.join(", ")
    )))
}

/// Creates a layer with one input from its config.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::{Layer, layers::{Dense, layer_from_config}};
/// let config = Dense::new(10).get_config()?;
/// assert_eq!(layer_from_config(&config)?.get_config()?, config);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Data`] if the class is unknown or takes several inputs, or if an option is unknown, missing or invalid.
pub fn layer_from_config(config: &Config) -> Result<Box<dyn Layer>> {
    any_from_config(config)?.into_one().ok_or_else(|| {
        Error::Data(message!(
            "from_config: a layer {} takes several inputs, so it cannot replace a layer with one input.",
            config.class()
        ))
    })
}

/// Creates a layer that merges several inputs, such as `Concatenate`, from its config.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::{Layer, layers::{Add, merging_layer_from_config}};
/// let config = Add::new().get_config()?;
/// assert_eq!(merging_layer_from_config(&config)?.get_config()?, config);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Data`] if the class is unknown or takes one input, or if an option is unknown, missing or invalid.
pub fn merging_layer_from_config(config: &Config) -> Result<Box<dyn Layer<[Tensor]>>> {
    match any_from_config(config)? {
        AnyLayer::Many(layer) => Ok(layer),
        _ => Err(Error::Data(message!(
            "from_config: a layer {} does not merge a list of inputs.",
            config.class()
        ))),
    }
}

/// Creates a recurrent layer, such as `LSTM` or `Bidirectional`, from its config.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::INFERENCE;
/// use wgrad::keras::layers::{Lstm, recurrent_layer_from_config};
/// let config = Lstm::new(3).return_state(true).get_config()?;
/// let layer = recurrent_layer_from_config(&config)?;
/// let results = layer.run_all(&wgrad::Tensor::ones([2, 5, 4])?, None, INFERENCE)?;
/// assert_eq!(results.len(), 3);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Data`] if the class is unknown or not recurrent, or if an option is unknown, missing or invalid.
pub fn recurrent_layer_from_config(config: &Config) -> Result<Box<dyn SequenceLayer>> {
    match any_from_config(config)? {
        AnyLayer::Recurrent(layer) => Ok(layer),
        _ => {
            Err(Error::Data(message!("from_config: {} is not a recurrent layer.", config.class())))
        }
    }
}

/// Creates an attention layer, such as `MultiHeadAttention`, from its config.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::INFERENCE;
/// use wgrad::keras::layers::{AttendCall, MultiHeadAttention, attention_layer_from_config};
/// let layer = attention_layer_from_config(&MultiHeadAttention::new(2, 4).get_config()?)?;
/// let (x, mut call) = (wgrad::Tensor::ones([1, 5, 8])?, AttendCall::default());
/// call.scores = true;
/// let (y, scores) = layer.attend(&[x.clone(), x], call, INFERENCE)?;
/// assert_eq!(y.shape(), [1, 5, 8]);
/// assert_eq!(scores.expect("the call asks for them").shape(), [1, 2, 5, 5]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Data`] if the class is unknown or not an attention layer, or if an option is unknown, missing or invalid.
pub fn attention_layer_from_config(config: &Config) -> Result<Box<dyn AttentionLayer>> {
    match any_from_config(config)? {
        AnyLayer::Attention(layer) => Ok(layer),
        _ => {
            Err(Error::Data(message!("from_config: {} is not an attention layer.", config.class())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keras::{Activation, Initializer, Regularizer};

    #[test]
    fn options_come_back() {
        let layer = Dense::new(3)
            .activation(Activation::Relu)
            .use_bias(false)
            .kernel_initializer(Initializer::HeNormal.seed(7))
            .kernel_regularizer(Regularizer::l1_l2(0.5, 0.1));
        let config = layer.get_config().unwrap();
        assert_eq!(config.get::<f32>("units").unwrap(), Some(3.0));
        assert_eq!(config.options()["kernel_regularizer"]["config"]["l2"], 0.1);
        assert_eq!(config.options()["kernel_initializer"]["config"]["seed"], 7);
        assert_eq!(layer_from_config(&config).unwrap().get_config().unwrap(), config);
    }

    /// The required options of a layer of each class.
    fn needed(class: &str) -> serde_json::Value {
        use serde_json::json;
        let signal = class.ends_with("1D") || class.ends_with("1DTranspose");
        let volume = class.ends_with("3D") || class.ends_with("3DTranspose");
        let sizes = if signal {
            json!(2)
        } else if volume {
            json!([1, 2, 3])
        } else {
            json!([2, 3])
        };
        match class {
            "Activation" => json!({"activation": "celu"}),
            "Dense" => json!({"units": 3}),
            "EinsumDense" => json!({"equation": "ab,bc->ac", "output_shape": [null]}),
            "Embedding" => json!({"input_dim": 5, "output_dim": 3}),
            "Reshape" => json!({"target_shape": [-1, 2]}),
            "Permute" => json!({"dims": [2, 1]}),
            "RepeatVector" => json!({"n": 3}),
            "Rescaling" => json!({"scale": 0.5}),
            "GaussianNoise" => json!({"stddev": 0.25}),
            "Dot" => json!({"axes": [1, 2]}),
            "LSTM" | "GRU" | "SimpleRNN" => json!({"units": 3}),
            "Bidirectional" => json!({"layer": {"class_name": "LSTM", "config": {"units": 3}}}),
            "RNN" => json!({"cell": {"class_name": "StackedRNNCells", "config": {"cells": [
                {"class_name": "LSTMCell", "config": {"units": 3}},
                {"class_name": "GRUCell", "config": {"units": 2}},
            ]}}}),
            "SpectralNormalization" => {
                json!({"layer": {"class_name": "Dense", "config": {"units": 3}}})
            }
            "TimeDistributed" => json!({"layer": {"class_name": "Dense", "config": {"units": 3}}}),
            "MultiHeadAttention" => json!({"num_heads": 2, "key_dim": 4}),
            "GroupQueryAttention" => {
                json!({"head_dim": 4, "num_query_heads": 4, "num_key_value_heads": 2})
            }
            "CategoryEncoding" => json!({"num_tokens": 4, "output_mode": "count"}),
            "Discretization" => json!({"bin_boundaries": [0.0, 1.0]}),
            "Normalization" => json!({"axis": null, "mean": 1.0, "variance": 4.0}),
            "Resizing" | "CenterCrop" | "RandomCrop" => json!({"height": 4, "width": 5}),
            "RandomFlip" => json!({"mode": "vertical", "seed": 3}),
            "RandomZoom" => json!({"height_factor": 0.5, "width_factor": [-0.25, 0.5]}),
            "RandomTranslation" => {
                json!({"height_factor": 0.5, "width_factor": 0.25, "fill_mode": "wrap"})
            }
            _ if class.starts_with("Random") => json!({"factor": 0.25, "seed": 3}),
            _ if class.contains("Dropout") => json!({"rate": 0.5, "seed": 7}),
            _ if class.starts_with("Depthwise") => json!({"kernel_size": sizes}),
            _ if class.contains("Conv") => json!({"filters": 4, "kernel_size": sizes}),
            _ if class.starts_with("Adaptive") => json!({"output_size": sizes}),
            _ if class.starts_with("Global") => json!({"keepdims": true}),
            _ if class.contains("Pooling") => json!({"pool_size": sizes, "padding": "same"}),
            _ if class.starts_with("UpSampling") => json!({"size": sizes}),
            _ if class.starts_with("ZeroPadding") => json!({"padding": 1}),
            _ if class.starts_with("Cropping") => json!({"cropping": sizes}),
            _ => json!({}),
        }
    }

    #[test]
    fn every_layer_comes_back_from_its_config() {
        let mut count = 0;
        for (class, make) in classes() {
            let given = needed(class).as_object().unwrap().clone();
            let config = |layer: AnyLayer| match layer {
                AnyLayer::One(layer) => layer.get_config().unwrap(),
                AnyLayer::Many(layer) => layer.get_config().unwrap(),
                AnyLayer::Attention(layer) => layer.get_config().unwrap(),
                AnyLayer::Recurrent(layer) => layer.get_config().unwrap(),
            };
            let first = config(make(&Config::with_options(class, given.clone())).unwrap());
            assert_eq!(first.class(), class);
            for (key, value) in &given {
                // Keras writes pairs even if one number suffices, and all options of an inner layer.
                let longer = first.options()[key].is_array() && !value.is_array();
                let pairs = matches!(key.as_str(), "padding" | "cropping" | "layer" | "cell");
                assert!(longer || pairs || first.options()[key] == *value, "{class}: {key}");
            }
            assert_eq!(config(make(&first).unwrap()), first, "{class}");
            count += 1;
        }
        assert!(count > 70, "{count} classes");
    }

    #[test]
    fn wrong_configs_are_refused() {
        let reported = |class: &str, text: &str| {
            let options = serde_json::from_str(text).unwrap();
            layer_from_config(&Config::with_options(class, options)).err().unwrap().to_string()
        };
        assert_eq!(
            reported("Dense", "{}"),
            "from_config: Dense needs 'units', and the config lacks it."
        );
        assert_eq!(
            reported("Dense", r#"{"units": -1}"#),
            "from_config: 'units' of Dense is -1; it must be a whole number."
        );
        let channels = r#"{"filters": 1, "kernel_size": 3, "data_format": "channels_first"}"#;
        assert_eq!(
            reported("Conv2D", channels),
            "from_config: 'data_format' of Conv2D is \"channels_first\"; here it can only be \"channels_last\". \
             Change the layer in Keras, and save the model again."
        );
        assert!(
            reported("Dens", "{}").starts_with("from_config: there is no layer 'Dens'. The known")
        );
        assert!(
            reported("Dropout", r#"{"rate": 0.5, "rat": 1}"#)
                .contains("'rat' of Dropout is 1, and Dropout has no option 'rat'; it has rate")
        );
    }
}
