//! [`Gpt2`]: the decoder of Radford et al. (2019), with Hugging Face's names.

use super::decoding::{CausalLm, tokens_at};
use super::key_values::{KeyValues, attend_to_past};
use super::names::WeightNames;
use super::transformer::{check, dense, from_heads, into_heads, kernels};
use crate::error::{Error, Result, message};
use crate::keras::layers::{Dense, Dropout, Embedding, LayerNormalization};
#[cfg(not(target_family = "wasm"))]
use crate::keras::loading::loading;
use crate::keras::trial::trial;
use crate::keras::{Activation, Context, INFERENCE, Layer};
use crate::ops::MatmulOptions;
use crate::support::options::options;
use crate::tensor::{Tensor, range};
use crate::trackable::Trackable;

options! {
    /// The sizes of a [`Gpt2`], with Hugging Face's names; the defaults are those of GPT-2 small, 124,439,808 parameters.
    #[derive(Debug, Clone, PartialEq)]
    pub struct Gpt2Config {
        /// Sets the number of different tokens.
        vocab_size: usize = 50_257,
        /// Sets the largest number of tokens that the network can see.
        n_positions: usize = 1024,
        /// Sets the width.
        n_embd: usize = 768,
        /// Sets the number of blocks.
        n_layer: usize = 12,
        /// Sets the number of heads.
        n_head: usize = 12,
        /// Sets the width inside of the feed-forward layers; 4 times the width by default.
        n_inner: Option<usize> as impl Into<Option<usize>> = None,
        /// Sets the small number in the normalizations.
        layer_norm_epsilon: f32 = 1e-5,
        /// Sets the rate of all dropouts.
        dropout: f32 = 0.1,
    }
}

crate::trackable::plain!(Gpt2Config);

impl Gpt2Config {
    /// Reads the sizes from the text of Hugging Face's `config.json`. What it does not say stays as it is by default.
    ///
    /// # Errors
    /// [`Error::Data`] if it is not valid JSON, a value is of the wrong kind, or it belongs to another kind of network or to a
    /// variant that this one is not.
    #[cfg(any(feature = "json", feature = "safetensors"))]
    pub fn from_json(text: &str) -> Result<Self> {
        let json = super::config_json::ConfigJson::parse("GPT-2", "gpt2", text)?;
        let mut config = Gpt2Config::new();
        json.size("vocab_size", &mut config.vocab_size)?;
        json.size("n_positions", &mut config.n_positions)?;
        json.size("n_embd", &mut config.n_embd)?;
        json.size("n_layer", &mut config.n_layer)?;
        json.size("n_head", &mut config.n_head)?;
        json.number("layer_norm_epsilon", &mut config.layer_norm_epsilon)?;
        json.number("resid_pdrop", &mut config.dropout)?;
        let mut inner = 0;
        json.size("n_inner", &mut inner)?;
        config.n_inner = Some(inner).filter(|inner| *inner > 0);
        json.only("activation_function", &["\"gelu_new\"", "\"gelu_pytorch_tanh\""])?;
        json.only("scale_attn_weights", &["true"])?;
        json.only("scale_attn_by_inverse_layer_idx", &["false"])?;
        json.only("add_cross_attention", &["false"])?;
        json.only("tie_word_embeddings", &["true"])?;
        Ok(config)
    }
}

/// GPT-2: tokens `[B,T]`, result: the logits of each next token, `[B,T,vocab_size]`. The output layer is the table of tokens.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Trackable};
/// use tf::keras::{INFERENCE, Layer, applications::{Gpt2, Gpt2Config}};
/// let model = Gpt2::new(Gpt2Config::new().vocab_size(50).n_positions(64).n_embd(16).n_layer(2).n_head(2))?;
/// let logits = model.call(&tf::constant([[3, 1, 4]])?, INFERENCE)?;
/// assert_eq!(logits.shape(), [1, 3, 50]);
/// assert_eq!(model.named_variables()[2].0, "h/0/ln_1/gamma");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Trackable)]
pub struct Gpt2 {
    wte: Embedding,
    wpe: Embedding,
    h: Vec<Block>,
    ln_f: LayerNormalization,
    dropout: Dropout,
    config: Gpt2Config,
}

