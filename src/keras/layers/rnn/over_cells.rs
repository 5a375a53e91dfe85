//! [`Rnn`]: runs a cell over a sequence.

use super::cell::RnnCell;
use super::states::States;
use super::walk::{Sequence, SequenceOptions, walk_setters};
#[cfg(feature = "json")]
use super::{GruCell, LstmCell, SimpleRnnCell, StackedRnnCells};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
#[cfg(feature = "json")]
use crate::keras::Config;
#[cfg(feature = "json")]
use crate::keras::layers::Configured;
use crate::keras::layers::formats::{AROUND_CELL, CallForm, Class};
use crate::keras::{Context, DTypePolicy, Layer};
use crate::ops::{Recurrence, where_};
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable, snake_case};

/// Runs a cell over sequences `[B,T,..]`: a Keras cell, [`StackedRnnCells`](super::StackedRnnCells) or a custom cell
/// (see the example at [`RnnCell`]).
///
/// A call on one tensor returns the output. A call on a list, the sequences followed by the initial states, returns the
/// output and the final states; so does [`Rnn::call_with_state`].
#[doc(alias = "RNN")]
pub struct Rnn<C> {
    pub(super) cell: C,
    pub(super) walk: SequenceOptions,
    states: States,
    pub(super) policy: DTypePolicy,
}

impl<C: RnnCell> std::fmt::Debug for Rnn<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Rnn")
            .field("cell", &self.cell.kind())
            .field("options", &self.walk)
            .field("dtype", &self.policy)
            .finish_non_exhaustive()
    }
}

impl<C: RnnCell> Rnn<C> {
    /// Creates a layer that returns the output of the last step.
    pub fn new(cell: C) -> Self {
        Rnn {
            cell,
            walk: SequenceOptions::default(),
            states: States::default(),
            policy: DTypePolicy::default(),
        }
    }

    walk_setters!(walk);

