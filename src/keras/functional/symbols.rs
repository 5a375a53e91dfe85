//! One symbol or several, as the inputs or results of a layer.

use std::slice;

use super::input::Input;
use super::symbol::SymbolicTensor;
use crate::keras::Outputs;
use crate::tensor::Tensor;

macro_rules! tuple {
    ($count:literal: $($x:ident $tensor:ident),*) => {
        impl Results for ($($tensor,)*) {
            type Symbols = ($(tuple!(@symbol $tensor),)*);

            fn from_list(list: Vec<SymbolicTensor>) -> Option<Self::Symbols> {
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

/// The result type of a layer that a model calls, and the corresponding type of symbols.
pub trait Results: Outputs {
    /// The corresponding type of symbols.
    type Symbols;

    /// Converts `list` to that type, if it has the right number of symbols.
    fn from_list(list: Vec<SymbolicTensor>) -> Option<Self::Symbols>;
}

impl Results for Tensor {
    type Symbols = SymbolicTensor;

    fn from_list(list: Vec<SymbolicTensor>) -> Option<SymbolicTensor> {
        let [y]: [SymbolicTensor; 1] = list.try_into().ok()?;
        Some(y)
    }
}

impl Results for Vec<Tensor> {
    type Symbols = Vec<SymbolicTensor>;

    fn from_list(list: Vec<SymbolicTensor>) -> Option<Vec<SymbolicTensor>> {
        Some(list)
    }
}

impl<const N: usize> Results for [Tensor; N] {
    type Symbols = [SymbolicTensor; N];

    fn from_list(list: Vec<SymbolicTensor>) -> Option<[SymbolicTensor; N]> {
        list.try_into().ok()
    }
}

/// A result and a list of states, as recurrent layers return them.
impl Results for (Tensor, Vec<Tensor>) {
    type Symbols = (SymbolicTensor, Vec<SymbolicTensor>);

    fn from_list(mut list: Vec<SymbolicTensor>) -> Option<Self::Symbols> {
        (!list.is_empty()).then(|| (list.remove(0), list))
    }
}

/// One symbol or several: `&x`, `[&a, &b]`, `(&image, &y)`, a slice or a vector of symbols.
pub trait Symbols {
    /// Returns the symbols in order.
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
            #[allow(non_snake_case)] // Each part has the name of its type.
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
