// Solves triangular systems by substitution. One thread has one column of the right side.
// y[b,i,c] = (rhs[b,i,c] - sum over the j solved before of a(b,i,j) y[b,j,c]) / a(b,i,i), without the division if UNIT
// 0 a: [B or 1,N,N] read    1 rhs: [B or 1,N,M] read    2 y: [B,N,M] read and write    3 p: uniform
// Host declares: WG, BACKWARD (i from N - 1 down), UNIT, and at(i, j), the place of a(i, j) in its matrix.
// Grid: ceil(B*M / WG) workgroups.   One thread per column.
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> rhs: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;
@group(0) @binding(3) var<uniform> p: Params;

struct Params {
    n: u32,        // N
    columns: u32,  // M
    a_batch: u32,  // N*N, or 0 where one matrix serves all
    b_batch: u32,  // N*M, or 0
    total: u32,    // B*M
    row: u32,      // workgroups along x
}

fn place(step: u32) -> u32 {
    return select(step, p.n - 1u - step, BACKWARD);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    let batch = e / p.columns;
    let c = e % p.columns;
    let from_a = batch * p.a_batch;
    let from_b = batch * p.b_batch + c;
    let to = batch * p.n * p.columns + c;
    for (var s = 0u; s < p.n; s++) {
        let i = place(s);
        var sum = rhs[from_b + i * p.columns];
        for (var t = 0u; t < s; t++) {
            let j = place(t);
            sum -= a[from_a + at(i, j)] * y[to + j * p.columns];
        }
        if (!UNIT) { sum = sum / a[from_a + at(i, i)]; }
        y[to + i * p.columns] = sum;
    }
}
