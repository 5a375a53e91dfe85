//! The formulas of distributions that use rejection sampling.
//!
//! Each element has 256 counters of its own, and a try uses one, so that the tries of one element do not affect others.
//! Four elements are drawn together until all have accepted, in at most 64 tries; fewer than one in a hundred billion
//! billion elements would need more. Differences of large numbers, which would lose digits, are computed by the
//! formulas of Loader 2000, "Fast and accurate computation of binomial probabilities".

/// Four words for each of the four elements in try `n`, as uniform numbers in (0, 1): those of the first element are
/// `u0.x`, `u1.x`, `u2.x`.
const WORDS: &str = "
        let p0 = philox(advance(advance_256(start, i.x), n), key);
        let p1 = philox(advance(advance_256(start, i.y), n), key);
        let p2 = philox(advance(advance_256(start, i.z), n), key);
        let p3 = philox(advance(advance_256(start, i.w), n), key);
        let u0 = (vec4<f32>(vec4<u32>(p0.x, p1.x, p2.x, p3.x) >> vec4<u32>(9u)) + 0.5) * 1.1920929e-7;
        let u1 = (vec4<f32>(vec4<u32>(p0.y, p1.y, p2.y, p3.y) >> vec4<u32>(9u)) + 0.5) * 1.1920929e-7;";

const START: &str = "    let key = vec2<u32>(k0, k1);
    let start = vec4<u32>(c0, c1, c2, c3);
    var open = vec4<bool>(true);
";

/// Gamma numbers of scale 1 (Marsaglia and Tsang 2000), or their logarithms. With `c = 1 / sqrt(9 d)`, `x` normal and
/// `v = (1 + c x)^3`, `d v` is accepted if `log u < x^2 / 2 + d (1 - v + log v)`. For `alpha < 1` the number is that of
/// `alpha + 1` times `u^(1 / alpha)`.
pub(super) fn gamma(log: bool) -> String {
    let result = if log {
        "log_4(d) + 3.0 * log_4(v) + more"
    } else {
        "select(d * v * v * v, d * v * v * v * exp_4(more), few)"
    };
    let nothing = if log { "-inf()" } else { "0.0" };
    // With z = c x the right side is 3 d (log(1 + z) - z + z^2 / 2 - z^3 / 3), a series from z^4 on.
    format!(
        "{START}    let few = alpha < vec4<f32>(1.0);
    let d = select(alpha, alpha + 1.0, few) - 0.33333333;
    let c = 1.0 / sqrt_4(9.0 * d);
    var v = vec4<f32>(1.0);
    var more = vec4<f32>(0.0);
    for (var n = 0u; n < 64u && any(open); n++) {{{WORDS}
        let u2 = (vec4<f32>(vec4<u32>(p0.z, p1.z, p2.z, p3.z) >> vec4<u32>(9u)) + 0.5) * 1.1920929e-7;
        let u3 = (vec4<f32>(vec4<u32>(p0.w, p1.w, p2.w, p3.w) >> vec4<u32>(9u)) + 0.5) * 1.1920929e-7;
        more = select(more, log_4(u3) / alpha, few & vec4<bool>(n == 0u));
        let angle = 6.2831853 * u1;
        let k = round(angle * 0.63661977);
        let x = sqrt_4(-2.0 * log_4(u0)) * wave_4(quarter_rest_4(angle, k), vec4<i32>(k));
        let z = c * x;
        let z4 = z * z * z * z;
        let near = z4 * (-0.25 + z * (0.2 + z * (-0.16666667 + z * (0.14285715 + z * (-0.125 + z * 0.11111111)))));
        let far = log_4(1.0 + z) - z + z * z * (0.5 - z * 0.33333333);
        let bound = 3.0 * d * select(far, near, abs(z) < vec4<f32>(0.125));
        let taken = open & (z > vec4<f32>(-1.0)) & (log_4(u2) < bound);
        v = select(v, 1.0 + z, taken);
        open = open & !taken;
    }}
    let y = select({result}, vec4<f32>({nothing}), alpha == vec4<f32>(0.0));
    return select(select(y, alpha, is_inf_4(alpha)), vec4<f32>(nan()), (alpha < vec4<f32>(0.0)) | is_nan_4(alpha));\n"
    )
}

