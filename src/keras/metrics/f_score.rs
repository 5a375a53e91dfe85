//! The F-scores of classes.

use super::Metric;
use super::row::metric;
use super::totals::Totals;
use super::weights::along;
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::losses::{EPSILON, agree_cast};
use crate::shape::Axes;
use crate::tensor::Tensor;

/// How the scores of the classes are combined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Average {
    /// No combination: one score for each class.
    #[default]
    None,
    /// The score of the summed counts of all classes.
    Micro,
    /// The mean of the scores.
    Macro,
    /// The mean of the scores, each weighted by the number of positive examples of its class.
    Weighted,
}

const NAMES: [&str; 4] =
    ["true_positives", "false_positives", "false_negatives", "intermediate_weights"];

metric! {
    /// `(1 + beta^2) p r / (beta^2 p + r)` of precision `p` and recall `r`: both `[N,C]`, `y_true` of zeros and ones. In each
    /// row the largest prediction is positive, or all predictions above a threshold are.
    pub struct FBetaScore = "fbeta_score" (totals: Totals = Totals::new(&NAMES)) {
        /// How the scores of the classes are combined.
        average: Average = Average::None,
        /// The weight of recall relative to precision.
        beta: f32 = 1.0,
        /// The threshold above which predictions are positive. Default: the largest prediction of a row is positive.
        threshold: Option<f32> as impl Into<Option<f32>> = None,
    }
}

metric! {
    /// `2 p r / (p + r)` of precision `p` and recall `r`: both `[N,C]`, `y_true` of zeros and ones. In each row the largest
    /// prediction is positive, or all predictions above a threshold are.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::metrics::{Average, F1Score, Metric};
    /// let score = F1Score::default().average(Average::Micro);
    /// score.update_state(&tf::constant([[1, 0], [0, 1]])?, &tf::constant([[0.9, 0.1], [0.8, 0.2]])?)?;
    /// assert!((score.result()?.item::<f32>()? - 0.5).abs() < 1e-6);
    /// # Ok(())
    /// # }
    /// ```
    pub struct F1Score = "f1_score" (totals: Totals = Totals::new(&NAMES)) {
        /// How the scores of the classes are combined.
        average: Average = Average::None,
        /// The threshold above which predictions are positive. Default: the largest prediction of a row is positive.
        threshold: Option<f32> as impl Into<Option<f32>> = None,
    }
}

macro_rules! score {
    ($($name:ident |$metric:ident| $beta:expr;)*) => {$(
        impl Metric for $name {
            fn name(&self) -> &str {
                &self.name
            }

            fn update(
                &self,
                y_true: &Tensor,
                y_pred: &Tensor,
                sample_weight: Option<&Tensor>,
            ) -> Result<()> {
                let $metric = self;
                let beta: f32 = $beta;
                if beta.is_nan() || beta <= 0.0 {
                    return Err(Error::Data(message!(
                        "{}: beta is {beta}; it must be above 0.",
                        stringify!($name)
                    )));
                }
                let options = (self.average, self.threshold);
                let sums = counts(stringify!($name), options, [y_true, y_pred], sample_weight)?;
                self.totals.add(&self.name, &sums, 0)
            }

            fn result(&self) -> Result<Tensor> {
                let $metric = self;
                match self.totals.now()?.as_deref() {
                    Some(totals) => score(totals, self.average, f64::from($beta)),
                    None => Tensor::zeros([]),
                }
            }

            fn reset_state(&self) -> Result<()> {
                self.totals.reset()
            }
        }
    )*};
}
score! {
    FBetaScore |metric| metric.beta;
    F1Score |_metric| 1.0f32;
}

fn counts(
    metric: &str,
    (average, threshold): (Average, Option<f32>),
    [y_true, y_pred]: [&Tensor; 2],
    sample_weight: Option<&Tensor>,
) -> Result<[Tensor; 4]> {
    if let Some(bad) = threshold.filter(|t| !(*t > 0.0 && *t <= 1.0)) {
        return Err(Error::Data(message!(
            "{metric}: threshold is {bad}; it must be above 0 and at most 1."
        )));
    }
    let [y_true, y_pred] = agree_cast(metric, y_true, &y_pred.stop_gradient())?;
    if y_pred.rank() != 2 {
        return Err(Error::Shape(message!(
            "{metric}: y_true and y_pred are {:?}; they must be [N,C]. Reshape them.",
            y_pred.shape()
        )));
    }
    let positive = match threshold {
        Some(threshold) => y_pred.greater(threshold)?,
        // In Keras, a prediction of 0 is never positive.
        None => {
            let largest = y_pred.reduce_max(Axes::from(-1).keepdims(true))?;
            y_pred.greater_equal(largest)?.logical_and(y_pred.abs()?.greater(1e-9)?)?
        }
    };
    let positive = positive.cast(DType::F32)?;
    let weight = along(metric, sample_weight, &y_pred)?;
    let axes = if average == Average::Micro { Axes::ALL } else { Axes::from(0) };
    let sum = |x: Tensor| match &weight {
        Some(weight) => x.multiply(weight)?.reduce_sum(&axes),
        None => x.reduce_sum(&axes),
    };
    let negative = positive.negative()?.add(1.0)?;
    let wrong = y_true.negative()?.add(1.0)?;
    Ok([
        sum(positive.multiply(&y_true)?)?,
        sum(positive.multiply(wrong)?)?,
        sum(negative.multiply(&y_true)?)?,
        sum(y_true)?,
    ])
}

fn score(totals: &[Tensor], average: Average, beta: f64) -> Result<Tensor> {
    let share = |wrong: &Tensor| totals[0].divide(totals[0].add(wrong)?.add(EPSILON)?);
    let (precision, recall) = (share(&totals[1])?, share(&totals[2])?);
    let sum = precision.multiply(beta * beta)?.add(&recall)?.add(EPSILON)?;
    let scores = precision.multiply(&recall)?.divide(sum)?.multiply(1.0 + beta * beta)?;
    match average {
        Average::None => Ok(scores),
        Average::Micro | Average::Macro => scores.reduce_mean(()),
        Average::Weighted => {
            let weights = totals[3].divide(totals[3].reduce_sum(())?.add(EPSILON)?)?;
            scores.multiply(weights)?.reduce_sum(())
        }
    }
}
