//! Grows a tree leaf by leaf: the leaf whose split lowers the loss the most is split next.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::bins::{Binned, Edges};
use super::histogram::{self, Cell, Derivatives, Gathered, Layout};
use super::split::{Rules, Search, Split, Sums, Test};
use super::threads;
use super::tree::{SplitTest, Tree, TreeNode};

/// How trees are grown.
pub(super) struct Limits {
    pub(super) leaves: Option<usize>,
    pub(super) depth: Option<usize>,
    pub(super) rules: Rules,
    pub(super) learning_rate: f64,
}

/// What all trees of a training share: the bins, and memory that is used again.
pub(super) struct Grower<'a> {
    edges: &'a [Edges],
    binned: &'a Binned,
    limits: Limits,
    layout: Layout,
    /// The rows, so that those of each node are next to each other.
    rows: Vec<u32>,
    spare_rows: Vec<u32>,
    spare_cells: Vec<Vec<Cell>>,
    gathered: Gathered,
}

/// A node that may be split.
struct Open {
    node: usize,
    depth: usize,
    rows: Range<usize>,
    value: f64,
    cells: Vec<Cell>,
    split: Split,
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Open {}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// By the gain; of equal ones, the older node first.
impl Ord for Open {
    fn cmp(&self, other: &Self) -> Ordering {
        self.split.gain.total_cmp(&other.split.gain).then(other.node.cmp(&self.node))
    }
}

/// A node that has been made, before it is known whether it is split.
struct Made {
    node: usize,
    depth: usize,
    rows: Range<usize>,
    sums: Sums,
    value: f64,
}

impl<'a> Grower<'a> {
    pub(super) fn new(edges: &'a [Edges], binned: &'a Binned, limits: Limits) -> Self {
        Grower {
            edges,
            binned,
            limits,
            layout: Layout::new(edges),
            rows: vec![0; binned.rows],
            spare_rows: vec![0; binned.rows],
            spare_cells: Vec::new(),
            gathered: Gathered::default(),
        }
    }

    /// Grows a tree, and calls `leaf` with the rows of each of its leaves and the value by the derivatives; it returns the
    /// leaf's value, without the learning rate.
    pub(super) fn grow(
        &mut self,
        of: &Derivatives<'_>,
        mut leaf: impl FnMut(&[u32], f64) -> f64,
    ) -> Tree {
        self.rows.iter_mut().zip(0..).for_each(|(row, at)| *row = at);
        let (mut tree, mut open) = (Tree::default(), BinaryHeap::new());
        let mut leaves = Vec::new();
        let mut cells = self.cells();
        self.sum(&mut cells, 0..self.binned.rows, of);
        let mut sums = Sums::default();
        for cell in self.layout.column(&cells, 0) {
            sums.gradient += cell.gradient;
            sums.hessian += cell.hessian;
            sums.rows += cell.rows as usize;
        }
        tree.nodes.push(TreeNode::Leaf { value: 0.0, rows: sums.rows });
        // The prediction before the tree is the root's value: 0.
        let root = Made { node: 0, depth: 0, rows: 0..self.binned.rows, sums, value: 0.0 };
        match self.can_split(&root, 1) {
            true => self.consider(root, cells, &mut open, &mut leaves),
            false => leaves.push(root),
        }
        while let Some(next) = open.pop() {
            self.split(next, of, &mut tree, &mut open, &mut leaves);
            if self.limits.leaves.is_some_and(|most| leaves.len() + open.len() >= most) {
                break;
            }
        }
        let left = open.into_iter().map(|open| (open.node, open.rows, open.value));
        let left: Vec<_> =
            leaves.into_iter().map(|made| (made.node, made.rows, made.value)).chain(left).collect();
        for (node, rows, value) in left {
            let value = leaf(&self.rows[rows], value);
            if let TreeNode::Leaf { value: place, .. } = &mut tree.nodes[node] {
                *place = value * self.limits.learning_rate;
            }
        }
        tree
    }

    fn cells(&mut self) -> Vec<Cell> {
        let mut cells = self.spare_cells.pop().unwrap_or_default();
        cells.clear();
        cells.resize(self.layout.cells(), Cell::default());
        cells
    }

    fn sum(&mut self, cells: &mut [Cell], rows: Range<usize>, of: &Derivatives<'_>) {
        let rows = &self.rows[rows];
        histogram::sum(cells, &self.layout, self.binned, rows, of, &mut self.gathered);
    }

    /// Whether a tree with `leaves` leaves may have two more nodes below this one.
    fn can_split(&self, made: &Made, leaves: usize) -> bool {
        made.sums.rows >= 2 * self.limits.rules.min_rows
            && self.limits.depth.is_none_or(|most| made.depth < most)
            && self.limits.leaves.is_none_or(|most| leaves < most)
    }

