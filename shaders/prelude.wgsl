// Functions that several shaders need. The host appends those that a shader calls. A name that ends in 4 takes vectors
// of four; blank lines separate the functions.

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

// a / b. A driver may multiply by the reciprocal, which is 0 for b beyond 2^126 (NVIDIA), so both are made smaller then; apart,
// as it could cancel the scale.
fn divide_4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let scale = select(vec4<f32>(1.0), vec4<f32>(2.3283064e-10), abs(b) > vec4<f32>(8.507059e37));
    return (a * scale) / apart_4(b * scale);
}

// x rounded as f16 stores it: to the nearest one, of two the even one, by bits. Conversions may round toward zero, and
// NVIDIA's compiler leaves out one there and back; quantizeToF16 may give anything for what f16 does not hold. Below 2^-14
// f16 has multiples of 2^-24.
fn narrow_4(x: vec4<f32>) -> vec4<f32> {
    let bits = bitcast<vec4<u32>>(x);
    let size = bits & vec4<u32>(0x7fffffffu);
    let even = (size + ((size >> vec4<u32>(13u)) & vec4<u32>(1u)) + vec4<u32>(0xfffu)) & vec4<u32>(0xffffe000u);
    let large = select(even, max(size, vec4<u32>(0x7f800000u)), even > vec4<u32>(0x477fe000u));
    let small = round(x * 16777216.0) * 5.9604645e-8;
    let y = bitcast<vec4<f32>>(large | (bits & vec4<u32>(0x80000000u)));
    return select(y, small, size < vec4<u32>(0x38800000u));
}

// Bytes of a word, the lowest first.
fn unpack_bytes(word: u32) -> vec4<u32> {
    return (vec4<u32>(word) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);
}

fn pack_bytes(v: vec4<u32>) -> u32 {
    return (v.x & 255u) | ((v.y & 255u) << 8u) | ((v.z & 255u) << 16u) | ((v.w & 255u) << 24u);
}

// The bits of |x| with 149 added to the exponent, so that numbers below 1.2e-38, which drivers take for 0, have one.
fn spread_4(x: vec4<f32>) -> vec4<u32> {
    let bits = bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu);
    let raised = bits + vec4<u32>(149u << 23u);
    return select(raised, bitcast<vec4<u32>>(vec4<f32>(bits)), bits < vec4<u32>(0x800000u));
}

// The upper half of the digits: a product of two such numbers is exact. By bits, so that no driver's algebra sees
// through it.
fn upper_4(x: vec4<f32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) & vec4<u32>(0xfffff000u));
}

// x: a sum that no driver regroups with what it is added to, as WGSL would let it. The bound changes no number, only one of
// the NaNs, which a driver does not know.
fn apart_4(x: vec4<f32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(min(bitcast<vec4<u32>>(x), vec4<u32>(0xfffffffeu)));
}

// |y| with the sign of x. Not by abs, whose bits llvmpipe (Mesa 22.3.6) gets wrong if x is one number for all lanes; nor
// by putting the sign's bit to the others, which together with unless_tiny_4 became 4e-40 there for a tanh of 0.3.
fn signed_4(y: vec4<f32>, x: vec4<f32>) -> vec4<f32> {
    let size = bitcast<vec4<f32>>(bitcast<vec4<u32>>(y) & vec4<u32>(0x7fffffffu));
    return select(size, -size, is_negative_4(x));
}

// y, but x where x is NaN or so small that it is its own result.
fn unless_tiny_4(y: vec4<f32>, x: vec4<f32>) -> vec4<f32> {
    let bits = bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu);
    return select(y, x, bits - vec4<u32>(0x20000000u) > vec4<u32>(0x5f800000u));
}

