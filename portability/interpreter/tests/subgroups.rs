//! What invocations of a subgroup do together, for all sizes.

#![allow(clippy::unwrap_used)]

mod support;

use support::{dispatch, kernel};
use wgrad_interpreter::{Kind, Order, Settings};

const SIZES: [usize; 6] = [4, 8, 16, 32, 64, 128];

fn run(threads: u32, body: &str, subgroup: usize, order: Order) -> (Vec<Kind>, Vec<u32>) {
    let wgsl = kernel(threads, "", body).replace(
        ") {\n",
        "@builtin(subgroup_invocation_id) lane: u32, @builtin(subgroup_size) size: u32, @builtin(subgroup_id) id: u32) {\n",
    );
    let settings = Settings { subgroup, order, ..Settings::default() };
    let (report, memory) = dispatch(&wgsl, [1, 1, 1], vec![vec![0; threads as usize]], settings);
    (report.findings.iter().map(|finding| finding.kind).collect(), memory[0].clone())
}

#[test]
fn sums_are_those_of_the_subgroup() {
    for size in SIZES {
        let (kinds, words) = run(64, "y[local] = subgroupAdd(1u);", size, Order::Straight);
        assert_eq!((kinds, words), (vec![], vec![size.min(64) as u32; 64]));
        // Whoever is with whom, the sums of all add up.
        for seed in 0..4 {
            let body = "let s = subgroupAdd(local); if (lane == 0u) { y[id] = s; }";
            let (kinds, words) = run(64, body, size, Order::Random(seed));
            assert_eq!((kinds, words.iter().sum::<u32>()), (vec![], 63 * 32));
        }
    }
}

#[test]
fn scans_stop_at_each_invocation() {
    let body = "y[local] = subgroupExclusiveAdd(1u) + 100u * subgroupInclusiveAdd(1u);";
    let (kinds, words) = run(16, body, 8, Order::Straight);
    assert_eq!(kinds, []);
    assert_eq!(words, (0..16).map(|i| i % 8 + 100 * (i % 8 + 1)).collect::<Vec<u32>>());
}

#[test]
fn values_come_from_others_by_their_numbers() {
    let of = |body: &str| run(16, body, 8, Order::Straight);
    assert_eq!(of("y[local] = subgroupBroadcast(local, 3u);").1[..9], [3, 3, 3, 3, 3, 3, 3, 3, 11]);
    assert_eq!(of("y[local] = subgroupBroadcastFirst(local);").1[..9], [0, 0, 0, 0, 0, 0, 0, 0, 8]);
    assert_eq!(of("y[local] = subgroupShuffleXor(local, 1u);").1[..4], [1, 0, 3, 2]);
    assert_eq!(of("y[local] = subgroupShuffle(local, 7u - lane);").1[..4], [7, 6, 5, 4]);
    assert_eq!(of("y[local] = subgroupBallot(local % 2u == 0u).x;").1[..2], [0x55, 0x55]);
}

#[test]
fn an_exchange_by_xor_folds_all_whatever_their_order() {
    for size in SIZES {
        for order in [Order::Straight, Order::Random(1), Order::Random(2), Order::Random(5)] {
            // The workgroup is one subgroup.
            let body = "var v = local + 1u; for (var step = 1u; step < size; step *= 2u) { v += subgroupShuffleXor(v, step); } y[local] = v;";
            let (kinds, words) = run(size as u32, body, size, order);
            let sum = (size * (size + 1) / 2) as u32;
            assert_eq!((kinds, words), (vec![], vec![sum; size]));
        }
    }
}

#[test]
fn a_part_of_a_subgroup_has_nobody_beyond_its_end() {
    // Eight invocations where a subgroup has 32.
    let (kinds, _) = run(8, "y[local] = subgroupBroadcast(local, 7u);", 32, Order::Straight);
    assert_eq!(kinds, []);
    let (kinds, _) = run(8, "y[local] = subgroupBroadcast(local, 8u);", 32, Order::Straight);
    assert_eq!(kinds, [Kind::OutsideSubgroup]);
}

#[test]
fn all_of_a_subgroup_take_part() {
    let body = "if (local < 4u) { y[local] = subgroupAdd(1u); }";
    assert_eq!(run(8, body, 4, Order::Straight).0, []);
    assert_eq!(run(8, body, 8, Order::Straight).0, [Kind::DivergingSubgroup]);
    let left = "if (local == 7u) { return; } y[local] = subgroupAdd(1u);";
    assert_eq!(run(8, left, 8, Order::Straight).0, [Kind::DivergingSubgroup]);
}

const PRODUCT: &str = "enable wgpu_cooperative_matrix;\n\
    @group(0) @binding(0) var<storage, read> x: array<f32>;\n\
    @group(0) @binding(1) var<storage, read_write> y: array<f32>;\n\
    var<workgroup> s: array<f32, 64>;\n\
    @compute @workgroup_size(32)\n\
    fn main(@builtin(local_invocation_index) i: u32) {\n\
        s[i] = x[i]; s[i + 32u] = x[i + 32u];\n\
        workgroupBarrier();\n\
        let a = coopLoad<coop_mat8x8<f32, A>>(&s[0], 8u);\n\
        let b = coopLoadT<coop_mat8x8<f32, B>>(&s[0], 8u);\n\
        var c = coopLoadT<coop_mat8x8<f32, C>>(&s[0], 8u);\n\
        c = coopMultiplyAdd(a, b, c);\n\
        workgroupBarrier();\n\
        coopStoreT(c, &s[0], 8u);\n\
        workgroupBarrier();\n\
        y[i] = s[i]; y[i + 32u] = s[i + 32u];\n\
    }\n";

#[test]
fn small_matrices_are_multiplied_by_whole_subgroups() {
    // x by rows; a is its transpose, b and c are x itself.
    let x: Vec<f32> = (0..64).map(|i| (i % 7) as f32 - 2.0).collect();
    let expected: Vec<f32> = (0..64)
        .map(|at| {
            let (r, c) = (at / 8, at % 8);
            x[at] + (0..8).map(|k| x[k * 8 + r] * x[k * 8 + c]).sum::<f32>()
        })
        .collect();
    let words = |values: &[f32]| values.iter().map(|v| v.to_bits()).collect::<Vec<u32>>();
    let buffers = || vec![words(&x), vec![0; 64]];
    let settings = Settings { subgroup: 32, ..Settings::default() };
    let (report, memory) = dispatch(PRODUCT, [1, 1, 1], buffers(), settings);
    assert_eq!((report.findings, memory[1].clone()), (vec![], words(&expected)));
    // Two subgroups may store the same numbers at one place, but no others.
    let settings = Settings { subgroup: 16, ..Settings::default() };
    let (report, memory) = dispatch(PRODUCT, [1, 1, 1], buffers(), settings);
    assert_eq!((report.findings, memory[1].clone()), (vec![], words(&expected)));
    let other = PRODUCT.replace("C>>(&s[0], 8u)", "C>>(&s[0], 8u - i / 16u)");
    let (report, _) = dispatch(&other, [1, 1, 1], buffers(), settings);
    assert_eq!(report.findings[0].kind, Kind::WriteAfterWrite);
    // Without the first barrier a subgroup reads what an invocation has just written.
    let (report, _) = dispatch(
        &PRODUCT.replacen("workgroupBarrier();", "", 1),
        [1, 1, 1],
        buffers(),
        Settings::default(),
    );
    assert_eq!(report.findings[0].kind, Kind::ReadAfterWrite);
}
