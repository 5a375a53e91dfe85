//! The options of boosted trees.

use std::fmt;

use crate::data::{IntoModelData, ModelData};
use crate::error::{Error, Result, message};
use crate::support::options::options;

/// The loss that a [`BoostedTreesRegressor`](super::BoostedTreesRegressor) minimizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum TreesLoss {
    /// The mean of `(y - p)^2`: predicts means.
    #[default]
    SquaredError,
    /// The mean of `|y - p|`: predicts medians, which a few extreme labels do not change.
    AbsoluteError,
}

options! {
    /// The options of [`BoostedTreesRegressor`](super::BoostedTreesRegressor) and
    /// [`BoostedTreesClassifier`](super::BoostedTreesClassifier). The defaults are those of scikit-learn's
    /// `HistGradientBoostingClassifier`, except that training only stops early if it is asked to.
    #[derive(Debug, Clone)]
    pub struct BoostedTreesOptions {
        /// Sets the number of iterations: of trees, or with more than two classes, of a tree for each class. scikit-learn's
        /// `max_iter`. Default: 100.
        n_trees: usize = 100,
        /// Sets the factor of each tree's values, above 0. Default: 0.1.
        learning_rate: f64 = 0.1,
        /// Sets the largest number of leaves of a tree, at least 2. Default: 31.
        max_leaf_nodes: Option<usize> as impl Into<Option<usize>> = Some(31),
        /// Sets the largest number of splits between the root and a leaf, at least 1. Default: any.
        max_depth: Option<usize> as impl Into<Option<usize>> = None,
        /// Sets the least number of rows in a leaf. Default: 20.
        min_samples_leaf: usize = 20,
        /// Sets a penalty on large values of leaves, which is added to a leaf's sum of second derivatives. Default: 0.
        l2_regularization: f64 = 0.0,
        /// Sets the number of ranges into which a column's numbers are divided, 2 to 255, and the largest number of categories of
        /// a column. Default: 255.
        max_bins: usize = 255,
        /// Sets the indices of the columns that are categories: whole numbers from 0 on, without an order. Default: none.
        categorical_features: Vec<usize> as impl Into<Vec<usize>> = Vec::new(),
        /// Sets the names of the columns, for errors and importances. Default: none.
        feature_names: Vec<String> = Vec::new(),
        /// Sets the loss of a regressor. A classifier minimizes the cross-entropy. Default: the squared error.
        loss: TreesLoss = TreesLoss::SquaredError,
        /// Sets after how many iterations without an improvement of the loss training stops: that of the validation data if there
        /// are any, else of the training data. Default: training does not stop.
        n_iter_no_change: Option<usize> as impl Into<Option<usize>> = None,
        /// Sets by how much the loss must become smaller to count as improved. Default: 1e-7.
        tol: f64 = 1e-7,
        /// Sets the share of the rows, drawn at random, that are validation data instead of training data. Default: none.
        validation_fraction: Option<f64> as impl Into<Option<f64>> = None,
        /// Sets the seed of the draws: of the validation data, and of the 200,000 rows that decide about the ranges of a larger
        /// table. Default: 0.
        seed: u64 = 0,
    }
}

impl BoostedTreesOptions {
    /// The name of a column in messages.
    pub(super) fn name(&self, column: usize) -> String {
        match self.feature_names.get(column) {
            Some(name) => format!("column {column}, '{name}',"),
            None => format!("column {column}"),
        }
    }

    /// Returns an error for the first invalid option.
    pub(super) fn check(&self) -> Result<()> {
        let wrong = |name: &str, value: &dyn fmt::Debug, rule: &str| {
            Err(Error::Data(message!(
                "BoostedTreesOptions: {name} is {value:?}; it must be {rule}."
            )))
        };
        let positive = |x: f64| x > 0.0 && x.is_finite();
        if self.n_trees == 0 {
            return wrong("n_trees", &0, "at least 1");
        }
        if !positive(self.learning_rate) {
            return wrong("learning_rate", &self.learning_rate, "a number above 0");
        }
        if self.max_leaf_nodes.is_some_and(|leaves| leaves < 2) {
            return wrong("max_leaf_nodes", &self.max_leaf_nodes, "at least 2, or None");
        }
        if self.max_depth == Some(0) {
            return wrong("max_depth", &self.max_depth, "at least 1, or None");
        }
        if self.min_samples_leaf == 0 {
            return wrong("min_samples_leaf", &0, "at least 1");
        }
        if self.l2_regularization != 0.0 && !positive(self.l2_regularization) {
            return wrong("l2_regularization", &self.l2_regularization, "a number from 0 on");
        }
        if !(2..=255).contains(&self.max_bins) {
            return wrong("max_bins", &self.max_bins, "from 2 to 255");
        }
        if self.n_iter_no_change == Some(0) {
            return wrong("n_iter_no_change", &self.n_iter_no_change, "at least 1, or None");
        }
        if self.tol != 0.0 && !positive(self.tol) {
            return wrong("tol", &self.tol, "a number from 0 on");
        }
        match self.validation_fraction {
            Some(share) if !(share > 0.0 && share < 1.0) => {
                wrong("validation_fraction", &self.validation_fraction, "between 0 and 1, or None")
            }
            _ => Ok(()),
        }
    }

    /// Which of `width` columns are categories.
    pub(super) fn categorical(&self, width: usize) -> Result<Vec<bool>> {
        if !self.feature_names.is_empty() && self.feature_names.len() != width {
            return Err(Error::Shape(message!(
                "fit: x has {width} columns, and feature_names has {} names. Give one for each column.",
                self.feature_names.len()
            )));
        }
        let mut categorical = vec![false; width];
        for &column in &self.categorical_features {
            match categorical.get_mut(column) {
                Some(place) => *place = true,
                None => {
                    return Err(Error::Index(message!(
                        "fit: categorical_features has the index {column}, and x has {width} columns. Count them from 0."
                    )));
                }
            }
        }
        Ok(categorical)
    }
}

/// The options of `fit` of boosted trees.
#[derive(Default)]
pub struct TreesFitOptions<'a> {
    pub(super) validation_data: Option<Result<ModelData<'a>>>,
}

impl fmt::Debug for TreesFitOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TreesFitOptions").finish_non_exhaustive()
    }
}

impl<'a> TreesFitOptions<'a> {
    /// Creates options without validation data.
    pub fn new() -> Self {
        TreesFitOptions::default()
    }

    /// Sets the validation data, whose loss and metric the history has as `val_loss` and so on.
    #[must_use]
    pub fn validation_data(mut self, data: impl IntoModelData<'a>) -> Self {
        self.validation_data = Some(data.into_model_data());
        self
    }
}
