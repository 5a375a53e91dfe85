//! [`Input`]: the inputs of functional models.

use std::fmt;
use std::ops::Deref;

use super::probe::of_input;
use super::symbol::{Node, Origin, PartialShape, SymbolSpec, SymbolicTensor};
use crate::dtype::DType;

/// The input of a [`Functional`](super::Functional) model: a symbol for tensors `[N,..]`. The shape excludes the batch
/// axis; `None` is a size that varies.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{DType, keras::Input};
/// let image = Input::new([28, 28, 1]).with_name("image");
/// assert_eq!(image.shape(), [None, Some(28), Some(28), Some(1)]);
/// let words = Input::new([None]).with_dtype(DType::I32).with_batch_size(8);
/// assert_eq!((words.to_string().as_str(), words.dtype()), ("(8, None) i32", DType::I32));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Input(SymbolicTensor);

impl Input {
    /// Creates an input of this shape, without the batch axis: `f32`, any batch size.
    pub fn new(shape: impl Into<PartialShape>) -> Self {
        let mut sizes = shape.into().0;
        sizes.insert(0, None);
        Input::with(sizes, DType::F32, None)
    }

    /// Creates an input of this shape, including the batch axis.
    pub fn batch_shape(shape: impl Into<PartialShape>) -> Self {
        Input::with(shape.into().0, DType::F32, None)
    }

    /// Sets the element type.
    pub fn with_dtype(self, dtype: DType) -> Self {
        Input::with(self.shape().to_vec(), dtype, self.given_name())
    }

    /// Sets the name; the default is `input_layer`, `input_layer_1`, ...
    pub fn with_name(self, name: &str) -> Self {
        Input::with(self.shape().to_vec(), self.0.dtype(), Some(name.to_string()))
    }

    /// Sets the batch size, which varies by default.
    pub fn with_batch_size(self, size: usize) -> Self {
        let mut shape = self.shape().to_vec();
        if let Some(batch) = shape.first_mut() {
            *batch = Some(size);
        }
        Input::with(shape, self.0.dtype(), self.given_name())
    }

    fn with(shape: Vec<Option<usize>>, dtype: DType, name: Option<String>) -> Self {
        let probe = of_input(&shape, 0);
        let node = Node::new(Origin::Input { name, shape: shape.clone() });
        Input(SymbolicTensor::new(node, 0, SymbolSpec { shape, dtype, probe }))
    }

    fn given_name(&self) -> Option<String> {
        match &self.0.0.node.origin {
            Origin::Input { name, .. } => name.clone(),
            Origin::Call { .. } => None,
        }
    }
}

/// An input is a symbol.
impl Deref for Input {
    type Target = SymbolicTensor;

    fn deref(&self) -> &SymbolicTensor {
        &self.0
    }
}

impl From<Input> for SymbolicTensor {
    fn from(input: Input) -> Self {
        input.0
    }
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Input({})", self.0)
    }
}
