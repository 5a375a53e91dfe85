//! [`Adam`] and [`AdamW`]: adapt the step size of each element to its gradients.

use super::setters::setter;
use super::{LearningRate, Optimizer, OptimizerState, Step};
use crate::error::Result;
use crate::tensor::{Operand, Tensor};
use crate::trackable::Trackable;
use crate::variable::Variable;

/// Adam (Kingma and Ba 2015) in Keras's form, at step `t` from 1:
/// `m += (g - m)(1 - b1)`, `v += (g^2 - v)(1 - b2)`, `w -= lr sqrt(1 - b2^t) / (1 - b1^t) m / (sqrt(v) + epsilon)`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::optimizers::{Adam, Optimizer};
/// let w = tf::Variable::new(&tf::constant(3.0)?);
/// let adam = Adam::new(0.1);
/// adam.apply_gradients(&[Some(tf::constant(50.0)?)], &w)?;
/// // The first step has the size of the learning rate, whatever the gradient's.
/// assert!((w.read().item::<f32>()? - 2.9).abs() < 1e-5);
/// assert_eq!(adam.iterations(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Trackable)]
pub struct Adam {
    #[track(flatten)]
    state: OptimizerState,
    beta_1: f64,
    beta_2: f64,
    epsilon: f64,
    /// The maximum, if the formula uses it. A program that never sets it does not contain its code.
    #[track(skip)]
    amsgrad: Option<fn(&Tensor, &Tensor) -> Result<Tensor>>,
}

impl Adam {
    /// Creates an optimizer with this learning rate (Keras's default is 0.001), betas of 0.9 and 0.999, an epsilon of 1e-7.
    pub fn new(learning_rate: impl Into<LearningRate>) -> Self {
        Adam::named("adam", learning_rate.into())
    }

    fn named(name: &str, learning_rate: LearningRate) -> Self {
        let state = OptimizerState::new(name, learning_rate);
        Adam { state, beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7, amsgrad: None }
    }

    setter!(beta_1: f64);
    setter!(beta_2: f64);
    setter!(epsilon: f64);

    /// Sets whether the formula uses the largest `v` so far (Reddi et al. 2018).
    pub fn amsgrad(mut self, amsgrad: bool) -> Self {
        self.amsgrad = amsgrad.then_some(|a, b| a.maximum(b));
        self
    }
}

impl Optimizer for Adam {
    fn state(&self) -> &OptimizerState {
        &self.state
    }

    fn slot_names(&self, _: &Variable) -> Vec<&'static str> {
        let mut names = vec!["momentum", "velocity"];
        names.extend(self.amsgrad.map(|_| "velocity_hat"));
        names
    }

    fn update(
        &self,
        step: &Step,
        w: &Tensor,
        g: &Tensor,
        slots: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let (largest, slots) = match slots {
            [rest @ .., largest] if self.amsgrad.is_some() => (Some(largest), rest),
            _ => (None, slots),
        };
        let [m, v] = super::slots(&self.state, slots)?;
        let betas = [self.beta_1, self.beta_2];
        let [m, v] = means(g, [m, v], betas)?;
        let alpha = corrected_rate(step, betas, 1.0);
        let mut after = vec![m.clone(), v.clone()];
        let mut spread = v;
        if let (Some(largest), Some(maximum)) = (largest, self.amsgrad) {
            spread = maximum(largest, &spread)?;
            after.push(spread.clone());
        }
        let down = m.multiply(alpha)?.divide(spread.sqrt()?.add(self.epsilon)?)?;
        Ok((w.subtract(down)?, after))
    }
}

/// The new means of gradients and of squared gradients.
pub(super) fn means(g: &Tensor, [m, v]: [&Tensor; 2], [b1, b2]: [f64; 2]) -> Result<[Tensor; 2]> {
    let m = m.add(g.subtract(m)?.multiply(1.0 - b1)?)?;
    let v = v.add(g.square()?.subtract(v)?.multiply(1.0 - b2)?)?;
    Ok([m, v])
}

/// `ratio` times the learning rate, corrected for the bias of means that start at 0.
pub(super) fn corrected_rate(step: &Step, [b1, b2]: [f64; 2], ratio: f64) -> Operand {
    step.scalar(move |t, lr| ratio * lr * (1.0 - b2.powi(t)).sqrt() / (1.0 - b1.powi(t)))
}

/// [`Adam`] with decoupled weight decay (Loshchilov and Hutter 2019): each step first subtracts `lr weight_decay w` from `w`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::optimizers::{AdamW, Optimizer};
/// let w = tf::Variable::new(tf::constant(2.0)?);
/// let adamw = AdamW::new(0.1).weight_decay(0.5);
/// adamw.apply_gradients(&[Some(tf::constant(0.0)?)], &w)?;
/// assert!((w.read().item::<f32>()? - 1.9).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Trackable)]
pub struct AdamW(#[track(flatten)] Adam);

impl AdamW {
    /// Creates an optimizer with this learning rate (Keras's default is 0.001), a weight decay of 0.004, betas of 0.9 and
    /// 0.999, an epsilon of 1e-7.
    pub fn new(learning_rate: impl Into<LearningRate>) -> Self {
        AdamW(Adam::named("adamw", learning_rate.into()).weight_decay(0.004))
    }

    /// Same as [`Adam::beta_1`].
    pub fn beta_1(self, beta_1: f64) -> Self {
        AdamW(self.0.beta_1(beta_1))
    }

    /// Same as [`Adam::beta_2`].
    pub fn beta_2(self, beta_2: f64) -> Self {
        AdamW(self.0.beta_2(beta_2))
    }

    /// Same as [`Adam::epsilon`].
    pub fn epsilon(self, epsilon: f64) -> Self {
        AdamW(self.0.epsilon(epsilon))
    }

    /// Same as [`Adam::amsgrad`].
    pub fn amsgrad(self, amsgrad: bool) -> Self {
        AdamW(self.0.amsgrad(amsgrad))
    }
}

impl Optimizer for AdamW {
    fn state(&self) -> &OptimizerState {
        self.0.state()
    }

    fn slot_names(&self, variable: &Variable) -> Vec<&'static str> {
        self.0.slot_names(variable)
    }

    fn update(
        &self,
        step: &Step,
        w: &Tensor,
        g: &Tensor,
        slots: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        self.0.update(step, w, g, slots)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::tensor::constant;

    #[test]
    fn the_correction_fades() -> Result<()> {
        let adam = Adam::new(1e-3);
        let (w, g) = (constant(0.0)?, constant(1.0)?);
        // With a gradient of 1, means of 1 stay 1, so the update is alpha.
        let slots = [constant(1.0)?, constant(1.0)?];
        let alpha = |made| {
            adam.set_iterations(made);
            let (w, _) = adam.update(&adam.state.step()?, &w, &g, &slots)?;
            Ok::<_, Error>(-f64::from(w.item::<f32>()?))
        };
        // sqrt(1 - 0.999) / (1 - 0.9) = 0.31623
        assert!((alpha(0)? / 1e-3 - 0.316_227_766).abs() < 1e-6);
        assert!((alpha(100_000)? / 1e-3 - 1.0).abs() < 1e-6);
        Ok(())
    }
}
