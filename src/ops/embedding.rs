//! Embedding lookup: rows of a table by their indices.

use super::inventory::{ANY, Entry, OpKind, Values, one};
use super::{fill, select};
use crate::error::{Error, Result, message};
use crate::shape::Axes;
use crate::support::options::options;
use crate::tensor::{Tensor, constant};

options! {
    /// Options of the embedding lookup.
    #[derive(Debug, Clone, Copy, PartialEq)]
    pub struct EmbeddingLookupOptions {
        /// Rows with a larger norm are scaled to this norm; no maximum by default.
        max_norm: Option<f32> as impl Into<Option<f32>> = None,
    }
}

impl Tensor {
    /// Looks up the rows of `self` `[V, ..]` at `ids` (`i32`, any shape). An id out of range returns zeros, as in
    /// [`Tensor::gather`].
    ///
    /// The gradient is dense: zeros except for these rows. It is fused into the kernels that use it, so an optimizer's step
    /// that reads it is one kernel over the table, and the gradient itself takes no memory. TensorFlow's sparse gradients would
    /// avoid this kernel only for plain SGD: the moments of Adam or RMSprop change for all rows.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let table = tf::constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])?;
    /// let rows = table.embedding_lookup(&tf::constant([2, 0])?)?;
    /// assert_eq!(rows.to_vec::<f32>()?, [5.0, 6.0, 1.0, 2.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::DType`] if `ids` is not `i32`; [`Error::Index`] if `self` is a scalar.
    pub fn embedding_lookup(&self, ids: &Tensor) -> Result<Tensor> {
        self.embedding_lookup_with(ids, EmbeddingLookupOptions::new())
    }

    /// Like [`Tensor::embedding_lookup`], with options.
    ///
    /// # Errors
    /// As [`Tensor::embedding_lookup`], and [`Error::Index`] if `max_norm` is not above 0.
    pub fn embedding_lookup_with(
        &self,
        ids: &Tensor,
        options: EmbeddingLookupOptions,
    ) -> Result<Tensor> {
        let rows = self.gather(ids, 0)?;
        let Some(most) = options.max_norm else { return Ok(rows) };
        if most.is_nan() || most <= 0.0 {
            return Err(Error::Index(message!(
                "EmbeddingLookup: max_norm is {most}; it must be above 0."
            )));
        }
        let axes: Vec<i64> = (ids.rank() as i64..rows.rank() as i64).collect();
        let sum = rows.square()?.reduce_sum(Axes::from(&axes[..]).keepdims(true))?;
        // The square root has no derivative at 0, which would make the gradient of a row of zeros NaN.
        let number = |v: f32| {
            fill(rows.device(), "EmbeddingLookup", Default::default(), v.into(), rows.dtype())
        };
        let none = sum.equal(0.0)?;
        let norm = select(&none, &number(0.0)?, &select(&none, &number(1.0)?, &sum)?.sqrt()?)?;
        rows.multiply(most)?.divide(norm.maximum(most)?)
    }
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] =
    &[Entry::new(OpKind::Composed, "embedding_lookup", &["tf.nn.embedding_lookup"], |c| {
        let most = c.float("max_norm")?.map(|most| most as f32);
        let options = EmbeddingLookupOptions::new().max_norm(most);
        one(c.arg("params")?.embedding_lookup_with(c.arg("ids")?, options))
    })
    .forms(&["embedding_lookup_with"])
    .cases(|cases| {
        cases.of_shape("embedding_lookup", &[4, 3], |x| {
            x.embedding_lookup(&constant([[2, 0], [2, 3]])?)
        });
        // All rows are longer than the first number, and none is longer than the second: there is a kink between.
        for most in [0.5, 10.0] {
            let name = format!("embedding_lookup_with max_norm {most}");
            cases.add(name, &[(&[4, 3], Values::Away)], move |x| {
                let options = EmbeddingLookupOptions::new().max_norm(most);
                x[0].embedding_lookup_with(&constant([2, 0, 2, 1])?, options)
            });
        }
        cases.add("embedding_lookup_with of zeros", &[(&[4, 3], ANY)], |x| {
            let options = EmbeddingLookupOptions::new().max_norm(1.0);
            x[0].multiply(0.0)?.embedding_lookup_with(&constant([2, 0])?, options)
        });
    })];
