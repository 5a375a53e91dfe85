//! The kernels of a recurrent layer's steps and of their gradients. On a CPU each step is one kernel, whose threads
//! have separate sums. On a GPU the threads of a workgroup share sums, and if the recurrent kernel is small, a
//! workgroup runs all steps of its rows.

use std::sync::Arc;

use super::layout::{Cell, SequenceAttributes};
use super::team::Team;
use crate::device::Caps;
use crate::dtype::DType;
use crate::graph::lower::{Bind, Kernel};
use crate::wgsl::{expand, shader};

/// The default number of threads of a workgroup.
const WG: usize = 64;

/// CPU threads compute the gates of four units at once.
const FOUR: &str = "alias E = vec4<f32>;";

/// The kernels of a layer: inputs x, u, start, and the mask if there is one.
pub(super) fn forward(walk: &SequenceAttributes, dtype: DType, caps: &Caps) -> Vec<Kernel> {
    let SequenceAttributes { cell, steps, batch, units, masked, .. } = *walk;
    let quads = units / 4;
    // `more` are a kernel's inputs other than x, u and the mask.
    let base = |label, more: &[(&str, &str, Bind)]| {
        let kernel = Kernel::new(label, "")
            .alias("T", dtype)
            .constant("P", cell.stored() as u32)
            .read(Bind::Input(0))
            .read(Bind::Input(1));
        bound(kernel, more, masked, "y")
            .param("batch", batch)
            .param("quads", quads)
            .param("steps", steps)
    };
    let flops = 2 * batch * units * units * cell.gates();
    let gates = |one: bool| {
        let text = shader!(include_str!("../../../shaders/recurrent_gates.wgsl"));
        let flags = [&cell.flags(masked)[..], &[("ONE", one)]].concat();
        expand(text, &[("G", cell.gates())], &flags)
    };
    if !caps.cpu {
        let team = Team::choose(walk, cell.gates(), quads, dtype, caps);
        let text = shader!(include_str!("../../../shaders/recurrent_walk.wgsl"));
        let text = team.expand(text, walk);
        let start = [("start", "X", Bind::Input(2))];
        let more = if team.walks { &start[..] } else { &[] };
        let kernel = |(first, count): (usize, usize)| {
            let kernel = base("recurrent_walk", more)
                .constant("S", cell.states() as u32)
                .declare(gates(team.one))
                .declare(&text);
            team.launch(kernel, walk, first, count).flops(flops.saturating_mul(count))
        };
        let start = (!team.walks).then(|| first_state(walk, dtype));
        return start.into_iter().chain(team.launches(steps).map(kernel)).collect();
    }
    let tile = Tile::choose(walk, cell.gates(), caps);
    let gates = gates(false);
    let text = tile.expand(shader!(include_str!("../../../shaders/recurrent_step.wgsl")), walk);
    let kernel = |step: usize| {
        base("recurrent_step", &[])
            .constant("WG", tile.threads as u32)
            .declare(FOUR)
            .declare(&gates)
            .declare(&text)
            .param("step", step)
            .param("place", walk.place(step))
            .param("total", tile.total)
            .flops(flops)
            .workgroups(tile.groups, quads + 1 + tile.rows())
    };
    [first_state(walk, dtype)].into_iter().chain((0..steps).map(kernel)).collect()
}

/// The kernels of a layer's gradient: inputs y, dy, w, and the mask if there is one. `whole`: the gates have their own
/// gradients.
pub(super) fn backward(
    walk: &SequenceAttributes,
    whole: bool,
    w: DType,
    caps: &Caps,
) -> Vec<Kernel> {
    let SequenceAttributes { cell, steps, batch, units, masked, .. } = *walk;
    let quads = units / 4;
    let sums = cell.gates() * quads;
    let (passed, carry) = cell.passed();
    let base = |label| {
        let kernel = Kernel::new(label, "")
            .alias("T", w)
            .constant("P", cell.stored() as u32)
            .constant("Q", passed as u32)
            .constant("CARRY", carry as u32)
            .read(Bind::Input(0))
            .read(Bind::Input(1))
            .read(Bind::Input(2));
        bound(kernel, &[], masked, "q")
            .param("batch", batch)
            .param("quads", quads)
            .param("steps", steps)
    };
    let given = if whole { cell.stored() } else { cell.states() };
    let slopes = |one: bool| {
        let text = shader!(include_str!("../../../shaders/recurrent_slopes.wgsl"));
        let flags = [&cell.flags(masked)[..], &[("GATES", whole), ("ONE", one)]].concat();
        expand(text, &[("G", cell.gates()), ("D", given)], &flags)
    };
    let flops = 8 * batch * units * sums;
    if !caps.cpu {
        let team = Team::choose(walk, 1, sums, w, caps);
        let text = shader!(include_str!("../../../shaders/recurrent_walk_grad.wgsl"));
        let text = team.expand(text, walk);
        let kernel = |(first, count): (usize, usize)| {
            let kernel = base("recurrent_walk_grad").declare(slopes(team.one)).declare(&text);
            // The backward pass begins at the last step, after which there is no product.
            team.launch(kernel, walk, steps - 1 - first, count).flops(flops.saturating_mul(count))
        };
        return team.launches(steps).map(kernel).collect();
    }
    let tile = Tile::choose(walk, 1, caps);
    let slopes = slopes(false);
    let text =
        tile.expand(shader!(include_str!("../../../shaders/recurrent_step_grad.wgsl")), walk);
    let kernel = |step: usize| {
        let sums = if step + 1 == steps { 0 } else { sums };
        base("recurrent_step_grad")
            .constant("WG", tile.threads as u32)
            .declare(FOUR)
            .declare(&slopes)
            .declare(&text)
            .param("step", step)
            .param("place", walk.place(step))
            .param("sums", sums)
            .param("total", tile.total)
            .flops(8 * batch * units * sums)
            .workgroups(tile.groups, sums + 1 + tile.rows())
    };
    (0..steps).rev().map(kernel).collect()
}