// x = 2^e m with m from sqrt(1/2) to sqrt(2); log m as in Cephes' logf (Moshier 1992). WGSL's log may lose all digits
// near 1.
fn log_4(x: vec4<f32>) -> vec4<f32> {
    let bits = spread_4(x) - vec4<u32>(0x3f3504f3u);
    let e = vec4<f32>(vec4<i32>(bits >> vec4<u32>(23u)) - vec4<i32>(149));
    let m = apart_4(bitcast<vec4<f32>>((bits & vec4<u32>(0x7fffffu)) + vec4<u32>(0x3f3504f3u)) - 1.0);
    let m2 = m * m;
    let p = 0.3333333 + m * (-0.24999994 + m * (0.200007148 + m * (-0.16668058 + m * (0.14249323
        + m * (-0.12420141 + m * (0.116769987 + m * (-0.1151461 + m * 0.070376836)))))));
    let y = m + (m * (m2 * p) - e * 2.12194440e-4 - 0.5 * m2) + e * 0.6933594;
    // Of negative numbers, infinity and NaN only infinity has a logarithm.
    let known = select(y, select(x, vec4<f32>(nan()), is_negative_4(x)), bitcast<vec4<u32>>(x) >= vec4<u32>(0x7f800000u));
    return select(known, vec4<f32>(-inf()), (bitcast<vec4<u32>>(x) << vec4<u32>(1u)) == vec4<u32>(0u));
}

fn sqrt_4(x: vec4<f32>) -> vec4<f32> {
    return select(sqrt(x), vec4<f32>(nan()), (x < vec4<f32>(0.0)) | is_nan_4(x));
}

// |x| = 2^(3k) m with m from 1 to 8, by bits. A third of the bits of m, corrected by the constant, is within 4% of its root (as
// in FreeBSD's cbrtf); each of Halley's steps leaves the cube of the error. The root of the first step has few digits, so that
// m and its cube have a small difference that is exact but for the rounding of the cube.
fn cbrt_4(x: vec4<f32>) -> vec4<f32> {
    let bits = spread_4(x);
    let k = (bits >> vec4<u32>(23u)) / vec4<u32>(3u);
    let m = bitcast<vec4<f32>>(bits + ((vec4<u32>(127u) - 3u * k) << vec4<u32>(23u)));
    let guess = bitcast<vec4<f32>>(bitcast<vec4<u32>>(m) / vec4<u32>(3u) + vec4<u32>(0x2a5119f2u));
    let cube = guess * guess * guess;
    let r = upper_4(guess * ((cube + 2.0 * m) / (2.0 * cube + m)));
    let rest = apart_4(m - r * r * r);
    let y = r + r * (rest / (2.0 * (r * r * r) + m));
    let root = signed_4(bitcast<vec4<f32>>(bitcast<vec4<u32>>(y) + ((k - vec4<u32>(92u)) << vec4<u32>(23u))), x);
    // Zeros, infinities and NaN are their own roots.
    let size = bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu);
    return select(root, x, (size == vec4<u32>(0u)) | (size >= vec4<u32>(0x7f800000u)));
}

// How many times e^x is doubled, and what is left: x - n log(2), in two parts (Cody and Waite 1980).
fn doublings_4(x: vec4<f32>) -> vec4<f32> {
    return round(x * 1.442695);
}

fn remainder_4(x: vec4<f32>, n: vec4<f32>) -> vec4<f32> {
    return apart_4(x - n * 0.6933594) + n * 2.12194440e-4;
}

// e^r - 1 - r for |r| up to log(2) / 2, as in Cephes' expf (Moshier 1992).
fn exp_more_4(r: vec4<f32>) -> vec4<f32> {
    return r * r * (0.5 + r * (0.16666665 + r * (0.041665796 + r * (0.008333452
        + r * (0.00139819995 + r * 1.98756915e-4)))));
}

fn near_expm1_4(r: vec4<f32>) -> vec4<f32> {
    return r + exp_more_4(r);
}

// n as bits of an exponent: in 1.5 * 2^23 + n the last digits are those of n.
fn exponent_4(n: vec4<f32>) -> vec4<u32> {
    return bitcast<vec4<u32>>(n + 12582912.0) << vec4<u32>(23u);
}

// 2^n for n from -126 to 127.
fn power_of_two_4(n: vec4<f32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(exponent_4(n + 127.0));
}

