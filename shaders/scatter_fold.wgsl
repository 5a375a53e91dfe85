// Folds the rows of each segment into a buffer of words by an atomic operation whose order makes no difference: a sum of
// integers, a maximum or a minimum of keys that order as the elements do.
// y[b,ids[b,s],n] = fold of word(b*S*N + s*N + n, s) over s
// 0 ids: [B,S] read    1 y: [B,R,N] read and write    2 p: uniform    where x is read: 1 x: [B,S,N] read, 2 y, 3 p
// Host declares: WG, the bindings, word(e, s), and fold(at, word).   Grid: ceil(B*S*N / WG) workgroups.   One thread per element.
@group(0) @binding(0) var<storage, read> ids: array<i32>;

struct Params {
    count: u32,   // S
    rows: u32,    // R
    inner: u32,   // N
    total: u32,   // B*S*N
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    let bs = e / p.inner;
    // A negative number wraps to a large one and so belongs to no segment.
    let r = u32(ids[bs]);
    if (r < p.rows) {
        let b = bs / p.count;
        fold((b * p.rows + r) * p.inner + e % p.inner, word(e, bs - b * p.count));
    }
}
