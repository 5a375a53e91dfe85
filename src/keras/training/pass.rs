//! One pass through a feed, which trains or measures.
//!
//! Steps are called in runs of some milliseconds. The numbers of a run are read together, and the next run begins while
//! they are on their way; so no more than two runs are ever under way, and a browser draws between them.

use std::time::Duration;

use web_time::Instant;

use super::any_model::AnyModel;
use super::callback::{BatchLogs, Callback, Run};
use super::feed::Feed;
use super::interrupt::CtrlC;
use super::logs::Logs;
use super::progress::Progress;
use super::reading::{Read, Step, Sums, Unread};
use super::stop::StopSignal;
use super::trainer::Compiled;
use crate::error::Result;
use crate::runtime::Device;

/// How long a run takes: natively less than an eye notices of a bar, in a browser less than a frame.
const RUN: Duration = Duration::from_millis(if cfg!(target_family = "wasm") { 8 } else { 40 });
/// The most steps of a run, unless the caller says.
const STEPS: usize = 64;
/// A run that the device takes longer for is followed by one of half the steps: the same device draws the page.
const SLOW: Duration = Duration::from_millis(100);

/// What a pass does with a batch.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Phase {
    Train,
    Test,
}

/// What accompanies a pass.
pub(super) struct Company<'c, 'a> {
    pub(super) callbacks: &'c mut [Box<dyn Callback + 'a>],
    pub(super) progress: &'c mut Progress,
    /// False for a validation, which has no bar of its own.
    pub(super) shows: bool,
    pub(super) stop: &'c StopSignal,
    pub(super) ctrl_c: &'c CtrlC,
    pub(super) yield_every: Option<usize>,
    /// The steps of the next run; a pass goes on with the last one's.
    pub(super) most: &'c mut usize,
    /// A loss that is no number was told already.
    pub(super) warned: &'c mut bool,
}

impl Company<'_, '_> {
    /// True if the program or its user wants to stop.
    pub(super) fn interrupted(&self) -> bool {
        self.stop.stopped() || self.ctrl_c.pressed()
    }

    fn batch_logs(&self) -> BatchLogs {
        let wanted = self.callbacks.iter().map(|callback| callback.batch_logs());
        wanted.max().unwrap_or(BatchLogs::Unused)
    }
}

/// Goes through an epoch of `feed`, or through the rest of one behind so many batches with these sums. Returns the numbers, and
/// how many batches there were.
pub(super) async fn pass(
    phase: Phase,
    model: &dyn AnyModel,
    compiled: &Compiled,
    feed: &mut Feed<'_>,
    company: &mut Company<'_, '_>,
    run: &mut Run<'_>,
    begun: Option<(usize, Sums)>,
) -> Result<(Logs, usize)> {
    let wanted = company.batch_logs();
    if begun.is_none() {
        feed.begin();
        compiled.reset_metrics()?;
    }
    // A step's structure must not depend on whether it is the first.
    flush()?;
    let (mut batches, mut sums) = begun.unwrap_or_default();
    let (mut waiting, mut began_waiting) = (None::<Read>, Instant::now());
    let mut going = true;
    while going {
        let began = Instant::now();
        let mut steps = Vec::new();
        #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
        let mut backs_up = false;
        let most = if wanted == BatchLogs::Now { 1 } else { *company.most };
        while steps.len() < most && (steps.is_empty() || began.elapsed() < RUN) {
            going = !(company.interrupted() || run.stopped() && phase == Phase::Train);
            let batch = if going { feed.next()? } else { None };
            let Some(batch) = batch else {
                going = false;
                break;
            };
            steps.push(step(phase, model, compiled, batches, &batch, company, run, wanted)?);
            batches += 1;
            #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
            if phase == Phase::Train && super::backup::is_wanted(company.callbacks, Some(batches)) {
                backs_up = true;
                break;
            }
        }
        if let (Some(last), true) = (steps.last_mut(), company.shows && company.progress.draws()) {
            if last.metrics.is_empty() {
                last.metrics = compiled.results()?;
            }
        }
        let read = match steps.is_empty() {
            true => None,
            false => Some(Read::start(steps).await),
        };
        let before = std::mem::replace(&mut waiting, read);
        let since = std::mem::replace(&mut began_waiting, began);
        if let Some(before) = before {
            tell(phase, before.finish().await?, &mut sums, company, run, wanted)?;
            // The next run is shorter where the device was slow.
            let next = if since.elapsed() > SLOW { *company.most / 2 } else { *company.most * 2 };
            *company.most = next.clamp(1, company.yield_every.unwrap_or(STEPS));
        }
        if wanted == BatchLogs::Now {
            if let Some(now) = waiting.take() {
                tell(phase, now.finish().await?, &mut sums, company, run, wanted)?;
            }
        }
        #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
        if backs_up {
            if let Some(now) = waiting.take() {
                tell(phase, now.finish().await?, &mut sums, company, run, wanted)?;
            }
            measure(batches, compiled, &mut sums).await?;
            super::backup::save(company.callbacks, batches, &sums, compiled, feed, run).await?;
        }
    }
    if let Some(last) = waiting {
        tell(phase, last.finish().await?, &mut sums, company, run, wanted)?;
    }
    measure(batches, compiled, &mut sums).await?;
    Ok((sums.logs(), batches))
}

/// Reads the metrics after the last batch.
async fn measure(batches: usize, compiled: &Compiled, sums: &mut Sums) -> Result<()> {
    let (examples, logs, metrics) = (0, Default::default(), compiled.results()?);
    if metrics.is_empty() {
        return Ok(());
    }
    let end = Unread { batch: batches, examples, logs, metrics };
    for step in Read::start(vec![end]).await.finish().await? {
        sums.add(&step);
    }
    Ok(())
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
            Phase::Test => callback.on_test_batch_begin(number, run)?,
        }
    }
    let logs = match phase {
        Phase::Train => model.train_step(batch)?,
        Phase::Test => model.test_step(batch)?,
    };
    // An optimizer has flushed already; a step of another kind runs as a plan of its own, too.
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
    Ok(Unread { batch: number, examples: batch.len(), logs, metrics })
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
        Phase::Test => callback.on_test_batch_end(batch, logs, run),
    }
}

/// Tells of steps that have been read.
fn tell(
    phase: Phase,
    steps: Vec<Step>,
    sums: &mut Sums,
    company: &mut Company<'_, '_>,
    run: &mut Run<'_>,
    wanted: BatchLogs,
) -> Result<()> {
    let Some(last) = steps.last().map(|step| step.batch) else { return Ok(()) };
    for step in steps {
        sums.add(&step);
        let shown = company.shows && step.batch == last;
        if wanted == BatchLogs::Unused && !shown && *company.warned {
            continue;
        }
        let logs = sums.logs();
        let lost = logs.get("loss").is_some_and(|loss| !loss.is_finite());
        if lost && phase == Phase::Train && !*company.warned {
            *company.warned = true;
            log::warn!(
                "fit: the loss is {} at batch {}, and the weights may be lost. Lower the learning rate, look for NaN in \
                 the data and for labels that the loss does not have, or stop with TerminateOnNaN.",
                logs.get("loss").unwrap_or(f64::NAN),
                step.batch
            );
        }
        run.set_batch_logs(step.logs());
        for callback in company.callbacks.iter_mut() {
            if callback.batch_logs() != BatchLogs::Unused {
                batch_end(phase, &mut **callback, step.batch, &logs, run)?;
            }
        }
        if shown {
            company.progress.update(step.batch + 1, &logs);
        }
    }
    Ok(())
}

pub(super) fn flush() -> Result<()> {
    Device::current()?.flush()
}
