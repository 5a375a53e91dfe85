// Finds the rows of each segment, in order, from the counts of each chunk of rows: the second half of segment_places.wgsl
// where there are too many rows for one thread to read.
// found holds places [B,S] and then range [B,R], two words each, as some devices bind only four buffers.
// range[b,r] = first and end of the segment in places[b]; places[b,first..end] = the s with ids[b,s] = r
// 0 ids: [B,S] read    1 counts: [B,C,R] read    2 found: read and write    3 p: uniform
// Host declares: WG.   Grid: ceil(B*C*R / WG) workgroups.   One thread per chunk and segment.
@group(0) @binding(0) var<storage, read> ids: array<i32>;
@group(0) @binding(1) var<storage, read> counts: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> found: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

struct Params {
    count: u32,   // S
    rows: u32,    // R
    chunks: u32,  // C
    chunk: u32,   // ids of a chunk
    total: u32,   // B*C*R
    ranges: u32,  // B*S, where range begins
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    let r = e % p.rows;
    let c = (e / p.rows) % p.chunks;
    let b = e / (p.rows * p.chunks);
    let start = b * p.count;
    // Before the segment stand all rows of lower segments, before its part of this chunk those of earlier chunks.
    var first = start;
    var before = 0u;
    var all = 0u;
    for (var k = 0u; k < p.chunks; k++) {
        let n = counts[(b * p.chunks + k) * p.rows + r];
        first += n.x;
        before += select(0u, n.y, k < c);
        all += n.y;
    }
    if (c == 0u) {
        let range = p.ranges + 2u * (b * p.rows + r);
        found[range] = first;
        found[range + 1u] = first + all;
    }
    let end = start + min((c + 1u) * p.chunk, p.count);
    var at = first + before;
    for (var s = start + c * p.chunk; s < end; s++) {
        if (u32(ids[s]) == r) {
            found[at] = s;
            at += 1u;
        }
    }
}
