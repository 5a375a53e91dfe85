//! [`ConvLstm2D`] and its variants: an LSTM with convolutions instead of matrix products.

use super::cell::RnnCell;
use super::gates::{Kernels, expect_units, plus, started};
use super::macros::recurrent;
use super::walk::Sequence;
use crate::error::{Error, Result, message};
use crate::keras::{Activation, Context, Initializer, Weight};
use crate::ops::{ConvolutionOptions, Padding, Recurrence, concat};
use crate::random::Generator;
use crate::tensor::Tensor;

const GATES: usize = 4;

/// The output size along a spatial axis, from input, window, stride and dilation.
fn places([size, window, stride, dilation]: [usize; 4], padding: Padding) -> Option<usize> {
    let stride = Some(stride).filter(|&stride| stride > 0)?;
    match padding {
        Padding::Same => Some(size.div_ceil(stride)),
        _ => {
            let reach = window.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
            size.checked_sub(reach).map(|rest| rest / stride + 1)
        }
    }
}

/// `x` `[N,..,C]` by the kernel `[..,C,O]`; with masks, each gate's part by its own masked input.
fn convolved(
    x: &Tensor,
    kernel: &Tensor,
    masks: &[Tensor],
    options: &ConvolutionOptions,
) -> Result<Tensor> {
    if masks.is_empty() {
        return x.convolution(kernel, options.clone());
    }
    let wide = kernel.shape()[kernel.rank() - 1] / masks.len();
    let kernels = kernel.split_sizes(&vec![wide; masks.len()], -1)?;
    let one =
        |(mask, kernel): (&Tensor, &Tensor)| x.multiply(mask)?.convolution(kernel, options.clone());
    concat(&masks.iter().zip(&kernels).map(one).collect::<Result<Vec<_>>>()?, -1)
}

/// Four dropout masks; none if the rate is 0.
fn draws(x: &Tensor, rate: f32, generator: &Generator) -> Result<Vec<Tensor>> {
    let one = || x.ones_like()?.dropout(rate, generator);
    (0..if rate == 0.0 { 0 } else { GATES }).map(|_| one()).collect()
}

