//! [`Predictions`]: what a classifier says about rows.

use ndarray::Array2;

/// What a classifier says about rows: the logits, from which the probabilities and the classes follow. tf.estimator's dictionary of
/// `logits`, `probabilities` and `class_ids`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::estimator::{BoostedTreesClassifier, BoostedTreesOptions, TreesFitOptions};
/// let x: Vec<[f32; 1]> = (0..100).map(|i| [i as f32]).collect();
/// let y: Vec<i32> = (0..100).map(|i| i32::from(i >= 40)).collect();
/// let mut model = BoostedTreesClassifier::new(2, BoostedTreesOptions::new())?;
/// model.fit((x, y), TreesFitOptions::new())?;
/// let predictions = model.predict(([[3.0f32], [70.0]],))?;
/// assert_eq!(predictions.class_ids(), [0, 1]);
/// assert!(predictions.probabilities()[[1, 1]] > 0.9);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Predictions {
    logits: Array2<f64>,
}

impl Predictions {
    /// `logits` has a number for each row and output, of `[N,1]` or `[N,K]`.
    pub(super) fn new(logits: Vec<f64>, outputs: usize) -> Self {
        let outputs = outputs.max(1);
        let shape = (logits.len() / outputs, outputs);
        let logits =
            Array2::from_shape_vec(shape, logits).unwrap_or_else(|_| Array2::zeros((0, outputs)));
        Predictions { logits }
    }

    /// Returns the logits: `[N,1]` for two classes, the logarithm of the odds of class 1; else `[N,K]`.
    pub fn logits(&self) -> &Array2<f64> {
        &self.logits
    }

    /// Returns the probabilities of the classes, `[N,K]`. Each row adds up to 1.
    pub fn probabilities(&self) -> Array2<f64> {
        if self.logits.ncols() == 1 {
            let one = |row: usize| 1.0 / (1.0 + (-self.logits[[row, 0]]).exp());
            return Array2::from_shape_fn((self.logits.nrows(), 2), |(row, class)| match class {
                0 => 1.0 - one(row),
                _ => one(row),
            });
        }
        let mut probabilities = self.logits.clone();
        for mut row in probabilities.rows_mut() {
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            row.mapv_inplace(|x| (x - largest).exp());
            let sum = row.sum();
            row.mapv_inplace(|x| x / sum);
        }
        probabilities
    }

    /// Returns the most probable class of each row; of equally probable ones, the first.
    pub fn class_ids(&self) -> Vec<usize> {
        let class = |row: ndarray::ArrayView1<'_, f64>| match row.len() {
            1 => usize::from(row[0] > 0.0),
            _ => (1..row.len()).fold(0, |best, at| if row[at] > row[best] { at } else { best }),
        };
        self.logits.rows().into_iter().map(class).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_follow_from_logits() {
        let two = Predictions::new(vec![0.0, 3.0f64.ln(), -900.0], 1);
        assert_eq!(two.class_ids(), [0, 1, 0]);
        assert!((two.probabilities()[[1, 1]] - 0.75).abs() < 1e-12);
        assert_eq!(two.probabilities()[[2, 0]], 1.0);
        let three = Predictions::new(vec![1000.0, 1000.0, 0.0], 3);
        assert_eq!(three.class_ids(), [0]);
        assert_eq!(three.probabilities().as_slice(), Some(&[0.5, 0.5, 0.0][..]));
    }
}