// WGSL's exp may be off by 3 + 2 |x| in the last digit.
fn exp_4(x: vec4<f32>) -> vec4<f32> {
    let n = doublings_4(x);
    let m = 1.0 + near_expm1_4(remainder_4(x, n));
    let y = bitcast<vec4<f32>>(bitcast<vec4<u32>>(m) + exponent_4(n));
    // Smaller results than 1.2e-38 are 0, as drivers take them for 0 anyway.
    let above = select(y, vec4<f32>(0.0), x < vec4<f32>(-87.33654));
    return select(select(above, vec4<f32>(inf()), x > vec4<f32>(88.72283)), x, is_nan_4(x));
}

// (e^x - 1) / 4, which is finite for all x whose sinh is: no digits are lost near 0, as 2^n e^r - 1 is 2^n (e^r - 1)
// and 2^n - 1.
fn quarter_expm1_4(x: vec4<f32>) -> vec4<f32> {
    let bounded = clamp(x, vec4<f32>(-20.0), vec4<f32>(89.43));
    let n = doublings_4(bounded);
    let power = power_of_two_4(n - 2.0);
    return power * near_expm1_4(remainder_4(bounded, n)) + apart_4(power - 0.25);
}

fn expm1_4(x: vec4<f32>) -> vec4<f32> {
    return unless_tiny_4(4.0 * quarter_expm1_4(x), x);
}

// tanh x = (e^2x - 1) / (e^2x + 1). Computed for |x|, so that it is odd to the last digit. From 13 log 2 on it is 1, whatever a
// driver's quotient is: x (1 - tanh x) would be huge. Larger divisors than 2^126 give 0 on NVIDIA's GPUs, and a quotient that
// is a little too large is no tanh.
fn tanh_4(x: vec4<f32>) -> vec4<f32> {
    let q = quarter_expm1_4(2.0 * min(abs(x), vec4<f32>(10.0)));
    let y = select(min(q / (q + 0.5), vec4<f32>(1.0)), vec4<f32>(1.0), abs(x) > vec4<f32>(9.0109135));
    return unless_tiny_4(signed_4(y, x), x);
}

fn sinh_4(x: vec4<f32>) -> vec4<f32> {
    let q = quarter_expm1_4(abs(x));
    return unless_tiny_4(signed_4(2.0 * q + q / (2.0 * q + 0.5), x), x);
}

fn cosh_4(x: vec4<f32>) -> vec4<f32> {
    let q = quarter_expm1_4(abs(x)) + 0.25;
    return select(2.0 * q + 0.125 / q, x, is_nan_4(x));
}

// From 25 log 2 on it is 1, as tanh.
fn sigmoid_4(x: vec4<f32>) -> vec4<f32> {
    // Where e^-x is infinite the result is 0.
    let a = clamp(-x, vec4<f32>(-80.0), vec4<f32>(89.0));
    let n = doublings_4(a);
    let half = power_of_two_4(n - 1.0);
    let y = 1.0 / (1.0 + 2.0 * (half + half * near_expm1_4(remainder_4(a, n))));
    return select(select(min(y, vec4<f32>(1.0)), vec4<f32>(1.0), x > vec4<f32>(17.328682)), x, is_nan_4(x));
}

// Drivers may be off by 2^-11.
fn sin_4(x: vec4<f32>) -> vec4<f32> {
    let turns = turns_4(x);
    return wave_4(turns[0], vec4<i32>(turns[1]));
}

fn cos_4(x: vec4<f32>) -> vec4<f32> {
    let turns = turns_4(x);
    return wave_4(turns[0], vec4<i32>(turns[1]) + 1);
}

fn tan_4(x: vec4<f32>) -> vec4<f32> {
    let turns = turns_4(x);
    let k = vec4<i32>(turns[1]);
    return wave_4(turns[0], k) / wave_4(turns[0], k + 1);
}

