//! [`Model`]: `compile`, `fit`, `evaluate` and `predict`.
//!
//! The loops are the same code on every target: `async`, with blocking variants on native targets. They call steps ahead of the
//! device and read the results later, so that the device never waits for the host.

mod any_model;
mod backup;
mod callback;
mod checks;
mod choices;
mod compile;
mod feed;
mod fit;
mod interrupt;
mod label_check;
mod logs;
mod options;
mod outputs;
mod pass;
mod phase;
mod progress;
mod reading;
#[cfg(not(target_family = "wasm"))]
mod replicas;
#[cfg(not(target_family = "wasm"))]
mod step_functions;
mod steps;
mod stop;
mod trainer;
#[cfg(not(target_family = "wasm"))]
mod workers;

pub use callback::{BatchLogs, Callback, EpochLogs, Run};
pub use choices::{
    Choice, IntoLoss, IntoLosses, IntoMetric, IntoMetrics, IntoOptimizer, OutputLosses,
};
pub use compile::{CompileOptions, Output};
pub use logs::{History, Logs, StepLogs};
pub use options::{EvaluateOptions, FitOptions, PredictOptions, Verbose};
pub(crate) use progress::Progress;
pub use stop::StopSignal;
pub use trainer::Trainer;

use any_model::Erased;

use super::{Context, Inputs, Layer, Outputs};
use crate::data::{Batch, IntoBatch, IntoModelData};
use crate::error::{Error, Result};
use crate::runtime::Device;
use crate::tensor::Tensor;
use crate::trackable::Trackable;

/// A layer that `compile` and `fit` train.
///
/// A custom model has a field for its [`Trainer`], and a method that returns it:
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Tensor, Trackable};
/// use tf::keras::{CompileOptions, Context, EvaluateOptions, FitOptions, Layer, Model, Trainer};
/// use tf::keras::{layers::Dense, optimizers::Sgd};
///
/// #[derive(Trackable)]
/// struct Line {
///     dense: Dense,
///     trainer: Trainer,
/// }
///
/// impl Layer for Line {
///     fn call(&self, x: &Tensor, cx: Context<'_>) -> tf::Result<Tensor> {
///         self.dense.call(x, cx)
///     }
/// }
///
/// impl Model for Line {
///     fn trainer(&self) -> &Trainer {
///         &self.trainer
///     }
/// }
///
/// let model = Line { dense: Dense::new(1), trainer: Trainer::new() };
/// model.compile(Sgd::new(0.2), "mse", CompileOptions::new())?;
/// let x = wgrad::ndarray::Array2::from_shape_fn((100, 1), |(i, _)| i as f32 / 100.0);
/// let y = x.mapv(|x| 3.0 * x + 1.0);
/// model.fit((&x, &y), FitOptions::new().epochs(200))?;
/// let logs = model.evaluate((&x, &y), EvaluateOptions::new())?;
/// assert!(logs.get("loss").expect("mse") < 0.01);
/// # Ok(())
/// # }
/// ```
///
/// For several inputs or outputs, use other types: `impl Layer<[Tensor; 2]> for Ranker` and
/// `impl Model<[Tensor; 2]> for Ranker`. Override [`train_step`](Model::train_step) for a custom training step.
pub trait Model<X: Inputs + ?Sized = Tensor, Y: Outputs = Tensor>: Layer<X, Y> {
    /// Returns the model's trainer.
    fn trainer(&self) -> &Trainer;

    /// Returns the names of the outputs in logs and in `compile`. Default: `output_1`, `output_2`, ..
    fn output_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Calls the model with the inputs of a batch. Returns the outputs, and the mask of a single output.
    ///
    /// # Errors
    /// [`Error::Shape`] if the model needs a different number of inputs; else the errors of [`Layer::call`].
    fn call_all(
        &self,
        inputs: &[Tensor],
        cx: Context<'_>,
    ) -> Result<(Vec<Tensor>, Option<Tensor>)> {
        let (y, mask) = X::with(inputs, |x| self.call_with_mask(x, cx))?;
        Ok((y.into_list(), mask))
    }

