//! [`Tree`]: a decision tree as a list of nodes, and the way of a row through it.

use super::split::contains;

/// A node of a boosted tree: a leaf, or a test of a feature with two children.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum TreeNode {
    /// Adds its value to the prediction of a row.
    Leaf {
        /// The value, with the learning rate in it.
        value: f64,
        /// The number of training rows.
        rows: usize,
    },
    /// Sends a row to one of two nodes, which come later in the list.
    Split {
        /// The index of the feature.
        feature: usize,
        /// Which values go left.
        test: SplitTest,
        /// Whether rows without the feature go left.
        missing_left: bool,
        /// The index of the node for rows that go left.
        left: usize,
        /// The index of the node for the others.
        right: usize,
        /// By how much the split lowers the loss, approximated to second order.
        gain: f64,
        /// The number of training rows.
        rows: usize,
    },
}

/// The values that go left at a [`TreeNode::Split`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum SplitTest {
    /// Numbers up to this one. Infinity: all, so that only missing values go right.
    AtMost(f64),
    /// The categories with these places in the sorted list of the feature's categories, a bit for each.
    Categories([u64; 4]),
}

/// A tree.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tree {
    pub(super) nodes: Vec<TreeNode>,
}

impl Tree {
    /// The nodes: the root first, each child after its parent.
    pub fn nodes(&self) -> &[TreeNode] {
        &self.nodes
    }

    /// The number of leaves.
    pub fn leaves(&self) -> usize {
        self.nodes.iter().filter(|node| matches!(node, TreeNode::Leaf { .. })).count()
    }

    /// The value for a row, in which categories are places in the lists of categories, and NaN is missing.
    pub(super) fn value(&self, row: &[f64]) -> f64 {
        let mut at = 0;
        loop {
            match &self.nodes[at] {
                TreeNode::Leaf { value, .. } => return *value,
                TreeNode::Split { feature, test, missing_left, left, right, .. } => {
                    let x = row[*feature];
                    let goes_left = match test {
                        _ if x.is_nan() => *missing_left,
                        SplitTest::AtMost(threshold) => x <= *threshold,
                        SplitTest::Categories(set) => contains(set, x as u8),
                    };
                    at = if goes_left { *left } else { *right };
                }
            }
        }
    }
}
