//! A graph whose names have become indices, and the order in which a part of it runs.

use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

use super::proto::{ArgDef, Attr, NodeDef};
use super::tensor_proto;
use super::value::Value;
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

/// A result of a node: the node's index, and which of its results.
pub(crate) type Endpoint = (u32, u32);

/// The op of a function's argument.
pub(super) const ARGUMENT: &str = "_Arg";

#[derive(Debug)]
pub(crate) struct Graph {
    pub(super) nodes: Vec<Node>,
    names: HashMap<String, u32>,
}

#[derive(Debug)]
pub(crate) struct Node {
    pub(super) name: String,
    pub(super) op: String,
    pub(super) attributes: BTreeMap<String, Attr>,
    pub(super) inputs: Vec<Endpoint>,
    /// The nodes that run before, though no value comes from them.
    controls: Vec<u32>,
    /// The value of a constant; or why there is none.
    pub(super) constant: Option<Result<Value, String>>,
    /// The value of a large constant, on the device.
    pub(super) uploaded: OnceLock<Tensor>,
}

/// The nodes that compute some results, each after those that it needs.
#[derive(Debug)]
pub(crate) struct Steps {
    pub(super) list: Vec<Step>,
    /// The results, with places in the list for nodes.
    pub(super) fetches: Vec<Endpoint>,
}

#[derive(Debug)]
pub(crate) struct Step {
    pub(super) node: u32,
    /// Places in the list, and which of their results.
    pub(super) inputs: Vec<Endpoint>,
    /// How many inputs of later nodes, and results, take its values.
    pub(super) uses: u32,
    /// The index of the argument that replaces the node.
    pub(super) fed: Option<u32>,
}

