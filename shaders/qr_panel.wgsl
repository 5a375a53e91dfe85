// Factors tall matrices by Householder reflections, x = (I - V T V^T) R, in place, a workgroup for each matrix.
// y[b,r,c] = R on and above the diagonal, V below it, whose diagonal is ones; y[b,M+r,c] = T, upper triangular
// 0 x: [B,M,N] read    1 y: [B,M+N,N] read and write    2 p: uniform
// Host declares: WG, and WIDE, a power of two, at least N and at most WG.
// Grid: B workgroups.   WG / WIDE threads per column.
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    m: u32,      // M
    n: u32,      // N, at most M
    count: u32,  // B
    row: u32,    // workgroups along x
}

const LANES: u32 = WG / WIDE;

var<workgroup> part: array<f32, WG>;
// What each reflection before k has in common with it.
var<workgroup> shared_with: array<f32, WIDE>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let b = group.y * p.row + group.x;
    if (b >= p.count) { return; }
    let base = b * p.m * p.n;
    let to = b * (p.m + p.n) * p.n;
    let t = to + p.m * p.n;
    for (var e = local; e < p.m * p.n; e += WG) { y[to + e] = x[base + e]; }
    for (var e = local; e < p.n * p.n; e += WG) { y[t + e] = 0.0; }
    storageBarrier();
    let c = local % WIDE;
    let lane = local / WIDE;
    for (var k = 0u; k < p.n; k++) {
        // The reflection that takes column k to its length.
        var sum = 0.0;
        for (var r = k + 1u + local; r < p.m; r += WG) {
            let v = y[to + r * p.n + k];
            sum += v * v;
        }
        part[local] = sum;
        workgroupBarrier();
        for (var half = WG / 2u; half > 0u; half /= 2u) {
            if (local < half) { part[local] += part[local + half]; }
            workgroupBarrier();
        }
        let below = part[0];
        let head = y[to + k * p.n + k];
        var beta = head;
        var tau = 0.0;
        var scale = 0.0;
        if (below != 0.0) {
            beta = sqrt(head * head + below);
            if (head >= 0.0) { beta = -beta; }
            tau = (beta - head) / beta;
            scale = 1.0 / (head - beta);
        }
        storageBarrier();
        workgroupBarrier();
        for (var r = k + 1u + local; r < p.m; r += WG) { y[to + r * p.n + k] *= scale; }
        if (local == 0u) { y[to + k * p.n + k] = beta; }
        storageBarrier();
        // Its products with the other columns: those to come are reflected, those before join T.
        var product = 0.0;
        if (c < p.n && c != k) {
            if (lane == 0u) { product = y[to + k * p.n + c]; }
            for (var r = k + 1u + lane; r < p.m; r += LANES) {
                product += y[to + r * p.n + k] * y[to + r * p.n + c];
            }
        }
        part[local] = product;
        workgroupBarrier();
        product = 0.0;
        for (var l = 0u; l < LANES; l++) { product += part[l * WIDE + c]; }
        if (c > k && c < p.n) {
            if (lane == 0u) { y[to + k * p.n + c] -= tau * product; }
            for (var r = k + 1u + lane; r < p.m; r += LANES) {
                y[to + r * p.n + c] -= tau * product * y[to + r * p.n + k];
            }
        }
        if (lane == 0u) { shared_with[c] = product; }
        workgroupBarrier();
        if (local < k) {
            var v = 0.0;
            for (var j = local; j < k; j++) { v += y[t + local * p.n + j] * shared_with[j]; }
            y[t + local * p.n + k] = -tau * v;
        }
        if (local == k) { y[t + k * p.n + k] = tau; }
        storageBarrier();
    }
}
