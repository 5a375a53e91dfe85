//! Weights of other libraries: safetensors files with any names, dtypes and layouts, and a model's weights in other
//! libraries' forms.
//!
//! `options` defines how names are mapped, `values` changes dtypes and axes, `pytorch` has PyTorch's names and layouts,
//! `safetensors` and `shards` read and write files. A [`Source`] may also be a file of another format.

pub(crate) mod index;
pub(crate) mod layers;
mod options;
mod pattern;
mod pytorch;
mod safetensors;
#[cfg(not(target_family = "wasm"))]
mod shards;
pub(crate) mod values;

pub use options::{LoadOptions, SaveOptions};
pub use safetensors::{SafetensorsFile, TensorInfo};

use std::collections::BTreeMap;

use super::arrays::{self, Everything, Scope};
use super::{NamedArray, Trackable};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::host_array::HostDType;
use crate::support::sort::sort_by;
use layers::Layers;

/// Arrays that are read one by one.
pub(crate) trait Source {
    fn names(&self) -> Vec<&str>;

    /// The array, whose elements have whole bytes.
    fn read(&self, name: &str) -> Result<NamedArray<'_>>;
}

/// Arrays in memory.
pub(crate) struct Arrays<'a>(BTreeMap<String, NamedArray<'a>>);

impl<'a> Arrays<'a> {
    pub(crate) fn new(arrays: impl IntoIterator<Item = NamedArray<'a>>) -> Self {
        let named = |array: NamedArray<'a>| (array.name.to_string(), array);
        Arrays(arrays.into_iter().map(named).collect())
    }
}

impl Source for Arrays<'_> {
    fn names(&self) -> Vec<&str> {
        self.0.keys().map(|name| &**name).collect()
    }

    fn read(&self, name: &str) -> Result<NamedArray<'_>> {
        let Some(array) = self.0.get(name) else {
            return Err(Error::Checkpoint(message!("load: there is no array '{name}'.")));
        };
        values::check_size(array)?;
        Ok(NamedArray::new(&*array.name, array.array.view()))
    }
}

/// Sets the variables of `root` to their values from `source`. After an error they are unchanged.
pub(crate) fn load(root: &dyn Trackable, source: &dyn Source, options: &LoadOptions) -> Result<()> {
    let rules = options.rules()?;
    // The file's name of a tensor, and the model's.
    let mut taken: Vec<(&str, String)> = Vec::new();
    for name in source.names() {
        taken.extend(rules.name(name).map(|new| (name, new)));
    }
    let mut sorted: Vec<&(&str, String)> = taken.iter().collect();
    sort_by(&mut sorted, |a, b| a.1.cmp(&b.1));
    if let Some([a, b]) = sorted.windows(2).find(|pair| pair[0].1 == pair[1].1) {
        return Err(Error::Checkpoint(message!(
            "load: '{}' and '{}' both become '{}' by the options. Make one of the patterns more specific, or ignore \
             one.",
            a.0,
            b.0,
            a.1
        )));
    }
    let read = |at: usize| -> Result<NamedArray<'_>> {
        let (name, new) = &taken[at];
        let array = source.read(name)?;
        let array = match rules.axes(new) {
            Some(axes) => values::permuted(&array, axes)?,
            None => array,
        };
        Ok(NamedArray::new(new.clone(), array.array))
    };
    let names: Vec<&str> = taken.iter().map(|(_, new)| &**new).collect();
    let arrays: Vec<NamedArray<'_>> = match options.pytorch {
        true => pytorch::arrays(root, &names, &read, options.round, &|name| rules.may_lack(name))?,
        false => (0..taken.len()).map(read).collect::<Result<_>>()?,
    };
    let variables = root_variables(root);
    let mut fitting = Vec::with_capacity(arrays.len());
    for array in arrays {
        let dtype = variables.binary_search_by(|(name, _)| name.as_str().cmp(&array.name));
        fitting.push(match dtype {
            Ok(at) => values::converted(array, variables[at].1, options.round)?,
            Err(_) if options.round && array.array.dtype() == HostDType::F64 => {
                values::converted(array, DType::F32, true)?
            }
            // Its variable does not exist yet, and converts the array when it is created.
            Err(_) => array,
        });
    }
    arrays::set_with(root, Scope::Variables, &fitting, &|name| rules.may_lack(name))
}

