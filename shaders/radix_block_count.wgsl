// Counts the keys of each block of a row by one of their digits, on a GPU: the first of three kernels of a radix sort's pass.
// counts[b,c,d] = how many keys in block c of row b have the digit d
// 0 x: [B,S] elements, keys, or pairs of a key and its place, read    1 counts: [B,C,D] read and write    2 p: uniform
// Host declares: WG, BLOCK (keys), BINS (the most digits), x, and key(e).   Grid: B*C workgroups.
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    len: u32,     // S
    chunks: u32,  // C
    total: u32,   // B*C
    bins: u32,    // D, a power of two
    shift: u32,   // bits below the digit
    first: u32,   // 1 if x has the elements themselves
    step: u32,    // words of x from one key to the next
    flip: u32,    // the bits of a key that are turned round
    most: u32,    // what larger keys become
    row: u32,     // workgroups along x
}

// Sums of integers are the same in any order.
var<workgroup> n: array<atomic<u32>, BINS>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let t = group.y * p.row + group.x;
    let there = t < p.total;
    let start = t / p.chunks * p.len;
    let begin = t % p.chunks * BLOCK;
    let end = select(begin, min(begin + BLOCK, p.len), there);
    for (var d = local; d < BINS; d += WG) {
        atomicStore(&n[d], 0u);
    }
    workgroupBarrier();
    for (var i = begin + local; i < end; i += WG) {
        atomicAdd(&n[(key(start + i) >> p.shift) & (p.bins - 1u)], 1u);
    }
    workgroupBarrier();
    if (there) {
        for (var d = local; d < p.bins; d += WG) {
            counts[t * p.bins + d] = atomicLoad(&n[d]);
        }
    }
}
