// The gradient of a step of a recurrent layer (recurrent_step.wgsl), from the last step to the first: the product of what the
// step behind passes back with the recurrent kernel, and the gates' slopes behind it (recurrent_slopes.wgsl), in one kernel.
// recurrent_walk_grad.wgsl has the steps on a GPU.
// a[b,:] = sum over g, i of q[t+1,b,g,i] * w[g,i,:]
// 0 y: [T+1,B,P,U] read    1 dy: as y, read    2 w: [G,U,U] read    last q: [T,B,Q,U] read and write, p: uniform
// if MASKED 3 mask: [B,T] read
// Host declares: T, WG, P, Q, CARRY, the bindings from 3 on, recurrent_slopes.wgsl; G gates; TM = TI*TR, LANES as in
// recurrent_step.wgsl.
// Grid: ceil(B/TM * U/4 / WG) workgroups; LANES: ceil(B/TM) * ceil(U/4 / 8).   One thread per TM rows and four units.
@group(0) @binding(0) var<storage, read> y: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> dy: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> w: array<vec4<T>>;

struct Params {
    batch: u32,  // B
    quads: u32,  // U / 4
    steps: u32,  // T
    step: u32,   // t
    place: u32,  // the step in x
    sums: u32,   // G*U / 4, or 0 for the last step
    total: u32,  // threads
    row: u32,    // workgroups along x
}

fn wide() -> u32 { return p.quads; }

//if LANES
var<workgroup> sums: array<vec4<f32>, WG * $TMu>;
//else
var<private> sums: array<vec4<f32>, $TMu>;
//end

@compute @workgroup_size(WG)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
    //if LANES
    @builtin(subgroup_invocation_id) lane: u32,
    //end
) {
    //if LANES
    // The threads of a workgroup have the same rows; each loads some of them and hands them to the others.
    let tile = group.y * p.row + group.x;
    let tiles = (p.quads + WG - 1u) / WG;
    if (tile / tiles * $TMu >= p.batch) { return; }
    let b0 = tile / tiles * $TMu;
    let unit = tile % tiles * WG + local;
    let j = min(unit, p.quads - 1u);
    //for i in TI
    let behind_$i = ((p.step + 1u) * p.batch + min(b0 + 8u * $iu + lane, p.batch - 1u)) * Q * p.quads;
    //end
    //else
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    let b0 = e / p.quads * $TMu;
    let unit = e % p.quads;
    let j = unit;
    //for i in TI
    let behind_$i = ((p.step + 1u) * p.batch + min(b0 + $iu, p.batch - 1u)) * Q * p.quads;
    //end
    //end
    //for i in TI
    //for r in TR
    var sum_$i_$r = vec4<f32>(0.0);
    //end
    //end
    for (var k = 0u; k < p.sums; k++) {
        //for i in TI
        let q_$i = q[behind_$i + k];
        //end
        //for c in 4
        let w_$c = vec4<f32>(w[(4u * k + $cu) * p.quads + j]);
        //for i in TI
        //for r in TR
        //if LANES
        sum_$i_$r = fma(vec4<f32>(subgroupBroadcast(q_$i[$c], $ru)), w_$c, sum_$i_$r);
        //else
        sum_$i_$r = fma(vec4<f32>(q_$i[$c]), w_$c, sum_$i_$r);
        //end
        //end
        //end
        //end
    }
    if (unit >= p.quads) { return; }
    //if LANES
    // Each thread reads its own.
    let first = local * $TMu;
    //else
    let first = 0u;
    //end
    //for i in TI
    //for r in TR
    sums[first + $iu * $TRu + $ru] = sum_$i_$r;
    //end
    //end
    for (var r = 0u; r < min($TMu, p.batch - b0); r++) { finish(b0 + r, j, sums[first + r]); }
}

fn finish(b: u32, j: u32, sum: E) {
    let next = (p.step * p.batch + b) * Q * p.quads + j;
    var passed: Passed;
    if (p.sums > 0u) { passed = passed_at(next + p.batch * Q * p.quads); }
    go_back(next, counts(b, p.place), stored_at((p.step * p.batch + b) * P * p.quads + j), sum, passed);
}
