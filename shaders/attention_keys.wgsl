// The gradients of attention's keys and values without a matrix of scores, a thread for each key, or PARTS threads that share its
// elements: they walk along the queries, four at a time, and compute their weights again.
// x[n,t,s] = scale * q[n,t,:] . k[n/G,s,:] + mask, w = e^(x - l[n,t]); sums over t and the G heads n that share the key
// VALUES: dv[n/G,s,:] = sum of w * dy[n,t,:]
// else: dk[n/G,s,:] = scale * sum of w * (dy[n,t,:] . v[n/G,s,:] - d[n,t]) * q[n,t,:]
// 0 q: [N,T,D] read    1 k: [N/G,S,D] read    last y: [N/G,S,E], or [N/G,S,D], read and write, p: uniform
// Between them, if not VALUES, v: [N/G,S,E]; dy: [N,T,E] and stats: [N,T] of (l, d); if MASKED mask: [B,H,T,S] by strides; if
// DROPS words: [4]; all read
// Host declares: T, O (stored in y), WG, the bindings, Params, and attention_scores.wgsl; D4 and E4 are D/4 and E/4, and a thread
// has DP and EP of these.
// Grid: N/G*ceil(S / ROWS) workgroups, ROWS = WG / PARTS.   PARTS threads per key.
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let tile = group.y * p.row + group.x;
    let shared_by = tile / p.tiles;
    // The grid may be folded, so the last row of workgroups may lie beyond the end.
    if (shared_by * p.share >= p.count) { return; }
    let s0 = tile % p.tiles * $ROWSu;
    // Threads beyond the last key compute it again and store nothing, so that all walk the same queries.
    let s = min(s0 + local / $PARTSu, p.keys - 1u);
    let at = shared_by * p.keys + s;
    let d0 = local % $PARTSu * $DPu;
    let e0 = local % $PARTSu * $EPu;
    let scale = bitcast<f32>(p.scale);
    //for i in DP
    let k_$i = scale * vec4<f32>(k[at * $D4u + d0 + $iu]);
    //end
    //if VALUES
    //for i in EP
    var y_$i = vec4<f32>(0.0);
    //end
    //else
    //for i in EP
    let v_$i = vec4<f32>(v[at * $E4u + e0 + $iu]);
    //end
    //for i in DP
    var y_$i = vec4<f32>(0.0);
    //end
    //end
    let begin = first_query(s0);
    for (var h = 0u; h < p.share; h++) {
        let n = shared_by * p.share + h;
        for (var t = begin; t < p.rows; t += 4u) {
            //for j in 4
            let t_$j = n * p.rows + min(t + $ju, p.rows - 1u);
            var sum_$j = vec4<f32>(0.0);
            //for i in DP
            sum_$j = fma(k_$i, vec4<f32>(q[t_$j * $D4u + d0 + $iu]), sum_$j);
            //end
            let stat_$j = stats[t_$j];
            //end
            let rows = t + vec4<u32>(0u, 1u, 2u, 3u);
            let score = over_parts(vec4<f32>(across(sum_0), across(sum_1), across(sum_2), across(sum_3)), local);
            let x = seen(score, n, rows, vec4<u32>(s));
            var w = weights(x, vec4<f32>(stat_0.x, stat_1.x, stat_2.x, stat_3.x));
            //if DROPS
            let keep = vec4<f32>(
                kept(t_0, s / 4u * 4u)[s % 4u],
                kept(t_1, s / 4u * 4u)[s % 4u],
                kept(t_2, s / 4u * 4u)[s % 4u],
                kept(t_3, s / 4u * 4u)[s % 4u],
            );
            //end
            //if VALUES
            //if DROPS
            w *= keep;
            //end
            //for i in EP
            //for j in 4
            y_$i = fma(vec4<f32>(w[$ju]), dy[t_$j * $E4u + e0 + $iu], y_$i);
            //end
            //end
            //else
            //for j in 4
            var slope_$j = vec4<f32>(0.0);
            //for i in EP
            slope_$j = fma(v_$i, dy[t_$j * $E4u + e0 + $iu], slope_$j);
            //end
            //end
            var dx = over_parts(vec4<f32>(across(slope_0), across(slope_1), across(slope_2), across(slope_3)), local);
            //if DROPS
            dx *= keep;
            //end
            dx = w * (dx - vec4<f32>(stat_0.y, stat_1.y, stat_2.y, stat_3.y));
            //for i in DP
            //for j in 4
            y_$i = fma(vec4<f32>(dx[$ju]), vec4<f32>(q[t_$j * $D4u + d0 + $iu]), y_$i);
            //end
            //end
            //end
        }
    }
    if (s0 + local / $PARTSu >= p.keys) { return; }
    //if VALUES
    //for i in EP
    put(at * $E4u + e0 + $iu, y_$i);
    //end
    //else
    //for i in DP
    put(at * $D4u + d0 + $iu, scale * y_$i);
    //end
    //end
}
