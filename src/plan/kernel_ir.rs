//! The IR of one kernel: nodes at positions of the kernel's iteration space, in the order of evaluation.
//!
//! The planner builds a [`KernelIr`] for nodes that should share a kernel. It exists only if they can: strides over the
//! kernel's axes must express the positions at which each node is needed, all folds must run over the same axes, and a
//! node with a custom shader must be the first.

use std::hash::{Hash, Hasher};

use smallvec::{SmallVec, smallvec};

use super::iteration_space::{IterationSpace, Load, LoadSource};
use super::tiles::Tiles;
use crate::dtype::{DType, Register};
use crate::graph::Mixer;
use crate::graph::lower::{Elementwise, Reduction, SELECT, Strided};

pub(super) struct KernelIr<'a> {
    pub(super) space: IterationSpace,
    pub(super) instances: Vec<Instance<'a>>,
    pub(super) loads: Vec<Load>,
    pub(super) outputs: Vec<Output>,
    /// The node with a custom shader; the other nodes use its results.
    pub(super) anchor: Option<u32>,
    /// The anchor passes on whole vectors of four, which begin at a multiple of four.
    pub(super) quads: bool,
    /// The loop in which the kernel computes the IR several times, if it does.
    pub(super) roll: Option<Roll>,
    /// How workgroups share the elements of a kernel that transposes.
    pub(super) tiles: Option<Tiles>,
}

/// A loop whose turns do the same work, each using results of the previous turn.
pub(super) struct Roll {
    pub(super) turns: usize,
    /// The value of each load in the next turn: a result of this turn, the value of another load, or the same value.
    pub(super) next: Vec<Option<Operand>>,
    /// The value that the kernel stores at the end for each output: an instance of the last turn, or the value that a
    /// load would have in the next turn.
    pub(super) results: Vec<Operand>,
}

