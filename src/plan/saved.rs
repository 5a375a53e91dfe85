//! Plans as files of the cache folder, for the next start of a program: kernels with their texts, buffers and parameters.
//!
//! A file of another adapter, driver, version or graph, and a damaged one, is refused with the reason; the caller then plans as
//! usual. Numbers are checked before they are used. A text is code that runs as the planner's do (`device/trusted.rs`), so
//! files are read from the cache folder alone, which only the user's programs write.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use prost::Message;

use super::iteration_space::Varying;
use super::{BufferRef, Params, Plan, Stage, Step};
use crate::device::{Access, Caps, ShaderSource};
use crate::error::{Error, Result, message};
use crate::files;
use crate::files::cache_folder;
use crate::graph::{Graph, hash_bytes};
use crate::plan::Note;
use crate::shape::Shape;

/// The plans of one graph, each for the leaves that it may overwrite.
pub(crate) type Plans = Vec<(Vec<bool>, Plan)>;

const MAGIC: &[u8; 8] = b"wgradpln";

/// A larger file holds no plan.
const LARGEST: u64 = 256 << 20;

/// The file for a plan of this name; `None` if the cache folder is off.
///
/// # Errors
/// [`Error::Data`] if the name is no plain file name.
fn path(call: &str, name: &str) -> Result<Option<PathBuf>> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if name.is_empty() || name.len() > 100 || name.starts_with('.') || !name.chars().all(plain) {
        return Err(Error::Data(message!(
            "{call}: '{name}' is no name for a plan. Use up to 100 letters, digits, '-', '_' and '.', not beginning with a '.'."
        )));
    }
    let env = |name: &str| std::env::var_os(name);
    if cache_folder::is_off(&env) {
        return Ok(None);
    }
    Ok(cache_folder::cache(&env).map(|folder| folder.join("plans").join(name)))
}

/// Writes the plans under a name.
///
/// # Errors
/// [`Error::Data`] if the name is no plain file name, if there is no cache folder, or if the file cannot be written.
pub(crate) fn write(name: &str, bytes: &[u8]) -> Result<()> {
    let path = path("save_plan", name)?.ok_or_else(|| {
        Error::Data(message!(
            "save_plan: there is no folder for the plan '{name}': WGRAD_CACHE is off, or the system has no cache folder. Set \
             WGRAD_CACHE to a folder."
        ))
    })?;
    let written = files::make_folder(files::folder_of(&path))
        .and_then(|()| files::replace(&path, |file| file.write_all(bytes)));
    written.map_err(|error| {
        Error::Data(message!(
            "save_plan: {}: {error}. Set WGRAD_CACHE to a folder that can be written.",
            path.display()
        ))
    })
}

