//! What boosting minimizes: the loss of each row, its derivatives by the raw prediction, and the prediction to begin with.
//!
//! - squared error: half of `(y - p)^2`; derivatives `p - y` and 1
//! - absolute error: `|y - p|`; `sign(p - y)`, and 1 instead of 0: the leaves then get the medians of what is left
//! - two classes: `ln(1 + e^p) - y p` with the logit `p`; `sigmoid(p) - y` and `sigmoid(p) (1 - sigmoid(p))`
//! - several classes: `ln(sum of e^p_k) - p_y`; for each class `softmax_k - [y = k]` and `softmax_k (1 - softmax_k)`

use super::threads::{self, BLOCK};

/// The loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Objective {
    Squared,
    Absolute,
    /// Two classes, with one raw prediction.
    Binary,
    /// Several classes, with a raw prediction for each.
    Classes(usize),
}

/// The labels and weights of rows.
#[derive(Clone, Copy)]
pub(super) struct Targets<'a> {
    pub(super) y: &'a [f64],
    pub(super) weights: Option<&'a [f64]>,
}

impl Targets<'_> {
    fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| weights[row])
    }

    fn total(&self) -> f64 {
        self.weights.map_or(self.y.len() as f64, |weights| weights.iter().sum())
    }
}

/// Means over rows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Measures {
    pub(crate) loss: f64,
    /// The mean absolute error, or the share of rows whose class is the most probable.
    pub(crate) metric: f64,
}

impl Objective {
    /// The number of raw predictions of a row, and of trees in an iteration.
    pub(crate) fn outputs(self) -> usize {
        match self {
            Objective::Classes(classes) => classes,
            _ => 1,
        }
    }

