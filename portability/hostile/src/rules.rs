//! Puts in place of each expression what a hostile driver makes of it.
//!
//! Sums, products and comparisons are in `algebra.rs`; here are all other expressions.

use naga::{
    BinaryOperator, Expression, Handle, Literal, MathFunction, ScalarKind, TypeInner, UnaryOperator,
};

use crate::bounds;
use crate::builder::{Builder, Numbers};
use crate::error::{Error, Result};
use crate::knowledge::Knowledge;
use crate::latitude::{Driver, Latitude};
use crate::library::Library;
use crate::tests_of_bits;

type One = Handle<Expression>;

pub(crate) struct Rules<'a> {
    pub(crate) driver: &'a Driver,
    library: &'a Library,
    pub(crate) known: Knowledge,
}

impl<'a> Rules<'a> {
    pub(crate) fn new(driver: &'a Driver, library: &'a Library) -> Self {
        Rules { driver, library, known: Knowledge::default() }
    }

    pub(crate) fn has(&self, latitude: Latitude) -> bool {
        self.driver.has(latitude)
    }

    /// Whether the driver looks at what functions do that are called.
    pub(crate) fn sees_through_calls(&self) -> bool {
        [
            Latitude::Contract,
            Latitude::Regroup,
            Latitude::Factor,
            Latitude::TestsOfBits,
            Latitude::Identities,
            Latitude::HalvesElided,
        ]
        .into_iter()
        .any(|latitude| self.has(latitude))
    }

    /// Notes what is stored.
    pub(crate) fn stored(&mut self, build: &Builder, pointer: One, value: One) {
        self.known.stored(build, pointer, value);
    }

    /// Notes that variables may have changed.
    pub(crate) fn forget(&mut self) {
        self.known.forget();
    }

    /// Adds what stands in place of `expression`, whose operands are new ones already.
    pub(crate) fn expression(
        &mut self,
        build: &mut Builder,
        expression: Expression,
    ) -> Result<One> {
        if let Some(wide) = self.in_halves(build, &expression)? {
            return Ok(wide);
        }
        match expression {
            Expression::Binary { op, left, right } => self.binary(build, op, left, right),
            Expression::Unary { op: UnaryOperator::Negate, expr }
                if build.floats(expr).is_some() =>
            {
                self.negative(build, expr)
            }
            Expression::Math { fun, arg, arg1, arg2, arg3 } => {
                let operands: Vec<One> =
                    [Some(arg), arg1, arg2, arg3].into_iter().flatten().collect();
                self.math(build, fun, &operands, expression)
            }
            Expression::As { expr, kind, convert } => self.conversion(build, expr, kind, convert),
            Expression::Access { base, index } if self.has(Latitude::OtherElements) => {
                let index = bounds::inside(build, base, index)?;
                self.known.add(build, Expression::Access { base, index })
            }
            other => self.known.add(build, other),
        }
    }

    fn binary(
        &mut self,
        build: &mut Builder,
        op: BinaryOperator,
        left: One,
        right: One,
    ) -> Result<One> {
        let plain = Expression::Binary { op, left, right };
        let operands = [left, right];
        if operands.iter().any(|operand| matches!(build.inner(*operand), TypeInner::Matrix { .. }))
        {
            return Err(Error::new(format!("{op:?} of matrices is not known to the rewriter")));
        }
        let Some(numbers) = self.common(build, left, right) else {
            return match self.has(Latitude::TestsOfBits)
                && tests_of_bits::is_one(self, build, op, left, right)
            {
                true => {
                    let fails = build.literal(Literal::Bool(false))?;
                    let like = build.numbers(left).or(build.numbers(right));
                    like.map_or(Ok(fails), |like| build.widened(fails, like))
                }
                false => self.known.add(build, plain),
            };
        };
        let name = match op {
            BinaryOperator::Add => return self.sum(build, left, right, false),
            BinaryOperator::Subtract => return self.sum(build, left, right, true),
            BinaryOperator::Multiply => return self.product(build, left, right, false),
            BinaryOperator::Divide => return self.product(build, left, right, true),
            BinaryOperator::Modulo => return self.remainder(build, left, right),
            BinaryOperator::Equal => "equal",
            BinaryOperator::NotEqual => "not_equal",
            BinaryOperator::Less => "less",
            BinaryOperator::LessEqual => "less_equal",
            BinaryOperator::Greater => "greater",
            BinaryOperator::GreaterEqual => "greater_equal",
            _ => return Err(Error::new(format!("{op:?} of floats is not known to the rewriter"))),
        };
        self.comparison(build, (name, op), left, right, numbers)
    }

