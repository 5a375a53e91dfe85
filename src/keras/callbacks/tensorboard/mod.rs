//! [`TensorBoard`]: writes the event files of a training for TensorBoard.

mod projector;
mod weights;

use std::path::{Path, PathBuf};
use std::time::Instant;

use super::{BatchLogs, Callback, Logs, Run};
use crate::error::{Error, Result, message};
use crate::summary::{
    self, DefaultWriter, FileWriter, Graph, Recording, create_file_writer, record_if,
};
use projector::Projector;

/// How often [`TensorBoard`] writes the values of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum UpdateFreq {
    /// Never: only the values of epochs are written.
    #[default]
    Epoch,
    /// For each batch.
    Batch,
    /// Once every so many batches.
    Batches(usize),
}

impl From<usize> for UpdateFreq {
    fn from(batches: usize) -> Self {
        UpdateFreq::Batches(batches)
    }
}

/// Writes event files for TensorBoard: the values of epochs and batches, the model's graph, histograms and images of its
/// weights, embeddings, and a profile.
///
/// Names and folders are Keras's: `epoch_loss`, `epoch_accuracy` and `epoch_learning_rate` in the runs `train` and
/// `validation`, `batch_loss`, `evaluation_loss_vs_iterations`. With `update_freq`, summaries that the model's own code writes
/// are added to the same files, with the batch's number as their step.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Tensor, keras::{CompileOptions, FitOptions, Model, Sequential, layers::Dense}};
/// use wgrad::keras::callbacks::TensorBoard;
/// # let folder = std::env::temp_dir().join(format!("wgrad-tensorboard-{}", std::process::id()));
/// let model = Sequential::new().add(Dense::new(1));
/// model.compile("sgd", "mse", CompileOptions::new())?;
/// let (x, y) = (Tensor::ones([64, 2])?, Tensor::zeros([64, 1])?);
/// let board = TensorBoard::new(&folder).histogram_freq(1);
/// model.fit((&x, &y), FitOptions::new().epochs(2).callback(board))?;
///
/// let events = wgrad::summary::read(&folder)?;
/// let losses: Vec<_> = events.iter().filter(|event| event.tag == "epoch_loss").collect();
/// assert_eq!(losses.len(), 2);
/// assert_eq!(losses[0].run, "train");
/// # std::fs::remove_dir_all(folder).expect("it was written");
/// # Ok(())
/// # }
/// ```
pub struct TensorBoard {
    log_dir: PathBuf,
    histogram_freq: usize,
    write_graph: bool,
    write_images: bool,
    write_steps_per_second: bool,
    update_freq: UpdateFreq,
    profile_batch: Option<(u64, u64)>,
    embeddings_freq: usize,
    projector: Projector,
    train: Option<FileWriter>,
    validation: Option<FileWriter>,
    /// The default writers of the training, and of the validation during it.
    scopes: Vec<(DefaultWriter, Recording)>,
    /// Batches that began and ended since the training began; the notification of an end may be late.
    begun: u64,
    ended: u64,
    tested: u64,
    training: bool,
    graph_written: bool,
    batch_began: Option<Instant>,
    epoch_began: Option<(Instant, u64)>,
    tracing: bool,
}

impl std::fmt::Debug for TensorBoard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TensorBoard")
            .field("log_dir", &self.log_dir)
            .field("update_freq", &self.update_freq)
            .finish_non_exhaustive()
    }
}

impl TensorBoard {
    /// Creates a callback that writes to the folders `train` and `validation` in `log_dir`. It creates them when there is
    /// something to write.
    pub fn new(log_dir: impl AsRef<Path>) -> Self {
        TensorBoard {
            log_dir: log_dir.as_ref().to_path_buf(),
            histogram_freq: 0,
            write_graph: true,
            write_images: false,
            write_steps_per_second: false,
            update_freq: UpdateFreq::Epoch,
            profile_batch: None,
            embeddings_freq: 0,
            projector: Projector::default(),
            train: None,
            validation: None,
            scopes: Vec::new(),
            begun: 0,
            ended: 0,
            tested: 0,
            training: false,
            graph_written: false,
            batch_began: None,
            epoch_began: None,
            tracing: false,
        }
    }

    /// Sets after how many epochs histograms of the weights are written. Default: 0, never.
    pub fn histogram_freq(mut self, epochs: usize) -> Self {
        self.histogram_freq = epochs;
        self
    }

    /// Sets whether the graph of the layers is written. Default: `true`.
    pub fn write_graph(mut self, write: bool) -> Self {
        self.write_graph = write;
        self
    }

    /// Sets whether an image of the weights is written with each histogram: the smallest weight black, the largest white.
    /// Default: `false`.
    pub fn write_images(mut self, write: bool) -> Self {
        self.write_images = write;
        self
    }

