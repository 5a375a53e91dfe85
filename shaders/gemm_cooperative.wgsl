// As gemm.wgsl, for adapters whose subgroups multiply small matrices (cooperative matrices): a workgroup brings tiles of
// both operands into its memory, DEPTH i at a time, and each subgroup multiplies 32 rows by 32 columns of them, in
// matrices of SIZE by SIZE.
// y[s,b,m,n] = sum over u in part s, v, i of A(b,m,u,v,i) * B(b,u,v,i,n)
// 0 a: read    1 b: read    2 y: [S,B,M,N] read and write    3 p: uniform
// Host declares: what gemm.wgsl needs but WY; E (elements of the small matrices: f16 or f32), MatA, MatB, MatC (the small
// matrices). WX holds SIDE*SIDE of the largest subgroups. TURNS = ceil(2*DEPTH*SIDE/WX), COUNT = 32/SIZE,
// LINE = 32*SIDE + 16 bytes.
// Grid: S*B*tiles_n*tiles_m workgroups of WX threads; a tile has 32*SIDE rows and 32*SIDE columns.
const TILE: u32 = 32u * $SIDEu;

// By i: a row or a column an element. Lines begin at multiples of 16 bytes, as the small matrices must.
var<workgroup> tile_a: array<E, $DEPTHu * $LINEu>;
var<workgroup> tile_b: array<E, $DEPTHu * $LINEu>;
var<workgroup> sums: array<f32, TILE * TILE>;

@compute @workgroup_size(WX)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(local_invocation_index) thread: u32,
    @builtin(subgroup_id) subgroup: u32,
) {
    let tile = group.y * p.row + group.x;
    let tile_m = tile % p.tiles_m;
    let tile_n = (tile / p.tiles_m) % p.tiles_n;
    let sb = tile / (p.tiles_n * p.tiles_m);
    let b = sb % p.batch;
    let s = sb / p.batch;
    // The grid may be folded, so the last row of workgroups may lie beyond the end.
    if (s >= p.splits) { return; }

    // The four rows, four columns and four i that this thread brings in each turn. Beyond the edge the last row or column
    // is repeated; it is not stored.
    //for t in TURNS
    let place_$t = (thread + $tu * WX) % (8u * $SIDEu) * 4u;
    let first_$t = (thread + $tu * WX) / (8u * $SIDEu) * 4u;
    //for i in 4
    let row_$t_$i = a_row(b, min(tile_m * TILE + place_$t + $iu, p.m - 1u));
    //end
    let column_$t = b_column(b, min(tile_n * TILE + place_$t, p.n - 1u));
    //end
    // Where subgroups are smaller than the largest there are more of them: those compute what another one does as well.
    let part = subgroup % ($SIDEu * $SIDEu);
    let own_m = part / $SIDEu * 32u;
    let own_n = part % $SIDEu * 32u;
    for (var i = thread; i < TILE * TILE; i += WX) { sums[i] = 0.0; }
    workgroupBarrier();
    //for i in COUNT
    //for j in COUNT
    var sum_$i_$j = coopLoadT<MatC>(&sums[(own_m + $iu * $SIZEu) * TILE + own_n + $ju * $SIZEu], TILE);
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
            //for t in TURNS
            //for i in 4
            let a_$t_$i = a_at(row_$t_$i, u, v);
            //end
            let b_$t = b_at(column_$t, u, v);
            //end
            for (var k = 0u; k < inner; k += $DEPTHu) {
                //for t in TURNS
                if (first_$t < $DEPTHu) {
                    let i = k + first_$t;
                    let x = a_block(a_$t_0, a_$t_1, a_$t_2, a_$t_3, i);
                    let w = b_quad(b_$t, i);
                    // What lies beyond the end of i counts as 0 on both sides, for it might be NaN.
                    //for c in 4
                    let inside_$c = i + $cu < inner;
                    let x_$c = vec4<E>(select(V(Sum(0)), x[$c], inside_$c));
                    let w_$c = vec4<E>(select(V(Sum(0)), w[$c], inside_$c));
                    let to_$c = (first_$t + $cu) * $LINEu + place_$t;
                    //for l in 4
                    tile_a[to_$c + $lu] = x_$c[$l];
                    tile_b[to_$c + $lu] = w_$c[$l];
                    //end
                    //end
                }
                //end
                workgroupBarrier();
                for (var step = 0u; step < $DEPTHu * $LINEu; step += $SIZEu * $LINEu) {
                    //for i in COUNT
                    let y_$i = coopLoad<MatA>(&tile_a[step + own_m + $iu * $SIZEu], $LINEu);
                    let z_$i = coopLoadT<MatB>(&tile_b[step + own_n + $iu * $SIZEu], $LINEu);
                    //end
                    //for i in COUNT
                    //for j in COUNT
                    sum_$i_$j = coopMultiplyAdd(y_$i, z_$j, sum_$i_$j);
                    //end
                    //end
                }
                workgroupBarrier();
            }
        }
    }
    //for i in COUNT
    //for j in COUNT
    coopStoreT(sum_$i_$j, &sums[(own_m + $iu * $SIZEu) * TILE + own_n + $ju * $SIZEu], TILE);
    //end
    //end
    workgroupBarrier();
    for (var i = thread * 4u; i < TILE * TILE; i += WX * 4u) {
        let m = tile_m * TILE + i / TILE;
        let n = tile_n * TILE + i % TILE;
        if (m < p.m && n < p.n) {
            c_store((sb * p.m + m) * p.n + n, p.n - n, V(sums[i], sums[i + 1u], sums[i + 2u], sums[i + 3u]));
        }
    }
}
