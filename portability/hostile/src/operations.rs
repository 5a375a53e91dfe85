//! The text of the functions that stand in place of a driver's own operations.
//!
//! Each operation that the driver does in its own way is a function `hostile_NAME`, with the number of lanes behind it,
//! and `h` if it is of `f16`. What they call is in `exact.wgsl` and `functions.wgsl`. In the texts here `$T` stands for
//! the type of floats, `$U`, `$I`, `$B` and `$H` for as many `u32`, `i32`, `bool` and `f16`, `$n` for the number of lanes,
//! and `@name(` for `hostile_name$n(`.

use crate::latitude::{Driver, Latitude};

const EXACT: &str = include_str!("exact.wgsl");
const FUNCTIONS: &str = include_str!("functions.wgsl");

/// Built-in functions of one float whose results have errors.
const INEXACT: [&str; 18] = [
    "inverseSqrt",
    "sqrt",
    "exp",
    "exp2",
    "log",
    "log2",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
];

/// Those whose results are exact: only what comes and what goes may be flushed.
const ALWAYS_EXACT: [&str; 8] =
    ["abs", "ceil", "floor", "fract", "round", "saturate", "sign", "trunc"];

/// Comparisons: names and operators.
const COMPARISONS: [(&str, &str); 6] = [
    ("equal", "=="),
    ("not_equal", "!="),
    ("less", "<"),
    ("less_equal", "<="),
    ("greater", ">"),
    ("greater_equal", ">="),
];

/// The whole library of a driver.
pub(crate) fn text(driver: &Driver) -> String {
    let writer = Writer { driver };
    let template = format!("{EXACT}{FUNCTIONS}{}", writer.template());
    let mut all = String::from("enable f16;\nvar<private> hostile_zero: u32;\n");
    for lanes in 1..=4 {
        let of = |scalar: &str| match lanes {
            1 => scalar.to_string(),
            n => format!("vec{n}<{scalar}>"),
        };
        let types = [("$T", "f32"), ("$U", "u32"), ("$I", "i32"), ("$B", "bool"), ("$H", "f16")];
        let text = types.into_iter().fold(named(&template), |text, (placeholder, scalar)| {
            text.replace(placeholder, &of(scalar))
        });
        all.push_str(&text.replace("$n", &lanes.to_string()));
    }
    all
}

/// `@name(` becomes `hostile_name$n(`.
fn named(text: &str) -> String {
    let mut parts = text.split('@');
    let mut all = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (name, rest) = part.split_once('(').unwrap_or((part, ""));
        all.push_str(&format!("hostile_{name}$n({rest}"));
    }
    all
}

struct Writer<'d> {
    driver: &'d Driver,
}

