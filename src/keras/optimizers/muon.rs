//! [`Muon`]: steps for matrices in the direction of the nearest orthogonal matrix, and of AdamW for all other variables.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::adam::{corrected_rate, means};
use super::options::{Options, Stage, StepStage, Trainable, Within};
use super::setters::setter;
use super::{LearningRate, Optimizer, OptimizerState, Step};
use crate::error::{Error, Result, message};
use crate::ops::MatmulOptions;
use crate::tensor::Tensor;
use crate::trackable::{self, Class, Trackable};
use crate::variable::Variable;

/// What checkpoints know of it.
static CLASS: Class = Class::new("Muon");

/// Muon (Jordan et al. 2024) in the form of Liu et al. 2025, as in Keras. For a matrix, `m = momentum m + g`, and
/// `w -= lr rms_rate sqrt(max(rows, columns)) o`, where `o` is `g + momentum m` (or `m`) with singular values near 1:
/// `x = g / |g|`, then `ns_steps` times `x = a x + (b x x^T + c (x x^T)^2) x`.
///
/// Variables that are not matrices, embeddings, and those of excluded layers make steps of AdamW, with a learning rate of
/// `adam_lr_ratio` times that of matrices. Usually the last layer is excluded by its name:
/// `exclude_layers(["head"])`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::optimizers::{Muon, Optimizer};
/// let w = tf::Variable::new(tf::constant([[1.0, 2.0]])?);
/// let muon = Muon::new(0.1).weight_decay(0.0).rms_rate(None);
/// muon.apply_gradients(&[Some(tf::constant([[3.0, 4.0]])?)], &w)?;
/// // The only singular value of the direction (0.6, 0.8) is 1; the iteration leaves it between 0.6 and 1.2.
/// let step = w.read().subtract(tf::constant([[1.0, 2.0]])?)?.to_vec::<f32>()?;
/// assert!((step[0] / step[1] - 0.75).abs() < 1e-4 && (0.06..0.12).contains(&(step[1] / -0.8)));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Trackable)]
#[track(class = &CLASS)]
pub struct Muon {
    #[track(flatten)]
    state: OptimizerState,
    adam_beta_1: f64,
    adam_beta_2: f64,
    epsilon: f64,
    muon_a: f64,
    muon_b: f64,
    muon_c: f64,
    adam_lr_ratio: f64,
    momentum: f64,
    ns_steps: usize,
    nesterov: bool,
    #[track(skip)]
    rms_rate: Option<f64>,
    #[track(skip)]
    kinds: Arc<Kinds>,
}

impl Muon {
    /// Creates an optimizer with this learning rate (Keras's default is 0.001), a momentum of 0.95, five iterations, weight
    /// decays of 0.004, betas of 0.9 and 0.999, an epsilon of 1e-7, and an `rms_rate` of 0.2.
    pub fn new(learning_rate: impl Into<LearningRate>) -> Self {
        let (state, kinds) = (OptimizerState::new("muon", learning_rate), Arc::<Kinds>::default());
        state.set(|options| options.set(StepStage::Kinds, Some(kinds.clone())));
        let muon = Muon {
            state,
            adam_beta_1: 0.9,
            adam_beta_2: 0.999,
            epsilon: 1e-7,
            muon_a: 3.4445,
            muon_b: -4.775,
            muon_c: 2.0315,
            adam_lr_ratio: 1.0,
            momentum: 0.95,
            ns_steps: 5,
            nesterov: true,
            rms_rate: Some(0.2),
            kinds,
        };
        muon.weight_decay(0.004)
    }

    setter! {
        /// Sets the decay rate of AdamW's mean of gradients, from 0 to below 1.
        adam_beta_1: f64 in Share
    }
    setter! {
        /// Sets the decay rate of AdamW's mean of squared gradients, from 0 to below 1.
        adam_beta_2: f64 in Share
    }
    setter!(epsilon: f64);
    setter! {
        /// Sets the coefficient of `x` in the iteration.
        muon_a: f64 in Finite
    }
    setter! {
        /// Sets the coefficient of `x x^T x` in the iteration.
        muon_b: f64 in Finite
    }
    setter! {
        /// Sets the coefficient of `(x x^T)^2 x` in the iteration.
        muon_c: f64 in Finite
    }
    setter! {
        /// Sets the learning rate of AdamW's steps relative to that of matrices.
        adam_lr_ratio: f64 in NotNegative
    }
    setter! {
        /// Sets the decay rate of a matrix's sum of gradients, from 0 to 1.
        momentum: f64 in Unit
    }
    setter! {
        /// Sets whether the next gradient counts once more in the direction (Nesterov).
        nesterov: bool
    }

    /// Sets the weight decay of the variables with steps of AdamW.
    pub fn adam_weight_decay(self, adam_weight_decay: f64) -> Self {
        self.state.require("adam_weight_decay", adam_weight_decay, Within::NotNegative);
        self.kinds.now().adam_decay = adam_weight_decay;
        self
    }

    /// Sets the number of iterations for each step of a matrix.
    pub fn ns_steps(mut self, ns_steps: usize) -> Self {
        self.ns_steps = ns_steps;
        self
    }

