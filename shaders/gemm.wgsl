// Computes the product that matmul and the convolutions share, on any adapter. Each thread keeps TM = TR*TM4 rows by
// 4*TN4 columns in registers, so that it uses every number that it loads TM or 4*TN4 times. The summed index k is a
// triple (u, v, i), so that the inner loop needs no division; the loop takes four i at once.
// y[s,b,m,n] = sum over u in part s, v, i of A(b,m,u,v,i) * B(b,u,v,i,n)
// 0 a: read    1 b: read    2 y: [S,B,M,N] read and write    3 p: uniform
// Written out by the host (src/wgsl/template.rs): BLOCKS where TR is 4, so that rows are loaded by fours; TAIL where the run of
// i does not end at a multiple of four; SINGLY where the operands lie in no vectors, so that nothing is gained by taking
// four i at once; PIECES where v is part of u, and the run of i too, which is cut into pieces; SUMS_U and
// SUMS_V where there may be several u in a part, and several v; ONCE where results are stored in a loop over `sums`, which
// all threads share where SHARED.
// Host declares: Sum, V (vector of four Sum), THREADS, mad(x, v, c), the bindings, Params with m, n, k, batch, tiles_m,
// tiles_n, across (how many of a workgroup's threads stand side by side along n), splits, part, u_count, v_count, inner,
// row, and the loaders: a_row(b, m), a_at(row, u, v), a_load(at, i) and
// a_quad(at, i) for i to i + 3, and a_block(at of m to m + 3, i) for the four rows m to m + 3 at i to i + 3; b_column(b, n), b_at(column, u, v), b_load(at, i) for the four columns n to n + 3 and
// b_quad(at, i) for i to i + 3 of these; and c_store(at, count, v).
// Grid: S*B*tiles_n*tiles_m workgroups of THREADS threads.
//if ONCE
//if SHARED
var<workgroup> sums: array<V, THREADS * $TM4u * $TRu * $TN4u>;
//else
var<private> sums: array<V, $TM4u * $TRu * $TN4u>;
//end

//end
@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let tile = group.y * p.row + group.x;
    let tile_m = tile % p.tiles_m;
    let tile_n = (tile / p.tiles_m) % p.tiles_n;
    let sb = tile / (p.tiles_n * p.tiles_m);
    let b = sb % p.batch;
    let s = sb / p.batch;
    let m0 = (tile_m * (THREADS / p.across) + local / p.across) * $TRu * $TM4u;
    let n0 = (tile_n * p.across + local % p.across) * 4u * $TN4u;
    // The grid may be folded, so the last row of workgroups may lie beyond the end.
    if (s >= p.splits || m0 >= p.m || n0 >= p.n) { return; }

    // Rows and columns beyond the edge repeat the last one; they are not stored.
    //for q in TM4
    //for r in TR
    let row_$q_$r = a_row(b, min(m0 + 4u * $qu + $ru, p.m - 1u));
    //for j in TN4
    var sum_$q_$r_$j = V(Sum(0));
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
            //for q in TM4
            //for r in TR
            let a_$q_$r = a_at(row_$q_$r, u, v);
            //end
            //end
            //for j in TN4
            let b_$j = b_at(column_$j, u, v);
            //end
            //if SINGLY
            //else
            for (var k = 0u; k < quads; k += 4u) {
                //for q in TM4
                //if BLOCKS
                let x_$q = a_block(a_$q_0, a_$q_1, a_$q_2, a_$q_3, k);
                //else
                //for r in TR
                let x_$q_$r = a_quad(a_$q_$r, k);
                //end
                //end
                //end
                //for j in TN4
                let w_$j = b_quad(b_$j, k);
                //for c in 4
                //for q in TM4
                //for r in TR
                //if BLOCKS
                sum_$q_$r_$j = mad(x_$q[$c][$r], w_$j[$c], sum_$q_$r_$j);
                //else
                sum_$q_$r_$j = mad(x_$q_$r[$c], w_$j[$c], sum_$q_$r_$j);
                //end
                //end
                //end
                //end
                //end
            }
            //end
            //if TAIL
            for (var k = quads; k < inner; k++) {
                //for q in TM4
                //for r in TR
                let x_$q_$r = a_load(a_$q_$r, k);
                //end
                //end
                //for j in TN4
                let w_$j = b_load(b_$j, k);
                //for q in TM4
                //for r in TR
                sum_$q_$r_$j = mad(x_$q_$r, w_$j, sum_$q_$r_$j);
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
    let own = local * $TM4u * $TRu * $TN4u;
    //else
    let own = 0u;
    //end
    //for q in TM4
    //for r in TR
    //for j in TN4
    sums[own + ($qu * $TRu + $ru) * $TN4u + $ju] = sum_$q_$r_$j;
    //end
    //end
    //end
    for (var i = 0u; i < p.sums; i++) {
        let m = m0 + i / $TN4u;
        let n = n0 + 4u * (i % $TN4u);
        if (m < p.m && n < p.n) { c_store((sb * p.m + m) * p.n + n, p.n - n, sums[own + i]); }
    }
    //else
    //for q in TM4
    //for r in TR
    if (m0 + 4u * $qu + $ru < p.m) {
        let first = (sb * p.m + m0 + 4u * $qu + $ru) * p.n + n0;
        //for j in TN4
        if (n0 + 4u * $ju < p.n) { c_store(first + 4u * $ju, p.n - n0 - 4u * $ju, sum_$q_$r_$j); }
        //end
    }
    //end
    //end
    //end
}
