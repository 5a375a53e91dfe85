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

/// A step of a recurrent layer: from an input and the states before it, the output and the states after it.
/// [`RNN`](super::RNN) goes through a sequence with it.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Tensor, Trackable};
/// use tf::keras::{Context, INFERENCE, Layer, Weight, layers::{RNN, RnnCell}};
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
/// let layer = RNN::new(Leaky { features: 1, decay: Weight::ones() }).return_sequences(true);
/// let y = layer.call(&tf::constant([[[1.0], [2.0], [3.0]]])?, INFERENCE)?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 3.0, 6.0]);
/// # Ok(())
/// # }
/// ```
pub trait RnnCell: Trackable {
    /// The last axis of each state; all states are `[B, size]` unless [`RnnCell::initial_state`] says otherwise.
    fn state_sizes(&self) -> Vec<usize>;

    /// The output for a step's input `[B,..]`, and the states after it.
    ///
    /// # Errors
    /// [`Error::Shape`](crate::Error::Shape) if input or states do not fit the cell.
    fn step(&self, x: &Tensor, states: &[Tensor], cx: Context<'_>)
    -> Result<(Tensor, Vec<Tensor>)>;

    /// The cell's class and options, as [`Layer::get_config`](crate::keras::Layer::get_config).
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) if an option is a function of the program, or if the cell is a program's own and does
    /// not say what its options are.
    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<Config> {
        Err(Error::Data(message!(
            "get_config: {} does not say what its options are. Give its `impl RnnCell` a get_config.",
            self.kind()
        )))
    }

    /// The states before the first step of the sequences `x` `[B,T,..]`: zeros.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if there is no memory.
    fn initial_state(&self, x: &Tensor) -> Result<Vec<Tensor>> {
        let zeros =
            |size| x.device().scope(|| Tensor::zeros([x.shape()[0], size])?.cast(x.dtype()));
        self.state_sizes().into_iter().map(zeros).collect()
    }

    /// Goes through a sequence. Cells that know a better way than step by step have their own.
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
