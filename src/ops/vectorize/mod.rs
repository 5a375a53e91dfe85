//! Vectorizes code that is written for one row: [`Trace`] records which ops are called on a placeholder for one row,
//! and repeats these calls on all rows together, which are along a leading axis.
//!
//! It needs no rules for ops that move or compute elements, or for folds: [`RowsOf`] lowers such an op to the same code
//! with an additional axis. `rules.rs` has the ops with shaders that can be called with an additional axis. Any other
//! op is called once for each row.

pub(super) mod rows_of;
mod rules;
mod windows;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Operation, stack};
use crate::eager::{self, Observer};
use crate::error::Result;
use crate::graph::Mixer;
use crate::tensor::Tensor;
use rows_of::RowsOf;

/// An argument of a call.
#[derive(Clone)]
enum Lane {
    /// The same tensor for every row.
    One(Tensor),
    /// A tensor for each row, stacked along the first axis.
    Rows(Tensor),
}

/// The calls on placeholders for one row.
#[derive(Default)]
pub(crate) struct Trace {
    calls: RefCell<Vec<Call>>,
    /// The ids of the tensors that differ from row to row.
    varying: RefCell<HashSet<u64, BuildHasherDefault<Mixer>>>,
}

struct Call {
    /// `None` for a stopped gradient.
    op: Option<Arc<dyn Operation>>,
    inputs: SmallVec<[Source; 3]>,
    output: u64,
}

/// An input of a call: a tensor that varies, by its id, or one that is the same for every row.
enum Source {
    Varying(u64),
    Same(Tensor),
}

impl Observer for Trace {
    fn called(&self, op: &Arc<dyn Operation>, inputs: &[&Tensor], output: &Tensor) {
        let mut varying = self.varying.borrow_mut();
        if !inputs.iter().any(|x| varying.contains(&x.id())) {
            return;
        }
        let source = |x: &&Tensor| match varying.contains(&x.id()) {
            true => Source::Varying(x.id()),
            false => Source::Same((*x).clone()),
        };
        let inputs = inputs.iter().map(source).collect();
        self.calls.borrow_mut().push(Call { op: Some(op.clone()), inputs, output: output.id() });
        varying.insert(output.id());
    }

    // A tensor whose gradient is stopped still varies.
    fn stopped(&self, x: &Tensor, y: &Tensor) {
        let mut varying = self.varying.borrow_mut();
        if varying.contains(&x.id()) {
            let inputs = SmallVec::from_iter([Source::Varying(x.id())]);
            self.calls.borrow_mut().push(Call { op: None, inputs, output: y.id() });
            varying.insert(y.id());
        }
    }
}

impl Trace {
    /// Runs `f` and records its calls on tensors that depend on `stand_ins`, which have the shape of one row.
    pub(crate) fn record<R>(
        stand_ins: &[&Tensor],
        f: impl FnOnce() -> Result<R>,
    ) -> Result<(Rc<Trace>, R)> {
        let trace = Rc::new(Trace::default());
        trace.varying.borrow_mut().extend(stand_ins.iter().map(|x| x.id()));
        let done = eager::observed_by(trace.clone(), f)?;
        Ok((trace, done))
    }

    /// Repeats the calls on all rows: `given` has the rows of each placeholder. Returns for each of `wanted` its rows,
    /// stacked along a leading axis.
    pub(crate) fn replay(
        &self,
        rows: usize,
        given: &[(&Tensor, Tensor)],
        wanted: &[&Tensor],
    ) -> Result<Vec<Tensor>> {
        let mut known: HashMap<u64, Tensor, BuildHasherDefault<Mixer>> =
            given.iter().map(|(stand_in, rows)| (stand_in.id(), rows.clone())).collect();
        for call in &*self.calls.borrow() {
            let lane = |source: &Source| match source {
                Source::Varying(id) => Lane::Rows(known[id].clone()),
                Source::Same(x) => Lane::One(x.clone()),
            };
            let inputs: SmallVec<[Lane; 3]> = call.inputs.iter().map(lane).collect();
            let output = match (&call.op, &inputs[..]) {
                (Some(op), inputs) => over_rows(op, inputs, rows)?,
                (None, [Lane::Rows(x) | Lane::One(x), ..]) => x.stop_gradient(),
                (None, []) => continue,
            };
            known.insert(call.output, output);
        }
        let each = wanted.iter().map(|x| match known.get(&x.id()) {
            Some(rows) => Ok(rows.clone()),
            None => repeated(x, rows),
        });
        each.collect()
    }
}

/// Calls `op` on all rows.
fn over_rows(op: &Arc<dyn Operation>, inputs: &[Lane], rows: usize) -> Result<Tensor> {
    if let Some(y) = rules::call(&**op, inputs, rows)? {
        return Ok(y);
    }
    if let Some(y) = RowsOf::call(op, inputs, rows)? {
        return Ok(y);
    }
    one_by_one(op, inputs, rows)
}

/// Calls `op` on each row.
fn one_by_one(op: &Arc<dyn Operation>, inputs: &[Lane], rows: usize) -> Result<Tensor> {
    let parts: Result<Vec<Vec<Tensor>>> = inputs
        .iter()
        .map(|input| match input {
            Lane::Rows(x) => x.unstack(0),
            Lane::One(x) => Ok(vec![x.clone()]),
        })
        .collect();
    let parts = parts?;
    let row = |row: usize| -> Result<Tensor> {
        let inputs: SmallVec<[&Tensor; 3]> =
            parts.iter().map(|of| if of.len() == rows { &of[row] } else { &of[0] }).collect();
        eager::call(op.clone(), &inputs)
    };
    let each: Result<Vec<Tensor>> = (0..rows).map(row).collect();
    stack(each?, 0)
}

/// The lane with all its rows.
fn spread(x: &Lane, rows: usize) -> Result<Tensor> {
    match x {
        Lane::Rows(x) => Ok(x.clone()),
        Lane::One(x) => repeated(x, rows),
    }
}

/// `x` for every row.
fn repeated(x: &Tensor, rows: usize) -> Result<Tensor> {
    let mut shape = vec![rows];
    shape.extend_from_slice(x.shape());
    x.broadcast_to(shape)
}
