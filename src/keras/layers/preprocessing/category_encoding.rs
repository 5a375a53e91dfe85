//! [`CategoryEncoding`]: encodes class indices as rows of zeros and ones.

#[cfg(feature = "preprocessing")]
mod host;

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::Context;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::keras::layers::shapes::positive;
use crate::ops::one_hot;
use crate::tensor::Tensor;

/// The output format of [`CategoryEncoding`], [`Discretization`](super::Discretization), and the layers for tables and text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputMode {
    /// Integer indices.
    Int,
    /// One-hot: one row per index, with 1 at that index.
    OneHot,
    /// Multi-hot: one row per example, with 1 at each of its indices.
    MultiHot,
    /// Like `MultiHot`, but with the number of occurrences of each index.
    Count,
    /// Like `Count`, with each number multiplied by the weight of its index. Only lookups and `TextVectorization` have weights.
    TfIdf,
}

impl OutputMode {
    /// Keras's name.
    pub(super) fn name(self) -> &'static str {
        match self {
            OutputMode::Int => "int",
            OutputMode::OneHot => "one_hot",
            OutputMode::MultiHot => "multi_hot",
            OutputMode::Count => "count",
            OutputMode::TfIdf => "tf_idf",
        }
    }
}

#[cfg(feature = "json")]
impl crate::keras::ConfigValue for OutputMode {
    fn to_json(&self) -> std::result::Result<serde_json::Value, String> {
        Ok(self.name().into())
    }

    fn from_json(value: &serde_json::Value) -> std::result::Result<Self, String> {
        match value.as_str() {
            Some("int") => Ok(OutputMode::Int),
            Some("one_hot") => Ok(OutputMode::OneHot),
            Some("multi_hot" | "binary") => Ok(OutputMode::MultiHot),
            Some("count") => Ok(OutputMode::Count),
            Some("tf_idf" | "tf-idf") => Ok(OutputMode::TfIdf),
            _ => Err("int, one_hot, multi_hot, count or tf_idf".into()),
        }
    }
}

/// The rows for `ids`, with `depth` elements each, in `dtype`.
pub(super) fn encode(
    layer: &str,
    ids: &Tensor,
    depth: usize,
    mode: OutputMode,
    dtype: DType,
) -> Result<Tensor> {
    positive(layer, "the number of classes", &[depth])?;
    let ids = ids.cast(DType::I32)?;
    let alone = mode == OutputMode::OneHot && ids.rank() > 1 && ids.shape().last() == Some(&1);
    let rows = match mode {
        OutputMode::Int => return Ok(ids),
        OutputMode::OneHot if alone => one_hot(&ids.squeeze(-1)?, depth)?,
        OutputMode::OneHot => one_hot(&ids, depth)?,
        _ if ids.rank() == 0 || ids.is_empty() => {
            return Err(Error::Shape(message!(
                "{layer}: the input is {:?}; it must be [N, K] or [K], with numbers in it.",
                ids.shape()
            )));
        }
        OutputMode::TfIdf => {
            return Err(Error::Data(message!(
                "{layer}: the output format is tf_idf, and the layer has no weights. Take count."
            )));
        }
        OutputMode::MultiHot => one_hot(&ids, depth)?.reduce_max(-2)?,
        OutputMode::Count => one_hot(&ids, depth)?.reduce_sum(-2)?,
    };
    rows.cast(dtype)
}

layer! {
    /// Encodes class indices `[N,K]` as rows `[N,num_tokens]` of zeros and ones, by default multi-hot. Indices outside
    /// `0..num_tokens` are ignored.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::CategoryEncoding};
    /// let y = CategoryEncoding::new(4).call(&tf::constant([[0, 2], [3, 3]])?, INFERENCE)?;
    /// assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct CategoryEncoding {
        /// Creates a layer for this number of classes.
        new(num_tokens: usize);
        options {
            /// Sets the output format; with [`OutputMode::Int`] the indices stay as they are.
            output_mode: OutputMode = OutputMode::MultiHot,
        }
    }
}

impl Layer for CategoryEncoding {
    configured!();
    unmasked!();

    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let dtype = self.policy.compute_dtype();
        encode("CategoryEncoding", x, self.num_tokens, self.output_mode, dtype)
    }
}
