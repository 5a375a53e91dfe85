//! The results of training: [`Logs`] and [`History`] on the host, [`StepLogs`] on the device.

use std::fmt;

use super::label_check::Check;
use crate::tensor::Tensor;

/// Values by name: `loss`, the metrics, and with the prefix `val_` those of the validation data.
///
/// ```
/// use wgrad::keras::Logs;
/// let mut logs = Logs::new();
/// logs.set("loss", 0.25);
/// assert_eq!(logs.get("loss"), Some(0.25));
/// assert_eq!(logs.to_string(), "loss: 0.2500");
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Logs(Vec<(String, f64)>);

impl Logs {
    /// Creates empty logs.
    pub fn new() -> Self {
        Logs::default()
    }

    /// Returns the value called `name`.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| *value)
    }

    /// Sets the value called `name`.
    pub fn set(&mut self, name: &str, value: f64) {
        match self.0.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name.to_string(), value)),
        }
    }

    /// Returns the names and values, in the order in which a progress bar shows them.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (&**name, *value))
    }

    /// Returns true if there are no values.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The names, formatted for a message.
    pub(crate) fn names(&self) -> String {
        let names: Vec<&str> = self.iter().map(|(name, _)| name).collect();
        if names.is_empty() { "none".to_string() } else { names.join(", ") }
    }
}

impl From<Vec<(String, f64)>> for Logs {
    fn from(numbers: Vec<(String, f64)>) -> Self {
        Logs(numbers)
    }
}

/// As Keras's progress bar: four decimals, or four digits of a small number.
pub(crate) fn show(value: f64) -> String {
    match value.abs() > 1e-3 || value == 0.0 || !value.is_finite() {
        true => format!("{value:.4}"),
        false => {
            let text = format!("{value:.4e}");
            let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
            let power: i32 = power.parse().unwrap_or(0);
            format!("{digits}e{}{:02}", if power < 0 { '-' } else { '+' }, power.abs())
        }
    }
}

impl fmt::Display for Logs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.iter().enumerate() {
            let between = if i == 0 { "" } else { " - " };
            write!(f, "{between}{name}: {}", show(value))?;
        }
        Ok(())
    }
}

/// The results of a step for the logs: scalars, which the loop reads later. The logs of an epoch contain their means over the
/// examples.
#[derive(Debug, Clone, Default)]
pub struct StepLogs {
    scalars: Vec<(String, Tensor)>,
    checks: Vec<Check>,
}

impl StepLogs {
    /// Creates logs without scalars.
    pub fn new() -> Self {
        StepLogs::default()
    }

    /// Adds a scalar with the name `name`: a mean over the batch's examples.
    #[allow(clippy::should_implement_trait)] // As `Sequential::add`.
    pub fn add(mut self, name: &str, value: &Tensor) -> Self {
        self.scalars.push((name.to_string(), value.clone()));
        self
    }

    /// Adds a check to perform when the scalars are read.
    pub(super) fn check(mut self, check: Check) -> Self {
        self.checks.push(check);
        self
    }

    pub(super) fn take_checks(&mut self) -> Vec<Check> {
        std::mem::take(&mut self.checks)
    }

    pub(super) fn checks(&self) -> &[Check] {
        &self.checks
    }

    /// Returns the scalar called `name`.
    pub fn get(&self, name: &str) -> Option<&Tensor> {
        self.scalars.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns the names and scalars in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Tensor)> {
        self.scalars.iter().map(|(name, value)| (&**name, value))
    }
}

#[cfg(not(target_family = "wasm"))]
impl crate::function::Nest for StepLogs {
    fn write_signature(&self, signature: &mut crate::function::Signature) {
        for (name, value) in &self.scalars {
            name.write_signature(signature);
            value.write_signature(signature);
        }
    }

    fn map_tensors(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        let scalars = self.scalars.iter().map(|(name, value)| (name.clone(), f(value))).collect();
        let checks = self.checks.iter().map(|check| check.with_number(f)).collect();
        StepLogs { scalars, checks }
    }
}

/// The result of `fit`: the logs of each epoch.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, keras::{CompileOptions, FitOptions, Model, Sequential, layers::Dense}};
/// let model = Sequential::new().add(Dense::new(1));
/// model.compile("sgd", "mse", CompileOptions::new())?;
/// let (x, y) = (tf::Tensor::ones([64, 3])?, tf::Tensor::zeros([64, 1])?);
/// let history = model.fit((&x, &y), FitOptions::new().epochs(3))?;
/// assert_eq!(history.epochs(), [0, 1, 2]);
/// let losses = history.get("loss").expect("fit has trained");
/// assert!(losses[2] <= losses[0]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    epochs: Vec<usize>,
    series: Vec<(String, Vec<f64>)>,
    interrupted: bool,
}

impl History {
    /// Returns the numbers of the epochs, counted from 0.
    pub fn epochs(&self) -> &[usize] {
        &self.epochs
    }

    /// Returns the values called `name`, one for each epoch that has it.
    pub fn get(&self, name: &str) -> Option<&[f64]> {
        self.series.iter().find(|(known, _)| known == name).map(|(_, values)| &values[..])
    }

    /// Returns the names with their values.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &[f64])> {
        self.series.iter().map(|(name, values)| (&**name, &values[..]))
    }

    /// Returns true if Ctrl-C or a [`StopSignal`](super::StopSignal) ended the training.
    pub fn interrupted(&self) -> bool {
        self.interrupted
    }

    /// Adds the logs of an epoch.
    pub(crate) fn add(&mut self, epoch: usize, logs: &Logs) {
        self.epochs.push(epoch);
        for (name, value) in logs.iter() {
            match self.series.iter_mut().find(|(known, _)| known == name) {
                Some((_, values)) => values.push(value),
                None => self.series.push((name.to_string(), vec![value])),
            }
        }
    }

    pub(super) fn interrupt(&mut self) {
        self.interrupted = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Keras's bar uses either Python's f"{x:.4f}" or f"{x:.4e}".
    #[test]
    fn numbers_look_as_in_keras() {
        assert_eq!(show(0.30456), "0.3046");
        assert_eq!(show(1e-3), "1.0000e-03");
        assert_eq!(show(-2.5e-12), "-2.5000e-12");
        assert_eq!(show(12345.6), "12345.6000");
        assert_eq!(show(f64::NAN), "NaN");
        assert_eq!(show(0.0), "0.0000");
    }

    #[test]
    fn a_series_has_only_the_epochs_that_had_it() {
        let mut history = History::default();
        let mut logs = Logs::new();
        logs.set("loss", 2.0);
        history.add(3, &logs);
        logs.set("val_loss", 4.0);
        logs.set("loss", 1.0);
        history.add(4, &logs);
        assert_eq!(history.epochs(), [3, 4]);
        assert_eq!(history.get("loss"), Some(&[2.0, 1.0][..]));
        assert_eq!(history.get("val_loss"), Some(&[4.0][..]));
        assert_eq!(history.get("accuracy"), None);
    }
}
