//! Diagrams as SVG: boxes in layers from top to bottom, arrows between them, and frames around boxes.

mod layout;
mod svg;

pub(crate) use svg::to_svg;

/// A box of a diagram, or a frame around others.
#[derive(Default)]
pub(crate) struct Node {
    /// The title and further lines.
    pub(crate) lines: Vec<String>,
    pub(crate) kind: Kind,
    /// The boxes in a frame.
    pub(crate) inner: Vec<Node>,
    /// The indices of the nodes of the same level that arrows come from.
    pub(crate) from: Vec<usize>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Plain,
    /// A value from outside, in another colour.
    Input,
    /// A node whose arrows are unknown: it has a layer of its own.
    Unconnected,
}
