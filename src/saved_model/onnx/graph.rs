//! Graphs as they are in files become [`Graph`]s, and run.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap, HashSet};

use super::call::{Call, Graph, Node, Results, Runner};
use super::proto::{FunctionProto, GraphProto, NodeProto};
use super::{ops, tensor};
use crate::error::{Error, Result, message};
use crate::host_array::HostArray;
use crate::saved_model::budget::Budget;
use crate::saved_model::graph_def::value::Value;
use crate::saved_model::model_files::ModelFiles;
use crate::saved_model::waiting;

/// Graphs in graphs are refused if they are deeper, as they would need a deep stack.
const DEEPEST: usize = 24;
/// An op whose result no tensor can be.
const ZIP_MAP: &str = "ai.onnx.ml.ZipMap";
/// The most ops that an error lists.
const MOST_LISTED: usize = 20;

/// The graph of a file. `initializer` makes the value of each initializer.
///
/// # Errors
/// [`Error::Data`] if a name has no value, or the graph is damaged.
pub(super) fn read(
    proto: GraphProto,
    files: &ModelFiles,
    depth: usize,
    initializer: &mut dyn FnMut(&str, HostArray<'static>) -> Result<Value>,
) -> Result<Graph> {
    if depth > DEEPEST {
        return Err(Error::Data(message!(
            "its graphs are more than {DEEPEST} deep in each other."
        )));
    }
    let mut graph = Graph::default();
    for proto in proto.initializer {
        let name = proto.name.clone();
        let value = initializer(&name, tensor::array(proto, files)?)?;
        graph.initializers.insert(name, value);
    }
    let own = |name: &String| !graph.initializers.contains_key(name);
    // Old files list their initializers among the inputs, too.
    graph.inputs = proto.input.into_iter().map(|info| info.name).filter(own).collect();
    graph.outputs = proto.output.into_iter().map(|info| info.name).collect();
    for node in proto.node {
        graph.nodes.push(read_node(node, files, depth, initializer)?);
    }
    find_drops(&mut graph);
    Ok(graph)
}

/// The graph of a function.
pub(super) fn read_function(proto: FunctionProto, files: &ModelFiles) -> Result<Graph> {
    let mut graph = Graph { inputs: proto.input, outputs: proto.output, ..Graph::default() };
    for node in proto.node {
        if node.attribute.iter().any(|attribute| !attribute.ref_attr_name.is_empty()) {
            return Err(Error::Data(message!(
                "the function \"{}\" has attributes of its own, which is not supported.",
                proto.name
            )));
        }
        let mut constant = |_: &str, array: HostArray<'static>| Ok(Value::host(array));
        graph.nodes.push(read_node(node, files, 1, &mut constant)?);
    }
    find_drops(&mut graph);
    Ok(graph)
}

fn read_node(
    proto: NodeProto,
    files: &ModelFiles,
    depth: usize,
    initializer: &mut dyn FnMut(&str, HostArray<'static>) -> Result<Value>,
) -> Result<Node> {
    let mut node = Node {
        function: function_name(&proto.domain, &proto.op_type),
        name: proto.name,
        op: proto.op_type,
        domain: proto.domain,
        inputs: proto.input,
        outputs: proto.output,
        attributes: BTreeMap::new(),
        graphs: BTreeMap::new(),
        constants: BTreeMap::new(),
    };
    for mut attribute in proto.attribute {
        let name = attribute.name.clone();
        if let Some(inner) = attribute.g.take() {
            node.graphs.insert(name.clone(), read(*inner, files, depth + 1, initializer)?);
        }
        if let Some(value) = attribute.t.take() {
            node.constants.insert(name.clone(), Value::host(tensor::array(value, files)?));
        }
        node.attributes.insert(name, attribute);
    }
    Ok(node)
}

/// The name of a function or an op with its domain: two domains may have the same name.
pub(super) fn function_name(domain: &str, name: &str) -> String {
    let domain = if domain == "ai.onnx" { "" } else { domain };
    format!("{domain}.{name}")
}

/// The names that a node reads, also in its graphs.
fn reads<'a>(node: &'a Node, names: &mut dyn FnMut(&'a str)) {
    node.inputs.iter().for_each(|name| names(name));
    for graph in node.graphs.values() {
        graph.nodes.iter().for_each(|node| reads(node, names));
        graph.outputs.iter().for_each(|name| names(name));
    }
}

fn find_drops(graph: &mut Graph) {
    let mut last: HashMap<&str, usize> = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        for name in &node.outputs {
            last.insert(name, at);
        }
        reads(node, &mut |name| {
            last.insert(name, at);
        });
    }
    let kept: HashSet<&str> = graph.outputs.iter().map(String::as_str).collect();
    let mut drops = vec![Vec::new(); graph.nodes.len()];
    for (name, at) in last {
        if !name.is_empty() && !kept.contains(name) {
            drops[at].push(name.to_string());
        }
    }
    graph.drops = drops;
}

/// Adds the ops of a graph that are not known: the op, the node, and what reads it.
pub(super) fn unknown(graph: &Graph, functions: &HashMap<String, Graph>, found: &mut Vec<String>) {
    for (at, node) in graph.nodes.iter().enumerate() {
        let standard = matches!(&node.domain[..], "" | "ai.onnx");
        let known = ops::find(&node.function).is_some() || functions.contains_key(&node.function);
        if !known && found.len() > MOST_LISTED {
            // Only their number is reported.
            found.push(String::new());
        } else if !known {
            let output = node.outputs.first().map_or("", String::as_str);
            let reader = graph.nodes[at..]
                .iter()
                .find(|other| other.inputs.iter().any(|name| name == output));
            let reader = reader.map_or("a result".to_string(), |reader| {
                format!("\"{}\" ({}) reads it", reader.name, reader.op)
            });
            let domain = if standard { String::new() } else { format!("{}.", node.domain) };
            found.push(format!("\n  {domain}{}: node \"{}\", {reader}", node.op, node.name));
        }
        node.graphs.values().for_each(|graph| unknown(graph, functions, found));
    }
}

/// The error that lists all unknown ops.
pub(super) fn unknown_error(found: &[String]) -> Error {
    let listed = found[..found.len().min(MOST_LISTED)].concat();
    let more = match found.len().saturating_sub(MOST_LISTED) {
        0 => String::new(),
        more => format!("\n  and {more} more"),
    };
    let advice = if listed.contains(ZIP_MAP) {
        "Its probabilities are a list of maps. Export it with zipmap=False, which makes them a tensor: \
         to_onnx(model, x, options={'zipmap': False})."
    } else {
        "Export the model without them, for example of another opset."
    };
    Error::Data(message!("it needs ops that wgrad does not have:{listed}{more}\n{advice}"))
}

/// A graph that runs, its values, and the graphs around it.
pub(super) struct Scope<'a> {
    graph: &'a Graph,
    values: RefCell<HashMap<String, Value>>,
    around: Option<&'a Scope<'a>>,
    functions: &'a HashMap<String, Graph>,
    opset: i64,
    budget: &'a Budget,
    depth: usize,
}

