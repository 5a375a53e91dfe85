//! Kernels with a race of each kind, and their twins without.

#![allow(clippy::unwrap_used)]

mod support;

use support::{dispatch, found, kernel};
use wgrad_interpreter::{Kind, Mutation, Order, Settings, compile};

/// The race is there without the barrier, and not with it.
#[track_caller]
fn barrier_is_needed(shared: &str, body: &str, race: Kind) {
    assert_eq!(found(shared, body), [], "with its barriers");
    let without = body.replace("workgroupBarrier();", "").replace("storageBarrier();", "");
    let kinds = found(shared, &without);
    assert!(kinds.contains(&race), "without its barriers: {kinds:?}");
}

const SHARED: &str = "var<workgroup> s: array<u32, 8>;";

#[test]
fn neighbours_are_read_behind_a_barrier() {
    let body = "s[local] = local; workgroupBarrier(); y[all.x] = s[(local + 1u) % 8u];";
    barrier_is_needed(SHARED, body, Kind::ReadAfterWrite);
}

#[test]
fn what_others_read_is_written_behind_a_barrier() {
    let body = "s[local] = 1u; workgroupBarrier(); let x = s[(local + 1u) % 8u]; workgroupBarrier();\n\
                s[local] = x; y[all.x] = s[local];";
    assert_eq!(found(SHARED, body), []);
    let one = body.replacen("workgroupBarrier();\ns", "\ns", 1);
    assert_eq!(found(SHARED, &one), [Kind::WriteAfterRead]);
}

#[test]
fn a_word_is_written_by_one_at_a_time() {
    let body = "if (local < 4u) { s[local] = 1u; } workgroupBarrier(); if (local >= 4u) { s[local - 4u] = 2u; }";
    barrier_is_needed(SHARED, body, Kind::WriteAfterWrite);
}

#[test]
fn a_barrier_orders_its_own_kind_of_memory() {
    let storage = "y[all.x] = local; storageBarrier(); let x = y[all.x ^ 1u]; storageBarrier(); y[all.x] = x;";
    barrier_is_needed("", storage, Kind::ReadAfterWrite);
    let other = storage.replace("storageBarrier", "workgroupBarrier");
    assert_eq!(found("", &other), [Kind::ReadAfterWrite, Kind::WriteAfterRead]);
    let other = "s[local] = local; storageBarrier(); y[all.x] = s[local ^ 1u];";
    assert_eq!(found(SHARED, other), [Kind::ReadAfterWrite]);
}

#[test]
fn a_reduction_needs_its_barrier_in_each_turn() {
    let body = "s[local] = local; workgroupBarrier();\n\
                for (var half = 4u; half > 0u; half /= 2u) {\n\
                    if (local < half) { s[local] += s[local + half]; }\n\
                    workgroupBarrier();\n\
                }\n\
                y[all.x] = s[0];";
    assert_eq!(found(SHARED, body), []);
    let wgsl = kernel(8, SHARED, body);
    let settings = Settings { order: Order::Random(3), ..Settings::default() };
    assert_eq!(dispatch(&wgsl, [1, 1, 1], vec![vec![0; 8]], settings).1[0], [28; 8]);
    for number in 0..2 {
        let program = compile(&wgsl, Mutation::WithoutBarrier(number)).unwrap();
        assert_eq!(program.barriers.len(), 2);
        let mut memory =
            wgrad_interpreter::Memory::new(vec![wgrad_interpreter::Buffer::new(vec![0; 8])]);
        let bounds = [wgrad_interpreter::Bound { buffer: 0, offset: 0, bytes: 32 }];
        let dispatch =
            wgrad_interpreter::Dispatch { program: &program, grid: [1, 1, 1], bounds: &bounds };
        let report = wgrad_interpreter::run(&dispatch, &mut memory, &Settings::default()).unwrap();
        assert!(!report.findings.is_empty(), "barrier {number} is not missed");
    }
}

#[test]
fn nothing_orders_workgroups() {
    // Each workgroup writes its own words: right.
    assert_eq!(found("", "y[all.x] = 1u;"), []);
    // All write the same.
    assert_eq!(found("", "if (local == 0u) { y[0] = group.x; }"), [Kind::BetweenWorkgroups]);
    // One reads what the other writes, and no barrier helps.
    let body = "y[all.x] = 1u; storageBarrier(); if (group.x == 1u) { let x = y[0]; storageBarrier(); y[all.x] = x; }";
    assert_eq!(found("", body), [Kind::BetweenWorkgroups]);
    let body = "let x = y[(all.x + 8u) % 16u]; y[16u + all.x] = x;";
    assert_eq!(found("", body), []);
    let body = "let x = y[(all.x + 8u) % 16u]; storageBarrier(); y[all.x] = x;";
    assert_eq!(found("", body), [Kind::BetweenWorkgroups]);
}

