//! [`Traces`]: a closure traced with several sizes, so that what depends on open sizes shows.

use super::number::Samples;
use crate::error::{Error, Result, message};
use crate::function::TensorSpec;
use crate::function::op_graph::{OpBlock, OpGraph, OpNode, op_graph};
use crate::graph::Spec;
use crate::runtime::Device;
use crate::tensor::Tensor;

/// The sizes with which batches, and other axes, are traced: the base, another one, and the last.
const BATCHES: [usize; 3] = [2, 3, 7];
const OTHERS: [usize; 3] = [64, 96, 160];

/// The open sizes of a function's arguments.
struct OpenSizes {
    /// For each size, the axes that have it: the argument and the axis.
    places: Vec<Vec<(usize, usize)>>,
}

impl OpenSizes {
    /// Batches are one size. Of other axes, each is one, or those of a number in all arguments.
    fn new(specs: &[TensorSpec], together: bool) -> Self {
        let mut places: Vec<Vec<(usize, usize)>> = Vec::new();
        for (argument, spec) in specs.iter().enumerate() {
            for (axis, size) in spec.shape().iter().enumerate() {
                if size.is_some() {
                    continue;
                }
                let known = places.iter_mut().find(|places| {
                    (axis == 0 || together) && places.iter().any(|(_, other)| *other == axis)
                });
                match known {
                    Some(places) => places.push((argument, axis)),
                    None => places.push(vec![(argument, axis)]),
                }
            }
        }
        OpenSizes { places }
    }

    /// The sizes of each trace.
    fn samples(&self) -> Samples {
        let size = |open: usize, choice: usize| match self.places[open][0].1 {
            0 => BATCHES[choice],
            // Sizes that differ from each other show which of them a number depends on.
            _ => OTHERS[choice] + 16 * open,
        };
        let all = |choice: &dyn Fn(usize) -> usize| -> Vec<usize> {
            (0..self.places.len()).map(|open| size(open, choice(open))).collect()
        };
        let mut samples = vec![all(&|_| 0)];
        for changed in 0..self.places.len() {
            samples.push(all(&|open| usize::from(open == changed)));
        }
        if !self.places.is_empty() {
            samples.push(all(&|_| 2));
        }
        Samples(samples)
    }
}

/// What a closure does, traced once for each of the [`Samples`].
pub(in crate::saved_model) struct Traces {
    pub(in crate::saved_model) samples: Samples,
    /// The argument and the axis that have each open size.
    pub(in crate::saved_model) sources: Vec<(usize, usize)>,
    pub(in crate::saved_model) graphs: Vec<OpGraph>,
    /// The specs of each argument, in each trace.
    pub(in crate::saved_model) arguments: Vec<Vec<Spec>>,
}

impl Traces {
    /// # Errors
    /// Those of the closure. [`Error::Trace`] if it does something else for other sizes.
    pub(in crate::saved_model) fn new(
        device: &Device,
        specs: &[TensorSpec],
        body: &dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    ) -> Result<Self> {
        let apart = OpenSizes::new(specs, false);
        let together = OpenSizes::new(specs, true);
        let several = apart.places.len() > together.places.len();
        match Traces::of(device, specs, body, apart) {
            // Sizes that must agree: a sequence and its mask.
            Err(_) if several => Traces::of(device, specs, body, together),
            other => other,
        }
    }

    fn of(
        device: &Device,
        specs: &[TensorSpec],
        body: &dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>,
        open: OpenSizes,
    ) -> Result<Self> {
        let samples = open.samples();
        let mut graphs: Vec<OpGraph> = Vec::new();
        let mut arguments: Vec<Vec<Spec>> = vec![Vec::new(); specs.len()];
        for sizes in &samples.0 {
            let mut own: Vec<Spec> = specs
                .iter()
                .map(|spec| {
                    let sizes: Vec<usize> =
                        spec.shape().iter().map(|size| size.unwrap_or(0)).collect();
                    Spec::new(sizes, spec.dtype())
                })
                .collect();
            for (places, size) in open.places.iter().zip(sizes) {
                for (argument, axis) in places {
                    let mut shape = own[*argument].shape.to_vec();
                    shape[*axis] = *size;
                    own[*argument].shape = shape.into();
                }
            }
            let graph = op_graph(device, &own, body).map_err(|error| match sizes.is_empty() {
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
            if let Some(first) = graphs.first() {
                if first.variables.iter().map(|v| v.id()).ne(graph.variables.iter().map(|v| v.id()))
                {
                    return Err(different("uses other variables"));
                }
                same_block(&first.body, &graph.body)?;
            }
            graphs.push(graph);
            arguments.iter_mut().zip(own).for_each(|(all, spec)| all.push(spec));
        }
        let sources = open.places.iter().map(|places| places[0]).collect();
        Ok(Traces { samples, sources, graphs, arguments })
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