    /// Arithmetic of `f16`: in `f32`, and rounded then, so that all that a driver does to `f32` is done to it, too.
    fn in_halves(&mut self, build: &mut Builder, expression: &Expression) -> Result<Option<One>> {
        let arithmetic = matches!(
            expression,
            Expression::Binary { .. }
                | Expression::Unary { op: UnaryOperator::Negate, .. }
                | Expression::Math { .. }
        );
        if !arithmetic || self.driver.latitudes().is_empty() {
            return Ok(None);
        }
        let mut any = false;
        let wide = crate::maps::with_operands(expression, &mut |operand| {
            if build.floats(operand).is_none_or(|numbers| numbers.scalar.width != 2) {
                return Ok(operand);
            }
            any = true;
            self.conversion(build, operand, ScalarKind::Float, Some(4))
        })?;
        if !any {
            return Ok(None);
        }
        let result = self.expression(build, wide)?;
        match build.floats(result) {
            Some(_) => self.conversion(build, result, ScalarKind::Float, Some(2)).map(Some),
            None => Ok(Some(result)),
        }
    }

    /// What two float operands are after the smaller one is widened.
    pub(crate) fn common(&self, build: &Builder, left: One, right: One) -> Option<Numbers> {
        let (a, b) = (build.floats(left)?, build.floats(right)?);
        Some(if a.lanes >= b.lanes { a } else { b })
    }

    /// The result of an operation: by the library's function, or by the driver's own expression.
    pub(crate) fn operation(
        &mut self,
        build: &mut Builder,
        name: &str,
        operands: &[One],
        own: Expression,
    ) -> Result<One> {
        let id = self.known.id_of(name, operands);
        let numbers = operands.first().and_then(|operand| build.numbers(*operand));
        let function = numbers.and_then(|numbers| self.library.find(name, numbers));
        let result = match function {
            Some(function) => build.call(function, operands.to_vec())?,
            None => build.add(own)?,
        };
        self.known.computed(result, id);
        Ok(result)
    }

    fn remainder(&mut self, build: &mut Builder, left: One, right: One) -> Result<One> {
        let own = Expression::Binary { op: BinaryOperator::Modulo, left, right };
        if self.driver.latitudes().is_empty() {
            return self.known.add(build, own);
        }
        // Inherited from x - y * trunc(x / y).
        let quotient = self.product(build, left, right, true)?;
        let whole = self.function(build, MathFunction::Trunc, &[quotient])?;
        let product = self.product(build, right, whole, false)?;
        self.sum(build, left, product, true)
    }

    pub(crate) fn function(
        &mut self,
        build: &mut Builder,
        fun: MathFunction,
        operands: &[One],
    ) -> Result<One> {
        let at = |i: usize| operands.get(i).copied();
        let own = Expression::Math { fun, arg: operands[0], arg1: at(1), arg2: at(2), arg3: at(3) };
        self.operation(build, name_of(fun)?, operands, own)
    }

    fn math(
        &mut self,
        build: &mut Builder,
        fun: MathFunction,
        operands: &[One],
        own: Expression,
    ) -> Result<One> {
        if build.floats(operands[0]).is_none() {
            return match fun {
                MathFunction::Unpack2x16float
                | MathFunction::Unpack2x16snorm
                | MathFunction::Unpack2x16unorm
                | MathFunction::Unpack4x8snorm
                | MathFunction::Unpack4x8unorm => Err(unknown(fun)),
                _ => self.known.add(build, own),
            };
        }
        match fun {
            MathFunction::Dot => self.dot(build, operands[0], operands[1]),
            MathFunction::Mix => self.mix(build, operands),
            MathFunction::Fma => self.fused(build, operands),
            _ => self.function(build, fun, operands),
        }
    }

    /// Inherited from the sum of `x[i] * y[i]`.
    fn dot(&mut self, build: &mut Builder, x: One, y: One) -> Result<One> {
        let lanes = build.numbers(x).map_or(0, |numbers| numbers.lanes);
        let mut sum = None;
        for index in 0..u32::from(lanes) {
            let a = self.known.add(build, Expression::AccessIndex { base: x, index })?;
            let b = self.known.add(build, Expression::AccessIndex { base: y, index })?;
            let product = self.product(build, a, b, false)?;
            sum = Some(match sum {
                Some(sum) => self.sum(build, sum, product, false)?,
                None => product,
            });
        }
        sum.ok_or_else(|| Error::new("dot of no vectors"))
    }

    /// Inherited from `x * (1.0 - z) + y * z`.
    fn mix(&mut self, build: &mut Builder, operands: &[One]) -> Result<One> {
        let &[x, y, z] = operands else { return Err(unknown(MathFunction::Mix)) };
        let Some(numbers) = build.floats(z) else { return Err(unknown(MathFunction::Mix)) };
        let one = build.number(1.0, numbers)?;
        let rest = self.sum(build, one, z, true)?;
        let first = self.product(build, x, rest, false)?;
        let second = self.product(build, y, z, false)?;
        self.sum(build, first, second, false)
    }

