// Fills a buffer with a word.
// y[e] = value
// 0 y: read and write    1 p: uniform
// Host declares: WG.   Grid: ceil(total / WG) workgroups.   One thread per word.
@group(0) @binding(0) var<storage, read_write> y: array<u32>;
@group(0) @binding(1) var<uniform> p: Params;

struct Params {
    total: u32,   // words of y
    value: u32,   // the word
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e < p.total) { y[e] = p.value; }
}