impl Graph {
    /// The graph of these nodes, after the arguments of a function. `outputs` gives the names of an op's results if there are
    /// several; `owner` is the graph in errors.
    ///
    /// # Errors
    /// [`Error::Data`] if two nodes have a name, or a name has no node.
    pub(crate) fn new(
        owner: &str,
        arguments: &[ArgDef],
        nodes: Vec<NodeDef>,
        outputs: &dyn Fn(&str) -> &'static [&'static str],
    ) -> Result<Self> {
        let broken = |what: String| Error::Data(message!("{owner}: {what}. The file is damaged."));
        let all = arguments.len().checked_add(nodes.len()).and_then(|n| u32::try_from(n).ok());
        all.ok_or_else(|| broken("it has too many nodes".to_string()))?;
        let mut names = HashMap::with_capacity(nodes.len());
        let mut argument_names = HashMap::new();
        for (at, argument) in arguments.iter().enumerate() {
            argument_names.insert(argument.name.clone(), at as u32);
        }
        for (at, node) in nodes.iter().enumerate() {
            let place = (arguments.len() + at) as u32;
            if names.insert(node.name.clone(), place).is_some() {
                return Err(broken(format!("two nodes have the name \"{}\"", node.name)));
            }
        }
        let mut list: Vec<Node> = arguments.iter().map(Node::argument).collect();
        let ops: Vec<String> = nodes.iter().map(|node| node.op.clone()).collect();
        let find = |reader: &str, text: &str| -> Result<Endpoint> {
            let mut parts = text.split(':');
            let (name, second, third) = (parts.next().unwrap_or(""), parts.next(), parts.next());
            let none = || {
                broken(format!(
                    "the node \"{reader}\" reads \"{text}\", and there is no such result"
                ))
            };
            let index = |text: &str| text.parse::<u32>().map_err(|_| none());
            if let (None, Some(&place)) = (second, argument_names.get(name)) {
                return Ok((place, 0));
            }
            let &place = names.get(name).ok_or_else(none)?;
            let output = match (second, third) {
                (None, _) => 0,
                (Some(second), None) => index(second)?,
                (Some(result), Some(third)) => {
                    let op = &ops[place as usize - arguments.len()];
                    let before = outputs(op).iter().position(|name| *name == result).unwrap_or(0);
                    index(third)?.checked_add(before as u32).ok_or_else(none)?
                }
            };
            Ok((place, output))
        };
        for def in nodes {
            let mut node = Node::new(&def);
            for input in &def.input {
                match input.strip_prefix('^') {
                    Some(control) => node.controls.push(find(&def.name, control)?.0),
                    None => node.inputs.push(find(&def.name, input)?),
                }
            }
            node.take_attributes(def);
            list.push(node);
        }
        names.extend(argument_names);
        Ok(Graph { nodes: list, names })
    }

    /// The result with this name: `node` or `node:1`.
    pub(crate) fn endpoint(&self, text: &str) -> Option<Endpoint> {
        let (name, output) = text.split_once(':').unwrap_or((text, "0"));
        Some((*self.names.get(name)?, output.parse().ok()?))
    }

    /// The result of a node in a function's table of results: `node:result:0`, or an argument's name.
    pub(crate) fn result(
        &self,
        text: &str,
        outputs: &dyn Fn(&str) -> &'static [&'static str],
    ) -> Option<Endpoint> {
        let mut parts = text.split(':');
        let place = *self.names.get(parts.next()?)?;
        let before = parts.next().map_or(0, |result| {
            let op = &self.nodes[place as usize].op;
            outputs(op).iter().position(|name| *name == result).unwrap_or(0)
        });
        let index: u32 = parts.next().map_or(Some(0), |index| index.parse().ok())?;
        Some((place, index.checked_add(before as u32)?))
    }

    pub(crate) fn node(&self, at: u32) -> &Node {
        &self.nodes[at as usize]
    }

    /// The order for `fetches`, after the nodes `controls`; the arguments replace the nodes `feeds`.
    ///
    /// # Errors
    /// [`Error::Data`] if nodes wait for each other.
    pub(crate) fn steps(
        &self,
        feeds: &[u32],
        fetches: &[Endpoint],
        controls: &[u32],
    ) -> Result<Steps> {
        const UNSEEN: u32 = u32::MAX;
        const OPEN: u32 = u32::MAX - 1;
        let mut places = vec![UNSEEN; self.nodes.len()];
        let mut list: Vec<Step> = Vec::new();
        let fed: HashMap<u32, u32> =
            feeds.iter().enumerate().map(|(at, node)| (*node, at as u32)).collect();
        let roots = fetches.iter().map(|fetch| fetch.0).chain(controls.iter().copied());
        let mut stack: Vec<(u32, usize)> = Vec::new();
        for root in roots {
            stack.push((root, 0));
            while let Some((at, next)) = stack.pop() {
                let node = &self.nodes[at as usize];
                let argument = fed.get(&at).copied();
                if next == 0 {
                    match places[at as usize] {
                        UNSEEN => places[at as usize] = OPEN,
                        OPEN => {
                            return Err(Error::Data(message!(
                                "the node \"{}\" ({}) needs its own result. Loops of TensorFlow 1 (Enter, NextIteration) are not \
                                 supported; save the model with TensorFlow 2.",
                                node.name,
                                node.op
                            )));
                        }
                        _ => continue,
                    }
                }
                let before = |at: usize| match node.inputs.get(at) {
                    Some(input) => Some(input.0),
                    None => node.controls.get(at - node.inputs.len()).copied(),
                };
                if let (None, Some(child)) = (argument, before(next)) {
                    stack.push((at, next + 1));
                    // A node that is done would only be popped again.
                    if places[child as usize] >= OPEN {
                        stack.push((child, 0));
                    }
                    continue;
                }
                places[at as usize] = list.len() as u32;
                let inputs = if argument.is_some() { &[][..] } else { &node.inputs[..] };
                let inputs = inputs.iter().map(|(node, output)| (places[*node as usize], *output));
                let inputs: Vec<Endpoint> = inputs.collect();
                for (place, _) in &inputs {
                    list[*place as usize].uses += 1;
                }
                list.push(Step { node: at, inputs, uses: 0, fed: argument });
            }
        }
        let fetches: Vec<Endpoint> =
            fetches.iter().map(|(node, output)| (places[*node as usize], *output)).collect();
        for (place, _) in &fetches {
            list[*place as usize].uses += 1;
        }
        Ok(Steps { list, fetches })
    }
}

