//! The file of a captured plan: a line that identifies the format, a line of JSON, then the contents of buffers. Texts
//! are in separate files, because many plans share them. `portability/interpreter/src/capture.rs` reads both.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Result, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use super::super::{BufferRef, Plan, Step};
use crate::device::Access;
use crate::graph::Graph;

/// The contents of a file.
pub(super) struct Captured<'a> {
    pub(super) plan: &'a Plan,
    pub(super) graph: &'a Graph,
    /// The adapter for which it was planned.
    pub(super) adapter: &'a str,
    pub(super) subgroups: Option<[u32; 2]>,
    /// The bytes of each leaf before the run, and the first leaf in the same buffer.
    pub(super) leaves: &'a [Vec<u8>],
    pub(super) shared: &'a [u32],
    /// The results by their nodes, as the device has computed them.
    pub(super) results: &'a [(u32, &'a [u8])],
}

/// Begins each file; the number changes with the format.
const HEAD: &str = "wgrad plan 1\n";

pub(super) fn write(folder: &Path, name: &str, captured: &Captured) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let path = folder.join(format!("{name}.plan"));
    if path.exists() {
        return Ok(());
    }
    for step in &captured.plan.steps {
        let text = folder.join(format!("{}.wgsl", text_name(step)));
        if !text.exists() {
            replace(&text, &[step.source.wgsl.as_bytes()])?;
        }
    }
    let leaves = captured.leaves.len();
    let mut contents: Vec<&[u8]> = Vec::new();
    let mut buffers: Vec<Value> = Vec::new();
    for (leaf, &first) in captured.leaves.iter().zip(captured.shared) {
        buffers.push(json!({ "bytes": leaf.len(), "contents": true, "first": first }));
        contents.push(leaf);
    }
    for (at, slot) in captured.plan.slots.iter().enumerate() {
        buffers.push(json!({ "bytes": slot.bytes, "contents": false, "first": leaves + at }));
    }
    let number = |buffer: BufferRef| match buffer {
        BufferRef::Leaf(at) => at as usize,
        BufferRef::Slot(at) => leaves + at as usize,
    };
    let mut results: Vec<Value> = Vec::new();
    for &(node, buffer) in &captured.plan.outputs {
        let Some((_, bytes)) = captured.results.iter().find(|(known, _)| *known == node) else {
            continue;
        };
        let node = &captured.graph.nodes[node as usize];
        results.push(json!({
            "buffer": number(buffer),
            "op": node.op.name(),
            "dtype": node.spec.dtype.name(),
            "elements": node.spec.elements(),
            "bytes": bytes.len(),
        }));
        contents.push(bytes);
    }
    let launches: Vec<Value> = captured
        .plan
        .steps
        .iter()
        .map(|step| launch(step, &captured.plan.params.words, number))
        .collect();
    let words = json!({
        "adapter": captured.adapter,
        "subgroups": captured.subgroups,
        "buffers": buffers,
        "launches": launches,
        "results": results,
    });
    let words = format!("{words}\n");
    let parts = [HEAD.as_bytes(), words.as_bytes()];
    replace(&path, &parts.into_iter().chain(contents).collect::<Vec<_>>())
}

fn launch(step: &Step, words: &[u32], number: impl Fn(BufferRef) -> usize) -> Value {
    let mut storage = step.binds.iter();
    let mut uniforms = step.params.iter();
    let bindings: Vec<Value> = step
        .source
        .accesses
        .iter()
        .filter_map(|access| match access {
            Access::Uniform => uniforms.next().map(|&(at, bytes)| {
                let (at, end) = (at as usize / 4, (at + bytes) as usize / 4);
                json!({ "uniform": words[at..end] })
            }),
            access => storage.next().map(|&(buffer, bytes)| {
                let write = *access == Access::Write;
                json!({ "buffer": number(buffer), "bytes": bytes, "write": write })
            }),
        })
        .collect();
    json!({ "label": step.label(), "text": text_name(step), "grid": step.grid, "bindings": bindings })
}

/// A text's file, without its ending.
pub(super) fn text_name(step: &Step) -> String {
    let mut hasher = DefaultHasher::new();
    step.source.wgsl.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Writes a file in one step, so that readers never see a partial file, and several processes may write the same one.
pub(super) fn replace(path: &Path, parts: &[&[u8]]) -> Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let own = format!("{}-{}.part", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
    let part = path.with_extension(own);
    let mut file = std::io::BufWriter::new(std::fs::File::create(&part)?);
    parts.iter().try_for_each(|bytes| file.write_all(bytes))?;
    file.into_inner()?.sync_data()?;
    std::fs::rename(part, path)
}
