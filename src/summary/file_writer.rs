//! [`FileWriter`]: writes summaries to a file, in its own thread.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::batch::{Entry, encode};
use super::event_file::EventFile;
use super::queue::{Queue, State};
use super::scope::{self, DefaultWriter};
use super::step::Step;
use crate::error::{Error, Result};
use crate::support::options::options;

/// Summaries are read at most ten times per second, so that many are read together.
const PAUSE: Duration = Duration::from_millis(100);

options! {
    /// Options of a [`FileWriter`].
    #[derive(Debug, Clone)]
    pub struct FileWriterOptions {
        /// The number of summaries that are written at once, though not more often than ten times per second; default: 10.
        max_queue: usize = 10,
        /// The longest time in milliseconds that a summary waits before it is written; default: 120,000.
        flush_millis: u64 = 120_000,
        /// The end of the file's name; default: ".v2".
        filename_suffix: String as impl Into<String> = ".v2".to_string(),
    }
}

/// Writes an event file, which TensorBoard displays (`tf.summary.create_file_writer`).
///
/// Tensors are passed on unread. The writer's own thread reads those that the device has computed, many together, and appends
/// their records to the file; the program and the device do not wait for it. It does so once 10 summaries are waiting, at
/// most ten times per second, and at the latest after two minutes. If the process is killed, the summaries since then are
/// lost, and the file's contents stay valid. [`flush`](Self::flush) and [`close`](Self::close) wait for the device and the
/// file; a writer that is dropped does so, too, and logs errors. The next summary returns errors that occur in between. At
/// most 64 MiB and 16,384 summaries wait: a call beyond these limits waits for the writer.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, summary};
/// # let folder = std::env::temp_dir().join(format!("wgrad-writer-{}", std::process::id()));
/// let writer = summary::create_file_writer(folder.join("train"))?;
/// {
///     let _default = writer.as_default();
///     for step in 0..100 {
///         let loss = tf::constant(1.0 / (1.0 + step as f32))?;
///         summary::scalar("loss", &loss, step)?;
///     }
/// }
/// writer.close()?;
/// let events = summary::read(&folder)?;
/// assert_eq!(events.len(), 100);
/// # std::fs::remove_dir_all(folder).expect("it was written");
/// # Ok(())
/// # }
/// ```
pub struct FileWriter {
    queue: Arc<Queue>,
    path: Arc<Mutex<PathBuf>>,
    thread: Option<JoinHandle<()>>,
}

/// A writer of a new event file in the folder `logdir`, which it creates if it is missing.
///
/// The file is called `events.out.tfevents.TIME.HOST.PROCESS.NUMBER.v2`. Each writer begins its own file; TensorBoard treats
/// those in one folder as one run, and those in sibling folders as several.
///
/// # Errors
/// [`Error::Io`] if the folder or the file cannot be created.
pub fn create_file_writer(logdir: impl AsRef<Path>) -> Result<FileWriter> {
    create_file_writer_with(logdir, FileWriterOptions::new())
}

/// As [`create_file_writer`], with options.
///
/// # Errors
/// As [`create_file_writer`].
pub fn create_file_writer_with(
    logdir: impl AsRef<Path>,
    options: FileWriterOptions,
) -> Result<FileWriter> {
    let file = EventFile::create(logdir.as_ref(), &options.filename_suffix)?;
    let queue = Arc::new(Queue::new(options.max_queue, true));
    let path = Arc::new(Mutex::new(file.path().to_path_buf()));
    let worker = Worker {
        queue: queue.clone(),
        path: path.clone(),
        file,
        longest: Duration::from_millis(options.flush_millis),
        last: None,
    };
    let thread = std::thread::Builder::new().name("wgrad summaries".to_string());
    let thread =
        thread.spawn(|| worker.run()).map_err(|error| Error::io(logdir.as_ref(), error))?;
    Ok(FileWriter { queue, path, thread: Some(thread) })
}

impl FileWriter {
    /// Makes this the thread's default writer until the result is dropped; then the previous one is the default again.
    pub fn as_default(&self) -> DefaultWriter {
        scope::make_default(self.queue.clone(), None)
    }

