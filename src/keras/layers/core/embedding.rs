//! [`Embedding`]: a row of a table for each number.

use crate::dtype::DType;
use crate::error::Result;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::keras::layers::shapes::positive;
use crate::keras::{Context, Initializer, Weight};
use crate::tensor::Tensor;

layer! {
    /// `y[.., d] = embeddings[x[..], d]`: indices `x` of any shape, a table `[input_dim, output_dim]`, result
    /// `[.., output_dim]`.
    ///
    /// Indices are `i32`, `u32`, or floats, which are rounded towards 0. An index that is not in the table gets a row
    /// of zeros, as in TensorFlow on GPUs, and no gradient. The gradient of the table sums the rows of each index,
    /// without building one-hot rows.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::Embedding};
    /// let layer = Embedding::new(1000, 64).mask_zero(true);
    /// let (y, mask) = layer.call_with_mask(&tf::constant([[7, 3, 0]])?, INFERENCE)?;
    /// assert_eq!(y.shape(), [1, 3, 64]);
    /// assert_eq!(mask.expect("it makes one").to_vec::<bool>()?, [true, true, false]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Embedding {
        /// Creates a layer for the indices below `input_dim`, each with a row of `output_dim` numbers, initialized
        /// uniformly in ±0.05.
        new(input_dim: usize, output_dim: usize);
        options {
            /// Sets whether index 0 is padding that is masked out, so that the result has a mask.
            mask_zero: bool = false,
        }
        weights {
            embeddings = Weight::new().initializer(Initializer::RandomUniform { low: -0.05, high: 0.05 })
                => [embeddings_initializer, embeddings_regularizer, embeddings_constraint],
        }
        makes_mask(mask_zero);
        class {
            pytorch(&[Torch::new("embeddings", &["weight"], Same)]);
        }
    }
}

impl Layer for Embedding {
    configured!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        positive("Embedding", "input_dim", &[self.input_dim])?;
        positive("Embedding", "output_dim", &[self.output_dim])?;
        let ids = x.cast(DType::I32)?;
        // For integer inputs, only the policy determines the dtype.
        let table = self.embeddings.get(&ids, [self.input_dim, self.output_dim])?;
        table.gather(&ids, 0)
    }

    fn compute_mask(&self, x: &Tensor, _mask: Option<&Tensor>) -> Result<Option<Tensor>> {
        self.mask_zero.then(|| x.not_equal(0)).transpose()
    }
}
