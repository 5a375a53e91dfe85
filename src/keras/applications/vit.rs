//! [`Vit`]: a transformer for images (Dosovitskiy et al. 2020).

use super::names::WeightNames;
use super::transformer::{EncoderLayer, STDDEV, Sizes, Visible, check, kernels};
use crate::error::{Error, Result, message};
use crate::keras::layers::{Conv2D, Dense, Dropout, LayerNormalization};
#[cfg(not(target_family = "wasm"))]
use crate::keras::loading::loading;
use crate::keras::trial::trial;
use crate::keras::{Activation, Context, INFERENCE, Initializer, Layer, Weight};
use crate::ops::concat;
use crate::support::options::options;
use crate::tensor::Tensor;
use crate::trackable::Trackable;

options! {
    /// The sizes of a [`Vit`]; the defaults are those of ViT-B/16: 86,567,656 parameters.
    #[derive(Debug, Clone, PartialEq)]
    pub struct VitConfig {
        /// Sets the height and the width of images.
        image_size: usize = 224,
        /// Sets the height and the width of the patches into which an image is cut.
        patch_size: usize = 16,
        /// Sets the width.
        hidden_size: usize = 768,
        /// Sets the number of layers.
        num_hidden_layers: usize = 12,
        /// Sets the number of heads.
        num_attention_heads: usize = 12,
        /// Sets the width inside of the feed-forward layers.
        intermediate_size: usize = 3072,
        /// Sets the small number in the normalizations. Hugging Face has 1e-12, torchvision and timm 1e-6.
        layer_norm_eps: f32 = 1e-6,
        /// Sets the rate of all dropouts.
        dropout: f32 = 0.0,
        /// Sets whether the network ends in a classifier; without, it returns the features of the first token.
        include_top: bool = true,
        /// Sets the number of classes.
        classes: usize = 1000,
        /// Sets the activation of the classifier; with `Linear` it returns logits.
        classifier_activation: Activation = Activation::Softmax,
    }
}

crate::trackable::plain!(VitConfig);

impl VitConfig {
    /// Reads the sizes from the text of Hugging Face's `config.json`. What it does not say stays as it is by default.
    ///
    /// # Errors
    /// [`Error::Data`] if it is not valid JSON, a value is of the wrong kind, or it belongs to another kind of network or to a
    /// variant that this one is not.
    #[cfg(any(feature = "json", feature = "safetensors"))]
    pub fn from_json(text: &str) -> Result<Self> {
        let json = super::config_json::ConfigJson::parse("ViT", "vit", text)?;
        let mut config = VitConfig::new();
        json.size("image_size", &mut config.image_size)?;
        json.size("patch_size", &mut config.patch_size)?;
        json.size("hidden_size", &mut config.hidden_size)?;
        json.size("num_hidden_layers", &mut config.num_hidden_layers)?;
        json.size("num_attention_heads", &mut config.num_attention_heads)?;
        json.size("intermediate_size", &mut config.intermediate_size)?;
        json.number("layer_norm_eps", &mut config.layer_norm_eps)?;
        json.number("hidden_dropout_prob", &mut config.dropout)?;
        json.only("hidden_act", &["\"gelu\""])?;
        json.only("qkv_bias", &["true"])?;
        json.only("num_channels", &["3"])?;
        Ok(config)
    }
}

/// ViT: images `[N,H,W,3]`, result `[N,classes]`, or without top `[N,D]`. Keras has no such network.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Tensor, keras::{INFERENCE, Layer, applications::{Vit, VitConfig}}};
/// let config = VitConfig::new().image_size(32).hidden_size(16).num_hidden_layers(2).num_attention_heads(2);
/// let model = Vit::new(config.intermediate_size(32).classes(10))?;
/// assert_eq!(model.call(&Tensor::ones([2, 32, 32, 3])?, INFERENCE)?.shape(), [2, 10]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Trackable)]
pub struct Vit {
    patches: Conv2D,
    cls_token: Weight,
    positions: Weight,
    layer: Vec<EncoderLayer>,
    norm: LayerNormalization,
    predictions: Option<Dense>,
    dropout: Dropout,
    config: VitConfig,
}

