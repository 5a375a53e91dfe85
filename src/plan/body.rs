//! What one kernel computes: nodes seen at the places of the kernel's own axes, in the order of evaluation.
//!
//! A [`Body`] is built for a set of nodes that shall share a kernel. It exists only if they can: each node must be
//! needed at places that strides over the kernel's axes can name, all folds must run over the same axes, and a
//! kernel with a shader of its own may only come first.

use smallvec::SmallVec;

use super::space::Space;
use super::view::{compose, natural, natural_over, refine};
use crate::device::Caps;
use crate::dtype::{DType, Register};
use crate::graph::lower::{Arg, Lowering, Pointwise, Reduction, Strided, View};
use crate::graph::{Graph, Input};

/// A graph as bodies look at it.
pub(super) struct Scope<'a> {
    pub(super) graph: &'a Graph,
    pub(super) lowerings: &'a [Lowering],
    /// The node or leaf in whose buffer each node's value lies: itself, or what it is an alias of.
    pub(super) roots: &'a [Input],
    /// Nodes that any reader may compute for itself: constants and views.
    pub(super) free: &'a [bool],
    pub(super) caps: &'a Caps,
}

/// One axis of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) size: usize,
    /// Folded by the kernel's reductions.
    pub(super) reduced: bool,
}

pub(super) struct Body<'a> {
    pub(super) space: Space,
    pub(super) instances: Vec<Instance<'a>>,
    pub(super) loads: Vec<Load>,
    pub(super) outputs: Vec<Output>,
    /// The node with a shader of its own whose results the others go on from.
    pub(super) anchor: Option<u32>,
}

