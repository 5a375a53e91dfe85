//! Pre-made models, under the names of `tf.estimator`: linear and logistic regression, networks, wide and deep networks, and
//! gradient-boosted trees.
//!
//! All have `fit`, `evaluate` and `predict`, and are saved and loaded as one file. Regressors predict a number, classifiers one of
//! two or more classes, with its probability. [The guide](crate::docs::estimators) compares them.
//!
//! `linear`, `dnn` and `combined` make Keras models, which `network` trains with the loss of a `head`. `trees` has boosted trees,
//! which read their data with `rows`. What columns of words become numbers by is elsewhere:
//! [`keras::layers::FeatureSpace`](crate::keras::layers).

mod combined;
mod dnn;
mod head;
mod linear;
mod network;
mod predictions;
mod rows;
mod trees;

pub use combined::{DnnLinearCombinedClassifier, DnnLinearCombinedRegressor};
pub use dnn::{DnnClassifier, DnnOptions, DnnRegressor};
pub use linear::{LinearClassifier, LinearRegressor};
pub use predictions::Predictions;
pub use trees::{
    BoostedTreesClassifier, BoostedTreesOptions, BoostedTreesRegressor, ImportanceType, SplitTest,
    Tree, TreeNode, TreesFitOptions, TreesLoss,
};
