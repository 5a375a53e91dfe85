//! The common code of attention layers with several heads: projections, masks, and the call of `scaled_dot_product_attention`.

use super::projection::Projection;
use super::scores::{attended, causal_mask, expect_bool, places, softmax};
use crate::error::{Error, Result, message};
#[cfg(feature = "json")]
use crate::keras::Config;
use crate::keras::layers::SeedGenerator;
#[cfg(feature = "json")]
use crate::keras::{Constraint, Initializer};
use crate::keras::{Context, DTypePolicy, Regularizer, Weight};
use crate::ops::{AttentionOptions, scaled_dot_product_attention, where_};
use crate::shape::Axes;
use crate::support::options::options;
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable};

options! {
    /// Optional arguments of a call of multi-head attention, in addition to query and value.
    #[derive(Debug, Clone)]
    pub struct AttendOptions {
        /// The keys, `[B,S,D]`. Default: the values.
        key: Option<Tensor> as impl Into<Option<Tensor>> = None,
        /// Which keys each query may attend to, `bool`: `[B,T,S]`, `[T,S]` or `[B,H,T,S]`, or size 1 along these axes.
        /// Default: all.
        attention_mask: Option<Tensor> as impl Into<Option<Tensor>> = None,
        /// Which keys are valid, `[B,S]`, `bool`. Default: all.
        key_mask: Option<Tensor> as impl Into<Option<Tensor>> = None,
        /// Whether query `t` attends only to the keys 0 to `t`. Default: `false`.
        use_causal_mask: bool = false,
    }
}

/// The projections of the heads, and the common options.
#[derive(Debug)]
pub(super) struct Heads {
    pub query: Projection,
    pub key: Projection,
    pub value: Projection,
    pub output: Projection,
    pub gate: Projection,
    pub use_gate: bool,
    pub dropout: f32,
    pub sliding_window: Option<usize>,
    pub use_causal_mask: bool,
    pub activity_regularizer: Option<Regularizer>,
    pub generator: SeedGenerator,
    pub policy: DTypePolicy,
}

/// A layer's name, the number of heads, their sizes, and the last axes of the result.
#[derive(Clone, Copy)]
pub(super) struct Sizes<'a> {
    pub layer: &'static str,
    pub output: &'a [usize],
    pub query_heads: usize,
    pub key_heads: usize,
    pub key_dim: usize,
    pub value_dim: usize,
}

impl Heads {
    pub fn new() -> Self {
        Heads {
            query: Projection::new(),
            key: Projection::new(),
            value: Projection::new(),
            output: Projection::new(),
            gate: Projection::new(),
            use_gate: false,
            dropout: 0.0,
            sliding_window: None,
            use_causal_mask: false,
            activity_regularizer: None,
            generator: SeedGenerator::default(),
            policy: DTypePolicy::default(),
        }
    }

    fn each(mut self, change: impl Fn(&mut Projection)) -> Self {
        for projection in
            [&mut self.query, &mut self.key, &mut self.value, &mut self.output, &mut self.gate]
        {
            change(projection);
        }
        self
    }

    pub fn use_bias(self, use_bias: bool) -> Self {
        self.each(|of| of.use_bias = use_bias)
    }

    pub fn kernels(self, change: impl Fn(Weight) -> Weight) -> Self {
        self.each(|of| of.kernel = change(of.kernel.clone()))
    }

    pub fn biases(self, change: impl Fn(Weight) -> Weight) -> Self {
        self.each(|of| of.bias = change(of.bias.clone()))
    }

    pub fn dtype(mut self, policy: DTypePolicy) -> Self {
        self.policy = policy;
        self.kernels(|kernel| kernel.dtype(policy)).biases(|bias| bias.dtype(policy))
    }

