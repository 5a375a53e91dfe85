//! [`Nadam`]: Adam with Nesterov's momentum.

use super::setters::setter;
use super::{LearningRate, Optimizer, OptimizerState, Step};
use crate::error::Result;
use crate::host_array::HostDType;
use crate::tensor::Tensor;
use crate::trackable::{Class, HostState, PartNames, Parts, Trackable};
use crate::variable::Variable;

/// Nadam (Dozat 2016) in Keras's form: with `u_t = b1 (1 - 0.96^t / 2)` and the product `U_t` of all of them so far,
/// `m += (g - m)(1 - b1)`, `v += (g^2 - v)(1 - b2)`,
/// `w -= lr (u_(t+1) m / (1 - U_(t+1)) + (1 - u_t) g / (1 - U_t)) / (sqrt(v / (1 - b2^t)) + epsilon)`.
///
/// The host computes `U_t` from the count of steps, so it is not a variable here.
#[derive(Debug)]
pub struct Nadam {
    state: OptimizerState,
    beta_1: f64,
    beta_2: f64,
    epsilon: f64,
}

impl Nadam {
    /// Creates an optimizer with this learning rate (Keras's default is 0.001), betas of 0.9 and 0.999, an epsilon of
    /// 1e-7.
    pub fn new(learning_rate: impl Into<LearningRate>) -> Self {
        let state = OptimizerState::new("nadam", learning_rate);
        Nadam { state, beta_1: 0.9, beta_2: 0.999, epsilon: 1e-7 }
    }

    setter!(beta_1: f64);
    setter!(beta_2: f64);
    setter!(epsilon: f64);
}

impl Trackable for Nadam {
    fn track(&self, parts: &mut Parts<'_>) {
        self.state.track(parts);
        parts.state("u_product", &Product(self));
    }

    fn class(&self) -> Option<&'static Class> {
        static CLASS: Class =
            Class::new("Nadam").attributes(&[PartNames::new("u_product").checkpoint("_u_product")]);
        Some(&CLASS)
    }
}

/// `U_t`, which Keras stores in checkpoints. Here, restoring the count of steps restores it.
struct Product<'a>(&'a Nadam);

impl HostState for Product<'_> {
    fn form(&self) -> (HostDType, Option<&'static [usize]>) {
        (HostDType::F32, Some(&[]))
    }

    fn get(&self) -> Result<Vec<u8>> {
        let steps = i32::try_from(self.0.state.iterations()).unwrap_or(i32::MAX);
        Ok((product(self.0.beta_1, steps) as f32).to_le_bytes().into())
    }

    fn set(&self, _: &[u8]) -> Result<()> {
        Ok(())
    }
}

impl Optimizer for Nadam {
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
        let of_mean = step.scalar(move |t, lr| {
            lr * warmed(b1, t.saturating_add(1)) / (1.0 - product(b1, t.saturating_add(1)))
        });
        let of_gradient =
            step.scalar(move |t, lr| lr * (1.0 - warmed(b1, t)) / (1.0 - product(b1, t)));
        let correction = step.scalar(move |t, _| 1.0 - b2.powi(t));
        let up = m.multiply(of_mean)?.add(g.multiply(of_gradient)?)?;
        let down = up.divide(v.divide(correction)?.sqrt()?.add(self.epsilon)?)?;
        Ok((w.subtract(down)?, vec![m, v]))
    }
}

/// The momentum of step `t`, which increases to `beta_1`.
fn warmed(beta_1: f64, t: i32) -> f64 {
    beta_1 * (1.0 - 0.5 * 0.96f64.powi(t))
}

/// The product of the momenta of the steps 1 to `t`.
fn product(beta_1: f64, t: i32) -> f64 {
    // After 1,000 steps, 0.96^t is less than the precision of a double.
    let grown = t.min(1000);
    (1..=grown).map(|t| warmed(beta_1, t)).product::<f64>() * beta_1.powi(t - grown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_product_is_as_of_all_its_factors() {
        for (beta_1, t) in [(0.9, 1), (0.9, 60), (0.9999, 1500), (0.0, 3)] {
            let all: f64 = (1..=t).map(|t| beta_1 * (1.0 - 0.5 * 0.96f64.powi(t))).product();
            assert!((product(beta_1, t) - all).abs() <= 1e-12 * all, "{beta_1} {t}");
        }
        assert_eq!(product(0.5, i32::MAX), 0.0);
    }
}
