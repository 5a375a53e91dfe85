//! [`Traces`]: a closure traced with several sizes, so that what depends on open sizes shows.

use super::number::{Number, Samples};
use super::site::Found;
use crate::error::{Error, Result, message};
use crate::function::TensorSpec;
use crate::function::op_graph::{OpBlock, OpGraph, OpNode, op_graph};
use crate::graph::Spec;
use crate::runtime::Device;
use crate::tensor::Tensor;

/// The sizes with which batches, and other axes, are traced: the base, another one, the last, and one more if results have sizes that
/// are rounded.
const BATCHES: [usize; 4] = [2, 3, 7, 12];
const OTHERS: [usize; 2] = [64, 96];
/// The last size of other axes: the first of these that the function takes. An odd one shows what is rounded, such as half of it.
const LAST: [usize; 5] = [161, 162, 164, 168, 160];
/// One that stays odd if it is halved again and again and rounded down, as the one above does if it is rounded up.
const ONE_MORE: usize = 191;

/// Which open axes have one size.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
enum Shared {
    None,
    /// The first ones, which are batches.
    Batches,
    /// Those of a number, in all arguments: a sequence and its mask.
    Numbers,
}

/// The open sizes of a function's arguments.
struct OpenSizes {
    /// For each size, the axes that have it: the argument and the axis.
    places: Vec<Vec<(usize, usize)>>,
}

impl OpenSizes {
    fn new(specs: &[TensorSpec], shared: Shared) -> Self {
        let mut places: Vec<Vec<(usize, usize)>> = Vec::new();
        for (argument, spec) in specs.iter().enumerate() {
            for (axis, size) in spec.shape().iter().enumerate() {
                if size.is_some() {
                    continue;
                }
                let joins = shared >= if axis == 0 { Shared::Batches } else { Shared::Numbers };
                let known = places.iter_mut().find(|places| joins && places[0].1 == axis);
                match known {
                    Some(places) => places.push((argument, axis)),
                    None => places.push(vec![(argument, axis)]),
                }
            }
        }
        OpenSizes { places }
    }

    /// The size of this index: of a batch the one of `BATCHES`, else `other`.
    fn size(&self, open: usize, batch: usize, other: usize) -> usize {
        // Sizes that differ from each other show which of them a number depends on.
        match self.places[open][0].1 {
            0 => BATCHES[batch] + 10 * open,
            _ => other + 16 * open,
        }
    }

    fn all(&self, size: impl Fn(usize) -> usize) -> Vec<usize> {
        (0..self.places.len()).map(size).collect()
    }

    /// The sizes of the first traces: the base, and for each size one that differs from it in this one.
    fn first(&self) -> Vec<Vec<usize>> {
        let of = |changed: Option<usize>| {
            self.all(|open| {
                let choice = usize::from(changed == Some(open));
                self.size(open, choice, OTHERS[choice])
            })
        };
        std::iter::once(None).chain((0..self.places.len()).map(Some)).map(of).collect()
    }

    fn last(&self, size: usize) -> Vec<usize> {
        self.all(|open| self.size(open, 2, size))
    }

    fn one_more(&self) -> Vec<usize> {
        // Not all odd or all even: what is left over of heights is not what is left over of widths.
        self.all(|open| self.size(open, 3, ONE_MORE - open % 2))
    }
}

type Body<'a> = &'a dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>;

/// What a closure does, traced once for each of the [`Samples`].
pub(in crate::saved_model) struct Traces {
    pub(in crate::saved_model) samples: Samples,
    /// The argument and the axis that have each open size.
    pub(in crate::saved_model) sources: Vec<(usize, usize)>,
    pub(in crate::saved_model) graphs: Vec<OpGraph>,
    /// The specs of each argument, in each trace.
    pub(in crate::saved_model) arguments: Vec<Vec<Spec>>,
    /// Whether recurrent layers are loops.
    loops: bool,
}

