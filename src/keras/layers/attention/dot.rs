//! [`Attention`].

use super::scores::{
    AttendCall, AttentionLayer, Scored, mask_of_query, of_query, score_layer, three_of,
};
use crate::error::Result;
#[cfg(feature = "json")]
use crate::keras::ConfigValue;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::layer;
use crate::keras::{Context, Weight};
use crate::tensor::Tensor;

/// How [`Attention`] computes the score of a query and a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ScoreMode {
    /// Dot product, `scale q k^T`.
    #[default]
    Dot,
    /// Sum of the concatenation, `weight sum(tanh(scale (q + k)))`.
    Concat,
}

crate::trackable::plain!(ScoreMode);

impl ScoreMode {
    fn is_concat(self) -> bool {
        self == ScoreMode::Concat
    }
}

#[cfg(feature = "json")]
impl ConfigValue for ScoreMode {
    fn to_json(&self) -> std::result::Result<serde_json::Value, String> {
        Ok(serde_json::json!(if self.is_concat() { "concat" } else { "dot" }))
    }

    fn from_json(value: &serde_json::Value) -> std::result::Result<Self, String> {
        match value.as_str() {
            Some("dot") => Ok(ScoreMode::Dot),
            Some("concat") => Ok(ScoreMode::Concat),
            _ => Err("\"dot\" or \"concat\"".into()),
        }
    }
}

layer! {
    /// Dot-product attention (Luong et al. 2015): `y = softmax(q k^T) v`; query `[B,T,D]`, value `[B,S,E]`, key
    /// `[B,S,D]`, result `[B,T,E]`.
    ///
    /// Call it on a list, `[query, value]` or `[query, value, key]`. The mask of the context is the value's mask.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::Attention};
    /// let query = tf::constant([[[1.0, 0.0]]])?;
    /// let value = tf::constant([[[9.0, 0.0], [0.0, 9.0]]])?;
    /// let y = Attention::new().call(&[query, value][..], INFERENCE)?.to_vec::<f32>()?;
    /// assert!((y[0] - 9.0).abs() < 0.01 && y[1] < 0.01);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Attention {
        /// Creates a dot-product attention layer without a scale.
        new();
        options {
            /// Sets whether the layer has a scale, a trainable scalar. Default: `false`.
            use_scale: bool = false,
            /// Sets how the score of a query and a key is computed. Default: `ScoreMode::Dot`.
            score_mode: ScoreMode = ScoreMode::Dot,
            /// Sets the dropout rate of the attention weights. Default: 0.
            dropout: f32 = 0.0,
        }
        weights {
            scale if use_scale = Weight::ones(),
            concat_score_weight if score_mode.is_concat() = Weight::ones(),
        }
        random(seed_generator);
        arguments {
            /// Sets whether query `t` attends only to the keys 0 to `t`, in all calls. Default: `false`. In Keras this
            /// is an argument of the call, and saved models store it there.
            use_causal_mask: bool = false,
        }
        class {
            call(CallForm::Attention);
        }
    }
}

impl Attention {
    /// Returns the result and the attention weights `[B,T,S]`. `masks` are the mask of the query (masked queries get a
    /// result of 0) and the mask of the value.
    ///
    /// # Errors
    /// Same as [`Layer::call`].
    pub fn call_with_scores(
        &self,
        inputs: &[Tensor],
        masks: [Option<&Tensor>; 2],
        cx: Context<'_>,
    ) -> Result<(Tensor, Tensor)> {
        self.scored(inputs, masks, self.use_causal_mask, cx)
    }

    fn scored(
        &self,
        inputs: &[Tensor],
        masks: [Option<&Tensor>; 2],
        causal: bool,
        cx: Context<'_>,
    ) -> Result<(Tensor, Tensor)> {
        let of = Scored::new("Attention", inputs, &self.policy)?;
        let scaled = |x: Tensor| match self.use_scale {
            true => x.multiply(self.scale.get(&of.query, [])?),
            false => Ok(x),
        };
        let scores = match self.score_mode {
            ScoreMode::Dot => scaled(of.query.matmul(of.key.transpose([0, 2, 1])?)?)?,
            ScoreMode::Concat => {
                let sums = scaled(of.query.expand_dims(2)?.add(of.key.expand_dims(1)?)?)?;
                let weight = self.concat_score_weight.get(&of.query, [])?;
                sums.tanh()?.reduce_sum(-1)?.multiply(weight)?
            }
        };
        let rate = if cx.training() { self.dropout } else { 0.0 };
        of.result(&scores, masks, causal, rate, &self.seed_generator)
    }
}

score_layer!(Attention);
