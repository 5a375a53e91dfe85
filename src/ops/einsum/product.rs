//! Multiplies two operands with labelled axes, and sums and reorders the axes of one.

use super::super::MatmulOptions;
use super::super::linalg::diag_part;
use super::equation::{Label, Set, set};
use crate::error::Result;
use crate::shape::Shape;
use crate::tensor::Tensor;

/// A tensor and the label of each of its axes.
pub(super) struct Term {
    pub(super) x: Tensor,
    pub(super) labels: Vec<Label>,
}

fn has(labels: Set, label: Label) -> bool {
    labels & (1 << label) != 0
}

impl Term {
    pub(super) fn set(&self) -> Set {
        set(&self.labels)
    }

    fn size(&self, label: Label) -> usize {
        self.labels.iter().position(|&own| own == label).map_or(1, |axis| self.x.shape()[axis])
    }

    /// The number of elements along these labels.
    fn elements(&self, labels: &[Label]) -> usize {
        let sizes: Vec<usize> = labels.iter().map(|&label| self.size(label)).collect();
        Shape::from(sizes).elements()
    }

    /// Takes the diagonal of axes that share a label, and sums over the labels that are not in `keep`.
    pub(super) fn reduced(mut self, keep: Set) -> Result<Term> {
        while let Some((first, second)) = repeated(&self.labels) {
            let label = self.labels[first];
            let mut order: Vec<usize> = (0..self.labels.len()).collect();
            order.retain(|axis| ![first, second].contains(axis));
            self.labels = order.iter().map(|&axis| self.labels[axis]).chain([label]).collect();
            order.extend([first, second]);
            self.x = diag_part(&self.x.transpose(&order)?)?;
        }
        let axes: Vec<usize> =
            (0..self.labels.len()).filter(|&axis| !has(keep, self.labels[axis])).collect();
        if !axes.is_empty() {
            self.x = self.x.reduce_sum(&axes)?;
            self.labels.retain(|&label| has(keep, label));
        }
        Ok(self)
    }

    /// The same with its axes in the order of `labels`, which are its own.
    pub(super) fn ordered(self, labels: &[Label]) -> Result<Term> {
        if self.labels == labels {
            return Ok(self);
        }
        let axis = |label| self.labels.iter().position(|own| own == label);
        let order: Vec<usize> = labels.iter().filter_map(axis).collect();
        Ok(Term { x: self.x.transpose(&order)?, labels: labels.to_vec() })
    }

    /// The tensor with an axis for each of `labels`, of size 1 for labels that it does not have.
    fn aligned(self, labels: &[Label]) -> Result<Tensor> {
        let own = self.set();
        let order: Vec<Label> = labels.iter().copied().filter(|&label| has(own, label)).collect();
        let sizes: Vec<usize> = labels.iter().map(|&label| self.size(label)).collect();
        self.ordered(&order)?.x.reshape_to(sizes.into())
    }

    /// Drops the axes of size 1 whose size in `other` is different.
    fn without_spread(self, other: &Term) -> Result<Term> {
        let spread = |label: Label| {
            has(other.set(), label) && self.size(label) == 1 && other.size(label) != 1
        };
        let labels: Vec<Label> =
            self.labels.iter().copied().filter(|&label| !spread(label)).collect();
        if labels.len() == self.labels.len() {
            return Ok(self);
        }
        let sizes: Vec<usize> = labels.iter().map(|&label| self.size(label)).collect();
        Ok(Term { x: self.x.reshape_to(sizes.into())?, labels })
    }
}

fn repeated(labels: &[Label]) -> Option<(usize, usize)> {
    (0..labels.len()).find_map(|second| {
        let first = labels[..second].iter().position(|label| *label == labels[second])?;
        Some((first, second))
    })
}

