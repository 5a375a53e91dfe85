// Makes the rows of matrices orthogonal by rotating pairs of them (one-sided Jacobi), in rounds in which each row is in one
// pair: M elements of a row count, and the K behind them are rotated along.
// For each pair: y[b,p] = c y[b,p] - s y[b,q], y[b,q] = s y[b,p] + c y[b,q], c and s such that both become orthogonal
// 0 x: [B,N,M+K] read    1 y: [B,N,M+K] read and write    2 p: uniform
// Host declares: WG, LANES, the threads of a pair, a power of two.   Grid: B workgroups.   LANES threads per pair.
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    n: u32,        // N
    m: u32,        // M
    width: u32,    // M + K
    players: u32,  // N, or N + 1 where N is odd: the last one is then nobody
    first: u32,    // the first round; at 0 the rows come from x
    rounds: u32,   // of this launch
    count: u32,    // B
    row: u32,      // workgroups along x
}

var<workgroup> part: array<vec3<f32>, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let b = group.y * p.row + group.x;
    if (b >= p.count) { return; }
    let base = b * p.n * p.width;
    if (p.first == 0u) {
        for (var e = local; e < p.n * p.width; e += WG) { y[base + e] = x[base + e]; }
        storageBarrier();
    }
    let lane = local % LANES;
    let others = p.players - 1u;
    for (var r = 0u; r < p.rounds; r++) {
        // Everybody sits at a round table but the last one, and moves on by one seat each round.
        let turn = (p.first + r) % others;
        for (var start = 0u; start < p.players / 2u; start += WG / LANES) {
            let pair = start + local / LANES;
            var one = (turn + pair) % others;
            var two = (turn + others - pair % others) % others;
            if (pair == 0u) { two = others; }
            let plays = pair < p.players / 2u && one < p.n && two < p.n;
            let at = base + min(one, two) * p.width;
            let to = base + max(one, two) * p.width;
            var sums = vec3<f32>(0.0);
            if (plays) {
                for (var i = lane; i < p.m; i += LANES) {
                    let u = y[at + i];
                    let v = y[to + i];
                    sums += vec3<f32>(u * u, v * v, u * v);
                }
            }
            part[local] = sums;
            workgroupBarrier();
            sums = vec3<f32>(0.0);
            for (var l = 0u; l < LANES; l++) { sums += part[local - lane + l]; }
            if (plays && abs(sums.z) > 2e-8 * sqrt(sums.x) * sqrt(sums.y)) {
                let zeta = (sums.y - sums.x) / (2.0 * sums.z);
                var t = 1.0 / (abs(zeta) + sqrt(1.0 + zeta * zeta));
                if (zeta < 0.0) { t = -t; }
                let c = 1.0 / sqrt(1.0 + t * t);
                let s = c * t;
                for (var i = lane; i < p.width; i += LANES) {
                    let u = y[at + i];
                    let v = y[to + i];
                    y[at + i] = c * u - s * v;
                    y[to + i] = s * u + c * v;
                }
            }
            workgroupBarrier();
        }
        storageBarrier();
    }
}
