//! [`Llama`]: a decoder with root-mean-square normalizations, rotary positions and grouped queries (Touvron et al. 2023), with
//! Hugging Face's names.

use super::decoding::{CausalLm, tokens_at};
use super::key_values::{KeyValues, attend_to_past};
use super::names::WeightNames;
use super::transformer::{check, from_heads, into_heads, kernels};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::layers::{Dense, Dropout, Embedding, RmsNormalization};
#[cfg(not(target_family = "wasm"))]
use crate::keras::loading::loading;
use crate::keras::trial::trial;
use crate::keras::{Context, INFERENCE, Layer};
use crate::ops::{MatmulOptions, concat};
use crate::support::options::options;
use crate::tensor::{Tensor, range};
use crate::trackable::Trackable;

options! {
    /// The sizes of a [`Llama`], with Hugging Face's names. The defaults are small; the `config.json` of published weights has
    /// theirs.
    #[derive(Debug, Clone, PartialEq)]
    pub struct LlamaConfig {
        /// Sets the number of different tokens.
        vocab_size: usize = 32_000,
        /// Sets the width.
        hidden_size: usize = 288,
        /// Sets the width inside of the feed-forward layers.
        intermediate_size: usize = 768,
        /// Sets the number of blocks.
        num_hidden_layers: usize = 6,
        /// Sets the number of heads.
        num_attention_heads: usize = 6,
        /// Sets the number of heads of keys and values, each of which serves a group of the queries' heads.
        num_key_value_heads: usize = 6,
        /// Sets the largest number of tokens that the network can see.
        max_position_embeddings: usize = 256,
        /// Sets the small number in the normalizations.
        rms_norm_eps: f32 = 1e-6,
        /// Sets the base of the rotations' frequencies.
        rope_theta: f32 = 10_000.0,
        /// Sets whether the output layer is the table of tokens.
        tie_word_embeddings: bool = false,
    }
}

crate::trackable::plain!(LlamaConfig);

impl LlamaConfig {
    /// Reads the sizes from the text of Hugging Face's `config.json`. What it does not say stays as it is by default.
    ///
    /// # Errors
    /// [`Error::Data`] if it is not valid JSON, a value is of the wrong kind, or it belongs to another kind of network or to a
    /// variant that this one is not.
    #[cfg(any(feature = "json", feature = "safetensors"))]
    pub fn from_json(text: &str) -> Result<Self> {
        let json = super::config_json::ConfigJson::parse("LLaMA", "llama", text)?;
        let mut config = LlamaConfig::new();
        json.size("vocab_size", &mut config.vocab_size)?;
        json.size("hidden_size", &mut config.hidden_size)?;
        json.size("intermediate_size", &mut config.intermediate_size)?;
        json.size("num_hidden_layers", &mut config.num_hidden_layers)?;
        json.size("num_attention_heads", &mut config.num_attention_heads)?;
        json.size("max_position_embeddings", &mut config.max_position_embeddings)?;
        json.number("rms_norm_eps", &mut config.rms_norm_eps)?;
        json.number("rope_theta", &mut config.rope_theta)?;
        json.flag("tie_word_embeddings", &mut config.tie_word_embeddings)?;
        // Without groups, each head has its own keys and values.
        config.num_key_value_heads = config.num_attention_heads;
        json.size("num_key_value_heads", &mut config.num_key_value_heads)?;
        json.only("hidden_act", &["\"silu\""])?;
        json.only("attention_bias", &["false"])?;
        json.only("mlp_bias", &["false"])?;
        let size = config.hidden_size.checked_div(config.num_attention_heads).unwrap_or(0);
        json.only("head_dim", &[&size.to_string()])?;
        // Newer files have the base in here.
        for rope in ["rope_scaling", "rope_parameters"].iter().filter_map(|name| json.object(name))
        {
            rope.number("rope_theta", &mut config.rope_theta)?;
            rope.only("rope_type", &["\"default\""])?;
            rope.only("type", &["\"default\""])?;
        }
        Ok(config)
    }
}

/// A LLaMA-like decoder: tokens `[B,T]`, result: the logits of each next token, `[B,T,vocab_size]`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{INFERENCE, Layer, applications::{Llama, LlamaConfig}};
/// let config = LlamaConfig::new().vocab_size(50).hidden_size(16).intermediate_size(32).num_hidden_layers(1);
/// let model = Llama::new(config.num_attention_heads(4).num_key_value_heads(2))?;
/// assert_eq!(model.call(&tf::constant([[3, 1, 4]])?, INFERENCE)?.shape(), [1, 3, 50]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Trackable)]
pub struct Llama {
    embed_tokens: Embedding,
    layers: Vec<Block>,
    norm: RmsNormalization,
    lm_head: Option<Dense>,
    config: LlamaConfig,
}

