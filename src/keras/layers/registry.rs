//! The layers that a config can name, by Keras's class.

use super::*;
use crate::error::Error;
use crate::keras::Config;

/// A layer of one tensor or of several.
pub(crate) enum AnyLayer {
    One(Box<dyn Layer>),
    Many(Box<dyn Layer<[Tensor]>>),
}

type Make = fn(&Config) -> Result<AnyLayer>;

/// A row for each class: how its layer is made.
macro_rules! classes {
    ($($kind:ident [$($layer:ident),* $(,)?])*) => {
        fn classes() -> impl Iterator<Item = (&'static str, Make)> {
            [$($((
                $layer::class(),
                (|config: &Config| Ok(AnyLayer::$kind(Box::new($layer::from_config(config)?)))) as Make,
            ),)*)*].into_iter()
        }
    };
}

classes! {
    One [
        Activate,
        AveragePooling2D,
        Conv2D,
        Dense,
        Dropout,
        Flatten,
        LayerNormalization,
        MaxPooling2D,
    ]
    Many []
}

/// The layer that `config` describes; `None` if its class is not one of Keras's that are here.
pub(crate) fn from_config(config: &Config) -> Option<Result<AnyLayer>> {
    let (_, make) = classes().find(|(class, _)| *class == config.class())?;
    Some(make(config))
}

/// Makes a layer of one input from its config.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::{Layer, layers::{Dense, layer_from_config}};
/// let config = Dense::new(10).get_config()?;
/// assert_eq!(layer_from_config(&config)?.get_config()?, config);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Data`] if the class is unknown or takes several inputs, or an option is unknown, missing or wrong.
pub fn layer_from_config(config: &Config) -> Result<Box<dyn Layer>> {
    match from_config(config) {
        Some(Ok(AnyLayer::One(layer))) => Ok(layer),
        Some(Ok(AnyLayer::Many(_))) => Err(Error::Data(message!(
            "from_config: a layer {} takes several inputs, so it cannot stand for a layer of one.",
            config.class()
        ))),
        Some(Err(error)) => Err(error),
        None => {
            let known: Vec<&str> = classes().map(|(class, _)| class).collect();
            Err(Error::Data(message!(
                "from_config: there is no layer '{}'. The known ones are {}.",
                config.class(),
                known.join(", ")
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keras::{Activation, Initializer, Regularizer};

    #[test]
    fn options_come_back() {
        let layer = Dense::new(3)
            .activation(Activation::Relu)
            .use_bias(false)
            .kernel_initializer(Initializer::HeNormal.seed(7))
            .kernel_regularizer(Regularizer::l1_l2(0.5, 0.1));
        let config = layer.get_config().unwrap();
        assert_eq!(config.get::<f32>("units").unwrap(), Some(3.0));
        assert_eq!(config.options()["kernel_regularizer"]["config"]["l2"], 0.1);
        assert_eq!(config.options()["kernel_initializer"]["config"]["seed"], 7);
        assert_eq!(layer_from_config(&config).unwrap().get_config().unwrap(), config);
    }

    #[test]
    fn wrong_configs_are_told() {
        let told = |class: &str, text: &str| {
            let options = serde_json::from_str(text).unwrap();
            layer_from_config(&Config::of(class, options)).err().unwrap().to_string()
        };
        assert_eq!(
            told("Dense", "{}"),
            "from_config: Dense needs 'units', and the config lacks it."
        );
        assert_eq!(
            told("Dense", r#"{"units": -1}"#),
            "from_config: 'units' of Dense is -1; it must be a whole number."
        );
        let channels = r#"{"filters": 1, "kernel_size": 3, "data_format": "channels_first"}"#;
        assert_eq!(
            told("Conv2D", channels),
            "from_config: 'data_format' of Conv2D is \"channels_first\"; here it can only be \"channels_last\"."
        );
        assert!(told("Dens", "{}").starts_with("from_config: there is no layer 'Dens'. The known"));
        assert!(
            told("Dropout", r#"{"rate": 0.5, "rat": 1}"#)
                .contains("has no option 'rat'; it has rate")
        );
    }
}