impl<'a> Scope<'a> {
    pub(super) fn new(
        graph: &'a Graph,
        functions: &'a HashMap<String, Graph>,
        opset: i64,
        budget: &'a Budget,
    ) -> Self {
        let values = RefCell::default();
        Scope { graph, values, around: None, functions, opset, budget, depth: 0 }
    }

    fn find(&self, name: &str) -> Option<Value> {
        let own = self.values.borrow().get(name).cloned();
        let own = own.or_else(|| self.graph.initializers.get(name).cloned());
        own.or_else(|| self.around?.find(name))
    }

    /// Runs the graph.
    pub(super) fn run(&self, inputs: Vec<Value>) -> Result<Vec<Value>> {
        let graph = self.graph;
        if inputs.len() > graph.inputs.len() {
            return Err(Error::Data(message!(
                "a graph takes {} inputs, and {} were passed.",
                graph.inputs.len(),
                inputs.len()
            )));
        }
        if self.depth > DEEPEST {
            return Err(Error::Data(message!(
                "functions call each other more than {DEEPEST} deep."
            )));
        }
        self.values.borrow_mut().extend(graph.inputs.iter().cloned().zip(inputs));
        for (node, drops) in graph.nodes.iter().zip(&graph.drops) {
            self.budget.spend(1)?;
            let results = self.results(node)?;
            let mut values = self.values.borrow_mut();
            for (name, value) in node.outputs.iter().zip(results) {
                if !name.is_empty() {
                    values.insert(name.clone(), value);
                }
            }
            drops.iter().for_each(|name| drop(values.remove(name)));
        }
        let output = |name: &String| {
            self.find(name).ok_or_else(|| {
                Error::Data(message!("the result \"{name}\" is computed by no node."))
            })
        };
        graph.outputs.iter().map(output).collect()
    }

    fn results(&self, node: &Node) -> Result<Results> {
        let named = |error: Error| {
            error.reworded(|text| message!("node \"{}\" ({}): {text}", node.name, node.op))
        };
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for name in &node.inputs {
            let value = match &name[..] {
                "" => None,
                name => Some(self.find(name).ok_or_else(|| {
                    let words = message!("it reads \"{name}\", which no node before it computes.");
                    named(Error::Data(words))
                })?),
            };
            inputs.push(value);
        }
        if let Some(function) = self.functions.get(&node.function) {
            // Only the last inputs may be left out; the others would change places.
            let given = inputs.iter().take_while(|input| input.is_some()).count();
            if inputs[given..].iter().any(Option::is_some) {
                let words =
                    message!("it leaves out an input of a function, which is not supported.");
                return Err(named(Error::Data(words)));
            }
            let inputs = inputs.into_iter().flatten().collect();
            return self.inner(function, None).run(inputs);
        }
        let call = Call { node, inputs, opset: self.opset, runner: self };
        let run = ops::find(&node.function);
        let run = run.ok_or_else(|| named(Error::Data(message!("the op is not known."))))?;
        waiting::node(|| run(&call)).map_err(named)
    }

    fn inner<'b>(&'b self, graph: &'b Graph, around: Option<&'b Scope<'b>>) -> Scope<'b> {
        let Scope { functions, opset, budget, depth, .. } = *self;
        let values = RefCell::default();
        Scope { graph, values, around, functions, opset, budget, depth: depth + 1 }
    }
}

impl Runner for Scope<'_> {
    fn graph(&self, graph: &Graph, inputs: Vec<Value>) -> Result<Vec<Value>> {
        waiting::node(|| self.inner(graph, Some(self)).run(inputs))
    }
}
