//! Captures the launches of plans, with the contents of their buffers before the run and of their results after it, for
//! the interpreter in `portability/interpreter`. Only builds with the feature `kernel-hooks` have it.
//!
//! - `WGRAD_KERNEL_CAPTURE` names the folder. Each plan is written once, even by several processes: the file's name
//!   depends on its structure.
//! - `WGRAD_KERNEL_CAPTURE_EVERY=100` also writes each plan's hundredth run, its two hundredth, and so on.
//! - `WGRAD_KERNEL_CAPTURE_BYTES` skips plans whose buffers take more than that; 64 MiB by default.
//! - `WGRAD_KERNEL_CAPTURE_ADAPTERS` names other adapters (see `adapters.rs`), for which the same graphs are also
//!   planned and written. Their kernels do not run here, but must have the same results.
//!
//! `WGRAD_KERNEL_TEXTS` requests less: see `known.rs`.

mod adapters;
mod file;
mod known;

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::{BufferRef, Plan};
use crate::device::platform::env_var;
use crate::device::{Buffer, Caps, Gpu};
use crate::error::{Error, Result, message};
use crate::graph::Graph;
use adapters::Adapter;
pub(crate) use known::plan_for_known_adapters;

/// The settings in the environment.
struct Settings {
    folder: PathBuf,
    every: Option<u32>,
    most_bytes: u64,
    adapters: Vec<&'static Adapter>,
}

/// A run that is being captured.
pub(crate) struct Recording {
    settings: &'static Settings,
    caps: Caps,
    /// The bytes of each leaf before the run.
    leaves: Vec<Vec<u8>>,
    /// For each leaf the first one in the same buffer.
    shared: Vec<u32>,
    /// The run's number, if it is not the plan's first.
    run: Option<u32>,
}

/// The default limit for the bytes of a plan's buffers.
const MOST_BYTES: u64 = 64 << 20;

impl Recording {
    /// Reads the leaves, if this run is to be captured.
    pub(crate) fn begin(
        gpu: &Gpu,
        plan: &Plan,
        caps: &Caps,
        graph: &Graph,
        leaves: &[Arc<Buffer>],
    ) -> Result<Option<Recording>> {
        let Some(settings) = Settings::get()? else { return Ok(None) };
        let later =
            settings.every.is_some_and(|every| plan.runs > 0 && plan.runs.is_multiple_of(every));
        let bytes = plan.slots.iter().map(|slot| slot.bytes).sum::<u64>()
            + graph.leaves.iter().map(|spec| spec.bytes()).sum::<u64>();
        let new = later || plan.runs == 0;
        if !new || plan.steps.is_empty() || bytes > settings.most_bytes {
            return Ok(None);
        }
        let run = later.then_some(plan.runs);
        if is_known(plan.structure(), run) && settings.adapters.is_empty() {
            return Ok(None);
        }
        let whole: Vec<(Arc<Buffer>, u64)> =
            leaves.iter().cloned().zip(graph.leaves.iter().map(|spec| spec.bytes())).collect();
        let first = |at: usize| leaves.iter().position(|other| other.id() == leaves[at].id());
        Ok(Some(Recording {
            settings,
            caps: caps.clone(),
            leaves: read(gpu, &whole)?,
            shared: (0..leaves.len()).map(|at| first(at).unwrap_or(at) as u32).collect(),
            run,
        }))
    }

    /// Reads the results, and writes the plan and those for other adapters.
    pub(crate) fn end(
        self,
        gpu: &Gpu,
        plan: &Plan,
        graph: &Graph,
        outputs: &[Arc<Buffer>],
    ) -> Result<()> {
        let spec = |node: u32| &graph.nodes[node as usize].spec;
        let sized = plan.outputs().map(|node| spec(node).bytes());
        let whole: Vec<(Arc<Buffer>, u64)> = outputs.iter().cloned().zip(sized).collect();
        let results = read(gpu, &whole)?;
        let results: Vec<(u32, &[u8])> =
            plan.outputs().zip(results.iter().map(Vec::as_slice)).collect();
        self.write(plan, graph, "own", self.caps.subgroups, &results)?;
        for adapter in &self.settings.adapters {
            for (name, mut other) in adapter.plans(graph, &self.caps)? {
                other.params.update(&graph.nodes);
                self.write(&other, graph, &name, adapter.subgroups(&self.caps), &results)?;
            }
        }
        Ok(())
    }

    fn write(
        &self,
        plan: &Plan,
        graph: &Graph,
        adapter: &str,
        subgroups: Option<[u32; 2]>,
        results: &[(u32, &[u8])],
    ) -> Result<()> {
        let structure = plan.structure();
        if note(structure, self.run) {
            return Ok(());
        }
        // Launches of another adapter that equal earlier ones, parameters included, show nothing new.
        if !plan.notes_new_launches() && adapter != "own" {
            return Ok(());
        }
        let name = match self.run {
            None => format!("{structure:016x}"),
            Some(run) => format!("{structure:016x}-{run}"),
        };
        let folder = &self.settings.folder;
        let written = file::write(
            folder,
            &name,
            &file::Captured {
                plan,
                graph,
                adapter,
                subgroups,
                leaves: &self.leaves,
                shared: &self.shared,
                results,
            },
        );
        written.map_err(|error| Error::io(folder, error))
    }
}

