//! Measures while the program runs: in short slices between flushes, for a small share of the time.

use std::collections::VecDeque;
use std::sync::Arc;

use web_time::Instant;

use super::measure::Measurement;
use super::{Task, Tuner, Tuning};
use crate::device::{Gpu, platform};
use crate::error::Result;

/// Measuring may take 1 / `SHARE` of the time.
const SHARE: u32 = 20;

/// The ops that wait to be measured.
#[derive(Default)]
pub(super) struct Background {
    waiting: VecDeque<Arc<Task>>,
    pub(super) current: Option<Measurement>,
    /// The tuner measures nothing before this.
    pub(super) next: Option<Instant>,
    /// There are findings that plans do not use yet.
    news: bool,
}

impl Background {
    pub(super) fn queue(&mut self, tasks: &[Arc<Task>]) {
        tasks.iter().for_each(|task| self.waiting.push_back(task.clone()));
    }
}

impl Tuner {
    /// Runs a slice of the waiting measurements. Returns true when all are done and plans should be made again.
    ///
    /// # Errors
    /// Those of the program's own work; errors of the measurement itself only end it.
    pub(crate) fn slice(&mut self, gpu: &Gpu) -> Result<bool> {
        let work = &mut self.background;
        if !platform::MAY_BLOCK
            || self.mode != Tuning::Background
            || (work.current.is_none() && work.waiting.is_empty())
            || work.next.is_some_and(|next| Instant::now() < next)
            // A profile is being recorded.
            || gpu.start_profile().map(|()| gpu.drop_profile()).is_err()
        {
            return Ok(false);
        }
        // The device first finishes the program's work, which must not count.
        gpu.wait(None)?;
        let began = Instant::now();
        let stepped = self.small_step(gpu);
        let work = &mut self.background;
        if let Err(error) = stepped {
            log::debug!("Measuring stops: {error}");
            *work = Background::default();
            return Ok(false);
        }
        work.next = Some(Instant::now() + began.elapsed() * (SHARE - 1));
        let done = work.current.is_none() && work.waiting.is_empty() && work.news;
        if done {
            work.news = false;
            self.findings.save(&self.identity);
        }
        Ok(done)
    }

    fn small_step(&mut self, gpu: &Gpu) -> Result<()> {
        let Some(mut measurement) = self.background.current.take() else {
            let Some(task) = self.background.waiting.pop_front() else { return Ok(()) };
            self.seen.retain(|seen| seen.key != task.key);
            self.findings();
            if task.found(&self.findings).is_none() {
                self.background.current = Some(Measurement::new(task));
            }
            return Ok(());
        };
        let done = match pollster::block_on(measurement.step(gpu, &mut None)) {
            Ok(Some(())) => {
                self.background.current = Some(measurement);
                return Ok(());
            }
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        let first = measurement.first().to_string();
        if let Some(op) = measurement.close(done)? {
            self.background.news |= op.chosen != first;
            self.found(&[op]);
        }
        Ok(())
    }
}
