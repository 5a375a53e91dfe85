//! A recurrent layer over a whole sequence as one op, of which each time step is one kernel: the product of the state with
//! the recurrent kernel, and the gates behind it. A step of its gradient is one kernel, too.
//!
//! The op takes the products of all steps' inputs, which are one product, and packs all states and gates: the gradient
//! needs them. The gradient is an op, too; `second_order.rs` has its gradient.

use std::sync::Arc;

use smallvec::SmallVec;

use super::layout::{Cell, Walk};
use super::second_order;
use crate::device::Caps;
use crate::dtype::DType;
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::lower::{Bind, Kernel, Kernels, Lowering, LoweringContext};
use crate::graph::{Op, Spec};
use crate::ops::{Backward, Grads, Keep, MatmulOptions, Operation, concat, fill};
use crate::tensor::Tensor;
use crate::wgsl::{expand, shader};

/// The shape of a workgroup's work.
struct Tile {
    /// Eight threads have the same rows.
    lanes: bool,
    /// The gates' text stands in a loop over rows: a processor's driver takes long to compile it for each.
    once: bool,
    /// Rows of a thread are `ti` times `tr`.
    ti: usize,
    tr: usize,
    threads: usize,
    total: usize,
    groups: usize,
}

impl Tile {
    /// How the threads share a step's product, of which each has `each` vectors a row.
    fn of(walk: &Walk, each: usize, caps: &Caps) -> Tile {
        let Walk { batch, units, .. } = *walk;
        let rows = |most: usize| batch.next_power_of_two().min(most);
        // A processor has the product's numbers in registers for longer; a GPU wants threads.
        let (lanes, ti, tr) = match (caps.eight_lanes(), caps.cpu) {
            (true, _) if each == 1 => (true, rows(16).div_ceil(8), 8),
            (true, _) => (true, 1, 8),
            (false, true) => (false, rows(4), 1),
            (false, false) => (false, rows(2), 1),
        };
        let threads = if lanes { 8 } else { WG };
        let total = batch.div_ceil(ti * tr) * (units / 4);
        let groups = match lanes {
            true => batch.div_ceil(ti * tr) * (units / 4).div_ceil(8),
            false => total.div_ceil(WG),
        };
        Tile { lanes, once: caps.cpu, ti, tr, threads, total, groups }
    }

    fn rows(&self) -> usize {
        self.ti * self.tr
    }

    fn expand(&self, text: &'static str, walk: &Walk, whole: bool) -> Arc<str> {
        let counts =
            [("TI", self.ti), ("TR", self.tr), ("TM", self.rows()), ("G", walk.cell.gates())];
        let own =
            [("LANES", self.lanes), ("ONCE", self.once), ("SHARED", self.lanes), ("GATES", whole)];
        expand(text, &counts, &[&walk.cell.flags(walk.masked)[..], &own].concat())
    }
}

const WG: usize = 64;

/// Whether there are kernels for a layer of these sizes: whole vectors of units, and buffers that hold what all steps store.
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

/// What a layer gives: `h` `[T,B,U]` in the order of the walk, and the state behind the last step.
pub(super) struct Run {
    pub(super) sequence: Tensor,
    pub(super) state: Vec<Tensor>,
}

/// `x` `[B,T,G*U]`, the products of the inputs; `u` `[U+1,G*U]`, the recurrent kernel and its bias; `start` `[B,S*U]`, the
/// state before the first step; `mask` `[B,T]`, `bool`.
pub(super) fn run(
    cell: Cell,
    x: &Tensor,
    u: &Tensor,
    start: &Tensor,
    mask: Option<&Tensor>,
    backwards: bool,
) -> Result<Run> {
    let (batch, steps) = (x.shape()[0], x.shape()[1]);
    let units = x.shape()[2] / cell.gates();
    let walk = Walk { cell, steps, batch, units, backwards, masked: mask.is_some() };
    let mut inputs = vec![x, u, start];
    inputs.extend(mask);
    let y = dispatch(Sequence { walk }, &inputs)?;
    let state = (0..cell.states()).map(|part| walk.states(&y, part, steps, 1)?.squeeze(0));
    Ok(Run { state: state.collect::<Result<_>>()?, sequence: walk.states(&y, 0, 1, steps)? })
}

#[derive(Debug, Hash, PartialEq, Eq)]
struct Sequence {
    walk: Walk,
}

