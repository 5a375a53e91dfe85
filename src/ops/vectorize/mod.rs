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

use super::custom_gradient::{DEPTH_OF_RULES, Results, Rule};
use super::{Operation, stack};
use crate::eager::{self, Observer};
use crate::error::Result;
use crate::graph::Mixer;
use crate::runtime::Device;
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
    varying: RefCell<Ids>,
    /// In how many rules of custom gradients this is the trace of one.
    rules: usize,
}

struct Call {
    /// `None` for a stopped gradient.
    op: Option<Arc<dyn Operation>>,
    inputs: SmallVec<[Source; 3]>,
    output: u64,
    rule: Option<Arc<RowsRule>>,
}

/// The rule of a custom gradient as calls on placeholders for one row: it may use other tensors than its arguments.
struct RowsRule {
    /// Those of one row.
    results: Results,
    /// The placeholders of their gradients.
    dys: Vec<u64>,
    calls: Vec<Call>,
    /// The gradients of the inputs.
    gradients: Vec<Source>,
}

/// The ids of tensors.
type Ids = HashSet<u64, BuildHasherDefault<Mixer>>;

/// Tensors by the ids of the placeholders for one row.
type Known = HashMap<u64, Tensor, BuildHasherDefault<Mixer>>;

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
        let (op, output) = (Some(op.clone()), output.id());
        self.calls.borrow_mut().push(Call { op, inputs, output, rule: None });
        varying.insert(output);
    }

    fn has_rule(&self, output: &Tensor, results: &Results, rule: &Rule) {
        let recorded = self.calls.borrow().last().is_some_and(|call| call.output == output.id());
        if !recorded || self.rules == DEPTH_OF_RULES {
            return;
        }
        let record = || self.record_rule(output.device(), results, rule);
        // The rule gets placeholders, so its calls must not run.
        let recorded = if eager::in_trace() { record() } else { eager::traced(record) };
        // If the rule fails, it does so again where a gradient is computed.
        if let (Ok(rule), Some(call)) = (recorded, self.calls.borrow_mut().last_mut()) {
            call.rule = Some(Arc::new(rule));
        }
    }

    // A tensor whose gradient is stopped still varies.
    fn stopped(&self, x: &Tensor, y: &Tensor) {
        let mut varying = self.varying.borrow_mut();
        if varying.contains(&x.id()) {
            let inputs = SmallVec::from_iter([Source::Varying(x.id())]);
            self.calls.borrow_mut().push(Call { op: None, inputs, output: y.id(), rule: None });
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

    /// Calls `rule` on placeholders, and records its calls.
    fn record_rule(&self, device: &Device, results: &Results, rule: &Rule) -> Result<RowsRule> {
        let like = |spec| eager::placeholder_on(device, spec);
        let dys: Vec<Tensor> = results.whole().into_iter().map(like).collect();
        let mut varying = self.varying.take();
        varying.extend(dys.iter().map(Tensor::id));
        let trace = Trace { varying: varying.into(), rules: self.rules + 1, ..Trace::default() };
        let trace = Rc::new(trace);
        let gradients = eager::unrecorded(|| eager::observed_by(trace.clone(), || rule(&dys)));
        let varying = trace.varying.take();
        let source = |x: Tensor| match varying.contains(&x.id()) {
            true => Source::Varying(x.id()),
            false => Source::Same(x),
        };
        let rule = gradients.map(|gradients| {
            let gradients: Vec<Source> = gradients.into_iter().map(source).collect();
            let calls = needed(trace.calls.take(), ids(&gradients).collect());
            let dys = dys.iter().map(Tensor::id).collect();
            RowsRule { results: results.clone(), dys, calls, gradients }
        });
        self.varying.replace(varying);
        rule
    }

    /// Repeats the calls on all rows: `given` has the rows of each placeholder. Returns for each of `wanted` its rows,
    /// stacked along a leading axis.
    pub(crate) fn replay(
        &self,
        rows: usize,
        given: &[(&Tensor, Tensor)],
        wanted: &[&Tensor],
    ) -> Result<Vec<Tensor>> {
        let mut known: Known =
            given.iter().map(|(stand_in, rows)| (stand_in.id(), rows.clone())).collect();
        let calls = self.calls.borrow();
        replay(needed(&*calls, wanted.iter().map(|x| x.id()).collect()), rows, &mut known)?;
        let each = wanted.iter().map(|x| match known.get(&x.id()) {
            Some(rows) => Ok(rows.clone()),
            None => repeated(x, rows),
        });
        each.collect()
    }
}

/// The calls that make the tensors with these ids. A trace also has calls on the placeholders of traces in it, which have no values
/// afterwards.
fn needed<C: std::borrow::Borrow<Call>>(
    calls: impl IntoIterator<Item = C, IntoIter: DoubleEndedIterator>,
    mut used: Ids,
) -> Vec<C> {
    let mut needed = Vec::new();
    for call in calls.into_iter().rev() {
        let Call { output, inputs, rule, .. } = call.borrow();
        if used.contains(output) {
            used.extend(ids(inputs));
            rule.iter().for_each(|rule| rule.add_used(&mut used));
            needed.push(call);
        }
    }
    needed.reverse();
    needed
}

/// The ids of those that vary.
fn ids(sources: &[Source]) -> impl Iterator<Item = u64> + '_ {
    sources.iter().filter_map(|source| match source {
        Source::Varying(id) => Some(*id),
        Source::Same(_) => None,
    })
}

