//! [`MultiHeadAttention`].

use super::heads::{AttendOptions, Heads, Masks, Sizes, wide};
use super::macros::{head_layer, head_setters};
use super::scores::{AttendCall, AttentionLayer, all_of, mask_of_query, of_query, three_of};
use crate::error::{Error, Result, message};
#[cfg(feature = "json")]
use crate::keras::Config;
#[cfg(feature = "json")]
use crate::keras::layers::Configured;
use crate::keras::{Context, Layer};
use crate::shape::{Axes, axis_list};
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable};

/// Multi-head attention (Vaswani et al. 2017): `y = softmax(q k^T / sqrt(K)) v`, projected; query `[B,T,D]`, value
/// `[B,S,E]`, key `[B,S,F]`, result `[B,T,D]`. Each of the H heads has its own projections: kernels `[D,H,K]` for the
/// query, `[F,H,K]` for the key, `[E,H,V]` for the value, and `[H,V,D]` for the result.
///
/// A call on one tensor is self-attention; a call on a list takes `[query, value]` or `[query, value, key]`. Pass masks
/// as options of [`MultiHeadAttention::call_with`]; [`MultiHeadAttention::call_with_scores`] also returns the attention
/// weights. A query without any valid key, such as one in the padding, gets the mean of all values.
///
/// Inputs with more axes, `[B,..,D]`, attend over all axes between the first and the last, or over `attention_axes`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{INFERENCE, Layer, layers::{AttendOptions, MultiHeadAttention}};
/// let layer = MultiHeadAttention::new(4, 8).use_causal_mask(true);
/// let x = tf::random::normal([2, 10, 32])?;
/// assert_eq!(layer.call(&x, INFERENCE)?.shape(), [2, 10, 32]);
/// let (_, scores) = layer.call_with_scores(&x, &x, AttendOptions::new(), INFERENCE)?;
/// assert_eq!(scores.shape(), [2, 4, 10, 10]);
/// assert_eq!(scores.slice(&[0, 0, 0, 1], &[2, 4, 1, 9])?.to_vec::<f32>()?, [0.0; 72]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MultiHeadAttention {
    num_heads: usize,
    key_dim: usize,
    value_dim: Option<usize>,
    output_shape: Option<Vec<usize>>,
    attention_axes: Option<Axes>,
    heads: Heads,
}

impl MultiHeadAttention {
    /// Creates a layer with `num_heads` heads, whose queries and keys have size `key_dim`.
    pub fn new(num_heads: usize, key_dim: usize) -> Self {
        MultiHeadAttention {
            num_heads,
            key_dim,
            value_dim: None,
            output_shape: None,
            attention_axes: None,
            heads: Heads::new(),
        }
    }

    /// Sets the size of each head's values. Default: `key_dim`.
    #[must_use]
    pub fn value_dim(mut self, value_dim: impl Into<Option<usize>>) -> Self {
        self.value_dim = value_dim.into();
        self
    }

    /// Sets the last axes of the result. Default: the last axis of the query.
    #[must_use]
    pub fn output_shape(mut self, output_shape: impl Into<Option<Vec<usize>>>) -> Self {
        self.output_shape = output_shape.into();
        self
    }

    /// Sets the axes of the inputs over which attention is applied. Default: all but the first and the last.
    #[must_use]
    pub fn attention_axes(mut self, attention_axes: impl Into<Axes>) -> Self {
        self.attention_axes = Some(attention_axes.into());
        self
    }

    head_setters!();

