//! The best split of a node: the threshold, or the set of categories, that lowers the loss the most.
//!
//! The loss is approximated to second order (Chen and Guestrin, 2016, <https://arxiv.org/abs/1603.02754>, equation 7): with sums
//! `G` and `H` of the first and second derivatives over a node's rows, its best value is `-G / (H + l2)`, which changes the loss by
//! `-G^2 / (H + l2)` (halved).

use super::histogram::Cell;

/// A node with a smaller sum of second derivatives is not split off.
const MIN_HESSIAN: f64 = 1e-3;
/// Categories with fewer rows, weighted by their second derivatives, stay in the right child; and the sum by which the ratio that
/// orders categories is smoothed.
const MIN_CATEGORY: f64 = 10.0;
/// Keeps a value finite where no row has a second derivative.
const EPSILON: f64 = 1e-15;

/// Which bins go left.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    /// Those up to this one.
    UpTo(u8),
    /// A set, with a bit for each.
    OneOf([u64; 4]),
}

impl Test {
    /// Whether a bin other than that of missing values goes left.
    pub(super) fn holds(&self, code: u8) -> bool {
        match self {
            Test::UpTo(last) => code <= *last,
            Test::OneOf(set) => contains(set, code),
        }
    }
}

/// Whether a set has a bin.
pub(crate) fn contains(set: &[u64; 4], code: u8) -> bool {
    set[usize::from(code >> 6)] >> (code & 63) & 1 == 1
}

/// The sums over a node's rows.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) gradient: f64,
    pub(super) hessian: f64,
    pub(super) rows: usize,
}

impl Sums {
    fn add(&mut self, cell: &Cell) {
        self.gradient += cell.gradient;
        self.hessian += cell.hessian;
        self.rows += cell.rows as usize;
    }

    fn without(&self, other: &Sums) -> Sums {
        Sums {
            gradient: self.gradient - other.gradient,
            hessian: self.hessian - other.hessian,
            rows: self.rows - other.rows,
        }
    }

    /// The value that lowers the loss the most.
    pub(super) fn value(&self, l2: f64) -> f64 {
        -self.gradient / (self.hessian + l2 + EPSILON)
    }

    fn loss(&self, l2: f64) -> f64 {
        self.gradient * self.value(l2)
    }
}

/// A split of a node.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Split {
    pub(super) column: usize,
    pub(super) test: Test,
    pub(super) missing_left: bool,
    pub(super) gain: f64,
    pub(super) left: Sums,
    pub(super) right: Sums,
}

/// What children must have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) min_rows: usize,
    pub(super) l2: f64,
}

/// Whether a child is large enough.
enum Fit {
    Both,
    /// The side that grows is too small yet.
    Grows,
    /// The side that shrinks is too small.
    Shrunk,
}

impl Rules {
    fn fit(&self, grows: &Sums, shrinks: &Sums) -> Fit {
        let small = |sums: &Sums| sums.rows < self.min_rows || sums.hessian < MIN_HESSIAN;
        match (small(grows), small(shrinks)) {
            (true, _) => Fit::Grows,
            (false, true) => Fit::Shrunk,
            (false, false) => Fit::Both,
        }
    }
}

/// The search in one column of a node.
pub(super) struct Search<'a> {
    pub(super) column: usize,
    /// The column's cells; the last has the missing values.
    pub(super) cells: &'a [Cell],
    /// Whether the column has missing values in any row of the training data.
    pub(super) missing: bool,
    /// The sums over the node.
    pub(super) node: Sums,
    /// The change of the loss that the node itself makes as a leaf.
    pub(super) node_loss: f64,
    pub(super) rules: Rules,
}

