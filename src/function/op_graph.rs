//! [`OpGraph`]: what a function does, as data that other libraries' formats can be made of.

use super::control_flow::{Mapping, WhileLoopOptions, while_loop_with};
use super::program::{At, Block, Call, Control, Entry, Program};
use super::traces::record;
use crate::eager::{self, Turn};
use crate::error::{Error, Result};
use crate::graph::Spec;
use crate::graph::attributes::Value;
use crate::runtime::Device;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// The calls of a function, in order. Nodes name others by their places in the list.
pub(crate) struct OpGraph {
    pub(crate) body: OpBlock,
    pub(crate) variables: Vec<Variable>,
}

#[derive(Default)]
pub(crate) struct OpBlock {
    pub(crate) nodes: Vec<OpNode>,
    pub(crate) outputs: Vec<usize>,
    /// The nodes around a branch or a turn whose values it uses, which [`OpNode::Outer`] names.
    pub(crate) captures: Vec<usize>,
}

pub(crate) enum OpNode {
    Argument(usize),
    Captured(Tensor),
    Call(OpCall),
    /// The value of a variable, by its index.
    Read(usize),
    StopGradient(usize),
    Same(usize),
    Assign {
        variable: usize,
        value: usize,
    },
    Outer(usize),
    /// Runs the branch of this index, the last one if there is none; a `bool` is 0 or 1.
    Choose {
        index: usize,
        branches: Vec<OpBlock>,
    },
    /// Replaces the values, initially `start`, by those of `body` while `cond` is true, at most this often.
    Repeat {
        cond: OpBlock,
        body: OpBlock,
        start: Vec<usize>,
        most: u64,
    },
    /// A result of a choice or a loop.
    Result {
        of: usize,
        index: usize,
    },
    /// What only this library can do, for this reason, which is a clause.
    Own(&'static str),
}

pub(crate) struct OpCall {
    /// The declared name of the op.
    pub(crate) kind: &'static str,
    /// TensorFlow's name.
    pub(crate) name: &'static str,
    pub(crate) attributes: Value,
    pub(crate) inputs: Vec<usize>,
    pub(crate) spec: Spec,
}

/// Why the gradient of a branch or a loop is [`OpNode::Own`].
const GRADIENT: &str = "it computes gradients of a branch or a loop";

/// The ops of `body` for arguments of these shapes and dtypes; ops that have kernels for a whole composition, such as a
/// recurrent layer, are composed of others. With `loops`, a recurrent layer is a loop over the steps.
///
/// # Errors
/// Those of `body`, and of a function that is traced.
pub(crate) fn op_graph(
    device: &Device,
    arguments: &[Spec],
    body: &dyn Fn(&[Tensor]) -> Result<Vec<Tensor>>,
    loops: bool,
) -> Result<OpGraph> {
    let arguments: Vec<Tensor> =
        arguments.iter().map(|spec| eager::placeholder_on(device, spec.clone())).collect();
    let traced = || record(device, &arguments, &|tensors: Vec<Tensor>| body(&tensors));
    let (program, _) = eager::composing(loops.then_some(repeated as eager::Loop), traced)?;
    let Program { entries, variables, outputs, .. } = program;
    Ok(OpGraph { body: block(entries, &outputs, &[]), variables })
}

/// The loop of a recurrent layer.
fn repeated(count: usize, start: Vec<Tensor>, body: Turn<'_>) -> Result<Vec<Tensor>> {
    if Mapping::is_active() {
        return Err(Error::Trace(
            "vectorized_map cannot map the loop over a recurrent layer's steps. Give its sequences a known length.".into(),
        ));
    }
    let first = start[0].device().scope(|| Tensor::scalar(0_i32))?;
    let options = WhileLoopOptions::new().maximum_iterations(count as u64);
    let again = |(turn, _): &(Tensor, Vec<Tensor>)| turn.greater_equal(0);
    let next = |(turn, values): (Tensor, Vec<Tensor>)| {
        let after = body(&turn, &values)?;
        Ok((turn.add(1)?, after))
    };
    Ok(while_loop_with(again, next, (first, start), options)?.1)
}

fn block(entries: Vec<Entry>, outputs: &[At], captures: &[At]) -> OpBlock {
    let places = |places: &[At]| places.iter().map(|at| *at as usize).collect();
    OpBlock {
        nodes: entries.into_iter().map(node).collect(),
        outputs: places(outputs),
        captures: places(captures),
    }
}

fn own_block(own: Block) -> OpBlock {
    block(own.entries, &own.outputs, &own.captures)
}

fn node(entry: Entry) -> OpNode {
    let at = |at: At| at as usize;
    match entry {
        Entry::Argument(number) => OpNode::Argument(number),
        Entry::Captured(tensor) => OpNode::Captured(tensor),
        Entry::Call(call) => called(call),
        Entry::Read(variable) => OpNode::Read(variable),
        Entry::Stopped(of) => OpNode::StopGradient(at(of)),
        Entry::Same(of) => OpNode::Same(at(of)),
        Entry::Assign { variable, value } => OpNode::Assign { variable, value: at(value) },
        Entry::Effect { .. } => OpNode::Own("it prints or checks values"),
        Entry::Count(_) => OpNode::Own("it advances a generator or a count of steps"),
        Entry::Outer(number) => OpNode::Outer(number),
        Entry::Control(Control::Choose { index, branches }) => OpNode::Choose {
            index: at(index),
            branches: branches.into_iter().map(own_block).collect(),
        },
        Entry::Control(Control::Repeat { cond, body, start, most, .. }) => OpNode::Repeat {
            cond: own_block(cond),
            body: own_block(body),
            start: start.into_iter().map(at).collect(),
            most,
        },
        Entry::Control(Control::Host { .. }) => OpNode::Own("it calls code on the host"),
        Entry::Gradient { .. } => OpNode::Own(GRADIENT),
        Entry::Result { of, index } => OpNode::Result { of: at(of), index },
    }
}

/// Functions of matrices that other libraries have as one op; in a trace they are the rules of their gradients.
const WHOLE: [&str; 8] = [
    "CholeskyRule",
    "DeterminantRule",
    "EigenvaluesRule",
    "InverseRule",
    "LogDeterminantRule",
    "SingularValuesRule",
    "SolveRule",
    "TriangularSolveRule",
];

fn called(call: Call) -> OpNode {
    if call.owner.is_some() {
        return OpNode::Own("it uses random numbers or numbers that training changes");
    }
    let first = call.inputs.first().map(|at| *at as usize);
    match (call.op.kind(), first) {
        // They are their first input, with another gradient or a demand on the order.
        ("CustomGradientResult" | "After" | "RecurrentWhole", Some(first)) => OpNode::Same(first),
        // A factorization that is one op elsewhere: its first input is the result, made of this crate's kernels.
        (kind, Some(first)) if kind.ends_with("Rule") && !WHOLE.contains(&kind) => {
            OpNode::Same(first)
        }
        (kind, _) => OpNode::Call(OpCall {
            kind,
            name: call.op.name(),
            attributes: Value::from_op(&*call.op),
            inputs: call.inputs[usize::from(WHOLE.contains(&kind))..]
                .iter()
                .map(|at| *at as usize)
                .collect(),
            spec: call.spec,
        }),
    }
}

impl OpNode {
    /// The nodes that it uses.
    pub(crate) fn inputs(&self) -> Vec<usize> {
        match self {
            OpNode::Call(call) => call.inputs.clone(),
            OpNode::StopGradient(of) | OpNode::Same(of) | OpNode::Result { of, .. } => vec![*of],
            OpNode::Assign { value, .. } => vec![*value],
            OpNode::Choose { index, branches } => {
                let captures = branches.iter().flat_map(|branch| &branch.captures);
                captures.chain([index]).copied().collect()
            }
            OpNode::Repeat { cond, body, start, .. } => {
                start.iter().chain(&cond.captures).chain(&body.captures).copied().collect()
            }
            OpNode::Argument(_)
            | OpNode::Captured(_)
            | OpNode::Read(_)
            | OpNode::Outer(_)
            | OpNode::Own(_) => Vec::new(),
        }
    }