// x as quarter turns: what is left, and how many.
fn turns_4(x: vec4<f32>) -> array<vec4<f32>, 2> {
    var k = round(x * 0.63661977);
    var r = quarter_rest_4(x, k);
    var rest = x;
    // Lane by lane, for large numbers are rare: a processor goes through the text even where there are none.
    let lanes = select(0, 4, any(abs(x) > vec4<f32>(128.0)));
    for (var i = 0; i < min(lanes, 4); i++) {
        let far = abs(rest.x) > 128.0;
        let turns = far_turns(rest.x);
        r = vec4<f32>(r.yzw, select(r.x, turns.x, far));
        k = vec4<f32>(k.yzw, select(k.x, turns.y, far));
        rest = rest.yzwx;
    }
    return array<vec4<f32>, 2>(select(r, vec4<f32>(nan()), is_nan_4(x) | is_inf_4(x)), k);
}

// x without k quarter turns, which are taken off in three parts (Cody and Waite 1980). The first two have 17 digits, so
// that their products with k up to 127 are exact: near a zero of the sine nothing else is left.
fn quarter_rest_4(x: vec4<f32>, k: vec4<f32>) -> vec4<f32> {
    return apart_4(apart_4(x - k * 1.5707855) - k * 0.000010804273) - k * 6.0771006e-11;
}

// The sine of r plus k quarter turns, by the Taylor series.
fn wave_4(r: vec4<f32>, k: vec4<i32>) -> vec4<f32> {
    let r2 = r * r;
    let s = r * (1.0 - r2 / 6.0 * (1.0 - r2 / 20.0 * (1.0 - r2 / 42.0 * (1.0 - r2 / 72.0))));
    let c = 1.0 - r2 / 2.0 * (1.0 - r2 / 12.0 * (1.0 - r2 / 30.0 * (1.0 - r2 / 56.0 * (1.0 - r2 / 90.0))));
    let y = select(s, c, (k & vec4<i32>(1)) == vec4<i32>(1));
    return select(y, -y, (k & vec4<i32>(2)) == vec4<i32>(2));
}

// The same for one x from 1 on, k up to a multiple of four. Of 2 / pi the 96 bits are taken that matter to the product,
// which has 2 bits in front of its point and 62 behind (Payne and Hanek 1983).
fn far_turns(x: f32) -> vec2<f32> {
    let bits = bitcast<u32>(x) & 0x7fffffffu;
    let at = max(bits >> 23u, 120u) - 120u;
    let m = (bits & 0x7fffffu) | 0x800000u;
    let d0 = digits(at, 0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u);
    let d1 = digits(at, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u);
    let d2 = digits(at, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u);
    let d3 = digits(at, 0xfc2757d1u, 0xf534ddc0u, 0xdb629599u, 0x3c439041u, 0xfe5163abu);
    let by = at & 31u;
    let a = m * ((d0 << by) | ((d1 >> 1u) >> (31u - by)));
    let b = multiply_wide(m, (d1 << by) | ((d2 >> 1u) >> (31u - by)));
    let c = multiply_wide(m, (d2 << by) | ((d3 >> 1u) >> (31u - by)));
    let low = b.x + c.y;
    let high = a + b.y + select(0u, 1u, low < b.x);
    // The nearest whole number, and what is beside it.
    let k = (high + 0x20000000u) >> 30u;
    let beside = high - (k << 30u);
    let below = beside > 0x7fffffffu;
    let flip = select(0u, 0xffffffffu, below);
    let r = f32(beside ^ flip) * 1.4629181e-9 + f32(low ^ flip) * 3.4061216e-19;
    let turns = vec2<f32>(select(r, -r, below), f32(k));
    return select(turns, -turns, x < 0.0);
}

// One of five words: that of bit `at`.
fn digits(at: u32, a: u32, b: u32, c: u32, d: u32, e: u32) -> u32 {
    return select(select(select(a, b, at > 31u), select(c, d, at > 95u), at > 63u), e, at > 127u);
}

