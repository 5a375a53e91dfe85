//! The functions that wgrad's kernels share (`shaders/prelude.wgsl`), on every hostile driver, against `f64`; and what real
//! drivers made necessary in them, taken out again, which has to show.

#![allow(clippy::unwrap_used)]

mod support;

use std::path::Path;

use support::run;
use wgrad_hostile::{Latitude, Replacement};

/// A function of one or two numbers: its call, its value, where, and the error that the worst driver may give, in units of
/// the last digit: four times the bound in docs/accuracy.md.
struct Case {
    call: &'static str,
    value: fn(f64, f64) -> f64,
    a: [f64; 2],
    b: [f64; 2],
    bound: f64,
}

const fn one(call: &'static str, value: fn(f64, f64) -> f64, a: [f64; 2], bound: f64) -> Case {
    Case { call, value, a, b: [0.0, 0.0], bound }
}

const ALL: [f64; 2] = [-3.4e38, 3.4e38];
const POSITIVE: [f64; 2] = [1.2e-38, 3.4e38];

const CASES: &[Case] = &[
    one("exp_4(a)", |a, _| a.exp(), [-87.0, 88.7], 8.0),
    one("expm1_4(a)", |a, _| a.exp_m1(), [-20.0, 88.7], 8.0),
    one("log_4(a)", |a, _| a.ln(), POSITIVE, 4.0),
    one("log_4(a)", |a, _| a.ln(), [0.5, 2.0], 4.0),
    one("log1p_4(a)", |a, _| a.ln_1p(), [-0.99, 3.4e38], 8.0),
    // The root of a number below 2^-126 is above that, but a driver may take such a number for 0.
    one("cbrt_4(a)", |a, _| a.cbrt(), POSITIVE, 8.0),
    one("cbrt_4(-a)", |a, _| (-a).cbrt(), POSITIVE, 8.0),
    one("sin_4(a)", |a, _| a.sin(), [-128.0, 128.0], 12.0),
    one("cos_4(a)", |a, _| a.cos(), [-128.0, 128.0], 12.0),
    one("sin_4(a)", |a, _| a.sin(), [128.0, 1e6], 12.0),
    one("tan_4(a)", |a, _| a.tan(), [-128.0, 128.0], 20.0),
    one("asin_4(a)", |a, _| a.asin(), [-1.0, 1.0], 12.0),
    one("acos_4(a)", |a, _| a.acos(), [-1.0, 1.0], 8.0),
    one("atan_4(a)", |a, _| a.atan(), ALL, 16.0),
    one("sinh_4(a)", |a, _| a.sinh(), [-89.0, 89.0], 12.0),
    one("cosh_4(a)", |a, _| a.cosh(), [-89.0, 89.0], 8.0),
    one("tanh_4(a)", |a, _| a.tanh(), ALL, 12.0),
    one("asinh_4(a)", |a, _| a.asinh(), ALL, 12.0),
    one("acosh_4(a)", |a, _| a.acosh(), [1.0, 3.4e38], 12.0),
    one("acosh_4(a)", |a, _| a.acosh(), [1.0, 2.0], 12.0),
    one("atanh_4(a)", |a, _| a.atanh(), [-1.0, 1.0], 12.0),
    one("sigmoid_4(a)", |a, _| 1.0 / (1.0 + (-a).exp()), [-87.0, 3.4e38], 12.0),
    one("softplus_4(a)", |a, _| a.max(0.0) + (-a.abs()).exp().ln_1p(), [-80.0, 3.4e38], 12.0),
    one("divide_4(a, 1.0 + abs(a))", |a, _| a / (1.0 + a.abs()), ALL, 12.0),
    Case { call: "divide_4(a, b)", value: |a, b| a / b, a: ALL, b: ALL, bound: 4.0 },
    Case { call: "atan2_4(a, b)", value: f64::atan2, a: ALL, b: ALL, bound: 16.0 },
    Case { call: "pow_4(a, b)", value: f64::powf, a: [1e-3, 1e3], b: [-10.0, 10.0], bound: 4.0 },
    Case { call: "pow_4(a, b)", value: f64::powf, a: [0.9, 1.1], b: [-800.0, 800.0], bound: 4.0 },
];

