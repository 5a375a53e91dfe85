//! [`Graph`]: the contents of TensorBoard's tab Graphs: a model's layers, the kernels of a plan, or nodes of the program.

use std::collections::HashSet;

use prost::Message;

use super::graph_proto::{Attr, AttrList, AttrValue, GraphDef, NodeDef};
use super::payload::Payload;
use super::proto::{TensorProto, metadata};
use super::scope::write;
use super::step::Step;
use crate::error::Result;
use crate::files::protobuf::{Dim, TensorShapeProto, VersionDef};
use crate::function::ConcreteFunction;
use crate::plan::PlanReport;
use crate::trackable::{Trackable, layer_nodes};

/// Nodes and the edges between them.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::summary::{self, Graph, MemoryWriter, Node};
/// let writer = MemoryWriter::new();
/// let _default = writer.as_default();
/// let graph = Graph::new()
///     .node(Node::new("images", "Placeholder").output([None, Some(784)]))
///     .node(Node::new("mlp/dense", "MatMul").input("images").output([None, Some(10)]));
/// summary::graph(graph)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Vec<NodeDef>,
    names: HashSet<String>,
}

/// A node of a [`Graph`].
#[derive(Debug, Clone)]
pub struct Node(NodeDef);

impl Node {
    /// A node; slashes in its name group nodes into boxes. `op` is the node's operation.
    pub fn new(name: &str, op: &str) -> Self {
        Node(NodeDef { name: plain(name), op: op.to_string(), ..NodeDef::default() })
    }

    /// Adds an edge from the node of that name.
    #[must_use]
    pub fn input(mut self, name: &str) -> Self {
        self.0.input.push(plain(name));
        self
    }

    /// Adds the shape of a result; `None` is a size that varies.
    #[must_use]
    pub fn output(mut self, shape: impl IntoIterator<Item = Option<usize>>) -> Self {
        let size = |size: Option<usize>| size.and_then(|size| i64::try_from(size).ok());
        let dim = shape.into_iter().map(|one| Dim { size: size(one).unwrap_or(-1) }).collect();
        let shape = TensorShapeProto { dim, unknown_rank: false };
        let shapes = self.0.attr.entry("_output_shapes".to_string()).or_default();
        match &mut shapes.value {
            Some(Attr::List(list)) => list.shape.push(shape),
            other => *other = Some(Attr::List(AttrList { shape: vec![shape] })),
        }
        self
    }

    /// Adds an attribute, which the box next to the graph shows for the node.
    #[must_use]
    pub fn attr(mut self, name: &str, value: impl ToString) -> Self {
        let value = Some(Attr::Bytes(value.to_string().into_bytes()));
        self.0.attr.insert(name.to_string(), AttrValue { value });
        self
    }

    /// The device on which it runs.
    #[must_use]
    pub fn device(mut self, name: &str) -> Self {
        self.0.device = name.to_string();
        self
    }
}

impl Graph {
    /// A graph without nodes.
    pub fn new() -> Self {
        Graph::default()
    }

    /// Adds a node. If its name is already used, it gets a number.
    #[must_use]
    pub fn node(mut self, node: Node) -> Self {
        self.add(node);
        self
    }

    /// The layers of a model with their shapes and weights, and the connections between them. Shapes are known after the
    /// first call. Parts of a custom type have no edges between them, as their data flow is unknown.
    pub fn of_model(model: &(impl Trackable + ?Sized)) -> Self {
        let mut graph = Graph::new();
        for layer in layer_nodes(&|parts| model.track(parts)) {
            let mut node = Node::new(&layer.name, layer.kind);
            for from in &layer.from {
                node = node.input(from);
            }
            for shape in layer.outputs {
                node = node.output(shape);
            }
            if !layer.weights.is_empty() {
                let sizes = layer.weights.iter().map(|shape| shape.iter().product::<usize>());
                let shapes: Vec<String> =
                    layer.weights.iter().map(|shape| format!("{shape:?}")).collect();
                node = node.attr("parameters", sizes.sum::<usize>());
                node = node.attr("weights", shapes.join(", "));
            }
            graph.add(node);
        }
        graph
    }

