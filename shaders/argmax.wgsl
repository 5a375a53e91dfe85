// Finds the index of the largest (or smallest) element along an axis: the first of equal ones.
// y[o] = the r for which x[base(o) + offset(r)] is best; with several chunks, a first kernel finds the best of each
// chunk (PARTIAL), and a second one the best of those.
// 0 x: read    1 y: [O] or [O,C] read and write    2 p: uniform    when FINAL: 1 places: [O,C] read, 2 y, 3 p
// Host declares: T, WG, better(a, b), Params, base(o), offset(r), and the bindings with place(o, c).
// Grid: ceil(O*C / WG) workgroups.   One thread per result and chunk.
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.outputs * p.chunks) { return; }
    let o = e / p.chunks;
    let c = e % p.chunks;
    let start = base(o);
    let end = min((c + 1u) * p.chunk, p.len);
    var best = place(o, c * p.chunk);
    for (var r = c * p.chunk + 1u; r < end; r++) {
        let other = place(o, r);
        if (better(x[start + offset(other)], x[start + offset(best)])) {
            best = other;
        }
    }
    y[e] = i32(best);
}
