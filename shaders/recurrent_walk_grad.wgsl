// The gradients of steps of a recurrent layer on a GPU (recurrent_walk.wgsl), from the last step to the first. The threads of a
// workgroup share the sums in the same way; the slopes are in recurrent_slopes.wgsl.
// a[b,:] = sum over g, i of q[t+1,b,g,i] * w[g,i,:]
// WALKS: a workgroup has all units of its rows, and goes through the steps by itself.
// 0 y: [T+1,B,P,U] read    1 dy: as y, read    2 w: [G,U,U] read    last q: [T,B,Q,U] read and write, p: uniform
// if MASKED 3 mask: [B,T] read
// Host declares: T, P, Q, CARRY, the bindings from 3 on, recurrent_slopes.wgsl, recurrent_team.wgsl (the rows are G*U long); G gates.
// Grid: ceil(B/TR) * ceil(U/4 / tile) workgroups; one if WALKS for each TR rows.
@group(0) @binding(0) var<storage, read> y: array<E>;
@group(0) @binding(1) var<storage, read> dy: array<E>;
@group(0) @binding(2) var<storage, read> w: array<vec4<T>>;

fn weight(at: u32) -> vec4<f32> { return vec4<f32>(w[at]); }
//if WALKS
//else
fn stored_quad(k: u32) -> vec4<f32> { return q[k]; }
//end

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let team = group.y * p.row + group.x;
    let tiles = (p.quads + p.tile - 1u) / p.tile;
    let b0 = team / tiles * $TRu;
    // The grid may be folded, so the last row of workgroups may lie beyond the end.
    if (b0 >= p.batch) { return; }
    let tile = team % tiles;

    // A thread adds up a slice for four units. Units beyond the last repeat it; nobody stores them.
    let slice = local / p.tile;
    let whole = p.quads * $Gu;
    let begin = min(slice * p.part, whole);
    let last = min(begin + p.part, whole);
    let stride = p.quads;
    let weights = min(tile * p.tile + local % p.tile, p.quads - 1u);

    // The first threads compute slopes, each those of a row and an E.
    let r = local / own_width();
    let own = r < $TRu && b0 + r < p.batch && tile * own_width() + local % own_width() < wide();
    // The others read what is there, so that nobody waits behind a condition.
    let b = b0 + select(0u, r, own);
    let j = tile * own_width() + select(0u, local % own_width(), own);
    let behind = (p.first + 1u) * p.batch;
    var passed: Passed;
    if (p.first + 1u < p.steps) { passed = passed_at((behind + b) * Q * wide() + j); }
    //if WALKS
    for (var i = local; i < wide() * $Gu * $TRu; i += WG) {
        let row = b0 + i / (wide() * $Gu);
        var before = E(0.0);
        if (p.first + 1u < p.steps && row < p.batch) {
            before = q[(behind + row) * Q * wide() + i % (wide() * $Gu)];
        }
        held[i] = before;
    }
    workgroupBarrier();
    //end
    for (var n = 0u; n < p.count; n++) {
        let t = p.first - n;
        let place = select(t, p.steps - 1u - t, p.backwards != 0u);
        // They are under way while the sums are added up.
        let stored = stored_at((t * p.batch + b) * P * wide() + j);
        // No step is behind the last.
        let end = select(last, begin, t + 1u == p.steps);
        let rows = array<u32, $TRu>(
        //for r in TR
            //if WALKS
            $ru * whole,
            //else
            (min(t + 1u, p.steps - 1u) * p.batch + min(b0 + $ru, p.batch - 1u)) * Q * p.quads,
            //end
        //end
        );
        add_up(local, vec4<f32>(0.0), rows, begin, end, weights, stride);
        workgroupBarrier();
        if (own) {
            let unit = local % own_width();
            var sum = sum_at(r * WG, unit);
            for (var s = 1u; s < p.slices; s++) { sum += sum_at(r * WG + s * p.tile, unit); }
            let back = go_back((t * p.batch + b) * Q * wide() + j, counts(b, place), stored, sum, passed);
            passed = back.passed;
            //if WALKS
            //for g in G
            held[(r * $Gu + $gu) * wide() + j] = back.slope_$g;
            //end
            //end
        }
        workgroupBarrier();
    }
}
