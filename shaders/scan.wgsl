// Combines the elements along an axis up to each one. One thread goes through each chunk of the axis.
// y[o,i,n] = start(o,c,n) and then x[o,j,n], combined over j, where j and i are in chunk c and j <= i (j < i if EXCLUSIVE)
// 0 x: [O,L,N] read    1 y: [O,L,N], or sums: [O,C,N], read and write    2 p: uniform
// with more inputs, and with carries [O,C,N], each stands before y
// Host declares: A (what is combined), WG, EXCLUSIVE, the bindings, combine(a, b) with a before b, load(at) from the inputs,
// start(e) from the carries, put(at, a) for y, and finish(e, a) for the chunks' sums.
// Grid: ceil(O*C*N / WG) workgroups.   One thread per chunk.
struct Params {
    len: u32,     // L
    inner: u32,   // N
    chunk: u32,   // elements of a chunk
    chunks: u32,  // C
    first: u32,   // 0, or L - 1 where the axis is gone through backwards
    step: i32,    // N, or -N backwards
    total: u32,   // O*C*N
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    let n = e % p.inner;
    let c = (e / p.inner) % p.chunks;
    let o = e / (p.inner * p.chunks);
    let begin = c * p.chunk;
    let count = min(p.chunk, p.len - begin);
    // Backwards the places are counted from the last one.
    let place = select(begin, p.first - begin, p.step < 0);
    var at = (o * p.len + place) * p.inner + n;
    var sum = start(e);
    for (var i = 0u; i < count; i++) {
        let next = combine(sum, load(at));
        put(at, select(next, sum, EXCLUSIVE));
        sum = next;
        at += u32(p.step);
    }
    finish(e, sum);
}
