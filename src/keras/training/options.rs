//! [`FitOptions`], [`EvaluateOptions`] and [`PredictOptions`].

use super::callback::Callback;
use super::stop::StopSignal;
use crate::data::{IntoModelData, ModelData};
use crate::error::{Error, Result};

/// How much a training prints, on the standard error output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Verbose {
    /// A bar on a terminal, elsewhere nothing.
    #[default]
    Auto,
    /// Nothing.
    Silent,
    /// A bar that shows each epoch's progress.
    Bar,
    /// A line for each epoch.
    Lines,
}

impl From<u8> for Verbose {
    /// Keras's numbers: 0, 1, 2.
    fn from(number: u8) -> Self {
        match number {
            0 => Verbose::Silent,
            1 => Verbose::Bar,
            _ => Verbose::Lines,
        }
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty => $value:expr;)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $name(mut self, $name: $type) -> Self {
            self.$name = $value;
            self
        }
    )*};
}

/// How `fit` goes about it. Defaults are Keras's.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, data::drawn_digits::draw_digits};
/// use tf::keras::{CompileOptions, FitOptions, Model, Sequential, layers::{Dense, Flatten}, losses};
/// let model = Sequential::new().add(Flatten::new()).add(Dense::new(10));
/// let loss = losses::SparseCategoricalCrossentropy::new().from_logits(true);
/// model.compile("adam", loss, CompileOptions::new().metrics(["accuracy"]))?;
/// let (train, test) = (draw_digits(256, 1), draw_digits(64, 2));
/// let options = FitOptions::new().epochs(2).batch_size(64).validation_data(&test);
/// let history = model.fit(&train, options)?;
/// assert_eq!(history.get("val_accuracy").map(<[f64]>::len), Some(2));
/// # Ok(())
/// # }
/// ```
pub struct FitOptions<'a> {
    pub(super) epochs: usize,
    pub(super) initial_epoch: usize,
    pub(super) batch_size: Option<usize>,
    pub(super) steps_per_epoch: Option<usize>,
    pub(super) shuffle: bool,
    pub(super) validation_split: f64,
    pub(super) validation_data: Option<Result<ModelData<'a>>>,
    pub(super) validation_batch_size: Option<usize>,
    pub(super) validation_steps: Option<usize>,
    pub(super) validation_freq: usize,
    pub(super) class_weight: Vec<(usize, f32)>,
    pub(super) verbose: Verbose,
    pub(super) callbacks: Vec<Box<dyn Callback + 'a>>,
    pub(super) stop: StopSignal,
    pub(super) ctrl_c: bool,
    pub(super) yield_every: Option<usize>,
}

impl Default for FitOptions<'_> {
    fn default() -> Self {
        FitOptions {
            epochs: 1,
            initial_epoch: 0,
            batch_size: None,
            steps_per_epoch: None,
            shuffle: true,
            validation_split: 0.0,
            validation_data: None,
            validation_batch_size: None,
            validation_steps: None,
            validation_freq: 1,
            class_weight: Vec::new(),
            verbose: Verbose::Auto,
            callbacks: Vec::new(),
            stop: StopSignal::new(),
            ctrl_c: true,
            yield_every: None,
        }
    }
}

impl<'a> FitOptions<'a> {
    /// One epoch over shuffled batches of 32.
    pub fn new() -> Self {
        FitOptions::default()
    }

    setters! {
        /// Sets the epoch after which the training ends: the number of epochs, if it begins with epoch 0.
        epochs: usize => epochs;
        /// Sets the epoch with which the training begins, from 0: where an earlier one has ended.
        initial_epoch: usize => initial_epoch;
        /// Sets the number of examples in a batch, 32 unless set. An epoch's last batch may be smaller. Data that come in
        /// batches have their own sizes.
        batch_size: usize => Some(batch_size);
        /// Sets the number of batches in an epoch. The next epoch goes on where this one has stopped.
        steps_per_epoch: usize => Some(steps_per_epoch);
        /// Sets whether each epoch takes the examples in another order, which the global generator draws. Data that come in
        /// batches keep their order.
        shuffle: bool => shuffle;
        /// Sets the share of the examples that validates and does not train: the last ones, before shuffling.
        validation_split: f64 => validation_split;
        /// Sets the number of examples in a batch of the validation; that of the training unless set.
        validation_batch_size: usize => Some(validation_batch_size);
        /// Sets the number of batches of a validation.
        validation_steps: usize => Some(validation_steps);
        /// Sets after how many epochs a validation comes.
        validation_freq: usize => validation_freq;
        /// Sets whether Ctrl-C ends the training after the batch that runs, with the history kept; a second one ends the
        /// process. Without it, as without the feature `ctrl-c`, Ctrl-C does what the program has arranged.
        ctrl_c: bool => ctrl_c;
        /// Sets after how many batches at most the host looks for what it has read, and a browser draws. Unless set, time
        /// decides.
        yield_every: usize => Some(yield_every);
    }