#[test]
fn atomics_need_no_barrier_among_themselves() {
    let atomic = |body: &str| {
        let wgsl = kernel(8, "", body).replace("array<u32>", "array<atomic<u32>>");
        let (report, memory) = dispatch(&wgsl, [2, 1, 1], vec![vec![0; 64]], Settings::default());
        (report.findings.iter().map(|finding| finding.kind).collect::<Vec<_>>(), memory[0][0])
    };
    assert_eq!(atomic("atomicAdd(&y[0], 1u);"), (vec![], 16));
    assert_eq!(atomic("atomicMax(&y[0], all.x);"), (vec![], 15));
    assert_eq!(atomic("atomicAdd(&y[0], atomicLoad(&y[1]));"), (vec![], 0));
    let shared = "var<workgroup> s: atomic<u32>;";
    let body = "if (local == 0u) { atomicStore(&s, 0u); } workgroupBarrier(); atomicAdd(&s, 1u); workgroupBarrier();\n\
                y[all.x] = atomicLoad(&s);";
    barrier_is_harmless(shared, body);
}

/// Without its barriers the kernel computes something else, but accesses are atomic.
#[track_caller]
fn barrier_is_harmless(shared: &str, body: &str) {
    assert_eq!(found(shared, body), []);
}

#[test]
fn halves_of_a_word_belong_to_two() {
    let wgsl = "enable f16;\n\
        @group(0) @binding(0) var<storage, read_write> y: array<f16>;\n\
        @compute @workgroup_size(8)\n\
        fn main(@builtin(local_invocation_index) i: u32) { y[AT] = f16(i); }\n";
    let kinds = |at: &str| {
        let wgsl = wgsl.replace("AT", at);
        let (report, memory) = dispatch(&wgsl, [1, 1, 1], vec![vec![0; 4]], Settings::default());
        (report.findings.len(), memory[0].clone())
    };
    let (count, words) = kinds("i");
    assert_eq!(count, 0);
    // 0, 1, 2, 3, ... as f16.
    assert_eq!(words, [0x3c00_0000, 0x4200_4000, 0x4500_4400, 0x4700_4600]);
    assert_eq!(kinds("i / 2u").0, 1);
}

#[test]
fn parts_of_a_vector_are_words_of_their_own() {
    let shared = "var<workgroup> v: array<vec4<u32>, 2>;";
    let body =
        "v[local / 4u][local % 4u] = local; workgroupBarrier(); y[all.x] = v[1][local % 4u];";
    assert_eq!(found(shared, body), []);
}

#[test]
fn functions_share_the_memory_of_the_workgroup() {
    let shared = "var<workgroup> s: array<u32, 8>;\n\
        fn put(at: u32) { s[at] = at; }\n\
        fn next(at: u32) -> u32 { return s[(at + 1u) % 8u]; }";
    let body = "put(local); workgroupBarrier(); y[all.x] = next(local);";
    barrier_is_needed(shared, body, Kind::ReadAfterWrite);
}

/// Metal's compiler did not order accesses through such a pointer.
#[test]
fn naga_lets_no_function_take_a_pointer_to_workgroup_memory() {
    let shared = "var<workgroup> s: u32;\nfn put(p: ptr<workgroup, u32>) { *p = 1u; }";
    let refused = compile(&kernel(8, shared, "put(&s); y[all.x] = 1u;"), Mutation::None);
    let words = format!("{:#}", refused.unwrap_err());
    assert!(words.contains("a pointer of space WorkGroup, which can't be passed"), "{words}");
}

#[test]
fn a_dispatch_sees_what_the_one_before_wrote() {
    let program =
        compile(&kernel(8, "", "y[all.x] = y[15u - all.x] + 1u;"), Mutation::None).unwrap();
    let bounds = [wgrad_interpreter::Bound { buffer: 0, offset: 0, bytes: 64 }];
    let mut memory =
        wgrad_interpreter::Memory::new(vec![wgrad_interpreter::Buffer::new(vec![0; 16])]);
    let other = compile(&kernel(8, "", "y[all.x] = 7u;"), Mutation::None).unwrap();
    let write = wgrad_interpreter::Dispatch { program: &other, grid: [2, 1, 1], bounds: &bounds };
    let report = wgrad_interpreter::run(&write, &mut memory, &Settings::default()).unwrap();
    assert!(report.findings.is_empty());
    let read = wgrad_interpreter::Dispatch { program: &program, grid: [1, 1, 1], bounds: &bounds };
    let report = wgrad_interpreter::run(&read, &mut memory, &Settings::default()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    assert_eq!(memory.buffers[0].words[0], 8);
}
