// Sorts chunks of rows that fit into workgroup memory, each in a workgroup: a bitonic network (Batcher 1968). No two items are equal,
// as each has its place beside its key, so equal keys keep their order. Of each chunk the first K are kept.
// y[b, c*K + at] = what put writes of the key in chunk c that has `at` smaller ones in it, or equal ones before it
// 0 x: [B,S] elements, or pairs of a key and its place, read    1 y: [B,(C-1)*K + K of the last chunk] read and write    2 p: uniform
// Written out by the host (src/wgsl/template.rs): PACKED if key and place share a word.
// Host declares: WG, N (a power of two, at least a chunk and 2 WG), PLACE (the bits of a place), STEPS (of the network), x, key(e), y,
// and put(at, key, e, i).   Grid: B*C workgroups.
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    len: u32,     // S
    chunk: u32,   // keys of a chunk
    chunks: u32,  // C
    total: u32,   // B*C
    keep: u32,    // K
    kept: u32,    // of a row
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
    let there = group.y * p.row + group.x < p.total;
    let t = min(group.y * p.row + group.x, p.total - 1u);
    let begin = t % p.chunks * p.chunk;
    let start = t / p.chunks * p.len + begin;
    let size = min(p.len - begin, p.chunk);
    for (var turn = 0u; turn < N / WG; turn++) {
        let i = turn * WG + local;
        let own = key(start + min(i, size - 1u));
        // What fills the chunk up comes behind all others.
        //if PACKED
        keys[i] = select(0xffffffffu, own << PLACE | i, i < size);
        //else
        keys[i] = select(0xffffffffu, own, i < size);
        places[i] = i;
        //end
    }
    // Runs of `run` keys ascend and descend in turn; keys that lie `gap` apart are compared.
    var run = 2u;
    var gap = 1u;
    for (var step = 0u; step < STEPS; step++) {
        workgroupBarrier();
        for (var turn = 0u; turn < N / WG / 2u; turn++) {
            let k = turn * WG + local;
            let low = 2u * k - (k & (gap - 1u));
            let high = low + gap;
            let up = (low & run) == 0u;
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
        run = select(run, 2u * run, gap == 1u);
        gap = select(gap / 2u, run / 2u, gap == 1u);
    }
    workgroupBarrier();
    for (var turn = 0u; turn < N / WG; turn++) {
        let at = turn * WG + local;
        if (there && at < min(size, p.keep)) {
            let to = t / p.chunks * p.kept + t % p.chunks * p.keep + at;
            //if PACKED
            let i = keys[at] & ((1u << PLACE) - 1u);
            put(to, keys[at] >> PLACE, start + i, begin + i);
            //else
            put(to, keys[at], start + places[at], begin + places[at]);
            //end
        }
    }
}
