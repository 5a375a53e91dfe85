// Rows added up by their segment's number. Each thread looks for its segment's rows in order: no atomics, so
// the sum is the same every time. Numbers outside 0..R are left out.
// y[b,r,n] = sum over s with ids[b,s] = r of x[b,s,n]
// 0 x: [B,S,N] read    1 ids: [B,S] read    2 y: [B,R,N] read and write    3 p: uniform
// Host declares: T (x and y), A (sums), WG.   Grid: ceil(B*R*N / WG) workgroups.   One thread per element of y.
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> ids: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<T>;
@group(0) @binding(3) var<uniform> p: Params;

struct Params {
    count: u32,   // S
    rows: u32,    // R
    inner: u32,   // N
    total: u32,   // elements of y
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    let n = e % p.inner;
    let r = (e / p.inner) % p.rows;
    let start = e / (p.inner * p.rows) * p.count;
    var sum = A(0);
    for (var s = start; s < start + p.count; s++) {
        if (u32(ids[s]) == r) {
            sum += A(x[s * p.inner + n]);
        }
    }
    y[e] = T(sum);
}
