//! What one kernel computes: nodes seen at the places of the kernel's own axes, in the order of evaluation.
//!
//! A [`KernelIr`] is built for a set of nodes that shall share a kernel. It exists only if they can: each node must be
//! needed at places that strides over the kernel's axes can name, all folds must run over the same axes, and a
//! kernel with a shader of its own may only come first.

use std::hash::{Hash, Hasher};

use super::ir_builder::IrBuilder;
use super::iteration_space::IterationSpace;
use super::lowerings::Lowerings;
use super::view::refine;
use crate::device::Caps;
use crate::dtype::{DType, Register};
use crate::graph::lower::{Elementwise, Lowering, Reduction, Strided};
use crate::graph::{Graph, Input, Mixer};

/// A graph as kernel IRs look at it.
pub(super) struct PlanContext<'a> {
    pub(super) graph: &'a Graph,
    pub(super) lowerings: &'a Lowerings,
    /// The node or leaf in whose buffer each node's value lies: itself, or what it is an alias of.
    pub(super) canonical: &'a [Input],
    /// Nodes that any reader may compute for itself: constants and views.
    pub(super) rematerialisable: &'a [bool],
    pub(super) caps: &'a Caps,
}

/// One axis of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) size: usize,
    /// Folded by the kernel's reductions.
    pub(super) reduced: bool,
}

pub(super) struct KernelIr<'a> {
    pub(super) space: IterationSpace,
    pub(super) instances: Vec<Instance<'a>>,
    pub(super) loads: Vec<Load>,
    pub(super) outputs: Vec<Output>,
    /// The node with a shader of its own whose results the others go on from.
    pub(super) anchor: Option<u32>,
    /// How the kernel goes through it several times.
    pub(super) roll: Option<Roll>,
}

/// A kernel IR that stands for the same work of several turns, of which each goes on from the one before.
pub(super) struct Roll {
    pub(super) turns: usize,
    /// What each load is in the next turn: what a turn has computed, what another load was, or the same again.
    pub(super) next: Vec<Option<Operand>>,
    /// What is stored at the end for each output: an instance of the last turn, or what a load would be in the turn
    /// after it.
    pub(super) results: Vec<Operand>,
}

/// A node at certain places.
pub(super) struct Instance<'a> {
    pub(super) node: u32,
    pub(super) view: Strided,
    pub(super) code: Code<'a>,
    pub(super) operands: Vec<Operand>,
    pub(super) dtype: DType,
    /// Folds that must be complete before it: it belongs to the pass of this number.
    pub(super) level: usize,
    /// The same for all elements that are folded together.
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

/// What is read from memory, or an index that is computed.
pub(super) struct Load {
    pub(super) source: LoadSource,
    pub(super) dtype: DType,
    pub(super) view: Strided,
    pub(super) row: bool,
    /// What reading it costs to compile, in the units of [`Formula::cost`](crate::wgsl::Formula::cost).
    pub(super) weight: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LoadSource {
    Value(Input),
    /// Partial results of a fold that an earlier kernel began.
    Temp(usize),
    /// No memory: the index itself.
    Index,
}

pub(super) struct Output {
    pub(super) node: u32,
    pub(super) instance: usize,
    pub(super) dtype: DType,
    /// One for each row, not for each element.
    pub(super) row: bool,
    /// The load into whose buffer it is written.
    pub(super) replaces: Option<usize>,
}

impl<'a> PlanContext<'a> {
    pub(super) fn canonical(&self, input: Input) -> Input {
        match input {
            Input::Node(i) => self.canonical[i as usize],
            leaf => leaf,
        }
    }

    /// True if the node is one value everywhere, which every reader computes for itself.
    pub(super) fn is_constant(&self, node: usize) -> bool {
        matches!(&self.lowerings[node], Lowering::Elementwise(p) if p.is_uniform())
    }

