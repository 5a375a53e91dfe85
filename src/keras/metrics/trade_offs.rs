//! The best value of one rate over all thresholds for which another rate is high enough.

use std::sync::OnceLock;

use super::Metric;
use super::thresholds::{Count, Counting, Thresholds};
use super::totals::Totals;
use crate::error::{Error, Result, message};
use crate::ops::where_;
use crate::tensor::Tensor;

/// True and false positives, true and false negatives.
pub(super) const ALL: [Count; 4] =
    [Count::TruePositives, Count::FalsePositives, Count::TrueNegatives, Count::FalseNegatives];
pub(super) const NAMES: [&str; 4] =
    ["true_positives", "false_positives", "true_negatives", "false_negatives"];

/// The indices of the right and the wrong count of a rate, such as true positives and false negatives.
const SENSITIVITY: [usize; 2] = [0, 3];
const SPECIFICITY: [usize; 2] = [2, 1];
const PRECISION: [usize; 2] = [0, 1];

fn share(totals: &[Tensor], [right, wrong]: [usize; 2]) -> Result<Tensor> {
    totals[right].divide_no_nan(totals[right].add(&totals[wrong])?)
}

macro_rules! trade_off {
    ($($(#[$doc:meta])* pub struct $name:ident = $keras:literal, $best:ident while $held:ident >= $least:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name {
            name: String,
            totals: Totals,
            thresholds: OnceLock<Thresholds>,
            $least: f32,
            num_thresholds: usize,
            class_id: Option<usize>,
        }

        impl $name {
            #[doc = concat!("Creates a metric with this name (Keras's default: `", $keras, "`).")]
            pub fn new(name: impl Into<String>, $least: f32) -> Self {
                let (totals, thresholds) = (Totals::new(&NAMES), OnceLock::new());
                $name { name: name.into(), totals, thresholds, $least, num_thresholds: 200, class_id: None }
            }

            /// Sets how many thresholds from 0 to 1 to try. Default: 200.
            #[must_use]
            pub fn num_thresholds(mut self, num_thresholds: usize) -> Self {
                self.num_thresholds = num_thresholds;
                self
            }

            /// Sets the class, an index of the last axis, to consider. Default: all.
            #[must_use]
            pub fn class_id(mut self, class_id: impl Into<Option<usize>>) -> Self {
                self.class_id = class_id.into();
                self
            }
        }

        impl crate::trackable::Trackable for $name {
            fn track(&self, parts: &mut crate::trackable::Parts<'_>) {
                self.totals.track(parts);
            }
        }

        impl Metric for $name {
            fn name(&self) -> &str {
                &self.name
            }

            fn update(&self, y_true: &Tensor, y_pred: &Tensor, sample_weight: Option<&Tensor>) -> Result<()> {
                if !(0.0..=1.0).contains(&self.$least) {
                    return Err(Error::Data(message!(
                        "{}: {} is {}; it must be in 0 to 1.", stringify!($name), stringify!($least), self.$least
                    )));
                }
                let thresholds = self.thresholds.get_or_init(|| Thresholds::even(self.num_thresholds));
                let how = Counting { class_id: self.class_id, ..Counting::default() };
                let pair = [y_true, y_pred];
                let sums = thresholds.count(stringify!($name), pair, sample_weight, &how, &ALL)?;
                self.totals.add(&self.name, &sums, 0)
            }

            fn result(&self) -> Result<Tensor> {
                let Some(totals) = self.totals.now()? else { return Tensor::zeros([]) };
                let (best, feasible) =
                    (share(&totals, $best)?, share(&totals, $held)?.greater_equal(self.$least)?);
                where_(&feasible, &best, &best.zeros_like()?)?.reduce_max(())?.maximum(0.0)
            }

            fn reset_state(&self) -> Result<()> {
                self.totals.reset()
            }
        }
    )*};
}
trade_off! {
    /// The highest sensitivity, `tp / (tp + fn)`, over all thresholds with a specificity, `tn / (tn + fp)`, of at least this
    /// value.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::metrics::{Metric, SensitivityAtSpecificity};
    /// let metric = SensitivityAtSpecificity::new("sensitivity", 0.5);
    /// let y_pred = tf::constant([0.0, 0.3, 0.8, 0.3, 0.8])?;
    /// metric.update_state(&tf::constant([0, 0, 0, 1, 1])?, &y_pred)?;
    /// assert_eq!(metric.result()?.item::<f32>()?, 0.5);
    /// # Ok(())
    /// # }
    /// ```
    pub struct SensitivityAtSpecificity = "sensitivity_at_specificity", SENSITIVITY while SPECIFICITY >= specificity;

    /// The highest specificity, `tn / (tn + fp)`, over all thresholds with a sensitivity, `tp / (tp + fn)`, of at least this
    /// value.
    pub struct SpecificityAtSensitivity = "specificity_at_sensitivity", SPECIFICITY while SENSITIVITY >= sensitivity;

    /// The highest precision, `tp / (tp + fp)`, over all thresholds with a recall, `tp / (tp + fn)`, of at least this value.
    pub struct PrecisionAtRecall = "precision_at_recall", PRECISION while SENSITIVITY >= recall;

    /// The highest recall, `tp / (tp + fn)`, over all thresholds with a precision, `tp / (tp + fp)`, of at least this value.
    pub struct RecallAtPrecision = "recall_at_precision", SENSITIVITY while PRECISION >= precision;
}