    /// Looks for a node's split; without one, it is a leaf.
    fn consider(
        &mut self,
        made: Made,
        cells: Vec<Cell>,
        open: &mut BinaryHeap<Open>,
        leaves: &mut Vec<Made>,
    ) {
        let Made { node, depth, rows, sums, value } = &made;
        let mut found: Vec<Option<Split>> = vec![None; self.edges.len()];
        threads::each(&mut found, cells.len() * 4, |column, found| {
            let search = Search {
                column,
                cells: self.layout.column(&cells, column),
                missing: self.binned.missing[column],
                node: *sums,
                node_loss: sums.gradient * value,
                rules: self.limits.rules,
            };
            *found = match self.edges[column] {
                Edges::Numbers(_) => search.number(),
                Edges::Categories(_) => search.categories(),
            };
        });
        // Of equal gains, the first column's.
        let best = found
            .into_iter()
            .flatten()
            .reduce(|best, other| if other.gain > best.gain { other } else { best });
        match best {
            Some(split) => open.push(Open {
                node: *node,
                depth: *depth,
                rows: rows.clone(),
                value: *value,
                cells,
                split,
            }),
            None => {
                self.spare_cells.push(cells);
                leaves.push(made);
            }
        }
    }

    fn split(
        &mut self,
        parent: Open,
        of: &Derivatives<'_>,
        tree: &mut Tree,
        open: &mut BinaryHeap<Open>,
        leaves: &mut Vec<Made>,
    ) {
        let Open { node, depth, rows, mut cells, mut split, .. } = parent;
        if !self.binned.missing[split.column] {
            // Rows without the value occur only later: they go where most rows went.
            split.missing_left = split.left.rows > split.right.rows;
        }
        let middle = rows.start + self.partition(&split, rows.clone());
        let first = tree.nodes.len();
        let l2 = self.limits.rules.l2;
        let child = |at: usize, rows: Range<usize>, sums: Sums| Made {
            node: first + at,
            depth: depth + 1,
            rows,
            sums,
            value: sums.value(l2),
        };
        let left = child(0, rows.start..middle, split.left);
        let right = child(1, middle..rows.end, split.right);
        tree.nodes[node] = TreeNode::Split {
            feature: split.column,
            test: match (&split.test, &self.edges[split.column]) {
                (Test::OneOf(set), _) => SplitTest::Categories(*set),
                (Test::UpTo(bin), Edges::Numbers(thresholds)) => SplitTest::AtMost(
                    thresholds.get(usize::from(*bin)).copied().unwrap_or(f64::INFINITY),
                ),
                (Test::UpTo(_), Edges::Categories(_)) => SplitTest::AtMost(f64::INFINITY),
            },
            missing_left: split.missing_left,
            left: left.node,
            right: right.node,
            gain: split.gain,
            rows: rows.len(),
        };
        for made in [&left, &right] {
            tree.nodes.push(TreeNode::Leaf { value: 0.0, rows: made.rows.len() });
        }
        let count = leaves.len() + open.len() + 2;
        let can = [self.can_split(&left, count), self.can_split(&right, count)];
        if can == [false, false] {
            self.spare_cells.push(cells);
            leaves.extend([left, right]);
            return;
        }
        let small_is_left = left.rows.len() < right.rows.len();
        let mut small = self.cells();
        let small_rows = if small_is_left { left.rows.clone() } else { right.rows.clone() };
        self.sum(&mut small, small_rows, of);
        histogram::subtract(&mut cells, &small);
        let of_children = if small_is_left { [small, cells] } else { [cells, small] };
        for ((made, cells), can) in [left, right].into_iter().zip(of_children).zip(can) {
            if can {
                self.consider(made, cells, open, leaves);
            } else {
                self.spare_cells.push(cells);
                leaves.push(made);
            }
        }
    }

    /// Moves the rows that go left to the beginning of the node's, in their order. Returns their number.
    fn partition(&mut self, split: &Split, rows: Range<usize>) -> usize {
        let codes = &self.binned.codes[split.column];
        let missing = self.edges[split.column].count();
        let mut goes_left = [false; 256];
        for (code, left) in goes_left.iter_mut().enumerate() {
            *left = match code == missing {
                true => split.missing_left,
                false => split.test.holds(code as u8),
            };
        }
        let (mut left, mut right) = (rows.start, 0);
        for at in rows.clone() {
            let row = self.rows[at];
            // Both are written and one counts, which needs no branch.
            let is_left = goes_left[usize::from(codes[row as usize])];
            self.rows[left] = row;
            self.spare_rows[right] = row;
            left += usize::from(is_left);
            right += usize::from(!is_left);
        }
        self.rows[left..rows.end].copy_from_slice(&self.spare_rows[..right]);
        left - rows.start
    }
}
