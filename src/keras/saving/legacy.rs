//! Weights in Keras's old HDF5 files, in which each layer has a group with its name, which lists its variables.

use std::path::Path;

use super::paths::VariablePath;
use crate::error::{Error, Result, message};
use crate::hdf5::{File, Node};
use crate::trackable::NamedArray;

/// The variables below `node`, in the file's order: by layer in the order of the model, with a layer's trainable variables
/// first.
pub(super) fn arrays<'a>(
    file: &File<'a>,
    node: &Node<'a>,
    places: &[VariablePath],
    name: &Path,
) -> Result<Vec<NamedArray<'a>>> {
    let name = name.display();
    let below = |path: &str| match node.path() {
        "" => path.to_string(),
        root => format!("{root}/{path}"),
    };
    let missing = |path: &str| {
        Error::Data(message!(
            "{name}: load: the file lists '{path}', and has no such object. It is damaged; take another copy."
        ))
    };
    let mut found = Vec::new();
    for layer in file.texts(node, "layer_names")?.unwrap_or_default() {
        let group = file.get(&below(&layer)).ok_or_else(|| missing(&layer))?;
        for weight in file.texts(group, "weight_names")?.unwrap_or_default() {
            let path = below(&format!("{layer}/{weight}"));
            let dataset = file.get(&path).ok_or_else(|| missing(&path))?;
            // The arrays, which may be large, are read only once all of them are known to fit.
            found.push((path, dataset));
        }
    }
    if found.len() != places.len() {
        return Err(Error::Checkpoint(message!(
            "{name}: load: the file holds {} variables, and the model has {}. Build the model from the same layers \
             in the same order.",
            found.len(),
            places.len()
        )));
    }
    let array = |((path, dataset), place): ((String, &Node<'a>), &VariablePath)| {
        let array = file.values(dataset)?;
        let (shape, dtype) = (array.shape(), array.dtype().file_name());
        if let Some(wanted) = place.shape.as_ref().filter(|wanted| **wanted != shape) {
            return Err(Error::Checkpoint(message!(
                "{name}: load: '{path}' is {shape:?} of {dtype} in the file, and '{}' {wanted:?} in the model. Build \
                 the model from the same layers in the same order.",
                place.name
            )));
        }
        Ok(NamedArray::new(place.name.clone(), array))
    };
    found.into_iter().zip(places).map(array).collect()
}
