//! [`Library`]: the functions of a graph, written from traces.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::builder::{Builder, Out, dtype_attr, function, type_of, types};
use super::ops;
use crate::dtype::DType;
use crate::files::protobuf::TensorShapeProto;
use crate::function::op_graph::{OpBlock, OpNode};
use crate::graph::Spec;
use crate::host_array::{HostArray, HostDType};
use crate::saved_model::graph_def::proto::{
    ArgDef, Attr, FunctionDef, HandleData, ListValue, NameAttrList, NodeDef, OpDef,
};
use crate::saved_model::traced::{Number, Site, Sizes, Traces, neighbours};
use crate::variable::Variable;

/// `DT_RESOURCE`: a variable itself, not its value.
pub(super) const RESOURCE: i32 = 20;

/// The functions that have been written, and what could not be.
#[derive(Default)]
pub(super) struct Library {
    pub(super) functions: Vec<FunctionDef>,
    /// Each problem, a sentence without its end.
    pub(super) problems: Vec<String>,
}

/// What a block's nodes can use.
#[derive(Default)]
struct Scope<'a> {
    arguments: Vec<(Out, Vec<Spec>)>,
    outer: Vec<(Out, Vec<Spec>)>,
    /// The handles of variables, by their indices.
    handles: HashMap<usize, Out>,
    /// The variables that anything assigns.
    assigned: BTreeSet<usize>,
    variables: &'a [Variable],
}

/// The order in which nodes use a variable.
#[derive(Default)]
struct Uses {
    /// The node that assigned it last.
    assigned: Option<String>,
    /// The nodes that read it since.
    read: Vec<String>,
    /// Its value, if nothing assigns it.
    value: Option<Out>,
}

/// A result of a node: its name and, for each trace, its shape and dtype.
#[derive(Clone, Default)]
struct Made {
    outs: Vec<Out>,
    specs: Vec<Vec<Spec>>,
}

/// A function's arguments and results, and the nodes that must run.
pub(super) struct Written {
    /// The names of the results' nodes.
    pub(super) results: Vec<Out>,
    pub(super) specs: Vec<Vec<Spec>>,
    pub(super) effects: Vec<String>,
}

/// The variables that a block uses, and those that it assigns.
pub(super) fn variables_of(
    block: &OpBlock,
    used: &mut BTreeSet<usize>,
    assigned: &mut BTreeSet<usize>,
) {
    for node in &block.nodes {
        match node {
            OpNode::Read(variable) => drop(used.insert(*variable)),
            OpNode::Assign { variable, .. } => {
                used.insert(*variable);
                assigned.insert(*variable);
            }
            _ => node.blocks().into_iter().for_each(|block| variables_of(block, used, assigned)),
        }
    }
}

