//! A model's weights in Keras's HDF5 format: `save_weights("x.weights.h5")` and `load_weights`.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use super::paths::{Extra, ExtraValue, VariablePath, places};
use crate::error::{Error, Result, message};
use crate::hdf5::{self, File, Group};
use crate::host_array::HostArray;
use crate::trackable::weights::layers::Layers;
use crate::trackable::weights::{Arrays, LoadOptions, load};
use crate::trackable::{NamedArray, Trackable};

/// Returns the contents of a `.weights.h5` file with the variables of `model`, as Keras's `save_weights` writes it. A Keras
/// model of the same layers can load it.
///
/// # Errors
/// The errors of [`Trackable::named_arrays_async`]; [`Error::Checkpoint`] if two layers would have the same location in the
/// file.
pub async fn weights_to_h5_async(model: &impl Trackable) -> Result<Vec<u8>> {
    let arrays = model.named_arrays_async().await?;
    to_h5(&Layers::collect(model), &arrays)
}

/// Sets the variables of `model` to those in the contents of a `.weights.h5` file of Keras, or of a whole model in Keras's old
/// HDF5 format. The model needs the same layers in the same order; their names do not matter.
///
/// # Errors
/// [`Error::Data`] if the contents are damaged; [`Error::Checkpoint`] if they belong to a different model. After an error, the
/// variables are unchanged.
pub fn weights_from_h5(model: &impl Trackable, bytes: &[u8]) -> Result<()> {
    from_h5(model, bytes, Path::new("the contents"))
}

/// Writes the variables of `model` as the `.weights.h5` file at `path`, which Keras's `load_weights` reads into a model of the
/// same layers. Blocks.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Trackable, keras::{Sequential, layers::Dense, saving}};
/// let model = Sequential::new().add(Dense::new(3));
/// model.build([1, 2])?;
/// let path = std::env::temp_dir().join(format!("wgrad-doc-{}.weights.h5", std::process::id()));
/// saving::save_weights(&model, &path)?;
/// saving::load_weights(&model, &path)?;
/// # std::fs::remove_file(path).expect("it was written");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The errors of [`weights_to_h5_async`]; [`Error::Io`] if the file cannot be written.
#[cfg(not(target_family = "wasm"))]
pub fn save_weights(model: &impl Trackable, path: impl AsRef<Path>) -> Result<()> {
    use std::io::Write;
    let (path, bytes) = (path.as_ref(), pollster::block_on(weights_to_h5_async(model))?);
    let written = crate::files::replace(path, |file| file.write_all(&bytes));
    written.map_err(|error| Error::io(path, error))
}

/// Sets the variables of `model` to those in a file of Keras at `path`: `.weights.h5`, `.keras`, or a whole model in the old HDF5
/// format.
/// The model needs the same layers in the same order; their names do not matter.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read; else the errors of [`weights_from_h5`].
#[cfg(not(target_family = "wasm"))]
pub fn load_weights(model: &impl Trackable, path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    let bytes = crate::files::read(path).map_err(|error| Error::io(path, error))?;
    let archive = bytes.starts_with(b"PK");
    let load = || match archive {
        true => from_h5(model, &super::members::weights_in(&bytes, path)?, path),
        false => from_h5(model, &bytes, path),
    };
    crate::trackable::weights::in_file(path, load())
}

