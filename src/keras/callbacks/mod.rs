//! Callbacks: actions that accompany the training while `fit` runs.
//!
//! A [`Callback`] is notified of epochs and batches, and acts on the training through its [`Run`]. Names, defaults and
//! behaviour are Keras's.

#[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
mod backup_and_restore;
#[cfg(not(target_family = "wasm"))]
mod csv_logger;
mod early_stopping;
mod lambda_callback;
mod learning_rate_scheduler;
#[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
mod model_checkpoint;
mod monitor;
#[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
mod pattern;
mod progbar_logger;
mod reduce_lr_on_plateau;
#[cfg(all(feature = "summary", not(target_family = "wasm")))]
mod tensorboard;
mod terminate_on_nan;

#[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
pub use backup_and_restore::{BackupAndRestore, BackupOptions};
#[cfg(not(target_family = "wasm"))]
pub use csv_logger::CsvLogger;
pub use early_stopping::EarlyStopping;
pub use lambda_callback::LambdaCallback;
pub use learning_rate_scheduler::LearningRateScheduler;
#[cfg(all(feature = "checkpoint", not(target_family = "wasm")))]
pub use model_checkpoint::{ModelCheckpoint, SaveFreq};
pub use monitor::Mode;
pub use progbar_logger::ProgbarLogger;
pub use reduce_lr_on_plateau::ReduceLrOnPlateau;
#[cfg(all(feature = "summary", not(target_family = "wasm")))]
pub use tensorboard::{TensorBoard, UpdateFreq};
pub use terminate_on_nan::TerminateOnNan;

pub use super::training::{BatchLogs, Callback, EpochLogs, Logs, Run};

/// Prints a message of a callback. A failure to write is ignored.
fn say(text: &str) {
    use std::io::Write;
    let _ = std::io::stderr().write_all(text.as_bytes());
}
