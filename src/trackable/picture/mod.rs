//! Diagrams of models: boxes for layers, arrows from results to inputs, frames around the layers of nested models.
//!
//! This file makes a tree of the parts, as text for Graphviz (`dot`) and as SVG (`support::diagram`).

mod dot;

use std::collections::HashMap;

pub(super) use dot::to_dot;

use super::outline::{Row, rows};
use super::parts::Track;
use super::summary::{grouped, shape_text};
use super::walk::count;
use crate::support::diagram;
#[cfg(feature = "summary")]
use crate::trackable::Class;
use crate::trackable::Role;

/// A part of a model, with its own parts if it is a model itself.
struct Part {
    row: Row,
    inner: Vec<Part>,
    /// The indices of the sibling parts that its inputs come from.
    from: Vec<usize>,
}

impl Part {
    fn title(&self) -> String {
        format!("{} ({})", self.row.name, self.row.kind)
    }

    fn shapes(&self, inputs: bool) -> String {
        let known = self.row.described.as_ref();
        let list =
            known.map_or(&[][..], |known| if inputs { &known.inputs } else { &known.outputs });
        match list {
            [] => "?".to_string(),
            [shape] => shape_text(shape),
            _ => list.iter().map(|shape| shape_text(shape)).collect::<Vec<_>>().join(", "),
        }
    }

    /// Whether it has inputs; an input of a model only has outputs.
    fn takes(&self) -> bool {
        self.row.described.as_ref().is_some_and(|known| !known.inputs.is_empty())
    }

    /// `78,500 parameters`; empty if there are none.
    fn parameters(&self) -> String {
        match count(&self.row.variables) {
            0 => String::new(),
            1 => "1 parameter".to_string(),
            number => format!("{} parameters", grouped(number)),
        }
    }

    fn into_node(self) -> diagram::Node {
        let mut lines = vec![self.title()];
        if self.inner.is_empty() {
            let output = self.shapes(false);
            lines.push(match self.takes() {
                true => format!("{} → {output}", self.shapes(true)),
                false => output,
            });
            lines.extend(Some(self.parameters()).filter(|text| !text.is_empty()));
        }
        let is_input = self.row.class.is_some_and(|class| class.role == Role::Input);
        let kind = match &self.row.described {
            None => diagram::Kind::Unconnected,
            Some(_) if is_input && !self.takes() => diagram::Kind::Input,
            Some(_) => diagram::Kind::Plain,
        };
        let inner = self.inner.into_iter().map(Part::into_node).collect();
        diagram::Node { lines, kind, inner, from: self.from }
    }
}

/// The model as an SVG image.
pub(crate) fn to_svg(title: &str, track: Track<'_>) -> String {
    let nodes: Vec<diagram::Node> = parts(track).into_iter().map(Part::into_node).collect();
    diagram::to_svg(title, &nodes)
}

/// The parts that `track` reports.
fn parts(track: Track<'_>) -> Vec<Part> {
    // For each depth, the parts of the row above that are complete.
    let mut open: Vec<Vec<Part>> = vec![Vec::new()];
    for row in rows(track, true) {
        close(&mut open, row.depth + 1);
        // A part may be inside one that is not a row, such as a list of another crate.
        open.resize_with(row.depth + 1, Vec::new);
        open[row.depth].push(Part { row, inner: Vec::new(), from: Vec::new() });
    }
    close(&mut open, 1);
    let mut all = open.pop().unwrap_or_default();
    connect(&mut all);
    all
}

/// Moves the parts that are deeper than `depth` rows into the last part above them.
fn close(open: &mut Vec<Vec<Part>>, depth: usize) {
    while open.len() > depth {
        let mut inner = open.pop().unwrap_or_default();
        // Only a model describes the connections between its parts.
        if inner.iter().any(|part| part.row.described.is_some()) {
            connect(&mut inner);
            if let Some(outer) = open.last_mut().and_then(|parts| parts.last_mut()) {
                outer.inner = inner;
            }
        }
    }
}

fn connect(parts: &mut [Part]) {
    let places: HashMap<String, usize> =
        parts.iter().enumerate().map(|(at, part)| (part.row.name.clone(), at)).collect();
    for part in parts {
        let known = part.row.described.as_ref().map_or(&[][..], |known| &known.from);
        let mut from: Vec<usize> =
            known.iter().filter_map(|origin| places.get(&origin.name).copied()).collect();
        from.sort_unstable();
        from.dedup();
        part.from = from;
    }
}

/// A layer as a node of a graph.
#[cfg(feature = "summary")]
pub(crate) struct LayerNode {
    /// The path to it.
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) class: Option<&'static Class>,
    /// The nodes that its inputs come from.
    pub(crate) from: Vec<String>,
    pub(crate) outputs: Vec<Vec<Option<usize>>>,
    /// The shapes of its weights.
    pub(crate) weights: Vec<Vec<usize>>,
}

/// The layers that `track` reports, with those of nested models in their place.
#[cfg(feature = "summary")]
pub(crate) fn layer_nodes(track: Track<'_>) -> Vec<LayerNode> {
    let mut nodes = Vec::new();
    add_nodes(parts(track), "", &mut nodes);
    nodes
}

/// Returns for each part its first and its last node.
#[cfg(feature = "summary")]
fn add_nodes(parts: Vec<Part>, path: &str, nodes: &mut Vec<LayerNode>) -> Vec<(usize, usize)> {
    let mut ends: Vec<(usize, usize)> = Vec::new();
    let mut edges = Vec::new();
    for part in parts {
        let (name, first) = (format!("{path}{}", part.row.name), nodes.len());
        edges.extend(part.from.iter().map(|from| (*from, first)));
        if part.inner.is_empty() {
            let variables = part.row.variables.iter();
            nodes.push(LayerNode {
                name,
                kind: part.row.kind,
                class: part.row.class,
                from: Vec::new(),
                outputs: part.row.described.map(|known| known.outputs).unwrap_or_default(),
                weights: variables.map(|variable| variable.shape().to_vec()).collect(),
            });
        } else {
            add_nodes(part.inner, &format!("{name}/"), nodes);
        }
        ends.push((first, nodes.len().saturating_sub(1)));
    }
    for (from, to) in edges {
        let name = ends.get(from).and_then(|ends| nodes.get(ends.1)).map(|node| node.name.clone());
        if let (Some(name), Some(node)) = (name, nodes.get_mut(to)) {
            node.from.push(name);
        }
    }
    ends
}