impl Traces {
    /// # Errors
    /// Those of the closure. [`Error::Trace`] if it does something else for other sizes.
    pub(in crate::saved_model) fn new(
        device: &Device,
        specs: &[TensorSpec],
        body: Body,
    ) -> Result<Self> {
        let looped = Traces::agreeing(device, specs, body, true);
        let mut assigns = false;
        if let Ok(traces) = &looped {
            let body = &traces.graphs[0].body;
            assigns = body.assigns_in_loops();
            if !assigns && !body.has_gradients() {
                return looped;
            }
        }
        // Step by step, the gradient of a recurrent layer can be written. And a step that assigns variables is called only as
        // often as it runs, while the trace of a loop calls it once more, for the shape of its result.
        match (Traces::agreeing(device, specs, body, false), assigns) {
            (Ok(unrolled), _) => Ok(unrolled),
            (Err(error), true) => Err(error),
            (Err(_), false) => looped,
        }
    }

    fn agreeing(device: &Device, specs: &[TensorSpec], body: Body, loops: bool) -> Result<Self> {
        // As few sizes as the function needs to agree.
        let mut tried = usize::MAX;
        let mut found = Err(different("cannot be traced"));
        for shared in [Shared::None, Shared::Batches, Shared::Numbers] {
            let open = OpenSizes::new(specs, shared);
            if open.places.len() < tried {
                tried = open.places.len();
                found = Traces::of(device, specs, body, open, loops);
            }
            if found.is_ok() {
                break;
            }
        }
        found
    }

    fn of(
        device: &Device,
        specs: &[TensorSpec],
        body: Body,
        open: OpenSizes,
        loops: bool,
    ) -> Result<Self> {
        let mut traces = Traces {
            samples: Samples::default(),
            sources: open.places.iter().map(|places| places[0]).collect(),
            graphs: Vec::new(),
            loops,
            arguments: vec![Vec::new(); specs.len()],
        };
        for sizes in open.first() {
            traces.add(device, specs, body, &open, sizes)?;
        }
        if open.places.is_empty() {
            return Ok(traces);
        }
        let first = traces.add(device, specs, body, &open, open.last(LAST[0]));
        let batches = open.places.iter().all(|places| places[0].1 == 0);
        let mut takes =
            |size: &usize| traces.add(device, specs, body, &open, open.last(*size)).is_ok();
        if first.is_err() && (batches || !LAST[1..].iter().any(&mut takes)) {
            return first.map(|()| traces);
        }
        // More sizes tell apart what is rounded, if the function takes them.
        let blocks: Vec<&OpBlock> = traces.graphs.iter().map(|graph| &graph.body).collect();
        if traces.has_others(&blocks) {
            let _ = traces.add(device, specs, body, &open, open.one_more());
        }
        Ok(traces)
    }

    /// Whether results have sizes that are neither sums nor products of open ones.
    fn has_others(&self, blocks: &[&OpBlock]) -> bool {
        (0..blocks[0].nodes.len()).any(|at| {
            let nodes: Vec<&OpNode> = blocks.iter().map(|block| &block.nodes[at]).collect();
            let OpNode::Call(call) = nodes[0] else {
                return (0..nodes[0].blocks().len()).any(|own| {
                    self.has_others(
                        &nodes.iter().map(|node| node.blocks()[own]).collect::<Vec<_>>(),
                    )
                });
            };
            (0..call.spec.shape.len()).any(|axis| {
                let size = |node: &&OpNode| match node {
                    OpNode::Call(call) => call.spec.shape[axis] as i64,
                    _ => 0,
                };
                let sizes: Vec<i64> = nodes.iter().map(size).collect();
                self.samples.of_open(&sizes).is_none()
            })
        })
    }

    /// The most turns of a loop; `None` for a loop without a limit.
    ///
    /// # Errors
    /// The reason why it cannot be written, a clause.
    pub(in crate::saved_model) fn most_turns(
        nodes: &[&OpNode],
        samples: &Samples,
    ) -> Found<Option<Number>> {
        let most: Vec<u64> = nodes
            .iter()
            .filter_map(
                |node| if let OpNode::Repeat { most, .. } = node { Some(*most) } else { None },
            )
            .collect();
        if most.iter().all(|most| *most == u64::MAX) {
            return Ok(None);
        }
        // Graphs count turns with `int32`.
        let most: Vec<i64> = most.iter().map(|most| (*most).min(i32::MAX as u64) as i64).collect();
        let number = samples.number(&most, &[]);
        number.map(Some).ok_or_else(|| {
            format!(
                "it has a loop whose most turns are neither a sum nor a product of the open sizes and those of earlier results \
                 ({most:?}); the signature has to give the sizes"
            )
        })
    }