    /// Sets the root mean square of a matrix's steps relative to the learning rate; `None` makes them nearly orthogonal.
    pub fn rms_rate(mut self, rms_rate: impl Into<Option<f64>>) -> Self {
        self.rms_rate = rms_rate.into();
        self.state.require("rms_rate", self.rms_rate.unwrap_or(0.0), Within::Finite);
        self
    }

    /// Lets AdamW change the variables whose names (paths such as `head/kernel`) contain one of these strings. In Keras
    /// they are regular expressions.
    pub fn exclude_layers<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        let mut kinds = self.kinds.now();
        kinds.excluded.extend(names.into_iter().map(Into::into));
        kinds.known.clear();
        drop(kinds);
        self
    }

    /// Sets whether AdamW changes variables with `embedding` in their names; `true` by default.
    pub fn exclude_embeddings(self, exclude_embeddings: bool) -> Self {
        let mut kinds = self.kinds.now();
        kinds.embeddings = exclude_embeddings;
        kinds.known.clear();
        drop(kinds);
        self
    }

    /// The matrix near `g` whose singular values are near 1.
    fn orthogonal(&self, g: &Tensor) -> Result<Tensor> {
        let tall = g.shape()[0] > g.shape()[1];
        let mut x = if tall { g.transpose([1, 0])? } else { g.clone() };
        x = x.divide(x.reduce_euclidean_norm(())?.add(1e-7)?)?;
        for _ in 0..self.ns_steps {
            let square = x.matmul_with(&x, MatmulOptions::new().transpose_b(true))?;
            let fourth = square.multiply(self.muon_c)?.matmul(&square)?;
            let more = square.multiply(self.muon_b)?.add(fourth)?;
            x = x.multiply(self.muon_a)?.add(more.matmul(&x)?)?;
        }
        if tall { x.transpose([1, 0]) } else { Ok(x) }
    }

    fn adam(
        &self,
        step: &Step,
        w: &Tensor,
        g: &Tensor,
        slots: [&Tensor; 2],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let betas = [self.adam_beta_1, self.adam_beta_2];
        let [m, v] = means(g, slots, betas)?;
        let alpha = corrected_rate(step, betas, self.adam_lr_ratio);
        let down = m.multiply(alpha)?.divide(v.sqrt()?.add(self.epsilon)?)?;
        Ok((w.subtract(down)?, vec![m, v]))
    }
}

impl Optimizer for Muon {
    fn state(&self) -> &OptimizerState {
        &self.state
    }

    fn slot_names(&self, variable: &Variable) -> Vec<&'static str> {
        if self.kinds.now().by_adam(variable) {
            return vec!["momentum", "velocity"];
        }
        vec!["momentum"]
    }

    fn update(
        &self,
        step: &Step,
        w: &Tensor,
        g: &Tensor,
        slots: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        if let [m, v] = slots {
            return self.adam(step, w, g, [m, v]);
        }
        let [m] = super::slots(&self.state, slots)?;
        let m = m.multiply(self.momentum)?.add(g)?;
        let direction = if self.nesterov { m.multiply(self.momentum)?.add(g)? } else { m.clone() };
        let longer = w.shape().iter().max().map_or(0.0, |size| *size as f64);
        let size = self.rms_rate.map_or(1.0, |rate| longer.sqrt() * rate);
        let rate = step.scalar(move |_, lr| lr * size);
        Ok((w.subtract(self.orthogonal(&direction)?.multiply(rate)?)?, vec![m]))
    }
}

/// Which variables have steps of AdamW.
#[derive(Debug, Default)]
struct Kinds(Mutex<Choice>);

#[derive(Debug)]
struct Choice {
    excluded: Vec<String>,
    embeddings: bool,
    adam_decay: f64,
    /// Whether the name of a variable excludes it, by the variable's identity.
    known: HashMap<u64, bool>,
}

impl Default for Choice {
    fn default() -> Self {
        Choice { excluded: vec![], embeddings: true, adam_decay: 0.004, known: HashMap::new() }
    }
}

impl Choice {
    fn by_adam(&self, variable: &Variable) -> bool {
        variable.shape().len() != 2 || self.known.get(&variable.id()) == Some(&true)
    }
}

impl Kinds {
    fn now(&self) -> MutexGuard<'_, Choice> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stage for Kinds {
    fn begin(&self, options: &Options, variables: &Trainable<'_>) -> Result<()> {
        let mut now = self.now();
        if variables.list.iter().all(|variable| now.known.contains_key(&variable.id())) {
            return Ok(());
        }
        let mut nameless = !now.excluded.is_empty();
        for (path, variable) in trackable::named_trainable(variables.root) {
            let embedding = now.embeddings && path.to_lowercase().contains("embedding");
            let excluded = now.excluded.iter().any(|name| path.contains(name.as_str()));
            now.known.insert(variable.id(), embedding || excluded);
            nameless &= path == "variable" || !path.contains(char::is_alphabetic);
        }
        if nameless {
            now.known.clear();
            return Err(Error::Check(message!(
                "{}: exclude_layers uses names, [{}], and the step was given variables without names. Give it the \
                 model.",
                options.name,
                now.excluded.join(", ")
            )));
        }
        Ok(())
    }

    fn decay(&self, variable: &Variable) -> Option<f64> {
        let now = self.now();
        now.by_adam(variable).then_some(now.adam_decay)
    }
}
