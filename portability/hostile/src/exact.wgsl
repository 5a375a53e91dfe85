// What is exact in spite of the driver. $T is a vector of floats (or one), $U, $I and $B are as many u32, i32 and bool;
// $n is their number. No compiler sees through `hidden`: it combines bits with a number of which only the host knows
// that it is 0.

fn hostile_hidden$n(x: $T) -> $T {
    return bitcast<$T>(bitcast<$U>(x) ^ $U(hostile_zero));
}

fn hostile_size$n(x: $T) -> $U {
    return bitcast<$U>(x) & $U(0x7fffffffu);
}

fn hostile_is_nan$n(x: $T) -> $B {
    return hostile_size$n(x) > $U(0x7f800000u);
}

fn hostile_is_infinite$n(x: $T) -> $B {
    return hostile_size$n(x) == $U(0x7f800000u);
}

// One bit that depends on all bits of x.
fn hostile_coin$n(x: $T) -> $B {
    let bits = bitcast<$U>(x) * $U(0x9e3779b1u);
    return ((bits ^ (bits >> $U(15u))) & $U(1u)) == $U(1u);
}

// x with a size that is larger by so many units of its last digit. Zeros, denormals, infinities and NaN stay.
fn hostile_moved$n(x: $T, by: $I) -> $T {
    let size = hostile_size$n(x);
    let normal = (size - $U(0x800000u)) < $U(0x7f000000u);
    return select(x, bitcast<$T>(bitcast<$U>(x) + bitcast<$U>(by)), normal);
}

fn hostile_flushed$n(x: $T) -> $T {
    let bits = bitcast<$U>(x);
    return bitcast<$T>(select(bits, bits & $U(0x80000000u), (bits & $U(0x7fffffffu)) < $U(0x800000u)));
}

fn hostile_flushed_to_positive$n(x: $T) -> $T {
    let bits = bitcast<$U>(x);
    return bitcast<$T>(select(bits, $U(0u), (bits & $U(0x7fffffffu)) < $U(0x800000u)));
}

fn hostile_positive_zero$n(x: $T) -> $T {
    return bitcast<$T>(select(bitcast<$U>(x), $U(0u), hostile_size$n(x) == $U(0u)));
}

fn hostile_negative_zero$n(x: $T) -> $T {
    return bitcast<$T>(select(bitcast<$U>(x), $U(0x80000000u), hostile_size$n(x) == $U(0u)));
}

// What s = a + b lacks (Knuth 1969).
fn hostile_sum_error$n(a: $T, b: $T, s: $T) -> $T {
    let of_b = hostile_hidden$n(s - a);
    let of_a = hostile_hidden$n(s - of_b);
    return hostile_hidden$n(a - of_a) + hostile_hidden$n(b - of_b);
}

// What p = a * b lacks (Dekker 1971): halves of the digits have exact products.
fn hostile_product_error$n(a: $T, b: $T, p: $T) -> $T {
    let a_upper = bitcast<$T>((bitcast<$U>(a) & $U(0xfffff000u)) ^ $U(hostile_zero));
    let b_upper = bitcast<$T>((bitcast<$U>(b) & $U(0xfffff000u)) ^ $U(hostile_zero));
    let a_lower = hostile_hidden$n(a - a_upper);
    let b_lower = hostile_hidden$n(b - b_upper);
    let first = hostile_hidden$n(hostile_hidden$n(a_upper * b_upper) - p);
    let second = hostile_hidden$n(first + hostile_hidden$n(a_upper * b_lower));
    let third = hostile_hidden$n(second + hostile_hidden$n(a_lower * b_upper));
    return hostile_hidden$n(third + hostile_hidden$n(a_lower * b_lower));
}

// a * b + c, rounded once (Boldo and Melquiond 2008: what is left is rounded to odd before it is added). Products so
// small that their errors cannot be written down are rounded twice.
fn hostile_fused$n(a: $T, b: $T, c: $T) -> $T {
    let p = hostile_hidden$n(a * b);
    let p_more = hostile_product_error$n(a, b, p);
    let s = hostile_hidden$n(p + c);
    let s_more = hostile_sum_error$n(p, c, s);
    let rest = hostile_hidden$n(s_more + p_more);
    let left = bitcast<$U>(hostile_sum_error$n(s_more, p_more, rest));
    let even = (bitcast<$U>(rest) & $U(1u)) == $U(0u);
    let away = ((left ^ bitcast<$U>(rest)) >> $U(31u)) == $U(0u);
    let inexact = (left & $U(0x7fffffffu)) != $U(0u);
    let odd = select($I(0), select($I(-1), $I(1), away), even & inexact);
    let y = s + bitcast<$T>(bitcast<$U>(rest) + bitcast<$U>(odd));
    let size = hostile_size$n(p);
    let plain = ((size - $U(0x0d800000u)) > $U(0x71800000u)) | (hostile_size$n(s) >= $U(0x7f800000u));
    return select(y, s, plain);
}

// The neighbours of x, the rounded result of an operation that is more by e.
fn hostile_is_outward$n(x: $T, e: $T) -> $B {
    return ((bitcast<$U>(x) ^ bitcast<$U>(e)) >> $U(31u)) == $U(0u);
}

fn hostile_is_exact$n(e: $T) -> $B {
    // NaN, too: what was infinite on the way has no error.
    return (hostile_size$n(e) - $U(1u)) > $U(0x7f7fffffu - 1u);
}

fn hostile_rounded_far$n(x: $T, e: $T) -> $T {
    let by = select($I(-1), $I(1), hostile_is_outward$n(x, e));
    return select(hostile_moved$n(x, by), x, hostile_is_exact$n(e));
}

fn hostile_rounded_to_zero$n(x: $T, e: $T) -> $T {
    return select(hostile_moved$n(x, $I(-1)), x, hostile_is_exact$n(e) | hostile_is_outward$n(x, e));
}

fn hostile_rounded_up$n(x: $T, e: $T) -> $T {
    let negative = (bitcast<$U>(e) >> $U(31u)) == $U(1u);
    return select(hostile_rounded_far$n(x, e), x, negative);
}

fn hostile_rounded_down$n(x: $T, e: $T) -> $T {
    let negative = (bitcast<$U>(e) >> $U(31u)) == $U(1u);
    return select(x, hostile_rounded_far$n(x, e), negative);
}

fn hostile_rounded_by_hash$n(x: $T, e: $T) -> $T {
    return select(x, hostile_rounded_far$n(x, e), hostile_coin$n(x));
}
