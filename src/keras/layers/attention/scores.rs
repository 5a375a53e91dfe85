//! From scores to results: the masked softmax, dropout, and the weighted sum of the values.

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::layers::{Layer, SeedGenerator};
use crate::keras::{Context, DTypePolicy};
use crate::ops::where_;
use crate::tensor::{Tensor, range};

/// The softmax of the scores where `mask` is true; zeros if it is true nowhere.
pub(super) fn softmax(scores: &Tensor, mask: Option<&Tensor>) -> Result<Tensor> {
    mask.map_or_else(|| scores.softmax(-1), |mask| scores.masked_softmax(mask, -1))
}

/// `weights value`, after dropout of the weights.
pub(super) fn attended(
    weights: &Tensor,
    value: &Tensor,
    rate: f32,
    generator: &SeedGenerator,
) -> Result<Tensor> {
    match rate {
        0.0 => weights.matmul(value),
        rate => weights.dropout(rate, generator.get())?.matmul(value),
    }
}

/// Which keys are not after each query, `[T,S]`.
pub(super) fn causal_mask(x: &Tensor, rows: usize, keys: usize) -> Result<Tensor> {
    let [row, key] = places(x, rows, keys)?;
    row.greater_equal(key)
}

/// The positions of the queries `[T,1]` and of the keys `[S]`.
pub(super) fn places(x: &Tensor, rows: usize, keys: usize) -> Result<[Tensor; 2]> {
    x.device().scope(|| {
        let count = |n: usize| range(0, n.min(i32::MAX as usize) as i32, 1);
        Ok([count(rows)?.expand_dims(1)?, count(keys)?])
    })
}

/// Refuses a mask that is not `bool`.
pub(super) fn expect_bool(layer: &str, what: &str, mask: &Tensor) -> Result<()> {
    match mask.dtype() {
        DType::Bool => Ok(()),
        dtype => Err(Error::DType(message!(
            "{layer}: the {what} is {dtype}; it must be bool. Use not_equal(0)."
        ))),
    }
}

/// Query, value and key; the key defaults to the value.
pub(super) fn three_of<'a>(layer: &str, inputs: &'a [Tensor]) -> Result<[&'a Tensor; 3]> {
    match inputs {
        [query, value] => Ok([query, value, value]),
        [query, value, key] => Ok([query, value, key]),
        _ => Err(Error::Shape(message!(
            "{layer}: it was called on {} tensors; it takes [query, value] or [query, value, key].",
            inputs.len()
        ))),
    }
}

/// The mask, if it has the shape of a mask of the query.
pub(super) fn of_query(query: &Tensor, mask: Option<&Tensor>) -> Option<Tensor> {
    let rank = query.rank();
    mask.filter(|mask| rank > 1 && mask.shape() == &query.shape()[..rank - 1]).cloned()
}

/// The mask of the query.
pub(super) fn mask_of_query(
    layer: &str,
    inputs: &[Tensor],
    cx: Context<'_>,
) -> Result<Option<Tensor>> {
    let [query, ..] = three_of(layer, inputs)?;
    match cx.masks() {
        [] => Ok(of_query(query, cx.mask())),
        [mask, ..] => Ok(mask.clone()),
    }
}

/// Where both masks are true.
pub(super) fn all_of(a: Option<Tensor>, b: Option<Tensor>) -> Result<Option<Tensor>> {
    match (a, b) {
        (Some(a), Some(b)) => a.logical_and(b).map(Some),
        (a, b) => Ok(a.or(b)),
    }
}

/// The arguments of [`AttentionLayer::attend`], besides query, value and key.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct AttendCall {
    /// Which keys each query attends to, `bool`.
    pub attention_mask: Option<Tensor>,
    /// Whether query `t` attends only to the keys 0 to `t`.
    pub causal: bool,
    /// Whether to return the attention scores.
    pub scores: bool,
}

/// An attention layer of any class: a layer of query and value, or of query, value and key. The context's masks
/// ([`Context::with_masks`]) are those of its inputs.
pub trait AttentionLayer: Layer<[Tensor]> {
    /// Returns the result, and the attention scores if the call requests them.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes are not compatible; [`Error::DType`] if the dtypes differ or are not float, or a mask is
    /// not `bool`.
    fn attend(
        &self,
        inputs: &[Tensor],
        call: AttendCall,
        cx: Context<'_>,
    ) -> Result<(Tensor, Option<Tensor>)>;

    #[cfg(feature = "json")]
    #[doc(hidden)]
    fn into_layer(self: Box<Self>) -> Option<Box<dyn Layer>> {
        None
    }
}

