//! Assembles the WGSL module of an emitted kernel. A kernel has one section, or several independent ones, each of which
//! is run by a range of the workgroups.

use std::fmt::Write;

use super::iteration_space::{Fields, Varying};
use super::wgsl_writer::{Bound, Common, EmittedKernel, Writer, declare, indented};
use crate::device::{Access, ShaderSource};
use crate::graph::Graph;
use crate::graph::lower::fold;
use crate::wgsl::{self, Declarations};

/// The work of the threads of some workgroups.
pub(super) struct Section {
    /// The section's name in tables.
    label: String,
    params: Fields,
    f16: bool,
    /// The bindings that it reads, and those that it writes: kinds, names, types.
    loads: Vec<Binding>,
    stores: Vec<Binding>,
    /// The types for which it uses workgroup memory, an element for each thread.
    shared: Vec<String>,
    helpers: Declarations,
    /// The statements of one thread: `thread` is its index in the section, `local` its index in the workgroup.
    text: String,
    /// The threads of a workgroup cooperate, so they need `local`.
    joins: bool,
    workgroups: u64,
    workgroup: usize,
    iterations: usize,
}

type Binding = (Bound, String, &'static str);

impl Section {
    /// A section of `workgroups` workgroups; the loops of each thread make at most `iterations`.
    pub(super) fn new(
        writer: Writer,
        graph: &Graph,
        stores: &[Binding],
        text: String,
        (workgroups, iterations): (u64, usize),
        workgroup: usize,
    ) -> Self {
        Section {
            label: writer.label(graph),
            f16: writer.uses_f16(),
            loads: writer.loads(),
            stores: stores.to_vec(),
            params: writer.params,
            shared: Vec::new(),
            helpers: writer.helpers,
            text,
            joins: false,
            workgroups: workgroups.max(1),
            workgroup,
            iterations,
        }
    }

    /// The same section without work.
    pub(super) fn idle(self) -> Self {
        Section { workgroups: 0, ..self }
    }

    /// Records that the threads of a workgroup cooperate, and for which types they use workgroup memory.
    pub(super) fn joining(self, shared: Vec<String>) -> Self {
        Section { joins: true, shared, ..self }
    }
}

/// The name of the workgroup memory for a type.
pub(super) fn workgroup_memory(held: &str) -> String {
    format!("shared_{}", held.replace(['<', '>'], ""))
}

/// The prefix of the names of a kernel's section `k`.
pub(super) fn prefix(k: usize) -> String {
    format!("k{k}_")
}

/// Assembles a module: buffers, the uniform `p`, functions, and the entry point. All sections have workgroups of the
/// same size; if there are several, their names begin with [`prefix`]. `cpu` is true if a CPU runs them.
pub(super) fn module(mut sections: Vec<Section>, common: &Common, cpu: bool) -> EmittedKernel {
    let workgroup = sections[0].workgroup;
    let iterations =
        iterations(sections.iter().map(|section| (section.workgroups, section.iterations)), cpu);
    debug_assert!(sections.iter().all(|section| section.workgroup == workgroup));
    let (main, grid) = match &mut sections[..] {
        [one] => alone(one),
        several => side_by_side(several, cpu),
    };

    let mut wgsl = String::new();
    if sections.iter().any(|section| section.f16) {
        wgsl.push_str("enable f16;\n");
    }
    wgsl.push_str("struct Params {\n");
    sections.iter().for_each(|section| wgsl.push_str(&section.params.declarations()));
    wgsl.push_str("}\n\n");
    let (mut binds, mut accesses) = (Vec::new(), Vec::new());
    for (k, section) in sections.iter().enumerate() {
        let loads = section.loads.iter().map(|binding| (binding, "read", Access::Read));
        let stores = section.stores.iter().map(|binding| (binding, "read_write", Access::Write));
        for ((bound, name, ty), access, kind) in loads.chain(stores) {
            declare(&mut wgsl, binds.len(), access, name, ty);
            binds.push((k, *bound));
            accesses.push(kind);
        }
    }
    let _ = writeln!(wgsl, "@group(0) @binding({}) var<uniform> p: Params;\n", binds.len());
    accesses.push(Access::Uniform);
    let mut shared: Vec<&str> = Vec::new();
    for held in sections.iter().flat_map(|section| &section.shared) {
        if !shared.contains(&held.as_str()) {
            let name = workgroup_memory(held);
            let _ = writeln!(wgsl, "var<workgroup> {name}: array<{held}, {workgroup}>;\n");
            shared.push(held);
        }
    }
    wgsl.push_str(&common.functions());
    sections.iter().for_each(|section| wgsl.push_str(section.helpers.text()));
    wgsl.push_str(&main);

    let label = label(&sections);
    let (mut params, mut varying) = (Vec::new(), Vec::new());
    for section in sections {
        let moved = |word: Varying| Varying { at: params.len() + word.at, ..word };
        varying.extend(section.params.varying.into_iter().map(moved));
        params.extend(section.params.values);
    }
    EmittedKernel {
        source: ShaderSource { label, wgsl: wgsl::link(wgsl), accesses },
        grid,
        binds,
        params: vec![params],
        varying,
        flops: 0,
        iterations,
    }
}

/// How many iterations the loops of an invocation make that runs sections with these workgroups and iterations.
pub(super) fn iterations(sections: impl Iterator<Item = (u64, usize)> + Clone, cpu: bool) -> usize {
    let count = sections.clone().count();
    let all = step(sections.clone().map(|(workgroups, _)| workgroups).sum(), count);
    match (count, cpu) {
        (1, _) => sections.map(|(_, own)| own).sum(),
        (_, true) => {
            sections.map(|(workgroups, own)| workgroups.div_ceil(all) as usize * (1 + own)).sum()
        }
        (_, false) => sections.map(|(_, own)| own).max().unwrap_or(0) + count,
    }
}

/// How many workgroups run `sections` sections on a CPU, if these have `workgroups` in all.
fn step(workgroups: u64, sections: usize) -> u64 {
    (workgroups / (TURNS * sections as u64)).max(1)
}

/// The entry point of a kernel of one section.
fn alone(section: &mut Section) -> (String, [u32; 3]) {
    let workgroup = section.workgroup;
    let grid = fold(section.workgroups);
    let width = section.params.add(format_args!("width"), grid[0] * workgroup as u32);
    let local = match section.joins {
        true => ", @builtin(local_invocation_index) local: u32",
        false => "",
    };
    let main = format!(
        "@compute @workgroup_size({workgroup})\n\
         fn main(@builtin(global_invocation_id) id: vec3<u32>{local}) {{\n    \
         let thread = id.y * {width} + id.x;\n\
         {}}}\n",
        indented(&section.text, 4)
    );
    (main, grid)
}

/// A function for each section, and an entry point that calls them. On a GPU each section has its own range of the
/// workgroups. A CPU driver runs the text of all sections in every workgroup, even without work; so there a few
/// workgroups do all the work, section by section.
fn side_by_side(sections: &mut [Section], cpu: bool) -> (String, [u32; 3]) {
    let workgroup = sections[0].workgroup;
    let mut workgroups: u64 = sections.iter().map(|section| section.workgroups).sum();
    if cpu {
        workgroups = step(workgroups, sections.len());
    }
    let grid = fold(workgroups);
    let row = sections[0].params.add(format_args!("row"), grid[0]);
    let all = sections[0].params.add(format_args!("all"), workgroups as u32);
    let mut text = String::new();
    let mut calls = String::new();
    let mut first = 0;
    for (k, section) in sections.iter_mut().enumerate() {
        let name = format!("{}part", prefix(k));
        let body = indented(&section.text, 4);
        let _ = write!(text, "fn {name}(thread: u32, local: u32) {{\n{body}}}\n\n");
        let from = section.params.add(format_args!("first"), first);
        let end = section.params.add(format_args!("groups"), section.workgroups as u32);
        // Before a range the difference wraps to a number beyond the range's end.
        let _ = writeln!(
            calls,
            "    for (var g = group - {from}; g < {end}; g += {all}) {{ {name}(g * {workgroup}u + local, local); }}"
        );
        if !cpu {
            first += section.workgroups as u32;
        }
    }
    let _ = write!(
        text,
        "@compute @workgroup_size({workgroup})\n\
         fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) local: u32) {{\n    \
         let group = id.y * {row} + id.x;\n{calls}}}\n"
    );
    (text, grid)
}

/// How many iterations a workgroup on a CPU makes in each section.
const TURNS: u64 = 4;

/// The names of the sections, each with the number of sections that have it.
fn label(sections: &[Section]) -> String {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for section in sections.iter().filter(|section| section.workgroups > 0) {
        match names.iter_mut().find(|(name, _)| *name == section.label) {
            Some((_, count)) => *count += 1,
            None => names.push((&section.label, 1)),
        }
    }
    let several = |&(name, count): &(&str, usize)| match count {
        1 => name.to_string(),
        n => format!("{n} x {name}"),
    };
    names.iter().map(several).collect::<Vec<_>>().join(", ")
}
