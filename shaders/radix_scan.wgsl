// Adds up the counts of a digit over the chunks of a row: the second of three kernels of a radix sort's pass.
// counts[b,d,c] = sum over k < c of counts[b,d,k]; counts[B*D*C + b*D + d] = the sum over all k
// 0 counts: [B,D,C] and behind them [B,D], read and write    1 p: uniform
// Host declares: WG.   Grid: ceil(B*D / WG) workgroups.   One thread per digit of a row.
@group(0) @binding(0) var<storage, read_write> counts: array<u32>;
@group(0) @binding(1) var<uniform> p: Params;

struct Params {
    chunks: u32,  // C
    lines: u32,   // B*D
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.lines) { return; }
    var before = 0u;
    for (var c = 0u; c < p.chunks; c++) {
        let at = e * p.chunks + c;
        let n = counts[at];
        counts[at] = before;
        before += n;
    }
    counts[p.lines * p.chunks + e] = before;
}