/// How many calls a kernel makes.
const CALLS: usize = 512;

fn prelude() -> String {
    let crates =
        std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let file = Path::new(&crates).join("../../shaders/prelude.wgsl");
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// What the call gives for pairs of numbers.
fn results(prelude: &str, call: &str, driver: &str, pairs: &[[f32; 2]]) -> Vec<f32> {
    let kernel = format!(
        "@group(0) @binding(0) var<storage, read> x: array<vec2<f32>>;\n\
         @group(0) @binding(1) var<storage, read_write> y: array<f32>;\n\
         @compute @workgroup_size(1) fn main(@builtin(workgroup_id) id: vec3<u32>) {{\n    \
             let a = vec4<f32>(x[id.x].x);\n    let b = vec4<f32>(x[id.x].y);\n    y[id.x] = ({call}).z;\n}}\n{prelude}"
    );
    let input: Vec<u32> = pairs.iter().flatten().map(|x| x.to_bits()).collect();
    let words = run(&kernel, driver, pairs.len() as u32, &input, pairs.len());
    words.into_iter().map(f32::from_bits).collect()
}

/// Numbers of a range: of all sizes if it spans many, the same each time; and its ends.
fn numbers([low, high]: [f64; 2], seed: u32) -> Vec<f32> {
    let place = |x: f64| {
        let bits = (x as f32).to_bits();
        i64::from(bits & 0x7fff_ffff) * if x < 0.0 { -1 } else { 1 }
    };
    let (first, last) = (place(low), place(high));
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        i64::from(state)
    };
    let drawn =
        (2..CALLS).map(|_| first + ((i128::from(next()) * i128::from(last - first)) >> 32) as i64);
    drawn
        .chain([first, last])
        .map(|place| f32::from_bits(place.unsigned_abs() as u32).copysign(place as f32))
        .collect()
}

/// The error in units of the last digit. Below 2^-126 a driver may give 0, and takes such numbers for 0.
fn error(got: f32, want: f64) -> f64 {
    let ulp = |x: f64| {
        let bits = x.abs().clamp(f64::from(f32::MIN_POSITIVE), f64::from(f32::MAX)).to_bits() >> 52;
        f64::from_bits((bits - 23) << 52)
    };
    if got.is_nan() && want.is_nan() || got == want as f32 || got == 0.0 && want.abs() <= 1.2e-38 {
        return 0.0;
    }
    let got = match got.is_infinite() {
        true => f64::from(got.signum()) * 2f64.powi(128),
        false => f64::from(got),
    };
    let off = (got - want.clamp(-(2f64.powi(128)), 2f64.powi(128))).abs() / ulp(want);
    if off.is_nan() { f64::INFINITY } else { off }
}

/// What a driver gets wrong, with the worst number of each case.
fn faults(prelude: &str, driver: &str, wanted: &str) -> Vec<String> {
    let mut faults = Vec::new();
    for case in CASES.iter().filter(|case| case.call.contains(wanted)) {
        let (a, b) = (numbers(case.a, 1), numbers(case.b, 2));
        let pairs: Vec<[f32; 2]> = a.into_iter().zip(b).map(|(a, b)| [a, b]).collect();
        let got = results(prelude, case.call, driver, &pairs);
        let mut worst = (0.0, String::new());
        for ([a, b], got) in pairs.iter().zip(got) {
            let want = (case.value)(f64::from(*a), f64::from(*b));
            let off = error(got, want);
            if off > worst.0 {
                worst = (off, format!("a = {a:e}, b = {b:e}: {got:e}, not {want:e}"));
            }
        }
        if std::env::var_os("HOSTILE_PRINT").is_some() {
            println!("{driver} | {} | {:.2} of {}", case.call, worst.0, case.bound);
        }
        if worst.0 > case.bound {
            faults.push(format!(
                "{driver}: {} is off by {:.2} ULP, at {}",
                case.call, worst.0, worst.1
            ));
        }
    }
    faults
}

