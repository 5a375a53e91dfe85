//! Losses measure how far predictions are from the truth.
//!
//! A [`Loss`] computes a number for each example. [`Reduction`] defines how a batch's numbers are combined, and weights and
//! masks define how much each counts. The other files in this folder contain the formulas, which are those of Keras 3.

mod agreement;
mod binary;
mod categorical;
mod circle;
mod distributions;
#[cfg(feature = "json")]
mod from_config;
mod hinge;
mod names;
mod overlap;
mod reduction;
mod regression;
mod row;
mod sparse;
mod wrappers;

pub(super) use agreement::{agree_cast, same_rank, same_shape};
pub use binary::{BinaryCrossentropy, BinaryFocalCrossentropy};
pub use categorical::{CategoricalCrossentropy, CategoricalFocalCrossentropy};
pub use circle::Circle;
pub use distributions::{KlDivergence, Poisson};
#[cfg(feature = "json")]
pub use from_config::from_config;
pub use hinge::{CategoricalHinge, Hinge, SquaredHinge};
pub use names::get;
pub use overlap::{Dice, Tversky};
pub use reduction::Reduction;
pub use regression::{
    CosineSimilarity, Huber, LogCosh, MeanAbsoluteError, MeanAbsolutePercentageError,
    MeanSquaredError, MeanSquaredLogarithmicError,
};
pub(super) use sparse::class_labels;
pub use sparse::{CategoricalGeneralizedCrossEntropy, SparseCategoricalCrossentropy};

use crate::error::Result;
use crate::tensor::Tensor;

/// Keras's `epsilon()`: probabilities are clipped to at least this distance from 0 and 1, so that their logarithms are finite.
pub(super) const EPSILON: f64 = 1e-7;

/// The class labels that a loss accepts: from 0 to below `classes`, and one that it ignores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassLabels {
    /// The number of classes.
    pub classes: usize,
    /// The label whose positions are ignored.
    pub ignored: Option<i32>,
}

/// A function that training minimizes.
///
/// Keras's losses are structs with setters. A function or closure that computes a number for each example from `y_true` and
/// `y_pred` is also a loss, which is reduced to the mean. A closure must specify its arguments' types; call it with
/// `Loss::call(&closure, ..)`. `Box<dyn Loss>`, `Arc` of a loss and `&dyn Loss` are losses, too.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Tensor};
/// use tf::keras::losses::{Loss, MeanSquaredError, Reduction};
/// let (y_true, y_pred) = (tf::constant([[0.0], [2.0]])?, tf::constant([[1.0], [4.0]])?);
/// assert_eq!(MeanSquaredError::new().call(&y_true, &y_pred)?.item::<f32>()?, 2.5); // (1 + 4) / 2
///
/// let sum = MeanSquaredError::new().reduction(Reduction::Sum);
/// let weights = tf::constant([1.0, 0.5])?;
/// assert_eq!(sum.call_weighted(&y_true, &y_pred, Some(&weights))?.item::<f32>()?, 3.0); // 1 + 0.5 * 4
///
/// let largest = |y_true: &Tensor, y_pred: &Tensor| y_pred.subtract(y_true)?.abs()?.reduce_max(-1);
/// assert_eq!(Loss::call(&largest, &y_true, &y_pred)?.item::<f32>()?, 1.5);
/// # Ok(())
/// # }
/// ```
pub trait Loss: Send + Sync {
    /// Returns Keras's name of the loss, for messages and logs.
    fn name(&self) -> &str;

    /// Computes the loss of each example (or position), before weights and the reduction.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if truth and predictions do not fit together;
    /// [`Error::DType`](crate::Error::DType) if predictions are not float.
    fn losses(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor>;

    /// Returns how the losses of a batch are reduced to one number.
    fn reduction(&self) -> Reduction {
        Reduction::SumOverBatchSize
    }

    /// Returns a mask in the shape of the losses, if the loss itself ignores some of them: true for those that count.
    ///
    /// # Errors
    /// Same as [`Loss::losses`].
    fn mask(&self, _y_true: &Tensor, _y_pred: &Tensor) -> Result<Option<Tensor>> {
        Ok(None)
    }

    /// Returns the class labels that the loss accepts, if its truth consists of class labels. `fit` and similar methods refuse
    /// other labels; the loss itself is NaN for them.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::keras::losses::{ClassLabels, Loss, MeanSquaredError, SparseCategoricalCrossentropy};
    /// let y_pred = wgrad::Tensor::zeros([8, 10])?;
    /// let loss = SparseCategoricalCrossentropy::new().ignore_class(255);
    /// assert_eq!(loss.class_labels(&y_pred), Some(ClassLabels { classes: 10, ignored: Some(255) }));
    /// assert_eq!(MeanSquaredError::new().class_labels(&y_pred), None);
    /// # Ok(())
    /// # }
    /// ```
    fn class_labels(&self, _y_pred: &Tensor) -> Option<ClassLabels> {
        None
    }

    /// Computes the loss of a batch: a scalar, or with [`Reduction::None`] a number for each example.
    ///
    /// # Errors
    /// Same as [`Loss::losses`].
    fn call(&self, y_true: &Tensor, y_pred: &Tensor) -> Result<Tensor> {
        let losses = self.losses(y_true, y_pred)?;
        match self.mask(y_true, y_pred)? {
            None => self.reduction().reduce(&losses),
            mask => reduction::weigh(
                self.name(),
                &losses,
                self.reduction(),
                [mask.as_ref(), None],
                None,
            ),
        }
    }

    /// Same as [`Loss::call`], with each loss multiplied by its weight. The weights are `[N]` or `[N,1]` for losses `[N]`, else
    /// of the losses' rank, with size 1 for an axis along which the weight is the same.
    ///
    /// # Errors
    /// The errors of [`Loss::losses`], and [`Error::Shape`](crate::Error::Shape) if the weights do not fit the losses.
    fn call_weighted(
        &self,
        y_true: &Tensor,
        y_pred: &Tensor,
        sample_weight: Option<&Tensor>,
    ) -> Result<Tensor> {
        self.call_masked(y_true, y_pred, sample_weight, None)
    }

    /// Same as [`Loss::call_weighted`], for only those positions where `mask`, the mask of the predictions, is true. A mean is
    /// taken over these positions.
    ///
    /// # Errors
    /// Same as [`Loss::call_weighted`], also for the mask.
    fn call_masked(
        &self,
        y_true: &Tensor,
        y_pred: &Tensor,
        sample_weight: Option<&Tensor>,
        mask: Option<&Tensor>,
    ) -> Result<Tensor> {
        let losses = self.losses(y_true, y_pred)?;
        let own = self.mask(y_true, y_pred)?;
        reduction::weigh(
            self.name(),
            &losses,
            self.reduction(),
            [own.as_ref(), mask],
            sample_weight,
        )
    }
}
