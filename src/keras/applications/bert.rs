//! [`Bert`]: the encoder of Devlin et al. (2018), whose published weights have Hugging Face's names.

use super::names::WeightNames;
use super::transformer::{EncoderLayer, Sizes, Visible, check, dense, kernels};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::layers::{Dense, Dropout, Embedding, LayerNormalization};
#[cfg(not(target_family = "wasm"))]
use crate::keras::loading::loading;
use crate::keras::trial::trial;
use crate::keras::{Activation, Context, INFERENCE, Layer};
use crate::support::options::options;
use crate::tensor::{Tensor, range};
use crate::trackable::Trackable;

options! {
    /// The sizes of a [`Bert`], with Hugging Face's names; the defaults are those of BERT-base, uncased: 109,482,240 parameters.
    #[derive(Debug, Clone, PartialEq)]
    pub struct BertConfig {
        /// Sets the number of different tokens.
        vocab_size: usize = 30_522,
        /// Sets the width.
        hidden_size: usize = 768,
        /// Sets the number of layers.
        num_hidden_layers: usize = 12,
        /// Sets the number of heads.
        num_attention_heads: usize = 12,
        /// Sets the width inside of the feed-forward layers.
        intermediate_size: usize = 3072,
        /// Sets the largest number of tokens.
        max_position_embeddings: usize = 512,
        /// Sets the number of kinds of tokens: those of the first and of the second sentence.
        type_vocab_size: usize = 2,
        /// Sets the small number in the normalizations.
        layer_norm_eps: f32 = 1e-12,
        /// Sets the rate of all dropouts.
        dropout: f32 = 0.1,
    }
}

crate::trackable::plain!(BertConfig);

impl BertConfig {
    /// Reads the sizes from the text of Hugging Face's `config.json`. What it does not say stays as it is by default.
    ///
    /// # Errors
    /// [`Error::Data`] if it is not valid JSON, a value is of the wrong kind, or it belongs to another kind of network or to a
    /// variant that this one is not.
    #[cfg(any(feature = "json", feature = "safetensors"))]
    pub fn from_json(text: &str) -> Result<Self> {
        let json = super::config_json::ConfigJson::parse("BERT", "bert", text)?;
        let mut config = BertConfig::new();
        json.size("vocab_size", &mut config.vocab_size)?;
        json.size("hidden_size", &mut config.hidden_size)?;
        json.size("num_hidden_layers", &mut config.num_hidden_layers)?;
        json.size("num_attention_heads", &mut config.num_attention_heads)?;
        json.size("intermediate_size", &mut config.intermediate_size)?;
        json.size("max_position_embeddings", &mut config.max_position_embeddings)?;
        json.size("type_vocab_size", &mut config.type_vocab_size)?;
        json.number("layer_norm_eps", &mut config.layer_norm_eps)?;
        json.number("hidden_dropout_prob", &mut config.dropout)?;
        json.only("hidden_act", &["\"gelu\""])?;
        json.only("position_embedding_type", &["\"absolute\""])?;
        json.only("is_decoder", &["false"])?;
        Ok(config)
    }
}

/// BERT: tokens `[B,T]`; the results are the features of each token, `[B,T,D]`, and those of the first token after one more
/// layer, `[B,D]`.
///
/// A call on a list takes `[tokens]`, `[tokens, kinds]` or `[tokens, kinds, mask]`: the kind of each token (0 by default), and
/// which tokens count, as `bool` or numbers of which 0 is no. A call on one tensor returns the features of each token.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{INFERENCE, Layer, applications::{Bert, BertConfig}};
/// let config = BertConfig::new().vocab_size(50).hidden_size(16).num_hidden_layers(2).num_attention_heads(2);
/// let model = Bert::new(config.intermediate_size(32))?;
/// let tokens = tf::constant([[2, 7, 3, 0]])?;
/// let kinds = tf::constant([[0, 0, 0, 0]])?;
/// let mask = tf::constant([[1, 1, 1, 0]])?;
/// let [features, pooled] = model.call(&[tokens, kinds, mask][..], INFERENCE)?;
/// assert_eq!((features.shape(), pooled.shape()), (&[1, 4, 16][..], &[1, 16][..]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Trackable)]
pub struct Bert {
    embeddings: Embeddings,
    layer: Vec<EncoderLayer>,
    pooler: Dense,
    config: BertConfig,
}

#[derive(Debug, Trackable)]
struct Embeddings {
    word: Embedding,
    position: Embedding,
    token_type: Embedding,
    norm: LayerNormalization,
    dropout: Dropout,
}

