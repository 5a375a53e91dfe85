//! [`Reshape`]: changes the shape of each example.

use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::shape::{Shape, Sizes};
use crate::tensor::Tensor;

layer! {
    /// Reshapes each example: input `[N,..]`, result `[N, target_shape]`, without a copy. One size may be -1: the layer
    /// infers it.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::Reshape};
    /// let layer = Reshape::new([-1, 2]);
    /// assert_eq!(layer.call(&tf::Tensor::zeros([5, 3, 4])?, INFERENCE)?.shape(), [5, 6, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Reshape {
        /// Creates a layer with this output shape, without the batch axis.
        new(target_shape: Sizes as impl Into<Sizes>);
    }
}

impl Reshape {
    /// The shape for `[batch, rest]`; `None` if the elements do not fit.
    fn shape(&self, batch: usize, rest: &[usize]) -> Option<Shape> {
        let wanted = &self.target_shape.0;
        let elements = Shape::new(rest).checked_elements()?;
        let known = wanted.iter().filter(|size| **size != -1);
        let known: Vec<usize> = known.map(|&size| size.try_into().ok()).collect::<Option<_>>()?;
        let product = Shape::new(&known).checked_elements()?;
        let open = match wanted.len() - known.len() {
            0 if product == elements => 0,
            1 if product > 0 && elements % product == 0 => elements / product,
            _ => return None,
        };
        let mut shape = Shape::new(&[batch]);
        wanted.iter().for_each(|&size| shape.push(usize::try_from(size).unwrap_or(open)));
        Some(shape)
    }
}

impl Layer for Reshape {
    configured!();
    unmasked!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let shape = x.shape().split_first().and_then(|(&batch, rest)| self.shape(batch, rest));
        let shape = shape.ok_or_else(|| {
            Error::Shape(message!(
                "Reshape: the input is {:?}, and its examples do not fit the target_shape {:?}. The batch axis \
                 stays; the other axes must keep the number of elements, and one size may be -1.",
                x.shape(),
                self.target_shape.0
            ))
        })?;
        self.policy.autocast(x)?.reshape_to(shape)
    }
}
