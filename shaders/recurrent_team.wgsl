// How the threads of a workgroup add up a step's sums: what recurrent_walk.wgsl and recurrent_walk_grad.wgsl share.
// sum[row, column] = sum over k of row[k] * weight(k, column), for vectors of four columns
// A row is of states or of slopes. If WALKS it is in workgroup memory, else where the step before has stored it.
// 0 what the kernel declares: read    p: uniform
// Host declares: T, WG, p, E: four units, or if ONE a single one; TR rows of a workgroup; K quads at once; if WALKS ROOM, the length of
// all rows in E or more. The kernel declares weight(at), and if not WALKS stored_quad(k).
// Grid: the kernel's.

struct Params {
    batch: u32,     // B
    quads: u32,     // U / 4
    steps: u32,     // T
    first: u32,     // the launch's first step, in the kernel's order
    count: u32,     // steps of the launch
    backwards: u32, // 1 where the first step is the last in x
    tile: u32,      // quads of a workgroup
    slices: u32,    // of the sums
    part: u32,      // quads of a slice
    row: u32,       // workgroups along x
}

// What each thread has added up.
var<workgroup> sums: array<vec4<f32>, WG * $TRu>;
//if WALKS
var<workgroup> held: array<E, ROOM>;
//end

//if ONE
fn wide() -> u32 { return 4u * p.quads; }
fn own_width() -> u32 { return 4u * p.tile; }
fn sum_at(at: u32, j: u32) -> E { return sums[at + j / 4u][j % 4u]; }
fn quad(k: u32) -> vec4<f32> {
    return vec4<f32>(held[4u * k], held[4u * k + 1u], held[4u * k + 2u], held[4u * k + 3u]);
}
//else
fn wide() -> u32 { return p.quads; }
fn own_width() -> u32 { return p.tile; }
fn sum_at(at: u32, j: u32) -> E { return sums[at + j]; }
//if WALKS
fn quad(k: u32) -> vec4<f32> { return held[k]; }
//else
fn quad(k: u32) -> vec4<f32> { return stored_quad(k); }
//end
//end

// Adds to `before` the products of the quads from `begin` to `end` of each row with a column of weights, and leaves the sums to the
// workgroup. Rows of weights are `stride` apart.
fn add_up(local: u32, before: vec4<f32>, rows: array<u32, $TRu>, begin: u32, end: u32, column: u32, stride: u32) {
    //for r in TR
    var sum_$r = before;
    let row_$r = rows[$r];
    //end
    var at = 4u * begin * stride + column;
    var k = begin;
    for (; k + $Ku <= end; k += $Ku) {
        //for d in K
        //for c in 4
        let w_$d_$c = weight(at + (4u * $du + $cu) * stride);
        //end
        //end
        //for d in K
        //for r in TR
        let h_$d_$r = quad(row_$r + k + $du);
        //for c in 4
        sum_$r = fma(vec4<f32>(h_$d_$r[$c]), w_$d_$c, sum_$r);
        //end
        //end
        //end
        at += 4u * $Ku * stride;
    }
    for (; k < end; k++) {
        //for c in 4
        let w_$c = weight(at + $cu * stride);
        //end
        //for r in TR
        let h_$r = quad(row_$r + k);
        //for c in 4
        sum_$r = fma(vec4<f32>(h_$r[$c]), w_$c, sum_$r);
        //end
        //end
        at += 4u * stride;
    }
    //for r in TR
    sums[$ru * WG + local] = sum_$r;
    //end
}
