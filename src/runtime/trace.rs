//! [`Trace`]: calls that are recorded and do not run.
//!
//! The values of a trace have shapes and dtypes only. What does not depend on a placeholder can still be computed: it is
//! *released* to its device's stream when the program reads it, or if the program holds it when the trace ends.

use std::sync::Arc;

use smallvec::SmallVec;

use super::Device;
use crate::device::fresh_id;
use crate::error::Result;
use crate::graph::{Op, Spec, Traced, Value, ValueState, outside_its_trace};

pub(crate) struct Trace {
    /// Which trace of the process it is.
    number: u64,
    nodes: Vec<TracedNode>,
}

struct TracedNode {
    device: Device,
    op: Arc<dyn Op>,
    inputs: SmallVec<[Arc<Value>; 3]>,
    value: Arc<Value>,
    /// Whether it depends on a placeholder or on numbers of a later run, so that it cannot run now.
    symbolic: bool,
}

impl Trace {
    pub(crate) fn new() -> Self {
        Trace { number: fresh_id(), nodes: Vec::new() }
    }

    /// A value that only a run of the trace would have.
    pub(crate) fn placeholder(&self, spec: Spec) -> Arc<Value> {
        let traced = Traced { trace: self.number, node: None };
        Value::new("Placeholder", spec, ValueState::Traced(traced))
    }

    /// Records a call of `op` with values of `device`. If its numbers vary from run to run, it has no value before a run.
    pub(crate) fn push(
        &mut self,
        device: &Device,
        op: Arc<dyn Op>,
        inputs: &[&Arc<Value>],
        spec: Spec,
        varies: bool,
    ) -> Result<Arc<Value>> {
        device.check_size(op.name(), &spec)?;
        let symbolic = varies || inputs.iter().any(|value| self.is_symbolic(value));
        let traced = Traced { trace: self.number, node: Some(self.nodes.len() as u32) };
        let value = Value::new(op.name(), spec, ValueState::Traced(traced));
        let inputs = inputs.iter().map(|&input| input.clone()).collect();
        let node =
            TracedNode { device: device.clone(), op, inputs, value: value.clone(), symbolic };
        self.nodes.push(node);
        Ok(value)
    }

    /// Sends the calls that make `value` to their device's stream.
    ///
    /// # Errors
    /// [`Error::Trace`](crate::Error::Trace) if the value depends on a placeholder.
    pub(crate) fn release(&mut self, value: &Value) -> Result<()> {
        let Some(traced) = value.traced() else { return Ok(()) };
        match self.node_of(traced) {
            Some(node) if !self.nodes[node].symbolic => {
                self.release_nodes(vec![node]);
                Ok(())
            }
            _ => Err(outside_its_trace(value)),
        }
    }

    /// Ends the trace: values that the program still holds are computed or, if they depend on a placeholder, fail.
    pub(crate) fn end(mut self) {
        // Each node holds its value once, and those of its inputs.
        let mut holders = vec![1; self.nodes.len()];
        for node in &self.nodes {
            for input in &node.inputs {
                if let Some(at) = input.traced().and_then(|traced| self.node_of(traced)) {
                    holders[at] += 1;
                }
            }
        }
        let held = |at: &usize| Arc::strong_count(&self.nodes[*at].value) > holders[*at];
        let (symbolic, computed): (Vec<usize>, Vec<usize>) =
            (0..self.nodes.len()).filter(held).partition(|&at| self.nodes[at].symbolic);
        for at in symbolic {
            let value = &self.nodes[at].value;
            if value.traced().is_some() {
                value.set(ValueState::Failed(outside_its_trace(value)));
            }
        }
        self.release_nodes(computed);
    }

    /// Sends these nodes and those that they need to their devices' streams.
    fn release_nodes(&mut self, mut open: Vec<usize>) {
        let mut needed = Vec::new();
        let mut seen = vec![false; self.nodes.len()];
        while let Some(at) = open.pop() {
            // An earlier release may have sent it.
            if std::mem::replace(&mut seen[at], true) || self.nodes[at].value.traced().is_none() {
                continue;
            }
            needed.push(at);
            let inputs = self.nodes[at].inputs.iter();
            open.extend(inputs.filter_map(|input| self.node_of(input.traced()?)));
        }
        needed.sort_unstable();
        for at in needed {
            let TracedNode { device, op, inputs, value, .. } = &self.nodes[at];
            let inputs: SmallVec<[_; 3]> = inputs.iter().collect();
            device.push_traced(op.clone(), &inputs, value);
        }
    }

    fn is_symbolic(&self, value: &Value) -> bool {
        let node = |traced| self.node_of(traced).is_none_or(|at| self.nodes[at].symbolic);
        value.traced().is_some_and(node)
    }

    /// The node of this trace that makes a value.
    fn node_of(&self, traced: Traced) -> Option<usize> {
        traced.node.filter(|_| traced.trace == self.number).map(|node| node as usize)
    }
}
