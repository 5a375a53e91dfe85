//! Weights under PyTorch's names and in its layouts, which each class of layer declares, and back.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::layers::{Layer, Layers, is_sequential, split};
use super::values::{blocks, permuted, repeated, reshaped, rows, stacked, sum};
use crate::error::{Error, Result, message};
use crate::host_array::HostArray;
use crate::trackable::{Class, Layout, NamedArray, Trackable};

/// Parameters with these name endings are counts that are not used here.
const COUNTS: &str = "num_batches_tracked";

/// A variable that has another form in PyTorch.
struct Wanted<'a> {
    layer: &'a Layer,
    /// The variable's full name, and its shape if it has one.
    variable: String,
    shape: Option<&'a [usize]>,
    /// The path of PyTorch's module, with `/`.
    module: String,
    /// The parameters in it.
    parameters: Vec<String>,
    layout: Layout,
    /// Whether an axis of it is the input's features.
    features: bool,
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}/{name}") }
}

/// The path of PyTorch's module for the variables of `layer`, and the suffix of their names there: the layer's path, or that of
/// the owner whose variables they are in PyTorch.
fn module_of<'a>(layers: &'a Layers, layer: &'a Layer) -> (&'a str, String) {
    let (mut module, mut suffix) = (&*layer.path, String::new());
    while !module.is_empty() {
        let (owner, name) = split(module);
        let attribute = layers.class(owner).and_then(|class| class.attribute(name));
        let Some(more) = attribute.and_then(|attribute| attribute.pytorch) else { break };
        suffix.push_str(more);
        module = owner;
    }
    (module, suffix)
}

fn all_wanted(layers: &Layers) -> Vec<Wanted<'_>> {
    let mut all = Vec::new();
    for layer in &layers.list {
        let (module, suffix) = module_of(layers, layer);
        let inside = layer.path[module.len()..].trim_start_matches('/');
        for (variable, shape) in &layer.weights {
            let declared = |class: Option<&'static Class>, name: &str| {
                class?.pytorch.iter().find(|parameter| parameter.variable == name)
            };
            // A module's own parameters may be those of its parts here.
            let parameter = match inside.is_empty() {
                true => None,
                false => declared(layers.class(module), &join(inside, variable)),
            };
            let Some(parameter) = parameter.or_else(|| declared(layer.class, variable)) else {
                continue;
            };
            let names = parameter.names.iter();
            let names = names.map(|name| format!("{name}{suffix}").replace('.', "/"));
            all.push(Wanted {
                layer,
                variable: join(&layer.path, variable),
                shape: shape.as_deref(),
                module: module.to_string(),
                parameters: names.collect(),
                layout: parameter.layout,
                features: parameter.features,
            });
        }
    }
    all
}

/// The arrays for the variables of `root`, made from those that `names` lists and `read` reads. Unused arrays keep their
/// own names.
pub(super) fn arrays<'a>(
    root: &dyn Trackable,
    names: &[&str],
    read: &dyn Fn(usize) -> Result<NamedArray<'a>>,
    round: bool,
    may_lack: &dyn Fn(&str) -> bool,
) -> Result<Vec<NamedArray<'a>>> {
    let layers = Layers::collect(root);
    let mut wanted = all_wanted(&layers);
    let slashed: Vec<String> = names.iter().map(|name| name.replace('.', "/")).collect();
    let places: BTreeMap<&str, usize> =
        slashed.iter().enumerate().map(|(at, name)| (&**name, at)).collect();
    let is_there = |wanted: &Wanted<'_>| {
        wanted.parameters.iter().any(|name| places.contains_key(&*join(&wanted.module, name)))
    };
    if is_sequential(root.class()) && !wanted.iter().any(is_there) {
        by_order(&mut wanted, &slashed)?;
    }
    let mut used = vec![false; names.len()];
    let mut made = Vec::new();
    for wanted in &wanted {
        let parameters: Vec<String> =
            wanted.parameters.iter().map(|name| join(&wanted.module, name)).collect();
        let found: Option<Vec<usize>> =
            parameters.iter().map(|name| places.get(&**name).copied()).collect();
        let Some(found) = found else {
            if may_lack(&wanted.variable) || places.contains_key(&*wanted.variable) {
                continue;
            }
            let dotted = |name: &String| format!("'{}'", name.replace('/', "."));
            return Err(Error::Checkpoint(message!(
                "load: the layer {} takes its {} from PyTorch's {}, and the weights hold {}. Give the module the layer's \
                 name, as in LoadOptions::new().rename(\"fc1.{{p}}\", \"{}.{{p}}\"), or allow it to be missing.",
                wanted.layer.shown(),
                split(&wanted.variable).1,
                parameters.iter().map(dotted).collect::<Vec<_>>().join(" and "),
                crate::trackable::arrays::list(names.iter().copied()),
                wanted.module
            )));
        };
        let arrays = found.iter().map(|at| {
            used[*at] = true;
            read(*at)
        });
        let arrays: Vec<NamedArray<'a>> = arrays.collect::<Result<_>>()?;
        let flat = flattened(&layers, wanted)?;
        let array = cook(wanted, arrays, flat, round)?;
        made.push(NamedArray::new(wanted.variable.clone(), array.array));
    }
    let weights = layers
        .list
        .iter()
        .flat_map(|layer| layer.weights.iter().map(|(name, _)| join(&layer.path, name)));
    let own: BTreeSet<String> = weights.collect();
    for (at, name) in names.iter().enumerate() {
        let counts = || name.rsplit('.').next() == Some(COUNTS);
        if !used[at] && !counts() {
            let array = read(at)?;
            // A variable without a counterpart in PyTorch has its own name, with PyTorch's dots.
            made.push(match own.contains(&slashed[at]) {
                true => NamedArray::new(slashed[at].clone(), array.array),
                false => array,
            });
        }
    }
    Ok(made)
}

