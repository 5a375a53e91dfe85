//! Reads what steps have computed while the next ones run.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use super::logs::{Logs, StepLogs};
#[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
use crate::data::codec::{Reader, Writer};
use crate::error::Result;
use crate::tensor::Tensor;

/// A step whose scalars are still on the device.
pub(super) struct Unread {
    /// The number of the batch in its epoch.
    pub(super) batch: usize,
    pub(super) examples: usize,
    pub(super) logs: StepLogs,
    /// The metrics' results after the step, if somebody wants them.
    pub(super) metrics: Vec<(String, Tensor)>,
}

/// A step whose scalars have been read.
pub(super) struct Step {
    pub(super) batch: usize,
    examples: usize,
    scalars: Vec<(String, f64)>,
    metrics: Vec<(String, f64)>,
}

impl Step {
    /// The numbers of the step alone.
    pub(super) fn logs(&self) -> Logs {
        Logs::from(self.scalars.clone())
    }
}

type Values = Result<Vec<Vec<f32>>>;

/// Scalars of several steps on their way from the device.
pub(super) struct Read {
    steps: Vec<Unread>,
    values: Pin<Box<dyn Future<Output = Values>>>,
    /// They came at once.
    done: Option<Values>,
}

impl Read {
    /// Asks for the scalars of `steps`.
    pub(super) async fn start(steps: Vec<Unread>) -> Read {
        let mut wanted: Vec<Tensor> = Vec::new();
        for step in &steps {
            wanted.extend(step.logs.iter().map(|(_, value)| value.clone()));
            wanted.extend(step.metrics.iter().map(|(_, value)| value.clone()));
        }
        let mut values: Pin<Box<dyn Future<Output = Values>>> = Box::pin(async move {
            Tensor::to_vecs_async::<f32>(&wanted.iter().collect::<Vec<_>>()).await
        });
        // Polled once, the copy is on its way before the next step is called.
        let done = poll_fn(|context| match values.as_mut().poll(context) {
            Poll::Ready(values) => Poll::Ready(Some(values)),
            Poll::Pending => Poll::Ready(None),
        })
        .await;
        Read { steps, values, done }
    }

    /// The steps with their numbers, in order.
    pub(super) async fn finish(self) -> Result<Vec<Step>> {
        let values = match self.done {
            Some(values) => values?,
            None => self.values.await?,
        };
        let mut values = VecDeque::from(values);
        let mut steps = Vec::with_capacity(self.steps.len());
        for step in self.steps {
            let mut scalars = Vec::new();
            for (name, _) in step.logs.iter() {
                scalars.extend(named(name, values.pop_front().unwrap_or_default()));
            }
            let mut metrics = Vec::new();
            for (name, _) in &step.metrics {
                metrics.extend(named(name, values.pop_front().unwrap_or_default()));
            }
            steps.push(Step { batch: step.batch, examples: step.examples, scalars, metrics });
        }
        Ok(steps)
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
    pub(super) fn add(&mut self, step: &Step) {
        let examples = step.examples as f64;
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

    #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
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

    #[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
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

    /// The numbers so far, sorted by name, as Keras shows them.
    pub(super) fn logs(&self) -> Logs {
        let mut logs: Vec<(String, f64)> =
            self.scalars.iter().map(|(name, sum)| (name.clone(), sum / self.examples)).collect();
        for (name, value) in &self.metrics {
            match logs.iter_mut().find(|(known, _)| known == name) {
                Some((_, old)) => *old = *value,
                None => logs.push((name.clone(), *value)),
            }
        }
        logs.sort_by(|(a, _), (b, _)| a.cmp(b));
        Logs::from(logs)
    }
}
