//! Loads a network's weights from a file, by the format that its name says.

use std::path::Path;

use super::names::WeightNames;
use crate::error::Result;
#[cfg(any(
    target_family = "wasm",
    not(all(feature = "keras-files", feature = "safetensors"))
))]
use crate::error::{Error, message};
use crate::trackable::Trackable;

#[cfg(not(target_family = "wasm"))]
impl WeightNames {
    /// Sets the weights of `model` to those in the file at `path`: the publisher's safetensors, a file with the names of this
    /// crate, or one that Keras has written. Messages call the model `network`.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read; [`Error::Data`](crate::Error::Data) if it is damaged or its
    /// format needs a feature that is off; [`Error::Checkpoint`](crate::Error::Checkpoint) if the weights are those of another
    /// network. The message lists the names that are missing and those that are not used, and the shapes that differ, ten of
    /// each.
    pub fn load_into<M: Trackable>(
        &self,
        model: &M,
        network: &str,
        path: impl AsRef<Path>,
    ) -> Result<()> {
        load(model, path.as_ref(), self, network, false)
    }
}

/// Sets the weights of `model` to those in the file at `path`, which Keras has written, or which has the model's own names or
/// those in `names`. `top` says whether the network has a classifier.
#[cfg(target_family = "wasm")]
pub(super) fn load<M: Trackable>(
    _: &M,
    path: &Path,
    _: &WeightNames,
    network: &str,
    _: bool,
) -> Result<()> {
    Err(Error::Data(message!(
        "{network}: the weights are in '{}', and a page has no files. Build the network without, and load the bytes with \
         load_safetensors_with or weights_from_h5.",
        path.display()
    )))
}

/// Sets the weights of `model` to those in the file at `path`, which Keras has written, or which has the model's own names or
/// those in `names`. `top` says whether the network has a classifier.
#[cfg(not(target_family = "wasm"))]
pub(super) fn load<M: Trackable>(
    model: &M,
    path: &Path,
    names: &WeightNames,
    network: &str,
    top: bool,
) -> Result<()> {
    match path.extension().and_then(std::ffi::OsStr::to_str) {
        Some("h5" | "hdf5" | "keras") => from_keras(model, path),
        _ => from_safetensors(model, path, names, network, top),
    }
}

#[cfg(all(not(target_family = "wasm"), feature = "keras-files"))]
fn from_keras<M: Trackable>(model: &M, path: &Path) -> Result<()> {
    crate::keras::saving::load_weights(model, path)
}

#[cfg(all(not(target_family = "wasm"), not(feature = "keras-files")))]
fn from_keras<M: Trackable>(_: &M, path: &Path) -> Result<()> {
    Err(Error::Data(message!(
        "{}: load: Keras's files need the feature `keras-files`.",
        path.display()
    )))
}

#[cfg(all(not(target_family = "wasm"), feature = "safetensors"))]
use super::published::load as from_safetensors;

#[cfg(all(not(target_family = "wasm"), not(feature = "safetensors")))]
fn from_safetensors<M: Trackable>(
    _: &M,
    path: &Path,
    _: &WeightNames,
    _: &str,
    _: bool,
) -> Result<()> {
    Err(Error::Data(message!(
        "{}: load: safetensors files need the feature `safetensors`.",
        path.display()
    )))
}