    fn run(
        &self,
        query: &Tensor,
        value: &Tensor,
        options: AttendOptions,
        wants_scores: bool,
        cx: Context<'_>,
    ) -> Result<(Tensor, Option<Tensor>)> {
        const LAYER: &str = "MultiHeadAttention";
        let key = options.key.as_ref().unwrap_or(value);
        let rank = query.rank();
        let between =
            |x: &Tensor| x.shape().get(1..x.rank().saturating_sub(1)).map(<[usize]>::to_vec);
        if rank < 3
            || [key, value].iter().any(|x| x.rank() != rank || x.shape()[0] != query.shape()[0])
            || between(key) != between(value)
        {
            return Err(Error::Shape(message!(
                "{LAYER}: query is {:?}, value {:?} and key {:?}; they must be [B, T, D], [B, S, E] and [B, S, F].",
                query.shape(),
                value.shape(),
                key.shape()
            )));
        }
        let value_dim = self.value_dim.unwrap_or(self.key_dim);
        if [self.num_heads, self.key_dim, value_dim].contains(&0) {
            return Err(Error::Shape(message!(
                "{LAYER}: num_heads is {}, key_dim {} and value_dim {value_dim}; each must be at least 1.",
                self.num_heads,
                self.key_dim
            )));
        }
        let order = self.order(rank)?;
        let [q, k, v] = [query, key, value].map(|x| order.flat(&self.heads.policy.autocast(x)?));
        let (q, k, v) = (q?, k?, v?);
        if k.shape()[..2] != v.shape()[..2] || q.shape()[0] != k.shape()[0] {
            return Err(Error::Shape(message!(
                "{LAYER}: query is {:?}, value {:?} and key {:?}; the axes along which they do not attend must agree.",
                query.shape(),
                value.shape(),
                key.shape()
            )));
        }
        let count = |x: &Tensor| order.along.iter().map(|&axis| x.shape()[axis]).product::<usize>();
        let masks = Masks {
            attention: options
                .attention_mask
                .map(|mask| order.mask(mask, count(query), count(key)))
                .transpose()?,
            keys: options.key_mask.map(|mask| order.keys(&mask, rank)).transpose()?,
            causal: options.use_causal_mask,
        };
        let own = [query.shape()[rank - 1]];
        let output = self.output_shape.as_deref().unwrap_or(&own);
        let sizes = Sizes {
            layer: LAYER,
            output,
            query_heads: self.num_heads,
            key_heads: self.num_heads,
            key_dim: self.key_dim,
            value_dim,
        };
        let (y, scores) = self.heads.attend([&q, &k, &v], &masks, sizes, wants_scores, cx)?;
        let y = order.back(&y, query, output)?;
        cx.regularize(self.heads.activity_regularizer.as_ref(), &y)?;
        Ok((y, scores))
    }

    fn order(&self, rank: usize) -> Result<Order> {
        let along = match &self.attention_axes {
            Some(axes) => axis_list("MultiHeadAttention", axes, rank)?.to_vec(),
            None => (1..rank - 1).collect(),
        };
        if along.iter().any(|&axis| axis == 0 || axis == rank - 1) || along.is_empty() {
            return Err(Error::Index(message!(
                "MultiHeadAttention: attention_axes are {along:?} of {rank} axes; they must lie between the first and the last."
            )));
        }
        Ok(Order { batched: (0..rank - 1).filter(|axis| !along.contains(axis)).collect(), along })
    }
}

/// The axes of inputs along which queries attend, and the other axes except the last.
struct Order {
    batched: Vec<usize>,
    along: Vec<usize>,
}

impl Order {
    /// Whether the axes are already in the required order.
    fn straight(&self) -> bool {
        self.batched.iter().chain(&self.along).is_sorted()
    }

    fn sizes(&self, x: &Tensor) -> [usize; 2] {
        [&self.batched, &self.along].map(|axes| axes.iter().map(|&axis| x.shape()[axis]).product())
    }

    /// `[B,T,D]`.
    fn flat(&self, x: &Tensor) -> Result<Tensor> {
        let last = x.rank() - 1;
        let [batch, length] = self.sizes(x);
        let shape = [batch, length, x.shape()[last]];
        if self.straight() {
            return x.reshape_to(shape.into());
        }
        let order: Vec<usize> =
            self.batched.iter().chain(&self.along).copied().chain([last]).collect();
        x.transpose(&order[..])?.reshape_to(shape.into())
    }

    /// The result in the order of the query's axes.
    fn back(&self, y: &Tensor, query: &Tensor, output: &[usize]) -> Result<Tensor> {
        let order: Vec<usize> = self.batched.iter().chain(&self.along).copied().collect();
        let sizes: Vec<usize> = order.iter().map(|&axis| query.shape()[axis]).collect();
        let y = y.reshape_to([&sizes, output].concat().into())?;
        if self.straight() {
            return Ok(y);
        }
        let mut places = vec![0; order.len()];
        order.iter().enumerate().for_each(|(place, &axis)| places[axis] = place);
        places.extend(order.len()..order.len() + output.len());
        y.transpose(&places[..])
    }

