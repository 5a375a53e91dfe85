//! [`Background`]: a single task in a thread, whose error the program receives later.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use crate::error::{Error, Result, message};

/// The running task, if there is one.
#[derive(Default)]
pub(super) struct Background(Option<JoinHandle<Result<()>>>);

type Work = Box<dyn FnOnce() -> Result<()> + Send>;

impl Background {
    /// Waits for the running task. Its error is returned once.
    pub(super) fn wait(&mut self) -> Result<()> {
        let Some(thread) = self.0.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|panic| {
            let words = panic.downcast_ref::<&str>().map(|words| words.to_string());
            let words = words.or_else(|| panic.downcast_ref::<String>().cloned());
            Err(Error::Check(message!(
                "CheckpointManager: the thread that saves has panicked: {}.",
                words.as_deref().unwrap_or("it did not say why")
            )))
        })
    }

    /// Begins `work`. No task may be running. If no thread is available, the task runs immediately.
    pub(super) fn begin(&mut self, work: Work) -> Result<()> {
        let work = Arc::new(Mutex::new(Some(work)));
        // A thread that cannot be started does not return the task.
        let shared = work.clone();
        let take = |work: &Mutex<Option<Work>>| {
            work.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), |work| work())
        };
        match thread::Builder::new().name("wgrad-save".into()).spawn(move || take(&shared)) {
            Ok(thread) => {
                self.0 = Some(thread);
                Ok(())
            }
            Err(error) => {
                log::warn!("CheckpointManager: no thread could be started: {error}");
                take(&work)
            }
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Err(error) = self.wait() {
            log::error!("CheckpointManager: a checkpoint was not saved: {error}");
        }
    }
}
