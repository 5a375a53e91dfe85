//! Losses from Keras's configs.

use super::*;
use crate::error::{Error, Result, message};
use crate::keras::Config;
use crate::shape::{Axes, Axis};

fn axis(config: &Config, key: &str) -> Result<Axis> {
    config.need::<i64>(key).map(Axis::from)
}

fn whole(config: &Config, key: &str) -> Result<i32> {
    let number: i64 = config.need(key)?;
    i32::try_from(number).map_err(|_| {
        Error::Data(message!(
            "from_config: '{key}' of {} is {number}; it must be a whole number of 32 bits.",
            config.class()
        ))
    })
}

fn reduction(config: &Config) -> Result<Option<Reduction>> {
    let Some(name) = config.get_json("reduction") else { return Ok(None) };
    Ok(Some(match name.as_str() {
        Some("sum_over_batch_size" | "mean") => Reduction::SumOverBatchSize,
        Some("sum") => Reduction::Sum,
        Some("none") => Reduction::None,
        _ => {
            return Err(Error::Data(message!(
                "from_config: 'reduction' of {} is {name}; it must be \"sum_over_batch_size\", \"sum\" or \"none\".",
                config.class()
            )));
        }
    }))
}

/// Classes, and the options of each: those of simple types, then `axis` and a whole number that may be absent.
macro_rules! losses {
    ($($class:literal => $loss:ident [$($option:ident $(: $type:ty)?),*] $($axis:ident)? $(or none $whole:ident)?;)*) => {
        /// Creates the loss that Keras's config describes. Options that are absent or null have Keras's defaults; the name is ignored.
        ///
        /// ```
        /// # fn main() -> wgrad::Result<()> {
        /// use wgrad as tf;
        /// use tf::keras::{Config, losses::{self, Loss}};
        /// let mut config = Config::new("Huber");
        /// config.set("delta", &0.5_f32)?;
        /// let loss = losses::from_config(&config)?;
        /// assert_eq!(loss.call(&tf::constant([2.0])?, &tf::constant([0.0])?)?.item::<f32>()?, 0.875);
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// # Errors
        /// [`Error::Data`] if there is no such class, or an option is unknown or wrong.
        pub fn from_config(config: &Config) -> Result<Box<dyn Loss>> {
            match config.class() {
                $($class => {
                    config.only(&["name", "dtype", "reduction", $(stringify!($option),)* $(stringify!($axis),)? $(stringify!($whole))?], &[])?;
                    let mut made = $loss::new();
                    $(if config.get_json(stringify!($option)).is_some() {
                        made = made.$option(config.need$(::<$type>)?(stringify!($option))?);
                    })*
                    $(if config.get_json("axis").is_some() {
                        made = made.$axis(axis(config, "axis")?);
                    })?
                    $(if config.get_json(stringify!($whole)).is_some() {
                        made = made.$whole(whole(config, stringify!($whole))?);
                    })?
                    if let Some(reduction) = reduction(config)? {
                        made = made.reduction(reduction);
                    }
                    Ok(Box::new(made))
                })*
                class => Err(Error::Data(message!(
                    "from_config: there is no loss '{class}'. The known ones are {}.",
                    [$($class),*].join(", ")
                ))),
            }
        }
    };
}
losses! {
    "BinaryCrossentropy" => BinaryCrossentropy [from_logits, label_smoothing] axis;
    "BinaryFocalCrossentropy" => BinaryFocalCrossentropy
        [apply_class_balancing, alpha, gamma, from_logits, label_smoothing] axis;
    "CategoricalCrossentropy" => CategoricalCrossentropy [from_logits, label_smoothing] axis;
    "CategoricalFocalCrossentropy" => CategoricalFocalCrossentropy [alpha, gamma, from_logits, label_smoothing] axis;
    "CategoricalGeneralizedCrossEntropy" => CategoricalGeneralizedCrossEntropy [q];
    "CategoricalHinge" => CategoricalHinge [];
    "Circle" => Circle [gamma, margin, remove_diagonal];
    "CosineSimilarity" => CosineSimilarity [] axis;
    "Dice" => Dice [axis: Axes];
    "Hinge" => Hinge [];
    "Huber" => Huber [delta];
    "KLDivergence" => KlDivergence [];
    "LogCosh" => LogCosh [];
    "MeanAbsoluteError" => MeanAbsoluteError [];
    "MeanAbsolutePercentageError" => MeanAbsolutePercentageError [];
    "MeanSquaredError" => MeanSquaredError [];
    "MeanSquaredLogarithmicError" => MeanSquaredLogarithmicError [];
    "Poisson" => Poisson [];
    "SparseCategoricalCrossentropy" => SparseCategoricalCrossentropy [from_logits] axis or none ignore_class;
    "SquaredHinge" => SquaredHinge [];
    "Tversky" => Tversky [alpha, beta, axis: Axes];
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(class: &str, options: serde_json::Value) -> Config {
        let serde_json::Value::Object(options) = options else { panic!("options are an object") };
        Config::with_options(class, options)
    }

    #[test]
    fn options_change_the_loss() {
        let options = json!({"from_logits": true, "reduction": "sum", "axis": -1, "name": "loss", "ignore_class": null});
        let loss = from_config(&config("SparseCategoricalCrossentropy", options)).unwrap();
        assert_eq!(loss.reduction(), Reduction::Sum);
        let (y, logits) =
            (crate::constant([1, 0]).unwrap(), crate::constant([[0.0, 0.0], [0.0, 0.0]]).unwrap());
        let value = loss.call(&y, &logits).unwrap().item::<f32>().unwrap();
        assert!((value - 2.0 * 2f32.ln()).abs() < 1e-6, "{value}");
    }

    #[test]
    fn wrong_options_are_named() {
        for (class, options, text) in [
            ("Mse", json!({}), "there is no loss 'Mse'"),
            ("Huber", json!({"gamma": 1}), "'gamma' of Huber"),
            ("Huber", json!({"reduction": "median"}), "'reduction' of Huber is \"median\""),
        ] {
            let Err(error) = from_config(&config(class, options)) else {
                panic!("{class} was made")
            };
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