    pub(super) fn shape(&self, node: u32) -> &'a [usize] {
        &self.graph.nodes[node as usize].spec.shape
    }

    pub(super) fn elements(&self, node: u32) -> usize {
        self.graph.nodes[node as usize].spec.elements()
    }

    /// The kernel IR that computes `members` (in ascending order) and stores `outputs`, or `None` if they do not fit
    /// together.
    pub(super) fn kernel_ir(&self, members: &[u32], outputs: &[u32]) -> Option<KernelIr<'a>> {
        let axes = self.axes(members, outputs)?;
        let ir = self.build(members, outputs, &axes, &[])?;
        let is_fold = |node: u32| matches!(self.lowerings[node as usize], Lowering::Reduce(_));
        if axes.iter().any(|axis| axis.reduced) && !ir.instances.iter().any(|i| is_fold(i.node)) {
            // The outputs need none of the members' folds, so theirs are not the axes to walk along.
            let others: Vec<u32> = members.iter().copied().filter(|&m| !is_fold(m)).collect();
            return self.kernel_ir(&others, outputs);
        }
        Some(ir)
    }

    /// The second kernel of a long fold: `partials` names the folds whose partial results, `chunks` for each row, are
    /// read in place of their inputs.
    pub(super) fn second(
        &self,
        members: &[u32],
        outputs: &[u32],
        partials: &[u32],
        chunks: usize,
    ) -> Option<KernelIr<'a>> {
        let mut axes = vec![Axis { size: chunks, reduced: true }];
        axes.extend(self.axes(members, outputs)?.into_iter().filter(|axis| !axis.reduced));
        self.build(members, outputs, &axes, partials)
    }

    fn build(
        &self,
        members: &[u32],
        outputs: &[u32],
        axes: &[Axis],
        partials: &[u32],
    ) -> Option<KernelIr<'a>> {
        let mut builder = IrBuilder::new(self, members, axes, partials);
        let elements: usize = builder.sizes.iter().product();
        let folds = axes.iter().any(|axis| axis.reduced);
        let mut stored = Vec::new();
        for &node in outputs {
            let row = folds && self.elements(node) != elements;
            let view = if row { builder.kept.clone() } else { builder.full.clone() };
            let instance = builder.instance(node, view)?;
            let dtype = self.graph.nodes[node as usize].spec.dtype;
            stored.push(Output { node, instance, dtype, row, replaces: None });
        }
        if folds && builder.anchor.is_some() {
            return None;
        }
        let views: Vec<&Strided> = builder.loads.iter().map(|load| &load.view).collect();
        let space = IterationSpace::new(axes, &views);
        // Bytes of one word belong to one thread, and some kernel IRs make four neighbours at once.
        let bytes = stored.iter().any(|output| output.dtype == DType::U8);
        let split = match builder.anchor {
            Some(anchor) => !last_axis_in_quads(self.graph, anchor),
            None => folds && !space.aligned(),
        };
        let narrow = bytes && folds && stored.iter().any(|o| o.row && o.dtype == DType::U8);
        if (split && (bytes || builder.quads)) || narrow {
            return None;
        }
        Some(KernelIr {
            space,
            instances: builder.instances,
            loads: builder.loads,
            outputs: stored,
            anchor: builder.anchor,
            roll: None,
        })
    }

    /// The axes that all members can be walked along.
    fn axes(&self, members: &[u32], outputs: &[u32]) -> Option<Vec<Axis>> {
        let folds = members.iter().filter_map(|&m| match &self.lowerings[m as usize] {
            Lowering::Reduce(reduction) => {
                let input = self.graph.nodes[m as usize].inputs[0];
                Some((&self.graph.spec(input).shape[..], reduction))
            }
            _ => None,
        });
        let folds: Vec<(&[usize], &Reduction)> = folds.collect();
        let elements = match folds.first() {
            Some((shape, _)) => shape.iter().product(),
            None => outputs.iter().map(|&o| self.elements(o)).max()?,
        };
        let own = members.iter().filter(|&&m| self.elements(m) == elements).map(|&m| self.shape(m));
        let shapes: Vec<&[usize]> = folds.iter().map(|(shape, _)| *shape).chain(own).collect();
        let rows = |row: &[bool]| {
            outputs.iter().all(|&o| {
                let kept = || folds[0].0.iter().zip(row).filter(|(_, r)| !**r).map(|(s, _)| s);
                self.elements(o) == elements
                    || (!folds.is_empty() && self.elements(o) == kept().product::<usize>())
            })
        };
        let first = *shapes.first()?;
        let sizes = match shapes.iter().all(|shape| *shape == first) {
            true => first.to_vec(),
            false => refine(shapes.iter().copied())?,
        };
        let mut flags: Option<Vec<bool>> = None;
        for (shape, reduction) in &folds {
            if shape.iter().product::<usize>() != elements {
                return None;
            }
            let own = refined_flags(shape, &reduction.axes, &sizes);
            match &flags {
                Some(known) if *known != own => return None,
                _ => flags = Some(own),
            }
        }
        if let Some((shape, reduction)) = folds.first() {
            let own: Vec<bool> = (0..shape.len()).map(|a| reduction.axes.contains(&a)).collect();
            if !rows(&own) {
                return None;
            }
        } else if !rows(&[]) {
            return None;
        }
        let flag = |axis: usize| flags.as_ref().is_some_and(|flags| flags[axis]);
        Some(
            sizes
                .iter()
                .enumerate()
                .map(|(axis, &size)| Axis { size, reduced: flag(axis) })
                .collect(),
        )
    }
}

