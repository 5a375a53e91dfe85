// Finds the rows of each segment, in order: a counting sort without atomics. Each thread reads all ids twice, first to
// count those of the segments before its own, then to write the places of its own.
// range[b,r] = first and end of the segment in places[b]; places[b,first..end] = the s with ids[b,s] = r
// 0 ids: [B,S] read    1 range: [B,R] read and write    2 places: [B,S] read and write    3 p: uniform
// Host declares: WG.   Grid: ceil(B*R / WG) workgroups.   One thread per segment.
@group(0) @binding(0) var<storage, read> ids: array<i32>;
@group(0) @binding(1) var<storage, read_write> range: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read_write> places: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

struct Params {
    count: u32,   // S
    rows: u32,    // R
    total: u32,   // B*R
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    // A negative number wraps to a large one and so belongs to no segment.
    let r = e % p.rows;
    let start = e / p.rows * p.count;
    var first = start;
    for (var s = start; s < start + p.count; s++) {
        first += select(0u, 1u, u32(ids[s]) < r);
    }
    var end = first;
    for (var s = start; s < start + p.count; s++) {
        if (u32(ids[s]) == r) {
            places[end] = s;
            end += 1u;
        }
    }
    range[e] = vec2<u32>(first, end);
}
