//! Reductions and functions of them, row by row in `f64`, with bounds of the `f32` error.

use wgrad::DType;

use super::eval::{Evaluator, TINY, ULP, Value, each, strides};
use super::table::{Fold, Reduction, Rounding};

impl Evaluator {
    /// Elements of `x` by result: the shape of the results, and the indices of the elements of
    /// each.
    pub fn rows(x: &Value, axes: &[usize], keep: bool) -> (Vec<usize>, Vec<Vec<usize>>) {
        let kept: Vec<usize> =
            (0..x.shape.len()).map(|k| if axes.contains(&k) { 1 } else { x.shape[k] }).collect();
        let own = strides(&kept);
        let mut rows = vec![Vec::new(); kept.iter().product()];
        let mut i = 0;
        each(&x.shape, |at| {
            let row: usize =
                (0..own.len()).map(|k| if axes.contains(&k) { 0 } else { at[k] * own[k] }).sum();
            rows[row].push(i);
            i += 1;
        });
        let shape = if keep {
            kept
        } else {
            (0..x.shape.len()).filter(|k| !axes.contains(k)).map(|k| x.shape[k]).collect()
        };
        (shape, rows)
    }

    /// A sum of terms with bounds, in any order.
    pub fn sum(&self, terms: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
        let (mut sum, mut size, mut error, mut n, mut grid) = (0.0, 0.0, 0.0, 0usize, true);
        for (v, e) in terms {
            sum += v;
            size += v.abs();
            error += e;
            n += 1;
            grid &= (v * 4096.0).fract() == 0.0;
        }
        // Multiples of 2^-12 that add up below 2^11 are exact in any order.
        if n < 2 || (grid && error == 0.0 && size < 2048.0) {
            return (sum, error);
        }
        // Rounding errors have either sign, so they grow with the square root of their number.
        (sum, error + (2.0 + (n as f64).sqrt()) * 0.5 * ULP * size + TINY)
    }

    pub fn reduce(&self, row: &Reduction, x: &Value, axes: &[usize], keep: bool) -> Option<Value> {
        let (shape, rows) = Self::rows(x, axes, keep);
        let mut y = Value::exact(&shape, x.dtype, vec![0.0; rows.len()]);
        for (i, row_of) in rows.iter().enumerate() {
            let (v, e) = self.fold(row.fold, x, row_of)?;
            y.v[i] = self.overflow(v, x.dtype)?;
            y.e[i] = if x.dtype == DType::F32 { e } else { 0.0 };
        }
        Some(y)
    }

    fn fold(&self, fold: Fold, x: &Value, row: &[usize]) -> Option<(f64, f64)> {
        let (v, e) = (|i: usize| x.v[i], |i: usize| x.e[i]);
        let n = row.len() as f64;
        let error = row.iter().map(|&i| e(i)).fold(0.0, f64::max);
        let sum = |f: &dyn Fn(usize) -> (f64, f64)| self.sum(row.iter().map(|&i| f(i)));
        let mean = |(s, e): (f64, f64)| {
            let m = s / n;
            (m, e / n + self.rounded(Rounding::Units(2.0), m, false))
        };
        let root = |(s, e): (f64, f64)| {
            let r = if s < 0.0 { 0.0 } else { s.sqrt() };
            let spread = ((s + e).sqrt() - r).max(r - (s - e).max(0.0).sqrt());
            (r, spread + self.rounded(Rounding::Units(4.0), r, false))
        };
        let variance = || {
            let (m, me) = mean(sum(&|i| (v(i), e(i))));
            mean(sum(&|i| {
                let d = v(i) - m;
                let by = e(i) + me + 0.5 * ULP * d.abs();
                (d * d, 2.0 * d.abs() * by + by * by + ULP * d * d)
            }))
        };
        Some(match fold {
            Fold::Sum => sum(&|i| (v(i), e(i))),
            Fold::Mean => mean(sum(&|i| (v(i), e(i)))),
            Fold::Prod => {
                let product: f64 = row.iter().map(|&i| v(i)).product();
                let relative: f64 = row.iter().map(|&i| e(i) / v(i).abs().max(1e-30) + ULP).sum();
                let exact =
                    error == 0.0 && row.iter().all(|&i| v(i).fract() == 0.0) && product.abs() < 1e6;
                let largest: f64 = row.iter().map(|&i| v(i).abs().max(1.0)).product();
                if exact && largest < 1e6 {
                    (product, 0.0)
                } else {
                    // A factor near 0 has no meaningful relative error.
                    (row.iter().all(|&i| v(i).abs() > 10.0 * e(i))).then_some(())?;
                    (product, 2.0 * relative * product.abs() + TINY)
                }
            }
            Fold::Max | Fold::Min => {
                let sign = if fold == Fold::Max { 1.0 } else { -1.0 };
                let nan = row.iter().any(|&i| v(i).is_nan());
                let best = row.iter().map(|&i| sign * v(i)).fold(f64::NEG_INFINITY, f64::max);
                (x.dtype == DType::F32 || !row.is_empty()).then_some(())?;
                (if nan { f64::NAN } else { sign * best }, error)
            }
            Fold::Any => (f64::from(row.iter().any(|&i| v(i) != 0.0)), 0.0),
            Fold::All => (f64::from(row.iter().all(|&i| v(i) != 0.0)), 0.0),
            Fold::Variance => variance(),
            Fold::Std => root(variance()),
            Fold::Norm => root(sum(&|i| {
                (v(i) * v(i), 2.0 * v(i).abs() * e(i) + e(i) * e(i) + ULP * v(i) * v(i))
            })),
            Fold::LogSumExp => self.log_sum_exp(x, row),
        })
    }

