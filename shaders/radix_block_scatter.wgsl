// Puts each key of a row where the keys of lower digits, and those of its own digit before it, end, on a GPU: the last of three
// kernels of a radix sort's pass. A workgroup first sorts its block by the digit, so that it writes runs of memory. It does so four
// bits at a time: each thread counts the values of its own keys, sixteen bits a count, and the sums over the counts before are the
// keys' ranks (Merrill and Grimshaw 2011). Equal digits stay in their order.
// y[b,at] = the key, its place in the row, or both, with at = keys of lower digits + those of its digit before it
// x has elements, keys, or pairs of a key and its place; y gets elements, keys, pairs or places.
// 0 x: [B,S] read    1 counts: as from radix_block_scan.wgsl, read    2 y: [B,S] read and write    3 p: uniform
// Written out by the host (src/wgsl/template.rs) for K keys of a thread, a power of two.
// Host declares: WG, BLOCK (K*WG), INDEX (the bits of a key's index in its block), x, key(e), y, and put(at, key, e, i).
// Grid: B*C workgroups. A digit has at most WG values.
@group(0) @binding(1) var<storage, read> counts: array<u32>;
@group(0) @binding(3) var<uniform> p: Params;

struct Params {
    len: u32,     // S
    chunks: u32,  // C
    total: u32,   // B*C
    bins: u32,    // D, a power of two
    shift: u32,   // bits below the digit
    first: u32,   // 1 if x has the elements themselves
    step: u32,    // words of x from one key to the next
    flip: u32,    // the bits of a key that are turned round
    most: u32,    // what larger keys become
    last: u32,    // 1 if y gets what was asked for
    sums: u32,    // where the sums over all blocks begin in counts
    row: u32,     // workgroups along x
}

// A digit and behind it the index in the block, of each key; between, sums of threads.
var<workgroup> items: array<u32, BLOCK>;
// For each thread eight words of two counts; in the end where each digit's keys belong.
var<workgroup> found: array<u32, 8u * WG>;

// Where word i lies: threads that go through consecutive words at once reach different banks of the memory.
fn bank(i: u32) -> u32 { return i ^ ((i >> 5u) & 7u); }

// The sum of the values of the threads before this one, and of all. The items are lost.
fn sums_before(local: u32, value: u32) -> vec2<u32> {
    items[local] = value;
    workgroupBarrier();
    var sum = value;
    var half = 0u;
    for (var gap = 1u; gap < WG; gap *= 2u) {
        if (local >= gap) { sum += items[half + local - gap]; }
        half = WG - half;
        items[half + local] = sum;
        workgroupBarrier();
    }
    return vec2<u32>(sum - value, items[half + WG - 1u]);
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let there = group.y * p.row + group.x < p.total;
    let t = min(group.y * p.row + group.x, p.total - 1u);
    let b = t / p.chunks;
    let start = b * p.len;
    let begin = t % p.chunks * BLOCK;
    let size = min(p.len - begin, BLOCK);

    // All keys of lower digits, and those of this digit in blocks before.
    let d = min(local, p.bins - 1u);
    let own = select(0u, counts[p.sums + b * p.bins + d], local < p.bins);
    let base = start + sums_before(local, own).x + counts[t * p.bins + d];
    workgroupBarrier();

    //for k in K
    let i_$k = $ku * WG + local;
    // What fills the block up has the highest digit and comes last.
    let digit_$k = select(p.bins - 1u, (key(start + min(begin + i_$k, p.len - 1u)) >> p.shift) & (p.bins - 1u), i_$k < size);
    items[bank(i_$k)] = (digit_$k << INDEX) | i_$k;
    //end
    for (var low = 0u; (1u << low) < p.bins; low += 4u) {
        //for w in 8
        found[$wu * WG + local] = 0u;
        //end
        workgroupBarrier();
        //for k in K
        let item_$k = items[bank($Ku * local + $ku)];
        let four_$k = (item_$k >> (INDEX + low)) & 15u;
        let word_$k = bank((four_$k & 7u) * WG + local);
        let half_$k = (four_$k >> 3u) * 16u;
        let before_$k = (found[word_$k] >> half_$k) & 0xffffu;
        found[word_$k] += 1u << half_$k;
        //end
        workgroupBarrier();
        // Each thread has eight words one after the other: a word of all threads comes before the next word.
        //for w in 8
        let n_$w = found[bank(8u * local + $wu)];
        //end
        let sum = n_0 + n_1 + n_2 + n_3 + n_4 + n_5 + n_6 + n_7;
        let sums = sums_before(local, sum);
        // The upper halves come after all lower ones.
        var next = sums.x + (sums.y << 16u);
        //for w in 8
        found[bank(8u * local + $wu)] = next;
        next += n_$w;
        //end
        workgroupBarrier();
        //for k in K
        items[bank(before_$k + ((found[word_$k] >> half_$k) & 0xffffu))] = item_$k;
        //end
        workgroupBarrier();
    }
    // Where the first key of each digit belongs, less its index in the sorted block.
    found[local] = base;
    workgroupBarrier();
    //for k in K
    let at_$k = $ku * WG + local;
    let sorted_$k = items[bank(at_$k)];
    let value_$k = sorted_$k >> INDEX;
    let starts_$k = at_$k == 0u || (items[bank(max(at_$k, 1u) - 1u)] >> INDEX) != value_$k;
    if (starts_$k) { found[WG + value_$k] = at_$k; }
    //end
    workgroupBarrier();
    //for k in K
    if (there && at_$k < size) {
        let i = begin + (sorted_$k & (BLOCK - 1u));
        let to = found[value_$k] + (at_$k - found[WG + value_$k]);
        put(to, key(start + i), start + i, i);
    }
    //end
}
