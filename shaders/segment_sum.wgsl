// Rows added up by their segment's number, in order: no atomics, so the sum is the same every time.
// y[b,r,n] = sum over j in range[b,r] of x[places[j],n]
// 0 x: [B*S,N] read    1 range: [B,R] read    2 places: [B*S] read    3 y: [B,R,N] read and write    4 p: uniform
// Host declares: V (vector of four sums), WG, load(at) for x, four(e), which calls segment for the elements e to e + 3,
// and c_store(at, count, v).   Grid: ceil(B*R*N / 4 / WG) workgroups.   One thread per four elements of y.
@group(0) @binding(1) var<storage, read> range: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> places: array<u32>;
@group(0) @binding(4) var<uniform> p: Params;

struct Params {
    inner: u32,   // N
    total: u32,   // elements of y
    row: u32,     // workgroups along x
}

fn segment(e: u32) -> V {
    let n = e % p.inner;
    let at = range[e / p.inner];
    var sum = V(0);
    for (var j = at.x; j < at.y; j++) {
        sum += load(places[j] * p.inner + n);
    }
    return sum;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = ((group.y * p.row + group.x) * WG + local) * 4u;
    if (e >= p.total) { return; }
    c_store(e, p.total - e, four(e));
}
