// Turns a map of places round; numbers outside the rows go nowhere.
// y[b,to[b,i]] = i
// 0 to: [B,I] read    1 y: [B,R] read and write    2 p: uniform
// Host declares: WG.   Grid: ceil(B*I / WG) workgroups.   One thread per number of to.
@group(0) @binding(0) var<storage, read> to: array<i32>;
@group(0) @binding(1) var<storage, read_write> y: array<i32>;
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    count: u32,   // I
    rows: u32,    // R
    total: u32,   // B*I
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    // A negative number wraps to a large one.
    let r = u32(to[e]);
    if (r < p.rows) {
        y[(e / p.count) * p.rows + r] = i32(e % p.count);
    }
}
