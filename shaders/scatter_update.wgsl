// Replaces rows by the last of the updates that name them.
// y[r,n] = updates[winner[r] - 1,n] where winner[r] > 0, else x[r,n]
// 0 x: [R,N] read    1 updates: [S,N] read    2 winner: [R] read    3 y: [R,N] read and write    4 p: uniform
// Host declares: T (x, updates and y), WG.   Grid: ceil(R*N / WG) workgroups.   One thread per element.
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> updates: array<T>;
@group(0) @binding(2) var<storage, read> winner: array<u32>;
@group(0) @binding(3) var<storage, read_write> y: array<T>;
@group(0) @binding(4) var<uniform> p: Params;

struct Params {
    inner: u32,   // N
    total: u32,   // R*N
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    let w = winner[e / p.inner];
    if (w > 0u) {
        y[e] = updates[(w - 1u) * p.inner + e % p.inner];
    } else {
        y[e] = x[e];
    }
}
