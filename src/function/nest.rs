//! [`Nest`]: what functions take and return, with the tensors in it, and [`Signature`], for which a function is traced.

use std::fmt::Write as _;

use crate::dtype::Scalar;
use crate::error::Result;
use crate::tensor::{Operand, Tensor};

/// What a [`function`](crate::function()) takes or returns: tensors, plain values, and options, vectors, arrays and tuples of
/// them.
///
/// A function is traced for each shape and dtype of a tensor, and for each *value* of a number, a `bool` or a text. An
/// [`Operand`] is one or the other: `Operand::from(2)` is traced for 2.
pub trait Nest: Clone + Send + Sync + 'static {
    #[doc(hidden)]
    fn write_signature(&self, signature: &mut Signature);

    /// The same with each tensor replaced, in order.
    #[doc(hidden)]
    fn map_tensors(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self;

    /// The same in the form of a loop variable, whose tensors are as many in each turn.
    #[doc(hidden)]
    fn loop_variable(&self) -> Result<Self> {
        Ok(self.clone())
    }
}

/// The types of a function's arguments and the values of the plain ones: calls of one signature share a trace.
#[doc(hidden)]
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Signature(pub(super) String);

impl Signature {
    pub(super) fn write(&mut self, part: std::fmt::Arguments<'_>) {
        // Writing to a string never fails.
        let _ = self.0.write_fmt(part);
    }

    /// Writes the parts of a container, separated by commas.
    fn list(
        &mut self,
        begin: &str,
        parts: impl Iterator<Item = impl FnOnce(&mut Self)>,
        end: &str,
    ) {
        self.0 += begin;
        for (at, part) in parts.enumerate() {
            if at > 0 {
                self.0 += ", ";
            }
            part(self);
        }
        self.0 += end;
    }

    fn slice<T: Nest>(&mut self, parts: &[T]) {
        self.list("[", parts.iter().map(|part| |s: &mut Self| part.write_signature(s)), "]");
    }
}

impl Nest for Tensor {
    fn write_signature(&self, signature: &mut Signature) {
        signature.write(format_args!("{}", self.spec()));
    }

    fn map_tensors(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        f(self)
    }
}

impl Nest for Operand {
    fn write_signature(&self, signature: &mut Signature) {
        match self {
            Operand::Tensor(tensor) => tensor.write_signature(signature),
            Operand::Scalar(scalar) => scalar.write_signature(signature),
            Operand::Varying(varying) => varying.now.write_signature(signature),
        }
    }

    fn map_tensors(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        match self {
            Operand::Tensor(tensor) => Operand::Tensor(f(tensor)),
            other => other.clone(),
        }
    }
}

/// Plain values, which `Debug` prints so that different ones differ.
macro_rules! plain {
    ($($t:ty),*) => {$(
        impl Nest for $t {
            fn write_signature(&self, signature: &mut Signature) {
                signature.write(format_args!("{self:?}"));
            }

            fn map_tensors(&self, _: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
                self.clone()
            }
        }
    )*};
}
plain!(f32, f64, i32, i64, u32, u64, u8, usize, bool, String, &'static str, (), Scalar);

impl<T: Nest> Nest for Vec<T> {
    fn write_signature(&self, signature: &mut Signature) {
        signature.slice(self);
    }

    fn map_tensors(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        self.iter().map(|part| part.map_tensors(f)).collect()
    }

    fn loop_variable(&self) -> Result<Self> {
        self.iter().map(Nest::loop_variable).collect()
    }
}

impl<T: Nest, const N: usize> Nest for [T; N] {
    fn write_signature(&self, signature: &mut Signature) {
        signature.slice(self);
    }

    fn map_tensors(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        std::array::from_fn(|at| self[at].map_tensors(f))
    }

    fn loop_variable(&self) -> Result<Self> {
        let mut parts = self.clone();
        for part in &mut parts {
            *part = part.loop_variable()?;
        }
        Ok(parts)
    }
}

impl<T: Nest> Nest for Option<T> {
    fn write_signature(&self, signature: &mut Signature) {
        match self {
            Some(part) => part.write_signature(signature),
            None => signature.write(format_args!("None")),
        }
    }

    fn map_tensors(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
        self.as_ref().map(|part| part.map_tensors(f))
    }

    fn loop_variable(&self) -> Result<Self> {
        self.as_ref().map(Nest::loop_variable).transpose()
    }
}

macro_rules! tuples {
    ($(($($part:ident $at:tt),+))*) => {$(
        impl<$($part: Nest),+> Nest for ($($part,)+) {
            fn write_signature(&self, signature: &mut Signature) {
                let parts: &[&dyn Fn(&mut Signature)] =
                    &[$(&|s: &mut Signature| self.$at.write_signature(s)),+];
                signature.list("(", parts.iter(), ")");
            }

            fn map_tensors(&self, f: &mut dyn FnMut(&Tensor) -> Tensor) -> Self {
                ($(self.$at.map_tensors(f),)+)
            }

            fn loop_variable(&self) -> Result<Self> {
                Ok(($(self.$at.loop_variable()?,)+))
            }
        }
    )*};
}
tuples! {
    (A 0) (A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3) (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}
