//! [`Lstm`] and its cell.

use super::cell::{RnnCell, check_step};
use super::gates::{Drops, Kernels, expect_units, plus, product, started};
use super::macros::recurrent;
use super::walk::Sequence;
use crate::error::Result;
use crate::keras::layers::macros::configured;
use crate::keras::{Activation, Context, Initializer, Weight};
use crate::ops::{LstmOptions, Recurrence, lstm};
use crate::tensor::Tensor;

recurrent! {
    /// Long short-term memory (Hochreiter and Schmidhuber 1997), step by step along `[B,T,F]`: returns the output of
    /// the last step `[B,U]`, or of all steps, `[B,T,U]`. See [`LstmCell`] for the formula.
    ///
    /// With Keras's default activations, without `recurrent_dropout`, a step is one kernel, plus one more with
    /// gradients; on a GPU all steps run as one kernel, as described for [`lstm`](crate::lstm). A call on a list,
    /// `[x, h, c]`, starts from these states and returns the output and the final states; so does `call_with_state`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{self as tf, Trackable};
    /// use tf::keras::{INFERENCE, Layer, layers::Lstm};
    /// let x = tf::random::normal([2, 10, 3])?;
    /// let encoder = Lstm::new(8);
    /// assert_eq!(encoder.call(&x, INFERENCE)?.shape(), [2, 8]);
    /// assert_eq!(encoder.named_variables()[0].0, "lstm_cell/kernel");
    ///
    /// // The states of one layer are where another begins.
    /// let state = encoder.call_with_state(&x, None, INFERENCE)?.state;
    /// let decoder = Lstm::new(8).return_sequences(true);
    /// let y = decoder.call_with_state(&x, Some(&state), INFERENCE)?.output;
    /// assert_eq!(y.shape(), [2, 10, 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Lstm["LSTM"];

    /// One step of an [`Lstm`]: `c' = f c + i g` and `h' = o activation(c')` with `i, f, o = recurrent_activation(z)`
    /// and `g = activation(z)`, where `z = x kernel + h recurrent_kernel + bias`; kernel `[F,4*U]`, recurrent kernel
    /// `[U,4*U]`, bias `[4*U]`, with the gates in the order i, f, c, o.
    ///
    /// A single call draws new dropout masks; within one call of [`Rnn`](super::Rnn) the masks stay the same.
    pub struct LstmCell["LSTMCell"];

    pytorch(&TRANSPOSED_CELL);

    new(units: usize), 3 axes;
    options {
        /// Sets the activation function of the candidate and the output. Default: tanh.
        activation: Activation = Activation::Tanh,
        /// Sets the activation function of the gates. Default: sigmoid.
        recurrent_activation: Activation = Activation::Sigmoid,
        /// Sets whether the layer uses a bias. Default: `true`.
        use_bias: bool = true,
        /// Sets whether the bias of the forget gate starts at 1, as Jozefowicz et al. (2015) recommend. Default: `true`.
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

const GATES: usize = 4;

impl LstmCell {
    fn kernels(&self, x: &Tensor) -> Result<Kernels> {
        expect_units("LSTMCell", self.units)?;
        let (units, wide) = (self.units, GATES.saturating_mul(self.units));
        Ok(Kernels {
            kernel: self.kernel.get(x, [x.shape()[x.rank() - 1], wide])?,
            recurrent: self.recurrent_kernel.get(x, [units, wide])?,
            bias: if self.use_bias {
                Some(started(&self.bias, self.unit_forget_bias).get(x, [wide])?)
            } else {
                None
            },
        })
    }

    fn drops(&self, x: &Tensor, cx: Context<'_>) -> Result<Drops> {
        let rates = [self.dropout, self.recurrent_dropout];
        match cx.training() && rates != [0.0; 2] {
            true => Drops::draw(rates, GATES, x, self.units, self.seed_generator.get()),
            false => Ok(Drops::default()),
        }
    }

    /// The states after a step, from the input's product and bias.
    fn next(
        &self,
        x: &Tensor,
        states: &[Tensor],
        recurrent: &Tensor,
        masks: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let (activation, gate) = (self.activation, self.recurrent_activation);
        let [i, f, g, o] = x.add(product(&states[0], recurrent, masks)?)?.split_n(1)?;
        let kept = gate.apply(&f)?.multiply(&states[1])?;
        let c = kept.add(gate.apply(&i)?.multiply(activation.apply(&g)?)?)?;
        let h = gate.apply(&o)?.multiply(activation.apply(&c)?)?;
        Ok((h.clone(), vec![h, c]))
    }
}

impl RnnCell for LstmCell {
    configured!();

    fn state_sizes(&self) -> Vec<usize> {
        vec![self.units; 2]
    }

    fn step(
        &self,
        x: &Tensor,
        states: &[Tensor],
        cx: Context<'_>,
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let x = &self.policy.autocast(x)?;
        check_step("LSTMCell", x, states, &self.state_sizes())?;
        let (of, drops) = (self.kernels(x)?, self.drops(x, cx)?);
        let x = plus(product(x, &of.kernel, &drops.input)?, of.bias.as_ref())?;
        self.next(&x, states, &of.recurrent, &drops.state)
    }

    fn sequence(&self, of: Sequence<'_>, cx: Context<'_>) -> Result<Recurrence> {
        let (weights, drops) = (self.kernels(of.x)?, self.drops(of.x, cx)?);
        let usual =
            [self.activation, self.recurrent_activation] == [Activation::Tanh, Activation::Sigmoid];
        if usual && drops.state.is_empty() {
            let x =
                drops.input.first().map_or_else(|| Ok(of.x.clone()), |mask| of.x.multiply(mask))?;
            let start = of.start.and_then(|start| start.to_vec().try_into().ok());
            let options = LstmOptions::new()
                .initial_state(start)
                .mask(of.mask.cloned())
                .go_backwards(of.how.go_backwards)
                .return_sequences(of.how.return_sequences)
                .unroll(of.how.unroll);
            return lstm(&x, &weights.kernel, &weights.recurrent, weights.bias.as_ref(), options);
        }
        let x = plus(product(of.x, &weights.kernel, &drops.input)?, weights.bias.as_ref())?;
        let start = of.start_or(|| self.initial_state(of.x))?;
        of.walk(&x, start, &|x, states| self.next(x, states, &weights.recurrent, &drops.state))
    }
}