// log(1 + x) = log u + log(1 + q): u is 1 + x rounded to half its digits, q what that left, as a part of u.
fn log1p_4(x: vec4<f32>) -> vec4<f32> {
    let u = bitcast<vec4<f32>>((bitcast<vec4<u32>>(1.0 + x) + vec4<u32>(0x800u)) & vec4<u32>(0xfffff000u));
    let q = (x - apart_4(u - 1.0)) / u;
    // At infinities and NaN, and up to -1, q is no number.
    let plain = !(x > vec4<f32>(-1.0)) | (x > vec4<f32>(1e9)) | is_nan_4(x);
    // 1 + x may be infinite if x is the largest number.
    let whole = select(1.0 + x, x, x > vec4<f32>(1e9));
    return log_4(select(u, whole, plain)) + select(q - q * q * (0.5 - q * 0.33333333), vec4<f32>(0.0), plain);
}

// By the sign bit, so that -0 counts.
fn is_negative_4(x: vec4<f32>) -> vec4<bool> {
    return (bitcast<vec4<u32>>(x) >> vec4<u32>(31u)) == vec4<u32>(1u);
}

fn asinh_4(x: vec4<f32>) -> vec4<f32> {
    let a = abs(x);
    // Beyond, log(2 a); a * a would overflow.
    let far = a > vec4<f32>(1e9);
    let y = log1p_4(select(a + a * a / (1.0 + sqrt(a * a + 1.0)), a, far));
    return unless_tiny_4(signed_4(y + select(vec4<f32>(0.0), vec4<f32>(0.6931472), far), x), x);
}

fn acosh_4(x: vec4<f32>) -> vec4<f32> {
    let t = apart_4(x - 1.0);
    let far = x > vec4<f32>(1e9);
    let y = log1p_4(select(t + sqrt(2.0 * t + t * t), x, far)) + select(vec4<f32>(0.0), vec4<f32>(0.6931472), far);
    return select(y, vec4<f32>(nan()), (x < vec4<f32>(1.0)) | is_nan_4(x));
}

fn atanh_4(x: vec4<f32>) -> vec4<f32> {
    let a = abs(x);
    let y = 0.5 * log1p_4(2.0 * a / (1.0 - a));
    let known = select(signed_4(y, x), signed_4(vec4<f32>(inf()), x), a == vec4<f32>(1.0));
    return select(unless_tiny_4(known, x), vec4<f32>(nan()), (a > vec4<f32>(1.0)) | is_nan_4(x));
}

// The argument is brought to tan(pi / 8) or less, as in Cephes' atanf (Moshier 1992).
fn atan_4(x: vec4<f32>) -> vec4<f32> {
    let a = abs(x);
    let steep = a > vec4<f32>(2.4142136);
    let middle = a > vec4<f32>(0.41421356);
    let n = select(select(a, a - 1.0, middle), vec4<f32>(-1.0), steep);
    let t = n / select(select(vec4<f32>(1.0), a + 1.0, middle), a, steep);
    let t2 = t * t;
    let y = t + t * (t2 * (-0.3333295 + t2 * (0.19977711 + t2 * (-0.13877686 + t2 * 0.080537445))));
    let turned = select(select(vec4<f32>(0.0), vec4<f32>(0.7853982), middle), vec4<f32>(1.57079633), steep);
    return unless_tiny_4(signed_4(turned + y, x), x);
}

// asin(s) - s for z = s^2 up to 1/4, as in Cephes' asinf, as a part of s.
fn asin_more_4(z: vec4<f32>) -> vec4<f32> {
    return z * (0.16666752 + z * (0.074953003 + z * (0.045470026 + z * (0.02418131105 + z * 0.0421632))));
}

// Beyond 1/2, asin x = pi / 2 - 2 asin(sqrt((1 - x) / 2)).
fn asin_4(x: vec4<f32>) -> vec4<f32> {
    let a = abs(x);
    let far = a > vec4<f32>(0.5);
    let z = select(a * a, 0.5 - 0.5 * a, far);
    let s = select(a, sqrt(z), far);
    let y = s + s * asin_more_4(z);
    let known = unless_tiny_4(signed_4(select(y, 1.57079633 - 2.0 * y, far), x), x);
    return select(known, vec4<f32>(nan()), a > vec4<f32>(1.0));
}