/// The variables that exist and their dtypes, sorted by name.
fn root_variables(root: &dyn Trackable) -> Vec<(String, DType)> {
    let everything = Everything::collect(root, Scope::Variables);
    let mut variables: Vec<_> =
        everything.variables().map(|(name, v)| (name.to_string(), v.dtype())).collect();
    sort_by(&mut variables, |a, b| a.0.cmp(&b.0));
    variables
}

/// The arrays of a model in the form that `options` select.
pub(crate) fn for_saving(
    root: &dyn Trackable,
    arrays: Vec<NamedArray<'static>>,
    options: &SaveOptions,
) -> Result<Vec<NamedArray<'static>>> {
    match options.pytorch {
        true => pytorch::written(&Layers::collect(root), arrays),
        false => Ok(arrays),
    }
}

/// As [`load`], from the contents of a safetensors file.
pub(crate) fn load_bytes(root: &dyn Trackable, bytes: &[u8], options: &LoadOptions) -> Result<()> {
    let file = super::file::parse(bytes)?;
    let arrays = super::file::from_bytes(&file)?;
    load(root, &Arrays::new(arrays), options)
}

/// The contents of a safetensors file.
pub(crate) fn to_bytes(arrays: &[NamedArray<'_>], options: &SaveOptions) -> Result<Vec<u8>> {
    super::file::to_bytes_with(arrays, &options.metadata)
}

#[cfg(not(target_family = "wasm"))]
pub(crate) fn save_file(
    path: &std::path::Path,
    arrays: &[NamedArray<'_>],
    options: &SaveOptions,
) -> Result<()> {
    shards::save(path, arrays, options)
}

#[cfg(not(target_family = "wasm"))]
pub(crate) fn load_file(
    root: &dyn Trackable,
    path: &std::path::Path,
    options: &LoadOptions,
) -> Result<()> {
    let file = SafetensorsFile::open(path)?;
    in_file(path, load(root, &file, options))
}

/// Makes an error about contents name the file.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn in_file<T>(path: &std::path::Path, result: Result<T>) -> Result<T> {
    let path = path.display().to_string();
    result.map_err(|error| match error {
        Error::Data(_) | Error::Checkpoint(_) => {
            error.reworded(|text| match text.starts_with(&path) {
                true => text.clone(),
                false => message!("{path}: {text}"),
            })
        }
        other => other,
    })
}

/// Rejects a file that begins like another library's format.
#[cfg(not(target_family = "wasm"))]
fn known_format(start: &[u8], path: &std::path::Path) -> Result<()> {
    let (what, remedy) = match start {
        [0x89, b'H', b'D', b'F', ..] => (
            "an HDF5 file, as Keras writes its weights",
            "Load it with keras::saving::load_weights, feature `keras-files`",
        ),
        [b'P', b'K', 3, 4, ..] => (
            "a ZIP archive, as NumPy's .npz, Keras's .keras and PyTorch's .pt files are",
            "Load .npz with weights::load_npz (feature `npy`), .keras with keras::saving::load_model (feature \
             `keras-files`), and write a .pt file again with safetensors.torch.save_file",
        ),
        [0x93, b'N', b'U', b'M', ..] => {
            ("a NumPy array", "Load it with data::npy::load, feature `npy`")
        }
        _ => return Ok(()),
    };
    Err(Error::Data(message!(
        "{}: load: this is {what}, not a safetensors file. {remedy}.",
        path.display()
    )))
}