    /// Performs a training step on a batch; called by `fit`: the forward pass on a tape, the losses, the metrics, and the
    /// optimizer's step. Returns scalars, which `fit` averages over the epoch's examples. It must not read anything back.
    ///
    /// ```
    /// # use wgrad::{self as tf, Tensor, Trackable, data::Batch, keras::*};
    /// # use tf::keras::optimizers::Optimizer;
    /// # #[derive(Trackable)]
    /// # struct Robust { dense: layers::Dense, trainer: Trainer }
    /// # impl Layer for Robust {
    /// #     fn call(&self, x: &Tensor, cx: Context<'_>) -> tf::Result<Tensor> { self.dense.call(x, cx) }
    /// # }
    /// impl Model for Robust {
    ///     fn trainer(&self) -> &Trainer {
    ///         &self.trainer
    ///     }
    ///
    ///     fn train_step(&self, batch: &Batch) -> tf::Result<StepLogs> {
    ///         let tape = tf::GradientTape::new();
    ///         let error = self.call(&batch.x[0], TRAINING)?.subtract(&batch.y[0])?;
    ///         let loss = error.abs()?.reduce_mean(())?;
    ///         self.trainer.optimizer()?.minimize(&loss, tape, self)?;
    ///         Ok(StepLogs::new().add("loss", &loss))
    ///     }
    /// }
    /// # fn main() -> tf::Result<()> {
    /// # let model = Robust { dense: layers::Dense::new(1), trainer: Trainer::new() };
    /// # model.compile("sgd", "mse", CompileOptions::new())?;
    /// # let history = model.fit((Tensor::ones([8, 1])?, Tensor::zeros([8, 1])?), FitOptions::new())?;
    /// # assert!(history.get("loss").is_some());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Data`] before `compile`; the errors of the layers, the loss and the optimizer.
    fn train_step(&self, batch: &Batch) -> Result<StepLogs> {
        steps::train(&Erased::new(self), batch)
    }

    /// Evaluates a batch; called by `evaluate` and by validations: losses and metrics, in inference mode.
    ///
    /// # Errors
    /// Same as [`Model::train_step`].
    fn test_step(&self, batch: &Batch) -> Result<StepLogs> {
        steps::test(&Erased::new(self), batch)
    }

    /// Predicts a batch; called by `predict`.
    ///
    /// # Errors
    /// Same as [`Layer::call`].
    fn predict_step(&self, batch: &Batch) -> Result<Vec<Tensor>> {
        steps::predict(&Erased::new(self), batch)
    }

    /// Computes the compiled loss, including the losses of regularizers and of layers (in `losses`), for a custom training
    /// step, and adds the batch to the metrics. Returns the loss and the scalars for the logs, `loss` first.
    ///
    /// # Errors
    /// [`Error::Data`] before `compile`, or if outputs and targets do not fit together; the errors of the loss.
    fn compute_loss(
        &self,
        batch: &Batch,
        y_pred: &[Tensor],
        losses: &super::Losses,
    ) -> Result<(Tensor, StepLogs)> {
        steps::measure(&Erased::new(self), batch, y_pred, None, losses)
    }

    /// Sets the optimizer, the loss, and the metrics, as values or by Keras's names. The weights do not change; the optimizer
    /// starts with a new state.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::keras::{CompileOptions, Model, Sequential, layers::Dense};
    /// let model = Sequential::new().add(Dense::new(1));
    /// model.compile("rmsprop", "mse", CompileOptions::new().metrics(["mae"]))?;
    /// let error = model.compile("adm", "mse", CompileOptions::new()).unwrap_err().to_string();
    /// assert!(error.contains("'adm'"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Data`] if there is no optimizer, loss or metric with a name.
    fn compile(
        &self,
        optimizer: impl IntoOptimizer,
        loss: impl IntoLosses,
        options: CompileOptions,
    ) -> Result<()>
    where
        Self: Sized,
    {
        self.trainer().compile(optimizer, loss.into_losses()?, options)
    }

    /// Trains the model on the data; [`IntoModelData`] lists its forms. Blocks. The device computes while the host calls the
    /// next steps, and a batch reads back only the values that callbacks request.
    ///
    /// # Errors
    /// [`Error::Data`] before `compile`, without data, or if options are invalid; [`Error::Shape`] if arrays differ in length
    /// or do not fit the model or the loss; [`Error::Index`] if a label is not one of the model's classes. In arrays, such a
    /// label is reported before the first step; in a dataset or a batch, it is reported with the batch's number up to 128 steps
    /// later, and before callbacks and the history receive the end of its epoch. Its batch has the gradient 0, so no weight
    /// becomes NaN. [`Error::Gradient`] if no variable is trainable; the errors of callbacks, and of batches that could not be
    /// created, with their number; [`Error::Device`]. After an error, the model has the weights of the last completed step.
    #[cfg(not(target_family = "wasm"))]
    fn fit<'a>(&self, data: impl IntoModelData<'a>, options: FitOptions<'_>) -> Result<History>
    where
        Self: Sized,
    {
        pollster::block_on(self.fit_async(data, options))
    }

