//! [`Lion`]: steps of one size, in the direction of the gradients' mean.

use super::options::Within;
use super::{LearningRate, Optimizer, OptimizerState, Step};
use crate::error::Result;
use crate::tensor::Tensor;
use crate::trackable::Trackable;
use crate::variable::Variable;

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
pub struct Lion {
    #[track(flatten)]
    state: OptimizerState,
    beta_1: f64,
    beta_2: f64,
}

impl Lion {
    /// Creates an optimizer with this learning rate (Keras's default is 0.001), betas of 0.9 and 0.99.
    pub fn new(learning_rate: impl Into<LearningRate>) -> Self {
        let state = OptimizerState::new("lion", learning_rate);
        Lion { state, beta_1: 0.9, beta_2: 0.99 }
    }

    /// Sets the weight of the mean in the direction, above 0 to 1.
    pub fn beta_1(mut self, beta_1: f64) -> Self {
        self.state.require("beta_1", beta_1, Within::SomeUnit);
        self.beta_1 = beta_1;
        self
    }

    /// Sets the decay rate of the mean of gradients, from 0 to below 1.
    pub fn beta_2(mut self, beta_2: f64) -> Self {
        self.state.require("beta_2", beta_2, Within::Share);
        self.beta_2 = beta_2;
        self
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
