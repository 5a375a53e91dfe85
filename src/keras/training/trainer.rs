//! [`Trainer`]: the `compile` settings of a model, and the history of its training.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use super::choices::{IntoOptimizer, OutputLosses};
use super::compile::CompileOptions;
use super::label_check::{Check, CheckedLabels};
use super::logs::{History, StepLogs};
use super::outputs::{Outlet, Recipe, outlets};
#[cfg(not(target_family = "wasm"))]
use super::step_functions::StepFunctions;
use crate::data::Batch;
#[cfg(not(target_family = "wasm"))]
use crate::distribute::Strategy;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::keras::DTypePolicy;
#[cfg(not(target_family = "wasm"))]
use crate::keras::losses::Reduction;
use crate::keras::metrics::Metric;
use crate::keras::optimizers::Optimizer;
use crate::tensor::Tensor;
use crate::trackable::{NamedArray, Scope, set};
use crate::trackable::{Parts, Trackable};

/// The state that a [`Model`](super::Model) needs for `compile` and `fit`: a field of the model, initially
/// `Trainer::default()`. It is not a part of the model: weights and summaries omit it.
#[derive(Default)]
pub struct Trainer {
    state: Mutex<State>,
    /// The policy under which the model was created.
    policy: DTypePolicy,
    #[cfg(not(target_family = "wasm"))]
    scope: OwnScope,
    /// The batches of the training in progress are those of this process alone.
    #[cfg(not(target_family = "wasm"))]
    own_data: AtomicBool,
}

/// The strategy in whose scope a model was created.
#[cfg(not(target_family = "wasm"))]
struct OwnScope(Option<Strategy>);

#[cfg(not(target_family = "wasm"))]
impl Default for OwnScope {
    fn default() -> Self {
        OwnScope(Strategy::of_scope())
    }
}

impl std::fmt::Debug for Trainer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Trainer").field("policy", &self.policy).finish_non_exhaustive()
    }
}

/// A [`Compiled`], a [`History`] and [`StepFunctions`], with their types erased: a web page that only calls its models does not contain the
/// training code.
#[derive(Default)]
struct State {
    compiled: Option<Arc<dyn Any + Send + Sync>>,
    history: Option<Arc<dyn Any + Send + Sync>>,
    /// The functions of the calls that are in progress, and the number of these calls.
    #[cfg(not(target_family = "wasm"))]
    functions: Option<(Arc<dyn Any + Send + Sync>, usize)>,
}

/// While it exists, the default steps of the model run as functions.
#[cfg(not(target_family = "wasm"))]
pub(super) struct Stepping<'a>(&'a Trainer);

#[cfg(not(target_family = "wasm"))]
impl Drop for Stepping<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        let last = state.functions.as_mut().is_none_or(|(_, calls)| {
            *calls -= 1;
            *calls == 0
        });
        let functions = state.functions.take_if(|_| last);
        // The tensors of the traces are dropped without the lock.
        drop(state);
        drop(functions);
    }
}

impl Trainer {
    /// Creates a trainer before `compile`.
    pub fn new() -> Self {
        Trainer::default()
    }

