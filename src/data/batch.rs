//! [`Batch`]: the examples of one step, and the values that convert to a batch.

use ndarray::{Array, Dimension};

use crate::error::{Error, Result};
use crate::tensor::{HostElement, HostOptions, Tensor};

/// The examples that go through a model together: inputs, the targets, and the weight of each example. The first axis of every
/// tensor counts the examples.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Tensor, data::{Batch, IntoBatch}};
/// let (x, y) = (Tensor::zeros([8, 3])?, Tensor::zeros([8])?);
/// let batch: Batch = (&x, &y).into_batch()?;
/// assert_eq!((batch.len(), batch.x.len(), batch.y.len()), (8, 1, 1));
/// let two_inputs = ([&x, &x], &y).into_batch()?;
/// assert_eq!(two_inputs.x.len(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// The model's inputs.
    pub x: Vec<Tensor>,
    /// The target of each output; empty if the model is neither trained nor evaluated.
    pub y: Vec<Tensor>,
    /// The weights of the examples: none, one tensor for all outputs, or one for each.
    pub sample_weight: Vec<Tensor>,
}

impl Batch {
    /// A batch of inputs only.
    ///
    /// # Errors
    /// As [`IntoTensors::into_tensors`].
    pub fn new(x: impl IntoTensors) -> Result<Self> {
        Ok(Batch { x: x.into_tensors()?, ..Batch::default() })
    }

    /// The number of examples: the first axis of the first input, 0 if there is none.
    pub fn len(&self) -> usize {
        self.x.first().and_then(|x| x.shape().first()).copied().unwrap_or(0)
    }

    /// True if there is no example.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A tensor or several: a batch's inputs, its targets or its weights. Arrays are uploaded to the device: `f64`, `i64` and `u64`
/// as `f32`, `i32` and `u32`, all others as they are.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be part of a batch",
    note = "a batch has arrays or tensors whose first axis counts the examples; `dataset.batch(32)` makes them from \
            single ones"
)]
pub trait IntoTensors {
    /// The tensors, in order.
    ///
    /// # Errors
    /// As [`Tensor::from_slice_with`]: an integer that its type on the device cannot represent, no device, no memory.
    fn into_tensors(self) -> Result<Vec<Tensor>>;
}

impl<A: HostElement, D: Dimension> IntoTensors for Array<A, D> {
    fn into_tensors(self) -> Result<Vec<Tensor>> {
        Ok(vec![Tensor::from_array_with(&self, HostOptions::new().rounding(true))?])
    }
}

impl IntoTensors for Tensor {
    fn into_tensors(self) -> Result<Vec<Tensor>> {
        Ok(vec![self])
    }
}

impl IntoTensors for &Tensor {
    fn into_tensors(self) -> Result<Vec<Tensor>> {
        Ok(vec![self.clone()])
    }
}

impl<const N: usize> IntoTensors for [Tensor; N] {
    fn into_tensors(self) -> Result<Vec<Tensor>> {
        Ok(self.into())
    }
}

impl<const N: usize> IntoTensors for [&Tensor; N] {
    fn into_tensors(self) -> Result<Vec<Tensor>> {
        Ok(self.into_iter().cloned().collect())
    }
}

impl IntoTensors for Vec<Tensor> {
    fn into_tensors(self) -> Result<Vec<Tensor>> {
        Ok(self)
    }
}

impl IntoTensors for &[Tensor] {
    fn into_tensors(self) -> Result<Vec<Tensor>> {
        Ok(self.to_vec())
    }
}

macro_rules! tuples {
    ($(($($item:ident),+))*) => {$(
        impl<$($item: IntoTensors),+> IntoTensors for ($($item,)+) {
            #[allow(non_snake_case)]
            fn into_tensors(self) -> Result<Vec<Tensor>> {
                let ($($item,)+) = self;
                let mut tensors = Vec::new();
                $(tensors.extend($item.into_tensors()?);)+
                Ok(tensors)
            }
        }
    )*};
}
// A tuple has the tensors of its items.
tuples!((A, B)(A, B, C)(A, B, C, D)(A, B, C, D, E)(A, B, C, D, E, F));

/// A value that converts to a [`Batch`]: a batch itself, `x` or `(x,)` alone, `(x, y)`, `(x, y, sample_weight)`, each a tensor,
/// a host array or several of them; or the [`Result`] of making one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a batch",
    note = "a batch is `x`, `(x, y)` or `(x, y, sample_weight)` of arrays or tensors; `dataset.batch(32)` makes them \
            from single examples"
)]
pub trait IntoBatch {
    /// The batch.
    ///
    /// # Errors
    /// The error of making the batch.
    fn into_batch(self) -> Result<Batch>;
}

impl IntoBatch for Batch {
    fn into_batch(self) -> Result<Batch> {
        Ok(self)
    }
}

impl IntoBatch for &Batch {
    fn into_batch(self) -> Result<Batch> {
        Ok(self.clone())
    }
}

impl IntoBatch for Tensor {
    fn into_batch(self) -> Result<Batch> {
        Batch::new(self)
    }
}

impl<A: HostElement, D: Dimension> IntoBatch for Array<A, D> {
    fn into_batch(self) -> Result<Batch> {
        Batch::new(self)
    }
}

impl<X: IntoTensors> IntoBatch for (X,) {
    fn into_batch(self) -> Result<Batch> {
        Batch::new(self.0)
    }
}

impl<X: IntoTensors, Y: IntoTensors> IntoBatch for (X, Y) {
    fn into_batch(self) -> Result<Batch> {
        let (x, y) = (self.0.into_tensors()?, self.1.into_tensors()?);
        Ok(Batch { x, y, sample_weight: Vec::new() })
    }
}

impl<X: IntoTensors, Y: IntoTensors, W: IntoTensors> IntoBatch for (X, Y, W) {
    fn into_batch(self) -> Result<Batch> {
        let (x, y) = (self.0.into_tensors()?, self.1.into_tensors()?);
        Ok(Batch { x, y, sample_weight: self.2.into_tensors()? })
    }
}

impl<B: IntoBatch> IntoBatch for Result<B, Error> {
    fn into_batch(self) -> Result<Batch> {
        self?.into_batch()
    }
}