impl Node {
    fn argument(argument: &ArgDef) -> Self {
        Node {
            name: argument.name.clone(),
            op: ARGUMENT.to_string(),
            attributes: BTreeMap::new(),
            inputs: Vec::new(),
            controls: Vec::new(),
            constant: None,
            uploaded: OnceLock::new(),
        }
    }

    /// An op with these attributes, outside a graph.
    pub(super) fn of_op(op: &str, attributes: Vec<(&str, Attr)>) -> Self {
        let named = attributes.into_iter().map(|(name, value)| (name.to_string(), value));
        Node {
            op: op.to_string(),
            attributes: named.collect(),
            ..Node::argument(&ArgDef::default())
        }
    }

    fn new(def: &NodeDef) -> Self {
        Node { name: def.name.clone(), op: def.op.clone(), ..Node::argument(&ArgDef::default()) }
    }

    /// Takes over the attributes. Those of TensorFlow's own bookkeeping are dropped, as they can be large.
    fn take_attributes(&mut self, def: NodeDef) {
        for (name, value) in def.attr {
            let Some(value) = value.value else { continue };
            match value {
                Attr::Tensor(proto) if self.op == "Const" && name == "value" => {
                    self.constant = Some(tensor_proto::array(proto).map(Value::host));
                }
                _ if name.starts_with('_') || name == "config_proto" => {}
                value => drop(self.attributes.insert(name, value)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, op: &str, inputs: &[&str]) -> NodeDef {
        let input = inputs.iter().map(ToString::to_string).collect();
        NodeDef { name: name.into(), op: op.into(), input, ..NodeDef::default() }
    }

    fn graph(nodes: Vec<NodeDef>) -> Result<Graph> {
        Graph::new("here", &[], nodes, &|op| {
            if op == "TopKV2" { &["values", "indices"] } else { &[] }
        })
    }

    #[test]
    fn each_node_runs_after_those_that_it_needs() {
        let graph = graph(vec![
            node("d", "Add", &["b", "c:1", "^e"]),
            node("c", "TopKV2", &["a"]),
            node("b", "Neg", &["a"]),
            node("a", "Placeholder", &[]),
            node("e", "NoOp", &[]),
            node("unused", "Foo", &["d"]),
        ])
        .unwrap();
        let steps = graph.steps(&[3], &[graph.endpoint("d").unwrap()], &[]).unwrap();
        let names: Vec<&str> =
            steps.list.iter().map(|step| &graph.node(step.node).name[..]).collect();
        assert_eq!(names, ["a", "b", "c", "e", "d"]);
        assert_eq!(steps.list[4].inputs, [(1, 0), (2, 1)]);
        assert_eq!(steps.list.iter().map(|step| step.uses).collect::<Vec<_>>(), [2, 1, 1, 0, 1]);
        assert_eq!(steps.list[0].fed, Some(0));
        assert_eq!(graph.result("c:indices:0", &|_| &["values", "indices"]), Some((1, 1)));
    }

    #[test]
    fn broken_graphs_are_refused() {
        let error = graph(vec![node("a", "Add", &["b"])]).unwrap_err();
        assert!(error.to_string().contains("the node \"a\" reads \"b\""), "{error}");
        let error = graph(vec![node("a", "Add", &[]), node("a", "Add", &[])]).unwrap_err();
        assert!(error.to_string().contains("two nodes have the name \"a\""), "{error}");
        let cyclic = graph(vec![node("a", "Add", &["b"]), node("b", "Add", &["a"])]).unwrap();
        let error = cyclic.steps(&[], &[(0, 0)], &[]).unwrap_err();
        assert!(error.to_string().contains("needs its own result"), "{error}");
    }

    #[test]
    fn a_chain_of_a_million_nodes_needs_no_deep_stack() {
        let mut nodes = vec![node("n0", "Placeholder", &[])];
        for at in 1..1_000_000 {
            let before = format!("n{}", at - 1);
            nodes.push(node(&format!("n{at}"), "Neg", &[&before, &before]));
        }
        let graph = graph(nodes).unwrap();
        let last = graph.endpoint("n999999").unwrap();
        assert_eq!(graph.steps(&[], &[last], &[]).unwrap().list.len(), 1_000_000);
    }
}