/// The kernel that copies the state before the first step to the location from which the steps read it.
fn first_state(walk: &SequenceAttributes, start: DType) -> Kernel {
    let SequenceAttributes { cell, batch, units, .. } = *walk;
    let stored = cell.stored();
    let total = batch * stored * (units / 4);
    let text = shader!(include_str!("../../../shaders/recurrent_start.wgsl"));
    Kernel::new("recurrent_start", text)
        .alias("T", start)
        .constant("WG", WG as u32)
        .constant("P", stored as u32)
        .constant("S", cell.states() as u32)
        .read(Bind::Input(2))
        .write(Bind::Output)
        .param("quads", units / 4)
        .param("total", total)
        .workgroups(total.div_ceil(WG), 0)
}

/// Binds a kernel's other inputs (name, element type and binding), the mask, the result, and the parameters.
fn bound(mut kernel: Kernel, more: &[(&str, &str, Bind)], masked: bool, result: &str) -> Kernel {
    // The mask is the last input.
    let mask = masked.then_some(("mask", "u32", Bind::Input(3)));
    for (name, element, bind) in more.iter().copied().chain(mask) {
        let at = kernel.binds.len();
        kernel = kernel.read(bind).declare(format!(
            "@group(0) @binding({at}) var<storage, read> {name}: array<{element}>;"
        ));
    }
    let at = kernel.binds.len();
    kernel.write(Bind::Output).declare(format!(
        "@group(0) @binding({at}) var<storage, read_write> {result}: array<E>;\n\
         @group(0) @binding({}) var<uniform> p: Params;",
        at + 1
    ))
}

/// The shape of a workgroup's work on a CPU.
struct Tile {
    /// Eight threads share the same rows.
    lanes: bool,
    /// Rows of a thread are `ti` times `tr`.
    ti: usize,
    tr: usize,
    threads: usize,
    total: usize,
    groups: usize,
}

impl Tile {
    /// How the threads share a step's product; each has `each` vectors per row.
    fn choose(walk: &SequenceAttributes, each: usize, caps: &Caps) -> Tile {
        let SequenceAttributes { batch, units, .. } = *walk;
        let rows = |most: usize| batch.next_power_of_two().min(most);
        let lanes = caps.eight_lanes();
        // A CPU holds the product's numbers in registers for longer.
        let (ti, tr) = match lanes {
            true if each == 1 => (rows(16).div_ceil(8), 8),
            true => (1, 8),
            false => (rows(4), 1),
        };
        let threads = if lanes { 8 } else { WG };
        let total = batch.div_ceil(ti * tr) * (units / 4);
        let groups = match lanes {
            true => batch.div_ceil(ti * tr) * (units / 4).div_ceil(8),
            false => total.div_ceil(WG),
        };
        Tile { lanes, ti, tr, threads, total, groups }
    }

    fn rows(&self) -> usize {
        self.ti * self.tr
    }

    fn expand(&self, text: &'static str, walk: &SequenceAttributes) -> Arc<str> {
        let counts =
            [("TI", self.ti), ("TR", self.tr), ("TM", self.rows()), ("G", walk.cell.gates())];
        expand(text, &counts, &[("LANES", self.lanes)])
    }
}

/// Whether there are kernels for a layer of these sizes: they need whole vectors of units, and buffers that hold the
/// values of all steps.
pub(super) fn fits(
    cell: Cell,
    [batch, steps, units]: [usize; 3],
    masked: bool,
    caps: &Caps,
) -> bool {
    let stored = [steps.saturating_add(1), batch, 6, units, 4];
    let bytes = stored.into_iter().fold(1u64, |all, n| all.saturating_mul(n as u64));
    units > 0
        && units.is_multiple_of(4)
        && batch > 0
        && steps > 0
        && bytes <= caps.binding_bytes.min(1 << 31)
        && caps.storage_buffers >= if masked { 5 } else { 4 }
        && cell.gates() * units / 4 + 32 <= caps.loop_iterations
}
