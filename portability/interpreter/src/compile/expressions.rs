//! What has a value. Vectors are lists of registers, so putting them together and taking them apart costs nothing.

use anyhow::{Result, bail};
use naga::{
    BinaryOperator, Expression, Handle, Literal, RelationalFunction, ScalarKind, TypeInner,
    UnaryOperator,
};

use super::{Compiler, Frame, Value};
use crate::layout::{Kind, Layout, Shape};
use crate::program::{Binary, Matrix, Op, Reg, Ternary, Unary};

impl<'a> Compiler<'a> {
    /// The value of an expression, which is computed here if it has not been.
    pub(super) fn value(
        &mut self,
        frame: &mut Frame<'a>,
        handle: Handle<Expression>,
    ) -> Result<Value> {
        if let Some(value) = frame.values.get(&handle) {
            return Ok(value.clone());
        }
        let value = self.evaluate(frame, handle)?;
        frame.values.insert(handle, value.clone());
        Ok(value)
    }

    /// The registers of an expression's scalars.
    pub(super) fn scalars(
        &mut self,
        frame: &mut Frame<'a>,
        handle: Handle<Expression>,
    ) -> Result<Vec<Reg>> {
        match self.value(frame, handle)? {
            Value::Scalars(scalars) => Ok(scalars),
            Value::Place(_) => bail!("a pointer is used as a value"),
        }
    }

    pub(super) fn scalar(
        &mut self,
        frame: &mut Frame<'a>,
        handle: Handle<Expression>,
    ) -> Result<Reg> {
        match self.scalars(frame, handle)?[..] {
            [scalar] => Ok(scalar),
            _ => bail!("{:?} is no scalar", frame.function.expressions[handle]),
        }
    }

    pub(super) fn emit_range(
        &mut self,
        frame: &mut Frame<'a>,
        range: naga::Range<Expression>,
    ) -> Result<()> {
        for handle in range {
            let value = self.evaluate(frame, handle)?;
            frame.values.insert(handle, value);
        }
        self.check_size()
    }

    fn evaluate(&mut self, frame: &mut Frame<'a>, handle: Handle<Expression>) -> Result<Value> {
        let line = self.line(frame.function.expressions.get_span(handle));
        let scalars = match &frame.function.expressions[handle] {
            Expression::Literal(literal) => vec![self.literal(literal)?],
            Expression::Constant(constant) => {
                let init = self.module.constants[*constant].init;
                self.global_constant(init)?
            }
            Expression::ZeroValue(ty) => {
                let count = Shape::new(self.module, *ty).scalars(self.module)?;
                vec![self.constant(0); count as usize]
            }
            Expression::Compose { components, .. } => {
                let mut all = Vec::new();
                for component in components {
                    all.extend(self.scalars(frame, *component)?);
                }
                all
            }
            Expression::Splat { size, value } => {
                vec![self.scalar(frame, *value)?; *size as usize]
            }
            Expression::Swizzle { size, vector, pattern } => {
                let vector = self.scalars(frame, *vector)?;
                pattern[..*size as usize].iter().map(|at| vector[*at as usize]).collect()
            }
            Expression::FunctionArgument(i) => bail!("argument {i} has no value"),
            Expression::GlobalVariable(variable) => {
                return Ok(Value::Place(self.global_place(*variable)));
            }
            Expression::LocalVariable(variable) => {
                return Ok(Value::Place(frame.locals[variable]));
            }
            Expression::Access { base, index } => return self.element(frame, *base, *index, line),
            Expression::AccessIndex { base, index } => return self.part(frame, *base, *index),
            Expression::Load { pointer } => {
                let place = self.place(frame, *pointer)?;
                let ty = self.type_of(frame, *pointer);
                self.load(place, ty, line)?
            }
            Expression::Unary { op, expr } => self.unary(frame, *op, *expr)?,
            Expression::Binary { op, left, right } => self.binary(frame, *op, *left, *right)?,
            Expression::Select { condition, accept, reject } => {
                let kind = self.kind_of(frame, *accept)?;
                let condition = self.scalars(frame, *condition)?;
                let (b, c) = (self.scalars(frame, *accept)?, self.scalars(frame, *reject)?);
                let lane = |i: usize| condition[if condition.len() == 1 { 0 } else { i }];
                let of = |i: usize| (lane(i), b[i], c[i]);
                let all: Vec<_> = (0..b.len()).map(of).collect();
                let op = Ternary::Select;
                all.into_iter().map(|(a, b, c)| self.ternary(op, kind, a, b, c)).collect()
            }
            Expression::Relational { fun, argument } => self.relational(frame, *fun, *argument)?,
            Expression::Math { fun, arg, arg1, arg2, arg3 } => {
                let more: Vec<_> = [arg1, arg2, arg3].into_iter().flatten().copied().collect();
                self.math(frame, *fun, *arg, &more)?
            }
            Expression::As { expr, kind, convert } => {
                self.convert(frame, *expr, *kind, *convert)?
            }
            Expression::ArrayLength(pointer) => {
                let place = self.place(frame, *pointer)?;
                let ty = self.type_of(frame, *pointer);
                vec![self.array_length(place, ty)?]
            }
            Expression::CooperativeLoad { columns, rows, data, .. } => {
                let (address, kind) = self.address_of(frame, data.pointer, line)?;
                let stride = self.scalar(frame, data.stride)?;
                let (columns, rows) = (*columns as u32, *rows as u32);
                let to = Matrix { first: self.fresh(columns * rows), columns, rows, kind };
                self.program.uses_subgroups = true;
                self.emit(Op::MatrixLoad { to, address, stride, by_rows: data.row_major });
                (to.first..to.first + columns * rows).collect()
            }
            Expression::CooperativeMultiplyAdd { a, b, c } => {
                let [a, b, c] = [*a, *b, *c].map(|x| self.matrix(frame, x));
                let (a, b, c) = (a?, b?, c?);
                let d = Matrix { first: self.fresh(c.columns * c.rows), ..c };
                self.emit(Op::MatrixMultiply { d, a, b, c, line });
                (d.first..d.first + d.columns * d.rows).collect()
            }
            other => bail!("line {line}: the expression {other:?} is not supported"),
        };
        Ok(Value::Scalars(scalars))
    }

