// What attention's kernels share: which keys a query sees, the mask, the weights, dropout.
// x[n,t,s] = the score, mask added; LOW where the query does not see the key, or the mask is far below every number
// 0 and so on: mask and words, read, and p: uniform, are the kernel's own
// Host declares: LOW, FLOOR, WG, Params with rows, keys, heads, mask_batch, mask_head, mask_row, mask_key, rate, kept.
// Grid: the kernel's own.
//if SHARED
var<workgroup> of_threads: array<vec4<f32>, 2 * WG>;
var<private> turn: u32 = 0u;

//end
fn across(x: vec4<f32>) -> f32 { return (x.x + x.y) + (x.z + x.w); }

// Four sums over the elements of a row, of which each thread brings its share.
fn over_parts(own: vec4<f32>, local: u32) -> vec4<f32> {
    //if SHARED
    // The halves of the array take turns, so that no thread overwrites what others still read.
    turn = WG - turn;
    of_threads[turn + local] = own;
    workgroupBarrier();
    let first = turn + local / $PARTSu * $PARTSu;
    var sum = vec4<f32>(0.0);
    //for i in PARTS
    sum += of_threads[first + $iu];
    //end
    return sum;
    //else
    return own;
    //end
}

// The scores of four pairs of a query t and a key s of head n, as the softmax sees them.
fn seen(x: vec4<f32>, n: u32, t: vec4<u32>, s: vec4<u32>) -> vec4<f32> {
    var y = x;
    //if MASKED
    let row = min(t, vec4<u32>(p.rows - 1u));
    let key = min(s, vec4<u32>(p.keys - 1u));
    let at = n / p.heads * p.mask_batch + n % p.heads * p.mask_head + row * p.mask_row + key * p.mask_key;
    y += vec4<f32>(mask[at.x], mask[at.y], mask[at.z], mask[at.w]);
    //end
    //if CAUSAL
    let inside = (s < vec4<u32>(p.keys)) & (t < vec4<u32>(p.rows)) & (s <= t);
    //else
    let inside = (s < vec4<u32>(p.keys)) & (t < vec4<u32>(p.rows));
    //end
    return select(vec4<f32>(LOW), y, inside);
}

// The keys from here on are seen by no query before `after`.
fn last_key(after: u32) -> u32 {
    //if CAUSAL
    return min(p.keys, after);
    //else
    return p.keys;
    //end
}

// The first of four queries that may see the keys from `s` on.
fn first_query(s: u32) -> u32 {
    //if CAUSAL
    return s / 4u * 4u;
    //else
    return 0u;
    //end
}

fn weights(x: vec4<f32>, from_top: vec4<f32>) -> vec4<f32> {
    return select(exp(x - from_top), vec4<f32>(0.0), x < vec4<f32>(FLOOR));
}
//if DROPS

// What dropout makes of the weights of query `at` for the keys s to s + 3: 0, or 1 / (1 - rate).
fn kept(at: u32, s: u32) -> vec4<f32> {
    let quad = at * ((p.keys + 3u) / 4u) + s / 4u;
    let u = unit_floats(philox(vec4<u32>(quad, 0u, 0u, 0u), vec2<u32>(words[0], words[1])));
    return select(vec4<f32>(0.0), vec4<f32>(bitcast<f32>(p.kept)), u >= vec4<f32>(bitcast<f32>(p.rate)));
}
//end
