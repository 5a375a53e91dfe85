//! A program as a drawing (SVG), and as named nodes for TensorBoard.

use super::program::{At, Block, Control, Entry, Program};
use crate::support::diagram::{self, Kind, Node};

/// A node of a program's graph, with a name in which slashes lead into branches and loops.
#[cfg(feature = "summary")]
pub(crate) struct GraphNode {
    pub(crate) name: String,
    pub(crate) op: &'static str,
    /// The nodes that it uses, by name; `name:1` is the second result.
    pub(crate) inputs: Vec<String>,
    pub(crate) shape: Option<Vec<usize>>,
    /// What determines the op besides its inputs, or the shape and dtype of a value from outside.
    pub(crate) note: String,
}

impl Program {
    /// The program as an SVG image with this title.
    pub(super) fn to_svg(&self, title: &str) -> String {
        diagram::to_svg(title, &self.boxes(&self.entries, &self.outputs))
    }

    fn boxes(&self, entries: &[Entry], outputs: &[At]) -> Vec<Node> {
        let mut boxes: Vec<Node> = Vec::with_capacity(entries.len() + 1);
        let sources = |ats: &[At]| -> Vec<usize> {
            let mut from: Vec<usize> = ats.iter().map(|at| *at as usize).collect();
            from.sort_unstable();
            from.dedup();
            from
        };
        for (at, entry) in entries.iter().enumerate() {
            let kind = match entry {
                Entry::Argument(_) | Entry::Captured(_) | Entry::Outer(_) | Entry::Read(_) => {
                    Kind::Input
                }
                _ => Kind::Plain,
            };
            let line = self.line(at, entry);
            // The shape is on a line of its own, as most of the width is the attributes'.
            let lines = match (entry, line.rsplit_once(": ")) {
                (Entry::Call(_) | Entry::Captured(_) | Entry::Read(_), Some((line, spec))) => {
                    vec![line.to_string(), spec.to_string()]
                }
                _ => vec![line],
            };
            let inner = match entry {
                Entry::Control(control) => {
                    let frame = |(number, block): (usize, &Block)| Node {
                        lines: vec![control.block_name(number)],
                        inner: self.boxes(&block.entries, &block.outputs),
                        ..Node::default()
                    };
                    control.blocks().into_iter().enumerate().map(frame).collect()
                }
                _ => Vec::new(),
            };
            boxes.push(Node { lines, kind, inner, from: sources(&entry.inputs()) });
        }
        let end =
            Node { lines: vec!["return".to_string()], from: sources(outputs), ..Node::default() };
        boxes.push(end);
        boxes
    }

    /// The program's nodes, those of blocks included.
    #[cfg(feature = "summary")]
    pub(super) fn graph_nodes(&self) -> Vec<GraphNode> {
        let mut nodes = Vec::new();
        let values = self.add_nodes("", &self.entries, &[], &mut nodes);
        let results = self.outputs.iter().map(|at| values[*at as usize].clone());
        nodes.push(GraphNode {
            name: "return".to_string(),
            op: "Return",
            inputs: results.collect(),
            shape: None,
            note: String::new(),
        });
        nodes
    }