    /// Sets whether `epoch_steps_per_second`, and with `update_freq` `batch_steps_per_second`, are written. The latter is the
    /// rate at which the host calls steps; the device may lag behind. Default: `false`.
    pub fn write_steps_per_second(mut self, write: bool) -> Self {
        self.write_steps_per_second = write;
        self
    }

    /// Sets how often the values of batches are written. Each batch then also computes the metrics' results. Default: never.
    pub fn update_freq(mut self, freq: impl Into<UpdateFreq>) -> Self {
        self.update_freq = freq.into();
        self
    }

    /// Sets the first and the last batch, counted from 1, whose kernels are timed: the tab Graphs shows the plan with its times
    /// under `batch_LAST`, and `train/plugins/profile` contains a trace for Perfetto and `chrome://tracing`. Kernels run slower
    /// while they are timed.
    pub fn profile_batch(mut self, first: u64, last: u64) -> Self {
        self.profile_batch = Some((first, last));
        self
    }

    /// Sets after how many epochs the vectors of the `Embedding` layers are written for the tab Projector. Default: 0, never.
    pub fn embeddings_freq(mut self, epochs: usize) -> Self {
        self.embeddings_freq = epochs;
        self
    }

    /// Sets the labels of the vectors of the `Embedding` layer called `layer`, in order.
    pub fn embeddings_metadata<S: Into<String>>(
        mut self,
        layer: &str,
        labels: impl IntoIterator<Item = S>,
    ) -> Self {
        self.projector.label(layer, labels.into_iter().map(Into::into).collect());
        self
    }

    /// The number of batches of which one is written.
    fn every(&self) -> Option<u64> {
        match self.update_freq {
            UpdateFreq::Epoch => None,
            UpdateFreq::Batch => Some(1),
            UpdateFreq::Batches(batches) => Some(batches.max(1) as u64),
        }
    }

    /// Makes the writer of the training or the validation the default for summaries that the model's code writes.
    fn push(&mut self, train: bool, batch: u64) -> Result<()> {
        let Some(every) = self.every() else { return Ok(()) };
        let writer = self.writer(train)?.as_default_at(batch);
        self.scopes.push((writer, record_if(batch.is_multiple_of(every))));
        Ok(())
    }

    fn writer(&mut self, train: bool) -> Result<&FileWriter> {
        let (writer, folder) = match train {
            true => (&mut self.train, "train"),
            false => (&mut self.validation, "validation"),
        };
        if writer.is_none() {
            *writer = Some(create_file_writer(self.log_dir.join(folder))?);
        }
        writer.as_ref().ok_or_else(|| {
            Error::Data(message!("TensorBoard: the writer of {folder} is not there."))
        })
    }

    /// Writes the values, with `prefix` added to their names.
    fn scalars(
        &mut self,
        train: bool,
        prefix: &str,
        logs: &[(String, f64)],
        step: u64,
    ) -> Result<()> {
        let _writer = self.writer(train)?.as_default();
        let _always = record_if(true);
        for (name, value) in logs {
            summary::scalar(&format!("{prefix}{name}"), *value, step)?;
        }
        Ok(())
    }

    fn graph(&mut self, run: &Run<'_>) -> Result<()> {
        if !self.write_graph || std::mem::replace(&mut self.graph_written, true) {
            return Ok(());
        }
        let _writer = self.writer(true)?.as_default();
        let _always = record_if(true);
        #[cfg(feature = "json")]
        if let Some(json) = run.model_json() {
            summary::keras_model("keras", &json, 0)?;
        }
        summary::graph(Graph::of_model(run.model()))?;
        Ok(())
    }

    fn stop_trace(&mut self) -> Result<()> {
        if !std::mem::take(&mut self.tracing) {
            return Ok(());
        }
        let last = self.profile_batch.map_or(0, |(_, last)| last);
        let profile = {
            let _writer = self.writer(true)?.as_default();
            let _always = record_if(true);
            summary::trace_export(&format!("batch_{last}"), last)?
        };
        let folder = self.log_dir.join("train/plugins/profile").join(format!("batch_{last}"));
        crate::files::make_folder(&folder).map_err(|error| Error::io(&folder, error))?;
        profile.write_chrome_trace(folder.join("wgrad.trace.json"))
    }
}

impl Callback for TensorBoard {
    fn is_for_chief(&self) -> bool {
        true
    }

    fn batch_logs(&self) -> BatchLogs {
        if self.every().is_some() { BatchLogs::Behind } else { BatchLogs::Unused }
    }

    fn on_train_begin(&mut self, _: &mut Run<'_>) -> Result<()> {
        if let Some((first, last)) = self.profile_batch {
            if first == 0 || last < first {
                return Err(Error::Data(message!(
                    "TensorBoard: profile_batch is ({first}, {last}); batches count from 1, and the last is not before the \
                     first."
                )));
            }
        }
        if self.update_freq == UpdateFreq::Batches(0) {
            return Err(Error::Data(message!(
                "TensorBoard: update_freq is 0; it is a number of batches from 1 on."
            )));
        }
        (self.begun, self.ended, self.tested, self.training) = (0, 0, 0, true);
        self.graph_written = false;
        self.scopes.clear();
        self.push(true, 0)
    }

