//! Counts of true and false positives and negatives, precision and recall.

use super::Metric;
use super::row::metric;
use super::thresholds::{Count, Counting, Thresholds};
use super::totals::Totals;
use crate::error::Result;
use crate::tensor::Tensor;

/// A number for each threshold, or a scalar for one threshold.
fn for_thresholds(y: &Tensor) -> Result<Tensor> {
    if y.len() == 1 { y.reshape(()) } else { Ok(y.clone()) }
}

macro_rules! count {
    ($($(#[$doc:meta])* pub struct $name:ident = $keras:literal;)*) => {$(
        metric! {
            $(#[$doc])*
            pub struct $name = $keras (totals: Totals = Totals::new(&["accumulator"])) {
                /// The threshold above which predictions are positive. Default: 0.5.
                thresholds: Thresholds as impl Into<Thresholds> = Thresholds::default(),
            }
        }

        impl Metric for $name {
            fn name(&self) -> &str {
                &self.name
            }

            fn update(&self, y_true: &Tensor, y_pred: &Tensor, sample_weight: Option<&Tensor>) -> Result<()> {
                let (how, wanted) = (Counting::default(), [Count::$name]);
                let pair = [y_true, y_pred];
                let sums = self.thresholds.count(stringify!($name), pair, sample_weight, &how, &wanted)?;
                self.totals.add(&self.name, &sums, 0)
            }

            fn result(&self) -> Result<Tensor> {
                match self.totals.now()? {
                    Some(totals) => for_thresholds(&totals[0]),
                    None => Tensor::zeros([]),
                }
            }

            fn reset_state(&self) -> Result<()> {
                self.totals.reset()
            }
        }
    )*};
}
count! {
    /// The weighted number of true positives: both of the same shape, `y_true` of zeros and ones.
    pub struct TruePositives = "true_positives";

    /// The weighted number of false positives: both of the same shape, `y_true` of zeros and ones.
    pub struct FalsePositives = "false_positives";

    /// The weighted number of true negatives: both of the same shape, `y_true` of zeros and ones.
    pub struct TrueNegatives = "true_negatives";

    /// The weighted number of false negatives: both of the same shape, `y_true` of zeros and ones.
    pub struct FalseNegatives = "false_negatives";
}

macro_rules! share {
    ($($(#[$doc:meta])* pub struct $name:ident = $keras:literal, $right:ident $right_name:literal, $wrong:ident $wrong_name:literal;)*) => {$(
        metric! {
            $(#[$doc])*
            pub struct $name = $keras (totals: Totals = Totals::new(&[$right_name, $wrong_name])) {
                /// The threshold above which predictions are positive. Default: 0.5, or none with `top_k`.
                thresholds: Thresholds as impl Into<Thresholds> = Thresholds::default(),
                /// How many of a row's predictions, the largest ones, may be positive. Default: all.
                top_k: Option<usize> as impl Into<Option<usize>> = None,
                /// The class, an index of the last axis, to consider. Default: all.
                class_id: Option<usize> as impl Into<Option<usize>> = None,
            }
        }

        impl Metric for $name {
            fn name(&self) -> &str {
                &self.name
            }

            fn update(&self, y_true: &Tensor, y_pred: &Tensor, sample_weight: Option<&Tensor>) -> Result<()> {
                let how = Counting { top_k: self.top_k, class_id: self.class_id, ..Counting::default() };
                let (pair, wanted) = ([y_true, y_pred], [Count::$right, Count::$wrong]);
                let sums = self.thresholds.count(stringify!($name), pair, sample_weight, &how, &wanted)?;
                self.totals.add(&self.name, &sums, 0)
            }

            fn result(&self) -> Result<Tensor> {
                match self.totals.now()?.as_deref() {
                    Some([right, wrong]) => for_thresholds(&right.divide_no_nan(right.add(wrong)?)?),
                    _ => Tensor::zeros([]),
                }
            }

            fn reset_state(&self) -> Result<()> {
                self.totals.reset()
            }
        }
    )*};
}
share! {
    /// The fraction of positive predictions that are right: both of the same shape, `y_true` of zeros and ones.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::metrics::{Metric, Precision};
    /// let precision = Precision::default().thresholds([0.25, 0.75]);
    /// let (y_true, y_pred) = (tf::constant([0, 1, 1, 1])?, tf::constant([0.5, 0.9, 0.3, 0.8])?);
    /// precision.update_state(&y_true, &y_pred)?;
    /// assert_eq!(precision.result()?.to_vec::<f32>()?, [0.75, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Precision = "precision", TruePositives "true_positives", FalsePositives "false_positives";

    /// The fraction of positive examples that are predicted positive: both of the same shape, `y_true` of zeros and
    /// ones.
    pub struct Recall = "recall", TruePositives "true_positives", FalseNegatives "false_negatives";
}
