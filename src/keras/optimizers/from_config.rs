//! Optimizers from Keras's configs.

use super::schedules;
use super::{
    Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Ftrl, Lamb, Lion, Muon, Nadam, Optimizer,
    RmsProp, Sgd,
};
use crate::error::{Error, Result, message};
use crate::keras::Config;

/// The options that all optimizers share.
const SHARED: [&str; 11] = [
    "learning_rate",
    "name",
    "weight_decay",
    "clipnorm",
    "clipvalue",
    "global_clipnorm",
    "use_ema",
    "ema_momentum",
    "ema_overwrite_frequency",
    "loss_scale_factor",
    "gradient_accumulation_steps",
];

/// Classes, and the options that each has of its own.
macro_rules! optimizers {
    ($($class:literal => $optimizer:ident [$($option:ident $(: $type:ty)?),*];)*) => {
        /// Creates the optimizer that Keras's config describes. Options that are absent or null have Keras's defaults; the learning rate may be a
        /// schedule. The config's name is ignored.
        ///
        /// ```
        /// # fn main() -> wgrad::Result<()> {
        /// use wgrad::keras::{Config, optimizers::{self, Optimizer}};
        /// let mut config = Config::new("Adam");
        /// config.set("learning_rate", &0.01)?;
        /// config.set("clipnorm", &1.0)?;
        /// assert_eq!(optimizers::from_config(&config)?.learning_rate(), 0.01);
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// # Errors
        /// [`Error::Data`] if there is no such class, or an option is unknown or wrong.
        pub fn from_config(config: &Config) -> Result<Box<dyn Optimizer>> {
            match config.class() {
                $($class => {
                    let known: Vec<&str> = SHARED.into_iter().chain([$(stringify!($option)),*]).collect();
                    config.only(&known, &[])?;
                    checked(config)?;
                    let mut made = match schedule(config)? {
                        Some(schedule) => $optimizer::new(schedule),
                        None => $optimizer::new(rate(config)?),
                    };
                    $(if config.get_json(stringify!($option)).is_some() {
                        made = made.$option(config.need$(::<$type>)?(stringify!($option))?);
                    })*
                    Ok(Box::new(shared(made, config)?))
                })*
                class => Err(Error::Data(message!(
                    "from_config: there is no optimizer '{class}'. The known ones are {}.",
                    [$($class),*].join(", ")
                ))),
            }
        }
    };
}
optimizers! {
    "Adadelta" => Adadelta [rho, epsilon];
    "Adafactor" => Adafactor [beta_2_decay, epsilon_1, epsilon_2, clip_threshold, relative_step];
    "Adagrad" => Adagrad [initial_accumulator_value, epsilon];
    "Adam" => Adam [beta_1, beta_2, epsilon, amsgrad];
    "AdamW" => AdamW [beta_1, beta_2, epsilon, amsgrad];
    "Adamax" => Adamax [beta_1, beta_2, epsilon];
    "Ftrl" => Ftrl [
        learning_rate_power,
        initial_accumulator_value,
        l1_regularization_strength,
        l2_regularization_strength,
        l2_shrinkage_regularization_strength,
        beta
    ];
    "Lamb" => Lamb [beta_1, beta_2, epsilon];
    "Lion" => Lion [beta_1, beta_2];
    "Muon" => Muon [
        adam_beta_1, adam_beta_2, adam_weight_decay, epsilon, muon_a, muon_b, muon_c, adam_lr_ratio, momentum, nesterov, ns_steps,
        rms_rate: f64,
        exclude_layers: Vec<String>,
        exclude_embeddings
    ];
    "Nadam" => Nadam [beta_1, beta_2, epsilon];
    "RMSprop" => RmsProp [rho, momentum, epsilon, centered];
    "SGD" => Sgd [momentum, nesterov];
}

/// Refuses options that would not mean what they mean in Keras.
fn checked(config: &Config) -> Result<()> {
    if config.options().get("rms_rate").is_some_and(serde_json::Value::is_null) {
        return Err(Error::Data(message!(
            "from_config: 'rms_rate' of {} is null; a config needs a number here. A program can make the optimizer without it.",
            config.class()
        )));
    }
    let excluded = config.get_json("exclude_layers").and_then(serde_json::Value::as_array);
    let texts = excluded.into_iter().flatten().filter_map(serde_json::Value::as_str);
    match texts.into_iter().find(|text| text.contains(|letter| r"\^$.|?*+()[]{}".contains(letter)))
    {
        Some(text) => Err(Error::Data(message!(
            "from_config: 'exclude_layers' of {} has the regular expression '{text}', and only parts of names are supported.",
            config.class()
        ))),
        None => Ok(()),
    }
}

