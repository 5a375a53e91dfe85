//! [`DnnRegressor`] and [`DnnClassifier`]: networks of dense layers.

use ndarray::Array1;

use super::head::Head;
use super::network::{Network, check_sizes, classes, numbers, shared_methods};
use super::predictions::Predictions;
use crate::data::IntoModelData;
use crate::error::{Error, Result};
use crate::keras::layers::{BatchNormalization, Dense, Dropout};
use crate::keras::optimizers::Adagrad;
use crate::keras::{
    Activation, EvaluateOptions, FitOptions, Functional, History, Input, IntoOptimizer, LayerExt,
    Logs, PredictOptions, SymbolicTensor,
};
use crate::support::options::options;

options! {
    /// The options of the hidden layers of a network, with tf.estimator's defaults.
    #[derive(Debug, Clone)]
    pub struct DnnOptions {
        /// Sets the activation function of the hidden layers. Default: `relu`.
        activation: Activation = Activation::Relu,
        /// Sets the probability with which an output of a hidden layer is dropped in training. Default: none is.
        dropout: Option<f32> as impl Into<Option<f32>> = None,
        /// Sets whether the outputs of the hidden layers are normalized over batches. Default: no.
        batch_norm: bool = false,
    }
}

/// A network of dense layers that predicts a number, trained with the mean squared error.
///
/// As `tf.estimator.DNNRegressor`, it trains with [`Adagrad`] and a learning rate of 0.05.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::estimator::DnnRegressor;
/// use wgrad::keras::{EvaluateOptions, FitOptions};
/// wgrad::random::set_seed(1);
/// let x: Vec<[f32; 1]> = (0..128).map(|i| [i as f32 / 64.0 - 1.0]).collect();
/// let y: Vec<f32> = x.iter().map(|x| x[0].abs()).collect();
/// let model = DnnRegressor::new(1, &[16, 8])?;
/// model.fit((&x[..], &y[..]), FitOptions::new().epochs(40))?;
/// assert!(model.evaluate((&x[..], &y[..]), EvaluateOptions::new())?.get("mae").expect("a metric") < 0.1);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct DnnRegressor {
    network: Network,
}

/// A network of dense layers that predicts a class, trained with the cross-entropy. The labels are from 0 to below the number of
/// classes.
///
/// It trains as [`DnnRegressor`] does, and as `tf.estimator.DNNClassifier`.
#[derive(Debug, Clone)]
pub struct DnnClassifier {
    network: Network,
}

/// The hidden layers, and the last one. Their order is tf.estimator's: activation, dropout, normalization.
pub(super) fn layers(
    x: &SymbolicTensor,
    hidden_units: &[usize],
    outputs: usize,
    options: &DnnOptions,
) -> Result<SymbolicTensor> {
    let mut x = x.clone();
    for (at, units) in hidden_units.iter().enumerate() {
        let hidden = Dense::new(*units).activation(options.activation);
        x = hidden.on_named(&format!("hidden_{at}"), &x)?;
        if let Some(rate) = options.dropout {
            x = Dropout::new(rate).on(&x)?;
        }
        if options.batch_norm {
            x = BatchNormalization::new().momentum(0.999).on(&x)?;
        }
    }
    Dense::new(outputs).on_named("logits", &x)
}

/// Checks the sizes of layers.
pub(super) fn check_units(name: &str, hidden_units: &[usize]) -> Result<()> {
    check_sizes(name, &[("the number of hidden layers", hidden_units.len())])?;
    hidden_units
        .iter()
        .try_for_each(|units| check_sizes(name, &[("a hidden layer's number of units", *units)]))
}

fn network(
    name: &str,
    features: usize,
    hidden_units: &[usize],
    head: Head,
    options: &DnnOptions,
) -> Result<Network> {
    check_sizes(name, &[("features", features)])?;
    check_units(name, hidden_units)?;
    let x = Input::new([features]).with_name("features");
    let y = layers(&x, hidden_units, head.outputs(), options)?;
    Network::new(Functional::new(&x, &y)?.with_name(name), head, Adagrad::new(0.05))
}

macro_rules! dnn {
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
                let (model, _, head) = Network::read(bytes, $name, 1, $regression)?;
                Ok($type { network: Network::new(model, head, Adagrad::new(0.05))? })
            }
        }
    };
}
dnn!(DnnRegressor, "DNNRegressor", true);
dnn!(DnnClassifier, "DNNClassifier", false);
shared_methods!(DnnRegressor -> Array1<f64>, numbers);
shared_methods!(DnnClassifier -> Predictions, classes);

impl DnnRegressor {
    /// Creates a network of `x` of `[N,features]` with hidden layers of these sizes.
    ///
    /// # Errors
    /// [`Error::Data`] if a size is 0, or there is no hidden layer; [`Error::Device`] if there is no device.
    pub fn new(features: usize, hidden_units: &[usize]) -> Result<Self> {
        DnnRegressor::with_options(features, hidden_units, DnnOptions::new())
    }

    /// Same as [`DnnRegressor::new`], with options.
    ///
    /// # Errors
    /// Same as [`DnnRegressor::new`].
    pub fn with_options(
        features: usize,
        hidden_units: &[usize],
        options: DnnOptions,
    ) -> Result<Self> {
        let head = Head::Regression;
        Ok(DnnRegressor {
            network: network("DNNRegressor", features, hidden_units, head, &options)?,
        })
    }
}

impl DnnClassifier {
    /// Creates a network of `x` of `[N,features]` with hidden layers of these sizes, for `n_classes` classes.
    ///
    /// # Errors
    /// [`Error::Data`] if a size is 0, there is no hidden layer, or there are fewer than two classes; [`Error::Device`] if there is
    /// no device.
    pub fn new(features: usize, hidden_units: &[usize], n_classes: usize) -> Result<Self> {
        DnnClassifier::with_options(features, hidden_units, n_classes, DnnOptions::new())
    }

    /// Same as [`DnnClassifier::new`], with options.
    ///
    /// # Errors
    /// Same as [`DnnClassifier::new`].
    pub fn with_options(
        features: usize,
        hidden_units: &[usize],
        n_classes: usize,
        options: DnnOptions,
    ) -> Result<Self> {
        let head = Head::classes("DNNClassifier", n_classes)?;
        Ok(DnnClassifier {
            network: network("DNNClassifier", features, hidden_units, head, &options)?,
        })
    }
}
