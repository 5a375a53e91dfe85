// Adds up the counts of a digit over the blocks of a row, on a GPU: the second of three kernels of a radix sort's pass.
// counts[b,c,d] = sum over k < c of counts[b,k,d]; counts[B*C*D + b*D + d] = the sum over all k
// 0 counts: [B,C,D] and behind them [B,D], read and write    1 p: uniform
// Host declares: WG, DIGITS. Threads of a workgroup that are DIGITS apart share a digit.   Grid: B * ceil(D / DIGITS) workgroups.
@group(0) @binding(0) var<storage, read_write> counts: array<u32>;
@group(0) @binding(1) var<uniform> p: Params;

struct Params {
    chunks: u32,  // C
    bins: u32,    // D
    rows: u32,    // B
    sums: u32,    // B*C*D
    row: u32,     // workgroups along x
}

var<workgroup> sums: array<u32, WG>;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let t = group.y * p.row + group.x;
    let groups = (p.bins + DIGITS - 1u) / DIGITS;
    let b = t / groups;
    let d = t % groups * DIGITS + local % DIGITS;
    let there = b < p.rows && d < p.bins;
    let piece = (p.chunks + WG / DIGITS - 1u) / (WG / DIGITS);
    let begin = min(local / DIGITS * piece, p.chunks);
    let end = select(begin, min(begin + piece, p.chunks), there);
    let first = b * p.chunks * p.bins + d;
    var sum = 0u;
    for (var c = begin; c < end; c++) {
        sum += counts[first + c * p.bins];
    }
    sums[local] = sum;
    workgroupBarrier();
    var before = 0u;
    for (var k = local % DIGITS; k < local; k += DIGITS) {
        before += sums[k];
    }
    for (var c = begin; c < end; c++) {
        let at = first + c * p.bins;
        let n = counts[at];
        counts[at] = before;
        before += n;
    }
    if (there && local + DIGITS >= WG) {
        counts[p.sums + b * p.bins + d] = before;
    }
}
