//! TensorFlow's graphs: read from files, and run by this crate's ops.
//!
//! `proto.rs` has the messages, `tensor_proto.rs` the arrays in them. `graph.rs` gives each node its place, `library.rs` each
//! function its graph. `run.rs` runs them node by node: `ops/` has what each op does (`call.rs`), of `value.rs`. What graphs
//! compute of shapes stays on the host (`host.rs`), so that the device's ops have known shapes.

mod call;
pub(super) mod graph;
mod host;
pub(super) mod library;
mod ops;
pub(super) mod proto;
pub(super) mod run;
mod single;
mod tensor_proto;
pub(super) mod value;

pub(super) use host::cast;
pub(super) use single::run_op;
pub(super) use tensor_proto::open_sizes;

/// The names of the ops that can be run, sorted.
pub(super) fn op_names() -> Vec<&'static str> {
    ops::names()
}
