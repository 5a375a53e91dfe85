// A segment may have more rows than one thread may add up, so the host cuts the sorted places into chunks. For each
// chunk this adds up (if PROD, multiplies) the rows at its beginning that belong to a segment which began before it.
// carries[b,c,n] = sum over j from c*chunk on, while in that segment and in chunk c, of x[places[j],n]
// 0 x: [B*S,N] read  1 ids: [B*S] read  2 found: as in segment_spread.wgsl, read  3 carries: [B,C,N] read and write  4 p: uniform
// Written out by the host (src/wgsl/template.rs).
// Host declares: X (one sum, or a vector of four), LANES (how many sums), WG, and load(at) for x.
// Grid: ceil(B*C*N / LANES / WG) workgroups.   One thread per sum or four.
@group(0) @binding(1) var<storage, read> ids: array<i32>;
@group(0) @binding(2) var<storage, read> found: array<u32>;
@group(0) @binding(3) var<storage, read_write> carries: array<X>;
@group(0) @binding(4) var<uniform> p: Params;

struct Params {
    count: u32,   // S
    rows: u32,    // R
    chunks: u32,  // C
    chunk: u32,   // places of a chunk
    inner: u32,   // N
    total: u32,   // B*C*N
    ranges: u32,  // B*S, where range begins in found
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let q = (group.y * p.row + group.x) * WG + local;
    let e = q * LANES;
    if (e >= p.total) { return; }
    let n = e % p.inner;
    let c = (e / p.inner) % p.chunks;
    let b = e / (p.inner * p.chunks);
    let first = b * p.count + c * p.chunk;
    //if PROD
    var sum = X(1);
    //else
    var sum = X(0);
    //end
    // Places behind the last segment are not there.
    if (first < found[p.ranges + 2u * (b + 1u) * p.rows - 1u]) {
        let range = p.ranges + 2u * (b * p.rows + u32(ids[found[first]]));
        let end = select(first, min(found[range + 1u], first + p.chunk), found[range] < first);
        for (var j = first; j < end; j++) {
            //if PROD
            sum *= load(found[j] * p.inner + n);
            //else
            sum += load(found[j] * p.inner + n);
            //end
        }
    }
    carries[q] = sum;
}