fn all_are_right_on(drivers: &[&str]) {
    let prelude = prelude();
    let faults: Vec<String> =
        drivers.iter().flat_map(|driver| faults(&prelude, driver, "")).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn functions_keep_their_digits_on_drivers_with_several_latitudes() {
    all_are_right_on(&[
        "flush-to-positive+round-far+quotient-by-reciprocal+functions-up+regroup+compare-nan+extremes-first+tests-of-bits",
        "flush-operands+round-by-hash+quotient-up+functions-by-hash+contract+identities+integers-to-zero+convert-nan",
    ]);
}

#[test]
fn functions_keep_their_digits_on_every_driver() {
    let none_does = [Latitude::NansLost, Latitude::InfinitiesLost];
    let drivers = Latitude::all().filter(|latitude| !none_does.contains(latitude));
    let drivers: Vec<&str> = drivers.map(Latitude::name).collect();
    all_are_right_on(&drivers);
}

/// Squares and cubes of whole numbers have no error, whatever error the driver's quotients have.
#[test]
fn whole_powers_are_exact_where_quotients_are_not() {
    let prelude = prelude();
    for driver in ["quotient-up", "quotient-down", "quotient-by-hash"] {
        for (power, last) in [(2, 4096), (3, 256)] {
            let pairs: Vec<[f32; 2]> = (0..=last).map(|x| [x as f32, power as f32]).collect();
            let got = results(&prelude, "pow_4(a, b)", driver, &pairs);
            for ([x, _], got) in pairs.iter().zip(got) {
                assert_eq!(got, x.powi(power), "{x} to the power of {power} on {driver}");
            }
        }
    }
}

/// Whole quotients are whole, and those next to one are below or above it as the quotient rounded to nearest is.
#[test]
fn quotients_are_rounded_down_where_they_are_not_exact() {
    let prelude = prelude();
    let mut pairs = Vec::new();
    for b in (1..60).map(|b| b as f32) {
        for b in [b, -b, b * 0.1, b * 1e30, b * 1e-30] {
            for whole in [1.0, 2.0, 3.0, 41.0, 1000.0, 65_537.0, 524_287.0] {
                let a = whole * b;
                pairs.extend([a, a.next_up(), a.next_down(), -a].map(|a| [a, b]));
                pairs.push([a + b * 0.5, b]);
            }
        }
    }
    pairs.extend([[1.0, 0.1], [0.0, 3.0], [-0.0, 3.0], [0.3, 7.0], [-0.3, 7.0], [8e5, 2.0]]);
    let drivers = ["none", "quotient-up", "quotient-down", "quotient-by-hash", "round-far"];
    let several = ["quotient-by-reciprocal+regroup", "quotient-down+round-by-hash+contract"];
    for driver in drivers.into_iter().chain(several) {
        let got = results(&prelude, "floordiv_4(a, b)", driver, &pairs);
        for ([a, b], got) in pairs.iter().zip(got) {
            assert_eq!(got, (a / b).floor(), "{a:e} by {b:e} on {driver}");
        }
    }
}

/// Fixes that are taken out: what the function was, the driver that needs the fix, and the call that shows it.
const FIXES: &[(&str, &str, &str)] = &[
    // An H100 gave 0 for quotients by more than 2^126.
    (
        "fn divide_4(a: vec4<f32>, b: vec4<f32>) -> vec4<f32> { return a / b; }",
        "quotient-by-reciprocal",
        "divide_4(a, 1.0",
    ),
    (
        "fn tanh_4(x: vec4<f32>) -> vec4<f32> {\n    let q = quarter_expm1_4(2.0 * abs(x));\n    \
         return unless_tiny_4(signed_4(q / (q + 0.5), x), x);\n}",
        "quotient-by-reciprocal",
        "tanh_4",
    ),
    // Sums that correct a rounding.
    ("fn apart_4(x: vec4<f32>) -> vec4<f32> { return x; }", "regroup", "log1p_4"),
    ("fn apart_4(x: vec4<f32>) -> vec4<f32> { return x; }", "regroup", "pow_4"),
];

#[test]
fn a_fix_that_is_taken_out_is_missed() {
    let prelude = prelude();
    for (without, driver, call) in FIXES {
        assert_eq!(faults(&prelude, driver, call), [""; 0]);
        let broken = Replacement::of(without).unwrap().apply(&prelude);
        assert!(
            !faults(&broken, driver, call).is_empty(),
            "nothing notices that the fix is missing of {call} on {driver}"
        );
    }
}

/// The nearest half, ties to even, whatever a driver's conversions do.
#[test]
fn halves_are_the_nearest_on_every_driver() {
    let mut numbers = support::drawn(400, 3);
    numbers.extend([
        65504.0,
        65519.0,
        65520.0,
        2049.0,
        2051.0,
        6e-5,
        6.1035156e-5,
        2.9802322e-8,
        0.0,
        -0.0,
    ]);
    numbers.extend([f32::INFINITY, f32::NEG_INFINITY, -1e9, 0.1, 1.0 / 3.0]);
    let pairs: Vec<[f32; 2]> = numbers.iter().map(|x| [*x, 0.0]).collect();
    let nearest = |x: f32| {
        let step = 2f64.powi((x.abs().max(6.1035156e-5).log2().floor() as i32 - 10).min(5));
        let y = (f64::from(x) / step).round_ties_even() * step;
        if y.abs() > 65504.0 { f32::INFINITY.copysign(x) } else { y as f32 }
    };
    let drivers =
        ["none", "halves-to-zero", "halves-elided", "flush-halves", "quantize-wild", "round-far"];
    for driver in drivers {
        let got = results(&prelude(), "narrow_4(a)", driver, &pairs);
        for (x, got) in numbers.iter().zip(got) {
            assert_eq!(got, nearest(*x), "{driver}: {x:e}");
        }
    }
    let broken =
        Replacement::of("fn narrow_4(x: vec4<f32>) -> vec4<f32> { return quantizeToF16(x); }")
            .unwrap();
    let got = results(&broken.apply(&prelude()), "narrow_4(a)", "quantize-wild", &pairs);
    assert!(
        got.iter().zip(&numbers).any(|(got, x)| *got != nearest(*x)),
        "nothing notices that the fix is missing"
    );
}

#[test]
fn ends_stay_where_they_are() {
    let prelude = prelude();
    let largest = f32::MAX;
    // A call, drivers that need care, numbers, and what the result may be at least and at most.
    type End = (&'static str, [&'static str; 2], [f32; 2], [f32; 2]);
    let cases: [End; 5] = [
        ("tanh_4(a)", ["quotient-up", "round-up"], [9.5, 0.0], [0.999999, 1.0]),
        ("sigmoid_4(a)", ["quotient-up", "round-up"], [40.0, 0.0], [0.999999, 1.0]),
        ("log1p_4(a)", ["round-up", "overflow-to-largest"], [largest, 0.0], [88.72282, 88.72285]),
        ("atan2_4(a, b)", ["flush-operands", "flush-to-positive"], [0.0, 1e-40], [0.0, 0.0]),
        ("atan2_4(a, b)", ["flush-operands", "flush-to-positive"], [1e-40, 1e-40], [0.0, 0.8]),
    ];
    let mut wrong = Vec::new();
    for (call, drivers, numbers, [least, most]) in cases {
        for driver in drivers {
            let got = results(&prelude, call, driver, &[numbers])[0];
            if !(least..=most).contains(&got) {
                wrong.push(format!(
                    "{driver}: {call} of {numbers:?} is {got}, not {least} to {most}"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
