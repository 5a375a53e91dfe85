//! Turns of a loop that one kernel goes through one after another.
//!
//! Where each turn is one elementwise group that reads what the turn before has computed at the same place, a thread can
//! go on by itself: the text holds one turn, and how many there are is a parameter. A thousand additions are one
//! kernel, and as quick to compile as a single one.

use super::context::PlanContext;
use super::fusion_group::FusionGroup;
use super::iteration_space::{Load, LoadSource};
use super::kernel_ir::{Code, KernelIr, Operand, Output, Roll};
use crate::graph::Input;
use crate::graph::lower::{Arg, Elementwise};

/// Turns for which one kernel instead of several pays.
const FEW: usize = 3;
/// Turns of one kernel: some drivers watch over how long it runs.
const MOST: usize = 4096;

/// Makes one group of those that are turns of a loop; all others stay as they are.
pub(super) fn roll<'a>(
    context: &PlanContext,
    groups: Vec<FusionGroup<'a>>,
) -> Vec<FusionGroup<'a>> {
    let needs = Needs::new(context, &groups);
    let mut rolled = Vec::with_capacity(groups.len());
    let mut rest = groups.into_iter().enumerate().peekable();
    while let Some((at, first)) = rest.next() {
        // A loop within a turn goes round in every turn.
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
        // Values that others need end a loop.
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

/// True if one group is a turn and the other the next of the same run.
fn follows(now: &FusionGroup, then: &FusionGroup) -> bool {
    now.labels
        .iter()
        .any(|label| then.labels.iter().any(|l| l.run == label.run && l.turn == label.turn + 1))
}

/// What each load of `then` is to `now`, if both kernel IRs do the same and the later one goes on from the results and
/// inputs of the earlier at the same places: `None` for what both read alike.
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
        // Numbers of a node are the same in each turn only if it is the same node.
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
        // Another thread's element would have to go through memory.
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
    // Without a value that goes from turn to turn each computes the same, or they have nothing to do with each other.
    steps.iter().any(|step| matches!(step, Some(Operand::Instance(_)))).then_some(steps)
}

/// True if both are the same function of their operands.
fn alike(a: &Elementwise, b: &Elementwise) -> bool {
    a.name == b.name
        && a.formula == b.formula
        && a.args.iter().map(|(n, _)| n).eq(b.args.iter().map(|(n, _)| n))
}

/// Who needs each value.
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

    /// True if somebody needs `node` after the group `end`.
    fn after(&self, node: u32, end: usize) -> bool {
        self.keep[node as usize] || self.last[node as usize] > end
    }

    /// How many of `turns`, of which the first is the group `at`, one loop can go through: as many as leave all that
    /// others need in what the loop has at its end.
    fn loop_length(&self, turns: &[FusionGroup], at: usize, steps: &[Option<Operand>]) -> usize {
        let end = at + turns.len() - 1;
        // The first turn that computes what somebody needs after all of them.
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

    /// True if the adapter can bind what a loop through `turns` reads and stores: older values that are handed on are
    /// results of the loop, though not of its last turn.
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

    /// The values that a loop through `turns` has at its end and somebody needs, and where it has them.
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
        // What an earlier turn has computed, on its way from load to load.
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

    /// One group that goes through all `turns`.
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