impl Bert {
    /// Creates a network with random weights.
    ///
    /// # Errors
    /// [`Error::Shape`] if a size is 0, or the width is not a multiple of the heads.
    pub fn new(config: BertConfig) -> Result<Self> {
        let sizes = [
            ("vocab_size", config.vocab_size),
            ("num_hidden_layers", config.num_hidden_layers),
            ("intermediate_size", config.intermediate_size),
            ("max_position_embeddings", config.max_position_embeddings),
            ("type_vocab_size", config.type_vocab_size),
        ];
        check("BERT", &sizes, config.hidden_size, config.num_attention_heads)?;
        let table =
            |rows| Embedding::new(rows, config.hidden_size).embeddings_initializer(kernels());
        let sizes = Sizes {
            width: config.hidden_size,
            heads: config.num_attention_heads,
            inner: config.intermediate_size,
            dropout: config.dropout,
            epsilon: config.layer_norm_eps,
            before: false,
        };
        let model = Bert {
            embeddings: Embeddings {
                word: table(config.vocab_size),
                position: table(config.max_position_embeddings),
                token_type: table(config.type_vocab_size),
                norm: LayerNormalization::new().epsilon(config.layer_norm_eps),
                dropout: Dropout::new(config.dropout),
            },
            layer: (0..config.num_hidden_layers).map(|_| EncoderLayer::new(sizes)).collect(),
            pooler: dense(config.hidden_size).activation(Activation::Tanh),
            config,
        };
        // This creates the weights.
        trial(|| model.run(&[Tensor::from_slice(&[0i32], [1, 1])?], INFERENCE))?;
        Ok(model)
    }

    /// Creates a network with the weights in the file at `path`: safetensors with Hugging Face's names, or with those of this
    /// crate.
    ///
    /// # Errors
    /// As [`Bert::new`], and [`Error::Checkpoint`] if the weights are those of another network; the message lists names and
    /// shapes.
    #[cfg(not(target_family = "wasm"))]
    pub fn with_weights(config: BertConfig, path: impl AsRef<std::path::Path>) -> Result<Self> {
        let names = transformers(&config);
        loading(|| {
            let model = Bert::new(config)?;
            names.load_into(&model, "BERT", path.as_ref())?;
            Ok(model)
        })
    }

    /// Returns the sizes.
    pub fn config(&self) -> &BertConfig {
        &self.config
    }

    fn run(&self, inputs: &[Tensor], cx: Context<'_>) -> Result<[Tensor; 2]> {
        let wrong = || {
            let shapes: Vec<&[usize]> = inputs.iter().map(Tensor::shape).collect();
            Error::Shape(message!(
                "BERT: the inputs are {shapes:?}; they must be tokens [B, T] with T from 1 to {}, and of the same shape the \
                 kinds and the mask, if there are some.",
                self.config.max_position_embeddings
            ))
        };
        let (Some(tokens), 1..=3) = (inputs.first(), inputs.len()) else { return Err(wrong()) };
        let &[_, steps] = tokens.shape() else { return Err(wrong()) };
        if steps == 0
            || steps > self.config.max_position_embeddings
            || inputs.iter().any(|x| x.shape() != tokens.shape())
        {
            return Err(wrong());
        }
        let of = &self.embeddings;
        let kinds = match inputs.get(1) {
            Some(kinds) => kinds.clone(),
            None => range(0, 1, 1)?.broadcast_to(tokens.shape())?,
        };
        let positions = range(0, steps as i32, 1)?;
        let x = of.word.call(tokens, cx)?.add(of.token_type.call(&kinds, cx)?)?;
        let x = of.norm.call(&x.add(of.position.call(&positions, cx)?)?, cx)?;
        let mut x = of.dropout.call(&x, cx)?;
        let mask = inputs.get(2).map(|mask| mask.cast(DType::Bool)?.expand_dims(1)?.expand_dims(1));
        let mask = mask.transpose()?;
        let visible = mask.as_ref().map_or(Visible::All, Visible::Where);
        for layer in &self.layer {
            x = layer.call(&x, visible, cx)?;
        }
        let first = x.slice(&[0, 0, 0], &[-1, 1, -1])?.squeeze(1)?;
        let pooled = self.pooler.call(&first, cx)?;
        Ok([x, pooled])
    }
}

impl Layer<[Tensor], [Tensor; 2]> for Bert {
    fn call(&self, inputs: &[Tensor], cx: Context<'_>) -> Result<[Tensor; 2]> {
        self.run(inputs, cx)
    }
}

impl Layer for Bert {
    fn call(&self, tokens: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        let [x, _] = self.run(std::slice::from_ref(tokens), cx)?;
        Ok(x)
    }
}

/// The names of `transformers.BertModel`, and of the networks that contain it.
pub fn transformers(config: &BertConfig) -> WeightNames {
    let mut names = WeightNames::new();
    names.prefix("bert.");
    names.unused(&["embeddings.position_ids"]);
    for (part, ours) in [
        ("word_embeddings", "word"),
        ("position_embeddings", "position"),
        ("token_type_embeddings", "token_type"),
        ("LayerNorm", "norm"),
    ] {
        names.add(format!("embeddings.{part}"), format!("embeddings/{ours}"));
    }
    for layer in 0..config.num_hidden_layers {
        for (part, ours) in [
            ("attention.self.query", "attention/query"),
            ("attention.self.key", "attention/key"),
            ("attention.self.value", "attention/value"),
            ("attention.output.dense", "attention/out"),
            ("attention.output.LayerNorm", "norm1"),
            ("intermediate.dense", "inner"),
            ("output.dense", "outer"),
            ("output.LayerNorm", "norm2"),
        ] {
            names.add(format!("encoder.layer.{layer}.{part}"), format!("layer/{layer}/{ours}"));
        }
    }
    names.add("pooler.dense", "pooler");
    names
}
