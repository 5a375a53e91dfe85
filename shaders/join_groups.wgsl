// Puts the results of groups, which lie one group after another, side by side.
// y[m, g * K + k] = x[g, m, k]
// 0 x: [G,M,K] read    1 y: [M,G*K] read and write    2 p: uniform
// Host declares: V (vector of four results), WG, four(e), which reads the elements e to e + 3 of x at place(e), and
// c_store(at, count, v).
// Grid: ceil(G*M*K / 4 / WG) workgroups.   One thread per four elements of y.

@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    total: u32,   // elements of y
    rows: u32,    // M
    each: u32,    // K, and G*K
    all: u32,
    row: u32,     // workgroups along x
}

fn place(e: u32) -> u32 {
    let column = e % p.all;
    return (column / p.each * p.rows + e / p.all) * p.each + column % p.each;
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = ((group.y * p.row + group.x) * WG + local) * 4u;
    if (e >= p.total) { return; }
    c_store(e, p.total - e, four(e));
}
