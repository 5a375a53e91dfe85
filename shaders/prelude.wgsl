// Functions that more than one shader needs. The host appends those that a shader calls.
// A name that ends in 4 works on vectors of four; each function stands between blank lines.

// Infinities and NaN cannot be written as constants in WGSL, so they come from bits in a variable.
fn inf() -> f32 { var bits = 0x7f800000u; return bitcast<f32>(bits); }

fn nan() -> f32 { var bits = 0x7fc00000u; return bitcast<f32>(bits); }

// By bits: a driver may assume that x != x is never true.
fn is_nan(x: f32) -> bool { return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u; }

fn is_nan_4(x: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) > vec4<u32>(0x7f800000u);
}

fn is_inf_4(x: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu)) == vec4<u32>(0x7f800000u);
}

// The larger one, or NaN if there is one.
fn max_4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    return select(max(a, b), vec4<f32>(nan()), is_nan_4(a) | is_nan_4(b));
}

fn min_4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    return select(min(a, b), vec4<f32>(nan()), is_nan_4(a) | is_nan_4(b));
}

// Division by zero written out: a driver may multiply by an approximate reciprocal.
fn divide_4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    return a / b;
}

// Bytes of a word, the lowest first.
fn unpack_bytes(word: u32) -> vec4<u32> {
    return (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
}

fn pack_bytes(v: vec4<u32>) -> u32 {
    return (v.x & 255u) | ((v.y & 255u) << 8u) | ((v.z & 255u) << 16u) | ((v.w & 255u) << 24u);
}

fn log_4(x: vec4<f32>) -> vec4<f32> {
    let special = select(log(x), vec4<f32>(-inf()), x == vec4<f32>(0.0));
    return select(special, vec4<f32>(nan()), (x < vec4<f32>(0.0)) | is_nan_4(x));
}

fn sqrt_4(x: vec4<f32>) -> vec4<f32> {
    return select(sqrt(x), vec4<f32>(nan()), (x < vec4<f32>(0.0)) | is_nan_4(x));
}

// Some drivers make infinity of e^NaN.
fn exp_4(x: vec4<f32>) -> vec4<f32> {
    return select(exp(x), x, is_nan_4(x));
}

// Drivers may be off by 2^-11. Quarter turns are taken off in three parts (Cody and Waite 1980), the rest goes into
// the Taylor series. Beyond 8192 the driver's own is as good as any.
fn sin_4(x: vec4<f32>) -> vec4<f32> {
    return select(turn_4(x, 0), sin(x), abs(x) > vec4<f32>(8192.0)) + 0.0 * x;
}

fn cos_4(x: vec4<f32>) -> vec4<f32> {
    return select(turn_4(x, 1), cos(x), abs(x) > vec4<f32>(8192.0)) + 0.0 * x;
}

// The sine of x plus so many quarter turns.
fn turn_4(x: vec4<f32>, quarters: i32) -> vec4<f32> {
    let k = round(clamp(x, vec4<f32>(-8192.0), vec4<f32>(8192.0)) * 0.6366197723675814);
    let r = ((x - k * 1.5703125) - k * 4.837512969970703e-4) - k * 7.54978995489188e-8;
    let r2 = r * r;
    let s = r * (1.0 - r2 / 6.0 * (1.0 - r2 / 20.0 * (1.0 - r2 / 42.0 * (1.0 - r2 / 72.0))));
    let c = 1.0 - r2 / 2.0 * (1.0 - r2 / 12.0 * (1.0 - r2 / 30.0 * (1.0 - r2 / 56.0 * (1.0 - r2 / 90.0))));
    let q = (vec4<i32>(k) + quarters) & vec4<i32>(3);
    let y = select(s, c, (q & vec4<i32>(1)) == vec4<i32>(1));
    return select(y, -y, q > vec4<i32>(1));
}

// e^x - 1: the Taylor series where exp(x) would lose digits.
fn expm1_4(x: vec4<f32>) -> vec4<f32> {
    var s = vec4<f32>(1.0);
    for (var n = 9; n > 1; n--) {
        s = 1.0 + s * x / f32(n);
    }
    return select(exp_4(x) - 1.0, x * s, abs(x) < vec4<f32>(0.5));
}

// log(1 + x) = 2 atanh(s), s = x / (2 + x), by its series near 0.
fn log1p_4(x: vec4<f32>) -> vec4<f32> {
    let s = x / (2.0 + x);
    let s2 = s * s;
    var sum = vec4<f32>(1.0 / 19.0);
    for (var n = 17; n > 0; n -= 2) {
        sum = 1.0 / f32(n) + s2 * sum;
    }
    return select(log_4(1.0 + x), 2.0 * s * sum, abs(x) < vec4<f32>(0.5));
}

// tanh x = (e^2x - 1) / (e^2x + 1); beyond 10 it is 1 in f32, and e^2x would overflow. Computed for |x|, so that
// it is odd to the last digit.
fn tanh_4(x: vec4<f32>) -> vec4<f32> {
    let t = expm1_4(2.0 * min(abs(x), vec4<f32>(10.0)));
    let y = t / (t + 2.0);
    return select(select(y, -y, is_negative_4(x)), x, is_nan_4(x));
}

// By the sign bit, so that -0 counts.
fn is_negative_4(x: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(x) >> vec4<u32>(31u)) == vec4<u32>(1u);
}

