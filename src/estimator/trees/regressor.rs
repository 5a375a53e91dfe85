//! [`BoostedTreesRegressor`]: a number from boosted trees.

#[cfg(not(target_family = "wasm"))]
use std::path::Path;

use ndarray::Array1;

use super::ensemble::ImportanceType;
use super::model::{Model, shared_methods};
use super::objective::Objective;
use super::options::{BoostedTreesOptions, TreesFitOptions, TreesLoss};
use super::tree::Tree;
use crate::data::IntoModelData;
use crate::error::Result;
use crate::keras::{History, Logs};

/// Predicts a number with gradient-boosted trees: scikit-learn's `HistGradientBoostingRegressor`, under the name that `tf.estimator`
/// has for such a model.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::estimator::{BoostedTreesOptions, BoostedTreesRegressor, TreesFitOptions};
/// use wgrad::ndarray::Array2;
/// // y is x0 squared if x1 is known, else 1000. x1 is 0 or missing.
/// let missing = |i: usize| if i % 3 == 0 { f32::NAN } else { 0.0 };
/// let x = Array2::from_shape_fn((600, 2), |(i, j)| if j == 0 { (i % 50) as f32 } else { missing(i) });
/// let y = x.rows().into_iter().map(|row| if row[1].is_nan() { 1000.0 } else { row[0] * row[0] });
/// let y: Vec<f32> = y.collect();
///
/// let mut model = BoostedTreesRegressor::new(BoostedTreesOptions::new().min_samples_leaf(5))?;
/// let history = model.fit((&x, &y[..]), TreesFitOptions::new())?;
/// assert_eq!(history.get("loss").map(<[f64]>::len), Some(100));
/// let predicted = model.predict(([[7.0, f32::NAN], [20.0, 0.0]],))?;
/// assert!((predicted[0] - 1000.0).abs() < 1.0 && (predicted[1] - 400.0).abs() < 10.0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct BoostedTreesRegressor {
    model: Model,
}

impl BoostedTreesRegressor {
    /// Creates a model without trees.
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) if an option is invalid.
    pub fn new(options: BoostedTreesOptions) -> Result<Self> {
        let objective = match options.loss {
            TreesLoss::SquaredError => Objective::Squared,
            TreesLoss::AbsoluteError => Objective::Absolute,
        };
        Ok(BoostedTreesRegressor { model: Model::new(options, objective)? })
    }

    /// Returns `loss`, the mean of the squared errors (or of the absolute ones, if the model minimizes those), and `mae`, the mean
    /// of the absolute errors, both weighted. Blocks.
    ///
    /// # Errors
    /// Same as [`fit`](Self::fit); [`Error::Data`](crate::Error::Data) before it.
    #[cfg(not(target_family = "wasm"))]
    pub fn evaluate<'a>(&self, data: impl IntoModelData<'a>) -> Result<Logs> {
        pollster::block_on(self.evaluate_async(data))
    }

    /// Same as `evaluate`, without blocking and on every target.
    ///
    /// # Errors
    /// Same as [`fit_async`](Self::fit_async); [`Error::Data`](crate::Error::Data) before it.
    pub async fn evaluate_async<'a>(&self, data: impl IntoModelData<'a>) -> Result<Logs> {
        self.model.evaluate(data).await
    }

    /// Returns the predicted numbers, `[N]`. Categories that the training data did not have are treated as missing. Blocks.
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) before `fit`, or without rows; [`Error::Shape`](crate::Error::Shape) if `x` has another
    /// number of columns.
    #[cfg(not(target_family = "wasm"))]
    pub fn predict<'a>(&self, x: impl IntoModelData<'a>) -> Result<Array1<f64>> {
        pollster::block_on(self.predict_async(x))
    }

    /// Same as `predict`, without blocking and on every target.
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) and [`Error::Shape`](crate::Error::Shape) for the same reasons as `predict`.
    pub async fn predict_async<'a>(&self, x: impl IntoModelData<'a>) -> Result<Array1<f64>> {
        Ok(self.model.predict(x).await?.into())
    }
}

shared_methods!("regressor", BoostedTreesRegressor, |objective| matches!(
    objective,
    Objective::Squared | Objective::Absolute
));
