//! Reads the results of steps while the next ones run.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use super::feed::VALIDATION;
use super::logs::{Logs, StepLogs};
use super::phase::Phase;
use crate::data::codec::{Reader, Writer};
use crate::error::Result;
use crate::support::sort::sort_by;
use crate::tensor::Tensor;

/// An event of a training, in order.
#[derive(Clone, Copy)]
pub(super) enum Event {
    /// A step on the batch with this number in its pass.
    Step { phase: Phase, batch: usize, examples: usize },
    /// A pass has ended.
    Pass(Phase),
    /// An epoch has ended, after so many batches.
    Epoch { number: usize, batches: usize },
}

impl Event {
    /// The beginning of messages.
    fn name(self) -> String {
        match self {
            Event::Step { phase: Phase::Train, batch, .. } => format!("fit: batch {batch}"),
            Event::Step { phase: Phase::Test, batch, .. } => format!("evaluate: batch {batch}"),
            Event::Step { phase: Phase::Validate, batch, .. } => {
                format!("{VALIDATION}: batch {batch}")
            }
            Event::Pass(_) | Event::Epoch { .. } => "fit".to_string(),
        }
    }
}

/// An event whose scalars are still on the device.
pub(super) struct Unread {
    pub(super) event: Event,
    pub(super) logs: StepLogs,
    /// The metrics' results after it, if they are needed.
    pub(super) metrics: Vec<(String, Tensor)>,
}

impl Unread {
    pub(super) fn new(event: Event) -> Self {
        Unread { event, logs: StepLogs::new(), metrics: Vec::new() }
    }
}

/// An event whose scalars have been read.
pub(super) struct ReadEvent {
    pub(super) event: Event,
    scalars: Vec<(String, f64)>,
    metrics: Vec<(String, f64)>,
}

impl ReadEvent {
    /// The values of a single step.
    pub(super) fn logs(&self) -> Logs {
        Logs::from(self.scalars.clone())
    }
}

type Values = Result<Vec<Vec<f32>>>;

/// Scalars of several events that are being transferred from the device.
pub(super) struct Read {
    events: Vec<Unread>,
    values: Pin<Box<dyn Future<Output = Values>>>,
    /// The values, if they were available immediately.
    done: Option<Values>,
}

impl Read {
    /// Starts to read the scalars of `events`.
    pub(super) async fn start(events: Vec<Unread>) -> Read {
        let mut wanted: Vec<Tensor> = Vec::new();
        for event in &events {
            wanted.extend(event.logs.iter().map(|(_, value)| value.clone()));
            wanted.extend(event.logs.checks().iter().map(|check| check.found.clone()));
            wanted.extend(event.metrics.iter().map(|(_, value)| value.clone()));
        }
        if wanted.is_empty() {
            let (values, done) = (Box::pin(async { Ok(Vec::new()) }), Some(Ok(Vec::new())));
            return Read { events, values, done };
        }
        let mut values: Pin<Box<dyn Future<Output = Values>>> = Box::pin(async move {
            Tensor::to_vecs_async::<f32>(&wanted.iter().collect::<Vec<_>>()).await
        });
        // Polled once, so that the copy starts before the next step is called.
        let done = poll_fn(|context| match values.as_mut().poll(context) {
            Poll::Ready(values) => Poll::Ready(Some(values)),
            Poll::Pending => Poll::Ready(None),
        })
        .await;
        Read { events, values, done }
    }