impl Vit {
    /// Creates a network with random weights.
    ///
    /// # Errors
    /// [`Error::Shape`] if a size is 0, the width is not a multiple of the heads, or images are not a multiple of the patches.
    pub fn new(config: VitConfig) -> Result<Self> {
        let sizes = [
            ("image_size", config.image_size),
            ("patch_size", config.patch_size),
            ("num_hidden_layers", config.num_hidden_layers),
            ("intermediate_size", config.intermediate_size),
            ("classes", config.classes),
        ];
        check("ViT", &sizes, config.hidden_size, config.num_attention_heads)?;
        let (image, patch) = (config.image_size, config.patch_size);
        if image % patch != 0 {
            return Err(Error::Shape(message!(
                "ViT: image_size is {image} and patch_size {patch}; images must be whole patches."
            )));
        }
        let sizes = Sizes {
            width: config.hidden_size,
            heads: config.num_attention_heads,
            inner: config.intermediate_size,
            dropout: config.dropout,
            epsilon: config.layer_norm_eps,
            before: true,
        };
        let top = Dense::new(config.classes).activation(config.classifier_activation);
        let places = Initializer::RandomNormal { mean: 0.0, stddev: STDDEV };
        let model = Vit {
            patches: Conv2D::new(config.hidden_size, [patch, patch])
                .strides([patch, patch])
                .kernel_initializer(kernels()),
            cls_token: Weight::zeros(),
            positions: Weight::new().initializer(places),
            layer: (0..config.num_hidden_layers).map(|_| EncoderLayer::new(sizes)).collect(),
            norm: LayerNormalization::new().epsilon(config.layer_norm_eps),
            predictions: config.include_top.then_some(top),
            dropout: Dropout::new(config.dropout),
            config,
        };
        // This creates the weights.
        trial(|| model.call(&Tensor::zeros([1, image, image, 3])?, INFERENCE))?;
        Ok(model)
    }

    /// Creates a network with the weights in the file at `path`: safetensors with the names of Hugging Face, torchvision or timm,
    /// or with those of this crate.
    ///
    /// # Errors
    /// As [`Vit::new`], and [`Error::Checkpoint`] if the weights are those of another network; the message lists names and
    /// shapes.
    #[cfg(all(feature = "safetensors", not(target_family = "wasm")))]
    pub fn with_weights(config: VitConfig, path: impl AsRef<std::path::Path>) -> Result<Self> {
        let path = path.as_ref();
        let file = crate::weights::SafetensorsFile::open(path)?;
        let has = |end: &str| file.names().any(|name| name.ends_with(end));
        let names = match (has("class_token"), has("attn.qkv.weight")) {
            (true, _) => torchvision(&config),
            (_, true) => timm(&config),
            _ => transformers(&config),
        };
        loading(|| {
            let model = Vit::new(config)?;
            names.load_into(&model, "ViT", path)?;
            Ok(model)
        })
    }

    /// Returns the sizes.
    pub fn config(&self) -> &VitConfig {
        &self.config
    }
}

impl Layer for Vit {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        let (size, width) = (self.config.image_size, self.config.hidden_size);
        let &[batch, height, columns, 3] = x.shape() else {
            return Err(Error::Shape(message!(
                "ViT: the images are {:?}; they must be [N, {size}, {size}, 3].",
                x.shape()
            )));
        };
        if [height, columns] != [size; 2] {
            return Err(Error::Shape(message!(
                "ViT: the images are {:?}; they must be [N, {size}, {size}, 3]. Resize them, or set image_size.",
                x.shape()
            )));
        }
        let count = (size / self.config.patch_size).pow(2);
        let patches = self.patches.call(x, cx)?.reshape_to([batch, count, width].into())?;
        let first = self.cls_token.get(&patches, [1, 1, width])?.broadcast_to([batch, 1, width])?;
        let x = concat(&[first, patches], 1)?;
        let x = x.add(self.positions.get(&x, [1, count + 1, width])?)?;
        let mut x = self.dropout.call(&x, cx)?;
        for layer in &self.layer {
            x = layer.call(&x, Visible::All, cx)?;
        }
        let x = self.norm.call(&x.slice(&[0, 0, 0], &[-1, 1, -1])?.squeeze(1)?, cx)?;
        self.predictions.as_ref().map_or_else(|| Ok(x.clone()), |top| top.call(&x, cx))
    }
}

