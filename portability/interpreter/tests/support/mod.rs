//! Small kernels, and what the interpreter finds in them.
#![allow(dead_code)]

use wgrad_interpreter::{
    Bound, Buffer, Dispatch, Kind, Memory, Mutation, Order, Report, Settings, compile, run,
};

/// Runs a kernel with these buffers bound in their order.
pub fn dispatch(
    wgsl: &str,
    grid: [u32; 3],
    buffers: Vec<Vec<u32>>,
    settings: Settings,
) -> (Report, Vec<Vec<u32>>) {
    let program = compile(wgsl, Mutation::None).unwrap_or_else(|e| panic!("{e:#}\n{wgsl}"));
    let bound =
        |(buffer, words): (usize, &Vec<u32>)| Bound { buffer, offset: 0, bytes: 4 * words.len() };
    let bounds: Vec<Bound> = buffers.iter().enumerate().map(bound).collect();
    let mut memory = Memory::new(buffers.into_iter().map(Buffer::new).collect());
    let dispatch = Dispatch { program: &program, grid, bounds: &bounds };
    let report = run(&dispatch, &mut memory, &settings).unwrap();
    (report, memory.buffers.into_iter().map(|buffer| buffer.words).collect())
}

/// The body of a kernel of `threads` invocations over one buffer `y` of words, which workgroups share.
pub fn kernel(threads: u32, shared: &str, body: &str) -> String {
    format!(
        "@group(0) @binding(0) var<storage, read_write> y: array<u32>;\n\
         {shared}\n\
         @compute @workgroup_size({threads})\n\
         fn main(\n\
             @builtin(local_invocation_index) local: u32,\n\
             @builtin(workgroup_id) group: vec3<u32>,\n\
             @builtin(global_invocation_id) all: vec3<u32>,\n\
         ) {{\n{body}\n}}\n"
    )
}

/// What is found in a kernel of two workgroups of eight invocations, in order and in eight random orders. Every order
/// finds the same kinds, so that no luck is needed.
pub fn found(shared: &str, body: &str) -> Vec<Kind> {
    let wgsl = kernel(8, shared, body);
    let kinds = |order: Order| {
        let settings = Settings { order, ..Settings::default() };
        let (report, _) = dispatch(&wgsl, [2, 1, 1], vec![vec![0; 64]], settings);
        let mut kinds: Vec<Kind> = report.findings.iter().map(|finding| finding.kind).collect();
        kinds.dedup();
        kinds
    };
    let straight = kinds(Order::Straight);
    for seed in 0..8 {
        let random = kinds(Order::Random(seed));
        assert_eq!(random.is_empty(), straight.is_empty(), "seed {seed}: {random:?} {straight:?}");
    }
    straight
}

/// What is found in a kernel of two workgroups with these buffers, in order, and the lines of the barriers that it has.
pub fn with_barriers(
    wgsl: &str,
    buffers: &[Vec<u32>],
    mutation: Mutation,
) -> (Vec<Kind>, Vec<u32>) {
    let program = compile(wgsl, mutation).unwrap_or_else(|e| panic!("{e:#}\n{wgsl}"));
    let bound =
        |(buffer, words): (usize, &Vec<u32>)| Bound { buffer, offset: 0, bytes: 4 * words.len() };
    let bounds: Vec<Bound> = buffers.iter().enumerate().map(bound).collect();
    let mut memory = Memory::new(buffers.iter().cloned().map(Buffer::new).collect());
    let dispatch = Dispatch { program: &program, grid: [2, 1, 1], bounds: &bounds };
    let report = run(&dispatch, &mut memory, &Settings::default()).unwrap();
    let faults = report.findings.iter().map(|finding| finding.kind).filter(|kind| kind.is_fault());
    (faults.collect(), program.barriers.iter().map(|barrier| barrier.line).collect())
}
