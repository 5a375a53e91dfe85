//! Counts true and false positives and negatives at thresholds.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use super::weights::along;
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::losses::agree_cast;
use crate::ops::{arange, one_hot, where_};
use crate::tensor::Tensor;

/// An entry of the confusion matrix, which is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Count {
    TruePositives,
    FalsePositives,
    TrueNegatives,
    FalseNegatives,
}

/// Thresholds from 0 to 1; predictions above a threshold are positive. An `f32` and lists of `f32` convert to this type. For a
/// list, a metric returns a number for each threshold.
#[derive(Debug, Default)]
pub struct Thresholds {
    /// `None` if they are not set.
    values: Option<Vec<f32>>,
    /// The values on the device that used them last.
    tensor: Mutex<Option<Tensor>>,
}

/// The options of counting.
#[derive(Debug, Default)]
pub(super) struct Counting<'a> {
    /// Only the largest `k` predictions of a row may be positive.
    pub(super) top_k: Option<usize>,
    /// Only this class is considered.
    pub(super) class_id: Option<usize>,
    /// Whether each label is counted separately: `[N,D]` results in `[T,D]`.
    pub(super) multi_label: bool,
    /// Weights of the labels, the last axis.
    pub(super) label_weights: Option<&'a Tensor>,
}

/// As in Keras, predictions that are not among the largest are set to this value, which is below all other thresholds.
const NEG_INF: f32 = -1e10;
/// Keras's `epsilon()`, the distance of AUC's outer thresholds from 0 and 1.
pub(super) const EPSILON: f32 = 1e-7;

macro_rules! from {
    ($([$($generics:tt)*] $list:ty),*) => {$(
        impl<$($generics)*> From<$list> for Thresholds {
            fn from(values: $list) -> Self {
                Thresholds { values: Some(values.to_vec()), tensor: Mutex::default() }
            }
        }
    )*};
}
from!([] Vec<f32>, [] &[f32], [const N: usize] [f32; N]);

impl From<f32> for Thresholds {
    fn from(value: f32) -> Self {
        Thresholds::from([value])
    }
}

impl Thresholds {
    /// `count` evenly spaced thresholds from 0 to 1.
    pub(super) fn even(count: usize) -> Self {
        if count < 2 {
            return Thresholds::from(vec![0.5; count]);
        }
        let place = |i: usize| (i as f64 / (count - 1) as f64) as f32;
        Thresholds::from((0..count).map(place).collect::<Vec<_>>())
    }