/// The names of `transformers.ViTModel` and `ViTForImageClassification`.
pub fn transformers(config: &VitConfig) -> WeightNames {
    let mut names = WeightNames::new();
    names.prefix("vit.");
    names.unused(&["pooler.dense.weight", "pooler.dense.bias"]);
    names.variable("embeddings.cls_token", "cls_token");
    names.variable("embeddings.position_embeddings", "positions");
    names.add("embeddings.patch_embeddings.projection", "patches");
    for layer in 0..config.num_hidden_layers {
        for (part, ours) in [
            ("layernorm_before", "norm1"),
            ("attention.attention.query", "attention/query"),
            ("attention.attention.key", "attention/key"),
            ("attention.attention.value", "attention/value"),
            ("attention.output.dense", "attention/out"),
            ("layernorm_after", "norm2"),
            ("intermediate.dense", "inner"),
            ("output.dense", "outer"),
        ] {
            names.add(format!("encoder.layer.{layer}.{part}"), format!("layer/{layer}/{ours}"));
        }
    }
    names.add("layernorm", "norm");
    names.add("classifier", "predictions");
    names
}

/// The names of `torchvision.models.vit_b_16`, which has query, key and value in one tensor.
pub fn torchvision(config: &VitConfig) -> WeightNames {
    let mut names = WeightNames::new();
    names.variable("class_token", "cls_token");
    names.variable("encoder.pos_embedding", "positions");
    names.add("conv_proj", "patches");
    for layer in 0..config.num_hidden_layers {
        let module = format!("encoder.layers.encoder_layer_{layer}");
        for weight in ["weight", "bias"] {
            joined(
                &mut names,
                &format!("{module}.self_attention.in_proj_{weight}"),
                &module,
                weight,
            );
        }
        blocks(
            &mut names,
            &module,
            layer,
            [
                ("ln_1", "norm1"),
                ("self_attention.out_proj", "attention/out"),
                ("ln_2", "norm2"),
                ("mlp.0", "inner"),
                ("mlp.3", "outer"),
            ],
        );
    }
    names.add("encoder.ln", "norm");
    names.add("heads.head", "predictions");
    names
}

/// The names of timm's `vit_base_patch16_224`, which has query, key and value in one tensor.
pub fn timm(config: &VitConfig) -> WeightNames {
    let mut names = WeightNames::new();
    names.variable("cls_token", "cls_token");
    names.variable("pos_embed", "positions");
    names.add("patch_embed.proj", "patches");
    for layer in 0..config.num_hidden_layers {
        let module = format!("blocks.{layer}");
        for weight in ["weight", "bias"] {
            joined(&mut names, &format!("{module}.attn.qkv.{weight}"), &module, weight);
        }
        blocks(
            &mut names,
            &module,
            layer,
            [
                ("norm1", "norm1"),
                ("attn.proj", "attention/out"),
                ("norm2", "norm2"),
                ("mlp.fc1", "inner"),
                ("mlp.fc2", "outer"),
            ],
        );
    }
    names.add("norm", "norm");
    names.add("head", "predictions");
    names
}

/// A tensor that holds the weights of query, key and value; as tensors of their own they are called `MODULE.query.weight`.
fn joined(names: &mut WeightNames, name: &str, module: &str, weight: &str) {
    names.join(name, ["query", "key", "value"].map(|part| format!("{module}.{part}.{weight}")));
}

fn blocks(names: &mut WeightNames, module: &str, layer: usize, parts: [(&str, &str); 5]) {
    for part in ["query", "key", "value"] {
        names.add(format!("{module}.{part}"), format!("layer/{layer}/attention/{part}"));
    }
    for (part, ours) in parts {
        names.add(format!("{module}.{part}"), format!("layer/{layer}/{ours}"));
    }
}