    fn add(&mut self, mut node: Node) {
        let mut number = 0;
        let name = node.0.name.clone();
        while !self.names.insert(node.0.name.clone()) {
            number += 1;
            node.0.name = format!("{name}_{number}");
        }
        self.nodes.push(node.0);
    }

    pub(super) fn proto(self) -> GraphDef {
        // TensorFlow 2 states this version in its graphs; without it TensorBoard considers a graph too old.
        GraphDef {
            node: self.nodes,
            versions: Some(VersionDef { producer: 22, ..VersionDef::default() }),
        }
    }
}

impl From<&PlanReport> for Graph {
    /// The kernels of a plan, each with the ops that it computes; edges lead from the kernels whose results it reads.
    fn from(plan: &PlanReport) -> Self {
        let mut graph = Graph::new();
        let names = kernel_names(plan);
        for (at, kernel) in plan.kernels().iter().enumerate() {
            let mut node = Node::new(&names[at], &kernel.label)
                .attr("ops", kernel.ops.join(", "))
                .attr("bytes", kernel.bytes)
                .attr("workgroups", format!("{:?}", kernel.workgroups));
            if let Some(flops) = kernel.flops {
                node = node.attr("flops", flops);
            }
            for from in plan.inputs(at) {
                node = node.input(&names[*from]);
            }
            for shape in &kernel.outputs {
                node = node.output(shape.iter().map(|size| Some(*size)));
            }
            graph.add(node);
        }
        graph
    }
}

impl From<&ConcreteFunction> for Graph {
    /// What a trace of a function has recorded: its calls, and in a box each branch and loop.
    fn from(function: &ConcreteFunction) -> Self {
        let mut graph = Graph::new();
        for made in function.graph_nodes() {
            let mut node = Node::new(&made.name, made.op);
            // A result other than the first has its number after the name.
            node.0.input = made.inputs;
            if let Some(shape) = made.shape {
                node = node.output(shape.into_iter().map(Some));
            }
            if !made.note.is_empty() {
                node = node.attr("attributes", made.note);
            }
            graph.add(node);
        }
        graph
    }
}

/// A name for each kernel of a plan: its number and its label.
pub(super) fn kernel_names(plan: &PlanReport) -> Vec<String> {
    let kernels = plan.kernels().iter().enumerate();
    kernels.map(|(at, kernel)| plain(&format!("{}_{}", at + 1, kernel.label))).collect()
}

/// A valid name for a graph: TensorBoard interprets other characters differently.
fn plain(name: &str) -> String {
    let mut plain: String = name
        .trim_matches('/')
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "_-./".contains(c) { c } else { '_' })
        .collect();
    if !plain.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '.') {
        plain.insert(0, 'n');
    }
    plain
}

/// Writes a graph, which the tab Graphs shows; a run has one.
///
/// # Errors
/// As [`scalar`](super::scalar), without shape and step.
pub fn graph(graph: impl Into<Graph>) -> Result<bool> {
    let bytes = graph.into().proto().encode_to_vec();
    // The name is for messages: the event of a graph has none.
    write("graph", "graph", String::new(), Step::from(0), false, || Ok(Payload::Graph(bytes)))
}

/// Writes the JSON of a Keras model, which the tab Graphs shows as the conceptual graph.
///
/// # Errors
/// As [`scalar`](super::scalar), without shape.
pub fn keras_model(name: &str, json: &str, step: impl Into<Step>) -> Result<bool> {
    write("keras_model", name, String::new(), step.into(), true, || {
        let shown = metadata("graph_keras_model", b"1");
        Ok(Payload::Made(shown, TensorProto::strings(&[], vec![json.as_bytes().to_vec()])))
    })
}
