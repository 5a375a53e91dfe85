// Adds up the values that the windows over an image give to each place, in the windows' order.
// y[n,y,x,c] = sum over windows (i,j) that hold (y,x) of x[n,i,j, y + top - i*sh, x + left - j*sw, c]
// 0 x: [N,OH,OW,KH,KW,C] read    1 y: [N,H,W,C] read and write    2 p: uniform
// Host declares: X (a sum, or vector of four), V, WG, load(at), four(q) that calls place(e) for elements 4q to 4q + 3,
// and c_store(at, count, v).   Grid: ceil(total / 4 / WG) workgroups.   One thread per four elements of y.
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    total: u32,   // elements of y
    h: u32,       // image [N,H,W,C]
    w: u32,
    c: u32,
    oh: u32,      // windows [N,OH,OW]
    ow: u32,
    kh: u32,      // window
    kw: u32,
    sh: u32,      // strides
    sw: u32,
    top: u32,     // places that windows reach out of the image
    left: u32,
    row: u32,     // workgroups along x
}

// The element e of y, or those from e on.
fn place(e: u32) -> X {
    let c = e % p.c;
    let pixel = e / p.c;
    let left = pixel % p.w + p.left;
    let top = (pixel / p.w) % p.h + p.top;
    let image = pixel / (p.w * p.h) * p.oh;
    let rows = holders(top - p.top, p.sh, p.top, p.kh, p.oh);
    let columns = holders(left - p.left, p.sw, p.left, p.kw, p.ow);
    // From one window to the next column's, the place within the window moves back by a stride.
    let step = (p.kh * p.kw - p.sw) * p.c;
    var sum = X(0);
    for (var i = rows.x; i < rows.y; i++) {
        let window = (image + i) * p.ow + columns.x;
        var at = ((window * p.kh + top - i * p.sh) * p.kw + left - columns.x * p.sw) * p.c + c;
        for (var j = columns.x; j < columns.y; j++) {
            sum += load(at);
            at += step;
        }
    }
    return sum;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = ((group.y * p.row + group.x) * WG + local) * 4u;
    if (e >= p.total) { return; }
    c_store(e, p.total - e, four(e));
}
