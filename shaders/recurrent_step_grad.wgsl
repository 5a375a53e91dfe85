// The gradient of a step of a recurrent layer (recurrent_step.wgsl), from the last step to the first: the product of what the
// step behind passes back with the recurrent kernel, and the gates' slopes behind it, in one kernel.
// dh = dy[t+1,b,0,:] + q[t+1,b,carry,:] + sum over g, i of q[t+1,b,g,i] * w[g,i,:]
// LSTM: dc = dy[t+1,b,1,:] + q[t+1,b,5,:] + dh o (1 - tanh(c)^2); q[t,b] = (slopes of i, f, g, o by z; 0; dc f)
// GRU: q[t,b] = (slopes of z, r by their sums; that of n by a; that of n by x; dh z)
// else: q[t,b] = (the slope of h by z; 0). Where MASKED and the mask is false, what comes back is passed on.
// GATES: what dy has for the gates is added to their gradients, as dy[t+1,b,p,:] * i (1 - i).
// 0 y: [T+1,B,P,U] read    1 dy: as y, read    2 w: [G,U,U] read    last q: [T,B,Q,U] read and write, p: uniform
// if MASKED 3 mask: [B,T] read
// Host declares: T, WG, P, Q, CARRY, the bindings from 3 on; G gates; TM = TI*TR, LANES, ONCE, SHARED as in recurrent_step.wgsl.
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

//if ONCE
//if SHARED
var<workgroup> sums: array<vec4<f32>, WG * $TMu>;
//else
var<private> sums: array<vec4<f32>, $TMu>;
//end

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
    //if ONCE
    //if SHARED
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
    //else
    //for i in TI
    //for r in TR
    if (b0 + $iu * $TRu + $ru < p.batch) { finish(b0 + $iu * $TRu + $ru, j, sum_$i_$r); }
    //end
    //end
    //end
}

fn finish(b: u32, j: u32, sum: vec4<f32>) {
    let old = (p.step * p.batch + b) * P * p.quads + j;
    let own = old + p.batch * P * p.quads;
    let next = (p.step * p.batch + b) * Q * p.quads + j;
    let behind = next + p.batch * Q * p.quads;
    var dh = dy[own] + sum;
    if (p.sums > 0u) { dh += q[behind + CARRY * p.quads]; }
    var stays = vec4<f32>(0.0);
    var seen = vec4<f32>(1.0);
    //if MASKED
    seen = vec4<f32>(select(0.0, 1.0, mask[b * p.steps + p.place] != 0u));
    stays = dh * (1.0 - seen);
    dh *= seen;
    //end
    //if LSTM
    let i = y[own + 2u * p.quads];
    let f = y[own + 3u * p.quads];
    let g = y[own + 4u * p.quads];
    let o = y[own + 5u * p.quads];
    let c = tanh_4(y[own + p.quads]);
    var dc = dy[own + p.quads];
    if (p.sums > 0u) { dc += q[behind + 5u * p.quads]; }
    let stays_c = dc * (1.0 - seen);
    dc = dc * seen + dh * o * (1.0 - c * c);
    //if GATES
    q[next] = (dc * g + dy[own + 2u * p.quads]) * i * (1.0 - i);
    q[next + p.quads] = (dc * y[old + p.quads] + dy[own + 3u * p.quads]) * f * (1.0 - f);
    q[next + 2u * p.quads] = (dc * i + dy[own + 4u * p.quads]) * (1.0 - g * g);
    q[next + 3u * p.quads] = (dh * c + dy[own + 5u * p.quads]) * o * (1.0 - o);
    //else
    q[next] = dc * g * i * (1.0 - i);
    q[next + p.quads] = dc * y[old + p.quads] * f * (1.0 - f);
    q[next + 2u * p.quads] = dc * i * (1.0 - g * g);
    q[next + 3u * p.quads] = dh * c * o * (1.0 - o);
    //end
    q[next + 5u * p.quads] = dc * f + stays_c;
    //end
    //if GRU
    let z = y[own + p.quads];
    let r = y[own + 2u * p.quads];
    let n = y[own + 3u * p.quads];
    //if GATES
    let dn = (dh * (1.0 - z) + dy[own + 3u * p.quads]) * (1.0 - n * n);
    q[next] = (dh * (y[old] - n) + dy[own + p.quads]) * z * (1.0 - z);
    q[next + p.quads] = (dn * y[own + 4u * p.quads] + dy[own + 2u * p.quads]) * r * (1.0 - r);
    q[next + 2u * p.quads] = dn * r + dy[own + 4u * p.quads];
    //else
    let dn = dh * (1.0 - z) * (1.0 - n * n);
    q[next] = dh * (y[old] - n) * z * (1.0 - z);
    q[next + p.quads] = dn * y[own + 4u * p.quads] * r * (1.0 - r);
    q[next + 2u * p.quads] = dn * r;
    //end
    q[next + 3u * p.quads] = dn;
    stays += dh * z;
    //end
    //if SIMPLE
    let h = y[own];
    q[next] = dh * (1.0 - h * h);
    //end
    q[next + CARRY * p.quads] = stays;
}
