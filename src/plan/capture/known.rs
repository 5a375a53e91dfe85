//! Plans every new graph also for each known adapter (`device/known_adapters.rs`), with each variant that its ops have there,
//! and writes down what came of it: for `cargo xtask adapters`.
//!
//! `WGRAD_KERNEL_TEXTS` names the folder. Each text is a file there, named by its hash; each adapter has a folder with an
//! empty file for each text that it would compile, and a file `limits.json`. What an adapter would not run is a line in
//! `misfits.txt`; each text's name, the registers that it needs, and its kernel's name are one in `registers.txt`. Several processes may write to the folder.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::json;

use super::super::{Plan, pressure};
use super::{adapters, file};
use crate::device::platform::env_var;
use crate::device::{Caps, Core, KNOWN_ADAPTERS};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::Graph;

/// Known adapters that are the same to the planner, by the name of the first.
struct Kind {
    name: &'static str,
    /// Where its limits come from.
    source: &'static str,
    core: Option<Core>,
    caps: Caps,
}

/// Plans the graph for each known adapter, if the environment asks for it and no graph before had the same `plan`.
pub(crate) fn plan_for_known_adapters(plan: &Plan, graph: &Graph) -> Result<()> {
    static FOLDER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let name = env_var("WGRAD_KERNEL_TEXTS").filter(|name| !name.is_empty());
        name.map(PathBuf::from)
    });
    let Some(folder) = folder else { return Ok(()) };
    static SEEN: OnceLock<Mutex<HashSet<u64>>> = OnceLock::new();
    let mut seen = SEEN.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
    if !seen.insert(plan.structure()) {
        return Ok(());
    }
    drop(seen);
    write(folder, graph).map_err(|error| Error::io(folder, error))
}

fn write(folder: &Path, graph: &Graph) -> std::io::Result<()> {
    for kind in kinds() {
        if !would_be_called(graph, &kind.caps) {
            continue;
        }
        let own = folder.join(kind.name);
        if !own.exists() {
            std::fs::create_dir_all(&own)?;
            let [threads, shared] = kind.caps.workgroup;
            let core = kind.core.map(|core| {
                json!({
                    "threads": core.threads,
                    "registers": core.registers,
                    "shared": core.shared,
                    "groups": core.groups,
                })
            });
            let (source, core) = (kind.source, json!(core));
            let limits =
                json!({ "threads": threads, "shared": shared, "source": source, "core": core });
            file::replace(&own.join("limits.json"), &[limits.to_string().as_bytes()])?;
        }
        for (name, plan) in adapters::plans(kind.name, graph, &kind.caps) {
            for step in &plan.steps {
                let hash = file::text_name(step);
                let text = folder.join(format!("{hash}.wgsl"));
                if !text.exists() {
                    file::replace(&text, &[step.source.wgsl.as_bytes()])?;
                    let registers = pressure::registers(&step.source.wgsl);
                    append(
                        folder,
                        "registers.txt",
                        &format!("{hash} {registers} {}\n", step.label()),
                    )?;
                }
                let mark = own.join(hash);
                if !mark.exists() {
                    std::fs::File::create(mark)?;
                }
            }
            let misfits = plan.misfits(&kind.caps);
            if !misfits.is_empty() {
                append(folder, "misfits.txt", &format!("{name}: {}\n", misfits.join("; ")))?;
            }
        }
    }
    Ok(())
}

/// Adds a line to a file that several processes write.
fn append(folder: &Path, file: &str, line: &str) -> std::io::Result<()> {
    let mut lines = OpenOptions::new().create(true).append(true).open(folder.join(file))?;
    lines.write_all(line.as_bytes())
}

fn kinds() -> &'static [Kind] {
    static KINDS: OnceLock<Vec<Kind>> = OnceLock::new();
    KINDS.get_or_init(|| {
        let mut kinds: Vec<Kind> = Vec::new();
        for adapter in KNOWN_ADAPTERS {
            let caps = adapter.caps();
            if kinds.iter().all(|kind| kind.caps != caps) {
                kinds.push(Kind {
                    name: adapter.name,
                    source: adapter.source,
                    core: adapter.core,
                    caps,
                });
            }
        }
        kinds
    })
}

/// Whether a program that runs on the adapter could have made this graph: the ops' calls refuse what it cannot hold, and make
/// other nodes where it binds fewer buffers.
fn would_be_called(graph: &Graph, caps: &Caps) -> bool {
    let most = caps.binding_bytes.min(caps.buffer_bytes);
    graph.specs().all(|spec| spec.bytes() <= most && (spec.dtype != DType::F16 || caps.f16))
        && graph.nodes.iter().all(|node| node.inputs.len() < caps.storage_buffers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adapters_that_are_the_same_to_the_planner_are_planned_once() {
        let names: Vec<&str> = kinds().iter().map(|kind| kind.name).collect();
        assert!(names.contains(&"Apple M2") && names.contains(&"Chrome"), "{names:?}");
        assert!(names.len() < KNOWN_ADAPTERS.len(), "{names:?}");
    }
}
