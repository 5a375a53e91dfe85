//! Elementwise ops of one tensor: one row of the table each.
//!
//! A row contains: documentation, method, TensorFlow's name of the kernel and its names of the function, the WGSL for
//! floats (and for integers or `bool` if it is defined for them), the reference in `f64`, and either what the tape
//! stores, the range of numbers over which tests check the gradient, and the gradient, or the reason why there is none.
//! `x` is the input, `y` the result, `dy` the gradient of the result. Registers hold floats as `f32`, so one text
//! serves `f16` too.

use super::inventory::Values::{Away, Within};
use super::inventory::{ANY, Entry, Gradient, OpKind, POSITIVE, one, row_takes};
#[cfg(test)]
use super::reference;
use super::special;
use super::{Backward, Grads, Keep, Operation, known_by_method, no_grads, not_defined, only};
use crate::dtype::{DType, Register};
use crate::eager::dispatch;
use crate::error::Result;
use crate::graph::attributes::{Attribute, attribute_of_rows};
use crate::graph::lower::{Elementwise, Lowering, LoweringContext, View};
use crate::graph::{Op, Spec};
use crate::tensor::Tensor;

/// A row of the table.
pub(crate) struct Row {
    pub(crate) method: &'static str,
    pub(crate) name: &'static str,
    /// WGSL by register type; `None` if the op is not defined for it.
    float: Option<&'static str>,
    int: Option<&'static str>,
    bool: Option<&'static str>,
    /// The result is `bool`.
    test: bool,
    /// The result in `f64`, for tests.
    #[cfg(test)]
    pub(crate) reference: fn(f64) -> f64,
    keep: Keep,
    grad: fn(&Tensor, &Tensor) -> Result<Tensor>,
}

macro_rules! unary {
    ($($(#[$doc:meta])* $method:ident, $name:literal $(= $($tf:literal),+)?, [$($kind:ident $wgsl:tt),+] $(=> $test:ident)?,
       |$x:ident| $reference:expr, $how:ident $what:tt $(over $values:expr)? $(, |$k:ident, $dy:ident| $grad:expr)?;)*) => {
        // Only its method refers to a row, so a program contains only the rows and gradients of the methods that it
        // calls.
        $(#[allow(non_upper_case_globals)]
        static $method: Row = Row {
            method: stringify!($method),
            name: $name,
            float: unary!(@wgsl float $($kind $wgsl)+),
            int: unary!(@wgsl int $($kind $wgsl)+),
            bool: unary!(@wgsl bool $($kind $wgsl)+),
            test: unary!(@test $($test)?),
            #[cfg(test)]
            reference: |$x: f64| $reference,
            keep: unary!(@keep $how $what),
            grad: unary!(@grad $(|$k, $dy| $grad)?),
        };)*

        /// All rows: those that tests loop over and that files name.
        #[cfg_attr(not(test), allow(dead_code))]
        pub(crate) static ROWS: &[&Row] = &[$(&$method),*];

        /// The rows' entries in the inventory.
        pub(super) const ENTRIES: &[Entry] = &[$(
            Entry::new(OpKind::Row, stringify!($method), &[$($($tf),+)?], |c| one(c.x()?.$method()))
                .takes($method.dtypes())
                .gradient(match $method.keep {
                    Keep::NoGradient(reason) => Gradient::None(reason),
                    _ => Gradient::Checked,
                })
                .cases(|cases| { let _ = &cases; $(cases.of_one(stringify!($method), $values, |x| x.$method());)? })
        ),*];

        /// Elementwise ops. Each accepts a tensor of any shape and returns one of the same shape and, unless stated
        /// otherwise, the same dtype. They return [`Error::DType`](crate::Error::DType) for a dtype that they are not
        /// defined for.
        impl Tensor {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// [`Error::DType`](crate::Error::DType) if the op is not defined for the tensor's dtype.
            pub fn $method(&self) -> Result<Tensor> {
                dispatch(Unary { row: &$method }, &[self])
            }
        )*}
    };
    (@wgsl float float $wgsl:tt $($rest:tt)*) => { Some($wgsl) };
    (@wgsl int int $wgsl:tt $($rest:tt)*) => { Some($wgsl) };
    (@wgsl bool bool $wgsl:tt $($rest:tt)*) => { Some($wgsl) };
    (@wgsl $want:ident $kind:ident $wgsl:tt $($rest:tt)*) => { unary!(@wgsl $want $($rest)*) };
    (@wgsl $want:ident) => { None };
    (@test test) => { true };
    (@test) => { false };
    (@keep keep x) => { Keep::Inputs };
    (@keep keep y) => { Keep::Output };
    (@keep keep nothing) => { Keep::Nothing };
    (@keep none $reason:literal) => { Keep::NoGradient($reason) };
    (@grad |$k:ident, $dy:ident| $grad:expr) => { |$k: &Tensor, $dy: &Tensor| Ok($grad) };
    (@grad) => { |_: &Tensor, dy: &Tensor| Ok(dy.clone()) };
}

