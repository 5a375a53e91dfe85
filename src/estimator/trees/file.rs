//! A trained model as a safetensors file: each property of the nodes is an array, and the header's metadata has the rest.
//!
//! | array | | |
//! |---|---|---|
//! | `baseline` | `F64 [outputs]` | the raw predictions without trees |
//! | `tree_sizes` | `U32 [trees]` | the number of nodes of each tree |
//! | `feature`, `left`, `right` | `U32 [nodes]` | for a leaf 0; children by their place in their tree |
//! | `kind` | `U8 [nodes]` | 0: leaf, 1: number, 2: categories; and 4 if missing values go left |
//! | `value` | `F64 [nodes]` | a leaf's value, a number's threshold, or the place of a set in `sets` |
//! | `gain` | `F64 [nodes]` | for a leaf 0 |
//! | `rows` | `U64 [nodes]` | the number of training rows |
//! | `sets` | `U64 [4 sets]` | the categories that go left, a bit for each |
//! | `categories` | `U32 [..]` | the categories of all features, one after the other |

use std::collections::BTreeMap;
#[cfg(not(target_family = "wasm"))]
use std::path::Path;

use serde_json::{Value, json};

use super::ensemble::Ensemble;
use super::objective::Objective;
use super::tree::{SplitTest, Tree, TreeNode};
use crate::error::{Error, Result, message};
use crate::host_array::{ArrayElement, HostArray};
use crate::trackable::weights::SafetensorsFile;
use crate::trackable::{NamedArray, file};

const FORMAT: &str = "wgrad.boosted_trees";
const LEAF: u8 = 0;
const NUMBER: u8 = 1;
const CATEGORIES: u8 = 2;
const MISSING_LEFT: u8 = 4;

