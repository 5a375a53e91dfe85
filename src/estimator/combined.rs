//! [`DnnLinearCombinedRegressor`] and [`DnnLinearCombinedClassifier`]: wide and deep networks.

use std::sync::Arc;

use ndarray::Array1;

use super::dnn::{DnnOptions, check_units, layers};
use super::head::Head;
use super::linear;
use super::network::{LINEAR, Network, check_sizes, classes, numbers, shared_methods};
use super::predictions::Predictions;
use crate::data::IntoModelData;
use crate::error::{Error, Result};
use crate::keras::optimizers::{Adagrad, Ftrl};
use crate::keras::{
    EvaluateOptions, FitOptions, Functional, History, Input, IntoOptimizer, LayerExt, Logs,
    PredictOptions,
};

/// A linear model and a network whose outputs are added (Cheng et al. 2016, "Wide & Deep Learning for Recommender Systems"), with
/// the mean squared error. The data are `((linear_x, dnn_x), y)`: columns for the linear part, such as crosses, and those for
/// the network.
///
/// As `tf.estimator.DNNLinearCombinedRegressor`, it trains the linear part with [`Ftrl`] and a learning rate of 0.005 (or `1 /
/// sqrt(D)`, if that is less), and the network with [`Adagrad`] and a learning rate of 0.001. It does so without a strategy of
/// `tf.distribute`.
#[derive(Debug, Clone)]
pub struct DnnLinearCombinedRegressor {
    network: Network,
}

/// A linear model and a network whose outputs are added, with the cross-entropy. The labels are from 0 to below the number of
/// classes. It trains as [`DnnLinearCombinedRegressor`] does.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::estimator::DnnLinearCombinedClassifier;
/// use wgrad::keras::{EvaluateOptions, FitOptions, optimizers::Adam};
/// wgrad::random::set_seed(1);
/// // Two columns for the network, and a cross of them for the linear part.
/// let x: Vec<[f32; 2]> = (0..200).map(|i| [(i % 2) as f32, (i / 2 % 2) as f32]).collect();
/// let cross: Vec<[f32; 1]> = x.iter().map(|x| [x[0] * x[1]]).collect();
/// let y: Vec<i32> = x.iter().map(|x| i32::from(x[0] != x[1])).collect();
/// let model = DnnLinearCombinedClassifier::new(1, 2, &[8], 2)?
///     .linear_optimizer(Adam::new(0.1))?
///     .dnn_optimizer(Adam::new(0.1))?;
/// let data = ((&cross[..], &x[..]), &y[..]);
/// model.fit(data, FitOptions::new().epochs(10))?;
/// assert_eq!(model.evaluate(data, EvaluateOptions::new())?.get("accuracy"), Some(1.0));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct DnnLinearCombinedClassifier {
    network: Network,
}

/// tf.estimator's default for the linear part.
fn ftrl(features: usize) -> Ftrl {
    Ftrl::new((1.0 / (features as f32).sqrt()).min(0.005))
}

fn compiled(model: Functional, head: Head, linear_features: usize) -> Result<Network> {
    let network = Network::new(model, head, Adagrad::new(0.001))?;
    Ok(Network { linear: Some(Arc::new(ftrl(linear_features))), ..network })
}

fn network(
    name: &str,
    [linear_features, dnn_features]: [usize; 2],
    hidden_units: &[usize],
    head: Head,
    options: &DnnOptions,
) -> Result<Network> {
    check_sizes(name, &[("linear_features", linear_features), ("dnn_features", dnn_features)])?;
    check_units(name, hidden_units)?;
    let wide = Input::new([linear_features]).with_name("linear_features");
    let deep = Input::new([dnn_features]).with_name("dnn_features");
    let linear = linear::layer(head.outputs()).on_named(LINEAR, &wide)?;
    let logits = layers(&deep, hidden_units, head.outputs(), options)?;
    let model = Functional::new([&wide, &deep], linear.add(&logits)?)?.with_name(name);
    compiled(model, head, linear_features)
}

