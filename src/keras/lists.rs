//! The input and output types of layers and models, converted from and to lists of tensors.

use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

/// The input type of a layer or a model: a tensor, a list, an array or a tuple of tensors.
pub trait Inputs {
    /// Whether the type holds several tensors.
    const SEVERAL: bool;

    /// Calls `f` with the tensors of `list` as this type.
    ///
    /// # Errors
    /// [`Error::Shape`] if `list` has a different number of tensors; else the errors of `f`.
    fn with<R>(list: &[Tensor], f: impl FnOnce(&Self) -> Result<R>) -> Result<R>;
}

/// The output type of a layer or a model: a tensor, a list, an array or a tuple of tensors.
pub trait Outputs: Sized {
    /// Returns the tensors in order.
    fn into_list(self) -> Vec<Tensor>;
}

fn number_error(wanted: usize, given: usize) -> Error {
    Error::Shape(match wanted {
        1 => message!(
            "the call takes one tensor, and was given {given}. Join them; or write impl Layer<[Tensor; {given}]> for a \
             layer of your own, and impl Model<[Tensor; {given}]> for a model."
        ),
        _ => message!(
            "the call takes {wanted} tensors, and was given {given}. Give a tuple or an array of {wanted}."
        ),
    })
}

impl Inputs for Tensor {
    const SEVERAL: bool = false;

    fn with<R>(list: &[Tensor], f: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        match list {
            [x] => f(x),
            _ => Err(number_error(1, list.len())),
        }
    }
}

impl Inputs for [Tensor] {
    const SEVERAL: bool = true;

    fn with<R>(list: &[Tensor], f: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        f(list)
    }
}

impl<const N: usize> Inputs for [Tensor; N] {
    const SEVERAL: bool = true;

    fn with<R>(list: &[Tensor], f: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
        f(list.try_into().map_err(|_| number_error(N, list.len()))?)
    }
}

impl Outputs for Tensor {
    fn into_list(self) -> Vec<Tensor> {
        vec![self]
    }
}

impl Outputs for Vec<Tensor> {
    fn into_list(self) -> Vec<Tensor> {
        self
    }
}

impl<const N: usize> Outputs for [Tensor; N] {
    fn into_list(self) -> Vec<Tensor> {
        self.into()
    }
}

/// A result and a list of states, as recurrent layers return them.
impl Outputs for (Tensor, Vec<Tensor>) {
    fn into_list(self) -> Vec<Tensor> {
        let mut list = vec![self.0];
        list.extend(self.1);
        list
    }
}

macro_rules! tuple {
    ($count:literal: $($x:ident $tensor:ident),*) => {
        impl Inputs for ($($tensor,)*) {
            const SEVERAL: bool = true;

            fn with<R>(list: &[Tensor], f: impl FnOnce(&Self) -> Result<R>) -> Result<R> {
                let [$($x),*] = list else { return Err(number_error($count, list.len())) };
                f(&($($x.clone(),)*))
            }
        }

        impl Outputs for ($($tensor,)*) {
            fn into_list(self) -> Vec<Tensor> {
                let ($($x,)*) = self;
                vec![$($x),*]
            }
        }
    };
}
tuple!(2: a Tensor, b Tensor);
tuple!(3: a Tensor, b Tensor, c Tensor);
tuple!(4: a Tensor, b Tensor, c Tensor, d Tensor);
