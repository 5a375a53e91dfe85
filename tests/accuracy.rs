//! Measures errors relative to `f64`, in units in the last place. This file writes the tables of `docs/accuracy.md`:
//! `WGRAD_ACCURACY=write cargo test --test accuracy` measures on this adapter and rewrites its column there. Otherwise the
//! tests compare the measurements, the page and the ops' documentation with the bounds in this file.
#![allow(clippy::unwrap_used)]

#[path = "support/driver.rs"]
mod driver;
#[path = "../src/ops/reference.rs"]
mod reference;
#[path = "support/root.rs"]
mod root;

use std::fs;
use std::path::PathBuf;
use std::sync::Mutex;

use wgrad as tf;
use wgrad::{Device, Tensor};

fn docs() -> PathBuf {
    root::root().join("docs/accuracy.md")
}

/// The distance between f32's around `x`; below 2^-126, where drivers may flush to 0, that of 2^-126.
fn ulp(x: f64) -> f64 {
    let bits = x.abs().max(f64::from(f32::MIN_POSITIVE)).to_bits() >> 52;
    f64::from_bits((bits - 23) << 52)
}

/// The difference between `got` and `want` in units in the last place. Infinity for a wrong NaN or infinity, except that the
/// largest number may be infinite if the result is within a unit of it, and 0 may replace numbers below 2^-126.
fn error(got: f32, want: f64) -> f64 {
    let nearest = want as f32;
    let tiny = want.abs() <= f64::from(f32::MIN_POSITIVE) && got == 0.0;
    let lost = driver::is_hostile() && want.is_nan()
        || driver::loses_signs_of_zeros() && got.is_infinite() && got == -nearest;
    if lost || got == nearest && nearest.is_infinite() || got.is_nan() && want.is_nan() || tiny {
        return 0.0;
    }
    let largest = f64::from(f32::MAX);
    let got = match got.is_infinite() {
        true => f64::from(got.signum()) * (largest + ulp(largest)),
        false => f64::from(got),
    };
    let off = (got - want.clamp(-largest - ulp(largest), largest + ulp(largest))).abs()
        / ulp(want.clamp(-largest, largest));
    if off.is_nan() { f64::INFINITY } else { off }
}

/// The index of a float among all of them, in order; both zeros have the same index.
fn place(x: f32) -> i64 {
    let size = i64::from(x.to_bits() & 0x7fff_ffff);
    if x.is_sign_negative() { -size } else { size }
}

fn float(place: i64) -> f32 {
    f32::from_bits(place.unsigned_abs() as u32).copysign(place as f32)
}

/// Floats from `low` to `high`: both ends, `count` with random bits, so that no digit is always 0, and each of the `around`
/// floats on either side of each special point. The same for each call.
fn floats(low: f32, high: f32, count: usize, around: i64) -> Vec<f32> {
    let (first, last) = (place(low), place(high));
    let mut state = u64::from(low.to_bits()) << 32 | u64::from(high.to_bits());
    let drawn = (0..count).map(|_| {
        // SplitMix64.
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^= z >> 31;
        first + ((u128::from(z) * (last - first + 1) as u128) >> 64) as i64
    });
    let mut places: Vec<i64> = drawn.chain([first, last]).collect();
    let quarters = (1..=82).map(|k| (f64::from(k) * std::f64::consts::FRAC_PI_2) as f32);
    for point in SPECIAL.iter().copied().chain(quarters).flat_map(|x| [place(x), -place(x)]) {
        places.extend((point - around..=point + around).filter(|at| (first..=last).contains(at)));
    }
    places.into_iter().map(float).collect()
}

