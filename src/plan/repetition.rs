//! Finds where a program repeats itself: its loops, equal layers, time steps. A *turn* is one iteration of such a
//! repetition.
//!
//! A graph has no loops, but contains the ops that a loop called in each iteration. This file finds these turns from
//! the sequence of ops alone, so that fusion groups can end at the same positions in each turn. Then every turn has the
//! same kernels, and a program of a hundred turns compiles no more than one of ten.

use std::hash::Hasher;

use smallvec::SmallVec;

use super::context::PlanContext;
use super::ir_builder::{CALL, STRIDED};
use crate::graph::lower::Lowering;
use crate::graph::{HashIndex, Input, Mixer};

/// The turns that a node, or all nodes of a group, belong to; at most one of each run.
pub(super) type Labels = SmallVec<[Label; 2]>;

/// A turn of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Label {
    pub(super) run: u32,
    pub(super) turn: u32,
}

/// A part of the graph in which the same ops repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// How many nodes a turn has.
    pub(super) period: usize,
    /// The first node of the first whole turn.
    pub(super) first: usize,
    /// The number of whole turns, which are numbered from 1. An incomplete turn before them has number 0.
    pub(super) count: usize,
    /// Some nodes of a turn need separate kernels.
    pub(super) heavy: bool,
    /// How many turns may share a kernel: a power of two.
    pub(super) together: usize,
}

/// The runs of a graph, and the turns of its nodes.
#[derive(Default)]
pub(super) struct Repetition {
    pub(super) runs: Vec<Run>,
    of: Vec<Labels>,
    /// Short and light repetitions in which each turn uses results of the previous one: period, range, and count.
    chains: Vec<(usize, std::ops::Range<usize>, usize)>,
}

/// The minimum number of turns of a repetition.
const FEW: usize = 4;
/// A light repetition of up to this many turns counts as repeated code, not as a loop; it may share one kernel.
const BY_HAND: usize = 8;
/// A chain belongs to a loop if their numbers of turns differ by at most this: a sum has one addition fewer than terms,
/// and the first and the last turn of a loop differ from the others.
const ALIKE: usize = 2;
/// The lengths of the op sequences that must repeat.
const WINDOWS: [usize; 3] = [1, 4, 16];
/// The number of periods that the search tries: the most frequent ones.
const PERIODS: usize = 32;
/// The number of nested runs that a node can belong to.
const NESTED: usize = 3;

impl Repetition {
    /// Finds the turns of the graph. It skips a run whose turns are few and together weigh less than `light`.
    pub(super) fn find(context: &PlanContext, light: usize) -> Self {
        let nodes = context.graph.nodes.len();
        let mut turns = Repetition { of: vec![Labels::new(); nodes], ..Repetition::default() };
        if nodes < FEW {
            return turns;
        }
        let symbols: Vec<u64> = (0..nodes).map(|i| context.graph.symbol(i)).collect();
        for period in periods(&symbols) {
            let mut at = period;
            while at < nodes {
                let start = at;
                while at < nodes && symbols[at] == symbols[at - period] {
                    at += 1;
                }
                if at - start >= (FEW - 1) * period {
                    turns.add(context, period, start - period..at, light);
                }
                at += 1;
            }
        }
        // Code that sums a gradient over the turns of a loop is also a loop, however few they are.
        for (period, range, count) in std::mem::take(&mut turns.chains) {
            let alike = |run: &Run| run.heavy && run.count.abs_diff(count) <= ALIKE;
            if turns.runs.iter().any(alike) {
                turns.add(context, period, range, 0);
            }
        }
        turns
    }

    /// The turns that a node belongs to.
    pub(super) fn labels(&self, node: usize) -> Labels {
        self.of.get(node).cloned().unwrap_or_default()
    }

    /// Makes a run of the ops in `range`, unless a run with a shorter period explains them already.
    fn add(
        &mut self,
        context: &PlanContext,
        period: usize,
        range: std::ops::Range<usize>,
        light: usize,
    ) {
        let known = |label: &Label| {
            let run = &self.runs[label.run as usize];
            let end = run.first + (run.count + 1) * run.period;
            period.is_multiple_of(run.period)
                && run.first <= range.start + run.period
                && range.end <= end
        };
        let middle = (range.start + range.end) / 2;
        if self.of[middle].iter().any(known) {
            return;
        }
        let first = range.start + phase(context, period, &range);
        let count = (range.end - first) / period;
        let (weight, heavy) = weight(context, first + period..first + 2 * period);
        if count < FEW {
            return;
        }
        if count <= BY_HAND && !heavy && weight * count <= light {
            if goes_on(context, first + period..first + 2 * period) {
                self.chains.push((period, range, count));
            }
            return;
        }
        let run = self.runs.len() as u32;
        for (i, labels) in range.clone().zip(&mut self.of[range]) {
            if labels.len() < NESTED {
                let turn = if i < first { 0 } else { (i - first) / period + 1 };
                labels.push(Label { run, turn: turn as u32 });
            }
        }
        self.runs.push(Run { period, first, count, heavy, together: 1 });
    }

