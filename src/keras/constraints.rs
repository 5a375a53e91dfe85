//! [`Constraint`]: a function that an optimizer applies to a weight at the end of each step.

use std::sync::Arc;

use super::function::{Function, OWN};
use crate::error::Result;
use crate::shape::Axes;
use crate::tensor::Tensor;

/// A constraint on a weight's values. After each step, the optimizer replaces the weight by the result of this
/// function.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::Constraint;
/// let w = tf::constant([[3.0, 0.1], [4.0, -0.2]])?;
/// let short = Constraint::max_norm(1.0, 0).call(&w)?; // columns of a length of at most 1
/// assert!((short.to_vec::<f32>()?[0] - 0.6).abs() < 1e-6);
/// assert_eq!(Constraint::non_neg().call(&w)?.to_vec::<f32>()?, [3.0, 0.1, 4.0, 0.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Constraint(pub(super) Function<Rule>);

pub(super) type Rule = dyn Fn(&Tensor) -> Result<Tensor> + Send + Sync;

crate::trackable::plain!(Constraint);

/// Keras's epsilon, which keeps divisions by a length finite.
const EPSILON: f32 = 1e-7;

impl Constraint {
    /// Limits the length of the vectors along `axis` to `max_value`. Use axis 0 for the kernel of `Dense`, in which
    /// each column belongs to one output.
    pub fn max_norm(max_value: f32, axis: i64) -> Self {
        let call = move |w: &Tensor| {
            let lengths = lengths(w, axis)?;
            let wanted = lengths.clip_by_value(0.0, max_value)?;
            w.multiply(wanted.divide(lengths.add(EPSILON)?)?)
        };
        let arguments = vec![("max_value", max_value.into()), ("axis", axis.into())];
        Constraint(Function { class: "MaxNorm", arguments, call: Arc::new(call) })
    }

    /// Sets negative elements to 0.
    pub fn non_neg() -> Self {
        Constraint(Function {
            class: "NonNeg",
            arguments: Vec::new(),
            call: Arc::new(|w: &Tensor| w.maximum(0.0)),
        })
    }

    /// Scales the vectors along `axis` to the length 1.
    pub fn unit_norm(axis: i64) -> Self {
        let call = move |w: &Tensor| w.divide(lengths(w, axis)?.add(EPSILON)?);
        Constraint(Function {
            class: "UnitNorm",
            arguments: vec![("axis", axis.into())],
            call: Arc::new(call),
        })
    }

    /// Scales the vectors along `axis` to a length from `min_value` to `max_value`. Each step corrects the fraction
    /// `rate` of the deviation from that range; 1 corrects all of it.
    pub fn min_max_norm(min_value: f32, max_value: f32, rate: f32, axis: i64) -> Self {
        let call = move |w: &Tensor| {
            let lengths = lengths(w, axis)?;
            let wanted = lengths.clip_by_value(min_value, max_value)?.multiply(rate)?;
            let wanted = wanted.add(lengths.multiply(1.0 - rate)?)?;
            w.multiply(wanted.divide(lengths.add(EPSILON)?)?)
        };
        let arguments = vec![
            ("min_value", min_value.into()),
            ("max_value", max_value.into()),
            ("rate", rate.into()),
            ("axis", axis.into()),
        ];
        Constraint(Function { class: "MinMaxNorm", arguments, call: Arc::new(call) })
    }

    /// Creates a custom constraint from a function that returns the new value, in the weight's shape.
    pub fn new(rule: impl Fn(&Tensor) -> Result<Tensor> + Send + Sync + 'static) -> Self {
        Constraint(Function { class: OWN, arguments: Vec::new(), call: Arc::new(rule) })
    }

    /// Applies the constraint to `w`.
    ///
    /// # Errors
    /// The errors of the function.
    pub fn call(&self, w: &Tensor) -> Result<Tensor> {
        (self.0.call)(w)
    }
}

fn lengths(w: &Tensor, axis: i64) -> Result<Tensor> {
    w.square()?.reduce_sum(Axes::from(axis).keepdims(true))?.sqrt()
}
