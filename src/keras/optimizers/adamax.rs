//! [`Adamax`]: Adam with the largest gradients instead of the mean of their squares.

use super::setters::optimizer;
use super::{Optimizer, OptimizerState, Step};
use crate::error::Result;
use crate::tensor::Tensor;
use crate::trackable::{Class, SlotNames, Trackable};
use crate::variable::Variable;

/// What checkpoints know of it.
static CLASS: Class = Class::new("Adamax").slots(&[
    SlotNames::new("momentum").list("_m"),
    SlotNames::new("norm").list("_u").keras_2("v"),
]);

optimizer! {
    /// Adamax (Kingma and Ba 2015) in Keras's form, at step `t` from 1: `m += (g - m)(1 - b1)`, `u = max(b2 u, |g|)`,
    /// `w -= lr / (1 - b1^t) m / (u + epsilon)`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::optimizers::{Optimizer, Adamax};
    /// let w = tf::Variable::new(tf::constant(3.0)?);
    /// Adamax::new(0.1).apply_gradients(&[Some(tf::constant(50.0)?)], &w)?;
    /// // The first step has the size of the learning rate, whatever the gradient's.
    /// assert!((w.read().item::<f32>()? - 2.9).abs() < 1e-5);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug, Trackable)]
    #[track(class = &CLASS)]
    pub struct Adamax("adamax") {
        /// Creates an optimizer with this learning rate (Keras's default is 0.001), betas of 0.9 and 0.999, an epsilon of
        /// 1e-7.
        new,
        beta_1: f64 = 0.9,
        /// Sets the decay rate of the largest gradient, from 0 to below 1.
        beta_2: f64 in Share = 0.999,
        epsilon: f64 = 1e-7,
    }
}

impl Optimizer for Adamax {
    fn state(&self) -> &OptimizerState {
        &self.state
    }

    fn slot_names(&self, _: &Variable) -> Vec<&'static str> {
        vec!["momentum", "norm"]
    }

    fn update(
        &self,
        step: &Step,
        w: &Tensor,
        g: &Tensor,
        slots: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let [m, u] = super::slots(&self.state, slots)?;
        let m = m.add(g.subtract(m)?.multiply(1.0 - self.beta_1)?)?;
        let u = u.multiply(self.beta_2)?.maximum(g.abs()?)?;
        let b1 = self.beta_1;
        let alpha = step.scalar(move |t, lr| lr / (1.0 - b1.powi(t)));
        let down = m.multiply(alpha)?.divide(u.add(self.epsilon)?)?;
        Ok((w.subtract(down)?, vec![m, u]))
    }
}