    /// The strategy of the model, if it has several replicas.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn strategy(&self) -> Option<Strategy> {
        self.scope.0.clone().filter(|strategy| strategy.num_replicas_in_sync() > 1)
    }

    #[cfg(not(target_family = "wasm"))]
    pub(super) fn has_own_data(&self) -> bool {
        self.own_data.load(Ordering::Relaxed)
    }

    #[cfg(not(target_family = "wasm"))]
    pub(super) fn set_own_data(&self, own: bool) {
        self.own_data.store(own, Ordering::Relaxed);
    }

    /// Returns the optimizer.
    ///
    /// # Errors
    /// [`Error::Data`] before `compile`.
    pub fn optimizer(&self) -> Result<Arc<dyn Optimizer>> {
        Ok(self.compiled("Trainer::optimizer")?.optimizer.clone())
    }

    /// Returns the metrics and their names in logs; there are none before the first batch.
    pub fn metrics(&self) -> Vec<(String, Arc<dyn Metric>)> {
        self.compiled_if_any().map_or(Vec::new(), |compiled| compiled.named_metrics())
    }

    /// Returns the history of the last `fit`, even if it ended with an error.
    pub fn history(&self) -> Option<Arc<History>> {
        self.state().history.clone().and_then(|history| history.downcast().ok())
    }

    pub(super) fn set_history(&self, history: History) {
        self.state().history = Some(Arc::new(history));
    }

    pub(super) fn compile(
        &self,
        optimizer: impl IntoOptimizer,
        losses: OutputLosses,
        options: CompileOptions,
    ) -> Result<()> {
        if let Some(error) = options.error {
            return Err(error);
        }
        let mut optimizer = optimizer.into_optimizer()?;
        // As in Keras: small gradients in `f16` would become 0.
        let mixed = self.policy == DTypePolicy::MIXED_FLOAT16;
        if mixed && options.auto_scale_loss && !optimizer.state().scales_loss() {
            log::info!("compile: mixed_float16, so a LossScaleOptimizer scales the loss.");
            optimizer = crate::keras::dtype_policy::scaling(optimizer);
        }
        // As in Keras, only every so many calls make a step, which a function cannot do.
        let accumulates = optimizer.state().accumulates();
        let compiled = Compiled {
            run_eagerly: options.run_eagerly || accumulates,
            optimizer,
            recipe: Recipe {
                losses: losses.0,
                loss_weights: options.loss_weights,
                metrics: options.metrics,
            },
            outlets: OnceLock::new(),
            checked_labels: AtomicBool::new(false),
            waiting: Mutex::default(),
        };
        self.state().compiled = Some(Arc::new(compiled));
        #[cfg(not(target_family = "wasm"))]
        if let Some(functions) = self.step_functions() {
            functions.settings_changed();
        }
        Ok(())
    }

    /// The `compile` settings, which `call` needs.
    pub(super) fn compiled(&self, call: &str) -> Result<Arc<Compiled>> {
        self.compiled_if_any().ok_or_else(|| not_compiled(call))
    }

    pub(super) fn compiled_if_any(&self) -> Option<Arc<Compiled>> {
        self.state().compiled.clone().and_then(|compiled| compiled.downcast().ok())
    }

    /// Lets the default steps run as functions until the result is dropped, unless `compile` has set `run_eagerly`.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn step_by_functions(&self) -> Option<Stepping<'_>> {
        // The step of an optimizer in several replicas is no function.
        if self.strategy().is_some()
            || self.compiled_if_any().is_some_and(|compiled| compiled.run_eagerly)
        {
            return None;
        }
        let mut state = self.state();
        let (_, calls) = state.functions.get_or_insert_with(|| (Arc::new(StepFunctions::new()), 0));
        *calls += 1;
        Some(Stepping(self))
    }

    /// The functions by which the default steps run now.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn step_functions(&self) -> Option<Arc<StepFunctions>> {
        let functions = self.state().functions.as_ref().map(|(functions, _)| functions.clone());
        functions.and_then(|functions| functions.downcast().ok())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn not_compiled(call: &str) -> Error {
    Error::Data(crate::error::message!(
        "{call}: the model is not compiled. Call compile(\"adam\", \"mse\", CompileOptions::new()) first, with the \
         optimizer and the loss that it is to be trained with."
    ))
}

impl Trackable for Trainer {
    fn track(&self, _: &mut Parts<'_>) {}

    // A summary omits parts without a name.
    fn kind(&self) -> &'static str {
        ""
    }
}

/// The `compile` settings.
pub(crate) struct Compiled {
    /// Whether `fit`, `evaluate` and `predict` call the layers at each step.
    #[cfg_attr(target_family = "wasm", allow(dead_code))]
    run_eagerly: bool,
    optimizer: Arc<dyn Optimizer>,
    recipe: Recipe,
    /// The losses and metrics of each output, once the first batch has shown which outputs there are.
    outlets: OnceLock<Vec<Outlet>>,
    /// Whether the labels of the next batches are known to be right.
    checked_labels: AtomicBool,
    /// The states from a backup of metrics that do not exist yet.
    waiting: Mutex<Vec<Vec<NamedArray<'static>>>>,
}

impl Compiled {
    pub(crate) fn optimizer(&self) -> &dyn Optimizer {
        &*self.optimizer
    }

    /// The losses and metrics of each output.
    pub(super) fn outlets(
        &self,
        names: impl FnOnce() -> Vec<String>,
        batch: &Batch,
        y_pred: &[Tensor],
    ) -> Result<&[Outlet]> {
        let outlets = match self.outlets.get() {
            Some(outlets) => outlets,
            None => {
                let made = outlets(&self.recipe, names(), &batch.y, y_pred)?;
                let made = self.outlets.get_or_init(|| made);
                self.fill_metrics()?;
                made
            }
        };
        match outlets.len() == y_pred.len() {
            true => Ok(outlets),
            false => Err(Error::Shape(crate::error::message!(
                "the model returned {} outputs, and {} in the batches before. Compile it again.",
                y_pred.len(),
                outlets.len()
            ))),
        }
    }

    /// Computes the loss, and the losses of the outputs if there are several. The `checked` labels replace those of the batch.
    pub(super) fn loss(
        &self,
        outlets: &[Outlet],
        batch: &Batch,
        checked: &[CheckedLabels],
        y_pred: &[Tensor],
        mask: Option<&Tensor>,
    ) -> Result<(Option<Tensor>, StepLogs)> {
        let several = outlets.iter().filter(|outlet| outlet.loss.is_some()).count() > 1;
        let (mut total, mut logs) = (None::<Tensor>, StepLogs::new());
        for (at, outlet) in outlets.iter().enumerate() {
            let Some(loss) = &outlet.loss else { continue };
            let y_true = match checked.iter().find(|checked| checked.output == at) {
                Some(checked) => &checked.labels,
                None => outlet.target(&batch.y)?,
            };
            let weight = sample_weight(batch, at);
            let value = loss.call_masked(y_true, &y_pred[at], weight, mask)?;
            // A step takes the mean over the replicas, and the sum over a batch is the sum of theirs.
            #[cfg(not(target_family = "wasm"))]
            let value = match crate::keras::share::share().filter(|share| *share > 0.0) {
                Some(share) if loss.reduction() == Reduction::Sum => value.divide(share)?,
                _ => value,
            };
            if value.rank() != 0 {
                return Err(Error::Shape(crate::error::message!(
                    "the loss '{}' is {:?}; training needs a scalar. Give the loss a reduction, such as \
                     Reduction::SumOverBatchSize.",
                    loss.name(),
                    value.shape()
                )));
            }
            if several {
                logs = logs.add(&format!("{}_loss", outlet.name), &value);
            }
            let value = match outlet.loss_weight {
                Some(weight) => value.multiply(weight)?,
                None => value,
            };
            total = Some(match total {
                Some(total) => total.add(value)?,
                None => value,
            });
        }
        Ok((total, logs))
    }

