// Copies rows of a tensor by their indices; a row that does not exist reads as 0, as in TensorFlow's GPU kernels.
// y[b,o,i,n] = x[b,o,index[b,i],n]
// 0 x: [B,O,R,N] read    1 index: [B,I] read    2 y: [B,O,I,N] read and write    3 p: uniform
// Host declares: T (x and y), WG.   Grid: ceil(B*O*I*N / WG) workgroups.   One thread per element of y.
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read_write> y: array<T>;
@group(0) @binding(3) var<uniform> p: Params;

struct Params {
    outer: u32,   // O
    rows: u32,    // R
    count: u32,   // I
    inner: u32,   // N
    total: u32,   // elements of y
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    let n = e % p.inner;
    let i = (e / p.inner) % p.count;
    let bo = e / (p.inner * p.count);
    let r = u32(index[(bo / p.outer) * p.count + i]);
    // A negative index wraps to a large one.
    if (r >= p.rows) {
        y[e] = T(0);
        return;
    }
    y[e] = x[(bo * p.rows + r) * p.inner + n];
}
