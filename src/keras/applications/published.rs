//! Loads safetensors files that others have published, after a check that they fit: [`WeightNames`] has their names.

use std::collections::BTreeMap;
use std::path::Path;

use super::names::{Form, WeightNames};
use crate::error::{Error, Result, message};
use crate::host_array::HostArray;
use crate::trackable::weights::{Source, in_file, load as set};
use crate::trackable::{NamedArray, Trackable};
use crate::weights::SafetensorsFile;

/// The tensors of a file, without what stands in front of all names, and with those that hold several weights in parts.
struct Published<'a> {
    file: SafetensorsFile,
    prefix: &'static str,
    /// For each name here, the file's tensor, and which of how many parts of its rows.
    tensors: BTreeMap<String, (String, Option<[usize; 2]>)>,
    names: &'a WeightNames,
}

impl<'a> Published<'a> {
    fn new(file: SafetensorsFile, names: &'a WeightNames) -> Self {
        let stands = |prefix: &&str| file.names().any(|name| name.starts_with(*prefix));
        let prefix = names.prefixes.iter().copied().find(stands).unwrap_or("");
        let mut tensors = BTreeMap::new();
        for name in file.names() {
            // What has no prefix in a file with one is the end of another network.
            let Some(short) = name.strip_prefix(prefix).or(names.find(name).map(|_| name)) else {
                continue;
            };
            let joined = names.joined.iter().find(|(joined, _)| joined == short);
            match joined {
                None => drop(tensors.insert(short.to_string(), (name.to_string(), None))),
                Some((_, parts)) => {
                    for (at, part) in parts.iter().enumerate() {
                        let place = Some([at, parts.len()]);
                        tensors.insert(part.clone(), (name.to_string(), place));
                    }
                }
            }
        }
        Published { file, prefix, tensors, names }
    }

    fn shape(&self, name: &str) -> Vec<usize> {
        let Some((of, part)) = self.tensors.get(name) else { return Vec::new() };
        let mut shape = self.file.info(of).map_or(Vec::new(), |info| info.shape.clone());
        if let (Some([_, parts]), Some(rows)) = (part, shape.first_mut()) {
            *rows /= parts;
        }
        shape
    }

    /// A name as it is in the file.
    fn shown(&self, name: &str) -> String {
        self.tensors
            .get(name)
            .map_or_else(|| format!("{}{name}", self.prefix), |(of, _)| of.clone())
    }
}

impl Source for Published<'_> {
    fn names(&self) -> Vec<&str> {
        self.tensors.keys().map(|name| &**name).collect()
    }

    fn read(&self, name: &str) -> Result<NamedArray<'_>> {
        let Some((of, part)) = self.tensors.get(name) else {
            return Err(Error::Checkpoint(message!("load: there is no tensor '{name}'.")));
        };
        let array = Source::read(&self.file, of)?;
        let Some([at, parts]) = *part else {
            return Ok(NamedArray::new(name.to_string(), array.array));
        };
        let shape = array.array.shape();
        if shape.first().is_none_or(|rows| rows % parts != 0) {
            return Err(Error::Checkpoint(message!(
                "load: '{of}' is {shape:?}, and its rows should be those of {parts} weights."
            )));
        }
        let mut shape = shape.to_vec();
        shape[0] /= parts;
        let bytes = array.array.bytes();
        let size = bytes.len() / parts;
        let piece = bytes[at * size..(at + 1) * size].to_vec();
        Ok(NamedArray::new(name.to_string(), HostArray::new(array.array.dtype(), shape, piece)?))
    }
}

impl WeightNames {
    /// The layer or the variable of a tensor here.
    fn find(&self, name: &str) -> Option<&str> {
        let module = name.rsplit_once('.').map(|(module, _)| module);
        let found = self.modules.iter().find(|known| match known.form {
            Form::Variable => known.name == name,
            _ => Some(&*known.name) == module,
        });
        found.map(|known| &*known.ours)
    }
}