#[derive(Debug, Trackable)]
struct Block {
    input_layernorm: RmsNormalization,
    self_attn: Attention,
    post_attention_layernorm: RmsNormalization,
    mlp: Mlp,
}

#[derive(Debug, Trackable)]
struct Attention {
    q_proj: Dense,
    k_proj: Dense,
    v_proj: Dense,
    o_proj: Dense,
    /// It drops nothing.
    dropout: Dropout,
    #[track(skip)]
    heads: [usize; 2],
}

#[derive(Debug, Trackable)]
struct Mlp {
    gate_proj: Dense,
    up_proj: Dense,
    down_proj: Dense,
}

impl Llama {
    /// Creates a network with random weights.
    ///
    /// # Errors
    /// [`Error::Shape`] if a size is 0, the width is not a multiple of the heads, or the heads are not a multiple of those of
    /// keys and values.
    pub fn new(config: LlamaConfig) -> Result<Self> {
        let (width, heads) = (config.hidden_size, config.num_attention_heads);
        let pairs = config.num_key_value_heads;
        let sizes = [
            ("vocab_size", config.vocab_size),
            ("intermediate_size", config.intermediate_size),
            ("num_hidden_layers", config.num_hidden_layers),
            ("num_key_value_heads", pairs),
            ("max_position_embeddings", config.max_position_embeddings),
        ];
        check("LLaMA", &sizes, width, heads)?;
        let size = width / heads;
        if heads % pairs != 0 || size % 2 != 0 {
            return Err(Error::Shape(message!(
                "LLaMA: there are {heads} heads of size {size} and {pairs} of keys and values; the heads must be a multiple of \
                 those of keys and values, and their size even."
            )));
        }
        let plain = |units| Dense::new(units).use_bias(false).kernel_initializer(kernels());
        let norm = || RmsNormalization::new().epsilon(config.rms_norm_eps);
        let block = |_| Block {
            input_layernorm: norm(),
            self_attn: Attention {
                q_proj: plain(width),
                k_proj: plain(pairs * size),
                v_proj: plain(pairs * size),
                o_proj: plain(width),
                dropout: Dropout::new(0.0),
                heads: [heads, pairs],
            },
            post_attention_layernorm: norm(),
            mlp: Mlp {
                gate_proj: plain(config.intermediate_size),
                up_proj: plain(config.intermediate_size),
                down_proj: plain(width),
            },
        };
        let model = Llama {
            embed_tokens: Embedding::new(config.vocab_size, width)
                .embeddings_initializer(kernels()),
            layers: (0..config.num_hidden_layers).map(block).collect(),
            norm: norm(),
            lm_head: (!config.tie_word_embeddings).then(|| plain(config.vocab_size)),
            config,
        };
        // This creates the weights.
        trial(|| model.call(&Tensor::from_slice(&[0i32], [1, 1])?, INFERENCE))?;
        Ok(model)
    }

    /// Creates a network with the weights in the file at `path`: safetensors with Hugging Face's names, or with those of this
    /// crate.
    ///
    /// # Errors
    /// As [`Llama::new`], and [`Error::Checkpoint`] if the weights are those of another network; the message lists names and
    /// shapes.
    #[cfg(not(target_family = "wasm"))]
    pub fn with_weights(config: LlamaConfig, path: impl AsRef<std::path::Path>) -> Result<Self> {
        let names = transformers(&config);
        loading(|| {
            let model = Llama::new(config)?;
            names.load_into(&model, "LLaMA", path.as_ref())?;
            Ok(model)
        })
    }

    /// Returns the sizes.
    pub fn config(&self) -> &LlamaConfig {
        &self.config
    }