/// Assigns modules that have only numbers as names, like those of `nn.Sequential`, to the layers with weights in order.
fn by_order(wanted: &mut [Wanted<'_>], names: &[String]) -> Result<()> {
    let number = |part: &str| part.parse::<u64>().ok();
    // Numbers in numerical order, and before names.
    let compare = |a: &str, b: &str| match (number(a), number(b)) {
        (Some(x), Some(y)) => x.cmp(&y).then_with(|| a.cmp(b)),
        (x, y) => y.is_some().cmp(&x.is_some()).then_with(|| a.cmp(b)),
    };
    let path = |name| split(name).0.split('/').filter(|part| !part.is_empty()).collect();
    let mut modules: Vec<Vec<&str>> = names.iter().map(|name| path(name)).collect();
    modules.sort_by(|a, b| {
        let parts = a.iter().zip(b).map(|(a, b)| compare(a, b));
        parts.fold(Ordering::Equal, Ordering::then).then(a.len().cmp(&b.len()))
    });
    modules.dedup();
    // The first part in which two modules differ must be a number in both. After sorting, such modules are adjacent.
    let mut in_order = modules.windows(2).all(|pair| {
        let differ = pair[0].iter().zip(&pair[1]).find(|(a, b)| a != b);
        differ.is_some_and(|(a, b)| number(a).is_some() && number(b).is_some())
    });
    // A single module has no number if it is the root.
    if let [only] = &modules[..] {
        in_order = only.last().is_none_or(|part| number(part).is_some());
    }
    if !in_order || modules.is_empty() {
        return Ok(());
    }
    let mut layers: Vec<String> = wanted.iter().map(|wanted| wanted.module.clone()).collect();
    layers.dedup();
    if layers.len() != modules.len() {
        let modules: Vec<String> = modules.iter().map(|module| module.join(".")).collect();
        return Err(Error::Checkpoint(message!(
            "load: the weights hold {} modules in a line ({}), and the model has {} layers with weights ({}). Load the \
             weights of a model with the same layers, or give the modules the layers' names by LoadOptions::rename.",
            modules.len(),
            crate::trackable::arrays::list(modules.iter().map(|name| &**name)),
            layers.len(),
            crate::trackable::arrays::list(layers.iter().map(|name| &**name))
        )));
    }
    let mut of_layer: BTreeMap<String, &Vec<&str>> = BTreeMap::new();
    for (layer, module) in layers.into_iter().zip(&modules) {
        // The first module counts if the layer occurs several times.
        of_layer.entry(layer).or_insert(module);
    }
    for wanted in wanted {
        if let Some(module) = of_layer.get(&wanted.module) {
            wanted.module = module.join("/");
        }
    }
    Ok(())
}

/// The sizes, channels last, that a `Flatten` combined into the axis of features of the layer's input.
fn flattened(layers: &Layers, wanted: &Wanted<'_>) -> Result<Option<Vec<usize>>> {
    if !wanted.features {
        return Ok(None);
    }
    let sizes = layers.flattened(&wanted.layer.path).map_err(|flatten| {
        Error::Checkpoint(message!(
            "load: PyTorch flattens channels first, so the rows of '{}' depend on what '{flatten}' gets, which has seen no \
             input. Call the model once, or use build, before the weights are loaded.",
            wanted.variable
        ))
    })?;
    Ok(sizes.filter(|sizes| sizes.len() > 1))
}

/// Reorders the features of `array`'s axis, flattened with channels first, to channels last.
fn channels_last<'a>(
    array: NamedArray<'a>,
    axis: usize,
    sizes: &[usize],
) -> Result<NamedArray<'a>> {
    let spatial = sizes.len() - 1;
    let shape = array.array.shape().to_vec();
    let first = [&sizes[spatial..], &sizes[..spatial]].concat();
    let split = reshaped(array, [&shape[..axis], &first, &shape[axis + 1..]].concat())?;
    let moved = (axis + 1..=axis + spatial).chain([axis]);
    let axes: Vec<usize> =
        (0..axis).chain(moved).chain(axis + sizes.len()..split.array.shape().len()).collect();
    reshaped(permuted(&split, &axes)?, shape)
}

