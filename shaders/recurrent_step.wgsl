// A step of a recurrent layer: the product of the state with the recurrent kernel, and the gates behind it, in one kernel.
// a[b,g,:] = sum over i of y[t,b,0,i] * u[i,g,:] + u[U,g,:], z = x[b,place,g,:] + a[b,g,:]
// LSTM: i, f, o = sigmoid(z), g = tanh(z); c' = f c + i g, h' = o tanh(c'); y[t+1,b] = (h', c', i, f, g, o)
// GRU: z, r = sigmoid(z), n = tanh(x + r a); h' = z h + (1 - z) n; y[t+1,b] = (h', z, r, n, a of n)
// else: h' = tanh(z); y[t+1,b] = (h'). Where MASKED and the mask is false, the state stays.
// 0 x: [B,T,G,U] read    1 u: [U+1,G,U] read    last y: [T+1,B,P,U] read and write, p: uniform; if MASKED 2 mask: [B,T] read
// Host declares: T, WG, P, the bindings from 2 on; G gates; TM = TI*TR rows of the batch are one thread's. LANES: a workgroup is a
// subgroup of eight, TR is 8. ONCE: gates are computed in a loop over rows, whose sums all threads share where SHARED.
// Grid: ceil(B/TM * U/4 / WG) workgroups; LANES: ceil(B/TM) * ceil(U/4 / 8).   One thread per TM rows and four units.
@group(0) @binding(0) var<storage, read> x: array<vec4<T>>;
@group(0) @binding(1) var<storage, read> u: array<vec4<T>>;

struct Params {
    batch: u32,  // B
    quads: u32,  // U / 4
    steps: u32,  // T
    step: u32,   // t
    place: u32,  // the step in x
    total: u32,  // threads
    row: u32,    // workgroups along x
}

//if ONCE
//if SHARED
var<workgroup> sums: array<vec4<f32>, WG * $TMu * $Gu>;
//else
var<private> sums: array<vec4<f32>, $TMu * $Gu>;
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
    let old_$i = (p.step * p.batch + min(b0 + 8u * $iu + lane, p.batch - 1u)) * P * p.quads;
    //end
    //else
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    let b0 = e / p.quads * $TMu;
    let unit = e % p.quads;
    let j = unit;
    //for i in TI
    let old_$i = (p.step * p.batch + min(b0 + $iu, p.batch - 1u)) * P * p.quads;
    //end
    //end
    //for i in TI
    //for r in TR
    //for g in G
    var sum_$i_$r_$g = vec4<f32>(u[(4u * p.quads * $Gu + $gu) * p.quads + j]);
    //end
    //end
    //end
    for (var k = 0u; k < p.quads; k++) {
        //for i in TI
        let h_$i = y[old_$i + k];
        //end
        //for c in 4
        //for g in G
        let u_$c_$g = vec4<f32>(u[((4u * k + $cu) * $Gu + $gu) * p.quads + j]);
        //end
        //for i in TI
        //for r in TR
        //if LANES
        let h_$c_$i_$r = vec4<f32>(subgroupBroadcast(h_$i[$c], $ru));
        //else
        let h_$c_$i_$r = vec4<f32>(h_$i[$c]);
        //end
        //for g in G
        sum_$i_$r_$g = fma(h_$c_$i_$r, u_$c_$g, sum_$i_$r_$g);
        //end
        //end
        //end
        //end
    }
    if (unit >= p.quads) { return; }
    //if ONCE
    //if SHARED
    // Each thread reads its own.
    let first = local * $TMu * $Gu;
    //else
    let first = 0u;
    //end
    //for i in TI
    //for r in TR
    //for g in G
    sums[first + ($iu * $TRu + $ru) * $Gu + $gu] = sum_$i_$r_$g;
    //end
    //end
    //end
    for (var r = 0u; r < min($TMu, p.batch - b0); r++) {
        finish(b0 + r, j, array<vec4<f32>, $Gu>(
        //for g in G
            sums[first + r * $Gu + $gu],
        //end
        ));
    }
    //else
    //for i in TI
    //for r in TR
    if (b0 + $iu * $TRu + $ru < p.batch) {
        finish(b0 + $iu * $TRu + $ru, j, array<vec4<f32>, $Gu>(
        //for g in G
            sum_$i_$r_$g,
        //end
        ));
    }
    //end
    //end
    //end
}

// Computes the new state of row b and the units j.
fn finish(b: u32, j: u32, own: array<vec4<f32>, $Gu>) {
    let old = (p.step * p.batch + b) * P * p.quads + j;
    let at = ((b * p.steps + p.place) * $Gu) * p.quads + j;
    //for g in G
    let now_$g = vec4<f32>(x[at + $gu * p.quads]);
    //end
    let next = old + p.batch * P * p.quads;
    let before = y[old];
    //if LSTM
    let i = sigmoid_4(now_0 + own[0]);
    let f = sigmoid_4(now_1 + own[1]);
    let g = tanh_4(now_2 + own[2]);
    let o = sigmoid_4(now_3 + own[3]);
    let c_before = y[old + p.quads];
    var c = f * c_before + i * g;
    var h = o * tanh_4(c);
    //end
    //if GRU
    let z = sigmoid_4(now_0 + own[0]);
    let r = sigmoid_4(now_1 + own[1]);
    let n = tanh_4(now_2 + r * own[2]);
    var h = z * before + (1.0 - z) * n;
    //end
    //if SIMPLE
    var h = tanh_4(now_0 + own[0]);
    //end
    //if MASKED
    let seen = mask[b * p.steps + p.place] != 0u;
    h = select(before, h, seen);
    //if LSTM
    c = select(c_before, c, seen);
    //end
    //end
    y[next] = h;
    //if LSTM
    y[next + p.quads] = c;
    y[next + 2u * p.quads] = i;
    y[next + 3u * p.quads] = f;
    y[next + 4u * p.quads] = g;
    y[next + 5u * p.quads] = o;
    //end
    //if GRU
    y[next + p.quads] = z;
    y[next + 2u * p.quads] = r;
    y[next + 3u * p.quads] = n;
    y[next + 4u * p.quads] = own[2];
    //end
}
