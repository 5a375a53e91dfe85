//! [`ProgbarLogger`]: the progress bar of `fit`, on a custom writer.

use std::io::Write;

use super::{Callback, Logs, Run};
use crate::error::Result;
use crate::keras::training::{Progress, Verbose};

/// Draws the progress bar of `fit` on a custom writer instead of standard error: in a log file, a window, a test. Call `fit`
/// itself with `verbose(0)`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Tensor, keras::{CompileOptions, FitOptions, Model, Sequential, Verbose, layers::Dense}};
/// use wgrad::keras::callbacks::ProgbarLogger;
/// # let path = std::env::temp_dir().join(format!("wgrad-progress-{}.log", std::process::id()));
/// let model = Sequential::new().add(Dense::new(1));
/// model.compile("sgd", "mse", CompileOptions::new())?;
/// let (x, y) = (Tensor::ones([64, 2])?, Tensor::zeros([64, 1])?);
/// let file = std::fs::File::create(&path).expect("a folder that can be written");
/// let lines = ProgbarLogger::new(file, Verbose::Lines);
/// model.fit((&x, &y), FitOptions::new().epochs(2).verbose(0).callback(lines))?;
/// let log = std::fs::read_to_string(&path).expect("it was written");
/// assert!(log.starts_with("Epoch 1/2\n2/2 - 0s - "), "{log}");
/// # std::fs::remove_file(path).expect("it was written");
/// # Ok(())
/// # }
/// ```
pub struct ProgbarLogger {
    progress: Progress,
    batches: usize,
}

impl std::fmt::Debug for ProgbarLogger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProgbarLogger").finish_non_exhaustive()
    }
}

impl ProgbarLogger {
    /// Creates a callback that writes to `out`, which is not a terminal: without colours, with a new line for each update.
    pub fn new(out: impl Write + 'static, verbose: Verbose) -> Self {
        ProgbarLogger { progress: Progress::to(verbose, Box::new(out), false), batches: 0 }
    }

    /// Creates a callback that writes to `out`, a terminal: with colours, updating one line in place.
    pub fn terminal(out: impl Write + 'static, verbose: Verbose) -> Self {
        ProgbarLogger { progress: Progress::to(verbose, Box::new(out), true), batches: 0 }
    }
}

impl Callback for ProgbarLogger {
    fn is_for_chief(&self) -> bool {
        true
    }

    fn on_epoch_begin(&mut self, epoch: usize, run: &mut Run<'_>) -> Result<()> {
        self.batches = 0;
        self.progress.begin(Some((epoch, run.epochs())), run.steps());
        Ok(())
    }

    fn on_train_batch_begin(&mut self, batch: usize, _: &mut Run<'_>) -> Result<()> {
        if batch > 0 {
            self.progress.called();
        }
        Ok(())
    }

    fn on_train_batch_end(&mut self, batch: usize, logs: &Logs, _: &mut Run<'_>) -> Result<()> {
        self.batches = batch + 1;
        self.progress.update(self.batches, logs);
        Ok(())
    }

    fn on_epoch_end(&mut self, _: usize, logs: &mut Logs, _: &mut Run<'_>) -> Result<()> {
        self.progress.end(self.batches, logs);
        Ok(())
    }
}
