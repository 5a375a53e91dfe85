//! The functions that a graph calls, and the check that every op of a part of it is known.

use std::collections::HashMap;

use super::call::functions_of;
use super::graph::{ARGUMENT, Graph, Steps};
use super::ops;
use super::proto::{FunctionDef, GraphDef};
use crate::error::{Error, Result, message};

/// Functions that call each other more deeply are refused, as they would need a deep stack.
const DEEPEST: usize = 64;
/// A call that runs more nodes, even if each loop turns once, is refused: functions that call another one twice, which calls
/// another one twice, soon run for ever.
const MOST_NODES: u64 = 20_000_000;
/// The most ops that an error lists.
const MOST_LISTED: usize = 20;

/// A graph and its functions.
#[derive(Debug)]
pub(crate) struct Library {
    pub(super) top: Graph,
    /// A damaged function is an error only for who calls it.
    functions: HashMap<String, Result<FunctionGraph>>,
}

#[derive(Debug)]
pub(crate) struct FunctionGraph {
    pub(super) graph: Graph,
    pub(super) steps: Steps,
    pub(super) arguments: usize,
}

impl Library {
    /// # Errors
    /// [`Error::Data`] if the graph is damaged.
    pub(crate) fn new(def: GraphDef) -> Result<Self> {
        let top = Graph::new("the graph", &[], def.node, &ops::outputs)?;
        let mut functions = HashMap::new();
        for function in def.library.unwrap_or_default().function {
            let name = function.signature.as_ref().map_or(String::new(), |op| op.name.clone());
            functions.insert(name, FunctionGraph::new(function));
        }
        Ok(Library { top, functions })
    }

    pub(super) fn function(&self, name: &str) -> Result<&FunctionGraph> {
        match self.functions.get(name) {
            Some(found) => found.as_ref().map_err(Clone::clone),
            None => Err(Error::Data(message!(
                "the graph calls the function \"{name}\", which the file does not have. The file is damaged."
            ))),
        }
    }

    /// Visits the nodes of a part of a graph, and those of the functions that it calls, each once.
    ///
    /// # Errors
    /// [`Error::Data`] if functions call each other in a circle, or too deeply.
    pub(super) fn each_node<'a>(
        &'a self,
        graph: &'a Graph,
        steps: &'a Steps,
        visit: &mut dyn FnMut(&'a str, &'a Graph, &'a Steps, usize),
    ) -> Result<()> {
        let mut done = HashMap::new();
        let nodes = self.walk("", graph, steps, 0, &mut done, visit)?;
        if nodes > MOST_NODES {
            return Err(Error::Data(message!(
                "a call runs {nodes} nodes of the graph, and {MOST_NODES} are the most that are supported."
            )));
        }
        Ok(())
    }

    /// Returns how many nodes run.
    fn walk<'a>(
        &'a self,
        owner: &'a str,
        graph: &'a Graph,
        steps: &'a Steps,
        depth: usize,
        done: &mut HashMap<&'a str, Option<u64>>,
        visit: &mut dyn FnMut(&'a str, &'a Graph, &'a Steps, usize),
    ) -> Result<u64> {
        let mut nodes = steps.list.len() as u64;
        if depth > DEEPEST {
            return Err(Error::Data(message!(
                "functions call each other more than {DEEPEST} deep, at \"{owner}\"; that is not supported."
            )));
        }
        for (at, step) in steps.list.iter().enumerate() {
            visit(owner, graph, steps, at);
            let attributes = &graph.node(step.node).attributes;
            let called = ops::FUNCTIONS.iter().flat_map(|name| functions_of(attributes.get(*name)));
            for name in called {
                match done.get(name) {
                    Some(Some(count)) => {
                        nodes = nodes.saturating_add(*count);
                        continue;
                    }
                    Some(None) => {
                        return Err(Error::Data(message!(
                            "the function \"{name}\" calls itself; that is not supported."
                        )));
                    }
                    None => {}
                }
                done.insert(name, None);
                let function = self.function(name)?;
                let (graph, steps) = (&function.graph, &function.steps);
                let count = self.walk(name, graph, steps, depth + 1, done, visit)?;
                done.insert(name, Some(count));
                nodes = nodes.saturating_add(count);
            }
        }
        Ok(nodes)
    }

