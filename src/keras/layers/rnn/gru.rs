//! [`Gru`] and its cell.

use super::cell::{RnnCell, check_step};
use super::gates::{Drops, Kernels, expect_units, plus, product};
use super::macros::recurrent;
use super::walk::Sequence;
use crate::error::Result;
use crate::keras::layers::macros::configured;
use crate::keras::{Activation, Context, Initializer, Weight};
use crate::ops::{GruOptions, Recurrence, gru};
use crate::tensor::Tensor;

recurrent! {
    /// Gated recurrent unit (Cho et al. 2014), step by step along `[B,T,F]`: returns the output of the last step
    /// `[B,U]`, or of all steps, `[B,T,U]`. See [`GruCell`] for the formula.
    ///
    /// With Keras's default activations and `reset_after`, without `recurrent_dropout`, a step is one kernel, plus one
    /// more with gradients; on a GPU all steps run as one kernel, as described for [`lstm`](crate::lstm). A call on a
    /// list, `[x, h]`, starts from this state and returns the output and the final state; so does `call_with_state`.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::{INFERENCE, Layer, Sequential, layers::{Dense, Gru}};
    /// let model = Sequential::new().add(Gru::new(8).return_sequences(true)).add(Gru::new(4)).add(Dense::new(1));
    /// assert_eq!(model.call(&tf::random::normal([2, 10, 3])?, INFERENCE)?.shape(), [2, 1]);
    /// # Ok(())
    /// # }
    /// ```
    pub struct Gru["GRU"];

    /// One step of a [`Gru`]: `h' = z h + (1 - z) n`; kernel `[F,3*U]`, recurrent kernel `[U,3*U]`, with the gates in
    /// the order z, r, h.
    ///
    /// `z, r = recurrent_activation(x kernel + h recurrent_kernel + bias)`. With `reset_after`, the candidate is
    /// `n = activation(x kernel + r (h recurrent_kernel))`, and the bias is `[2,3*U]`: one for the input and one for
    /// the state. Without `reset_after`, it is `n = activation(x kernel + (r h) recurrent_kernel)`, and the bias is
    /// `[3*U]`.
    ///
    /// A single call draws new dropout masks; within one call of [`Rnn`](super::Rnn) the masks stay the same.
    pub struct GruCell["GRUCell"];

    pytorch(&[
        Torch::new("kernel", &["weight_ih"], GruKernel),
        Torch::new("recurrent_kernel", &["weight_hh"], GruKernel),
        Torch::new("bias", &["bias_ih", "bias_hh"], GruBias),
    ]);

    new(units: usize), 3 axes;
    options {
        /// Sets the activation function of the candidate. Default: tanh.
        activation: Activation = Activation::Tanh,
        /// Sets the activation function of the gates. Default: sigmoid.
        recurrent_activation: Activation = Activation::Sigmoid,
        /// Sets whether the layer uses a bias. Default: `true`.
        use_bias: bool = true,
        /// Sets the dropout rate of the input in training; one mask is used for all time steps. Default: 0.
        dropout: f32 = 0.0,
        /// Sets the dropout rate of the state in training; one mask is used for all time steps. Default: 0.
        recurrent_dropout: f32 = 0.0,
        /// Sets whether the reset gate is applied after the product with the recurrent kernel. Default: `true`.
        reset_after: bool = true,
    }
    weights {
        kernel = Weight::new() => [kernel_initializer, kernel_regularizer, kernel_constraint],
        recurrent_kernel = Weight::new().initializer(Initializer::orthogonal(1.0))
            => [recurrent_initializer, recurrent_regularizer, recurrent_constraint],
        bias if use_bias = Weight::zeros() => [bias_initializer, bias_regularizer, bias_constraint],
    }
}

const GATES: usize = 3;

impl GruCell {
    fn kernels(&self, x: &Tensor) -> Result<Kernels> {
        expect_units("GRUCell", self.units)?;
        let (units, wide) = (self.units, GATES.saturating_mul(self.units));
        let bias = || match self.reset_after {
            true => self.bias.get(x, [2, wide]),
            false => self.bias.get(x, [wide]),
        };
        Ok(Kernels {
            kernel: self.kernel.get(x, [x.shape()[x.rank() - 1], wide])?,
            recurrent: self.recurrent_kernel.get(x, [units, wide])?,
            bias: if self.use_bias { Some(bias()?) } else { None },
        })
    }