/// `(1 + t) log(1 + t) - t`: the deviance of `1 + t` times the mean from the mean. A series near 0; 1 at -1.
fn deviance(t: &str, name: &str) -> String {
    format!(
        "        let {name}_near = {t} * {t} * (0.5 + {t} * (-0.16666667 + {t} * (0.083333336 + {t} * (-0.05 \
         + {t} * (0.033333335 + {t} * (-0.023809524 + {t} * 0.017857144))))));
        let {name}_far = (1.0 + {t}) * log_4(max(1.0 + {t}, vec4<f32>(1e-30))) - {t};
        let {name} = select({name}_far, {name}_near, abs({t}) < vec4<f32>(0.1));\n"
    )
}

/// `log k! - k log k + k`, by Stirling's series; 0 for k = 0.
fn stirling(k: &str) -> String {
    format!(
        "select(0.5 * log_4(6.2831853 * max({k}, vec4<f32>(1.0))) + (0.083333336 - (0.0027777778 - 0.0007936508 / \
         (max({k}, vec4<f32>(1.0)) * max({k}, vec4<f32>(1.0)))) / (max({k}, vec4<f32>(1.0)) * max({k}, \
         vec4<f32>(1.0)))) / max({k}, vec4<f32>(1.0)), vec4<f32>(0.0), {k} < vec4<f32>(1.0))"
    )
}

/// Sums the distribution function from 0 up: `first` is the probability of 0, `ratio` that of `k` divided by that of
/// `k - 1`. The loop ends when the probabilities fall below 1e-9, where they are lost in rounding.
fn walk(first: &str, mean: &str, ratio: &str) -> String {
    format!(
        "    let w0 = philox(advance_256(start, i.x), key).x;
    let w1 = philox(advance_256(start, i.y), key).x;
    let w2 = philox(advance_256(start, i.z), key).x;
    let w3 = philox(advance_256(start, i.w), key).x;
    var left = min(vec4<f32>(vec4<u32>(w0, w1, w2, w3)) * 2.3283064e-10, vec4<f32>(0.99999994));
    var chance = {first};
    var y = vec4<f32>(0.0);
    var walking = low;
    for (var n = 0u; n < 64u && any(walking); n++) {{
        walking = walking & (left >= chance) & !((y > {mean}) & (chance < vec4<f32>(1e-9)));
        left = select(left, left - chance, walking);
        y = select(y, y + 1.0, walking);
        let k = max(y, vec4<f32>(1.0));
        chance = select(chance, chance * {ratio}, walking);
    }}\n"
    )
}

/// Poisson numbers: for means below 10 by their distribution function, otherwise by the transformed rejection of
/// Hörmann 1993 (PTRS), which TensorFlow also uses.
pub(super) fn poisson() -> String {
    let walk = walk("exp_4(-small)", "small", "(small / k)");
    let (deviance, stirling) = (deviance("t", "far"), stirling("k"));
    format!(
        "{START}    let known = (mean >= vec4<f32>(0.0)) & !is_inf_4(mean) & !is_nan_4(mean);
    let low = known & (mean < vec4<f32>(10.0));
    let small = select(vec4<f32>(1.0), mean, low);
    let large = select(vec4<f32>(10.0), mean, known & !low);
{walk}    let whole = floor(large);
    let part = large - whole;
    let b = 0.931 + 2.53 * sqrt_4(large);
    let a = 0.02483 * b - 0.059;
    let scale = 1.1239 + 1.1328 / (b - 3.4);
    let quick = 0.9277 - 3.6224 / (b - 2.0);
    open = known & !low;
    for (var n = 0u; n < 64u && any(open); n++) {{{WORDS}
        let u = u0 - 0.5;
        let edge = 0.5 - abs(u);
        let above = floor((2.0 * a / edge + b) * u + (part + 0.43));
        let k = whole + above;
        let t = (above - part) / large;
{deviance}        let chance = -large * far - {stirling};
        let taken = log_4(u1 * scale / (a / (edge * edge) + b)) <= chance;
        let inside = (k >= vec4<f32>(0.0)) & !((edge < vec4<f32>(0.013)) & (u1 > edge));
        let fits = open & (((edge >= vec4<f32>(0.07)) & (u1 <= quick)) | (inside & taken));
        y = select(y, k, fits);
        open = open & !fits;
    }}
    return select(vec4<f32>(nan()), y, known);\n"
    )
}

