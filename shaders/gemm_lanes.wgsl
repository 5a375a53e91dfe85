// As gemm.wgsl, for adapters with subgroups, of whatever size, that have at least LANES threads: the threads of a
// workgroup stand side by side along n and have the same rows, so each subgroup may lie anywhere among them. Each lane
// loads numbers of A for one of LANES rows and broadcasts them to the others, so that a subgroup loads a number of A
// once for all its columns. This pays where a load costs as much as many multiplications.
// y[s,b,m,n] = sum over u in part s, v, i of A(b,m,u,v,i) * B(b,u,v,i,n)
// 0 a: read    1 b: read    2 y: [S,B,M,N] read and write    3 p: uniform
// MASKED instead of TAIL: what lies behind the end of a run counts as zero.
// Host declares: what gemm.wgsl needs, and WX instead of THREADS, a multiple of every size that a subgroup may have, so all are full.
// Grid: S*B*tiles_n*tiles_m workgroups of WX threads; a tile has LANES*TM rows and 4*WX*TN4 columns.
//if ONCE
//if SHARED
var<workgroup> sums: array<V, WX * $LANESu * $TMu * $TN4u>;
//else
var<private> sums: array<V, $LANESu * $TMu * $TN4u>;
//end

//end
@compute @workgroup_size(WX)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(subgroup_invocation_id) invocation: u32,
) {
    let lane = invocation % $LANESu;
    let tile = group.y * p.row + group.x;
    let tile_m = tile % p.tiles_m;
    let tile_n = (tile / p.tiles_m) % p.tiles_n;
    let sb = tile / (p.tiles_n * p.tiles_m);
    let b = sb % p.batch;
    let s = sb / p.batch;
    let m0 = tile_m * $LANESu * $TMu;
    let n0 = (tile_n * WX + thread) * 4u * $TN4u;
    // The grid may be folded, so the last row of workgroups may lie beyond the end. Otherwise all lanes go through the
    // loops, for each holds numbers that the others need.
    if (s >= p.splits) { return; }

    // Rows and columns beyond the edge repeat the last one; they are not stored.
    //for i in TM
    let row_$i = a_row(b, min(m0 + $LANESu * $iu + lane, p.m - 1u));
    //for r in LANES
    //for j in TN4
    var sum_$i_$r_$j = V(Sum(0));
    //end
    //end
    //end
    //for j in TN4
    let column_$j = b_column(b, min(n0 + 4u * $ju, p.n - 1u));
    //end
    //if SUMS_U
    let u_end = min((s + 1u) * p.part, p.u_count);
    for (var u = s * p.part; u < u_end; u++) {
    //else
    let u = s;
    {
    //end
        //if PIECES
        let inner = min(p.inner, p.run - u % p.pieces * p.inner);
        //else
        let inner = min(p.inner, p.k - min(u * p.inner, p.k));
        //end
        //if SINGLY
        let quads = 0u;
        //else
        let quads = inner / 4u * 4u;
        //end
        //if SUMS_V
        for (var v = 0u; v < p.v_count; v++) {
        //else
        let v = 0u;
        {
        //end
            //for i in TM
            let a_$i = a_at(row_$i, u, v);
            //end
            //for j in TN4
            let b_$j = b_at(column_$j, u, v);
            //end
            //if SINGLY
            //else
            //if MASKED
            for (var k = 0u; k < inner; k += 4u) {
                let inside = vec4<u32>(k, k + 1u, k + 2u, k + 3u) < vec4<u32>(inner);
            //else
            for (var k = 0u; k < quads; k += 4u) {
            //end
                //for i in TM
                //if MASKED
                let x_$i = select(V(Sum(0)), a_quad(a_$i, k), inside);
                //else
                let x_$i = a_quad(a_$i, k);
                //end
                //end
                //for j in TN4
                let w_$j = b_quad(b_$j, k);
                //end
                //for c in 4
                //for j in TN4
                //if MASKED
                let w_$j_$c = select(V(Sum(0)), w_$j[$c], inside[$c]);
                //else
                let w_$j_$c = w_$j[$c];
                //end
                //end
                //for i in TM
                //for r in LANES
                let x_$c_$i_$r = subgroupBroadcast(x_$i[$c], $ru);
                //for j in TN4
                sum_$i_$r_$j = mad(x_$c_$i_$r, w_$j_$c, sum_$i_$r_$j);
                //end
                //end
                //end
                //end
            }
            //end
            //if TAIL
            for (var k = quads; k < inner; k++) {
                //for j in TN4
                let w_$j = b_load(b_$j, k);
                //end
                //for i in TM
                let x_$i = a_load(a_$i, k);
                //for r in LANES
                let x_$i_$r = subgroupBroadcast(x_$i, $ru);
                //for j in TN4
                sum_$i_$r_$j = mad(x_$i_$r, w_$j, sum_$i_$r_$j);
                //end
                //end
                //end
            }
            //end
        }
    }
    //if ONCE
    // Stored in one place, so that what is computed behind the product is compiled once. Each thread reads its own.
    //if SHARED
    let own = thread * $LANESu * $TMu * $TN4u;
    //else
    let own = 0u;
    //end
    //for i in TM
    //for r in LANES
    //for j in TN4
    sums[own + ($iu * $LANESu + $ru) * $TN4u + $ju] = sum_$i_$r_$j;
    //end
    //end
    //end
    for (var i = 0u; i < p.sums; i++) {
        let m = m0 + i / $TN4u;
        let n = n0 + 4u * (i % $TN4u);
        if (m < p.m && n < p.n) { c_store((sb * p.m + m) * p.n + n, p.n - n, sums[own + i]); }
    }
    //else
    //for i in TM
    //for r in LANES
    if (m0 + $LANESu * $iu + $ru < p.m) {
        let first = (sb * p.m + m0 + $LANESu * $iu + $ru) * p.n + n0;
        //for j in TN4
        if (n0 + 4u * $ju < p.n) { c_store(first + 4u * $ju, p.n - n0 - 4u * $ju, sum_$i_$r_$j); }
        //end
    }
    //end
    //end
    //end
}
