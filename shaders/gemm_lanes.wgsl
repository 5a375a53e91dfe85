// As gemm.wgsl, for adapters whose subgroups have exactly 8 threads: a workgroup is one subgroup, whose lanes stand side
// by side along n. Each lane loads numbers of A for its own rows and the others get them by broadcast, so that a number
// of A is loaded once for all columns of the tile. Pays where a load is as dear as many multiplications.
// y[s,b,m,n] = sum over u in part s, v, i of A(b,m,u,v,i) * B(b,u,v,i,n)
// 0 a: read    1 b: read    2 y: [S,B,M,N] read and write    3 p: uniform
// Host declares: what gemm.wgsl needs but WX and WY.
// Grid: S*B*tiles_n*tiles_m workgroups of 8 threads; a tile has 8*TM8 rows and 32*TN4 columns.
var<workgroup> sums: array<V, TM8u * TN4u * 64u>;

@compute @workgroup_size(8)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(subgroup_invocation_id) lane: u32) {
    let tile = group.y * p.row + group.x;
    let tile_m = tile % p.tiles_m;
    let tile_n = (tile / p.tiles_m) % p.tiles_n;
    let sb = tile / (p.tiles_n * p.tiles_m);
    let b = sb % p.batch;
    let s = sb / p.batch;
    let m0 = tile_m * 8u * TM8u;
    let n0 = (tile_n * 8u + lane) * 4u * TN4u;
    // The grid may be folded, so the last row of workgroups may lie beyond the end. Otherwise all lanes go through the
    // loops, for each holds numbers that the others need.
    if (s >= p.splits) { return; }

    // Rows and columns beyond the edge repeat the last one; they are not stored.
    //for i in TM8
    let row_$i = a_row(b, min(m0 + 8u * $iu + lane, p.m - 1u));
    //for r in 8
    //for j in TN4
    var sum_$i_$r_$j = V(A(0));
    //end
    //end
    //end
    //for j in TN4
    let column_$j = b_column(b, min(n0 + 4u * $ju, p.n - 1u));
    //end
    let u_end = min((s + 1u) * p.part, p.u_count);
    for (var u = s * p.part; u < u_end; u++) {
        let inner = min(p.inner, p.k - min(u * p.inner, p.k));
        let quads = inner / 4u * 4u;
        for (var v = 0u; v < p.v_count; v++) {
            //for i in TM8
            let a_$i = a_at(row_$i, u, v);
            //end
            //for j in TN4
            let b_$j = b_at(column_$j, u, v);
            //end
            for (var k = 0u; k < quads; k += 4u) {
                //for i in TM8
                let x_$i = a_quad(a_$i, k);
                //end
                //for j in TN4
                let w_$j = b_quad(b_$j, k);
                //end
                //for c in 4
                //for i in TM8
                //for r in 8
                let x_$c_$i_$r = subgroupBroadcast(x_$i[$c], $ru);
                //for j in TN4
                sum_$i_$r_$j = mad(x_$c_$i_$r, w_$j[$c], sum_$i_$r_$j);
                //end
                //end
                //end
                //end
            }
            //for t in TAIL
            for (var k = quads; k < inner; k++) {
                //for j in TN4
                let w_$j = b_load(b_$j, k);
                //end
                //for i in TM8
                let x_$i = a_load(a_$i, k);
                //for r in 8
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
    // Stored in one place, so that what is computed behind the product is compiled once. Each lane reads what it wrote.
    //for i in TM8
    //for r in 8
    //for j in TN4
    sums[((lane * TM8u + $iu) * 8u + $ru) * TN4u + $ju] = sum_$i_$r_$j;
    //end
    //end
    //end
    for (var i = 0u; i < p.sums; i++) {
        let m = m0 + i / TN4u;
        let n = n0 + 4u * (i % TN4u);
        if (m < p.m && n < p.n) { c_store((sb * p.m + m) * p.n + n, p.n - n, sums[lane * p.sums + i]); }
    }
}