    /// The blocks that it runs.
    pub(crate) fn blocks(&self) -> Vec<&OpBlock> {
        match self {
            OpNode::Choose { branches, .. } => branches.iter().collect(),
            OpNode::Repeat { cond, body, .. } => vec![cond, body],
            _ => Vec::new(),
        }
    }
}

impl OpBlock {
    /// Which nodes a result or an assignment needs.
    pub(crate) fn needed(&self) -> Vec<bool> {
        let mut needed = vec![false; self.nodes.len()];
        self.outputs.iter().for_each(|at| needed[*at] = true);
        for (at, node) in self.nodes.iter().enumerate().rev() {
            let acts = match node {
                OpNode::Assign { .. } | OpNode::Own(_) => true,
                _ => node.blocks().iter().any(|block| block.acts()),
            };
            needed[at] |= acts;
            if needed[at] {
                node.inputs().into_iter().for_each(|input| needed[input] = true);
            }
        }
        needed
    }

    /// Whether it computes gradients of branches or loops.
    pub(crate) fn has_gradients(&self) -> bool {
        self.any(&|node| matches!(node, OpNode::Own(GRADIENT)))
    }

    /// Whether a turn of a loop assigns variables.
    pub(crate) fn assigns_in_loops(&self) -> bool {
        let assigns = |node: &OpNode| matches!(node, OpNode::Assign { .. });
        self.any(&|node| matches!(node, OpNode::Repeat { body, .. } if body.any(&assigns)))
    }

    fn any(&self, is: &dyn Fn(&OpNode) -> bool) -> bool {
        let within = |node: &OpNode| node.blocks().iter().any(|block| block.any(is));
        self.nodes.iter().any(|node| is(node) || within(node))
    }

    /// Whether it assigns variables, or does what cannot be left out.
    pub(crate) fn acts(&self) -> bool {
        self.nodes.iter().any(|node| match node {
            OpNode::Assign { .. } | OpNode::Own(_) => true,
            _ => node.blocks().iter().any(|block| block.acts()),
        })
    }
}
