//! WGSL's functions of numbers. Those of vectors are taken apart; `numbers.rs` has the others.

use anyhow::{Result, bail};
use naga::{Expression, Handle, MathFunction as F};

use super::{Compiler, Frame};
use crate::layout::Kind;
use crate::numbers;
use crate::program::{Binary, Op, Reg, Ternary, Unary};

impl<'a> Compiler<'a> {
    pub(super) fn math(
        &mut self,
        frame: &mut Frame<'a>,
        fun: F,
        first: Handle<Expression>,
        more: &[Handle<Expression>],
    ) -> Result<Vec<Reg>> {
        let kind = self.kind_of(frame, first)?;
        let a = self.scalars(frame, first)?;
        let mut others = Vec::new();
        for &argument in more {
            others.push(self.scalars(frame, argument)?);
        }
        if let Some(scalars) = self.math_of_vectors(fun, kind, &a, &others)? {
            return Ok(scalars);
        }
        if !numbers::knows(fun, 1 + others.len(), kind) {
            bail!("the function {fun:?} of {kind:?} is not supported");
        }
        // Some functions take a scalar and a vector.
        let at = |x: &[Reg], i: usize| x[if x.len() == 1 { 0 } else { i }];
        let mut all = Vec::with_capacity(a.len());
        for (i, &a) in a.iter().enumerate() {
            all.push(match &others[..] {
                [] => self.unary_op(Unary::Math(fun), kind, a),
                [b] => self.binary_op(Binary::Math(fun), kind, a, at(b, i)),
                [b, c] => self.ternary(Ternary::Math(fun), kind, a, at(b, i), at(c, i)),
                [b, c, e] if fun == F::InsertBits => {
                    let (d, b, c, e) = (self.fresh(1), at(b, i), at(c, i), at(e, i));
                    self.emit(Op::InsertBits { d, a, b, c, e });
                    d
                }
                _ => bail!("{fun:?} is not supported"),
            });
        }
        Ok(all)
    }

    /// The functions that mix the elements of a vector, or change their number.
    fn math_of_vectors(
        &mut self,
        fun: F,
        kind: Kind,
        a: &[Reg],
        others: &[Vec<Reg>],
    ) -> Result<Option<Vec<Reg>>> {
        Ok(Some(match (fun, others) {
            (F::Dot, [b]) => vec![self.dot(kind, a, b)],
            (F::Cross, [b]) => {
                let mut part = |i: usize, j: usize| {
                    let one = self.binary_op(Binary::Multiply, kind, a[i], b[j]);
                    let other = self.binary_op(Binary::Multiply, kind, a[j], b[i]);
                    self.binary_op(Binary::Subtract, kind, one, other)
                };
                vec![part(1, 2), part(2, 0), part(0, 1)]
            }
            (F::Length, []) => vec![self.length(kind, a)],
            (F::Distance, [b]) => {
                let apart: Vec<Reg> = a
                    .iter()
                    .zip(b)
                    .map(|(&a, &b)| self.binary_op(Binary::Subtract, kind, a, b))
                    .collect();
                vec![self.length(kind, &apart)]
            }
            (F::Normalize, []) => {
                let length = self.length(kind, a);
                a.iter().map(|&a| self.binary_op(Binary::Divide, kind, a, length)).collect()
            }
            (F::Pack2x16float, []) => {
                let low = self.halved(a[0]);
                let high = self.halved(a[1]);
                let by = self.constant(16);
                let high = self.binary_op(Binary::ShiftLeft, Kind::U32, high, by);
                vec![self.binary_op(Binary::Or, Kind::U32, low, high)]
            }
            (F::Unpack2x16float, []) => {
                let (mask, by) = (self.constant(0xffff), self.constant(16));
                let low = self.binary_op(Binary::And, Kind::U32, a[0], mask);
                let high = self.binary_op(Binary::ShiftRight, Kind::U32, a[0], by);
                [low, high].map(|half| self.widened(half)).to_vec()
            }
            (
                F::Dot4I8Packed
                | F::Dot4U8Packed
                | F::Outer
                | F::FaceForward
                | F::Reflect
                | F::Refract
                | F::Modf
                | F::Frexp
                | F::Inverse
                | F::Transpose
                | F::Determinant
                | F::Pack4x8snorm
                | F::Pack4x8unorm
                | F::Pack2x16snorm
                | F::Pack2x16unorm
                | F::Pack4xI8
                | F::Pack4xU8
                | F::Pack4xI8Clamp
                | F::Pack4xU8Clamp
                | F::Unpack4x8snorm
                | F::Unpack4x8unorm
                | F::Unpack2x16snorm
                | F::Unpack2x16unorm
                | F::Unpack4xI8
                | F::Unpack4xU8,
                _,
            ) => bail!("the function {fun:?} is not supported"),
            _ => return Ok(None),
        }))
    }

    fn length(&mut self, kind: Kind, a: &[Reg]) -> Reg {
        let square = self.dot(kind, a, a);
        self.unary_op(Unary::Math(F::Sqrt), kind, square)
    }

    /// The bits of a number as f16.
    fn halved(&mut self, a: Reg) -> Reg {
        let d = self.fresh(1);
        self.emit(Op::Convert { from: Kind::F32, to: Kind::F16, d, a });
        d
    }

    fn widened(&mut self, a: Reg) -> Reg {
        let d = self.fresh(1);
        self.emit(Op::Convert { from: Kind::F16, to: Kind::F32, d, a });
        d
    }
}