/// The reverse of [`channels_last`].
fn channels_first<'a>(
    array: NamedArray<'a>,
    axis: usize,
    sizes: &[usize],
) -> Result<NamedArray<'a>> {
    let spatial = sizes.len() - 1;
    let shape = array.array.shape().to_vec();
    let split = reshaped(array, [&shape[..axis], sizes, &shape[axis + 1..]].concat())?;
    let moved = [axis + spatial].into_iter().chain(axis..axis + spatial);
    let axes: Vec<usize> =
        (0..axis).chain(moved).chain(axis + sizes.len()..split.array.shape().len()).collect();
    reshaped(permuted(&split, &axes)?, shape)
}

/// PyTorch's gates r, z, n are z, r, h here, and vice versa.
const GRU: [usize; 3] = [1, 0, 2];

fn unfit(wanted: &Wanted<'_>, array: &NamedArray<'_>) -> Error {
    Error::Checkpoint(message!(
        "load: '{}' is {:?} in the weights, and the layer {} cannot take it. Load weights of a layer of the same kind and \
         sizes.",
        array.name,
        array.array.shape(),
        wanted.layer.shown()
    ))
}

/// The variable made from PyTorch's parameters.
fn cook<'a>(
    wanted: &Wanted<'_>,
    arrays: Vec<NamedArray<'a>>,
    flat: Option<Vec<usize>>,
    round: bool,
) -> Result<NamedArray<'a>> {
    let mut arrays = arrays.into_iter();
    let none = || Error::Checkpoint(message!("load: '{}' has no sources.", wanted.variable));
    let array = arrays.next().ok_or_else(none)?;
    let sized = |array: &NamedArray<'_>| {
        wanted.shape.ok_or_else(|| {
            Error::Checkpoint(message!(
                "load: how '{}' {:?} becomes '{}' depends on the layer's sizes, which are not known before its first \
                 input. Call the model once, or use build, before the weights are loaded.",
                array.name,
                array.array.shape(),
                wanted.variable
            ))
        })
    };
    let array = match (wanted.layout, &flat) {
        (Layout::Permuted(&[1, 0]), Some(sizes)) if array.array.shape().len() == 2 => {
            channels_last(array, 1, sizes)?
        }
        (Layout::Same | Layout::PerChannel, Some(sizes)) if array.array.shape().len() == 1 => {
            channels_last(array, 0, sizes)?
        }
        _ => array,
    };
    match wanted.layout {
        Layout::Same => Ok(array),
        Layout::PerChannel => match wanted.shape {
            Some(shape) if array.array.shape() == [1] => repeated(array, shape),
            Some(shape) => reshaped(array, shape.to_vec()),
            None => Ok(array),
        },
        Layout::Permuted(axes) if axes.len() == array.array.shape().len() => permuted(&array, axes),
        Layout::Permuted(_) => Err(unfit(wanted, &array)),
        Layout::Depthwise => {
            let variable = sized(&array)?;
            let (rank, &[all, 1, ref spatial @ ..]) = (variable.len(), array.array.shape()) else {
                return Err(unfit(wanted, &array));
            };
            let channels = variable.get(rank.wrapping_sub(2)).copied().unwrap_or(0);
            if channels == 0 || all % channels != 0 || spatial.len() + 2 != rank {
                return Err(unfit(wanted, &array));
            }
            let spatial = spatial.to_vec();
            let shape = [&[channels, all / channels], &spatial[..]].concat();
            let axes: Vec<usize> = (2..rank).chain([0, 1]).collect();
            permuted(&reshaped(array, shape)?, &axes)
        }
        Layout::GruKernel => match array.array.shape().len() {
            2 => permuted(&blocks(&array, &GRU)?, &[1, 0]),
            _ => Err(unfit(wanted, &array)),
        },
        Layout::Sum => sum(array, arrays.next().ok_or_else(none)?, round),
        Layout::GruBias => {
            if wanted.shape.is_some_and(|shape| shape.len() == 1) {
                return Err(Error::Checkpoint(message!(
                    "load: '{}' is one bias, and PyTorch's GRU has two that cannot be merged. Make the layer with \
                     reset_after(true), Keras's default.",
                    wanted.variable
                )));
            }
            let other = arrays.next().ok_or_else(none)?;
            stacked(blocks(&array, &GRU)?, blocks(&other, &GRU)?)
        }
        Layout::Projected(part) => {
            let shape = sized(&array)?.to_vec();
            let part = rows(&array, part, 3)?;
            match part.array.shape().len() {
                1 => reshaped(part, shape),
                2 => reshaped(permuted(&part, &[1, 0])?, shape),
                _ => Err(unfit(wanted, &array)),
            }
        }
        Layout::Output => {
            let shape = sized(&array)?.to_vec();
            match array.array.shape().len() {
                2 => reshaped(permuted(&array, &[1, 0])?, shape),
                _ => Err(unfit(wanted, &array)),
            }
        }
    }
}

