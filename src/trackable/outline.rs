//! [`rows`]: the parts of a model and their descriptions, for tables and diagrams.

use super::class::{Class, Role};
use super::parts::{Described, Leaf, PartType, Parts, Track};
use super::walk::variables;
use crate::variable::Variable;

/// A part of a model.
pub(super) struct Row {
    /// The number of parts that contain it.
    pub(super) depth: usize,
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) class: Option<&'static Class>,
    pub(super) described: Option<Described>,
    pub(super) variables: Vec<Variable>,
    /// Whether it has weights of unknown size.
    pub(super) unbuilt: bool,
}

/// The parts that `track` reports, and if `nested` theirs, each after the part that contains it.
pub(super) fn rows(track: Track<'_>, nested: bool) -> Vec<Row> {
    let mut rows = Vec::<Row>::new();
    let mut visit = |path: &str, leaf: Leaf<'_>| {
        let Leaf::Part { part_type, track, described } = leaf else { return };
        let (PartType { kind, class }, depth) = (part_type(), path.matches('/').count());
        // A layer's weights are not rows of the table.
        let weight = class.is_some_and(|class| class.role == Role::Value);
        if kind.is_empty() || (depth > 0 && (!nested || weight)) {
            return;
        }
        let name = path.rsplit('/').next().unwrap_or(path).to_string();
        let variables = variables(track, |_| true);
        let mut unbuilt = false;
        track(&mut Parts::new(&mut |_: &str, leaf| unbuilt |= matches!(leaf, Leaf::ToBe(_))));
        let described = described.map(|described| described());
        unbuilt |= described.as_ref().is_some_and(|known| known.outputs.is_empty());
        rows.push(Row { depth, name, kind, class, described, variables, unbuilt });
    };
    track(&mut Parts::new(&mut visit));
    rows
}
