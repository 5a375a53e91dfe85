//! The loops of `fit`, `evaluate` and `predict`.

use std::ops::Range;

use super::any_model::AnyModel;
use super::backup;
use super::callback::{Callback, Run};
use super::checks;
use super::feed::{Feed, VALIDATION};
use super::interrupt::CtrlC;
use super::logs::{History, Logs};
use super::options::{EvaluateOptions, FitOptions, PredictOptions};
use super::pass::{Ahead, Loop, flush};
use super::phase::Phase;
use super::progress::Progress;
use super::reading::{Event, Unread};
use super::stop::StopSignal;
use super::trainer::Compiled;
use crate::data::ModelData;
#[cfg(not(target_family = "wasm"))]
use crate::distribute::AutoShardPolicy;
use crate::error::{Error, Result};
use crate::keras::INFERENCE;
use crate::keras::trial::trial;
use crate::ops::concat;
use crate::runtime::Device;
use crate::tensor::Tensor;

pub(super) async fn fit(
    model: &dyn AnyModel,
    source: ModelData<'_>,
    mut options: FitOptions<'_>,
) -> Result<History> {
    let mut history = History::default();
    let trained = train(model, source, &mut options, &mut history).await;
    model.trainer().set_history(history.clone());
    trained.map(|()| history)
}

