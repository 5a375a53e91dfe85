//! One pass through a feed, for training or evaluation, and the notification of passes and epochs.
//!
//! Steps are called in runs of some milliseconds. The values of a run are read together, and the next run begins during the
//! transfer; so there are never more than two runs in progress, and a browser draws between them. A run does not end with an
//! epoch unless that epoch's values are needed before the next one.

use std::time::Duration;

use web_time::Instant;

use super::any_model::AnyModel;
use super::callback::{BatchLogs, Callback, EpochLogs, Run};
use super::feed::Feed;
use super::interrupt::CtrlC;
use super::logs::{History, Logs};
use super::phase::Phase;
use super::progress::Progress;
use super::reading::{Event, Read, Sums, Told, Unread};
use super::stop::StopSignal;
use super::trainer::Compiled;
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

/// The objects that accompany passes.
pub(super) struct Company<'c, 'a> {
    pub(super) callbacks: &'c mut [Box<dyn Callback + 'a>],
    pub(super) progress: &'c mut Progress,
    pub(super) history: &'c mut History,
    pub(super) stop: &'c StopSignal,
    pub(super) ctrl_c: &'c CtrlC,
    pub(super) yield_every: Option<usize>,
}

impl Company<'_, '_> {
    /// True if the program or its user has requested to stop.
    pub(super) fn interrupted(&self) -> bool {
        self.stop.stopped() || self.ctrl_c.pressed()
    }

    fn batch_logs(&self) -> BatchLogs {
        let wanted = self.callbacks.iter().map(|callback| callback.batch_logs());
        wanted.max().unwrap_or(BatchLogs::Unused)
    }

    /// Whether the values of an epoch are needed before the next one begins.
    pub(super) fn waits(&self) -> bool {
        let mut wanted = self.callbacks.iter().map(|callback| callback.epoch_logs());
        self.progress.shows() || wanted.any(|logs| logs == EpochLogs::Now)
    }
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

    fn add(&mut self, event: Unread) {
        if self.steps == 0 {
            self.began = Instant::now();
        }
        self.steps += usize::from(matches!(event.event, Event::Step { .. }));
        self.calling.push(event);
    }

    /// Records the end of an epoch.
    pub(super) fn end_epoch(&mut self, number: usize, batches: usize) {
        self.add(Unread::new(Event::Epoch { number, batches }));
    }

    /// Whether the run is as long as it should be.
    fn is_full(&self) -> bool {
        self.steps >= self.most || self.steps > 0 && self.began.elapsed() >= RUN
    }

    /// Starts to read the values of the run, and processes the run before it.
    async fn read(&mut self, company: &mut Company<'_, '_>, run: &mut Run<'_>) -> Result<()> {
        let began = self.began;
        self.steps = 0;
        let read = match std::mem::take(&mut self.calling) {
            events if events.is_empty() => None,
            events => Some((Read::start(events).await, began)),
        };
        if let Some((before, since)) = std::mem::replace(&mut self.reading, read) {
            let told = before.finish().await?;
            // The next run is shorter if the device was slow.
            let next = if since.elapsed() > SLOW { self.most / 2 } else { self.most * 2 };
            self.most = next.clamp(1, company.yield_every.unwrap_or(STEPS));
            self.tell(told, company, run).await?;
        }
        Ok(())
    }

    /// Processes everything that has been called.
    pub(super) async fn catch_up(
        &mut self,
        company: &mut Company<'_, '_>,
        run: &mut Run<'_>,
    ) -> Result<()> {
        while !self.calling.is_empty() || self.reading.is_some() {
            self.read(company, run).await?;
        }
        Ok(())
    }

    /// Notifies callbacks of the values that were read.
    async fn tell(
        &mut self,
        told: Vec<Result<Told>>,
        company: &mut Company<'_, '_>,
        run: &mut Run<'_>,
    ) -> Result<()> {
        let is_step = |told: &Result<Told>| {
            told.as_ref().is_ok_and(|told| matches!(told.event, Event::Step { .. }))
        };
        let last = told.iter().rposition(is_step);
        for (at, told) in told.into_iter().enumerate() {
            let told = told.inspect_err(|_| {
                // Later steps are discarded: no epoch ends with them.
                self.calling.clear();
                self.reading = None;
            })?;
            match told.event {
                Event::Step { phase, batch, .. } => {
                    self.step(phase, batch, &told, Some(at) == last, company, run)?;
                }
                Event::Pass(phase) => {
                    self.sums.add(&told);
                    let logs = std::mem::take(&mut self.sums).logs();
                    self.pass(phase, logs, company, run)?;
                }
                Event::Epoch { number, batches } => {
                    let mut logs = std::mem::take(&mut self.epoch);
                    for callback in company.callbacks.iter_mut() {
                        callback.on_epoch_end(number, &mut logs, run)?;
                        if let Some(rest) = callback.after_epoch() {
                            rest.await?;
                        }
                    }
                    company.history.add(number, &logs);
                    company.progress.end(batches, &logs);
                    self.last = logs;
                }
            }
        }
        Ok(())
    }

    fn pass(
        &mut self,
        phase: Phase,
        logs: Logs,
        company: &mut Company<'_, '_>,
        run: &mut Run<'_>,
    ) -> Result<()> {
        if phase == Phase::Train {
            self.epoch = logs;
            return Ok(());
        }
        company.callbacks.iter_mut().try_for_each(|callback| callback.on_test_end(&logs, run))?;
        match phase {
            Phase::Validate => {
                logs.iter().for_each(|(name, value)| self.epoch.set(&format!("val_{name}"), value));
            }
            _ => self.last = logs,
        }
        Ok(())
    }