    /// `log(sum(exp(x)))` of a row.
    fn log_sum_exp(&self, x: &Value, row: &[usize]) -> (f64, f64) {
        let max = row.iter().map(|&i| x.v[i]).fold(f64::NEG_INFINITY, f64::max);
        let shift = if max.is_finite() { max } else { 0.0 };
        let error = row.iter().map(|&i| x.e[i]).fold(0.0, f64::max);
        let terms = row.iter().map(|&i| {
            let d = x.v[i] - shift;
            let t = d.exp();
            // The rounding of the difference and of the exponential.
            (
                t,
                t * 0.5 * ULP * d.abs().min(1e4)
                    + self.rounded(Rounding::Function, t, false).min(1.2e-5 * t + TINY),
            )
        });
        let (sum, e) = self.sum(terms);
        let v = sum.ln() + shift;
        let relative = if sum > 0.0 { e / sum } else { 0.0 };
        let log = self.rounded(Rounding::Function, sum.ln(), false);
        (v, error + relative + log + ULP * (v.abs() + shift.abs()))
    }

    pub fn softmax(&self, x: &Value, axis: usize) -> Option<Value> {
        let (_, rows) = Self::rows(x, &[axis], true);
        let mut y = x.clone();
        for row in &rows {
            let max = row.iter().map(|&i| x.v[i]).fold(f64::NEG_INFINITY, f64::max);
            let nan = row.iter().any(|&i| x.v[i].is_nan()) || max.is_infinite();
            let sum: f64 = row.iter().map(|&i| (x.v[i] - max).exp()).sum();
            let error = row.iter().map(|&i| x.e[i]).fold(0.0, f64::max);
            for &i in row {
                let d = x.v[i] - max;
                let v = d.exp() / sum;
                y.v[i] = if nan { f64::NAN } else { v };
                let own = self.rounded(Rounding::Function, 1.0, false) * 4.0;
                let n = (row.len() as f64).sqrt();
                y.e[i] = v * (2.0 * error + own + ULP * (d.abs().min(1e4) + n + 4.0)) + TINY;
            }
        }
        Some(y)
    }

    pub fn log_softmax(&self, x: &Value, axis: usize) -> Option<Value> {
        let (_, rows) = Self::rows(x, &[axis], true);
        let mut y = x.clone();
        for row in &rows {
            let (log, e) = self.log_sum_exp(x, row);
            let infinite = |&i: &usize| x.v[i].is_nan() || x.v[i] == f64::INFINITY;
            let nan = row.iter().any(infinite) || log == f64::NEG_INFINITY;
            for &i in row {
                y.v[i] = if nan { f64::NAN } else { x.v[i] - log };
                y.e[i] = x.e[i] + e + ULP * (x.v[i].abs() + y.v[i].abs());
            }
        }
        Some(y)
    }
}
