//! Assigns slots: values that never live at the same time share a buffer.

use super::context::PlanContext;
use super::horizontal_fusion::Stage;
use crate::graph::Input;

/// Assigns slots while the planner emits the steps in order.
#[derive(Default)]
pub(super) struct Slots {
    bytes: Vec<u64>,
    /// Free slots by their sizes, the smallest first.
    free: Vec<(u64, Vec<u32>)>,
}

impl Slots {
    /// A slot of at least `bytes`. With `keep` the value outlives the run, so it gets a separate slot of exactly its
    /// size: that memory stays in use after the run.
    pub(super) fn take(&mut self, bytes: u64, keep: bool) -> u32 {
        if !keep {
            // The smallest slot that fits is used, unless most of it would be idle.
            let most = bytes.saturating_mul(4).max(4096);
            let from = self.free.partition_point(|(size, _)| *size < bytes);
            let fits = self.free[from..].iter_mut().take_while(|(size, _)| *size <= most);
            let mut found = fits.filter_map(|(_, slots)| slots.pop());
            if let Some(slot) = found.next() {
                return slot;
            }
        }
        self.bytes.push(bytes);
        self.bytes.len() as u32 - 1
    }

    /// Frees `slot`, whose value is not read after this.
    pub(super) fn release(&mut self, slot: u32) {
        let bytes = self.bytes[slot as usize];
        let at = self.free.partition_point(|(size, _)| *size < bytes);
        match self.free.get_mut(at) {
            Some((size, slots)) if *size == bytes => slots.push(slot),
            _ => self.free.insert(at, (bytes, vec![slot])),
        }
    }

    pub(super) fn bytes(&self, slot: u32) -> u64 {
        self.bytes[slot as usize]
    }

    pub(super) fn into_bytes(self) -> Vec<u64> {
        self.bytes
    }
}

/// The lifetimes of values.
pub(super) struct Lifetimes {
    /// The last stage that reads each node or leaf.
    nodes: Vec<Option<usize>>,
    leaves: Vec<Option<usize>>,
    /// The nodes that outlive the run.
    pub(super) keep: Vec<bool>,
    /// The leaves that do not outlive it.
    pub(super) donated: Vec<bool>,
}

impl Lifetimes {
    pub(super) fn new(context: &PlanContext, stages: &[Stage]) -> Self {
        let graph = context.graph;
        let mut lives = Lifetimes {
            nodes: vec![None; graph.nodes.len()],
            leaves: vec![None; graph.leaves.len()],
            keep: vec![false; graph.nodes.len()],
            donated: (0..graph.leaves.len())
                .map(|leaf| graph.donated.get(leaf).is_some_and(|donated| *donated))
                .collect(),
        };
        for (i, _) in graph.nodes.iter().enumerate().filter(|(_, node)| node.wanted) {
            match context.canonical[i] {
                Input::Node(root) => lives.keep[root as usize] = true,
                // Its alias outlives the run.
                Input::Leaf(leaf) => lives.donated[leaf as usize] = false,
            }
        }
        let groups = stages.iter().enumerate();
        for (at, group) in groups.flat_map(|(at, stage)| stage.iter().map(move |c| (at, c))) {
            for input in &group.reads {
                match *input {
                    Input::Node(j) => lives.nodes[j as usize] = Some(at),
                    Input::Leaf(j) => lives.leaves[j as usize] = Some(at),
                }
            }
            for &node in &group.outputs {
                lives.nodes[node as usize] = Some(at);
            }
        }
        lives
    }

    pub(super) fn last(&self, input: Input) -> Option<usize> {
        match input {
            Input::Node(j) => self.nodes[j as usize],
            Input::Leaf(j) => self.leaves[j as usize],
        }
    }

    /// For each stage, the nodes that are not needed after it.
    pub(super) fn ends(&self, stages: usize) -> Vec<Vec<u32>> {
        let mut ends = vec![Vec::new(); stages];
        for (i, last) in self.nodes.iter().enumerate() {
            if let (Some(at), false) = (*last, self.keep[i]) {
                ends[at].push(i as u32);
            }
        }
        ends
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_released_slot_serves_again() {
        let mut slots = Slots::default();
        let a = slots.take(1000, false);
        let b = slots.take(1000, false);
        assert_ne!(a, b);
        slots.release(a);
        assert_eq!(slots.take(900, false), a);
        slots.release(b);
        // A value that outlives the run never shares a slot.
        assert_ne!(slots.take(1000, true), b);
        // A slot that would be mostly idle is not used.
        assert_eq!(slots.take(8, false), b);
        assert_eq!(slots.into_bytes(), [1000, 1000, 1000]);
    }

    #[test]
    fn the_smallest_that_fits_is_taken() {
        let mut slots = Slots::default();
        let [large, small] = [slots.take(100_000, false), slots.take(50_000, false)];
        slots.release(large);
        slots.release(small);
        assert_eq!(slots.take(40_000, false), small);
        assert_eq!(slots.take(1_000, false), 2);
    }
}
