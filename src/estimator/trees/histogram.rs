//! Histograms: for each bin of each column, the sums of the gradients and of the second derivatives of the rows in it.
//!
//! A histogram of one child of a node is summed row by row; that of the other is the difference to the node's.

use super::bins::{Binned, Edges};
use super::threads;

/// A bin's sums.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Cell {
    pub(super) gradient: f64,
    pub(super) hessian: f64,
    pub(super) rows: u32,
}

/// Where a row's loss goes: its first and second derivative by the prediction.
pub(super) struct Derivatives<'a> {
    pub(super) gradients: &'a [f32],
    /// None: 1 for each row.
    pub(super) hessians: Option<&'a [f32]>,
}

/// The cells of all columns, and the place where each column's begin.
pub(super) struct Layout {
    begin: Vec<usize>,
}

impl Layout {
    pub(super) fn new(edges: &[Edges]) -> Self {
        let mut begin = vec![0];
        for edges in edges {
            begin.push(begin[begin.len() - 1] + edges.count() + 1);
        }
        Layout { begin }
    }

    pub(super) fn cells(&self) -> usize {
        self.begin[self.begin.len() - 1]
    }

    /// Each column's part of a histogram.
    pub(super) fn columns<'a>(&self, mut cells: &'a mut [Cell]) -> Vec<&'a mut [Cell]> {
        let mut columns = Vec::with_capacity(self.begin.len() - 1);
        for pair in self.begin.windows(2) {
            let (column, rest) = cells.split_at_mut(pair[1] - pair[0]);
            columns.push(column);
            cells = rest;
        }
        columns
    }

    /// A column's part of a histogram.
    pub(super) fn column<'a>(&self, cells: &'a [Cell], column: usize) -> &'a [Cell] {
        &cells[self.begin[column]..self.begin[column + 1]]
    }
}

/// Copies of the derivatives of `rows`, so that each column reads them in order.
#[derive(Default)]
pub(super) struct Gathered {
    gradients: Vec<f32>,
    hessians: Vec<f32>,
}

impl Gathered {
    fn fill(&mut self, rows: &[u32], of: &Derivatives<'_>) {
        let pick = |to: &mut Vec<f32>, from: &[f32]| {
            to.resize(rows.len(), 0.0);
            let mut blocks: Vec<(&mut [f32], &[u32])> =
                to.chunks_mut(threads::BLOCK).zip(rows.chunks(threads::BLOCK)).collect();
            threads::each(&mut blocks, rows.len(), |_, (to, rows)| {
                to.iter_mut().zip(*rows).for_each(|(to, row)| *to = from[*row as usize]);
            });
        };
        pick(&mut self.gradients, of.gradients);
        if let Some(hessians) = of.hessians {
            pick(&mut self.hessians, hessians);
        }
    }
}

/// Sums the rows into cells that are 0.
pub(super) fn sum(
    cells: &mut [Cell],
    layout: &Layout,
    binned: &Binned,
    rows: &[u32],
    of: &Derivatives<'_>,
    gathered: &mut Gathered,
) {
    // The root has all rows in their order.
    let whole = rows.len() == binned.rows;
    if !whole {
        gathered.fill(rows, of);
    }
    let gradients = if whole { of.gradients } else { &gathered.gradients };
    let hessians = of.hessians.map(|hessians| if whole { hessians } else { &gathered.hessians });
    let mut columns = layout.columns(cells);
    let work = rows.len() * columns.len();
    threads::each(&mut columns, work, |at, cells| {
        let codes = &binned.codes[at];
        match (whole, hessians) {
            (true, None) => add(cells, codes.iter().copied(), gradients),
            (true, Some(hessians)) => add_both(cells, codes.iter().copied(), gradients, hessians),
            (false, None) => add(cells, rows.iter().map(|row| codes[*row as usize]), gradients),
            (false, Some(hessians)) => {
                add_both(cells, rows.iter().map(|row| codes[*row as usize]), gradients, hessians);
            }
        }
    });
}

fn add(cells: &mut [Cell], codes: impl Iterator<Item = u8>, gradients: &[f32]) {
    for (code, gradient) in codes.zip(gradients) {
        let cell = &mut cells[usize::from(code)];
        cell.gradient += f64::from(*gradient);
        cell.rows += 1;
    }
    cells.iter_mut().for_each(|cell| cell.hessian = f64::from(cell.rows));
}

fn add_both(
    cells: &mut [Cell],
    codes: impl Iterator<Item = u8>,
    gradients: &[f32],
    hessians: &[f32],
) {
    for ((code, gradient), hessian) in codes.zip(gradients).zip(hessians) {
        let cell = &mut cells[usize::from(code)];
        cell.gradient += f64::from(*gradient);
        cell.hessian += f64::from(*hessian);
        cell.rows += 1;
    }
}

/// Subtracts a child's histogram from its parent's: what remains is the other child's.
pub(super) fn subtract(parent: &mut [Cell], child: &[Cell]) {
    for (cell, child) in parent.iter_mut().zip(child) {
        cell.gradient -= child.gradient;
        cell.hessian -= child.hessian;
        cell.rows -= child.rows;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_difference_is_the_histogram_of_the_other_rows() {
        let edges = [Edges::Numbers(vec![0.5]), Edges::Categories(vec![3, 4, 5])];
        let layout = Layout::new(&edges);
        assert_eq!(layout.cells(), 7);
        let binned = Binned {
            codes: vec![vec![0, 1, 2, 1], vec![0, 1, 2, 3]],
            missing: vec![true; 2],
            rows: 4,
        };
        let (gradients, hessians) = ([1.0, -2.0, 4.0, 8.0], [0.5, 0.25, 1.0, 2.0]);
        for hessians in [None, Some(&hessians[..])] {
            let of = Derivatives { gradients: &gradients, hessians };
            let histogram = |rows: &[u32]| {
                let mut cells = vec![Cell::default(); layout.cells()];
                sum(&mut cells, &layout, &binned, rows, &of, &mut Gathered::default());
                cells
            };
            let (mut all, left) = (histogram(&[0, 1, 2, 3]), histogram(&[3, 0]));
            assert_eq!(all[1].gradient, 6.0);
            assert_eq!(all[1].hessian, if hessians.is_some() { 2.25 } else { 2.0 });
            subtract(&mut all, &left);
            assert_eq!(all, histogram(&[1, 2]));
        }
    }
}
