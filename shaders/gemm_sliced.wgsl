// As gemm_tiled.wgsl, for products that have too few large tiles to fill a GPU: the four quarters of a workgroup share the sum of
// one small tile. They bring 64 i of both operands into workgroup memory; each quarter multiplies a slice of 16 of them, and
// every thread 4 rows by 4 columns.
// y[s,b,m,n] = sum over u in part s, v, i of A(b,m,u,v,i) * B(b,u,v,i,n)
// 0 a: read    1 b: read    2 y: [S,B,M,N] read and write    3 p: uniform
// Written out by the host (src/wgsl/template.rs): GATHERED where the run of i is short; 64 numbers of several runs come at once then.
// Host declares: what gemm.wgsl needs but THREADS, and a_four(at of m to m + 3, i) for the four rows m to m + 3 at i.
// Grid: S*B*tiles_n*tiles_m workgroups of 256 threads; a tile has 32 rows and 32 columns.

// By i: eight times four rows, and behind those of 64 i eight times four columns. In the end the sums of all threads.
var<workgroup> shared_by_all: array<V, 1024>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let tile = group.y * p.row + group.x;
    let tile_m = tile % p.tiles_m;
    let tile_n = (tile / p.tiles_m) % p.tiles_n;
    let sb = tile / (p.tiles_n * p.tiles_m);
    let b = sb % p.batch;
    let s = sb / p.batch;
    // The grid may be folded, so the last row of workgroups may lie beyond the end.
    if (s >= p.splits) { return; }

    // Half of the threads bring rows, the others columns: four of them, and four i. Beyond the edge the last one is repeated;
    // it is not stored.
    let part = thread % 8u;
    let first = thread % 128u / 8u * 4u;
    //for i in 4
    let row_$i = a_row(b, min(tile_m * 32u + part * 4u + $iu, p.m - 1u));
    //end
    let column = b_column(b, min(tile_n * 32u + part * 4u, p.n - 1u));
    let slice = thread / 64u;
    let own_rows = thread % 64u / 8u;
    //for c in 4
    var sum_$c = V(Sum(0));
    //end
    let u_end = min((s + 1u) * p.part, p.u_count);
    //if GATHERED
    let u_first = s * p.part;
    //if PIECES
    let run = p.run;
    let terms = (u_end - u_first) * run;
    //else
    let run = p.inner;
    let before = u_first * p.v_count * run;
    let terms = min((u_end - u_first) * p.v_count * run, p.k - min(before, p.k));
    //end
    {
        {
            for (var k = 0u; k < terms; k += 64u) {
                //for c in 4
                let t_$c = min(k + first + $cu, terms - 1u);
                let i_$c = t_$c % run;
                let u_$c = u_first + t_$c / run / p.v_count;
                let v_$c = t_$c / run % p.v_count;
                let there_$c = k + first + $cu < terms;
                //end
                if (thread < 128u) {
                    //for c in 4
                    //for i in 4
                    let a_$c_$i = a_at(row_$i, u_$c, v_$c);
                    //end
                    let x_$c = a_four(a_$c_0, a_$c_1, a_$c_2, a_$c_3, i_$c);
                    shared_by_all[(first + $cu) * 8u + part] = select(V(Sum(0)), x_$c, there_$c);
                    //end
                } else {
                    //for c in 4
                    let w_$c = b_load(b_at(column, u_$c, v_$c), i_$c);
                    shared_by_all[512u + (first + $cu) * 8u + part] = select(V(Sum(0)), w_$c, there_$c);
                    //end
                }
    //else
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
            for (var k = 0u; k < inner; k += 64u) {
                let i = k + first;
                // What lies beyond the end of i counts as 0 on both sides, for it might be NaN.
                if (thread < 128u) {
                    let x = a_block(a_0, a_1, a_2, a_3, i);
                    //for c in 4
                    shared_by_all[(first + $cu) * 8u + part] = select(V(Sum(0)), x[$c], i + $cu < inner);
                    //end
                } else {
                    let w = b_quad(b_place, i);
                    //for c in 4
                    shared_by_all[512u + (first + $cu) * 8u + part] = select(V(Sum(0)), w[$c], i + $cu < inner);
                    //end
                }
    //end
                workgroupBarrier();
                for (var step = slice * 128u; step < slice * 128u + 128u; step += 32u) {
                    //for i in 4
                    let y_$i = shared_by_all[step + $iu * 8u + own_rows];
                    let z_$i = shared_by_all[512u + step + $iu * 8u + part];
                    //for c in 4
                    sum_$c = mad(y_$i[$c], z_$i, sum_$c);
                    //end
                    //end
                }
                workgroupBarrier();
            }
        }
    }
    // Each quarter adds up one of the four rows that a thread has.
    //for c in 4
    shared_by_all[$cu * 256u + thread] = sum_$c;
    //end
    workgroupBarrier();
    let begin = slice * 256u + thread % 64u;
    let sum = (shared_by_all[begin] + shared_by_all[begin + 64u]) + (shared_by_all[begin + 128u] + shared_by_all[begin + 192u]);
    let m = tile_m * 32u + own_rows * 4u + slice;
    let n = tile_n * 32u + part * 4u;
    if (m < p.m && n < p.n) { c_store((sb * p.m + m) * p.n + n, p.n - n, sum); }
}