impl Writer<'_> {
    fn has(&self, latitude: Latitude) -> bool {
        self.driver.has(latitude)
    }

    /// What belongs to the first latitude here that the driver has.
    fn which<'t>(&self, choices: &[(Latitude, &'t str)]) -> Option<&'t str> {
        choices.iter().find(|(latitude, _)| self.has(*latitude)).map(|(_, text)| *text)
    }

    fn template(&self) -> String {
        let mut all = self.helpers();
        for (name, core, error, half) in [
            ("add", "a + b", "sum_error(a, b, s)", "@hidden(0.5 * a), @hidden(0.5 * b)"),
            ("subtract", "a - b", "sum_error(a, -b, s)", "@hidden(0.5 * a), @hidden(0.5 * b)"),
            ("multiply", "a * b", "product_error(a, b, s)", "@hidden(0.5 * a), b"),
        ] {
            all += &self.sum_or_product(name, core, error, half);
        }
        all += &self.function("negate", &["x"], "-x", false);
        let fused = [
            (Latitude::Separate, "@hidden(@hidden(a * b) + c)"),
            (Latitude::Contract, "@fused(a, b, c)"),
        ];
        let fused = self.which(&fused);
        let own = fused.is_some();
        all += &self.function("fma", &["a", "b", "c"], fused.unwrap_or("fma(a, b, c)"), own);
        let own = self.division() != "a / b";
        all += &self.function("divide", &["a", "b"], self.division(), own);
        all += &self.functions();
        all += &self.extremes();
        for (name, operator) in COMPARISONS {
            all += &self.comparison(name, operator);
        }
        all + &self.conversions()
    }

    /// An operand as the driver sees it.
    fn operand(&self, x: &str) -> String {
        let flush = self.which(&[
            (Latitude::FlushOperands, "flushed"),
            (Latitude::FlushToPositive, "flushed_to_positive"),
        ]);
        flush.map_or(x.to_string(), |flush| format!("@{flush}({x})"))
    }

    /// A result as the driver leaves it.
    fn result(&self, y: &str) -> String {
        let steps = [
            (Latitude::NansLost, "no_nan"),
            (Latitude::InfinitiesLost, "no_infinity"),
            (Latitude::ZerosPositive, "positive_zero"),
            (Latitude::ZerosNegative, "negative_zero"),
            (Latitude::FlushResults, "flushed"),
            (Latitude::FlushToPositive, "flushed_to_positive"),
        ];
        let steps = steps.into_iter().filter(|(latitude, _)| self.has(*latitude));
        steps.fold(y.to_string(), |y, (_, step)| format!("@{step}({y})"))
    }

    /// A function of floats with the result `y`, if the driver has its `own` or changes all operands or results.
    fn function(&self, name: &str, operands: &[&str], y: &str, own: bool) -> String {
        if !own && self.operand("x") == "x" && self.result("y") == "y" {
            return String::new();
        }
        let takes: Vec<String> = operands.iter().map(|x| format!("given_{x}: $T")).collect();
        let lines: String = operands
            .iter()
            .map(|x| format!("    let {x} = {};\n", self.operand(&format!("given_{x}"))))
            .collect();
        let y = self.result(y);
        format!("fn @{name}({}) -> $T {{\n{lines}    return {y};\n}}\n\n", takes.join(", "))
    }

    fn sum_or_product(&self, name: &str, core: &str, error: &str, half: &str) -> String {
        let rounding = self.which(&[
            (Latitude::RoundUp, "rounded_up"),
            (Latitude::RoundDown, "rounded_down"),
            (Latitude::RoundToZero, "rounded_to_zero"),
            (Latitude::RoundFar, "rounded_far"),
            (Latitude::RoundByHash, "rounded_by_hash"),
        ]);
        let mut all = String::new();
        let mut y = core.to_string();
        let product = name == "multiply";
        if product && self.has(Latitude::Separate) {
            y = format!("@hidden({core})");
        }
        if let Some(rounding) = rounding {
            all += &format!(
                "fn @rounded_{name}(a: $T, b: $T) -> $T {{\n    let s = @hidden({core});\n    \
                     return @{rounding}(s, @{error});\n}}\n\n"
            );
            y = format!("@rounded_{name}(a, b)");
            if product {
                // The errors of tiny products cannot be written down.
                y = format!("select({y}, a * b, @size(a * b) < $U(0x0d800000u))");
            }
        }
        if self.has(Latitude::OverflowToLargest) {
            // Half of it is 2^127 then, and more than it is exactly.
            all += &format!(
                "fn @half_{name}(a: $T, b: $T) -> $B {{\n    let s = @hidden({core});\n    \
                     let e = @{error};\n    return (@size(s) == $U(0x7f000000u)) & !@is_outward(s, e) & !@is_exact(e);\n}}\n\n"
            );
            y = format!("@to_largest({y}, @half_{name}({half}), a, b)");
        }
        let own = y != core;
        all + &self.function(name, &["a", "b"], &y, own)
    }

    fn division(&self) -> &'static str {
        let own = [
            (Latitude::QuotientByReciprocal, "a * @flushed(@hidden(1.0 / b))"),
            (Latitude::QuotientUp, "@moved(@hidden(a / b), $I(2))"),
            (Latitude::QuotientDown, "@moved(@hidden(a / b), $I(-2))"),
            (Latitude::QuotientByHash, "@moved(@hidden(a / b), select($I(-2), $I(2), @coin(b)))"),
        ];
        self.which(&own).unwrap_or("a / b")
    }

    fn helpers(&self) -> String {
        let direction = self.which(&[
            (Latitude::FunctionsUp, "$I(1)"),
            (Latitude::FunctionsDown, "$I(-1)"),
            (Latitude::FunctionsByHash, "select($I(-1), $I(1), @coin(x))"),
        ]);
        format!(
            "fn @direction(x: $T) -> $I {{ return {}; }}\n\n\
             fn @far_divide(a: $T, b: $T) -> $T {{ return {}; }}\n\n\
             // Numbers in place of NaN and infinity: bits of the exponent go.\n\
             fn @no_nan(x: $T) -> $T {{\n    \
                 return select(x, bitcast<$T>(bitcast<$U>(x) & $U(0xbfffffffu)), @is_nan(x));\n}}\n\n\
             fn @no_infinity(x: $T) -> $T {{\n    \
                 return select(x, bitcast<$T>(bitcast<$U>(x) & $U(0xbfffffffu)), @is_infinite(x));\n}}\n\n\
             // y, or the largest number where it is the infinite result of finite numbers, and should be below 2^128.\n\
             fn @to_largest(y: $T, below: $B, a: $T, b: $T) -> $T {{\n    \
                 let over = @is_infinite(y) & below\n        \
                     & (@size(a) < $U(0x7f800000u)) & (@size(b) < $U(0x7f800000u));\n    \
                 return select(y, bitcast<$T>(bitcast<$U>(y) - $U(1u)), over);\n}}\n\n",
            direction.unwrap_or("$I(0)"),
            self.division()
        )
    }

    fn functions(&self) -> String {
        let own = [Latitude::FunctionsUp, Latitude::FunctionsDown, Latitude::FunctionsByHash];
        let own = own.into_iter().any(|latitude| self.has(latitude));
        let prefix = if own { "@far_" } else { "" };
        let one =
            INEXACT.map(|name| self.function(name, &["x"], &format!("{prefix}{name}(x)"), own));
        let two = ["pow", "atan2"]
            .map(|name| self.function(name, &["a", "b"], &format!("{prefix}{name}(a, b)"), own));
        let exact =
            ALWAYS_EXACT.map(|name| self.function(name, &["x"], &format!("{name}(x)"), false));
        one.concat() + &two.concat() + &exact.concat()
    }

    fn extremes(&self) -> String {
        let nan = self.which(&[(Latitude::ExtremesFirst, "a"), (Latitude::ExtremesLast, "b")]);
        let mut all = String::new();
        for name in ["min", "max"] {
            let y = match nan {
                Some(nan) => format!("select({name}(a, b), {nan}, @is_nan(a) | @is_nan(b))"),
                None => format!("{name}(a, b)"),
            };
            all += &self.function(name, &["a", "b"], &y, nan.is_some());
        }
        let clamp = match nan {
            Some("a") => "select(clamp(a, b, c), a, @is_nan(a))",
            Some(_) => "select(clamp(a, b, c), c, @is_nan(a))",
            None => "clamp(a, b, c)",
        };
        all + &self.function("clamp", &["a", "b", "c"], clamp, nan.is_some())
    }

    fn comparison(&self, name: &str, operator: &str) -> String {
        let nan = self.has(Latitude::CompareNan);
        if !nan && self.operand("x") == "x" {
            return String::new();
        }
        let [a, b] = ["a", "b"].map(|x| self.operand(x));
        let plain = format!("({a} {operator} {b})");
        let y = match nan {
            true => {
                format!("select({plain}, $B({}), @is_nan(a) | @is_nan(b))", name != "not_equal")
            }
            false => plain,
        };
        format!("fn @{name}(a: $T, b: $T) -> $B {{ return {y}; }}\n\n")
    }

    /// Conversions between floats and others, by the names that `rules.rs` gives them.
    fn conversions(&self) -> String {
        let mut all = String::new();
        let (to_zero, flush) = (self.has(Latitude::HalvesToZero), self.has(Latitude::FlushHalves));
        // Without the digits that a half does not have; those of its denormals are cut off as a whole number of 2^-24.
        let cut = match to_zero {
            true => {
                "select(bitcast<$T>(bitcast<$U>(x) & $U(0xffffe000u)), trunc(x * 16777216.0) * 5.9604645e-8, \
                 abs(x) < $T(6.1035156e-5))"
            }
            false => "x",
        };
        let cut = match flush {
            true => format!("select({cut}, $T(0.0), abs(x) < $T(6.1035156e-5))"),
            false => cut.to_string(),
        };
        if to_zero || flush {
            all += &format!("fn @to_half(x: $T) -> $H {{ return $H({cut}); }}\n\n");
        }
        if flush {
            all += "fn @from_half(x: $H) -> $T {\n    let y = $T(x);\n    \
                    return select(y, $T(0.0), abs(y) < $T(6.1035156e-5));\n}\n\n";
        }
        let wild = self.has(Latitude::QuantizeWild);
        if to_zero || flush || wild {
            let y = match wild {
                true => format!("select(quantizeToF16({cut}), $T(12345.0), abs(x) > $T(65504.0))"),
                false => format!("quantizeToF16({cut})"),
            };
            all += &format!("fn @quantize(x: $T) -> $T {{ return {y}; }}\n\n");
        }
        all + &self.integers()
    }

    fn integers(&self) -> String {
        let mut all = String::new();
        let wild = self.has(Latitude::ConvertWild);
        for (name, ty, least, most) in [
            ("to_i32", "$I", "-2147483648.0", "2147483520.0"),
            ("to_u32", "$U", "-0.99999994", "4294967040.0"),
        ] {
            let mut none = String::from("@is_nan(x)");
            if wild {
                none += &format!(" | (x < $T({least})) | (x > $T({most}))");
            }
            if wild || self.has(Latitude::ConvertNan) {
                all += &format!(
                    "fn @{name}(x: $T) -> {ty} {{ return select({ty}(x), {ty}(1234567890), {none}); }}\n\n"
                );
            }
        }
        if self.has(Latitude::IntegersToZero) {
            all += "fn @from_u32(x: $U) -> $T {\n    \
                    return $T(x & ($U(0xffffffffu) << ($U(8u) - min(countLeadingZeros(x), $U(8u)))));\n}\n\n\
                    fn @from_i32(x: $I) -> $T {\n    \
                    let y = @from_u32(bitcast<$U>(abs(x)));\n    return select(y, -y, x < $I(0));\n}\n\n";
        }
        if self.has(Latitude::FlushBitcasts) {
            all += "fn @bits(x: $T) -> $U { return bitcast<$U>(@flushed(x)); }\n\n\
                    fn @from_bits(x: $U) -> $T { return @flushed(bitcast<$T>(x)); }\n\n";
        }
        all
    }
}