/// The validation data of a training: the caller's data, or the last part of the training data.
enum Validation<'a, 'b> {
    Split(Feed<'a>),
    Data(Feed<'b>),
}

impl Validation<'_, '_> {
    async fn check(
        &self,
        model: &dyn AnyModel,
        compiled: &Compiled,
        training: &Feed<'_>,
    ) -> Result<()> {
        match self {
            // Its labels are checked with those of the training.
            Validation::Split(_) => Ok(()),
            Validation::Data(feed) => {
                checks::validation(model, compiled, training, feed)?;
                checks::labels(model, compiled, feed).await
            }
        }
    }

    fn bytes(&self) -> Result<Vec<u8>> {
        match self {
            Validation::Split(feed) => backup::of_feed(feed),
            Validation::Data(feed) => backup::of_feed(feed),
        }
    }

    fn put(&mut self, place: &backup::FitProgress) -> Result<()> {
        match self {
            Validation::Split(feed) => place.put_validation(feed),
            Validation::Data(feed) => place.put_validation(feed),
        }
    }

    async fn measure(&mut self, running: &mut Loop<'_, '_>) -> Result<usize> {
        match self {
            Validation::Split(feed) => test(running, Phase::Validate, feed).await,
            Validation::Data(feed) => test(running, Phase::Validate, feed).await,
        }
    }
}

/// The data of `fit`: for training and for validation.
fn feeds<'a, 'b>(
    source: ModelData<'a>,
    options: &mut FitOptions<'b>,
) -> Result<(Feed<'a>, Option<Validation<'a, 'b>>)> {
    let steps = options.steps_per_epoch;
    let split = options.validation_split;
    let validation_steps = options.validation_steps;
    let mut feed = Feed::new("fit", source, options.batch_size, steps, options.shuffle)?;
    let mut validation = None;
    if let Some(data) = options.validation_data.take() {
        let size = options.validation_batch_size.or(options.batch_size);
        let data = data?;
        // Validation data in batches have their own size, whatever that of the training is.
        let size = if data.in_batches() { options.validation_batch_size } else { size };
        let rest = Feed::new(VALIDATION, data, size, validation_steps, false)?;
        validation = Some(Validation::Data(rest));
    } else if split > 0.0 {
        let size = options.validation_batch_size;
        let (first, rest) = feed.split(split, size, validation_steps)?;
        (feed, validation) = (first, Some(Validation::Split(rest)));
    }
    feed.weigh_classes(&options.class_weight)?;
    Ok((feed, validation))
}

async fn train(
    model: &dyn AnyModel,
    source: ModelData<'_>,
    options: &mut FitOptions<'_>,
    history: &mut History,
) -> Result<()> {
    options.check()?;
    let compiled = model.trainer().compiled("fit")?;
    #[cfg(not(target_family = "wasm"))]
    super::workers::leave_to_chief(model, &mut options.callbacks, &mut options.verbose);
    let (mut feed, mut validation) = feeds(source, options)?;
    checks::labels(model, &compiled, &feed).await?;
    if let Some(validation) = &validation {
        validation.check(model, &compiled, &feed).await?;
    }
    #[cfg(not(target_family = "wasm"))]
    let _stepping = model.trainer().step_by_functions();
    let mut running = Loop {
        model,
        compiled,
        run: Run::new(model, options.epochs, feed.steps()),
        callbacks: &mut options.callbacks,
        progress: Progress::new(options.verbose),
        history,
        stop: options.stop.clone(),
        ctrl_c: CtrlC::listen(options.ctrl_c),
        yield_every: options.yield_every,
        ahead: Ahead::new(options.yield_every),
        #[cfg(not(target_family = "wasm"))]
        own_data: options.auto_shard_policy == AutoShardPolicy::Off
            && super::workers::OfWorkers::of(model).is_some(),
    };
    let plan = Plan {
        epochs: options.initial_epoch..options.epochs,
        validation_freq: options.validation_freq,
    };
    let trained = epochs(&mut running, plan, &mut feed, &mut validation).await;
    #[cfg(not(target_family = "wasm"))]
    model.trainer().set_own_data(false);
    if let Err(error) = trained {
        // Completes the history with the epochs that have ended. Callbacks are not notified of
        // them.
        running.callbacks = &mut [];
        let _ = running.catch_up().await;
        return Err(error);
    }
    let last = std::mem::take(&mut running.ahead.last);
    // Sets the weights to their averages, if the optimizer maintains them.
    if !last.is_empty() {
        running.compiled.optimizer().finalize_variable_values(model)?;
    }
    running.run.backup.interrupted = running.history.interrupted();
    running.each(|callback, run| callback.on_train_end(&last, run))
}

/// Which epochs there are, and which of them are validated.
struct Plan {
    epochs: Range<usize>,
    validation_freq: usize,
}

async fn epochs(
    running: &mut Loop<'_, '_>,
    plan: Plan,
    feed: &mut Feed<'_>,
    validation: &mut Option<Validation<'_, '_>>,
) -> Result<()> {
    let mut first = plan.epochs.start;
    #[cfg(not(target_family = "wasm"))]
    if let Some(workers) = super::workers::OfWorkers::of(running.model) {
        workers.compare("fit", running.model)?;
    }
    running.each(|callback, run| callback.on_train_begin(run))?;
    let mut resumed = match running.run.backup.go_on.take() {
        Some(bytes) => {
            let place = backup::FitProgress::read(&bytes)?;
            place.put_feed(feed)?;
            validation.as_mut().map_or(Ok(()), |validation| validation.put(&place))?;
            first = place.epoch;
            Some(place)
        }
        None => None,
    };
    for epoch in first..plan.epochs.end {
        if running.run.stopped() {
            break;
        }
        if running.run.backup.wanted {
            running.run.backup.epoch.validation =
                validation.as_ref().map_or(Ok(Vec::new()), Validation::bytes)?;
        }
        let rate = backup::begin(epoch, resumed.as_ref(), &mut running.run)?;
        running.each(|callback, run| callback.on_epoch_begin(epoch, run))?;
        let begun = match resumed.take() {
            Some(place) => place.go_on(rate, &running.compiled, &running.run)?,
            None => None,
        };
        running.progress.begin(Some((epoch, plan.epochs.end)), feed.steps());
        let batches = running.pass(Phase::Train, feed, begun).await?;
        let interrupted = running.interrupted_anywhere()?;
        if interrupted {
            running.history.interrupt();
        }
        if interrupted && batches == 0 {
            break;
        }
        let due = (epoch + 1).is_multiple_of(plan.validation_freq) && !interrupted;
        if let Some(validation) = validation.as_mut().filter(|_| due) {
            validation.measure(running).await?;
            running.run.set_steps(feed.steps());
        }
        running.ahead.add(Unread::new(Event::Epoch { number: epoch, batches }));
        if running.waits() {
            running.catch_up().await?;
        }
        if !interrupted && backup::is_wanted(running.callbacks, None) {
            running.catch_up().await?;
            running.run.backup.epoch.number = epoch + 1;
            running.run.backup.epoch.rate = running.run.learning_rate()?;
            running.run.backup.epoch.validation =
                validation.as_ref().map_or(Ok(Vec::new()), Validation::bytes)?;
            running.back_up(0, feed).await?;
        }
        if interrupted || running.interrupted_anywhere()? {
            running.history.interrupt();
            break;
        }
    }
    running.catch_up().await
}

/// Evaluates the model on all of `feed`. Returns the number of batches.
async fn test(running: &mut Loop<'_, '_>, phase: Phase, feed: &mut Feed<'_>) -> Result<usize> {
    running.run.set_steps(feed.steps());
    running.each(|callback, run| callback.on_test_begin(run))?;
    running.pass(phase, feed, None).await
}

pub(super) async fn evaluate(
    model: &dyn AnyModel,
    source: ModelData<'_>,
    mut options: EvaluateOptions<'_>,
) -> Result<Logs> {
    options.check()?;
    let compiled = model.trainer().compiled("evaluate")?;
    #[cfg(not(target_family = "wasm"))]
    super::workers::leave_to_chief(model, &mut options.callbacks, &mut options.verbose);
    let mut feed = Feed::new("evaluate", source, options.batch_size, options.steps, false)?;
    checks::labels(model, &compiled, &feed).await?;
    #[cfg(not(target_family = "wasm"))]
    let _stepping = model.trainer().step_by_functions();
    let mut running = Loop {
        model,
        compiled,
        run: Run::new(model, 1, feed.steps()),
        callbacks: &mut options.callbacks,
        progress: Progress::new(options.verbose),
        history: &mut History::default(),
        stop: StopSignal::new(),
        ctrl_c: CtrlC::listen(false),
        yield_every: None,
        ahead: Ahead::new(None),
        #[cfg(not(target_family = "wasm"))]
        own_data: false,
    };
    running.progress.begin(None, feed.steps());
    let batches = test(&mut running, Phase::Test, &mut feed).await?;
    running.catch_up().await?;
    running.progress.end(batches, &running.ahead.last);
    Ok(running.ahead.last)
}

pub(super) async fn predict(
    model: &dyn AnyModel,
    source: ModelData<'_>,
    mut options: PredictOptions<'_>,
) -> Result<Vec<Tensor>> {
    options.check()?;
    #[cfg(not(target_family = "wasm"))]
    super::workers::leave_to_chief(model, &mut options.callbacks, &mut options.verbose);
    let mut feed = Feed::new("predict", source, options.batch_size, options.steps, false)?;
    // Only the model determines whether a tuple is `(x, y)` or its inputs.
    let pairs = feed.arrays().is_some_and(|arrays| !arrays.y.is_empty());
    if pairs && model.takes_several() && !takes(model, &feed)? {
        let inputs = feed.join_targets();
        if !takes(model, &feed)? {
            feed.part_targets(inputs);
        }
    }
    #[cfg(not(target_family = "wasm"))]
    let _stepping = model.trainer().step_by_functions();
    #[cfg(not(target_family = "wasm"))]
    if let Some(functions) = model.trainer().step_functions() {
        functions.begin_prediction(feed.steps());
    }
    let mut run = Run::new(model, 1, feed.steps());
    let mut progress = Progress::new(options.verbose);
    progress.begin(None, feed.steps());
    each(&mut options.callbacks, |callback| callback.on_predict_begin(&mut run))?;
    let (mut outputs, mut batches): (Vec<Vec<Tensor>>, usize) = (Vec::new(), 0);
    feed.begin();
    while let Some(batch) = feed.next()? {
        each(&mut options.callbacks, |callback| {
            callback.on_predict_batch_begin(batches, &mut run)
        })?;
        let results = model
            .predict_step(&batch)
            .map_err(|error| checks::with_remedy(model, None, &feed, &batch, error))?;
        flush()?;
        if cfg!(target_family = "wasm") {
            // One batch at a time, so that the browser can draw the page in between.
            Device::current()?.synchronize_async().await?;
        }
        outputs.resize_with(results.len().max(outputs.len()), Vec::new);
        for (all, result) in outputs.iter_mut().zip(results) {
            all.push(result);
        }
        each(&mut options.callbacks, |callback| callback.on_predict_batch_end(batches, &mut run))?;
        batches += 1;
        progress.update(batches, &Logs::new());
    }
    each(&mut options.callbacks, |callback| callback.on_predict_end(&mut run))?;
    progress.end(batches, &Logs::new());
    outputs.into_iter().map(join).collect()
}

fn each<'a>(
    callbacks: &mut [Box<dyn Callback + 'a>],
    mut f: impl FnMut(&mut Box<dyn Callback + 'a>) -> Result<()>,
) -> Result<()> {
    callbacks.iter_mut().try_for_each(&mut f)
}

/// Whether the model can be called on the inputs.
fn takes(model: &dyn AnyModel, feed: &Feed<'_>) -> Result<bool> {
    let Some(batch) = feed.sample()? else { return Ok(true) };
    Ok(trial(|| model.call_all(&batch.x, INFERENCE).map(drop)).is_ok())
}

/// The results of all batches one after the other.
fn join(batches: Vec<Tensor>) -> Result<Tensor> {
    if let Some(scalar) = batches.iter().find(|batch| batch.rank() == 0) {
        return Err(Error::Shape(crate::error::message!(
            "predict: the model's result is {:?}; its first axis must count the examples.",
            scalar.shape()
        )));
    }
    match batches.as_slice() {
        [only] => Ok(only.clone()),
        _ => concat(&batches, 0),
    }
}
