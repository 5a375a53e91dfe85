//! [`StopSignal`]: a signal of the program that ends a training early.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends a training from outside, for instance from another thread or a button. A clone is another handle to the same
/// signal.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, keras::{CompileOptions, FitOptions, Model, Sequential, StopSignal, layers::Dense}};
/// let model = Sequential::new().add(Dense::new(1));
/// model.compile("sgd", "mse", CompileOptions::new())?;
/// let stop = StopSignal::new();
/// let button = stop.clone();
/// std::thread::spawn(move || button.stop());
/// let (x, y) = (tf::Tensor::ones([64, 3])?, tf::Tensor::zeros([64, 1])?);
/// let history = model.fit((&x, &y), FitOptions::new().epochs(1_000_000).stop_signal(&stop))?;
/// assert!(history.interrupted());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct StopSignal(Arc<AtomicBool>);

impl StopSignal {
    /// Creates a signal that has not been sent.
    pub fn new() -> Self {
        StopSignal::default()
    }

    /// Ends the training after the current batch.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Returns true once [`StopSignal::stop`] was called.
    pub fn stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