    /// The name of the metric in logs.
    pub(crate) fn metric(self) -> &'static str {
        match self {
            Objective::Squared | Objective::Absolute => "mae",
            Objective::Binary | Objective::Classes(_) => "accuracy",
        }
    }

    /// Whether the second derivative is 1 for each row.
    pub(super) fn has_unit_hessian(self, targets: Targets<'_>) -> bool {
        matches!(self, Objective::Squared | Objective::Absolute) && targets.weights.is_none()
    }

    /// The constant raw predictions with the least loss.
    pub(super) fn baseline(self, targets: Targets<'_>) -> Vec<f64> {
        let weighted = |value: &dyn Fn(f64) -> f64| {
            let rows = targets.y.iter().enumerate();
            rows.map(|(row, y)| targets.weight(row) * value(*y)).sum::<f64>() / targets.total()
        };
        // A class without rows has a small probability rather than none.
        let least = f64::from(f32::EPSILON);
        match self {
            Objective::Squared => vec![weighted(&|y| y)],
            Objective::Absolute => {
                let values = targets.y.iter().enumerate();
                vec![median(values.map(|(row, y)| (*y, targets.weight(row))).collect())]
            }
            Objective::Binary => {
                let p = weighted(&|y| y).clamp(least, 1.0 - least);
                vec![(p / (1.0 - p)).ln()]
            }
            Objective::Classes(classes) => {
                let share = |class: usize| weighted(&|y| f64::from(u8::from(y == class as f64)));
                let logs: Vec<f64> =
                    (0..classes).map(|class| share(class).clamp(least, 1.0 - least).ln()).collect();
                let mean = logs.iter().sum::<f64>() / classes as f64;
                logs.into_iter().map(|log| log - mean).collect()
            }
        }
    }

    /// The loss and the metric of one row, whose derivatives are written into `gradients` and `hessians`.
    fn row(self, y: f64, raw: &[f64], gradients: &mut [f64], hessians: &mut [f64]) -> (f64, f64) {
        match self {
            Objective::Squared | Objective::Absolute => {
                let error = raw[0] - y;
                hessians[0] = 1.0;
                if self == Objective::Squared {
                    gradients[0] = error;
                    (error * error, error.abs())
                } else {
                    // Rows that are predicted exactly count as predicted too low, as elsewhere.
                    gradients[0] = if error > 0.0 { 1.0 } else { -1.0 };
                    (error.abs(), error.abs())
                }
            }
            Objective::Binary => {
                let p = sigmoid(raw[0]);
                (gradients[0], hessians[0]) = (p - y, p * (1.0 - p));
                // ln(1 + e^x), which does not overflow.
                let softplus = raw[0].max(0.0) + (-raw[0].abs()).exp().ln_1p();
                let right = (raw[0] > 0.0) == (y > 0.5);
                (softplus - y * raw[0], f64::from(u8::from(right)))
            }
            Objective::Classes(classes) => {
                let largest = raw.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let mut sum = 0.0;
                for (to, x) in gradients.iter_mut().zip(raw) {
                    *to = (x - largest).exp();
                    sum += *to;
                }
                let label = y as usize;
                for class in 0..classes {
                    let p = gradients[class] / sum;
                    gradients[class] = p - f64::from(u8::from(class == label));
                    hessians[class] = p * (1.0 - p);
                }
                let right = best(raw) == label;
                (sum.ln() + largest - raw[label], f64::from(u8::from(right)))
            }
        }
    }

    /// Writes the derivatives of all rows, multiplied by their weights, row by row. Returns the means of loss and metric.
    pub(super) fn derivatives(
        self,
        targets: Targets<'_>,
        raw: &[f64],
        gradients: &mut [f32],
        hessians: &mut [f32],
    ) -> Measures {
        let size = BLOCK * self.outputs();
        let blocks =
            raw.chunks(size).zip(gradients.chunks_mut(size)).zip(hessians.chunks_mut(size));
        let mut blocks: Vec<_> =
            blocks.map(|((raw, g), h)| (raw, Some((g, h)), Measures::default())).collect();
        self.blocks(targets, &mut blocks)
    }

    /// The means of loss and metric.
    pub(super) fn measures(self, targets: Targets<'_>, raw: &[f64]) -> Measures {
        let size = BLOCK * self.outputs();
        let mut blocks: Vec<_> =
            raw.chunks(size).map(|raw| (raw, None, Measures::default())).collect();
        self.blocks(targets, &mut blocks)
    }

    #[allow(clippy::type_complexity)] // The parts of one block.
    fn blocks(
        self,
        targets: Targets<'_>,
        blocks: &mut [(&[f64], Option<(&mut [f32], &mut [f32])>, Measures)],
    ) -> Measures {
        let outputs = self.outputs();
        let work = targets.y.len() * outputs * 16;
        threads::each(blocks, work, |at, (raw, derivatives, sums)| {
            let (mut g, mut h) = (vec![0.0; outputs], vec![0.0; outputs]);
            for (i, raw) in raw.chunks_exact(outputs).enumerate() {
                let row = at * BLOCK + i;
                let weight = targets.weight(row);
                let (loss, metric) = self.row(targets.y[row], raw, &mut g, &mut h);
                sums.loss += weight * loss;
                sums.metric += weight * metric;
                if let Some((gradients, hessians)) = derivatives {
                    let place = i * outputs..(i + 1) * outputs;
                    let write = |to: &mut [f32], from: &[f64]| {
                        to.iter_mut().zip(from).for_each(|(to, from)| *to = (from * weight) as f32);
                    };
                    write(&mut gradients[place.clone()], &g);
                    write(&mut hessians[place], &h);
                }
            }
        });
        let total = targets.total();
        let sum = |of: fn(&Measures) -> f64| blocks.iter().map(|block| of(&block.2)).sum::<f64>();
        Measures { loss: sum(|m| m.loss) / total, metric: sum(|m| m.metric) / total }
    }

    /// The value of a leaf with these rows, if it is not the one by the derivatives.
    pub(super) fn leaf(self, targets: Targets<'_>, raw: &[f64], rows: &[u32]) -> Option<f64> {
        let error = |row: &u32| {
            let row = *row as usize;
            (targets.y[row] - raw[row], targets.weight(row))
        };
        (self == Objective::Absolute).then(|| median(rows.iter().map(error).collect()))
    }
}

