// Adds up (if PROD, multiplies) the rows of each segment, in order and without atomics, so the sum is the same every time.
// y[b,r,n] = sum over j in range[b,r] of x[places[j],n]
// 0 x: [B*S,N] read    1 range: [B,R] read    2 places: [B*S] read    3 y: [B,R,N] read and write    4 p: uniform
// Where a segment may have too many rows for one thread (LONG): 1 found: as in segment_spread.wgsl, read, 2 carries: [B,C,N]
// read, what segment_carries.wgsl has added up.
// Written out by the host (src/wgsl/template.rs).
// Host declares: V (vector of four sums), WG, load(at) for x, four(e), which calls segment for the elements e to e + 3,
// and c_store(at, count, v); if LONG, X, LANES and the bindings as in segment_carries.wgsl.
// Grid: ceil(B*R*N / 4 / WG) workgroups, or with one thread per LANES elements.   One thread per four elements of y.
//if LONG
@group(0) @binding(1) var<storage, read> found: array<u32>;
@group(0) @binding(2) var<storage, read> carries: array<X>;
//else
@group(0) @binding(1) var<storage, read> range: array<vec2<u32>>;
@group(0) @binding(2) var<storage, read> places: array<u32>;
//end
@group(0) @binding(4) var<uniform> p: Params;

struct Params {
    inner: u32,   // N
    total: u32,   // elements of y
    //if LONG
    count: u32,   // S
    rows: u32,    // R
    chunks: u32,  // C
    chunk: u32,   // places of a chunk
    ranges: u32,  // B*S, where range begins in found
    //end
    row: u32,     // workgroups along x
}

//if LONG
// The rows in the chunk where the segment begins, then what it has of the others.
fn segment(e: u32) -> X {
    let n = e % p.inner;
    let range = p.ranges + 2u * (e / p.inner);
    let at = vec2<u32>(found[range], found[range + 1u]);
    let b = e / (p.inner * p.rows);
    let start = b * p.count;
    let next = (at.x - start) / p.chunk + 1u;
    let chunks = (at.y - start + p.chunk - 1u) / p.chunk;
    //if PROD
    var sum = X(1);
    //else
    var sum = X(0);
    //end
    for (var j = at.x; j < min(at.y, start + next * p.chunk); j++) {
        //if PROD
        sum *= load(found[j] * p.inner + n);
        //else
        sum += load(found[j] * p.inner + n);
        //end
    }
    for (var c = next; c < chunks; c++) {
        //if PROD
        sum *= carries[((b * p.chunks + c) * p.inner + n) / LANES];
        //else
        sum += carries[((b * p.chunks + c) * p.inner + n) / LANES];
        //end
    }
    return sum;
}
//else
fn segment(e: u32) -> V {
    let n = e % p.inner;
    let at = range[e / p.inner];
    //if PROD
    var sum = V(1);
    //else
    var sum = V(0);
    //end
    for (var j = at.x; j < at.y; j++) {
        //if PROD
        sum *= load(places[j] * p.inner + n);
        //else
        sum += load(places[j] * p.inner + n);
        //end
    }
    return sum;
}
//end

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    //if LONG
    let e = ((group.y * p.row + group.x) * WG + local) * LANES;
    if (e >= p.total) { return; }
    c_store(e, LANES, V(segment(e)));
    //else
    let e = ((group.y * p.row + group.x) * WG + local) * 4u;
    if (e >= p.total) { return; }
    c_store(e, p.total - e, four(e));
    //end
}
