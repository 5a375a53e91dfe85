//! [`Dense`]: every output sums all inputs.

use super::Layer;
use crate::error::{Error, Result, message};
use crate::keras::{Activation, Context, Initializer, Weight};
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::trackable::Trackable;

/// `y = activation(x kernel + bias)`: input `[..,D]` of rank 2 or more, kernel `[D,U]`, bias `[U]`, result `[..,U]`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::Trackable;
/// use tf::keras::{INFERENCE, Initializer, Layer, layers::Dense};
/// let layer = Dense::new(2).kernel_initializer(Initializer::Ones);
/// let y = layer.call(&tf::constant([[1.0, 2.0, 3.0]])?, INFERENCE)?;
/// assert_eq!(y.to_vec::<f32>()?, [6.0, 6.0]);
/// let (name, kernel) = &layer.named_variables()[0];
/// assert_eq!((&**name, kernel.shape()), ("kernel", &[3, 2][..]));
/// # Ok(())
/// # }
/// ```
#[derive(Trackable)]
pub struct Dense {
    units: usize,
    activation: Activation,
    kernel: Weight,
    bias: Option<Weight>,
}

impl Dense {
    /// A layer of `units` outputs: no activation, a Glorot uniform kernel, a bias of zeros.
    pub fn new(units: usize) -> Self {
        Dense {
            units,
            activation: Activation::Linear,
            kernel: Weight::new(),
            bias: Some(Weight::zeros()),
        }
    }

    /// Sets the function applied to the sums.
    pub fn activation(mut self, activation: Activation) -> Self {
        self.activation = activation;
        self
    }

    /// Sets whether the layer has a bias.
    pub fn use_bias(mut self, use_bias: bool) -> Self {
        let bias = self.bias.take().unwrap_or_else(Weight::zeros);
        self.bias = use_bias.then_some(bias);
        self
    }

    /// Sets the numbers at which the kernel starts.
    pub fn kernel_initializer(mut self, initializer: Initializer) -> Self {
        self.kernel = self.kernel.initializer(initializer);
        self
    }

    /// Sets the numbers at which the bias starts, if there is one.
    pub fn bias_initializer(mut self, initializer: Initializer) -> Self {
        self.bias = self.bias.map(|bias| bias.initializer(initializer));
        self
    }

    fn rank_error(&self, x: &Tensor) -> Error {
        Error::Shape(message!(
            "Dense: the input is {:?}; it must be [.., D] with at least two axes. For a single row use expand_dims(0).",
            x.shape()
        ))
    }
}

impl Layer for Dense {
    fn call(&self, x: &Tensor, _cx: Context<'_>) -> Result<Tensor> {
        let [rows @ .., inputs] = x.shape() else { return Err(self.rank_error(x)) };
        if rows.is_empty() {
            return Err(self.rank_error(x));
        }
        let kernel = self.kernel.get(x, [*inputs, self.units])?;
        let flat = x.reshape_to([rows.iter().product(), *inputs].into())?;
        let mut sums = flat.matmul(kernel)?;
        if let Some(bias) = &self.bias {
            sums = sums.add(bias.get(x, [self.units])?)?;
        }
        let mut shape = Shape::new(rows);
        shape.push(self.units);
        self.activation.apply(&sums.reshape_to(shape)?)
    }
}
