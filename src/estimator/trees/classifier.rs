//! [`BoostedTreesClassifier`]: a class from boosted trees.

#[cfg(not(target_family = "wasm"))]
use std::path::Path;

use super::ensemble::ImportanceType;
use super::model::{Model, shared_methods};
use super::objective::Objective;
use super::options::{BoostedTreesOptions, TreesFitOptions};
use super::tree::Tree;
use crate::data::IntoModelData;
use crate::error::Result;
use crate::estimator::head::check_classes;
use crate::estimator::predictions::Predictions;
use crate::keras::{History, Logs};

/// Predicts a class with gradient-boosted trees: scikit-learn's `HistGradientBoostingClassifier`, under the name that
/// `tf.estimator` has for such a model.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::estimator::{BoostedTreesClassifier, BoostedTreesOptions, ImportanceType, TreesFitOptions};
/// // Of five kinds, 1 and 4 belong to class 1. The weight says nothing.
/// let x: Vec<[f32; 2]> = (0..500).map(|i| [(i % 5) as f32, (i % 7) as f32]).collect();
/// let y: Vec<i32> = (0..500).map(|i| i32::from(i % 5 == 1 || i % 5 == 4)).collect();
/// let options = BoostedTreesOptions::new()
///     .categorical_features([0])
///     .feature_names(vec!["kind".into(), "weight".into()]);
/// let mut model = BoostedTreesClassifier::new(2, options)?;
/// model.fit((&x[..400], &y[..400]), TreesFitOptions::new())?;
/// assert_eq!(model.evaluate((&x[400..], &y[400..]))?.get("accuracy"), Some(1.0));
/// assert!(model.feature_importances(ImportanceType::Gain)?[0] > 0.99);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct BoostedTreesClassifier {
    model: Model,
}

impl BoostedTreesClassifier {
    /// Creates a model without trees, for labels from 0 to below `n_classes`, which must be at least 2.
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) if there are fewer classes, or an option is invalid.
    pub fn new(n_classes: usize, options: BoostedTreesOptions) -> Result<Self> {
        check_classes("BoostedTreesClassifier", n_classes)?;
        let objective =
            if n_classes == 2 { Objective::Binary } else { Objective::Classes(n_classes) };
        Ok(BoostedTreesClassifier { model: Model::new(options, objective)? })
    }

    /// Returns the number of classes.
    pub fn n_classes(&self) -> usize {
        self.model.objective.outputs().max(2)
    }

    /// Returns `loss`, the mean of the cross-entropies, and `accuracy`, the share of rows whose class is the most probable, both
    /// weighted. Blocks.
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

    /// Returns what the trees say about the rows of `x`. Categories that the training data did not have are treated as missing.
    /// Blocks.
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) before `fit`, or without rows; [`Error::Shape`](crate::Error::Shape) if `x` has another
    /// number of columns.
    #[cfg(not(target_family = "wasm"))]
    pub fn predict<'a>(&self, x: impl IntoModelData<'a>) -> Result<Predictions> {
        pollster::block_on(self.predict_async(x))
    }

    /// Same as `predict`, without blocking and on every target.
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) and [`Error::Shape`](crate::Error::Shape) for the same reasons as `predict`.
    pub async fn predict_async<'a>(&self, x: impl IntoModelData<'a>) -> Result<Predictions> {
        let logits = self.model.predict(x).await?;
        Ok(Predictions::new(logits, self.model.objective.outputs()))
    }
}

shared_methods!("classifier", BoostedTreesClassifier, |objective| matches!(
    objective,
    Objective::Binary | Objective::Classes(_)
));
