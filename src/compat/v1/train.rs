//! Optimizers with TensorFlow 1's names, defaults and slots in checkpoints.

use std::sync::Arc;

use crate::keras::optimizers::{self, Adagrad, Adam, LearningRate, Sgd};

/// An optimizer of a graph, for [`GraphBuilder::minimize`](super::GraphBuilder::minimize).
pub struct Optimizer {
    pub(super) optimizer: Arc<dyn optimizers::Optimizer>,
    /// How TensorFlow 1 names the slots of a variable, and what else it stores.
    pub(super) form: Form,
}

#[derive(Clone, Copy)]
pub(super) enum Form {
    /// Without slots.
    Plain,
    /// The slot has this name. TensorFlow's is the sum of gradients, Keras's of negative steps.
    Momentum(&'static str),
    /// The slot has this name.
    Named(&'static str),
    /// The slots have this name, and powers of the decay rates count the steps.
    Adam(&'static str),
    /// An optimizer that TensorFlow 1 does not have: its slots have wgrad's names.
    Keras,
}

/// `tf.compat.v1.train.GradientDescentOptimizer`.
pub fn gradient_descent_optimizer(learning_rate: impl Into<LearningRate>) -> Optimizer {
    Optimizer { optimizer: Arc::new(Sgd::new(learning_rate)), form: Form::Plain }
}

/// `tf.compat.v1.train.MomentumOptimizer`.
pub fn momentum_optimizer(learning_rate: impl Into<LearningRate>, momentum: f64) -> Optimizer {
    let sgd = Sgd::new(learning_rate).momentum(momentum);
    Optimizer { optimizer: Arc::new(sgd), form: Form::Momentum("Momentum") }
}

/// `tf.compat.v1.train.AdamOptimizer`: Keras's with an epsilon of 1e-8.
pub fn adam_optimizer(learning_rate: impl Into<LearningRate>) -> Optimizer {
    let adam = Adam::new(learning_rate).epsilon(1e-8);
    Optimizer { optimizer: Arc::new(adam), form: Form::Adam("Adam") }
}

/// `tf.compat.v1.train.AdagradOptimizer`: Keras's without an epsilon.
pub fn adagrad_optimizer(learning_rate: impl Into<LearningRate>) -> Optimizer {
    let adagrad = Adagrad::new(learning_rate).epsilon(0.0);
    Optimizer { optimizer: Arc::new(adagrad), form: Form::Named("Adagrad") }
}

/// Any optimizer of [`keras`](crate::keras::optimizers).
impl<O: optimizers::Optimizer + 'static> From<O> for Optimizer {
    fn from(optimizer: O) -> Self {
        Optimizer { optimizer: Arc::new(optimizer), form: Form::Keras }
    }
}

impl std::fmt::Debug for Optimizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Optimizer({})", self.optimizer.state().name())
    }
}