    fn conversion(
        &mut self,
        build: &mut Builder,
        expr: One,
        kind: ScalarKind,
        convert: Option<u8>,
    ) -> Result<One> {
        let own = Expression::As { expr, kind, convert };
        let Some(from) = build.numbers(expr) else { return self.known.add(build, own) };
        let width = convert.unwrap_or(from.scalar.width);
        let name = match (from.scalar.kind, from.scalar.width, kind, width, convert) {
            (ScalarKind::Float, 4, ScalarKind::Float, 4, _) => return Ok(expr),
            (ScalarKind::Float, 4, ScalarKind::Uint | ScalarKind::Sint, 4, None) => "bits",
            (ScalarKind::Uint, 4, ScalarKind::Float, 4, None) => "from_bits",
            (ScalarKind::Float, 4, ScalarKind::Float, 2, Some(_)) => "to_half",
            (ScalarKind::Float, 2, ScalarKind::Float, 4, Some(_)) => {
                if let Some(whole) = self.before_half(build, expr) {
                    return Ok(whole);
                }
                "from_half"
            }
            (ScalarKind::Float, 4, ScalarKind::Sint, 4, Some(_)) => "to_i32",
            (ScalarKind::Float, 4, ScalarKind::Uint, 4, Some(_)) => "to_u32",
            (ScalarKind::Sint, 4, ScalarKind::Float, 4, Some(_)) => "from_i32",
            (ScalarKind::Uint, 4, ScalarKind::Float, 4, Some(_)) => "from_u32",
            _ => return self.known.add(build, own),
        };
        let numbers = Numbers { lanes: from.lanes, scalar: naga::Scalar::F32 };
        match self.library.find(name, numbers) {
            Some(function) if name == "bits" && kind == ScalarKind::Sint => {
                let bits = build.call(function, vec![expr])?;
                self.known.add(build, Expression::As { expr: bits, kind, convert: Some(4) })
            }
            Some(function) => {
                let id = self.known.id_of(name, &[expr]);
                let result = build.call(function, vec![expr])?;
                self.known.computed(result, id);
                Ok(result)
            }
            None => self.known.add(build, own),
        }
    }

    /// The `f32` that became the half `expr`, where the driver leaves the conversion out.
    fn before_half(&self, build: &Builder, expr: One) -> Option<One> {
        let &Expression::As { expr: before, convert: Some(2), .. } = build.expression(expr) else {
            return None;
        };
        let whole = build.floats(before).is_some_and(|numbers| numbers.scalar.width == 4);
        (self.has(Latitude::HalvesElided) && whole).then_some(before)
    }

    /// The number that a literal is in all lanes.
    pub(crate) fn literal(&self, build: &Builder, of: One) -> Option<Literal> {
        match build.expression(of) {
            Expression::Literal(literal) => Some(*literal),
            Expression::Splat { value, .. } => self.literal(build, *value),
            Expression::Compose { components, .. } => {
                let mut all = components.iter().map(|component| self.literal(build, *component));
                let first = all.next()??;
                all.all(|other| other == Some(first)).then_some(first)
            }
            _ => None,
        }
    }
}

/// The name of a function in the library.
fn name_of(fun: MathFunction) -> Result<&'static str> {
    Ok(match fun {
        MathFunction::Abs => "abs",
        MathFunction::Min => "min",
        MathFunction::Max => "max",
        MathFunction::Clamp => "clamp",
        MathFunction::Saturate => "saturate",
        MathFunction::Cos => "cos",
        MathFunction::Cosh => "cosh",
        MathFunction::Sin => "sin",
        MathFunction::Sinh => "sinh",
        MathFunction::Tan => "tan",
        MathFunction::Tanh => "tanh",
        MathFunction::Acos => "acos",
        MathFunction::Asin => "asin",
        MathFunction::Atan => "atan",
        MathFunction::Atan2 => "atan2",
        MathFunction::Asinh => "asinh",
        MathFunction::Acosh => "acosh",
        MathFunction::Atanh => "atanh",
        MathFunction::Ceil => "ceil",
        MathFunction::Floor => "floor",
        MathFunction::Round => "round",
        MathFunction::Fract => "fract",
        MathFunction::Trunc => "trunc",
        MathFunction::Exp => "exp",
        MathFunction::Exp2 => "exp2",
        MathFunction::Log => "log",
        MathFunction::Log2 => "log2",
        MathFunction::Pow => "pow",
        MathFunction::Sign => "sign",
        MathFunction::Fma => "fma",
        MathFunction::Sqrt => "sqrt",
        MathFunction::InverseSqrt => "inverseSqrt",
        MathFunction::QuantizeToF16 => "quantize",
        other => return Err(unknown(other)),
    })
}

fn unknown(fun: MathFunction) -> Error {
    Error::new(format!("the function {fun:?} of floats is not known to the rewriter"))
}
