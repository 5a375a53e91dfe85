//! One pass through a feed, for training or evaluation, and the notification of passes and epochs.
//!
//! Steps are called in runs of some milliseconds. The values of a run are read together, and the next run begins during the
//! transfer; so there are never more than two runs in progress, and a browser draws between them. A run does not end with an
//! epoch unless that epoch's values are needed before the next one.

use std::sync::Arc;
use std::time::Duration;

use web_time::Instant;

use super::any_model::AnyModel;
use super::callback::{BatchLogs, Callback, EpochLogs, Run};
use super::feed::Feed;
use super::interrupt::CtrlC;
use super::logs::{History, Logs};
use super::phase::Phase;
use super::progress::Progress;
use super::reading::{Event, Read, ReadEvent, Sums, Unread};
use super::stop::StopSignal;
use super::trainer::Compiled;
#[cfg(not(target_family = "wasm"))]
use super::workers::OfWorkers;
use crate::error::{Result, message};
use crate::runtime::Device;

/// The duration of a run: natively too short to be visible in a progress bar, in a browser less than a frame.
const RUN: Duration = Duration::from_millis(if cfg!(target_family = "wasm") { 8 } else { 40 });
/// The default maximum number of steps of a run.
const STEPS: usize = 64;
/// The number of steps of the first run: few, because they compile plans.
const FIRST_RUN: usize = 4;
/// If the device needs longer for a run, the next run has half the steps, because the same device draws the page.
const SLOW: Duration = Duration::from_millis(100);

/// A training or an evaluation that is in progress.
pub(super) struct Loop<'l, 'c> {
    pub(super) model: &'l dyn AnyModel,
    pub(super) compiled: Arc<Compiled>,
    pub(super) run: Run<'l>,
    pub(super) callbacks: &'l mut [Box<dyn Callback + 'c>],
    pub(super) progress: Progress,
    pub(super) history: &'l mut History,
    pub(super) stop: StopSignal,
    pub(super) ctrl_c: CtrlC,
    pub(super) yield_every: Option<usize>,
    pub(super) ahead: Ahead,
    /// The batches of the training are those of this process alone.
    #[cfg(not(target_family = "wasm"))]
    pub(super) own_data: bool,
}

/// Events whose steps have been called, but whose values have not been processed yet.
pub(super) struct Ahead {
    /// The run that is being called, and the time when it began.
    calling: Vec<Unread>,
    steps: usize,
    began: Instant,
    /// The run before it, which is being read.
    reading: Option<(Read, Instant)>,
    /// The maximum number of steps of a run.
    most: usize,
    /// The values of the pass that is being processed.
    pub(super) sums: Sums,
    /// The values of the epoch that is being processed.
    epoch: Logs,
    /// The values of the last epoch, or of the evaluation.
    pub(super) last: Logs,
    /// Whether a NaN or infinite loss was already reported.
    warned: bool,
}

impl Ahead {
    pub(super) fn new(yield_every: Option<usize>) -> Self {
        Ahead {
            calling: Vec::new(),
            steps: 0,
            began: Instant::now(),
            reading: None,
            most: yield_every.unwrap_or(FIRST_RUN).min(FIRST_RUN),
            sums: Sums::default(),
            epoch: Logs::new(),
            last: Logs::new(),
            warned: false,
        }
    }

    pub(super) fn add(&mut self, event: Unread) {
        if self.steps == 0 {
            self.began = Instant::now();
        }
        self.steps += usize::from(matches!(event.event, Event::Step { .. }));
        self.calling.push(event);
    }

    /// Whether the run is as long as it should be.
    fn is_full(&self) -> bool {
        self.steps >= self.most || self.steps > 0 && self.began.elapsed() >= RUN
    }
}

impl Loop<'_, '_> {
    /// True if the program or its user has requested to stop.
    pub(super) fn interrupted(&self) -> bool {
        self.stop.stopped() || self.ctrl_c.pressed()
    }

    /// As [`Loop::interrupted`], in one of the processes of a strategy.
    pub(super) fn interrupted_anywhere(&self) -> Result<bool> {
        #[cfg(not(target_family = "wasm"))]
        if let Some(workers) = OfWorkers::of(self.model) {
            let interrupted = workers.interrupted(self.interrupted())?;
            if interrupted {
                self.stop.stop();
            }
        }
        Ok(self.interrupted())
    }