/// Points where formulas change, results end, or digits cancel; also their negatives, and multiples of a quarter turn.
const SPECIAL: [f32; 34] = [
    0.0,
    f32::MIN_POSITIVE,
    // Below this, the sine of x is x.
    1.084_202_2e-19,
    1.192_092_9e-7,
    std::f32::consts::LN_2 / 2.0,
    0.414_213_56,
    0.5,
    std::f32::consts::FRAC_1_SQRT_2,
    std::f32::consts::FRAC_PI_4,
    0.836_66,
    1.0,
    std::f32::consts::SQRT_2,
    // Where digamma is 0 and lgamma is smallest.
    1.461_632_1,
    1.5 * std::f32::consts::LN_2,
    2.0,
    2.414_213_7,
    3.0,
    4.0,
    8.0,
    9.194_549,
    10.0,
    16.635_532,
    20.0,
    80.0,
    87.336_54,
    88.722_83,
    89.415_98,
    128.0,
    4096.0,
    8_388_608.0,
    1e9,
    8.507_059e37,
    1.701_411_8e38,
    f32::MAX,
];

/// A line of a table, and the largest error that was measured.
struct Line {
    name: &'static str,
    over: String,
    bound: f64,
    worst: f64,
    at: String,
}

impl Line {
    fn new(name: &'static str, over: String, bound: f64) -> Self {
        Line { name, over, bound, worst: 0.0, at: String::new() }
    }

    fn meet(&mut self, got: f32, want: f64, at: impl FnOnce() -> String) {
        self.meet_any(got, &[want], at);
    }

    fn meet_any(&mut self, got: f32, wants: &[f64], at: impl FnOnce() -> String) {
        let least = wants.iter().map(|want| error(got, *want)).fold(f64::INFINITY, f64::min);
        self.meet_error(least, || format!("{}: {got:e}, not {:e}", at(), wants[0]));
    }

    fn meet_error(&mut self, error: f64, at: impl FnOnce() -> String) {
        if error > self.worst {
            (self.worst, self.at) = (error, at());
        }
    }
}

/// `x`, and also 0 if a driver may flush `x`. Logarithms read the bits.
fn seen(name: &str, x: f32) -> Vec<f64> {
    let tiny = x.is_subnormal() && (name != "log" || driver::flushes_bitcasts());
    [f64::from(x)].into_iter().chain(tiny.then_some(f64::from(x) * 0.0)).collect()
}