impl Search<'_> {
    fn better(&self, best: &Option<Split>, left: &Sums, right: &Sums) -> Option<f64> {
        let gain = self.node_loss - left.loss(self.rules.l2) - right.loss(self.rules.l2);
        (gain > best.as_ref().map_or(0.0, |best| best.gain)).then_some(gain)
    }

    /// The best threshold. Missing values go right, in a scan from the left, or left, in a scan from the right.
    pub(super) fn number(&self) -> Option<Split> {
        let bins = self.cells.len() - 1;
        let mut best = None;
        let mut scan = |order: &mut dyn Iterator<Item = (usize, usize)>, missing_left: bool| {
            let mut near = Sums::default();
            for (bin, last) in order {
                near.add(&self.cells[bin]);
                let far = self.node.without(&near);
                match self.rules.fit(&near, &far) {
                    Fit::Grows => continue,
                    Fit::Shrunk => break,
                    Fit::Both => {}
                }
                let (left, right) = if missing_left { (far, near) } else { (near, far) };
                if let Some(gain) = self.better(&best, &left, &right) {
                    let test = Test::UpTo(last as u8);
                    best =
                        Some(Split { column: self.column, test, missing_left, gain, left, right });
                }
            }
        };
        // With missing values, all numbers may go left.
        let end = if self.missing { bins } else { bins - 1 };
        scan(&mut (0..end).map(|bin| (bin, bin)), false);
        if self.missing {
            scan(&mut (1..bins).rev().map(|bin| (bin, bin - 1)), true);
        }
        best
    }

    /// The best set of categories. Ordered by the ratio of their sums, the best set is a beginning of the order (Fisher 1958, "On
    /// Grouping for Maximum Homogeneity"). Missing values are one more category. Of the two children, the left one has at most half
    /// of the categories, and the right one those that are rare or unknown.
    pub(super) fn categories(&self) -> Option<Split> {
        let bins = self.cells.len() - 1;
        let support = self.node.rows as f64 / self.node.hessian;
        let used = |bin: &usize| self.cells[*bin].hessian * support >= MIN_CATEGORY;
        let mut order: Vec<usize> = (0..bins + usize::from(self.missing)).filter(used).collect();
        let ratio =
            |bin: &usize| self.cells[*bin].gradient / (self.cells[*bin].hessian + MIN_CATEGORY);
        order.sort_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        if order.len() < 2 {
            return None;
        }
        let mut best = None;
        let half = order.len().div_ceil(2);
        for backward in [false, true] {
            if backward {
                order.reverse();
            }
            let (mut left, mut set) = (Sums::default(), [0u64; 4]);
            // The halves of an even number of categories are compared once.
            for &bin in &order[..half - usize::from(backward)] {
                left.add(&self.cells[bin]);
                set[bin >> 6] |= 1 << (bin & 63);
                let right = self.node.without(&left);
                match self.rules.fit(&left, &right) {
                    Fit::Grows => continue,
                    Fit::Shrunk => break,
                    Fit::Both => {}
                }
                if let Some(gain) = self.better(&best, &left, &right) {
                    let (test, missing_left) = (Test::OneOf(set), contains(&set, bins as u8));
                    best =
                        Some(Split { column: self.column, test, missing_left, gain, left, right });
                }
            }
        }
        best
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn search(cells: &[Cell], missing: bool, min_rows: usize) -> Search<'_> {
        let mut node = Sums::default();
        cells.iter().for_each(|cell| node.add(cell));
        let rules = Rules { min_rows, l2: 0.0 };
        Search { column: 3, cells, missing, node, node_loss: 0.0, rules }
    }

    fn cell(gradient: f64, rows: u32) -> Cell {
        Cell { gradient, hessian: f64::from(rows), rows }
    }

    #[test]
    fn missing_values_go_to_the_better_side() {
        // Losses: left [-8, rows 4], right [8, rows 4]; the missing rows have the gradients of one side.
        for (missing, left) in [(-6.0, true), (6.0, false)] {
            let cells = [cell(-4.0, 2), cell(-4.0, 2), cell(8.0, 4), cell(missing, 3)];
            let split = search(&cells, true, 1).number().unwrap();
            assert_eq!((split.test, split.missing_left), (Test::UpTo(1), left));
            assert_eq!(split.left.rows, if left { 7 } else { 4 });
        }
        // Only missing or not tells the rows apart.
        let cells = [cell(3.0, 3), cell(3.0, 3), cell(-9.0, 3)];
        let split = search(&cells, true, 1).number().unwrap();
        assert_eq!((split.test, split.missing_left, split.left.rows), (Test::UpTo(1), false, 6));
        // (6^2 / 6 + 9^2 / 3)
        assert!((split.gain - 33.0).abs() < 1e-9);
    }

    #[test]
    fn children_have_enough_rows() {
        let cells = [cell(-9.0, 1), cell(1.0, 3), cell(4.0, 4), cell(0.0, 0)];
        assert_eq!(search(&cells, false, 1).number().unwrap().left.rows, 1);
        assert_eq!(search(&cells, false, 2).number().unwrap().left.rows, 4);
        assert_eq!(search(&cells, false, 5).number(), None);
    }

    #[test]
    fn categories_are_grouped_by_their_ratio() {
        // 0 and 2 belong together; 3 is rare.
        let cells = [cell(-20.0, 20), cell(30.0, 20), cell(-18.0, 20), cell(5.0, 5), cell(0.0, 0)];
        let split = search(&cells, false, 1).categories().unwrap();
        assert_eq!(split.test, Test::OneOf([0b101, 0, 0, 0]));
        assert_eq!((split.left.rows, split.right.rows), (40, 25));
        assert!(split.test.holds(2) && !split.test.holds(3) && !split.test.holds(255));
        // One category that counts cannot be split off.
        assert_eq!(search(&cells[2..], false, 1).categories(), None);
        // Missing values are a category.
        let cells = [cell(10.0, 20), cell(-10.0, 20), cell(-12.0, 20)];
        let split = search(&cells, true, 1).categories().unwrap();
        assert_eq!((split.test, split.missing_left), (Test::OneOf([0b110, 0, 0, 0]), true));
    }
}
