//! Plans every new graph also for each known adapter (`device/known_adapters.rs`), with each variant that its ops have
//! there, and writes the results to files: for `cargo xtask adapters`.
//!
//! `WGRAD_KERNEL_TEXTS` names the folder. Each text is a file there, named by its hash; each adapter has a folder with
//! an empty file for each text that it would compile, and a file `limits.json`. Each kernel that an adapter would not
//! run is a line in `misfits.txt`; `registers.txt` has a line for each text with its name, the registers that it needs,
//! and its kernel's name. Several processes may write to the folder.

use std::collections::HashSet;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use serde_json::json;

use super::super::{Plan, pressure};
use super::{adapters, file};
use crate::device::platform::env_var;
use crate::device::{Caps, KnownAdapter, distinct_adapters};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::graph::Graph;

/// Plans the graph for each known adapter, if the environment requests it and no earlier graph had the same `plan`.
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
    for (adapter, caps) in adapters_to_plan_for() {
        if !would_be_called(graph, caps) {
            continue;
        }
        let own = folder.join(adapter.name);
        if !own.exists() {
            std::fs::create_dir_all(&own)?;
            let [threads, shared] = caps.workgroup;
            let core = adapter.core.map(|core| {
                json!({
                    "threads": core.threads,
                    "registers": core.registers,
                    "shared": core.shared,
                    "groups": core.groups,
                })
            });
            let (source, core) = (adapter.source, json!(core));
            let limits =
                json!({ "threads": threads, "shared": shared, "source": source, "core": core });
            file::replace(&own.join("limits.json"), &[limits.to_string().as_bytes()])?;
        }
        for (name, plan) in adapters::plans(adapter.name, graph, caps) {
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
            let misfits = plan.misfits(caps);
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

fn adapters_to_plan_for() -> &'static [(&'static KnownAdapter, Caps)] {
    static ADAPTERS: OnceLock<Vec<(&KnownAdapter, Caps)>> = OnceLock::new();
    ADAPTERS.get_or_init(distinct_adapters)
}

/// Whether a program that runs on the adapter could have made this graph: the ops' calls return errors for tensors that
/// it cannot hold, and make other nodes if it binds fewer buffers.
fn would_be_called(graph: &Graph, caps: &Caps) -> bool {
    let most = caps.binding_bytes.min(caps.buffer_bytes);
    graph.specs().all(|spec| spec.bytes() <= most && (spec.dtype != DType::F16 || caps.f16))
        && graph.nodes.iter().all(|node| node.inputs.len() < caps.storage_buffers)
}
