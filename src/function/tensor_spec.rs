//! [`TensorSpec`]: what a function's tensor must be, where some sizes may be open.

use std::fmt;

use crate::dtype::DType;
use crate::graph::Spec;
use crate::tensor::Tensor;

/// A dtype and a shape in which some sizes may be open (`None`); TensorFlow's `tf.TensorSpec`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let images = tf::TensorSpec::new([None, Some(28), Some(28)], tf::DType::U8);
/// assert_eq!(images.to_string(), "u8[?, 28, 28]");
/// assert!(images.is_compatible_with(&tf::Tensor::zeros([5, 28, 28])?.cast(tf::DType::U8)?));
/// assert!(!images.is_compatible_with(&tf::Tensor::zeros([5, 28])?));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TensorSpec {
    shape: Vec<Option<usize>>,
    dtype: DType,
}

impl TensorSpec {
    /// A spec of these sizes.
    pub fn new(shape: impl AsRef<[Option<usize>]>, dtype: DType) -> Self {
        TensorSpec { shape: shape.as_ref().to_vec(), dtype }
    }

    /// The sizes; `None` is open.
    pub fn shape(&self) -> &[Option<usize>] {
        &self.shape
    }

    /// The dtype.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Whether the tensor has this dtype and as many axes, each of the spec's size where that is not open.
    pub fn is_compatible_with(&self, tensor: &Tensor) -> bool {
        let shape = tensor.shape();
        tensor.dtype() == self.dtype
            && shape.len() == self.shape.len()
            && self.shape.iter().zip(shape).all(|(own, size)| own.is_none_or(|own| own == *size))
    }
}

impl From<&Spec> for TensorSpec {
    fn from(spec: &Spec) -> Self {
        let sizes: Vec<Option<usize>> = spec.shape.iter().copied().map(Some).collect();
        TensorSpec::new(sizes, spec.dtype)
    }
}

/// The spec of a tensor, without open sizes; TensorFlow's `TensorSpec.from_tensor`.
impl From<&Tensor> for TensorSpec {
    fn from(tensor: &Tensor) -> Self {
        TensorSpec::from(tensor.spec())
    }
}

/// `f32[?, 3]`.
impl fmt::Display for TensorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[", self.dtype)?;
        for (at, size) in self.shape.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            match size {
                Some(size) => write!(f, "{comma}{size}")?,
                None => write!(f, "{comma}?")?,
            }
        }
        f.write_str("]")
    }
}