macro_rules! combined {
    ($type:ident, $name:literal, $regression:literal) => {
        impl $type {
            /// Sets the optimizer of the linear part, by value or by Keras's name, in place of the default one.
            ///
            /// # Errors
            /// [`Error::Data`] if there is no optimizer of this name.
            pub fn linear_optimizer(mut self, optimizer: impl IntoOptimizer) -> Result<Self> {
                self.network.linear = Some(optimizer.into_optimizer()?);
                Ok(self)
            }

            /// Sets the optimizer of the network, by value or by Keras's name, in place of the default one.
            ///
            /// # Errors
            /// [`Error::Data`] if there is no optimizer of this name.
            pub fn dnn_optimizer(self, optimizer: impl IntoOptimizer) -> Result<Self> {
                self.network.head.compile(&self.network.model, optimizer.into_optimizer()?)?;
                Ok(self)
            }

            /// Same as `load`, from the contents of the file.
            ///
            /// # Errors
            /// [`Error::Data`] if the contents are damaged or another kind of model; [`Error::Checkpoint`] if the weights do not fit.
            pub fn from_keras(bytes: &[u8]) -> Result<Self> {
                let (model, sizes, head) = Network::read(bytes, $name, 2, $regression)?;
                Ok($type { network: compiled(model, head, sizes[0])? })
            }
        }
    };
}
combined!(DnnLinearCombinedRegressor, "DNNLinearCombinedRegressor", true);
combined!(DnnLinearCombinedClassifier, "DNNLinearCombinedClassifier", false);
shared_methods!(DnnLinearCombinedRegressor -> Array1<f64>, numbers);
shared_methods!(DnnLinearCombinedClassifier -> Predictions, classes);

impl DnnLinearCombinedRegressor {
    /// Creates a model of `linear_x` of `[N,linear_features]` and `dnn_x` of `[N,dnn_features]`, whose network has hidden layers of
    /// these sizes.
    ///
    /// # Errors
    /// [`Error::Data`] if a size is 0, or there is no hidden layer; [`Error::Device`] if there is no device.
    pub fn new(
        linear_features: usize,
        dnn_features: usize,
        hidden_units: &[usize],
    ) -> Result<Self> {
        let sizes = [linear_features, dnn_features];
        DnnLinearCombinedRegressor::with_options(sizes, hidden_units, DnnOptions::new())
    }

    /// Same as [`DnnLinearCombinedRegressor::new`], with options; `sizes` are those of `linear_x` and `dnn_x`.
    ///
    /// # Errors
    /// Same as [`DnnLinearCombinedRegressor::new`].
    pub fn with_options(
        sizes: [usize; 2],
        hidden_units: &[usize],
        options: DnnOptions,
    ) -> Result<Self> {
        let name = "DNNLinearCombinedRegressor";
        let network = network(name, sizes, hidden_units, Head::Regression, &options)?;
        Ok(DnnLinearCombinedRegressor { network })
    }
}

impl DnnLinearCombinedClassifier {
    /// Creates a model of `linear_x` of `[N,linear_features]` and `dnn_x` of `[N,dnn_features]`, whose network has hidden layers of
    /// these sizes, for `n_classes` classes.
    ///
    /// # Errors
    /// [`Error::Data`] if a size is 0, there is no hidden layer, or there are fewer than two classes; [`Error::Device`] if there is
    /// no device.
    pub fn new(
        linear_features: usize,
        dnn_features: usize,
        hidden_units: &[usize],
        n_classes: usize,
    ) -> Result<Self> {
        let sizes = [linear_features, dnn_features];
        DnnLinearCombinedClassifier::with_options(sizes, hidden_units, n_classes, DnnOptions::new())
    }

    /// Same as [`DnnLinearCombinedClassifier::new`], with options; `sizes` are those of `linear_x` and `dnn_x`.
    ///
    /// # Errors
    /// Same as [`DnnLinearCombinedClassifier::new`].
    pub fn with_options(
        sizes: [usize; 2],
        hidden_units: &[usize],
        n_classes: usize,
        options: DnnOptions,
    ) -> Result<Self> {
        let name = "DNNLinearCombinedClassifier";
        let head = Head::classes(name, n_classes)?;
        let network = network(name, sizes, hidden_units, head, &options)?;
        Ok(DnnLinearCombinedClassifier { network })
    }
}
