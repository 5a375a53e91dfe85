//! Attention with masks, a cache and grouped heads, and rotary embeddings.
//!
//! Source: the specification of `Attention` (opset 23 to 25) and `RotaryEmbedding` (23).

use super::call::{Call, Results, Table, tensor, unsupported};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::ops::{concat, where_};
use crate::saved_model::graph_def::value::Value;
use crate::tensor::{Tensor, range};

pub(super) static OPS: Table = &[("Attention", attention), ("RotaryEmbedding", rotary_embedding)];

/// A positive number in an attribute.
fn count(c: &Call<'_>, name: &str) -> Result<usize> {
    usize::try_from(c.attr_int(name, 0)).ok().filter(|count| *count > 0).ok_or_else(|| {
        Error::Data(message!("its {name} is {}. The file is damaged.", c.attr_int(name, 0)))
    })
}

/// `[batch, sequence, heads * size]` as `[batch, heads, sequence, size]`.
fn with_heads(x: &Tensor, heads: usize) -> Result<Tensor> {
    let [batch, sequence, hidden] = x.shape() else {
        return Err(Error::Shape(message!("{:?} is not [batch, sequence, hidden].", x.shape())));
    };
    if hidden % heads != 0 {
        return Err(Error::Shape(message!("{hidden} features are not {heads} heads of one size.")));
    }
    x.reshape([*batch, *sequence, heads, hidden / heads])?.transpose([0, 2, 1, 3])
}

/// What may be attended to, and what is added to the scores; both broadcast to `[batch, heads, queries, keys]`.
#[derive(Default)]
struct Mask {
    allowed: Option<Tensor>,
    bias: Option<Tensor>,
}

impl Mask {
    fn allow(&mut self, allowed: Tensor) -> Result<()> {
        self.allowed = Some(match self.allowed.take() {
            Some(before) => before.logical_and(allowed)?,
            None => allowed,
        });
        Ok(())
    }

    /// Adds the model's own mask, of truth values or numbers, which may be shorter than the keys.
    fn add(&mut self, mask: &Tensor, keys: usize) -> Result<()> {
        let missing = keys.saturating_sub(mask.shape().last().copied().unwrap_or(keys));
        let mut pads = vec![(0, 0); mask.rank()];
        if let Some(last) = pads.last_mut() {
            last.1 = missing;
        }
        let padded = |x: Tensor| if missing == 0 { Ok(x) } else { x.pad(&pads) };
        if mask.dtype() == DType::Bool {
            return self.allow(padded(mask.cast(DType::F32)?)?.greater(0.5)?);
        }
        // Minus infinity forbids.
        let finite = mask.greater(-mask.dtype().largest())?;
        let bias = where_(&finite, mask, &mask.zeros_like()?)?;
        self.bias = Some(padded(bias)?);
        self.allow(padded(finite.cast(DType::F32)?)?.greater(0.5)?)
    }
}

