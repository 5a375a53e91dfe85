//! Metrics accumulate numbers over many batches, without reading anything back on the way.
//!
//! The device holds the total and the host the count, which shapes tell it. [`Metric::result`] is a tensor, which a
//! program reads when it wants to see the number.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::losses::class_labels;
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::graph;
use crate::tensor::Tensor;
use crate::trackable::{NamedArray, Parts, Slot, Trackable};
use crate::variable::Variable;

/// A number accumulated from pairs of truth and prediction.
pub trait Metric: Trackable {
    /// The metric's name in messages and logs.
    fn name(&self) -> &str;

    /// Adds a batch.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::DType`] if truth and predictions do not fit together.
    fn update_state(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<()>;

    /// The value over all batches since the last reset, a scalar; 0 before the first.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no device.
    fn result(&self) -> Result<Tensor>;

    /// Starts again from nothing.
    ///
    /// # Errors
    /// [`Error::Device`] if the device's memory is used up.
    fn reset_state(&self) -> Result<()>;
}

/// The mean of all values added, each of the same weight.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let mean = tf::keras::metrics::Mean::new("loss");
/// mean.update_state(&tf::constant([1.0, 2.0])?)?;
/// mean.update_state(&tf::constant(6.0)?)?;
/// assert_eq!(mean.result()?.item::<f32>()?, 3.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Mean {
    name: String,
    /// The first values' device holds it.
    total: Slot,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    count: usize,
    /// The last total that the device has certainly computed, and its count.
    safe: Option<(Tensor, usize)>,
}

impl Mean {
    /// A mean of nothing.
    pub fn new(name: impl Into<String>) -> Self {
        Mean { name: name.into(), total: Slot::new(false), state: Mutex::default() }
    }

    /// The metric's name in messages and logs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds all elements of `values`, whatever their shape.
    ///
    /// # Errors
    /// [`Error::DType`] if the dtype is not numeric; [`Error::Device`] if values of two devices meet between resets.
    pub fn update_state(&self, values: &Tensor) -> Result<()> {
        // No gradient goes through a metric.
        let values = values.stop_gradient().cast(DType::F32)?;
        self.count_in(values.reduce_sum(())?, values.len())
    }

    /// The mean, a scalar; 0 before the first value.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no device.
    pub fn result(&self) -> Result<Tensor> {
        let state = self.state();
        match self.total()? {
            Some(total) if state.count > 0 => total.read_stopped().divide(state.count),
            _ => Tensor::zeros([]),
        }
    }

    /// Starts again from nothing.
    ///
    /// # Errors
    /// [`Error::Device`] if the device's memory is used up.
    pub fn reset_state(&self) -> Result<()> {
        let mut state = self.state();
        state.count = 0;
        state.safe = None;
        match self.total()? {
            Some(total) => total.assign(&total.peek().zeros_like()?),
            None => Ok(()),
        }
    }

    fn count_in(&self, sum: Tensor, count: usize) -> Result<()> {
        let mut state = self.state();
        match sum.device().scope(|| self.total())? {
            Some(total) => {
                state.heal(&self.name, total)?;
                match state.count {
                    // After a reset the metric moves to the values' device.
                    0 => total.assign(&sum)?,
                    _ => total.assign(&total.read_stopped().add(sum)?)?,
                }
            }
            None => drop(self.total.get_or_make(|_| Ok(sum))?),
        }
        state.count += count;
        Ok(())
    }

    /// The total, if values or a checkpoint have given one.
    fn total(&self) -> Result<Option<&Variable>> {
        if self.total.left().is_some() {
            let value = |left: Option<&NamedArray<'_>>| match left {
                Some(left) => left.to_tensor(&[], DType::F32),
                None => Tensor::zeros([]),
            };
            return self.total.get_or_make(value).map(Some);
        }
        Ok(self.total.variable())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trackable for Mean {
    fn track(&self, parts: &mut Parts<'_>) {
        parts.add("total", &self.total);
        let set = |count| *self.state() = State { count: count as usize, safe: None };
        parts.number("count", || self.state().count as u64, set);
    }
}

impl State {
    /// The device computes a total along with the training step that follows. If that fails, the metric goes on from
    /// the total before, so that one failed step does not spoil every later one.
    fn heal(&mut self, name: &str, total: &Variable) -> Result<()> {
        let now = total.peek();
        match now.value().state() {
            graph::ValueState::Ready(_) => self.safe = Some((now, self.count)),
            graph::ValueState::Waiting(_) => {}
            graph::ValueState::Failed(error) => {
                log::warn!("{name}: a step failed ({error}); its values are not counted.");
                match &self.safe {
                    Some((safe, count)) => {
                        total.assign(safe)?;
                        self.count = *count;
                    }
                    None => self.count = 0,
                }
            }
        }
        Ok(())
    }
}

/// The share of rows whose largest prediction is the label's: labels `[..]` or `[..,1]`, predictions `[..,C]`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::metrics::{Metric, SparseCategoricalAccuracy};
/// let accuracy = SparseCategoricalAccuracy::new("accuracy");
/// accuracy.update_state(&tf::constant([0, 1])?, &tf::constant([[0.9, 0.1], [0.8, 0.2]])?)?;
/// assert_eq!(accuracy.result()?.item::<f32>()?, 0.5);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Trackable)]
pub struct SparseCategoricalAccuracy {
    #[track(flatten)]
    mean: Mean,
}

impl SparseCategoricalAccuracy {
    /// An accuracy of nothing.
    pub fn new(name: impl Into<String>) -> Self {
        SparseCategoricalAccuracy { mean: Mean::new(name) }
    }
}

impl Metric for SparseCategoricalAccuracy {
    fn name(&self) -> &str {
        self.mean.name()
    }

    fn update_state(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<()> {
        let labels = class_labels(y_true, y_pred)?;
        let places = y_pred.stop_gradient().argmax(-1)?;
        if labels.shape() != places.shape() {
            return Err(Error::Shape(message!(
                "SparseCategoricalAccuracy: y_true is {:?} and y_pred is {:?}; labels need the shape of the predictions \
                 without the last axis.",
                y_true.shape(),
                y_pred.shape()
            )));
        }
        let hits = places.equal(&labels)?.cast(DType::F32)?.reduce_sum(())?;
        self.mean.count_in(hits, labels.len())
    }

    fn result(&self) -> Result<Tensor> {
        self.mean.result()
    }

    fn reset_state(&self) -> Result<()> {
        self.mean.reset_state()
    }
}