    /// The cosines and sines of the rotations at `positions`, `[T,D]`, or `[B,1,T,D]` for positions `[B,T]`; both halves of a head
    /// have the same angles.
    fn rotations(&self, positions: &Tensor) -> Result<[Tensor; 2]> {
        let size = self.config.hidden_size / self.config.num_attention_heads;
        let frequency =
            |at: usize| self.config.rope_theta.powf(-2.0 * (at % (size / 2)) as f32 / size as f32);
        let frequencies: Vec<f32> = (0..size).map(frequency).collect();
        let frequencies = Tensor::from_slice(&frequencies, [1, size])?;
        let positions = match positions.rank() {
            1 => positions.clone(),
            _ => positions.expand_dims(1)?,
        };
        let angles = positions.cast(DType::F32)?.expand_dims(-1)?.multiply(&frequencies)?;
        Ok([angles.cos()?, angles.sin()?])
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
                "LLaMA: the tokens are {:?}; they must be [B, T].",
                ids.shape()
            )));
        };
        let most = self.config.max_position_embeddings;
        if past.is_none() && (steps == 0 || steps > most) {
            return Err(Error::Shape(message!(
                "LLaMA: the tokens are {:?}, and the network sees 1 to {most}. Pass the last ones.",
                ids.shape()
            )));
        }
        let positions = match &mut past {
            Some(past) => past.begin("LLaMA", steps)?,
            None => range(0, steps as i32, 1)?,
        };
        let rotations = self.rotations(&positions)?;
        let mut x = self.embed_tokens.call(ids, cx)?;
        for (layer, block) in self.layers.iter().enumerate() {
            let y = block.input_layernorm.call(&x, cx)?;
            let y = block.self_attn.run(layer, &y, &rotations, past.as_deref_mut(), cx)?;
            x = x.add(y)?;
            let y = block.post_attention_layernorm.call(&x, cx)?;
            let gate = block.mlp.gate_proj.call(&y, cx)?.silu()?;
            let y = gate.multiply(block.mlp.up_proj.call(&y, cx)?)?;
            x = x.add(block.mlp.down_proj.call(&y, cx)?)?;
        }
        self.norm.call(&x, cx)
    }

    /// The logits of features, `[..,D]`.
    fn logits(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        if let Some(head) = &self.lm_head {
            return head.call(x, cx);
        }
        let table = self.embed_tokens.variables();
        let table =
            table.first().ok_or_else(|| Error::Data("LLaMA: it has no table of tokens.".into()))?;
        x.matmul_with(&table.read().cast(x.dtype())?, MatmulOptions::new().transpose_b(true))
    }
}

/// Rotates the two halves of each head, `[B,H,T,D]`.
fn rotated(x: &Tensor, [cos, sin]: &[Tensor; 2]) -> Result<Tensor> {
    let half = x.shape()[3] / 2;
    let part = |at: usize| x.slice(&[0, 0, 0, at * half], &[-1, -1, -1, half as i64]);
    let turned = concat(&[part(1)?.negative()?, part(0)?], 3)?;
    x.multiply(cos)?.add(turned.multiply(sin)?)
}

impl Attention {
    fn run(
        &self,
        layer: usize,
        x: &Tensor,
        rotations: &[Tensor; 2],
        past: Option<&mut KeyValues>,
        cx: Context<'_>,
    ) -> Result<Tensor> {
        let [heads, pairs] = self.heads;
        let q = rotated(&into_heads(&self.q_proj.call(x, cx)?, heads)?, rotations)?;
        let k = rotated(&into_heads(&self.k_proj.call(x, cx)?, pairs)?, rotations)?;
        let v = into_heads(&self.v_proj.call(x, cx)?, pairs)?;
        let dropout = (0.0, &self.dropout);
        let y = attend_to_past([&q, &k, &v], past.map(|past| (past, layer)), dropout, cx)?;
        self.o_proj.call(&from_heads(&y)?, cx)
    }
}

impl Layer for Llama {
    fn call(&self, ids: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        self.logits(&self.features(ids, None, cx)?, cx)
    }
}

impl CausalLm for Llama {
    fn context_length(&self) -> usize {
        self.config.max_position_embeddings
    }

    fn vocab_size(&self) -> usize {
        self.config.vocab_size
    }

    fn extend(&self, ids: &Tensor, past: &mut KeyValues) -> Result<Tensor> {
        self.logits(&self.features(ids, Some(past), INFERENCE)?, INFERENCE)
    }

    fn extend_at(&self, ids: &Tensor, past: &mut KeyValues, at: &[usize]) -> Result<Tensor> {
        self.logits(&tokens_at(&self.features(ids, Some(past), INFERENCE)?, at)?, INFERENCE)
    }
}

/// The names of `transformers.LlamaForCausalLM`.
pub fn transformers(config: &LlamaConfig) -> WeightNames {
    let mut names = WeightNames::new();
    names.prefix("model.");
    names.unused(&["rotary_emb.inv_freq"]);
    names.add("embed_tokens", "embed_tokens");
    for layer in 0..config.num_hidden_layers {
        for part in [
            "input_layernorm",
            "self_attn.q_proj",
            "self_attn.k_proj",
            "self_attn.v_proj",
            "self_attn.o_proj",
            "post_attention_layernorm",
            "mlp.gate_proj",
            "mlp.up_proj",
            "mlp.down_proj",
        ] {
            let module = format!("layers.{layer}.{part}");
            names.add(module.clone(), module.replace('.', "/"));
        }
    }
    names.add("norm", "norm");
    names.add("lm_head", "lm_head");
    names
}
