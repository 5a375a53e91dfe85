//! [`Adadelta`]: divides steps by recent gradients, and multiplies them by recent steps.

use super::setters::optimizer;
use super::{Optimizer, OptimizerState, Step};
use crate::error::Result;
use crate::tensor::Tensor;
use crate::trackable::{Class, SlotNames, Trackable};
use crate::variable::Variable;

/// What checkpoints know of it.
static CLASS: Class = Class::new("Adadelta").slots(&[
    SlotNames::new("accumulated_grad").keras_2("accum_grad"),
    SlotNames::new("accumulated_delta_var").keras_2("accum_var"),
]);

optimizer! {
    /// Adadelta (Zeiler 2012) in Keras's form: `a = rho a + (1 - rho) g^2`, `d = -sqrt(b + epsilon) / sqrt(a + epsilon) g`,
    /// `b = rho b + (1 - rho) d^2`, `w += lr d`.
    ///
    /// The paper's learning rate is 1.
    #[derive(Debug, Trackable)]
    #[track(class = &CLASS)]
    pub struct Adadelta("adadelta") {
        /// Creates an optimizer with this learning rate (Keras's default is 0.001), a rho of 0.95, an epsilon of 1e-7.
        new,
        rho: f64 = 0.95,
        /// Sets the number that determines the size of the first steps and prevents division by zero.
        epsilon: f64 in NotNegative = 1e-7,
    }
}

impl Optimizer for Adadelta {
    fn state(&self) -> &OptimizerState {
        &self.state
    }

    fn slot_names(&self, _: &Variable) -> Vec<&'static str> {
        vec!["accumulated_grad", "accumulated_delta_var"]
    }

    fn update(
        &self,
        step: &Step,
        w: &Tensor,
        g: &Tensor,
        slots: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let [grads, steps] = super::slots(&self.state, slots)?;
        let mean = |old: &Tensor, new: &Tensor| {
            old.multiply(self.rho)?.add(new.square()?.multiply(1.0 - self.rho)?)
        };
        let root = |x: &Tensor| x.add(self.epsilon)?.sqrt();
        let grads = mean(grads, g)?;
        let down = root(steps)?.multiply(g)?.divide(root(&grads)?)?;
        let steps = mean(steps, &down)?;
        Ok((w.subtract(down.multiply(step.learning_rate())?)?, vec![grads, steps]))
    }
}