/// The contents of a file.
pub(super) fn to_bytes(ensemble: &Ensemble) -> Result<Vec<u8>> {
    let (mut feature, mut left, mut right) = (Vec::new(), Vec::new(), Vec::new());
    let (mut kind, mut value, mut gain) = (Vec::new(), Vec::new(), Vec::new());
    let (mut rows, mut sets, mut sizes) = (Vec::new(), Vec::<u64>::new(), Vec::new());
    for tree in &ensemble.trees {
        sizes.push(tree.nodes.len() as u32);
        for node in &tree.nodes {
            let entry = match node {
                TreeNode::Leaf { value, rows } => (0, 0, 0, LEAF, *value, 0.0, *rows),
                TreeNode::Split { feature, test, missing_left, left, right, gain, rows } => {
                    let (kind, value) = match test {
                        SplitTest::AtMost(threshold) => (NUMBER, *threshold),
                        SplitTest::Categories(set) => {
                            sets.extend(set);
                            (CATEGORIES, (sets.len() / 4 - 1) as f64)
                        }
                    };
                    let kind = kind + if *missing_left { MISSING_LEFT } else { 0 };
                    (*feature as u32, *left as u32, *right as u32, kind, value, *gain, *rows)
                }
            };
            feature.push(entry.0);
            left.push(entry.1);
            right.push(entry.2);
            kind.push(entry.3);
            value.push(entry.4);
            gain.push(entry.5);
            rows.push(entry.6 as u64);
        }
    }
    let lists = ensemble.categories.iter().flatten().flatten();
    let categories: Vec<u32> = lists.copied().collect();
    fn array<T: ArrayElement>(name: &'static str, values: Vec<T>) -> NamedArray<'static> {
        NamedArray::new(name, HostArray::from(ndarray::Array1::from(values)))
    }
    let arrays = [
        array("baseline", ensemble.baseline.clone()),
        array("tree_sizes", sizes),
        array("feature", feature),
        array("left", left),
        array("right", right),
        array("kind", kind),
        array("value", value),
        array("gain", gain),
        array("rows", rows),
        array("sets", sets),
        array("categories", categories),
    ];
    let counts: Vec<Option<usize>> =
        ensemble.categories.iter().map(|list| list.as_ref().map(Vec::len)).collect();
    let (loss, classes) = match ensemble.objective {
        Objective::Squared => ("squared_error", None),
        Objective::Absolute => ("absolute_error", None),
        Objective::Binary => ("log_loss", Some(2)),
        Objective::Classes(classes) => ("log_loss", Some(classes)),
    };
    let config = json!({
        "version": 1, "loss": loss, "n_classes": classes, "categories": counts, "feature_names": ensemble.names,
    });
    let metadata = BTreeMap::from([(FORMAT.to_string(), config.to_string())]);
    file::to_bytes_with(&arrays, &metadata)
}

/// Reads the contents of a file.
pub(super) fn from_bytes(bytes: &[u8]) -> Result<Ensemble> {
    let arrays = SafetensorsFile::from_bytes(bytes)?;
    let config = arrays.metadata().get(FORMAT);
    let config = config.ok_or_else(|| wrong("it does not have boosted trees"))?;
    let config: Value = serde_json::from_str(config)
        .map_err(|error| wrong(&format!("the metadata are not valid JSON: {error}")))?;
    if config["version"] != 1 {
        return Err(wrong(&format!("its version is {}, and 1 is known", config["version"])));
    }
    read(&config, &arrays)
}

fn wrong(what: &str) -> Error {
    Error::Data(message!(
        "load: {what}. The file is damaged or another kind of model; take another copy."
    ))
}

/// The values of an array.
fn values<T: ArrayElement>(arrays: &SafetensorsFile, name: &str) -> Result<Vec<T>> {
    if arrays.info(name).is_none() {
        return Err(wrong(&format!("there is no array '{name}'")));
    }
    let array = arrays.array(name)?.array;
    let values = array.to_array::<T>();
    values
        .map(|values| values.into_iter().collect())
        .map_err(|_| wrong(&format!("'{name}' has elements of type {}", array.dtype())))
}

fn read(config: &Value, arrays: &SafetensorsFile) -> Result<Ensemble> {
    let objective = match (config["loss"].as_str(), config["n_classes"].as_u64()) {
        (Some("squared_error"), None) => Objective::Squared,
        (Some("absolute_error"), None) => Objective::Absolute,
        (Some("log_loss"), Some(2)) => Objective::Binary,
        (Some("log_loss"), Some(classes @ 3..)) => {
            Objective::Classes(usize::try_from(classes).unwrap_or(usize::MAX))
        }
        _ => return Err(wrong(&format!("the loss {} is unknown", config["loss"]))),
    };
    let baseline: Vec<f64> = values(arrays, "baseline")?;
    if baseline.len() != objective.outputs() || !baseline.iter().all(|x| x.is_finite()) {
        return Err(wrong(&format!("'baseline' must have {} finite numbers", objective.outputs())));
    }
    let categories = categories(config, values(arrays, "categories")?)?;
    let names = config["feature_names"].as_array().map(|names| {
        names.iter().map(|name| name.as_str().map(String::from)).collect::<Option<Vec<_>>>()
    });
    let names = names.flatten().filter(|names| names.is_empty() || names.len() == categories.len());
    let names = names.ok_or_else(|| wrong("'feature_names' does not fit the features"))?;
    let trees = trees(arrays, &categories)?;
    if !trees.len().is_multiple_of(objective.outputs()) {
        return Err(wrong(&format!(
            "{} trees are not a multiple of the {} classes",
            trees.len(),
            objective.outputs()
        )));
    }
    Ok(Ensemble { objective, baseline, categories, names, trees })
}

/// The lists of categories.
fn categories(config: &Value, all: Vec<u32>) -> Result<Vec<Option<Vec<u32>>>> {
    let counts = config["categories"].as_array().filter(|counts| !counts.is_empty());
    let counts = counts.ok_or_else(|| wrong("the metadata have no features"))?;
    let (mut lists, mut rest) = (Vec::new(), &all[..]);
    for count in counts {
        if count.is_null() {
            lists.push(None);
            continue;
        }
        let count = count.as_u64().and_then(|count| usize::try_from(count).ok());
        let list = count
            .filter(|count| (1..=255).contains(count))
            .and_then(|count| rest.split_at_checked(count));
        let sorted = list.filter(|(list, _)| list.windows(2).all(|pair| pair[0] < pair[1]));
        let (list, others) = sorted.ok_or_else(|| {
            wrong("a feature's categories are not 1 to 255 different ones in order")
        })?;
        lists.push(Some(list.to_vec()));
        rest = others;
    }
    match rest {
        [] => Ok(lists),
        _ => Err(wrong("'categories' has more values than the features need")),
    }
}

fn trees(arrays: &SafetensorsFile, categories: &[Option<Vec<u32>>]) -> Result<Vec<Tree>> {
    let sizes: Vec<u32> = values(arrays, "tree_sizes")?;
    let feature: Vec<u32> = values(arrays, "feature")?;
    let (left, right): (Vec<u32>, Vec<u32>) = (values(arrays, "left")?, values(arrays, "right")?);
    let kind: Vec<u8> = values(arrays, "kind")?;
    let (value, gain): (Vec<f64>, Vec<f64>) = (values(arrays, "value")?, values(arrays, "gain")?);
    let (rows, sets): (Vec<u64>, Vec<u64>) = (values(arrays, "rows")?, values(arrays, "sets")?);
    let nodes = sizes.iter().try_fold(0usize, |sum, size| sum.checked_add(*size as usize));
    let lengths =
        [feature.len(), left.len(), right.len(), kind.len(), value.len(), gain.len(), rows.len()];
    if lengths.iter().any(|length| Some(*length) != nodes) {
        return Err(wrong(&format!(
            "the trees have {} nodes together, and the arrays {lengths:?}",
            nodes.map_or("too many".to_string(), |nodes| nodes.to_string())
        )));
    }
    let mut begin = 0;
    let mut trees = Vec::with_capacity(sizes.len());
    for size in sizes {
        let size = size as usize;
        let mut nodes = Vec::with_capacity(size);
        // A node other than the root is the child of one node before it, so that every way ends.
        let mut has_parent = vec![false; size];
        for at in 0..size {
            let place = begin + at;
            let node_error =
                |what: &str| wrong(&format!("node {at} of tree {} {what}", trees.len()));
            if at > 0 && !has_parent[at] {
                return Err(node_error("is no node's child"));
            }
            let rows = usize::try_from(rows[place]).unwrap_or(usize::MAX);
            let (kind, missing_left) =
                (kind[place] & !MISSING_LEFT, kind[place] & MISSING_LEFT != 0);
            if kind == LEAF && !missing_left {
                if !value[place].is_finite() {
                    return Err(node_error(&format!("has the value {}", value[place])));
                }
                nodes.push(TreeNode::Leaf { value: value[place], rows });
                continue;
            }
            let feature = feature[place] as usize;
            let Some(list) = categories.get(feature) else {
                return Err(node_error(&format!(
                    "tests feature {feature} of {}",
                    categories.len()
                )));
            };
            let test = match (kind, list) {
                (NUMBER, None) if !value[place].is_nan() => SplitTest::AtMost(value[place]),
                // Only missing values go right.
                (NUMBER, Some(_)) if value[place] == f64::INFINITY => {
                    SplitTest::AtMost(value[place])
                }
                (CATEGORIES, Some(_)) => {
                    let set = value[place] as usize;
                    let whole = set as f64 == value[place];
                    let set =
                        set.checked_mul(4).and_then(|from| sets.get(from..from.checked_add(4)?));
                    let set = set.filter(|_| whole).and_then(|set| <[u64; 4]>::try_from(set).ok());
                    SplitTest::Categories(
                        set.ok_or_else(|| node_error("has no set of categories"))?,
                    )
                }
                _ => {
                    return Err(node_error(&format!(
                        "has the kind {kind} and the value {}",
                        value[place]
                    )));
                }
            };
            for child in [left[place], right[place]] {
                let child = child as usize;
                if child <= at || child >= size || has_parent[child] {
                    return Err(node_error(&format!(
                        "has the child {child}, which must come later in the {size} nodes and have one parent"
                    )));
                }
                has_parent[child] = true;
            }
            if !(gain[place] >= 0.0 && gain[place].is_finite()) {
                return Err(node_error(&format!("has the gain {}", gain[place])));
            }
            let (left, right) = (left[place] as usize, right[place] as usize);
            nodes.push(TreeNode::Split {
                feature,
                test,
                missing_left,
                left,
                right,
                gain: gain[place],
                rows,
            });
        }
        if nodes.is_empty() {
            return Err(wrong(&format!("tree {} has no nodes", trees.len())));
        }
        begin += size;
        trees.push(Tree { nodes });
    }
    Ok(trees)
}

/// Writes the file at `path`.
#[cfg(not(target_family = "wasm"))]
pub(super) fn save(ensemble: &Ensemble, path: &Path) -> Result<()> {
    use std::io::Write;
    let bytes = to_bytes(ensemble)?;
    let written = crate::files::replace(path, |file| file.write_all(&bytes));
    written.map_err(|error| Error::io(path, error))
}

/// Reads the file at `path`.
#[cfg(not(target_family = "wasm"))]
pub(super) fn load(path: &Path) -> Result<Ensemble> {
    let bytes = crate::files::read(path).map_err(|error| Error::io(path, error))?;
    crate::trackable::weights::in_file(path, from_bytes(&bytes))
}
