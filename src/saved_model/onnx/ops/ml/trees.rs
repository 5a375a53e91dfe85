//! Forests of decision trees, as the ops have them.

use std::collections::HashMap;

use super::call::{Call, Results, Table, tensor, unsupported};
use super::forest::{COMPARISONS, Forest, Mode, Weight, aggregate};
use super::{Labels, floats, ints, pair, rows, transformed, wrong_length};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::saved_model::graph_def::value::Value;
use crate::tensor::Tensor;

pub(super) static OPS: Table = &[
    ("ai.onnx.ml.TreeEnsemble", ensemble),
    ("ai.onnx.ml.TreeEnsembleClassifier", classifier),
    ("ai.onnx.ml.TreeEnsembleRegressor", regressor),
];

/// The places of nodes, by the ids of their trees and their own.
type Places = HashMap<(i64, i64), usize>;

/// The trees of versions 1 to 4, and the places of their nodes.
fn forest(c: &Call<'_>) -> Result<(Forest, Places)> {
    for name in ["nodes_values_as_tensor", "base_values_as_tensor"] {
        if c.node.constants.contains_key(name) {
            return Err(unsupported(format_args!("a forest of f64 ({name})")));
        }
    }
    let (trees, ids) = (ints(c, "nodes_treeids"), ints(c, "nodes_nodeids"));
    let names = super::strings(c, "nodes_modes");
    let (yes, no) = (ints(c, "nodes_truenodeids"), ints(c, "nodes_falsenodeids"));
    let (features, values) = (ints(c, "nodes_featureids"), floats(c, "nodes_values"));
    let missing = ints(c, "nodes_missing_value_tracks_true");
    let nodes = ids.len();
    for (name, length) in [
        ("nodes_treeids", trees.len()),
        ("nodes_modes", names.len()),
        ("nodes_truenodeids", yes.len()),
        ("nodes_falsenodeids", no.len()),
        ("nodes_featureids", features.len()),
        ("nodes_values", values.len()),
    ] {
        if length != nodes || nodes == 0 {
            return Err(wrong_length(name, length, nodes.max(1)));
        }
    }
    if !missing.is_empty() && missing.len() != nodes {
        return Err(wrong_length("nodes_missing_value_tracks_true", missing.len(), nodes));
    }
    let mut places = HashMap::with_capacity(nodes);
    for (at, key) in trees.iter().copied().zip(ids.iter().copied()).enumerate() {
        if places.insert(key, at).is_some() {
            return Err(Error::Data(message!(
                "its tree {} has two nodes {}. The file is damaged.",
                key.0,
                key.1
            )));
        }
    }
    let mut forest = Forest { values: values.to_vec(), ..Forest::default() };
    let mut below = vec![false; nodes];
    for at in 0..nodes {
        let mode = Mode::new(&names[at])?;
        let leaf = mode == Mode::Leaf;
        let child = |id: i64| {
            if leaf {
                return Ok(at);
            }
            places.get(&(trees[at], id)).copied().ok_or_else(|| {
                Error::Data(message!(
                    "its tree {} leads from node {} to node {id}, which it does not have. The file is damaged.",
                    trees[at],
                    ids[at]
                ))
            })
        };
        let next = [child(no[at])?, child(yes[at])?];
        if !leaf {
            next.iter().for_each(|child| below[*child] = true);
        }
        forest.modes.push(mode);
        forest.features.push(if leaf { 0 } else { i32::try_from(features[at]).unwrap_or(-1) });
        let tracks = missing.get(at).is_some_and(|tracks| *tracks != 0);
        forest.missing.push(tracks || mode == Mode::NotEqual);
        forest.next.push(next);
    }
    let mut known: HashMap<i64, usize> = HashMap::new();
    for at in (0..nodes).filter(|at| !below[*at]) {
        if known.insert(trees[at], at).is_some() {
            return Err(Error::Data(message!(
                "its tree {} has two roots: nothing leads to node {}. The file is damaged.",
                trees[at],
                ids[at]
            )));
        }
        forest.roots.push(at);
    }
    if let Some(tree) = trees.iter().find(|tree| !known.contains_key(tree)) {
        return Err(Error::Data(message!(
            "its tree {tree} has no root: its nodes lead to each other in a cycle. The file is damaged."
        )));
    }
    Ok((forest, places))
}