    /// Returns the events with their values, in order. If a step's check failed, its error replaces this and all later
    /// events.
    pub(super) async fn finish(self) -> Result<Vec<Result<ReadEvent>>> {
        let values = match self.done {
            Some(values) => values?,
            None => self.values.await?,
        };
        let mut values = VecDeque::from(values);
        let mut events = Vec::with_capacity(self.events.len());
        for event in self.events {
            let mut scalars = Vec::new();
            for (name, _) in event.logs.iter() {
                scalars.extend(named(name, values.pop_front().unwrap_or_default()));
            }
            for check in event.logs.checks() {
                let found = values.pop_front().unwrap_or_default();
                if let Some(error) = check.error(&event.event.name(), &found) {
                    events.push(Err(error));
                    return Ok(events);
                }
            }
            let mut metrics = Vec::new();
            for (name, _) in &event.metrics {
                metrics.extend(named(name, values.pop_front().unwrap_or_default()));
            }
            events.push(Ok(ReadEvent { event: event.event, scalars, metrics }));
        }
        Ok(events)
    }
}

/// A scalar under its name; several numbers, such as a recall for each threshold, under `name_0`, `name_1`.
fn named(name: &str, values: Vec<f32>) -> Vec<(String, f64)> {
    match values.as_slice() {
        [only] => vec![(name.to_string(), f64::from(*only))],
        _ => {
            let one = |(at, value): (usize, f32)| (format!("{name}_{at}"), f64::from(value));
            values.into_iter().enumerate().map(one).collect()
        }
    }
}

/// Means over the examples of an epoch, and the metrics' last results.
#[derive(Default)]
pub(super) struct Sums {
    scalars: Vec<(String, f64)>,
    examples: f64,
    metrics: Vec<(String, f64)>,
}

impl Sums {
    pub(super) fn add(&mut self, step: &ReadEvent) {
        let examples = match step.event {
            Event::Step { examples, .. } => examples as f64,
            _ => 0.0,
        };
        for (name, value) in &step.scalars {
            match self.scalars.iter_mut().find(|(known, _)| known == name) {
                Some((_, sum)) => *sum += value * examples,
                None => self.scalars.push((name.clone(), value * examples)),
            }
        }
        self.examples += examples;
        if !step.metrics.is_empty() {
            self.metrics.clone_from(&step.metrics);
        }
    }

    /// Reads the metrics' results.
    pub(super) async fn set_metrics(&mut self, metrics: Vec<(String, Tensor)>) -> Result<()> {
        let now = Unread { metrics, ..Unread::new(Event::Pass(Phase::Train)) };
        for events in Read::start(vec![now]).await.finish().await? {
            self.add(&events?);
        }
        Ok(())
    }

    /// The sums over the examples of both; the metrics' results are those of `self`.
    #[cfg(not(target_family = "wasm"))]
    pub(super) fn join(&mut self, other: Sums) {
        for (name, value) in other.scalars {
            match self.scalars.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += value,
                None => self.scalars.push((name, value)),
            }
        }
        self.examples += other.examples;
    }

    pub(super) fn save(&self, out: &mut Writer) {
        out.number(self.examples.to_bits());
        for list in [&self.scalars, &self.metrics] {
            out.number(list.len() as u64);
            for (name, value) in list {
                out.block(name.as_bytes());
                out.number(value.to_bits());
            }
        }
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Result<Self> {
        let examples = f64::from_bits(from.number()?);
        let mut list = || -> Result<Vec<(String, f64)>> {
            let pair = |from: &mut Reader<'_>| {
                Ok((from.text()?.to_string(), f64::from_bits(from.number()?)))
            };
            (0..from.count(16)?).map(|_| pair(from)).collect()
        };
        Ok(Sums { scalars: list()?, examples, metrics: list()? })
    }

    /// The values so far, sorted by name, as Keras shows them.
    pub(super) fn logs(&self) -> Logs {
        let mut logs: Vec<(String, f64)> =
            self.scalars.iter().map(|(name, sum)| (name.clone(), sum / self.examples)).collect();
        for (name, value) in &self.metrics {
            match logs.iter_mut().find(|(known, _)| known == name) {
                Some((_, old)) => *old = *value,
                None => logs.push((name.clone(), *value)),
            }
        }
        sort_by(&mut logs, |(a, _), (b, _)| a.cmp(b));
        Logs::from(logs)
    }
}
