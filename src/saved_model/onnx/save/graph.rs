//! [`Writer`]: the graphs of a model, written from traces.

use std::collections::{BTreeSet, HashMap};

use super::super::proto::{GraphProto, ValueInfoProto};
use super::builder::{Attribute, Builder, Out, number_of, type_of};
use super::ops;
use crate::dtype::DType;
use crate::function::op_graph::{OpBlock, OpNode};
use crate::graph::Spec;
use crate::host_array::{HostArray, HostDType};
use crate::saved_model::traced::{Site, Traces, merged, neighbours};
use crate::variable::Variable;

/// Writes the blocks of a function, and collects what cannot be written.
pub(super) struct Writer<'a> {
    pub(super) variables: &'a [Variable],
    /// The names of the variables' initializers.
    pub(super) names: HashMap<usize, Out>,
    pub(super) problems: Vec<String>,
}

/// A value as each trace has it.
type Value = (Out, Vec<Spec>);

/// What a block's nodes can use.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) arguments: Vec<Value>,
    pub(super) outer: Vec<Value>,
}

/// The results of a node.
type Made = Vec<Value>;

/// The variables that a block uses.
pub(super) fn variables_of(block: &OpBlock, used: &mut BTreeSet<usize>) {
    for node in &block.nodes {
        if let OpNode::Read(variable) = node {
            used.insert(*variable);
        }
        node.blocks().into_iter().for_each(|block| variables_of(block, used));
    }
}