// The first row becomes `static abs: Row = Row { method: "abs", name: "Abs", float: Some("abs(x)"), ... }` and the
// method `Tensor::abs`, which dispatches `Unary { row: &abs }`.
unary! {
    /// `|x|`; the gradient at 0 is 0.
    abs, "Abs" = "tf.math.abs", [float "abs(x)", int "abs(x)"], |x| x.abs(), keep x over Away, |x, dy| dy * x.sign()?;
    /// `-x`.
    negative, "Neg" = "tf.math.negative", [float "-x", int "V(0) - x"], |x| -x, keep nothing over ANY, |_y, dy| -dy;
    /// `e^x`. [Within 2 ULP](Tensor#accuracy).
    exp, "Exp" = "tf.math.exp", [float "exp_4(x)"], |x| x.exp(), keep y over ANY, |y, dy| dy * y;
    // Not y + 1, which loses all digits if y is near -1.
    /// `e^x - 1`, exact near 0. [Within 2 ULP](Tensor#accuracy).
    expm1, "Expm1" = "tf.math.expm1", [float "expm1_4(x)"], |x| x.exp_m1(), keep x over ANY, |x, dy| dy * x.exp()?;
    /// The natural logarithm; NaN below 0. [Within 1 ULP](Tensor#accuracy).
    log, "Log" = "tf.math.log", [float "log_4(x)"], |x| x.ln(), keep x over POSITIVE, |x, dy| dy / x;
    /// `log(1 + x)`, exact near 0. [Within 2 ULP](Tensor#accuracy).
    log1p, "Log1p" = "tf.math.log1p", [float "log1p_4(x)"], |x| x.ln_1p(), keep x over Within(-0.5, 2.0), |x, dy| dy / (x + 1.0);
    /// `sqrt(x)`; NaN below 0. [Within 1 ULP](Tensor#accuracy).
    sqrt, "Sqrt" = "tf.math.sqrt", [float "sqrt_4(x)"], |x| x.sqrt(), keep y over POSITIVE, |y, dy| dy * 0.5 / y;
    /// `1 / sqrt(x)`. [Within 2 ULP](Tensor#accuracy).
    rsqrt, "Rsqrt" = "tf.math.rsqrt", [float "1 / sqrt_4(x)"], |x| 1.0 / x.sqrt(), keep y over POSITIVE, |y, dy| dy * -0.5 * (y * y * y);
    /// The real cube root, also of negative numbers; the gradient at 0 is infinity. [Within 2 ULP](Tensor#accuracy).
    cbrt, "Cbrt" = "keras.ops.cbrt", [float "cbrt_4(x)"], |x| x.cbrt(), keep y over Away, |y, dy| dy / (3.0 * y * y);
    /// `x^2`.
    square, "Square" = "tf.math.square", [float "x * x", int "x * x"], |x| x * x, keep x over ANY, |x, dy| dy * (x * 2.0);
    /// `1 / x`.
    reciprocal, "Reciprocal" = "tf.math.reciprocal", [float "1 / x"], |x| 1.0 / x, keep y over Away, |y, dy| -dy * (y * y);
    /// `sin(x)`, `x` in radians. [Within 3 ULP](Tensor#accuracy).
    sin, "Sin" = "tf.math.sin", [float "sin_4(x)"], |x| x.sin(), keep x over ANY, |x, dy| dy * x.cos()?;
    /// `cos(x)`, `x` in radians. [Within 3 ULP](Tensor#accuracy).
    cos, "Cos" = "tf.math.cos", [float "cos_4(x)"], |x| x.cos(), keep x over ANY, |x, dy| -dy * x.sin()?;
    /// `tan(x)`, `x` in radians. [Within 5 ULP](Tensor#accuracy).
    tan, "Tan" = "tf.math.tan", [float "tan_4(x)"], |x| x.tan(), keep y over Within(-0.9, 0.9), |y, dy| dy * (y * y + 1.0);
    /// The angle in radians whose sine is `x`. [Within 3 ULP](Tensor#accuracy).
    asin, "Asin" = "tf.math.asin", [float "asin_4(x)"], |x| x.asin(), keep x over Within(-0.7, 0.7), |x, dy| dy * one_minus_square(x)?.rsqrt()?;
    /// The angle in radians whose cosine is `x`. [Within 2 ULP](Tensor#accuracy).
    acos, "Acos" = "tf.math.acos", [float "acos_4(x)"], |x| x.acos(), keep x over Within(-0.7, 0.7), |x, dy| -dy * one_minus_square(x)?.rsqrt()?;
    /// The angle in radians whose tangent is `x`. [Within 4 ULP](Tensor#accuracy).
    atan, "Atan" = "tf.math.atan", [float "atan_4(x)"], |x| x.atan(), keep x over ANY, |x, dy| dy / (x * x + 1.0);
    /// `(e^x - e^-x) / 2`. [Within 3 ULP](Tensor#accuracy).
    sinh, "Sinh" = "tf.math.sinh", [float "sinh_4(x)"], |x| x.sinh(), keep x over ANY, |x, dy| dy * x.cosh()?;
    /// `(e^x + e^-x) / 2`. [Within 2 ULP](Tensor#accuracy).
    cosh, "Cosh" = "tf.math.cosh", [float "cosh_4(x)"], |x| x.cosh(), keep x over ANY, |x, dy| dy * x.sinh()?;
    // d/dx tanh(x) = 1 - tanh(x)^2
    /// `tanh(x)`. [Within 3 ULP](Tensor#accuracy).
    tanh, "Tanh" = "tf.math.tanh", [float "tanh_4(x)"], |x| x.tanh(), keep y over ANY, |y, dy| dy * (1.0 - y * y);
    /// The inverse of `sinh`. [Within 3 ULP](Tensor#accuracy).
    asinh, "Asinh" = "tf.math.asinh", [float "asinh_4(x)"], |x| x.asinh(), keep x over ANY, |x, dy| dy * inverse_hypotenuse(x)?;
    /// The inverse of `cosh`; NaN below 1. [Within 3 ULP](Tensor#accuracy).
    acosh, "Acosh" = "tf.math.acosh", [float "acosh_4(x)"], |x| x.acosh(), keep y over Within(1.5, 3.0), |y, dy| dy / y.sinh()?;
    /// The inverse of `tanh`. [Within 3 ULP](Tensor#accuracy).
    atanh, "Atanh" = "tf.math.atanh", [float "atanh_4(x)"], |x| x.atanh(), keep x over Within(-0.6, 0.6), |x, dy| dy / one_minus_square(x)?;
    /// Logistic sigmoid, `1 / (1 + e^-x)`. [Within 3 ULP](Tensor#accuracy).
    sigmoid, "Sigmoid" = "tf.math.sigmoid", [float "sigmoid_4(x)"], |x| 1.0 / (1.0 + (-x).exp()),
        keep y over Within(-3.0, 3.0), |y, dy| dy * y * (1.0 - y);
    /// `log(1 + e^x)`, stable for every `x`. [Within 3 ULP](Tensor#accuracy).
    softplus, "Softplus" = "tf.math.softplus", [float "softplus_4(x)"], |x| x.max(0.0) + (-x.abs()).exp().ln_1p(),
        keep x over Within(-3.0, 3.0), |x, dy| dy * x.sigmoid()?;
    /// `max(x, 0)`; the gradient at 0 is 0.
    relu, "Relu" = "tf.nn.relu", [float "select(max(x, V(0)), x, is_nan_4(x))", int "max(x, V(0))"],
        |x| if x.is_nan() { x } else { x.max(0.0) },
        keep y over Away, |y, dy| super::select(&y.greater(0.0)?, dy, &dy.zeros_like()?)?;
    /// `x` above 0, `e^x - 1` below. [Within 2 ULP](Tensor#accuracy).
    elu, "Elu" = "tf.nn.elu", [float "select(expm1_4(x), x, x > V(0))"], |x| if x > 0.0 { x } else { x.exp_m1() },
        keep x over Away, |x, dy| super::select(&x.less(0.0)?, &(dy * x.minimum(0.0)?.exp()?), dy)?;
    /// `1.0507 x` above 0, `1.7581 (e^x - 1)` below (Klambauer et al. 2017). [Within 3 ULP](Tensor#accuracy).
    selu, "Selu" = "tf.nn.selu", [float "select(1.7580993408473766 * expm1_4(x), 1.0507009873554805 * x, x > V(0))"],
        |x| if x > 0.0 { 1.050_700_987_355_480_5 * x } else { 1.758_099_340_847_376_6 * x.exp_m1() },
        keep x over Away, |x, dy| super::select(&x.less(0.0)?, &(dy * (x.minimum(0.0)?.exp()? * 1.758_099_340_847_376_6)),
                                      &(dy * 1.050_700_987_355_480_5))?;
    /// `x / (1 + |x|)`. [Within 3 ULP](Tensor#accuracy).
    softsign, "Softsign" = "tf.nn.softsign", [float "divide_4(x, 1 + abs(x))"], |x| x / (1.0 + x.abs()),
        keep x over Away, |x, dy| dy / (x.abs()? + 1.0).square()?;
    /// The error function. [Within 3 ULP](Tensor#accuracy).
    erf, "Erf" = "tf.math.erf", [float "erf_4(x)"], |x| reference::erf(x), keep x over ANY,
        |x, dy| dy * std::f32::consts::FRAC_2_SQRT_PI * (-(x * x)).exp()?;
    /// `1 - erf(x)`. [Within 8 ULP](Tensor#accuracy).
    erfc, "Erfc" = "tf.math.erfc", [float "erfc_4(x)"], |x| reference::erfc(x), keep x over ANY,
        |x, dy| dy * -std::f32::consts::FRAC_2_SQRT_PI * (-(x * x)).exp()?;
    /// `log |gamma(x)|`; infinity at 0 and the negative whole numbers. [Within 6 ULP](Tensor#accuracy) above 0.
    lgamma, "Lgamma" = "tf.math.lgamma", [float (special::LGAMMA)], |x| reference::lgamma(x), keep x over POSITIVE,
        |x, dy| dy * x.digamma()?;
    /// The derivative of [`lgamma`](Tensor::lgamma); NaN at 0 and the negative whole numbers.
    /// [Within 6 ULP](Tensor#accuracy) above 0.
    digamma, "Digamma" = "tf.math.digamma", [float (special::DIGAMMA)], |x| reference::digamma(x), keep x over POSITIVE,
        |x, dy| dy * x.ones_like()?.polygamma(x)?;
    /// The inverse of [`erf`](Tensor::erf); NaN outside -1 to 1. [Within 4 ULP](Tensor#accuracy).
    erfinv, "Erfinv" = "tf.math.erfinv", [float (special::ERFINV)], |x| reference::erfinv(x), keep y over Within(-0.7, 0.7),
        |y, dy| dy * 0.886_226_95 * y.square()?.exp()?;
    /// The quantile function of the standard normal distribution; NaN outside 0 to 1. [Within 6 ULP](Tensor#accuracy).
    ndtri, "Ndtri" = "tf.math.ndtri", [float (special::NDTRI)], |x| reference::ndtri(x), keep y over Within(0.2, 0.8),
        |y, dy| dy * 2.506_628_3 * (y.square()? * 0.5).exp()?;
    // Gradients as `i0' = i1` and `i1' = i0 - i1 / x`.
    /// The modified Bessel function of the first kind, of order 0. Infinity from 88.7 on. [Within 6 ULP](Tensor#accuracy).
    bessel_i0, "BesselI0" = "tf.math.bessel_i0", [float (special::BESSEL_I0)], |x| reference::bessel_i0(x), keep x over ANY,
        |x, dy| dy * x.bessel_i1()?;
    /// `e^-|x| bessel_i0(x)`. [Within 6 ULP](Tensor#accuracy).
    bessel_i0e, "BesselI0e" = "tf.math.bessel_i0e", [float (special::BESSEL_I0E)], |x| reference::bessel_i0e(x), keep x over Away,
        |x, dy| dy * (x.bessel_i1e()? - x.sign()? * x.bessel_i0e()?);
    /// The modified Bessel function of the first kind, of order 1. Infinity from 88.7 on. [Within 6 ULP](Tensor#accuracy).
    bessel_i1, "BesselI1" = "tf.math.bessel_i1", [float (special::BESSEL_I1)], |x| reference::bessel_i1(x), keep x over Away,
        |x, dy| dy * super::select(&x.equal(0.0)?, &(x.ones_like()? * 0.5), &(x.bessel_i0()? - x.bessel_i1()?.divide_no_nan(x)?))?;
    /// `e^-|x| bessel_i1(x)`. [Within 6 ULP](Tensor#accuracy).
    bessel_i1e, "BesselI1e" = "tf.math.bessel_i1e", [float (special::BESSEL_I1E)], |x| reference::bessel_i1e(x), keep x over Away,
        |x, dy| dy * super::select(&x.equal(0.0)?, &(x.ones_like()? * 0.5),
            &(x.bessel_i0e()? - x.bessel_i1e()? * x.sign()? - x.bessel_i1e()?.divide_no_nan(x)?))?;
    /// `1 / x`, and 0 where `x` is 0.
    reciprocal_no_nan, "ReciprocalNoNan" = "tf.math.reciprocal_no_nan", [float "select(1 / x, V(0), x == V(0))"],
        |x| if x == 0.0 { 0.0 } else { 1.0 / x }, keep y over Away, |y, dy| -dy * (y * y);
    /// Bitwise NOT of integers.
    invert, "Invert" = "tf.bitwise.invert", [int "~x"], |x| f64::from(!(x as i32)), none "Invert: of integers";
    /// The number of bits that are 1, for integers; in the dtype of `x` (TensorFlow returns `uint8`).
    population_count, "PopulationCount" = "tf.raw_ops.PopulationCount", [int "countOneBits(x)"],
        |x| f64::from((x as i32).count_ones()), none "PopulationCount: of integers";
    /// The largest integer that is not above `x`.
    floor, "Floor" = "tf.math.floor", [float "floor(x)", int "x"], |x| x.floor(), none "Floor: piecewise constant";
    /// The smallest integer that is not below `x`.
    ceil, "Ceil" = "tf.math.ceil", [float "ceil(x)", int "x"], |x| x.ceil(), none "Ceil: piecewise constant";
    /// The nearest integer; halves are rounded to even.
    round, "Round" = "tf.math.round", [float "round(x)", int "x"], |x| x.round_ties_even(), none "Round: piecewise constant";
    /// The nearest whole number, for floats only; halves are rounded to even.
    rint, "Rint" = "tf.math.rint", [float "round(x)"], |x| x.round_ties_even(), none "Rint: piecewise constant";
    /// -1, 0 or 1.
    sign, "Sign" = "tf.math.sign", [float "select(sign(x), x, is_nan_4(x))", int "select(V(1), V(0), x == V(0)) - 2 * select(V(0), V(1), x < V(0))"],
        |x| if x == 0.0 { 0.0 } else { x.signum() },
        keep nothing over Away, |_y, dy| dy.zeros_like()?;
    /// Whether `x` is NaN; the result is `bool`.
    is_nan, "IsNan" = "tf.math.is_nan", [float "is_nan_4(x)"] => test, |x| f64::from(x.is_nan()), none "IsNan: a test";
    /// Whether `x` is infinite; the result is `bool`.
    is_inf, "IsInf" = "tf.math.is_inf", [float "is_inf_4(x)"] => test, |x| f64::from(x.is_infinite()), none "IsInf: a test";
    /// Whether `x` is neither NaN nor infinite; the result is `bool`.
    is_finite, "IsFinite" = "tf.math.is_finite", [float "!(is_nan_4(x) | is_inf_4(x))"] => test, |x| f64::from(x.is_finite()),
        none "IsFinite: a test";
    /// `!x`, for `bool`.
    logical_not, "LogicalNot" = "tf.math.logical_not", [bool "!x"] => test, |x| 1.0 - x, none "LogicalNot: a test";
}

