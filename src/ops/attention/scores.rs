//! Attention with its matrix of scores: two products and a softmax between them, and the formulas of its second-order
//! gradients.

use super::super::random::{Distribution, philox_random};
use crate::dtype::{DType, Scalar};
use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::graph::{Runtime, RuntimeScalars};
use crate::ops::{MatmulOptions, fill, select};
use crate::shape::Axes;
use crate::tensor::Tensor;

/// The sizes and attributes of a call. All heads of all batches are along one axis: `q` is `[N,T,D]`, `k` `[N/G,S,D]`,
/// `v` `[N/G,S,E]`, the mask `[B,H,T,S]` or 1 along its axes.
#[derive(Debug, Clone, Copy, Attribute)]
pub(super) struct Layout {
    pub(super) batch: usize,
    pub(super) heads: usize,
    /// The number of query heads that share one key head.
    pub(super) group: usize,
    pub(super) rows: usize,
    pub(super) keys: usize,
    /// The bits of the `f32`.
    pub(super) scale: u32,
    pub(super) causal: bool,
    pub(super) masked: bool,
    /// The bits of the dropout rate.
    pub(super) rate: Option<u32>,
    pub(super) seed: Runtime<[u32; 2]>,
}

/// The score that marks a key to which the query does not attend, and the limit below which a score counts as this
/// mark.
pub(super) const LOW: f32 = -1e38;
const FLOOR: f32 = -5e37;

/// The weights that softmax and dropout compute from the scores.
struct Weights {
    /// `[N/G,G*T,S]`, before dropout.
    p: Tensor,
    /// The factors of dropout, of the same shape.
    kept: Option<Tensor>,
}

