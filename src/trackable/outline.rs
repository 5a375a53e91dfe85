//! [`rows`]: the parts of a model and what is known of each, as tables and pictures show them.

use super::parts::{Described, Leaf, Parts, Track};
use super::walk::variables;
use crate::variable::Variable;

/// A part of a model.
pub(super) struct Row {
    /// How many parts it lies in.
    pub(super) depth: usize,
    pub(super) name: String,
    pub(super) kind: &'static str,
    pub(super) described: Option<Described>,
    pub(super) variables: Vec<Variable>,
    /// Whether it has weights without a size.
    pub(super) unbuilt: bool,
}

/// The parts that `track` names, and if `nested` theirs, each behind the one that it lies in.
pub(super) fn rows(track: Track<'_>, nested: bool) -> Vec<Row> {
    let mut rows = Vec::<Row>::new();
    let mut visit = |path: &str, leaf: Leaf<'_>| {
        let Leaf::Part { kind, track, described } = leaf else { return };
        let (kind, depth) = (kind(), path.matches('/').count());
        // A layer's weights are no rows in the layer's.
        let weight = matches!(
            kind,
            "Weight" | "Variable" | "Slot" | "Generator" | "SeedGenerator" | "AtomicU64"
        );
        if kind.is_empty() || (depth > 0 && (!nested || weight)) {
            return;
        }
        let name = path.rsplit('/').next().unwrap_or(path).to_string();
        let variables = variables(track, |_| true);
        let mut unbuilt = false;
        track(&mut Parts::new(&mut |_: &str, leaf| unbuilt |= matches!(leaf, Leaf::ToBe(_))));
        let described = described.map(|described| described());
        unbuilt |= described.as_ref().is_some_and(|known| known.outputs.is_empty());
        rows.push(Row { depth, name, kind, described, variables, unbuilt });
    };
    track(&mut Parts::new(&mut visit));
    rows
}
