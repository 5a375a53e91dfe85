// Finds the class on which each random word falls, by a binary search in the running sums of the classes' shares.
// y[b,s] = the first n for which sums[b,n] > floor(words[b,s] * sums[b,N-1] / 2^32)
// 0 words: [B,S] read    1 sums: [B,N] read    2 y: [B,S] read and write    3 p: uniform
// Host declares: WG.   Grid: ceil(B*S / WG) workgroups.   One thread per result.
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read> sums: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<i32>;

struct Params {
    samples: u32,  // S
    classes: u32,  // N
    total: u32,    // B*S
    row: u32,      // workgroups along x
}
@group(0) @binding(3) var<uniform> p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    let first = e / p.samples * p.classes;
    let r = multiply_wide(words[e], sums[first + p.classes - 1u]).y;
    // The class is from low to high.
    var low = 0u;
    var high = p.classes - 1u;
    for (var halving = 0u; halving < 32u && low < high; halving++) {
        let middle = (low + high) / 2u;
        let above = sums[first + middle] > r;
        high = select(high, middle, above);
        low = select(middle + 1u, low, above);
    }
    y[e] = i32(low);
}
