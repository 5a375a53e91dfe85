//! A folder of kernels, as wgrad writes it for known adapters.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::Needs;

/// The kernels of a folder, and the adapters that would compile them.
#[derive(Debug)]
pub struct Texts {
    /// The files' names without their ending, in order.
    pub names: Vec<String>,
    folder: PathBuf,
    adapters: BTreeMap<String, Adapter>,
    /// Of some texts: registers, and the kernel's name.
    registers: HashMap<String, (u32, String)>,
}

#[derive(Debug)]
struct Adapter {
    limits: Limits,
    texts: HashSet<String>,
}

#[derive(Debug, Deserialize)]
struct Limits {
    threads: u32,
    shared: u32,
    #[serde(default)]
    core: Option<Core>,
}

/// What all workgroups that run at once on one core share.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Core {
    threads: u32,
    registers: u32,
    shared: u32,
    groups: u32,
}

impl Core {
    /// How many of its threads run at once if all run this kernel, as a part of those that could.
    fn occupancy(&self, needs: Needs, registers: u32) -> f64 {
        let of = |all: u32, each: u32| all.checked_div(each).unwrap_or(u32::MAX);
        let groups = self
            .groups
            .min(of(self.threads, needs.threads))
            .min(of(self.registers, registers.saturating_mul(needs.threads)))
            .min(of(self.shared, needs.shared));
        f64::from(groups.saturating_mul(needs.threads)) / f64::from(self.threads.max(1))
    }
}

/// A kernel that leaves most of a core without threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Idle {
    /// The adapter's name.
    pub adapter: String,
    /// Threads that run at once, as a part of those that could.
    pub occupancy: f64,
    /// The registers that a thread needs, estimated.
    pub registers: u32,
    /// The kernel's name.
    pub label: String,
}

impl Texts {
    /// Lists a folder.
    pub fn open(folder: &Path) -> Result<Texts> {
        let at = || format!("cannot read {}", folder.display());
        let mut texts = Texts {
            names: Vec::new(),
            folder: folder.to_path_buf(),
            adapters: BTreeMap::new(),
            registers: registers(&folder.join("registers.txt"))?,
        };
        for entry in std::fs::read_dir(folder).with_context(at)? {
            let entry = entry.with_context(at)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if entry.file_type().with_context(at)?.is_dir() {
                texts.adapters.insert(name, Adapter::open(&entry.path())?);
            } else if let Some(name) = name.strip_suffix(".wgsl") {
                texts.names.push(name.to_owned());
            }
        }
        texts.names.sort_unstable();
        Ok(texts)
    }

    /// The adapters, and how many texts each would compile.
    pub fn adapters(&self) -> impl Iterator<Item = (&str, usize)> + '_ {
        self.adapters.iter().map(|(name, adapter)| (&name[..], adapter.texts.len()))
    }

    /// A kernel's text.
    pub fn read(&self, name: &str) -> Result<String> {
        let path = self.folder.join(format!("{name}.wgsl"));
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    }

    /// What adapters would not run, as wgrad has found while it planned: a line each.
    pub fn misfits(&self) -> Result<Vec<String>> {
        let path = self.folder.join("misfits.txt");
        if !path.exists() {
            return Ok(Vec::new());
        }
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort_unstable();
        lines.dedup();
        Ok(lines)
    }

    /// The adapters that would compile the kernel and run it with less than a quarter of the threads that they could.
    pub fn idle(&self, name: &str, needs: Needs) -> Vec<Idle> {
        let Some((registers, label)) = self.registers.get(name) else { return Vec::new() };
        let asked = self.adapters.iter().filter(|(_, adapter)| adapter.texts.contains(name));
        asked
            .filter_map(|(adapter, Adapter { limits, .. })| {
                let occupancy = limits.core?.occupancy(needs, *registers);
                (occupancy < 0.25).then(|| Idle {
                    adapter: adapter.clone(),
                    occupancy,
                    registers: *registers,
                    label: label.clone(),
                })
            })
            .collect()
    }

    /// The adapters that would compile the kernel and have smaller workgroups than it needs.
    pub fn too_small(&self, name: &str, needs: Needs) -> Vec<String> {
        let asked = self.adapters.iter().filter(|(_, adapter)| adapter.texts.contains(name));
        asked
            .filter_map(|(adapter, Adapter { limits: Limits { threads, shared, .. }, .. })| {
                let small = needs.threads > *threads || needs.shared > *shared;
                small.then(|| {
                    format!(
                        "{} threads and {} shared bytes; {adapter} has {threads} and {shared}",
                        needs.threads, needs.shared
                    )
                })
            })
            .collect()
    }
}

/// The lines of a file: a text's name, its registers, and its kernel's name.
fn registers(path: &Path) -> Result<HashMap<String, (u32, String)>> {
    if !path.exists() {
        return Ok(HashMap::new());
    }
    let at = || format!("cannot read {}", path.display());
    let lines = std::fs::read_to_string(path).with_context(at)?;
    let read = |line: &str| {
        let mut words = line.splitn(3, ' ');
        let (name, count, label) = (words.next()?, words.next()?.parse().ok()?, words.next()?);
        Some((name.to_owned(), (count, label.to_owned())))
    };
    lines.lines().map(|line| read(line).with_context(|| format!("{}: {line}", at()))).collect()
}

impl Adapter {
    fn open(folder: &Path) -> Result<Adapter> {
        let at = || format!("cannot read {}", folder.display());
        let limits = std::fs::read(folder.join("limits.json")).with_context(at)?;
        let limits = serde_json::from_slice(&limits).with_context(at)?;
        let mut texts = HashSet::new();
        for entry in std::fs::read_dir(folder).with_context(at)? {
            texts.insert(entry.with_context(at)?.file_name().to_string_lossy().into_owned());
        }
        texts.remove("limits.json");
        Ok(Adapter { limits, texts })
    }
}