    /// A small matrix, in registers that follow on each other.
    pub(super) fn matrix(
        &mut self,
        frame: &mut Frame<'a>,
        handle: Handle<Expression>,
    ) -> Result<Matrix> {
        let TypeInner::CooperativeMatrix { columns, rows, scalar, .. } =
            *self.type_of(frame, handle)
        else {
            bail!("{:?} is no cooperative matrix", frame.function.expressions[handle]);
        };
        let scalars = self.scalars(frame, handle)?;
        let first = self.in_a_row(&scalars);
        let (columns, rows) = (columns as u32, rows as u32);
        Ok(Matrix { first, columns, rows, kind: Kind::of(scalar)? })
    }

    /// The first of registers that follow on each other and have these values.
    fn in_a_row(&mut self, scalars: &[Reg]) -> Reg {
        if scalars.windows(2).all(|pair| pair[0] + 1 == pair[1]) {
            return scalars[0];
        }
        let first = self.fresh(scalars.len() as u32);
        for (d, &a) in (first..).zip(scalars) {
            self.emit(Op::Copy { d, a });
        }
        first
    }

    fn literal(&mut self, literal: &Literal) -> Result<Reg> {
        let bits = match *literal {
            Literal::F32(x) => x.to_bits(),
            Literal::F16(x) => u32::from(x.to_bits()),
            Literal::U32(x) => x,
            Literal::I32(x) => x as u32,
            Literal::Bool(x) => u32::from(x),
            ref other => bail!("the literal {other:?} is not supported"),
        };
        Ok(self.constant(bits))
    }

    /// The registers of a constant of the module.
    pub(super) fn global_constant(&mut self, handle: Handle<Expression>) -> Result<Vec<Reg>> {
        let module = self.module;
        Ok(match &module.global_expressions[handle] {
            Expression::Literal(literal) => vec![self.literal(literal)?],
            Expression::Constant(constant) => {
                self.global_constant(module.constants[*constant].init)?
            }
            Expression::ZeroValue(ty) => {
                let count = Shape::new(module, *ty).scalars(module)?;
                vec![self.constant(0); count as usize]
            }
            Expression::Compose { components, .. } => {
                let mut all = Vec::new();
                for component in components {
                    all.extend(self.global_constant(*component)?);
                }
                all
            }
            Expression::Splat { size, value } => {
                let value = self.global_constant(*value)?[0];
                vec![value; *size as usize]
            }
            other => bail!("the constant {other:?} is not supported"),
        })
    }

