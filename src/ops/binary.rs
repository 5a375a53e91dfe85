//! Elementwise ops of two tensors, with broadcasting: one row of the table each.
//!
//! A row contains: documentation, method, TensorFlow's name of the kernel and its names of the function, the WGSL for
//! floats (and for integers or `bool`), the reference in `f64`, and either the gradients `da` and `db` from the inputs
//! `a` and `b`, the result `y` and `dy`, or the reason why there are none. The tape sums a gradient over the axes that
//! were broadcast.

use super::inventory::Values::{Away, Distinct, Within};
use super::inventory::{ANY, Entry, Gradient, OpKind, POSITIVE, one, row_takes};
use super::{Backward, Grads, Keep, NUMERIC, Operation, fitting, known_by_method, same_dtype};
use crate::dtype::{DType, Register};
use crate::eager::dispatch;
use crate::error::{Error, Result, message};
use crate::graph::attributes::{Attribute, attribute_of_rows};
use crate::graph::lower::{Elementwise, Lowering, LoweringContext, View};
use crate::graph::{Op, Spec};
use crate::shape::broadcast;
use crate::tensor::{Operand, Tensor};

/// A row of the table.
pub(crate) struct Row {
    pub(crate) method: &'static str,
    pub(crate) name: &'static str,
    float: Option<&'static str>,
    int: Option<&'static str>,
    bool: Option<&'static str>,
    /// The result is `bool`.
    test: bool,
    #[cfg(test)]
    pub(crate) reference: fn(f64, f64) -> f64,
    keep: Keep,
    grad: fn(&Backward) -> Result<Grads>,
}

