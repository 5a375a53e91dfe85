//! [`Adafactor`]: Adam that stores the mean squares of a matrix by rows and columns.

use super::setters::optimizer;
use super::{Optimizer, OptimizerState, Step};
use crate::error::Result;
use crate::shape::Axes;
use crate::tensor::Tensor;
use crate::trackable::{Class, Trackable};
use crate::variable::Variable;

/// What checkpoints know of it.
static CLASS: Class = Class::new("Adafactor").unlisted_slots(&["r", "c", "velocity"]);

optimizer! {
    /// Adafactor (Shazeer and Stern 2018) in Keras's form, at step `t` from 1, without momentum: with `b = 1 - t^beta_2_decay`,
    /// the means `r` of `g^2 + epsilon_1` along the last axis and `c` along the one before it, both
    /// moving by `b`, and `v = r / mean(r) c` (for vectors and scalars the moving mean itself):
    /// `w -= max(epsilon_2, rms(w)) min(lr, 1 / sqrt(t)) u / max(1, rms(u) / clip_threshold)` for `u = g / sqrt(v)`.
    #[derive(Debug, Trackable)]
    #[track(class = &CLASS)]
    pub struct Adafactor("adafactor") {
        /// Creates an optimizer with this learning rate (Keras's default is 0.001) and the defaults of the paper.
        new,
        /// Sets the exponent of the decay of `b`.
        beta_2_decay: f64 in Finite = -0.8,
        /// Sets the number that is added to squares.
        epsilon_1: f64 in NotNegative = 1e-30,
        /// Sets the minimum that is assumed for the root mean square of a variable.
        epsilon_2: f64 in NotNegative = 1e-3,
        /// Sets the root mean square above which updates are scaled down.
        clip_threshold: f64 in Positive = 1.0,
        /// Sets whether the learning rate is at most `1 / sqrt(t)`. As in Keras, the formula uses the minimum of both in either
        /// case.
        relative_step: bool = true,
    }
}

impl Optimizer for Adafactor {
    fn state(&self) -> &OptimizerState {
        &self.state
    }

    fn slot_names(&self, variable: &Variable) -> Vec<&'static str> {
        match variable.shape().len() {
            0 | 1 => vec!["velocity"],
            _ => vec!["r", "c", "velocity"],
        }
    }

    fn slot_start(&self, name: &str, variable: &Variable) -> Result<Tensor> {
        let mut shape = variable.shape().to_vec();
        // `r` has all axes but the last, `c` all but the one before it.
        match (name, shape.len()) {
            ("r", 2..) => drop(shape.pop()),
            ("c", rank @ 2..) => drop(shape.remove(rank - 2)),
            _ => {}
        }
        let start = variable.peek();
        start.device().scope(|| Tensor::zeros(shape))?.cast(variable.dtype())
    }

    fn update(
        &self,
        step: &Step,
        w: &Tensor,
        g: &Tensor,
        slots: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let of = |x: &Tensor| x.square()?.reduce_mean(())?.sqrt();
        let (decay, threshold) = (self.beta_2_decay, self.clip_threshold);
        let forgets = move |t: i32| f64::from(t).powf(decay);
        let mean = |old: &Tensor, new: &Tensor| {
            let (keep, take) =
                (step.scalar(move |t, _| 1.0 - forgets(t)), step.scalar(move |t, _| forgets(t)));
            old.multiply(keep)?.add(new.multiply(take)?)
        };
        let squares = g.square()?.add(self.epsilon_1)?;
        let mut after = Vec::with_capacity(slots.len());
        let v = if w.rank() < 2 {
            let [v] = super::slots(&self.state, slots)?;
            mean(v, &squares)?
        } else {
            let [r, c, _] = super::slots(&self.state, slots)?;
            let r = mean(r, &squares.reduce_mean(-1)?)?;
            let c = mean(c, &squares.reduce_mean(-2)?)?;
            let rows = r.divide(r.reduce_mean(Axes::from(-1).keepdims(true))?)?;
            let v = rows.expand_dims(-1)?.multiply(c.expand_dims(-2)?)?;
            after.extend([r, c]);
            v
        };
        let up = g.divide(v.sqrt()?)?;
        after.push(v);
        let cut = of(&up)?.divide(threshold)?.maximum(1.0)?;
        let rate = step.scalar(move |t, lr| lr.min(1.0 / f64::from(t).sqrt()));
        let size = of(w)?.maximum(self.epsilon_2)?.multiply(rate)?;
        Ok((w.subtract(up.divide(cut)?.multiply(size)?)?, after))
    }
}
