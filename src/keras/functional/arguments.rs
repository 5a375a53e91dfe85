//! What layers take and return, made of lists of tensors, and the same of symbols.

use std::slice;

use super::input::Input;
use super::symbol::SymbolicTensor;
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

/// What a layer may take when a model calls it: a tensor, a list, an array or a tuple of tensors.
pub trait Arguments {
    /// Whether it is several tensors.
    const SEVERAL: bool;

    /// Calls `f` with the tensors of `list`.
    ///
    /// # Errors
    /// [`Error::Shape`] if `list` has another number of tensors; else those of `f`.
    fn with<R>(list: &[Tensor], f: impl FnOnce(&Self) -> Result<R>) -> Result<R>;
}

fn number_error(want: usize, given: usize) -> Error {
    Error::Shape(message!(
        "the layer takes {want} {} and was called on {given}. Call it on as many as it takes.",
        if want == 1 { "input" } else { "inputs" }
    ))
}

impl Arguments for Tensor {
    const SEVERAL: bool = false;

    fn with<R>(list: &[Tensor], f: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        match list {
            [x] => f(x),
            _ => Err(number_error(1, list.len())),
        }
    }
}

impl Arguments for [Tensor] {
    const SEVERAL: bool = true;

    fn with<R>(list: &[Tensor], f: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        f(list)
    }
}

impl<const N: usize> Arguments for [Tensor; N] {
    const SEVERAL: bool = true;

    fn with<R>(list: &[Tensor], f: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        let array = list.try_into().map_err(|_| number_error(N, list.len()))?;
        f(array)
    }
}

macro_rules! tuple {
    ($count:literal: $($x:ident $tensor:ident),*) => {
        impl Arguments for ($($tensor,)*) {
            const SEVERAL: bool = true;

            fn with<R>(list: &[Tensor], f: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
                let [$($x),*] = list else { return Err(number_error($count, list.len())) };
                f(&($($x.clone(),)*))
            }
        }

        impl Results for ($($tensor,)*) {
            type Symbols = ($(tuple!(@symbol $tensor),)*);

            fn into_list(self) -> Vec<Tensor> {
                let ($($x,)*) = self;
                vec![$($x),*]
            }

            fn of(list: Vec<SymbolicTensor>) -> Option<Self::Symbols> {
                let [$($x),*]: [SymbolicTensor; $count] = list.try_into().ok()?;
                Some(($($x,)*))
            }
        }
    };
    (@symbol Tensor) => { SymbolicTensor };
}
tuple!(2: a Tensor, b Tensor);
tuple!(3: a Tensor, b Tensor, c Tensor);
tuple!(4: a Tensor, b Tensor, c Tensor, d Tensor);

/// What a layer may return when a model calls it: a tensor, a list, an array or a tuple of tensors.
pub trait Results: Sized {
    /// The same of symbols.
    type Symbols;

    /// The tensors in order.
    fn into_list(self) -> Vec<Tensor>;

    /// The symbols of `list` in that form, if they are as many.
    fn of(list: Vec<SymbolicTensor>) -> Option<Self::Symbols>;
}

impl Results for Tensor {
    type Symbols = SymbolicTensor;

    fn into_list(self) -> Vec<Tensor> {
        vec![self]
    }

    fn of(list: Vec<SymbolicTensor>) -> Option<SymbolicTensor> {
        let [y]: [SymbolicTensor; 1] = list.try_into().ok()?;
        Some(y)
    }
}

impl Results for Vec<Tensor> {
    type Symbols = Vec<SymbolicTensor>;

    fn into_list(self) -> Vec<Tensor> {
        self
    }

    fn of(list: Vec<SymbolicTensor>) -> Option<Vec<SymbolicTensor>> {
        Some(list)
    }
}

impl<const N: usize> Results for [Tensor; N] {
    type Symbols = [SymbolicTensor; N];

    fn into_list(self) -> Vec<Tensor> {
        self.into()
    }

    fn of(list: Vec<SymbolicTensor>) -> Option<[SymbolicTensor; N]> {
        list.try_into().ok()
    }
}

/// A result and a list of states, as recurrent layers return them.
impl Results for (Tensor, Vec<Tensor>) {
    type Symbols = (SymbolicTensor, Vec<SymbolicTensor>);

    fn into_list(self) -> Vec<Tensor> {
        let mut list = vec![self.0];
        list.extend(self.1);
        list
    }

    fn of(mut list: Vec<SymbolicTensor>) -> Option<Self::Symbols> {
        (!list.is_empty()).then(|| (list.remove(0), list))
    }
}

/// One symbol or several: `&x`, `[&a, &b]`, `(&image, &y)`, a slice or a vector of symbols.
pub trait Symbols {
    /// The symbols in order.
    fn symbols(&self) -> Vec<SymbolicTensor>;
}

impl Symbols for SymbolicTensor {
    fn symbols(&self) -> Vec<SymbolicTensor> {
        vec![self.clone()]
    }
}

impl Symbols for Input {
    fn symbols(&self) -> Vec<SymbolicTensor> {
        (**self).symbols()
    }
}

impl<S: Symbols + ?Sized> Symbols for &S {
    fn symbols(&self) -> Vec<SymbolicTensor> {
        (**self).symbols()
    }
}

impl<S: Symbols> Symbols for [S] {
    fn symbols(&self) -> Vec<SymbolicTensor> {
        let lists: slice::Iter<'_, S> = self.iter();
        lists.flat_map(S::symbols).collect()
    }
}

impl<S: Symbols, const N: usize> Symbols for [S; N] {
    fn symbols(&self) -> Vec<SymbolicTensor> {
        self[..].symbols()
    }
}

impl<S: Symbols> Symbols for Vec<S> {
    fn symbols(&self) -> Vec<SymbolicTensor> {
        self[..].symbols()
    }
}

macro_rules! several {
    ($($part:ident),*) => {
        impl<$($part: Symbols),*> Symbols for ($($part,)*) {
            #[allow(non_snake_case)] // A part is called as its type.
            fn symbols(&self) -> Vec<SymbolicTensor> {
                let ($($part,)*) = self;
                [$($part.symbols()),*].concat()
            }
        }
    };
}
several!(A, B);
several!(A, B, C);
several!(A, B, C, D);
several!(A, B, C, D, E);
several!(A, B, C, D, E, F);