    /// Sets the dtype of the layer's input; the cell has its own dtype policy.
    #[must_use]
    pub fn dtype(mut self, policy: DTypePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Returns the cell.
    pub fn cell(&self) -> &C {
        &self.cell
    }

    /// Returns the output and the final states. `initial` are the initial states; if `None`, they are zeros, or the
    /// final states of the previous call if the layer is stateful.
    ///
    /// # Errors
    /// [`Error::Shape`] if the input, the states or the mask do not fit the cell; [`Error::DType`] if the input is not
    /// float or the mask is not `bool`.
    pub fn call_with_state(
        &self,
        x: &Tensor,
        initial: Option<&[Tensor]>,
        cx: Context<'_>,
    ) -> Result<Recurrence> {
        self.run_as("RNN", x, initial, cx)
    }

    /// Resets a stateful layer: the next call starts from the initial states and accepts any batch size.
    pub fn reset_state(&self) {
        self.states.reset();
    }

    /// Same as [`Rnn::call_with_state`], for a layer with this name.
    pub(super) fn run_as(
        &self,
        layer: &str,
        x: &Tensor,
        initial: Option<&[Tensor]>,
        cx: Context<'_>,
    ) -> Result<Recurrence> {
        let x = &self.policy.autocast(x)?;
        check(layer, x, cx.mask())?;
        let mut start = match initial {
            Some(given) => Some(self.given(layer, x, given)?),
            None => None,
        };
        if self.walk.stateful {
            let kept = self.states.read(layer, x, self.policy, || self.cell.initial_state(x))?;
            start = start.or(Some(kept));
        }
        let of = Sequence { x, start: start.as_deref(), mask: cx.mask(), how: &self.walk };
        let mut result = self.cell.sequence(of, cx)?;
        if let (Some(mask), true) = (cx.mask(), self.walk.zero_output_for_mask) {
            result.output = zeroed(&result.output, &self.mask_of_steps(mask)?)?;
        }
        if self.walk.stateful {
            self.states.assign(&result.state)?;
        }
        cx.regularize(self.walk.activity_regularizer.as_ref(), &result.output)?;
        Ok(result)
    }

    /// The states that a program passed, in the dtype of `x`.
    fn given(&self, layer: &str, x: &Tensor, given: &[Tensor]) -> Result<Vec<Tensor>> {
        let want = self.cell.initial_state(x)?;
        let shapes =
            |states: &[Tensor]| states.iter().map(|x| x.shape().to_vec()).collect::<Vec<_>>();
        if shapes(given) != shapes(&want) {
            return Err(Error::Shape(message!(
                "{layer}: the initial states are {:?}; for the input {:?} they must be {:?}.",
                shapes(given),
                x.shape(),
                shapes(&want)
            )));
        }
        given.iter().map(|state| state.cast(x.dtype())).collect()
    }

    /// The mask of the steps that have results, in the order of the results.
    fn mask_of_steps(&self, mask: &Tensor) -> Result<Tensor> {
        let mask = if self.walk.go_backwards { mask.reverse(1)? } else { mask.clone() };
        match self.walk.return_sequences {
            true => Ok(mask),
            false => mask.slice(&[0, mask.shape()[1] - 1], &[-1, 1])?.squeeze(1),
        }
    }

    /// The mask of the result: the input's, in the order of the results.
    pub(super) fn mask_of_result(&self, mask: Option<&Tensor>) -> Result<Option<Tensor>> {
        match (mask, self.walk.return_sequences, self.walk.go_backwards) {
            (Some(mask), true, false) => Ok(Some(mask.clone())),
            (Some(mask), true, true) => mask.reverse(1).map(Some),
            _ => Ok(None),
        }
    }
}

fn check(layer: &str, x: &Tensor, mask: Option<&Tensor>) -> Result<()> {
    if x.rank() < 3 {
        return Err(Error::Shape(message!(
            "{layer}: the input is {:?}; it must be [B, T, ..]: batch, steps, and what a step has. Give a single sequence a \
             batch axis with expand_dims(0).",
            x.shape()
        )));
    }
    if x.shape()[1] == 0 {
        return Err(Error::Shape(message!(
            "{layer}: the input is {:?}; a sequence needs at least one step.",
            x.shape()
        )));
    }
    let Some(mask) = mask else { return Ok(()) };
    if mask.dtype() != DType::Bool {
        return Err(Error::DType(message!(
            "{layer}: the mask is {}; it must be bool. Use not_equal(0).",
            mask.dtype()
        )));
    }
    match mask.shape() == &x.shape()[..2] {
        true => Ok(()),
        false => Err(Error::Shape(message!(
            "{layer}: the mask is {:?} and the input {:?}; the mask must be [B, T].",
            mask.shape(),
            x.shape()
        ))),
    }
}

/// Refuses inputs with a different number of axes.
pub(super) fn expect_rank(layer: &str, x: &Tensor, rank: usize) -> Result<()> {
    if x.rank() == rank {
        return Ok(());
    }
    let (axes, last) = match rank {
        3 => ("[B, T, F]: batch, steps, features", "numbers a last axis with expand_dims(-1)"),
        4 => (
            "[B, T, W, C]: batch, steps, width, channels",
            "numbers a last axis with expand_dims(-1)",
        ),
        5 => (
            "[B, T, H, W, C]: batch, steps, height, width, channels",
            "grey images a last axis with expand_dims(-1)",
        ),
        _ => (
            "[B, T, D, H, W, C]: batch, steps, depth, height, width, channels",
            "numbers a last axis with expand_dims(-1)",
        ),
    };
    Err(Error::Shape(message!(
        "{layer}: the input is {:?}; it must be {axes}. Give a single sequence a batch axis with expand_dims(0), {last}.",
        x.shape()
    )))
}

/// The sequences, and the initial states if there are some.
pub(super) fn parts_of<'a>(
    layer: &str,
    inputs: &'a [Tensor],
) -> Result<(&'a Tensor, Option<&'a [Tensor]>)> {
    match inputs {
        [x] => Ok((x, None)),
        [x, states @ ..] => Ok((x, Some(states))),
        [] => Err(Error::Shape(message!(
            "{layer}: it was called on an empty list; it takes the sequences, and the states before the first step."
        ))),
    }
}

