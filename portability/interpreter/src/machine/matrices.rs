//! Small matrices that a subgroup multiplies. Nobody says which invocation holds which element, so the first of a subgroup
//! keeps the whole matrix; memory is accessed as if by an invocation of the subgroup's own.

use super::Machine;
use super::access::Spot;
use crate::finding::Kind as Found;
use crate::layout::Kind;
use crate::numbers;
use crate::program::{Address, Matrix, Reg, Ternary};

impl Machine<'_> {
    /// The begin of a subgroup's matrix and the step between its lines, which all invocations must agree on.
    fn corner(
        &mut self,
        address: &Address,
        stride: Reg,
        party: &[u16],
        write: bool,
    ) -> (Spot, u32) {
        let places: Vec<(Spot, u32)> = party
            .iter()
            .map(|&lane| (self.offset(address, lane, write), self.get(stride, lane)))
            .collect();
        if let Some(other) = places.iter().position(|place| *place != places[0]) {
            let seen = self.seen(party[other], places[other].0.at);
            self.findings.note(Found::NotUniform, address.variable, address.line, seen);
        }
        places[0]
    }

    /// The places of a matrix's elements, column by column.
    fn places(
        matrix: Matrix,
        address: &Address,
        by_rows: bool,
        (corner, stride): (Spot, u32),
    ) -> impl Iterator<Item = Spot> + use<> {
        let unit = Self::unit(address, matrix.kind);
        (0..matrix.columns).flat_map(move |column| {
            (0..matrix.rows).map(move |row| {
                let at = if by_rows { row * stride + column } else { column * stride + row };
                corner.behind(at * unit)
            })
        })
    }

    pub(super) fn matrix_load(&mut self, to: Matrix, address: Address, stride: Reg, by_rows: bool) {
        for (keeper, who, party) in self.whole_subgroups(address.line) {
            let corner = self.corner(&address, stride, &party, false);
            for (d, at) in (to.first..).zip(Self::places(to, &address, by_rows, corner)) {
                let value = self.read(&address, at, to.kind, who, false);
                self.put_word(d, keeper, value);
            }
        }
    }

    pub(super) fn matrix_store(
        &mut self,
        from: Matrix,
        address: Address,
        stride: Reg,
        by_rows: bool,
    ) {
        for (keeper, who, party) in self.whole_subgroups(address.line) {
            let corner = self.corner(&address, stride, &party, true);
            for (a, at) in (from.first..).zip(Self::places(from, &address, by_rows, corner)) {
                let value = self.get(a, keeper);
                // Where there are more subgroups than parts of a product, some store what another has stored, and whoever
                // comes last makes no difference.
                if self.peek(&address, at) != Some(value) {
                    self.write(&address, at, from.kind, (who, false), value);
                }
            }
        }
    }

    pub(super) fn matrix_multiply(&mut self, pc: u32, [d, a, b, c]: [Matrix; 4], line: u32) {
        self.inexact = true;
        let fma = Ternary::Math(naga::MathFunction::Fma);
        for (keeper, _, _) in self.whole_subgroups(line) {
            for (column, row) in
                (0..c.columns).flat_map(|column| (0..c.rows).map(move |row| (column, row)))
            {
                let mut sum = self.get(c.first + column * c.rows + row, keeper);
                for k in 0..a.columns {
                    let x = self.get(a.first + k * a.rows + row, keeper);
                    let y = self.get(b.first + column * b.rows + k, keeper);
                    let (x, y) = (widened(a.kind, c.kind, x), widened(b.kind, c.kind, y));
                    sum = match self.noise {
                        Some(noise) => noise.ternary(pc, fma, c.kind, [x, y, sum]),
                        None => numbers::ternary(fma, c.kind, x, y, sum),
                    };
                }
                self.put_word(d.first + column * d.rows + row, keeper, sum);
            }
        }
    }
}

/// A factor as the sums' kind.
fn widened(from: Kind, to: Kind, bits: u32) -> u32 {
    if from == to { bits } else { numbers::convert(from, to, bits) }
}
