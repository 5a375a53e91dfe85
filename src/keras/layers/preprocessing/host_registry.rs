//! The host layers that a config can describe, by Keras's class.

use super::{
    CategoryEncoding, Discretization, Hashing, HostLayer, IntegerLookup, StringLookup,
    TextVectorization,
};
use crate::error::{Error, Result, message};
use crate::keras::Config;
use crate::keras::layers::Configured;

/// Creates a layer for strings or numbers on the host from its config; the layers that are no [`HostLayer`], such as
/// [`HashedCrossing`](super::HashedCrossing), are not among them.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::layers::{HostLayer, StringLookup, host_layer_from_config};
/// let config = StringLookup::new().vocabulary(["a", "b"]).describe()?;
/// let layer = host_layer_from_config(&config)?;
/// assert_eq!(layer.apply("b")?.to_array::<i64>()?, ndarray::arr0(2).into_dyn());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Data`] if the class is unknown, or if an option is unknown, missing or invalid.
pub fn host_layer_from_config(config: &Config) -> Result<Box<dyn HostLayer>> {
    Ok(match config.class() {
        "CategoryEncoding" => Box::new(CategoryEncoding::from_config(config)?),
        "Discretization" => Box::new(Discretization::from_config(config)?),
        "Hashing" => Box::new(Hashing::from_config(config)?),
        "IntegerLookup" => Box::new(IntegerLookup::from_config(config)?),
        "StringLookup" => Box::new(StringLookup::from_config(config)?),
        "TextVectorization" => Box::new(TextVectorization::from_config(config)?),
        other => {
            return Err(Error::Data(message!(
                "from_config: there is no layer '{other}' for strings or numbers on the host. The known ones are CategoryEncoding, \
                 Discretization, Hashing, IntegerLookup, StringLookup, TextVectorization."
            )));
        }
    })
}