/// The gradient that is differentiated, and the upstream gradient.
pub(super) enum Toward<'a> {
    Queries(&'a Tensor),
    Keys(&'a Tensor),
}

impl Layout {
    pub(super) fn count(&self) -> usize {
        self.batch * self.heads
    }

    /// The bytes of all scores.
    pub(super) fn score_bytes(&self) -> u64 {
        let sizes = [self.count(), self.rows, self.keys, 4];
        sizes.into_iter().fold(1, |product, size| product.saturating_mul(size as u64))
    }

    /// `[N/G,G*T,..]`: the query heads that share a key head become additional rows.
    fn merged(&self, x: &Tensor) -> Result<Tensor> {
        let (count, last) = (self.count() / self.group, x.shape()[2]);
        x.reshape_to([count, self.group * self.rows, last].into())
    }

    /// The result `[N,T,E]` and the statistics `[N,T]` of the kernels' packed result.
    pub(super) fn unpack(&self, packed: &Tensor, width: usize) -> Result<[Tensor; 2]> {
        let (count, rows) = (self.count(), self.rows);
        let results = count * rows * width;
        let y = packed.slice(&[0], &[results as i64])?.reshape_to([count, rows, width].into())?;
        let l = packed.slice(&[results], &[-1])?.reshape_to([count, rows].into())?;
        Ok([y, l])
    }

    /// The result `[N,T,E]`.
    pub(super) fn attend(&self, [q, k, v]: [&Tensor; 3], mask: Option<&Tensor>) -> Result<Tensor> {
        let y = self.weights(q, k, mask)?.dropped()?.matmul(wide(v)?)?;
        y.reshape_to([self.count(), self.rows, v.shape()[2]].into())
    }

    fn weights(&self, q: &Tensor, k: &Tensor, mask: Option<&Tensor>) -> Result<Weights> {
        let Layout { batch, heads, rows, keys, .. } = *self;
        let mut x = self
            .merged(&wide(q)?)?
            .matmul_with(wide(k)?, MatmulOptions::new().transpose_b(true))?
            .multiply(f32::from_bits(self.scale))?;
        let merged = x.spec().shape.clone();
        let whole = [batch, heads, rows, keys];
        let may_see_none = mask.is_some();
        if let Some(mask) = mask {
            x = x.reshape_to(whole.into())?.add(mask)?.reshape_to(merged.clone())?;
        }
        if self.causal {
            let count = |n: usize| {
                crate::ops::iota::iota(Some(q.device()), n, 0.into(), 1.into(), DType::I32)
            };
            let past = count(keys)?.less_equal(count(rows)?.expand_dims(-1)?)?;
            let low = fill(q.device(), "Attention", Default::default(), LOW.into(), x.dtype())?;
            x = select(&past, &x.reshape_to(whole.into())?, &low)?.reshape_to(merged.clone())?;
        }
        let p = if may_see_none { softmax_of_seen(&x, -1)? } else { x.softmax(-1)? };
        let kept = match self.rate {
            None => None,
            Some(rate) => Some(self.kept(q, f32::from_bits(rate))?.reshape_to(merged)?),
        };
        Ok(Weights { p, kept })
    }

    /// The factors of dropout `[N,T,S]`: the same as the kernels draw, whose rows begin at multiples of four.
    fn kept(&self, q: &Tensor, rate: f32) -> Result<Tensor> {
        let whole = self.keys.next_multiple_of(4);
        let [a, b] = self.seed.0;
        let words = RuntimeScalars::from_slice(&[a, b, 0, 0, 0, 0]);
        let shape = [self.count(), self.rows, whole].into();
        let u = philox_random(Some(q.device()), Distribution::UNIFORM, shape, words, None)?;
        let u = u.slice(&[0; 3], &[-1, -1, self.keys as i64])?;
        let number =
            |v: f32| fill(q.device(), "Attention", Default::default(), Scalar::from(v), DType::F32);
        select(&u.greater_equal(rate)?, &number(1.0 / (1.0 - rate))?, &number(0.0)?)
    }

    // For a result y = P~ v with P~ = M P (M the factors of dropout), P = softmax(x), x = scale q k^T + mask:
    // dP = M (dy v^T), dx = P (dP - rowsum(P dP)), dq = scale dx k, dk = scale dx^T q, dv = P~^T dy.

    /// The gradient of the mask `[B,H,T,S]`: that of the scores.
    pub(super) fn mask_grad(
        &self,
        [q, k, v]: [&Tensor; 3],
        mask: Option<&Tensor>,
        dy: &Tensor,
    ) -> Result<Tensor> {
        let weights = self.weights(q, k, mask)?;
        let slope = weights.slope(&self.merged(dy)?, v)?;
        let dx = centered(&weights.p, &slope)?;
        dx.reshape_to([self.batch, self.heads, self.rows, self.keys].into())
    }

    /// The gradients of f = <dq, a>, or <dk, b>. With e = df/d(dx) = scale a k^T, or scale q b^T:
    /// df/d(dP) = P (e - rowsum(P e)), which reaches dy and v; and by P itself, df/dP = e (dP - rowsum(P dP)) -
    /// rowsum(P e) dP, which reaches the scores by the softmax.
    pub(super) fn second(
        &self,
        [q, k, v]: [&Tensor; 3],
        mask: Option<&Tensor>,
        dy: &Tensor,
        toward: Toward<'_>,
    ) -> Result<Vec<(&'static str, Tensor)>> {
        let scale = f32::from_bits(self.scale);
        let weights = self.weights(q, k, mask)?;
        let p = &weights.p;
        let (rows_q, rows_dy) = (self.merged(&wide(q)?)?, self.merged(dy)?);
        let (wide_k, wide_v) = (wide(k)?, wide(v)?);
        let slope = weights.slope(&rows_dy, &wide_v)?;
        let dx = centered(p, &slope)?.multiply(scale)?;
        let transposed = MatmulOptions::new().transpose_b(true);
        let (e, direct_q, direct_k) = match toward {
            Toward::Queries(a) => {
                let a = self.merged(&wide(a)?)?;
                let direct = dx.matmul_with(&a, MatmulOptions::new().transpose_a(true))?;
                (a.matmul_with(&wide_k, transposed)?.multiply(scale)?, None, Some(direct))
            }
            Toward::Keys(b) => {
                let b = wide(b)?;
                let direct = dx.matmul(&b)?;
                (rows_q.matmul_with(&b, transposed)?.multiply(scale)?, Some(direct), None)
            }
        };
        let kept = Axes::from(-1).keepdims(true);
        let mean_e = p.multiply(&e)?.reduce_sum(&kept)?;
        let mean_slope = p.multiply(&slope)?.reduce_sum(&kept)?;
        let by_slope = weights.drop(&p.multiply(e.subtract(&mean_e)?)?)?;
        let by_p = e.multiply(slope.subtract(mean_slope)?)?.subtract(mean_e.multiply(&slope)?)?;
        let mut grads = self.through_scores(p, &by_p, &rows_q, &wide_k, mask)?;
        for (at, direct) in [(0, direct_q), (1, direct_k)] {
            if let Some(direct) = direct {
                grads[at].1 =
                    grads[at].1.add(direct.reshape_to(grads[at].1.spec().shape.clone())?)?;
            }
        }
        let to_dy = by_slope.matmul(&wide_v)?.reshape_to(dy.spec().shape.clone())?;
        let to_v = by_slope.matmul_with(&rows_dy, MatmulOptions::new().transpose_a(true))?;
        grads.extend([("dy", to_dy), ("v", to_v)]);
        narrow(grads, q.dtype())
    }

    /// The gradients of f = <dv, c>: dv is linear in dy, and df/dP = M (dy c^T).
    pub(super) fn second_of_values(
        &self,
        [q, k]: [&Tensor; 2],
        mask: Option<&Tensor>,
        dy: &Tensor,
        c: &Tensor,
    ) -> Result<Vec<(&'static str, Tensor)>> {
        let weights = self.weights(q, k, mask)?;
        let (c, rows_dy) = (wide(c)?, self.merged(dy)?);
        let to_dy = weights.dropped()?.matmul(&c)?.reshape_to(dy.spec().shape.clone())?;
        let by_p = weights.slope(&rows_dy, &c)?;
        let rows_q = self.merged(&wide(q)?)?;
        let mut grads = self.through_scores(&weights.p, &by_p, &rows_q, &wide(k)?, mask)?;
        grads.push(("dy", to_dy));
        narrow(grads, q.dtype())
    }

    /// The gradients of q, k and the mask from that of the weights before dropout.
    fn through_scores(
        &self,
        p: &Tensor,
        by_p: &Tensor,
        rows_q: &Tensor,
        k: &Tensor,
        mask: Option<&Tensor>,
    ) -> Result<Vec<(&'static str, Tensor)>> {
        let by_x = centered(p, by_p)?;
        let scaled = by_x.multiply(f32::from_bits(self.scale))?;
        let to_q = scaled.matmul(k)?.reshape_to([self.count(), self.rows, k.shape()[2]].into())?;
        let to_k = scaled.matmul_with(rows_q, MatmulOptions::new().transpose_a(true))?;
        let mut grads = vec![("q", to_q), ("k", to_k)];
        if mask.is_some() {
            let whole = [self.batch, self.heads, self.rows, self.keys];
            grads.push(("mask", by_x.reshape_to(whole.into())?));
        }
        Ok(grads)
    }
}

impl Weights {
    fn drop(&self, x: &Tensor) -> Result<Tensor> {
        self.kept.as_ref().map_or_else(|| Ok(x.clone()), |kept| x.multiply(kept))
    }

    fn dropped(&self) -> Result<Tensor> {
        self.drop(&self.p)
    }

    /// The gradient of the weights before dropout, from rows of the result's.
    fn slope(&self, dy: &Tensor, v: &Tensor) -> Result<Tensor> {
        self.drop(&dy.matmul_with(wide(v)?, MatmulOptions::new().transpose_b(true))?)
    }
}

/// The gradient of a softmax with the values `p`.
fn centered(p: &Tensor, dp: &Tensor) -> Result<Tensor> {
    let mean = p.multiply(dp)?.reduce_sum(Axes::from(-1).keepdims(true))?;
    p.multiply(dp.subtract(mean)?)
}

/// The softmax along an axis of the `f32` scores above [`FLOOR`]; zeros where there is none.
pub(super) fn softmax_of_seen(x: &Tensor, axis: i64) -> Result<Tensor> {
    let kept = Axes::from(axis).keepdims(true);
    let top = x.stop_gradient().reduce_max(&kept)?.maximum(FLOOR)?.stop_gradient();
    let e = x.subtract(top)?.exp()?;
    let sum = e.reduce_sum(kept)?;
    let one = fill(x.device(), "Attention", Default::default(), 1.into(), x.dtype())?;
    e.divide(select(&sum.equal(0.0)?, &one, &sum)?)
}

fn wide(x: &Tensor) -> Result<Tensor> {
    if x.dtype() == DType::F32 { Ok(x.clone()) } else { x.cast(DType::F32) }
}

/// The gradients in the dtypes of their inputs: dy and the mask are always `f32`.
fn narrow(grads: Vec<(&'static str, Tensor)>, dtype: DType) -> Result<Vec<(&'static str, Tensor)>> {
    let fit = |(name, grad): (&'static str, Tensor)| match name {
        "dy" | "mask" => Ok((name, grad)),
        _ if grad.dtype() == dtype => Ok((name, grad)),
        _ => Ok((name, grad.cast(dtype)?)),
    };
    grads.into_iter().map(fit).collect()
}