/// The schedule that is nested in the config in place of a learning rate.
fn schedule(config: &Config) -> Result<Option<Box<dyn schedules::Schedule>>> {
    match config.get_json("learning_rate") {
        Some(value) if value.is_object() => {
            schedules::from_config(&config.inner("learning_rate")?).map(Some)
        }
        _ => Ok(None),
    }
}

fn rate(config: &Config) -> Result<f32> {
    let default = if config.class() == "SGD" { 0.01 } else { 0.001 };
    Ok(config
        .get_json("learning_rate")
        .map(|_| config.need("learning_rate"))
        .transpose()?
        .unwrap_or(default))
}

fn shared<O: Optimizer>(mut made: O, config: &Config) -> Result<O> {
    macro_rules! set {
        ($($option:ident: $type:ty),*) => {$(
            if config.get_json(stringify!($option)).is_some() {
                made = made.$option(config.need::<$type>(stringify!($option))?);
            }
        )*};
    }
    set!(weight_decay: f64, clipnorm: f64, clipvalue: f64, global_clipnorm: f64);
    // Keras writes the momentum of averages that are off.
    if config.get::<bool>("use_ema")? == Some(true) {
        set!(use_ema: bool, ema_momentum: f64, ema_overwrite_frequency: u64);
    }
    set!(loss_scale_factor: f64);
    // Keras takes 1 for none.
    match config.get_json("gradient_accumulation_steps") {
        Some(_) if config.need::<u64>("gradient_accumulation_steps")? > 1 => {
            set!(gradient_accumulation_steps: u64);
        }
        _ => {}
    }
    Ok(made)
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
    fn every_class_is_made_with_keras_s_defaults() {
        for class in [
            "Adadelta",
            "Adafactor",
            "Adagrad",
            "Adam",
            "AdamW",
            "Adamax",
            "Ftrl",
            "Lamb",
            "Lion",
            "Muon",
            "Nadam",
            "RMSprop",
            "SGD",
        ] {
            let made =
                from_config(&config(class, json!({"learning_rate": null, "clipnorm": null})))
                    .unwrap();
            let named = super::super::get(class).unwrap();
            assert_eq!(made.learning_rate(), named.learning_rate(), "{class}");
            assert_eq!(made.name(), named.name());
        }
    }

    #[test]
    fn muon_has_what_keras_writes() {
        let options = json!({
            "learning_rate": 0.5, "adam_weight_decay": 0.1, "muon_a": 3.0, "muon_b": -4.0, "muon_c": 2.0, "adam_lr_ratio": 1,
            "exclude_layers": ["head"], "exclude_embeddings": true, "rms_rate": 0.2
        });
        assert_eq!(from_config(&config("Muon", options)).unwrap().learning_rate(), 0.5);
        let refused =
            |options| from_config(&config("Muon", options)).map(drop).unwrap_err().to_string();
        assert!(refused(json!({"rms_rate": null})).contains("'rms_rate' of Muon is null"));
        assert!(refused(json!({"exclude_layers": ["head.*"]})).contains("'head.*'"));
    }

    #[test]
    fn schedules_are_nested() {
        let decay = json!({"class_name": "PolynomialDecay", "config": {"initial_learning_rate": 0.5, "decay_steps": 10}});
        let made = from_config(&config("Adam", json!({"learning_rate": decay}))).unwrap();
        assert_eq!(made.learning_rate(), 0.5);
    }

    #[test]
    fn wrong_options_are_named() {
        for (class, options, text) in [
            ("Adem", json!({}), "there is no optimizer 'Adem'"),
            ("SGD", json!({"beta_1": 0.5}), "'beta_1' of SGD is 0.5"),
            ("Adam", json!({"beta_1": "half"}), "'beta_1' of Adam is \"half\""),
            (
                "Adam",
                json!({"learning_rate": {"class_name": "Steps", "config": {}}}),
                "there is no schedule 'Steps'",
            ),
        ] {
            let Err(error) = from_config(&config(class, options)) else {
                panic!("{class} was made")
            };
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
