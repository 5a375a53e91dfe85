// Built-in functions as far off as the table in section 15.7.4.1 lets them be, or nearly: the driver's own result is not
// exact either. Placeholders are those of exact.wgsl. The driver's text has `hostile_direction$n(x)`: 1 or -1, lane by
// lane, for larger and for smaller results. `hostile_far_divide$n` is its own division.

// y with another size, by so many units of the last digit.
fn hostile_off$n(y: $T, x: $T, places: $I) -> $T {
    return hostile_moved$n(hostile_hidden$n(y), hostile_direction$n(x) * places);
}

// y and an absolute error.
fn hostile_apart$n(y: $T, x: $T, by: f32) -> $T {
    return hostile_hidden$n(y) + $T(hostile_direction$n(x)) * by;
}

// 1 / sqrt(x), rounded once or nearly: a step of Newton's takes off what the root and the quotient were rounded by.
fn hostile_near_inverse_root$n(x: $T) -> $T {
    let r = hostile_hidden$n(1.0 / hostile_hidden$n(sqrt(x)));
    let square = hostile_hidden$n(r * r);
    let square_more = hostile_product_error$n(r, r, square);
    let one = hostile_hidden$n(x * square);
    let one_more = hostile_product_error$n(x, square, one);
    let more = hostile_hidden$n(hostile_hidden$n(one - 1.0) + one_more) + hostile_hidden$n(x * square_more);
    let y = r - hostile_hidden$n(hostile_hidden$n(0.5 * r) * more);
    // At the ends products overflow, or have no errors that can be written down.
    let middle = (hostile_size$n(x) - $U(0x0d000000u)) < $U(0x65000000u);
    return select(r, y, middle);
}

// 2 ULP.
fn hostile_far_inverseSqrt$n(x: $T) -> $T {
    return hostile_off$n(hostile_near_inverse_root$n(x), x, $I(1));
}

// Inherited from 1.0 / inverseSqrt(x): 2 ULP, and 2.5 of the quotient.
fn hostile_far_sqrt$n(x: $T) -> $T {
    let inverse = hostile_off$n(hostile_near_inverse_root$n(x), x, $I(-1));
    return hostile_off$n(1.0 / inverse, x, $I(2));
}

// e^x to two units or so: drivers multiply by log2(e), whose error is many units where x is large.
fn hostile_near_exp$n(x: $T) -> $T {
    let p = hostile_hidden$n(x * 1.442695);
    let more = hostile_product_error$n(x, $T(1.442695), p) + hostile_hidden$n(x * 1.9259629e-8);
    let y = hostile_hidden$n(exp2(p));
    let finite = hostile_size$n(y) < $U(0x7f800000u);
    return select(y, y + hostile_hidden$n(y * hostile_hidden$n(more * 0.6931472)), finite);
}

// 3 + 2 |x| ULP.
fn hostile_far_exp$n(x: $T) -> $T {
    return hostile_off$n(hostile_near_exp$n(x), x, $I(1.0 + 1.9 * min(abs(x), $T(1000.0))));
}

fn hostile_far_exp2$n(x: $T) -> $T {
    return hostile_off$n(exp2(x), x, $I(1.0 + 1.9 * min(abs(x), $T(1000.0))));
}

// An error of 2^-21 from 0.5 to 2, and 3 ULP elsewhere.
fn hostile_far_log$n(x: $T) -> $T {
    let near = hostile_apart$n(log(x), x, 3e-7);
    return select(hostile_off$n(log(x), x, $I(2)), near, (x >= $T(0.5)) & (x <= $T(2.0)));
}

fn hostile_far_log2$n(x: $T) -> $T {
    let near = hostile_apart$n(log2(x), x, 3e-7);
    return select(hostile_off$n(log2(x), x, $I(2)), near, (x >= $T(0.5)) & (x <= $T(2.0)));
}

// Inherited from exp2(y * log2(x)).
fn hostile_far_pow$n(x: $T, y: $T) -> $T {
    return hostile_far_exp2$n(hostile_hidden$n(y * hostile_far_log2$n(x)));
}

// An error of 2^-11 from -pi to pi; beyond, nothing is said.
fn hostile_far_sin$n(x: $T) -> $T {
    return select(hostile_apart$n(sin(x), x, 4.8e-4), -sin(x), abs(x) > $T(3.1415925));
}

fn hostile_far_cos$n(x: $T) -> $T {
    return select(hostile_apart$n(cos(x), x, 4.8e-4), -cos(x), abs(x) > $T(3.1415925));
}

// Inherited from sin(x) / cos(x).
fn hostile_far_tan$n(x: $T) -> $T {
    return hostile_far_divide$n(hostile_far_sin$n(x), hostile_far_cos$n(x));
}

// An error of 6.81e-5.
fn hostile_far_asin$n(x: $T) -> $T {
    return hostile_apart$n(asin(x), x, 6.7e-5);
}

// An error of 6.77e-5.
fn hostile_far_acos$n(x: $T) -> $T {
    return hostile_apart$n(acos(x), x, 6.7e-5);
}

// 4096 ULP.
fn hostile_far_atan$n(x: $T) -> $T {
    return hostile_off$n(atan(x), x, $I(4000));
}

fn hostile_far_atan2$n(y: $T, x: $T) -> $T {
    return hostile_off$n(atan2(y, x), x, $I(4000));
}

// Inherited from (exp(x) - exp(-x)) * 0.5.
fn hostile_far_sinh$n(x: $T) -> $T {
    return hostile_hidden$n(hostile_far_exp$n(x) - hostile_far_exp$n(-x)) * 0.5;
}

fn hostile_far_cosh$n(x: $T) -> $T {
    return hostile_hidden$n(hostile_far_exp$n(x) + hostile_far_exp$n(-x)) * 0.5;
}

// An error of 1e-5.
fn hostile_far_tanh$n(x: $T) -> $T {
    return hostile_apart$n(tanh(x), x, 9.9e-6);
}

// Inherited from log(x + sqrt(x * x + 1.0)).
fn hostile_far_asinh$n(x: $T) -> $T {
    return hostile_far_log$n(hostile_hidden$n(x + hostile_far_sqrt$n(hostile_hidden$n(x * x) + 1.0)));
}

fn hostile_far_acosh$n(x: $T) -> $T {
    return hostile_far_log$n(hostile_hidden$n(x + hostile_far_sqrt$n(hostile_hidden$n(x * x) - 1.0)));
}

// Inherited from log((1.0 + x) / (1.0 - x)) * 0.5.
fn hostile_far_atanh$n(x: $T) -> $T {
    let ratio = hostile_far_divide$n(hostile_hidden$n(1.0 + x), hostile_hidden$n(1.0 - x));
    return hostile_far_log$n(ratio) * 0.5;
}