/// Binomial numbers: for means below 10 by their distribution function, otherwise by the transformed rejection of
/// Hörmann 1993 (BTRS). For `probs > 1/2` the number of failures is drawn.
pub(super) fn binomial() -> String {
    let walk =
        walk("exp_4(counts * log1p_4(-q))", "counts * q", "((counts - (k - 1.0)) / k * odds)");
    let (one, other) = (deviance("t", "far"), deviance("s", "other"));
    let (top, top_other) = (deviance("tm", "top"), deviance("sm", "beside"));
    let logs = [stirling("k"), stirling("(size - k)"), stirling("m"), stirling("(size - m)")];
    let [k, rest, m, rest_m] = logs;
    format!(
        "{START}    let known = (counts >= vec4<f32>(0.0)) & !is_inf_4(counts) & (probs >= vec4<f32>(0.0)) \
         & (probs <= vec4<f32>(1.0)) & !is_nan_4(counts) & !is_nan_4(probs);
    let turned = probs > vec4<f32>(0.5);
    let q = select(vec4<f32>(0.0), select(probs, 1.0 - probs, turned), known);
    let odds = q / (1.0 - q);
    let low = known & (counts * q < vec4<f32>(10.0));
{walk}    y = min(y, max(counts, vec4<f32>(0.0)));
    let high = known & !low;
    let size = select(vec4<f32>(100.0), counts, high);
    let chance_of_one = select(vec4<f32>(0.25), q, high);
    let mean = size * chance_of_one;
    let failures = size * (1.0 - chance_of_one);
    let deviation = sqrt_4(mean * (1.0 - chance_of_one));
    let b = 1.15 + 2.53 * deviation;
    let a = 0.0248 * b + 0.01 * chance_of_one - 0.0873;
    let scale = (2.83 + 5.1 / b) * deviation;
    let quick = 0.92 - 4.2 / b;
    let m = floor((size + 1.0) * chance_of_one);
    let tm = (m - mean) / mean;
    let sm = (mean - m) / failures;
{top}{top_other}    let most = mean * top + failures * beside + {m} + {rest_m};
    open = high;
    for (var n = 0u; n < 64u && any(open); n++) {{{WORDS}
        let u = u0 - 0.5;
        let edge = 0.5 - abs(u);
        let k = floor((2.0 * a / edge + b) * u + (mean + 0.5));
        let t = (k - mean) / mean;
        let s = (mean - k) / failures;
{one}{other}        let chance = most - mean * far - failures * other - {k} - {rest};
        let taken = log_4(u1 * scale / (a / (edge * edge) + b)) <= chance;
        let inside = (k >= vec4<f32>(0.0)) & (k <= size);
        let fits = open & inside & (((edge >= vec4<f32>(0.07)) & (u1 <= quick)) | taken);
        y = select(y, k, fits);
        open = open & !fits;
    }}
    return select(vec4<f32>(nan()), select(y, counts - y, turned), known);\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wgsl::Formula;

    #[test]
    fn all_loops_are_bounded() {
        for body in [gamma(false), gamma(true), poisson(), binomial()] {
            let made = Formula::new(body).iterations();
            // 64 tries, each with the ten rounds of Philox for four elements.
            assert!((64 * 40..4 * 64 * 40).contains(&made), "{made}");
        }
    }
}