    fn on_train_end(&mut self, _: &Logs, _: &mut Run<'_>) -> Result<()> {
        self.scopes.clear();
        self.training = false;
        self.stop_trace()?;
        let train = self.train.take().map_or(Ok(()), FileWriter::close);
        let validation = self.validation.take().map_or(Ok(()), FileWriter::close);
        train.and(validation)
    }

    fn on_epoch_begin(&mut self, _: usize, _: &mut Run<'_>) -> Result<()> {
        // A training may have been interrupted within an epoch.
        self.ended = self.begun;
        self.epoch_began = Some((Instant::now(), self.begun));
        self.batch_began = None;
        Ok(())
    }

    fn on_train_batch_begin(&mut self, _: usize, _: &mut Run<'_>) -> Result<()> {
        let due = self.every().is_some_and(|every| self.begun.is_multiple_of(every));
        let before = self.batch_began.replace(Instant::now());
        if let Some(before) = before.filter(|_| due && self.write_steps_per_second) {
            let rate = 1.0 / before.elapsed().as_secs_f64().max(1e-9);
            self.scalars(true, "batch_", &[("steps_per_second".to_string(), rate)], self.begun)?;
        }
        if self.profile_batch.is_some_and(|(_, last)| self.begun == last) {
            self.stop_trace()?;
        }
        self.begun += 1;
        self.scopes.pop();
        self.push(true, self.begun)?;
        if self.profile_batch.is_some_and(|(first, _)| self.begun == first) {
            summary::trace_on()?;
            self.tracing = true;
        }
        Ok(())
    }

    fn on_train_batch_end(&mut self, _: usize, logs: &Logs, run: &mut Run<'_>) -> Result<()> {
        self.ended += 1;
        self.graph(run)?;
        match self.every() {
            Some(every) if self.ended.is_multiple_of(every) => {
                let logs: Vec<_> = logs.iter().map(|(name, v)| (name.to_string(), v)).collect();
                self.scalars(true, "batch_", &logs, self.ended)
            }
            _ => Ok(()),
        }
    }

    fn on_epoch_end(&mut self, epoch: usize, logs: &mut Logs, run: &mut Run<'_>) -> Result<()> {
        let (mut train, mut validation) = (Vec::new(), Vec::new());
        for (name, value) in logs.iter() {
            match name.strip_prefix("val_") {
                Some(name) => validation.push((name.to_string(), value)),
                None => train.push((name.to_string(), value)),
            }
        }
        if let Ok(rate) = run.learning_rate() {
            train.push(("learning_rate".to_string(), f64::from(rate)));
        }
        if let Some((began, batches)) = self.epoch_began.filter(|_| self.write_steps_per_second) {
            let rate = (self.begun - batches) as f64 / began.elapsed().as_secs_f64().max(1e-9);
            train.push(("steps_per_second".to_string(), rate));
        }
        self.scalars(true, "epoch_", &train, epoch as u64)?;
        if !validation.is_empty() {
            self.scalars(false, "epoch_", &validation, epoch as u64)?;
        }
        let due = |freq: usize| freq > 0 && epoch.is_multiple_of(freq);
        if due(self.histogram_freq) {
            let images = self.write_images;
            let _writer = self.writer(true)?.as_default();
            let _always = record_if(true);
            weights::write(run.model(), epoch as u64, images)?;
        }
        if due(self.embeddings_freq) {
            self.projector.write(&self.log_dir.join("train"), run.model())?;
        }
        Ok(())
    }

    fn on_test_begin(&mut self, _: &mut Run<'_>) -> Result<()> {
        self.push(false, self.tested)
    }

    fn on_test_batch_begin(&mut self, _: usize, _: &mut Run<'_>) -> Result<()> {
        self.tested += 1;
        if self.every().is_some() {
            self.scopes.pop();
        }
        self.push(false, self.tested)
    }

    fn on_test_end(&mut self, logs: &Logs, run: &mut Run<'_>) -> Result<()> {
        if self.every().is_some() {
            self.scopes.pop();
        }
        if let Ok(steps) = run.optimizer().map(|optimizer| optimizer.iterations()) {
            let numbers = logs.iter();
            let numbers: Vec<_> =
                numbers.map(|(name, v)| (format!("{name}_vs_iterations"), v)).collect();
            self.scalars(false, "evaluation_", &numbers, steps)?;
        }
        match &self.validation {
            Some(writer) if !self.training => writer.flush(),
            _ => Ok(()),
        }
    }
}

impl Drop for TensorBoard {
    /// A failed training leaves tracing switched on.
    fn drop(&mut self) {
        self.scopes.clear();
        if self.tracing {
            summary::trace_off();
        }
    }
}