    /// Sets what validates the model after an epoch.
    #[must_use]
    pub fn validation_data(mut self, data: impl IntoModelData<'a>) -> Self {
        self.validation_data = Some(data.into_model_data());
        self
    }

    /// Sets how much the examples of each class count, such as `[(0, 1.0), (1, 5.0)]`; those of other classes count 1.
    #[must_use]
    pub fn class_weight(mut self, weights: impl IntoIterator<Item = (usize, f32)>) -> Self {
        self.class_weight = weights.into_iter().collect();
        self
    }

    /// Sets how much is printed: a [`Verbose`], or Keras's 0, 1 or 2.
    #[must_use]
    pub fn verbose(mut self, verbose: impl Into<Verbose>) -> Self {
        self.verbose = verbose.into();
        self
    }

    /// Adds a callback, or `&mut` one that the program wants to look at afterwards. They are called in order.
    #[must_use]
    pub fn callback(mut self, callback: impl Callback + 'a) -> Self {
        self.callbacks.push(Box::new(callback));
        self
    }

    /// Sets the signal that ends the training after the batch that runs.
    #[must_use]
    pub fn stop_signal(mut self, signal: &StopSignal) -> Self {
        self.stop = signal.clone();
        self
    }

    /// The first option that makes no sense.
    pub(super) fn check(&self) -> Result<()> {
        let zero = |name: &str, value: Option<usize>| match value {
            Some(0) => {
                Err(Error::Data(crate::error::message!("fit: {name} is 0; it must be at least 1.")))
            }
            _ => Ok(()),
        };
        zero("batch_size", self.batch_size)?;
        zero("steps_per_epoch", self.steps_per_epoch)?;
        zero("validation_batch_size", self.validation_batch_size)?;
        zero("validation_steps", self.validation_steps)?;
        zero("validation_freq", Some(self.validation_freq))?;
        zero("yield_every", self.yield_every)?;
        let split = self.validation_split;
        if !(0.0..1.0).contains(&split) {
            return Err(Error::Data(crate::error::message!(
                "fit: validation_split is {split}; it must be at least 0 and below 1."
            )));
        }
        Ok(())
    }
}

macro_rules! quiet_options {
    ($(#[$doc:meta])* $name:ident, $call:literal) => {
        $(#[$doc])*
        #[derive(Default)]
        pub struct $name<'a> {
            pub(super) batch_size: Option<usize>,
            pub(super) steps: Option<usize>,
            pub(super) verbose: Verbose,
            pub(super) callbacks: Vec<Box<dyn Callback + 'a>>,
        }

        impl<'a> $name<'a> {
            /// Batches of 32, all of them.
            pub fn new() -> Self {
                $name::default()
            }

            setters! {
                /// Sets the number of examples in a batch, 32 unless set.
                batch_size: usize => Some(batch_size);
                /// Sets after how many batches the call ends; all of them unless set.
                steps: usize => Some(steps);
            }

            /// Sets how much is printed: a [`Verbose`], or Keras's 0, 1 or 2.
            #[must_use]
            pub fn verbose(mut self, verbose: impl Into<Verbose>) -> Self {
                self.verbose = verbose.into();
                self
            }

            /// Adds a callback.
            #[must_use]
            pub fn callback(mut self, callback: impl Callback + 'a) -> Self {
                self.callbacks.push(Box::new(callback));
                self
            }

            pub(super) fn check(&self) -> Result<()> {
                let of = [("batch_size", self.batch_size), ("steps", self.steps)];
                match of.into_iter().find(|(_, value)| *value == Some(0)) {
                    None => Ok(()),
                    Some((name, _)) => Err(Error::Data(crate::error::message!(
                        "{}: {name} is 0; it must be at least 1.", $call
                    ))),
                }
            }
        }
    };
}
quiet_options!(
    /// How `evaluate` goes about it.
    EvaluateOptions,
    "evaluate"
);
quiet_options!(
    /// How `predict` goes about it.
    PredictOptions,
    "predict"
);
