// Sorts short rows: each element goes where as many elements stand before it as are smaller, or equal and before it.
// y[b,at] = x[b,i] or i, with at = how many x[b,j] < x[b,i], or = x[b,i] and j < i
// 0 x: [B,S] read    1 y: [B,S] read and write    2 p: uniform
// Host declares: WG, x, key(e), y, and put(at, e, i).   Grid: ceil(B*S / WG) workgroups.   One thread per element.
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    len: u32,     // S
    total: u32,   // B*S
    first: u32,   // 1: x has the elements themselves
    step: u32,    // words of x from one key to the next
    flip: u32,    // the bits of a key that are turned round
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    let i = e % p.len;
    let start = e - i;
    let own = key(e);
    var rank = 0u;
    for (var j = 0u; j < p.len; j++) {
        let other = key(start + j);
        rank += select(0u, 1u, other < own || (other == own && j < i));
    }
    put(start + rank, e, i);
}
