//! [`Monitor`]: a value of the logs that a callback watches for improvements.

use super::Logs;
use crate::error::{Error, Result, message};

/// Whether a lower or a higher value is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Mode {
    /// Inferred from the value's name: lower for losses and errors, higher for accuracies.
    #[default]
    Auto,
    /// Smaller is better.
    Min,
    /// Larger is better.
    Max,
}

/// The value that a callback monitors, and its best so far.
#[derive(Debug)]
pub(super) struct Monitor {
    pub(super) callback: &'static str,
    pub(super) name: String,
    pub(super) mode: Mode,
    pub(super) min_delta: f64,
    pub(super) best: Option<f64>,
    warned: bool,
}

/// Parts of the names of values of which higher is better.
const RISING: [&str; 10] = [
    "acc",
    "auc",
    "precision",
    "recall",
    "f1_score",
    "fbeta_score",
    "iou",
    "io_u",
    "r2_score",
    "similarity",
];
/// Parts of the names of values of which lower is better.
const FALLING: [&str; 16] = [
    "loss",
    "error",
    "crossentropy",
    "mse",
    "mae",
    "mape",
    "msle",
    "rmse",
    "hinge",
    "poisson",
    "kl_divergence",
    "kld",
    "logcosh",
    "log_cosh",
    "false_positives",
    "false_negatives",
];

impl Monitor {
    pub(super) fn new(callback: &'static str, name: &str) -> Self {
        let (name, mode) = (name.to_string(), Mode::Auto);
        Monitor { callback, name, mode, min_delta: 0.0, best: None, warned: false }
    }

    /// The value in these logs. Warns once if it is missing.
    pub(super) fn value(&mut self, logs: &Logs) -> Option<f64> {
        let value = logs.get(&self.name);
        if value.is_none() && !self.warned {
            self.warned = true;
            crate::warnings::warn_user!(
                "{}: the logs have no '{}', so it does nothing. They have {}.",
                self.callback,
                self.name,
                logs.names()
            );
        }
        value
    }

    /// True if `value` is better than `than` by more than the minimum change. Any value is better than `None`.
    pub(super) fn better(&self, value: f64, than: Option<f64>) -> Result<bool> {
        let rises = self.rises()?;
        let Some(than) = than else { return Ok(true) };
        Ok(match rises {
            true => value - self.min_delta > than,
            false => value + self.min_delta < than,
        })
    }

    fn rises(&self) -> Result<bool> {
        let name = self.name.trim_start_matches("val_");
        let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
        match self.mode {
            Mode::Min => Ok(false),
            Mode::Max => Ok(true),
            Mode::Auto if has(&RISING) => Ok(true),
            Mode::Auto if has(&FALLING) => Ok(false),
            Mode::Auto => Err(Error::Data(message!(
                "{}: it is not known whether '{}' should increase or decrease. Set mode(Mode::Min) or \
                 mode(Mode::Max).",
                self.callback,
                self.name
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn better_is_as_in_keras() {
        let mut monitor = Monitor::new("EarlyStopping", "val_loss");
        monitor.min_delta = 0.5;
        // Keras: less(value + min_delta, best).
        assert!(monitor.better(9.0, None).unwrap());
        assert!(monitor.better(1.0, Some(1.6)).unwrap());
        assert!(!monitor.better(1.0, Some(1.5)).unwrap());
        assert!(!monitor.better(f64::NAN, Some(1.5)).unwrap());
        monitor.name = "val_sparse_top_k_categorical_accuracy".into();
        assert!(monitor.better(2.1, Some(1.5)).unwrap());
        assert!(!monitor.better(2.0, Some(1.5)).unwrap());
        monitor.name = "gain".into();
        let error = monitor.better(1.0, Some(2.0)).unwrap_err().to_string();
        assert!(error.starts_with("EarlyStopping: it is not known whether 'gain'"), "{error}");
        monitor.mode = Mode::Max;
        assert!(!monitor.better(1.0, Some(2.0)).unwrap());
    }
}