    /// The first of the turns with which the turn of `label` may share kernels.
    fn part(&self, label: Label) -> u32 {
        let Run { count, together, .. } = self.runs[label.run as usize];
        let turn = label.turn as usize;
        if together == 1 || turn == 0 || turn > count {
            return label.turn;
        }
        // As many full kernels as possible, then halves, so that the rest of any count has few sizes.
        let turn = turn - 1;
        let mut from = count / together * together;
        if turn < from {
            return (turn / together * together + 1) as u32;
        }
        let mut size = together;
        while from + size > count || turn >= from + size {
            if from + size <= count {
                from += size;
            }
            size /= 2;
        }
        from as u32 + 1
    }

    /// The labels of two groups together, or `None` if their turns may not share a kernel.
    pub(super) fn join(&self, a: &Labels, b: &Labels) -> Option<Labels> {
        let mut all = a.clone();
        for label in b {
            match a.iter().find(|known| known.run == label.run) {
                None => all.push(*label),
                Some(known) if known.turn == label.turn => {}
                Some(known) if self.part(*known) == self.part(*label) => {}
                Some(_) => return None,
            }
        }
        Some(all)
    }
}

/// The distances at which sequences of ops repeat, the shortest first.
fn periods(symbols: &[u64]) -> Vec<usize> {
    let most = symbols.len() / FEW;
    let mut counts = vec![0u32; most + 1];
    for window in WINDOWS {
        let mut last = HashIndex::default();
        for (i, sequence) in symbols.windows(window).enumerate() {
            let mut hash = Mixer::default();
            sequence.iter().for_each(|&symbol| hash.write_u64(symbol));
            if let Some(before) = last.insert(hash.finish(), i as u32) {
                let distance = i - before as usize;
                if distance <= most {
                    counts[distance] += 1;
                }
            }
        }
    }
    // The most frequent periods, in descending order.
    let mut often: Vec<(u32, usize)> = Vec::new();
    for counted in counts.into_iter().zip(0..).filter(|(count, _)| *count as usize >= FEW - 1) {
        often.insert(often.partition_point(|known| *known > counted), counted);
        often.truncate(PERIODS);
    }
    let mut periods: Vec<usize> = often.into_iter().map(|(_, period)| period).collect();
    periods.sort_unstable();
    periods
}

/// The best position in the period for the beginning of a turn: where the fewest values are passed to a kernel that
/// could have computed them itself.
fn phase(context: &PlanContext, period: usize, range: &std::ops::Range<usize>) -> usize {
    let nodes = &context.graph.nodes;
    // The last node that could compute each node itself.
    let mut reach: Vec<usize> = range.clone().collect();
    for i in range.clone() {
        if matches!(context.lowerings[i], Lowering::Kernels(_) | Lowering::Alias) {
            continue;
        }
        for input in &nodes[i].inputs {
            if let Input::Node(j) = context.canonical(*input) {
                let j = j as usize;
                if j >= range.start && !context.is_constant(j) {
                    reach[j - range.start] = i;
                }
            }
        }
    }
    // How many values are alive between each two nodes, summed over the turns; a value that lives for whole turns
    // counts equally everywhere.
    let mut steps = vec![0i64; period + 1];
    for (i, &last) in range.clone().zip(&reach) {
        let (from, to) = (i - range.start + 1, last - range.start + 1);
        let (from, rest) = (from % period, (to - from) % period);
        steps[from] += 1;
        match (from + rest).checked_sub(period) {
            None => steps[from + rest] -= 1,
            Some(over) => {
                steps[period] -= 1;
                steps[0] += 1;
                steps[over] -= 1;
            }
        }
    }
    let mut crossing = 0;
    let mut best = (i64::MAX, 0);
    for (phase, step) in steps.iter().enumerate().take(period) {
        crossing += step;
        best = best.min((crossing, phase));
    }
    best.1
}

