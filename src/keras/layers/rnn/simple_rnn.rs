//! [`SimpleRnn`] and its cell.

use super::cell::{RnnCell, check_step};
use super::gates::{Drops, Kernels, expect_units, plus, product};
use super::macros::recurrent;
use super::walk::Sequence;
use crate::error::Result;
use crate::keras::layers::macros::configured;
use crate::keras::{Activation, Context, Initializer, Weight};
use crate::ops::{Recurrence, SimpleRnnOptions, simple_rnn};
use crate::tensor::Tensor;

recurrent! {
    /// A fully connected recurrent layer (Elman 1990), step by step along `[B,T,F]`: returns the output of the last
    /// step `[B,U]`, or of all steps, `[B,T,U]`. See [`SimpleRnnCell`] for the formula.
    ///
    /// With tanh, without `recurrent_dropout`, a step is one kernel, plus one more with gradients; on a GPU all steps
    /// run as one kernel, as described for [`lstm`](crate::lstm). A call on a list, `[x, h]`, starts from this state
    /// and returns the output and the final state; so does `call_with_state`.
    pub struct SimpleRnn["SimpleRNN"];

    /// One step of a [`SimpleRnn`]: `h' = activation(x kernel + h recurrent_kernel + bias)`; kernel `[F,U]`, recurrent
    /// kernel `[U,U]`, bias `[U]`.
    ///
    /// A single call draws new dropout masks; within one call of [`Rnn`](super::Rnn) the masks stay the same.
    pub struct SimpleRnnCell["SimpleRNNCell"];

    pytorch(&TRANSPOSED_CELL);

    new(units: usize), 3 axes;
    options {
        /// Sets the activation function. Default: tanh.
        activation: Activation = Activation::Tanh,
        /// Sets whether the layer uses a bias. Default: `true`.
        use_bias: bool = true,
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

impl SimpleRnnCell {
    fn kernels(&self, x: &Tensor) -> Result<Kernels> {
        expect_units("SimpleRNNCell", self.units)?;
        let units = self.units;
        Ok(Kernels {
            kernel: self.kernel.get(x, [x.shape()[x.rank() - 1], units])?,
            recurrent: self.recurrent_kernel.get(x, [units, units])?,
            bias: if self.use_bias { Some(self.bias.get(x, [units])?) } else { None },
        })
    }

    fn drops(&self, x: &Tensor, cx: Context<'_>) -> Result<Drops> {
        let rates = [self.dropout, self.recurrent_dropout];
        match cx.training() && rates != [0.0; 2] {
            true => Drops::draw(rates, 1, x, self.units, self.seed_generator.get()),
            false => Ok(Drops::default()),
        }
    }

    /// The state after a step, from the input's product and bias.
    fn next(
        &self,
        x: &Tensor,
        h: &Tensor,
        recurrent: &Tensor,
        masks: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let h = self.activation.apply(&x.add(product(h, recurrent, masks)?)?)?;
        Ok((h.clone(), vec![h]))
    }
}

impl RnnCell for SimpleRnnCell {
    configured!();

    fn state_sizes(&self) -> Vec<usize> {
        vec![self.units]
    }

    fn step(
        &self,
        x: &Tensor,
        states: &[Tensor],
        cx: Context<'_>,
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let x = &self.policy.autocast(x)?;
        check_step("SimpleRNNCell", x, states, &self.state_sizes())?;
        let (of, drops) = (self.kernels(x)?, self.drops(x, cx)?);
        let x = plus(product(x, &of.kernel, &drops.input)?, of.bias.as_ref())?;
        self.next(&x, &states[0], &of.recurrent, &drops.state)
    }

    fn sequence(&self, of: Sequence<'_>, cx: Context<'_>) -> Result<Recurrence> {
        let (weights, drops) = (self.kernels(of.x)?, self.drops(of.x, cx)?);
        if self.activation == Activation::Tanh && drops.state.is_empty() {
            let x =
                drops.input.first().map_or_else(|| Ok(of.x.clone()), |mask| of.x.multiply(mask))?;
            let options = SimpleRnnOptions::new()
                .initial_state(of.start.and_then(|start| start.first().cloned()))
                .mask(of.mask.cloned())
                .go_backwards(of.how.go_backwards)
                .return_sequences(of.how.return_sequences)
                .unroll(of.how.unroll);
            return simple_rnn(
                &x,
                &weights.kernel,
                &weights.recurrent,
                weights.bias.as_ref(),
                options,
            );
        }
        let x = plus(product(of.x, &weights.kernel, &drops.input)?, weights.bias.as_ref())?;
        let start = of.start_or(|| self.initial_state(of.x))?;
        of.walk(&x, start, &|x, states| self.next(x, &states[0], &weights.recurrent, &drops.state))
    }
}
