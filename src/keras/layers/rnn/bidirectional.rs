//! [`Bidirectional`]: a recurrent layer in both directions.

use super::over_cells::{Mirror, RecurrentLayer, SequenceLayer, parts_of, zeroed};
#[cfg(feature = "json")]
use super::{AnyRnn, ConvLstm1D, ConvLstm2D, ConvLstm3D, Gru, Lstm, SimpleRnn};
use crate::error::{Error, Result, message};
#[cfg(feature = "json")]
use crate::keras::Config;
#[cfg(feature = "json")]
use crate::keras::layers::Configured;
use crate::keras::layers::formats::{CallForm, Class, PartNames};
use crate::keras::{Context, Layer};
use crate::ops::{Recurrence, concat};
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable, snake_case};

/// How [`Bidirectional`] combines the results of both directions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum MergeMode {
    /// Concatenated: `[..,2*U]`.
    #[default]
    Concat,
    /// Their sum.
    Sum,
    /// Their product.
    Mul,
    /// Their mean.
    Ave,
    /// Not combined: only [`Bidirectional::call_both`] returns both results.
    None,
}

crate::trackable::plain!(MergeMode);

#[cfg(feature = "json")]
const MODES: [(MergeMode, &str); 4] = [
    (MergeMode::Concat, "concat"),
    (MergeMode::Sum, "sum"),
    (MergeMode::Mul, "mul"),
    (MergeMode::Ave, "ave"),
];

/// Runs over sequences in both directions, with one layer per direction (Schuster and Paliwal 1997). With
/// `return_sequences`, the results of both directions are aligned by time step, and are 0 at masked steps.
///
/// A call on a list, the sequences followed by the initial states (the forward layer's first), returns the result and
/// all final states.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Trackable};
/// use tf::keras::{INFERENCE, Layer, layers::{Bidirectional, Lstm}};
/// let layer = Bidirectional::new(Lstm::new(4).return_sequences(true));
/// assert_eq!(layer.call(&tf::random::normal([2, 10, 3])?, INFERENCE)?.shape(), [2, 10, 8]);
/// assert_eq!(layer.named_variables()[3].0, "backward_lstm/lstm_cell/kernel");
/// # Ok(())
/// # }
/// ```
pub struct Bidirectional {
    forward: Box<dyn RecurrentLayer>,
    backward: Box<dyn RecurrentLayer>,
    /// Whether the program made the backward layer.
    given: bool,
    merge_mode: MergeMode,
}

impl std::fmt::Debug for Bidirectional {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bidirectional")
            .field("layer", &self.forward.kind())
            .field("merge_mode", &self.merge_mode)
            .finish_non_exhaustive()
    }
}

impl Bidirectional {
    /// Uses `layer` for the forward direction and a copy with the same options for the backward direction.
    pub fn new<L: Mirror + 'static>(layer: L) -> Self {
        let backward = Box::new(layer.mirrored());
        Bidirectional {
            forward: Box::new(layer),
            backward,
            given: false,
            merge_mode: MergeMode::Concat,
        }
    }

    /// Uses a separate layer for each direction: exactly one of them must go backwards, and both or neither must return
    /// sequences.
    pub fn with_backward_layer(
        layer: impl RecurrentLayer + 'static,
        backward_layer: impl RecurrentLayer + 'static,
    ) -> Self {
        let (forward, backward) = (Box::new(layer), Box::new(backward_layer));
        Bidirectional { forward, backward, given: true, merge_mode: MergeMode::Concat }
    }

    /// Sets how the results of both directions are combined. Default: `MergeMode::Concat`.
    #[must_use]
    pub fn merge_mode(mut self, merge_mode: MergeMode) -> Self {
        self.merge_mode = merge_mode;
        self
    }

    /// Returns the results of both layers, forward first, each aligned by time step. `initial` are the initial states,
    /// the forward layer's first.
    ///
    /// # Errors
    /// Same as [`Layer::call`].
    pub fn call_both(
        &self,
        x: &Tensor,
        initial: Option<&[Tensor]>,
        cx: Context<'_>,
    ) -> Result<[Recurrence; 2]> {
        let both = [&self.forward, &self.backward];
        if self.forward.returns_sequences() != self.backward.returns_sequences()
            || self.forward.goes_backwards() == self.backward.goes_backwards()
        {
            return Err(Error::Shape(message!(
                "Bidirectional: return_sequences of the layers is {:?} and go_backwards {:?}; the first must be equal and the \
                 second differ.",
                both.map(|layer| layer.returns_sequences()),
                both.map(|layer| layer.goes_backwards())
            )));
        }
        let halves = match initial {
            None => [None; 2],
            Some(states) if states.len() % 2 == 0 => {
                let (forward, backward) = states.split_at(states.len() / 2);
                [Some(forward), Some(backward)]
            }
            Some(states) => {
                return Err(Error::Shape(message!(
                    "Bidirectional: {} states were given; the layers of both directions need the same number.",
                    states.len()
                )));
            }
        };
        let run = |way: usize| -> Result<Recurrence> {
            let mut result = both[way].run(x, halves[way], cx)?;
            if both[way].returns_sequences() {
                if both[way].goes_backwards() {
                    result.output = result.output.reverse(1)?;
                }
                if let Some(mask) = cx.mask() {
                    result.output = zeroed(&result.output, mask)?;
                }
            }
            Ok(result)
        };
        Ok([run(0)?, run(1)?])
    }

    fn merged(&self, a: Tensor, b: Tensor) -> Result<Tensor> {
        match self.merge_mode {
            MergeMode::Concat => concat([a, b], -1),
            MergeMode::Sum => a.add(b),
            MergeMode::Mul => a.multiply(b),
            MergeMode::Ave => a.add(b)?.multiply(0.5),
            MergeMode::None => Err(Error::Shape(
                "Bidirectional: with MergeMode::None there are two results. Take them from call_both, or choose another mode."
                    .into(),
            )),
        }
    }

    /// Returns the layer's class and options.
    ///
    /// # Errors
    /// [`Error::Data`] if the options of a layer are not available.
    #[cfg(feature = "json")]
    pub fn get_config(&self) -> Result<Config> {
        self.config()
    }
}