/// Which of the finer `sizes` belong to the reduced `axes` of `shape`.
fn refined_flags(shape: &[usize], axes: &[usize], sizes: &[usize]) -> Vec<bool> {
    if shape == sizes {
        return (0..shape.len()).map(|axis| axes.contains(&axis)).collect();
    }
    let mut flags = vec![false; sizes.len()];
    let mut at = sizes.len();
    // From the innermost: each axis of the shape takes finer ones until their product is its size.
    for axis in (0..shape.len()).rev() {
        let mut product = 1;
        while at > 0 && product < shape[axis] {
            at -= 1;
            product *= sizes[at];
            flags[at] = axes.contains(&axis);
        }
    }
    flags
}

/// True if the results of `node` lie in whole vectors of four along their last axis.
pub(super) fn last_axis_in_quads(graph: &Graph, node: u32) -> bool {
    graph.nodes[node as usize].spec.shape.last().is_some_and(|size| size % 4 == 0)
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

    /// Values in memory that the kernel reads, in the order of their bindings.
    pub(super) fn reads(&self) -> impl Iterator<Item = (usize, &Load)> {
        self.loads.iter().enumerate().filter(|(_, load)| load.source != LoadSource::Index)
    }

    /// Loads whose buffers output `k` may be written into: each thread reads there what it writes, and nothing else.
    pub(super) fn replaceable(&self, k: usize, graph: &Graph) -> Vec<usize> {
        let aligned = self.anchor.is_none_or(|anchor| last_axis_in_quads(graph, anchor));
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

    /// Storage bindings beside those of an anchor.
    pub(super) fn bindings(&self) -> usize {
        self.reads().count() + self.outputs.len()
    }

    /// An estimate of its text's length, without the functions of its ops.
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

    /// What it costs to compile, in the units of [`Formula::cost`](crate::wgsl::Formula::cost).
    pub(super) fn weight(&self) -> usize {
        let weights = self.instances.iter().map(|instance| match instance.code {
            Code::Elementwise(elementwise) => elementwise.formula.cost(),
            Code::Reduce(_) | Code::Anchor => 0,
        });
        weights.chain(self.loads.iter().map(|load| load.weight)).sum()
    }

    /// Iterations of loops for one element, or four neighbours.
    pub(super) fn iterations(&self) -> usize {
        let each = self.instances.iter().map(|instance| match instance.code {
            Code::Elementwise(elementwise) => elementwise.formula.iterations(),
            Code::Reduce(_) | Code::Anchor => 0,
        });
        each.sum()
    }

    /// Equal for kernel IRs that become the same text, whatever they read and however large it is. Two texts of one hash
    /// cost a compilation more, and nothing else.
    pub(super) fn form(&self) -> u64 {
        let mut hash = Mixer::default();
        (self.space.axes.len(), self.space.aligned(), self.space.folds_inner()).hash(&mut hash);
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
            (load.weight, load.view.offset % 4 == 0).hash(&mut hash);
        }
        for output in &self.outputs {
            (output.instance, output.row, output.replaces).hash(&mut hash);
        }
        hash.finish()
    }

    /// Shows `visit` each operand that `wanted` needs, once. It says whether to go on to what that operand needs.
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

    /// How many folds follow on each other.
    pub(super) fn levels(&self) -> usize {
        let folds = self.instances.iter().filter(|i| matches!(i.code, Code::Reduce(_)));
        folds.map(|i| i.level).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use smallvec::SmallVec;

    use super::*;
    use crate::error::Result;
    use crate::graph::lower::{LoweringContext, View};
    use crate::graph::{Node, Op, Spec};

    /// Stands for any op: the lowerings are given beside it.
    #[derive(Debug, Hash, PartialEq, Eq)]
    struct Any;

    impl Op for Any {
        fn name(&self) -> &'static str {
            "Any"
        }

        fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
            Ok(inputs[0].clone())
        }

        fn lower(&self, _: &LoweringContext) -> Lowering {
            Lowering::Alias
        }
    }

    #[test]
    fn results_that_need_no_fold_are_walked_by_elements() {
        let node = |input, shape: [usize; 1]| Node {
            op: std::sync::Arc::new(Any),
            inputs: std::iter::once(input).collect(),
            spec: Spec::new(shape, DType::F32),
            wanted: true,
        };
        let graph = Graph {
            nodes: vec![node(Input::Leaf(0), [5]), node(Input::Node(0), [1])],
            leaves: vec![Spec::new([5], DType::F32)],
            donated: vec![false],
            equal_scalars: vec![None; 2],
        };
        let sum = Reduction {
            name: "sum",
            axes: SmallVec::from_slice(&[0]),
            first: "0.0".into(),
            fold: "a + b".into(),
        };
        let lowerings = vec![
            Elementwise::new("double", "x + x").input("x", 0, View::Same).into(),
            Lowering::Reduce(sum),
        ];
        let lowerings = Lowerings::from(lowerings);
        let canonical = [Input::Node(0), Input::Node(1)];
        let (rematerialisable, caps) = ([false; 2], Caps::portable());
        let context = PlanContext {
            graph: &graph,
            lowerings: &lowerings,
            canonical: &canonical,
            rematerialisable: &rematerialisable,
            caps: &caps,
        };

        let both = context.kernel_ir(&[0, 1], &[0, 1]).expect("they fit together");
        assert_eq!((both.space.count(false), both.space.count(true)), (1, 5));
        let alone = context.kernel_ir(&[0, 1], &[0]).expect("it is elementwise");
        assert_eq!((alone.levels(), alone.space.count(false)), (0, 5));
        assert!(!alone.outputs[0].row);
    }

    #[test]
    fn what_is_reduced_is_so_in_finer_sizes() {
        assert_eq!(refined_flags(&[2, 12], &[1], &[2, 3, 4]), [false, true, true]);
        assert_eq!(refined_flags(&[6, 4], &[0], &[2, 3, 4]), [true, true, false]);
        assert_eq!(refined_flags(&[3, 1, 4], &[1], &[3, 1, 4]), [false, true, false]);
    }
}
