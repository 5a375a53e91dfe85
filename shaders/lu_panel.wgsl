// Factors tall matrices, x[order] = L U with unit diagonals in L and the largest pivot of each column (the first of equal
// ones), in place, a workgroup for each matrix. A column of zeros stays, with zeros in L.
// y[b,r,c] = L below the diagonal, U on and above it; y[b,r,N] = the row of x that has come to r
// 0 x: [B,M,N] read    1 y: [B,M,N+1] read and write    2 p: uniform
// Host declares: WG.   Grid: B workgroups.   All threads go through the rows.
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    m: u32,      // M
    n: u32,      // N, at most M
    count: u32,  // B
    row: u32,    // workgroups along x
}

var<workgroup> largest: array<f32, WG>;
var<workgroup> place: array<u32, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let b = group.y * p.row + group.x;
    if (b >= p.count) { return; }
    let width = p.n + 1u;
    let base = b * p.m * p.n;
    let to = b * p.m * width;
    for (var r = local; r < p.m; r += WG) {
        for (var c = 0u; c < p.n; c++) { y[to + r * width + c] = x[base + r * p.n + c]; }
        y[to + r * width + p.n] = f32(r);
    }
    for (var k = 0u; k < p.n; k++) {
        // A thread searches the rows that it has written itself.
        var most = -1.0;
        var at = k;
        for (var r = k + local; r < p.m; r += WG) {
            let v = abs(y[to + r * width + k]);
            if (v > most) {
                most = v;
                at = r;
            }
        }
        largest[local] = most;
        place[local] = at;
        // Everybody has searched before two rows change places.
        storageBarrier();
        workgroupBarrier();
        for (var half = WG / 2u; half > 0u; half /= 2u) {
            if (local < half) {
                let v = largest[local + half];
                let r = place[local + half];
                if (v > largest[local] || (v == largest[local] && r < place[local])) {
                    largest[local] = v;
                    place[local] = r;
                }
            }
            workgroupBarrier();
        }
        let pivot = place[0];
        for (var c = local; c < width; c += WG) {
            let v = y[to + k * width + c];
            y[to + k * width + c] = y[to + pivot * width + c];
            y[to + pivot * width + c] = v;
        }
        storageBarrier();
        workgroupBarrier();
        let d = y[to + k * width + k];
        for (var r = k + 1u + local; r < p.m; r += WG) {
            var f = 0.0;
            if (d != 0.0) { f = y[to + r * width + k] / d; }
            y[to + r * width + k] = f;
            for (var c = k + 1u; c < p.n; c++) {
                y[to + r * width + c] -= f * y[to + k * width + c];
            }
        }
    }
}