impl Settings {
    fn get() -> Result<Option<&'static Settings>> {
        static SETTINGS: OnceLock<Result<Option<Settings>>> = OnceLock::new();
        match SETTINGS.get_or_init(Settings::read) {
            Ok(settings) => Ok(settings.as_ref()),
            Err(error) => Err(error.clone()),
        }
    }

    fn read() -> Result<Option<Settings>> {
        let set = |name: &str| env_var(name).filter(|value| !value.is_empty());
        let number = |name: &str| {
            let parse = |value: String| {
                value.parse::<u32>().ok().filter(|n| *n > 0).ok_or_else(|| {
                    Error::Data(message!("{name} is '{value}', and should be a number from 1 on."))
                })
            };
            set(name).map(parse).transpose()
        };
        let Some(folder) = set("WGRAD_KERNEL_CAPTURE") else { return Ok(None) };
        let names = set("WGRAD_KERNEL_CAPTURE_ADAPTERS").unwrap_or_default();
        Ok(Some(Settings {
            folder: folder.into(),
            every: number("WGRAD_KERNEL_CAPTURE_EVERY")?,
            most_bytes: number("WGRAD_KERNEL_CAPTURE_BYTES")?.map_or(MOST_BYTES, u64::from),
            adapters: adapters::named(&names)?,
        }))
    }
}

/// The launches that this process has written, by their texts, grids and parameters.
fn launched() -> &'static Mutex<HashSet<u64>> {
    static LAUNCHED: OnceLock<Mutex<HashSet<u64>>> = OnceLock::new();
    LAUNCHED.get_or_init(Mutex::default)
}

/// Plans by structure and run.
type Plans = HashSet<(u64, Option<u32>)>;

/// The plans that this process has written or found already written.
fn written() -> &'static Mutex<Plans> {
    static WRITTEN: OnceLock<Mutex<Plans>> = OnceLock::new();
    WRITTEN.get_or_init(Mutex::default)
}

fn is_known(structure: u64, run: Option<u32>) -> bool {
    written().lock().unwrap_or_else(PoisonError::into_inner).contains(&(structure, run))
}

/// Records a plan; true if it was known.
fn note(structure: u64, run: Option<u32>) -> bool {
    !written().lock().unwrap_or_else(PoisonError::into_inner).insert((structure, run))
}

/// The bytes of these buffers, all read at once.
fn read(gpu: &Gpu, buffers: &[(Arc<Buffer>, u64)]) -> Result<Vec<Vec<u8>>> {
    let bytes = buffers.iter().map(|(_, bytes)| bytes).sum::<u64>() as usize;
    if bytes == 0 {
        return Ok(vec![Vec::new(); buffers.len()]);
    }
    let filled: Vec<(Arc<Buffer>, u64)> =
        buffers.iter().filter(|(_, bytes)| *bytes > 0).cloned().collect();
    let staging = gpu.staging(bytes)?;
    let index = gpu.gather(&filled, &staging)?;
    let all = gpu.read_blocking(staging, index)?;
    let mut rest = &all[..];
    let mut part = |bytes: u64| {
        let (part, others) = rest.split_at(bytes as usize);
        rest = others;
        part.to_vec()
    };
    Ok(buffers.iter().map(|(_, bytes)| part(*bytes)).collect())
}

impl Plan {
    /// Records the plan's launches; true if any of them is new.
    fn notes_new_launches(&self) -> bool {
        let mut known = launched().lock().unwrap_or_else(PoisonError::into_inner);
        let mut new = false;
        for step in &self.steps {
            let mut hasher = DefaultHasher::new();
            (&step.source.wgsl, step.grid).hash(&mut hasher);
            for (at, bytes) in &step.params {
                self.params.words[*at as usize / 4..(at + bytes) as usize / 4].hash(&mut hasher);
            }
            new |= known.insert(hasher.finish());
        }
        new
    }

    /// A hash of the plan's launches, independent of its runtime scalars.
    fn structure(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for step in &self.steps {
            (&step.source.wgsl, &step.source.accesses, step.grid, &step.params).hash(&mut hasher);
            for (buffer, bytes) in &step.binds {
                let (leaf, at) = match *buffer {
                    BufferRef::Leaf(at) => (true, at),
                    BufferRef::Slot(at) => (false, at),
                };
                (leaf, at, bytes).hash(&mut hasher);
            }
        }
        let mut words = self.params.words.clone();
        self.params.varying.iter().for_each(|varying| words[varying.at] = 0);
        words.hash(&mut hasher);
        hasher.finish()
    }
}
