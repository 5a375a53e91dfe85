// Finds the index of the largest (or smallest) element along an axis: the first of equal ones.
// y[c,o] = the r of chunk c for which x[base(o) + offset(r)] is best; a second kernel finds the best of the chunks.
// 0 x: read    1 y: [C,O] read and write    2 p: uniform    of the second kernel: 1 places: [R,O] read, 2 y, 3 p
// Written out by the host (src/wgsl/template.rs).
// Host declares: T, WG, THREADS (a power of two), better(a, b), Params, base(o), offset(r), and the bindings with place(o, r).
// Grid: ceil(O*C*THREADS / WG) workgroups.   THREADS threads per result and chunk, side by side if SHARED, else one.
//if SHARED
var<workgroup> values: array<T, WG>;
var<workgroup> indices: array<u32, WG>;
//end

const NONE: u32 = 0xffffffffu;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * (WG / THREADS) + local / THREADS;
    let there = e < p.outputs * p.chunks;
    // Threads next to each other have results next to each other, so columns are read in whole lines.
    let o = e % p.outputs;
    let c = e / p.outputs;
    let start = base(o);
    let first = c * p.chunk + local % THREADS;
    let end = select(0u, min((c + 1u) * p.chunk, p.len), there);
    var best = NONE;
    var value = T();
    if (first < end) {
        best = place(o, first);
        value = x[start + offset(best)];
    }
    for (var r = first + THREADS; r < end; r += THREADS) {
        let other = place(o, r);
        let v = x[start + offset(other)];
        if (better(v, value)) {
            best = other;
            value = v;
        }
    }
    //if SHARED
    values[local] = value;
    indices[local] = best;
    for (var half = THREADS / 2u; half > 0u; half /= 2u) {
        workgroupBarrier();
        if (local % THREADS < half) {
            let other = indices[local + half];
            let v = values[local + half];
            // Of equal elements the first; a thread behind the end has none.
            if (other != NONE && (better(v, value) || (other < best && !better(value, v)))) {
                best = other;
                value = v;
                indices[local] = best;
                values[local] = value;
            }
        }
    }
    //end
    if (there && local % THREADS == 0u) {
        y[e] = i32(best);
    }
}
