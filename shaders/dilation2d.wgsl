// Finds the largest sum of a place and its tap in each window, or the index of that place or of that tap.
// y[n,i,j,c] = max over k, l of x[n, i*sh + k*dh - top, j*sw + l*dw - left, c] + w[k,l,c], for places inside the image
// 0 x: [N,H,W,C] read    1 w: [KH,KW,C] read    2 y: [N,OH,OW,C] read and write    3 p: uniform
// Host declares: T (x and w), Out (y), WG, PLACE (whether places are wanted, and not taps), LOWEST (of T), and
// result(best, place), which selects one of both.
// Grid: ceil(N*OH*OW*C / WG) workgroups.   One thread per element of y.
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read> w: array<T>;
@group(0) @binding(2) var<storage, read_write> y: array<Out>;
@group(0) @binding(3) var<uniform> p: Params;

struct Params {
    total: u32,   // N*OH*OW*C
    h: i32,       // image
    w: i32,
    c: u32,
    oh: u32,      // windows
    ow: u32,
    kh: u32,      // filter
    kw: u32,
    sh: i32,      // strides
    sw: i32,
    dh: i32,      // distances between taps
    dw: i32,
    top: i32,     // places that windows reach out of the image
    left: i32,
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    let c = e % p.c;
    let window = e / p.c;
    let top = i32((window / p.ow) % p.oh) * p.sh - p.top;
    let left = i32(window % p.ow) * p.sw - p.left;
    let image = i32(window / (p.ow * p.oh)) * p.h;
    var best = LOWEST;
    var place = -1;
    for (var k = 0u; k < p.kh; k++) {
        let i = top + i32(k) * p.dh;
        for (var l = 0u; l < p.kw; l++) {
            let j = left + i32(l) * p.dw;
            if (i >= 0 && i < p.h && j >= 0 && j < p.w) {
                let at = u32((image + i) * p.w + j) * p.c + c;
                let tap = (k * p.kw + l) * p.c + c;
                let sum = f32(x[at]) + f32(w[tap]);
                // The first of equal sums, and never NaN, as in TensorFlow.
                if (sum > best && !is_nan(sum)) {
                    best = sum;
                    place = i32(select(tap, at, PLACE));
                }
            }
        }
    }
    y[e] = result(best, place);
}
