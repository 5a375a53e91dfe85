//! Stages that clip gradients: by the norm of each, by the norm of all together, element by element.

use super::options::{Pairs, Round, Stage};
use crate::error::Result;
use crate::ops::clip_by_global_norm;
use crate::tensor::Tensor;

/// `g limit / max(|g|, limit)` for each gradient.
#[derive(Debug)]
pub(super) struct ByNorm(pub(super) f64);

impl Stage for ByNorm {
    fn gradients<'v>(&self, _: &mut Round<'_>, pairs: Pairs<'v>) -> Result<Pairs<'v>> {
        let clip = |g: Tensor| g.clip_by_norm(self.0, ());
        pairs.into_iter().map(|(variable, g)| Ok((variable, clip(g)?))).collect()
    }
}

/// `g` between `-limit` and `limit`.
#[derive(Debug)]
pub(super) struct ByValue(pub(super) f64);

impl Stage for ByValue {
    fn gradients<'v>(&self, _: &mut Round<'_>, pairs: Pairs<'v>) -> Result<Pairs<'v>> {
        let clip = |g: Tensor| g.clip_by_value(-self.0, self.0);
        pairs.into_iter().map(|(variable, g)| Ok((variable, clip(g)?))).collect()
    }
}

/// `g limit / max(n, limit)`, where `n` is the norm of all gradients as one vector. If that is not finite, all
/// gradients become NaN.
#[derive(Debug)]
pub(super) struct ByGlobalNorm(pub(super) f64);

impl Stage for ByGlobalNorm {
    fn gradients<'v>(&self, _: &mut Round<'_>, pairs: Pairs<'v>) -> Result<Pairs<'v>> {
        let (variables, grads): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        if grads.is_empty() {
            return Ok(Vec::new());
        }
        let (clipped, _) = clip_by_global_norm(grads, self.0)?;
        Ok(variables.into_iter().zip(clipped).collect())
    }
}