    /// Same as [`Model::fit`], without blocking and on every target.
    ///
    /// # Errors
    /// Same as [`Model::fit`].
    fn fit_async<'a>(
        &self,
        data: impl IntoModelData<'a>,
        options: FitOptions<'_>,
    ) -> impl Future<Output = Result<History>>
    where
        Self: Sized,
    {
        at_home(self, self.trainer(), async move {
            fit::fit(&Erased::new(self), in_call("fit", data)?, options).await
        })
    }

    /// Computes the loss and the metrics on data, which [`Model::fit`] describes. Blocks.
    ///
    /// # Errors
    /// Same as [`Model::fit`].
    #[cfg(not(target_family = "wasm"))]
    fn evaluate<'a>(
        &self,
        data: impl IntoModelData<'a>,
        options: EvaluateOptions<'_>,
    ) -> Result<Logs>
    where
        Self: Sized,
    {
        pollster::block_on(self.evaluate_async(data, options))
    }

    /// Same as [`Model::evaluate`], without blocking and on every target.
    ///
    /// # Errors
    /// Same as [`Model::fit`].
    fn evaluate_async<'a>(
        &self,
        data: impl IntoModelData<'a>,
        options: EvaluateOptions<'_>,
    ) -> impl Future<Output = Result<Logs>>
    where
        Self: Sized,
    {
        at_home(self, self.trainer(), async move {
            fit::evaluate(&Erased::new(self), in_call("evaluate", data)?, options).await
        })
    }

    /// Returns the model's result for all of `x`, computed in batches and concatenated. The model need not be compiled.
    ///
    /// Of `(x, y)`, only `x` is used. For a model with several inputs, a tuple contains the inputs:
    /// `predict((&images, &ages), ..)`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Tensor, keras::{Model, PredictOptions, Sequential, layers::Dense}};
    /// let model = Sequential::new().add(Dense::new(3));
    /// let y = model.predict(&Tensor::ones([100, 5])?, PredictOptions::new())?;
    /// assert_eq!(y.shape(), [100, 3]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Data`] without data; [`Error::Shape`] if the model has several outputs, or `x` does not fit;
    /// [`Error::Device`].
    #[cfg(not(target_family = "wasm"))]
    fn predict<'a>(&self, x: impl IntoModelData<'a>, options: PredictOptions<'_>) -> Result<Tensor>
    where
        Self: Sized,
    {
        pollster::block_on(self.predict_async(x, options))
    }

    /// Same as [`Model::predict`], without blocking and on every target.
    ///
    /// # Errors
    /// Same as [`Model::predict`].
    fn predict_async<'a>(
        &self,
        x: impl IntoModelData<'a>,
        options: PredictOptions<'_>,
    ) -> impl Future<Output = Result<Tensor>>
    where
        Self: Sized,
    {
        async move { only(self.predict_all_async(x, options).await?) }
    }

    /// Same as [`Model::predict`], for a model with several outputs: returns the results of each.
    ///
    /// # Errors
    /// Same as [`Model::predict`].
    #[cfg(not(target_family = "wasm"))]
    fn predict_all<'a>(
        &self,
        x: impl IntoModelData<'a>,
        options: PredictOptions<'_>,
    ) -> Result<Vec<Tensor>>
    where
        Self: Sized,
    {
        pollster::block_on(self.predict_all_async(x, options))
    }

    /// Same as [`Model::predict_all`], without blocking and on every target.
    ///
    /// # Errors
    /// Same as [`Model::predict`].
    fn predict_all_async<'a>(
        &self,
        x: impl IntoModelData<'a>,
        options: PredictOptions<'_>,
    ) -> impl Future<Output = Result<Vec<Tensor>>>
    where
        Self: Sized,
    {
        at_home(self, self.trainer(), async move {
            fit::predict(&Erased::new(self), in_call("predict", x)?, options).await
        })
    }

    /// Performs a training step on one batch, `(x, y)` or `(x, y, sample_weight)`. Returns the loss and the metrics of this
    /// batch, still on the device. As in Keras, each call resets the metrics; [`Model::train_step`] does not.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Tensor, keras::{CompileOptions, Model, Sequential, layers::Dense}};
    /// let model = Sequential::new().add(Dense::new(1));
    /// model.compile("sgd", "mse", CompileOptions::new().metrics(["mae"]))?;
    /// let logs = model.train_on_batch((Tensor::zeros([8, 3])?, Tensor::full([8, 1], 2.0)?))?;
    /// let names: Vec<&str> = logs.iter().map(|(name, _)| name).collect();
    /// assert_eq!(names, ["loss", "mae"]);
    /// assert_eq!(logs.get("mae").expect("a metric").item::<f32>()?, 2.0);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Model::train_step`]. A label that the loss does not accept is an error of the next read.
    fn train_on_batch(&self, batch: impl IntoBatch) -> Result<StepLogs>
    where
        Self: Sized,
    {
        on_home(self, self.trainer(), || {
            steps::on_batch(&Erased::new(self), phase::Phase::Train, &batch.into_batch()?)
        })
    }

    /// Returns the loss and the metrics of one batch, in inference mode; otherwise the same as [`Model::train_on_batch`].
    ///
    /// # Errors
    /// Same as [`Model::train_on_batch`].
    fn test_on_batch(&self, batch: impl IntoBatch) -> Result<StepLogs>
    where
        Self: Sized,
    {
        on_home(self, self.trainer(), || {
            steps::on_batch(&Erased::new(self), phase::Phase::Test, &batch.into_batch()?)
        })
    }

    /// Resets the stateful layers of the model to their initial states, after which the batch size may change. As in Keras,
    /// `fit` and similar methods keep the states from batch to batch and from epoch to epoch.
    fn reset_states(&self) {
        crate::trackable::forget(&Erased::<Self, X, Y>::new(self));
    }

    /// Resets the metrics of `compile` and those that the model owns. `fit` and `evaluate` do so before each epoch.
    ///
    /// # Errors
    /// [`Error::Data`] before `compile`; [`Error::Device`] if the device's memory is used up.
    fn reset_metrics(&self) -> Result<()> {
        let compiled = self.trainer().compiled("reset_metrics")?;
        pass::reset_metrics(&Erased::new(self), &compiled)
    }

    /// Returns the model's results for one batch.
    ///
    /// # Errors
    /// Same as [`Layer::call`].
    fn predict_on_batch(&self, batch: impl IntoBatch) -> Result<Vec<Tensor>>
    where
        Self: Sized,
    {
        on_home(self, self.trainer(), || self.predict_step(&batch.into_batch()?))
    }
}

