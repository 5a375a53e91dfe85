// Reads images at places between their pixels.
// y[m,p,c] = image index[m] at row places[m,p,0] and column places[m,p,1], channel c: of the four pixels around by their
// distance, or of the nearest one; what is outside of the image has one value
// 0 x: [N,H,W,C] read    1 index: [M] read    2 places: [M,P,2] read    3 y: [M,P,C] read and write    4 p: uniform
// Written out by the host (src/wgsl/template.rs): BILINEAR where pixels are mixed, and EDGED where a place that is on a
// pixel is that one alone.
// Host declares: T (x), V (vector of four results), WG, LANES (channels of a thread), outside() for the value outside,
// load(at) for up to four channels at the element at, and c_store(at, count, v).
// Grid: ceil(M*P*G / WG) workgroups, G = ceil(C / LANES).   One thread per LANES channels of a place.
@group(0) @binding(1) var<storage, read> index: array<i32>;
@group(0) @binding(2) var<storage, read> places: array<vec2<f32>>;
@group(0) @binding(4) var<uniform> p: Params;

struct Params {
    n: u32,       // N
    h: u32,       // H
    w: u32,       // W
    c: u32,       // C
    places: u32,  // P
    groups: u32,  // G
    last: u32,    // the last element of x
    outside: u32, // the bits of the value outside
    threads: u32, // M*P*G
    row: u32,     // workgroups along x
}

fn pixel(image: u32, i: f32, j: f32, channel: u32) -> V {
    let inside = i >= 0.0 && i < f32(p.h) && j >= 0.0 && j < f32(p.w);
    // A negative number of an image wraps to a large one.
    if (!inside || image >= p.n) { return outside(); }
    let row = min(u32(i), p.h - 1u);
    return load(((image * p.h + row) * p.w + min(u32(j), p.w - 1u)) * p.c + channel);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.threads) { return; }
    let place = e / p.groups;
    let channel = (e % p.groups) * LANES;
    let image = u32(index[place / p.places]);
    let i = places[place].x;
    let j = places[place].y;
    //if BILINEAR
    let top = floor(i);
    let left = floor(j);
    //if EDGED
    let bottom = ceil(i);
    let right = ceil(j);
    //else
    let bottom = top + 1.0;
    let right = left + 1.0;
    //end
    let a = pixel(image, top, left, channel);
    let b = pixel(image, top, right, channel);
    let c = pixel(image, bottom, left, channel);
    let d = pixel(image, bottom, right, channel);
    let upper = a + (b - a) * (j - left);
    let lower = c + (d - c) * (j - left);
    let v = upper + (lower - upper) * (i - top);
    //else
    let v = pixel(image, sign(i) * floor(abs(i) + 0.5), sign(j) * floor(abs(j) + 0.5), channel);
    //end
    c_store(place * p.c + channel, min(p.c - channel, LANES), v);
}