    fn batch_logs(&self) -> BatchLogs {
        let wanted = self.callbacks.iter().map(|callback| callback.batch_logs());
        wanted.max().unwrap_or(BatchLogs::Unused)
    }

    /// Whether the values of an epoch are needed before the next one begins.
    pub(super) fn waits(&self) -> bool {
        let mut wanted = self.callbacks.iter().map(|callback| callback.epoch_logs());
        // The processes of a strategy add up their values at the same place of the program.
        #[cfg(not(target_family = "wasm"))]
        if OfWorkers::of(self.model).is_some() {
            return true;
        }
        self.progress.shows() || wanted.any(|logs| logs == EpochLogs::Now)
    }

    /// Calls a method of each callback.
    pub(super) fn each(
        &mut self,
        mut f: impl FnMut(&mut dyn Callback, &mut Run<'_>) -> Result<()>,
    ) -> Result<()> {
        self.callbacks.iter_mut().try_for_each(|callback| f(&mut **callback, &mut self.run))
    }

    /// Starts to read the values of the run, and processes the run before it.
    async fn read(&mut self) -> Result<()> {
        let ahead = &mut self.ahead;
        let began = ahead.began;
        ahead.steps = 0;
        let read = match std::mem::take(&mut ahead.calling) {
            events if events.is_empty() => None,
            events => Some((Read::start(events).await, began)),
        };
        if let Some((before, since)) = std::mem::replace(&mut ahead.reading, read) {
            let events = before.finish().await?;
            // The next run is shorter if the device was slow.
            let next = if since.elapsed() > SLOW { ahead.most / 2 } else { ahead.most * 2 };
            ahead.most = next.clamp(1, self.yield_every.unwrap_or(STEPS));
            self.notify(events).await?;
        }
        Ok(())
    }

    /// Processes everything that has been called.
    pub(super) async fn catch_up(&mut self) -> Result<()> {
        while !self.ahead.calling.is_empty() || self.ahead.reading.is_some() {
            self.read().await?;
        }
        Ok(())
    }

    /// Notifies callbacks of the values that were read.
    async fn notify(&mut self, events: Vec<Result<ReadEvent>>) -> Result<()> {
        let is_step = |event: &Result<ReadEvent>| {
            event.as_ref().is_ok_and(|event| matches!(event.event, Event::Step { .. }))
        };
        let last = events.iter().rposition(is_step);
        for (at, event) in events.into_iter().enumerate() {
            let values = event.inspect_err(|_| {
                // Later steps are discarded: no epoch ends with them.
                self.ahead.calling.clear();
                self.ahead.reading = None;
            })?;
            match values.event {
                Event::Step { phase, batch, .. } => {
                    self.notify_step(phase, batch, &values, Some(at) == last)?;
                }
                Event::Pass(phase) => {
                    self.ahead.sums.add(&values);
                    #[cfg(not(target_family = "wasm"))]
                    if let Some(workers) = OfWorkers::of(self.model) {
                        self.ahead.sums = workers.sums(&self.ahead.sums)?;
                    }
                    let logs = std::mem::take(&mut self.ahead.sums).logs();
                    self.notify_pass(phase, logs)?;
                }
                Event::Epoch { number, batches } => {
                    let mut logs = std::mem::take(&mut self.ahead.epoch);
                    for callback in self.callbacks.iter_mut() {
                        callback.on_epoch_end(number, &mut logs, &mut self.run)?;
                        if let Some(rest) = callback.after_epoch() {
                            rest.await?;
                        }
                    }
                    self.history.add(number, &logs);
                    self.progress.end(batches, &logs);
                    self.ahead.last = logs;
                }
            }
        }
        Ok(())
    }

    fn notify_pass(&mut self, phase: Phase, logs: Logs) -> Result<()> {
        if phase == Phase::Train {
            self.ahead.epoch = logs;
            return Ok(());
        }
        self.each(|callback, run| callback.on_test_end(&logs, run))?;
        match phase {
            Phase::Validate => {
                let epoch = &mut self.ahead.epoch;
                logs.iter().for_each(|(name, value)| epoch.set(&format!("val_{name}"), value));
            }
            _ => self.ahead.last = logs,
        }
        Ok(())
    }

    fn notify_step(
        &mut self,
        phase: Phase,
        batch: usize,
        values: &ReadEvent,
        last: bool,
    ) -> Result<()> {
        let heard = self.batch_logs() != BatchLogs::Unused;
        let ahead = &mut self.ahead;
        ahead.sums.add(values);
        // A validation has no separate bar.
        let shown = last && phase != Phase::Validate && self.progress.shows();
        let watched = phase == Phase::Train && !ahead.warned;
        if !heard && !shown && !watched {
            return Ok(());
        }
        let logs = ahead.sums.logs();
        if let Some(loss) = logs.get("loss").filter(|loss| watched && !loss.is_finite()) {
            ahead.warned = true;
            crate::warnings::warn_user!(
                "fit: the loss is {loss} at batch {batch}, and the weights may be lost. Lower the learning rate, look for NaN \
                 in the data and for labels that the loss does not have, or stop with TerminateOnNaN."
            );
        }
        if heard {
            self.run.set_batch_logs(values.logs());
            self.each(|callback, run| match callback.batch_logs() {
                BatchLogs::Unused => Ok(()),
                _ => batch_end(phase, callback, batch, &logs, run),
            })?;
        }
        if shown {
            self.progress.update(batch + 1, &logs);
        }
        Ok(())
    }

    /// Runs an epoch of `feed`, or the rest of one that has begun, after the given number of batches and with the given sums.
    /// Returns the number of batches.
    pub(super) async fn pass(
        &mut self,
        phase: Phase,
        feed: &mut Feed<'_>,
        begun: Option<(usize, Sums)>,
    ) -> Result<usize> {
        let wanted = self.batch_logs();
        let mut batches = 0;
        match begun {
            Some((before, sums)) => (batches, self.ahead.sums) = (before, sums),
            None => {
                feed.begin();
                reset_metrics(self.model, &self.compiled)?;
            }
        }
        // A step's structure must not depend on whether it is the first.
        flush()?;
        #[cfg(not(target_family = "wasm"))]
        if let Some(functions) = self.model.trainer().step_functions() {
            functions.begin(phase, feed.steps());
        }
        #[cfg(not(target_family = "wasm"))]
        self.model.trainer().set_own_data(self.own_data && phase == Phase::Train);
        // The labels of arrays have already been checked.
        self.compiled.set_checked_labels(feed.arrays().is_some());
        let shows = phase != Phase::Validate;
        #[cfg(not(target_family = "wasm"))]
        let workers = OfWorkers::of(self.model);
        loop {
            let stops = self.interrupted() || self.run.stopped() && phase == Phase::Train;
            // Where one process stops, all do.
            #[cfg(not(target_family = "wasm"))]
            let stops = match &workers {
                Some(workers) => {
                    let epoch = self.run.backup.epoch.number;
                    let all = workers.stops(phase, epoch, batches, stops)?;
                    if all && !self.interrupted_anywhere()? {
                        self.run.stop_training();
                    }
                    all
                }
                None => stops,
            };
            if stops {
                break;
            }
            let Some(batch) = feed.next()? else { break };
            let stepped = self.step(phase, batches, &batch, wanted).map_err(|error| {
                super::checks::with_remedy(self.model, Some(&self.compiled), feed, &batch, error)
            });
            self.ahead.add(stepped?);
            drop(batch);
            if batches == 0 && shows {
                self.progress.called();
            }
            batches += 1;
            let backs_up =
                phase == Phase::Train && super::backup::is_wanted(self.callbacks, Some(batches));
            if wanted == BatchLogs::Now {
                self.catch_up().await?;
            } else if self.ahead.is_full() {
                if let (Some(last), true) =
                    (self.ahead.calling.last_mut(), shows && self.progress.draws())
                {
                    if last.metrics.is_empty() {
                        last.metrics = self.compiled.results()?;
                    }
                }
                self.read().await?;
            }
            if backs_up {
                self.catch_up().await?;
                self.ahead.sums.set_metrics(self.compiled.results()?).await?;
                self.back_up(batches, feed).await?;
            }
        }
        #[cfg(not(target_family = "wasm"))]
        if let Some(workers) = &workers {
            workers.end(phase, batches)?;
            if phase == Phase::Train {
                workers.average_variables(self.model)?;
            }
            let states = super::backup::metric_states(&self.compiled).await?;
            self.compiled.leave_metrics(workers.metrics(&states)?)?;
        }
        let mut end = Unread::new(Event::Pass(phase));
        end.metrics = self.compiled.results()?;
        flush()?;
        self.ahead.add(end);
        if self.waits() {
            self.catch_up().await?;
        }
        Ok(batches)
    }

    /// Lets the callbacks save the training after so many batches of an epoch.
    pub(super) async fn back_up(&mut self, batches: usize, feed: &Feed<'_>) -> Result<()> {
        // An epoch that has not begun has no metrics.
        let metrics = match batches {
            0 => Vec::new(),
            _ => super::backup::metric_states(&self.compiled).await?,
        };
        #[cfg(not(target_family = "wasm"))]
        if let Some(workers) = OfWorkers::of(self.model) {
            workers.average_variables(self.model)?;
            let sums = workers.sums(&self.ahead.sums)?;
            let metrics = workers.metrics(&metrics)?;
            let epoch = &self.run.backup.epoch;
            self.run.backup.place = super::backup::bytes(epoch, batches, &sums, &metrics, feed)?;
            return self.each(|callback, run| callback.back_up(run));
        }
        let (epoch, sums) = (&self.run.backup.epoch, &self.ahead.sums);
        self.run.backup.place = super::backup::bytes(epoch, batches, sums, &metrics, feed)?;
        self.each(|callback, run| callback.back_up(run))
    }

    /// Calls the ops of a step.
    fn step(
        &mut self,
        phase: Phase,
        number: usize,
        batch: &crate::data::Batch,
        wanted: BatchLogs,
    ) -> Result<Unread> {
        self.each(|callback, run| match phase {
            Phase::Train => callback.on_train_batch_begin(number, run),
            Phase::Test | Phase::Validate => callback.on_test_batch_begin(number, run),
        })?;
        let logs = match phase {
            Phase::Train => self.model.train_step(batch)?,
            Phase::Test => self.model.test_step(batch)?,
            Phase::Validate => self.model.test_step(batch).map_err(|error| {
                error.reworded(|text| {
                    message!("{}: batch {number}: {text}", super::feed::VALIDATION)
                })
            })?,
        };
        // An optimizer has already flushed; with this, other steps also run as separate plans.
        flush()?;
        let metrics = match wanted {
            BatchLogs::Unused => Vec::new(),
            _ => {
                let results = self.compiled.results()?;
                flush()?;
                results
            }
        };
        self.each(|callback, run| match callback.batch_logs() {
            BatchLogs::Unused => batch_end(phase, callback, number, &Logs::new(), run),
            _ => Ok(()),
        })?;
        let examples = batch.len();
        #[cfg(not(target_family = "wasm"))]
        let examples = match OfWorkers::of(self.model) {
            Some(workers) => workers.own_examples(self.model, examples),
            None => examples,
        };
        let event = Event::Step { phase, batch: number, examples };
        Ok(Unread { event, logs, metrics })
    }
}

fn batch_end(
    phase: Phase,
    callback: &mut dyn Callback,
    batch: usize,
    logs: &Logs,
    run: &mut Run<'_>,
) -> Result<()> {
    match phase {
        Phase::Train => callback.on_train_batch_end(batch, logs, run),
        Phase::Test | Phase::Validate => callback.on_test_batch_end(batch, logs, run),
    }
}

/// Resets the metrics of `compile` and those that the model owns.
pub(super) fn reset_metrics(model: &dyn AnyModel, compiled: &Compiled) -> Result<()> {
    compiled.reset_metrics()?;
    crate::trackable::reset_metrics(model)
}

pub(super) fn flush() -> Result<()> {
    Device::current()?.flush()
}
