// One pass of a Fourier transform: transforms of R numbers, R a factor of the length N (Stockham's self-sorting form).
// y[b, (R*i + j)*S + q] = w^(i*j) * sum over k < R of x[b, (i + k*M)*S + q] * e^(-2 pi i j k / R), w = e^(-2 pi i / (R*M)),
// for i < M and q < S; R*M*S are all numbers of a b.
// 0 x: [B,R*M*S] pairs read    1 y: [B,R*M*S] pairs read and write    2 p: uniform
// Host declares: WG, R, turn(k, n) = e^(-2 pi i k / n), and dft(v), the transform of R numbers.
// Grid: ceil(B*M*S / WG) workgroups.   One thread per transform of R numbers.
@group(0) @binding(0) var<storage, read> x: array<vec2<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec2<f32>>;
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    m: u32,       // M
    s: u32,       // S
    swap: u32,    // 1: exchange the parts of what is read, 2: of what is written
    scale: u32,   // the bits of a factor of all results
    total: u32,   // B*M*S
    row: u32,     // workgroups along x
}

fn load(at: u32) -> vec2<f32> {
    let v = x[at];
    return select(v, v.yx, (p.swap & 1u) == 1u);
}

fn store(at: u32, v: vec2<f32>) {
    y[at] = select(v, v.yx, (p.swap & 2u) == 2u) * bitcast<f32>(p.scale);
}

fn product(a: vec2<f32>, b: vec2<f32>) -> vec2<f32> {
    return vec2<f32>(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    let q = e % p.s;
    let i = (e / p.s) % p.m;
    let first = e / (p.s * p.m) * (R * p.m * p.s) + q;
    let source = first + i * p.s;
    let goal = first + R * i * p.s;
    let step = p.m * p.s;
    var v: array<vec2<f32>, R>;
    //for k in R
    v[$k] = load(source + $ku * step);
    //end
    let z = dft(v);
    if (i == 0u) {
        //for k in R
        store(goal + $ku * p.s, z[$k]);
        //end
        return;
    }
    let n = R * p.m;
    //for k in R
    store(goal + $ku * p.s, product(z[$k], turn($ku * i, n)));
    //end
}
