//! Builds the IR of a kernel from its outputs back to its loads, each node at the positions at which it is needed.

use super::context::PlanContext;
use super::iteration_space::{Axis, IterationSpace, Load, LoadSource, Reads};
use super::kernel_ir::{Code, Instance, KernelIr, Operand, Output};
use super::reduction_schedule::SHARED;
use super::tiles::Tiles;
use super::view::{compose, natural_over, natural_with_ones, refine};
use crate::dtype::DType;
use crate::graph::lower::{Arg, Elementwise, Lowering, Reduction, Strided, View};
use crate::graph::{HashIndex, Input};

/// The maximum weight of one kernel ([`Elementwise::weight`]), which is about 40 ms of compiling in addition to the 17
/// ms of every kernel. Beyond it fusing saves less than compiling costs: a launch takes 0.06 ms.
pub(super) const LARGEST: usize = 4_000;
/// The same if two kernels would pass on so many elements that the memory traffic takes longer.
const LARGEST_OF_MANY: usize = 12_000;
const MANY: usize = 1 << 20;
/// A CPU kernel with at most this many elements reads strided values one by one, whatever their layout: compiling a
/// text for each layout would take longer than reading.
const FEW: usize = 1 << 13;
/// The same in a plan for few runs.
const FEW_IN_BRIEF: usize = 1 << 15;
/// The weight of an instance or a load in addition to its computation.
pub(super) const CALL: usize = 16;
/// The weight of a load that a thread reads at another position than its own: an index, and four reads.
pub(super) const STRIDED: usize = 300;
/// The weight of a load that has elements only at some positions.
const WINDOWED: usize = 700;
/// The kernel recomputes lighter nodes if it needs their value repeatedly.
const CHEAP: usize = 48;

impl<'a> PlanContext<'a> {
    /// The IR of a kernel that computes `members` (in ascending order) and stores `outputs`, or `None` if they do not
    /// fit together.
    pub(super) fn kernel_ir(&self, members: &[u32], outputs: &[u32]) -> Option<KernelIr<'a>> {
        let axes = self.axes(members, outputs)?;
        let ir = self.build(members, outputs, &axes, &[])?;
        let is_fold = |node: u32| matches!(self.lowerings[node as usize], Lowering::Reduce(_));
        if axes.iter().any(|axis| axis.reduced) && !ir.instances.iter().any(|i| is_fold(i.node)) {
            // The outputs need none of the members' folds, so the kernel need not iterate over the folds' axes.
            let others: Vec<u32> = members.iter().copied().filter(|&m| !is_fold(m)).collect();
            return self.kernel_ir(&others, outputs);
        }
        Some(ir)
    }

    /// The IR of the second kernel of a long fold. It reads the partial results of the folds `partials`, `chunks` for
    /// each row, instead of their inputs.
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
        // One thread must write all bytes of a word, and some kernels compute four neighbours at once.
        let bytes = stored.iter().any(|output| output.dtype == DType::U8);
        let vectors = bytes || builder.quads;
        // A fold sums in the same order in every plan, so a plan for few runs rounds like the one that replaces it.
        let few = if self.brief && !folds { FEW_IN_BRIEF } else { FEW };
        let little = self.caps.cpu && elements <= few && builder.anchor.is_none();
        let len: usize = axes.iter().filter(|a| a.reduced).map(|a| a.size).product();
        let reads = match little && !(folds && vectors) {
            false => Reads::Vectors,
            true if folds && len < SHARED || !folds && self.brief => Reads::SinglyWithOnes,
            true => Reads::Singly,
        };
        let space = IterationSpace::new(axes, &views, reads);
        let quads = builder.anchor.is_some_and(|anchor| self.hands_on_quads(anchor));
        let split = match builder.anchor {
            Some(_) => !quads,
            None => folds && !space.aligned(),
        };
        let narrow = bytes && folds && stored.iter().any(|o| o.row && o.dtype == DType::U8);
        if (split && vectors) || narrow {
            return None;
        }
        // A CPU's caches hold the lines that a transposition reads across.
        let alone = !self.caps.cpu && !folds && builder.anchor.is_none();
        let tiles = if alone { Tiles::find(&space) } else { None };
        Some(KernelIr {
            space,
            tiles,
            instances: builder.instances,
            loads: builder.loads,
            outputs: stored,
            anchor: builder.anchor,
            quads,
            roll: None,
        })
    }

    /// True if the results of `node`, which has custom kernels, are whole vectors of four along the last axis.
    fn hands_on_quads(&self, node: u32) -> bool {
        let single = match &self.lowerings[node as usize] {
            Lowering::Kernels(kernels) => {
                kernels.kernels.last().is_some_and(|kernel| kernel.single)
            }
            _ => false,
        };
        !single && self.shape(node).last().is_some_and(|size| size % 4 == 0)
    }

    /// Axes along which the kernel can iterate over all members.
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

/// Whether views keep their strides along an axis of size 1. In a plan for few runs they do, so that a batch of one
/// uses the text of a larger batch.
fn keeps_ones(context: &PlanContext, axis: Axis) -> bool {
    context.brief && !axis.reduced
}

