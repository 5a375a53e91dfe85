// Pooling over windows of images, and its gradient from the windows that hold a place.
// Host declares: T, WG, and one of the bodies below as pool(e).   Grid: ceil(total / WG) workgroups.
// 0 x: read (1 more input read where the body has one), then y: read and write, then p: uniform
// One thread per element of y.
struct Params {
    total: u32,   // elements of y
    h: u32,       // image [N,H,W,C]
    w: u32,
    c: u32,
    oh: u32,      // windows [N,OH,OW,C]
    ow: u32,
    kh: u32,      // window
    kw: u32,
    sh: u32,      // strides
    sw: u32,
    top: u32,     // places that windows reach out of the image
    left: u32,
    row: u32,     // workgroups along x
}

// Rows (or columns) of the image that window i takes: from, to.
fn reach(i: u32, stride: u32, lead: u32, window: u32, size: u32) -> vec2<u32> {
    let from_edge = i * stride;
    return vec2<u32>(max(from_edge, lead) - lead, min(from_edge + window - lead, size));
}

// Windows that hold row (or column) y of the image: from, to.
fn holders(y: u32, stride: u32, lead: u32, window: u32, count: u32) -> vec2<u32> {
    let at = y + lead;
    let first = select(0u, (at - window) / stride + 1u, at >= window);
    return vec2<u32>(first, min(at / stride + 1u, count));
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    pool(e);
}
