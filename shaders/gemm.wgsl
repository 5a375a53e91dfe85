// The product that matmul and the convolutions share. Each thread keeps TM rows by 4*TN4 columns in registers,
// so that every number that is loaded is used TM or 4*TN4 times. The summed index k is a triple (u, v, i), so that
// the inner loop needs no division: for a convolution u and v are a place in the window and i is the channel.
// y[s,b,m,n] = sum over u in part s, v, i of A(b,m,u,v,i) * B(b,u,v,i,n)
// 0 a: read    1 b: read    2 y: [S,B,M,N] read and write    3 p: uniform
// Host declares: A (sums), V (vector of four A), TM, TN4, mad(x, v, c), the bindings, Params with m, n, k, batch,
// tiles_m, tiles_n, splits, part, u_count, v_count, inner, row, and the loaders: a_row(b, m), a_at(row, u, v) and
// a_load(at, i); b_column(b, n), b_at(column, u, v) and b_load(at, i) for the four columns n to n + 3; and
// c_store(index, count, v).
// Grid: S*B*tiles_m*tiles_n workgroups of 8 x 8 threads.
@compute @workgroup_size(8, 8)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) local: vec3<u32>) {
    let tile = group.y * p.row + group.x;
    let tile_n = tile % p.tiles_n;
    let tile_m = (tile / p.tiles_n) % p.tiles_m;
    let sb = tile / (p.tiles_n * p.tiles_m);
    let b = sb % p.batch;
    let s = sb / p.batch;
    let m0 = (tile_m * 8u + local.y) * TM;
    let n0 = (tile_n * 8u + local.x) * 4u * TN4;
    // The grid may be folded, so the last row of workgroups may lie beyond the end.
    if (s >= p.splits || m0 >= p.m || n0 >= p.n) { return; }

    var rows: array<Row, TM>;
    var columns: array<u32, TN4>;
    var sum: array<array<V, TN4>, TM>;
    for (var i = 0u; i < TM; i++) {
        // Rows and columns beyond the edge repeat the last one; they are not stored.
        rows[i] = a_row(b, min(m0 + i, p.m - 1u));
        for (var j = 0u; j < TN4; j++) {
            sum[i][j] = V(A(0));
        }
    }
    for (var j = 0u; j < TN4; j++) {
        columns[j] = b_column(b, min(n0 + 4u * j, p.n - 1u));
    }
    let u_end = min((s + 1u) * p.part, p.u_count);
    for (var u = s * p.part; u < u_end; u++) {
        let inner = min(p.inner, p.k - u * p.inner);
        for (var v = 0u; v < p.v_count; v++) {
            var at: array<At, TM>;
            var b_places: array<u32, TN4>;
            for (var i = 0u; i < TM; i++) {
                at[i] = a_at(rows[i], u, v);
            }
            for (var j = 0u; j < TN4; j++) {
                b_places[j] = b_at(columns[j], u, v);
            }
            for (var k = 0u; k < inner; k++) {
                var w: array<V, TN4>;
                for (var j = 0u; j < TN4; j++) {
                    w[j] = b_load(b_places[j], k);
                }
                for (var i = 0u; i < TM; i++) {
                    let x = a_load(at[i], k);
                    for (var j = 0u; j < TN4; j++) {
                        sum[i][j] = mad(x, w[j], sum[i][j]);
                    }
                }
            }
        }
    }
    for (var i = 0u; i < TM; i++) {
        if (m0 + i < p.m) {
            for (var j = 0u; j < TN4; j++) {
                let n = n0 + 4u * j;
                if (n < p.n) {
                    c_store((sb * p.m + m0 + i) * p.n + n, p.n - n, sum[i][j]);
                }
            }
        }
    }
}