pub(super) fn to_h5(layers: &Layers, arrays: &[NamedArray<'_>]) -> Result<Vec<u8>> {
    to_h5_with(layers, arrays, &[])
}

/// As [`to_h5`], with other arrays at their paths.
pub(super) fn to_h5_with(
    layers: &Layers,
    arrays: &[NamedArray<'_>],
    others: &[(String, HostArray<'static>)],
) -> Result<Vec<u8>> {
    let (places, extras) = places(layers);
    let of_name: BTreeMap<&str, &VariablePath> =
        places.iter().map(|place| (&*place.name, place)).collect();
    let array_of: BTreeMap<&str, &NamedArray<'_>> =
        arrays.iter().map(|array| (&*array.name, array)).collect();
    let mut root = Group::default();
    others.iter().for_each(|(path, array)| root.add(path, array.view()));
    for extra in &extras {
        match &extra.what {
            ExtraValue::Count => root.add(&extra.path, ndarray::arr0(0i64).into()),
            ExtraValue::Copy(name) => {
                if let Some(array) = array_of.get(&**name) {
                    root.add(&extra.path, array.array.view());
                }
            }
        }
    }
    for array in arrays {
        let place = of_name.get(&*array.name).ok_or_else(|| {
            Error::Checkpoint(message!(
                "save: '{}' is not a variable of a layer, and Keras's files cannot hold it.",
                array.name
            ))
        })?;
        root.add(&place.path, array.array.view());
    }
    hdf5::write(&root)
}

pub(super) fn from_h5(model: &dyn Trackable, bytes: &[u8], name: &Path) -> Result<()> {
    let file = File::parse(bytes, name)?;
    let (places, extras) = places(&Layers::collect(model));
    let found = match file.get("model_weights").or_else(|| file.get("")) {
        Some(node) if file.texts(node, "layer_names")?.is_some() => {
            super::legacy::arrays(&file, node, &places, name)?
        }
        _ => arrays(&file, &places, &extras, model.kind(), name)?,
    };
    load(model, &Arrays::new(found), &LoadOptions::new())
}

/// The variables in a file of Keras 3.
fn arrays<'a>(
    file: &File<'a>,
    places: &[VariablePath],
    extras: &[Extra],
    kind: &str,
    name: &Path,
) -> Result<Vec<NamedArray<'a>>> {
    let name = name.display();
    let mut of_path: BTreeMap<&str, &VariablePath> =
        places.iter().map(|place| (&*place.path, place)).collect();
    let attributes: HashSet<&str> =
        places.iter().filter_map(|place| place.path.split('/').next()).collect();
    let extras: HashSet<&str> = extras.iter().map(|extra| &*extra.path).collect();
    let mut found = Vec::new();
    for node in file.datasets() {
        let path = node.path();
        // The file may also contain the optimizer, the metrics, and layers' random generators.
        let own = path.starts_with("vars/") || path.starts_with("layers/");
        let generator = path.split('/').any(|part| part == "seed_generator");
        let Some(place) = of_path.remove(path) else {
            let attribute =
                !own && path.split('/').next().is_some_and(|first| attributes.contains(first));
            // The weights of a lookup's words are in its config.
            let extra = extras.contains(path) || path.ends_with("/vars/idf_weights");
            if (own || attribute) && !generator && !extra {
                let array = file.values(node)?;
                let (shape, dtype) = (array.shape(), array.dtype().file_name());
                return Err(Error::Checkpoint(message!(
                    "{name}: load: the file holds '{path}' {shape:?} of {dtype}, and the {kind} has no such \
                     variable; it has {}. Build the model from the same layers in the same order.",
                    shown(places)
                )));
            }
            continue;
        };
        let array = file.values(node)?;
        let (shape, dtype) = (array.shape(), array.dtype().file_name());
        if let Some(wanted) = place.shape.as_ref().filter(|wanted| **wanted != shape) {
            return Err(Error::Checkpoint(message!(
                "{name}: load: '{path}' is {shape:?} of {dtype} in the file, and '{}' {wanted:?} in the model. Build \
                 the model from the same layers in the same order.",
                place.name
            )));
        }
        found.push(NamedArray::new(place.name.clone(), array));
    }
    if let Some(place) = of_path.values().next() {
        let held: Vec<&str> = file.datasets().map(|node| node.path()).take(6).collect();
        let shape = place.shape.as_ref().map_or(String::new(), |shape| format!(" {shape:?}"));
        return Err(Error::Checkpoint(message!(
            "{name}: load: the file lacks '{}' for '{}'{shape}; it holds {}. Build the model from the same layers in \
             the same order.",
            place.path,
            place.name,
            if held.is_empty() {
                "nothing".to_string()
            } else {
                format!("'{}', ..", held.join("', '"))
            }
        )));
    }
    Ok(found)
}

/// A few locations, for a message.
fn shown(places: &[VariablePath]) -> String {
    let paths: Vec<String> =
        places.iter().take(6).map(|place| format!("'{}'", place.path)).collect();
    match places.len() {
        0 => "nothing".to_string(),
        1..=6 => paths.join(", "),
        count => format!("{} and {} more", paths.join(", "), count - 6),
    }
}
