//! [`Add`], [`Subtract`], [`Multiply`], [`Average`], [`Maximum`], [`Minimum`]: several tensors, element by element.

use crate::error::{Error, Result, message};
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer};
use crate::keras::{Context, DTypePolicy};
use crate::tensor::Tensor;

/// Combines the inputs from the first to the last. As in Keras, inputs of lower rank get axes of size 1 after the batch axis.
fn fold(
    layer: &str,
    inputs: &[Tensor],
    policy: DTypePolicy,
    combine: fn(&Tensor, Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    if inputs.len() < 2 {
        return Err(Error::Shape(message!(
            "{layer}: {} inputs were given; it needs at least two.",
            inputs.len()
        )));
    }
    let rank = inputs.iter().map(Tensor::rank).max().unwrap_or(0);
    let mut all = inputs.iter().map(|x| {
        let mut shape = x.shape().to_vec();
        if x.rank() > 0 {
            shape.splice(1..1, std::iter::repeat_n(1, rank - x.rank()));
        }
        policy.autocast(x)?.reshape_to(shape.into())
    });
    let first = all.next().unwrap_or_else(|| Tensor::zeros([]))?;
    all.try_fold(first, |sum, x| combine(&sum, x?))
}

macro_rules! elementwise {
    ($(#[$doc:meta])* $layer:ident by $combine:expr $(, then |$inputs:ident, $y:ident| $then:expr)?) => {
        layer! {
            $(#[$doc])*
            pub struct $layer {
                /// Creates the layer.
                new();
            }
        }

        impl Layer<[Tensor]> for $layer {
            configured!();

            fn call(&self, inputs: &[Tensor], _cx: Context<'_>) -> Result<Tensor> {
                let y = fold(stringify!($layer), inputs, self.policy, $combine)?;
                $(let y = { let ($inputs, $y) = (inputs, y); $then? };)?
                Ok(y)
            }
        }
    };
}

// The first becomes `pub struct Add` and a `Layer<[Tensor]>` that folds its inputs by `Tensor::add`.
elementwise! {
    /// The sum of several tensors, with broadcasting.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::Add};
    /// let inputs = [tf::constant([[1.0, 2.0]])?, tf::constant([[10.0, 20.0]])?];
    /// assert_eq!(Add::new().call(&inputs[..], INFERENCE)?.to_vec::<f32>()?, [11.0, 22.0]);
    /// # Ok(())
    /// # }
    /// ```
    Add by |a, b| a.add(b)
}
elementwise! {
    /// The first tensor minus the second; takes exactly two tensors.
    Subtract by |a, b| a.subtract(b), then |inputs, y| match inputs.len() {
        2 => Ok::<Tensor, Error>(y),
        count => Err(Error::Shape(message!("Subtract: {count} inputs were given; it needs two."))),
    }
}
elementwise! {
    /// The element-wise product of several tensors.
    Multiply by |a, b| a.multiply(b)
}
elementwise! {
    /// The element-wise mean of several tensors.
    Average by |a, b| a.add(b), then |inputs, y| y.divide(inputs.len() as f32)
}
elementwise! {
    /// The element-wise maximum of several tensors.
    Maximum by |a, b| a.maximum(b)
}
elementwise! {
    /// The element-wise minimum of several tensors.
    Minimum by |a, b| a.minimum(b)
}
