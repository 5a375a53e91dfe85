// Counts the keys of each chunk of a row by one of their digits: the first of three kernels of a radix sort's pass.
// counts[b,d,c] = how many keys in chunk c of row b have the digit d
// 0 x: [B,S] elements, keys, or pairs of a key and its place, read    1 counts: [B,D,C] read and write    2 p: uniform
// Host declares: WG, BINS (the most digits), x, and key(e).   Grid: ceil(B*C / WG) workgroups.   One thread per chunk.
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    len: u32,     // S
    chunk: u32,   // keys of a chunk
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

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let t = (group.y * p.row + group.x) * WG + local;
    if (t >= p.total) { return; }
    let b = t / p.chunks;
    let c = t % p.chunks;
    let start = b * p.len;
    let end = start + min((c + 1u) * p.chunk, p.len);
    var n: array<u32, BINS>;
    for (var e = start + c * p.chunk; e < end; e++) {
        n[(key(e) >> p.shift) & (p.bins - 1u)] += 1u;
    }
    for (var d = 0u; d < p.bins; d++) {
        counts[(b * p.bins + d) * p.chunks + c] = n[d];
    }
}
