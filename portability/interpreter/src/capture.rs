//! Reads what wgrad has written with `WGRAD_KERNEL_CAPTURE`: a file for each plan, and one for each text. wgrad's
//! `src/plan/capture/file.rs` writes them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// A plan that ran on a device.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Its file.
    pub path: PathBuf,
    /// The adapter that it was planned for: `own` is the one that it ran on, others only have the same results.
    pub adapter: String,
    /// The fewest and the most invocations of a subgroup, where the adapter has subgroups.
    pub subgroups: Option<[u32; 2]>,
    /// Its buffers: values from outside, then those that the run took from the pool.
    pub buffers: Vec<Storage>,
    /// Its dispatches, in order.
    pub launches: Vec<Launch>,
    /// What the device has computed.
    pub results: Vec<Outcome>,
}

/// A buffer of a plan.
#[derive(Debug, Clone)]
pub struct Storage {
    /// Its size in bytes.
    pub bytes: usize,
    /// What it held before the run; `None` if nobody may count on anything.
    pub contents: Option<Vec<u8>>,
    /// The first buffer of the plan that is the same one.
    pub first: usize,
}

/// A dispatch.
#[derive(Debug, Clone, Deserialize)]
pub struct Launch {
    /// The kernel's name.
    pub label: String,
    /// The text's file, without its ending.
    pub text: String,
    /// Workgroups along each axis.
    pub grid: [u32; 3],
    /// What is bound, in the order of the bindings.
    pub bindings: Vec<Bound>,
}

/// What is bound to a binding.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Bound {
    /// A buffer of the plan, from its begin.
    Buffer {
        /// Its number.
        buffer: usize,
        /// So many bytes of it.
        bytes: usize,
        /// Whether it may be written.
        write: bool,
    },
    /// Parameters.
    Uniform {
        /// Their words.
        uniform: Vec<u32>,
    },
}

/// A result of a plan.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The buffer that holds it after the run.
    pub buffer: usize,
    /// The op whose result it is.
    pub op: String,
    /// The dtype, by wgrad's name.
    pub dtype: String,
    /// How many elements it has.
    pub elements: usize,
    /// The bytes that the device has computed.
    pub bytes: Vec<u8>,
}

#[derive(Deserialize)]
struct Header {
    adapter: String,
    subgroups: Option<[u32; 2]>,
    buffers: Vec<StorageHeader>,
    launches: Vec<Launch>,
    results: Vec<OutcomeHeader>,
}

#[derive(Deserialize)]
struct StorageHeader {
    bytes: usize,
    contents: bool,
    first: usize,
}

#[derive(Deserialize)]
struct OutcomeHeader {
    buffer: usize,
    op: String,
    dtype: String,
    elements: usize,
    bytes: usize,
}

/// Begins each file.
const HEAD: &[u8] = b"wgrad plan 1\n";

/// The files of all plans in a folder, in the order of their names.
///
/// # Errors
/// If the folder cannot be read.
pub fn plans(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder)
        .with_context(|| format!("cannot read the folder {}", folder.display()))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "plan") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

impl Plan {
    /// Reads a plan's file.
    ///
    /// # Errors
    /// If it cannot be read, or is none.
    pub fn read(path: &Path) -> Result<Plan> {
        let bytes =
            std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Plan::parse(path, &bytes).with_context(|| format!("{} is no captured plan", path.display()))
    }

    fn parse(path: &Path, bytes: &[u8]) -> Result<Plan> {
        let Some(rest) = bytes.strip_prefix(HEAD) else {
            bail!("it does not begin with `wgrad plan 1`; capture it again");
        };
        let end = rest.iter().position(|byte| *byte == b'\n').context("its header has no end")?;
        let header: Header = serde_json::from_slice(&rest[..end])?;
        let mut contents = &rest[end + 1..];
        let mut take = |count: usize| {
            ensure!(count <= contents.len(), "it ends before its contents do");
            let (part, others) = contents.split_at(count);
            contents = others;
            Ok(part.to_vec())
        };
        let mut buffers = Vec::new();
        for StorageHeader { bytes, contents, first } in header.buffers {
            let contents = if contents { Some(take(bytes)?) } else { None };
            buffers.push(Storage { bytes, contents, first });
        }
        let mut results = Vec::new();
        for OutcomeHeader { buffer, op, dtype, elements, bytes } in header.results {
            ensure!(buffer < buffers.len(), "a result lies in buffer {buffer}, which is none");
            results.push(Outcome { buffer, op, dtype, elements, bytes: take(bytes)? });
        }
        ensure!(contents.is_empty(), "{} bytes belong to nothing", contents.len());
        let known = |bound: &Bound| match bound {
            Bound::Buffer { buffer, .. } => *buffer < buffers.len(),
            Bound::Uniform { .. } => true,
        };
        let all = header.launches.iter().flat_map(|launch| &launch.bindings).all(known);
        ensure!(all, "a binding names a buffer that is none");
        ensure!(buffers.iter().all(|buffer| buffer.first < buffers.len()), "a buffer has no first");
        let (adapter, subgroups) = (header.adapter, header.subgroups);
        Ok(Plan {
            path: path.to_path_buf(),
            adapter,
            subgroups,
            buffers,
            launches: header.launches,
            results,
        })
    }

    /// The text of a launch.
    ///
    /// # Errors
    /// If its file cannot be read.
    pub fn text(&self, launch: &Launch) -> Result<String> {
        let path = self.path.with_file_name(format!("{}.wgsl", launch.text));
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }
}
