// Steps of a recurrent layer on a GPU, where the threads of a workgroup share the sums of a step: each multiplies a slice of the
// state with four columns of the recurrent kernel, and what the slices give is joined in workgroup memory. recurrent_gates.wgsl
// has the gates behind.
// a[b,g,:] = sum over i of y[t,b,0,i] * u[i,g,:] + u[U,g,:]
// WALKS: a workgroup has all units of its rows, and goes through the steps by itself, for no row needs another's state.
// It also puts the state before the first step where y has it.
// 0 x: [B,T,G,U] read    1 u: [U+1,G,U] read    last y: [T+1,B,P,U] read and write, p: uniform
// if WALKS start: [B,S,U] read; if MASKED mask: [B,T] read
// Host declares: T, WG, P, S, the bindings from 2 on, recurrent_gates.wgsl, E, X: E of T; G gates; TR rows of a workgroup; K quads at once; if WALKS
// ROOM, TR*U in E or more.
// Grid: ceil(B/TR) * ceil(U/4 / tile) workgroups; one if WALKS for each TR rows.
@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read> u: array<vec4<T>>;

struct Params {
    batch: u32,     // B
    quads: u32,     // U / 4
    steps: u32,     // T
    first: u32,     // the first step
    count: u32,     // steps
    backwards: u32, // 1 where the first step is the last in x
    tile: u32,      // quads of a workgroup
    slices: u32,    // of the sums
    part: u32,      // quads of a slice
    row: u32,       // workgroups along x
}

// What each thread has added up.
var<workgroup> sums: array<vec4<f32>, WG * $TRu>;
//if WALKS
// h of the rows.
var<workgroup> state: array<E, ROOM>;
//end

//if ONE
fn wide() -> u32 { return 4u * p.quads; }
fn own_width() -> u32 { return 4u * p.tile; }
fn sum_at(at: u32, j: u32) -> E { return sums[at + j / 4u][j % 4u]; }
fn state_quad(k: u32) -> vec4<f32> {
    return vec4<f32>(state[4u * k], state[4u * k + 1u], state[4u * k + 2u], state[4u * k + 3u]);
}
//else
fn wide() -> u32 { return p.quads; }
fn own_width() -> u32 { return p.tile; }
fn sum_at(at: u32, j: u32) -> E { return sums[at + j]; }
//if WALKS
fn state_quad(k: u32) -> vec4<f32> { return state[k]; }
//else
fn state_quad(k: u32) -> vec4<f32> { return y[k]; }
//end
//end

//if WALKS
// The state before the first step, beside which y has zeros for what only steps have.
fn first_state(b: u32, j: u32) -> State {
    let old = b * P * wide() + j;
    y[old] = E(start[b * S * wide() + j]);
    //if LSTM
    y[old + wide()] = E(start[(b * S + 1u) * wide() + j]);
    //end
    for (var part = S; part < P; part++) { y[old + part * wide()] = E(0.0); }
    return state_at(old);
}

//end
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let team = group.y * p.row + group.x;
    let tiles = (p.quads + p.tile - 1u) / p.tile;
    let b0 = team / tiles * $TRu;
    // The grid may be folded, so the last row of workgroups may lie beyond the end.
    if (b0 >= p.batch) { return; }
    let tile = team % tiles;

    // A thread adds up a slice for four columns, each a gate and units. Units beyond the last repeat it; nobody stores them.
    let columns = p.tile * $Gu;
    let slice = local / columns;
    let column = local % columns;
    let begin = min(slice * p.part, p.quads);
    let end = min(begin + p.part, p.quads);
    let stride = p.quads * $Gu;
    let weights = column / p.tile * p.quads + min(tile * p.tile + column % p.tile, p.quads - 1u);
    let bias = select(vec4<f32>(0.0), vec4<f32>(u[4u * p.quads * stride + weights]), slice == 0u);

    // The first threads compute gates, each those of a row and an E.
    let r = local / own_width();
    let own = r < $TRu && b0 + r < p.batch && tile * own_width() + local % own_width() < wide();
    // The others read what is there, so that nobody waits behind a condition.
    let b = b0 + select(0u, r, own);
    let j = tile * own_width() + select(0u, local % own_width(), own);
    var now: State;
    //if WALKS
    if (p.first > 0u) {
        now = state_at((p.first * p.batch + b) * P * wide() + j);
    } else if (own) {
        now = first_state(b, j);
    }
    if (r < $TRu) { state[local] = now.h; }
    workgroupBarrier();
    //else
    now = state_at((p.first * p.batch + b) * P * wide() + j);
    //end
    for (var t = p.first; t < p.first + p.count; t++) {
        let place = select(t, p.steps - 1u - t, p.backwards != 0u);
        // They are under way while the sums are added up.
        let given = inputs(b, place, j);
        //for r in TR
        var sum_$r = bias;
        //if WALKS
        let row_$r = $ru * p.quads;
        //else
        let row_$r = (t * p.batch + min(b0 + $ru, p.batch - 1u)) * P * p.quads;
        //end
        //end
        var at = 4u * begin * stride + weights;
        var k = begin;
        for (; k + $Ku <= end; k += $Ku) {
            //for d in K
            //for c in 4
            let u_$d_$c = vec4<f32>(u[at + (4u * $du + $cu) * stride]);
            //end
            //end
            //for d in K
            //for r in TR
            let h_$d_$r = state_quad(row_$r + k + $du);
            //for c in 4
            sum_$r = fma(vec4<f32>(h_$d_$r[$c]), u_$d_$c, sum_$r);
            //end
            //end
            //end
            at += 4u * $Ku * stride;
        }
        for (; k < end; k++) {
            //for c in 4
            let u_$c = vec4<f32>(u[at + $cu * stride]);
            //end
            //for r in TR
            let h_$r = state_quad(row_$r + k);
            //for c in 4
            sum_$r = fma(vec4<f32>(h_$r[$c]), u_$c, sum_$r);
            //end
            //end
            at += 4u * stride;
        }
        //for r in TR
        sums[$ru * WG + local] = sum_$r;
        //end
        workgroupBarrier();
        if (own) {
            let joined = r * WG;
            let unit = local % own_width();
            //for g in G
            var sum_of_$g = sum_at(joined + $gu * p.tile, unit);
            //end
            for (var s = 1u; s < p.slices; s++) {
                //for g in G
                sum_of_$g += sum_at(joined + s * columns + $gu * p.tile, unit);
                //end
            }
            let all = array<E, $Gu>(
            //for g in G
                sum_of_$g,
            //end
            );
            now = next_state(((t + 1u) * p.batch + b) * P * wide() + j, counts(b, place), given, all, now);
            //if WALKS
            state[local] = now.h;
            //end
        }
        workgroupBarrier();
    }
}
