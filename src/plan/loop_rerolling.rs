//! Rerolls turns (iterations) of a program's loop into a loop inside one kernel.
//!
//! If each turn is one elementwise group that reads only results of the previous turn at the same position, a thread
//! can run all turns: the text contains one turn, and a parameter is their number. A thousand additions are one kernel,
//! which compiles as quickly as one addition.

use super::context::PlanContext;
use super::fusion_group::FusionGroup;
use super::iteration_space::{Load, LoadSource};
use super::kernel_ir::{Code, KernelIr, Operand, Output, Roll};
use crate::graph::Input;
use crate::graph::lower::{Arg, Elementwise};

/// The minimum number of turns for which one kernel pays off.
const FEW: usize = 3;
/// The most turns in one kernel: some drivers limit how long a kernel runs.
const MOST: usize = 4096;

/// Joins groups that are turns of a loop; all others do not change.
pub(super) fn roll<'a>(
    context: &PlanContext,
    groups: Vec<FusionGroup<'a>>,
) -> Vec<FusionGroup<'a>> {
    let needs = Needs::new(context, &groups);
    let mut rolled = Vec::with_capacity(groups.len());
    let mut rest = groups.into_iter().enumerate().peekable();
    while let Some((at, first)) = rest.next() {
        // A loop within a turn runs in every turn.
        let own = first.ir.as_ref().map_or(0, KernelIr::iterations);
        let most = MOST.min((context.caps.loop_iterations / (1 + own)).saturating_sub(1));
        let mut turns = vec![first];
        let mut steps: Option<Vec<Option<Operand>>> = None;
        while let Some((_, group)) = rest.peek() {
            let last = &turns[turns.len() - 1];
            let follows = turns.len() < most && follows(last, group);
            let step = match (&last.ir, &group.ir) {
                (Some(now), Some(then)) if follows => next(now, then),
                _ => None,
            };
            if step.is_none() || steps.as_ref().is_some_and(|steps| Some(steps) != step.as_ref()) {
                break;
            }
            steps = step;
            turns.extend(rest.next().map(|(_, group)| group));
        }
        let Some(steps) = steps.filter(|_| turns.len() >= FEW) else {
            rolled.extend(turns);
            continue;
        };
        // A loop ends where its values are needed by others.
        let mut counts = Vec::new();
        let mut done = 0;
        while done < turns.len() {
            let count = needs.loop_length(&turns[done..], at + done, &steps);
            counts.push(count);
            done += count;
        }
        let mut rest = turns.into_iter();
        let mut at = at;
        for count in counts {
            let own: Vec<FusionGroup> = rest.by_ref().take(count).collect();
            match count >= FEW && needs.fits(context, &own, at, &steps) {
                true => rolled.push(needs.merged(own, at, &steps)),
                false => rolled.extend(own),
            }
            at += count;
        }
    }
    rolled
}

/// True if one group is a turn of a run, and the other the next turn of the same run.
fn follows(now: &FusionGroup, then: &FusionGroup) -> bool {
    now.labels
        .iter()
        .any(|label| then.labels.iter().any(|l| l.run == label.run && l.turn == label.turn + 1))
}

/// The value of each load of turn `then` in terms of turn `now`, if both do the same work and `then` uses the results
/// and inputs of `now` at the same positions. `None` for a load that both read in the same way.
pub(super) fn next(now: &KernelIr, then: &KernelIr) -> Option<Vec<Option<Operand>>> {
    let sizes = (now.instances.len(), now.loads.len(), now.outputs.len());
    let same = sizes == (then.instances.len(), then.loads.len(), then.outputs.len())
        && now.anchor.is_none()
        && then.anchor.is_none()
        && now.space.axes == then.space.axes
        && now
            .outputs
            .iter()
            .zip(&then.outputs)
            .all(|(a, b)| (a.instance, a.dtype, a.row) == (b.instance, b.dtype, b.row));
    if !same {
        return None;
    }
    for (a, b) in now.instances.iter().zip(&then.instances) {
        let (Code::Elementwise(first), Code::Elementwise(second)) = (a.code, b.code) else {
            return None;
        };
        // The runtime scalars of two turns are equal only if one node carries them.
        let own = first.args.iter().any(|(_, arg)| matches!(arg, Arg::RuntimeScalar(_)));
        let same = alike(first, second)
            && a.operands == b.operands
            && (&a.view, a.dtype) == (&b.view, b.dtype)
            && (!own || a.node == b.node);
        if !same {
            return None;
        }
    }
    let mut steps = Vec::with_capacity(then.loads.len());
    for (i, (a, b)) in now.loads.iter().zip(&then.loads).enumerate() {
        if a.dtype != b.dtype || a.view != b.view {
            return None;
        }
        if a.source == b.source {
            steps.push(None);
            continue;
        }
        // An element of another thread would have to go through memory.
        let LoadSource::Value(Input::Node(node)) = b.source else { return None };
        if !then.space.is_flat(i) {
            return None;
        }
        let made = now.outputs.iter().find(|output| output.node == node);
        let read = |(k, load): (usize, &Load)| {
            (load.source == b.source && load.dtype == b.dtype && now.space.is_flat(k)).then_some(k)
        };
        steps.push(Some(match made {
            Some(output) if output.dtype == b.dtype => Operand::Instance(output.instance),
            Some(_) => return None,
            None => Operand::Load(now.loads.iter().enumerate().find_map(read)?),
        }));
    }
    // If no value is passed from turn to turn, all turns compute the same, or are independent.
    steps.iter().any(|step| matches!(step, Some(Operand::Instance(_)))).then_some(steps)
}