    fn step(
        &mut self,
        phase: Phase,
        batch: usize,
        told: &Told,
        last: bool,
        company: &mut Company<'_, '_>,
        run: &mut Run<'_>,
    ) -> Result<()> {
        self.sums.add(told);
        let heard = company.batch_logs() != BatchLogs::Unused;
        // A validation has no separate bar.
        let shown = last && phase != Phase::Validate && company.progress.shows();
        let watched = phase == Phase::Train && !self.warned;
        if !heard && !shown && !watched {
            return Ok(());
        }
        let logs = self.sums.logs();
        if let Some(loss) = logs.get("loss").filter(|loss| watched && !loss.is_finite()) {
            self.warned = true;
            crate::warnings::warn_user!(
                "fit: the loss is {loss} at batch {batch}, and the weights may be lost. Lower the learning rate, look for NaN \
                 in the data and for labels that the loss does not have, or stop with TerminateOnNaN."
            );
        }
        if heard {
            run.set_batch_logs(told.logs());
            for callback in company.callbacks.iter_mut() {
                if callback.batch_logs() != BatchLogs::Unused {
                    batch_end(phase, &mut **callback, batch, &logs, run)?;
                }
            }
        }
        if shown {
            company.progress.update(batch + 1, &logs);
        }
        Ok(())
    }
}

/// Runs an epoch of `feed`, or the rest of one that has begun, after the given number of batches and with the given sums.
/// Returns the number of batches.
#[allow(clippy::too_many_arguments)] // The loop's state.
pub(super) async fn pass(
    phase: Phase,
    model: &dyn AnyModel,
    compiled: &Compiled,
    feed: &mut Feed<'_>,
    ahead: &mut Ahead,
    company: &mut Company<'_, '_>,
    run: &mut Run<'_>,
    begun: Option<(usize, Sums)>,
) -> Result<usize> {
    let wanted = company.batch_logs();
    let mut batches = 0;
    match begun {
        Some((before, sums)) => (batches, ahead.sums) = (before, sums),
        None => {
            feed.begin();
            reset_metrics(model, compiled)?;
        }
    }
    // A step's structure must not depend on whether it is the first.
    flush()?;
    // The labels of arrays have already been checked.
    compiled.set_checked_labels(feed.arrays().is_some());
    let shows = phase != Phase::Validate;
    loop {
        if company.interrupted() || run.stopped() && phase == Phase::Train {
            break;
        }
        let Some(batch) = feed.next()? else { break };
        let stepped = step(phase, model, compiled, batches, &batch, company, run, wanted);
        ahead.add(stepped.map_err(|error| {
            super::checks::with_remedy(model, Some(compiled), feed, &batch, error)
        })?);
        drop(batch);
        if batches == 0 && shows {
            company.progress.called();
        }
        batches += 1;
        #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
        let backs_up =
            phase == Phase::Train && super::backup::is_wanted(company.callbacks, Some(batches));
        if wanted == BatchLogs::Now {
            ahead.catch_up(company, run).await?;
        } else if ahead.is_full() {
            if let (Some(last), true) =
                (ahead.calling.last_mut(), shows && company.progress.draws())
            {
                if last.metrics.is_empty() {
                    last.metrics = compiled.results()?;
                }
            }
            ahead.read(company, run).await?;
        }
        #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
        if backs_up {
            ahead.catch_up(company, run).await?;
            ahead.sums.set_metrics(compiled.results()?).await?;
            super::backup::save(company.callbacks, batches, &ahead.sums, compiled, feed, run)
                .await?;
        }
    }
    let mut end = Unread::new(Event::Pass(phase));
    end.metrics = compiled.results()?;
    flush()?;
    ahead.add(end);
    if company.waits() {
        ahead.catch_up(company, run).await?;
    }
    Ok(batches)
}

/// Calls the ops of a step.
#[allow(clippy::too_many_arguments)] // The loop's state.
fn step(
    phase: Phase,
    model: &dyn AnyModel,
    compiled: &Compiled,
    number: usize,
    batch: &crate::data::Batch,
    company: &mut Company<'_, '_>,
    run: &mut Run<'_>,
    wanted: BatchLogs,
) -> Result<Unread> {
    for callback in company.callbacks.iter_mut() {
        match phase {
            Phase::Train => callback.on_train_batch_begin(number, run)?,
            Phase::Test | Phase::Validate => callback.on_test_batch_begin(number, run)?,
        }
    }
    let logs = match phase {
        Phase::Train => model.train_step(batch)?,
        Phase::Test => model.test_step(batch)?,
        Phase::Validate => model.test_step(batch).map_err(|error| {
            error.reworded(|text| message!("{}: batch {number}: {text}", super::feed::VALIDATION))
        })?,
    };
    // An optimizer has already flushed; with this, other steps also run as separate plans.
    flush()?;
    let metrics = match wanted {
        BatchLogs::Unused => Vec::new(),
        _ => {
            let results = compiled.results()?;
            flush()?;
            results
        }
    };
    for callback in company.callbacks.iter_mut() {
        if callback.batch_logs() == BatchLogs::Unused {
            batch_end(phase, &mut **callback, number, &Logs::new(), run)?;
        }
    }
    Ok(Unread { event: Event::Step { phase, batch: number, examples: batch.len() }, logs, metrics })
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
