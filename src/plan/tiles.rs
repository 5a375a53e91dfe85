//! Transposes on a GPU: a workgroup processes a square of elements, so that both its reads and its writes are
//! contiguous.

use super::iteration_space::{Axis, Fields, IterationSpace};

/// A kernel's elements as `[outer, rows, between, 4 * quads]`, where neighbouring rows, not neighbouring columns, are neighbours
/// in the memory of some load. A workgroup has eight rows of eight quads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tiles {
    outer: usize,
    rows: usize,
    between: usize,
    quads: usize,
}

/// Rows of a workgroup, and quads of each row. Eight elements of 32 bits are 32 bytes, the smallest memory access.
const SIDE: usize = 8;

impl Tiles {
    /// Threads of a workgroup.
    pub(super) const THREADS: usize = SIDE * SIDE;

    /// The tiles of a space in which a load transposes the last axis with another one. `None` if no load does, or if an axis is so
    /// short that many threads would have no work.
    pub(super) fn find(space: &IterationSpace) -> Option<Tiles> {
        let (last, outer) = space.axes.split_last()?;
        let transposes = |axis: usize| {
            let mut steps = space.strides(axis).zip(space.strides(outer.len()));
            steps.any(|(row, column)| row.abs() == 1 && column.abs() >= SIDE as i64)
        };
        let quads = last.size / 4;
        if !space.aligned() || quads < SIDE {
            return None;
        }
        let axis = (0..outer.len())
            .rev()
            .find(|&axis| outer[axis].size >= 2 * SIDE && transposes(axis))?;
        let product = |axes: &[Axis]| axes.iter().map(|axis| axis.size).product();
        let (rows, between) = (outer[axis].size, product(&outer[axis + 1..]));
        Some(Tiles { outer: product(&outer[..axis]), rows, between, quads })
    }

    /// Tiles along the rows, and along the quads.
    fn counts(self) -> [usize; 2] {
        [self.rows.div_ceil(SIDE), self.quads.div_ceil(SIDE)]
    }

    pub(super) fn workgroups(self) -> usize {
        let [rows, quads] = self.counts();
        rows * quads * self.between * self.outer
    }

    /// Writes the statements that compute `q`, the quad of `thread`, and end a thread that has none. The next workgroup
    /// has the next rows, whose elements follow those that this one reads.
    pub(super) fn quad(self, params: &mut Fields) -> String {
        let [row_tiles, quad_tiles] = self.counts();
        let mut add = |name: &str, value: usize| params.add(format_args!("{name}"), value as u32);
        let (row_tiles, quad_tiles) = (add("row_tiles", row_tiles), add("quad_tiles", quad_tiles));
        let (rows, between) = (add("rows", self.rows), add("between", self.between));
        let (row_quads, outer) = (add("row_quads", self.quads), add("outer", self.outer));
        let threads = Self::THREADS;
        format!(
            "let tile = thread / {threads}u;\n\
             let rest = tile / {row_tiles} / {quad_tiles};\n\
             let tile_row = tile % {row_tiles} * {SIDE}u + thread % {threads}u / {SIDE}u;\n\
             let tile_quad = tile / {row_tiles} % {quad_tiles} * {SIDE}u + thread % {SIDE}u;\n\
             if (tile_row >= {rows} || tile_quad >= {row_quads} || rest / {between} >= {outer}) {{ return; }}\n\
             let q = ((rest / {between} * {rows} + tile_row) * {between} + rest % {between}) * {row_quads} + tile_quad;\n"
        )
    }
}
