//! [`Lamb`]: Adam with steps proportional to the size of each variable.

use super::setters::optimizer;
use super::{Optimizer, OptimizerState, Step};
use crate::error::Result;
use crate::ops::where_;
use crate::tensor::Tensor;
use crate::trackable::Trackable;
use crate::variable::Variable;

optimizer! {
    /// LAMB (You et al. 2020) in Keras's form, for large batches: with Adam's `m`, `v` and
    /// `u = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + epsilon)`, `w -= lr |w| / |u| u`. The ratio of the norms is 1 where one of
    /// them is 0.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::optimizers::{Optimizer, Lamb};
    /// let w = tf::Variable::new(tf::constant(3.0)?);
    /// Lamb::new(0.1).apply_gradients(&[Some(tf::constant(50.0)?)], &w)?;
    /// // The step is a tenth of the weight, whatever the gradient's size.
    /// assert!((w.read().item::<f32>()? - 2.7).abs() < 1e-5);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Debug, Trackable)]
    pub struct Lamb("lamb") {
        /// Creates an optimizer with this learning rate (Keras's default is 0.001), betas of 0.9 and 0.999, an epsilon of 1e-7.
        new,
        beta_1: f64 = 0.9,
        beta_2: f64 = 0.999,
        epsilon: f64 = 1e-7,
    }
}

impl Optimizer for Lamb {
    fn state(&self) -> &OptimizerState {
        &self.state
    }

    fn slot_names(&self, _: &Variable) -> Vec<&'static str> {
        vec!["momentum", "velocity"]
    }

    fn update(
        &self,
        step: &Step,
        w: &Tensor,
        g: &Tensor,
        slots: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let [m, v] = super::slots(&self.state, slots)?;
        let m = m.add(g.subtract(m)?.multiply(1.0 - self.beta_1)?)?;
        let v = v.add(g.square()?.subtract(v)?.multiply(1.0 - self.beta_2)?)?;
        let (b1, b2) = (self.beta_1, self.beta_2);
        let mean = m.divide(step.scalar(move |t, _| 1.0 - b1.powi(t)))?;
        let spread =
            v.divide(step.scalar(move |t, _| 1.0 - b2.powi(t)))?.sqrt()?.add(self.epsilon)?;
        let up = mean.divide(spread)?;
        let norm = |x: &Tensor| x.square()?.reduce_sum(())?.sqrt();
        let (of_w, of_up) = (norm(w)?, norm(&up)?);
        let some = of_w.greater(0.0)?.logical_and(of_up.greater(0.0)?)?;
        let ratio = where_(&some, &of_w.divide(&of_up)?, &of_w.ones_like()?)?;
        let down = up.multiply(ratio.multiply(step.learning_rate())?)?;
        Ok((w.subtract(down)?, vec![m, v]))
    }
}
