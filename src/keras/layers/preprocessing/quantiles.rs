//! The boundaries of bins that hold about as many numbers each, from a summary of the numbers that have been seen.
//!
//! Source: `summarize`, `merge_summaries` and `compress_summary` in Keras's `discretization.py`, with the dtypes that NumPy has there.

/// Numbers in ascending order, each standing for as many as its weight says.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Summary {
    values: Vec<f32>,
    weights: Vec<f32>,
}

impl Summary {
    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The summary of a batch.
    fn of(mut batch: Vec<f32>, epsilon: f64) -> Self {
        batch.sort_unstable_by(f32::total_cmp);
        let increment = batch.len() as f64 / (1.0 / epsilon);
        let step = increment.max(1.0);
        let start = (step - 1.0) as usize;
        let values: Vec<f32> = batch.into_iter().skip(start).step_by(step as usize).collect();
        Summary { weights: vec![step as f32; values.len()], values }
    }

    /// Adds a batch.
    pub(super) fn add(&mut self, batch: Vec<f32>, epsilon: f64) {
        let batch = Summary::of(batch, epsilon);
        let old = std::mem::take(self);
        let mut pairs: Vec<(f32, f32)> = batch.pairs().chain(old.pairs()).collect();
        pairs.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        let (values, weights) = pairs.into_iter().unzip();
        *self = Summary { values, weights }.compressed(epsilon);
    }

    fn pairs(&self) -> impl Iterator<Item = (f32, f32)> {
        self.values.iter().copied().zip(self.weights.iter().copied())
    }

    /// The boundaries of this number of bins.
    pub(super) fn boundaries(&self, bins: usize) -> Vec<f32> {
        let mut values = self.clone().compressed(1.0 / bins as f64).values;
        values.pop();
        values
    }

    /// The summary with a value for each `epsilon` of the weight.
    fn compressed(self, epsilon: f64) -> Self {
        if (self.values.len() as f64) * epsilon < 1.0 {
            return self;
        }
        let sums: Vec<f32> = self
            .weights
            .iter()
            .scan(0f32, |sum, weight| {
                *sum += weight;
                Some(*sum)
            })
            .collect();
        let whole = sums.last().copied().unwrap_or(1.0);
        let shares: Vec<f64> = sums.iter().map(|sum| f64::from(sum / whole)).collect();
        let wide = |list: &[f32]| list.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
        let (of_value, of_sum) = (wide(&self.values), wide(&sums));
        let (mut values, mut weights) = (Vec::new(), Vec::new());
        let (mut at, mut before) = (0, 0.0);
        let count = (1.0 / epsilon).ceil() as usize;
        for number in 0..count {
            let share = epsilon + number as f64 * epsilon;
            // The last place whose share is not larger; shares ascend.
            while at + 1 < shares.len() && shares[at + 1] <= share {
                at += 1;
            }
            let sum = between(share, at, &shares, &of_sum);
            values.push(between(share, at, &shares, &of_value) as f32);
            weights.push((sum - before) as f32);
            before = sum;
        }
        Summary { values, weights }
    }
}

/// `np.interp`: the line through the points at `at` and behind it, at `x`; the first or the last value outside.
fn between(x: f64, at: usize, xs: &[f64], ys: &[f64]) -> f64 {
    if x < xs[at] || at + 1 == xs.len() || x == xs[at] {
        return ys[at];
    }
    let slope = (ys[at + 1] - ys[at]) / (xs[at + 1] - xs[at]);
    slope * (x - xs[at]) + ys[at]
}