type Unary =
    (&'static str, f64, fn(&Tensor) -> tf::Result<Tensor>, fn(f64) -> f64, [(f32, f32); 3]);

const ALL: (f32, f32) = (-f32::MAX, f32::MAX);
const POSITIVE: (f32, f32) = (1e-45, f32::MAX);
const NEAR: (f32, f32) = (-1.0, 1.0);

/// Name, bound, op, reference, ranges.
fn unary() -> Vec<Unary> {
    vec![
        ("exp", 2.0, Tensor::exp, f64::exp, [ALL, (-87.4, 88.8), NEAR]),
        ("expm1", 2.0, Tensor::expm1, f64::exp_m1, [ALL, (-20.0, 88.8), NEAR]),
        ("log", 1.0, Tensor::log, f64::ln, [ALL, POSITIVE, (0.5, 2.0)]),
        ("log1p", 2.0, Tensor::log1p, f64::ln_1p, [ALL, (-1.0, 1.0), (-0.999_999_9, -0.5)]),
        ("sqrt", 1.0, Tensor::sqrt, f64::sqrt, [ALL, (1.2e-38, f32::MAX), (0.5, 2.0)]),
        (
            "rsqrt",
            2.0,
            Tensor::rsqrt,
            |x| 1.0 / x.sqrt(),
            [(0.0, f32::MAX), (1.2e-38, f32::MAX), (0.5, 2.0)],
        ),
        ("cbrt", 2.0, Tensor::cbrt, f64::cbrt, [ALL, (1e-45, 1.2e-38), (0.5, 8.0)]),
        ("sin", 3.0, Tensor::sin, f64::sin, [ALL, (-128.0, 128.0), (128.0, 1e6)]),
        ("cos", 3.0, Tensor::cos, f64::cos, [ALL, (-128.0, 128.0), (128.0, 1e6)]),
        ("tan", 5.0, Tensor::tan, f64::tan, [ALL, (-128.0, 128.0), (128.0, 1e6)]),
        ("asin", 3.0, Tensor::asin, f64::asin, [ALL, NEAR, (0.4, 1.0)]),
        ("acos", 2.0, Tensor::acos, f64::acos, [ALL, NEAR, (0.4, 1.0)]),
        ("atan", 4.0, Tensor::atan, f64::atan, [ALL, NEAR, (0.1, 10.0)]),
        ("sinh", 3.0, Tensor::sinh, f64::sinh, [ALL, (-89.5, 89.5), NEAR]),
        ("cosh", 2.0, Tensor::cosh, f64::cosh, [ALL, (-89.5, 89.5), NEAR]),
        ("tanh", 3.0, Tensor::tanh, f64::tanh, [ALL, (-20.0, 20.0), NEAR]),
        ("asinh", 3.0, Tensor::asinh, f64::asinh, [ALL, (-100.0, 100.0), NEAR]),
        ("acosh", 3.0, Tensor::acosh, f64::acosh, [ALL, (1.0, f32::MAX), (1.0, 2.0)]),
        ("atanh", 3.0, Tensor::atanh, f64::atanh, [ALL, NEAR, (0.5, 1.0)]),
        ("sigmoid", 3.0, Tensor::sigmoid, |x| 1.0 / (1.0 + (-x).exp()), [ALL, (-87.4, 88.8), NEAR]),
        (
            "softplus",
            3.0,
            Tensor::softplus,
            |x| x.max(0.0) + (-x.abs()).exp().ln_1p(),
            [ALL, (-87.4, 88.8), NEAR],
        ),
        (
            "elu",
            2.0,
            Tensor::elu,
            |x| if x > 0.0 { x } else { x.exp_m1() },
            [ALL, (-20.0, 0.0), NEAR],
        ),
        ("selu", 3.0, Tensor::selu, selu, [ALL, (-20.0, 0.0), NEAR]),
        ("softsign", 3.0, Tensor::softsign, |x| x / (1.0 + x.abs()), [ALL, NEAR, (1.0, 10.0)]),
        ("erf", 3.0, Tensor::erf, erf, [ALL, (-4.0, 4.0), NEAR]),
        ("lgamma", 6.0, Tensor::lgamma, reference::lgamma, [POSITIVE, (0.1, 4.0), (3.0, 100.0)]),
        ("digamma", 6.0, Tensor::digamma, reference::digamma, [POSITIVE, (0.1, 4.0), (3.0, 100.0)]),
        ("erfinv", 4.0, Tensor::erfinv, reference::erfinv, [NEAR, (0.5, 1.0), (-0.1, 0.1)]),
        ("ndtri", 6.0, Tensor::ndtri, reference::ndtri, [(0.0, 1.0), (0.1, 0.9), (0.0, 1e-6)]),
        (
            "bessel_i0",
            6.0,
            Tensor::bessel_i0,
            reference::bessel_i0,
            [ALL, (-88.7, 88.7), (1.0, 10.0)],
        ),
        (
            "bessel_i0e",
            6.0,
            Tensor::bessel_i0e,
            reference::bessel_i0e,
            [ALL, (-100.0, 100.0), (1.0, 10.0)],
        ),
        (
            "bessel_i1",
            6.0,
            Tensor::bessel_i1,
            reference::bessel_i1,
            [ALL, (-88.7, 88.7), (1.0, 10.0)],
        ),
        (
            "bessel_i1e",
            6.0,
            Tensor::bessel_i1e,
            reference::bessel_i1e,
            [ALL, (-100.0, 100.0), (1.0, 10.0)],
        ),
        ("erfc", 8.0, Tensor::erfc, erfc, [ALL, (-4.0, 9.3), NEAR]),
    ]
}

fn selu(x: f64) -> f64 {
    if x > 0.0 { 1.050_700_987_355_480_5 * x } else { 1.758_099_340_847_376_6 * x.exp_m1() }
}

/// 2/sqrt(pi) times the sum of 2^n x^(2n+1) / (1 3 ... (2n+1)), times e^(-x^2): all terms have the same sign (Abramowitz and
/// Stegun 7.1.6).
fn erf(x: f64) -> f64 {
    if x.abs() > 2.0 {
        return x.signum() - x.signum() * erfc(x.abs());
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..60 {
        term *= 2.0 * x * x / f64::from(2 * n + 1);
        sum += term;
    }
    sum * std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp()
}

/// Beyond 2, a continued fraction (Abramowitz and Stegun 7.1.14).
fn erfc(x: f64) -> f64 {
    if x < 2.0 {
        return 1.0 - erf(x);
    }
    let fraction = (1..120).rev().fold(0.0, |f, n| f64::from(n) / 2.0 / (x + f));
    (-x * x).exp() / ((x + fraction) * std::f64::consts::PI.sqrt())
}

type Range = (f32, f32);
type Binary = (
    &'static str,
    f64,
    fn(&Tensor, &Tensor) -> tf::Result<Tensor>,
    fn(f64, f64) -> f64,
    [(Range, Range); 3],
);

fn binary() -> Vec<Binary> {
    let tens = (-10.0, 10.0);
    vec![
        (
            "pow",
            1.0,
            |a, b| a.pow(b),
            f64::powf,
            [((1e-3, 1e3), tens), ((0.9, 1.1), (-900.0, 900.0)), (ALL, (-3.0, 3.0))],
        ),
        (
            "atan2",
            4.0,
            |a, b| a.atan2(b),
            f64::atan2,
            [(tens, tens), ((1e-30, 1e30), (-1e30, 1e30)), (NEAR, NEAR)],
        ),
        (
            "xlogy",
            2.0,
            |a, b| a.xlogy(b),
            |a, b| if a == 0.0 { 0.0 } else { a * b.ln() },
            [((1e-9, 1e9), (1e-9, 1e9)), (tens, (0.5, 2.0)), (tens, POSITIVE)],
        ),
        (
            "xlog1py",
            3.0,
            |a, b| a.xlog1py(b),
            |a, b| if a == 0.0 { 0.0 } else { a * b.ln_1p() },
            [((1e-9, 1e9), (1e-9, 1e9)), (tens, (-0.5, 2.0)), (tens, NEAR)],
        ),
        (
            "zeta",
            8.0,
            |a, b| a.zeta(b),
            reference::zeta,
            [((1.01, 20.0), (0.1, 20.0)), ((1.5, 4.0), (0.5, 4.0)), ((2.0, 3.0), (1e-3, 1e3))],
        ),
        (
            "floormod",
            1.0,
            |a, b| a.floormod(b),
            floormod,
            [((-1e3, 1e3), tens), (ALL, (-1e20, 1e20)), (ALL, ALL)],
        ),
    ]
}

/// The remainder of `f64`s is exact, and adding b rounds once.
fn floormod(a: f64, b: f64) -> f64 {
    let r = a % b;
    if r != 0.0 && (r < 0.0) != (b < 0.0) { r + b } else { r }
}

const EDGES: [f32; 30] = [
    0.0,
    -0.0,
    1e-45,
    -1e-45,
    1e-38,
    1.175_494_4e-38,
    -1.2e-38,
    1e-30,
    -1e-7,
    0.5,
    -0.5,
    0.999_999_94,
    1.0,
    -1.0,
    1.000_000_1,
    2.0,
    3.0,
    -20.0,
    -87.336_54,
    -88.0,
    88.722_83,
    88.722_84,
    89.0,
    89.415_98,
    89.416,
    1e10,
    f32::MAX,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

/// The name of a range in the tables.
fn range((low, high): Range) -> String {
    match (low, high) {
        ALL => "all".to_string(),
        POSITIVE => "all positive".to_string(),
        _ => format!("{low:e} to {high:e}").replace("e0", ""),
    }
}

#[test]
fn elementwise_ops_are_within_their_bounds() {
    let mut lines = Vec::new();
    for (name, bound, op, reference, ranges) in unary() {
        for (low, high) in ranges {
            let mut line = Line::new(name, range((low, high)), bound);
            let mut x = floats(low, high, 1 << 16, 128);
            x.extend(EDGES.iter().filter(|x| (low..=high).contains(*x) || (low, high) == ALL));
            let y = op(&Tensor::from_slice(&x, [x.len()]).unwrap()).unwrap();
            let mut pairs: Vec<(f32, f32)> = x.into_iter().zip(y.to_vec().unwrap()).collect();
            // A single number has a different kernel.
            for x in [-300.0f32, -3.013, -0.3, 0.3, 3.013, 300.0].map(|x| x.clamp(low, high)) {
                let y = op(&Tensor::from_slice(&[x], [1]).unwrap()).unwrap();
                pairs.push((x, y.item().unwrap()));
            }
            // The largest number plus one is infinite where sums are rounded up.
            let fits = |x: f32| !driver::rounds_in_one_direction() || x.abs() < f32::MAX;
            for (x, y) in pairs.into_iter().filter(|(x, _)| fits(*x)) {
                let wants: Vec<f64> = seen(name, x).into_iter().map(reference).collect();
                line.meet_any(y, &wants, || format!("{x:e}"));
            }
            lines.push(line);
        }
    }
    for (name, bound, op, reference, ranges) in binary() {
        for (of_a, of_b) in ranges {
            let mut line = Line::new(name, format!("{}; {}", range(of_a), range(of_b)), bound);
            let (a, b) = (floats(of_a.0, of_a.1, 125, 0), floats(of_b.0, of_b.1, 255, 8));
            let table = |x: &[f32], shape| Tensor::from_slice(x, shape).unwrap();
            let meet = |line: &mut Line, y, a, b, alone| {
                let pairs = seen(name, a)
                    .into_iter()
                    .flat_map(|a| seen(name, b).into_iter().map(move |b| (a, b)));
                let mut wants: Vec<f64> = pairs.map(|(a, b)| reference(a, b)).collect();
                // The sum with b, with a flushed to 0.
                if name == "floormod" && a.is_subnormal() {
                    wants.extend([a, b].map(f64::from));
                }
                line.meet_any(y, &wants, || format!("{a:e}, {b:e}{alone}"));
            };
            for (i, k) in [(0, 0), (100, 200), (120, 50), (a.len() - 1, b.len() - 1)] {
                let y = op(&table(&a[i..=i], [1, 1]), &table(&b[k..=k], [1, 1])).unwrap();
                meet(&mut line, y.item().unwrap(), a[i], b[k], " alone");
            }
            let y = op(&table(&a, [a.len(), 1]), &table(&b, [1, b.len()])).unwrap();
            for (i, y) in y.to_vec().unwrap().into_iter().enumerate() {
                meet(&mut line, y, a[i / b.len()], b[i % b.len()], "");
            }
            lines.push(line);
        }
    }
    settle("elementwise", &lines);
}

#[test]
fn reductions_are_within_their_bounds() {
    let mut lines = Vec::new();
    let (rows, n) = (64, 4096);
    let value = |i: usize| (i.wrapping_mul(2_654_435_761) & 0xff_ffff) as f32 / 16_777_216.0;
    let positive: Vec<f32> = (0..rows * n).map(|i| 0.5 + value(i)).collect();
    let mixed: Vec<f32> = (0..rows * n).map(|i| 4.0 * value(i) - 2.0).collect();
    let wide = |x: &[f32]| x.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
    let sum = |x: &[f64]| x.iter().sum::<f64>();
    let variance = |x: &[f64]| {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / x.len() as f64
    };
    type Reduce<'a> = (
        &'static str,
        f64,
        bool,
        &'a dyn Fn(&Tensor) -> tf::Result<Tensor>,
        &'a dyn Fn(&[f64]) -> f64,
    );
    let product = |x: &Tensor| x.add(0.042_3)?.reduce_prod(1);
    let table: [Reduce; 8] = [
        ("reduce_sum", 4.0, true, &|x| x.reduce_sum(1), &sum),
        ("reduce_mean", 4.0, true, &|x| x.reduce_mean(1), &|x| sum(x) / x.len() as f64),
        ("reduce_prod", 120.0, true, &product, &|x| {
            x.iter().map(|x| f64::from(*x as f32 + 0.042_3)).product()
        }),
        ("reduce_max", 0.0, false, &|x| x.reduce_max(1), &|x| {
            x.iter().copied().fold(f64::MIN, f64::max)
        }),
        ("reduce_variance", 8.0, false, &|x| x.reduce_variance(1), &variance),
        ("reduce_std", 4.0, false, &|x| x.reduce_std(1), &|x| variance(x).sqrt()),
        ("reduce_euclidean_norm", 4.0, false, &|x| x.reduce_euclidean_norm(1), &|x| {
            x.iter().map(|x| x * x).sum::<f64>().sqrt()
        }),
        ("reduce_logsumexp", 3.0, false, &|x| x.reduce_logsumexp(1), &|x| {
            x.iter().map(|x| x.exp()).sum::<f64>().ln()
        }),
    ];
    for (name, bound, only_positive, op, reference) in table {
        let x = if only_positive { &positive } else { &mixed };
        let over = match (name, only_positive) {
            ("reduce_prod", _) => "4,096 numbers, 0.54 to 1.54",
            (_, true) => "4,096 numbers, 0.5 to 1.5",
            (_, false) => "4,096 numbers, -2 to 2",
        };
        let mut line = Line::new(name, over.into(), bound);
        let y = op(&Tensor::from_slice(x, [rows, n]).unwrap()).unwrap().to_vec::<f32>().unwrap();
        for (row, y) in x.chunks(n).zip(y) {
            line.meet(y, reference(&wide(row)), String::new);
        }
        lines.push(line);
    }
    let m = Tensor::from_slice(&mixed, [rows, n]).unwrap();
    let p = Tensor::from_slice(&positive, [rows, n]).unwrap();
    let mut line = Line::new("reduce_sum", "all of 262,144, 0.5 to 1.5".into(), 4.0);
    line.meet(p.reduce_sum(()).unwrap().item().unwrap(), sum(&wide(&positive)), String::new);
    lines.push(line);
    // Terms cancel: the unit is the last place of the sum of their magnitudes.
    let mut line = Line::new("reduce_sum", "4,096 numbers, -2 to 2, of their sizes".into(), 2.0);
    for (row, y) in mixed.chunks(n).zip(m.reduce_sum(1).unwrap().to_vec::<f32>().unwrap()) {
        let row = wide(row);
        let sizes: f64 = row.iter().map(|x| x.abs()).sum();
        line.meet_error((f64::from(y) - sum(&row)).abs() / ulp(sizes), String::new);
    }
    lines.push(line);
    let mut soft = Line::new("softmax", "4,096 numbers, -2 to 2".into(), 6.0);
    let mut log_soft = Line::new("log_softmax", "4,096 numbers, -2 to 2".into(), 3.0);
    let y = m.softmax(1).unwrap().to_vec::<f32>().unwrap();
    let z = m.log_softmax(1).unwrap().to_vec::<f32>().unwrap();
    for (row, at) in mixed.chunks(n).zip((0..).step_by(n)) {
        let row = wide(row);
        let total: f64 = row.iter().map(|x| x.exp()).sum();
        for (k, x) in row.iter().enumerate() {
            soft.meet(y[at + k], x.exp() / total, String::new);
            log_soft.meet(z[at + k], x - total.ln(), String::new);
        }
    }
    lines.extend([soft, log_soft]);
    let mut line =
        Line::new("matmul", "`[64,4096] x [4096,64]`, of the products' sizes".into(), 4.0);
    let b = p.reshape([n as i64, rows as i64]).unwrap();
    let y = m.matmul(&b).unwrap().to_vec::<f32>().unwrap();
    for (k, y) in y.into_iter().enumerate() {
        let terms = (0..n)
            .map(|j| f64::from(mixed[k / rows * n + j]) * f64::from(positive[j * rows + k % rows]));
        let (sum, sizes) = terms.fold((0.0, 0.0), |(sum, sizes), x| (sum + x, sizes + x.abs()));
        line.meet_error((f64::from(y) - sum).abs() / ulp(sizes), String::new);
    }
    lines.push(line);
    settle("reductions", &lines);
}

/// Held while the file is read and written.
static FILE: Mutex<()> = Mutex::new(());

/// Fails if a bound is exceeded, or if the table in the file does not match these lines; rewrites the table on request.
fn settle(table: &str, lines: &[Line]) {
    let hostile = driver::is_hostile();
    let bound = |line: &Line| {
        let looser = match (table, line.name) {
            ("reductions", "reduce_prod") => driver::looser_products(),
            ("reductions", _) => driver::looser_sums(),
            _ => driver::looser(),
        };
        line.bound * looser
    };
    let broken: Vec<String> = lines
        .iter()
        .filter(|line| line.worst.is_nan() || line.worst > bound(line))
        .map(|l| {
            format!(
                "{} over {}: {:.2} ULP, beyond {}, at {}",
                l.name,
                l.over,
                l.worst,
                bound(l),
                l.at
            )
        })
        .collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    if hostile {
        return;
    }

    let _held = FILE.lock().unwrap();
    let file = fs::read_to_string(docs()).unwrap();
    let (begin, end) = (format!("<!-- {table}: begin -->\n"), format!("<!-- {table}: end -->"));
    let (before, rest) = file.split_once(&begin).expect("the file has the table");
    let (old, after) = rest.split_once(&end).expect("the table ends");
    let adapter = Device::current().unwrap().adapter().name.clone();
    let column = ["llvmpipe", "SwiftShader"].iter().position(|name| adapter.contains(name));
    let mut text =
        String::from("| op | over | bound | llvmpipe | SwiftShader |\n|---|---|---|---|---|\n");
    let known = old.lines().skip(3).collect::<Vec<_>>();
    for (i, line) in lines.iter().enumerate() {
        let head = format!("| `{}` | {} | {} |", line.name, line.over, line.bound);
        let mut cells = ["".to_string(), "".to_string()];
        if let Some(rest) = known.get(i).and_then(|old| old.strip_prefix(&head)) {
            for (cell, old) in cells.iter_mut().zip(rest.split('|')) {
                *cell = old.trim().to_string();
            }
        }
        if let (Some(column), true) = (column, std::env::var("WGRAD_ACCURACY").is_ok()) {
            cells[column] = format!("{:.2}", line.worst);
        }
        text += &format!("{head} {} | {} |\n", cells[0], cells[1]);
    }
    if std::env::var("WGRAD_ACCURACY").is_ok() {
        fs::write(docs(), format!("{before}{begin}\n{text}\n{end}{after}")).unwrap();
        return;
    }
    assert_eq!(
        old.trim(),
        text.trim(),
        "docs/accuracy.md is old: WGRAD_ACCURACY=write cargo test --test accuracy"
    );
    for (line, row) in lines.iter().zip(known) {
        for cell in row.split('|').skip(4).take(2) {
            let said: f64 = cell.trim().parse().unwrap_or(f64::NAN);
            assert!(
                said <= line.bound,
                "docs/accuracy.md says {cell} where {} is the bound: {row}",
                line.bound
            );
        }
    }
}

#[test]
fn the_documentation_says_the_bounds() {
    let source =
        include_str!("../src/ops/unary.rs").to_string() + include_str!("../src/ops/binary.rs");
    assert!(include_str!("../src/ops/special.rs").contains("[Within 8 ULP](Tensor#accuracy) for"));
    let bounds = unary().into_iter().map(|row| (row.0, row.1));
    for (name, bound) in bounds.chain(binary().into_iter().map(|row| (row.0, row.1))) {
        if name == "zeta" {
            continue;
        }
        let row = source.find(&format!("\n    {name}, \"")).expect("the op has a row");
        let above = source[..row].lines().last().unwrap();
        let says = match name {
            "floormod" => "Exact".to_string(),
            _ => format!("[Within {bound} ULP](Tensor#accuracy)"),
        };
        assert!(
            above.contains(&says),
            "the documentation of {name} does not say {says:?}: {above}"
        );
    }
}

/// The results of C's `powf` and TensorFlow.
#[test]
fn powers_at_the_edges() -> tf::Result<()> {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let cases = [
        (-1.0, inf, 1.0),
        (-1.0, -inf, 1.0),
        (1.0, nan, 1.0),
        (1.0, inf, 1.0),
        (nan, 0.0, 1.0),
        (nan, -0.0, 1.0),
        (0.0, -1.0, inf),
        (-0.0, -1.0, -inf),
        (-0.0, -2.0, inf),
        (0.0, 3.0, 0.0),
        (-0.0, 3.0, -0.0),
        (-0.0, 2.0, 0.0),
        (0.0, -inf, inf),
        (0.0, inf, 0.0),
        (0.5, inf, 0.0),
        (0.5, -inf, inf),
        (-2.0, inf, inf),
        (2.0, -inf, 0.0),
        (inf, 0.5, inf),
        (inf, -1.0, 0.0),
        (-inf, 3.0, -inf),
        (-inf, 2.0, inf),
        (-inf, -3.0, -0.0),
        (-inf, 0.5, inf),
        (-8.0, 1.0 / 3.0, nan),
        (-2.0, 3.0, -8.0),
        (-2.0, -2.0, 0.25),
        (2.0, 128.0, inf),
        (-2.0, 129.0, -inf),
        (2.0, 127.0, 2f32.powi(127)),
        (2.0, -126.0, 2f32.powi(-126)),
        (2.0, -200.0, 0.0),
        (3.0, 1e38, inf),
        (0.999_999_94, 1e38, 0.0),
        (1.000_000_1, 1e38, inf),
        (2.0, 1e-45, 1.0),
        (1e-45, 0.5, 3.743_392e-23),
        (nan, 1.0, nan),
        (2.0, nan, nan),
    ];
    let of = |k: usize| Tensor::from_slice(&cases.map(|c| [c.0, c.1][k]), [cases.len()]);
    for (got, (a, b, want)) in of(0)?.pow(&of(1)?)?.to_vec::<f32>()?.into_iter().zip(cases) {
        let flushed = driver::flushes_bitcasts() && [a, b, want].iter().any(|x| x.is_subnormal());
        assert!(flushed || driver::same(got, want), "pow({a}, {b}) = {got}, not {want}");
    }
    // Integer powers of integers, as far as f32 represents them.
    for (power, last) in [(2, 4096), (3, 256), (4, 64), (5, 27)] {
        let x: Vec<f32> = (0..=last).map(|x| x as f32).collect();
        let want: Vec<f32> = (0..=last).map(|x: i32| x.pow(power) as f32).collect();
        let x = Tensor::from_slice(&x, [x.len()])?;
        for (got, want) in x.pow(power as f32)?.to_vec::<f32>()?.into_iter().zip(want) {
            assert!(driver::same(got, want), "{got}, not {want}, to the power of {power}");
        }
    }
    Ok(())
}

#[test]
fn remainders_are_exact() -> tf::Result<()> {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let cases = [
        (1.0, 0.1, 0.099_999_99),
        (1e30, 7.0, 1.0),
        (-1e30, 7.0, 6.0),
        (f32::MAX, 1e-45, 0.0),
        (7.0, 3.0, 1.0),
        (-7.0, 3.0, 2.0),
        (7.0, -3.0, -2.0),
        (-7.0, -3.0, -1.0),
        (6.0, -3.0, 0.0),
        (-6.0, 3.0, -0.0),
        (0.0, 5.0, 0.0),
        (1.0, inf, 1.0),
        (-1.0, inf, inf),
        (1.0, -inf, -inf),
        (1.0, 0.0, nan),
        (inf, 2.0, nan),
        (nan, 2.0, nan),
        (2.0, nan, nan),
        (5.9, 1.0, 5.9f32 % 1.0),
        (3e-38, 2e-38, 3e-38f32 % 2e-38),
        (-1e-30, 7.0, 7.0),
    ];
    let of = |k: usize| Tensor::from_slice(&cases.map(|c| [c.0, c.1][k]), [cases.len()]);
    for (got, (a, b, want)) in of(0)?.floormod(&of(1)?)?.to_vec::<f32>()?.into_iter().zip(cases) {
        let flushed = driver::flushes_bitcasts() && [a, b, want].iter().any(|x| x.is_subnormal());
        assert!(flushed || driver::same(got, want), "{a} mod {b} = {got}, not {want}");
    }
    Ok(())
}
