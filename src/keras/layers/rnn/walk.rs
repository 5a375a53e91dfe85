//! [`SequenceOptions`]: the options of running over a sequence, and [`Sequence`], a run of a cell.

use crate::error::{Error, Result, message};
#[cfg(feature = "json")]
use crate::keras::Config;
use crate::keras::Regularizer;
use crate::ops::{Recurrence, SequenceStep, Steps};
use crate::tensor::Tensor;

/// The options of all recurrent layers.
#[derive(Debug, Clone, Default)]
pub(super) struct SequenceOptions {
    pub return_sequences: bool,
    pub return_state: bool,
    pub go_backwards: bool,
    pub stateful: bool,
    pub unroll: bool,
    pub zero_output_for_mask: bool,
    pub activity_regularizer: Option<Regularizer>,
}

/// The setters of [`SequenceOptions`]'s options, for a type that contains a `SequenceOptions` at this path.
macro_rules! walk_setters {
    ($($path:ident).+) => {
        /// Sets whether to return the outputs of all steps, `[B,T,U]`, or only the last one, `[B,U]`. Default: `false`.
        #[must_use]
        pub fn return_sequences(mut self, return_sequences: bool) -> Self {
            self.$($path).+.return_sequences = return_sequences;
            self
        }

        /// Stored in the config, like Keras's option: whether the model uses the final states. A call on a list and
        /// `call_with_state` always return them; a call on one tensor returns only the output.
        #[must_use]
        pub fn return_state(mut self, return_state: bool) -> Self {
            self.$($path).+.return_state = return_state;
            self
        }

        /// Sets whether to process the sequence backwards; the results are in that order. Default: `false`.
        #[must_use]
        pub fn go_backwards(mut self, go_backwards: bool) -> Self {
            self.$($path).+.go_backwards = go_backwards;
            self
        }

        /// Sets whether a call starts from the final states of the previous call, for each row of the batch. Default:
        /// `false`. Use `reset_state` to start again from the initial states.
        #[must_use]
        pub fn stateful(mut self, stateful: bool) -> Self {
            self.$($path).+.stateful = stateful;
            self
        }

        /// Sets whether each step consists of ordinary ops; otherwise a step may be one kernel. Both have gradients of
        /// every order. Default: `false`.
        #[must_use]
        pub fn unroll(mut self, unroll: bool) -> Self {
            self.$($path).+.unroll = unroll;
            self
        }

        /// Sets whether the result of a masked step is 0, instead of the result of the previous step. Default: `false`.
        #[must_use]
        pub fn zero_output_for_mask(mut self, zero_output_for_mask: bool) -> Self {
            self.$($path).+.zero_output_for_mask = zero_output_for_mask;
            self
        }

        /// Sets the regularizer applied to the layer's output.
        #[must_use]
        pub fn activity_regularizer(
            mut self,
            activity_regularizer: impl Into<Option<$crate::keras::Regularizer>>,
        ) -> Self {
            self.$($path).+.activity_regularizer = activity_regularizer.into();
            self
        }
    };
}
pub(super) use walk_setters;

/// A run of a cell over a sequence.
#[derive(Debug, Clone, Copy)]
pub struct Sequence<'a> {
    /// `[B,T,..]`.
    pub(super) x: &'a Tensor,
    /// The states before the first step, if they are not the cell's initial ones.
    pub(super) start: Option<&'a [Tensor]>,
    /// `[B,T]`, `bool`.
    pub(super) mask: Option<&'a Tensor>,
    pub(super) how: &'a SequenceOptions,
}

impl Sequence<'_> {
    pub(super) fn start_or(
        &self,
        initial: impl FnOnce() -> Result<Vec<Tensor>>,
    ) -> Result<Vec<Tensor>> {
        self.start.map_or_else(initial, |start| Ok(start.to_vec()))
    }

    /// Runs over `x` `[B,T,..]` from the states `start`.
    pub(super) fn walk(
        &self,
        x: &Tensor,
        start: Vec<Tensor>,
        step: SequenceStep<'_>,
    ) -> Result<Recurrence> {
        let steps = Steps {
            x,
            mask: self.mask,
            backwards: self.how.go_backwards,
            sequences: self.how.return_sequences,
            unroll: self.how.unroll,
        };
        steps.run(start, &|input, states| {
            let (output, next) = step(input, states)?;
            same_states(states, &next)?;
            Ok((output, next))
        })
    }
}

fn same_states(before: &[Tensor], after: &[Tensor]) -> Result<()> {
    let shapes = |states: &[Tensor]| states.iter().map(|x| x.shape().to_vec()).collect::<Vec<_>>();
    let (before, after) = (shapes(before), shapes(after));
    match before == after {
        true => Ok(()),
        false => Err(Error::Shape(message!(
            "RNN: the states before a step are {before:?} and the cell's states after it {after:?}; a step must keep their \
             number and shapes."
        ))),
    }
}

#[cfg(feature = "json")]
impl SequenceOptions {
    /// Adds the options to a layer's config.
    pub fn write(&self, config: &mut Config) -> Result<()> {
        config.set("return_sequences", &self.return_sequences)?;
        config.set("return_state", &self.return_state)?;
        config.set("go_backwards", &self.go_backwards)?;
        config.set("stateful", &self.stateful)?;
        config.set("unroll", &self.unroll)?;
        config.set("zero_output_for_mask", &self.zero_output_for_mask)?;
        config.set("activity_regularizer", &self.activity_regularizer)
    }

    /// The options of a layer's config, and the config without them.
    pub fn read(config: &Config) -> Result<(SequenceOptions, Config)> {
        let flag = |key: &str| config.get::<bool>(key).map(|flag| flag.unwrap_or(false));
        let walk = SequenceOptions {
            return_sequences: flag("return_sequences")?,
            return_state: flag("return_state")?,
            go_backwards: flag("go_backwards")?,
            stateful: flag("stateful")?,
            unroll: flag("unroll")?,
            zero_output_for_mask: flag("zero_output_for_mask")?,
            activity_regularizer: config
                .get::<Option<Regularizer>>("activity_regularizer")?
                .flatten(),
        };
        let mut rest = config.options().clone();
        // Keras's choice of an implementation does not change the results.
        rest.remove("use_cudnn");
        rest.remove("implementation");
        let mut own = Config::new(config.class());
        walk.write(&mut own)?;
        own.options().keys().for_each(|key| _ = rest.remove(key));
        Ok((walk, Config::with_options(config.class(), rest)))
    }
}
