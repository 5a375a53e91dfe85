//! A model's weights as a NumPy archive.

use crate::data::npy::{parse_npz, write_npz};
use crate::error::{Error, Result};
use crate::trackable::weights::{Arrays, LoadOptions, load};
use crate::trackable::{NamedArray, Trackable};

/// The variables of `model` as the contents of a `.npz` file, by name. `numpy.load` reads it.
///
/// # Errors
/// As [`Trackable::named_arrays_async`].
pub async fn weights_to_npz_async(model: &impl Trackable) -> Result<Vec<u8>> {
    let arrays = model.named_arrays_async().await?;
    write_npz(arrays.into_iter().map(|NamedArray { name, array }| (name, array)), false)
}

/// Sets the variables of `model` to the arrays with their names in the contents of a `.npz` file.
///
/// # Errors
/// As [`parse_npz`] and [`Trackable::load_safetensors_with`].
pub fn weights_from_npz(model: &impl Trackable, bytes: &[u8], options: LoadOptions) -> Result<()> {
    let arrays = parse_npz(bytes, "the contents")?;
    let arrays = arrays.into_iter().map(|(name, array)| NamedArray::new(name, array));
    load(model, &Arrays::new(arrays), &options)
}

/// Writes the variables of `model` as the `.npz` file at `path`, by name (`numpy.savez`). Blocks.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Trackable, keras::{Sequential, layers::Dense}, weights::{self, LoadOptions}};
/// let model = Sequential::new().add(Dense::new(3));
/// model.build([1, 2])?;
/// let path = std::env::temp_dir().join(format!("wgrad-weights-{}.npz", std::process::id()));
/// weights::save_npz(&model, &path)?;
/// weights::load_npz(&model, &path, LoadOptions::new())?;
/// # std::fs::remove_file(&path).expect("it was written");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`weights_to_npz_async`]; [`Error::Io`] if the file cannot be written.
#[cfg(not(target_family = "wasm"))]
pub fn save_npz(model: &impl Trackable, path: impl AsRef<std::path::Path>) -> Result<()> {
    use std::io::Write;
    let (path, bytes) = (path.as_ref(), pollster::block_on(weights_to_npz_async(model))?);
    let written = crate::files::replace(path, |file| file.write_all(&bytes));
    written.map_err(|error| Error::io(path, error))
}

/// Sets the variables of `model` to the arrays with their names in the `.npz` file at `path`.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read; otherwise as [`weights_from_npz`].
#[cfg(not(target_family = "wasm"))]
pub fn load_npz(
    model: &impl Trackable,
    path: impl AsRef<std::path::Path>,
    options: LoadOptions,
) -> Result<()> {
    let path = path.as_ref();
    let arrays = crate::data::npy::load_npz(path)?;
    let arrays = arrays.into_iter().map(|(name, array)| NamedArray::new(name, array));
    crate::trackable::weights::in_file(path, load(model, &Arrays::new(arrays), &options))
}
