// Pools over windows of images, and computes the gradient from the windows that hold a place.
// 0 x: read (1 more input read where the body has one), then y: read and write, then p: uniform
// Written out by the host (src/wgsl/template.rs): PARTS where windows are so large that each element has several threads,
// SINGLE where a thread has one element and not four.
// Host declares: V (four elements of y), LANES (what is added to an index for each of the four elements at it), WG, the
// bindings with a loader for each input, four(e), which calls pool for the elements e to e + 3, c_store(at, count, v),
// and one of the bodies as pool(e).   Grid: ceil(total / 4 / WG) workgroups.   One thread per four elements of y, or one.
struct Params {
    total: u32,   // elements of y, of all parts
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
    //if PARTS
    results: u32, // elements of y
    part: u32,    // steps of a part, and parts
    parts: u32,
    //end
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    //if SINGLE
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    c_store(e, 1u, pool(e));
    //else
    let e = ((group.y * p.row + group.x) * WG + local) * 4u;
    if (e >= p.total) { return; }
    c_store(e, p.total - e, four(e));
    //end
}