/// Repeats the calls on all rows of the known tensors.
fn replay<'a>(
    calls: impl IntoIterator<Item = &'a Call>,
    rows: usize,
    known: &mut Known,
) -> Result<()> {
    for call in calls {
        let inputs: SmallVec<[Lane; 3]> =
            call.inputs.iter().map(|source| source.lane(known)).collect();
        let output = match (&call.op, &call.rule, &inputs[..]) {
            (_, Some(rule), inputs) => RowsRule::attach(rule, inputs, rows, known)?,
            (Some(op), None, inputs) => over_rows(op, inputs, rows)?,
            (None, None, [Lane::Rows(x) | Lane::One(x), ..]) => x.stop_gradient(),
            (None, None, []) => continue,
        };
        known.insert(call.output, output);
    }
    Ok(())
}

impl Source {
    fn lane(&self, known: &Known) -> Lane {
        match self {
            Source::Varying(id) => Lane::Rows(known[id].clone()),
            Source::Same(x) => Lane::One(x.clone()),
        }
    }
}

impl RowsRule {
    /// Calls the op of the custom gradient on all rows.
    fn attach(rule: &Arc<RowsRule>, inputs: &[Lane], rows: usize, known: &Known) -> Result<Tensor> {
        let mut used = HashSet::default();
        rule.add_used(&mut used);
        let captured: Known =
            used.into_iter().filter_map(|id| Some((id, known.get(&id)?.clone()))).collect();
        let (own, same): (_, Vec<bool>) =
            (rule.clone(), inputs.iter().map(|input| matches!(input, Lane::One(_))).collect());
        let of_rows: Rule = Arc::new(move |dys| {
            let mut known = captured.clone();
            known.extend(own.dys.iter().copied().zip(dys.iter().cloned()));
            replay(&own.calls, rows, &mut known)?;
            let gradients = own.gradients.iter().zip(&same);
            let all = gradients.map(|(gradient, same)| {
                let of_rows = spread(&gradient.lane(&known), rows)?;
                if *same { of_rows.reduce_sum(0) } else { Ok(of_rows) }
            });
            all.collect()
        });
        let inputs: SmallVec<[&Tensor; 3]> =
            inputs.iter().map(|(Lane::Rows(x) | Lane::One(x))| x).collect();
        rule.results.of_rows(rows).call(&inputs, of_rows)
    }

    /// Adds the ids of the tensors that the rule, or a rule in it, uses.
    fn add_used(&self, used: &mut Ids) {
        used.extend(ids(&self.gradients));
        for call in &self.calls {
            used.extend(ids(&call.inputs));
            call.rule.iter().for_each(|rule| rule.add_used(used));
        }
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
