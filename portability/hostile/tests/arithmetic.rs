//! Every latitude of sums, products, quotients and functions changes results as its name says, and no further than the
//! specification lets it. On an adapter, against `f64`.

#![allow(clippy::unwrap_used)]

mod support;

use support::{drawn, float, floats, moved};

/// Pairs of numbers of like sizes, so that sums round.
fn pairs() -> Vec<[f32; 3]> {
    let numbers = drawn(1200, 1);
    let sized = |x: f32| {
        f32::from_bits((x.to_bits() & 0x807f_ffff) | (100 + (x.to_bits() >> 23) % 50) << 23)
    };
    numbers.chunks(3).map(|c| [sized(c[0]), sized(c[1]), sized(c[2])]).collect()
}

type Operation = (&'static str, fn(f64, f64) -> f64);

const OPERATIONS: [Operation; 3] = [
    ("return a + b;", |a, b| a + b),
    ("return a - b;", |a, b| a - b),
    ("return a * b;", |a, b| a * b),
];

#[test]
fn sums_and_products_round_the_way_that_is_named() {
    for (body, exact) in OPERATIONS {
        let pairs = pairs();
        let all = ["none", "round-up", "round-down", "round-to-zero", "round-far", "round-by-hash"];
        let results = all.map(|driver| floats(body, driver, &pairs));
        let (mut inexact, mut either) = (0, [0, 0]);
        for (i, [a, b, _]) in pairs.iter().enumerate() {
            // The sum of two f32 may have more digits than an f64; its sign is right all the same.
            let exact = exact(f64::from(*a), f64::from(*b));
            let [near, up, down, to_zero, far, hash] = [0, 1, 2, 3, 4, 5].map(|k| results[k][i]);
            assert_eq!(near, exact as f32, "{body} {a:e} {b:e}");
            if f64::from(near) == exact {
                assert_eq!([up, down, to_zero, far, hash], [near; 5], "{body} {a:e} {b:e}");
                continue;
            }
            inexact += 1;
            assert!(
                f64::from(down) < exact && exact < f64::from(up),
                "{body} {a:e} {b:e}: {down:e} {up:e}"
            );
            assert!(
                up == down.next_up(),
                "{body} {a:e} {b:e}: {down:e} and {up:e} are no neighbours"
            );
            assert_eq!(to_zero, if exact > 0.0 { down } else { up }, "{body} {a:e} {b:e}");
            assert_eq!(far, if near == up { down } else { up }, "{body} {a:e} {b:e}");
            assert!(hash == up || hash == down);
            either[usize::from(hash == near)] += 1;
        }
        assert!(inexact > 100 && either[0] > 30 && either[1] > 30, "{body}: {inexact} {either:?}");
    }
}

#[test]
fn a_fused_product_is_rounded_once_and_a_separate_one_twice() {
    let numbers = pairs();
    // What is left of a product when its rounded value goes.
    let close: Vec<[f32; 3]> = numbers.iter().map(|[a, b, _]| [*a, *b, -(a * b)]).collect();
    for (numbers, differ) in [(&numbers, 1), (&close, 300)] {
        let mut different = 0;
        for body in [
            "return a * b + c;",
            "let p = a * b; return p - (-c);",
            "return c + a * b;",
            "return fma(a, b, c);",
        ] {
            let fused = floats(body, "contract", numbers);
            let separate = floats(body, "separate", numbers);
            for (i, [a, b, c]) in numbers.iter().enumerate() {
                assert_eq!(fused[i], a.mul_add(*b, *c), "{body} {a:e} {b:e} {c:e}");
                assert_eq!(separate[i], a * b + c, "{body} {a:e} {b:e} {c:e}");
                different += usize::from(fused[i] != separate[i]);
            }
        }
        assert!(different >= differ, "{different}");
    }
    // What is subtracted, and what is fused through a call and a variable.
    for body in ["return c - a * b;", "var p = c; p -= a * b; return p;"] {
        for (i, y) in floats(body, "contract", &numbers).into_iter().enumerate() {
            let [a, b, c] = numbers[i];
            assert_eq!(y, (-a).mul_add(b, c), "{body}");
        }
    }
}

#[test]
fn products_are_fused_with_what_another_function_adds() {
    let kernel = "@group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<f32>;
        fn multiply(a: f32, b: f32) -> f32 { return a * b; }
        fn add(a: f32, b: f32) -> f32 { return a + b; }
        @compute @workgroup_size(1) fn main() { y[0] = add(multiply(x[0], x[1]), x[2]); }";
    let (a, b) = (1.0 + f32::EPSILON, 1.0 - f32::EPSILON);
    let input = [a, b, -1.0].map(f32::to_bits);
    let result = |driver| f32::from_bits(support::run(kernel, driver, 1, &input, 1)[0]);
    assert_eq!(result("contract"), -f32::EPSILON * f32::EPSILON);
    assert_eq!(result("separate"), 0.0);
}

#[test]
fn quotients_are_off_by_two_units() {
    let numbers: Vec<[f32; 3]> = pairs();
    let body = "return a / b;";
    let [up, down, hash, plain] = ["quotient-up", "quotient-down", "quotient-by-hash", "none"]
        .map(|driver| floats(body, driver, &numbers));
    let mut ups = 0;
    for (i, [a, b, _]) in numbers.iter().enumerate() {
        assert_eq!(plain[i], a / b);
        assert_eq!([up[i], down[i]], [moved(a / b, 2), moved(a / b, -2)]);
        assert!(hash[i] == up[i] || hash[i] == down[i]);
        ups += usize::from(hash[i] == up[i]);
    }
    assert!(ups > 100 && ups < 300, "{ups}");
    // Infinities and zeros stay what they are.
    assert_eq!(float(body, "quotient-up", 1.0, 0.0, 0.0), f32::INFINITY);
    assert_eq!(float(body, "quotient-up", 0.0, 3.0, 0.0), 0.0);
}

#[test]
fn a_quotient_by_a_flushed_reciprocal_is_zero_for_large_divisors() {
    let body = "return a / b;";
    assert_eq!(float(body, "quotient-by-reciprocal", 1e38, 1e38, 0.0), 0.0);
    assert_eq!(float(body, "none", 1e38, 1e38, 0.0), 1.0);
    assert_eq!(float(body, "quotient-by-reciprocal", 5.0, 49.0, 0.0), 5.0 * (1.0 / 49.0));
    let numbers = pairs();
    for (i, y) in floats(body, "quotient-by-reciprocal", &numbers).into_iter().enumerate() {
        assert_eq!(y, numbers[i][0] * (1.0 / numbers[i][1]));
    }
}

#[test]
fn denormals_are_flushed() {
    let (tiny, least) = (1e-40f32, f32::MIN_POSITIVE);
    // A result alone, an operand alone.
    let product = "return a * b;";
    assert_eq!(float(product, "none", least, 0.5, 0.0), least / 2.0);
    assert_eq!(float(product, "flush-results", least, 0.5, 0.0), 0.0);
    assert_eq!(float(product, "flush-operands", least, 0.5, 0.0), least / 2.0);
    assert_eq!(float(product, "flush-operands", tiny, 1e10, 0.0), 0.0);
    assert!(float(product, "flush-results", tiny, 1e10, 0.0) > 0.0);
    let bits = |driver| float(product, driver, -least, 0.5, 0.0).to_bits();
    assert_eq!([bits("flush-results"), bits("flush-to-positive")], [0x8000_0000, 0]);
    // Comparisons see operands.
    let compare = "return select(T(0.0), T(1.0), a > b);";
    assert_eq!(float(compare, "none", tiny, 0.0, 0.0), 1.0);
    assert_eq!(float(compare, "flush-operands", tiny, 0.0, 0.0), 0.0);
    for body in ["return -a;", "return abs(a);", "return max(a, b);", "return sqrt(a);"] {
        assert_eq!(float(body, "flush-operands", tiny, 0.0, 0.0), 0.0, "{body}");
    }
}

#[test]
fn bits_of_denormals_are_flushed() {
    let kernel = "@group(0) @binding(0) var<storage, read> x: array<f32>;
        @group(0) @binding(1) var<storage, read_write> y: array<u32>;
        @compute @workgroup_size(1) fn main() {
            y[0] = bitcast<u32>(x[0]); y[1] = u32(bitcast<i32>(x[0])); y[2] = bitcast<u32>(x[1]);
        }";
    let input = [3, 1.5f32.to_bits()];
    assert_eq!(support::run(kernel, "none", 1, &input, 3), [3, 3, 1.5f32.to_bits()]);
    assert_eq!(support::run(kernel, "flush-bitcasts", 1, &input, 3), [0, 0, 1.5f32.to_bits()]);
}

#[test]
fn the_sign_of_zero_is_lost() {
    let bits = |body, driver, a: f32, b: f32| float(body, driver, a, b, 0.0).to_bits();
    let product = "return a * b;";
    assert_eq!(bits(product, "none", -1.0, 0.0), 0x8000_0000);
    assert_eq!(bits(product, "zeros-positive", -1.0, 0.0), 0);
    assert_eq!(bits(product, "zeros-negative", 1.0, 0.0), 0x8000_0000);
    assert_eq!(bits("return a - b;", "zeros-negative", 1.0, 1.0), 0x8000_0000);
    assert_eq!(bits(product, "zeros-negative", 2.0, 3.0), 6.0f32.to_bits());
}

#[test]
fn overflow_gives_the_largest_number_below_two_to_the_128() {
    let sum = "return a + b;";
    let most = f32::MAX;
    assert_eq!(float(sum, "none", most, 2e31, 0.0), f32::INFINITY);
    assert_eq!(float(sum, "overflow-to-largest", most, 2e31, 0.0), most);
    assert_eq!(float(sum, "overflow-to-largest", -most, -2e31, 0.0), -most);
    assert_eq!(float(sum, "overflow-to-largest", most, most, 0.0), f32::INFINITY);
    assert_eq!(float(sum, "overflow-to-largest", f32::INFINITY, 1.0, 0.0), f32::INFINITY);
    // (2^64 - 2^40 + 2^40 eps) 2^64 is just below 2^128.
    assert_eq!(
        float("return a * b;", "overflow-to-largest", 1.844_674_3e19, 1.844_674_4e19, 0.0),
        most
    );
    assert_eq!(float("return a * b;", "overflow-to-largest", 1e30, 1e30, 0.0), f32::INFINITY);
}

/// `functions-*` against `f64`: the error in the units of the table has the sign that is named, and at most its size.
#[test]
fn functions_are_off_by_as_much_as_the_table_says() {
    type Case = (&'static str, fn(f64) -> f64, [f32; 2], fn(f64, f64) -> f64);
    let ulp = |y: f64| 2f64.powi((y.abs() as f32).log2().floor() as i32 - 23);
    // Name, function, range, and the error of the table for an argument and its result. What the adapter makes of asin and
    // acos is off by more: by what atan2 gives, as the table lets it.
    let cases: [Case; 12] = [
        ("exp", f64::exp, [-80.0, 80.0], |x, u| (3.0 + 2.0 * x.abs()) * u),
        ("exp2", f64::exp2, [-100.0, 100.0], |x, u| (3.0 + 2.0 * x.abs()) * u),
        ("log", f64::ln, [3.0, 1e30], |_, u| 3.0 * u),
        ("log", f64::ln, [0.5, 2.0], |_, _| 2f64.powi(-21)),
        ("log2", f64::log2, [0.5, 2.0], |_, _| 2f64.powi(-21)),
        ("inverseSqrt", |x| 1.0 / x.sqrt(), [1e-30, 1e30], |_, u| 2.0 * u),
        ("sin", f64::sin, [-3.1, 3.1], |_, _| 2f64.powi(-11)),
        ("cos", f64::cos, [-3.1, 3.1], |_, _| 2f64.powi(-11)),
        ("tanh", f64::tanh, [-5.0, 5.0], |_, _| 1e-5),
        ("atan", f64::atan, [0.1, 100.0], |_, u| 4096.0 * u),
        ("asin", f64::asin, [-0.9, 0.9], |_, _| 6.81e-5 + 3.6e-4),
        ("acos", f64::acos, [-0.9, 0.9], |_, _| 6.77e-5 + 3.6e-4),
    ];
    for (name, exact, [from, to], most) in cases {
        let numbers: Vec<[f32; 3]> =
            (0..200).map(|i| [from + (to - from) * (i as f32 + 0.5) / 200.0, 0.0, 0.0]).collect();
        let body = format!("return {name}(a);");
        let [up, down, hash] = ["functions-up", "functions-down", "functions-by-hash"]
            .map(|driver| floats(&body, driver, &numbers));
        let mut far = 0;
        for (i, [x, ..]) in numbers.iter().enumerate() {
            let x = f64::from(*x);
            let y = exact(x);
            let allowed = most(x, ulp(y));
            for result in [up[i], down[i], hash[i]] {
                let error = (f64::from(result) - y).abs();
                assert!(
                    error <= allowed * 1.01,
                    "{name}({x}) is {result}, not {y}: {}",
                    error / allowed
                );
                far += usize::from(error > allowed * 0.15);
            }
            assert!(hash[i] == up[i] || hash[i] == down[i], "{name}({x})");
            assert_ne!(up[i], down[i], "{name}({x})");
        }
        assert!(far > 300, "{name}: only {far} of 600 results are far off");
    }
}

#[test]
fn a_root_is_as_far_off_as_two_quotients() {
    let numbers: Vec<[f32; 3]> = (1..200).map(|i| [i as f32 * 0.37, 0.0, 0.0]).collect();
    let [up, down] = ["functions-up", "functions-down"]
        .map(|driver| floats("return sqrt(a);", driver, &numbers));
    for (i, [x, ..]) in numbers.iter().enumerate() {
        let y = f64::from(*x).sqrt();
        let ulp = 2f64.powi((y as f32).log2().floor() as i32 - 23);
        let errors = [up[i], down[i]].map(|result| (f64::from(result) - y) / ulp);
        assert!(
            errors[0] > 1.5 && errors[0] < 6.5 && errors[1] < -1.5 && errors[1] > -6.5,
            "{x}: {errors:?}"
        );
    }
    assert_eq!(float("return sqrt(a);", "functions-up", 0.0, 0.0, 0.0), 0.0);
    assert_eq!(float("return sqrt(a);", "functions-up", f32::INFINITY, 0.0, 0.0), f32::INFINITY);
}
