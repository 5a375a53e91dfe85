//! The element-wise ops and reductions of programs: the crate's call of each, the function in `f64`, its domain, and the
//! permitted error of one kernel.

#[path = "../../../src/ops/reference.rs"]
mod reference;

use wgrad::{DType, Result, Tensor};

/// The permitted difference of an `f32` result from the function's value at the same arguments.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rounding {
    /// None: signs, choices.
    Exact,
    /// Rounded once; exact if the value is an `f32`.
    Once,
    /// This many units in the last place.
    Units(f64),
    /// A driver's function, or a series: relative error, and absolute error near 0.
    Function,
    /// The value jumps: arguments must keep this relative distance from the jumps.
    Step(f64),
}
use Rounding::{Exact, Function, Once, Step, Units};

pub struct Unary {
    pub name: &'static str,
    /// The call as text.
    pub text: &'static str,
    pub call: fn(&Tensor) -> Result<Tensor>,
    pub f: fn(f64) -> f64,
    /// The domain of arguments.
    pub domain: fn(f64) -> bool,
    pub rounding: Rounding,
    pub takes: &'static [DType],
    pub test: bool,
    /// Whether the crate has its gradient.
    pub smooth: bool,
}

pub struct Binary {
    pub name: &'static str,
    pub call: fn(&Tensor, &Tensor) -> Result<Tensor>,
    pub scalar: fn(&Tensor, wgrad::Scalar) -> Result<Tensor>,
    pub f: fn(f64, f64) -> f64,
    pub domain: fn(f64, f64) -> bool,
    pub rounding: Rounding,
    pub takes: &'static [DType],
    pub test: bool,
    pub smooth: bool,
}

impl std::fmt::Debug for Unary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl std::fmt::Debug for Binary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const F: &[DType] = &[DType::F32];
const FI: &[DType] = &[DType::F32, DType::I32];
const I: &[DType] = &[DType::I32];
const B: &[DType] = &[DType::Bool];
const FIB: &[DType] = &[DType::F32, DType::I32, DType::Bool];

macro_rules! unary {
    ($($name:ident ($($arg:expr),*) $takes:ident $rounding:expr, $smooth:literal,
       |$x:ident| $f:expr, |$d:ident| $domain:expr $(=> $test:ident)?;)*) => {
        pub static UNARY: &[Unary] = &[$(Unary {
            name: stringify!($name),
            text: stringify!($name($($arg),*)),
            call: |x| x.$name($($arg),*),
            f: |$x: f64| $f,
            domain: |$d: f64| $domain,
            rounding: $rounding,
            takes: $takes,
            test: !concat!("" $(, stringify!($test))?).is_empty(),
            smooth: $smooth,
        }),*];
    };
}

macro_rules! binary {
    ($($name:ident $takes:ident $rounding:expr, $smooth:literal,
       |$a:ident, $b:ident| $f:expr, |$c:ident, $d:ident| $domain:expr $(=> $test:ident)?;)*) => {
        pub static BINARY: &[Binary] = &[$(Binary {
            name: stringify!($name),
            call: |a, b| a.$name(b),
            scalar: |a, b| match b {
                wgrad::Scalar::Float(v) => a.$name(v),
                wgrad::Scalar::Int(v) => a.$name(v),
                wgrad::Scalar::Unsigned(v) => a.$name(v),
                wgrad::Scalar::Bool(v) => a.$name(v),
            },
            f: |$a: f64, $b: f64| $f,
            domain: |$c: f64, $d: f64| $domain,
            rounding: $rounding,
            takes: $takes,
            test: !concat!("" $(, stringify!($test))?).is_empty(),
            smooth: $smooth,
        }),*];
    };
}

