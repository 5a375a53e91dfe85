//! [`FitOptions`], [`EvaluateOptions`] and [`PredictOptions`].

use super::callback::Callback;
use super::stop::StopSignal;
use crate::data::{IntoModelData, ModelData};
#[cfg(not(target_family = "wasm"))]
use crate::distribute::AutoShardPolicy;
use crate::error::{Error, Result};

/// How much a training prints on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Verbose {
    /// A progress bar on a terminal, otherwise nothing.
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
    /// Converts Keras's numbers: 0, 1, 2.
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

/// The options of `fit`. The defaults are Keras's.
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
    #[cfg(not(target_family = "wasm"))]
    pub(super) auto_shard_policy: AutoShardPolicy,
}

impl std::fmt::Debug for FitOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FitOptions")
            .field("epochs", &self.epochs)
            .field("batch_size", &self.batch_size)
            .field("steps_per_epoch", &self.steps_per_epoch)
            .field("shuffle", &self.shuffle)
            .field("validation_split", &self.validation_split)
            .field("verbose", &self.verbose)
            .finish_non_exhaustive()
    }
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
            #[cfg(not(target_family = "wasm"))]
            auto_shard_policy: AutoShardPolicy::default(),
        }
    }
}

impl<'a> FitOptions<'a> {
    /// Creates options for one epoch over shuffled batches of 32.
    pub fn new() -> Self {
        FitOptions::default()
    }

    setters! {
        /// Sets the epoch after which the training ends: the number of epochs, if it begins with epoch 0.
        epochs: usize => epochs;
        /// Sets the epoch with which the training begins, counted from 0, to resume an earlier training.
        initial_epoch: usize => initial_epoch;
        /// Sets the batch size. An epoch's last batch may be smaller. It does not apply to data in batches. Default: 32.
        batch_size: usize => Some(batch_size);
        /// Sets the number of batches in an epoch. The next epoch continues where this one stopped.
        steps_per_epoch: usize => Some(steps_per_epoch);
        /// Sets whether each epoch uses the examples in a different order, drawn from the global generator. It does not apply
        /// to data in batches.
        shuffle: bool => shuffle;
        /// Sets the fraction of the examples to use for validation instead of training: the last ones, before shuffling.
        validation_split: f64 => validation_split;
        /// Sets the batch size of the validation. Default: that of the training.
        validation_batch_size: usize => Some(validation_batch_size);
        /// Sets the number of batches in a validation.
        validation_steps: usize => Some(validation_steps);
        /// Sets after how many epochs a validation is run.
        validation_freq: usize => validation_freq;
        /// Sets whether Ctrl-C ends the training after the current batch and keeps the history; a second one ends the process.
        /// Without this option or without the feature `ctrl-c`, Ctrl-C has the effect that the program has set up.
        ctrl_c: bool => ctrl_c;
        /// Sets the maximum number of batches after which the host processes the values that it has read, and a browser draws.
        /// By default, the time decides.
        yield_every: usize => Some(yield_every);
    }

    /// Sets which examples each process of a strategy trains with: its part of every batch of data that all have, or data of its own, in
    /// batches of its own. The validation data are those that all have.
    #[cfg(not(target_family = "wasm"))]
    #[must_use]
    pub fn auto_shard_policy(mut self, policy: AutoShardPolicy) -> Self {
        self.auto_shard_policy = policy;
        self
    }

    /// Sets the validation data.
    #[must_use]
    pub fn validation_data(mut self, data: impl IntoModelData<'a>) -> Self {
        self.validation_data = Some(data.into_model_data());
        self
    }

    /// Sets the weights of the classes, such as `[(0, 1.0), (1, 5.0)]`; other classes have the weight 1.
    #[must_use]
    pub fn class_weight(mut self, weights: impl IntoIterator<Item = (usize, f32)>) -> Self {
        self.class_weight = weights.into_iter().collect();
        self
    }

    /// Sets how much to print: a [`Verbose`], or Keras's 0, 1 or 2.
    #[must_use]
    pub fn verbose(mut self, verbose: impl Into<Verbose>) -> Self {
        self.verbose = verbose.into();
        self
    }

    /// Adds a callback, or a `&mut` to a callback that the program inspects afterwards. Callbacks are called in order.
    #[must_use]
    pub fn callback(mut self, callback: impl Callback + 'a) -> Self {
        self.callbacks.push(Box::new(callback));
        self
    }

    /// Sets the signal that ends the training after the current batch.
    #[must_use]
    pub fn stop_signal(mut self, signal: &StopSignal) -> Self {
        self.stop = signal.clone();
        self
    }

    /// Returns an error for the first invalid option.
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

        impl std::fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("batch_size", &self.batch_size)
                    .field("steps", &self.steps)
                    .field("verbose", &self.verbose)
                    .finish_non_exhaustive()
            }
        }

        impl<'a> $name<'a> {
            /// Creates options for all data, in batches of 32.
            pub fn new() -> Self {
                $name::default()
            }

            setters! {
                /// Sets the batch size. Default: 32.
                batch_size: usize => Some(batch_size);
                /// Sets after how many batches the call ends. Default: all.
                steps: usize => Some(steps);
            }

            /// Sets how much to print: a [`Verbose`], or Keras's 0, 1 or 2.
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
    /// The options of `evaluate`.
    EvaluateOptions,
    "evaluate"
);
quiet_options!(
    /// The options of `predict`.
    PredictOptions,
    "predict"
);
