// Makes elements of the words that scatter_fold.wgsl left.
// y[e] = value(words[e])
// 0 words: read    1 y: read and write    2 p: uniform
// Host declares: WG, V (four elements), value(word), and c_store(at, count, v).
// Grid: ceil(total / 4 / WG) workgroups.   One thread per four elements.
@group(0) @binding(0) var<storage, read> words: array<vec4<u32>>;
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    total: u32,   // elements of y
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = ((group.y * p.row + group.x) * WG + local) * 4u;
    if (e >= p.total) { return; }
    let w = words[e / 4u];
    c_store(e, min(p.total - e, 4u), V(value(w.x), value(w.y), value(w.z), value(w.w)));
}
