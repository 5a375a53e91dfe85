//! [`Adagrad`]: divides steps by the size of all gradients so far.

use super::setters::optimizer;
use super::{Optimizer, OptimizerState, Step};
use crate::error::Result;
use crate::tensor::Tensor;
use crate::trackable::Trackable;
use crate::variable::Variable;

optimizer! {
    /// Adagrad (Duchi et al. 2011) in Keras's form: `a += g^2`, `w -= lr g / sqrt(a + epsilon)`; `a` starts at 0.1.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::optimizers::{Optimizer, Adagrad};
    /// let w = tf::Variable::new(tf::constant(3.0)?);
    /// Adagrad::new(0.1).apply_gradients(&[Some(tf::constant(50.0)?)], &w)?;
    /// // The sum of squares is that of this gradient, nearly.
    /// assert!((w.read().item::<f32>()? - 2.9).abs() < 1e-4);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug, Trackable)]
    pub struct Adagrad("adagrad") {
        /// Creates an optimizer with this learning rate (Keras's default is 0.001), sums that start at 0.1, an epsilon of
        /// 1e-7.
        new,
        /// Sets the initial value of the sums of squares.
        initial_accumulator_value: f64 in NotNegative = 0.1,
        epsilon: f64 = 1e-7,
    }
}

impl Optimizer for Adagrad {
    fn state(&self) -> &OptimizerState {
        &self.state
    }

    fn slot_names(&self, _: &Variable) -> Vec<&'static str> {
        vec!["accumulator"]
    }

    fn slot_start(&self, _: &str, variable: &Variable) -> Result<Tensor> {
        super::constant_slot(variable, self.initial_accumulator_value)
    }

    fn update(
        &self,
        step: &Step,
        w: &Tensor,
        g: &Tensor,
        slots: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let [sum] = super::slots(&self.state, slots)?;
        let sum = sum.add(g.square()?)?;
        let down = g.multiply(step.learning_rate())?.divide(sum.add(self.epsilon)?.sqrt()?)?;
        Ok((w.subtract(down)?, vec![sum]))
    }
}