    /// `[B,T,D]`, `[B,S,E]` and `[B,S,F]` to `[B,T,..output]`, and the weights `[B,H,T,S]` if they are wanted.
    pub fn attend(
        &self,
        [query, key, value]: [&Tensor; 3],
        masks: &Masks,
        of: Sizes<'_>,
        wants_scores: bool,
        cx: Context<'_>,
    ) -> Result<(Tensor, Option<Tensor>)> {
        let (batch, rows, keys) = (query.shape()[0], query.shape()[1], key.shape()[1]);
        let into_heads = |x: &Tensor, through: &Projection, heads: usize, size: usize| {
            let (length, features) = (x.shape()[1], x.shape()[2]);
            let y = through.apply(&flat(x)?, &[features], &[heads, size])?;
            y.reshape_to([batch, length, heads, size].into())?.transpose([0, 2, 1, 3])
        };
        let q = into_heads(query, &self.query, of.query_heads, of.key_dim)?;
        let k = into_heads(key, &self.key, of.key_heads, of.key_dim)?;
        let v = into_heads(value, &self.value, of.key_heads, of.value_dim)?;
        let causal = masks.causal || self.use_causal_mask;
        let mut mask = masks.of_heads(of.layer, [batch, of.query_heads, rows, keys])?;
        if let Some(window) = self.sliding_window {
            mask = both(mask, band(query, rows, keys, window)?)?;
        }
        let drops = cx.training() && self.dropout != 0.0;
        let (y, scores) = if drops || wants_scores {
            if causal {
                mask = both(mask, causal_mask(query, rows, keys)?)?;
            }
            let scale = 1.0 / (of.key_dim as f32).sqrt();
            let repeat = |x: &Tensor| repeated(x, of.query_heads / of.key_heads.max(1));
            let scores = q.multiply(scale)?.matmul(repeat(&k)?.transpose([0, 1, 3, 2])?)?;
            let weights = softmax(&scores, mask.as_ref())?;
            let rate = if drops { self.dropout } else { 0.0 };
            (attended(&weights, &repeat(&v)?, rate, &self.generator)?, Some(weights))
        } else {
            let options = AttentionOptions::new().mask(mask.clone()).is_causal(causal);
            (scaled_dot_product_attention(&q, &k, &v, options)?, None)
        };
        // A query with all keys masked, such as one in the padding, results in the mean of all values: Keras's softmax of equal
        // scores.
        let y = match &mask {
            None => y,
            Some(mask) => {
                let sees = mask.reduce_any(Axes::from(-1).keepdims(true))?;
                let all = v.reduce_mean(Axes::from(2).keepdims(true))?;
                where_(&sees, &y, &repeated(&all, of.query_heads / of.key_heads.max(1))?)?
            }
        };
        let wide = of.query_heads * of.value_dim;
        let mut y = y.transpose([0, 2, 1, 3])?.reshape_to([batch * rows, wide].into())?;
        if self.use_gate {
            let features = query.shape()[2];
            let gate =
                self.gate.apply(&flat(query)?, &[features], &[of.query_heads, of.value_dim])?;
            y = y.multiply(gate.sigmoid()?)?;
        }
        let y = self.output.apply(&y, &[of.query_heads, of.value_dim], of.output)?;
        let y = y.reshape_to([&[batch, rows], of.output].concat().into())?;
        Ok((y, scores.filter(|_| wants_scores)))
    }

    #[cfg(feature = "json")]
    pub fn write(&self, config: &mut Config) -> Result<()> {
        config.set("dropout", &self.dropout)?;
        config.set("use_bias", &self.query.use_bias)?;
        config.set("use_gate", &self.use_gate)?;
        config.set("sliding_window", &self.sliding_window)?;
        // A call argument in Keras, but an option here: written only if it is set.
        if self.use_causal_mask {
            config.set("use_causal_mask", &true)?;
        }
        config.set("activity_regularizer", &self.activity_regularizer)?;
        let Projection { kernel, bias, .. } = &self.query;
        config.set("kernel_initializer", &kernel.initializer)?;
        config.set("kernel_regularizer", &kernel.regularizer)?;
        config.set("kernel_constraint", &kernel.constraint)?;
        config.set("bias_initializer", &bias.initializer)?;
        config.set("bias_regularizer", &bias.regularizer)?;
        config.set("bias_constraint", &bias.constraint)?;
        config.set("seed", &self.generator.seed())?;
        config.set("dtype", &self.policy)
    }

    /// The options that [`Heads::write`] writes; `own` are those of the layer.
    #[cfg(feature = "json")]
    pub fn read(config: &Config, own: &[&str]) -> Result<Self> {
        let mut known = Config::new(config.class());
        Heads::new().write(&mut known)?;
        let known: Vec<&str> =
            known.options().keys().map(String::as_str).chain(own.iter().copied()).collect();
        // Keras's choice of an implementation does not change the results.
        let known = [&known[..], &["flash_attention", "use_causal_mask"]].concat();
        config.only(&known, &[])?;
        let mut heads = Heads::new();
        let flag = |key: &str, default| config.get::<bool>(key).map(|flag| flag.unwrap_or(default));
        heads.dropout = config.get("dropout")?.unwrap_or(0.0);
        heads.use_gate = flag("use_gate", false)?;
        heads.sliding_window = config.get::<Option<usize>>("sliding_window")?.flatten();
        heads.use_causal_mask = flag("use_causal_mask", false)?;
        heads.activity_regularizer =
            config.get::<Option<Regularizer>>("activity_regularizer")?.flatten();
        if let Some(Some(seed)) = config.get::<Option<u64>>("seed")? {
            heads.generator = SeedGenerator::new(seed);
        }
        if let Some(policy) = config.get::<DTypePolicy>("dtype")? {
            heads = heads.dtype(policy);
        }
        heads = heads.use_bias(flag("use_bias", true)?);
        if let Some(Some(start)) = config.get::<Option<Initializer>>("kernel_initializer")? {
            heads = heads.kernels(|kernel| kernel.initializer(start.clone()));
        }
        if let Some(Some(start)) = config.get::<Option<Initializer>>("bias_initializer")? {
            heads = heads.biases(|bias| bias.initializer(start.clone()));
        }
        let penalty = |key: &str| config.get::<Option<Regularizer>>(key).map(Option::flatten);
        let (of_kernel, of_bias) = (penalty("kernel_regularizer")?, penalty("bias_regularizer")?);
        heads = heads.kernels(|kernel| kernel.regularizer(of_kernel.clone()));
        heads = heads.biases(|bias| bias.regularizer(of_bias.clone()));
        let rule = |key: &str| config.get::<Option<Constraint>>(key).map(Option::flatten);
        let (of_kernel, of_bias) = (rule("kernel_constraint")?, rule("bias_constraint")?);
        heads = heads.kernels(|kernel| kernel.constraint(of_kernel.clone()));
        Ok(heads.biases(|bias| bias.constraint(of_bias.clone())))
    }
}

