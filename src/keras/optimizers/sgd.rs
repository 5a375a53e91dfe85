//! [`Sgd`]: gradient descent, with or without momentum.

use super::setters::optimizer;
use super::{Optimizer, OptimizerState, Step};
use crate::error::Result;
use crate::tensor::Tensor;
use crate::trackable::{Class, SlotNames, Trackable};
use crate::variable::Variable;

/// What checkpoints know of it.
static CLASS: Class = Class::new("SGD").slots(&[SlotNames::new("momentum").list("momentums")]);

optimizer! {
    /// `w -= lr g`; with momentum `p`: `v = p v - lr g`, `w += v`; with Nesterov's: `w += p v - lr g` for the new `v`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::optimizers::{Optimizer, Sgd};
    /// let w = tf::Variable::new(&tf::constant(3.0)?);
    /// Sgd::new(0.1).apply_gradients(&[Some(tf::constant(2.0)?)], &w)?;
    /// assert!((w.read().item::<f32>()? - 2.8).abs() < 1e-6);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug, Trackable)]
    #[track(class = &CLASS)]
    pub struct Sgd("sgd") {
        /// Creates an optimizer with this learning rate (Keras's default is 0.01), without momentum.
        new,
        momentum: f64 = 0.0,
        /// Sets whether to use Nesterov momentum (Nesterov 1983).
        nesterov: bool = false,
    }
}

impl Optimizer for Sgd {
    fn state(&self) -> &OptimizerState {
        &self.state
    }

    fn slot_names(&self, _: &Variable) -> Vec<&'static str> {
        if self.momentum == 0.0 { vec![] } else { vec!["momentum"] }
    }

    fn update(
        &self,
        step: &Step,
        w: &Tensor,
        g: &Tensor,
        slots: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let down = g.multiply(step.learning_rate())?;
        let [velocity] = slots else { return Ok((w.subtract(&down)?, vec![])) };
        let velocity = velocity.multiply(self.momentum)?.subtract(&down)?;
        let w = match self.nesterov {
            true => velocity.multiply(self.momentum)?.subtract(&down)?.add(w)?,
            false => w.add(&velocity)?,
        };
        Ok((w, vec![velocity]))
    }
}
