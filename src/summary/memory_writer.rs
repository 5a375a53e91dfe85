//! [`MemoryWriter`]: stores summaries until the program takes them as the bytes of an event file.

use std::fmt;
use std::sync::Arc;

use super::batch::{encode, first_record, wall_time};
use super::queue::Queue;
use super::scope::{self, DefaultWriter};
use super::step::Step;
use crate::error::Result;

/// Stores summaries for a program that saves them itself, as in a browser: without a file and without a thread.
///
/// Only calls of [`take_async`](Self::take_async) limit the memory that summaries use. The parts of consecutive calls form
/// one event file.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::summary::{self, EventReader, MemoryWriter};
/// let writer = MemoryWriter::new();
/// let default = writer.as_default();
/// summary::scalar("loss", 0.5, 1)?;
/// let mut file = pollster::block_on(writer.take_async())?;
/// summary::scalar("loss", 0.25, 2)?;
/// file.extend(pollster::block_on(writer.take_async())?);
/// drop(default);
/// assert_eq!(EventReader::new(&file[..], "memory").count(), 2);
/// # Ok(())
/// # }
/// ```
pub struct MemoryWriter {
    queue: Arc<Queue>,
    begun: std::sync::atomic::AtomicBool,
}

impl MemoryWriter {
    /// A writer without summaries.
    pub fn new() -> Self {
        let queue = Arc::new(Queue::new(usize::MAX, false));
        MemoryWriter { queue, begun: false.into() }
    }

    /// As [`FileWriter::as_default`](super::FileWriter::as_default).
    pub fn as_default(&self) -> DefaultWriter {
        scope::make_default(self.queue.clone(), None)
    }

    /// As [`FileWriter::as_default_at`](super::FileWriter::as_default_at).
    pub fn as_default_at(&self, step: impl Into<Step>) -> DefaultWriter {
        scope::make_default(self.queue.clone(), Some(step.into()))
    }

    /// The records since the last call; the first call also returns those that begin a file. Waits for the device.
    ///
    /// # Errors
    /// Those of reading tensors; summaries that were read together with a failed one are lost.
    pub async fn take_async(&self) -> Result<Vec<u8>> {
        use std::sync::atomic::Ordering;
        let mut bytes = Vec::new();
        if !self.begun.swap(true, Ordering::Relaxed) {
            bytes = first_record(wall_time());
        }
        let entries = self.queue.take();
        match encode(entries, &mut bytes).await {
            Ok(()) => Ok(bytes),
            Err(error) => {
                self.begun.store(false, Ordering::Relaxed);
                Err(error)
            }
        }
    }
}

impl Default for MemoryWriter {
    fn default() -> Self {
        MemoryWriter::new()
    }
}

impl fmt::Debug for MemoryWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryWriter")
    }
}
