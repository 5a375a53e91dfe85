//! [`FitProgress`]: the position of a training between two batches, as bytes: the state that it needs to resume, besides the model
//! and the optimizer.

use super::callback::{Callback, Epoch, Run};
use super::feed::Feed;
use super::reading::Sums;
use super::trainer::Compiled;
use crate::data::codec::{Reader, Writer};
use crate::error::{Error, Result, message};
use crate::host_array::{HostArray, HostDType};
use crate::trackable::{Everything, NamedArray, Scope, Trackable};

/// The first bytes of a backup.
const MAGIC: &[u8; 8] = b"wgradfi1";

/// The position of a training.
pub(super) struct FitProgress {
    pub(super) epoch: usize,
    /// The number of batches of the epoch that are done.
    pub(super) batches: usize,
    /// The learning rate with which the epoch began, before callbacks changed it.
    pub(super) rate: f32,
    pub(super) sums: Sums,
    /// The states of the metrics in use.
    pub(super) metrics: Vec<Vec<NamedArray<'static>>>,
    /// The saved states of the feeds.
    feeds: Vec<Vec<u8>>,
}

/// The saved state of a feed.
pub(super) fn of_feed(feed: &Feed<'_>) -> Result<Vec<u8>> {
    let mut out = Writer::new();
    feed.save(&mut out)?;
    Ok(out.into_bytes())
}

/// Whether a callback requests a backup after so many batches of the epoch, or with `None` after the epoch.
pub(super) fn is_wanted(callbacks: &mut [Box<dyn Callback + '_>], batches: Option<usize>) -> bool {
    // All callbacks are called, as they count batches.
    callbacks.iter_mut().fold(false, |wanted, callback| wanted | callback.wants_backup(batches))
}

/// Called before the callbacks are notified of an epoch. A resumed epoch starts with its original rate, from which callbacks
/// may derive a new one. Returns the rate from before this call.
pub(super) fn begin(epoch: usize, resumed: Option<&FitProgress>, run: &mut Run<'_>) -> Result<f32> {
    let rate = run.learning_rate()?;
    if let Some(place) = resumed.filter(|place| place.batches > 0) {
        // A schedule sets its own rate, and refuses this.
        let _ = run.set_learning_rate(place.rate);
    }
    run.backup.epoch.number = epoch;
    run.backup.epoch.rate = run.learning_rate()?;
    Ok(rate)
}

/// The bytes of the position after so many batches of an epoch.
pub(super) fn bytes(
    epoch: &Epoch,
    batches: usize,
    sums: &Sums,
    metrics: &[Vec<NamedArray<'static>>],
    feed: &Feed<'_>,
) -> Result<Vec<u8>> {
    let mut out = Writer::new();
    out.raw(MAGIC);
    out.number(epoch.number as u64);
    out.number(batches as u64);
    out.number(u64::from(epoch.rate.to_bits()));
    sums.save(&mut out);
    write_states(&mut out, metrics);
    let feeds = [&of_feed(feed)?, &epoch.validation];
    feeds.into_iter().for_each(|feed| out.block(feed));
    Ok(out.into_bytes())
}

/// The states of the metrics in use.
pub(super) async fn metric_states(compiled: &Compiled) -> Result<Vec<Vec<NamedArray<'static>>>> {
    let mut states = Vec::new();
    for (_, metric) in compiled.named_metrics() {
        // Metrics also store counts on the host.
        let everything = Everything::collect(&metric, Scope::Checkpoint);
        states.push(everything.into_arrays(metric.kind()).await?);
    }
    Ok(states)
}

pub(super) fn write_states(out: &mut Writer, metrics: &[Vec<NamedArray<'static>>]) {
    out.number(metrics.len() as u64);
    for arrays in metrics {
        out.number(arrays.len() as u64);
        for array in arrays {
            out.block(array.name.as_bytes());
            let array = &array.array;
            out.block(array.dtype().file_name().as_bytes());
            out.number(array.shape().len() as u64);
            array.shape().iter().for_each(|size| out.number(*size as u64));
            out.block(array.bytes());
        }
    }
}

pub(super) fn read_states(from: &mut Reader<'_>) -> Result<Vec<Vec<NamedArray<'static>>>> {
    let mut metrics = Vec::new();
    for _ in 0..from.count(8)? {
        let mut arrays = Vec::new();
        for _ in 0..from.count(8)? {
            let (name, dtype) = (from.text()?.to_string(), from.text()?);
            let dtype = HostDType::from_safetensors_name(dtype)
                .ok_or_else(|| Error::Data(message!("the dtype '{dtype}' is unknown.")))?;
            let rank = from.count(8)?;
            let shape = (0..rank).map(|_| from.size()).collect::<Result<Vec<usize>>>()?;
            let array = HostArray::new(dtype, shape, from.block()?.to_vec());
            let damaged = |error: Error| Error::Data(message!("'{name}': {error}"));
            arrays.push(NamedArray::new(name.clone(), array.map_err(damaged)?));
        }
        metrics.push(arrays);
    }
    Ok(metrics)
}

impl FitProgress {
    pub(super) fn read(bytes: &[u8]) -> Result<Self> {
        FitProgress::parse(bytes).map_err(|error| {
            error.reworded(|text| message!("fit: the backup of the training is damaged: {text}"))
        })
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        let mut from = Reader::new(bytes);
        if from.raw(MAGIC.len())? != MAGIC {
            return Err(Error::Data("these bytes were not saved by this version.".into()));
        }
        let (epoch, batches) = (from.size()?, from.size()?);
        let rate = f32::from_bits(from.number()? as u32);
        let sums = Sums::read(&mut from)?;
        let metrics = read_states(&mut from)?;
        let feeds = vec![from.block()?.to_vec(), from.block()?.to_vec()];
        Ok(FitProgress { epoch, batches, rate, sums, metrics, feeds })
    }

    /// Called after the callbacks were notified of the epoch. Returns the state from which the pass continues, if it had begun.
    pub(super) fn go_on(
        self,
        rate: f32,
        compiled: &Compiled,
        run: &Run<'_>,
    ) -> Result<Option<(usize, Sums)>> {
        if self.batches == 0 {
            return Ok(None);
        }
        let _ = run.set_learning_rate(rate);
        // What the processes of a strategy have counted is in the state of the chief.
        if !run.is_chief() {
            return Ok(Some((self.batches, Sums::default())));
        }
        compiled.leave_metrics(self.metrics)?;
        Ok(Some((self.batches, self.sums)))
    }

    /// Restores the feed of the training.
    pub(super) fn put_feed(&self, feed: &mut Feed<'_>) -> Result<()> {
        feed.restore(&mut Reader::new(&self.feeds[0]))
    }

    /// Restores the feed of the validation, if there was one.
    pub(super) fn put_validation(&self, feed: &mut Feed<'_>) -> Result<()> {
        match self.feeds[1].as_slice() {
            [] => Ok(()),
            bytes => feed.restore(&mut Reader::new(bytes)),
        }
    }
}