#[derive(Debug, Trackable)]
struct Block {
    ln_1: LayerNormalization,
    attn: Attention,
    ln_2: LayerNormalization,
    mlp: Mlp,
    dropout: Dropout,
}

#[derive(Debug, Trackable)]
struct Attention {
    c_attn: Dense,
    c_proj: Dense,
    dropout: Dropout,
    #[track(skip)]
    heads: usize,
    #[track(skip)]
    rate: f32,
}

#[derive(Debug, Trackable)]
struct Mlp {
    c_fc: Dense,
    c_proj: Dense,
}

impl Gpt2 {
    /// Creates a network with random weights.
    ///
    /// # Errors
    /// [`Error::Shape`] if a size is 0, or the width is not a multiple of the heads.
    pub fn new(config: Gpt2Config) -> Result<Self> {
        let sizes = [
            ("vocab_size", config.vocab_size),
            ("n_positions", config.n_positions),
            ("n_layer", config.n_layer),
            ("n_inner", config.n_inner.unwrap_or(1)),
        ];
        check("GPT-2", &sizes, config.n_embd, config.n_head)?;
        let table = |rows| Embedding::new(rows, config.n_embd).embeddings_initializer(kernels());
        let norm = || LayerNormalization::new().epsilon(config.layer_norm_epsilon);
        let block = |_| Block {
            ln_1: norm(),
            attn: Attention {
                c_attn: dense(3 * config.n_embd),
                c_proj: dense(config.n_embd),
                dropout: Dropout::new(config.dropout),
                heads: config.n_head,
                rate: config.dropout,
            },
            ln_2: norm(),
            mlp: Mlp {
                c_fc: dense(config.n_inner.unwrap_or(4 * config.n_embd))
                    .activation(Activation::gelu_tanh()),
                c_proj: dense(config.n_embd),
            },
            dropout: Dropout::new(config.dropout),
        };
        let model = Gpt2 {
            wte: table(config.vocab_size),
            wpe: table(config.n_positions),
            h: (0..config.n_layer).map(block).collect(),
            ln_f: norm(),
            dropout: Dropout::new(config.dropout),
            config,
        };
        // This creates the weights.
        trial(|| model.call(&Tensor::from_slice(&[0i32], [1, 1])?, INFERENCE))?;
        Ok(model)
    }

    /// Creates a network with the weights in the file at `path`: safetensors with Hugging Face's names, or with those of this
    /// crate, or Keras's format as this crate has written it.
    ///
    /// # Errors
    /// As [`Gpt2::new`], and [`Error::Checkpoint`] if the weights are those of another network; the message lists names and
    /// shapes.
    #[cfg(not(target_family = "wasm"))]
    pub fn with_weights(config: Gpt2Config, path: impl AsRef<std::path::Path>) -> Result<Self> {
        let names = transformers(&config);
        loading(|| {
            let model = Gpt2::new(config)?;
            names.load_into(&model, "GPT-2", path.as_ref())?;
            Ok(model)
        })
    }

    /// Returns the sizes.
    pub fn config(&self) -> &Gpt2Config {
        &self.config
    }

