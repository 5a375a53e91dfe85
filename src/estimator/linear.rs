//! [`LinearRegressor`] and [`LinearClassifier`]: linear and logistic regression.

use ndarray::Array1;

use super::head::Head;
use super::network::{LINEAR, Network, check_sizes, classes, numbers, shared_methods};
use super::predictions::Predictions;
use crate::data::IntoModelData;
use crate::error::{Error, Result};
use crate::keras::layers::Dense;
use crate::keras::optimizers::Ftrl;
use crate::keras::{
    EvaluateOptions, FitOptions, Functional, History, Initializer, Input, IntoOptimizer, LayerExt,
    Logs, PredictOptions,
};

/// Linear regression with the mean squared error: `y = x w + b` for `x` of `[N,D]`.
///
/// As `tf.estimator.LinearRegressor`, it begins with weights of 0, and trains with [`Ftrl`] and a learning rate of 0.2, or of
/// `1 / sqrt(D)` if that is less.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::estimator::LinearRegressor;
/// use wgrad::keras::{FitOptions, PredictOptions};
/// let x: Vec<[f32; 2]> = (0..64).map(|i| [(i % 8) as f32 / 8.0, (i / 8) as f32 / 8.0]).collect();
/// let y: Vec<f32> = x.iter().map(|x| 2.0 * x[0] - x[1] + 0.5).collect();
/// let model = LinearRegressor::new(2)?.optimizer(wgrad::keras::optimizers::Adam::new(0.1))?;
/// model.fit((x, y), FitOptions::new().epochs(60))?;
/// let predicted = model.predict(([[1.0f32, 1.0]],), PredictOptions::new())?;
/// assert!((predicted[0] - 1.5).abs() < 0.05);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct LinearRegressor {
    network: Network,
}

/// Logistic regression with the cross-entropy, for two or more classes. The labels are from 0 to below the number of classes.
///
/// It trains as [`LinearRegressor`] does, and as `tf.estimator.LinearClassifier`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::estimator::LinearClassifier;
/// use wgrad::keras::{FitOptions, PredictOptions};
/// let x: Vec<[f32; 1]> = (0..90).map(|i| [i as f32 / 45.0 - 1.0]).collect();
/// let y: Vec<i32> = (0..90).map(|i| i / 30).collect();
/// let model = LinearClassifier::new(1, 3)?;
/// model.fit((x, y), FitOptions::new().epochs(20))?;
/// let predictions = model.predict(([[-0.9f32], [0.9]],), PredictOptions::new())?;
/// assert_eq!(predictions.class_ids(), [0, 2]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct LinearClassifier {
    network: Network,
}

/// tf.estimator's default.
fn ftrl(features: usize) -> Ftrl {
    Ftrl::new((1.0 / (features as f32).sqrt()).min(0.2))
}

/// The linear part of a model for an input.
pub(super) fn layer(outputs: usize) -> Dense {
    Dense::new(outputs).kernel_initializer(Initializer::Zeros)
}

fn network(name: &str, features: usize, head: Head) -> Result<Network> {
    check_sizes(name, &[("features", features)])?;
    let x = Input::new([features]).with_name("features");
    let y = layer(head.outputs()).on_named(LINEAR, &x)?;
    Network::new(Functional::new(&x, &y)?.with_name(name), head, ftrl(features))
}

macro_rules! linear {
    ($type:ident, $name:literal, $regression:literal) => {
        impl $type {
            /// Sets the optimizer, by value or by Keras's name, in place of the default one.
            ///
            /// # Errors
            /// [`Error::Data`] if there is no optimizer of this name.
            pub fn optimizer(self, optimizer: impl IntoOptimizer) -> Result<Self> {
                self.network.head.compile(&self.network.model, optimizer.into_optimizer()?)?;
                Ok(self)
            }

            /// Same as `load`, from the contents of the file.
            ///
            /// # Errors
            /// [`Error::Data`] if the contents are damaged or another kind of model; [`Error::Checkpoint`] if the weights do not fit.
            pub fn from_keras(bytes: &[u8]) -> Result<Self> {
                let (model, sizes, head) = Network::read(bytes, $name, 1, $regression)?;
                Ok($type { network: Network::new(model, head, ftrl(sizes[0]))? })
            }
        }
    };
}
linear!(LinearRegressor, "LinearRegressor", true);
linear!(LinearClassifier, "LinearClassifier", false);
shared_methods!(LinearRegressor -> Array1<f64>, numbers);
shared_methods!(LinearClassifier -> Predictions, classes);

impl LinearRegressor {
    /// Creates a model of `x` of `[N,features]`.
    ///
    /// # Errors
    /// [`Error::Data`] if there are no features; [`Error::Device`] if there is no device.
    pub fn new(features: usize) -> Result<Self> {
        Ok(LinearRegressor { network: network("LinearRegressor", features, Head::Regression)? })
    }
}

impl LinearClassifier {
    /// Creates a model of `x` of `[N,features]` for `n_classes` classes.
    ///
    /// # Errors
    /// [`Error::Data`] if there are no features, or fewer than two classes; [`Error::Device`] if there is no device.
    pub fn new(features: usize, n_classes: usize) -> Result<Self> {
        let head = Head::classes("LinearClassifier", n_classes)?;
        Ok(LinearClassifier { network: network("LinearClassifier", features, head)? })
    }
}
