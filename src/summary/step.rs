//! [`Step`]: the training step of a summary.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// The step of a summary: a number, an integer variable or tensor, which is read with the summaries, or `()` for the default
/// of [`set_step`](super::set_step) and [`as_default_at`](super::FileWriter::as_default_at).
#[derive(Debug, Clone)]
pub struct Step(pub(super) StepSource);

#[derive(Debug, Clone)]
pub(super) enum StepSource {
    Default,
    Number(i64),
    /// A number too large for TensorFlow's steps.
    TooLarge(u64),
    Variable(Variable),
    Tensor(Tensor),
    Counter(Arc<AtomicU64>),
}

/// The step at the time of the summary.
pub(super) enum Moment {
    Known(i64),
    /// A tensor of one integer, still on the device.
    Unread(Tensor),
}

impl Step {
    /// The current step; `Ok(None)` for the default.
    pub(super) fn now(&self, function: &str) -> Result<Option<Moment>> {
        let large = |number: u64| {
            Error::Data(message!("{function}: the step is {number}; steps end at 2^63 - 1."))
        };
        Ok(Some(match &self.0 {
            StepSource::Default => return Ok(None),
            StepSource::Number(number) => Moment::Known(*number),
            StepSource::TooLarge(number) => return Err(large(*number)),
            StepSource::Counter(counter) => {
                let number = counter.load(Ordering::Relaxed);
                Moment::Known(i64::try_from(number).map_err(|_| large(number))?)
            }
            StepSource::Variable(variable) => unread(function, variable.read())?,
            StepSource::Tensor(tensor) => unread(function, tensor.clone())?,
        }))
    }
}

fn unread(function: &str, tensor: Tensor) -> Result<Moment> {
    if tensor.len() == 1 && tensor.dtype().is_int() {
        return Ok(Moment::Unread(tensor));
    }
    let (dtype, shape): (DType, _) = (tensor.dtype(), tensor.shape());
    Err(Error::DType(message!(
        "{function}: the step is a {dtype} of shape {shape:?}; a step is one integer. Cast it, or pass a number."
    )))
}

impl From<()> for Step {
    fn from((): ()) -> Self {
        Step(StepSource::Default)
    }
}

macro_rules! numbers {
    ($($t:ty),*) => {$(
        impl From<$t> for Step {
            fn from(number: $t) -> Self {
                match i64::try_from(number) {
                    Ok(number) => Step(StepSource::Number(number)),
                    Err(_) => Step(StepSource::TooLarge(number as u64)),
                }
            }
        }
    )*};
}
numbers!(i32, i64, u32, u64, usize);

impl From<&Variable> for Step {
    fn from(variable: &Variable) -> Self {
        Step(StepSource::Variable(variable.clone()))
    }
}

impl From<&Tensor> for Step {
    fn from(tensor: &Tensor) -> Self {
        Step(StepSource::Tensor(tensor.clone()))
    }
}

/// A counter of the program: each summary uses its current value.
impl From<&Arc<AtomicU64>> for Step {
    fn from(counter: &Arc<AtomicU64>) -> Self {
        Step(StepSource::Counter(counter.clone()))
    }
}

impl From<&Step> for Step {
    fn from(step: &Step) -> Self {
        step.clone()
    }
}