impl Op for Sequence {
    fn name(&self) -> &'static str {
        match self.walk.cell {
            Cell::Lstm => "RecurrentLSTM",
            Cell::Gru => "RecurrentGRU",
            Cell::Simple => "RecurrentSimpleRNN",
        }
    }

    fn infer(&self, _: &[&Spec]) -> Result<Spec> {
        Ok(Spec::new(self.walk.packed(), DType::F32))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let Walk { cell, steps, batch, units, masked, .. } = self.walk;
        let tile = Tile::of(&self.walk, cell.gates(), cx.caps);
        let quads = units / 4;
        let dtype = cx.inputs[0].dtype;
        let stored = cell.stored();
        let first = batch * stored * quads;
        let mut kernels = vec![
            Kernel::new(
                "recurrent_start",
                shader!(include_str!("../../../shaders/recurrent_start.wgsl")),
            )
            .alias("T", cx.inputs[2].dtype)
            .constant("WG", WG as u32)
            .constant("P", stored as u32)
            .constant("S", cell.states() as u32)
            .read(Bind::Input(2))
            .write(Bind::Output)
            .param("quads", quads)
            .param("total", first)
            .workgroups(first.div_ceil(WG), 0),
        ];
        let text = shader!(include_str!("../../../shaders/recurrent_step.wgsl"));
        let text = tile.expand(text, &self.walk, false);
        for step in 0..steps {
            let kernel = Kernel::new("recurrent_step", "")
                .alias("T", dtype)
                .constant("WG", tile.threads as u32)
                .constant("P", stored as u32)
                .declare(bindings(2, masked, "y"))
                .declare(&text)
                .read(Bind::Input(0))
                .read(Bind::Input(1));
            let kernel = if masked { kernel.read(Bind::Input(3)) } else { kernel };
            kernels.push(
                kernel
                    .write(Bind::Output)
                    .param("batch", batch)
                    .param("quads", quads)
                    .param("steps", steps)
                    .param("step", step)
                    .param("place", self.walk.place(step))
                    .param("total", tile.total)
                    .flops(2 * batch * units * units * cell.gates())
                    .workgroups(tile.groups, quads + 1 + tile.rows()),
            );
        }
        Lowering::Kernels(Kernels { temps: Vec::new(), kernels })
    }
}

/// The bindings of the mask, the result and the parameters.
fn bindings(at: usize, masked: bool, result: &str) -> String {
    let mask = format!("@group(0) @binding({at}) var<storage, read> mask: array<u32>;\n");
    let at = at + usize::from(masked);
    format!(
        "{}@group(0) @binding({at}) var<storage, read_write> {result}: array<vec4<f32>>;\n\
         @group(0) @binding({}) var<uniform> p: Params;",
        if masked { &mask } else { "" },
        at + 1
    )
}

impl Operation for Sequence {
    fn keep(&self) -> Keep {
        Keep::Both
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        // What the gradient reads of the layer's result is a function of the inputs, gates and all; the layer's own rule
        // is for the states behind the first, which the program sees.
        let mut inputs: SmallVec<[&Tensor; 5]> = SmallVec::from_slice(&[back.y()]);
        inputs.extend((0..back.inputs.len()).map(|i| back.x(i)));
        let whole = dispatch(Whole { walk: self.walk }, &inputs)?;
        by_inputs(&self.walk, &whole, back, 0, false)
    }
}

/// The result of a [`Sequence`], its first input, as a function of the sequence's inputs, which follow. Unlike the sequence's,
/// its gradient counts the gates and the state before the first step.
#[derive(Debug, Hash, PartialEq, Eq)]
struct Whole {
    walk: Walk,
}

impl Op for Whole {
    fn name(&self) -> &'static str {
        "RecurrentStates"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        Ok(inputs[0].clone())
    }

    fn lower(&self, _: &LoweringContext) -> Lowering {
        Lowering::Alias
    }
}

impl Operation for Whole {
    fn keep(&self) -> Keep {
        Keep::Both
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        by_inputs(&self.walk, back.y(), back, 1, true)
    }
}

