// The slopes of a recurrent layer's gates (recurrent_gates.wgsl), from a step's sums a: what recurrent_step_grad.wgsl and
// recurrent_walk_grad.wgsl share.
// dh = dy[t+1,b,0,:] + q[t+1,b,carry,:] + a[b,:]
// LSTM: dc = dy[t+1,b,1,:] + q[t+1,b,5,:] + dh o (1 - tanh(c)^2); q[t,b] = (slopes of i, f, g, o by z; 0; dc f)
// GRU: q[t,b] = (slopes of z, r by their sums; that of n by a; that of n by x; dh z)
// else: q[t,b] = (the slope of h by z; 0). Where MASKED and the mask is false, what comes back is passed on.
// GATES: what dy has for the gates is added to their gradients, as dy[t+1,b,p,:] * i (1 - i).
// 0 y: [T+1,B,P,U] read    1 dy: as y, read    last q: [T,B,Q,U] read and write, p: uniform; if MASKED 3 mask: [B,T] read
// Host declares: the kernel's bindings, P, Q, CARRY, E: four units, or if ONE a single one; G gates; D parts of dy that count. The
// kernel declares wide(), U in E.
// Grid: the kernel's.

//if ONE
fn tanh_e(x: E) -> E { return tanh_4(vec4<f32>(x))[0]; }
//else
fn tanh_e(x: E) -> E { return tanh_4(x); }
//end

// What y and dy have of a step.
struct Stored {
    //if LSTM
    c: E,
    i: E,
    f: E,
    g: E,
    o: E,
    c_before: E,
    //end
    //if GRU
    z: E,
    r: E,
    n: E,
    a: E,
    h_before: E,
    //end
    //if SIMPLE
    h: E,
    //end
    //for d in D
    d$d: E,
    //end
}

// What a step passes to the one before it, besides its slopes.
struct Passed {
    dh: E,
    //if LSTM
    dc: E,
    //end
}

struct Back {
    //for g in G
    slope_$g: E,
    //end
    passed: Passed,
}

// `old` is where y has the state before the step.
fn stored_at(old: u32) -> Stored {
    let own = old + p.batch * P * wide();
    return Stored(
        //if LSTM
        y[own + wide()],
        y[own + 2u * wide()],
        y[own + 3u * wide()],
        y[own + 4u * wide()],
        y[own + 5u * wide()],
        y[old + wide()],
        //end
        //if GRU
        y[own + wide()],
        y[own + 2u * wide()],
        y[own + 3u * wide()],
        y[own + 4u * wide()],
        y[old],
        //end
        //if SIMPLE
        y[own],
        //end
        //for d in D
        dy[own + $du * wide()],
        //end
    );
}

// `behind` is where q has the step behind.
fn passed_at(behind: u32) -> Passed {
    //if LSTM
    return Passed(q[behind + CARRY * wide()], q[behind + 5u * wide()]);
    //else
    return Passed(q[behind + CARRY * wide()]);
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

// Gives the slopes of a step and what it passes on, and writes them to q from `next` on.
fn go_back(next: u32, counted: bool, at: Stored, sum: E, behind: Passed) -> Back {
    var back: Back;
    var dh = at.d0 + sum + behind.dh;
    var stays = E(0.0);
    //if MASKED
    let seen = E(select(0.0, 1.0, counted));
    stays = dh * (1.0 - seen);
    dh *= seen;
    //end
    //if LSTM
    let i = at.i;
    let f = at.f;
    let g = at.g;
    let o = at.o;
    let c = tanh_e(at.c);
    var dc = at.d1 + behind.dc;
    //if MASKED
    let stays_c = dc * (1.0 - seen);
    dc *= seen;
    //end
    dc += dh * o * (1.0 - c * c);
    //if GATES
    back.slope_0 = (dc * g + at.d2) * i * (1.0 - i);
    back.slope_1 = (dc * at.c_before + at.d3) * f * (1.0 - f);
    back.slope_2 = (dc * i + at.d4) * (1.0 - g * g);
    back.slope_3 = (dh * c + at.d5) * o * (1.0 - o);
    //else
    back.slope_0 = dc * g * i * (1.0 - i);
    back.slope_1 = dc * at.c_before * f * (1.0 - f);
    back.slope_2 = dc * i * (1.0 - g * g);
    back.slope_3 = dh * c * o * (1.0 - o);
    //end
    back.passed.dc = dc * f;
    //if MASKED
    back.passed.dc += stays_c;
    //end
    q[next + 5u * wide()] = back.passed.dc;
    //end
    //if GRU
    let z = at.z;
    let r = at.r;
    let n = at.n;
    //if GATES
    let dn = (dh * (1.0 - z) + at.d3) * (1.0 - n * n);
    back.slope_0 = (dh * (at.h_before - n) + at.d1) * z * (1.0 - z);
    back.slope_1 = (dn * at.a + at.d2) * r * (1.0 - r);
    back.slope_2 = dn * r + at.d4;
    //else
    let dn = dh * (1.0 - z) * (1.0 - n * n);
    back.slope_0 = dh * (at.h_before - n) * z * (1.0 - z);
    back.slope_1 = dn * at.a * r * (1.0 - r);
    back.slope_2 = dn * r;
    //end
    q[next + 3u * wide()] = dn;
    stays += dh * z;
    //end
    //if SIMPLE
    back.slope_0 = dh * (1.0 - at.h * at.h);
    //end
    //for g in G
    q[next + $gu * wide()] = back.slope_$g;
    //end
    back.passed.dh = stays;
    q[next + CARRY * wide()] = stays;
    return back;
}