// Halves of e^x before they are added, so that the sum overflows no sooner than the result.
fn sinh_4(x: vec4<f32>) -> vec4<f32> {
    let t = expm1_4(abs(x));
    let near = 0.5 * (t + t / (t + 1.0));
    let far = 0.5 * exp(abs(x));
    return select(near, far, abs(x) > vec4<f32>(20.0)) * select(vec4<f32>(1.0), vec4<f32>(-1.0), x < vec4<f32>(0.0));
}

fn asinh_4(x: vec4<f32>) -> vec4<f32> {
    let a = abs(x);
    let near = log1p_4(a + a * a / (1.0 + sqrt(a * a + 1.0)));
    // a * a overflows beyond 1e19.
    let far = log_4(a) + 0.6931471805599453;
    let y = select(near, far, a > vec4<f32>(1e9));
    return select(y, -y, x < vec4<f32>(0.0));
}

fn acosh_4(x: vec4<f32>) -> vec4<f32> {
    let t = x - 1.0;
    let near = log1p_4(t + sqrt(2.0 * t + t * t));
    let far = log_4(x) + 0.6931471805599453;
    return select(select(near, far, x > vec4<f32>(1e9)), vec4<f32>(nan()), (x < vec4<f32>(1.0)) | is_nan_4(x));
}

fn atanh_4(x: vec4<f32>) -> vec4<f32> {
    let a = abs(x);
    let y = 0.5 * log1p_4(2.0 * a / (1.0 - a));
    let known = select(y, vec4<f32>(inf()), a == vec4<f32>(1.0));
    let signed = select(known, -known, x < vec4<f32>(0.0));
    return select(signed, vec4<f32>(nan()), (a > vec4<f32>(1.0)) | is_nan_4(x));
}

// atan by halving the argument twice (atan x = 2 atan(x / (1 + sqrt(1 + x^2)))) and the Taylor series.
fn atan_4(x: vec4<f32>) -> vec4<f32> {
    let a = abs(x);
    let inverted = a > vec4<f32>(1.0);
    var t = select(a, 1.0 / a, inverted);
    t = t / (1.0 + sqrt(1.0 + t * t));
    t = t / (1.0 + sqrt(1.0 + t * t));
    let t2 = t * t;
    var s = vec4<f32>(1.0 / 13.0);
    for (var n = 11; n > 0; n -= 2) {
        s = 1.0 / f32(n) - t2 * s;
    }
    let y = 4.0 * t * s;
    let angle = select(y, 1.5707963267948966 - y, inverted);
    return select(select(angle, -angle, is_negative_4(x)), x, is_nan_4(x));
}

