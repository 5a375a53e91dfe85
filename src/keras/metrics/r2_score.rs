//! [`R2Score`].

use super::Metric;
use super::row::metric;
use super::totals::Totals;
use crate::eager;
use crate::error::{Error, Result, message};
use crate::keras::losses::agree_cast;
use crate::ops::where_;
use crate::tensor::Tensor;

/// How the scores of several outputs are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClassAggregation {
    /// Their mean.
    #[default]
    UniformAverage,
    /// Their mean, each weighted by the variance of its truth.
    VarianceWeightedAverage,
    /// No combination: one score for each output.
    None,
}

metric! {
    /// The coefficient of determination, `1 - sum((y_true - y_pred)^2) / sum((y_true - mean(y_true))^2)`: both `[N,D]`, 1
    /// where predictions are exact, 0 where they are as good as the mean.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::metrics::{Metric, R2Score};
    /// let score = R2Score::default();
    /// score.update_state(&tf::constant([[1.0], [4.0], [3.0]])?, &tf::constant([[2.0], [4.0], [4.0]])?)?;
    /// assert!((score.result()?.item::<f32>()? - 0.571_428_6).abs() < 1e-6); // 1 - 2 / (14 / 3)
    /// # Ok(())
    /// # }
    /// ```
    pub struct R2Score = "r2_score"
        (totals: Totals = Totals::new(&["squared_sum", "sum", "residual", "count"])) {
        /// How the scores of several outputs are combined.
        class_aggregation: ClassAggregation = ClassAggregation::UniformAverage,
        /// The number of independent variables of the predictions; if above 0, the score is adjusted for them.
        num_regressors: usize = 0,
    }
}

impl Metric for R2Score {
    fn name(&self) -> &str {
        &self.name
    }

    fn update(
        &self,
        y_true: &Tensor,
        y_pred: &Tensor,
        sample_weight: Option<&Tensor>,
    ) -> Result<()> {
        let [y_true, y_pred] = agree_cast("R2Score", y_true, &y_pred.stop_gradient())?;
        if y_true.rank() != 2 {
            return Err(Error::Shape(message!(
                "R2Score: y_true and y_pred are {:?}; they must be [N,D]. Reshape them.",
                y_true.shape()
            )));
        }
        let weight = super::weights::along("R2Score", sample_weight, &y_true)?;
        let weighted = |x: &Tensor| match &weight {
            Some(weight) => x.multiply(weight)?.reduce_sum(0),
            None => x.reduce_sum(0),
        };
        let count = weighted(&y_true.ones_like()?)?;
        let residual = weighted(&y_true.squared_difference(y_pred)?)?;
        let sums = [weighted(&y_true.square()?)?, weighted(&y_true)?, residual, count];
        self.totals.add(&self.name, &sums, y_true.len() as u64)
    }

    fn result(&self) -> Result<Tensor> {
        let Some(totals) = self.totals.now()? else { return Tensor::zeros([]) };
        let [squared_sum, sum, residual, count] = &totals[..] else { return Tensor::zeros([]) };
        let mean = sum.divide(count)?;
        let total = squared_sum.subtract(sum.multiply(mean)?)?;
        let raw = residual.divide(&total)?.negative()?.add(1.0)?;
        let scores = where_(&raw.is_inf()?, &raw.zeros_like()?, &raw)?;
        let score = match self.class_aggregation {
            ClassAggregation::UniformAverage => scores.reduce_mean(())?,
            ClassAggregation::VarianceWeightedAverage => {
                total.multiply(&scores)?.reduce_sum(())?.divide(total.reduce_sum(())?)?
            }
            ClassAggregation::None => scores,
        };
        if self.num_regressors == 0 {
            return Ok(score);
        }
        let regressors = self.num_regressors as f64;
        let enough = move |samples: f64| regressors < samples - 1.0;
        let samples = self.totals.count() as f64;
        if !enough(samples) && !eager::traces_function() {
            crate::warnings::warn_user!(
                "{}: {samples} numbers are too few to adjust the score for {regressors} regressors; it stays as it is.",
                self.name
            );
            return Ok(score);
        }
        let factor = self.totals.of_count(move |samples| {
            let samples = samples as f64;
            if enough(samples) { (samples - 1.0) / (samples - regressors - 1.0) } else { 1.0 }
        });
        score.negative()?.add(1.0)?.multiply(factor)?.negative()?.add(1.0)
    }

    fn reset_state(&self) -> Result<()> {
        self.totals.reset()
    }
}