impl Trackable for Heads {
    fn track(&self, parts: &mut Parts<'_>) {
        parts.add("query", &self.query);
        parts.add("key", &self.key);
        if self.use_gate {
            parts.add("gate", &self.gate);
        }
        parts.add("value", &self.value);
        parts.add("attention_output", &self.output);
        self.generator.track("seed_generator", parts);
    }
}

/// `[B,T,D]` as rows.
fn flat(x: &Tensor) -> Result<Tensor> {
    let &[batch, length, features] = x.shape() else { return Ok(x.clone()) };
    x.reshape_to([batch * length, features].into())
}

/// `[B,G,S,D]` with each head `times` times in a row.
fn repeated(x: &Tensor, times: usize) -> Result<Tensor> {
    let &[batch, heads, length, size] = x.shape() else { return Ok(x.clone()) };
    if times == 1 {
        return Ok(x.clone());
    }
    let wide = x.expand_dims(2)?.broadcast_to([batch, heads, times, length, size])?;
    wide.reshape_to([batch, heads * times, length, size].into())
}

/// The masks of a call.
#[derive(Default)]
pub(super) struct Masks {
    pub attention: Option<Tensor>,
    pub keys: Option<Tensor>,
    pub causal: bool,
}

impl Masks {
    /// Combines them to one mask that broadcasts to the scores `[B,H,T,S]`.
    fn of_heads(&self, layer: &str, scores: [usize; 4]) -> Result<Option<Tensor>> {
        let [batch, _, _, keys] = scores;
        let attention = self.attention.as_ref().map(|mask| {
            expect_bool(layer, "attention mask", mask)?;
            let wide = match mask.rank() {
                2 => mask.reshape_to([&[1, 1], mask.shape()].concat().into())?,
                3 => mask.expand_dims(1)?,
                _ => mask.clone(),
            };
            let fits = wide.rank() == 4
                && wide.shape().iter().zip(scores).all(|(&own, size)| own == size || own == 1);
            match fits {
                true => Ok(wide),
                false => Err(Error::Shape(message!(
                    "{layer}: the attention mask is {:?} and the scores {scores:?}; it must be [B, T, S], [T, S] or [B, H, T, \
                     S], or 1 along these axes.",
                    mask.shape()
                ))),
            }
        });
        let by_key = self.keys.as_ref().map(|mask| {
            expect_bool(layer, "mask", mask)?;
            match mask.shape() == [batch, keys] {
                true => mask.reshape_to([batch, 1, 1, keys].into()),
                false => Err(Error::Shape(message!(
                    "{layer}: the mask is {:?} and there are [{batch}, {keys}] keys; it must have an element for each.",
                    mask.shape()
                ))),
            }
        });
        match (attention.transpose()?, by_key.transpose()?) {
            (Some(a), Some(b)) => a.logical_and(b).map(Some),
            (a, b) => Ok(a.or(b)),
        }
    }
}

/// An attention mask `[T,S]` with a batch axis, so that it can be combined with a mask of the queries.
pub(super) fn wide(mask: Option<Tensor>) -> Result<Option<Tensor>> {
    match mask {
        Some(mask) if mask.rank() == 2 => mask.expand_dims(0).map(Some),
        mask => Ok(mask),
    }
}

/// The conjunction of both masks, if there are two.
fn both(mask: Option<Tensor>, other: Tensor) -> Result<Option<Tensor>> {
    mask.map_or_else(|| Ok(other.clone()), |mask| mask.logical_and(&other)).map(Some)
}

/// Which keys are within the window around each query, `[T,S]`.
fn band(x: &Tensor, rows: usize, keys: usize, window: usize) -> Result<Tensor> {
    let [row, key] = places(x, rows, keys)?;
    row.subtract(key)?.abs()?.less(window.min(i32::MAX as usize) as i32)
}
