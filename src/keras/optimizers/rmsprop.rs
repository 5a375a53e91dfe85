//! [`RmsProp`]: divides steps by the root mean square of an element's recent gradients.

use super::setters::optimizer;
use super::{Optimizer, OptimizerState, Step};
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;
use crate::trackable::{Class, SlotNames, Trackable};
use crate::variable::Variable;

/// What checkpoints know of it.
static CLASS: Class = Class::new("RMSprop")
    .slots(&[SlotNames::new("momentum").group(3), SlotNames::new("average_gradient").group(4)]);

optimizer! {
    /// RMSprop (Hinton 2012) in Keras's form: `v = rho v + (1 - rho) g^2`, `w -= lr g / sqrt(v + epsilon)`.
    ///
    /// The centered form subtracts the square of the mean gradient `a = rho a + (1 - rho) g`: `sqrt(v - a^2 + epsilon)`.
    /// With momentum `p` the steps accumulate: `b = p b + lr g / sqrt(..)`, `w -= b`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::optimizers::{Optimizer, RmsProp};
    /// let w = tf::Variable::new(tf::constant(3.0)?);
    /// RmsProp::new(0.1).apply_gradients(&[Some(tf::constant(50.0)?)], &w)?;
    /// // At the first step v is a tenth of g^2, so the step is the rate times sqrt(10), whatever the gradient's size.
    /// assert!((w.read().item::<f32>()? - 2.683772).abs() < 1e-5);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug, Trackable)]
    #[track(class = &CLASS)]
    pub struct RmsProp("rmsprop") {
        /// Creates an optimizer with this learning rate (Keras's default is 0.001), a rho of 0.9, an epsilon of 1e-7, no
        /// momentum, not centered.
        new,
        rho: f64 = 0.9,
        momentum: f64 = 0.0,
        epsilon: f64 = 1e-7,
        /// Sets whether the mean square is centered around the mean gradient.
        centered: bool = false,
    }
}

impl Optimizer for RmsProp {
    fn state(&self) -> &OptimizerState {
        &self.state
    }

    fn slot_names(&self, _: &Variable) -> Vec<&'static str> {
        let mut names = vec!["velocity"];
        names.extend((self.momentum > 0.0).then_some("momentum"));
        names.extend(self.centered.then_some("average_gradient"));
        names
    }

    fn update(
        &self,
        step: &Step,
        w: &Tensor,
        g: &Tensor,
        slots: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let wanted = 1 + usize::from(self.momentum > 0.0) + usize::from(self.centered);
        if slots.len() != wanted {
            return Err(Error::Shape(message!(
                "{}: update was given {} slots; it needs {wanted}.",
                self.state.name(),
                slots.len()
            )));
        }
        let mean =
            |old: &Tensor, new: &Tensor| old.multiply(self.rho)?.add(new.multiply(1.0 - self.rho)?);
        let v = mean(&slots[0], &g.square()?)?;
        let (mut spread, mut after) = (v.clone(), vec![v]);
        let average = match slots.last().filter(|_| self.centered) {
            Some(average) => Some(mean(average, g)?),
            None => None,
        };
        if let Some(average) = &average {
            spread = spread.subtract(average.square()?)?;
        }
        let root = spread.add(self.epsilon)?.sqrt()?;
        let mut down = g.multiply(step.learning_rate())?.divide(root)?;
        if self.momentum > 0.0 {
            down = slots[1].multiply(self.momentum)?.add(down)?;
            after.push(down.clone());
        }
        after.extend(average);
        Ok((w.subtract(down)?, after))
    }
}
