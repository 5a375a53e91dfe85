// The gates of a recurrent layer's step, from its sums a: what recurrent_step.wgsl and recurrent_walk.wgsl share.
// z[b,g,:] = x[b,place,g,:] + a[b,g,:]
// LSTM: i, f, o = sigmoid(z), g = tanh(z); c' = f c + i g, h' = o tanh(c'); y[t+1,b] = (h', c', i, f, g, o)
// GRU: z, r = sigmoid(z), n = tanh(x + r a); h' = z h + (1 - z) n; y[t+1,b] = (h', z, r, n, a of n)
// else: h' = tanh(z); y[t+1,b] = (h'). Where MASKED and the mask is false, the state stays.
// 0 x: [B,T,G,U] read    last y: [T+1,B,P,U] read and write, p: uniform; if MASKED 2 mask: [B,T] read
// Host declares: the kernel's bindings, P, E: four units, or if ONE a single one; G gates. The kernel declares wide(), U in E.
// Grid: the kernel's.

//if ONE
fn sigmoid_e(x: E) -> E { return sigmoid_4(vec4<f32>(x))[0]; }
fn tanh_e(x: E) -> E { return tanh_4(vec4<f32>(x))[0]; }
//else
fn sigmoid_e(x: E) -> E { return sigmoid_4(x); }
fn tanh_e(x: E) -> E { return tanh_4(x); }
//end

struct State {
    h: E,
    //if LSTM
    c: E,
    //end
}

// The state that a step begins with; `old` is where y has it.
fn state_at(old: u32) -> State {
    //if LSTM
    return State(y[old], y[old + wide()]);
    //else
    return State(y[old]);
    //end
}

// Whether the step counts for row b.
fn counts(b: u32, place: u32) -> bool {
    //if MASKED
    return mask[b * p.steps + place] != 0u;
    //else
    return true;
    //end
}

// What x has for row b and the unit or units j.
fn inputs(b: u32, place: u32, j: u32) -> array<E, $Gu> {
    let at = ((b * p.steps + place) * $Gu) * wide() + j;
    return array<E, $Gu>(
    //for g in G
        E(x[at + $gu * wide()]),
    //end
    );
}

// Gives the state behind a step, and writes it and the gates to y from `next` on.
fn next_state(next: u32, seen: bool, now: array<E, $Gu>, own: array<E, $Gu>, before: State) -> State {
    //if LSTM
    let i = sigmoid_e(now[0] + own[0]);
    let f = sigmoid_e(now[1] + own[1]);
    let g = tanh_e(now[2] + own[2]);
    let o = sigmoid_e(now[3] + own[3]);
    var c = f * before.c + i * g;
    var h = o * tanh_e(c);
    //end
    //if GRU
    let z = sigmoid_e(now[0] + own[0]);
    let r = sigmoid_e(now[1] + own[1]);
    let n = tanh_e(now[2] + r * own[2]);
    var h = z * before.h + (1.0 - z) * n;
    //end
    //if SIMPLE
    var h = tanh_e(now[0] + own[0]);
    //end
    //if MASKED
    h = select(before.h, h, seen);
    //if LSTM
    c = select(before.c, c, seen);
    //end
    //end
    y[next] = h;
    //if LSTM
    y[next + wide()] = c;
    y[next + 2u * wide()] = i;
    y[next + 3u * wide()] = f;
    y[next + 4u * wide()] = g;
    y[next + 5u * wide()] = o;
    return State(h, c);
    //else
    //if GRU
    y[next + wide()] = z;
    y[next + 2u * wide()] = r;
    y[next + 3u * wide()] = n;
    y[next + 4u * wide()] = own[2];
    //end
    return State(h);
    //end
}
