//! What the transformers are made of: heads, attention, and the layers of encoders.

use crate::error::{Error, Result, message};
use crate::keras::layers::{Dense, Dropout, LayerNormalization};
use crate::keras::{Activation, Context, Initializer, Layer};
use crate::ops::{AttentionOptions, scaled_dot_product_attention};
use crate::tensor::{Tensor, range};
use crate::trackable::Trackable;

/// The deviation of initial weights.
pub(super) const STDDEV: f32 = 0.02;

pub(super) fn kernels() -> Initializer {
    Initializer::TruncatedNormal { mean: 0.0, stddev: STDDEV }
}

pub(super) fn dense(units: usize) -> Dense {
    Dense::new(units).kernel_initializer(kernels())
}

/// Checks the sizes of a network: none may be 0, and the width must be a multiple of the heads.
pub(super) fn check(
    network: &str,
    sizes: &[(&str, usize)],
    width: usize,
    heads: usize,
) -> Result<()> {
    if let Some((name, _)) = sizes.iter().find(|(_, size)| *size == 0) {
        return Err(Error::Shape(message!("{network}: {name} is 0; it must be at least 1.")));
    }
    if heads == 0 || width == 0 || !width.is_multiple_of(heads) {
        return Err(Error::Shape(message!(
            "{network}: the width is {width} and there are {heads} heads; the width must be a multiple of the heads."
        )));
    }
    Ok(())
}

/// `[B,T,H D]` as `[B,H,T,D]`.
pub(super) fn into_heads(x: &Tensor, heads: usize) -> Result<Tensor> {
    let (batch, steps, width) = (x.shape()[0], x.shape()[1], x.shape()[2]);
    x.reshape_to([batch, steps, heads, width / heads].into())?.transpose([0, 2, 1, 3])
}

/// The reverse of [`into_heads`].
pub(super) fn from_heads(x: &Tensor) -> Result<Tensor> {
    let &[batch, heads, steps, size] = x.shape() else {
        return Err(Error::Shape(message!("attention: {:?} is not [B, H, T, D].", x.shape())));
    };
    x.transpose([0, 2, 1, 3])?.reshape_to([batch, steps, heads * size].into())
}

/// What the keys of an attention are masked by.
#[derive(Clone, Copy)]
pub(super) enum Visible<'a> {
    /// Every query sees all keys.
    All,
    /// A query sees the keys up to its own.
    Causal,
    /// Where this is true; broadcast to `[B,H,T,S]`.
    Where(&'a Tensor),
}

/// The attention of heads `[B,H,T,D]`, with dropout of weights in training. Keys may have fewer heads.
pub(super) fn attend(
    [q, k, v]: [&Tensor; 3],
    visible: Visible<'_>,
    (rate, dropout): (f32, &Dropout),
    cx: Context<'_>,
) -> Result<Tensor> {
    if !cx.training() || rate == 0.0 {
        let options = match visible {
            Visible::All => AttentionOptions::new(),
            Visible::Causal => AttentionOptions::new().is_causal(true),
            Visible::Where(mask) => AttentionOptions::new().mask(mask.clone()),
        };
        return scaled_dot_product_attention(q, k, v, options);
    }
    let repeats = q.shape()[1] / k.shape()[1].max(1);
    let repeated = |x: &Tensor| if repeats == 1 { Ok(x.clone()) } else { x.repeat(&[repeats], 1) };
    let (k, v) = (repeated(k)?, repeated(v)?);
    let scale = 1.0 / (q.shape()[3] as f32).sqrt();
    let scores = q.multiply(scale)?.matmul(&k.transpose([0, 1, 3, 2])?)?;
    let weights = match visible {
        Visible::All => scores.softmax(-1)?,
        Visible::Where(mask) => scores.masked_softmax(mask, -1)?,
        Visible::Causal => {
            let (queries, keys) = (q.shape()[2] as i32, k.shape()[2] as i32);
            let seen = range(0, queries, 1)?.expand_dims(-1)?;
            scores.masked_softmax(&range(0, keys, 1)?.less_equal(&seen)?, -1)?
        }
    };
    dropout.call(&weights, cx)?.matmul(&v)
}

/// Attention over a sequence itself, with a projection for the query, the key and the value.
#[derive(Debug, Trackable)]
pub(super) struct SelfAttention {
    query: Dense,
    key: Dense,
    value: Dense,
    out: Dense,
    #[track(skip)]
    heads: usize,
    #[track(skip)]
    rate: f32,
    dropout: Dropout,
}

impl SelfAttention {
    pub(super) fn new(width: usize, heads: usize, rate: f32) -> Self {
        let [query, key, value, out] = [(); 4].map(|()| dense(width));
        SelfAttention { query, key, value, out, heads, rate, dropout: Dropout::new(rate) }
    }

    pub(super) fn call(&self, x: &Tensor, visible: Visible<'_>, cx: Context<'_>) -> Result<Tensor> {
        let part = |layer: &Dense| into_heads(&layer.call(x, cx)?, self.heads);
        let (q, k, v) = (part(&self.query)?, part(&self.key)?, part(&self.value)?);
        let y = attend([&q, &k, &v], visible, (self.rate, &self.dropout), cx)?;
        self.out.call(&from_heads(&y)?, cx)
    }
}

/// The sizes of an encoder's layers.
#[derive(Clone, Copy)]
pub(super) struct Sizes {
    pub(super) width: usize,
    pub(super) heads: usize,
    pub(super) inner: usize,
    pub(super) dropout: f32,
    pub(super) epsilon: f32,
    /// Whether a part normalizes its input (ViT), not the sum with its result (BERT).
    pub(super) before: bool,
}

/// A layer of an encoder.
#[derive(Debug, Trackable)]
pub(super) struct EncoderLayer {
    attention: SelfAttention,
    norm1: LayerNormalization,
    inner: Dense,
    outer: Dense,
    norm2: LayerNormalization,
    dropout: Dropout,
    #[track(skip)]
    before: bool,
}

impl EncoderLayer {
    pub(super) fn new(sizes: Sizes) -> Self {
        let norm = || LayerNormalization::new().epsilon(sizes.epsilon);
        EncoderLayer {
            attention: SelfAttention::new(sizes.width, sizes.heads, sizes.dropout),
            norm1: norm(),
            inner: dense(sizes.inner).activation(Activation::Gelu),
            outer: dense(sizes.width),
            norm2: norm(),
            dropout: Dropout::new(sizes.dropout),
            before: sizes.before,
        }
    }

    pub(super) fn call(&self, x: &Tensor, visible: Visible<'_>, cx: Context<'_>) -> Result<Tensor> {
        let attention = |x: &Tensor| self.attention.call(x, visible, cx);
        let feed = |x: &Tensor| self.outer.call(&self.inner.call(x, cx)?, cx);
        let dropped = |y: Result<Tensor>| self.dropout.call(&y?, cx);
        if self.before {
            let x = x.add(dropped(attention(&self.norm1.call(x, cx)?))?)?;
            return x.add(dropped(feed(&self.norm2.call(&x, cx)?))?);
        }
        let x = self.norm1.call(&x.add(dropped(attention(x))?)?, cx)?;
        self.norm2.call(&x.add(dropped(feed(&x))?)?, cx)
    }
}