macro_rules! binary {
    ($($(#[$doc:meta])* $method:ident, $name:literal $(= $($tf:literal),+)?, [$($kind:ident $wgsl:tt),+] $(=> $test:ident)?,
       |$a:ident, $b:ident| $reference:expr, $how:ident $what:tt $(over ($va:expr, $vb:expr))?
       $(, |$ga:ident, $gb:ident, $y:ident, $dy:ident| ($da:expr, $db:expr))?;)*) => {
        // Only its method refers to a row, so a program contains only the rows and gradients of the methods that it
        // calls.
        $(#[allow(non_upper_case_globals)]
        static $method: Row = Row {
            method: stringify!($method),
            name: $name,
            float: binary!(@wgsl float $($kind $wgsl)+),
            int: binary!(@wgsl int $($kind $wgsl)+),
            bool: binary!(@wgsl bool $($kind $wgsl)+),
            test: binary!(@test $($test)?),
            #[cfg(test)]
            reference: |$a: f64, $b: f64| $reference,
            keep: binary!(@keep $how $what),
            grad: binary!(@grad $how $what $(, |$ga, $gb, $y, $dy| ($da, $db))?),
        };)*

        /// All rows: those that tests loop over and that files name.
        #[cfg_attr(not(test), allow(dead_code))]
        pub(crate) static ROWS: &[&Row] = &[$(&$method),*];

        /// The rows' entries in the inventory.
        pub(super) const ENTRIES: &[Entry] = &[$(
            Entry::new(OpKind::Row, stringify!($method), &[$($($tf),+)?], |c| one(c.x()?.$method(c.arg("y")?)))
                .takes($method.dtypes())
                .gradient(match $method.keep {
                    Keep::NoGradient(reason) => Gradient::None(reason),
                    _ => Gradient::Checked,
                })
                .cases(|cases| { let _ = &cases; $(cases.of_two(stringify!($method), [$va, $vb], |a, b| a.$method(b));)? })
        ),*];

        /// Elementwise ops of two tensors. `other` is a tensor, a variable or a number; shapes broadcast as in NumPy.
        /// They return [`Error::Shape`] if the shapes do not fit together and [`Error::DType`] if the dtypes differ or
        /// the op is not defined for them.
        impl Tensor {$(
            $(#[$doc])*
            ///
            /// # Errors
            /// [`Error::Shape`] if the shapes cannot be broadcast together; [`Error::DType`] if the dtypes differ or
            /// the op is not defined for them.
            pub fn $method(&self, other: impl Into<Operand>) -> Result<Tensor> {
                binary(&$method, self, other.into())
            }
        )*}
    };
    (@wgsl float float $wgsl:tt $($rest:tt)*) => { Some($wgsl) };
    (@wgsl int int $wgsl:tt $($rest:tt)*) => { Some($wgsl) };
    (@wgsl bool bool $wgsl:tt $($rest:tt)*) => { Some($wgsl) };
    (@wgsl $want:ident $kind:ident $wgsl:tt $($rest:tt)*) => { binary!(@wgsl $want $($rest)*) };
    (@wgsl $want:ident) => { None };
    (@test test) => { true };
    (@test) => { false };
    (@keep keep nothing) => { Keep::Nothing };
    (@keep keep inputs) => { Keep::Inputs };
    (@keep keep both) => { Keep::Both };
    (@keep none $reason:literal) => { Keep::NoGradient($reason) };
    (@grad keep nothing, |$a:ident, $b:ident, $y:ident, $dy:ident| ($da:expr, $db:expr)) => {
        |back: &Backward| {
            let $dy = back.dy;
            binary!(@both back, $da, $db)
        }
    };
    (@grad keep inputs, |$a:ident, $b:ident, $y:ident, $dy:ident| ($da:expr, $db:expr)) => {
        |back: &Backward| {
            let ($a, $b, $dy) = (back.x(0), back.x(1), back.dy);
            binary!(@both back, $da, $db)
        }
    };
    (@grad keep both, |$a:ident, $b:ident, $y:ident, $dy:ident| ($da:expr, $db:expr)) => {
        |back: &Backward| {
            let ($a, $b, $y, $dy) = (back.x(0), back.x(1), back.y(), back.dy);
            binary!(@both back, $da, $db)
        }
    };
    (@grad none $reason:literal) => { super::no_grads };
    (@both $back:ident, $da:expr, $db:expr) => { $back.both(&|| Ok($da), &|| Ok($db)) };
}

// The first row becomes `static add: Row = Row { method: "add", ... }` and the method `Tensor::add`.
binary! {
    /// `a + b`.
    add, "AddV2" = "tf.math.add", [float "a + b", int "a + b"], |a, b| a + b,
        keep nothing over (ANY, ANY), |_a, _b, _y, dy| (dy.clone(), dy.clone());
    /// `a - b`.
    subtract, "Sub" = "tf.math.subtract", [float "a - b", int "a - b"], |a, b| a - b,
        keep nothing over (ANY, ANY), |_a, _b, _y, dy| (dy.clone(), -dy);
    /// `a * b`.
    multiply, "Mul" = "tf.math.multiply", [float "a * b", int "a * b"], |a, b| a * b,
        keep inputs over (ANY, ANY), |a, b, _y, dy| (dy * b, dy * a);
    /// `a / b`, for floats.
    real_divide, "RealDiv", [float "divide_4(a, b)"], |a, b| a / b,
        keep inputs over (ANY, Away), |a, b, _y, dy| (dy / b, dy * (-a / b / b));
    /// `a / b`, and 0 where `b` is 0.
    divide_no_nan, "DivNoNan" = "tf.math.divide_no_nan", [float "select(divide_4(a, b), V(0), b == V(0))"],
        |a, b| if b == 0.0 { 0.0 } else { a / b },
        keep inputs over (ANY, Away), |a, b, _y, dy| (dy.divide_no_nan(b)?, dy * (-a).divide_no_nan(b)?.divide_no_nan(b)?);
    /// `a * b`, and 0 where `b` is 0, even if `a` is NaN or infinite.
    multiply_no_nan, "MulNoNan" = "tf.math.multiply_no_nan", [float "select(a * b, V(0), b == V(0))"],
        |a, b| if b == 0.0 { 0.0 } else { a * b },
        keep inputs over (ANY, Away), |a, b, _y, dy| (dy.multiply_no_nan(b)?, a.multiply_no_nan(dy)?);
    /// `a / b`, and 0 where `a` is 0, whatever `b` is.
    xdivy, "Xdivy" = "tf.math.xdivy", [float "select(divide_4(a, b), V(0), a == V(0))"],
        |a, b| if a == 0.0 { 0.0 } else { a / b },
        keep inputs over (Away, Away), |a, b, _y, dy| (
            dy * a.not_equal(0.0)?.cast(a.dtype())?.xdivy(b)?, dy * (-a).xdivy(b)?.xdivy(b)?);
    /// `a / b` of integers, rounded towards 0. Division by 0 returns the dividend, as WGSL defines it; TensorFlow raises an
    /// error.
    truncatediv, "TruncateDiv" = "tf.truncatediv", [int "a / b"], |a, b| if b == 0.0 { a } else { (a / b).trunc() },
        none "TruncateDiv: of integers";
    /// The remainder of [`truncatediv`](Tensor::truncatediv), with the sign of `a`. Modulo 0 is 0 for integers. Exact.
    truncatemod, "TruncateMod" = "tf.truncatemod", [float "signed_4(floormod_4(signed_4(a, V(1)), signed_4(b, V(1))), a)", int "a % b"],
        |a, b| a % b, keep inputs over (Within(6.0, 6.2), Within(1.6, 1.9)),
        |a, b, _y, dy| (dy.clone(), -dy * (&a.abs()?.floordiv(b.abs()?)? * &(a.sign()? * b.sign()?)));
    // Integers: the quotient is reduced by one if the remainder's sign differs from the divisor's.
    /// `floor(a / b)`. For floats, the quotient is rounded to nearest, on any GPU while it is below 2^19 (on some GPUs 49 / 49
    /// may be less than 1). Integer division by 0 returns the dividend, as WGSL defines it.
    floordiv, "FloorDiv" = "tf.math.floordiv", [float "floordiv_4(a, b)",
            int "a / b - select(V(0), V(1), (a % b != V(0)) & ((a < V(0)) != (b < V(0))))"],
        |a, b| (a / b).floor(), none "FloorDiv: piecewise constant";
    /// `a - floor(a / b) * b`, with the sign of `b`. Modulo 0 is 0 for integers. Exact except for one rounding.
    floormod, "FloorMod" = "tf.math.floormod", [float "floormod_4(a, b)",
            int "a % b + select(V(0), b, (a % b != V(0)) & ((a < V(0)) != (b < V(0))))"],
        |a, b| a - (a / b).floor() * b,
        keep inputs over (Within(6.0, 6.2), Within(1.6, 1.9)), |a, b, _y, dy| (dy.clone(), -dy * a.floordiv(b)?);
    // The gradient for b counts log(a) only where a > 0, as TensorFlow does.
    /// `a^b`. Integer powers are computed by repeated squaring; negative exponents return 0. [Within 1 ULP](Tensor#accuracy).
    pow, "Pow" = "tf.math.pow", [float "pow_4(a, b)", int "var y = V(1);\n    var base = a;\n    var n = vec4<u32>(b);\n    for (var i = 0; i < 32; i++) {\n        y = select(y, y * base, (n & vec4<u32>(1u)) == vec4<u32>(1u));\n        base = base * base;\n        n = n >> vec4<u32>(1u);\n    }\n    return select(y, V(0), b < V(0));"], |a, b| a.powf(b),
        keep both over (POSITIVE, ANY), |a, b, y, dy| (
            dy * b * a.pow(&(b - 1.0))?,
            dy * y * super::select(&a.greater(0.0)?, &super::select(&a.greater(0.0)?, a, &a.ones_like()?)?.log()?, &a.zeros_like()?)?);
    // Where a equals b, a gets the gradient.
    /// The larger of `a` and `b`; NaN if one of them is.
    maximum, "Maximum" = "tf.math.maximum", [float "max_4(a, b)", int "max(a, b)"], |a, b| if a.is_nan() { a } else { b.max(a) },
        keep inputs over (Distinct(0.0), Distinct(0.1)), |a, b, _y, dy| (
            super::select(&a.greater_equal(b)?, dy, &dy.zeros_like()?)?,
            super::select(&a.greater_equal(b)?, &dy.zeros_like()?, dy)?);
    /// The smaller of `a` and `b`; NaN if one of them is.
    minimum, "Minimum" = "tf.math.minimum", [float "-max_4(-a, -b)", int "min(a, b)"], |a, b| if a.is_nan() { a } else { b.min(a) },
        keep inputs over (Distinct(0.0), Distinct(0.1)), |a, b, _y, dy| (
            super::select(&a.less_equal(b)?, dy, &dy.zeros_like()?)?,
            super::select(&a.less_equal(b)?, &dy.zeros_like()?, dy)?);
    /// `(a - b)^2`.
    squared_difference, "SquaredDifference" = "tf.math.squared_difference", [float "(a - b) * (a - b)", int "(a - b) * (a - b)"],
        |a, b| (a - b) * (a - b),
        keep inputs over (ANY, ANY), |a, b, _y, dy| (dy * 2.0 * (a - b), dy * -2.0 * (a - b));
    /// The angle in radians of the point with y coordinate `a` and x coordinate `b`. [Within 4 ULP](Tensor#accuracy).
    atan2, "Atan2" = "tf.math.atan2", [float "atan2_4(a, b)"], |a, b| a.atan2(b),
        keep inputs over (Away, Away), |a, b, _y, dy| (dy * over_square_of_size(b, a, b)?, -dy * over_square_of_size(a, a, b)?);
    /// `a log(b)`, and 0 where `a` is 0. [Within 2 ULP](Tensor#accuracy).
    xlogy, "Xlogy" = "tf.math.xlogy", [float "select(a * log_4(b), V(0), a == V(0))"], |a, b| if a == 0.0 { 0.0 } else { a * b.ln() },
        keep inputs over (Away, POSITIVE), |a, b, _y, dy| (
            dy * a.not_equal(0.0)?.cast(a.dtype())?.xlogy(b)?, dy * quotient_or_zero(a, b)?);
    /// `a log(1 + b)`, and 0 where `a` is 0. [Within 3 ULP](Tensor#accuracy).
    xlog1py, "Xlog1py" = "tf.math.xlog1py", [float "select(a * log1p_4(b), V(0), a == V(0))"],
        |a, b| if a == 0.0 { 0.0 } else { a * b.ln_1p() },
        keep inputs over (Away, Within(-0.4, 2.0)), |a, b, _y, dy| (
            dy * a.not_equal(0.0)?.cast(a.dtype())?.xlog1py(b)?, dy * quotient_or_zero(a, &(b + 1.0))?);
    /// Bitwise AND of integers.
    bitwise_and, "BitwiseAnd" = "tf.bitwise.bitwise_and", [int "a & b"], |a, b| f64::from(a as i32 & b as i32),
        none "BitwiseAnd: of integers";
    /// Bitwise OR of integers.
    bitwise_or, "BitwiseOr" = "tf.bitwise.bitwise_or", [int "a | b"], |a, b| f64::from(a as i32 | b as i32),
        none "BitwiseOr: of integers";
    /// Bitwise XOR of integers.
    bitwise_xor, "BitwiseXor" = "tf.bitwise.bitwise_xor", [int "a ^ b"], |a, b| f64::from(a as i32 ^ b as i32),
        none "BitwiseXor: of integers";
    // TensorFlow's kernels treat negative numbers of bits as 0, and numbers beyond the width as 31.
    /// `a` shifted left by `b` bits; `b` is clipped to 0 to 31.
    left_shift, "LeftShift" = "tf.bitwise.left_shift", [int "a << vec4<u32>(clamp(b, V(0), V(31)))"],
        |a, b| f64::from((a as i32) << (b as i32).clamp(0, 31)), none "LeftShift: of integers";
    /// `a` shifted right by `b` bits, arithmetically for `i32`; `b` is clipped to 0 to 31.
    right_shift, "RightShift" = "tf.bitwise.right_shift", [int "a >> vec4<u32>(clamp(b, V(0), V(31)))"],
        |a, b| f64::from(a as i32 >> (b as i32).clamp(0, 31)), none "RightShift: of integers";
    /// `a < b`.
    less, "Less" = "tf.math.less", [float "a < b", int "a < b"] => test, |a, b| f64::from(a < b), none "Less: a comparison";
    /// `a <= b`.
    less_equal, "LessEqual" = "tf.math.less_equal", [float "a <= b", int "a <= b"] => test, |a, b| f64::from(a <= b),
        none "LessEqual: a comparison";
    /// `a > b`.
    greater, "Greater" = "tf.math.greater", [float "a > b", int "a > b"] => test, |a, b| f64::from(a > b),
        none "Greater: a comparison";
    /// `a >= b`.
    greater_equal, "GreaterEqual" = "tf.math.greater_equal", [float "a >= b", int "a >= b"] => test, |a, b| f64::from(a >= b),
        none "GreaterEqual: a comparison";
    /// `a == b`.
    equal, "Equal" = "tf.math.equal", [float "a == b", int "a == b", bool "a == b"] => test, |a, b| f64::from(a == b),
        none "Equal: a comparison";
    /// `a != b`.
    not_equal, "NotEqual" = "tf.math.not_equal", [float "(a != b) | is_nan_4(a) | is_nan_4(b)", int "a != b", bool "a != b"] => test,
        |a, b| f64::from(a != b), none "NotEqual: a comparison";
    /// `a && b`, for `bool`.
    logical_and, "LogicalAnd" = "tf.math.logical_and", [bool "a & b"] => test, |a, b| a * b, none "LogicalAnd: a test";
    /// `a || b`, for `bool`.
    logical_or, "LogicalOr" = "tf.math.logical_or", [bool "a | b"] => test, |a, b| a.max(b), none "LogicalOr: a test";
    /// `a != b`, for `bool`.
    logical_xor, "LogicalXor" = "tf.math.logical_xor", [bool "a != b"] => test, |a, b| f64::from(a != b), none "LogicalXor: a test";
}

/// `a / b`, and 0 where `a` is 0, as [`Tensor::xdivy`]; but its derivative with respect to `a` is `1 / b` wherever it
/// exists, even at 0.
fn quotient_or_zero(a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let none = b.abs()?.greater(0.0)?.logical_not()?.logical_and(a.equal(0.0)?)?;
    a.real_divide(super::select(&none, &b.ones_like()?, b)?)
}

/// `x / (a^2 + b^2)`, where `x` is `a` or `b`, even if the squares would be infinite or 0.
fn over_square_of_size(x: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor> {
    let scale = &scale_of_squares(&a.abs()?.maximum(b.abs()?)?)?;
    let (a, b) = (a * scale, b * scale);
    Ok(x * scale / (&a * &a + &b * &b) * scale)
}

/// The power of two by which numbers of magnitude `size` are multiplied so that their squares are neither infinite nor
/// too small; 1 for most.
pub(super) fn scale_of_squares(size: &Tensor) -> Result<Tensor> {
    let number =
        |x: f32| super::fill(size.device(), "Fill", Default::default(), x.into(), size.dtype());
    // 2^70 and 2^-70. Squares of f16 numbers are in f32.
    let far = super::select(&size.greater(1e18)?, &number(8.470_329_5e-22)?, &number(1.0)?)?;
    super::select(&size.less(1e-18)?, &number(1.180_591_6e21)?, &far)
}

impl Tensor {
    /// `a / b`. Integers are cast to `f32` first, as in TensorFlow's true division; see [`floordiv`](Tensor::floordiv) for the
    /// integer quotient.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shapes cannot be broadcast together; [`Error::DType`] if the dtypes differ.
    pub fn divide(&self, other: impl Into<Operand>) -> Result<Tensor> {
        true_divide(self, other.into())
    }
}

fn true_divide(a: &Tensor, b: Operand) -> Result<Tensor> {
    if !matches!(a.dtype(), DType::I32 | DType::U32) {
        return a.real_divide(b);
    }
    match b {
        Operand::Tensor(b) => {
            same_dtype("RealDiv", a.spec(), b.spec())?;
            a.cast(DType::F32)?.real_divide(b.cast(DType::F32)?)
        }
        number => a.cast(DType::F32)?.real_divide(number),
    }
}

fn binary(row: &'static Row, a: &Tensor, b: Operand) -> Result<Tensor> {
    let b = b.into_tensor_like(row.name, a)?;
    dispatch(Binary { row }, &[a, &b])
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
#[op("Binary")]
pub(crate) struct Binary {
    pub(crate) row: &'static Row,
}

impl Op for Binary {
    fn name(&self) -> &'static str {
        self.row.name
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Spec> {
        let (a, b) = (inputs[0], inputs[1]);
        same_dtype(self.row.name, a, b)?;
        if !self.row.takes(a.dtype) {
            let fits = fitting(&|dtype| self.row.takes(dtype));
            return Err(Error::DType(message!(
                "{}: not defined for {} (a is {} and b is {}); use {fits}. Cast both first.",
                self.row.name,
                a.dtype,
                a.shape,
                b.shape
            )));
        }
        let shape = broadcast(self.row.name, &a.shape, &b.shape)?;
        Ok(Spec::new(shape, if self.row.test { DType::Bool } else { a.dtype }))
    }

    fn lower(&self, cx: &LoweringContext) -> Lowering {
        let wgsl = self.row.wgsl(cx.inputs[0].dtype.register()).unwrap_or("a");
        let view = |i: usize| View::broadcast(cx.inputs[i], cx.output);
        Elementwise::new(self.row.method, wgsl).input("a", 0, view(0)).input("b", 1, view(1)).into()
    }
}

impl Operation for Binary {
    fn keep(&self) -> Keep {
        self.row.keep
    }

    fn grad(&self, back: &Backward) -> Result<Grads> {
        (self.row.grad)(back)
    }
}

/// The entries of this file other than its rows, for the inventory.
pub(super) const DIVIDE: &[Entry] =
    &[Entry::new(OpKind::Composed, "divide", &["tf.math.divide"], |c| {
        one(c.x()?.divide(c.arg("y")?))
    })
    .takes(NUMERIC)
    .cases(|cases| cases.of_two("divide", [ANY, POSITIVE], |a, b| a.divide(b)))];