/// Which of the finer `sizes` belong to the reduced `axes` of `shape`.
fn refined_flags(shape: &[usize], axes: &[usize], sizes: &[usize]) -> Vec<bool> {
    if shape == sizes {
        return (0..shape.len()).map(|axis| axes.contains(&axis)).collect();
    }
    let mut flags = vec![false; sizes.len()];
    let mut at = sizes.len();
    // From the innermost on, each axis of the shape consists of finer ones whose product is its size.
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

pub(super) struct IrBuilder<'a, 'b> {
    context: &'b PlanContext<'a>,
    members: &'b [u32],
    partials: &'b [u32],
    axes: &'b [Axis],
    pub(super) sizes: Vec<usize>,
    /// All elements in order, and all rows in order.
    pub(super) full: Strided,
    pub(super) kept: Strided,
    pub(super) instances: Vec<Instance<'a>>,
    /// The latest instance of each node, and for each instance the previous one of its node.
    latest: HashIndex,
    before: Vec<Option<u32>>,
    pub(super) loads: Vec<Load>,
    pub(super) anchor: Option<u32>,
    pub(super) quads: bool,
    weight: usize,
    /// The maximum weight of the IR.
    largest: usize,
}

impl<'a, 'b> IrBuilder<'a, 'b> {
    pub(super) fn new(
        context: &'b PlanContext<'a>,
        members: &'b [u32],
        axes: &'b [Axis],
        partials: &'b [u32],
    ) -> Self {
        let sizes: Vec<usize> = axes.iter().map(|axis| axis.size).collect();
        let has_stride = |axis: usize, reduced: bool| {
            let own = axes[axis];
            (reduced || !own.reduced) && (own.size != 1 || keeps_ones(context, own))
        };
        IrBuilder {
            context,
            members,
            partials,
            full: natural_with_ones(&sizes, |axis| has_stride(axis, true)),
            kept: natural_with_ones(&sizes, |axis| has_stride(axis, false)),
            sizes,
            axes,
            instances: Vec::new(),
            latest: HashIndex::default(),
            before: Vec::new(),
            loads: Vec::new(),
            anchor: None,
            quads: false,
            weight: 0,
            largest: match axes.iter().map(|axis| axis.size).product::<usize>() {
                elements if elements >= MANY => LARGEST_OF_MANY,
                _ => LARGEST,
            },
        }
    }

    /// The instance of `node` at the positions that `view` selects.
    pub(super) fn instance(&mut self, node: u32, view: Strided) -> Option<usize> {
        // Each reader of a constant has a separate instance, so that no text depends on which numbers are equal.
        let constant = self.context.is_constant(node as usize);
        let mut known = self.latest.get(&u64::from(node)).copied().filter(|_| !constant);
        while let Some(at) = known {
            if self.instances[at as usize].view == view {
                return Some(at as usize);
            }
            known = self.before[at as usize];
        }
        let context = self.context;
        let at = node as usize;
        let lowering = &context.lowerings[at];
        let mut operands = Vec::new();
        let mut level = 0;
        let code = match lowering {
            Lowering::Elementwise(elementwise) => {
                self.check_weight(node, elementwise, &view)?;
                for (_, arg) in &elementwise.args {
                    let operand = self.argument(node, elementwise, arg, &view)?;
                    if let Operand::Instance(i) = operand {
                        level = level.max(self.instances[i].level);
                    }
                    operands.push(operand);
                }
                Code::Elementwise(elementwise)
            }
            Lowering::Reduce(reduction) => {
                if view != self.kept {
                    return None;
                }
                let operand = match self.partials.iter().position(|&p| p == node) {
                    Some(temp) => {
                        let stored = match context.graph.nodes[at].spec.dtype {
                            DType::F16 => DType::F32,
                            other => other,
                        };
                        Operand::Load(self.load(LoadSource::Temp(temp), stored, self.full.clone()))
                    }
                    None => {
                        let input = context.graph.nodes[at].inputs[0];
                        self.operand(input, self.full.clone())?
                    }
                };
                if let Operand::Instance(i) = operand {
                    level = self.instances[i].level;
                }
                level += 1;
                operands.push(operand);
                Code::Reduce(reduction)
            }
            Lowering::Kernels(_) => {
                if view != self.full || self.anchor.is_some() {
                    return None;
                }
                let own =
                    context.graph.nodes[at].inputs.iter().map(|input| context.canonical(*input));
                for input in own {
                    if matches!(input, Input::Node(j) if self.is_member(j)) {
                        return None;
                    }
                }
                self.anchor = Some(node);
                Code::Anchor
            }
            Lowering::Alias => return None,
        };
        let row = self.is_row(&view);
        let dtype = context.graph.nodes[at].spec.dtype;
        let own = self.instances.len();
        self.instances.push(Instance { node, view, code, operands, dtype, level, row });
        self.before.push(self.latest.insert(u64::from(node), own as u32));
        Some(own)
    }

    /// Forgets all instances but the first `count`.
    fn truncate(&mut self, count: usize) {
        while self.instances.len() > count {
            let (Some(last), Some(before)) = (self.instances.pop(), self.before.pop()) else {
                return;
            };
            match before {
                Some(before) => self.latest.insert(u64::from(last.node), before),
                None => self.latest.remove(&u64::from(last.node)),
            };
        }
    }

    fn is_member(&self, node: u32) -> bool {
        self.members.binary_search(&node).is_ok()
    }

    /// Rejects a node that would make the kernel too large, or repeat much work.
    fn check_weight(&mut self, node: u32, elementwise: &Elementwise, view: &Strided) -> Option<()> {
        let weight = elementwise.formula.cost();
        let first = self.weight == 0;
        self.weight += weight + CALL;
        let again = *view != self.full && *view != self.kept;
        let context = self.context;
        let light = weight <= CHEAP
            || context.rematerialisable[node as usize]
            || context.elements(node) == 1;
        // A kernel of one node must fit, however long it is. At most one node may repeat much work.
        let alone = self.instances.is_empty();
        (first || (self.weight <= self.largest && (!again || light || alone))).then_some(())
    }

    fn argument(
        &mut self,
        node: u32,
        elementwise: &Elementwise,
        arg: &Arg,
        view: &Strided,
    ) -> Option<Operand> {
        let shape = self.context.shape(node);
        match arg {
            Arg::Input { input, view: inner } => {
                let inner = &*self.context.placed(node, inner);
                let composed = if *view == self.full && self.sizes == shape {
                    // The node's own axes are the kernel's.
                    match inner {
                        View::Same => self.full.clone(),
                        View::Strided(own) => {
                            let own_axis = |axis| self.axes[axis];
                            own.normalized(|axis| {
                                self.sizes[axis] == 1 && !keeps_ones(self.context, own_axis(axis))
                            })
                        }
                    }
                } else {
                    compose(&self.sizes, view, shape, inner)?
                };
                self.operand(self.context.graph.nodes[node as usize].inputs[*input], composed)
            }
            Arg::Inside { input } => {
                let read = elementwise.args.iter().find(
                    |(_, arg)| matches!(arg, Arg::Input { input: other, .. } if other == input),
                )?;
                match self.argument(node, elementwise, &read.1, view)? {
                    Operand::Load(load) => Some(Operand::Inside(load)),
                    _ => None,
                }
            }
            Arg::Index => {
                Some(Operand::Load(self.load(LoadSource::Index, DType::U32, view.clone())))
            }
            Arg::Quad => {
                if *view != self.full {
                    return None;
                }
                self.quads = true;
                Some(Operand::Load(self.load(LoadSource::Index, DType::U32, view.clone())))
            }
            Arg::RuntimeScalar(word) => Some(Operand::RuntimeScalar(*word)),
        }
    }

    fn operand(&mut self, input: Input, view: Strided) -> Option<Operand> {
        let root = self.context.canonical(input);
        let windowed = view.axes.iter().any(|axis| axis.window.is_some());
        if let Input::Node(j) = root {
            let member = self.is_member(j);
            if member || self.context.rematerialisable[j as usize] {
                if !windowed {
                    let before = (self.instances.len(), self.loads.len(), self.weight);
                    let view = match self.context.is_constant(j as usize) {
                        true => natural_over(&self.sizes, |_| false),
                        false => view.clone(),
                    };
                    if let Some(instance) = self.instance(j, view) {
                        return Some(Operand::Instance(instance));
                    }
                    self.truncate(before.0);
                    self.loads.truncate(before.1);
                    self.weight = before.2;
                }
                if member {
                    return None;
                }
            }
        }
        let dtype = self.context.graph.spec(root).dtype;
        Some(Operand::Load(self.load(LoadSource::Value(root), dtype, view)))
    }

    fn load(&mut self, source: LoadSource, dtype: DType, view: Strided) -> usize {
        let same = |l: &Load| l.source == source && l.view == view;
        self.loads.iter().position(same).unwrap_or_else(|| {
            let row = self.is_row(&view);
            let windowed = view.axes.iter().any(|axis| axis.window.is_some());
            let moves = view.axes.iter().any(|axis| axis.stride != 0);
            let weight = match moves && view != self.full && view != self.kept {
                _ if windowed => WINDOWED,
                true => STRIDED,
                false => CALL,
            };
            self.weight += weight;
            self.loads.push(Load { source, dtype, view, row, weight });
            self.loads.len() - 1
        })
    }

    /// True if there are reduced axes and the view does not move along any of them.
    fn is_row(&self, view: &Strided) -> bool {
        let mut folds = false;
        for (axis, step) in self.axes.iter().zip(&view.axes) {
            folds |= axis.reduced;
            if axis.reduced && (step.stride != 0 || step.window.is_some()) {
                return false;
            }
        }
        folds
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::attributes::Attribute;
    use smallvec::SmallVec;

    use super::super::lowerings::Lowerings;
    use super::*;
    use crate::device::Caps;
    use crate::error::Result;
    use crate::graph::lower::{LoweringContext, View};
    use crate::graph::{Graph, Node, Op, Spec};

    /// A placeholder for any op: the lowerings are given separately.
    #[derive(Debug, Attribute)]
    #[op("Any")]
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
            ..Graph::default()
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
            brief: false,
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