pub(super) fn argument(name: &str, dtype: HostDType) -> ArgDef {
    ArgDef { name: name.to_string(), r#type: dtype.number(), handle_data: Vec::new() }
}

/// The argument that is a variable.
pub(super) fn handle(name: &str, variable: &Variable) -> ArgDef {
    let spec = variable.spec();
    let data = HandleData {
        dtype: HostDType::from(spec.dtype).number(),
        shape: Some(TensorShapeProto::new(&spec.shape)),
    };
    ArgDef { name: name.to_string(), r#type: RESOURCE, handle_data: vec![data] }
}

/// A function of these nodes.
pub(super) fn define(
    name: &str,
    input_arg: Vec<ArgDef>,
    outputs: Vec<(ArgDef, Out)>,
    builder: Builder,
    effects: &[String],
    stateful: bool,
) -> FunctionDef {
    let ret: BTreeMap<String, String> =
        outputs.iter().map(|(arg, out)| (arg.name.clone(), out.clone())).collect();
    let control_ret: BTreeMap<String, String> =
        effects.iter().map(|node| (node.clone(), node.clone())).collect();
    let mut nodes = builder.nodes;
    let read: HashSet<&str> =
        nodes.iter().flat_map(|node| &node.input).map(String::as_str).collect();
    let dropped = |node: &NodeDef| {
        let out = format!("{}:output:0", node.name);
        node.op == "Const" && !read.contains(&out[..]) && !ret.values().any(|result| *result == out)
    };
    let unread: Vec<bool> = nodes.iter().map(dropped).collect();
    let mut each = unread.iter();
    nodes.retain(|_| !each.next().copied().unwrap_or(false));
    FunctionDef {
        signature: Some(OpDef {
            name: name.to_string(),
            input_arg,
            output_arg: outputs.into_iter().map(|(arg, _)| arg).collect(),
            is_stateful: stateful,
            control_output: control_ret.keys().cloned().collect(),
        }),
        node_def: nodes,
        ret,
        control_ret,
        attr: BTreeMap::new(),
    }
}

impl Library {
    /// Writes the body of a function; `names` are those of its arguments, `handles` those of its variables.
    pub(super) fn body(
        &mut self,
        builder: &mut Builder,
        traces: &Traces,
        names: &[String],
        handles: HashMap<usize, Out>,
    ) -> Written {
        let sizes = traces.sources.iter().map(|(argument, axis)| {
            let dtype = traces.arguments[*argument][0].dtype;
            builder.size_of(&names[*argument], dtype, *axis)
        });
        builder.sizes = Sizes::new(&traces.samples, sizes.collect());
        let (mut used, mut assigned) = (BTreeSet::new(), BTreeSet::new());
        variables_of(&traces.graphs[0].body, &mut used, &mut assigned);
        let arguments = names.iter().cloned().zip(traces.arguments.iter().cloned()).collect();
        let variables = &traces.graphs[0].variables[..];
        let scope = Scope { arguments, outer: Vec::new(), handles, assigned, variables };
        let blocks: Vec<&OpBlock> = traces.graphs.iter().map(|graph| &graph.body).collect();
        self.block(builder, traces, &blocks, &scope)
    }

    /// Writes a block as all traces have it.
    fn block(
        &mut self,
        builder: &mut Builder,
        traces: &Traces,
        blocks: &[&OpBlock],
        scope: &Scope,
    ) -> Written {
        let needed = blocks[0].needed();
        let mut made: Vec<Made> = vec![Made::default(); needed.len()];
        let mut uses: HashMap<usize, Uses> = HashMap::new();
        let mut effects = Vec::new();
        let count = blocks.len();
        for at in (0..needed.len()).filter(|at| needed[*at]) {
            let one = |out: Out, specs: Vec<Spec>| Made { outs: vec![out], specs: vec![specs] };
            made[at] = match &blocks[0].nodes[at] {
                OpNode::Argument(number) => {
                    let (out, specs) = &scope.arguments[*number];
                    one(out.clone(), specs.clone())
                }
                OpNode::Outer(number) => {
                    let (out, specs) = &scope.outer[*number];
                    one(out.clone(), specs.clone())
                }
                OpNode::Captured(tensor) => {
                    let out = match HostArray::from_tensor(tensor) {
                        Ok(array) => builder.constant(&array),
                        Err(error) => {
                            self.problem(format!("a captured tensor cannot be read: {error}"));
                            Out::new()
                        }
                    };
                    one(out, vec![tensor.spec().clone(); count])
                }
                OpNode::Read(variable) => {
                    let spec = scope.variables[*variable].spec().clone();
                    let out = self.read(builder, scope, *variable, &mut uses);
                    one(out, vec![spec; count])
                }
                OpNode::Same(of) => made[*of].clone(),
                OpNode::StopGradient(of) if made[*of].specs[0].is_empty() => made[*of].clone(),
                OpNode::StopGradient(of) => {
                    let (out, specs) = (&made[*of].outs[0], made[*of].specs[0].clone());
                    one(builder.op("StopGradient", &[out], [("T", type_of(specs[0].dtype))]), specs)
                }
                OpNode::Assign { variable, value } => {
                    let own = uses.entry(*variable).or_default();
                    let value = made[*value].outs[0].clone();
                    let before = own.read.drain(..).chain(own.assigned.take());
                    let before = before.map(|node| format!("^{node}"));
                    let inputs = [scope.handles[variable].clone(), value].into_iter().chain(before);
                    let dtype = scope.variables[*variable].spec().dtype;
                    let node =
                        builder.node("AssignVariableOp", inputs, [("dtype", type_of(dtype))]);
                    own.assigned = Some(node.clone());
                    effects.push(node);
                    Made::default()
                }
                OpNode::Call(call) => {
                    let calls = blocks.iter().filter_map(|block| match &block.nodes[at] {
                        OpNode::Call(call) => Some(call),
                        _ => None,
                    });
                    let calls: Vec<_> = calls.collect();
                    let inputs: Vec<Out> =
                        call.inputs.iter().map(|input| made[*input].outs[0].clone()).collect();
                    let specs: Vec<&[Spec]> =
                        call.inputs.iter().map(|input| &made[*input].specs[0][..]).collect();
                    let own: Vec<Spec> = calls.iter().map(|call| call.spec.clone()).collect();
                    let site = Site {
                        samples: builder.sizes.samples(),
                        near: builder.sizes.near(&outs_of(&made, &neighbours(blocks[0], at))),
                        calls,
                        inputs: specs,
                    };
                    // What an input is, is not known if what makes it cannot be written.
                    let known = site.inputs.iter().all(|specs| !specs.is_empty());
                    let out = match known.then(|| ops::write(builder, &site, &inputs)) {
                        Some(Ok(out)) => out,
                        Some(Err(why)) => {
                            self.problem(format!("{} -> {} {why}", call.name, call.spec));
                            Out::new()
                        }
                        None => Out::new(),
                    };
                    one(out, own)
                }
                OpNode::Choose { .. } | OpNode::Repeat { .. }
                    if blocks[0].nodes[at]
                        .inputs()
                        .iter()
                        .any(|input| made[*input].specs[0].is_empty()) =>
                {
                    one(Out::new(), Vec::new())
                }
                OpNode::Choose { .. } | OpNode::Repeat { .. } => {
                    let nodes: Vec<&OpNode> = blocks.iter().map(|block| &block.nodes[at]).collect();
                    self.control(builder, traces, &nodes, &made, scope, &mut uses, &mut effects)
                }
                OpNode::Result { of, index } => Made {
                    outs: vec![made[*of].outs.get(*index).cloned().unwrap_or_default()],
                    specs: vec![made[*of].specs.get(*index).cloned().unwrap_or_default()],
                },
                OpNode::Own(why) => {
                    self.problem(why.to_string());
                    one(Out::new(), Vec::new())
                }
            };
            let of = outs_of(&made, &blocks[0].nodes[at].inputs());
            for (out, specs) in made[at].outs.iter().zip(&made[at].specs) {
                builder.sizes.note(out, specs, &of);
            }
        }
        let outputs = &blocks[0].outputs;
        Written {
            results: outputs.iter().map(|at| made[*at].outs[0].clone()).collect(),
            specs: outputs.iter().map(|at| made[*at].specs[0].clone()).collect(),
            effects,
        }
    }

    fn problem(&mut self, problem: String) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    fn read(
        &mut self,
        builder: &mut Builder,
        scope: &Scope,
        variable: usize,
        uses: &mut HashMap<usize, Uses>,
    ) -> Out {
        let own = uses.entry(variable).or_default();
        if let Some(value) = &own.value {
            return value.clone();
        }
        let before = own.assigned.iter().map(|node| format!("^{node}"));
        let inputs = [scope.handles[&variable].clone()].into_iter().chain(before);
        let dtype = scope.variables[variable].spec().dtype;
        let node = builder.node("ReadVariableOp", inputs, [("dtype", type_of(dtype))]);
        let out = format!("{node}:value:0");
        match scope.assigned.contains(&variable) {
            true => own.read.push(node),
            false => own.value = Some(out.clone()),
        }
        out
    }

    /// Writes a choice or a loop, whose blocks become functions of the same arguments: the values of a loop, what the blocks
    /// capture, the open sizes, and the variables.
    #[allow(clippy::too_many_arguments)]
    fn control(
        &mut self,
        builder: &mut Builder,
        traces: &Traces,
        nodes: &[&OpNode],
        made: &[Made],
        scope: &Scope,
        uses: &mut HashMap<usize, Uses>,
        effects: &mut Vec<String>,
    ) -> Made {
        let own = nodes[0].blocks();
        let (mut used, mut assigned) = (BTreeSet::new(), BTreeSet::new());
        own.iter().for_each(|block| variables_of(block, &mut used, &mut assigned));
        let start = if let OpNode::Repeat { start, .. } = nodes[0] { &start[..] } else { &[][..] };
        let most = Traces::most_turns(nodes, &builder.sizes.samples()).unwrap_or_else(|why| {
            self.problem(why);
            None
        });
        let is_loop = matches!(nodes[0], OpNode::Repeat { .. });
        let bounded = most.is_some();
        let mut inputs: Vec<Out> = Vec::new();
        let mut arguments: Vec<ArgDef> = Vec::new();
        let add = |out: Out, dtype: DType, inputs: &mut Vec<Out>, arguments: &mut Vec<ArgDef>| {
            let name = format!("in{}", inputs.len());
            inputs.push(out);
            arguments.push(argument(&name, dtype.into()));
            name
        };
        if is_loop {
            // TensorFlow's gradient of a loop takes its first values as the number of turns and the most of them, or -1.
            let counter = builder.i32(0);
            let most = builder.number(&most.unwrap_or(Number::Known(-1)));
            for out in [counter, most] {
                add(out, DType::I32, &mut inputs, &mut arguments);
            }
        }
        let mut values = Vec::new();
        for at in start {
            let (out, specs) = (made[*at].outs[0].clone(), made[*at].specs[0].clone());
            let name = add(out, specs[0].dtype, &mut inputs, &mut arguments);
            values.push((name, specs));
        }
        let mut outer = Vec::new();
        for block in &own {
            let mut captured = Vec::new();
            for at in &block.captures {
                let (out, specs) = (made[*at].outs[0].clone(), made[*at].specs[0].clone());
                let name = add(out, specs[0].dtype, &mut inputs, &mut arguments);
                captured.push((name, specs));
            }
            outer.push(captured);
        }
        let mut sizes = Vec::new();
        for size in builder.sizes.open() {
            sizes.push(add(size, DType::I32, &mut inputs, &mut arguments));
        }
        let mut handles = HashMap::new();
        let mut kinds: Vec<i32> = arguments.iter().map(|arg| arg.r#type).collect();
        for variable in &used {
            let name = format!("in{}", inputs.len());
            inputs.push(scope.handles[variable].clone());
            arguments.push(handle(&name, &scope.variables[*variable]));
            kinds.push(RESOURCE);
            handles.insert(*variable, name);
        }
        let stateful = !used.is_empty();
        let mut names = Vec::new();
        let mut results: Vec<Vec<Spec>> = Vec::new();
        for (place, captured) in outer.into_iter().enumerate() {
            let blocks: Vec<&OpBlock> = nodes.iter().map(|node| node.blocks()[place]).collect();
            let inner = Scope {
                arguments: values.clone(),
                outer: captured,
                handles: handles.clone(),
                assigned: assigned.clone(),
                variables: scope.variables,
            };
            let mut body = Builder::with_sizes(Sizes::new(&traces.samples, sizes.clone()));
            let written = self.block(&mut body, traces, &blocks, &inner);
            let mut outs: Vec<Out> = written.results;
            let mut own_kinds: Vec<i32> = Vec::new();
            let (is_cond, is_body) = (is_loop && place == 0, is_loop && place == 1);
            if is_cond {
                let goes_on = truth(&mut body, &outs[0], written.specs[0][0].dtype);
                outs = vec![match bounded {
                    true => {
                        let (counter, most) = ("in0".to_string(), "in1".to_string());
                        let less =
                            body.op("Less", &[&counter, &most], [("T", type_of(DType::I32))]);
                        body.op("LogicalAnd", &[&goes_on, &less], [])
                    }
                    false => goes_on,
                }];
                own_kinds.push(HostDType::Bool.number());
            } else {
                if is_body {
                    let (counter, one) = ("in0".to_string(), body.i32(1));
                    let next = body.op("AddV2", &[&counter, &one], [("T", type_of(DType::I32))]);
                    outs.splice(0..0, [next, "in1".to_string()]);
                    own_kinds.extend([HostDType::I32.number(); 2]);
                }
                let dtypes =
                    written.specs.iter().map(|specs| HostDType::from(specs[0].dtype).number());
                own_kinds.extend(dtypes);
                if is_body {
                    // What does not change is passed on.
                    let more = arguments[outs.len()..].iter();
                    own_kinds.extend(more.clone().map(|arg| arg.r#type));
                    outs.extend(more.map(|arg| arg.name.clone()));
                }
                results = written.specs;
            }
            let outputs: Vec<(ArgDef, Out)> = outs
                .into_iter()
                .zip(&own_kinds)
                .enumerate()
                .map(|(at, (out, kind))| {
                    let arg =
                        ArgDef { name: format!("out{at}"), r#type: *kind, handle_data: Vec::new() };
                    (arg, out)
                })
                .collect();
            let word = if is_cond {
                "cond"
            } else if is_body {
                "body"
            } else {
                "branch"
            };
            let name = format!("wgrad_{word}_{}", self.functions.len());
            let effects = &written.effects;
            self.functions.push(define(&name, arguments.clone(), outputs, body, effects, stateful));
            names.push(name);
        }
        let before: Vec<String> = used
            .iter()
            .flat_map(|variable| {
                let own = uses.entry(*variable).or_default();
                own.read.iter().cloned().chain(own.assigned.clone()).collect::<Vec<_>>()
            })
            .map(|node| format!("^{node}"))
            .collect();
        let result_types = || results.iter().map(|specs| HostDType::from(specs[0].dtype).number());
        let stateless = if stateful { "" } else { "Stateless" };
        let (node, first) = match nodes[0] {
            OpNode::Choose { index, .. } => {
                let dtype = made[*index].specs[0][0].dtype;
                let mut index = made[*index].outs[0].clone();
                if dtype != DType::I32 {
                    index = builder.cast(&index, dtype, DType::I32);
                }
                // TensorFlow takes the last branch for an index that does not exist, as this crate does.
                let all = names.iter().map(|name| NameAttrList { name: name.clone() });
                let branches = Attr::List(ListValue { func: all.collect(), ..Default::default() });
                let attrs = [
                    ("Tin", types(kinds)),
                    ("Tout", types(result_types())),
                    ("branches", branches),
                ];
                let inputs = [index].into_iter().chain(inputs).chain(before);
                (builder.node(&format!("{stateless}Case"), inputs, attrs), 0)
            }
            _ => {
                let attrs = [
                    ("T", types(kinds)),
                    ("cond", function(&names[0])),
                    ("body", function(&names[1])),
                ];
                let inputs = inputs.into_iter().chain(before);
                (builder.node(&format!("{stateless}While"), inputs, attrs), 2)
            }
        };
        for variable in &used {
            let own = uses.entry(*variable).or_default();
            match assigned.contains(variable) {
                true => {
                    own.read.clear();
                    own.assigned = Some(node.clone());
                }
                false => own.read.push(node.clone()),
            }
        }
        if !assigned.is_empty() {
            effects.push(node.clone());
        }
        let specs: Vec<Vec<Spec>> = if start.is_empty() {
            results
        } else {
            values.into_iter().map(|(_, specs)| specs).collect()
        };
        Made {
            outs: (0..specs.len()).map(|at| format!("{node}:output:{}", at + first)).collect(),
            specs,
        }
    }
}

/// The results of these nodes.
fn outs_of(made: &[Made], nodes: &[usize]) -> Vec<Out> {
    nodes.iter().flat_map(|node| made[*node].outs.iter().cloned()).collect()
}

/// A condition as `bool`.
fn truth(builder: &mut Builder, x: &Out, dtype: DType) -> Out {
    if dtype == DType::Bool {
        return x.clone();
    }
    let zero = builder.i32(0);
    builder.op("NotEqual", &[x, &zero], [("T", dtype_attr(HostDType::from(dtype)))])
}
