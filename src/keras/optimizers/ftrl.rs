//! [`Ftrl`]: follow the regularized leader, which makes many weights exactly 0.

use super::setters::optimizer;
use super::{Optimizer, OptimizerState, Step};
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;
use crate::trackable::Trackable;
use crate::variable::Variable;

optimizer! {
    /// FTRL-Proximal (McMahan et al. 2013) in Keras's form, with `p = learning_rate_power`, the slots `a` (which starts at 0.1)
    /// and `z`:
    ///
    /// - `a' = a + g^2`, `z += g + 2 shrinkage w - (a'^-p - a^-p) / lr w`
    /// - `w = (clip(z, -l1, l1) - z) / (a'^-p / lr + 2 l2 + beta / lr)`
    ///
    /// A learning rate of 0 is refused, because the formula divides by it.
    #[derive(Debug, Trackable)]
    pub struct Ftrl("ftrl") {
        /// Creates an optimizer with this learning rate (Keras's default is 0.001), a power of -0.5, sums that start at 0.1, and
        /// without regularization.
        new,
        /// Sets the exponent with which steps become smaller, at most 0; with 0 they do not.
        learning_rate_power: f64 in NotPositive = -0.5,
        /// Sets the initial value of the sums of squares.
        initial_accumulator_value: f64 in NotNegative = 0.1,
        /// Sets the strength of the penalty that makes weights exactly 0.
        l1_regularization_strength: f64 in NotNegative = 0.0,
        /// Sets the strength of the penalty on large weights.
        l2_regularization_strength: f64 in NotNegative = 0.0,
        /// Sets a penalty on large weights that is part of the gradient.
        l2_shrinkage_regularization_strength: f64 in NotNegative = 0.0,
        /// Sets the paper's beta, which makes the first steps smaller.
        beta: f64 in Finite = 0.0,
    }
}

impl Optimizer for Ftrl {
    fn state(&self) -> &OptimizerState {
        &self.state
    }

    fn slot_names(&self, _: &Variable) -> Vec<&'static str> {
        vec!["accumulator", "linear"]
    }

    fn slot_start(&self, name: &str, variable: &Variable) -> Result<Tensor> {
        match name {
            "accumulator" => super::constant_slot(variable, self.initial_accumulator_value),
            _ => variable.peek().zeros_like(),
        }
    }

    fn update(
        &self,
        step: &Step,
        w: &Tensor,
        g: &Tensor,
        slots: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let [sum, linear] = super::slots(&self.state, slots)?;
        if step.learning_rate == 0.0 {
            return Err(Error::Index(message!(
                "{}: the learning rate is 0; this optimizer divides by it. Give it one above 0.",
                self.state.name()
            )));
        }
        // The usual power has a dedicated function, which is more precise.
        let power = |x: &Tensor| match self.learning_rate_power {
            -0.5 => x.sqrt(),
            power => x.pow(-power),
        };
        let after = sum.add(g.square()?)?;
        let (before_power, after_power) = (power(sum)?, power(&after)?);
        let mut pull = g.clone();
        if self.l2_shrinkage_regularization_strength != 0.0 {
            pull = pull.add(w.multiply(2.0 * self.l2_shrinkage_regularization_strength)?)?;
        }
        let kept = after_power.subtract(before_power)?.divide(step.learning_rate())?.multiply(w)?;
        let linear = linear.add(pull.subtract(kept)?)?;
        let (l2, beta) = (self.l2_regularization_strength, self.beta);
        let least = step.scalar(move |_, lr| 2.0 * (l2 + beta / (2.0 * lr)));
        let divisor = after_power.divide(step.learning_rate())?.add(least)?;
        let l1 = self.l1_regularization_strength;
        let w = linear.clip_by_value(-l1, l1)?.subtract(&linear)?.divide(divisor)?;
        Ok((w, vec![after, linear]))
    }
}