/// The weights of the leaves, in attributes whose names begin with `kind`.
fn weights(c: &Call<'_>, places: &Places, kind: &str) -> Result<Vec<Weight>> {
    if c.node.constants.contains_key(&format!("{kind}_weights_as_tensor")) {
        return Err(unsupported(format_args!("a forest of f64 ({kind}_weights_as_tensor)")));
    }
    let (ids, trees) = (format!("{kind}_ids"), format!("{kind}_treeids"));
    let (nodes, numbers) = (format!("{kind}_nodeids"), format!("{kind}_weights"));
    let (targets, all) = (ints(c, &ids), floats(c, &numbers));
    for (name, length) in
        [(&trees, ints(c, &trees).len()), (&nodes, ints(c, &nodes).len()), (&numbers, all.len())]
    {
        if length != targets.len() {
            return Err(wrong_length(name, length, targets.len()));
        }
    }
    let keys = ints(c, &trees).iter().zip(ints(c, &nodes));
    let each = keys.zip(targets).zip(all).map(|(((tree, node), target), weight)| {
        let node = places.get(&(*tree, *node)).copied().ok_or_else(|| {
            Error::Data(message!(
                "it has a weight for node {node} of tree {tree}, which it does not have. The file is damaged."
            ))
        })?;
        Ok(Weight { node, target: *target, weight: *weight })
    });
    each.collect()
}

fn regressor(c: &Call<'_>) -> Result<Results> {
    let x = rows(c)?;
    let (forest, places) = forest(c)?;
    let weights = weights(c, &places, "target")?;
    let targets = usize::try_from(c.attr_int("n_targets", 1)).unwrap_or(0).max(1);
    let mut scores =
        aggregate(&forest, &weights, targets, c.attr_text("aggregate_function", "SUM"), &x)?;
    let base = floats(c, "base_values");
    if !base.is_empty() {
        if base.len() != targets {
            return Err(wrong_length("base_values", base.len(), targets));
        }
        scores = scores.add(Tensor::from_slice(base, [1, targets])?)?;
    }
    tensor(transformed(&scores, c.attr_text("post_transform", "NONE"))?)
}

fn classifier(c: &Call<'_>) -> Result<Results> {
    let x = rows(c)?;
    let labels = Labels::new(c, "classlabels_int64s")?;
    let (forest, places) = forest(c)?;
    let mut weights = weights(c, &places, "class")?;
    let transform = c.attr_text("post_transform", "NONE");
    let base = floats(c, "base_values");
    let one = weights.first().map(|weight| weight.target);
    let single = labels.len() <= 2 && weights.iter().all(|weight| Some(weight.target) == one);
    if !single {
        let mut scores = aggregate(&forest, &weights, labels.len(), "SUM", &x)?;
        if !base.is_empty() {
            if base.len() != labels.len() {
                return Err(wrong_length("base_values", base.len(), labels.len()));
            }
            scores = scores.add(Tensor::from_slice(base, [1, labels.len()])?)?;
        }
        let label = labels.pick(&scores.argmax(1)?)?;
        return Ok(vec![label, Value::Tensor(transformed(&scores, transform)?)]);
    }
    // All weights are those of one class: whether it is the second one of two, depends on whether they are probabilities.
    if base.len() > 2 {
        return Err(wrong_length("base_values", base.len(), format_args!("at most 2")));
    }
    let positive = weights.iter().all(|weight| weight.weight >= 0.0);
    let second = one == Some(1);
    weights.iter_mut().for_each(|weight| weight.target = 0);
    let mut score = aggregate(&forest, &weights, 1, "SUM", &x)?;
    if !second && !base.is_empty() {
        score = score.add(base[0])?;
    }
    let likely = score.reshape([-1])?.greater(if positive { 0.5 } else { 0.0 })?;
    if labels.len() == 1 {
        let label = likely.cast(DType::I32)?;
        return Ok(vec![Value::Tensor(label), Value::Tensor(score)]);
    }
    let label = labels.pick_second(&likely)?;
    let scores = match (second, transform, positive) {
        (true, _, _) => transformed(&pair(score.zeros_like()?, score)?, transform)?,
        (false, "LOGISTIC", _) => pair(score.negative()?.sigmoid()?, score.sigmoid()?)?,
        (false, _, true) => pair(score.negative()?.add(1.0)?, score)?,
        (false, _, false) => pair(score.negative()?, score)?,
    };
    Ok(vec![label, Value::Tensor(scores)])
}

