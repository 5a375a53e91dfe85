//! [`CompileOptions`]: metrics and weights of losses, for each output.

use super::choices::{Choice, IntoMetrics};
use crate::error::{Error, Result};
use crate::keras::metrics::Metric;

/// An output, by its index or by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// The output at this index, from 0.
    At(usize),
    /// The output with this name.
    Named(String),
}

impl From<usize> for Output {
    fn from(place: usize) -> Self {
        Output::At(place)
    }
}

impl From<&str> for Output {
    fn from(name: &str) -> Self {
        Output::Named(name.to_string())
    }
}

/// The metrics of one output; of the only one, if none is specified.
pub(super) struct MetricsOf {
    pub(super) output: Option<Output>,
    pub(super) weighted: bool,
    pub(super) metrics: Vec<(String, Choice<dyn Metric>)>,
}

/// The options of `compile`, besides the optimizer and the losses.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::{CompileOptions, Model, Sequential, layers::Dense, losses, metrics, optimizers::Adam};
/// let model = Sequential::new().add(Dense::new(10));
/// // By Keras's names,
/// model.compile("adam", "sparse_categorical_crossentropy", CompileOptions::new().metrics(["accuracy"]))?;
/// // or by values, which have options.
/// let loss = losses::SparseCategoricalCrossentropy::new().from_logits(true);
/// let accuracy = metrics::SparseCategoricalAccuracy::new("right");
/// model.compile(Adam::new(3e-4), loss, CompileOptions::new().metrics(accuracy))?;
/// # Ok(())
/// # }
/// ```
pub struct CompileOptions {
    pub(super) metrics: Vec<MetricsOf>,
    pub(super) loss_weights: Vec<(Option<String>, f32)>,
    pub(super) auto_scale_loss: bool,
    pub(super) run_eagerly: bool,
    /// The first error of a setter.
    pub(super) error: Option<Error>,
}

impl std::fmt::Debug for CompileOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CompileOptions")
            .field("loss_weights", &self.loss_weights)
            .field("auto_scale_loss", &self.auto_scale_loss)
            .field("run_eagerly", &self.run_eagerly)
            .finish_non_exhaustive()
    }
}

impl Default for CompileOptions {
    fn default() -> Self {
        let (metrics, loss_weights) = (Vec::new(), Vec::new());
        CompileOptions {
            metrics,
            loss_weights,
            auto_scale_loss: true,
            run_eagerly: false,
            error: None,
        }
    }
}

impl CompileOptions {
    /// Creates options without metrics, with equal weights for the losses.
    pub fn new() -> Self {
        CompileOptions::default()
    }

    /// Adds metrics of a model with one output: names such as `["accuracy", "mae"]`, or values.
    #[must_use]
    pub fn metrics(self, metrics: impl IntoMetrics) -> Self {
        self.add(None, false, metrics.into_metrics())
    }

    /// Adds metrics of one output, by its index or name.
    #[must_use]
    pub fn metrics_of(self, output: impl Into<Output>, metrics: impl IntoMetrics) -> Self {
        self.add(Some(output.into()), false, metrics.into_metrics())
    }

    /// Same as [`CompileOptions::metrics`], but sample and class weights apply to these metrics.
    #[must_use]
    pub fn weighted_metrics(self, metrics: impl IntoMetrics) -> Self {
        self.add(None, true, metrics.into_metrics())
    }

    /// Same as [`CompileOptions::metrics_of`], but sample and class weights apply to these metrics.
    #[must_use]
    pub fn weighted_metrics_of(self, output: impl Into<Output>, metrics: impl IntoMetrics) -> Self {
        self.add(Some(output.into()), true, metrics.into_metrics())
    }

    /// Sets the weights of the outputs' losses, in order.
    #[must_use]
    pub fn loss_weights(mut self, weights: impl IntoIterator<Item = f32>) -> Self {
        self.loss_weights = weights.into_iter().map(|weight| (None, weight)).collect();
        self
    }

    /// Sets the weight of the loss of the output `name`. Default: 1.
    #[must_use]
    pub fn loss_weight_of(mut self, name: &str, weight: f32) -> Self {
        self.loss_weights.push((Some(name.to_string()), weight));
        self
    }

    /// Sets whether the optimizer is wrapped in a [`LossScaleOptimizer`](crate::keras::optimizers::LossScaleOptimizer) for a
    /// model created under the policy `mixed_float16`. An optimizer that already scales the loss is not wrapped. Default:
    /// `true`.
    #[must_use]
    pub fn auto_scale_loss(mut self, auto_scale_loss: bool) -> Self {
        self.auto_scale_loss = auto_scale_loss;
        self
    }

    /// Sets whether `fit`, `evaluate` and `predict` call the model's layers at each step, for example to print in them or to step through
    /// them in a debugger. Otherwise, as in Keras, the default steps are traced once for each shape of a batch and then run as
    /// functions, natively; a step that does something else from call to call, or reads values, runs eagerly, with a warning.
    /// Epochs of less than 16 steps run eagerly. A custom [`train_step`](super::Model::train_step) is called at each step. Default: `false`.
    #[must_use]
    pub fn run_eagerly(mut self, run_eagerly: bool) -> Self {
        self.run_eagerly = run_eagerly;
        self
    }

    fn add(
        mut self,
        output: Option<Output>,
        weighted: bool,
        metrics: Result<Vec<(String, Choice<dyn Metric>)>>,
    ) -> Self {
        match metrics {
            Ok(metrics) => self.metrics.push(MetricsOf { output, weighted, metrics }),
            Err(error) => self.error = self.error.or(Some(error)),
        }
        self
    }
}