// UNARY[0] is `Unary { name: "abs", text: "abs()", call: |x| x.abs(), f: |x| x.abs(), ... }`.
unary! {
    abs() FI Exact, true, |x| x.abs(), |_x| true;
    negative() FI Exact, true, |x| -x, |_x| true;
    exp() F Function, true, |x| x.exp(), |x| x.abs() < 5.0;
    expm1() F Function, true, |x| x.exp_m1(), |x| x.abs() < 5.0;
    log() F Function, true, |x| x.ln(), |x| x > 0.05;
    log1p() F Function, true, |x| x.ln_1p(), |x| x > -0.9;
    sqrt() F Units(4.0), true, |x| x.sqrt(), |x| x > 0.02;
    rsqrt() F Units(6.0), true, |x| 1.0 / x.sqrt(), |x| x > 0.05;
    cbrt() F Function, true, |x| x.cbrt(), |x| x.abs() > 0.05;
    square() FI Once, true, |x| x * x, |x| x.abs() < 100.0;
    reciprocal() F Units(4.0), true, |x| 1.0 / x, |x| x.abs() > 0.1;
    sin() F Function, true, |x| x.sin(), |x| x.abs() < 50.0;
    cos() F Function, true, |x| x.cos(), |x| x.abs() < 50.0;
    tan() F Function, true, |x| x.tan(), |x| x.abs() < 1.2;
    asin() F Function, true, |x| x.asin(), |x| x.abs() < 0.9;
    acos() F Function, true, |x| x.acos(), |x| x.abs() < 0.9;
    atan() F Function, true, |x| x.atan(), |_x| true;
    sinh() F Function, true, |x| x.sinh(), |x| x.abs() < 5.0;
    cosh() F Function, true, |x| x.cosh(), |x| x.abs() < 5.0;
    tanh() F Function, true, |x| x.tanh(), |_x| true;
    asinh() F Function, true, |x| x.asinh(), |_x| true;
    acosh() F Function, true, |x| x.acosh(), |x| x > 1.1;
    atanh() F Function, true, |x| x.atanh(), |x| x.abs() < 0.9;
    sigmoid() F Function, true, |x| 1.0 / (1.0 + (-x).exp()), |_x| true;
    softplus() F Function, true, |x| x.max(0.0) + (-x.abs()).exp().ln_1p(), |_x| true;
    relu() FI Exact, true, |x| if x.is_nan() { x } else { x.max(0.0) }, |_x| true;
    elu() F Function, true, |x| if x > 0.0 { x } else { x.exp_m1() }, |_x| true;
    selu() F Function, true,
        |x| if x > 0.0 { 1.050_700_987_355_480_5 * x } else { 1.758_099_340_847_376_6 * x.exp_m1() }, |_x| true;
    softsign() F Units(6.0), true, |x| x / (1.0 + x.abs()), |_x| true;
    erf() F Function, true, |x| erf(x), |x| x.abs() < 6.0;
    erfc() F Function, true, |x| 1.0 - erf(x), |x| x.abs() < 2.0;
    silu() F Function, true, |x| x / (1.0 + (-x).exp()), |x| x.abs() < 50.0;
    log_sigmoid() F Function, true, |x| x.min(0.0) - (-x.abs()).exp().ln_1p(), |_x| true;
    mish() F Function, true, |x| x * (x.max(0.0) + (-x.abs()).exp().ln_1p()).tanh(), |x| x.abs() < 20.0;
    gelu_with(wgrad::GeluOptions::new().approximate(true)) F Function, true,
        |x| 0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x)).tanh()), |x| x.abs() < 5.0;
    gelu() F Function, true,
        |x| 0.5 * x * (1.0 + erf(x * std::f64::consts::FRAC_1_SQRT_2)), |x| x.abs() < 5.0;
    relu6() F Exact, true, |x| x.clamp(0.0, 6.0), |_x| true;
    leaky_relu(0.25) F Once, true, |x| if x > 0.0 { x } else { 0.25 * x }, |_x| true;
    clip_by_value(-1.0, 1.5) F Exact, true, |x| x.clamp(-1.0, 1.5), |_x| true;
    lgamma() F Function, true, |x| reference::lgamma(x), |x| x > 0.1 && x < 30.0;
    digamma() F Function, true, |x| reference::digamma(x), |x| x > 0.2 && x < 30.0;
    erfinv() F Function, true, |x| reference::erfinv(x), |x| x.abs() < 0.9;
    ndtri() F Function, true, |x| reference::ndtri(x), |x| x > 0.05 && x < 0.95;
    bessel_i0() F Function, true, |x| reference::bessel_i0(x), |x| x.abs() < 6.0;
    bessel_i0e() F Function, true, |x| reference::bessel_i0e(x), |_x| true;
    bessel_i1() F Function, true, |x| reference::bessel_i1(x), |x| x.abs() < 6.0;
    bessel_i1e() F Function, true, |x| reference::bessel_i1e(x), |_x| true;
    reciprocal_no_nan() F Units(4.0), true, |x| if x == 0.0 { 0.0 } else { 1.0 / x }, |x| x.abs() > 0.1;
    elu_with(wgrad::EluOptions::new().alpha(0.7)) F Function, true, |x| if x > 0.0 { x } else { 0.7 * x.exp_m1() }, |_x| true;
    celu(0.7) F Function, true, |x| if x > 0.0 { x } else { 0.7 * (x / 0.7).exp_m1() }, |_x| true;
    hard_silu() F Function, true, |x| x * (x + 3.0).clamp(0.0, 6.0) / 6.0, |x| x.abs() < 100.0;
    hard_tanh() F Exact, true, |x| x.clamp(-1.0, 1.0), |_x| true;
    tanh_shrink() F Function, true, |x| x - x.tanh(), |x| x.abs() < 50.0;
    hard_shrink(0.5) F Step(0.0), true, |x| if x.abs() > 0.5 { x } else { 0.0 }, |_x| true;
    soft_shrink(0.5) F Once, true, |x| x.signum() * (x.abs() - 0.5).max(0.0), |_x| true;
    threshold(0.5, -1.0) F Step(0.0), true, |x| if x > 0.5 { x } else { -1.0 }, |_x| true;
    squareplus(4.0) F Function, true, |x| 0.5 * (x + (x * x + 4.0).sqrt()), |x| x.abs() < 20.0;
    sparse_plus() F Function, true,
        |x| if x >= 1.0 { x } else { 0.25 * (x + 1.0).max(0.0).powi(2) }, |_x| true;
    sparse_sigmoid() F Function, true, |x| (0.5 * (x + 1.0)).clamp(0.0, 1.0), |_x| true;
    invert() I Exact, false, |x| f64::from(!(x as i32)), |_x| true;
    population_count() I Exact, false, |x| f64::from((x as i32).count_ones()), |_x| true;
    floor() F Step(0.0), false, |x| x.floor(), |_x| true;
    ceil() F Step(0.0), false, |x| x.ceil(), |_x| true;
    rint() F Step(0.0), false, |x| x.round_ties_even(), |_x| true;
    round() F Step(0.0), false, |x| x.round_ties_even(), |_x| true;
    sign() FI Step(0.0), true, |x| if x == 0.0 { 0.0 } else { x.signum() }, |_x| true;
    is_nan() F Step(0.0), false, |x| f64::from(x.is_nan()), |_x| true => test;
    is_finite() F Step(0.0), false, |x| f64::from(x.is_finite()), |_x| true => test;
    logical_not() B Exact, false, |x| 1.0 - x, |_x| true => test;
}

