// Makes the half spectrum y of N = 2*M real numbers from the spectrum z of M pairs of them, or z from y.
// y[k] = E + w^k O,  E = (z[k] + z'[M-k]) / 2,  O = -i (z[k] - z'[M-k]) / 2,  w = e^(-2 pi i / N), z' the conjugate, z[M] = z[0]
// z[k] = E + i O,    E = (y[k] + y'[M-k]) / 2,  O = w^-k (y[k] - y'[M-k]) / 2,  the imaginary parts of y[0] and y[M] being 0
// 0 x: [B,M] or [B,M+1] pairs read    1 y: [B,M+1] or [B,M] pairs read and write    2 p: uniform
// Written out by the host (src/wgsl/template.rs): INVERSE where z is made from y.
// Host declares: WG, turn(k, n) = e^(-2 pi i k / n).   Grid: ceil(B*(M+1) / WG) workgroups.   One thread per result.
@group(0) @binding(0) var<storage, read> x: array<vec2<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec2<f32>>;
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    m: u32,       // M
    total: u32,   // results
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    //if INVERSE
    let k = e % p.m;
    let first = e / p.m * (p.m + 1u);
    let real = vec2<f32>(1.0, select(1.0, 0.0, k == 0u));
    let a = x[first + k] * real;
    let b = x[first + p.m - k] * real * vec2<f32>(1.0, -1.0);
    let w = turn(k, 2u * p.m) * vec2<f32>(1.0, -1.0);
    let d = (a - b) * 0.5;
    let o = vec2<f32>(w.x * d.x - w.y * d.y, w.x * d.y + w.y * d.x);
    y[e] = (a + b) * 0.5 + vec2<f32>(-o.y, o.x);
    //else
    let k = e % (p.m + 1u);
    let first = e / (p.m + 1u) * p.m;
    let a = x[first + k % p.m];
    let b = x[first + (p.m - k) % p.m] * vec2<f32>(1.0, -1.0);
    let w = turn(k, 2u * p.m);
    let d = (a - b) * 0.5;
    let o = vec2<f32>(d.y, -d.x);
    y[e] = (a + b) * 0.5 + vec2<f32>(w.x * o.x - w.y * o.y, w.x * o.y + w.y * o.x);
    //end
}