/// The numbers of a tensor in an attribute.
fn numbers(c: &Call<'_>, name: &str) -> Result<Vec<f64>> {
    let lacks = || Error::Data(message!("it lacks its attribute {name}. The file is damaged."));
    let array = c.node.constants.get(name).ok_or_else(lacks)?.read()?;
    let numbers = array.to_f64().ok_or_else(lacks)?;
    Ok(numbers.into_iter().collect())
}

/// The trees of version 5, whose leaves are not among the nodes.
fn ensemble(c: &Call<'_>) -> Result<Results> {
    let x = rows(c)?;
    let (values, modes) = (numbers(c, "nodes_splits")?, numbers(c, "nodes_modes")?);
    let (features, missing) =
        (ints(c, "nodes_featureids"), ints(c, "nodes_missing_value_tracks_true"));
    let (targets, weights) = (ints(c, "leaf_targetids"), numbers(c, "leaf_weights")?);
    let (nodes, leaves) = (features.len(), weights.len());
    let sides = ["false", "true"].map(|side| {
        (ints(c, &format!("nodes_{side}nodeids")), ints(c, &format!("nodes_{side}leafs")))
    });
    for (name, length) in [
        ("nodes_splits", values.len()),
        ("nodes_modes", modes.len()),
        ("nodes_falsenodeids", sides[0].0.len()),
        ("nodes_falseleafs", sides[0].1.len()),
        ("nodes_truenodeids", sides[1].0.len()),
        ("nodes_trueleafs", sides[1].1.len()),
    ] {
        if length != nodes || nodes == 0 {
            return Err(wrong_length(name, length, nodes.max(1)));
        }
    }
    if targets.len() != leaves {
        return Err(wrong_length("leaf_targetids", targets.len(), leaves));
    }
    if !missing.is_empty() && missing.len() != nodes {
        return Err(wrong_length("nodes_missing_value_tracks_true", missing.len(), nodes));
    }
    let place = |id: i64, leaf: bool| {
        let (count, start) = if leaf { (leaves, nodes) } else { (nodes, 0) };
        let known = usize::try_from(id).ok().filter(|at| *at < count);
        known.map(|at| start + at).ok_or_else(|| {
            let kind = if leaf { "leaf" } else { "node" };
            Error::Data(message!(
                "its trees lead to the {kind} {id}, and have {count}. The file is damaged."
            ))
        })
    };
    let mut forest = Forest::default();
    for at in 0..nodes {
        let mode = COMPARISONS.get(modes[at] as usize).copied();
        let mode = mode.ok_or_else(|| unsupported(format_args!("the tree mode {}", modes[at])))?;
        forest.modes.push(mode);
        forest.features.push(i32::try_from(features[at]).unwrap_or(-1));
        forest.values.push(values[at] as f32);
        let tracks = missing.get(at).is_some_and(|tracks| *tracks != 0);
        forest.missing.push(tracks || mode == Mode::NotEqual);
        let [no, yes] = &sides;
        forest.next.push([place(no.0[at], no.1[at] != 0)?, place(yes.0[at], yes.1[at] != 0)?]);
    }
    for at in nodes..nodes + leaves {
        forest.modes.push(Mode::Leaf);
        forest.features.push(0);
        forest.values.push(0.0);
        forest.missing.push(false);
        forest.next.push([at, at]);
    }
    forest.roots =
        ints(c, "tree_roots").iter().map(|at| place(*at, false)).collect::<Result<_>>()?;
    if forest.roots.is_empty() {
        return Err(wrong_length("tree_roots", 0, "one for each tree"));
    }
    let weights: Vec<Weight> = (0..leaves)
        .map(|at| Weight { node: nodes + at, target: targets[at], weight: weights[at] as f32 })
        .collect();
    let named = |name: &str, default: i64, names: &[&'static str]| {
        let number = c.attr_int(name, default);
        let known = usize::try_from(number).ok().and_then(|at| names.get(at)).copied();
        known.ok_or_else(|| unsupported(format_args!("the {name} {number}")))
    };
    let how = named("aggregate_function", 1, &["AVERAGE", "SUM", "MIN", "MAX"])?;
    let transform =
        named("post_transform", 0, &["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"])?;
    let count = usize::try_from(c.attr_int("n_targets", 1)).unwrap_or(0).max(1);
    tensor(transformed(&aggregate(&forest, &weights, count, how, &x)?, transform)?)
}