    /// As [`FileWriter::as_default`], and sets the step of summaries that have no step of their own.
    pub fn as_default_at(&self, step: impl Into<Step>) -> DefaultWriter {
        scope::make_default(self.queue.clone(), Some(step.into()))
    }

    /// The path of the file.
    pub fn path(&self) -> PathBuf {
        self.path.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until all earlier summaries are written.
    ///
    /// # Errors
    /// The errors since the last call: those of reading tensors, [`Error::Io`] if writing fails.
    pub fn flush(&self) -> Result<()> {
        self.queue.flush()
    }

    /// Writes the remaining summaries. Later summaries are errors.
    ///
    /// # Errors
    /// As [`FileWriter::flush`].
    pub fn close(mut self) -> Result<()> {
        self.end()
    }

    fn end(&mut self) -> Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let flushed = self.queue.flush();
        self.queue.state().closed = true;
        self.queue.work.notify_one();
        // A thread that panicked has already reported it.
        let _ = thread.join();
        flushed
    }
}

impl Drop for FileWriter {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            log::error!("{error}");
        }
    }
}

impl fmt::Debug for FileWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileWriter").field("path", &self.path()).finish()
    }
}

/// The thread's part.
struct Worker {
    queue: Arc<Queue>,
    path: Arc<Mutex<PathBuf>>,
    file: EventFile,
    longest: Duration,
    /// When summaries were read last.
    last: Option<Instant>,
}

/// The thread's next action.
enum Next {
    /// Writes these entries; this many flushes are then done.
    Write(Vec<Entry>, u64),
    Wait(Option<Duration>),
    End,
}

impl Worker {
    fn run(mut self) {
        let queue = self.queue.clone();
        let mut state = queue.state();
        loop {
            match self.next(&mut state) {
                Next::Write(entries, served) => {
                    drop(state);
                    let bytes: usize = entries.iter().map(Entry::bytes).sum();
                    let written = self.write(entries);
                    state = queue.state();
                    state.bytes = state.bytes.saturating_sub(bytes);
                    state.served = served;
                    if let (Err(error), None) = (written, &state.error) {
                        state.error = Some(error);
                    }
                    queue.done.notify_all();
                }
                Next::Wait(None) => {
                    state = queue.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
                Next::Wait(Some(time)) => {
                    let waited = queue.work.wait_timeout(state, time);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                Next::End => return,
            }
        }
    }

    fn next(&self, state: &mut State) -> Next {
        if state.asked > state.served {
            // Including tensors that the device has yet to compute.
            return Next::Write(state.entries.drain(..).collect(), state.asked);
        }
        if state.closed {
            return Next::End;
        }
        if state.entries.is_empty() {
            return Next::Wait(None);
        }
        let pause = self.last.map_or(Duration::ZERO, |last| PAUSE.saturating_sub(last.elapsed()));
        let wait = match state.entries.len() >= self.queue.max_queue {
            true => pause,
            false => self.longest.saturating_sub(state.since.elapsed()).max(pause),
        };
        if !wait.is_zero() {
            return Next::Wait(Some(wait));
        }
        // Reading others would run half a step's ops as a separate plan.
        let ready = state.entries.iter().take_while(|entry| entry.ready()).count();
        if ready == 0 {
            return Next::Wait(Some(PAUSE));
        }
        state.since = web_time::Instant::now();
        Next::Write(state.entries.drain(..ready).collect(), state.served)
    }

    fn write(&mut self, entries: Vec<Entry>) -> Result<()> {
        self.last = Some(Instant::now());
        let read = pollster::block_on(encode(entries, self.file.records()));
        let written = self.file.write();
        *self.path.lock().unwrap_or_else(PoisonError::into_inner) = self.file.path().to_path_buf();
        written.and(read)
    }
}

impl Drop for Worker {
    /// Callers must not wait for a thread that has ended.
    fn drop(&mut self) {
        self.queue.state().closed = true;
        self.queue.done.notify_all();
    }
}
