// Attention without a matrix of scores, a thread for each query, or PARTS threads that share its elements: they walk along the
// keys, four at a time, and keep of their weights the sums alone.
// x[n,t,s] = scale * q[n,t,:] . k[n/G,s,:] + mask
// FORWARD: y[n,t,:] = sum over s of w[s] * v[n/G,s,:] / sum of w, and l[n,t] = log of the sum of e^x; w = e^(x - the largest yet)
// else: dq[n,t,:] = scale * sum over s of e^(x - l) * (dy[n,t,:] . v[n/G,s,:] - d[n,t]) * k[n/G,s,:]
// 0 q: [N,T,D] read    1 k: [N/G,S,D] read    2 v: [N/G,S,E] read    last y: [N*T*E + N*T] read and write, p: uniform
// Between them, if not FORWARD, dy: [N,T,E] and stats: [N,T] of (l, d); if MASKED mask: [B,H,T,S] by strides; if DROPS words:
// [4]; all read. Without FORWARD y is [N,T,D].
// Host declares: T, O (stored in y), WG, the bindings, Params, and attention_scores.wgsl; D4 and E4 are D/4 and E/4, and a thread
// has DP and EP of these.
// Grid: N*ceil(T / ROWS) workgroups, ROWS = WG / PARTS.   PARTS threads per query.
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let tile = group.y * p.row + group.x;
    let n = tile / p.tiles;
    // The grid may be folded, so the last row of workgroups may lie beyond the end.
    if (n >= p.count) { return; }
    let t0 = tile % p.tiles * $ROWSu;
    // Threads beyond the last query compute it again and store nothing, so that all walk the same keys.
    let t = min(t0 + local / $PARTSu, p.rows - 1u);
    let at = n * p.rows + t;
    let d0 = local % $PARTSu * $DPu;
    let e0 = local % $PARTSu * $EPu;
    let scale = bitcast<f32>(p.scale);
    //for i in DP
    let q_$i = scale * vec4<f32>(q[at * $D4u + d0 + $iu]);
    //end
    //if FORWARD
    //for i in EP
    var y_$i = vec4<f32>(0.0);
    //end
    var top = LOW;
    var total = 0.0;
    //else
    //for i in EP
    let dy_$i = dy[at * $E4u + e0 + $iu];
    //end
    //for i in DP
    var y_$i = vec4<f32>(0.0);
    //end
    let own = stats[at];
    //end
    let first = n / p.share * p.keys;
    let end = last_key(t0 + $ROWSu);
    for (var s = 0u; s < end; s += 4u) {
        //for j in 4
        let s_$j = first + min(s + $ju, p.keys - 1u);
        var sum_$j = vec4<f32>(0.0);
        //for i in DP
        sum_$j = fma(q_$i, vec4<f32>(k[s_$j * $D4u + d0 + $iu]), sum_$j);
        //end
        //end
        let score = over_parts(vec4<f32>(across(sum_0), across(sum_1), across(sum_2), across(sum_3)), local);
        let x = seen(score, n, vec4<u32>(t), s + vec4<u32>(0u, 1u, 2u, 3u));
        //if FORWARD
        let next = max(top, max(max(x.x, x.y), max(x.z, x.w)));
        var w = weights(x, vec4<f32>(next));
        // A number far from a sum of 0 must not become NaN in it.
        let before = exp(max(top - next, -100.0));
        top = next;
        total = fma(total, before, across(w));
        //if DROPS
        w *= kept(at, s);
        //end
        //for i in EP
        y_$i = fma(vec4<f32>(w.x), vec4<f32>(v[s_0 * $E4u + e0 + $iu]), y_$i * before);
        //for j in 3
        y_$i = fma(vec4<f32>(w[$ju + 1u]), vec4<f32>(v[(first + min(s + $ju + 1u, p.keys - 1u)) * $E4u + e0 + $iu]), y_$i);
        //end
        //end
        //else
        //for j in 4
        var slope_$j = vec4<f32>(0.0);
        //for i in EP
        slope_$j = fma(dy_$i, vec4<f32>(v[s_$j * $E4u + e0 + $iu]), slope_$j);
        //end
        //end
        var dx = over_parts(vec4<f32>(across(slope_0), across(slope_1), across(slope_2), across(slope_3)), local);
        //if DROPS
        dx *= kept(at, s);
        //end
        dx = weights(x, vec4<f32>(own.x)) * (dx - own.y);
        //for i in DP
        //for j in 4
        y_$i = fma(vec4<f32>(dx[$ju]), vec4<f32>(k[s_$j * $D4u + d0 + $iu]), y_$i);
        //end
        //end
        //end
    }
    if (t0 + local / $PARTSu >= p.rows) { return; }
    //if FORWARD
    // A query that sees no key gets zeros.
    let inverse = select(1.0 / total, 0.0, total == 0.0);
    //for i in EP
    put(at * $E4u + e0 + $iu, y_$i * inverse);
    //end
    if (e0 > 0u) { return; }
    put_stat(p.count * p.rows * $E4u * 4u + at, select(top + log(total), 0.0, total == 0.0));
    //else
    //for i in DP
    put(at * $D4u + d0 + $iu, scale * y_$i);
    //end
    //end
}
