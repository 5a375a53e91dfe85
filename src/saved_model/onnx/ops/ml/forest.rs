//! [`Forest`]: decision trees, through which all rows descend at once, a level at a time.

use super::call::unsupported;
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::ops::where_;
use crate::tensor::{Tensor, range};

/// Each level takes some ops; trees that were trained are far less deep.
const DEEPEST: usize = 1 << 10;
/// The most numbers of a matrix that an op makes of a file.
const MOST: usize = 1 << 26;

/// How a node compares a feature with its value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    LessEqual,
    Less,
    GreaterEqual,
    Greater,
    Equal,
    NotEqual,
    Leaf,
}

pub(super) const COMPARISONS: [Mode; 6] =
    [Mode::LessEqual, Mode::Less, Mode::GreaterEqual, Mode::Greater, Mode::Equal, Mode::NotEqual];

impl Mode {
    pub(super) fn new(name: &[u8]) -> Result<Self> {
        Ok(match name {
            b"BRANCH_LEQ" => Mode::LessEqual,
            b"BRANCH_LT" => Mode::Less,
            b"BRANCH_GTE" => Mode::GreaterEqual,
            b"BRANCH_GT" => Mode::Greater,
            b"BRANCH_EQ" => Mode::Equal,
            b"BRANCH_NEQ" => Mode::NotEqual,
            b"LEAF" => Mode::Leaf,
            other => {
                let name = String::from_utf8_lossy(other);
                return Err(unsupported(format_args!("a tree node of the mode \"{name}\"")));
            }
        })
    }

    fn holds(self, x: &Tensor, value: &Tensor) -> Result<Tensor> {
        match self {
            Mode::LessEqual => x.less_equal(value),
            Mode::Less => x.less(value),
            Mode::GreaterEqual => x.greater_equal(value),
            Mode::Greater => x.greater(value),
            Mode::Equal => x.equal(value),
            Mode::NotEqual | Mode::Leaf => x.not_equal(value),
        }
    }
}

/// The nodes of all trees.
#[derive(Debug, Default)]
pub(super) struct Forest {
    pub(super) modes: Vec<Mode>,
    pub(super) features: Vec<i32>,
    pub(super) values: Vec<f32>,
    /// Whether a missing feature makes the comparison true.
    pub(super) missing: Vec<bool>,
    /// Where to look next: if the comparison is false, and if it is true. Leaves lead to themselves.
    pub(super) next: Vec<[usize; 2]>,
    pub(super) roots: Vec<usize>,
}

impl Forest {
    /// The number of steps from the roots to the last leaf.
    ///
    /// # Errors
    /// [`Error::Data`] if a branch has several ways to it, as in a cycle, or the trees are too deep.
    fn depth(&self) -> Result<usize> {
        let mut seen = vec![false; self.modes.len()];
        let (mut level, mut depth) = (self.roots.clone(), 0);
        loop {
            level.retain(|at| self.modes[*at] != Mode::Leaf);
            if level.is_empty() {
                let lost = (0..seen.len()).find(|at| !seen[*at] && self.modes[*at] != Mode::Leaf);
                return lost.map_or(Ok(depth), |at| {
                    Err(Error::Data(message!(
                        "no way leads from a root to its tree node {at}: its trees have a cycle. The file is damaged."
                    )))
                });
            }
            depth += 1;
            if depth > DEEPEST {
                return Err(unsupported(format_args!("a tree of more than {DEEPEST} levels")));
            }
            let mut below = Vec::with_capacity(2 * level.len());
            for at in level {
                if std::mem::replace(&mut seen[at], true) {
                    return Err(Error::Data(message!(
                        "more than one way leads to its tree node {at}: its trees have a cycle, or share branches. The file is damaged."
                    )));
                }
                below.extend(self.next[at]);
            }
            level = below;
        }
    }