fn attention(c: &Call<'_>) -> Result<Results> {
    let flat = c.tensor(0)?.rank() == 3;
    let parts = |at: usize, name: &str| -> Result<Tensor> {
        let x = c.tensor(at)?;
        if flat { with_heads(&x, count(c, name)?) } else { Ok(x) }
    };
    let (q, mut k) = (parts(0, "q_num_heads")?, parts(1, "kv_num_heads")?);
    let mut v = parts(2, "kv_num_heads")?;
    for x in [&q, &k, &v] {
        if x.rank() != 4 {
            return Err(Error::Shape(message!(
                "{:?} is not [batch, heads, sequence, size].",
                x.shape()
            )));
        }
    }
    let past = match (c.get(4), c.get(5)) {
        (Some(_), Some(_)) => {
            let (keys, values) = (c.tensor(4)?, c.tensor(5)?);
            let past = keys.shape().get(2).copied().unwrap_or(0);
            (k, v) = (concat([keys, k], 2)?, concat([values, v], 2)?);
            past
        }
        _ => 0,
    };
    let present = (k.clone(), v.clone());
    let (queries, keys, head) = (q.shape()[2], k.shape()[2], q.shape()[3]);
    let (heads, groups) = (q.shape()[1], k.shape()[1]);
    if heads != groups {
        if groups == 0 || heads % groups != 0 {
            return Err(Error::Shape(message!(
                "{heads} heads of queries do not share {groups} of keys."
            )));
        }
        (k, v) = (k.repeat(&[heads / groups], 1)?, v.repeat(&[heads / groups], 1)?);
    }

    let mut mask = Mask::default();
    if c.get(3).is_some() {
        mask.add(&c.tensor(3)?, keys)?;
    }
    let (left, right) = (c.attr_int("left_window_size", -1), c.attr_int("right_window_size", -1));
    let causal = c.attr_int("is_causal", 0) != 0;
    let lengths = match c.get(6) {
        Some(_) => Some(c.tensor(6)?.cast(DType::I32)?.reshape([-1, 1, 1, 1])?),
        None => None,
    };
    let number = |count: usize| {
        i64::try_from(count).map_err(|_| Error::Shape(message!("{count} positions are too many.")))
    };
    let j = range(0, number(keys)?, 1)?;
    if causal || left >= 0 || right >= 0 {
        // The position of a query among the keys: after those of the cache, or the last ones of each sequence.
        let i = range(0, number(queries)?, 1)?.reshape([-1, 1])?;
        let place = match &lengths {
            Some(lengths) if c.get(4).is_none() => i.add(lengths.subtract(number(queries)?)?)?,
            _ => i.add(number(past)?)?,
        };
        if causal {
            mask.allow(place.greater_equal(&j)?)?;
        }
        let ahead = place.subtract(&j)?;
        if left >= 0 {
            mask.allow(ahead.less_equal(left)?)?;
        }
        if right >= 0 {
            mask.allow(ahead.greater_equal(-right)?)?;
        }
    }
    if let Some(lengths) = &lengths {
        mask.allow(j.less(lengths)?)?;
    }

    let scale = match c.attr_float("scale", 0.0) {
        0.0 => 1.0 / (head as f32).sqrt(),
        scale => scale,
    };
    // Each factor gets a part of the scale, so that products of f16 do not overflow.
    let part = scale.sqrt();
    let mut scores = q.multiply(part)?.matmul(k.transpose([0, 1, 3, 2])?.multiply(part)?)?;
    let cap = c.attr_float("softcap", 0.0);
    if cap > 0.0 {
        scores = scores.divide(cap)?.tanh()?.multiply(cap)?;
    }
    let dtype = scores.dtype();
    let biased = match &mask.bias {
        Some(bias) => scores.add(bias)?,
        None => scores.clone(),
    };
    let precise = biased.cast(DType::F32)?;
    let weights = match &mask.allowed {
        None => precise.softmax(-1)?,
        Some(allowed) => {
            // A row in which nothing is allowed is 0.
            let low = precise.zeros_like()?.subtract(f32::MAX)?;
            let allowed = allowed.broadcast_to(precise.shape())?;
            where_(&allowed, &precise, &low)?.softmax(-1)?.multiply(allowed.cast(DType::F32)?)?
        }
    }
    .cast(dtype)?;
    let mut y = weights.matmul(v)?;
    if flat {
        let (batch, size) = (y.shape()[0], y.shape()[3]);
        y = y.transpose([0, 2, 1, 3])?.reshape([batch, queries, heads * size])?;
    }
    let shown = match c.attr_int("qk_matmul_output_mode", 0) {
        2 => match &mask.allowed {
            Some(allowed) => {
                let none = biased.zeros_like()?.add(f32::NEG_INFINITY)?;
                where_(&allowed.broadcast_to(biased.shape())?, &biased, &none)?
            }
            None => biased,
        },
        3 => weights,
        _ => scores,
    };
    let (key, value) = present;
    Ok([y, key, value, shown].into_iter().map(Value::Tensor).collect())
}

fn rotary_embedding(c: &Call<'_>) -> Result<Results> {
    let given = c.tensor(0)?;
    // [batch, sequence, heads, size]
    let x = match given.rank() {
        4 => given.transpose([0, 2, 1, 3])?,
        _ => with_heads(&given, count(c, "num_heads")?)?.transpose([0, 2, 1, 3])?,
    };
    let size = x.shape()[3];
    let turned = match c.attr_int("rotary_embedding_dim", 0) {
        0 => size,
        part => usize::try_from(part).unwrap_or(usize::MAX),
    };
    if turned > size || turned % 2 != 0 {
        return Err(unsupported(format_args!("a rotation of {turned} of {size} features")));
    }
    let [mut cos, mut sin] = [c.tensor(1)?, c.tensor(2)?];
    if c.get(3).is_some() {
        let places = c.tensor(3)?;
        (cos, sin) = (cos.gather(&places, 0)?, sin.gather(&places, 0)?);
    }
    let (cos, sin) = (cos.expand_dims(2)?, sin.expand_dims(2)?);
    let (batch, sequence, heads) = (x.shape()[0], x.shape()[1], x.shape()[2]);
    let part =
        |from: usize, to: usize| x.slice(&[0, 0, 0, from], &[-1, -1, -1, (to - from) as i64]);
    let interleaved = c.attr_int("interleaved", 0) != 0;
    let [a, b] = if interleaved {
        let pairs = part(0, turned)?.reshape([batch, sequence, heads, turned / 2, 2])?;
        let [a, b] = &pairs.unstack(4)?[..] else {
            return Err(Error::Shape(message!("there are no pairs of features.")));
        };
        [a.clone(), b.clone()]
    } else {
        [part(0, turned / 2)?, part(turned / 2, turned)?]
    };
    let real = cos.multiply(&a)?.subtract(sin.multiply(&b)?)?;
    let imaginary = sin.multiply(&a)?.add(cos.multiply(&b)?)?;
    let rotated = match interleaved {
        true => concat([real.expand_dims(4)?, imaginary.expand_dims(4)?], 4)?
            .reshape([batch, sequence, heads, turned])?,
        false => concat([real, imaginary], 3)?,
    };
    let y = if turned == size { rotated } else { concat([rotated, part(turned, size)?], 3)? };
    match given.rank() {
        4 => tensor(y.transpose([0, 2, 1, 3])?),
        _ => tensor(y.reshape(given.shape())?),
    }
}
