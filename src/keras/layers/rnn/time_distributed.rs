//! [`TimeDistributed`]: applies a layer to every step of a sequence.

use crate::error::{Error, Result, message};
#[cfg(feature = "json")]
use crate::keras::Config;
use crate::keras::layers::formats::{Class, PartNames};
#[cfg(feature = "json")]
use crate::keras::layers::{Configured, layer_from_config};
use crate::keras::{Context, Layer};
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable, snake_case};

/// Applies a layer to every time step of `[B,T,..]`, with the same weights: the result is `[B,T,..]`.
///
/// The layer receives the steps as one batch `[B*T,..]`, with a mask `[B*T]` if there is one.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::keras::{INFERENCE, Layer, layers::{Conv2D, TimeDistributed}};
/// let layer = TimeDistributed::new(Conv2D::new(4, [3, 3]));
/// let films = tf::Tensor::zeros([2, 10, 16, 16, 3])?;
/// assert_eq!(layer.call(&films, INFERENCE)?.shape(), [2, 10, 14, 14, 4]);
/// # Ok(())
/// # }
/// ```
pub struct TimeDistributed {
    layer: Box<dyn Layer>,
}

impl std::fmt::Debug for TimeDistributed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TimeDistributed").field("layer", &self.layer.kind()).finish_non_exhaustive()
    }
}

impl TimeDistributed {
    /// Wraps this layer.
    pub fn new(layer: impl Layer + 'static) -> Self {
        TimeDistributed { layer: Box::new(layer) }
    }
}

impl Trackable for TimeDistributed {
    fn track(&self, parts: &mut Parts<'_>) {
        parts.add(&snake_case(self.layer.kind()), &self.layer);
    }

    fn class(&self) -> Option<&'static Class> {
        static CLASS: Class = Class::new("TimeDistributed")
            .attributes(&[PartNames::new("*").checkpoint("layer").keras("layer")]);
        Some(&CLASS)
    }
}

impl Layer for TimeDistributed {
    #[cfg(feature = "json")]
    fn get_config(&self) -> Result<Config> {
        self.config()
    }

    fn call(&self, x: &Tensor, cx: Context<'_>) -> Result<Tensor> {
        let &[batch, steps, ref rest @ ..] = x.shape() else { return Err(rank_error(x)) };
        if rest.is_empty() {
            return Err(rank_error(x));
        }
        // A factor of the number of elements, so it does not overflow.
        let count = batch * steps;
        let flat = x.reshape_to([&[count], rest].concat().into())?;
        let mask = match cx.mask() {
            None => None,
            Some(mask) if mask.rank() >= 2 && mask.shape()[..2] == [batch, steps] => {
                Some(mask.reshape_to([&[count], &mask.shape()[2..]].concat().into())?)
            }
            Some(mask) => {
                return Err(Error::Shape(message!(
                    "TimeDistributed: the mask is {:?} and the input {:?}; the mask must begin with [B, T].",
                    mask.shape(),
                    x.shape()
                )));
            }
        };
        let y = self.layer.call(&flat, cx.with_mask(mask.as_ref()))?;
        match y.shape() {
            [rows, own @ ..] if *rows == count => {
                let shape = [&[batch, steps], own].concat();
                y.reshape_to(shape.into())
            }
            shape => Err(Error::Shape(message!(
                "TimeDistributed: for {count} steps of {rest:?} the layer gave {shape:?}; it must give a row for each."
            ))),
        }
    }
}

fn rank_error(x: &Tensor) -> Error {
    Error::Shape(message!(
        "TimeDistributed: the input is {:?}; it must be [B, T, ..] with three axes or more.",
        x.shape()
    ))
}

#[cfg(feature = "json")]
impl Configured for TimeDistributed {
    fn class_name() -> &'static str {
        "TimeDistributed"
    }

    fn config(&self) -> Result<Config> {
        let mut config = Config::new(Self::class_name());
        config.set_json("layer", self.layer.get_config()?.nested());
        Ok(config)
    }

    fn from_config(config: &Config) -> Result<Self> {
        config.only(&["layer"], &[])?;
        Ok(TimeDistributed { layer: layer_from_config(&config.inner("layer")?)? })
    }
}