fn acos_4(x: vec4<f32>) -> vec4<f32> {
    let a = abs(x);
    let far = a > vec4<f32>(0.5);
    let z = select(a * a, 0.5 - 0.5 * a, far);
    let s = select(x, sqrt(z), far);
    let y = s + s * asin_more_4(z);
    let known = select(1.57079633 - y, select(2.0 * y, 3.1415927 - 2.0 * y, x < vec4<f32>(0.0)), far);
    return select(known, vec4<f32>(nan()), (a > vec4<f32>(1.0)) | is_nan_4(x));
}

fn atan2_4(y: vec4<f32>, x: vec4<f32>) -> vec4<f32> {
    // Two infinities make an angle of 45 degrees.
    let ratio = select(divide_4(abs(y), abs(x)), vec4<f32>(1.0), is_inf_4(y) & is_inf_4(x));
    // A driver that takes small numbers for 0 may divide 0 by 0.
    let flat = select(atan_4(ratio), vec4<f32>(0.0), abs(y) < vec4<f32>(1.1754944e-38));
    let angle = select(flat, 3.1415927 - flat, is_negative_4(x));
    return select(signed_4(angle, y), vec4<f32>(nan()), is_nan_4(x) | is_nan_4(y));
}

fn softplus_4(x: vec4<f32>) -> vec4<f32> {
    return max_4(x, vec4<f32>(0.0)) + log1p_4(exp_4(-abs(x)));
}

// erf x = x p(x^2), p fitted for x^2 up to 0.75, and 1 - erfc x beyond.
fn erf_4(x: vec4<f32>) -> vec4<f32> {
    let z = x * x;
    let near = x * (1.1283791 + z * (-0.37612557 + z * (0.11282555
        + z * (-0.026795603 + z * (0.0050391164 - z * 0.0006243523)))));
    return select(signed_4(1.0 - erfc_4(abs(x)), x), near, z < vec4<f32>(0.7));
}

// erfc x = e^(-x^2) t p(t), t = 1 / (1 + 0.35 x), p fitted for x from 0 to 10.1. x^2 is taken in two parts, or its last
// digit would be many in the result.
fn erfc_4(x: vec4<f32>) -> vec4<f32> {
    let z = min(abs(x), vec4<f32>(10.1));
    let upper = upper_4(z);
    let rest = (z - upper) * (z + upper);
    let n = max(doublings_4(-(upper * upper + rest)), vec4<f32>(-126.0));
    let t = 1.0 / (1.0 + 0.35 * z);
    let p = 0.197483 + t * (0.19715257 + t * (0.18779092 + t * (0.15167965
        + t * (0.14468183 + t * (0.08944464 + t * (-0.030508926 + t * (0.18348901
        + t * (-0.15976286 + t * 0.038550235))))))));
    let scaled = t * p;
    let size = (scaled + scaled * near_expm1_4(remainder_4(-(upper * upper), n) - rest)) * power_of_two_4(n);
    let y = select(size, vec4<f32>(0.0), z > vec4<f32>(9.194549));
    return select(select(y, 2.0 - y, x < vec4<f32>(0.0)), x, is_nan_4(x));
}

