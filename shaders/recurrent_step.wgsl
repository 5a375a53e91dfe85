// A step of a recurrent layer: the product of the state with the recurrent kernel, and the gates behind it
// (recurrent_gates.wgsl), in one kernel. recurrent_walk.wgsl has the steps on a GPU.
// a[b,g,:] = sum over i of y[t,b,0,i] * u[i,g,:] + u[U,g,:]
// 0 x: [B,T,G,U] read    1 u: [U+1,G,U] read    last y: [T+1,B,P,U] read and write, p: uniform; if MASKED 2 mask: [B,T] read
// Host declares: T, WG, P, the bindings from 2 on, recurrent_gates.wgsl; G gates; TM = TI*TR rows of the batch are one thread's.
// LANES: a workgroup is a subgroup of eight, TR is 8. Gates stand in a loop, as a driver takes long to compile them for each row.
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

fn wide() -> u32 { return p.quads; }

//if LANES
var<workgroup> sums: array<vec4<f32>, WG * $TMu * $Gu>;
//else
var<private> sums: array<vec4<f32>, $TMu * $Gu>;
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
    //if LANES
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
        finish(b0 + r, j, array<E, $Gu>(
        //for g in G
            sums[first + r * $Gu + $gu],
        //end
        ));
    }
}

// Goes the step for row b and the units j.
fn finish(b: u32, j: u32, own: array<E, $Gu>) {
    let old = (p.step * p.batch + b) * P * p.quads + j;
    next_state(old + p.batch * P * p.quads, counts(b, p.place), inputs(b, p.place, j), own, state_at(old));
}