    fn part(
        &mut self,
        frame: &mut Frame<'a>,
        base: Handle<Expression>,
        index: u32,
    ) -> Result<Value> {
        let ty = self.type_of(frame, base);
        match self.value(frame, base)? {
            Value::Place(place) => Ok(Value::Place(self.part_of_place(place, ty, index)?)),
            Value::Scalars(scalars) => {
                let shape = self.shape_of(frame, base);
                let (part, at) = shape.part(self.module, Layout::Words, index)?;
                let count = part.scalars(self.module)?;
                Ok(Value::Scalars(scalars[at as usize..(at + count) as usize].to_vec()))
            }
        }
    }

    fn element(
        &mut self,
        frame: &mut Frame<'a>,
        base: Handle<Expression>,
        index: Handle<Expression>,
        line: u32,
    ) -> Result<Value> {
        let ty = self.type_of(frame, base);
        let index = self.scalar(frame, index)?;
        match self.value(frame, base)? {
            Value::Place(place) => Ok(Value::Place(self.element_of_place(place, ty, index)?)),
            Value::Scalars(scalars) => {
                let shape = self.shape_of(frame, base);
                let (element, part) = shape.elements(self.module, Layout::Words)?;
                let bound = crate::program::Bound::Fixed(part.count.unwrap_or(0));
                let first = self.in_a_row(&scalars);
                let at = self.fresh(1);
                self.emit(Op::Index { d: at, base: None, index, stride: part.stride, bound });
                let count = element.scalars(self.module)?;
                let d = self.fresh(count);
                for i in 0..count {
                    let (d, first, variable) = (d + i, first + i, u32::MAX);
                    self.emit(Op::Pick { d, first, index: at, variable, line });
                }
                Ok(Value::Scalars((d..d + count).collect()))
            }
        }
    }

    pub(super) fn unary_op(&mut self, op: Unary, kind: Kind, a: Reg) -> Reg {
        let d = self.fresh(1);
        self.emit(Op::Unary { op, kind, d, a });
        d
    }

    pub(super) fn binary_op(&mut self, op: Binary, kind: Kind, a: Reg, b: Reg) -> Reg {
        let d = self.fresh(1);
        self.emit(Op::Binary { op, kind, d, a, b });
        d
    }

    pub(super) fn ternary(&mut self, op: Ternary, kind: Kind, a: Reg, b: Reg, c: Reg) -> Reg {
        let d = self.fresh(1);
        self.emit(Op::Ternary { op, kind, d, a, b, c });
        d
    }

    fn unary(
        &mut self,
        frame: &mut Frame<'a>,
        op: UnaryOperator,
        x: Handle<Expression>,
    ) -> Result<Vec<Reg>> {
        let kind = self.kind_of(frame, x)?;
        let op = match op {
            UnaryOperator::Negate => Unary::Negate,
            UnaryOperator::LogicalNot | UnaryOperator::BitwiseNot => Unary::Not,
        };
        let x = self.scalars(frame, x)?;
        Ok(x.into_iter().map(|a| self.unary_op(op, kind, a)).collect())
    }

    fn binary(
        &mut self,
        frame: &mut Frame<'a>,
        op: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
    ) -> Result<Vec<Reg>> {
        let kind = self.kind_of(frame, left)?;
        let shapes = [self.type_of(frame, left), self.type_of(frame, right)];
        let (a, b) = (self.scalars(frame, left)?, self.scalars(frame, right)?);
        let matrix = |ty: &&TypeInner| matches!(ty, TypeInner::Matrix { .. });
        if op == BinaryOperator::Multiply && shapes.iter().any(matrix) {
            return self.product_of_matrices(shapes, &a, &b, kind);
        }
        let op = match op {
            BinaryOperator::Add => Binary::Add,
            BinaryOperator::Subtract => Binary::Subtract,
            BinaryOperator::Multiply => Binary::Multiply,
            BinaryOperator::Divide => Binary::Divide,
            BinaryOperator::Modulo => Binary::Modulo,
            BinaryOperator::Equal => Binary::Equal,
            BinaryOperator::NotEqual => Binary::NotEqual,
            BinaryOperator::Less => Binary::Less,
            BinaryOperator::LessEqual => Binary::LessEqual,
            BinaryOperator::Greater => Binary::Greater,
            BinaryOperator::GreaterEqual => Binary::GreaterEqual,
            BinaryOperator::And | BinaryOperator::LogicalAnd => Binary::And,
            BinaryOperator::InclusiveOr | BinaryOperator::LogicalOr => Binary::Or,
            BinaryOperator::ExclusiveOr => Binary::Xor,
            BinaryOperator::ShiftLeft => Binary::ShiftLeft,
            BinaryOperator::ShiftRight => Binary::ShiftRight,
        };
        // A scalar next to a vector.
        let at = |x: &[Reg], i: usize| x[if x.len() == 1 { 0 } else { i }];
        let count = a.len().max(b.len());
        Ok((0..count).map(|i| self.binary_op(op, kind, at(&a, i), at(&b, i))).collect())
    }

