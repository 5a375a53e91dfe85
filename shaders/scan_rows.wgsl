// As scan.wgsl, for the last axis: a workgroup goes through each chunk of a row, tile by tile, so that neighbouring threads
// read neighbouring elements.
// y[r,i] = start(r,c) and then x[r,j], combined over j, where j and i are in chunk c and j <= i (j < i if EXCLUSIVE)
// 0 x: [R,L] read    1 y: [R,L], or sums: [R,C], read and write    2 p: uniform
// with more inputs, and with carries [R,C], each stands before y
// Host declares: as for scan.wgsl, identity(), WG (256) and EACH, the elements of a thread in a tile.
// Grid: R*C workgroups.   One workgroup per chunk.
struct Params {
    len: u32,     // L
    chunk: u32,   // elements of a chunk, whole tiles
    chunks: u32,  // C
    first: u32,   // 0, or L - 1 where the axis is gone through backwards
    step: i32,    // 1, or -1 backwards
    total: u32,   // R*C
    row: u32,     // workgroups along x
}

var<workgroup> sums: array<A, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = group.y * p.row + group.x;
    if (e >= p.total) { return; }
    let base = e / p.chunks * p.len + p.first;
    let begin = e % p.chunks * p.chunk;
    let end = min(begin + p.chunk, p.len);
    var carry = start(e);
    for (var tile = begin; tile < end; tile += WG * EACH) {
        let mine = tile + local * EACH;
        var sum = identity();
        for (var i = mine; i < min(mine + EACH, end); i++) {
            sum = combine(sum, load(base + i * u32(p.step)));
        }
        sums[local] = sum;
        workgroupBarrier();
        // Each sum takes in those before it, of twice as many threads in every round (Hillis and Steele 1986).
        for (var round = 0u; round < 8u; round++) {
            let back = 1u << round;
            var before = identity();
            if (local >= back) { before = sums[local - back]; }
            workgroupBarrier();
            sum = combine(before, sum);
            sums[local] = sum;
            workgroupBarrier();
        }
        var run = carry;
        if (local > 0u) { run = combine(carry, sums[local - 1u]); }
        for (var i = mine; i < min(mine + EACH, end); i++) {
            let at = base + i * u32(p.step);
            let next = combine(run, load(at));
            put(at, select(next, run, EXCLUSIVE));
            run = next;
        }
        carry = combine(carry, sums[WG - 1u]);
        workgroupBarrier();
    }
    if (local == 0u) { finish(e, carry); }
}