binary! {
    add FI Once, true, |a, b| a + b, |_a, _b| true;
    subtract FI Once, true, |a, b| a - b, |_a, _b| true;
    multiply FI Once, true, |a, b| a * b, |_a, _b| true;
    divide F Units(4.0), true, |a, b| a / b, |_a, b| b.abs() > 0.2;
    divide_no_nan F Units(4.0), true, |a, b| if b == 0.0 { 0.0 } else { a / b }, |_a, b| b.abs() > 0.2;
    floordiv FI Step(1e-5), false, |a, b| (a / b).floor(), |_a, b| b.abs() > 0.2;
    floormod FI Step(1e-5), true, |a, b| a - (a / b).floor() * b, |_a, b| b.abs() > 0.2;
    pow F Function, true, |a, b| a.powf(b), |a, b| a > 0.2 && a < 8.0 && b.abs() < 3.0;
    maximum FI Exact, true, |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(b) }, |_a, _b| true;
    minimum FI Exact, true, |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.min(b) }, |_a, _b| true;
    squared_difference FI Units(2.0), true, |a, b| (a - b) * (a - b), |a, b| (a - b).abs() < 100.0;
    atan2 F Function, true, |a, b| a.atan2(b), |a, b| (a.abs() > 0.1 || b > 0.1) && b.abs() > 1e-3;
    xlogy F Function, true, |a, b| if a == 0.0 { 0.0 } else { a * b.ln() }, |a, b| a.abs() < 4.0 && b > 0.1;
    xlog1py F Function, true, |a, b| if a == 0.0 { 0.0 } else { a * b.ln_1p() }, |a, b| a.abs() < 4.0 && b > -0.9;
    multiply_no_nan F Once, true, |a, b| if b == 0.0 { 0.0 } else { a * b }, |_a, _b| true;
    xdivy F Units(4.0), true, |a, b| if a == 0.0 { 0.0 } else { a / b }, |_a, b| b.abs() > 0.2;
    zeta F Function, true, |a, b| reference::zeta(a, b), |a, b| a > 1.2 && a < 6.0 && b > 0.2 && b < 20.0;
    truncatediv I Exact, false, |a, b| (a / b).trunc(), |_a, b| b != 0.0;
    truncatemod FI Step(1e-5), true, |a, b| a % b, |_a, b| b.abs() > 0.2;
    bitwise_and I Exact, false, |a, b| f64::from(a as i32 & b as i32), |_a, _b| true;
    bitwise_or I Exact, false, |a, b| f64::from(a as i32 | b as i32), |_a, _b| true;
    bitwise_xor I Exact, false, |a, b| f64::from(a as i32 ^ b as i32), |_a, _b| true;
    left_shift I Exact, false, |a, b| f64::from((a as i32) << (b as i32).clamp(0, 31)), |a, b| a.abs() < 1024.0 && b < 8.0;
    right_shift I Exact, false, |a, b| f64::from(a as i32 >> (b as i32).clamp(0, 31)), |_a, _b| true;
    less FI Step(0.0), false, |a, b| f64::from(a < b), |_a, _b| true => test;
    less_equal FI Step(0.0), false, |a, b| f64::from(a <= b), |_a, _b| true => test;
    greater FI Step(0.0), false, |a, b| f64::from(a > b), |_a, _b| true => test;
    greater_equal FI Step(0.0), false, |a, b| f64::from(a >= b), |_a, _b| true => test;
    equal FIB Step(0.0), false, |a, b| f64::from(a == b), |_a, _b| true => test;
    not_equal FIB Step(0.0), false, |a, b| f64::from(a != b), |_a, _b| true => test;
    logical_and B Exact, false, |a, b| a * b, |_a, _b| true => test;
    logical_or B Exact, false, |a, b| a.max(b), |_a, _b| true => test;
    logical_xor B Exact, false, |a, b| f64::from(a != b), |_a, _b| true => test;
}

