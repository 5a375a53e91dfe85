//! Definitions shared by the fused layer, its gradient and its second-order gradient: the kinds of cells, and the
//! layout of the states and gates of all steps in one tensor.

use crate::error::Result;
use crate::graph::attributes::Attribute;
use crate::tensor::Tensor;

#[derive(Debug, Clone, Copy, Hash, PartialEq, Eq, Attribute)]
pub(super) enum Cell {
    Lstm,
    /// With the reset after the product.
    Gru,
    /// With tanh.
    Simple,
}

impl Cell {
    /// The number of gates in the product.
    pub(super) fn gates(self) -> usize {
        match self {
            Cell::Lstm => 4,
            Cell::Gru => 3,
            Cell::Simple => 1,
        }
    }

    /// The number of parts of the state: h, and the LSTM's c.
    pub(super) fn states(self) -> usize {
        if self == Cell::Lstm { 2 } else { 1 }
    }

    /// How many parts a step stores: the state, and the gate values that its gradient needs.
    pub(super) fn stored(self) -> usize {
        match self {
            Cell::Lstm => 6,
            Cell::Gru => 5,
            Cell::Simple => 1,
        }
    }

    /// How many parts a step's gradient stores, and the first of those that are passed on without the product.
    pub(super) fn passed(self) -> (usize, usize) {
        match self {
            Cell::Lstm => (6, 4),
            Cell::Gru => (5, 4),
            Cell::Simple => (2, 1),
        }
    }

    pub(super) fn flags(self, masked: bool) -> [(&'static str, bool); 4] {
        let is = |cell| self == cell;
        [
            ("LSTM", is(Cell::Lstm)),
            ("GRU", is(Cell::Gru)),
            ("SIMPLE", is(Cell::Simple)),
            ("MASKED", masked),
        ]
    }
}

/// The attributes that the layer and its gradient share.
#[derive(Debug, Clone, Copy, Hash, PartialEq, Eq, Attribute)]
pub(super) struct SequenceAttributes {
    pub(super) cell: Cell,
    pub(super) steps: usize,
    pub(super) batch: usize,
    pub(super) units: usize,
    pub(super) backwards: bool,
    pub(super) masked: bool,
}

impl SequenceAttributes {
    /// `[T+1,B,P,U]`, or `[T,B,Q,U]` of the gradient.
    pub(super) fn packed(&self) -> [usize; 4] {
        [self.steps + 1, self.batch, self.cell.stored(), self.units]
    }

    /// The index in the input of the layer's step `step`.
    pub(super) fn place(&self, step: usize) -> usize {
        if self.backwards { self.steps - 1 - step } else { step }
    }

    /// Part `part` of the steps from `first` on, `[count,B,U]`.
    pub(super) fn states(
        &self,
        y: &Tensor,
        part: usize,
        first: usize,
        count: usize,
    ) -> Result<Tensor> {
        let part = y.slice(&[first, 0, part, 0], &[count as i64, -1, 1, -1])?;
        part.reshape_to([count, self.batch, self.units].into())
    }
}