/// The plans that were written under a name, or the reason why there are none.
///
/// # Errors
/// [`Error::Data`] if the name is no plain file name, or if the file exists and cannot be read.
pub(crate) fn read(name: &str) -> Result<Result<Vec<u8>, String>> {
    let Some(path) = path("load_plan", name)? else {
        return Ok(Err("there is no cache folder".to_string()));
    };
    let failed =
        |error: io::Error| Error::Data(message!("load_plan: {}: {error}.", path.display()));
    match files::look(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(Err(format!("{} does not exist", path.display())))
        }
        Err(error) => Err(failed(error)),
        Ok(file) if file.len() > LARGEST => Ok(Err("it is larger than plans are".to_string())),
        Ok(_) => files::read(&path).map(Ok).map_err(failed),
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct SavedPlans {
    /// The version, the adapter, its driver and what kernels may use of it.
    #[prost(string, tag = "1")]
    configuration: String,
    /// See [`Graph::structure`].
    #[prost(string, tag = "2")]
    structure: String,
    #[prost(string, repeated, tag = "3")]
    texts: Vec<String>,
    #[prost(message, repeated, tag = "4")]
    plans: Vec<SavedPlan>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SavedPlan {
    #[prost(bool, repeated, tag = "1")]
    donated: Vec<bool>,
    #[prost(message, repeated, tag = "2")]
    steps: Vec<SavedStep>,
    #[prost(uint64, repeated, tag = "3")]
    slots: Vec<u64>,
    /// For each wanted node its number and its buffer.
    #[prost(uint32, repeated, tag = "4")]
    outputs: Vec<u32>,
    #[prost(fixed32, repeated, tag = "5")]
    words: Vec<u32>,
    #[prost(message, repeated, tag = "6")]
    varying: Vec<SavedVarying>,
    /// Its stage: 0 has single ops, 1 is brief, 2 final.
    #[prost(uint32, tag = "7")]
    stage: u32,
    /// After how many runs the structure is planned again; never 0.
    #[prost(uint32, tag = "8")]
    until: u32,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SavedStep {
    #[prost(string, tag = "1")]
    label: String,
    /// The index of its text.
    #[prost(uint32, tag = "2")]
    text: u32,
    /// 0 reads, 1 writes, 2 has parameters.
    #[prost(uint32, repeated, tag = "3")]
    accesses: Vec<u32>,
    #[prost(uint32, repeated, tag = "4")]
    grid: Vec<u32>,
    /// The buffers and the bytes of them that it binds.
    #[prost(uint32, repeated, tag = "5")]
    buffers: Vec<u32>,
    #[prost(uint64, repeated, tag = "6")]
    bytes: Vec<u64>,
    /// Offset and bytes of each range of the parameters.
    #[prost(uint64, repeated, tag = "7")]
    params: Vec<u64>,
    #[prost(string, tag = "8")]
    name: String,
    #[prost(string, repeated, tag = "9")]
    ops: Vec<String>,
    #[prost(message, repeated, tag = "10")]
    outputs: Vec<SavedShape>,
    #[prost(uint64, tag = "11")]
    flops: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SavedShape {
    #[prost(uint64, repeated, tag = "1")]
    sizes: Vec<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SavedVarying {
    #[prost(uint64, tag = "1")]
    at: u64,
    #[prost(uint32, tag = "2")]
    constant: u32,
    /// Node, scalar and factor of each term.
    #[prost(uint32, repeated, tag = "3")]
    terms: Vec<u32>,
}

/// A leaf is an even number.
fn number(buffer: BufferRef) -> u32 {
    match buffer {
        BufferRef::Leaf(at) => at << 1,
        BufferRef::Slot(at) => (at << 1) | 1,
    }
}

fn buffer(number: u32) -> BufferRef {
    match number & 1 {
        0 => BufferRef::Leaf(number >> 1),
        _ => BufferRef::Slot(number >> 1),
    }
}

/// The plans of `graph` as bytes, without those that cannot run.
pub(crate) fn to_bytes(
    plans: &[(Vec<bool>, &Plan)],
    graph: &Graph,
    configuration: &str,
) -> Vec<u8> {
    let mut texts: Vec<String> = Vec::new();
    let mut known: HashMap<Arc<str>, u32> = HashMap::new();
    let mut text = |wgsl: &Arc<str>| {
        *known.entry(wgsl.clone()).or_insert_with(|| {
            texts.push(wgsl.to_string());
            texts.len() as u32 - 1
        })
    };
    let mut save = |(donated, plan): &(Vec<bool>, &Plan)| SavedPlan {
        donated: donated.clone(),
        steps: plan.steps.iter().map(|step| save_step(step, text(&step.source.wgsl))).collect(),
        slots: plan.slots.iter().map(|slot| slot.bytes).collect(),
        outputs: plan.outputs.iter().flat_map(|(node, at)| [*node, number(*at)]).collect(),
        words: plan.params.words.clone(),
        varying: plan
            .params
            .varying
            .iter()
            .map(|varying| SavedVarying {
                at: varying.at as u64,
                constant: varying.constant,
                terms: varying.terms.iter().flat_map(|(a, b, c)| [*a, *b, *c]).collect(),
            })
            .collect(),
        stage: match plan.stage {
            Stage::SingleOps => 0,
            Stage::Brief => 1,
            Stage::Final => 2,
        },
        until: plan.until,
    };
    let able = plans.iter().filter(|(_, plan)| plan.refused.is_none());
    let plans = able.map(&mut save).collect();
    let saved = SavedPlans {
        configuration: configuration.to_string(),
        structure: graph.structure(),
        texts,
        plans,
    };
    sealed(&saved.encode_to_vec())
}

/// The bytes after their checksum.
fn sealed(body: &[u8]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&hash_bytes(body).to_le_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn save_step(step: &Step, text: u32) -> SavedStep {
    let Note { label, ops, outputs, flops, weight: _ } = &step.note;
    let access = |access: &Access| match access {
        Access::Read => 0,
        Access::Write => 1,
        Access::Uniform => 2,
    };
    let shape =
        |shape: &Shape| SavedShape { sizes: shape.iter().map(|size| *size as u64).collect() };
    SavedStep {
        label: step.source.label.clone(),
        text,
        accesses: step.source.accesses.iter().map(access).collect(),
        grid: step.grid.to_vec(),
        buffers: step.binds.iter().map(|(at, _)| number(*at)).collect(),
        bytes: step.binds.iter().map(|(_, bytes)| *bytes).collect(),
        params: step.params.iter().flat_map(|(at, bytes)| [*at, *bytes]).collect(),
        name: label.clone(),
        ops: ops.iter().map(|op| (*op).to_string()).collect(),
        outputs: outputs.iter().map(shape).collect(),
        flops: *flops,
    }
}

/// The plans of [`to_bytes`] for the same graph and configuration, or the reason why they are not used.
pub(crate) fn from_bytes(
    bytes: &[u8],
    graph: &Graph,
    configuration: &str,
    caps: &Caps,
) -> Result<Plans, String> {
    let damaged = || "it is damaged".to_string();
    let rest = bytes.strip_prefix(MAGIC).ok_or("it holds no plan")?;
    let (sum, body) = rest.split_at_checked(8).ok_or_else(damaged)?;
    if sum != hash_bytes(body).to_le_bytes() {
        return Err(damaged());
    }
    let saved = SavedPlans::decode(body).map_err(|_| damaged())?;
    if saved.configuration != configuration {
        return Err("it is of another adapter, driver or version of wgrad".to_string());
    }
    if saved.plans.is_empty() {
        return Err("it holds no plan".to_string());
    }
    if saved.structure != graph.structure() {
        return Err(
            "it is of another function, or of one that was traced for other shapes".to_string()
        );
    }
    let texts: Vec<Arc<str>> = saved.texts.iter().map(|text| Arc::from(&**text)).collect();
    let ops = graph.nodes.iter().map(|node| (node.op.name(), node.op.name())).collect();
    let mut loader = Loader { graph, caps, texts: &texts, ops, slots: Vec::new() };
    let load = |plan: SavedPlan| {
        loader.slots.clone_from(&plan.slots);
        loader.load(plan)
    };
    saved.plans.into_iter().map(load).collect::<Option<_>>().ok_or_else(damaged)
}

/// Checks each number of a saved plan; `None` means that it is damaged.
struct Loader<'a> {
    graph: &'a Graph,
    caps: &'a Caps,
    texts: &'a [Arc<str>],
    /// The names of the graph's ops, by themselves: those in reports are static.
    ops: HashMap<&'a str, &'static str>,
    /// The sizes of the plan's slots.
    slots: Vec<u64>,
}

impl Loader<'_> {
    fn load(&self, plan: SavedPlan) -> Option<(Vec<bool>, Plan)> {
        let SavedPlan { donated, steps, slots, outputs, words, varying, stage, until } = plan;
        let fits = |bytes: &u64| (1..=self.caps.buffer_bytes).contains(bytes);
        if donated.len() != self.graph.leaves.len() || !slots.iter().all(fits) || until == 0 {
            return None;
        }
        let stage = match stage {
            0 => Stage::SingleOps,
            1 => Stage::Brief,
            2 => Stage::Final,
            _ => return None,
        };
        let steps = steps.into_iter().map(|step| self.step(step, &donated, words.len()));
        let steps: Vec<Step> = steps.collect::<Option<_>>()?;
        let nodes = &self.graph.nodes;
        let wanted = nodes.iter().enumerate().filter(|(_, node)| node.wanted);
        if outputs.len() != 2 * wanted.clone().count() {
            return None;
        }
        let outputs = wanted.zip(outputs.chunks_exact(2)).map(|((at, node), saved)| {
            let buffer = buffer(saved[1]);
            let fits = saved[0] as usize == at && self.bytes(buffer)? >= node.spec.bytes();
            fits.then_some((saved[0], buffer))
        });
        let outputs = outputs.collect::<Option<_>>()?;
        let varying = varying.into_iter().map(|saved| self.varying(&saved, words.len()));
        let varying = varying.collect::<Option<_>>()?;
        let params = Params { words, varying, buffer: None };
        let plan = Plan::new(steps, slots, outputs, params);
        Some((donated, Plan { stage, until, ..plan }))
    }

    /// How many bytes the buffer has.
    fn bytes(&self, buffer: BufferRef) -> Option<u64> {
        match buffer {
            BufferRef::Leaf(at) => self.graph.leaves.get(at as usize).map(|leaf| leaf.bytes()),
            BufferRef::Slot(at) => self.slots.get(at as usize).copied(),
        }
    }

    fn step(&self, saved: SavedStep, donated: &[bool], words: usize) -> Option<Step> {
        let accesses = saved.accesses.iter().map(|access| match access {
            0 => Some(Access::Read),
            1 => Some(Access::Write),
            2 => Some(Access::Uniform),
            _ => None,
        });
        let accesses: Vec<Access> = accesses.collect::<Option<_>>()?;
        let grid: [u32; 3] = saved.grid.try_into().ok()?;
        let uniforms = accesses.iter().filter(|access| matches!(access, Access::Uniform)).count();
        if grid.iter().any(|groups| *groups > self.caps.groups)
            || saved.params.len() != 2 * uniforms
            || saved.buffers.len() != accesses.len() - uniforms
            || saved.buffers.len() != saved.bytes.len()
            || saved.buffers.len() > self.caps.storage_buffers
        {
            return None;
        }
        let storage = accesses.iter().filter(|access| !matches!(access, Access::Uniform));
        let mut binds = Vec::with_capacity(saved.buffers.len());
        for ((at, bytes), access) in saved.buffers.iter().zip(&saved.bytes).zip(storage) {
            let at = buffer(*at);
            let overwritten = match (at, access) {
                (BufferRef::Leaf(leaf), Access::Write) => *donated.get(leaf as usize)?,
                _ => true,
            };
            let fits = *bytes > 0 && *bytes <= self.bytes(at)?.next_multiple_of(4);
            if !overwritten || !fits || *bytes > self.caps.binding_bytes {
                return None;
            }
            binds.push((at, *bytes));
        }
        let ranges = saved.params.chunks_exact(2).map(|range| {
            let (at, bytes) = (range[0], range[1]);
            let aligned = at.is_multiple_of(self.caps.uniform_alignment);
            let end = at.checked_add(bytes)?;
            (aligned && bytes > 0 && end <= 4 * words as u64).then_some((at, bytes))
        });
        let params = ranges.collect::<Option<_>>()?;
        let size = |size: &u64| usize::try_from(*size).ok();
        let shape = |shape: &SavedShape| -> Option<Shape> {
            let sizes: Vec<usize> = shape.sizes.iter().map(size).collect::<Option<_>>()?;
            sizes.iter().try_fold(1_usize, |all, size| all.checked_mul(*size))?;
            Some(Shape::new(&sizes))
        };
        let note = Note {
            label: saved.name,
            ops: saved.ops.iter().filter_map(|op| self.ops.get(&**op).copied()).collect(),
            outputs: saved.outputs.iter().map(shape).collect::<Option<_>>()?,
            flops: saved.flops,
            weight: 0,
        };
        let wgsl = self.texts.get(saved.text as usize)?.clone();
        let source = ShaderSource { label: saved.label, wgsl, accesses };
        Some(Step::new(source, grid, binds, params, note))
    }

    fn varying(&self, saved: &SavedVarying, words: usize) -> Option<Varying> {
        let at = usize::try_from(saved.at).ok().filter(|at| *at < words)?;
        if !saved.terms.len().is_multiple_of(3) {
            return None;
        }
        let terms = saved.terms.chunks_exact(3).map(|term| {
            let node = self.graph.nodes.get(term[0] as usize)?;
            let known = (term[1] as usize) < node.op.runtime_scalars().len();
            known.then_some((term[0], term[1], term[2]))
        });
        Some(Varying { at, constant: saved.constant, terms: terms.collect::<Option<_>>()? })
    }
}

#[cfg(test)]
pub(crate) fn sealed_again(bytes: &[u8]) -> Vec<u8> {
    sealed(&bytes[MAGIC.len() + 8..])
}