/// The function of a reduction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    Sum,
    Prod,
    Max,
    Min,
    Mean,
    Any,
    All,
    Variance,
    Std,
    Norm,
    LogSumExp,
}

pub struct Reduction {
    pub name: &'static str,
    pub call: fn(&Tensor, &[i64], bool) -> Result<Tensor>,
    pub fold: Fold,
    pub takes: &'static [DType],
}

impl std::fmt::Debug for Reduction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! reductions {
    ($($name:ident $fold:ident $takes:ident;)*) => {
        pub static REDUCTIONS: &[Reduction] = &[$(Reduction {
            name: stringify!($name),
            call: |x, axes, keep| x.$name(wgrad::Axes::from(axes).keepdims(keep)),
            fold: Fold::$fold,
            takes: $takes,
        }),*];
    };
}

reductions! {
    reduce_sum Sum FI;
    reduce_prod Prod FI;
    reduce_max Max FI;
    reduce_min Min FI;
    reduce_mean Mean F;
    reduce_any Any B;
    reduce_all All B;
    reduce_variance Variance F;
    reduce_std Std F;
    reduce_euclidean_norm Norm F;
    reduce_logsumexp LogSumExp F;
}

pub fn unary(name: &str) -> &'static Unary {
    let is = |text: &str| text.chars().filter(|c| *c != ' ').eq(name.chars());
    UNARY.iter().find(|row| row.name == name || is(row.text)).expect("a row of the table")
}

pub fn binary(name: &str) -> &'static Binary {
    BINARY.iter().find(|row| row.name == name).expect("a row of the table")
}

pub fn reduction(fold: Fold) -> &'static Reduction {
    REDUCTIONS.iter().find(|row| row.fold == fold).expect("a row of the table")
}

/// The error function: its Taylor series up to 3, beyond that the continued fraction of `erfc`, evaluated from its end.
pub fn erf(x: f64) -> f64 {
    if x.is_nan() {
        return x;
    }
    let pi = std::f64::consts::PI;
    if x.abs() > 3.0 {
        let z = x.abs();
        // erfc z = e^-z^2 / sqrt(pi) / (z + (1/2) / (z + (2/2) / (z + (3/2) / ...
        let tail = (1..80).rev().fold(z, |below, n| z + f64::from(n) / 2.0 / below);
        return x.signum() * (1.0 - (-z * z).exp() / (tail * pi.sqrt()));
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..120 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / pi.sqrt()
}