impl Trackable for Bidirectional {
    fn track(&self, parts: &mut Parts<'_>) {
        for (way, layer) in [("forward", &self.forward), ("backward", &self.backward)] {
            parts.add(&format!("{way}_{}", snake_case(layer.kind())), &**layer);
        }
    }

    fn class(&self) -> Option<&'static Class> {
        static CLASS: Class = Class::new("Bidirectional").call(CallForm::Recurrent).attributes(&[
            PartNames::new("forward_*")
                .checkpoint("forward_layer")
                .keras("forward_layer")
                .pytorch(""),
            PartNames::new("backward_*")
                .checkpoint("backward_layer")
                .keras("backward_layer")
                .pytorch("_reverse"),
        ]);
        Some(&CLASS)
    }
}

impl Layer for Bidirectional {
    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<Config> {
        self.config()
    }

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        let [a, b] = self.call_both(x, None, cx)?;
        self.merged(a.output, b.output)
    }

    fn compute_mask(&self, _x: &Tensor, mask: Option<&Tensor>) -> Result<Option<Tensor>> {
        Ok(mask.filter(|_| self.forward.returns_sequences()).cloned())
    }
}

/// From the sequences and the states before the first step to the result and the states after the last one.
impl Layer<[Tensor], (Tensor, Vec<Tensor>)> for Bidirectional {
    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<Config> {
        self.config()
    }

    fn call(&self, inputs: &[Tensor], cx: Context<'_>) -> Result<(Tensor, Vec<Tensor>)> {
        let (x, initial) = parts_of("Bidirectional", inputs)?;
        let [a, b] = self.call_both(x, initial, cx)?;
        let states = [a.state, b.state].concat();
        Ok((self.merged(a.output, b.output)?, states))
    }

    fn compute_mask(&self, inputs: &[Tensor], mask: Option<&Tensor>) -> Result<Option<Tensor>> {
        let (x, _) = parts_of("Bidirectional", inputs)?;
        Layer::<Tensor>::compute_mask(self, x, mask)
    }
}

#[cfg(feature = "json")]
impl Configured for Bidirectional {
    fn class_name() -> &'static str {
        "Bidirectional"
    }

    fn config(&self) -> Result<Config> {
        let mut config = Config::new(Self::class_name());
        let mode = MODES.iter().find(|(mode, _)| *mode == self.merge_mode).map(|(_, name)| *name);
        config.set("merge_mode", &mode.map(String::from))?;
        config.set_json("layer", self.forward.get_config()?.nested());
        if self.given {
            config.set_json("backward_layer", self.backward.get_config()?.nested());
        }
        Ok(config)
    }

    fn from_config(config: &Config) -> Result<Self> {
        config.only(&["merge_mode", "layer", "backward_layer"], &[])?;
        let merge_mode = match config.get::<Option<String>>("merge_mode")? {
            None => MergeMode::Concat,
            Some(None) => MergeMode::None,
            Some(Some(name)) => {
                let known = MODES.iter().find(|(_, known)| *known == name);
                known.map(|(mode, _)| *mode).ok_or_else(|| {
                    Error::Data(message!(
                        "from_config: 'merge_mode' of Bidirectional is '{name}'; it must be concat, sum, mul, ave or null."
                    ))
                })?
            }
        };
        let inner = config.inner("layer")?;
        let given = config.get_json("backward_layer").is_some();
        let backward = match given {
            true => config.inner("backward_layer")?,
            false => {
                // The same layer in the other direction.
                let mut back = inner.clone();
                let backwards = inner.get::<bool>("go_backwards")?.unwrap_or(false);
                back.set("go_backwards", &!backwards)?;
                back
            }
        };
        let (forward, backward) = (recurrent(&inner)?, recurrent(&backward)?);
        Ok(Bidirectional { forward, backward, given, merge_mode })
    }
}

#[cfg(feature = "json")]
fn recurrent(config: &Config) -> Result<Box<dyn RecurrentLayer>> {
    Ok(match config.class() {
        "LSTM" => Box::new(Lstm::from_config(config)?),
        "GRU" => Box::new(Gru::from_config(config)?),
        "SimpleRNN" => Box::new(SimpleRnn::from_config(config)?),
        "RNN" => Box::new(AnyRnn::from_config(config)?),
        "ConvLSTM1D" => Box::new(ConvLstm1D::from_config(config)?),
        "ConvLSTM2D" => Box::new(ConvLstm2D::from_config(config)?),
        "ConvLSTM3D" => Box::new(ConvLstm3D::from_config(config)?),
        class => {
            return Err(Error::Data(message!(
                "from_config: the layer in Bidirectional is a {class}; it must be LSTM, GRU, SimpleRNN, RNN or a ConvLSTM."
            )));
        }
    })
}

impl SequenceLayer for Bidirectional {
    fn run_all(
        &self,
        x: &Tensor,
        initial: Option<&[Tensor]>,
        cx: Context<'_>,
    ) -> Result<Vec<Tensor>> {
        let [a, b] = self.call_both(x, initial, cx)?;
        let mut results = match self.merge_mode {
            MergeMode::None => vec![a.output, b.output],
            _ => vec![self.merged(a.output, b.output)?],
        };
        if self.forward.returns_state() {
            results.extend(a.state);
            results.extend(b.state);
        }
        Ok(results)
    }
}
