// Finds where values belong in sorted rows, by halving.
// y[b,v] = how many of a[b] are below values[b,v], or not above it (RIGHT)
// 0 a: [B,S] read    1 values: [B,V] read    2 y: [B,V] read and write    3 p: uniform
// Host declares: T (a and values), WG, and before(a, v).   Grid: ceil(B*V / WG) workgroups.   One thread per value.
@group(0) @binding(0) var<storage, read> a: array<T>;
@group(0) @binding(1) var<storage, read> values: array<T>;
@group(0) @binding(2) var<storage, read_write> y: array<i32>;
@group(0) @binding(3) var<uniform> p: Params;

struct Params {
    len: u32,     // S
    count: u32,   // V
    total: u32,   // B*V
    steps: u32,   // halvings that leave nothing of S
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    let start = (e / p.count) * p.len;
    let v = values[e];
    var low = 0u;
    var n = p.len;
    for (var i = 0u; i < p.steps; i++) {
        if (n > 0u) {
            let half = n / 2u;
            let below = before(a[start + low + half], v);
            low = select(low, low + half + 1u, below);
            n = select(half, n - half - 1u, below);
        }
    }
    y[e] = i32(low);
}
