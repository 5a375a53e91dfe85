//! [`Schedule`]: learning rates that change from step to step.
//!
//! The host computes them, and a step receives the rate as a runtime scalar, so every step runs the same plan.

use crate::error::{Error, Result, message};
#[cfg(feature = "json")]
use crate::keras::Config;

/// A learning rate for each step: a built-in or custom type, or a function of the count of steps.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::optimizers::{Adam, Optimizer, schedules::{CosineDecay, Schedule}};
/// let schedule = CosineDecay::new(0.0, 900).warmup_target(0.1).warmup_steps(100);
/// assert_eq!([schedule.at(0), schedule.at(50), schedule.at(100), schedule.at(1000)], [0.0, 0.05, 0.1, 0.0]);
/// let adam = Adam::new(schedule);
/// assert_eq!(adam.learning_rate(), 0.0);
/// # Ok(())
/// # }
/// ```
pub trait Schedule: Send + Sync {
    /// Returns the learning rate of the step that follows `step` steps.
    fn at(&self, step: u64) -> f64;

    /// Checks the parameters of the schedule. An optimizer calls it before each step.
    ///
    /// # Errors
    /// [`Error::Index`] if a parameter is out of its range.
    fn check(&self) -> Result<()> {
        Ok(())
    }

    /// Returns the schedule's class and options by Keras's names, from which [`from_config`] creates an equivalent schedule.
    ///
    /// # Errors
    /// [`Error::Data`] if a custom schedule does not implement it, or an option is not a number.
    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<Config> {
        Err(Error::Data(
            "get_config: this schedule does not say what its options are. Give its `impl Schedule` a get_config.".into(),
        ))
    }
}

impl<F: Fn(u64) -> f64 + Send + Sync> Schedule for F {
    fn at(&self, step: u64) -> f64 {
        self(step)
    }
}

/// Creates the schedule that a config describes.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::optimizers::schedules::{self, PolynomialDecay, Schedule};
/// let config = PolynomialDecay::new(0.1, 100).end_learning_rate(0.0).get_config()?;
/// assert_eq!(config.get::<f64>("power")?, Some(1.0));
/// assert_eq!(schedules::from_config(&config)?.at(50), 0.05);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Data`] if there is no such class, or an option is unknown, missing or wrong.
#[cfg(feature = "json")]
pub fn from_config(config: &Config) -> Result<Box<dyn Schedule>> {
    Ok(match config.class() {
        "ExponentialDecay" => Box::new(ExponentialDecay::from_config(config)?),
        "InverseTimeDecay" => Box::new(InverseTimeDecay::from_config(config)?),
        "PiecewiseConstantDecay" => Box::new(PiecewiseConstantDecay::from_config(config)?),
        "PolynomialDecay" => Box::new(PolynomialDecay::from_config(config)?),
        "CosineDecay" => Box::new(CosineDecay::from_config(config)?),
        "CosineDecayRestarts" => Box::new(CosineDecayRestarts::from_config(config)?),
        class => {
            return Err(Error::Data(message!(
                "from_config: there is no schedule '{class}'; there are ExponentialDecay, InverseTimeDecay, \
                 PiecewiseConstantDecay, PolynomialDecay, CosineDecay and CosineDecayRestarts."
            )));
        }
    })
}

/// Refuses a count of steps that is 0.
fn some(schedule: &str, name: &str, steps: u64) -> Result<()> {
    match steps {
        0 => Err(Error::Index(message!("{schedule}: {name} is 0; it must be at least 1."))),
        _ => Ok(()),
    }
}

