// Adds the splits of a product's sums in order: the second pass of split-K.
// y[i] = sum over s of x[s,i]
// 0 x: [S,L] read    1 y: [L] read and write    2 p: uniform
// Written out by the host (src/wgsl/template.rs): SHARED where WG / SIDE threads share the parts of four elements.
// Host declares: V (vector of four sums), WG, SIDE (how many fours a workgroup has), load(at) for the elements at to at + 3 of
// x, and c_store(at, count, v).
// Grid: ceil(L / 4 / SIDE) workgroups.   One thread per four elements of y, or several if SHARED.
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    len: u32,     // L
    parts: u32,   // S
    row: u32,     // workgroups along x
}

//if SHARED
var<workgroup> sums: array<V, WG>;
//end

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let i = ((group.y * p.row + group.x) * SIDE + local % SIDE) * 4u;
    //if SHARED
    // All threads stay, as they meet at barriers.
    let at = select(0u, i, i < p.len);
    let share = local / SIDE;
    var sum = V();
    for (var s = share; s < p.parts; s += WG / SIDE) {
        sum += load(s * p.len + at);
    }
    sums[local] = sum;
    for (var half = WG / SIDE / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (share < half) {
            sums[local] += sums[local + half * SIDE];
        }
    }
    if (share == 0u && i < p.len) { c_store(i, p.len - i, sums[local]); }
    //else
    if (i >= p.len) { return; }
    var sum = load(i);
    for (var s = 1u; s < p.parts; s++) {
        sum += load(s * p.len + i);
    }
    c_store(i, p.len - i, sum);
    //end
}