// The remainder with the sign of b, as Python's %. Exact: digits are divided as integers, eight at a time.
fn floormod_4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let wide_a = spread_4(a);
    let wide_b = spread_4(b);
    let divisor = (wide_b & vec4<u32>(0x7fffffu)) | vec4<u32>(0x800000u);
    var r = (wide_a & vec4<u32>(0x7fffffu)) | vec4<u32>(0x800000u);
    r = r - select(vec4<u32>(0u), divisor, r >= divisor);
    let digits = vec4<i32>(wide_a >> vec4<u32>(23u)) - vec4<i32>(wide_b >> vec4<u32>(23u));
    let most = max(max(digits.x, digits.y), max(digits.z, digits.w));
    let inverse = 1.0 / vec4<f32>(divisor);
    // A float has 277 digits at most.
    for (var round = 0; round < min((most + 7) >> 3u, 35); round++) {
        let next = r << vec4<u32>(clamp(digits - 8 * round, vec4<i32>(0), vec4<i32>(8)));
        // One too many or too few, as the division is not exact; what is left is right modulo 2^32.
        r = next - vec4<u32>(vec4<f32>(next) * inverse) * divisor;
        r = r + select(vec4<u32>(0u), divisor, r > vec4<u32>(0x7fffffffu));
        r = r - select(vec4<u32>(0u), divisor, r >= divisor);
    }
    let apart = is_negative_4(a) != is_negative_4(b);
    let turned = apart & (r != vec4<u32>(0u));
    r = select(r, divisor - r, turned);
    // Back to a float, also below 1.2e-38.
    let bits = bitcast<vec4<u32>>(vec4<f32>(r));
    let exponent = vec4<i32>((bits >> vec4<u32>(23u)) + (wide_b >> vec4<u32>(23u))) - 299;
    let by = vec4<i32>(wide_b >> vec4<u32>(23u)) - 150;
    let small = select(r << vec4<u32>(by), r >> vec4<u32>(-by), by < vec4<i32>(0));
    let normal = (bits & vec4<u32>(0x7fffffu)) | vec4<u32>(exponent << vec4<u32>(23u));
    let size = select(select(normal, small, exponent < vec4<i32>(1)), vec4<u32>(0u), r == vec4<u32>(0u));
    let far = signed_4(bitcast<vec4<f32>>(size), select(a, b, turned));
    let near = select(a, a + b, apart & ((bitcast<vec4<u32>>(a) << vec4<u32>(1u)) != vec4<u32>(0u)));
    let y = select(far, near, digits < vec4<i32>(0));
    let none = is_nan_4(a) | is_inf_4(a) | is_nan_4(b) | ((bitcast<vec4<u32>>(b) << vec4<u32>(1u)) == vec4<u32>(0u));
    return select(y, vec4<f32>(nan()), none);
}

// floor(a / b) of the quotient rounded to nearest. A driver's quotient is up to 2.5 units of the last digit off, so 49 / 49 may be
// less than 1. Where it is next to a whole number below 2^19, the exact remainder says on which side the right one lies.
fn floordiv_4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let quotient = divide_4(a, b);
    let whole = round(quotient);
    let size = abs(whole);
    let near = (abs(quotient - whole) <= size * 4.7683716e-7) & (size >= vec4<f32>(1.0)) & (size < vec4<f32>(524288.0));
    if (!any(near)) {
        return floor(quotient);
    }
    let left = abs(floormod_4(a, b));
    // What rounds up to the whole number: half of the gap between it and the number below.
    let bits = bitcast<vec4<u32>>(whole);
    let power = (bits & vec4<u32>(0x807fffffu)) == vec4<u32>(0u);
    let exponent = max((bits >> vec4<u32>(23u)) & vec4<u32>(0xffu), vec4<u32>(26u));
    let half = bitcast<vec4<f32>>((exponent - select(vec4<u32>(24u), vec4<u32>(25u), power)) << vec4<u32>(23u));
    let reached = (left < 0.5 * abs(b)) | (abs(b) - left <= half * abs(b));
    return select(floor(quotient), select(whole - 1.0, whole, reached), near);
}