    /// The biases of the input's product and of the state's.
    fn biases(&self, bias: Option<&Tensor>) -> Result<[Option<Tensor>; 2]> {
        match bias {
            Some(both) if self.reset_after => {
                let [own, of_state] = both.split_n(0)?;
                Ok([Some(own.squeeze(0)?), Some(of_state.squeeze(0)?)])
            }
            own => Ok([own.cloned(), None]),
        }
    }

    fn drops(&self, x: &Tensor, cx: Context<'_>) -> Result<Drops> {
        let rates = [self.dropout, self.recurrent_dropout];
        match cx.training() && rates != [0.0; 2] {
            true => Drops::draw(rates, GATES, x, self.units, self.seed_generator.get()),
            false => Ok(Drops::default()),
        }
    }

    /// The state after a step, from the input's product and bias.
    fn next(
        &self,
        x: &Tensor,
        h: &Tensor,
        recurrent: &Tensor,
        bias: Option<&Tensor>,
        masks: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let (activation, gate) = (self.activation, self.recurrent_activation);
        let [x_z, x_r, x_n] = x.split_n(1)?;
        let (z, n) = if self.reset_after {
            let [z, r, n] = plus(product(h, recurrent, masks)?, bias)?.split_n(1)?;
            let reset = gate.apply(&x_r.add(r)?)?.multiply(n)?;
            (gate.apply(&x_z.add(z)?)?, x_n.add(reset)?)
        } else {
            // The reset precedes the last gate's product, so there are two products.
            let parts = recurrent.split_sizes(&[2 * self.units, self.units], 1)?;
            let [z, r] = product(h, &parts[0], masks.get(..2).unwrap_or_default())?.split_n(1)?;
            let reset = gate.apply(&x_r.add(r)?)?.multiply(h)?;
            let reset = product(&reset, &parts[1], masks.get(2..).unwrap_or_default())?;
            (gate.apply(&x_z.add(z)?)?, x_n.add(reset)?)
        };
        let h = z.multiply(h)?.add((1.0 - &z).multiply(activation.apply(&n)?)?)?;
        Ok((h.clone(), vec![h]))
    }
}

impl RnnCell for GruCell {
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
        check_step("GRUCell", x, states, &self.state_sizes())?;
        let (of, drops) = (self.kernels(x)?, self.drops(x, cx)?);
        let [own, of_state] = self.biases(of.bias.as_ref())?;
        let x = plus(product(x, &of.kernel, &drops.input)?, own.as_ref())?;
        self.next(&x, &states[0], &of.recurrent, of_state.as_ref(), &drops.state)
    }

    fn sequence(&self, of: Sequence<'_>, cx: Context<'_>) -> Result<Recurrence> {
        let (weights, drops) = (self.kernels(of.x)?, self.drops(of.x, cx)?);
        let usual =
            [self.activation, self.recurrent_activation] == [Activation::Tanh, Activation::Sigmoid];
        if usual && drops.state.is_empty() {
            let x =
                drops.input.first().map_or_else(|| Ok(of.x.clone()), |mask| of.x.multiply(mask))?;
            let options = GruOptions::new()
                .initial_state(of.start.and_then(|start| start.first().cloned()))
                .mask(of.mask.cloned())
                .go_backwards(of.how.go_backwards)
                .return_sequences(of.how.return_sequences)
                .unroll(of.how.unroll)
                .reset_after(self.reset_after);
            return gru(&x, &weights.kernel, &weights.recurrent, weights.bias.as_ref(), options);
        }
        let [own, of_state] = self.biases(weights.bias.as_ref())?;
        let x = plus(product(of.x, &weights.kernel, &drops.input)?, own.as_ref())?;
        let start = of.start_or(|| self.initial_state(of.x))?;
        of.walk(&x, start, &|x, states| {
            self.next(x, &states[0], &weights.recurrent, of_state.as_ref(), &drops.state)
        })
    }
}
