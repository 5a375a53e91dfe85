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
}

/// A tree in a form that is quick to walk: short nodes next to each other, and the next one is looked up rather than chosen by a
/// branch, which a processor could not predict.
pub(super) struct Steps {
    steps: Vec<Step>,
    sets: Vec<[u64; 4]>,
}

struct Step {
    /// The threshold; a leaf's value.
    number: f64,
    /// Left and right.
    next: [u32; 2],
    feature: u32,
    /// The place of a set of categories after [`SETS`]; or what else the step does.
    kind: u32,
}

const LEAF: u32 = 0;
const MISSING_RIGHT: u32 = 1;
const MISSING_LEFT: u32 = 2;
/// Sets have two numbers each, of which the second sends missing values to the left.
const SETS: u32 = 4;

impl Steps {
    pub(super) fn new(tree: &Tree) -> Self {
        let mut sets = Vec::new();
        let step = |node: &TreeNode| match node {
            TreeNode::Leaf { value, .. } => {
                Step { number: *value, next: [0; 2], feature: 0, kind: LEAF }
            }
            TreeNode::Split { feature, test, missing_left, left, right, .. } => {
                let (number, kind) = match test {
                    SplitTest::AtMost(threshold) if *missing_left => (*threshold, MISSING_LEFT),
                    SplitTest::AtMost(threshold) => (*threshold, MISSING_RIGHT),
                    SplitTest::Categories(set) => {
                        sets.push(*set);
                        let place = sets.len() as u32 - 1;
                        (0.0, SETS + 2 * place + u32::from(*missing_left))
                    }
                };
                let next = [*left as u32, *right as u32];
                Step { number, next, feature: *feature as u32, kind }
            }
        };
        let steps = tree.nodes.iter().map(step).collect();
        Steps { steps, sets }
    }

    /// The value for a row, in which categories are places in the lists of categories, and NaN is missing.
    pub(super) fn value(&self, row: &[f64]) -> f64 {
        let mut step = &self.steps[0];
        while step.kind != LEAF {
            let x = row[step.feature as usize];
            let left = if step.kind < SETS {
                (x <= step.number) | (x.is_nan() & (step.kind == MISSING_LEFT))
            } else {
                let place = step.kind - SETS;
                let set = &self.sets[place as usize / 2];
                if x.is_nan() { place % 2 == 1 } else { contains(set, x as u8) }
            };
            step = &self.steps[step.next[usize::from(!left)] as usize];
        }
        step.number
    }
}