/// The gradients of a sequence's inputs, which are those of `back` from `first` on; `y` is the sequence's result.
fn by_inputs(walk: &Walk, y: &Tensor, back: &Backward, first: usize, whole: bool) -> Result<Grads> {
    let walk = *walk;
    let Walk { cell, steps, batch, units, .. } = walk;
    let (gates, states) = (cell.gates(), cell.states());
    let [x, u, start] = [0, 1, 2].map(|i| first + i);
    let weights = back.x(u);
    // The product of the walk back reads columns of the recurrent kernel: as rows they lie together.
    let turned = weights.slice(&[0, 0], &[units as i64, -1])?.transpose([1, 0])?;
    let mut inputs = vec![y, back.dy, &turned];
    inputs.extend(walk.masked.then(|| back.x(first + 3)));
    let q = dispatch(SequenceGrad { walk, whole }, &inputs)?;
    let part = |first: usize, count: usize, steps: i64| {
        q.slice(&[0, 0, first, 0], &[steps, -1, count as i64, -1])
    };
    let slopes = part(0, gates, -1)?.reshape_to([steps * batch, gates * units].into())?;
    let mut grads: Grads = (0..first).map(|_| None).collect();
    grads.push(if back.needs(x) {
        // The GRU's last gate is reached by the input without the reset.
        let by_x = match cell {
            Cell::Gru => concat([part(0, 2, -1)?, part(3, 1, -1)?], 2)?,
            _ => part(0, gates, -1)?,
        };
        let by_x = if walk.backwards { by_x.reverse(0)? } else { by_x };
        let by_x = by_x.reshape_to([steps, batch, gates * units].into())?.transpose([1, 0, 2])?;
        Some(cast(by_x, back.spec(x).dtype)?)
    } else {
        None
    });
    grads.push(if back.needs(u) {
        let before = walk.states(y, 0, 0, steps)?.reshape_to([steps * batch, units].into())?;
        let product = before.matmul_with(&slopes, MatmulOptions::new().transpose_a(true))?;
        // The others' bias is in x, and the row of u is a constant.
        let bias = match cell {
            Cell::Gru => slopes.reduce_sum(0)?.expand_dims(0)?,
            _ => {
                let shape = [1, gates * units].into();
                fill(weights.device(), "RecurrentLayer", shape, 0.into(), DType::F32)?
            }
        };
        Some(cast(concat([product, bias], 0)?, weights.dtype())?)
    } else {
        None
    });
    grads.push(if back.needs(start) {
        let slope = part(0, gates, 1)?.reshape_to([batch, gates * units].into())?;
        let (_, carry) = cell.passed();
        let passed = |at: usize| part(at, 1, 1)?.reshape_to([batch, units].into());
        let wide = if turned.dtype() == DType::F32 { turned } else { turned.cast(DType::F32)? };
        let mut by_start = vec![slope.matmul(&wide)?.add(passed(carry)?)?];
        if states == 2 {
            by_start.push(passed(carry + 1)?);
        }
        if whole {
            for (at, by_part) in by_start.iter_mut().enumerate() {
                *by_part = by_part.add(walk.states(back.dy, at, 0, 1)?.squeeze(0)?)?;
            }
        }
        Some(cast(concat(&by_start, 1)?, back.spec(start).dtype)?)
    } else {
        None
    });
    Ok(grads)
}

fn cast(x: Tensor, dtype: DType) -> Result<Tensor> {
    if x.dtype() == dtype { Ok(x) } else { x.cast(dtype) }
}

#[derive(Debug, Hash, PartialEq, Eq)]
struct SequenceGrad {
    walk: Walk,
    /// Whether the gates have gradients of their own.
    whole: bool,
}

impl Op for SequenceGrad {
    fn name(&self) -> &'static str {
        match self.walk.cell {
            Cell::Lstm => "RecurrentLSTMGrad",
            Cell::Gru => "RecurrentGRUGrad",
            Cell::Simple => "RecurrentSimpleRNNGrad",
        }
    }

    fn infer(&self, _: &[&Spec]) -> Result<Spec> {
        let Walk { cell, steps, batch, units, .. } = self.walk;
        Ok(Spec::new([steps, batch, cell.passed().0, units], DType::F32))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let Walk { cell, steps, batch, units, masked, .. } = self.walk;
        let tile = Tile::of(&self.walk, 1, cx.caps);
        let quads = units / 4;
        let (passed, carry) = cell.passed();
        let text = shader!(include_str!("../../../shaders/recurrent_step_grad.wgsl"));
        let text = tile.expand(text, &self.walk, self.whole);
        let kernel = |step: usize| {
            let kernel = Kernel::new("recurrent_step_grad", "")
                .alias("T", cx.inputs[2].dtype)
                .constant("WG", tile.threads as u32)
                .constant("P", cell.stored() as u32)
                .constant("Q", passed as u32)
                .constant("CARRY", carry as u32)
                .declare(bindings(3, masked, "q"))
                .declare(&text)
                .read(Bind::Input(0))
                .read(Bind::Input(1))
                .read(Bind::Input(2));
            let kernel = if masked { kernel.read(Bind::Input(3)) } else { kernel };
            let sums = if step + 1 == steps { 0 } else { cell.gates() * quads };
            kernel
                .write(Bind::Output)
                .param("batch", batch)
                .param("quads", quads)
                .param("steps", steps)
                .param("step", step)
                .param("place", self.walk.place(step))
                .param("sums", sums)
                .param("total", tile.total)
                .flops(8 * batch * units * sums)
                .workgroups(tile.groups, sums + 1 + tile.rows())
        };
        let kernels = (0..steps).rev().map(kernel).collect();
        Lowering::Kernels(Kernels { temps: Vec::new(), kernels })
    }
}

impl Operation for SequenceGrad {
    fn keep(&self) -> Keep {
        Keep::Both
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        second_order::grad(&self.walk, self.whole, back)
    }
}
