//! ONNX's ops by name. Most are one or a few of TensorFlow's.

mod arrays;
mod attention;
mod boxes;
mod control;
mod losses;
mod math;
mod ml;
mod neural;
mod quantized;
mod recurrent;
mod resize;
mod sampling;
mod signal;

use std::collections::HashMap;
use std::sync::OnceLock;

use super::call;
use call::{Run, Table};

const TABLES: [Table; 12] = [
    arrays::OPS,
    attention::OPS,
    boxes::OPS,
    control::OPS,
    losses::OPS,
    math::OPS,
    neural::OPS,
    quantized::OPS,
    recurrent::OPS,
    resize::OPS,
    sampling::OPS,
    signal::OPS,
];

fn tables() -> impl Iterator<Item = &'static (&'static str, Run)> {
    TABLES.into_iter().chain(ml::TABLES).flatten()
}

/// The op of this name with its domain, as [`function_name`](super::graph::function_name) has it.
pub(super) fn find(name: &str) -> Option<Run> {
    static ALL: OnceLock<HashMap<&'static str, Run>> = OnceLock::new();
    let all = ALL.get_or_init(|| tables().copied().collect());
    // The standard domain has no name.
    all.get(name.strip_prefix('.').unwrap_or(name)).copied()
}

/// The names of all ops, sorted.
pub(super) fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = tables().map(|(name, _)| *name).collect();
    names.sort_unstable();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_op_is_in_one_table() {
        let names = names();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        assert!(find(".Conv").is_some() && find("own.Conv").is_none());
    }
}