/// `1 - x^2`, with the accuracy of `(1 - x) (1 + x)` close to 1. Its derivative is `-2 x` even at 1, where that of the
/// product would be 0 times infinity after a root or a quotient.
fn one_minus_square(x: &Tensor) -> Result<Tensor> {
    let plain = 1.0 - x * x;
    let more = ((1.0 - x) * (x + 1.0) - &plain).stop_gradient();
    super::select(&x.abs()?.less(2.0)?, &(&plain + more), &plain)
}

/// `1 / sqrt(x^2 + 1)`, even if `x^2` would be infinite.
fn inverse_hypotenuse(x: &Tensor) -> Result<Tensor> {
    let size = x.abs()?;
    let far = size.greater(1e9)?;
    let near = super::select(&far, &x.zeros_like()?, x)?;
    super::select(&far, &size.reciprocal_no_nan()?, &(near.square()? + 1.0).rsqrt()?)
}

impl Row {
    /// The dtypes that the op is defined for; bytes are storage only.
    pub(super) const fn dtypes(&self) -> &'static [DType] {
        row_takes(self.float.is_some(), self.int.is_some(), self.bool.is_some())
    }

    fn wgsl(&self, register: Register) -> Option<&'static str> {
        match register {
            Register::F32 => self.float,
            Register::I32 | Register::U32 => self.int,
            Register::Bool => self.bool,
        }
    }

    /// The values that the tape stores.
    #[cfg(test)]
    pub(crate) fn keep(&self) -> Keep {
        self.keep
    }

    /// True if the op is defined for `dtype`; bytes are storage only.
    pub(crate) fn takes(&self, dtype: DType) -> bool {
        dtype != DType::U8 && self.wgsl(dtype.register()).is_some()
    }
}

