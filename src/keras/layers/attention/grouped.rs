//! [`GroupQueryAttention`].

use super::heads::{AttendOptions, Heads, Masks, Sizes, wide};
use super::macros::{head_layer, head_setters};
use super::scores::{AttendCall, AttentionLayer, all_of, mask_of_query, of_query, three_of};
use crate::error::{Error, Result, message};
#[cfg(feature = "json")]
use crate::keras::Config;
#[cfg(feature = "json")]
use crate::keras::layers::Configured;
use crate::keras::{Context, Layer};
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable};

/// Grouped-query attention: several query heads share one head of keys and values (Ainslie et al. 2023). Otherwise the
/// same as [`MultiHeadAttention`](super::MultiHeadAttention).
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{INFERENCE, Layer, layers::GroupQueryAttention};
/// let layer = GroupQueryAttention::new(16, 8, 2);
/// let x = tf::random::normal([2, 10, 32])?;
/// assert_eq!(layer.call(&x, INFERENCE)?.shape(), [2, 10, 32]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct GroupQueryAttention {
    head_dim: usize,
    num_query_heads: usize,
    num_key_value_heads: usize,
    heads: Heads,
}

impl GroupQueryAttention {
    /// Creates a layer with `num_query_heads` heads of size `head_dim`, which share `num_key_value_heads` key and value
    /// heads.
    pub fn new(head_dim: usize, num_query_heads: usize, num_key_value_heads: usize) -> Self {
        GroupQueryAttention { head_dim, num_query_heads, num_key_value_heads, heads: Heads::new() }
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
        const LAYER: &str = "GroupQueryAttention";
        let key = options.key.as_ref().unwrap_or(value);
        let (own, shared) = (self.num_query_heads, self.num_key_value_heads);
        if own == 0 || shared == 0 || own % shared != 0 || self.head_dim == 0 {
            return Err(Error::Shape(message!(
                "{LAYER}: num_query_heads is {own}, num_key_value_heads {shared} and head_dim {}; each must be at least 1, and \
                 the first a multiple of the second.",
                self.head_dim
            )));
        }
        let fits =
            [query, value, key].iter().all(|x| x.rank() == 3 && x.shape()[0] == query.shape()[0])
                && key.shape()[1] == value.shape()[1];
        if !fits {
            return Err(Error::Shape(message!(
                "{LAYER}: query is {:?}, value {:?} and key {:?}; they must be [B, T, D], [B, S, E] and [B, S, F].",
                query.shape(),
                value.shape(),
                key.shape()
            )));
        }
        let cast = |x: &Tensor| self.heads.policy.autocast(x);
        let (q, k, v) = (cast(query)?, cast(key)?, cast(value)?);
        let masks = Masks {
            attention: options.attention_mask,
            keys: options.key_mask,
            causal: options.use_causal_mask,
        };
        let sizes = Sizes {
            layer: LAYER,
            output: &[query.shape()[2]],
            query_heads: own,
            key_heads: shared,
            key_dim: self.head_dim,
            value_dim: self.head_dim,
        };
        let result = self.heads.attend([&q, &k, &v], &masks, sizes, wants_scores, cx)?;
        cx.regularize(self.heads.activity_regularizer.as_ref(), &result.0)?;
        Ok(result)
    }
}

head_layer!(
    GroupQueryAttention,
    "GroupedQueryAttention",
    Class::new("GroupedQueryAttention").attributes(&[
        PartNames::new("query").checkpoint("_query_dense").keras("_query_dense"),
        PartNames::new("key").checkpoint("_key_dense").keras("_key_dense"),
        PartNames::new("value").checkpoint("_value_dense").keras("_value_dense"),
        PartNames::new("attention_output").checkpoint("_output_dense").keras("_output_dense"),
        PartNames::new("gate").keras("_gate_dense"),
    ])
);

#[cfg(feature = "json")]
impl Configured for GroupQueryAttention {
    fn class_name() -> &'static str {
        "GroupQueryAttention"
    }

    fn config(&self) -> Result<Config> {
        let mut config = Config::new(Self::class_name());
        config.set("head_dim", &self.head_dim)?;
        config.set("num_query_heads", &self.num_query_heads)?;
        config.set("num_key_value_heads", &self.num_key_value_heads)?;
        self.heads.write(&mut config)?;
        Ok(config)
    }

    fn from_config(config: &Config) -> Result<Self> {
        let own = ["head_dim", "num_query_heads", "num_key_value_heads"];
        let heads = Heads::read(config, &own)?;
        Ok(GroupQueryAttention {
            head_dim: config.need("head_dim")?,
            num_query_heads: config.need("num_query_heads")?,
            num_key_value_heads: config.need("num_key_value_heads")?,
            heads,
        })
    }
}