    /// The features of each token, from which the last layer computes logits.
    fn features(
        &self,
        ids: &Tensor,
        mut past: Option<&mut KeyValues>,
        cx: Context<'_>,
    ) -> Result<Tensor> {
        let &[_, steps] = ids.shape() else {
            return Err(Error::Shape(message!(
                "GPT-2: the tokens are {:?}; they must be [B, T].",
                ids.shape()
            )));
        };
        if past.is_none() && (steps == 0 || steps > self.config.n_positions) {
            return Err(Error::Shape(message!(
                "GPT-2: the tokens are {:?}, and the network sees 1 to {}. Pass the last ones.",
                ids.shape(),
                self.config.n_positions
            )));
        }
        let positions = match &mut past {
            Some(past) => past.begin("GPT-2", steps)?,
            None => range(0, steps as i32, 1)?,
        };
        let x = self.wte.call(ids, cx)?.add(self.wpe.call(&positions, cx)?)?;
        let mut x = self.dropout.call(&x, cx)?;
        for (layer, block) in self.h.iter().enumerate() {
            let y = block.attn.run(layer, &block.ln_1.call(&x, cx)?, past.as_deref_mut(), cx)?;
            x = x.add(block.dropout.call(&y, cx)?)?;
            let y = block.mlp.c_fc.call(&block.ln_2.call(&x, cx)?, cx)?;
            x = x.add(block.dropout.call(&block.mlp.c_proj.call(&y, cx)?, cx)?)?;
        }
        self.ln_f.call(&x, cx)
    }

    /// The logits of features, `[..,D]`.
    fn logits(&self, x: &Tensor) -> Result<Tensor> {
        let table = self.wte.variables();
        let table =
            table.first().ok_or_else(|| Error::Data("GPT-2: it has no table of tokens.".into()))?;
        x.matmul_with(&table.read().cast(x.dtype())?, MatmulOptions::new().transpose_b(true))
    }
}

impl Attention {
    fn run(
        &self,
        layer: usize,
        x: &Tensor,
        past: Option<&mut KeyValues>,
        cx: Context<'_>,
    ) -> Result<Tensor> {
        let width = x.shape()[2];
        let all = self.c_attn.call(x, cx)?;
        let part = |at: usize| {
            let (begin, size) = ([0, 0, at * width], [-1, -1, width as i64]);
            into_heads(&all.slice(&begin, &size)?, self.heads)
        };
        let (q, k, v) = (part(0)?, part(1)?, part(2)?);
        let dropout = (self.rate, &self.dropout);
        let y = attend_to_past([&q, &k, &v], past.map(|past| (past, layer)), dropout, cx)?;
        self.c_proj.call(&from_heads(&y)?, cx)
    }
}

impl Layer for Gpt2 {
    fn call(&self, ids: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        self.logits(&self.features(ids, None, cx)?)
    }
}

impl CausalLm for Gpt2 {
    fn context_length(&self) -> usize {
        self.config.n_positions
    }

    fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    fn extend(&self, ids: &Tensor, past: &mut KeyValues) -> Result<Tensor> {
        self.logits(&self.features(ids, Some(past), INFERENCE)?)
    }

    fn extend_at(&self, ids: &Tensor, past: &mut KeyValues, at: &[usize]) -> Result<Tensor> {
        self.logits(&tokens_at(&self.features(ids, Some(past), INFERENCE)?, at)?)
    }
}

/// The names of `transformers.GPT2Model` and `GPT2LMHeadModel`, whose kernels are not transposed.
pub fn transformers(config: &Gpt2Config) -> WeightNames {
    const DENSE: &[(&str, &str)] = &[("weight", "kernel"), ("bias", "bias")];
    const NORM: &[(&str, &str)] = &[("weight", "gamma"), ("bias", "beta")];
    const TABLE: &[(&str, &str)] = &[("weight", "embeddings")];
    let mut names = WeightNames::new();
    names.prefix("transformer.");
    names.unused(&[".attn.bias", ".attn.masked_bias", "lm_head.weight"]);
    names.direct("wte", "wte", TABLE);
    names.direct("wpe", "wpe", TABLE);
    for block in 0..config.n_layer {
        for (part, weights) in [
            ("ln_1", NORM),
            ("attn.c_attn", DENSE),
            ("attn.c_proj", DENSE),
            ("ln_2", NORM),
            ("mlp.c_fc", DENSE),
            ("mlp.c_proj", DENSE),
        ] {
            let layer = format!("h/{block}/{}", part.replace('.', "/"));
            names.direct(format!("h.{block}.{part}"), layer, weights);
        }
    }
    names.direct("ln_f", "ln_f", NORM);
    names
}
