//! [`AdditiveAttention`].

use super::scores::{
    AttendCall, AttentionLayer, Scored, mask_of_query, of_query, score_layer, three_of,
};
use crate::error::Result;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::layer;
use crate::keras::{Context, Weight};
use crate::tensor::Tensor;

layer! {
    /// Additive attention (Bahdanau et al. 2015): `y = softmax(sum(scale tanh(q + k))) v`; query `[B,T,D]`, value
    /// `[B,S,E]`, key `[B,S,D]`, result `[B,T,E]`, scale `[D]`.
    ///
    /// Call it on a list, `[query, value]` or `[query, value, key]`. The mask of the context is the value's mask.
    pub struct AdditiveAttention {
        /// Creates a layer with a scale.
        new();
        options {
            /// Sets whether the layer has a trainable scale. Default: `true`.
            use_scale: bool = true,
            /// Sets the dropout rate of the attention weights. Default: 0.
            dropout: f32 = 0.0,
        }
        weights {
            scale if use_scale = Weight::new(),
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

impl AdditiveAttention {
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
        let of = Scored::new("AdditiveAttention", inputs, &self.policy)?;
        let features = of.query.shape()[2];
        let sums = of.query.expand_dims(2)?.add(of.key.expand_dims(1)?)?.tanh()?;
        let scores = match self.use_scale {
            true => sums.multiply(self.scale.get(&of.query, [features])?)?.reduce_sum(-1)?,
            false => sums.reduce_sum(-1)?,
        };
        let rate = if cx.training() { self.dropout } else { 0.0 };
        of.result(&scores, masks, causal, rate, &self.seed_generator)
    }
}

score_layer!(AdditiveAttention);