// asin x = atan(x / sqrt(1 - x^2)), with 1 - x^2 as (1 - x)(1 + x) to keep the digits near 1.
fn asin_4(x: vec4<f32>) -> vec4<f32> {
    let y = atan2_4(x, sqrt(max((1.0 - x) * (1.0 + x), vec4<f32>(0.0))));
    return select(y, vec4<f32>(nan()), (abs(x) > vec4<f32>(1.0)) | is_nan_4(x));
}

fn acos_4(x: vec4<f32>) -> vec4<f32> {
    let y = atan2_4(sqrt(max((1.0 - x) * (1.0 + x), vec4<f32>(0.0))), x);
    return select(y, vec4<f32>(nan()), (abs(x) > vec4<f32>(1.0)) | is_nan_4(x));
}

fn atan2_4(y: vec4<f32>, x: vec4<f32>) -> vec4<f32> {
    // Two infinities make an angle of 45 degrees.
    let ratio = select(abs(y) / abs(x), vec4<f32>(1.0), is_inf_4(y) & is_inf_4(x));
    let first = atan_4(ratio);
    let flat = select(first, vec4<f32>(0.0), y == vec4<f32>(0.0));
    let angle = select(flat, 3.141592653589793 - flat, is_negative_4(x));
    return select(select(angle, -angle, is_negative_4(y)), vec4<f32>(nan()), is_nan_4(x) | is_nan_4(y));
}

fn softplus_4(x: vec4<f32>) -> vec4<f32> {
    return max_4(x, vec4<f32>(0.0)) + log1p_4(exp(-abs(x)));
}

// erf by its Taylor series below 0.5, else 1 - erfc.
fn erf_4(x: vec4<f32>) -> vec4<f32> {
    let x2 = x * x;
    // 2/sqrt(pi) * sum of (-1)^n x^(2n+1) / (n! (2n+1)), Abramowitz and Stegun 7.1.5
    let near = 1.1283791670955126 * x * (1.0 - x2 * (1.0 / 3.0 - x2 * (0.1 - x2 * (1.0 / 42.0
        - x2 * (1.0 / 216.0 - x2 * (1.0 / 1320.0 - x2 / 9360.0))))));
    return select(1.0 - erfc_4(x), near, abs(x) < vec4<f32>(0.5));
}

// erfc within 1.2e-7 of itself, by a rational Chebyshev fit in t = 1 / (1 + |x|/2) (Press et al., Numerical
// Recipes in C, 1992, section 6.2).
fn erfc_4(x: vec4<f32>) -> vec4<f32> {
    let z = abs(x);
    let t = 1.0 / (1.0 + 0.5 * z);
    let fit = 1.00002368 + t * (0.37409196 + t * (0.09678418 + t * (-0.18628806 + t * (0.27886807
        + t * (-1.13520398 + t * (1.48851587 + t * (-0.82215223 + t * 0.17087277)))))));
    let y = t * exp(-z * z - 1.26551223 + t * fit);
    return select(select(y, 2.0 - y, x < vec4<f32>(0.0)), x, is_nan_4(x));
}

// The remainder with the sign of b, as Python's %.
fn floormod_4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let r = a - b * trunc(a / b);
    let other_side = (r != vec4<f32>(0.0)) & ((r < vec4<f32>(0.0)) != (b < vec4<f32>(0.0)));
    let y = select(r, r + b, other_side);
    // A finite a is its own remainder to an infinite b of the same sign.
    let wide = is_inf_4(b) & !is_inf_4(a) & !is_nan_4(a);
    let same_side = (a == vec4<f32>(0.0)) | ((a < vec4<f32>(0.0)) == (b < vec4<f32>(0.0)));
    return select(y, select(b, a, same_side), wide);
}