macro_rules! schedule {
    (
        $(#[$doc:meta])*
        $name:ident($($required:ident: $required_type:ty $(as $required_argument:ty)?),*) {
            $($(#[$option_doc:meta])* $option:ident: $type:ty $(as $argument:ty)? = $default:expr,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $name {
            $($required: $required_type,)*
            $($option: $type,)*
        }

        impl $name {
            /// Creates the schedule with Keras's defaults.
            pub fn new(
                $($required: schedule!(@argument $required_type $(, $required_argument)?)),*
            ) -> Self {
                $name { $($required: $required.into(),)* $($option: $default,)* }
            }

            $(
                $(#[$option_doc])*
                #[must_use]
                pub fn $option(mut self, $option: schedule!(@argument $type $(, $argument)?)) -> Self {
                    self.$option = $option.into();
                    self
                }
            )*
        }

        #[cfg(feature = "json")]
        impl $name {
            fn config(&self) -> Result<Config> {
                let mut config = Config::new(stringify!($name));
                $(config.set(stringify!($required), &self.$required)?;)*
                $(config.set(stringify!($option), &self.$option)?;)*
                Ok(config)
            }

            fn from_config(config: &Config) -> Result<Self> {
                config.only(&[$(stringify!($required),)* $(stringify!($option),)*], &[])?;
                Ok($name {
                    $($required: config.need(stringify!($required))?,)*
                    $($option: config.get(stringify!($option))?.unwrap_or($default),)*
                })
            }
        }
    };
    (@argument $type:ty) => { $type };
    (@argument $type:ty, $argument:ty) => { $argument };
}
// `schedule! { ExponentialDecay(decay_steps: u64) { staircase: bool = false, } }` becomes the struct, `new(decay_steps)`
// and a method that sets `staircase`.

macro_rules! configured {
    () => {
        #[cfg(feature = "json")]
        fn get_config(&self) -> Result<Config> {
            self.config()
        }
    };
}

schedule! {
    /// `initial decay_rate^(step / decay_steps)`
    ExponentialDecay(initial_learning_rate: f64, decay_steps: u64, decay_rate: f64) {
        /// Sets whether the rate changes only every `decay_steps` steps.
        staircase: bool = false,
    }
}

impl Schedule for ExponentialDecay {
    configured!();

    fn at(&self, step: u64) -> f64 {
        let power = parts(step, self.decay_steps, self.staircase);
        self.initial_learning_rate * self.decay_rate.powf(power)
    }

    fn check(&self) -> Result<()> {
        some("ExponentialDecay", "decay_steps", self.decay_steps)
    }
}

/// `step / steps`, rounded down if the schedule is a staircase.
fn parts(step: u64, steps: u64, staircase: bool) -> f64 {
    let parts = step as f64 / steps as f64;
    if staircase { parts.floor() } else { parts }
}

schedule! {
    /// `initial / (1 + decay_rate step / decay_steps)`
    InverseTimeDecay(initial_learning_rate: f64, decay_steps: u64, decay_rate: f64) {
        /// Sets whether the rate changes only every `decay_steps` steps.
        staircase: bool = false,
    }
}

impl Schedule for InverseTimeDecay {
    configured!();

    fn at(&self, step: u64) -> f64 {
        let parts = parts(step, self.decay_steps, self.staircase);
        self.initial_learning_rate / (1.0 + self.decay_rate * parts)
    }

    fn check(&self) -> Result<()> {
        some("InverseTimeDecay", "decay_steps", self.decay_steps)
    }
}

schedule! {
    /// `values[i]` up to and including the step `boundaries[i]`; after the last boundary the last value.
    PiecewiseConstantDecay(boundaries: Vec<u64> as impl Into<Vec<u64>>, values: Vec<f64> as impl Into<Vec<f64>>) {}
}

impl Schedule for PiecewiseConstantDecay {
    configured!();

    fn at(&self, step: u64) -> f64 {
        let passed = self.boundaries.iter().filter(|&&boundary| step > boundary).count();
        // With a wrong number of values, there is no rate.
        self.values.get(passed).copied().unwrap_or(f64::NAN)
    }

    fn check(&self) -> Result<()> {
        let Self { boundaries, values } = self;
        if values.len() != boundaries.len() + 1 {
            return Err(Error::Index(message!(
                "PiecewiseConstantDecay: there are {} boundaries and {} values; there must be one value more than \
                 boundaries.",
                boundaries.len(),
                values.len()
            )));
        }
        if !boundaries.is_sorted() {
            return Err(Error::Index(message!(
                "PiecewiseConstantDecay: the boundaries are {boundaries:?}; they must not decrease."
            )));
        }
        Ok(())
    }
}

schedule! {
    /// `(initial - end) (1 - step / decay_steps)^power + end`, and `end` after `decay_steps`.
    PolynomialDecay(initial_learning_rate: f64, decay_steps: u64) {
        /// Sets the rate at the end.
        end_learning_rate: f64 = 1e-4,
        /// Sets the power; 1 is a straight line.
        power: f64 = 1.0,
        /// Sets whether, after each `decay_steps`, the rate rises again and the period of the decay grows by `decay_steps`.
        cycle: bool = false,
    }
}

impl Schedule for PolynomialDecay {
    configured!();

    fn at(&self, step: u64) -> f64 {
        let steps = self.decay_steps as f64;
        let turns = if self.cycle { (step as f64 / steps).ceil().max(1.0) } else { 1.0 };
        let left = 1.0 - (step as f64 / (steps * turns)).min(1.0);
        (self.initial_learning_rate - self.end_learning_rate) * left.powf(self.power)
            + self.end_learning_rate
    }

    fn check(&self) -> Result<()> {
        some("PolynomialDecay", "decay_steps", self.decay_steps)
    }
}

schedule! {
    /// `top ((1 - alpha) (1 + cos(pi step / decay_steps)) / 2 + alpha)`, and `top alpha` after `decay_steps`
    /// (Loshchilov and Hutter 2017).
    ///
    /// Without a warm-up, `top` is the initial learning rate. With a `warmup_target`, `top` is that target, and before the
    /// decay the rate increases linearly from the initial rate to it, over `warmup_steps`.
    CosineDecay(initial_learning_rate: f64, decay_steps: u64) {
        /// Sets the fraction of `top` that remains at the end.
        alpha: f64 = 0.0,
        /// Sets the rate at the end of a warm-up.
        warmup_target: Option<f64> as impl Into<Option<f64>> = None,
        /// Sets the number of steps of a warm-up.
        warmup_steps: u64 = 0,
    }
}

impl Schedule for CosineDecay {
    configured!();

    fn at(&self, step: u64) -> f64 {
        let start = self.initial_learning_rate;
        let (top, step) = match self.warmup_target {
            None => (start, step),
            Some(target) if step < self.warmup_steps => {
                return start + (target - start) * (step as f64 / self.warmup_steps as f64);
            }
            Some(target) => (target, step - self.warmup_steps),
        };
        let done = (step as f64 / self.decay_steps as f64).min(1.0);
        top * ((1.0 - self.alpha) * cosine(done) + self.alpha)
    }

    fn check(&self) -> Result<()> {
        some("CosineDecay", "decay_steps", self.decay_steps)
    }
}

/// From 1 to 0 while `done` goes from 0 to 1.
fn cosine(done: f64) -> f64 {
    0.5 * (1.0 + (std::f64::consts::PI * done).cos())
}

schedule! {
    /// [`CosineDecay`] that restarts after `first_decay_steps`, each time `m_mul` times as high and over `t_mul` times as many
    /// steps (Loshchilov and Hutter 2017).
    CosineDecayRestarts(initial_learning_rate: f64, first_decay_steps: u64) {
        /// Sets the factor by which each decay is longer than the one before, at least 1.
        t_mul: f64 = 2.0,
        /// Sets the factor by which each decay is higher than the one before.
        m_mul: f64 = 1.0,
        /// Sets the fraction of the initial rate that remains at the end of a decay.
        alpha: f64 = 0.0,
    }
}

impl Schedule for CosineDecayRestarts {
    configured!();

    fn at(&self, step: u64) -> f64 {
        let done = step as f64 / self.first_decay_steps as f64;
        let (restart, done) = if self.t_mul == 1.0 {
            (done.floor(), done.fract())
        } else {
            // The decays before number i are together (t^i - 1) / (t - 1) times as long as the first one.
            let before = |i: f64| (self.t_mul.powf(i) - 1.0) / (self.t_mul - 1.0);
            let mut restart = ((1.0 + done * (self.t_mul - 1.0)).ln() / self.t_mul.ln()).floor();
            // The logarithm may miss a restart by a rounding error.
            if before(restart + 1.0) <= done {
                restart += 1.0;
            }
            (restart, (done - before(restart)) / self.t_mul.powf(restart))
        };
        let height = self.m_mul.powf(restart) * cosine(done);
        self.initial_learning_rate * ((1.0 - self.alpha) * height + self.alpha)
    }

    fn check(&self) -> Result<()> {
        some("CosineDecayRestarts", "first_decay_steps", self.first_decay_steps)?;
        if self.t_mul >= 1.0 && self.t_mul.is_finite() {
            return Ok(());
        }
        Err(Error::Index(message!(
            "CosineDecayRestarts: t_mul is {}; it must be a number, at least 1.",
            self.t_mul
        )))
    }
}
