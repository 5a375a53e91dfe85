// The second pass of a product whose sums were cut into parts: the parts are added in order.
// y[i] = sum over s of x[s,i]
// 0 x: [S,L] read    1 y: [L] read and write    2 p: uniform
// Host declares: T (y), A (x), WG.   Grid: ceil(L / WG) workgroups.   One thread per element of y.
@group(0) @binding(0) var<storage, read> x: array<A>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    len: u32,     // L
    parts: u32,   // S
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = (group.y * p.row + group.x) * WG + local;
    if (i >= p.len) { return; }
    var sum = A(0);
    for (var s = 0u; s < p.parts; s++) {
        sum += x[s * p.len + i];
    }
    y[i] = T(sum);
}