/// True if a node of `turn` reads a node of the turn before.
fn goes_on(context: &PlanContext, turn: std::ops::Range<usize>) -> bool {
    let before = turn.start - turn.len()..turn.start;
    let inputs = turn.flat_map(|i| &context.graph.nodes[i].inputs);
    let mut roots = inputs.map(|input| context.canonical(*input));
    roots.any(|root| matches!(root, Input::Node(j) if before.contains(&(j as usize))))
}

/// The compilation cost of the nodes of a turn in one kernel, and whether some need separate kernels.
pub(super) fn weight(context: &PlanContext, turn: std::ops::Range<usize>) -> (usize, bool) {
    let mut sum = 0;
    let mut heavy = false;
    for lowering in turn.filter_map(|i| context.lowerings.get(i)) {
        match lowering {
            Lowering::Elementwise(elementwise) if elementwise.is_view() => sum += STRIDED,
            Lowering::Elementwise(elementwise) => sum += elementwise.formula.cost() + CALL,
            Lowering::Kernels(_) => heavy = true,
            Lowering::Reduce(_) => heavy = true,
            Lowering::Alias => {}
        }
    }
    (sum, heavy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(runs: Vec<Run>) -> Repetition {
        Repetition { runs, ..Repetition::default() }
    }

    /// The parts of the turns 0 to `count + 1` of a run of which `together` may share a kernel.
    fn parts(count: usize, together: usize) -> Vec<u32> {
        let all = runs(vec![Run { period: 3, first: 5, count, heavy: false, together }]);
        (0..count as u32 + 2).map(|turn| all.part(Label { run: 0, turn })).collect()
    }

    #[test]
    fn turns_are_gathered_in_powers_of_two() {
        assert_eq!(parts(5, 1), [0, 1, 2, 3, 4, 5, 6]);
        // Four and four; then the rest as two and one. The nodes before and after the whole turns are separate.
        assert_eq!(parts(8, 4), [0, 1, 1, 1, 1, 5, 5, 5, 5, 9]);
        assert_eq!(parts(11, 4), [0, 1, 1, 1, 1, 5, 5, 5, 5, 9, 9, 11, 12]);
        assert_eq!(parts(3, 2), [0, 1, 1, 3, 4]);
        assert_eq!(parts(1, 1), [0, 1, 2]);
    }

    #[test]
    fn groups_of_other_turns_stay_apart() {
        let all = runs(vec![
            Run { period: 3, first: 0, count: 8, heavy: false, together: 2 },
            Run { period: 5, first: 0, count: 8, heavy: false, together: 1 },
        ]);
        let of = |labels: &[(u32, u32)]| -> Labels {
            labels.iter().map(|&(run, turn)| Label { run, turn }).collect()
        };
        let join = |a, b| all.join(&of(a), &of(b));
        assert_eq!(join(&[(0, 1)], &[(0, 1)]), Some(of(&[(0, 1)])));
        assert_eq!(join(&[(0, 1)], &[(0, 2)]), Some(of(&[(0, 1)])), "they are gathered");
        assert_eq!(join(&[(0, 2)], &[(0, 3)]), None);
        assert_eq!(join(&[(1, 1)], &[(1, 2)]), None);
        assert_eq!(join(&[(0, 1)], &[(1, 7)]), Some(of(&[(0, 1), (1, 7)])));
        assert_eq!(join(&[(0, 1), (1, 2)], &[(1, 3)]), None);
        assert_eq!(join(&[], &[]), Some(of(&[])));
    }

    #[test]
    fn periods_are_found_whatever_they_hold() {
        let repeated = |turn: &[u64], count: usize| -> Vec<u64> {
            let mut all = vec![90, 91, 92];
            (0..count).for_each(|_| all.extend(turn));
            all.extend([93, 94]);
            all
        };
        assert!(periods(&repeated(&[1], 9)).contains(&1));
        assert!(periods(&repeated(&[1, 2, 3], 5)).contains(&3));
        // Each op occurs twice in a row in a turn.
        assert!(periods(&repeated(&[1, 1, 2, 2], 6)).contains(&4));
        // A loop of ten inside each turn.
        let mut turn = vec![7; 10];
        turn.push(8);
        let found = periods(&repeated(&turn, 6));
        assert!(found.contains(&11) && found.contains(&1), "{found:?}");
        assert!(periods(&(0..50).collect::<Vec<_>>()).is_empty());
    }
}