// 2^(b log2 a), with log2 a in two parts as in FreeBSD's e_powf.c (Sun Microsystems 1993): an error of its last digit
// would grow with b. What must be exact is cut off by bits.
fn pow_4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> {
    let bits = spread_4(a) - vec4<u32>(0x3f3504f3u);
    let e = vec4<f32>(vec4<i32>(bits >> vec4<u32>(23u)) - vec4<i32>(149));
    let m = bitcast<vec4<f32>>((bits & vec4<u32>(0x7fffffu)) + vec4<u32>(0x3f3504f3u));
    // log m = 2 atanh(s), s = (m - 1) / (m + 1) = upper + lower
    let d = upper_4(m + 1.0);
    let inverse = 1.0 / (m + 1.0);
    let s = (m - 1.0) * inverse;
    let upper = upper_4(s);
    let left_of_m = apart_4(apart_4(m - 1.0) - upper * d);
    let lower = inverse * (left_of_m - upper * (m - apart_4(d - 1.0)));
    // 3 / 2 log m / s = 3 + s^2 + 3 / 5 s^4 + ... = sum + sum_more
    let s2 = s * s;
    let square = upper * upper;
    let series = s2 * s2 * (0.6 + s2 * (0.42857143 + s2 * (0.33333333 + s2 * (0.27272727 + s2 * 0.23338464))))
        + lower * (upper + s);
    let sum = upper_4(3.0 + square + series);
    let sum_more = series - apart_4(apart_4(sum - 3.0) - square);
    let low = lower * sum + sum_more * s;
    let log_m = upper_4(upper * sum + low);
    let log_more = low - apart_4(log_m - upper * sum);
    // Times 2 / (3 log 2), and e added.
    let high = 0.9616699 * log_m;
    let more = 0.00012677205 * log_m + log_more * 0.9617967;
    let log2_a = upper_4(high + more + e);
    let log2_more = more - apart_4(apart_4(log2_a - e) - high);
    // Times b = n + f + more: n whole, f exact.
    let bounded = clamp(b, vec4<f32>(-1e30), vec4<f32>(1e30));
    let b_upper = upper_4(bounded);
    let product = b_upper * log2_a;
    let product_more = (bounded - b_upper) * log2_a + bounded * log2_more;
    let all = product + product_more;
    let n = round(clamp(all, vec4<f32>(-200.0), vec4<f32>(200.0)));
    let f = apart_4(product - n);
    let t = bitcast<vec4<f32>>(bitcast<vec4<u32>>(f + product_more) & vec4<u32>(0xffff8000u));
    let z = t * 0.69314575;
    let z_more = (product_more - apart_4(t - f)) * 0.6931472 + t * 1.4286065e-6;
    // e^z = 1 + z + ..., of which 1 and 12 digits of z are added without an error.
    let first = round((z + z_more) * 4096.0) * 0.00024414062;
    let left = apart_4(z - first) + z_more;
    let y = apart_4(1.0 + first) + (left + exp_more_4(first + left));
    let exponent = bitcast<vec4<u32>>(y) + exponent_4(n);
    let known = select(bitcast<vec4<f32>>(exponent), vec4<f32>(0.0), all < vec4<f32>(-126.0));
    var size = select(known, vec4<f32>(inf()), (all > vec4<f32>(0.0)) & (exponent >= vec4<u32>(0x7f800000u)));
    // The ends: 0 and infinity.
    let ends = (bits + vec4<u32>(0x3f3504f3u) == vec4<u32>(0u)) | is_inf_4(a);
    size = select(size, select(vec4<f32>(0.0), vec4<f32>(inf()), is_inf_4(a) == (b > vec4<f32>(0.0))), ends);
    let whole = floor(bounded) == bounded;
    let odd = whole & (bounded - 2.0 * floor(0.5 * bounded) == vec4<f32>(1.0));
    let negative = is_negative_4(a);
    let none = (negative & !whole & !ends) | is_nan_4(a) | is_nan_4(b);
    let signed = select(select(size, -size, negative & odd), vec4<f32>(nan()), none);
    return select(signed, vec4<f32>(1.0), (b == vec4<f32>(0.0)) | (a == vec4<f32>(1.0)));
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

// Four normal numbers from four uniform ones, two from two (Box and Muller 1958). TensorFlow takes 2 pi times the uniform
// number in f64 and rounds it once, so the angle comes from parts whose products have no error.
fn box_muller_4(u: vec4<f32>) -> vec4<f32> {
    let radius = sqrt(-2.0 * log_4(max(u.xxzz, vec4<f32>(1e-7))));
    let turn = u.yyww;
    let upper = upper_4(turn);
    let angle = 6.28125 * upper + (6.28125 * (turn - upper) + 0.0019353072 * turn);
    let k = round(angle * 0.63661977);
    return radius * wave_4(quarter_rest_4(angle, k), vec4<i32>(k) + vec4<i32>(0, 1, 0, 1));
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
