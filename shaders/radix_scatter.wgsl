// Puts each key of a row where the keys of lower digits, and those of its own digit before it, end: the last of three
// kernels of a radix sort's pass. Equal digits stay in their order.
// y[b,at] = the key, its place in the row, or both, with at = keys of lower digits + those of its digit before it
// x has elements, keys, or pairs of a key and its place; y gets elements, keys, pairs or places.
// 0 x: [B,S] read    1 counts: as from radix_scan.wgsl, read    2 y: [B,S] read and write    3 p: uniform
// Host declares: WG, BINS (the most digits), x, key(e), y, and put(at, key, e, i).
// Grid: ceil(B*C / WG) workgroups.   One thread per chunk.
@group(0) @binding(1) var<storage, read> counts: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

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
    last: u32,    // 1 if y gets what was asked for
    sums: u32,    // where the sums over all chunks begin in counts
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let t = (group.y * p.row + group.x) * WG + local;
    if (t >= p.total) { return; }
    let b = t / p.chunks;
    let c = t % p.chunks;
    let start = b * p.len;
    let end = min((c + 1u) * p.chunk, p.len);
    var next: array<u32, BINS>;
    var lower = start;
    for (var d = 0u; d < p.bins; d++) {
        let line = b * p.bins + d;
        next[d] = lower + counts[line * p.chunks + c];
        lower += counts[p.sums + line];
    }
    for (var i = c * p.chunk; i < end; i++) {
        let k = key(start + i);
        let d = (k >> p.shift) & (p.bins - 1u);
        let at = next[d];
        next[d] = at + 1u;
        put(at, k, start + i, i);
    }
}