known_by_method!(Row);
attribute_of_rows!(Row, ROWS, method);

/// A call of a row.
#[derive(Debug, Attribute)]
#[op("Unary")]
pub(crate) struct Unary {
    pub(crate) row: &'static Row,
}

impl Op for Unary {
    fn name(&self) -> &'static str {
        self.row.name
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let x = inputs[0];
        if !self.row.takes(x.dtype) {
            return Err(not_defined(self.row.name, x, &|dtype| self.row.takes(dtype)));
        }
        let dtype = if self.row.test { DType::Bool } else { x.dtype };
        Ok(Spec::new(x.shape.clone(), dtype))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let wgsl = self.row.wgsl(cx.inputs[0].dtype.register()).unwrap_or("x");
        Elementwise::new(self.row.method, wgsl).input("x", 0, View::Same).into()
    }
}

impl Operation for Unary {
    fn keep(&self) -> Keep {
        self.row.keep
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        match self.row.keep {
            Keep::Inputs => only((self.row.grad)(back.x(0), back.dy)?),
            Keep::Output => only((self.row.grad)(back.y(), back.dy)?),
            // The gradient rule uses only `dy`.
            Keep::Nothing => only((self.row.grad)(back.dy, back.dy)?),
            Keep::Both | Keep::NoGradient(_) => no_grads(back),
        }
    }
}
