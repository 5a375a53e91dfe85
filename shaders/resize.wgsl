// Resizes images: each place of the result is a weighted sum of a box of places.
// y[b,i,j,c] = sum over t < TH, u < TW of
//              rows[i].weight[t] * columns[j].weight[u] * x[b, rows[i].start + t, columns[j].start + u, c]
// 0 x: [B,H,W,C] read    1 table: read    2 y: [B,OH,OW,C] read and write    3 p: uniform
// table: OH lines of 1 + TH words (start, the bits of the weights), then OW lines of 1 + TW words. A place that no weight is
// meant for has the weight 0, and whatever it holds adds nothing.
// Written out by the host (src/wgsl/template.rs): PLACES of a row for a thread; SMALL where TH and TW are 1 or 2; PARTS where sums are so long that several
// threads share one, which then have a place each.
// Host declares: T (x), V (vector of four results), WG, LANES (channels of a thread), weigh(v, weight), load(at) for up to
// four channels at the element at, c_store(at, count, v), and with several places put(at, a, b, c, d) for their channels.
// Grid: ceil(B*OH*OW*G*parts / PLACES / WG) workgroups, G = ceil(C / LANES).   One thread per LANES channels of its places.
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

struct Params {
    h: u32,       // H
    w: u32,       // W
    c: u32,       // C
    oh: u32,      // OH
    ow: u32,      // OW
    groups: u32,  // G
    th: u32,      // TH
    tw: u32,      // TW
    last: u32,    // the last element of x
    threads: u32, // B*OH*OW*G / PLACES
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
    //if GROUPS
    let place = e / p.groups;
    let channel = (e % p.groups) * LANES;
    //else
    let place = e * $PLACESu;
    let channel = 0u;
    //end
    let j = place % p.ow;
    let bi = place / p.ow;
    let rows = (bi % p.oh) * (p.th + 1u);
    let image = ((bi / p.oh) * p.h + table[rows]) * p.w * p.c + channel;
    let out = place * p.c + channel;
    //for k in PLACES
    let columns_$k = p.oh * (p.th + 1u) + (j + $ku) * (p.tw + 1u);
    let corner_$k = image + table[columns_$k] * p.c;
    var sum_$k = V(0);
    //end
    //if PARTS
    let begin = part * p.part;
    for (var k = begin; k < min(begin + p.part, p.th * p.tw); k++) {
        let t = k / p.tw;
        let u = k % p.tw;
        let v = weigh(load(corner_0 + (t * p.w + u) * p.c), bitcast<f32>(table[columns_0 + 1u + u]));
        sum_0 += weigh(v, bitcast<f32>(table[rows + 1u + t]));
    }
    c_store(part * p.results + out, min(p.c - channel, LANES), sum_0);
    //else
    //if SMALL
    //for k in PLACES
    //for u in TW
    let across_$k_$u = bitcast<f32>(table[columns_$k + 1u + $uu]);
    //end
    //end
    //for t in TH
    let down_$t = bitcast<f32>(table[rows + 1u + $tu]);
    //for k in PLACES
    var line_$t_$k = V(0);
    //for u in TW
    line_$t_$k += weigh(load(corner_$k + ($tu * p.w + $uu) * p.c), across_$k_$u);
    //end
    sum_$k += weigh(line_$t_$k, down_$t);
    //end
    //end
    //else
    for (var t = 0u; t < p.th; t++) {
        let weight = bitcast<f32>(table[rows + 1u + t]);
        let line = t * p.w * p.c;
        //for k in PLACES
        var across_$k = V(0);
        for (var u = 0u; u < p.tw; u++) {
            let v = load(corner_$k + line + u * p.c);
            across_$k += weigh(v, bitcast<f32>(table[columns_$k + 1u + u]));
        }
        sum_$k += weigh(across_$k, weight);
        //end
    }
    //end
    //if FOUR
    put(out, sum_0, sum_1, sum_2, sum_3);
    //else
    c_store(out, min(p.c - channel, LANES), sum_0);
    //end
    //end
}