/// The product of two operands, summed over the labels that are not in `keep`. The axes of the result may be in any
/// order; the order of `output` avoids a later transpose.
pub(super) fn product(a: Term, b: Term, keep: Set, output: &[Label]) -> Result<Term> {
    let (a, b) = {
        let thin = a.x.shape().contains(&1) || b.x.shape().contains(&1);
        match thin {
            true => {
                let (wide_a, wide_b) = (a.view(), b.view());
                (a.without_spread(&wide_b)?, b.without_spread(&wide_a)?)
            }
            false => (a, b),
        }
    };
    let shared = a.set() & b.set();
    // Labels of only one operand are summed first, so that the product is smaller.
    let (a, b) = (a.reduced(keep | shared)?, b.reduced(keep | shared)?);
    let pick = |labels: &[Label], from: Set| -> Vec<Label> {
        labels.iter().copied().filter(|&label| has(from, label)).collect()
    };
    let summed = shared & !keep;
    let (only_a, only_b) = (a.set() & !shared, b.set() & !shared);
    let (free_a, free_b) = (pick(&a.labels, only_a), pick(&b.labels, only_b));
    let columns = a.elements(&free_a).saturating_mul(b.elements(&free_b));
    if summed == 0 || columns == 1 {
        let all = a.set() | b.set();
        let mut labels = pick(output, all & !summed);
        let left = all & !summed & !set(&labels);
        labels.extend(pick(&a.labels, left));
        labels.extend(pick(&b.labels, left & !a.set()));
        let kept = labels.len();
        labels.extend(pick(&a.labels, summed));
        let y = a.aligned(&labels)?.multiply(b.aligned(&labels)?)?;
        let axes: Vec<usize> = (kept..labels.len()).collect();
        let y = if axes.is_empty() { y } else { y.reduce_sum(&axes)? };
        labels.truncate(kept);
        return Ok(Term { x: y, labels });
    }
    // An order of the axes that requires few or no transposes.
    let batch = shared & keep;
    let orders = |own: [&[Label]; 3], from: Set| -> Vec<Vec<Label>> {
        let mut orders: Vec<Vec<Label>> = Vec::new();
        for labels in own {
            let order = pick(labels, from);
            if set(&order) == from && !orders.contains(&order) {
                orders.push(order);
            }
        }
        orders
    };
    let mut best: Option<(usize, Plan)> = None;
    for batch in orders([&a.labels, &b.labels, output], batch) {
        for summed in orders([&a.labels, &b.labels, &[]], summed) {
            for free_a in orders([&a.labels, output, &[]], only_a) {
                for free_b in orders([&b.labels, output, &[]], only_b) {
                    for swapped in [false, true] {
                        let plan = Plan {
                            batch: batch.clone(),
                            summed: summed.clone(),
                            free: [free_a.clone(), free_b.clone()],
                            swapped,
                        };
                        let cost = plan.cost(&a, &b, output);
                        if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                            best = Some((cost, plan));
                        }
                    }
                }
            }
        }
    }
    match best {
        Some((_, plan)) => plan.multiply(a, b),
        None => unreachable!("each operand's own order is one"),
    }
}

impl Term {
    fn view(&self) -> Term {
        Term { x: self.x.clone(), labels: self.labels.clone() }
    }
}

/// A matrix product: the order of the labels in each group.
struct Plan {
    batch: Vec<Label>,
    summed: Vec<Label>,
    free: [Vec<Label>; 2],
    /// Whether the second operand provides the rows.
    swapped: bool,
}

impl Plan {
    /// An operand's two possible orders: its own labels before or after the summed ones.
    fn forms(&self, at: usize) -> [Vec<Label>; 2] {
        let (batch, free, summed) = (&self.batch[..], &self.free[at][..], &self.summed[..]);
        [[batch, free, summed].concat(), [batch, summed, free].concat()]
    }

    fn result(&self) -> Vec<Label> {
        let [rows, columns] = [usize::from(self.swapped), usize::from(!self.swapped)];
        [&self.batch[..], &self.free[rows], &self.free[columns]].concat()
    }

    /// How many elements are moved.
    fn cost(&self, a: &Term, b: &Term, output: &[Label]) -> usize {
        let mut cost = 0usize;
        for (at, x) in [a, b].into_iter().enumerate() {
            if !self.forms(at).contains(&x.labels) {
                cost = cost.saturating_add(x.x.len());
            }
        }
        let result = self.result();
        if set(&result) == set(output) && result != output {
            let free = a.elements(&self.free[0]).saturating_mul(b.elements(&self.free[1]));
            cost = cost.saturating_add(free.saturating_mul(a.elements(&self.batch)));
        }
        cost
    }

    fn multiply(self, a: Term, b: Term) -> Result<Term> {
        let labels = self.result();
        let own = a.set();
        let size = |label: &Label| if has(own, *label) { a.size(*label) } else { b.size(*label) };
        let shape: Vec<usize> = labels.iter().map(size).collect();
        // An empty tensor may have other axes whose product overflows.
        let count = |labels: &[Label]| -> usize {
            Shape::from(labels.iter().map(size).collect::<Vec<_>>()).elements()
        };
        let (batch, summed) = (count(&self.batch), count(&self.summed));
        let matrices = |x: Term, at: usize| -> Result<(Tensor, bool)> {
            let [before, behind] = self.forms(at);
            let free = x.elements(&self.free[at]);
            let turned = x.labels == behind && behind != before;
            let x = if turned { x } else { x.ordered(&before)? };
            let [rows, columns] = if turned { [summed, free] } else { [free, summed] };
            let shape = match self.batch.is_empty() {
                true => Shape::new(&[rows, columns]),
                false => Shape::new(&[batch, rows, columns]),
            };
            Ok((x.x.reshape_to(shape)?, turned))
        };
        let ((a, a_turned), (b, b_turned)) = (matrices(a, 0)?, matrices(b, 1)?);
        // Rows have the summed axis last, columns have it first.
        let y = match self.swapped {
            false => a.matmul_with(
                &b,
                MatmulOptions::new().transpose_a(a_turned).transpose_b(!b_turned),
            )?,
            true => b.matmul_with(
                &a,
                MatmulOptions::new().transpose_a(b_turned).transpose_b(!a_turned),
            )?,
        };
        Ok(Term { x: y.reshape_to(shape.into())?, labels })
    }
}
