//! TensorFlow's ops by name, and the calls that compute them. Ops of shapes and counters are computed on the host.

mod arrays;
mod control;
mod elementwise;
mod images;
mod lists;
mod matrices;
mod neural;
mod ragged;
mod random;
mod reductions;
mod resources;
mod shapes;
mod texts;

pub(super) use control::FUNCTIONS;
use std::collections::HashMap;
use std::sync::OnceLock;

use super::call::{Call, Entry, Results, Run};
use super::value::Value;
use super::{call, host};
use crate::error::Result;

/// The tables of all files.
fn tables() -> impl Iterator<Item = &'static [Entry]> {
    let all: [&'static [Entry]; 13] = [
        arrays::OPS,
        control::OPS,
        elementwise::OPS,
        images::OPS,
        lists::OPS,
        matrices::OPS,
        neural::OPS,
        ragged::OPS,
        random::OPS,
        reductions::OPS,
        resources::OPS,
        shapes::OPS,
        texts::OPS,
    ];
    all.into_iter()
}

/// The op of this name.
pub(super) fn find(name: &str) -> Option<&'static Entry> {
    static ALL: OnceLock<HashMap<&'static str, &'static Entry>> = OnceLock::new();
    let all = ALL.get_or_init(|| tables().flatten().map(|entry| (entry.name, entry)).collect());
    all.get(name).copied()
}

/// The names of an op's results, if there are several.
pub(super) fn outputs(name: &str) -> &'static [&'static str] {
    find(name).map_or(&[], |entry| entry.outputs)
}

/// The names of all ops, sorted.
pub(super) fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = tables().flatten().map(|entry| entry.name).collect();
    names.sort_unstable();
    names
}

/// Runs the op of a node.
pub(super) fn run(entry: &Entry, call: &mut Call<'_>) -> Result<Results> {
    let one = |value: Value| Results::from_iter([value]);
    match entry.run {
        Run::Unary(f) => {
            if let Some(x) = on_host(call.input(0)?) {
                if let Some(result) = host::unary(entry.name, x) {
                    return Ok(one(Value::host(result)));
                }
            }
            Ok(one(Value::Tensor(f(&call.tensor(0)?)?)))
        }
        Run::Binary(f) => {
            if let (Some(a), Some(b)) = (on_host(call.input(0)?), on_host(call.input(1)?)) {
                if let Some(result) = host::binary(entry.name, a, b) {
                    return Ok(one(Value::host(result?)));
                }
            }
            Ok(one(Value::Tensor(f(&call.tensor(0)?, &call.tensor(1)?)?)))
        }
        Run::Any(f) => f(call).map(one),
        Run::Many(f) => f(call),
    }
}

/// A small array on the host.
fn on_host(value: &Value) -> Option<&crate::host_array::HostArray<'static>> {
    value.as_host().map(|array| &**array).filter(|array| array.len() <= host::LARGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_op_is_in_one_table() {
        let names = names();
        assert!(names.windows(2).all(|pair| pair[0] < pair[1]), "{names:?}");
        assert!(find("MatMul").is_some() && find("Foo").is_none());
        assert_eq!(outputs("TopKV2"), ["values", "indices"]);
    }
}