/// The index of the largest number; of equal ones, the first.
pub(crate) fn best(numbers: &[f64]) -> usize {
    let larger = |best: usize, at: usize| if numbers[at] > numbers[best] { at } else { best };
    (1..numbers.len()).fold(0, larger)
}

pub(crate) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

/// The value with half of the weight on each side; the mean of two such.
fn median(mut values: Vec<(f64, f64)>) -> f64 {
    values.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut sum = 0.0;
    for (at, (value, weight)) in values.iter().enumerate() {
        sum += weight;
        if sum > half {
            return *value;
        }
        if sum == half {
            let next = values[at + 1..].iter().find(|(_, weight)| *weight > 0.0);
            return next.map_or(*value, |(next, _)| (value + next) / 2.0);
        }
    }
    values.last().map_or(0.0, |(value, _)| *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_derivatives_are_those_of_the_loss() {
        let raw = [0.3, -1.2, 0.7];
        for (objective, y, scale) in [
            (Objective::Squared, 0.9, 2.0),
            (Objective::Binary, 1.0, 1.0),
            (Objective::Classes(3), 2.0, 1.0),
        ] {
            let outputs = objective.outputs();
            let raw = &raw[..outputs];
            let (mut g, mut h) = (vec![0.0; outputs], vec![0.0; outputs]);
            objective.row(y, raw, &mut g, &mut h);
            for output in 0..outputs {
                let at = |step: f64| {
                    let mut raw = raw.to_vec();
                    raw[output] += step;
                    let (mut g, mut h) = (vec![0.0; outputs], vec![0.0; outputs]);
                    (objective.row(y, &raw, &mut g, &mut h).0 / scale, g[output])
                };
                let ((more, g_more), (less, g_less)) = (at(1e-5), at(-1e-5));
                assert!(((more - less) / 2e-5 - g[output]).abs() < 1e-6, "{objective:?} {output}");
                assert!(
                    ((g_more - g_less) / 2e-5 - h[output]).abs() < 1e-6,
                    "{objective:?} {output}"
                );
            }
        }
    }

    #[test]
    fn baselines_are_the_best_constants() {
        let y = [1.0, 0.0, 0.0, 0.0];
        let targets = Targets { y: &y, weights: None };
        assert_eq!(Objective::Squared.baseline(targets), [0.25]);
        assert_eq!(Objective::Absolute.baseline(targets), [0.0]);
        assert!((Objective::Binary.baseline(targets)[0] - (0.25f64 / 0.75).ln()).abs() < 1e-12);
        let logits = Objective::Classes(3).baseline(targets);
        assert!((logits[1] - logits[0] - (0.25f64 / 0.75).ln()).abs() < 1e-12);
        assert!(logits[2].is_finite() && logits.iter().sum::<f64>().abs() < 1e-9);
        // A weight of 3 is three rows.
        let targets = Targets { y: &y, weights: Some(&[3.0, 1.0, 1.0, 1.0]) };
        assert_eq!(Objective::Squared.baseline(targets), [0.5]);
        assert_eq!(Objective::Absolute.baseline(targets), [0.5]);
    }

    #[test]
    fn losses_of_sure_predictions_are_finite() {
        for (raw, y, loss) in [(800.0, 0.0, 800.0), (-800.0, 1.0, 800.0), (800.0, 1.0, 0.0)] {
            let targets = Targets { y: &[y], weights: None };
            assert_eq!(Objective::Binary.measures(targets, &[raw]).loss, loss);
        }
        let targets = Targets { y: &[1.0], weights: None };
        assert_eq!(Objective::Classes(2).measures(targets, &[900.0, 0.0]).loss, 900.0);
    }
}
