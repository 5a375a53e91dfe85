// Resizes images: each place of the result is a weighted sum of a box of places.
// y[b,i,j,c] = sum over t < rows[i].count, u < columns[j].count of
//              rows[i].weight[t] * columns[j].weight[u] * x[b, rows[i].start + t, columns[j].start + u, c]
// 0 x: [B,H,W,C] read    1 table: read    2 y: [B,OH,OW,C] read and write    3 p: uniform
// table: OH lines of 2 + TH words (start, count, the bits of the weights), then OW lines of 2 + TW words.
// Written out by the host (src/wgsl/template.rs): PARTS where sums are so long that several threads share one.
// Host declares: T (x), V (vector of four results), WG, LANES (channels of a thread), weigh(v, weight), load(at) for up to
// four channels at the element at, and c_store(at, count, v).
// Grid: ceil(B*OH*OW*G*parts / WG) workgroups, G = ceil(C / LANES).   One thread per LANES channels of a place.
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

struct Params {
    h: u32,       // H
    w: u32,       // W
    c: u32,       // C
    oh: u32,      // OH
    ow: u32,      // OW
    groups: u32,  // G
    th: u32,      // words of a line of rows, 2 + TH
    tw: u32,      // words of a line of columns, 2 + TW
    last: u32,    // the last element of x
    threads: u32, // B*OH*OW*G
    //if PARTS
    results: u32, // elements of y
    part: u32,    // steps of a part, and parts
    parts: u32,
    //end
    row: u32,     // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    //if PARTS
    let thread = (group.y * p.row + group.x) * WG + local;
    if (thread >= p.threads * p.parts) { return; }
    let e = thread % p.threads;
    let part = thread / p.threads;
    //else
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.threads) { return; }
    //end
    let place = e / p.groups;
    let channel = (e % p.groups) * LANES;
    let j = place % p.ow;
    let bi = place / p.ow;
    let rows = (bi % p.oh) * p.th;
    let columns = p.oh * p.th + j * p.tw;
    let high = min(table[rows + 1u], p.th - 2u);
    let wide = min(table[columns + 1u], p.tw - 2u);
    let corner = (((bi / p.oh) * p.h + table[rows]) * p.w + table[columns]) * p.c + channel;
    let out = place * p.c + channel;
    let count = min(p.c - channel, LANES);
    var sum = V(0);
    //if PARTS
    let begin = part * p.part;
    for (var k = begin; k < min(begin + p.part, high * wide); k++) {
        let t = k / wide;
        let u = k % wide;
        let v = weigh(load(corner + (t * p.w + u) * p.c), bitcast<f32>(table[columns + 2u + u]));
        sum += weigh(v, bitcast<f32>(table[rows + 2u + t]));
    }
    c_store(part * p.results + out, count, sum);
    //else
    var line = corner;
    for (var t = 0u; t < high; t++) {
        var across = V(0);
        var at = line;
        for (var u = 0u; u < wide; u++) {
            across += weigh(load(at), bitcast<f32>(table[columns + 2u + u]));
            at += p.c;
        }
        sum += weigh(across, bitcast<f32>(table[rows + 2u + t]));
        line += p.w * p.c;
    }
    c_store(out, count, sum);
    //end
}
