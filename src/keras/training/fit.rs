//! The loops of `fit`, `evaluate` and `predict`.

use super::any_model::AnyModel;
#[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
use super::backup;
use super::callback::{Callback, Run};
use super::feed::Feed;
use super::interrupt::CtrlC;
use super::labels;
use super::logs::{History, Logs};
use super::options::{EvaluateOptions, FitOptions, PredictOptions};
use super::pass::{Company, Phase, flush, pass};
use super::progress::Progress;
#[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
use super::reading::Sums;
use super::stop::StopSignal;
use super::trainer::Compiled;
use crate::data::ModelData;
use crate::error::{Error, Result};
use crate::ops::concat;
use crate::runtime::Device;
use crate::tensor::Tensor;

/// The steps of the first run: few, as they make plans.
const FIRST_RUN: usize = 4;

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

/// What a training has to validate with: the caller's data, or the last of those that it trains on.
enum Validation<'a, 'b> {
    Split(Feed<'a>),
    Data(Feed<'b>),
}

impl Validation<'_, '_> {
    async fn check(&self, model: &dyn AnyModel, compiled: &Compiled) -> Result<()> {
        match self {
            Validation::Split(feed) => labels::check(model, compiled, feed).await,
            Validation::Data(feed) => labels::check(model, compiled, feed).await,
        }
    }

    #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
    fn bytes(&self) -> Result<Vec<u8>> {
        match self {
            Validation::Split(feed) => backup::of_feed(feed),
            Validation::Data(feed) => backup::of_feed(feed),
        }
    }

    #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
    fn put(&mut self, place: &backup::Place) -> Result<()> {
        match self {
            Validation::Split(feed) => place.put_validation(feed),
            Validation::Data(feed) => place.put_validation(feed),
        }
    }

    async fn test(
        &mut self,
        model: &dyn AnyModel,
        company: &mut Company<'_, '_>,
        run: &mut Run<'_>,
    ) -> Result<Logs> {
        match self {
            Validation::Split(feed) => test(model, feed, company, run).await,
            Validation::Data(feed) => test(model, feed, company, run).await,
        }
    }
}

/// The data of `fit`: to train on and to validate with.
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
        // Batches of the validation have their own size, whatever that of the training is.
        let size = if data.in_batches() { options.validation_batch_size } else { size };
        let rest = Feed::new("fit (validation)", data, size, validation_steps, false)?;
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
    let (mut feed, mut validation) = feeds(source, options)?;
    labels::check(model, &compiled, &feed).await?;
    if let Some(validation) = &validation {
        validation.check(model, &compiled).await?;
    }
    let ctrl_c = CtrlC::listen(options.ctrl_c);
    let mut progress = Progress::new(options.verbose);
    let mut run = Run::new(model, options.epochs, feed.steps());
    let mut most = options.yield_every.unwrap_or(FIRST_RUN).min(FIRST_RUN);
    let mut warned = false;
    let mut last = Logs::new();
    for callback in &mut options.callbacks {
        callback.on_train_begin(&mut run)?;
    }
    #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
    let mut resumed = match run.backup.go_on.take() {
        Some(bytes) => {
            let place = backup::Place::read(&bytes)?;
            place.put_feed(&mut feed)?;
            validation.as_mut().map_or(Ok(()), |validation| validation.put(&place))?;
            options.initial_epoch = place.epoch;
            Some(place)
        }
        None => None,
    };
    for epoch in options.initial_epoch..options.epochs {
        if run.stopped() {
            break;
        }
        #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
        if run.backup.wanted {
            run.backup.epoch.validation =
                validation.as_ref().map_or(Ok(Vec::new()), Validation::bytes)?;
        }
        #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
        let rate = backup::begin(epoch, resumed.as_ref(), &mut run)?;
        for callback in &mut options.callbacks {
            callback.on_epoch_begin(epoch, &mut run)?;
        }
        #[allow(unused_mut)] // Where there are no backups.
        let mut begun = None;
        #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
        if let Some(place) = resumed.take() {
            begun = place.go_on(rate, &compiled, &run)?;
        }
        progress.begin(Some((epoch, options.epochs)), feed.steps());
        let mut company = Company {
            callbacks: &mut options.callbacks,
            progress: &mut progress,
            shows: true,
            stop: &options.stop,
            ctrl_c: &ctrl_c,
            yield_every: options.yield_every,
            most: &mut most,
            warned: &mut warned,
        };
        let trained =
            pass(Phase::Train, model, &compiled, &mut feed, &mut company, &mut run, begun).await;
        let (mut logs, batches) = trained?;
        let interrupted = company.interrupted();
        if interrupted {
            history.interrupt();
        }
        if interrupted && batches == 0 {
            break;
        }
        let due = (epoch + 1).is_multiple_of(options.validation_freq) && !interrupted;
        if let Some(validation) = validation.as_mut().filter(|_| due) {
            company.shows = false;
            let measured = validation.test(model, &mut company, &mut run).await?;
            for (name, value) in measured.iter() {
                logs.set(&format!("val_{name}"), value);
            }
            run.set_steps(feed.steps());
        }
        for callback in &mut options.callbacks {
            callback.on_epoch_end(epoch, &mut logs, &mut run)?;
            if let Some(rest) = callback.after_epoch() {
                rest.await?;
            }
        }
        #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
        if !interrupted && backup::is_wanted(&mut options.callbacks, None) {
            run.backup.epoch.number = epoch + 1;
            run.backup.epoch.rate = run.learning_rate()?;
            run.backup.epoch.validation =
                validation.as_ref().map_or(Ok(Vec::new()), Validation::bytes)?;
            backup::save(&mut options.callbacks, 0, &Sums::default(), &compiled, &feed, &mut run)
                .await?;
        }
        history.add(epoch, &logs);
        progress.end(batches, &logs);
        last = logs;
        if interrupted || options.stop.stopped() || ctrl_c.pressed() {
            history.interrupt();
            break;
        }
    }
    // Weights become their averages, if the optimizer has kept any.
    if !last.is_empty() {
        compiled.optimizer().finalize_variable_values(model)?;
    }
    #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
    {
        run.backup.interrupted = history.interrupted();
    }
    for callback in &mut options.callbacks {
        callback.on_train_end(&last, &mut run)?;
    }
    Ok(())
}

/// Measures the model on all of `feed`.
async fn test(
    model: &dyn AnyModel,
    feed: &mut Feed<'_>,
    company: &mut Company<'_, '_>,
    run: &mut Run<'_>,
) -> Result<Logs> {
    let compiled = model.trainer().compiled("evaluate")?;
    run.set_steps(feed.steps());
    for callback in company.callbacks.iter_mut() {
        callback.on_test_begin(run)?;
    }
    if company.shows {
        company.progress.begin(None, feed.steps());
    }
    let (logs, batches) = pass(Phase::Test, model, &compiled, feed, company, run, None).await?;
    for callback in company.callbacks.iter_mut() {
        callback.on_test_end(&logs, run)?;
    }
    if company.shows {
        company.progress.end(batches, &logs);
    }
    Ok(logs)
}

pub(super) async fn evaluate(
    model: &dyn AnyModel,
    source: ModelData<'_>,
    mut options: EvaluateOptions<'_>,
) -> Result<Logs> {
    options.check()?;
    let compiled = model.trainer().compiled("evaluate")?;
    let mut feed = Feed::new("evaluate", source, options.batch_size, options.steps, false)?;
    labels::check(model, &compiled, &feed).await?;
    let mut run = Run::new(model, 1, feed.steps());
    let mut company = Company {
        callbacks: &mut options.callbacks,
        progress: &mut Progress::new(options.verbose),
        shows: true,
        stop: &StopSignal::new(),
        ctrl_c: &CtrlC::listen(false),
        yield_every: None,
        most: &mut FIRST_RUN.clone(),
        warned: &mut true,
    };
    test(model, &mut feed, &mut company, &mut run).await
}

pub(super) async fn predict(
    model: &dyn AnyModel,
    source: ModelData<'_>,
    mut options: PredictOptions<'_>,
) -> Result<Vec<Tensor>> {
    options.check()?;
    let mut feed = Feed::new("predict", source, options.batch_size, options.steps, false)?;
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
        let results = model.predict_step(&batch)?;
        flush()?;
        if cfg!(target_family = "wasm") {
            // One batch at a time, so that the page is drawn between them.
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