    /// Whether the labels of the next batches have already been checked.
    pub(super) fn has_checked_labels(&self) -> bool {
        self.checked_labels.load(Ordering::Relaxed)
    }

    pub(super) fn set_checked_labels(&self, checked: bool) {
        self.checked_labels.store(checked, Ordering::Relaxed);
    }

    /// The checks of the labels of a batch.
    pub(super) fn checks(
        &self,
        outlets: &[Outlet],
        batch: &Batch,
        y_pred: &[Tensor],
    ) -> Result<Vec<CheckedLabels>> {
        let mut all = Vec::new();
        for (output, (outlet, y_pred)) in outlets.iter().zip(y_pred).enumerate() {
            let Some(loss) = &outlet.loss else { continue };
            let checked = Check::new(loss, outlet.target(&batch.y)?, y_pred)?;
            all.extend(checked.map(|(check, labels)| CheckedLabels { output, check, labels }));
        }
        Ok(all)
    }

    /// Adds a batch to the metrics.
    pub(super) fn update_metrics(
        &self,
        outlets: &[Outlet],
        batch: &Batch,
        y_pred: &[Tensor],
        mask: Option<&Tensor>,
    ) -> Result<()> {
        // Metrics do not propagate gradients, so tapes need not record them.
        let mask = mask.map(|mask| mask.detached().cast(DType::F32)).transpose()?;
        for (at, outlet) in outlets.iter().enumerate() {
            if outlet.metrics.is_empty() {
                continue;
            }
            let (y_true, y_pred) = (outlet.target(&batch.y)?, y_pred[at].detached());
            for metric in &outlet.metrics {
                let weight = sample_weight(batch, at).filter(|_| metric.weighted);
                let weight = match (weight, &mask) {
                    (Some(weight), Some(mask)) => {
                        let mut shape = weight.shape().to_vec();
                        shape.resize(mask.rank().max(shape.len()), 1);
                        Some(mask.multiply(weight.reshape(&shape)?)?)
                    }
                    (weight, mask) => weight.cloned().or_else(|| mask.clone()),
                };
                metric.metric.update(y_true, &y_pred, weight.as_ref())?;
            }
        }
        Ok(())
    }

    fn metrics_in_use(&self) -> impl Iterator<Item = (&str, &Arc<dyn Metric>)> {
        let outlets = self.outlets.get().map_or(&[][..], |outlets| outlets);
        let metrics = outlets.iter().flat_map(|outlet| &outlet.metrics);
        // As in Keras, all metrics precede the weighted ones.
        let (plain, weighted): (Vec<_>, Vec<_>) = metrics.partition(|metric| !metric.weighted);
        plain.into_iter().chain(weighted).map(|metric| (&*metric.log, &metric.metric))
    }

    /// Sets states for the metrics in use, which need not exist yet.
    pub(super) fn leave_metrics(&self, states: Vec<Vec<NamedArray<'static>>>) -> Result<()> {
        *self.waiting.lock().unwrap_or_else(PoisonError::into_inner) = states;
        if self.outlets.get().is_some() { self.fill_metrics() } else { Ok(()) }
    }

    fn fill_metrics(&self) -> Result<()> {
        let states =
            std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        let mut states = self.metrics_in_use().zip(&states).filter(|(_, state)| !state.is_empty());
        states.try_for_each(|((_, metric), state)| set(metric, Scope::Checkpoint, state))
    }

    pub(super) fn named_metrics(&self) -> Vec<(String, Arc<dyn Metric>)> {
        self.metrics_in_use().map(|(name, metric)| (name.to_string(), metric.clone())).collect()
    }

    /// Computes the metrics' results.
    pub(super) fn results(&self) -> Result<Vec<(String, Tensor)>> {
        self.metrics_in_use()
            .map(|(name, metric)| Ok((name.to_string(), metric.result()?)))
            .collect()
    }

    pub(super) fn reset_metrics(&self) -> Result<()> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.metrics_in_use().try_for_each(|(_, metric)| metric.reset_state())
    }
}

/// The weights of the examples for the output at `at`.
fn sample_weight(batch: &Batch, at: usize) -> Option<&Tensor> {
    match batch.sample_weight.as_slice() {
        [all] => Some(all),
        each => each.get(at),
    }
}