/// The variables of a model with PyTorch's names and layouts.
pub(super) fn written(
    layers: &Layers,
    arrays: Vec<NamedArray<'static>>,
) -> Result<Vec<NamedArray<'static>>> {
    let wanted = all_wanted(layers);
    let mut given: BTreeMap<String, NamedArray<'static>> =
        arrays.into_iter().map(|array| (array.name.to_string(), array)).collect();
    let mut written = Vec::new();
    for wanted in &wanted {
        let Some(array) = given.remove(&wanted.variable) else { continue };
        let flat = flattened(layers, wanted)?;
        for (name, array) in wanted.parameters.iter().zip(uncook(wanted, array, flat)?) {
            let name = join(&wanted.module, name).replace('/', ".");
            written.push(NamedArray::new(name, array.array));
        }
    }
    for (name, array) in given {
        written.push(NamedArray::new(name.replace('/', "."), array.array));
    }
    written.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(written)
}

/// PyTorch's parameters for a variable.
fn uncook(
    wanted: &Wanted<'_>,
    array: NamedArray<'static>,
    flat: Option<Vec<usize>>,
) -> Result<Vec<NamedArray<'static>>> {
    let transposed = |array: &NamedArray<'static>| permuted(array, &[1, 0]);
    Ok(match wanted.layout {
        Layout::Same | Layout::PerChannel => match flat {
            Some(sizes) => vec![channels_first(array, 0, &sizes)?],
            None if wanted.layout == Layout::PerChannel => {
                let count = array.array.shape().iter().product();
                vec![reshaped(array, vec![count])?]
            }
            None => vec![array],
        },
        Layout::Permuted(axes) => {
            let mut back = vec![0; axes.len()];
            axes.iter().enumerate().for_each(|(at, axis)| back[*axis] = at);
            let array = permuted(&array, &back)?;
            match flat {
                Some(sizes) => vec![channels_first(array, 1, &sizes)?],
                None => vec![array],
            }
        }
        Layout::Depthwise => {
            let rank = array.array.shape().len();
            let axes: Vec<usize> = [rank - 2, rank - 1].into_iter().chain(0..rank - 2).collect();
            let moved = permuted(&array, &axes)?;
            let shape =
                [&[moved.array.shape()[0] * moved.array.shape()[1], 1], &moved.array.shape()[2..]]
                    .concat();
            vec![reshaped(moved, shape)?]
        }
        Layout::GruKernel => vec![blocks(&transposed(&array)?, &GRU)?],
        // PyTorch adds the two.
        Layout::Sum => {
            let (dtype, shape) = (array.array.dtype(), array.array.shape());
            let zeros = HostArray::new(dtype, shape, vec![0; array.array.bytes().len()])?;
            let zeros = NamedArray::new(array.name.clone(), zeros);
            vec![array, zeros]
        }
        Layout::GruBias if array.array.shape().len() == 2 => {
            let row = |at| {
                let row = rows(&array, at, 2)?;
                let size = row.array.shape()[1];
                blocks(&reshaped(row, vec![size])?, &GRU)
            };
            vec![row(0)?, row(1)?]
        }
        Layout::GruBias | Layout::Projected(_) | Layout::Output => {
            return Err(Error::Checkpoint(message!(
                "save: '{}' {:?} of the layer {} cannot be written in PyTorch's form. Save the other layers, or save \
                 under the names of this model.",
                wanted.variable,
                array.array.shape(),
                wanted.layer.shown()
            )));
        }
    })
}
