//! Subgroups of every size, whatever the adapter's are, on an adapter: against what they should give, computed here.

#![allow(clippy::unwrap_used)]

mod support;

use support::run;

const SIZES: [u32; 6] = [4, 8, 16, 32, 64, 128];

/// `expression` in each of `threads` invocations, which hold the numbers of `x`.
fn each(driver: &str, threads: u32, expression: &str) -> Vec<u32> {
    let kernel = format!(
        "@group(0) @binding(0) var<storage, read> x: array<u32>;\n\
         @group(0) @binding(1) var<storage, read_write> y: array<u32>;\n\
         @compute @workgroup_size({threads}) fn main(\n    \
             @builtin(subgroup_invocation_id) lane: u32, @builtin(local_invocation_index) i: u32,\n    \
             @builtin(subgroup_size) size: u32, @builtin(subgroup_id) id: u32, @builtin(num_subgroups) count: u32\n\
         ) {{ let mine = x[i]; y[i] = {expression}; }}"
    );
    run(&kernel, driver, 1, &(0..threads).map(|i| 7 * i + 1).collect::<Vec<_>>(), threads as usize)
}

/// Which invocations share a subgroup, in the order of their lanes.
fn members(driver: &str, threads: u32) -> Vec<Vec<usize>> {
    let ids = each(driver, threads, "id");
    let lanes = each(driver, threads, "lane");
    let mut all = vec![Vec::new(); 1 + *ids.iter().max().unwrap() as usize];
    let mut order: Vec<usize> = (0..threads as usize).collect();
    order.sort_by_key(|i| lanes[*i]);
    for i in order {
        assert_eq!(all[ids[i] as usize].len(), lanes[i] as usize);
        all[ids[i] as usize].push(i);
    }
    all
}

#[test]
fn invocations_are_divided_among_subgroups() {
    for size in SIZES {
        for threads in [1, 6, 8, 32, 100, 128] {
            let driver = format!("subgroups-{size}");
            assert_eq!(each(&driver, threads, "size"), vec![size; threads as usize]);
            let count = threads.div_ceil(size);
            assert_eq!(each(&driver, threads, "count"), vec![count; threads as usize]);
            let near = members(&driver, threads);
            let wanted: Vec<usize> = (0..threads.min(size) as usize).collect();
            assert_eq!(near[0], wanted, "{driver} {threads}");
            assert_eq!(near.len(), count as usize);
            let far = members(&format!("{driver}-scattered"), threads);
            assert_eq!(
                far.iter().map(Vec::len).collect::<Vec<_>>(),
                near.iter().map(Vec::len).collect::<Vec<_>>()
            );
            if threads > 8 && size >= 4 {
                assert_ne!(far, near);
            }
        }
    }
}

#[test]
fn lanes_give_each_other_their_numbers() {
    type Wanted = fn(usize, usize) -> usize;
    // An expression, and from which lane of how many it takes the number.
    let cases: [(&str, Wanted); 9] = [
        ("subgroupBroadcastFirst(mine)", |_, _| 0),
        ("subgroupBroadcast(mine, 2u)", |_, _| 2),
        ("subgroupShuffle(mine, (lane + 1u) % 4u)", |lane, _| (lane + 1) % 4),
        ("subgroupShuffleXor(mine, 1u)", |lane, _| lane ^ 1),
        ("subgroupShuffleUp(mine, 1u)", |lane, _| lane.wrapping_sub(1)),
        ("subgroupShuffleDown(mine, 2u)", |lane, _| lane + 2),
        ("quadBroadcast(mine, 3u)", |lane, _| lane / 4 * 4 + 3),
        ("quadSwapX(mine)", |lane, _| lane ^ 1),
        ("quadSwapDiagonal(mine)", |lane, _| lane ^ 3),
    ];
    for size in SIZES {
        for driver in [format!("subgroups-{size}"), format!("subgroups-{size}-scattered")] {
            for threads in [4, 32, 100] {
                let members = members(&driver, threads);
                for (expression, from) in cases {
                    let results = each(&driver, threads, expression);
                    for group in &members {
                        for (lane, i) in group.iter().enumerate() {
                            let other = group.get(from(lane, group.len()));
                            // A lane that does not exist gives what nobody holds.
                            let wanted = other.map_or(0x4d5a_5a5a, |other| 7 * *other as u32 + 1);
                            assert_eq!(
                                results[*i], wanted,
                                "{driver} {threads}: {expression}, lane {lane}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn lanes_fold_their_numbers() {
    type Fold = fn(&[u32], usize) -> u32;
    let cases: [(&str, Fold); 10] = [
        ("subgroupAdd(mine)", |x, _| x.iter().sum()),
        ("subgroupInclusiveAdd(mine)", |x, lane| x[..=lane].iter().sum()),
        ("subgroupExclusiveAdd(mine)", |x, lane| x[..lane].iter().sum()),
        ("subgroupExclusiveMul(mine | 1u)", |x, lane| {
            x[..lane].iter().fold(1, |a, b| a.wrapping_mul(b | 1))
        }),
        ("subgroupMin(mine)", |x, _| *x.iter().min().unwrap()),
        ("u32(subgroupMax(f32(mine)))", |x, _| *x.iter().max().unwrap()),
        ("subgroupXor(mine)", |x, _| x.iter().fold(0, |a, b| a ^ b)),
        ("subgroupAnd(mine)", |x, _| x.iter().fold(!0, |a, b| a & b)),
        ("select(0u, 1u, subgroupAny(mine == 15u))", |x, _| u32::from(x.contains(&15))),
        (
            "countOneBits(subgroupBallot((mine & 1u) == 1u).x) + countOneBits(subgroupBallot((mine & 1u) == 1u).w)",
            |x, _| {
                let odd = |x: &[u32]| x.iter().filter(|x| **x & 1 == 1).count() as u32;
                odd(&x[..x.len().min(32)]) + odd(x.get(96..).unwrap_or(&[]))
            },
        ),
    ];
    for size in SIZES {
        for driver in [format!("subgroups-{size}"), format!("subgroups-{size}-scattered")] {
            for threads in [6, 128] {
                let members = members(&driver, threads);
                for (expression, fold) in cases {
                    let results = each(&driver, threads, expression);
                    for group in &members {
                        let held: Vec<u32> = group.iter().map(|i| 7 * *i as u32 + 1).collect();
                        for (lane, i) in group.iter().enumerate() {
                            assert_eq!(
                                results[*i],
                                fold(&held, lane),
                                "{driver} {threads}: {expression}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn vectors_halves_and_booleans_are_exchanged() {
    let kernel = "@group(0) @binding(0) var<storage, read> x: array<u32>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        fn swapped(v: vec3<f32>) -> vec3<f32> { return subgroupShuffleXor(v, 1u); }
        @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
            let v = swapped(vec3<f32>(f32(i), f32(x[i]), -1.5));
            let b = subgroupShuffleXor(vec2<i32>(-i32(i), 7), 2u);
            y[i] = u32(v.x) + 10u * u32(v.y) + u32(-2.0 * v.z) * 1000u + u32(-b.x) * 10000u;
        }";
    let y = run(kernel, "subgroups-4", 1, &[1, 2, 3, 4], 4);
    assert_eq!(y, [23021, 33010, 3043, 13032]);
}
