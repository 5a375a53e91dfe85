//! Runs a plan in the interpreter of `portability/interpreter`, for tests that look for races without a device.

use wgrad_interpreter::{
    Bound, Buffer, Dispatch, Memory, Mutation, Order, Program, Settings, compile, run,
};

use super::{BufferRef, Plan, Step};
use crate::device::Access;
use crate::graph::Graph;

/// The faults of the plan's kernels when it runs on these leaves, in order and in a random order; and the faults of the
/// barriers in their texts, whatever the leaves are.
pub(crate) fn faults(
    plan: &mut Plan,
    graph: &Graph,
    leaves: &[Vec<u8>],
    subgroup: usize,
) -> Vec<String> {
    plan.params.update(&graph.nodes);
    let mut faults = Vec::new();
    let programs: Vec<Program> =
        plan.steps.iter().map(|step| compile(&step.source.wgsl, Mutation::None).unwrap()).collect();
    for (step, program) in plan.steps.iter().zip(&programs) {
        faults.extend(program.diverging().into_iter().map(|line| {
            format!("{}: not all may reach line {line}: {}", step.label(), program.line(line))
        }));
    }
    for (order, noise) in [(Order::Straight, None), (Order::Random(1), Some(1))] {
        let settings = Settings { order, subgroup, noise, ..Settings::default() };
        let mut memory =
            Memory::new(leaves.iter().map(|bytes| Buffer::from_bytes(bytes)).collect());
        // Values that kernels must not rely on.
        let garbage = |bytes: u64| Buffer::new(vec![0x7fc0_dead; bytes.div_ceil(4) as usize]);
        memory.buffers.extend(plan.slots.iter().map(|slot| garbage(slot.bytes)));
        memory.buffers.push(Buffer::new(plan.params.words.clone()));
        for (step, program) in plan.steps.iter().zip(&programs) {
            let bounds = bounds(step, leaves.len(), memory.buffers.len() - 1);
            let dispatch = Dispatch { program, grid: step.grid, bounds: &bounds };
            let report = run(&dispatch, &mut memory, &settings).unwrap();
            let found = report.findings.iter().filter(|found| found.kind.is_fault());
            faults.extend(found.map(|found| format!("{}: {found}", step.label())));
        }
    }
    faults
}

/// The bindings of a step: leaves first, then slots, then the parameters.
fn bounds(step: &Step, leaves: usize, parameters: usize) -> Vec<Bound> {
    let mut storage = step.binds.iter().map(|&(buffer, bytes)| {
        let buffer = match buffer {
            BufferRef::Leaf(at) => at as usize,
            BufferRef::Slot(at) => leaves + at as usize,
        };
        Bound { buffer, offset: 0, bytes: bytes as usize }
    });
    let mut uniforms = step.params.iter().map(|&(at, bytes)| Bound {
        buffer: parameters,
        offset: at as usize,
        bytes: bytes as usize,
    });
    let accesses = step.source.accesses.iter();
    let bound = accesses.map(|access| match access {
        Access::Uniform => uniforms.next().unwrap(),
        _ => storage.next().unwrap(),
    });
    bound.collect()
}
