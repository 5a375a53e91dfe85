//! [`Sizes`]: where a builder of nodes finds the sizes that numbers depend on.

use std::collections::HashMap;
use std::rc::Rc;

use super::number::Samples;
use crate::dtype::DType;
use crate::function::op_graph::{OpBlock, OpNode};
use crate::graph::Spec;

/// The sizes of a builder: the open ones, and those of results that are no sums or products of them. The file computes such a size
/// from the result itself, if a number depends on it.
#[derive(Clone, Default)]
pub(in crate::saved_model) struct Sizes {
    samples: Rc<Samples>,
    sizes: Vec<Size>,
    /// For each value, the sizes of results among what it is computed of.
    near: HashMap<String, Rc<[usize]>>,
}

/// A size in a file.
#[derive(Clone)]
pub(in crate::saved_model) enum Size {
    /// The value that is the size.
    Made(String),
    /// The size of an axis of a value.
    Of { value: String, dtype: DType, axis: usize },
}

impl Sizes {
    /// The open sizes, as these values.
    pub(in crate::saved_model) fn new(open: &Samples, values: Vec<String>) -> Self {
        let samples = Rc::new(Samples::new(open.open.clone()));
        let sizes = values.into_iter().map(Size::Made).collect();
        Sizes { samples, sizes, near: HashMap::new() }
    }

    pub(in crate::saved_model) fn samples(&self) -> Rc<Samples> {
        self.samples.clone()
    }

    /// The values that are the open sizes.
    pub(in crate::saved_model) fn open(&self) -> Vec<String> {
        let made = |size: &Size| match size {
            Size::Made(value) => Some(value.clone()),
            Size::Of { .. } => None,
        };
        self.sizes[..self.samples.open()].iter().filter_map(made).collect()
    }

    pub(in crate::saved_model) fn get(&self, size: usize) -> Size {
        self.sizes[size].clone()
    }

    /// The size is this value from now on.
    pub(in crate::saved_model) fn made(&mut self, size: usize, value: String) {
        self.sizes[size] = Size::Made(value);
    }

    /// Notes the sizes of a new value, which is computed of others; `specs` are its own in each trace.
    pub(in crate::saved_model) fn note(&mut self, value: &str, specs: &[Spec], of: &[String]) {
        if value.is_empty() || specs.is_empty() || self.near.contains_key(value) {
            return;
        }
        let mut near = self.near(of);
        for axis in 0..specs[0].shape.len() {
            let own: Vec<usize> = specs.iter().map(|spec| spec.shape[axis]).collect();
            let values: Vec<i64> = own.iter().map(|size| *size as i64).collect();
            let known = near.iter().any(|size| self.samples.has(*size, &own));
            if known || self.samples.of_open(&values).is_some() {
                continue;
            }
            near.push(Rc::make_mut(&mut self.samples).add(own));
            self.sizes.push(Size::Of { value: value.to_string(), dtype: specs[0].dtype, axis });
        }
        self.near.insert(value.to_string(), near.into());
    }

    /// The sizes of results among what these values are computed of, and their own.
    pub(in crate::saved_model) fn near(&self, values: &[String]) -> Vec<usize> {
        let mut all: Vec<usize> = values
            .iter()
            .filter_map(|value| self.near.get(value))
            .flat_map(|own| own.iter().copied())
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// The nodes whose sizes the numbers of a call depend on: its inputs. Those of a call without inputs, such as the divisor of a mean, are
/// what it meets where it is used first.
pub(in crate::saved_model) fn neighbours(block: &OpBlock, at: usize) -> Vec<usize> {
    let own = block.nodes[at].inputs();
    if !own.is_empty() {
        return own;
    }
    let uses = |node: &&OpNode| matches!(node, OpNode::Call(call) if call.inputs.contains(&at));
    let first = block.nodes[at + 1..].iter().find(uses);
    first.map_or(Vec::new(), |node| node.inputs().into_iter().filter(|other| *other < at).collect())
}
