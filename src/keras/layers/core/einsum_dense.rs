//! [`EinsumDense`]: a dense layer along the axes in an equation.

use crate::error::{Error, Result, message};
use crate::keras::layers::Layer;
use crate::keras::layers::macros::{configured, layer, unmasked};
use crate::keras::{Activation, Context, Regularizer, Weight};
use crate::ops::einsum;
use crate::tensor::Tensor;

/// The output shape without the batch axis; a size of `None` is taken from the input. Convert it from one size, or from
/// arrays and lists of sizes or of `Option`s of sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutputShape(pub(in crate::keras) Vec<Option<usize>>);

impl From<usize> for OutputShape {
    fn from(size: usize) -> Self {
        OutputShape(vec![Some(size)])
    }
}

impl<const N: usize> From<[usize; N]> for OutputShape {
    fn from(sizes: [usize; N]) -> Self {
        OutputShape(sizes.into_iter().map(Some).collect())
    }
}

impl<const N: usize> From<[Option<usize>; N]> for OutputShape {
    fn from(sizes: [Option<usize>; N]) -> Self {
        OutputShape(sizes.into())
    }
}

impl From<Vec<Option<usize>>> for OutputShape {
    fn from(sizes: Vec<Option<usize>>) -> Self {
        OutputShape(sizes)
    }
}

/// The letters of the equation's output that have a bias; `None`: no bias.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BiasAxes(Option<String>);

impl BiasAxes {
    fn given(&self) -> bool {
        self.0.is_some()
    }
}

impl From<&str> for BiasAxes {
    fn from(letters: &str) -> Self {
        BiasAxes(Some(letters.into()))
    }
}

impl From<Option<&str>> for BiasAxes {
    fn from(letters: Option<&str>) -> Self {
        BiasAxes(letters.map(Into::into))
    }
}

#[cfg(feature = "json")]
mod json {
    use super::{BiasAxes, OutputShape};
    use crate::keras::ConfigValue;
    use serde_json::Value;

    impl ConfigValue for OutputShape {
        fn to_json(&self) -> Result<Value, String> {
            self.0.to_json()
        }

        fn from_json(value: &Value) -> Result<Self, String> {
            if value.is_array() {
                return Vec::from_json(value).map(OutputShape);
            }
            usize::from_json(value).map(OutputShape::from)
        }
    }

    impl ConfigValue for BiasAxes {
        fn to_json(&self) -> Result<Value, String> {
            self.0.to_json()
        }

        fn from_json(value: &Value) -> Result<Self, String> {
            Option::from_json(value).map(BiasAxes)
        }
    }
}

layer! {
    /// `y = activation(einsum(equation, x, kernel) + bias)`: a dense layer along arbitrary axes, for inputs of any rank.
    ///
    /// The equation has the form `ab,bc->ac`, `...ab,bc->...ac` or `ab...,bc->ac...`. The sizes of the kernel are those
    /// of its letters in the input and in the output.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{self as tf, Trackable};
    /// use tf::keras::{INFERENCE, Layer, layers::EinsumDense};
    /// let layer = EinsumDense::new("abc,cd->abd", [None, Some(64)]).bias_axes("d");
    /// assert_eq!(layer.call(&tf::Tensor::zeros([8, 32, 128])?, INFERENCE)?.shape(), [8, 32, 64]);
    /// assert_eq!(layer.variables()[0].shape(), [128, 64]);
    /// assert_eq!(layer.variables()[1].shape(), [64]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct EinsumDense {
        /// Creates a layer with this equation and this output shape (without the batch axis): no bias, a Glorot uniform
        /// kernel initializer.
        new(equation: String as impl Into<String>, output_shape: OutputShape as impl Into<OutputShape>);
        options {
            /// Sets the letters of the output that have a bias. Default: none.
            bias_axes: BiasAxes as impl Into<BiasAxes> = BiasAxes(None),
            /// Sets the activation function.
            activation: Activation = Activation::Linear,
            /// Sets the regularizer applied to the layer's output.
            activity_regularizer: Option<Regularizer> as impl Into<Option<Regularizer>> = None,
        }
        weights {
            kernel = Weight::new() => [kernel_initializer, kernel_regularizer, kernel_constraint],
            bias if bias_axes.given() = Weight::zeros() => [bias_initializer, bias_regularizer, bias_constraint],
        }
    }
}

/// The sizes of the kernel and the bias for an input, from the equation.
struct Sizes {
    kernel: Vec<usize>,
    bias: Vec<usize>,
}

impl EinsumDense {
    fn error(&self, x: &Tensor, why: &str) -> Error {
        Error::Shape(message!(
            "EinsumDense: for the input {:?}, the equation '{}' and the output_shape {:?}: {why}.",
            x.shape(),
            self.equation,
            self.output_shape.0
        ))
    }

