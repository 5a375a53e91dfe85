//! [`Head`]: what the outputs of a network mean, from which the loss and the metric follow.

use crate::error::{Error, Result, message};
use crate::keras::losses::{
    BinaryCrossentropy, ClassLabels, Loss, MeanSquaredError, SparseCategoricalCrossentropy,
};
use crate::keras::metrics::{BinaryAccuracy, MeanAbsoluteError, SparseCategoricalAccuracy};
use crate::keras::optimizers::Optimizer;
use crate::keras::{CompileOptions, Functional, Model};
use crate::tensor::Tensor;

/// The kind of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Head {
    /// A number.
    Regression,
    /// One of this many classes: a logit if there are two, else one for each.
    Classes(usize),
}

/// Returns an error for fewer than two classes.
pub(super) fn check_classes(model: &str, n_classes: usize) -> Result<()> {
    match n_classes {
        0 | 1 => Err(Error::Data(message!(
            "{model}: n_classes is {n_classes}; it must be at least 2. For numbers as labels, use the regressor."
        ))),
        _ => Ok(()),
    }
}

impl Head {
    /// The head of a model of this many classes.
    pub(super) fn classes(model: &str, n_classes: usize) -> Result<Self> {
        check_classes(model, n_classes)?;
        Ok(Head::Classes(n_classes))
    }

    /// The number of outputs.
    pub(super) fn outputs(self) -> usize {
        match self {
            Head::Regression | Head::Classes(2) => 1,
            Head::Classes(classes) => classes,
        }
    }

    /// Compiles a model with this optimizer.
    pub(super) fn compile(
        self,
        model: &Functional,
        optimizer: impl Optimizer + 'static,
    ) -> Result<()> {
        let options = CompileOptions::new();
        let sum = |loss, options| {
            Model::<[Tensor], Vec<Tensor>>::compile(model, optimizer, BoxedLoss(loss), options)
        };
        match self {
            Head::Regression => {
                let options = options.metrics(MeanAbsoluteError::new("mae"));
                sum(Box::new(MeanSquaredError::new()), options)
            }
            Head::Classes(2) => {
                let options = options.metrics(BinaryAccuracy::new("accuracy").threshold(0.0));
                sum(Box::new(TwoClasses(BinaryCrossentropy::new().from_logits(true))), options)
            }
            Head::Classes(_) => {
                let options = options.metrics(SparseCategoricalAccuracy::new("accuracy"));
                sum(Box::new(SparseCategoricalCrossentropy::new().from_logits(true)), options)
            }
        }
    }
}

/// A loss of any kind.
struct BoxedLoss(Box<dyn Loss>);

impl Loss for BoxedLoss {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn losses(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
        self.0.losses(y_true, y_pred)
    }

    fn class_labels(&self, y_pred: &Tensor) -> Option<ClassLabels> {
        self.0.class_labels(y_pred)
    }
}

/// The cross-entropy of a logit, whose labels must be 0 or 1.
struct TwoClasses(BinaryCrossentropy);

impl Loss for TwoClasses {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn losses(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
        self.0.losses(y_true, y_pred)
    }

    fn class_labels(&self, _: &Tensor) -> Option<ClassLabels> {
        Some(ClassLabels { classes: 2, ignored: None })
    }
}
