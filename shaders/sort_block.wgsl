// Sorts rows that fit into workgroup memory, each in a workgroup: a bitonic network (Batcher 1968). No two items are equal, as each
// has its place beside its key, so equal keys keep their order.
// y[b,at] = what put writes of the key that has `at` smaller ones, or equal ones before it
// 0 x: [B,S] read    1 y: [B,S] read and write    2 p: uniform
// Written out by the host (src/wgsl/template.rs): PACKED if key and place share a word.
// Host declares: WG, N (a power of two, at least S and 2 WG), PLACE (the bits of a place), STEPS (of the network), x, key(e), y, and
// put(at, key, e, i).   Grid: B workgroups.
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    len: u32,     // S
    rows: u32,    // B
    first: u32,   // 1: x has the elements themselves
    step: u32,    // words of x from one key to the next
    flip: u32,    // the bits of a key that are turned round
    most: u32,    // the largest key, of indices
    last: u32,    // 1: y gets what the sort gives
    row: u32,     // workgroups along x
}

var<workgroup> keys: array<u32, N>;
//if PACKED
//else
var<workgroup> places: array<u32, N>;
//end

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let b = group.y * p.row + group.x;
    let start = min(b, p.rows - 1u) * p.len;
    for (var turn = 0u; turn < N / WG; turn++) {
        let i = turn * WG + local;
        let own = key(start + min(i, p.len - 1u));
        // What fills the row up comes behind all others.
        //if PACKED
        keys[i] = select(0xffffffffu, own << PLACE | i, i < p.len);
        //else
        keys[i] = select(0xffffffffu, own, i < p.len);
        places[i] = i;
        //end
    }
    // Runs of `size` keys ascend and descend in turn; keys that lie `gap` apart are compared.
    var size = 2u;
    var gap = 1u;
    for (var step = 0u; step < STEPS; step++) {
        workgroupBarrier();
        for (var turn = 0u; turn < N / WG / 2u; turn++) {
            let k = turn * WG + local;
            let low = 2u * k - (k & (gap - 1u));
            let high = low + gap;
            let up = (low & size) == 0u;
            let a = keys[low];
            let c = keys[high];
            //if PACKED
            let turned = (a > c) == up;
            //else
            let place_a = places[low];
            let place_c = places[high];
            let turned = (a > c || (a == c && place_a > place_c)) == up;
            //end
            if (turned) {
                keys[low] = c;
                keys[high] = a;
                //if PACKED
                //else
                places[low] = place_c;
                places[high] = place_a;
                //end
            }
        }
        size = select(size, 2u * size, gap == 1u);
        gap = select(gap / 2u, size / 2u, gap == 1u);
    }
    workgroupBarrier();
    for (var turn = 0u; turn < N / WG; turn++) {
        let at = turn * WG + local;
        if (at < p.len && b < p.rows) {
            //if PACKED
            let i = keys[at] & ((1u << PLACE) - 1u);
            put(start + at, keys[at] >> PLACE, start + i, i);
            //else
            put(start + at, keys[at], start + places[at], places[at]);
            //end
        }
    }
}
