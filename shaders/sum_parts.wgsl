// Adds the splits of a product's sums in order: the second pass of split-K.
// y[i] = sum over s of x[s,i]
// 0 x: [S,L] read    1 y: [L] read and write    2 p: uniform
// Host declares: V (vector of four sums), WG, load(at) for the elements at to at + 3 of x, and c_store(at, count, v).
// Grid: ceil(L / 4 / WG) workgroups.   One thread per four elements of y.
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    len: u32,     // L
    parts: u32,   // S
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = ((group.y * p.row + group.x) * WG + local) * 4u;
    if (i >= p.len) { return; }
    var sum = load(i);
    for (var s = 1u; s < p.parts; s++) {
        sum += load(s * p.len + i);
    }
    c_store(i, p.len - i, sum);
}