    fn sizes(&self, x: &Tensor) -> Result<Sizes> {
        const FORM: &str =
            "the equation must be X,Y->Z, ...X,Y->...Z or X...,Y->Z..., X, Y and Z letters";
        let split = self.equation.split_once("->").and_then(|(operands, result)| {
            let (input, kernel) = operands.split_once(',')?;
            Some([input.trim(), kernel.trim(), result.trim()])
        });
        let [input, kernel, result] = split.ok_or_else(|| self.error(x, FORM))?;
        let left = input.starts_with("...") && result.starts_with("...");
        let right = input.ends_with("...") && result.ends_with("...");
        let letters = |text: &str| -> Option<Vec<char>> {
            let text = match (left, right) {
                (true, _) => text.strip_prefix("...")?,
                (_, true) => text.strip_suffix("...")?,
                _ => text,
            };
            let all = !text.is_empty() && text.chars().all(|letter| letter.is_ascii_alphabetic());
            all.then(|| text.chars().collect())
        };
        let kernel: Vec<char> = kernel.chars().collect();
        let (Some(input), Some(result)) = (letters(input), letters(result)) else {
            return Err(self.error(x, FORM));
        };
        let more = x.rank().checked_sub(input.len());
        let Some(more) = more.filter(|more| *more == 0 || left || right) else {
            return Err(self.error(x, "the input does not have the axes that the equation names"));
        };
        let elided = if left { &x.shape()[..more] } else { &x.shape()[input.len()..] };
        let of_input = if left { &x.shape()[more..] } else { &x.shape()[..input.len()] };
        // The full shape of the result, as far as it is specified.
        let mut given: Vec<Option<usize>> = vec![x.shape().first().copied()];
        if left && more > 0 {
            given.extend(elided[1..].iter().copied().map(Some));
        }
        given.extend(&self.output_shape.0);
        let of_result = if left { given.get(more..).unwrap_or_default().to_vec() } else { given };
        if of_result.len() != result.len() {
            return Err(self.error(
                x,
                "the output_shape must have a size for each letter of the result but the batch's",
            ));
        }
        let in_input = |letter: char| Some(of_input[input.iter().position(|own| *own == letter)?]);
        let in_result = |letter: char| of_result[result.iter().position(|own| *own == letter)?];
        for letter in input.iter().copied() {
            if in_result(letter).is_some_and(|size| Some(size) != in_input(letter)) {
                return Err(self.error(
                    x,
                    &format!("'{letter}' has different sizes in the input and in the result"),
                ));
            }
        }
        let size = |letter: char| {
            in_input(letter)
                .or_else(|| in_result(letter))
                .ok_or_else(|| self.error(x, &format!("the size of '{letter}' is not known")))
        };
        let unknown =
            result.iter().find(|letter| !input.contains(letter) && !kernel.contains(letter));
        if let Some(letter) = unknown {
            return Err(self.error(
                x,
                &format!("'{letter}' of the result is neither in the input nor in the kernel"),
            ));
        }
        let kernel = kernel.into_iter().map(size).collect::<Result<Vec<_>>>()?;
        Ok(Sizes { kernel, bias: self.bias_sizes(x, &result, size, if left { 0 } else { more })? })
    }

    /// The bias broadcasts against the result: from its first letter on it has the letter's size, or 1.
    fn bias_sizes(
        &self,
        x: &Tensor,
        result: &[char],
        size: impl Fn(char) -> Result<usize>,
        behind: usize,
    ) -> Result<Vec<usize>> {
        let Some(axes) = &self.bias_axes.0 else { return Ok(Vec::new()) };
        if let Some(letter) = axes.chars().find(|letter| !result.contains(letter)) {
            return Err(self.error(x, &format!("'{letter}' of bias_axes is not in the result")));
        }
        let first = result.iter().position(|letter| axes.contains(*letter)).unwrap_or(result.len());
        let along = |letter: &char| if axes.contains(*letter) { size(*letter) } else { Ok(1) };
        let mut sizes = result[first..].iter().map(along).collect::<Result<Vec<usize>>>()?;
        sizes.extend(std::iter::repeat_n(1, behind));
        Ok(sizes)
    }
}

impl Layer for EinsumDense {
    configured!();
    unmasked!();

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        let x = &self.policy.autocast(x)?;
        let sizes = self.sizes(x)?;
        let kernel = self.kernel.get(x, sizes.kernel)?;
        let mut sums = einsum(&self.equation, [x, &kernel])?;
        if self.bias_axes.given() {
            sums = sums.add(self.bias.get(x, sizes.bias)?)?;
        }
        let y = self.activation.apply(&sums)?;
        cx.regularize(self.activity_regularizer.as_ref(), &y)?;
        Ok(y)
    }
}