    /// Traces the function with these sizes.
    fn add(
        &mut self,
        device: &Device,
        specs: &[TensorSpec],
        body: Body,
        open: &OpenSizes,
        sizes: Vec<usize>,
    ) -> Result<()> {
        let mut own: Vec<Spec> = specs
            .iter()
            .map(|spec| {
                let sizes: Vec<usize> = spec.shape().iter().map(|size| size.unwrap_or(0)).collect();
                Spec::new(sizes, spec.dtype())
            })
            .collect();
        for (places, size) in open.places.iter().zip(&sizes) {
            for (argument, axis) in places {
                let mut shape = own[*argument].shape.to_vec();
                shape[*axis] = *size;
                own[*argument].shape = shape.into();
            }
        }
        let graph = op_graph(device, &own, body, self.loops).map_err(|error| match sizes.is_empty() {
            true => error,
            false => {
                let shapes: Vec<String> = own.iter().map(Spec::to_string).collect();
                error.reworded(|text| {
                    message!(
                        "traced with {} for the open sizes: {text} If it needs other sizes, give the signature known ones.",
                        shapes.join(", ")
                    )
                })
            }
        })?;
        if let Some(first) = self.graphs.first() {
            if first.variables.iter().map(|v| v.id()).ne(graph.variables.iter().map(|v| v.id())) {
                return Err(different("uses other variables"));
            }
            same_block(&first.body, &graph.body)?;
        }
        self.graphs.push(graph);
        self.samples.open.push(sizes);
        self.arguments.iter_mut().zip(own).for_each(|(all, spec)| all.push(spec));
        Ok(())
    }
}

fn different(what: &str) -> Error {
    Error::Trace(message!(
        "the function {what} if its open sizes are others, so no graph can be written that is right for all of them. Give the \
         signature known sizes."
    ))
}

/// Compares what may not depend on sizes: the kinds of nodes, and where their inputs come from.
fn same_block(one: &OpBlock, two: &OpBlock) -> Result<()> {
    if one.nodes.len() != two.nodes.len() {
        return Err(different("makes more calls or fewer"));
    }
    for (a, b) in one.nodes.iter().zip(&two.nodes) {
        let same = match (a, b) {
            (OpNode::Captured(a), OpNode::Captured(b)) => {
                a.id() == b.id() || (a.spec() == b.spec() && a.to_bytes()? == b.to_bytes()?)
            }
            (OpNode::Call(a), OpNode::Call(b)) => {
                a.kind == b.kind && a.spec.shape.len() == b.spec.shape.len()
            }
            (OpNode::Argument(a), OpNode::Argument(b))
            | (OpNode::Read(a), OpNode::Read(b))
            | (OpNode::Outer(a), OpNode::Outer(b)) => a == b,
            (OpNode::Assign { variable: a, .. }, OpNode::Assign { variable: b, .. }) => a == b,
            (OpNode::Result { index: a, .. }, OpNode::Result { index: b, .. }) => a == b,
            (OpNode::Repeat { most: a, .. }, OpNode::Repeat { most: b, .. }) => {
                (*a == u64::MAX) == (*b == u64::MAX)
            }
            _ => std::mem::discriminant(a) == std::mem::discriminant(b),
        };
        if !same || a.inputs() != b.inputs() || a.blocks().len() != b.blocks().len() {
            let words = match (a, b) {
                (OpNode::Captured(_), OpNode::Captured(_)) => "uses a tensor with other values",
                _ => "makes other calls",
            };
            return Err(different(words));
        }
        for (a, b) in a.blocks().into_iter().zip(b.blocks()) {
            same_block(a, b)?;
        }
    }
    match one.outputs == two.outputs && one.captures == two.captures {
        true => Ok(()),
        false => Err(different("returns other values")),
    }
}
