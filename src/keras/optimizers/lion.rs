//! [`Lion`]: steps of one size, in the direction of the gradients' mean.

use super::setters::optimizer;
use super::{Optimizer, OptimizerState, Step};
use crate::error::Result;
use crate::tensor::Tensor;
use crate::trackable::Trackable;
use crate::variable::Variable;

optimizer! {
    /// Lion (Chen et al. 2023) in Keras's form: `w -= lr sign(b1 m + (1 - b1) g)`, then `m = b2 m + (1 - b2) g`.
    ///
    /// Use a learning rate 3 to 10 times smaller than for Adam, and a weight decay larger by the same factor.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::optimizers::{Optimizer, Lion};
    /// let w = tf::Variable::new(tf::constant(3.0)?);
    /// Lion::new(0.1).apply_gradients(&[Some(tf::constant(50.0)?)], &w)?;
    /// // A step has the size of the learning rate.
    /// assert!((w.read().item::<f32>()? - 2.9).abs() < 1e-5);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug, Trackable)]
    pub struct Lion("lion") {
        /// Creates an optimizer with this learning rate (Keras's default is 0.001), betas of 0.9 and 0.99.
        new,
        /// Sets the weight of the mean in the direction, above 0 to 1.
        beta_1: f64 in SomeUnit = 0.9,
        /// Sets the decay rate of the mean of gradients, from 0 to below 1.
        beta_2: f64 in Share = 0.99,
    }
}

impl Optimizer for Lion {
    fn state(&self) -> &OptimizerState {
        &self.state
    }

    fn slot_names(&self, _: &Variable) -> Vec<&'static str> {
        vec!["momentum"]
    }

    fn update(
        &self,
        step: &Step,
        w: &Tensor,
        g: &Tensor,
        slots: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let [m] = super::slots(&self.state, slots)?;
        let mean = |beta: f64| m.multiply(beta)?.add(g.multiply(1.0 - beta)?);
        let down = mean(self.beta_1)?.sign()?.multiply(step.learning_rate())?;
        Ok((w.subtract(down)?, vec![mean(self.beta_2)?]))
    }
}
