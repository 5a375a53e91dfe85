// Steps of a recurrent layer on a GPU, where the threads of a workgroup share the sums of a step (recurrent_team.wgsl): each
// multiplies a slice of the state with four columns of the recurrent kernel, and workgroup memory joins the slices. The gates are in
// recurrent_gates.wgsl.
// a[b,g,:] = sum over i of y[t,b,0,i] * u[i,g,:] + u[U,g,:]
// WALKS: a workgroup has all units of its rows, and goes through the steps by itself, for no row needs another's state.
// It also puts the state before the first step where y has it.
// 0 x: [B,T,G,U] read    1 u: [U+1,G,U] read    last y: [T+1,B,P,U] read and write, p: uniform
// if WALKS start: [B,S,U] read; if MASKED mask: [B,T] read
// Host declares: T, P, S, the bindings from 2 on, recurrent_gates.wgsl, recurrent_team.wgsl (the rows are U long), X: E of T; G gates.
// Grid: ceil(B/TR) * ceil(U/4 / tile) workgroups; one if WALKS for each TR rows.
@group(0) @binding(0) var<storage, read> x: array<X>;
@group(0) @binding(1) var<storage, read> u: array<vec4<T>>;

fn weight(at: u32) -> vec4<f32> { return vec4<f32>(u[at]); }
//if WALKS
//else
fn stored_quad(k: u32) -> vec4<f32> { return y[k]; }
//end

//if WALKS
// Puts the state before the first step into y, with zeros for what only steps have, and returns it.
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
    if (r < $TRu) { held[local] = now.h; }
    workgroupBarrier();
    //else
    now = state_at((p.first * p.batch + b) * P * wide() + j);
    //end
    for (var t = p.first; t < p.first + p.count; t++) {
        let place = select(t, p.steps - 1u - t, p.backwards != 0u);
        // They are under way while the sums are added up.
        let given = inputs(b, place, j);
        let rows = array<u32, $TRu>(
        //for r in TR
            //if WALKS
            $ru * p.quads,
            //else
            (t * p.batch + min(b0 + $ru, p.batch - 1u)) * P * p.quads,
            //end
        //end
        );
        add_up(local, bias, rows, begin, end, weights, stride);
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
            held[local] = now.h;
            //end
        }
        workgroupBarrier();
    }
}
