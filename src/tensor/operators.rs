//! Operators, and the numbers that may be operands with a tensor.
//!
//! `+ - * / %` and unary minus panic with the op's message at the caller's line; the methods `add`, `subtract`, ...
//! return a [`Result`].

use std::fmt;
use std::ops::{Add, Div, Mul, Neg, Rem, Sub};

use crate::dtype::Scalar;
use crate::eager::{self, Owner};
use crate::error::Result;
use crate::ops;

use super::Tensor;

/// The other operand of a binary op: a tensor, a variable or a number.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Operand {
    /// A tensor, or a variable's value.
    Tensor(Tensor),
    /// A number, which takes the dtype of the other operand.
    Scalar(Scalar),
    /// A `Scalar` that its owner computes for each run: [`Step::scalar`](crate::keras::optimizers::Step::scalar).
    #[doc(hidden)]
    Varying(Varying),
}

/// A number that its owner computes again for each run of a program.
#[derive(Clone)]
pub struct Varying {
    /// The number in this run.
    pub(crate) now: Scalar,
    /// The owner, which a traced program calls for the number of its next run.
    pub(crate) again: Option<Owner<Scalar>>,
}

impl Varying {
    /// The number `now`, and the function that `make` returns, which computes the number of each later run.
    pub(crate) fn new<F>(now: impl Into<Scalar>, make: impl FnOnce() -> F) -> Self
    where
        F: Fn() -> Scalar + Send + Sync + 'static,
    {
        Varying { now: now.into(), again: eager::owner(make) }
    }
}

impl fmt::Debug for Varying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Varying({})", self.now)
    }
}

impl Operand {
    /// The operand as a tensor on the device of `other`; a number gets its dtype, too.
    pub(crate) fn into_tensor_like(self, op: &str, other: &Tensor) -> Result<Tensor> {
        match self {
            Operand::Tensor(tensor) => Ok(tensor),
            Operand::Scalar(value) => {
                ops::fill(other.device(), op, Default::default(), value, other.dtype())
            }
            Operand::Varying(value) => ops::fill_varying(other.device(), op, value, other.dtype()),
        }
    }
}

impl From<Tensor> for Operand {
    fn from(tensor: Tensor) -> Self {
        Operand::Tensor(tensor)
    }
}

impl From<&Tensor> for Operand {
    fn from(tensor: &Tensor) -> Self {
        Operand::Tensor(tensor.clone())
    }
}

macro_rules! operand_number {
    ($($t:ty),*) => {$(
        impl From<$t> for Operand {
            fn from(value: $t) -> Self {
                Operand::Scalar(value.into())
            }
        }
    )*};
}
// Every number type converts to a `Scalar`.
operand_number!(f32, f64, i32, u32, i64, u64, u8, usize, bool);

#[track_caller]
fn sugar(result: Result<Tensor>) -> Tensor {
    match result {
        Ok(tensor) => tensor,
        Err(error) => panic!("{error}"),
    }
}

macro_rules! operators {
    ($($trait:ident :: $method:ident => $op:ident, $name:literal;)*) => {$(
        impl<R: Into<Operand>> $trait<R> for &Tensor {
            type Output = Tensor;

            /// Panics where the method of the same name returns an error.
            #[track_caller]
            fn $method(self, other: R) -> Tensor {
                sugar(Tensor::$op(&self, other))
            }
        }

        impl<R: Into<Operand>> $trait<R> for Tensor {
            type Output = Tensor;

            /// Panics where the method of the same name returns an error.
            #[track_caller]
            fn $method(self, other: R) -> Tensor {
                sugar(Tensor::$op(&self, other))
            }
        }

        operators!(@number $trait::$method => $op, $name; f32 i32);
    )*};
    (@number $trait:ident :: $method:ident => $op:ident, $name:literal; $($t:ty)*) => {$(
        impl $trait<&Tensor> for $t {
            type Output = Tensor;

            /// Panics where the method of the same name returns an error.
            #[track_caller]
            fn $method(self, other: &Tensor) -> Tensor {
                sugar(Operand::from(self).into_tensor_like($name, other).and_then(|x| Tensor::$op(&x, other)))
            }
        }

        impl $trait<Tensor> for $t {
            type Output = Tensor;

            /// Panics where the method of the same name returns an error.
            #[track_caller]
            fn $method(self, other: Tensor) -> Tensor {
                $trait::$method(self, &other)
            }
        }
    )*};
}
// For `Add::add => add` this writes `&Tensor + R` and `Tensor + R` for every `R` that converts to an `Operand`, and
// `f32 + &Tensor` and the like. A literal on the left must have one type, so only `f32` and `i32` are supported there.
// `variable.rs` writes the operators of variables.
operators! {
    Add::add => add, "AddV2";
    Sub::sub => subtract, "Sub";
    Mul::mul => multiply, "Mul";
    Div::div => divide, "RealDiv";
    Rem::rem => floormod, "FloorMod";
}

impl Neg for &Tensor {
    type Output = Tensor;

    /// Panics where `negative` returns an error.
    #[track_caller]
    fn neg(self) -> Tensor {
        sugar(self.negative())
    }
}

impl Neg for Tensor {
    type Output = Tensor;

    /// Panics where `negative` returns an error.
    #[track_caller]
    fn neg(self) -> Tensor {
        sugar(self.negative())
    }
}