pub(super) fn load<M: Trackable>(
    model: &M,
    path: &Path,
    names: &WeightNames,
    network: &str,
    top: bool,
) -> Result<()> {
    let file = SafetensorsFile::open(path)?;
    let variables: BTreeMap<String, Vec<usize>> = model
        .named_variables()
        .into_iter()
        .map(|(name, variable)| (name, variable.shape().to_vec()))
        .collect();
    if file.names().any(|name| variables.contains_key(name)) {
        return model.load_weights(path);
    }
    let published = Published::new(file, names);
    let unused = fits(path, &variables, &published, (network, top))?;
    // What has no layer here: counters of batches, and the classifier if the network has no top.
    let ignore = |options: crate::weights::LoadOptions, name: &String| options.ignore(name);
    let options = unused.iter().fold(names.load_options(), ignore);
    in_file(path, set(model, &published, &options))
}

/// The first ten of a list for a message.
fn first_ten(what: &str, list: &[String]) -> String {
    if list.is_empty() {
        return String::new();
    }
    let more = match list.len().saturating_sub(10) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    format!(" {what}: {}{more}.", list[..list.len().min(10)].join(", "))
}

fn sorted(shape: &[usize]) -> Vec<usize> {
    let mut sizes = shape.to_vec();
    sizes.sort_unstable();
    sizes
}

/// Checks that the tensors in a file are those of the network, and returns the names of those that are not used.
fn fits(
    path: &Path,
    variables: &BTreeMap<String, Vec<usize>>,
    published: &Published<'_>,
    (network, top): (&str, bool),
) -> Result<Vec<String>> {
    let (mut unused, mut unknown, mut unlike) = (Vec::new(), Vec::new(), Vec::new());
    let of_layer = |layer: &str| {
        let own = |name: &String| {
            name.strip_prefix(layer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let layer = variables.iter().filter(|(name, _)| own(name));
        layer.collect::<Vec<_>>()
    };
    let mut parts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in published.tensors.keys() {
        if published.names.unused.iter().any(|end| name.ends_with(end)) {
            continue;
        }
        let shape = published.shape(name);
        let Some(layer) = published.names.find(name) else {
            unknown.push(format!("'{}' {shape:?}", published.shown(name)));
            continue;
        };
        let own = of_layer(layer);
        if own.is_empty() || name.ends_with(".num_batches_tracked") {
            unused.push(name.clone());
            continue;
        }
        *parts.entry(layer).or_default() += 1;
        // The axes may be in another order, and which weight it is follows from its rank.
        let alike: Vec<_> = own.iter().filter(|(_, own)| own.len() == shape.len()).collect();
        if !alike.iter().any(|(_, own)| sorted(own) == sorted(&shape)) {
            let here = alike
                .first()
                .or(own.first().as_ref())
                .map_or(String::new(), |(name, own)| format!("'{name}' {own:?}"));
            unlike.push(format!("'{}' {shape:?} for {here}", published.shown(name)));
        }
    }
    let lacks = |(module, layer): (&str, &str)| {
        let has = parts.get(layer).copied().unwrap_or(0);
        (has < of_layer(layer).len())
            .then(|| format!("'{}{module}' for '{layer}'", published.prefix))
    };
    let missing: Vec<String> = published.names.modules().filter_map(lacks).collect();
    if missing.is_empty() && unknown.is_empty() && unlike.is_empty() {
        return Ok(unused);
    }
    Err(misfit(path, network, top, [&missing, &unknown, &unlike]))
}

/// The error for weights of another network.
fn misfit(
    path: &Path,
    network: &str,
    top: bool,
    [missing, unknown, unlike]: [&[String]; 3],
) -> Error {
    let of_classifier = |text: &String| text.contains("'predictions/") || text.contains("'logits/");
    let head = top && missing.is_empty() && unknown.is_empty() && unlike.iter().all(of_classifier);
    let remedy = match head {
        true => {
            "Only the classifier differs: build the network with the file's number of classes, or with include_top(false) \
             and a classifier of your own"
        }
        false => {
            "Load the file into the network from which it was saved, in its publisher's arrangement, or give the names with \
             LoadOptions and load_weights_with"
        }
    };
    Error::Checkpoint(message!(
        "{}: load: the weights are not those of {network}.{}{}{} {remedy}.",
        path.display(),
        first_ten("The file lacks", missing),
        first_ten("It has, and the network does not use", unknown),
        first_ten("Sizes differ", unlike)
    ))
}