// WGSL's pow knows no negative base.
fn pow_4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let size = exp2(b * log2(abs(a)));
    let whole = floor(b) == b;
    let odd = whole & ((b - 2.0 * floor(0.5 * b)) == vec4<f32>(1.0));
    let negative = is_negative_4(a);
    var y = select(size, -size, negative & odd);
    y = select(y, vec4<f32>(nan()), (a < vec4<f32>(0.0)) & !whole & !is_inf_4(a) & !is_inf_4(b));
    let zero = a == vec4<f32>(0.0);
    let pole = select(vec4<f32>(inf()), vec4<f32>(-inf()), negative & odd);
    y = select(y, select(vec4<f32>(0.0), pole, b < vec4<f32>(0.0)), zero);
    y = select(y, vec4<f32>(nan()), is_nan_4(a) | is_nan_4(b));
    return select(y, vec4<f32>(1.0), (b == vec4<f32>(0.0)) | (a == vec4<f32>(1.0)));
}

// Philox 4x32 with ten rounds (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
fn philox(counter: vec4<u32>, seed: vec2<u32>) -> vec4<u32> {
    var c = counter;
    var k = seed;
    for (var round = 0; round < 10; round++) {
        let a = multiply_wide(0xD2511F53u, c.x);
        let b = multiply_wide(0xCD9E8D57u, c.z);
        c = vec4<u32>(b.y ^ c.y ^ k.x, b.x, a.y ^ c.w ^ k.y, a.x);
        k += vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
    }
    return c;
}

// The 64-bit product as (low, high) words, from 16-bit halves.
fn multiply_wide(a: u32, b: u32) -> vec2<u32> {
    let ll = (a & 0xffffu) * (b & 0xffffu);
    let hl = (a >> 16u) * (b & 0xffffu);
    let lh = (a & 0xffffu) * (b >> 16u);
    let hh = (a >> 16u) * (b >> 16u);
    let middle = (ll >> 16u) + (hl & 0xffffu) + (lh & 0xffffu);
    return vec2<u32>(a * b, hh + (hl >> 16u) + (lh >> 16u) + (middle >> 16u));
}

// counter + n, over 128 bits.
fn advance(counter: vec4<u32>, n: u32) -> vec4<u32> {
    var c = counter;
    c.x += n;
    if (c.x < n) {
        c.y += 1u;
        if (c.y == 0u) {
            c.z += 1u;
            if (c.z == 0u) { c.w += 1u; }
        }
    }
    return c;
}

// counter + 256 n, over 128 bits.
fn advance_256(counter: vec4<u32>, n: u32) -> vec4<u32> {
    let low = advance(counter, n << 8u);
    let high = advance(vec4<u32>(low.y, low.z, low.w, 0u), n >> 24u);
    return vec4<u32>(low.x, high.x, high.y, high.z);
}

// 23 bits of each word as a float in [0, 1).
fn unit_floats(bits: vec4<u32>) -> vec4<f32> {
    return bitcast<vec4<f32>>((bits & vec4<u32>(0x7fffffu)) | vec4<u32>(0x3f800000u)) - 1.0;
}

// Two normal numbers from two uniform ones (Box and Muller 1958).
fn box_muller(u: vec2<f32>) -> vec2<f32> {
    let radius = sqrt(-2.0 * log(max(u.x, 1e-7)));
    let angle = vec4<f32>(6.283185307179586 * u.y);
    return radius * vec2<f32>(sin_4(angle).x, cos_4(angle).x);
}

// Rows (or columns) of the image that window i takes: from, to.
fn reach(i: u32, stride: u32, lead: u32, window: u32, size: u32) -> vec2<u32> {
    let from_edge = i * stride;
    return vec2<u32>(max(from_edge, lead) - lead, min(from_edge + window - lead, size));
}

// Windows that hold row (or column) y of the image: from, to.
fn holders(y: u32, stride: u32, lead: u32, window: u32, count: u32) -> vec2<u32> {
    let at = y + lead;
    let first = select(0u, (at - window) / stride + 1u, at >= window);
    return vec2<u32>(first, min(at / stride + 1u, count));
}
