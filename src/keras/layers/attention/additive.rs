//! [`AdditiveAttention`].

use super::scores::{Scored, of_query, three_of};
use crate::error::Result;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::keras::{Context, Weight};
use crate::tensor::Tensor;

layer! {
    /// Attention by sums (Bahdanau et al. 2015): `y = softmax(sum(scale tanh(q + k))) v`; query `[B,T,D]`, value `[B,S,E]`,
    /// key `[B,S,D]`, result `[B,T,E]`, scale `[D]`.
    ///
    /// It is called on a list, `[query, value]` or `[query, value, key]`; the context's mask is that of the value.
    pub struct AdditiveAttention {
        /// A layer with a scale.
        new();
        options {
            /// Sets whether the layer has a scale; `true`.
            use_scale: bool = true,
            /// Sets the probability with which training drops a weight of a key; 0.
            dropout: f32 = 0.0,
            /// Sets whether query `t` sees the keys 0 to `t` alone; `false`.
            use_causal_mask: bool = false,
        }
        weights {
            scale if use_scale = Weight::new(),
        }
        random(seed_generator);
    }
}

impl AdditiveAttention {
    /// The result, and the weights of the keys `[B,T,S]`; `masks` are those of the query, whose other results are 0, and of
    /// the value.
    ///
    /// # Errors
    /// As [`Layer::call`].
    pub fn call_with_scores(
        &self,
        inputs: &[Tensor],
        masks: [Option<&Tensor>; 2],
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
        of.result(&scores, masks, self.use_causal_mask, rate, &self.seed_generator)
    }
}

impl Layer<[Tensor]> for AdditiveAttention {
    configured!();

    fn call(&self, inputs: &[Tensor], cx: Context<'_>) -> Result<Tensor> {
        self.call_with_scores(inputs, [None, cx.mask()], cx).map(|(y, _)| y)
    }

    fn compute_mask(&self, inputs: &[Tensor], mask: Option<&Tensor>) -> Result<Option<Tensor>> {
        let [query, ..] = three_of("AdditiveAttention", inputs)?;
        Ok(of_query(query, mask))
    }
}