/// A node at certain positions.
pub(super) struct Instance<'a> {
    pub(super) node: u32,
    pub(super) view: Strided,
    pub(super) code: Code<'a>,
    pub(super) operands: Vec<Operand>,
    pub(super) dtype: DType,
    /// How many folds must be complete before it; the pass with this number computes it.
    pub(super) level: usize,
    /// All elements that are folded together share this value.
    pub(super) row: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Code<'a> {
    Elementwise(&'a Elementwise),
    Reduce(&'a Reduction),
    Anchor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Operand {
    Load(usize),
    /// Whether the view of a load has an element there.
    Inside(usize),
    Instance(usize),
    RuntimeScalar(usize),
}

pub(super) struct Output {
    pub(super) node: u32,
    pub(super) instance: usize,
    pub(super) dtype: DType,
    /// There is one for each row, not for each element.
    pub(super) row: bool,
    /// The load whose buffer the kernel writes it into.
    pub(super) replaces: Option<usize>,
}

impl KernelIr<'_> {
    pub(super) fn register(&self, operand: Operand) -> Register {
        match operand {
            Operand::Load(i) => self.loads[i].dtype.register(),
            Operand::Inside(_) => Register::Bool,
            Operand::Instance(i) => self.instances[i].dtype.register(),
            Operand::RuntimeScalar(_) => Register::U32,
        }
    }

    /// The values in memory that the kernel reads, in the order of their bindings.
    pub(super) fn reads(&self) -> impl Iterator<Item = (usize, &Load)> {
        self.loads.iter().enumerate().filter(|(_, load)| load.source != LoadSource::Index)
    }

    /// The loads whose buffers output `k` may overwrite: each thread reads there only the element that it writes.
    pub(super) fn replaceable(&self, k: usize) -> Vec<usize> {
        let aligned = self.anchor.is_none() || self.quads;
        if self.levels() > 0 || !aligned || self.outputs[k].replaces.is_some() {
            return Vec::new();
        }
        let taken = |i: usize| self.outputs.iter().any(|output| output.replaces == Some(i));
        let once = |source| self.loads.iter().filter(|load| load.source == source).count() == 1;
        self.reads()
            .filter(|(i, load)| self.space.is_own(*i) && once(load.source) && !taken(*i))
            .map(|(i, _)| i)
            .collect()
    }

    /// The condition of output `k` if it is a selection between a new value, where the condition is true, and the value that it
    /// overwrites: then only threads with a new value have to store theirs.
    pub(super) fn partial_update(&self, k: usize) -> Option<Operand> {
        let output = &self.outputs[k];
        let (Some(load), None) = (output.replaces, &self.roll) else { return None };
        let instance = &self.instances[output.instance];
        let Code::Elementwise(elementwise) = instance.code else { return None };
        match instance.operands[..] {
            [condition, new, Operand::Load(old)]
                if elementwise.name == SELECT && old == load && new != Operand::Load(old) =>
            {
                Some(condition)
            }
            _ => None,
        }
    }

    /// What the kernel computes for output `k` in every thread.
    pub(super) fn wanted(&self, k: usize) -> SmallVec<[Operand; 2]> {
        match self.partial_update(k) {
            Some(_) => {
                SmallVec::from_slice(&self.instances[self.outputs[k].instance].operands[..2])
            }
            None => smallvec![Operand::Instance(self.outputs[k].instance)],
        }
    }

    /// How many storage buffers the kernel binds in addition to those of an anchor.
    pub(super) fn bindings(&self) -> usize {
        self.reads().count() + self.outputs.len()
    }

    /// The approximate length of the kernel's text, without the functions of its ops.
    pub(super) fn text_length(&self) -> usize {
        let folds = self.levels() > 0;
        let loads = self.loads.iter().enumerate().map(|(i, load)| {
            let windowed = load.view.axes.iter().any(|axis| axis.window.is_some());
            match self.space.is_flat(i) && !folds {
                true => 110,
                // Functions for the index and the element, and four calls.
                false if windowed => 1100,
                false => 600,
            }
        });
        200 + 40 * self.instances.len() + loads.sum::<usize>()
    }

    /// The compilation cost of the kernel, in the units of [`Formula::cost`](crate::wgsl::Formula::cost).
    pub(super) fn weight(&self) -> usize {
        let weights = self.instances.iter().map(|instance| match instance.code {
            Code::Elementwise(elementwise) => elementwise.formula.cost(),
            Code::Reduce(_) | Code::Anchor => 0,
        });
        weights.chain(self.loads.iter().map(|load| load.weight)).sum()
    }

    /// How many iterations loops make for one element, or for four neighbours.
    pub(super) fn iterations(&self) -> usize {
        let each = self.instances.iter().map(|instance| match instance.code {
            Code::Elementwise(elementwise) => elementwise.formula.iterations(),
            Code::Reduce(_) | Code::Anchor => 0,
        });
        each.sum()
    }

    /// Equal for IRs that become the same text, whatever they read and however large it is. If two texts have the same
    /// hash, the only cost is an additional compilation.
    pub(super) fn form(&self) -> u64 {
        let mut hash = Mixer::default();
        (self.space.axes.len(), self.space.aligned(), self.space.folds_inner()).hash(&mut hash);
        self.tiles.is_some().hash(&mut hash);
        for instance in &self.instances {
            match instance.code {
                Code::Elementwise(elementwise) => elementwise.name.hash(&mut hash),
                Code::Reduce(reduction) => reduction.name.hash(&mut hash),
                Code::Anchor => {}
            }
            (&instance.operands, instance.dtype, instance.level, instance.row).hash(&mut hash);
        }
        for (i, load) in self.loads.iter().enumerate() {
            (load.dtype, load.row, self.space.is_flat(i), self.space.is_single(i)).hash(&mut hash);
            (load.weight, load.view.offset.in_fours()).hash(&mut hash);
        }
        for output in &self.outputs {
            (output.instance, output.row, output.replaces).hash(&mut hash);
        }
        hash.finish()
    }

    /// Calls `visit` once for each operand that `wanted` needs. `visit` returns whether to continue with that operand's
    /// own operands.
    pub(super) fn reach(&self, wanted: &[Operand], mut visit: impl FnMut(Operand) -> bool) {
        let (instances, loads) = (self.instances.len(), self.loads.len());
        let mut seen = vec![false; instances + 2 * loads];
        let mut open: Vec<Operand> = wanted.iter().rev().copied().collect();
        while let Some(operand) = open.pop() {
            let at = match operand {
                Operand::Instance(i) => i,
                Operand::Load(i) => instances + i,
                Operand::Inside(i) => instances + loads + i,
                Operand::RuntimeScalar(_) => continue,
            };
            if std::mem::replace(&mut seen[at], true) || !visit(operand) {
                continue;
            }
            if let Operand::Instance(i) = operand {
                open.extend(self.instances[i].operands.iter().rev());
            }
        }
    }

    /// Whether it computes values for its first fold that a later pass over the same rows recomputes.
    pub(super) fn computes_again(&self) -> bool {
        let computed = |operand: &Operand| match *operand {
            Operand::Instance(i) => {
                let instance = &self.instances[i];
                let scalars = |o: &Operand| matches!(o, Operand::RuntimeScalar(_));
                let elementwise = matches!(instance.code, Code::Elementwise(_));
                let first = elementwise && instance.level == 0 && !instance.row;
                first && !instance.operands.iter().all(scalars)
            }
            _ => false,
        };
        self.instances.iter().any(|instance| {
            let later = match instance.code {
                Code::Elementwise(_) => instance.level > 0,
                Code::Reduce(_) => instance.level > 1,
                Code::Anchor => false,
            };
            later && instance.operands.iter().any(computed)
        })
    }

    /// How many folds depend on each other in sequence.
    pub(super) fn levels(&self) -> usize {
        let folds = self.instances.iter().filter(|i| matches!(i.code, Code::Reduce(_)));
        folds.map(|i| i.level).max().unwrap_or(0)
    }
}
