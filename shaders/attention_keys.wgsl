// The gradients of attention's keys and values without a matrix of scores, a thread for each key: it walks along the queries,
// four at a time, and computes their weights again.
// x[n,t,s] = scale * q[n,t,:] . k[n/G,s,:] + mask, w = e^(x - l[n,t]); sums over t and the G heads n that share the key
// VALUES: dv[n/G,s,:] = sum of w * dy[n,t,:]
// else: dk[n/G,s,:] = scale * sum of w * (dy[n,t,:] . v[n/G,s,:] - d[n,t]) * q[n,t,:]
// 0 q: [N,T,D] read    1 k: [N/G,S,D] read    last y: [N/G,S,E], or [N/G,S,D], read and write, p: uniform
// Between them, if not VALUES, v: [N/G,S,E]; dy: [N,T,E] and stats: [N,T] of (l, d); if MASKED mask: [B,H,T,S] by strides; if
// DROPS words: [4]; all read
// Host declares: T, O (stored in y), WG, the bindings, Params, and attention_scores.wgsl; D4 and E4 are D/4 and E/4.
// Grid: N/G*ceil(S / WG) workgroups.   One thread per key.
@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let tile = group.y * p.row + group.x;
    let shared_by = tile / p.tiles;
    // The grid may be folded, so the last row of workgroups may lie beyond the end.
    if (shared_by * p.share >= p.count) { return; }
    let s0 = tile % p.tiles * WG;
    // Threads beyond the last key compute it again and store nothing, so that all walk the same queries.
    let s = min(s0 + local, p.keys - 1u);
    let at = shared_by * p.keys + s;
    let scale = bitcast<f32>(p.scale);
    //for i in D4
    let k_$i = scale * vec4<f32>(k[at * $D4u + $iu]);
    //end
    //if VALUES
    //for i in E4
    var y_$i = vec4<f32>(0.0);
    //end
    //else
    //for i in E4
    let v_$i = vec4<f32>(v[at * $E4u + $iu]);
    //end
    //for i in D4
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
            //for i in D4
            sum_$j = fma(k_$i, vec4<f32>(q[t_$j * $D4u + $iu]), sum_$j);
            //end
            let stat_$j = stats[t_$j];
            //end
            let rows = t + vec4<u32>(0u, 1u, 2u, 3u);
            let x = seen(vec4<f32>(across(sum_0), across(sum_1), across(sum_2), across(sum_3)), n, rows, vec4<u32>(s));
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
            //for i in E4
            //for j in 4
            y_$i = fma(vec4<f32>(w[$ju]), dy[t_$j * $E4u + $iu], y_$i);
            //end
            //end
            //else
            //for j in 4
            var slope_$j = vec4<f32>(0.0);
            //for i in E4
            slope_$j = fma(v_$i, dy[t_$j * $E4u + $iu], slope_$j);
            //end
            //end
            var dx = vec4<f32>(across(slope_0), across(slope_1), across(slope_2), across(slope_3));
            //if DROPS
            dx *= keep;
            //end
            dx = w * (dx - vec4<f32>(stat_0.y, stat_1.y, stat_2.y, stat_3.y));
            //for i in D4
            //for j in 4
            y_$i = fma(vec4<f32>(dx[$ju]), vec4<f32>(q[t_$j * $D4u + $iu]), y_$i);
            //end
            //end
            //end
        }
    }
    if (s0 + local >= p.keys) { return; }
    //if VALUES
    //for i in E4
    put(at * $E4u + $iu, y_$i);
    //end
    //else
    //for i in D4
    put(at * $D4u + $iu, scale * y_$i);
    //end
    //end
}
