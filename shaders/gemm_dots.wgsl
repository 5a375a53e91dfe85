// As gemm.wgsl, for few columns: the threads of a workgroup share the sums of 4*TM4 rows by TN columns, each taking every
// WX-th four i, and join them in workgroup memory, always in the same order.
// y[s,b,m,n] = sum over u in part s, v, i of A(b,m,u,v,i) * B(b,u,v,i,n)
// 0 a: read    1 b: read    2 y: [S,B,M,N] read and write    3 p: uniform
// Host declares: what gemm.wgsl needs, WX instead of THREADS, and mad_4(x, v, c); of the loaders of b b_column(b, n), b_at(column, u, v)
// and for one column n b_one(at, i) and b_line(at, i) for i to i + 3. TN is 4, or all columns.
// Grid: S*B*tiles_n*tiles_m workgroups of WX threads.

// By row quad, column and thread: four rows an element.
var<workgroup> joined: array<V, $TM4u * $TNu * WX>;

fn across(x: V) -> Sum { return (x.x + x.y) + (x.z + x.w); }

@compute @workgroup_size(WX)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) lane: u32) {
    let tile = group.y * p.row + group.x;
    let tile_m = tile % p.tiles_m;
    let tile_n = (tile / p.tiles_m) % p.tiles_n;
    let sb = tile / (p.tiles_n * p.tiles_m);
    let b = sb % p.batch;
    let s = sb / p.batch;
    let m0 = tile_m * 4u * $TM4u;
    let n0 = tile_n * $TNu;
    // The grid may be folded, so the last row of workgroups may lie beyond the end.
    if (s >= p.splits) { return; }

    // Rows and columns beyond the edge repeat the last one; they are not stored.
    //for q in TM4
    //for r in 4
    let row_$q_$r = a_row(b, min(m0 + 4u * $qu + $ru, p.m - 1u));
    //for j in TN
    var sum_$q_$r_$j = V(Sum(0));
    //end
    //end
    //end
    //for j in TN
    let column_$j = b_column(b, min(n0 + $ju, p.n - 1u));
    //end
    let u_end = min((s + 1u) * p.part, p.u_count);
    for (var u = s * p.part; u < u_end; u++) {
        //if PIECES
        let inner = min(p.inner, p.run - u % p.pieces * p.inner);
        //else
        let inner = min(p.inner, p.k - min(u * p.inner, p.k));
        //end
        let quads = inner / 4u * 4u;
        for (var v = 0u; v < p.v_count; v++) {
            //for q in TM4
            //for r in 4
            let a_$q_$r = a_at(row_$q_$r, u, v);
            //end
            //end
            //for j in TN
            let b_$j = b_at(column_$j, u, v);
            //end
            for (var k = 4u * lane; k < quads; k += 4u * WX) {
                //for j in TN
                let w_$j = b_line(b_$j, k);
                //end
                //for q in TM4
                //for r in 4
                let x_$q_$r = a_quad(a_$q_$r, k);
                //for j in TN
                sum_$q_$r_$j = mad_4(x_$q_$r, w_$j, sum_$q_$r_$j);
                //end
                //end
                //end
            }
            //if TAIL
            for (var k = quads + lane; k < inner; k += WX) {
                //for j in TN
                let w_$j = V(b_one(b_$j, k), Sum(0), Sum(0), Sum(0));
                //for q in TM4
                //for r in 4
                sum_$q_$r_$j = mad(a_load(a_$q_$r, k), w_$j, sum_$q_$r_$j);
                //end
                //end
                //end
            }
            //end
        }
    }
    //for q in TM4
    //for j in TN
    joined[($qu * $TNu + $ju) * WX + lane] =
        V(across(sum_$q_0_$j), across(sum_$q_1_$j), across(sum_$q_2_$j), across(sum_$q_3_$j));
    //end
    //end
    workgroupBarrier();
    for (var half = WX / 2u; half > 0u; half /= 2u) {
        if (lane < half) {
            for (var at = lane; at < $TM4u * $TNu * WX; at += WX) { joined[at] += joined[at + half]; }
        }
        workgroupBarrier();
    }
    //if ONE
    // A column's neighbours are neighbours in y.
    let m = m0 + 4u * lane;
    if (lane < $TM4u && m < p.m) { c_store(sb * p.m + m, p.m - m, joined[lane * WX]); }
    //else
    let m = m0 + lane;
    if (lane < 4u * $TM4u && m < p.m) {
        var row = V(Sum(0));
        //for j in TN
        row[$j] = joined[(lane / 4u * $TNu + $ju) * WX][lane % 4u];
        //end
        c_store((sb * p.m + m) * p.n + n0, p.n - n0, row);
    }
    //end
}