macro_rules! conv_lstm {
    ($layer:ident[$name:literal], $cell:ident, $rank:literal, $axes:literal, $(#[$doc:meta])*) => {
        recurrent! {
            $(#[$doc])*
            pub struct $layer[$name];

            #[doc = concat!("One step of a [`", stringify!($layer), "`]: that of an [`Lstm`](super::Lstm), with convolutions instead of products.")]
            pub struct $cell["ConvLSTMCell"];

            new(filters: usize, kernel_size: [usize; $rank]), $axes axes;
            options {
                /// Sets the strides of the input convolution. Default: 1.
                strides: [usize; $rank] = [1; $rank],
                /// Sets the padding mode of the input convolution. Default: no padding. The convolution of the state
                /// always keeps its size.
                padding: Padding = Padding::Valid,
                /// Sets the dilation rate of the input convolution. Default: 1.
                dilation_rate: [usize; $rank] = [1; $rank],
                /// Sets the activation function of the candidate and the output. Default: tanh.
                activation: Activation = Activation::Tanh,
                /// Sets the activation function of the gates. Default: sigmoid.
                recurrent_activation: Activation = Activation::Sigmoid,
                /// Sets whether the layer uses a bias. Default: `true`.
                use_bias: bool = true,
                /// Sets whether the bias of the forget gate starts at 1. Default: `true`.
                unit_forget_bias: bool = true,
                /// Sets the dropout rate of the input in training; one mask is used for all time steps. Default: 0.
                dropout: f32 = 0.0,
                /// Sets the dropout rate of the state in training; one mask is used for all time steps. Default: 0.
                recurrent_dropout: f32 = 0.0,
            }
            weights {
                kernel = Weight::new() => [kernel_initializer, kernel_regularizer, kernel_constraint],
                recurrent_kernel = Weight::new().initializer(Initializer::orthogonal(1.0))
                    => [recurrent_initializer, recurrent_regularizer, recurrent_constraint],
                bias if use_bias = Weight::zeros() => [bias_initializer, bias_regularizer, bias_constraint],
            }
        }

        impl $cell {
            fn kernels(&self, x: &Tensor) -> Result<Kernels> {
                expect_units($name, self.filters)?;
                let wide = GATES.saturating_mul(self.filters);
                let shape = |channels: usize| [&self.kernel_size[..], &[channels, wide]].concat();
                let bias = || started(&self.bias, self.unit_forget_bias).get(x, [wide]);
                Ok(Kernels {
                    kernel: self.kernel.get(x, shape(x.shape()[x.rank() - 1]))?,
                    recurrent: self.recurrent_kernel.get(x, shape(self.filters))?,
                    bias: if self.use_bias { Some(bias()?) } else { None },
                })
            }

            fn of_input(&self) -> ConvolutionOptions {
                ConvolutionOptions::new()
                    .strides(self.strides.to_vec())
                    .padding(self.padding)
                    .dilations(self.dilation_rate.to_vec())
            }

            /// The shape of the states for inputs of this width, `[B,..,filters]`.
            fn state_shape(&self, x: &Tensor, batch: usize) -> Result<Vec<usize>> {
                let field = &x.shape()[x.rank() - 1 - $rank..x.rank() - 1];
                let mut shape = vec![batch];
                for (axis, &size) in field.iter().enumerate() {
                    let sizes = [size, self.kernel_size[axis], self.strides[axis], self.dilation_rate[axis]];
                    shape.push(places(sizes, self.padding).ok_or_else(|| {
                        Error::Shape(message!(
                            "{}: the input is {:?}; it is smaller than the window {:?}, or the strides {:?} are 0.",
                            $name,
                            x.shape(),
                            self.kernel_size,
                            self.strides
                        ))
                    })?);
                }
                shape.push(self.filters);
                Ok(shape)
            }

            fn zeros(&self, x: &Tensor, batch: usize) -> Result<Vec<Tensor>> {
                if let Padding::Explicit(_) = self.padding {
                    return Err(Error::Shape(message!(
                        "{}: the padding is explicit; it must be Valid or Same here.",
                        $name
                    )));
                }
                let shape = self.state_shape(x, batch)?;
                let zeros = || x.device().scope(|| Tensor::zeros(shape.clone())?.cast(x.dtype()));
                Ok(vec![zeros()?, zeros()?])
            }

            /// The states after a step, from the input's convolution and bias.
            fn next(
                &self,
                x: &Tensor,
                states: &[Tensor],
                recurrent: &Tensor,
                masks: &[Tensor],
            ) -> Result<(Tensor, Vec<Tensor>)> {
                let (activation, gate) = (self.activation, self.recurrent_activation);
                let same = ConvolutionOptions::new().strides(vec![1; $rank]).padding(Padding::Same);
                let same = same.dilations(vec![1; $rank]);
                let of_state = convolved(&states[0], recurrent, masks, &same)?;
                let [i, f, g, o] = x.add(of_state)?.split_n(-1)?;
                let kept = gate.apply(&f)?.multiply(&states[1])?;
                let c = kept.add(gate.apply(&i)?.multiply(activation.apply(&g)?)?)?;
                let h = gate.apply(&o)?.multiply(activation.apply(&c)?)?;
                Ok((h.clone(), vec![h, c]))
            }
        }

        impl RnnCell for $cell {
            fn state_sizes(&self) -> Vec<usize> {
                vec![self.filters; 2]
            }

            fn initial_state(&self, x: &Tensor) -> Result<Vec<Tensor>> {
                self.zeros(x, x.shape()[0])
            }

            fn step(
                &self,
                x: &Tensor,
                states: &[Tensor],
                cx: Context<'_>,
            ) -> Result<(Tensor, Vec<Tensor>)> {
                let x = &self.policy.autocast(x)?;
                if x.rank() != $rank + 2 || states.len() != 2 {
                    return Err(Error::Shape(message!(
                        "{}: the input of a step is {:?}, with {} states; it must have {} axes, and 2 states.",
                        $name,
                        x.shape(),
                        states.len(),
                        $rank + 2
                    )));
                }
                let of = self.kernels(x)?;
                let [of_x, of_h] = self.masks(x, &states[0], cx)?;
                let x = plus(convolved(x, &of.kernel, &of_x, &self.of_input())?, of.bias.as_ref())?;
                self.next(&x, states, &of.recurrent, &of_h)
            }

            fn sequence(&self, of: Sequence<'_>, cx: Context<'_>) -> Result<Recurrence> {
                let weights = self.kernels(of.x)?;
                let start = of.start_or(|| self.initial_state(of.x))?;
                let (batch, steps) = (of.x.shape()[0], of.x.shape()[1]);
                let step = [&[batch, 1], &of.x.shape()[2..]].concat();
                let one = of.x.slice(&vec![0; of.x.rank()], &step.iter().map(|&n| n as i64).collect::<Vec<_>>())?;
                let [of_x, of_h] = self.masks(&one, &start[0], cx)?;
                // All steps are convolved at once.
                let flat = |x: &Tensor| {
                    let shape = [&[batch * steps], &x.shape()[2..]].concat();
                    x.broadcast_to([&[batch, steps], &x.shape()[2..]].concat())?.reshape_to(shape.into())
                };
                let of_x = of_x.iter().map(flat).collect::<Result<Vec<_>>>()?;
                let x = convolved(&flat(of.x)?, &weights.kernel, &of_x, &self.of_input())?;
                let x = plus(x, weights.bias.as_ref())?;
                let x = x.reshape_to([&[batch, steps], &x.shape()[1..]].concat().into())?;
                of.walk(&x, start, &|x, states| self.next(x, states, &weights.recurrent, &of_h))
            }
        }

        impl $cell {
            /// The dropout masks of the input and of the state.
            fn masks(&self, x: &Tensor, h: &Tensor, cx: Context<'_>) -> Result<[Vec<Tensor>; 2]> {
                if !cx.training() || [self.dropout, self.recurrent_dropout] == [0.0; 2] {
                    return Ok([Vec::new(), Vec::new()]);
                }
                let generator = self.seed_generator.get();
                Ok([draws(x, self.dropout, generator)?, draws(h, self.recurrent_dropout, generator)?])
            }
        }
    };
}

conv_lstm! {
    ConvLstm1D["ConvLSTM1D"], ConvLstm1DCell, 1, 4,
    /// A convolutional LSTM along `[B,T,W,C]`; otherwise the same as [`ConvLstm2D`].
}

conv_lstm! {
    ConvLstm2D["ConvLSTM2D"], ConvLstm2DCell, 2, 5,
    /// A convolutional LSTM (Shi et al. 2015), step by step along `[B,T,H,W,C]`: returns the output of the last step
    /// `[B,OH,OW,filters]`, or of all steps, `[B,T,OH,OW,filters]`. The kernel is `[KH,KW,C,4*filters]`, the recurrent
    /// kernel `[KH,KW,filters,4*filters]`, the bias `[4*filters]`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, layers::ConvLstm2D};
    /// let layer = ConvLstm2D::new(4, [3, 3]).padding(tf::Padding::Same);
    /// let films = tf::Tensor::zeros([2, 5, 8, 8, 3])?;
    /// assert_eq!(layer.call(&films, INFERENCE)?.shape(), [2, 8, 8, 4]);
    /// # Ok(())
    /// # }
    /// ```
}

conv_lstm! {
    ConvLstm3D["ConvLSTM3D"], ConvLstm3DCell, 3, 6,
    /// A convolutional LSTM along `[B,T,D,H,W,C]`; otherwise the same as [`ConvLstm2D`].
}
