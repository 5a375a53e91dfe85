//! [`Regularizer`]: a penalty on a weight or a result, which training adds to its loss.

use std::sync::Arc;

use super::function::{Function, OWN};
use crate::error::{Error, Result, message};
use crate::ops::eye_of;
use crate::tensor::Tensor;

/// A function that computes a penalty, a scalar, for a tensor.
///
/// A layer's `kernel_regularizer` contributes to [`Trackable::regularization_loss`](crate::Trackable::regularization_loss),
/// which a training loop adds to its loss; `fit` does so automatically.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Trackable};
/// use tf::keras::{INFERENCE, Initializer, Layer, Regularizer, layers::Dense};
/// let layer = Dense::new(2).kernel_initializer(Initializer::Ones).kernel_regularizer(Regularizer::l2(0.01));
/// layer.call(&tf::Tensor::zeros([1, 3])?, INFERENCE)?;
/// assert_eq!(layer.regularization_loss()?.item::<f32>()?, 0.06); // 0.01 times six squares of 1
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Regularizer(pub(super) Function<Penalty>);

pub(super) type Penalty = dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync;

crate::trackable::plain!(Regularizer);

impl Regularizer {
    /// `factor sum(|w|)`.
    pub fn l1(factor: f32) -> Self {
        let call = move |w: &Tensor| w.abs()?.reduce_sum(())?.multiply(factor);
        Regularizer(Function {
            class: "L1",
            arguments: vec![("l1", factor.into())],
            call: Arc::new(call),
        })
    }

    /// `factor sum(w^2)`.
    pub fn l2(factor: f32) -> Self {
        let call = move |w: &Tensor| w.square()?.reduce_sum(())?.multiply(factor);
        Regularizer(Function {
            class: "L2",
            arguments: vec![("l2", factor.into())],
            call: Arc::new(call),
        })
    }

    /// `l1 sum(|w|) + l2 sum(w^2)`.
    pub fn l1_l2(l1: f32, l2: f32) -> Self {
        let call = move |w: &Tensor| {
            let sums = w.abs()?.reduce_sum(())?.multiply(l1)?;
            sums.add(w.square()?.reduce_sum(())?.multiply(l2)?)
        };
        let arguments = vec![("l1", l1.into()), ("l2", l2.into())];
        Regularizer(Function { class: "L1L2", arguments, call: Arc::new(call) })
    }

    /// `factor` times the mean of `|a_i a_j|` over pairs of rows of a matrix (with `columns`, of columns), each scaled to the
    /// length 1: 0 if all are orthogonal.
    pub fn orthogonal(factor: f32, columns: bool) -> Self {
        let call = move |w: &Tensor| {
            let &[rows, cols] = w.shape() else {
                return Err(Error::Shape(message!(
                    "the orthogonal regularizer: the weight is {:?}; it must be a matrix.",
                    w.shape()
                )));
            };
            let (w, count) = match columns {
                true => (w.transpose(())?, cols),
                false => (w.clone(), rows),
            };
            let rows = w.l2_normalize(1)?;
            let products = rows.matmul(rows.transpose(())?)?;
            let apart = products.multiply(eye_of(count, count)?.negative()?.add(1.0)?)?;
            let pairs = (count * count.saturating_sub(1)) as f64 / 2.0;
            apart.abs()?.reduce_sum(())?.multiply(f64::from(factor) * 0.5 / pairs.max(1.0))
        };
        let mode = if columns { "columns" } else { "rows" };
        let arguments = vec![("factor", factor.into()), ("mode", mode.into())];
        Regularizer(Function { class: "OrthogonalRegularizer", arguments, call: Arc::new(call) })
    }

    /// Creates a custom penalty from a function that returns a scalar.
    pub fn new(penalty: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static) -> Self {
        Regularizer(Function { class: OWN, arguments: Vec::new(), call: Arc::new(penalty) })
    }

    /// Computes the penalty for `w`, a scalar.
    ///
    /// # Errors
    /// The errors of the function; [`Error::Shape`] if a custom function does not return a scalar.
    pub fn call(&self, w: &Tensor) -> Result<Tensor> {
        let penalty = (self.0.call)(w)?;
        match penalty.shape() {
            [] => Ok(penalty),
            shape => Err(Error::Shape(message!(
                "Regularizer: the penalty is {shape:?}; it must be a scalar. End it with reduce_sum(())."
            ))),
        }
    }
}
