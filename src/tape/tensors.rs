//! The arguments and results of functions that are differentiated as a whole: one tensor, or several.

use crate::tensor::Tensor;

/// A tensor, an array of tensors, or a vector of tensors.
pub trait Tensors: Sized {
    #[doc(hidden)]
    fn list(&self) -> Vec<Tensor>;

    /// The same container with other tensors, in the same number.
    #[doc(hidden)]
    fn from_list(list: Vec<Tensor>) -> Self;
}

impl Tensors for Tensor {
    fn list(&self) -> Vec<Tensor> {
        vec![self.clone()]
    }

    fn from_list(mut list: Vec<Tensor>) -> Self {
        list.swap_remove(0)
    }
}

impl<const N: usize> Tensors for [Tensor; N] {
    fn list(&self) -> Vec<Tensor> {
        self.to_vec()
    }

    fn from_list(list: Vec<Tensor>) -> Self {
        let mut list = list.into_iter();
        std::array::from_fn(|_| list.next().expect("as many tensors as there were"))
    }
}

impl Tensors for Vec<Tensor> {
    fn list(&self) -> Vec<Tensor> {
        self.clone()
    }

    fn from_list(list: Vec<Tensor>) -> Self {
        list
    }
}
