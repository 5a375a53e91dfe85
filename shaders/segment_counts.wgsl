// Counts how many rows of a chunk belong to each segment and to those before it: the first half of segment_places.wgsl
// where there are too many rows for one thread to read.
// counts[b,c,r] = how many ids[b,s] < r and how many = r, s in chunk c
// 0 ids: [B,S] read    1 counts: [B,C,R] read and write    2 p: uniform
// Host declares: WG.   Grid: ceil(B*C*R / WG) workgroups.   One thread per chunk and segment.
@group(0) @binding(0) var<storage, read> ids: array<i32>;
@group(0) @binding(1) var<storage, read_write> counts: array<vec2<u32>>;
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    count: u32,   // S
    rows: u32,    // R
    chunks: u32,  // C
    chunk: u32,   // ids of a chunk
    total: u32,   // B*C*R
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    let r = e % p.rows;
    let c = (e / p.rows) % p.chunks;
    let start = e / (p.rows * p.chunks) * p.count;
    let end = start + min((c + 1u) * p.chunk, p.count);
    var n = vec2<u32>(0u);
    // A negative number wraps to a large one and so belongs to no segment.
    for (var s = start + c * p.chunk; s < end; s++) {
        n += select(vec2<u32>(0u), vec2<u32>(1u), vec2<bool>(u32(ids[s]) < r, u32(ids[s]) == r));
    }
    counts[e] = n;
}