    /// Adds the nodes of entries, whose names begin with `scope`. `outer` are the names of the values that they capture. Returns
    /// the name of each entry's value.
    #[cfg(feature = "summary")]
    fn add_nodes(
        &self,
        scope: &str,
        entries: &[Entry],
        outer: &[String],
        nodes: &mut Vec<GraphNode>,
    ) -> Vec<String> {
        let mut values: Vec<String> = Vec::with_capacity(entries.len());
        for (at, entry) in entries.iter().enumerate() {
            let own = |name: &str| format!("{scope}{name}_{at}");
            let of = |at: &At| values[*at as usize].clone();
            let (name, op, spec, note) = match entry {
                Entry::Argument(number) => {
                    let spec = (scope.is_empty()).then(|| self.arguments[*number].clone());
                    (format!("{scope}argument_{number}"), "Placeholder", spec, String::new())
                }
                Entry::Captured(tensor) => {
                    (own("captured"), "Const", Some(tensor.spec().clone()), String::new())
                }
                Entry::Call(call) => {
                    let attributes = crate::graph::attributes::Value::from_op(&*call.op);
                    let kind = call.op.name();
                    (own(kind), kind, Some(call.spec.clone()), attributes.to_string())
                }
                Entry::Read(number) => {
                    let spec = self.variables[*number].spec().clone();
                    (
                        own(&format!("variable_{number}")),
                        "ReadVariableOp",
                        Some(spec),
                        String::new(),
                    )
                }
                Entry::Assign { variable, .. } => (
                    own(&format!("assign_variable_{variable}")),
                    "AssignVariableOp",
                    None,
                    String::new(),
                ),
                Entry::Effect { .. } => (own("print_or_check"), "Print", None, String::new()),
                Entry::Count(_) => (own("count"), "Count", None, String::new()),
                Entry::Gradient { .. } => {
                    (own("gradients"), "SymbolicGradient", None, String::new())
                }
                Entry::Stopped(of) | Entry::Same(of) => {
                    values.push(values[*of as usize].clone());
                    continue;
                }
                Entry::Outer(number) => {
                    values.push(outer[*number].clone());
                    continue;
                }
                Entry::Result { of, index } => {
                    let of = &values[*of as usize];
                    values.push(match index {
                        0 => of.clone(),
                        index => format!("{of}:{index}"),
                    });
                    continue;
                }
                Entry::Control(control) => {
                    let name = self.add_control(&own(control.name()), control, &values, nodes);
                    values.push(name);
                    continue;
                }
            };
            let inputs = entry.inputs().iter().map(of).collect();
            let shape = spec.as_ref().map(|spec| spec.shape.to_vec());
            let note = match (note.is_empty(), &spec) {
                (true, Some(spec)) => spec.to_string(),
                _ => note,
            };
            nodes.push(GraphNode { name: name.clone(), op, inputs, shape, note });
            values.push(name);
        }
        values
    }

    /// Adds the blocks of a control, and a node for itself, whose name it returns.
    #[cfg(feature = "summary")]
    fn add_control(
        &self,
        name: &str,
        control: &Control,
        values: &[String],
        nodes: &mut Vec<GraphNode>,
    ) -> String {
        let mut inputs = match control {
            Control::Choose { index, .. } => vec![values[*index as usize].clone()],
            Control::Repeat { start, .. } => {
                start.iter().map(|at| values[*at as usize].clone()).collect()
            }
            Control::Host { inputs, .. } => {
                inputs.iter().map(|at| values[*at as usize].clone()).collect()
            }
        };
        for (number, block) in control.blocks().into_iter().enumerate() {
            let outer: Vec<String> =
                block.captures.iter().map(|at| values[*at as usize].clone()).collect();
            let scope = format!("{name}/{}/", control.block_name(number).replace(' ', "_"));
            let inner = self.add_nodes(&scope, &block.entries, &outer, nodes);
            inputs.extend(block.outputs.iter().map(|at| inner[*at as usize].clone()));
        }
        let name = match control.blocks().is_empty() {
            true => name.to_string(),
            false => format!("{name}/{}", control.name()),
        };
        let op = match control {
            Control::Choose { .. } => "Case",
            Control::Repeat { .. } => "While",
            Control::Host { .. } => "PyFunc",
        };
        nodes.push(GraphNode { name: name.clone(), op, inputs, shape: None, note: String::new() });
        name
    }
}

impl Control {
    /// The beginning of its name in a graph.
    #[cfg(feature = "summary")]
    fn name(&self) -> &'static str {
        match self {
            Control::Choose { .. } => "choose",
            Control::Repeat { .. } => "repeat",
            Control::Host { .. } => "host_call",
        }
    }
}
