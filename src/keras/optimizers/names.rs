//! Optimizers by Keras's names.

use super::{
    Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Ftrl, Lamb, Lion, Muon, Nadam, Optimizer,
    RmsProp, Sgd,
};
use crate::error::{Error, Result, message};

type Make = fn() -> Box<dyn Optimizer>;

/// Names, and optimizers with Keras's defaults.
const NAMES: &[(&str, Make)] = &[
    ("adadelta", || Box::new(Adadelta::new(0.001))),
    ("adafactor", || Box::new(Adafactor::new(0.001))),
    ("adagrad", || Box::new(Adagrad::new(0.001))),
    ("adam", || Box::new(Adam::new(0.001))),
    ("adamax", || Box::new(Adamax::new(0.001))),
    ("adamw", || Box::new(AdamW::new(0.001))),
    ("ftrl", || Box::new(Ftrl::new(0.001))),
    ("lamb", || Box::new(Lamb::new(0.001))),
    ("lion", || Box::new(Lion::new(0.001))),
    ("muon", || Box::new(Muon::new(0.001))),
    ("nadam", || Box::new(Nadam::new(0.001))),
    ("rmsprop", || Box::new(RmsProp::new(0.001))),
    ("sgd", || Box::new(Sgd::new(0.01))),
];

/// Returns the optimizer that Keras calls `name`, case-insensitively, with Keras's learning rate and defaults.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::optimizers::{self, Optimizer};
/// let optimizer = optimizers::get("sgd")?.clipnorm(1.0);
/// assert_eq!(optimizer.learning_rate(), 0.01);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Index`] if there is no such optimizer.
pub fn get(name: &str) -> Result<Box<dyn Optimizer>> {
    let found = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
    let names = || NAMES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let (_, make) = found.ok_or_else(|| {
        Error::Index(message!(
            "optimizers.get: there is no '{name}'; the optimizers are {}.",
            names()
        ))
    })?;
    Ok(make())
}
