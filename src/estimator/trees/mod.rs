//! Gradient-boosted trees: [`BoostedTreesRegressor`] and [`BoostedTreesClassifier`].
//!
//! `bins` divides the columns into bins, `histogram` sums derivatives over them, `split` searches a node's best split, `grow` grows
//! a tree, `objective` has the losses, `boost` the training. `tree` and `ensemble` predict, `file` saves and loads. All of it runs on
//! the host: [the guide](crate::docs::estimators) says why.

mod bins;
mod boost;
mod classifier;
mod ensemble;
mod file;
mod grow;
mod histogram;
mod model;
mod objective;
mod options;
mod regressor;
mod split;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod threads;
mod tree;

pub use classifier::BoostedTreesClassifier;
pub use ensemble::ImportanceType;
pub use options::{BoostedTreesOptions, TreesFitOptions, TreesLoss};
pub use regressor::BoostedTreesRegressor;
pub use tree::{SplitTest, Tree, TreeNode};