impl Writer<'_> {
    fn problem(&mut self, problem: String) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Writes a block as all traces have it; returns its results.
    pub(super) fn block(
        &mut self,
        b: &mut Builder,
        blocks: &[&OpBlock],
        scope: &Scope,
    ) -> Vec<Value> {
        let needed = blocks[0].needed();
        let mut made: Vec<Made> = vec![Vec::new(); needed.len()];
        let count = blocks.len();
        for at in (0..needed.len()).filter(|at| needed[*at]) {
            made[at] = match &blocks[0].nodes[at] {
                OpNode::Argument(number) => vec![scope.arguments[*number].clone()],
                OpNode::Outer(number) => vec![scope.outer[*number].clone()],
                OpNode::Captured(tensor) => {
                    let out = match HostArray::from_tensor(tensor) {
                        Ok(array) => b.constant(&array),
                        Err(error) => {
                            self.problem(format!("a captured tensor cannot be read: {error}"));
                            Out::new()
                        }
                    };
                    vec![(out, vec![tensor.spec().clone(); count])]
                }
                OpNode::Read(variable) => {
                    let spec = self.variables[*variable].spec().clone();
                    vec![(self.names[variable].clone(), vec![spec; count])]
                }
                OpNode::Same(of) => made[*of].clone(),
                OpNode::StopGradient(of) => made[*of].clone(),
                OpNode::Assign { .. } => {
                    self.problem("it assigns a variable".to_string());
                    Vec::new()
                }
                OpNode::Call(call) => {
                    let calls = blocks.iter().filter_map(|block| match &block.nodes[at] {
                        OpNode::Call(call) => Some(call),
                        _ => None,
                    });
                    let calls: Vec<_> = calls.collect();
                    let inputs: Vec<Out> =
                        call.inputs.iter().map(|input| made[*input][0].0.clone()).collect();
                    let specs: Vec<&[Spec]> =
                        call.inputs.iter().map(|input| &made[*input][0].1[..]).collect();
                    let own: Vec<Spec> = calls.iter().map(|call| call.spec.clone()).collect();
                    let site = Site {
                        samples: b.sizes.samples(),
                        near: b.sizes.near(&outs_of(&made, &neighbours(blocks[0], at))),
                        calls,
                        inputs: specs,
                    };
                    // What an input is, is not known if what makes it cannot be written.
                    let known = site.inputs.iter().all(|specs| !specs.is_empty());
                    let out = match known.then(|| ops::write(b, &site, &inputs)) {
                        Some(Ok(out)) => out,
                        Some(Err(why)) => {
                            self.problem(format!("{} -> {} {why}", call.name, call.spec));
                            Out::new()
                        }
                        None => Out::new(),
                    };
                    vec![(out, own)]
                }
                OpNode::Choose { .. } | OpNode::Repeat { .. }
                    if blocks[0].nodes[at]
                        .inputs()
                        .iter()
                        .any(|input| made[*input][0].1.is_empty()) =>
                {
                    vec![Value::default()]
                }
                OpNode::Choose { index, branches } => {
                    let (index, specs) = made[*index][0].clone();
                    let nodes: Vec<&OpNode> = blocks.iter().map(|block| &block.nodes[at]).collect();
                    self.choose(b, &nodes, branches.len(), 0, (&index, specs[0].dtype), &made)
                }
                OpNode::Repeat { .. } => {
                    let nodes: Vec<&OpNode> = blocks.iter().map(|block| &block.nodes[at]).collect();
                    self.repeat(b, &nodes, &made)
                }
                OpNode::Result { of, index } => {
                    vec![made[*of].get(*index).cloned().unwrap_or_default()]
                }
                OpNode::Own(why) => {
                    self.problem(why.to_string());
                    vec![Value::default()]
                }
            };
            let of = outs_of(&made, &blocks[0].nodes[at].inputs());
            for (out, specs) in &made[at] {
                b.sizes.note(out, specs, &of);
            }
        }
        let outputs = &blocks[0].outputs;
        outputs.iter().map(|at| made[*at].first().cloned().unwrap_or_default()).collect()
    }

    /// The scope of block `place` of a node.
    fn inner_scope(
        &self,
        nodes: &[&OpNode],
        place: usize,
        made: &[Made],
        arguments: Vec<Value>,
    ) -> Scope {
        let captures = &nodes[0].blocks()[place].captures;
        let outer = captures.iter().map(|at| made[*at].first().cloned().unwrap_or_default());
        Scope { arguments, outer: outer.collect() }
    }

    /// The graph of block `place` of a node, with these arguments; and the specs of its results.
    fn graph(
        &mut self,
        b: &mut Builder,
        nodes: &[&OpNode],
        place: usize,
        made: &[Made],
    ) -> (GraphProto, Vec<Vec<Spec>>) {
        let mut inner = b.inner();
        let blocks: Vec<&OpBlock> = nodes.iter().map(|node| node.blocks()[place]).collect();
        let scope = self.inner_scope(nodes, place, made, Vec::new());
        let results = self.block(&mut inner, &blocks, &scope);
        let (outs, specs): (Vec<Out>, Vec<Vec<Spec>>) = results.into_iter().unzip();
        (finished(b, inner, "branch", Vec::new(), outs), specs)
    }

    /// `If` by the index from `place` on: an index that does not exist is the last branch.
    fn choose(
        &mut self,
        b: &mut Builder,
        nodes: &[&OpNode],
        branches: usize,
        place: usize,
        (index, dtype): (&Out, DType),
        made: &[Made],
    ) -> Made {
        let mut other = b.inner();
        let (then, specs, rest) = if place + 2 < branches {
            let rest = self.choose(&mut other, nodes, branches, place + 1, (index, dtype), made);
            let outs: Vec<Out> = rest.into_iter().map(|(out, _)| out).collect();
            let rest = finished(b, other, "branch", Vec::new(), outs);
            let (then, specs) = self.graph(b, nodes, place, made);
            (then, specs, rest)
        } else {
            let (then, specs) = self.graph(b, nodes, place, made);
            (then, specs, self.graph(b, nodes, branches - 1, made).0)
        };
        let is = match dtype {
            DType::Bool => b.op("Not", &[index], []),
            _ => {
                let own = b.scalar(dtype, place as u32);
                b.op("Equal", &[index, &own], [])
            }
        };
        let outs: Vec<Out> = specs.iter().map(|_| b.name("If")).collect();
        let attributes =
            [("then_branch", Attribute::Graph(then)), ("else_branch", Attribute::Graph(rest))];
        b.node("If", [is], outs.clone(), attributes);
        outs.into_iter().zip(specs).collect()
    }

    /// `Loop`: the condition is computed before it, and at the end of each turn.
    fn repeat(&mut self, b: &mut Builder, nodes: &[&OpNode], made: &[Made]) -> Made {
        let OpNode::Repeat { start, .. } = nodes[0] else { return Vec::new() };
        let values: Vec<Value> = start.iter().map(|at| made[*at][0].clone()).collect();
        let blocks = |place: usize| -> Vec<&OpBlock> {
            nodes.iter().map(|node| node.blocks()[place]).collect()
        };
        let scope = self.inner_scope(nodes, 0, made, values.clone());
        let first = self.block(b, &blocks(0), &scope);
        let first = truth(b, &first[0]);
        let mut inner = b.inner();
        let (turn, before) = (inner.name("turn"), inner.name("goes_on"));
        let mut inputs = vec![
            super::info(&turn, &[], number_of(HostDType::I64)),
            super::info(&before, &[], type_of(DType::Bool)),
        ];
        let mut arguments = Vec::new();
        for (_, specs) in &values {
            let name = inner.name("value");
            inputs.push(super::value_info(&name, &merged(specs), &[]));
            arguments.push((name, specs.clone()));
        }
        let scope = self.inner_scope(nodes, 1, made, arguments);
        let next = self.block(&mut inner, &blocks(1), &scope);
        let scope = self.inner_scope(nodes, 0, made, next.clone());
        let goes_on = self.block(&mut inner, &blocks(0), &scope);
        let goes_on = truth(&mut inner, &goes_on[0]);
        let outs = [goes_on].into_iter().chain(next.into_iter().map(|(out, _)| out)).collect();
        let body = finished(b, inner, "body", inputs, outs);
        let most = match Traces::most_turns(nodes, &b.sizes.samples()) {
            Ok(Some(most)) => b.number(&most),
            Ok(None) => Out::new(),
            Err(why) => {
                self.problem(why);
                Out::new()
            }
        };
        let outs: Vec<Out> = values.iter().map(|_| b.name("Loop")).collect();
        let inputs = [most, first].into_iter().chain(values.iter().map(|(out, _)| out.clone()));
        b.node("Loop", inputs, outs.clone(), [("body", Attribute::Graph(body))]);
        outs.into_iter().zip(values).map(|(out, (_, specs))| (out, specs)).collect()
    }
}

/// The results of these nodes.
fn outs_of(made: &[Made], nodes: &[usize]) -> Vec<Out> {
    nodes.iter().flat_map(|node| made[*node].iter().map(|(out, _)| out.clone())).collect()
}

/// A condition as `bool`.
fn truth(b: &mut Builder, (x, specs): &Value) -> Out {
    match specs.first().map(|spec| spec.dtype) {
        Some(DType::Bool) | None => x.clone(),
        _ => b.cast(x, DType::Bool),
    }
}

/// The graph of a builder, whose results are its own values; its names stay taken.
fn finished(
    outer: &mut Builder,
    mut inner: Builder,
    word: &str,
    input: Vec<ValueInfoProto>,
    outs: Vec<Out>,
) -> GraphProto {
    // A result may be a value from around the graph, or occur twice.
    let output: Vec<ValueInfoProto> = outs
        .iter()
        .map(|out| {
            let own = inner.op("Identity", &[out], []);
            ValueInfoProto { name: own, r#type: None }
        })
        .collect();
    outer.count = inner.count;
    let name = outer.name(word);
    GraphProto { node: inner.nodes, name, initializer: Vec::new(), input, output }
}
