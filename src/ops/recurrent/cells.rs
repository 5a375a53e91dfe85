//! The steps of recurrent layers, composed of other ops, with gradients of every order.

use super::check;
use crate::error::Result;
use crate::tensor::Tensor;

/// One step of an LSTM (Hochreiter and Schmidhuber 1997): input `[B,F]`, state `h` and `c` `[B,U]`, kernel `[F,4*U]`,
/// recurrent kernel `[U,4*U]`, bias `[4*U]`; the gates are in Keras's order i, f, c, o. Returns the next `h` and `c`.
///
/// `i, f, o = sigmoid(z)`, `g = tanh(z)`, `c' = f c + i g`, `h' = o tanh(c')`, where `z = x kernel + h recurrent_kernel +
/// bias`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let (x, zero) = (tf::constant([[1.0]])?, tf::constant([[0.0]])?);
/// let kernel = tf::constant([[0.0, 0.0, 1.0, 0.0]])?;
/// let [h, c] = tf::lstm_cell(&x, [&zero, &zero], &kernel, &kernel, None)?;
/// let want = 0.5 * 1f32.tanh();
/// assert!((c.item::<f32>()? - want).abs() < 1e-6);
/// assert!((h.item::<f32>()? - 0.5 * want.tanh()).abs() < 1e-6);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`](crate::Error::Shape) if the shapes are incompatible; [`Error::DType`](crate::Error::DType) if the
/// dtypes differ or are not float.
pub fn lstm_cell(
    x: &Tensor,
    state: [&Tensor; 2],
    kernel: &Tensor,
    recurrent_kernel: &Tensor,
    bias: Option<&Tensor>,
) -> Result<[Tensor; 2]> {
    check::cell("LSTMCell", 4, x, &state, [kernel, recurrent_kernel], bias, 1)?;
    lstm_step(&project(x, kernel, bias)?, state, recurrent_kernel)
}

/// One step of a GRU (Cho et al. 2014): input `[B,F]`, state `[B,U]`, kernel `[F,3*U]`, recurrent kernel `[U,3*U]`; the
/// gates are in Keras's order z, r, h. Returns the next state.
///
/// With `reset_after`, Keras's default, `n = tanh(x + r (h recurrent_kernel))` and the bias is `[2,3*U]`: one row for
/// the input, one for the state. Without it, `n = tanh(x + (r h) recurrent_kernel)`, and the bias is `[3*U]`.
/// `h' = z h + (1 - z) n`.
///
/// # Errors
/// As [`lstm_cell`].
pub fn gru_cell(
    x: &Tensor,
    state: &Tensor,
    kernel: &Tensor,
    recurrent_kernel: &Tensor,
    bias: Option<&Tensor>,
    reset_after: bool,
) -> Result<Tensor> {
    let rows = if reset_after { 2 } else { 1 };
    check::cell("GRUCell", 3, x, &[state], [kernel, recurrent_kernel], bias, rows)?;
    let [own, of_state] = gru_biases(bias, reset_after)?;
    let products = project(x, kernel, own.as_ref())?;
    gru_step(&products, state, recurrent_kernel, of_state.as_ref(), reset_after)
}

/// One step of a simple recurrent layer: `activation(x kernel + h recurrent_kernel + bias)`, input `[B,F]`, state
/// `[B,U]`, kernel `[F,U]`, recurrent kernel `[U,U]`, bias `[U]`. Keras's activation is [`Tensor::tanh`].
///
/// # Errors
/// As [`lstm_cell`].
pub fn simple_rnn_cell(
    x: &Tensor,
    state: &Tensor,
    kernel: &Tensor,
    recurrent_kernel: &Tensor,
    bias: Option<&Tensor>,
    activation: fn(&Tensor) -> Result<Tensor>,
) -> Result<Tensor> {
    check::cell("SimpleRNNCell", 1, x, &[state], [kernel, recurrent_kernel], bias, 1)?;
    activation(&project(x, kernel, bias)?.add(state.matmul(recurrent_kernel)?)?)
}

/// `x kernel + bias`.
pub(super) fn project(x: &Tensor, kernel: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    let product = x.matmul(kernel)?;
    bias.map_or_else(|| Ok(product.clone()), |bias| product.add(bias))
}

/// The state after a step, from the product of the input and the kernel.
pub(super) fn lstm_step(
    x: &Tensor,
    [h, c]: [&Tensor; 2],
    recurrent_kernel: &Tensor,
) -> Result<[Tensor; 2]> {
    let [i, f, g, o] = x.add(h.matmul(recurrent_kernel)?)?.split_n(1)?;
    let c = f.sigmoid()?.multiply(c)?.add(i.sigmoid()?.multiply(g.tanh()?)?)?;
    Ok([o.sigmoid()?.multiply(c.tanh()?)?, c])
}

/// The biases of the input's product and of the state's.
pub(super) fn gru_biases(bias: Option<&Tensor>, reset_after: bool) -> Result<[Option<Tensor>; 2]> {
    match (bias, reset_after) {
        (None, _) => Ok([None, None]),
        (Some(bias), false) => Ok([Some(bias.clone()), None]),
        (Some(bias), true) => {
            let [own, of_state] = bias.split_n(0)?;
            Ok([Some(own.squeeze(0)?), Some(of_state.squeeze(0)?)])
        }
    }
}

pub(super) fn gru_step(
    x: &Tensor,
    h: &Tensor,
    recurrent_kernel: &Tensor,
    bias: Option<&Tensor>,
    reset_after: bool,
) -> Result<Tensor> {
    let [x_z, x_r, x_n] = x.split_n(1)?;
    let (z, n) = if reset_after {
        let [z, r, n] = project(h, recurrent_kernel, bias)?.split_n(1)?;
        (x_z.add(z)?.sigmoid()?, x_n.add(x_r.add(r)?.sigmoid()?.multiply(n)?)?)
    } else {
        // The reset precedes the last gate's product, so there are two products.
        let units = h.shape()[1];
        let parts = recurrent_kernel.split_sizes(&[2 * units, units], 1)?;
        let [z, r] = h.matmul(&parts[0])?.split_n(1)?;
        let reset = x_r.add(r)?.sigmoid()?.multiply(h)?;
        (x_z.add(z)?.sigmoid()?, x_n.add(reset.matmul(&parts[1])?)?)
    };
    z.multiply(h)?.add((1.0 - &z).multiply(n.tanh()?)?)
}
