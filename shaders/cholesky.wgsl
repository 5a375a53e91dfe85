// Factors small symmetric matrices, x = y y^T with y lower triangular, a workgroup for each matrix, row by thread.
// y[b,i,j] = (x[b,i,j] - sum over k < j of y[b,i,k] y[b,j,k]) / y[b,j,j], y[b,j,j] the root of the same for i = j
// 0 x: [B,N,N] read, the lower triangle    1 y: [B,N,N] read and write    2 p: uniform
// Host declares: WG, the threads, at least N.   Grid: B workgroups.   One thread per row.
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    n: u32,      // N
    count: u32,  // B
    row: u32,    // workgroups along x
}

// The lower triangle, row after row: rows begin at triangular numbers, which fall on all memory banks in turn.
var<workgroup> l: array<f32, WG * (WG + 1) / 2>;

fn at(i: u32, j: u32) -> u32 { return i * (i + 1u) / 2u + j; }

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let b = group.y * p.row + group.x;
    if (b >= p.count) { return; }
    let base = b * p.n * p.n;
    for (var e = local; e < p.n * p.n; e += WG) {
        let i = e / p.n;
        let j = e % p.n;
        if (j <= i) { l[at(i, j)] = x[base + e]; }
    }
    workgroupBarrier();
    // The diagonal keeps the elements of x until the end, so that all threads of a column can compute its root.
    var root = 0.0;
    for (var j = 0u; j < p.n; j++) {
        if (local >= j && local < p.n) {
            var own = l[at(local, j)];
            var left = l[at(j, j)];
            for (var k = 0u; k < j; k++) {
                let v = l[at(j, k)];
                own -= l[at(local, k)] * v;
                left -= v * v;
            }
            var d = nan();
            if (left > 0.0) { d = sqrt(left); }
            if (local == j) { root = d; } else { l[at(local, j)] = own / d; }
        }
        workgroupBarrier();
    }
    if (local < p.n) { l[at(local, local)] = root; }
    workgroupBarrier();
    for (var e = local; e < p.n * p.n; e += WG) {
        let i = e / p.n;
        let j = e % p.n;
        var v = 0.0;
        if (j <= i) { v = l[at(i, j)]; }
        y[base + e] = v;
    }
}