/// The device of the model's variables, on which its batches are made. A model that has never been called has none: it gets
/// its variables on the current device.
fn home(model: &dyn Trackable) -> Option<Device> {
    model.variables().first().map(|variable| variable.device())
}

/// Calls `f` with the model's device as the current one, in the scope of its strategy.
fn on_home<R>(model: &dyn Trackable, trainer: &Trainer, f: impl FnOnce() -> R) -> R {
    #[cfg(not(target_family = "wasm"))]
    if let Some(strategy) = trainer.strategy() {
        return strategy.scope(f);
    }
    #[cfg(target_family = "wasm")]
    let _ = trainer;
    match home(model) {
        Some(device) => device.scope(f),
        None => f(),
    }
}

/// As [`on_home`], for a future.
async fn at_home<R>(model: &dyn Trackable, trainer: &Trainer, pass: impl Future<Output = R>) -> R {
    #[cfg(not(target_family = "wasm"))]
    if let Some(strategy) = trainer.strategy() {
        let mut pass = Box::pin(pass);
        return std::future::poll_fn(|cx| strategy.scope(|| pass.as_mut().poll(cx))).await;
    }
    #[cfg(target_family = "wasm")]
    let _ = trainer;
    match home(model) {
        Some(device) => device.scope_async(pass).await,
        None => pass.await,
    }
}

/// Converts the data; an error begins with the name of the call.
fn in_call<'a>(call: &str, data: impl IntoModelData<'a>) -> Result<crate::data::ModelData<'a>> {
    data.into_model_data()
        .map_err(|error| error.reworded(|text| crate::error::message!("{call}: {text}")))
}

fn only(outputs: Vec<Tensor>) -> Result<Tensor> {
    match <[Tensor; 1]>::try_from(outputs) {
        Ok([only]) => Ok(only),
        Err(outputs) => Err(Error::Shape(crate::error::message!(
            "predict: the model has {} outputs; ask for them with predict_all.",
            outputs.len()
        ))),
    }
}