    /// An attention mask for the flat inputs: `[B,..T,..S]` becomes `[B,T,S]`.
    fn mask(&self, mask: Tensor, rows: usize, keys: usize) -> Result<Tensor> {
        if self.along.len() == 1 && self.batched.len() == 1 {
            return Ok(mask);
        }
        let pairs = 2 * self.along.len();
        let fits = self.batched.len() == 1
            && [pairs, pairs + 1].contains(&mask.rank())
            && mask.shape()[mask.rank() - pairs..].iter().product::<usize>() == rows * keys;
        match fits {
            true => mask
                .reshape_to([&mask.shape()[..mask.rank() - pairs], &[rows, keys]].concat().into()),
            false => Err(Error::Shape(message!(
                "MultiHeadAttention: the attention mask is {:?}; for these inputs it must have the axes of the queries and of the \
                 keys, with the batch in front or not, and attention must go along all axes between the first and the last.",
                mask.shape()
            ))),
        }
    }

    /// A mask of keys for the flat inputs.
    fn keys(&self, mask: &Tensor, rank: usize) -> Result<Tensor> {
        if rank == 3 {
            return Ok(mask.clone());
        }
        if mask.rank() != rank - 1 {
            return Err(Error::Shape(message!(
                "MultiHeadAttention: the mask is {:?}; it must have all axes of the keys but the last.",
                mask.shape()
            )));
        }
        self.flat(&mask.expand_dims(-1)?)?.squeeze(-1)
    }
}

head_layer!(
    MultiHeadAttention,
    "MultiHeadAttention",
    Class::new("MultiHeadAttention")
        .attributes(&[
            PartNames::new("query").checkpoint("_query_dense").keras("query_dense").pytorch(""),
            PartNames::new("key").checkpoint("_key_dense").keras("key_dense").pytorch(""),
            PartNames::new("value").checkpoint("_value_dense").keras("value_dense").pytorch(""),
            PartNames::new("attention_output")
                .checkpoint("_output_dense")
                .keras("output_dense")
                .pytorch(""),
            PartNames::new("gate").keras("_gate_dense"),
        ])
        .pytorch(&[
            Torch::new("query/kernel", &["in_proj_weight"], Projected(0)),
            Torch::new("query/bias", &["in_proj_bias"], Projected(0)),
            Torch::new("key/kernel", &["in_proj_weight"], Projected(1)),
            Torch::new("key/bias", &["in_proj_bias"], Projected(1)),
            Torch::new("value/kernel", &["in_proj_weight"], Projected(2)),
            Torch::new("value/bias", &["in_proj_bias"], Projected(2)),
            Torch::new("attention_output/kernel", &["out_proj.weight"], Output),
            Torch::new("attention_output/bias", &["out_proj.bias"], Same),
        ])
);

#[cfg(feature = "json")]
impl Configured for MultiHeadAttention {
    fn class_name() -> &'static str {
        "MultiHeadAttention"
    }

    fn config(&self) -> Result<Config> {
        let mut config = Config::new(Self::class_name());
        config.set("num_heads", &self.num_heads)?;
        config.set("key_dim", &self.key_dim)?;
        config.set("value_dim", &self.value_dim)?;
        config.set("output_shape", &self.output_shape)?;
        config.set("attention_axes", &self.attention_axes)?;
        self.heads.write(&mut config)?;
        Ok(config)
    }

    fn from_config(config: &Config) -> Result<Self> {
        let own = ["num_heads", "key_dim", "value_dim", "output_shape", "attention_axes"];
        let heads = Heads::read(config, &own)?;
        Ok(MultiHeadAttention {
            num_heads: config.need("num_heads")?,
            key_dim: config.need("key_dim")?,
            value_dim: config.get::<Option<usize>>("value_dim")?.flatten(),
            output_shape: config.get::<Option<Vec<usize>>>("output_shape")?.flatten(),
            attention_axes: config.get::<Option<Axes>>("attention_axes")?.flatten(),
            heads,
        })
    }
}
