//! The locations of each layer's variables in Keras's files.
//!
//! Source: `keras.src.saving.saving_lib`, which walks the attributes of each object. A container names its objects by their
//! classes, `dense`, `dense_1`, and each object's variables are `vars/0`, `vars/1`, ...

use std::collections::BTreeMap;

use crate::trackable::weights::layers::{Layer, Layers, split};
use crate::trackable::{Class, ExtraVariable, Role, snake_case};

/// A variable and its location.
pub(super) struct VariablePath {
    /// In wgrad: `bidirectional/forward_lstm/lstm_cell/kernel`.
    pub(super) name: String,
    /// In the file: `layers/bidirectional/forward_layer/cell/vars/0`.
    pub(super) path: String,
    pub(super) shape: Option<Vec<usize>>,
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}/{name}") }
}

/// An additional entry of a file, besides the variables.
pub(super) struct Extra {
    pub(super) path: String,
    pub(super) what: ExtraValue,
}

pub(super) enum ExtraValue {
    /// The number of batches that older versions of Keras counted.
    Count,
    /// A second copy of the variable with this name.
    Copy(String),
}

/// The additional entry in Keras's files for this layer, whose variables are at `base`.
fn extra(layers: &Layers, layer: &Layer, base: &str) -> Option<Extra> {
    match layer.class?.extra? {
        ExtraVariable::Count if layer.weights.len() == 2 => {
            Some(Extra { path: join(base, "2"), what: ExtraValue::Count })
        }
        // It holds the kernel of its layer as an attribute of its own.
        ExtraVariable::InnerKernel => {
            let inside = layers.inside(&layer.path);
            let name = inside.flat_map(|inner| {
                let name = |(name, _): &(String, _)| join(&inner.path, name);
                inner
                    .weights
                    .iter()
                    .filter(|(name, _)| name == "kernel" || name == "embeddings")
                    .map(name)
            });
            let what = ExtraValue::Copy(name.min()?);
            Some(Extra { path: join(base, "0"), what })
        }
        ExtraVariable::Count => None,
    }
}

/// The locations of all variables of a model, and the additional entries of its file.
pub(super) fn places(layers: &Layers) -> (Vec<VariablePath>, Vec<Extra>) {
    let mut extras = Vec::new();
    // The path of each part in the file, by its path in wgrad.
    let mut paths: BTreeMap<&str, String> = BTreeMap::new();
    // How often a name was used in a container.
    let mut given: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = Vec::new();
    for layer in &layers.list {
        if !layer.path.is_empty() {
            let (parent, name) = split(&layer.path);
            // A list is not a part in wgrad, but a container in Keras.
            let (mut owner, mut inside) = (parent, String::new());
            while !paths.contains_key(owner) {
                let (above, list) = split(owner);
                inside = join(list, &inside).trim_end_matches('/').to_string();
                owner = above;
            }
            let base = paths[owner].clone();
            let path = match attribute(layers.class(owner), name) {
                _ if !inside.is_empty() => numbered(&mut given, &join(&base, &inside), layer.kind),
                Attribute::In(container) => {
                    numbered(&mut given, &join(&base, container), layer.kind)
                }
                Attribute::Called(name) => join(&base, name),
            };
            paths.insert(&layer.path, path);
        } else {
            paths.insert("", String::new());
        }
        let base = join(&paths[&*layer.path], "vars");
        let extra = extra(layers, layer, &base);
        let first = usize::from(matches!(&extra, Some(Extra { what: ExtraValue::Copy(_), .. })));
        extras.extend(extra);
        for (at, (name, shape)) in (first..).zip(layer.weights.iter()) {
            let (name, path) = (join(&layer.path, name), join(&base, &at.to_string()));
            all.push(VariablePath { name, path, shape: shape.clone() });
        }
    }
    (all, extras)
}

/// The name of the next object of a class in a container.
fn numbered(given: &mut BTreeMap<String, usize>, container: &str, kind: &str) -> String {
    let name = join(container, &snake_case(kind));
    let count = given.entry(name.clone()).or_insert(0);
    *count += 1;
    match *count - 1 {
        0 => name,
        count => format!("{name}_{count}"),
    }
}

enum Attribute<'a> {
    /// An object in a list.
    In(&'static str),
    /// A separate attribute.
    Called(&'a str),
}

/// What Keras calls the part `name` of a layer of this class.
fn attribute<'a>(owner: Option<&'static Class>, name: &'a str) -> Attribute<'a> {
    match owner.map(|class| class.role) {
        Some(Role::Sequential | Role::Functional) => return Attribute::In("layers"),
        Some(Role::Cells) => return Attribute::In("cells"),
        _ => {}
    }
    match owner.and_then(|class| class.attribute(name)?.keras) {
        Some(attribute) => Attribute::Called(attribute),
        None if name.chars().all(|c| c.is_ascii_digit()) => Attribute::In(""),
        None => Attribute::Called(name),
    }
}
