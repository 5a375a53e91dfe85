//! Losses between distributions.

use super::EPSILON;
use super::row::loss;

loss! {
    /// The Kullback-Leibler divergence, `sum of y_true log(y_true / y_pred)` along the last axis, both clipped to 1e-7 to 1:
    /// both `[..,C]`.
    pub struct KlDivergence["KLDivergence"] = "kl_divergence" {}
    |_, y_true, y_pred| {
        let y_true = y_true.clip_by_value(EPSILON, 1.0)?;
        let y_pred = y_pred.clip_by_value(EPSILON, 1.0)?;
        y_true.multiply(y_true.divide(y_pred)?.log()?)?.reduce_sum(-1)
    }
}

loss! {
    /// The mean of `y_pred - y_true log(y_pred + 1e-7)` along the last axis: both `[..,D]`, counts and their expected
    /// numbers.
    pub struct Poisson = "poisson" {}
    |_, y_true, y_pred| {
        let log = y_pred.add(EPSILON)?.log()?;
        y_pred.subtract(y_true.multiply(log)?)?.reduce_mean(-1)
    }
}
