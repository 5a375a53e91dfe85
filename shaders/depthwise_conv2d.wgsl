// Convolves every channel with filters of its own, and computes the two gradients.
// 0 x: read    1 w: read    2 y: read and write    3 p: uniform
// Host declares: V (four sums), X (V where four elements of y have four channels of x, else a sum), WG, the loaders
// load_x(at) and load_w(at) over bindings 0 and 1, four(e) that calls element(e) for the elements e to e + 3,
// c_store(at, count, v), and one of the bodies as element(e).
// Written out by the host (src/wgsl/template.rs): CUT where sums are so long that each element has several threads, SINGLE
// where each of those has one element and not four.
// Grid: ceil(total / 4 / WG) workgroups, or with a thread per element.   One thread per four elements of y.
struct Params {
    total: u32,   // elements of y, of all parts
    h: u32,       // image [N,H,W,C]
    w: u32,
    c: u32,
    kh: u32,      // filter [KH,KW,C,M]
    kw: u32,
    m: u32,
    oh: u32,      // result [N,OH,OW,C*M]
    ow: u32,
    cm: u32,
    sh: u32,      // strides
    sw: u32,
    dh: u32,      // dilations
    dw: u32,
    top: u32,     // places that windows reach out of the image
    left: u32,
    next_h: u32,  // from a window over a place to the next, in windows and in the filter
    next_w: u32,
    back_h: u32,
    back_w: u32,
    rows: u32,    // the filter's gradient: rows of all images' results, and of a part
    part: u32,
    //if CUT
    results: u32, // elements of y; a part has so many steps as part says
    inverse_h: u32, // of back_h and back_w, among the numbers below next_h and next_w
    inverse_w: u32,
    //end
    row: u32,     // workgroups along x
}

// The values i from first to end, of those below count, for which begin + i * step lies in the image, of this size.
fn inside(begin: u32, step: u32, lead: u32, count: u32, size: u32) -> vec2<u32> {
    let first = (max(begin, lead) - begin + step - 1u) / step;
    let end = (max(size + lead, begin) - begin + step - 1u) / step;
    return vec2<u32>(first, min(end, count));
}

//if CUT
// The rest of a * b when divided by n; all are below 2^31.
fn product(a: u32, b: u32, n: u32) -> u32 {
    var y = 0u;
    for (var bit = 31u; bit > 0u; bit--) {
        y = 2u * y % n;
        if (((b >> (bit - 1u)) & 1u) == 1u) { y = (y + a) % n; }
    }
    return y;
}

// As below, without going through the windows: those whose numbers have one rest when divided by `next`.
fn takers(y: u32, stride: u32, dilation: u32, lead: u32, window: u32, count: u32, next: u32, inverse: u32) -> vec3<u32> {
    let range = holders(y, stride, lead, (window - 1u) * dilation + 1u, count);
    let both = dilation / next;
    let rest = product((y + lead) / both % next, inverse, next);
    let there = (y + lead) % both == 0u;
    let first = select(range.y, min(range.x + (rest + next - range.x % next) % next, range.y), there);
    return vec3<u32>(first, range.y, (y + lead - min(first, (y + lead) / stride) * stride) / dilation);
}
//else
// Windows that take place y of the image: the first of them, where they end, and which element of the filter the first
// takes there. Between two of them lie `next` windows.
fn takers(y: u32, stride: u32, dilation: u32, lead: u32, window: u32, count: u32, next: u32) -> vec3<u32> {
    let range = holders(y, stride, lead, (window - 1u) * dilation + 1u, count);
    var first = range.y;
    for (var i = range.x; i < min(range.x + next, range.y); i++) {
        if ((y + lead - i * stride) % dilation == 0u) { first = i; }
    }
    return vec3<u32>(first, range.y, (y + lead - min(first, (y + lead) / stride) * stride) / dilation);
}
//end

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    //if SINGLE
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    c_store(e, 1u, V(element(e)));
    //else
    let e = ((group.y * p.row + group.x) * WG + local) * 4u;
    if (e >= p.total) { return; }
    c_store(e, p.total - e, four(e));
    //end
}
