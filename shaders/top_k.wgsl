// Finds the K largest elements of each chunk of a row, the largest first and the first of equal ones first.
// y[b,c] = the places, or keys and places, of the K largest of x[b,chunk c]
// 0 x: [B,S] elements, or pairs of a key and its place, read    1 y: [B,C,K] places or pairs, read and write    2 p: uniform
// Host declares: WG, MOST (the most results), x, y, key(e), and place(e, i).
// Grid: ceil(B*C / WG) workgroups.   One thread per chunk.
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    len: u32,     // S
    chunk: u32,   // elements of a chunk
    chunks: u32,  // C
    total: u32,   // B*C
    k: u32,       // K
    first: u32,   // 1 if x has the elements themselves
    step: u32,    // words of x from one key to the next
    last: u32,    // 1 if y gets the places alone
    flip: u32,    // the bits of a key that are turned round
    row: u32,     // workgroups along x
}

// The place of an element that is not there.
const NONE: u32 = 0xffffffffu;

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let t = (group.y * p.row + group.x) * WG + local;
    if (t >= p.total) { return; }
    let b = t / p.chunks;
    let c = t % p.chunks;
    let start = b * p.len;
    let end = min((c + 1u) * p.chunk, p.len);
    var keys: array<u32, MOST>;
    var places: array<u32, MOST>;
    var found = 0u;
    var least = 0u;
    for (var i = c * p.chunk; i < end; i++) {
        let k = key(start + i);
        let named = place(start + i, i);
        if (named != NONE && (k > least || found < p.k)) {
            // From the end, everything smaller moves on by one; equal ones were there before.
            let last = min(found, p.k - 1u);
            var at = last;
            for (var j = 0u; j < last; j++) {
                if (keys[at - 1u] >= k) { break; }
                keys[at] = keys[at - 1u];
                places[at] = places[at - 1u];
                at -= 1u;
            }
            keys[at] = k;
            places[at] = named;
            found = min(found + 1u, p.k);
            least = keys[p.k - 1u];
        }
    }
    for (var j = 0u; j < p.k; j++) {
        let to = t * p.k + j;
        let named = select(NONE, places[j], j < found);
        if (p.last != 0u) {
            y[to] = named;
        } else {
            y[2u * to] = keys[j];
            y[2u * to + 1u] = named;
        }
    }
}