    /// Checks that every op of a part of a graph is known.
    ///
    /// # Errors
    /// [`Error::Data`] with all unknown ops.
    pub(super) fn check(&self, what: &str, graph: &Graph, steps: &Steps) -> Result<()> {
        let (mut lines, mut count, mut outside) = (Vec::new(), 0, false);
        self.each_node(graph, steps, &mut |owner, graph, steps, at| {
            let step = &steps.list[at];
            let node = graph.node(step.node);
            if step.fed.is_some() || node.op == ARGUMENT || ops::find(&node.op).is_some() {
                return;
            }
            count += 1;
            outside |= owner.is_empty();
            if lines.len() == MOST_LISTED {
                return;
            }
            let reads = |step: &&super::graph::Step| {
                step.inputs.iter().any(|(place, _)| *place as usize == at)
            };
            let reader = steps.list[at..].iter().find(reads).map(|step| graph.node(step.node));
            let reader = reader.map_or("a result".to_string(), |reader| {
                format!("\"{}\" ({}) reads it", reader.name, reader.op)
            });
            let place = if owner.is_empty() { String::new() } else { format!(" in {owner}") };
            lines.push(format!("\n  {}: node \"{}\"{place}, {reader}", node.op, node.name));
        })?;
        if count == 0 {
            return Ok(());
        }
        let more = count - lines.len();
        if more > 0 {
            lines.push(format!("\n  and {more} more"));
        }
        Err(Error::Data(message!(
            "{what} needs ops that wgrad does not have:{}\nSave the model without them, and compute what they compute before the \
             call{}.",
            lines.concat(),
            if outside { "; prune makes a function that takes the values of a node" } else { "" }
        )))
    }
}

impl FunctionGraph {
    fn new(def: FunctionDef) -> Result<Self> {
        let signature = def.signature.unwrap_or_default();
        let arguments = signature.input_arg.len();
        let owner = format!("the function \"{}\"", signature.name);
        let graph = Graph::new(&owner, &signature.input_arg, def.node_def, &ops::outputs)?;
        let broken = |what: String| Error::Data(message!("{owner} {what}. The file is damaged."));
        let mut fetches = Vec::with_capacity(signature.output_arg.len());
        for output in &signature.output_arg {
            let text = def.ret.get(&output.name);
            let endpoint = text.and_then(|text| graph.result(text, &ops::outputs));
            fetches.push(endpoint.ok_or_else(|| {
                broken(format!("has no node for its result \"{}\"", output.name))
            })?);
        }
        let mut controls = Vec::with_capacity(def.control_ret.len());
        for node in def.control_ret.values() {
            let endpoint = graph.endpoint(node);
            let (node, _) = endpoint.ok_or_else(|| broken(format!("has no node \"{node}\"")))?;
            controls.push(node);
        }
        let feeds: Vec<u32> = (0..arguments as u32).collect();
        let steps = graph.steps(&feeds, &fetches, &controls)?;
        Ok(FunctionGraph { graph, steps, arguments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::saved_model::graph_def::proto::{
        ArgDef, Attr, AttrValue, FunctionDefLibrary, NameAttrList, NodeDef, OpDef,
    };

    fn call(name: &str, function: &str, input: &str) -> NodeDef {
        let function = Attr::Function(NameAttrList { name: function.to_string() });
        NodeDef {
            name: name.to_string(),
            op: "PartitionedCall".to_string(),
            input: vec![input.to_string()],
            attr: [("f".to_string(), AttrValue { value: Some(function) })].into(),
        }
    }

    /// A function that calls the function `other` twice, one call after the other.
    fn twice(name: &str, other: &str) -> FunctionDef {
        let argument =
            |name: &str| ArgDef { name: name.to_string(), r#type: 1, handle_data: Vec::new() };
        FunctionDef {
            signature: Some(OpDef {
                name: name.to_string(),
                input_arg: vec![argument("x")],
                output_arg: vec![argument("y")],
                ..OpDef::default()
            }),
            node_def: vec![call("a", other, "x"), call("b", other, "a:output:0")],
            ret: [("y".to_string(), "b:output:0".to_string())].into(),
            ..FunctionDef::default()
        }
    }

    fn check(functions: Vec<FunctionDef>) -> String {
        let node = NodeDef { name: "x".into(), op: "Placeholder".into(), ..NodeDef::default() };
        let node = vec![node, call("y", "f0", "x")];
        let library = Some(FunctionDefLibrary { function: functions });
        let library = Library::new(GraphDef { node, library, versions: None }).unwrap();
        let steps = library.top.steps(&[0], &[(1, 0)], &[]).unwrap();
        library.check("it", &library.top, &steps).unwrap_err().to_string()
    }

    #[test]
    fn functions_that_never_end_are_refused() {
        let error = check(vec![twice("f0", "f1"), twice("f1", "f0")]);
        assert!(error.contains("the function \"f0\" calls itself"), "{error}");
        let many = |count: usize| -> Vec<FunctionDef> {
            (0..count).map(|at| twice(&format!("f{at}"), &format!("f{}", at + 1))).collect()
        };
        let error = check(many(100));
        assert!(error.contains("more than 64 deep"), "{error}");
        let mut doubling = many(40);
        let mut last = twice("f40", "f0");
        last.node_def = Vec::new();
        last.ret = [("y".to_string(), "x".to_string())].into();
        doubling.push(last);
        let error = check(doubling);
        assert!(
            error.contains("a call runs") && error.contains("20000000 are the most"),
            "{error}"
        );
        let error = check(many(3));
        assert!(error.contains("the function \"f3\", which the file does not have"), "{error}");
    }
}