/// A node at certain places.
pub(super) struct Instance<'a> {
    pub(super) node: u32,
    view: Strided,
    pub(super) code: Code<'a>,
    pub(super) operands: SmallVec<[Operand; 4]>,
    pub(super) dtype: DType,
    /// Folds that must be complete before it: it belongs to the pass of this number.
    pub(super) level: usize,
    /// The same for all elements that are folded together.
    pub(super) row: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Code<'a> {
    Pointwise(&'a Pointwise),
    Reduce(&'a Reduction),
    Anchor,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    Load(usize),
    /// Whether the view of a load has an element there.
    Inside(usize),
    Instance(usize),
    Word(usize),
}

/// What is read from memory, or an index that is computed.
pub(super) struct Load {
    pub(super) source: Source,
    pub(super) dtype: DType,
    pub(super) view: Strided,
    pub(super) row: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
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

/// How much text one kernel may hold: beyond it registers run out, and drivers take long.
const LARGEST: usize = 12_000;
/// Nodes lighter than this are computed again where their value is repeated.
const CHEAP: usize = 48;

impl<'a> Scope<'a> {
    pub(super) fn root(&self, input: Input) -> Input {
        match input {
            Input::Node(i) => self.roots[i as usize],
            leaf => leaf,
        }
    }

    fn shape(&self, node: u32) -> &'a [usize] {
        &self.graph.nodes[node as usize].spec.shape
    }

    fn elements(&self, node: u32) -> usize {
        self.graph.nodes[node as usize].spec.elements()
    }

    /// The body that computes `members` (in ascending order) and stores `outputs`, or `None` if they do not fit
    /// together.
    pub(super) fn body(&self, members: &[u32], outputs: &[u32]) -> Option<Body<'a>> {
        let axes = self.axes(members, outputs)?;
        self.build(members, outputs, &axes, &[])
    }

    /// The second kernel of a long fold: `partials` names the folds whose partial results, `chunks` for each row, are
    /// read in place of their inputs.
    pub(super) fn second(
        &self,
        members: &[u32],
        outputs: &[u32],
        partials: &[u32],
        chunks: usize,
    ) -> Option<Body<'a>> {
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
    ) -> Option<Body<'a>> {
        let sizes: Vec<usize> = axes.iter().map(|axis| axis.size).collect();
        let mut builder = Builder {
            scope: self,
            members,
            partials,
            full: natural(&sizes),
            kept: natural_over(&sizes, |axis| !axes[axis].reduced),
            sizes,
            axes,
            instances: Vec::new(),
            loads: Vec::new(),
            anchor: None,
            quads: false,
            weight: 0,
        };
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
        let space = Space::new(axes, &views);
        // Bytes of one word belong to one thread, and some bodies make four neighbours at once.
        let bytes = stored.iter().any(|output| output.dtype == DType::U8);
        let split = match builder.anchor {
            Some(anchor) => !last_axis_in_quads(self.graph, anchor),
            None => folds && !space.aligned(),
        };
        let narrow = bytes && folds && stored.iter().any(|o| o.row && o.dtype == DType::U8);
        if (split && (bytes || builder.quads)) || narrow {
            return None;
        }
        Some(Body {
            space,
            instances: builder.instances,
            loads: builder.loads,
            outputs: stored,
            anchor: builder.anchor,
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
        let folds: SmallVec<[(&[usize], &Reduction); 4]> = folds.collect();
        let elements = match folds.first() {
            Some((shape, _)) => shape.iter().product(),
            None => outputs.iter().map(|&o| self.elements(o)).max()?,
        };
        let own = members.iter().filter(|&&m| self.elements(m) == elements).map(|&m| self.shape(m));
        let shapes: SmallVec<[&[usize]; 16]> =
            folds.iter().map(|(shape, _)| *shape).chain(own).collect();
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

struct Builder<'a, 'b> {
    scope: &'b Scope<'a>,
    members: &'b [u32],
    partials: &'b [u32],
    axes: &'b [Axis],
    sizes: Vec<usize>,
    /// All elements in order, and all rows in order.
    full: Strided,
    kept: Strided,
    instances: Vec<Instance<'a>>,
    loads: Vec<Load>,
    anchor: Option<u32>,
    quads: bool,
    weight: usize,
}

impl<'a> Builder<'a, '_> {
    fn instance(&mut self, node: u32, view: Strided) -> Option<usize> {
        let known = |i: &Instance| i.node == node && i.view == view;
        if let Some(at) = self.instances.iter().position(known) {
            return Some(at);
        }
        let scope = self.scope;
        let at = node as usize;
        let lowering = &scope.lowerings[at];
        let mut operands = SmallVec::new();
        let mut level = 0;
        let code = match lowering {
            Lowering::Pointwise(pointwise) => {
                self.check_weight(node, pointwise, &view)?;
                for (_, arg) in &pointwise.args {
                    let operand = self.argument(node, pointwise, arg, &view)?;
                    if let Operand::Instance(i) = operand {
                        level = level.max(self.instances[i].level);
                    }
                    operands.push(operand);
                }
                Code::Pointwise(pointwise)
            }
            Lowering::Reduce(reduction) => {
                if view != self.kept {
                    return None;
                }
                let operand = match self.partials.iter().position(|&p| p == node) {
                    Some(temp) => {
                        let stored = match scope.graph.nodes[at].spec.dtype {
                            DType::F16 => DType::F32,
                            other => other,
                        };
                        Operand::Load(self.load(Source::Temp(temp), stored, self.full.clone()))
                    }
                    None => {
                        let input = scope.graph.nodes[at].inputs[0];
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
                let own = scope.graph.nodes[at].inputs.iter().map(|input| scope.root(*input));
                for input in own {
                    if matches!(input, Input::Node(j) if self.members.contains(&j)) {
                        return None;
                    }
                }
                self.anchor = Some(node);
                Code::Anchor
            }
            Lowering::Alias => return None,
        };
        let row = self.is_row(&view);
        let dtype = scope.graph.nodes[at].spec.dtype;
        self.instances.push(Instance { node, view, code, operands, dtype, level, row });
        Some(self.instances.len() - 1)
    }

    /// Refuses what would make the kernel too large, or repeat much work.
    fn check_weight(&mut self, node: u32, pointwise: &Pointwise, view: &Strided) -> Option<()> {
        let weight = pointwise.weight();
        self.weight += weight;
        let again = *view != self.full && *view != self.kept;
        let scope = self.scope;
        let light = weight <= CHEAP || scope.free[node as usize] || scope.elements(node) == 1;
        // A body of one node must fit, however long it is.
        (self.instances.is_empty() || (self.weight <= LARGEST && (!again || light))).then_some(())
    }

    fn argument(
        &mut self,
        node: u32,
        pointwise: &Pointwise,
        arg: &Arg,
        view: &Strided,
    ) -> Option<Operand> {
        let shape = self.scope.shape(node);
        match arg {
            Arg::Input { input, view: inner } => {
                let composed = if *view == self.full && self.sizes == shape {
                    // The node's own axes are the kernel's.
                    match inner {
                        View::Same => self.full.clone(),
                        View::Strided(own) => own.normalized(&self.sizes),
                    }
                } else {
                    compose(&self.sizes, view, shape, inner)?
                };
                self.operand(self.scope.graph.nodes[node as usize].inputs[*input], composed)
            }
            Arg::Inside { input } => {
                let read = pointwise.args.iter().find(
                    |(_, arg)| matches!(arg, Arg::Input { input: other, .. } if other == input),
                )?;
                match self.argument(node, pointwise, &read.1, view)? {
                    Operand::Load(load) => Some(Operand::Inside(load)),
                    _ => None,
                }
            }
            Arg::Index => Some(Operand::Load(self.load(Source::Index, DType::U32, view.clone()))),
            Arg::Quad => {
                if *view != self.full {
                    return None;
                }
                self.quads = true;
                Some(Operand::Load(self.load(Source::Index, DType::U32, view.clone())))
            }
            Arg::Word(word) => Some(Operand::Word(*word)),
        }
    }

    fn operand(&mut self, input: Input, view: Strided) -> Option<Operand> {
        let root = self.scope.root(input);
        let windowed = view.axes.iter().any(|axis| axis.window.is_some());
        if let Input::Node(j) = root {
            let member = self.members.contains(&j);
            if member || self.scope.free[j as usize] {
                if !windowed {
                    let before = (self.instances.len(), self.loads.len(), self.weight);
                    let uniform = matches!(&self.scope.lowerings[j as usize],
                        Lowering::Pointwise(p) if p.is_uniform());
                    let view = match uniform {
                        true => natural_over(&self.sizes, |_| false),
                        false => view.clone(),
                    };
                    if let Some(instance) = self.instance(j, view) {
                        return Some(Operand::Instance(instance));
                    }
                    self.instances.truncate(before.0);
                    self.loads.truncate(before.1);
                    self.weight = before.2;
                }
                if member {
                    return None;
                }
            }
        }
        let dtype = self.scope.graph.spec(root).dtype;
        Some(Operand::Load(self.load(Source::Value(root), dtype, view)))
    }

    fn load(&mut self, source: Source, dtype: DType, view: Strided) -> usize {
        let same = |l: &Load| l.source == source && l.view == view;
        self.loads.iter().position(same).unwrap_or_else(|| {
            let row = self.is_row(&view);
            self.loads.push(Load { source, dtype, view, row });
            self.loads.len() - 1
        })
    }

    /// True if the view stays where it is along all reduced axes, of which there are some.
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

impl Body<'_> {
    pub(super) fn register(&self, operand: Operand) -> Register {
        match operand {
            Operand::Load(i) => self.loads[i].dtype.register(),
            Operand::Inside(_) => Register::Bool,
            Operand::Instance(i) => self.instances[i].dtype.register(),
            Operand::Word(_) => Register::U32,
        }
    }

    /// Values in memory that the kernel reads, in the order of their bindings.
    pub(super) fn reads(&self) -> impl Iterator<Item = (usize, &Load)> {
        self.loads.iter().enumerate().filter(|(_, load)| load.source != Source::Index)
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

    /// The name of the buffer that output `k` is written to.
    pub(super) fn target(&self, k: usize) -> String {
        match self.outputs[k].replaces {
            Some(load) => format!("x{load}"),
            None => format!("y{k}"),
        }
    }

    /// Storage bindings beside those of an anchor.
    pub(super) fn bindings(&self) -> usize {
        self.reads().count() + self.outputs.len()
    }

    /// How many folds follow on each other.
    pub(super) fn levels(&self) -> usize {
        let folds = self.instances.iter().filter(|i| matches!(i.code, Code::Reduce(_)));
        folds.map(|i| i.level).max().unwrap_or(0)
    }
}
