// Makes words of elements, which scatter_fold.wgsl goes on from.
// y[e] = word(e)
// 0 x: read    1 y: read and write    2 p: uniform
// Host declares: WG, x, and word(e).   Grid: ceil(total / WG) workgroups.   One thread per element.
@group(0) @binding(1) var<storage, read_write> y: array<u32>;
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    total: u32,   // elements
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e < p.total) { y[e] = word(e); }
}
