// Finds the rows of each segment, in order, from the sorted ids. The host has filled found with zeros.
// range[b,r] = first and end of the segment in places[b]; places[b,first..end] = the s with ids[b,s] = r
// pairs are an id and its place in the row, sorted by ids; found is as in segment_spread.wgsl.
// 0 pairs: [B,S] read    1 found: read and write    2 p: uniform
// Host declares: WG.   Grid: ceil(B*S / WG) workgroups.   One thread per row.
@group(0) @binding(0) var<storage, read> pairs: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> found: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    count: u32,   // S
    rows: u32,    // R
    total: u32,   // B*S, where range begins
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    let b = e / p.count;
    let i = e - b * p.count;
    let own = pairs[e].x;
    found[e] = b * p.count + pairs[e].y;
    // Rows of no segment stand behind all others.
    if (own >= p.rows) { return; }
    var before = p.rows;
    if (i > 0u) { before = pairs[e - 1u].x; }
    var next = p.rows;
    if (i + 1u < p.count) { next = pairs[e + 1u].x; }
    let ranges = p.total + 2u * b * p.rows;
    if (before != own) { found[ranges + 2u * own] = e; }
    if (next != own) { found[ranges + 2u * own + 1u] = e + 1u; }
    // Others look at the end of the last segment to learn where the rows of all segments end.
    if (next >= p.rows && own + 1u < p.rows) {
        found[ranges + 2u * p.rows - 2u] = e + 1u;
        found[ranges + 2u * p.rows - 1u] = e + 1u;
    }
}