    /// The leaf of each row in each tree, `[batch, trees]`.
    fn leaves(&self, x: &Tensor) -> Result<Tensor> {
        let [batch, features] = x.shape()[..] else {
            return Err(Error::Shape(message!("{:?} are no rows of features.", x.shape())));
        };
        let (nodes, trees) = (self.modes.len(), self.roots.len());
        let branches = (0..nodes).filter(|at| self.modes[*at] != Mode::Leaf);
        for at in branches {
            let feature = self.features[at];
            if !usize::try_from(feature).is_ok_and(|feature| feature < features) {
                return Err(Error::Index(message!(
                    "its tree node {at} reads the feature {feature}, and rows have {features}. Pass rows of as many features as the \
                     model was trained with."
                )));
            }
        }
        let steps = self.depth()?;
        let whole = batch.checked_mul(features.max(trees)).filter(|count| *count < 1 << 31);
        if whole.is_none() || nodes >= 1 << 30 {
            return Err(Error::Shape(message!(
                "{batch} rows of {features} features, and {trees} trees of {nodes} nodes, are too many. Pass fewer rows."
            )));
        }
        let roots: Vec<i32> = self.roots.iter().map(|at| *at as i32).collect();
        let mut place = Tensor::from_slice(&roots, [1, trees])?.broadcast_to([batch, trees])?;
        if steps == 0 {
            return Ok(place);
        }
        let next: Vec<i32> = self.next.iter().flatten().map(|at| *at as i32).collect();
        let next = Tensor::from_slice(&next, [2 * nodes])?;
        let own_features = Tensor::from_slice(&self.features, [nodes])?;
        let values = Tensor::from_slice(&self.values, [nodes])?;
        let missing: Vec<i32> = self.missing.iter().map(|yes| i32::from(*yes)).collect();
        let missing = Tensor::from_slice(&missing, [nodes])?;
        let numbers: Vec<i32> = self.modes.iter().map(|mode| *mode as i32).collect();
        let numbers = Tensor::from_slice(&numbers, [nodes])?;
        let used: Vec<Mode> =
            COMPARISONS.into_iter().filter(|mode| self.modes.contains(mode)).collect();
        let flat = x.reshape([batch * features])?;
        let starts = range(0, batch as i64, 1)?.multiply(features as i64)?.reshape([batch, 1])?;
        for _ in 0..steps {
            let feature = own_features.gather(&place, 0)?.add(&starts)?;
            let (feature, value) = (flat.gather(&feature, 0)?, values.gather(&place, 0)?);
            let mut holds: Option<Tensor> = None;
            for mode in &used {
                let own = mode.holds(&feature, &value)?;
                holds = Some(match holds {
                    None => own,
                    Some(others) => {
                        where_(&numbers.gather(&place, 0)?.equal(*mode as i64)?, &own, &others)?
                    }
                });
            }
            let Some(holds) = holds else { break };
            // Devices differ in how a NaN compares.
            let side =
                where_(&feature.is_nan()?, &missing.gather(&place, 0)?, &holds.cast(DType::I32)?)?;
            place = next.gather(&place.multiply(2)?.add(side)?, 0)?;
        }
        Ok(place)
    }
}

/// What a leaf adds to a target.
pub(super) struct Weight {
    pub(super) node: usize,
    pub(super) target: i64,
    pub(super) weight: f32,
}

/// The sums of the leaves' weights, or others of their aggregates: `[batch, targets]`.
pub(super) fn aggregate(
    forest: &Forest,
    weights: &[Weight],
    targets: usize,
    how: &str,
    x: &Tensor,
) -> Result<Tensor> {
    // Where a leaf has no weight for a target, it does not count.
    let none = match how {
        "SUM" | "AVERAGE" => 0.0,
        "MIN" => f32::MAX,
        "MAX" => f32::MIN,
        other => return Err(unsupported(format_args!("the aggregate_function {other}"))),
    };
    let nodes = forest.modes.len();
    let count = nodes.checked_mul(targets).filter(|count| *count <= MOST);
    let Some(count) = count else {
        return Err(unsupported(format_args!("a forest of {nodes} nodes and {targets} targets")));
    };
    let mut matrix = vec![none; count];
    for Weight { node, target, weight } in weights {
        let target = usize::try_from(*target).ok().filter(|target| *target < targets);
        let target = target.ok_or_else(|| {
            Error::Data(message!(
                "its tree node {node} has a weight for a target that is none of {targets}. The file is damaged."
            ))
        })?;
        let own = &mut matrix[node * targets + target];
        *own = match how {
            "MIN" => own.min(*weight),
            "MAX" => own.max(*weight),
            _ => *own + weight,
        };
    }
    let leaves = forest.leaves(x)?;
    let found = Tensor::from_slice(&matrix, [nodes, targets])?.gather(&leaves, 0)?;
    let trees = forest.roots.len();
    match how {
        "SUM" => found.reduce_sum(1),
        "AVERAGE" => found.reduce_sum(1)?.divide(trees as f32),
        _ => {
            let most = if how == "MIN" { found.reduce_min(1)? } else { found.reduce_max(1)? };
            where_(&most.equal(none)?, &most.zeros_like()?, &most)
        }
    }
}
