//! [`Auc`]: the area under a curve, such as ROC, over all thresholds.

use std::sync::OnceLock;

use super::Metric;
use super::row::metric;
use super::thresholds::{Counting, EPSILON, Thresholds};
use super::totals::Totals;
use super::trade_offs::{ALL, NAMES};
use crate::error::{Error, Result, message};
use crate::ops::where_;
use crate::tensor::Tensor;

/// The curve whose area [`Auc`] measures, by Keras's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Curve {
    /// The receiver operating characteristic: the true positive rate over the false positive rate.
    #[default]
    Roc,
    /// Precision over recall.
    Pr,
    /// Precision gain over recall gain (Flach and Kull 2015).
    PrGain,
}

/// The height of the curve between two thresholds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SummationMethod {
    /// The mean of both ends; for [`Curve::Pr`] with correctly interpolated precision (Davis and Goadrich 2006).
    #[default]
    Interpolation,
    /// The height of the higher end.
    Majoring,
    /// The height of the lower end.
    Minoring,
}

metric! {
    /// The area under a curve, approximated by a sum over many thresholds: both of the same shape, `y_true` of zeros
    /// and ones, `y_pred` of probabilities. For [`Curve::Roc`] it is the probability that a positive example has a
    /// higher prediction than a negative one.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::metrics::{Auc, Metric};
    /// let auc = Auc::default().num_thresholds(3_usize); // -1e-7, 0.5, 1 + 1e-7
    /// auc.update_state(&tf::constant([0, 0, 1, 1])?, &tf::constant([0.0, 0.5, 0.3, 0.9])?)?;
    /// assert_eq!(auc.result()?.item::<f32>()?, 0.75);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Auc["AUC"] = "auc" (totals: Totals = Totals::new(&NAMES), grid: OnceLock<Thresholds> = OnceLock::new()) {
        /// The number of thresholds, evenly spaced from 0 to 1.
        num_thresholds: usize = 200,
        /// The curve.
        curve: Curve = Curve::Roc,
        /// The height of the curve between two thresholds.
        summation_method: SummationMethod = SummationMethod::Interpolation,
        /// Thresholds between 0 and 1 that replace the evenly spaced ones; 0 and 1 are added.
        thresholds: Option<Vec<f32>> as impl Into<Option<Vec<f32>>> = None,
        /// Whether to compute a separate curve for each label of `[N,D]`, and the mean of their areas.
        multi_label: bool = false,
        /// The weights of the labels, the last axis.
        label_weights: Option<Tensor> as impl Into<Option<Tensor>> = None,
        /// Whether predictions are logits, to which the metric applies the sigmoid.
        from_logits: bool = false,
    }
}

impl Metric for Auc {
    fn name(&self) -> &str {
        &self.name
    }

    fn update(
        &self,
        y_true: &Tensor,
        y_pred: &Tensor,
        sample_weight: Option<&Tensor>,
    ) -> Result<()> {
        if self.thresholds.is_none() && self.num_thresholds < 2 {
            return Err(Error::Data(message!(
                "AUC: num_thresholds is {}; it must be at least 2.",
                self.num_thresholds
            )));
        }
        let sigmoid = if self.from_logits { Some(y_pred.stop_gradient().sigmoid()?) } else { None };
        let pair = [y_true, sigmoid.as_ref().unwrap_or(y_pred)];
        let label_weights = self.label_weights.as_ref().filter(|_| !self.multi_label);
        let how = Counting { multi_label: self.multi_label, label_weights, ..Counting::default() };
        let grid = self.grid.get_or_init(|| self.grid());
        let sums = grid.count("AUC", pair, sample_weight, &how, &ALL)?;
        self.totals.add(&self.name, &sums, 0)
    }

    fn result(&self) -> Result<Tensor> {
        match self.totals.now()?.as_deref() {
            Some([tp, fp, tn, fn_]) => self.area(tp, fp, tn, fn_),
            _ => Tensor::zeros([]),
        }
    }

    fn reset_state(&self) -> Result<()> {
        self.totals.reset()
    }
}

