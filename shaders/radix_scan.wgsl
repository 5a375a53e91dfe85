// Adds up the counts of a digit over the chunks of a row: the second of three kernels of a radix sort's pass.
// counts[b,d,c] = sum over k < c of counts[b,d,k]; counts[B*D*C + b*D + d] = the sum over all k
// 0 counts: [B,D,C] and behind them [B,D], read and write    1 p: uniform
// Written out by the host (src/wgsl/template.rs).
// Host declares: WG.   Grid: B*D workgroups if WIDE, whose threads share a digit; else ceil(B*D / WG), one thread per digit.
@group(0) @binding(0) var<storage, read_write> counts: array<u32>;
@group(0) @binding(1) var<uniform> p: Params;

struct Params {
    chunks: u32,  // C
    lines: u32,   // B*D
    row: u32,     // workgroups along x
}

//if WIDE
var<workgroup> sums: array<u32, WG>;
//end

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    //if WIDE
    // The grid may have a few workgroups more than there are lines; they all work on the last one's copy of nothing.
    let e = group.y * p.row + group.x;
    let there = e < p.lines;
    let piece = (p.chunks + WG - 1u) / WG;
    let begin = min(local * piece, p.chunks);
    let end = select(begin, min(begin + piece, p.chunks), there);
    var sum = 0u;
    for (var c = begin; c < end; c++) {
        sum += counts[e * p.chunks + c];
    }
    sums[local] = sum;
    workgroupBarrier();
    var before = 0u;
    for (var k = 0u; k < local; k++) {
        before += sums[k];
    }
    for (var c = begin; c < end; c++) {
        let at = e * p.chunks + c;
        let n = counts[at];
        counts[at] = before;
        before += n;
    }
    if (there && local == WG - 1u) {
        counts[p.lines * p.chunks + e] = before;
    }
    //else
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
    //end
}
