//! [`RnnCell`]: a step of a recurrent layer.

use std::sync::Arc;

use super::walk::Sequence;
use crate::error::{Error, Result, message};
#[cfg(feature = "json")]
use crate::keras::Config;
use crate::keras::Context;
use crate::ops::Recurrence;
use crate::tensor::Tensor;
use crate::trackable::Trackable;

/// One time step of a recurrent layer: computes the output and the new states from an input and the previous states.
/// [`Rnn`](super::Rnn) runs it over a sequence.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Tensor, Trackable};
/// use tf::keras::{Context, INFERENCE, Layer, Weight, layers::{Rnn, RnnCell}};
///
/// /// `h' = decay h + x`, with a decay for each feature.
/// #[derive(Trackable)]
/// struct Leaky {
///     features: usize,
///     decay: Weight,
/// }
///
/// impl RnnCell for Leaky {
///     fn state_sizes(&self) -> Vec<usize> {
///         vec![self.features]
///     }
///
///     fn step(&self, x: &Tensor, states: &[Tensor], _cx: Context<'_>) -> tf::Result<(Tensor, Vec<Tensor>)> {
///         let h = states[0].multiply(self.decay.get(x, [self.features])?)?.add(x)?;
///         Ok((h.clone(), vec![h]))
///     }
/// }
///
/// let layer = Rnn::new(Leaky { features: 1, decay: Weight::ones() }).return_sequences(true);
/// let y = layer.call(&tf::constant([[[1.0], [2.0], [3.0]]])?, INFERENCE)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 3.0, 6.0]);
/// # Ok(())
/// # }
/// ```
pub trait RnnCell: Trackable {
    /// The size of the last axis of each state; all states are `[B, size]` unless [`RnnCell::initial_state`] returns
    /// other shapes.
    fn state_sizes(&self) -> Vec<usize>;

    /// Returns the output for the input `[B,..]` of a time step, and the new states.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if the input or the states do not fit the cell.
    fn step(&self, x: &Tensor, states: &[Tensor], cx: Context<'_>)
    -> Result<(Tensor, Vec<Tensor>)>;

    /// Returns the cell's class and options; see [`Layer::get_config`](crate::keras::Layer::get_config).
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) if an option is a custom function, or if the cell is a custom cell that does
    /// not describe its options.
    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<Config> {
        Err(Error::Data(message!(
            "get_config: {} does not say what its options are. Give its `impl RnnCell` a get_config.",
            self.kind()
        )))
    }

    /// Returns the initial states for the sequences `x` `[B,T,..]`: zeros.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if the device is out of memory.
    fn initial_state(&self, x: &Tensor) -> Result<Vec<Tensor>> {
        let zeros =
            |size| x.device().scope(|| Tensor::zeros([x.shape()[0], size])?.cast(x.dtype()));
        self.state_sizes().into_iter().map(zeros).collect()
    }

    /// Runs over a whole sequence. Cells that have a faster way than step by step override this.
    #[doc(hidden)]
    fn sequence(&self, of: Sequence<'_>, cx: Context<'_>) -> Result<Recurrence> {
        let start = of.start_or(|| self.initial_state(of.x))?;
        of.walk(of.x, start, &|x, states| self.step(x, states, cx))
    }
}

/// Refuses inputs and states of a step that do not fit a cell of vectors.
pub(super) fn check_step(cell: &str, x: &Tensor, states: &[Tensor], sizes: &[usize]) -> Result<()> {
    if x.rank() != 2 {
        return Err(Error::Shape(message!(
            "{cell}: the input is {:?}; a cell takes one step, [B, F]. For whole sequences wrap it in RNN::new.",
            x.shape()
        )));
    }
    let given: Vec<&[usize]> = states.iter().map(Tensor::shape).collect();
    let want: Vec<[usize; 2]> = sizes.iter().map(|&size| [x.shape()[0], size]).collect();
    match given == want {
        true => Ok(()),
        false => Err(Error::Shape(message!(
            "{cell}: the states are {given:?}; for the input {:?} they must be {want:?}.",
            x.shape()
        ))),
    }
}

macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<C: RnnCell + ?Sized> RnnCell for $pointer {
            fn state_sizes(&self) -> Vec<usize> {
                (**self).state_sizes()
            }

            fn step(
                &self,
                x: &Tensor,
                states: &[Tensor],
                cx: Context<'_>,
            ) -> Result<(Tensor, Vec<Tensor>)> {
                (**self).step(x, states, cx)
            }

            #[cfg(feature = "json")]
            fn get_config(&self) -> Result<Config> {
                (**self).get_config()
            }

            fn initial_state(&self, x: &Tensor) -> Result<Vec<Tensor>> {
                (**self).initial_state(x)
            }

            fn sequence(&self, of: Sequence<'_>, cx: Context<'_>) -> Result<Recurrence> {
                (**self).sequence(of, cx)
            }
        }
    )*};
}
pointers!(&C, Box<C>, Arc<C>);
