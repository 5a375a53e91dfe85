//! The common code of Keras's cells: the weights of a call, products for all gates at once, and dropout masks.

use crate::error::{Error, Result, message};
use crate::keras::{Initializer, Weight};
use crate::ops::concat;
use crate::random::Generator;
use crate::tensor::Tensor;

/// The weights of a call: kernel `[F,G*U]`, recurrent kernel `[U,G*U]`, bias.
pub(super) struct Kernels {
    pub kernel: Tensor,
    pub recurrent: Tensor,
    pub bias: Option<Tensor>,
}

/// Refuses a cell without units.
pub(super) fn expect_units(cell: &str, units: usize) -> Result<()> {
    match units {
        0 => Err(Error::Shape(message!("{cell}: units is 0; it must be at least 1."))),
        _ => Ok(()),
    }
}

/// The dropout masks that are drawn once for all steps of a call, of 0 and `1 / (1 - rate)`: for the input `[B,1,F]` and for
/// the state `[B,U]`. There are none, one for all gates, or one for each gate.
#[derive(Default)]
pub(super) struct Drops {
    pub input: Vec<Tensor>,
    pub state: Vec<Tensor>,
}

impl Drops {
    /// As in Keras: with dropout of the state, each gate has separate masks; otherwise all gates share one.
    pub fn draw(
        [rate, recurrent_rate]: [f32; 2],
        gates: usize,
        x: &Tensor,
        units: usize,
        generator: &Generator,
    ) -> Result<Self> {
        let (batch, features) = (x.shape()[0], x.shape()[x.rank() - 1]);
        let draw = |shape: &[usize], rate: f32, count: usize| -> Result<Vec<Tensor>> {
            let one = || {
                let ones = x.device().scope(|| Tensor::ones(shape)?.cast(x.dtype()))?;
                ones.dropout(rate, generator)
            };
            let count = if rate == 0.0 { 0 } else { count };
            (0..count).map(|_| one()).collect()
        };
        let of_input = if recurrent_rate == 0.0 { 1 } else { gates };
        let shape = if x.rank() == 3 { vec![batch, 1, features] } else { vec![batch, features] };
        Ok(Drops {
            input: draw(&shape, rate, of_input)?,
            state: draw(&[batch, units], recurrent_rate, gates)?,
        })
    }
}

/// `(x masks) kernel`, `[..,G*U]`.
pub(super) fn product(x: &Tensor, kernel: &Tensor, masks: &[Tensor]) -> Result<Tensor> {
    let by_rows = |x: &Tensor, kernel: &Tensor| -> Result<Tensor> {
        let (mut shape, features) = (x.shape().to_vec(), kernel.shape()[0]);
        if shape.len() == 2 {
            return x.matmul(kernel);
        }
        let rows = shape[..shape.len() - 1].iter().product();
        if let Some(last) = shape.last_mut() {
            *last = kernel.shape()[1];
        }
        x.reshape_to([rows, features].into())?.matmul(kernel)?.reshape_to(shape.into())
    };
    match masks {
        [] => by_rows(x, kernel),
        [mask] => by_rows(&x.multiply(mask)?, kernel),
        masks => {
            let wide = kernel.shape()[1] / masks.len();
            let kernels = kernel.split_sizes(&vec![wide; masks.len()], 1)?;
            let of_gate = |(mask, kernel): (&Tensor, &Tensor)| by_rows(&x.multiply(mask)?, kernel);
            let products = masks.iter().zip(&kernels).map(of_gate).collect::<Result<Vec<_>>>()?;
            concat(&products, -1)
        }
    }
}

/// `x + bias`, if there is one.
pub(super) fn plus(x: Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    bias.map_or_else(|| Ok(x.clone()), |bias| x.add(bias))
}

/// The bias `[4*U]` of an LSTM with its initializer: the part of the forget gate starts at 1 if `unit_forget_bias` is set.
pub(super) fn started(bias: &Weight, unit_forget_bias: bool) -> Weight {
    if !unit_forget_bias {
        return bias.clone();
    }
    let inner = bias.initializer.clone();
    bias.clone().initializer(Initializer::new(move |shape: &[usize], generator: &Generator| {
        let units = shape[0] / 4;
        let part = |count: usize| inner.init([count * units], generator);
        concat([part(1)?, Tensor::ones([units])?, part(2)?], 0)
    }))
}