/// The results, set to 0 where the mask, which has their first axes, is false.
pub(super) fn zeroed(y: &Tensor, mask: &Tensor) -> Result<Tensor> {
    let mut shape = mask.shape().to_vec();
    shape.resize(y.rank(), 1);
    where_(&mask.reshape_to(shape.into())?, y, &y.zeros_like()?)
}

/// A layer that runs over sequences. [`Bidirectional`](super::Bidirectional) wraps one.
pub trait RecurrentLayer: Layer {
    /// Returns the output and the final states; `initial` are the initial states.
    ///
    /// # Errors
    /// Same as [`Rnn::call_with_state`].
    fn run(&self, x: &Tensor, initial: Option<&[Tensor]>, cx: Context<'_>) -> Result<Recurrence>;

    /// Whether the output contains all time steps.
    fn returns_sequences(&self) -> bool;

    /// Whether the layer runs backwards, from the last step.
    fn goes_backwards(&self) -> bool;

    /// Whether the config specifies that the final states are returned as well.
    fn returns_state(&self) -> bool {
        false
    }
}

/// A recurrent layer that can be duplicated: [`Bidirectional::new`](super::Bidirectional::new) needs one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be copied, so `Bidirectional::new` has no layer for the backward direction",
    note = "make both layers and call `Bidirectional::with_backward_layer`"
)]
pub trait Mirror: RecurrentLayer {
    /// Returns a layer with the same options and its own weights that runs in the opposite direction.
    #[must_use]
    fn mirrored(&self) -> Self;
}

impl<C: RnnCell> RecurrentLayer for Rnn<C> {
    fn run(&self, x: &Tensor, initial: Option<&[Tensor]>, cx: Context<'_>) -> Result<Recurrence> {
        self.call_with_state(x, initial, cx)
    }

    fn returns_sequences(&self) -> bool {
        self.walk.return_sequences
    }

    fn goes_backwards(&self) -> bool {
        self.walk.go_backwards
    }

    fn returns_state(&self) -> bool {
        self.walk.return_state
    }
}

/// A recurrent layer of any class, `Bidirectional` included, whose config specifies what it returns.
pub trait SequenceLayer: Layer {
    /// Returns the output, and the final states if the layer is configured to return them (`return_state`).
    ///
    /// # Errors
    /// Same as [`Rnn::call_with_state`].
    fn run_all(
        &self,
        x: &Tensor,
        initial: Option<&[Tensor]>,
        cx: Context<'_>,
    ) -> Result<Vec<Tensor>>;
}

impl<L: RecurrentLayer> SequenceLayer for L {
    fn run_all(
        &self,
        x: &Tensor,
        initial: Option<&[Tensor]>,
        cx: Context<'_>,
    ) -> Result<Vec<Tensor>> {
        let result = self.run(x, initial, cx)?;
        let states = result.state.into_iter().filter(|_| self.returns_state());
        Ok(std::iter::once(result.output).chain(states).collect())
    }
}

/// An `Rnn` from a file, over a cell that the file describes.
#[cfg(feature = "json")]
pub(crate) type AnyRnn = Rnn<Box<dyn RnnCell>>;

