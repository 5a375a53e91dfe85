//! Modules of generated kernels. A kernel has one part, or several that have nothing to do with each other and are run
//! by ranges of its workgroups.

use std::fmt::Write;

use super::code::{Bound, Common, Kernel, Writer, declare, indented};
use super::space::Fields;
use crate::device::{Access, Source};
use crate::dtype::Register;
use crate::graph::Graph;
use crate::graph::lower::{fold, link_prelude};

/// What the threads of some workgroups do.
pub(super) struct Part {
    /// Names it in tables.
    label: String,
    params: Fields,
    words: Vec<(usize, u32, usize)>,
    f16: bool,
    /// Bindings that are read, and those that are written: what they are, names, types.
    loads: Vec<Binding>,
    stores: Vec<Binding>,
    /// Types of workgroup memory in use.
    shared: Vec<Register>,
    helpers: String,
    /// Statements of one thread, of which `thread` is the number in the part, and `local` that in its workgroup.
    text: String,
    groups: u64,
    workgroup: usize,
    iterations: usize,
}

type Binding = (Bound, String, &'static str);

impl Part {
    /// `groups` workgroups, of whose threads the loops make at most `iterations`.
    pub(super) fn new(
        writer: Writer,
        graph: &Graph,
        stores: &[Binding],
        text: String,
        (groups, iterations): (u64, usize),
        workgroup: usize,
    ) -> Self {
        Part {
            label: writer.label(graph),
            f16: writer.uses_f16(),
            loads: writer.loads(),
            stores: stores.to_vec(),
            params: writer.params,
            words: writer.words,
            shared: Vec::new(),
            helpers: writer.helpers,
            text,
            groups: groups.max(1),
            workgroup,
            iterations,
        }
    }

    /// Says of which types it uses workgroup memory.
    pub(super) fn sharing(self, shared: Vec<Register>) -> Self {
        Part { shared, ..self }
    }
}

/// What the names of part `k` of a kernel begin with.
pub(super) fn prefix(k: usize) -> String {
    format!("k{k}_")
}

/// Puts a module together: buffers, the uniform `p`, functions, and the entry point. The names of several parts, all
/// with workgroups of one size, begin with [`prefix`]. `cpu` says that a processor runs them.
pub(super) fn module(mut parts: Vec<Part>, common: &Common, cpu: bool) -> Kernel {
    let workgroup = parts[0].workgroup;
    let iterations = iterations(parts.iter().map(|part| (part.groups, part.iterations)), cpu);
    debug_assert!(parts.iter().all(|part| part.workgroup == workgroup));
    let (main, grid) = match &mut parts[..] {
        [one] => alone(one),
        several => side_by_side(several, cpu),
    };

    let mut wgsl = String::new();
    if parts.iter().any(|part| part.f16) {
        wgsl.push_str("enable f16;\n");
    }
    wgsl.push_str("struct Params {\n");
    parts.iter().for_each(|part| wgsl.push_str(&part.params.declarations()));
    wgsl.push_str("}\n\n");
    let (mut binds, mut accesses) = (Vec::new(), Vec::new());
    for (k, part) in parts.iter().enumerate() {
        let loads = part.loads.iter().map(|binding| (binding, "read", Access::Read));
        let stores = part.stores.iter().map(|binding| (binding, "read_write", Access::Write));
        for ((bound, name, ty), access, kind) in loads.chain(stores) {
            declare(&mut wgsl, binds.len(), access, name, ty);
            binds.push((k, *bound));
            accesses.push(kind);
        }
    }
    let _ = writeln!(wgsl, "@group(0) @binding({}) var<uniform> p: Params;\n", binds.len());
    accesses.push(Access::Uniform);
    let mut shared: Vec<Register> = Vec::new();
    for register in parts.iter().flat_map(|part| &part.shared) {
        if !shared.contains(register) {
            let scalar = register.scalar();
            let array = format!("array<{scalar}, {workgroup}>");
            let _ = writeln!(wgsl, "var<workgroup> shared_{scalar}: {array};\n");
            shared.push(*register);
        }
    }
    wgsl.push_str(&common.functions());
    parts.iter().for_each(|part| wgsl.push_str(&part.helpers));
    wgsl.push_str(&main);
    link_prelude(&mut wgsl);

    let label = label(&parts);
    let (mut params, mut words) = (Vec::new(), Vec::new());
    for part in parts {
        words.extend(part.words.iter().map(|&(at, node, word)| (params.len() + at, node, word)));
        params.extend(part.params.values);
    }
    Kernel {
        source: Source { label, wgsl: wgsl.into(), accesses },
        grid,
        binds,
        params: vec![params],
        words,
        flops: 0,
        iterations,
    }
}

/// What the loops of an invocation make that goes through parts, of which the workgroups and own iterations are given.
pub(super) fn iterations(parts: impl Iterator<Item = (u64, usize)> + Clone, cpu: bool) -> usize {
    let count = parts.clone().count();
    let all = step(parts.clone().map(|(groups, _)| groups).sum(), count);
    match (count, cpu) {
        (1, _) => parts.map(|(_, own)| own).sum(),
        (_, true) => parts.map(|(groups, own)| groups.div_ceil(all) as usize * (1 + own)).sum(),
        (_, false) => parts.map(|(_, own)| own).max().unwrap_or(0) + count,
    }
}

/// Workgroups that go through `parts` parts with so many in all on a processor.
fn step(groups: u64, parts: usize) -> u64 {
    (groups / (TURNS * parts as u64)).max(1)
}

/// The entry point of a kernel of one part.
fn alone(part: &mut Part) -> (String, [u32; 3]) {
    let workgroup = part.workgroup;
    let grid = fold(part.groups);
    let width = part.params.add(format_args!("width"), grid[0] * workgroup as u32);
    let local = match part.text.contains("local") {
        true => ", @builtin(local_invocation_index) local: u32",
        false => "",
    };
    let main = format!(
        "@compute @workgroup_size({workgroup})\n\
         fn main(@builtin(global_invocation_id) id: vec3<u32>{local}) {{\n    \
         let thread = id.y * {width} + id.x;\n\
         {}}}\n",
        indented(&part.text, 4)
    );
    (main, grid)
}

/// A function for each part, and an entry point that calls them. On a GPU each part has a range of the workgroups for
/// itself. A driver on a processor goes through the text of all parts in every workgroup, once more than they have
/// work there: a few workgroups do all the work, part by part.
fn side_by_side(parts: &mut [Part], cpu: bool) -> (String, [u32; 3]) {
    let workgroup = parts[0].workgroup;
    let mut groups: u64 = parts.iter().map(|part| part.groups).sum();
    if cpu {
        groups = step(groups, parts.len());
    }
    let grid = fold(groups);
    let row = parts[0].params.add(format_args!("row"), grid[0]);
    let all = parts[0].params.add(format_args!("all"), groups as u32);
    let mut text = String::new();
    let mut calls = String::new();
    let mut first = 0;
    for (k, part) in parts.iter_mut().enumerate() {
        let name = format!("{}part", prefix(k));
        let body = indented(&part.text, 4);
        let _ = write!(text, "fn {name}(thread: u32, local: u32) {{\n{body}}}\n\n");
        let from = part.params.add(format_args!("first"), first);
        let end = part.params.add(format_args!("groups"), part.groups as u32);
        // Before a range the difference wraps to a number beyond its end.
        let _ = writeln!(
            calls,
            "    for (var g = group - {from}; g < {end}; g += {all}) {{ {name}(g * {workgroup}u + local, local); }}"
        );
        if !cpu {
            first += part.groups as u32;
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

/// Turns that a workgroup on a processor makes in each part.
const TURNS: u64 = 4;

/// The parts' names, each with the number of those that have it.
fn label(parts: &[Part]) -> String {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for part in parts {
        match names.iter_mut().find(|(name, _)| *name == part.label) {
            Some((_, count)) => *count += 1,
            None => names.push((&part.label, 1)),
        }
    }
    let several = |&(name, count): &(&str, usize)| match count {
        1 => name.to_string(),
        n => format!("{n} x {name}"),
    };
    names.iter().map(several).collect::<Vec<_>>().join(", ")
}
