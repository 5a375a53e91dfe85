//! [`Dense`]: every output sums all inputs.

use crate::error::{Error, Result, message};
use crate::keras::dtype_policy::integers_as_floats;
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::keras::{Activation, Context, Regularizer, Weight};
use crate::shape::Shape;
use crate::tensor::Tensor;

layer! {
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
    pub struct Dense {
        /// Creates a layer with `units` outputs: no activation, a Glorot uniform kernel initializer, a bias of zeros.
        new(units: usize);
        options {
            /// Sets the activation function.
            activation: Activation = Activation::Linear,
            /// Sets whether the layer uses a bias.
            use_bias: bool = true,
            /// Sets the regularizer applied to the layer's output.
            activity_regularizer: Option<Regularizer> as impl Into<Option<Regularizer>> = None,
        }
        weights {
            kernel = Weight::new() => [kernel_initializer, kernel_regularizer, kernel_constraint],
            bias if use_bias = Weight::zeros() => [bias_initializer, bias_regularizer, bias_constraint],
        }
        class {
            pytorch(&[Torch::new("kernel", &["weight"], Permuted(&[1, 0])).over_features(), BIAS]);
        }
    }
}

impl Dense {
    fn rank_error(&self, x: &Tensor) -> Error {
        Error::Shape(message!(
            "Dense: the input is {:?}; it must be [.., D] with at least two axes. For a single row use expand_dims(0).",
            x.shape()
        ))
    }
}

impl Layer for Dense {
    configured!();

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        let x = &self.policy.autocast(&integers_as_floats(x)?)?;
        let [rows @ .., inputs] = x.shape() else { return Err(self.rank_error(x)) };
        if rows.is_empty() {
            return Err(self.rank_error(x));
        }
        let kernel = self.kernel.get(x, [*inputs, self.units])?;
        let flat = x.reshape_to([rows.iter().product(), *inputs].into())?;
        let mut sums = flat.matmul(kernel)?;
        if self.use_bias {
            sums = sums.add(self.bias.get(x, [self.units])?)?;
        }
        let mut shape = Shape::new(rows);
        shape.push(self.units);
        let y = self.activation.apply(&sums.reshape_to(shape)?)?;
        cx.regularize(self.activity_regularizer.as_ref(), &y)?;
        Ok(y)
    }
}