    fn product_of_matrices(
        &mut self,
        shapes: [&TypeInner; 2],
        a: &[Reg],
        b: &[Reg],
        kind: Kind,
    ) -> Result<Vec<Reg>> {
        // Rows and columns; a vector is a row on the left, a column on the right.
        let size = |ty: &TypeInner, left: bool| match ty {
            TypeInner::Matrix { columns, rows, .. } => Some((*rows as usize, *columns as usize)),
            TypeInner::Vector { size, .. } if left => Some((1, *size as usize)),
            TypeInner::Vector { size, .. } => Some((*size as usize, 1)),
            _ => None,
        };
        let (Some((rows, inner)), Some((_, columns))) =
            (size(shapes[0], true), size(shapes[1], false))
        else {
            let (scalar, other) = if a.len() == 1 { (a[0], b) } else { (b[0], a) };
            let times = |x: &Reg| self.binary_op(Binary::Multiply, kind, *x, scalar);
            return Ok(other.iter().map(times).collect());
        };
        let mut product = Vec::new();
        for column in 0..columns {
            for row in 0..rows {
                let left: Vec<Reg> = (0..inner).map(|k| a[k * rows + row]).collect();
                let right = &b[column * inner..(column + 1) * inner];
                product.push(self.dot(kind, &left, right));
            }
        }
        Ok(product)
    }

    /// The sum of products, from the first to the last.
    pub(super) fn dot(&mut self, kind: Kind, a: &[Reg], b: &[Reg]) -> Reg {
        let mut sum = None;
        for (&a, &b) in a.iter().zip(b) {
            let product = self.binary_op(Binary::Multiply, kind, a, b);
            sum = Some(match sum {
                None => product,
                Some(sum) => self.binary_op(Binary::Add, kind, sum, product),
            });
        }
        sum.unwrap_or_else(|| self.constant(0))
    }

    fn relational(
        &mut self,
        frame: &mut Frame<'a>,
        fun: RelationalFunction,
        x: Handle<Expression>,
    ) -> Result<Vec<Reg>> {
        let kind = self.kind_of(frame, x)?;
        let x = self.scalars(frame, x)?;
        let fold = match fun {
            RelationalFunction::IsNan | RelationalFunction::IsInf => {
                let nan = fun == RelationalFunction::IsNan;
                let op = if nan { Unary::IsNan } else { Unary::IsInf };
                return Ok(x.into_iter().map(|a| self.unary_op(op, kind, a)).collect());
            }
            RelationalFunction::All => Binary::And,
            RelationalFunction::Any => Binary::Or,
        };
        let mut all = x[0];
        for &b in &x[1..] {
            all = self.binary_op(fold, Kind::Bool, all, b);
        }
        Ok(vec![all])
    }

    fn convert(
        &mut self,
        frame: &mut Frame<'a>,
        x: Handle<Expression>,
        kind: ScalarKind,
        width: Option<u8>,
    ) -> Result<Vec<Reg>> {
        let from = self.kind_of(frame, x)?;
        let x_scalars = self.scalars(frame, x)?;
        let Some(width) = width else {
            return self.bitcast(from, kind, x_scalars);
        };
        let to = Kind::of(naga::Scalar { kind, width })?;
        let mut convert = |a: Reg| {
            if from == to {
                return a;
            }
            let d = self.fresh(1);
            self.emit(Op::Convert { from, to, d, a });
            d
        };
        Ok(x_scalars.into_iter().map(&mut convert).collect())
    }

    /// The same bits as another type. naga gives the result as many scalars as the operand has.
    fn bitcast(&mut self, from: Kind, to: ScalarKind, x: Vec<Reg>) -> Result<Vec<Reg>> {
        if from == Kind::F16 && to != ScalarKind::Float {
            bail!("bitcasts from f16 to {to:?} are not supported");
        }
        Ok(x)
    }
}