/// Implements attention as a layer of query and value, or of query, value and key. The context's mask is that of the value, and
/// also of the query if both are the same tensor.
macro_rules! list_layer {
    ($layer:ident) => {
        impl Layer<[Tensor]> for $layer {
            $crate::keras::layers::macros::configured!();

            fn call(&self, inputs: &[Tensor], cx: Context<'_>) -> Result<Tensor> {
                self.attend(inputs, AttendCall::default(), cx).map(|(y, _)| y)
            }

            fn call_with_mask(
                &self,
                inputs: &[Tensor],
                cx: Context<'_>,
            ) -> Result<(Tensor, Option<Tensor>)> {
                let y = Layer::<[Tensor]>::call(self, inputs, cx)?;
                Ok((y, mask_of_query(stringify!($layer), inputs, cx)?))
            }

            /// The mask, if it has the shape of a mask of the query.
            fn compute_mask(
                &self,
                inputs: &[Tensor],
                mask: Option<&Tensor>,
            ) -> Result<Option<Tensor>> {
                let [query, ..] = three_of(stringify!($layer), inputs)?;
                Ok(of_query(query, mask))
            }
        }
    };
}
pub(super) use list_layer;

/// Implements the layers without heads as layers of a list, by their method `scored`.
macro_rules! score_layer {
    ($layer:ident) => {
        $crate::keras::layers::attention::scores::list_layer!($layer);

        impl AttentionLayer for $layer {
            fn attend(
                &self,
                inputs: &[Tensor],
                call: AttendCall,
                cx: Context<'_>,
            ) -> Result<(Tensor, Option<Tensor>)> {
                let masks = match cx.masks() {
                    [] => [None, cx.mask()],
                    masks => [0, 1].map(|at| masks.get(at).and_then(Option::as_ref)),
                };
                let causal = call.causal || self.use_causal_mask;
                let (y, scores) = self.scored(inputs, masks, causal, cx)?;
                Ok((y, call.scores.then_some(scores)))
            }
        }
    };
}
pub(super) use score_layer;

/// The inputs of attention without heads.
pub(super) struct Scored {
    layer: &'static str,
    pub query: Tensor,
    value: Tensor,
    pub key: Tensor,
}

impl Scored {
    pub fn new(layer: &'static str, inputs: &[Tensor], policy: &DTypePolicy) -> Result<Self> {
        let [query, value, key] = three_of(layer, inputs)?;
        let fits = match [query.shape(), value.shape(), key.shape()] {
            [&[b, _, d], &[of_value, s, _], &[of_key, keys, own]] => {
                [of_value, of_key] == [b; 2] && s == keys && d == own
            }
            _ => false,
        };
        if !fits {
            return Err(Error::Shape(message!(
                "{layer}: query is {:?}, value {:?} and key {:?}; they must be [B, T, D], [B, S, E] and [B, S, D].",
                query.shape(),
                value.shape(),
                key.shape()
            )));
        }
        let cast = |x: &Tensor| policy.autocast(x);
        Ok(Scored { layer, query: cast(query)?, value: cast(value)?, key: cast(key)? })
    }

    /// The result, and the weights `[B,T,S]`.
    pub fn result(
        &self,
        scores: &Tensor,
        [of_query, of_value]: [Option<&Tensor>; 2],
        causal: bool,
        rate: f32,
        generator: &SeedGenerator,
    ) -> Result<(Tensor, Tensor)> {
        let &[batch, rows, keys] = scores.shape() else {
            return Err(Error::Shape(message!(
                "{}: the scores are {:?}.",
                self.layer,
                scores.shape()
            )));
        };
        let checked = |what: &str, mask: &Tensor, count: usize| {
            expect_bool(self.layer, what, mask)?;
            match mask.shape() == [batch, count] {
                true => Ok(()),
                false => Err(Error::Shape(message!(
                    "{}: the {what} is {:?}; it must be [{batch}, {count}].",
                    self.layer,
                    mask.shape()
                ))),
            }
        };
        let mut mask = None;
        if let Some(own) = of_value {
            checked("value's mask", own, keys)?;
            mask = Some(own.expand_dims(1)?);
        }
        if causal {
            let order = causal_mask(scores, rows, keys)?;
            mask = Some(mask.map_or_else(|| Ok(order.clone()), |mask| mask.logical_and(&order))?);
        }
        let weights = softmax(scores, mask.as_ref())?;
        let mut y = attended(&weights, &self.value, rate, generator)?;
        if let Some(own) = of_query {
            checked("query's mask", own, rows)?;
            y = where_(&own.expand_dims(-1)?, &y, &y.zeros_like()?)?;
        }
        Ok((y, weights))
    }
}
