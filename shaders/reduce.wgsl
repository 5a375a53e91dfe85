// One reduction of a tensor over some of its axes, or one stage of it: each thread folds one chunk of one
// result's elements in a fixed order.
// y[o] = fold over r of x[base(o) + offset(r)]; with several chunks y is [O,C] or [C,O] and is folded again.
// 0 x: read    1 y: [O] or chunks read and write    2 p: uniform
// Host declares: T (stored), A (folded), WG, INTERLEAVED, first(), fold(a, b), load(t), store(a), Params,
// base(o), offset(r).   Grid: ceil(O*C / WG) workgroups.   One thread per result and chunk.
@group(0) @binding(0) var<storage, read> x: array<T>;
@group(0) @binding(1) var<storage, read_write> y: array<T>;
@group(0) @binding(2) var<uniform> p: Params;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.outputs * p.chunks) { return; }
    var a = first();
    if (INTERLEAVED == 1u) {
        // Neighbouring threads read neighbouring elements of one result.
        let start = base(e / p.chunks);
        for (var r = e % p.chunks; r < p.len; r += p.chunks) {
            a = fold(a, load(x[start + offset(r)]));
        }
    } else {
        // Neighbouring threads belong to neighbouring results.
        let start = base(e % p.outputs);
        let c = e / p.outputs;
        let end = min((c + 1u) * p.chunk, p.len);
        for (var r = c * p.chunk; r < end; r++) {
            a = fold(a, load(x[start + offset(r)]));
        }
    }
    y[e] = store(a);
}
