// As gemm.wgsl, for GPUs: a workgroup brings tiles of both operands into its memory, 16 i at a time, and every thread
// multiplies 8 rows by 8 columns of them.
// y[s,b,m,n] = sum over u in part s, v, i of A(b,m,u,v,i) * B(b,u,v,i,n)
// 0 a: read    1 b: read    2 y: [S,B,M,N] read and write    3 p: uniform
// Host declares: what gemm.wgsl needs but WX and WY.
// Grid: S*B*tiles_n*tiles_m workgroups of 8 x 8 threads; a tile has 64 rows and 64 columns.

// By i: four rows or four columns an element.
var<workgroup> tile_a: array<V, 256>;
var<workgroup> tile_b: array<V, 256>;

@compute @workgroup_size(8, 8)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_id) local: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
) {
    let tile = group.y * p.row + group.x;
    let tile_m = tile % p.tiles_m;
    let tile_n = (tile / p.tiles_m) % p.tiles_n;
    let sb = tile / (p.tiles_n * p.tiles_m);
    let b = sb % p.batch;
    let s = sb / p.batch;
    // The grid may be folded, so the last row of workgroups may lie beyond the end.
    if (s >= p.splits) { return; }

    // The four rows, four columns and four i that this thread brings. Beyond the edge the last row or column is
    // repeated; it is not stored.
    let part = thread % 16u;
    let first = thread / 16u * 4u;
    //for i in 4
    let row_$i = a_row(b, min(tile_m * 64u + part * 4u + $iu, p.m - 1u));
    //end
    let column = b_column(b, min(tile_n * 64u + part * 4u, p.n - 1u));
    //for h in 2
    //for c in 4
    var sum_$h_$c_0 = V(Sum(0));
    var sum_$h_$c_1 = V(Sum(0));
    //end
    //end
    let u_end = min((s + 1u) * p.part, p.u_count);
    for (var u = s * p.part; u < u_end; u++) {
        //if PIECES
        let inner = min(p.inner, p.run - u % p.pieces * p.inner);
        //else
        let inner = min(p.inner, p.k - min(u * p.inner, p.k));
        //end
        for (var v = 0u; v < p.v_count; v++) {
            //for i in 4
            let a_$i = a_at(row_$i, u, v);
            //end
            let b_place = b_at(column, u, v);
            for (var k = 0u; k < inner; k += 16u) {
                let i = k + first;
                let x = a_block(a_0, a_1, a_2, a_3, i);
                let w = b_quad(b_place, i);
                // What lies beyond the end of i counts as 0 on both sides, for it might be NaN.
                //for c in 4
                let inside_$c = i + $cu < inner;
                tile_a[(first + $cu) * 16u + part] = select(V(Sum(0)), x[$c], inside_$c);
                tile_b[(first + $cu) * 16u + part] = select(V(Sum(0)), w[$c], inside_$c);
                //end
                workgroupBarrier();
                for (var step = 0u; step < 256u; step += 16u) {
                    let y_0 = tile_a[step + 2u * local.y];
                    let y_1 = tile_a[step + 2u * local.y + 1u];
                    let z_0 = tile_b[step + local.x];
                    let z_1 = tile_b[step + local.x + 8u];
                    //for j in 2
                    //for c in 4
                    sum_0_$c_$j = mad(y_0[$c], z_$j, sum_0_$c_$j);
                    sum_1_$c_$j = mad(y_1[$c], z_$j, sum_1_$c_$j);
                    //end
                    //end
                }
                workgroupBarrier();
            }
        }
    }
    let m0 = tile_m * 64u + local.y * 8u;
    let n0 = tile_n * 64u + local.x * 4u;
    //for h in 2
    //for c in 4
    if (m0 + 4u * $hu + $cu < p.m) {
        let at = (sb * p.m + m0 + 4u * $hu + $cu) * p.n + n0;
        if (n0 < p.n) { c_store(at, p.n - n0, sum_$h_$c_0); }
        if (n0 + 32u < p.n) { c_store(at + 32u, p.n - n0 - 32u, sum_$h_$c_1); }
    }
    //end
    //end
}