impl Auc {
    fn grid(&self) -> Thresholds {
        let mut inner = match &self.thresholds {
            Some(thresholds) => thresholds.clone(),
            None => {
                let spaces = (self.num_thresholds - 1) as f64;
                (1..self.num_thresholds - 1).map(|i| (i as f64 / spaces) as f32).collect()
            }
        };
        inner.sort_by(f32::total_cmp);
        inner.insert(0, -EPSILON);
        inner.push(1.0 + EPSILON);
        inner.into()
    }

    fn area(&self, tp: &Tensor, fp: &Tensor, tn: &Tensor, fn_: &Tensor) -> Result<Tensor> {
        if (self.curve, self.summation_method) == (Curve::Pr, SummationMethod::Interpolation) {
            return self.of_labels(pr_areas(tp, fp, fn_)?);
        }
        let share = |right: &Tensor, wrong: &Tensor| right.divide_no_nan(right.add(wrong)?);
        let recall = share(tp, fn_)?;
        let (x, y) = match self.curve {
            Curve::Roc => (share(fp, tn)?, recall),
            Curve::Pr => (recall, share(tp, fp)?),
            Curve::PrGain => {
                let scale = tp.add(fn_)?.divide_no_nan(tn.add(fp)?)?;
                let gain =
                    |wrong: &Tensor| scale.multiply(wrong.divide_no_nan(tp)?)?.negative()?.add(1.0);
                let none = tp.equal(0.0)?;
                let recall = where_(&none, &tp.zeros_like()?, &gain(fn_)?)?;
                (recall.maximum(0.0)?, where_(&none, &tp.ones_like()?, &gain(fp)?)?)
            }
        };
        let [low, high] = ends(&y)?;
        let height = match self.summation_method {
            SummationMethod::Interpolation => low.add(high)?.divide(2.0)?,
            SummationMethod::Majoring => low.maximum(high)?,
            SummationMethod::Minoring => low.minimum(high)?,
        };
        let [left, right] = ends(&x)?;
        self.of_labels(left.subtract(right)?.multiply(height)?)
    }

    /// The sum of the areas between thresholds, `[T-1]` or `[T-1,D]`; with several labels, the weighted mean of their
    /// sums.
    fn of_labels(&self, areas: Tensor) -> Result<Tensor> {
        if !self.multi_label {
            return areas.reduce_sum(());
        }
        let labels = areas.reduce_sum(0)?;
        match &self.label_weights {
            None => labels.reduce_mean(()),
            Some(weights) => {
                let weights = weights.cast(labels.dtype())?;
                let sum = labels.multiply(&weights)?.reduce_sum(())?;
                sum.divide_no_nan(weights.reduce_sum(())?)
            }
        }
    }
}

/// All elements along the first axis but the last, and all but the first.
fn ends(x: &Tensor) -> Result<[Tensor; 2]> {
    let (mut begin, mut size) = (vec![0; x.rank()], vec![-1; x.rank()]);
    size[0] = x.shape()[0] as i64 - 1;
    let low = x.slice(&begin, &size)?;
    begin[0] = 1;
    Ok([low, x.slice(&begin, &size)?])
}

/// Areas under precision over recall, where true positives increase linearly with predicted positives between two
/// thresholds.
fn pr_areas(tp: &Tensor, fp: &Tensor, fn_: &Tensor) -> Result<Tensor> {
    let [tp_low, tp_high] = ends(tp)?;
    let [low, high] = ends(&tp.add(fp)?)?;
    let dtp = tp_low.subtract(&tp_high)?;
    let slope = dtp.divide_no_nan(low.subtract(&high)?.maximum(0.0)?)?;
    let intercept = tp_high.subtract(slope.multiply(&high)?)?;
    let both = low.greater(0.0)?.logical_and(high.greater(0.0)?)?;
    let ratio = where_(&both, &low.divide_no_nan(high.maximum(0.0)?)?, &high.ones_like()?)?;
    let rise = slope.multiply(dtp.add(intercept.multiply(ratio.log()?)?)?)?;
    let [_, fn_high] = ends(fn_)?;
    rise.divide_no_nan(tp_high.add(fn_high)?.maximum(0.0)?)
}
