//! [`Ensemble`]: the trees of a trained model, and their sum for rows.

use super::bins::Edges;
use super::objective::Objective;
use super::threads::{self, BLOCK};
use super::tree::{Steps, Tree, TreeNode};
use crate::error::{Error, Result, message};
use crate::estimator::rows::Rows;

/// The number of rows that go through one tree after the other: they and the tree fit into a processor's cache.
const TOGETHER: usize = 512;

/// Adds a tree's values to one output of rows.
fn add(tree: &Steps, output: usize, raw: &mut [f64], x: &[f64], width: usize) {
    let outputs = raw.len() / (x.len() / width).max(1);
    for (raw, x) in raw.chunks_exact_mut(outputs).zip(x.chunks_exact(width)) {
        raw[output] += tree.value(x);
    }
}

/// Adds a tree's values to one output of all rows.
pub(super) fn add_tree(tree: &Tree, output: usize, raw: &mut [f64], rows: &Rows) {
    let tree = Steps::new(tree);
    let size = BLOCK * raw.len() / rows.count.max(1);
    let mut blocks: Vec<(&mut [f64], &[f64])> =
        raw.chunks_mut(size.max(1)).zip(rows.x.chunks(BLOCK * rows.width)).collect();
    threads::each(&mut blocks, rows.count * 8, |_, (raw, x)| {
        add(&tree, output, raw, x, rows.width)
    });
}

/// How [`feature_importances`](super::BoostedTreesClassifier::feature_importances) counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ImportanceType {
    /// By how much the feature's splits lower the loss together, as a share of all features': the shares add up to 1.
    #[default]
    Gain,
    /// The number of splits.
    Splits,
}

/// A trained model.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ensemble {
    pub(super) objective: Objective,
    /// The raw predictions without trees.
    pub(super) baseline: Vec<f64>,
    /// For each feature, its sorted categories; none if it is a number.
    pub(super) categories: Vec<Option<Vec<u32>>>,
    /// The names of the features; empty, or one for each.
    pub(super) names: Vec<String>,
    /// The trees of all iterations, in each one for each output.
    pub(super) trees: Vec<Tree>,
}

impl Ensemble {
    /// Replaces categories by their places in the lists, unknown ones by NaN.
    pub(super) fn encode(&self, row: &mut [f64]) {
        for (x, categories) in row.iter_mut().zip(&self.categories) {
            if let Some(categories) = categories {
                let known = *x as u32;
                let place = match f64::from(known) == *x {
                    true => categories.binary_search(&known).ok(),
                    false => None,
                };
                *x = place.map_or(f64::NAN, |place| place as f64);
            }
        }
    }

    /// All rows, encoded.
    pub(super) fn encode_all(&self, rows: &mut Rows) {
        if self.categories.iter().any(Option::is_some) {
            rows.x.chunks_exact_mut(rows.width).for_each(|row| self.encode(row));
        }
    }

    /// The raw predictions, a number for each row and output.
    pub(super) fn raw(&self, call: &str, rows: &mut Rows) -> Result<Vec<f64>> {
        if rows.width != self.categories.len() {
            return Err(Error::Shape(message!(
                "{call}: x has {} columns, and the model was trained with {}. Pass the same columns.",
                rows.width,
                self.categories.len()
            )));
        }
        self.encode_all(rows);
        let outputs = self.baseline.len();
        let mut raw = vec![0.0; rows.count * outputs];
        let trees: Vec<Steps> = self.trees.iter().map(Steps::new).collect();
        let mut blocks: Vec<(&mut [f64], &[f64])> =
            raw.chunks_mut(TOGETHER * outputs).zip(rows.x.chunks(TOGETHER * rows.width)).collect();
        threads::each(&mut blocks, rows.count * trees.len() * 8, |_, (raw, x)| {
            raw.chunks_exact_mut(outputs).for_each(|raw| raw.copy_from_slice(&self.baseline));
            for (at, tree) in trees.iter().enumerate() {
                add(tree, at % outputs, raw, x, rows.width);
            }
        });
        Ok(raw)
    }

    /// A number for each feature.
    pub(super) fn importances(&self, kind: ImportanceType) -> Vec<f64> {
        let mut sums = vec![0.0; self.categories.len()];
        for node in self.trees.iter().flat_map(Tree::nodes) {
            if let TreeNode::Split { feature, gain, .. } = node {
                sums[*feature] += if kind == ImportanceType::Gain { *gain } else { 1.0 };
            }
        }
        let total: f64 = sums.iter().sum();
        if kind == ImportanceType::Gain && total > 0.0 {
            sums.iter_mut().for_each(|sum| *sum /= total);
        }
        sums
    }
}

/// The lists of categories of features.
pub(super) fn categories_of(edges: Vec<Edges>) -> Vec<Option<Vec<u32>>> {
    let list = |edges| match edges {
        Edges::Numbers(_) => None,
        Edges::Categories(categories) => Some(categories),
    };
    edges.into_iter().map(list).collect()
}