    /// These thresholds, or a single default if they are not set.
    fn or(&self, default: f32) -> Cow<'_, [f32]> {
        match &self.values {
            Some(values) => Cow::Borrowed(values),
            None => Cow::Owned(vec![default]),
        }
    }

    /// Whether the thresholds are evenly spaced. As in Keras, predictions are then compared by the index of the interval into
    /// which they fall.
    fn are_even(values: &[f32]) -> bool {
        let last = values.len().saturating_sub(1) as f32;
        // NumPy's allclose.
        let near = |(i, t): (usize, &f32)| {
            let even = i as f32 / last;
            (t - even).abs() <= EPSILON * 1.001 + 1e-5 * even
        };
        values.len() >= 3 && values.iter().enumerate().all(near)
    }

    /// Whether each prediction is above each threshold, with the thresholds along a new first axis.
    fn above(&self, values: &[f32], y_pred: &Tensor) -> Result<Tensor> {
        let device = y_pred.device();
        let column = |row: Tensor| {
            let mut sizes = vec![1; y_pred.rank() + 1];
            sizes[0] = values.len();
            row.reshape(&sizes[..])
        };
        let predictions = y_pred.expand_dims(0)?;
        if let [only] = *values {
            return predictions.greater(only);
        }
        if Thresholds::are_even(values) {
            let spaces = (values.len() - 1) as f64;
            let place =
                predictions.clip_by_value(0.0, 1.0)?.multiply(spaces)?.ceil()?.subtract(1.0)?;
            // If the first threshold is below 0, all predictions are above it.
            let below = values[0] < 0.0 || values[values.len() - 1] > 1.0;
            let place = if below { place.relu()? } else { place };
            let numbers =
                device.scope(|| arange(0.0.into(), (values.len() as f64).into(), 1.0.into()))?;
            return place.greater_equal(column(numbers.cast(DType::F32)?)?);
        }
        let mut kept = self.tensor.lock().unwrap_or_else(PoisonError::into_inner);
        let row = match &*kept {
            Some(row) if row.device() == device => row.clone(),
            _ => device.scope(|| Tensor::from_slice(values, [values.len()]))?,
        };
        *kept = Some(row.clone());
        predictions.greater(column(row)?)
    }

    /// A batch's counts `[T]` (or `[T,D]`), one for each of `wanted`.
    pub(super) fn count(
        &self,
        metric: &str,
        [y_true, y_pred]: [&Tensor; 2],
        sample_weight: Option<&Tensor>,
        how: &Counting<'_>,
        wanted: &[Count],
    ) -> Result<Vec<Tensor>> {
        let values = self.or(if how.top_k.is_some() { NEG_INF } else { 0.5 });
        check(metric, &values, how)?;
        let [mut y_true, mut y_pred] = agree_cast(metric, y_true, &y_pred.stop_gradient())?;
        if how.multi_label && y_pred.rank() != 2 {
            return Err(Error::Shape(message!(
                "{metric}: y_pred is {:?}; with multi_label it must be [N,D].",
                y_pred.shape()
            )));
        }
        if let Some(k) = how.top_k {
            y_pred = only_top_k(&y_pred, k)?;
        }
        if let Some(class) = how.class_id {
            y_true = only_class(metric, &y_true, class)?;
            y_pred = only_class(metric, &y_pred, class)?;
        }
        let mut weight = along(metric, sample_weight, &y_pred)?;
        if let Some(labels) = how.label_weights {
            let labels = labels.cast(DType::F32)?.broadcast_to(y_pred.shape())?;
            weight = Some(match weight {
                Some(weight) => weight.multiply(labels)?,
                None => labels,
            });
        }
        let flat = |x: Tensor| if how.multi_label { Ok(x) } else { x.reshape([-1]) };
        let (truth, y_pred) = (flat(y_true)?.not_equal(0.0)?, flat(y_pred)?);
        let weight = weight.map(flat).transpose()?;
        let positive = self.above(&values, &y_pred)?;
        let sum = |of: Tensor, axis: usize| -> Result<Tensor> {
            let ones = of.cast(DType::F32)?;
            match &weight {
                Some(weight) => ones.multiply(weight)?.reduce_sum(axis as i64),
                None => ones.reduce_sum(axis as i64),
            }
        };
        let counted = |count: Count| -> Result<Tensor> {
            let (is, said) = match count {
                Count::TruePositives => (truth.clone(), positive.clone()),
                Count::FalsePositives => (truth.logical_not()?, positive.clone()),
                Count::TrueNegatives => (truth.logical_not()?, positive.logical_not()?),
                Count::FalseNegatives => (truth.clone(), positive.logical_not()?),
            };
            sum(is.expand_dims(0)?.logical_and(said)?, 1)
        };
        wanted.iter().map(|count| counted(*count)).collect()
    }
}

fn check(metric: &str, thresholds: &[f32], how: &Counting<'_>) -> Result<()> {
    // AUC's outer thresholds are outside the range, and a metric with `top_k` needs no threshold.
    let fits = |t: &&f32| {
        (-EPSILON..=1.0 + 2.0 * EPSILON).contains(*t) || how.top_k.is_some() && **t == NEG_INF
    };
    if let Some(bad) = thresholds.iter().find(|t| !fits(t)) {
        return Err(Error::Data(message!(
            "{metric}: a threshold is {bad}; thresholds must be in 0 to 1."
        )));
    }
    match thresholds.is_empty() {
        true => {
            Err(Error::Data(message!("{metric}: there are no thresholds; give it one or more.")))
        }
        false => Ok(()),
    }
}

fn only_top_k(y_pred: &Tensor, k: usize) -> Result<Tensor> {
    let (_, places) = y_pred.top_k(k)?;
    let classes = y_pred.shape().last().copied().unwrap_or(1);
    let hot = y_pred.device().scope(|| one_hot(&places, classes))?;
    let among = hot.reduce_sum(-2)?.greater(0.0)?;
    let low = y_pred.device().scope(|| Tensor::full([], NEG_INF))?;
    where_(&among, y_pred, &low)
}

fn only_class(metric: &str, x: &Tensor, class: usize) -> Result<Tensor> {
    let classes = x.shape().last().copied().unwrap_or(0);
    if x.rank() < 2 || class >= classes {
        return Err(Error::Shape(message!(
            "{metric}: class_id is {class} and the predictions are {:?}; they must be [..,C] with C above class_id.",
            x.shape()
        )));
    }
    let (mut begin, mut size) = (vec![0; x.rank()], vec![-1; x.rank()]);
    (begin[x.rank() - 1], size[x.rank() - 1]) = (class, 1);
    x.slice(&begin, &size)
}
