//! [`Check`]: the labels of a batch, which the device checks together with the step.
//!
//! The host learns of a wrong label some steps later, so that the device need not wait for it. The loss of such a label is NaN,
//! and a step with its gradient would make every weight NaN. Therefore each wrong label is replaced by 0 in the loss, and the
//! gradient of its batch is 0.

use std::sync::Arc;

use crate::dtype::DType;
use crate::eager;
use crate::error::{Error, Result, message};
use crate::keras::losses::{ClassLabels, Loss};
use crate::ops::where_;
use crate::tensor::{Element, Tensor};

/// The error for a label that the loss does not accept.
pub(super) fn label_error(call: &str, wrong: f64, rule: ClassLabels, y_pred: &[usize]) -> Error {
    let ignored =
        rule.ignored.map_or(String::new(), |label| format!(", or {label}, which it ignores"));
    Error::Index(message!(
        "{call}: a label is {wrong}, and the model's output {y_pred:?} has {} classes: labels must be from 0 to {}{ignored}. \
         Count the classes from 0, or give the last layer more units.",
        rule.classes,
        rule.classes.saturating_sub(1)
    ))
}

/// A number that the device computes together with a step, and its meaning.
#[derive(Debug, Clone)]
pub(super) struct Check {
    /// The largest wrong label, or [`NONE`] if no label is wrong. NaN is wrong, too.
    pub(super) found: Tensor,
    rule: ClassLabels,
    y_pred: Vec<usize>,
}

/// The labels of an output that the device checks.
pub(super) struct CheckedLabels {
    /// The index of the output.
    pub(super) output: usize,
    pub(super) check: Check,
    /// The labels, with 0 instead of wrong ones.
    pub(super) labels: Tensor,
}

/// No label is wrong.
const NONE: f32 = f32::MIN;

impl Check {
    /// Checks the labels of an output, if its loss has some. Also returns the labels with 0 instead of wrong ones.
    pub(super) fn new(
        loss: &dyn Loss,
        y_true: &Tensor,
        y_pred: &Tensor,
    ) -> Result<Option<(Self, Tensor)>> {
        let Some(rule) = loss.class_labels(y_pred) else { return Ok(None) };
        if y_true.is_empty() || y_true.dtype() == DType::Bool {
            return Ok(None);
        }
        // The program's tapes must not record the check.
        let y_true = y_true.detached();
        let labels = y_true.cast(DType::F32)?;
        let mut right =
            labels.greater_equal(0.0)?.logical_and(labels.less(rule.classes as f32)?)?;
        if let Some(ignored) = rule.ignored {
            right = right.logical_or(labels.equal(ignored as f32)?)?;
        }
        let none = labels.device().scope(|| Tensor::full([], NONE))?;
        let found = where_(&right, &none, &labels)?.reduce_max(())?;
        let known = where_(&right, &y_true, &y_true.zeros_like()?)?;
        Ok(Some((Check { found, rule, y_pred: y_pred.shape().to_vec() }, known)))
    }

    /// The same check of another number, which `f` returns for the present one.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn with_number(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        Check { found: f(&self.found), rule: self.rule, y_pred: self.y_pred.clone() }
    }

    /// Returns `loss` if no label is wrong; else 0, whose gradient is 0.
    pub(super) fn hold(&self, loss: &Tensor) -> Result<Tensor> {
        loss.multiply(self.found.equal(NONE)?.cast(loss.dtype())?)
    }

    /// The error that the number indicates, if any.
    pub(super) fn error(&self, call: &str, found: &[f32]) -> Option<Error> {
        let wrong = found.first().copied().filter(|found| *found != NONE)?;
        Some(label_error(call, wrong.into(), self.rule, &self.y_pred))
    }

    /// Reports the error at the next read.
    pub(super) fn report(self, call: &'static str) {
        let found = self.found.clone();
        let check = Arc::new(self);
        eager::effect(&[&found], move |found| {
            let check = check.clone();
            let deliver = move |bytes: &[&[u8]]| {
                let found = bytes.first().map_or(Vec::new(), |bytes| f32::load(bytes));
                check.error(call, &found).map_or(Ok(()), Err)
            };
            found[0].device().report(vec![found[0].value().clone()], Box::new(deliver));
        });
    }
}