/// True if both are the same function of their operands.
fn alike(a: &Elementwise, b: &Elementwise) -> bool {
    a.name == b.name
        && a.formula == b.formula
        && a.args.iter().map(|(n, _)| n).eq(b.args.iter().map(|(n, _)| n))
}

/// The readers of each value.
struct Needs {
    /// The last group that reads each node.
    last: Vec<usize>,
    keep: Vec<bool>,
}

impl Needs {
    fn new(context: &PlanContext, groups: &[FusionGroup]) -> Self {
        let nodes = &context.graph.nodes;
        let mut needs = Needs { last: vec![0; nodes.len()], keep: vec![false; nodes.len()] };
        for (i, node) in nodes.iter().enumerate() {
            if let (true, Input::Node(root)) = (node.wanted, context.canonical[i]) {
                needs.keep[root as usize] = true;
            }
        }
        for (at, group) in groups.iter().enumerate() {
            for input in &group.reads {
                if let Input::Node(j) = *input {
                    needs.last[j as usize] = at;
                }
            }
        }
        needs
    }

    /// True if `node` is needed after the group `end`.
    fn after(&self, node: u32, end: usize) -> bool {
        self.keep[node as usize] || self.last[node as usize] > end
    }

    /// How many of `turns`, the first of which is the group `at`, one loop can run: as many as possible so that every
    /// value needed by others is available at the loop's end.
    fn loop_length(&self, turns: &[FusionGroup], at: usize, steps: &[Option<Operand>]) -> usize {
        let end = at + turns.len() - 1;
        // This is the first turn that computes a value needed after all of them.
        let needed = |group: &FusionGroup| group.outputs.iter().any(|&node| self.after(node, end));
        let first = turns.iter().position(needed).map_or(turns.len(), |turn| turn + 1);
        let most = turns.len().min(first + steps.len());
        let fits = |&count: &usize| {
            let has = self.results(&turns[..count], at, steps);
            let from = (first - 1).min(count - 1);
            turns[from..count].iter().flat_map(|group| &group.outputs).all(|node| {
                !self.after(*node, at + count - 1) || has.iter().any(|(known, _)| known == node)
            })
        };
        (first..=most).rev().find(fits).unwrap_or(first)
    }

    /// True if the adapter can bind everything that a loop over `turns` reads and stores. Values that the loop passes
    /// on from earlier turns are also results of it.
    fn fits(
        &self,
        context: &PlanContext,
        turns: &[FusionGroup],
        at: usize,
        steps: &[Option<Operand>],
    ) -> bool {
        let reads = turns[0].ir.as_ref().map_or(0, |ir| ir.reads().count());
        reads + self.results(turns, at, steps).len() <= context.caps.storage_buffers.max(4)
    }

    /// The values needed after a loop over `turns`, and where the loop has them at its end.
    fn results(
        &self,
        turns: &[FusionGroup],
        at: usize,
        steps: &[Option<Operand>],
    ) -> Vec<(u32, Operand)> {
        let last = &turns[turns.len() - 1];
        let end = at + turns.len() - 1;
        let mut results = Vec::new();
        let Some(ir) = &last.ir else { return results };
        for output in &ir.outputs {
            if self.after(output.node, end) {
                results.push((output.node, Operand::Instance(output.instance)));
            }
        }
        // An earlier turn computed this; it is passed from load to load.
        for (i, step) in steps.iter().enumerate() {
            let Some(Operand::Load(from)) = step else { continue };
            let LoadSource::Value(Input::Node(node)) = ir.loads[*from].source else { continue };
            let own = turns.iter().rev().take(steps.len() + 1).any(|t| t.outputs.contains(&node));
            if own && self.after(node, end) && results.iter().all(|(known, _)| *known != node) {
                results.push((node, Operand::Load(i)));
            }
        }
        results
    }

    /// One group that runs all `turns`.
    fn merged<'a>(
        &self,
        turns: Vec<FusionGroup<'a>>,
        at: usize,
        steps: &[Option<Operand>],
    ) -> FusionGroup<'a> {
        let count = turns.len();
        let results = self.results(&turns, at, steps);
        let dtype = |node: u32| {
            let outputs = turns.iter().filter_map(|turn| turn.ir.as_ref()).flat_map(|b| &b.outputs);
            outputs.clone().find(|o| o.node == node).map(|o| (o.instance, o.dtype))
        };
        let outputs: Vec<Output> = results
            .iter()
            .filter_map(|&(node, _)| {
                let (instance, dtype) = dtype(node)?;
                Some(Output { node, instance, dtype, row: false, replaces: None })
            })
            .collect();
        let members = turns.iter().flat_map(|turn| turn.members.iter().copied()).collect();
        let mut turns = turns.into_iter();
        let mut group = turns.next().expect("a loop has turns");
        group.members = members;
        group.outputs = outputs.iter().map(|output| output.node).collect();
        if let Some(ir) = &mut group.ir {
            ir.outputs = outputs;
            ir.roll = Some(Roll {
                turns: count,
                next: steps.to_vec(),
                results: results.into_iter().map(|(_, operand)| operand).collect(),
            });
        }
        group
    }
}