/// Creates a cell, such as `LSTMCell` or `StackedRNNCells`, from its config.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::layers::{GruCell, RnnCell, cell_from_config};
/// let config = GruCell::new(4).get_config()?;
/// assert_eq!(cell_from_config(&config)?.state_sizes(), [4]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Data`] if the class is unknown, or if an option is unknown, missing or invalid.
#[cfg(feature = "json")]
pub fn cell_from_config(config: &Config) -> Result<Box<dyn RnnCell>> {
    Ok(match config.class() {
        "LSTMCell" => Box::new(LstmCell::from_config(config)?),
        "GRUCell" => Box::new(GruCell::from_config(config)?),
        "SimpleRNNCell" => Box::new(SimpleRnnCell::from_config(config)?),
        "StackedRNNCells" => Box::new(StackedRnnCells::from_config(config)?),
        class => {
            return Err(Error::Data(message!(
                "from_config: a cell is a {class}; it must be an LSTMCell, GRUCell, SimpleRNNCell or StackedRNNCells. Make a layer \
                 of your own with the cell, and name it in CustomObjects."
            )));
        }
    })
}

#[cfg(feature = "json")]
impl<C: RnnCell> Rnn<C> {
    /// Returns the layer's class and options.
    ///
    /// # Errors
    /// [`Error::Data`] if the cell does not describe its options.
    pub fn get_config(&self) -> Result<Config> {
        let mut config = Config::new("RNN");
        self.walk.write(&mut config)?;
        config.set("dtype", &self.policy)?;
        config.set_json("cell", self.cell.get_config()?.nested());
        Ok(config)
    }
}

#[cfg(feature = "json")]
impl Configured for AnyRnn {
    fn class_name() -> &'static str {
        "RNN"
    }

    fn config(&self) -> Result<Config> {
        self.get_config()
    }

    fn from_config(config: &Config) -> Result<Self> {
        let (walk, rest) = SequenceOptions::read(config)?;
        rest.only(&["cell"], &[])?;
        let cell = match rest.get_json("cell") {
            // Keras combines a list to one cell.
            Some(serde_json::Value::Array(_)) => {
                let mut stack = Config::new("StackedRNNCells");
                stack.set_json("cells", rest.options()["cell"].clone());
                cell_from_config(&stack)?
            }
            _ => cell_from_config(&rest.inner("cell")?)?,
        };
        let mut rnn = Rnn::new(cell);
        rnn.walk = walk;
        if let Some(policy) = config.get("dtype")? {
            rnn = rnn.dtype(policy);
        }
        Ok(rnn)
    }
}

impl<C: RnnCell> Trackable for Rnn<C> {
    fn track(&self, parts: &mut Parts<'_>) {
        parts.add(&snake_case(self.cell.kind()), &self.cell);
        if self.walk.stateful {
            parts.forgets(&|| self.reset_state());
        }
    }

    fn kind(&self) -> &'static str {
        "RNN"
    }

    fn class(&self) -> Option<&'static Class> {
        static CLASS: Class = Class::new("RNN").call(CallForm::Recurrent).attributes(&AROUND_CELL);
        Some(&CLASS)
    }
}

impl<C: RnnCell> Layer for Rnn<C> {
    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<Config> {
        Rnn::get_config(self)
    }

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        self.call_with_state(x, None, cx).map(|result| result.output)
    }

    fn compute_mask(&self, _x: &Tensor, mask: Option<&Tensor>) -> Result<Option<Tensor>> {
        self.mask_of_result(mask)
    }
}

/// Maps the sequences and initial states to the output and the final states.
impl<C: RnnCell> Layer<[Tensor], (Tensor, Vec<Tensor>)> for Rnn<C> {
    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<Config> {
        Rnn::get_config(self)
    }

    fn call(&self, inputs: &[Tensor], cx: Context<'_>) -> Result<(Tensor, Vec<Tensor>)> {
        let (x, initial) = parts_of("RNN", inputs)?;
        let result = self.call_with_state(x, initial, cx)?;
        Ok((result.output, result.state))
    }

    fn compute_mask(&self, _: &[Tensor], mask: Option<&Tensor>) -> Result<Option<Tensor>> {
        self.mask_of_result(mask)
    }
}
