//! The results and gradients of loaded models are TensorFlow's.

use std::path::{Path, PathBuf};

use wgrad as tf;
use wgrad::keras::optimizers::Optimizer;
use wgrad::keras::optimizers::Sgd;
use wgrad::{GradientTape, HostArray, Tensor, Trackable};

use crate::support::saved_models::{arrays, assert_near, compare, part};

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/saved_model")
}

#[test]
fn keras_layers() {
    ["cnn", "lstm", "transformer"].into_iter().for_each(|name| compare(&folder(), name));
}

#[test]
fn branches_and_loops_of_values_on_the_device() {
    ["cond", "loop", "recurrence", "case"].into_iter().for_each(|name| compare(&folder(), name));
}

#[test]
fn ops_of_arrays_images_and_matrices() {
    ["ops", "images", "matrices", "integers"].into_iter().for_each(|name| compare(&folder(), name));
}

#[test]
fn sizes_that_depend_on_values() {
    compare(&folder(), "dynamic");
}

#[test]
fn variables_that_a_call_changes() {
    compare(&folder(), "counter");
    let f = tf::saved_model::load(folder().join("counter")).unwrap();
    let f = f.signature("serving_default").unwrap();
    let x = tf::constant([1.0, 1.0]).unwrap();
    let mut steps = Vec::new();
    for _ in 0..3 {
        steps.extend(f.call([("x", &x)]).unwrap().tensor("steps").unwrap().to_vec::<f32>());
    }
    assert_eq!(steps, [[6.0, 6.0], [7.0, 7.0], [8.0, 8.0]]);
}

#[test]
fn graphs_of_tensorflow_1() {
    compare(&folder(), "tensorflow_1");
    let model = tf::saved_model::load(folder().join("tensorflow_1")).unwrap();
    assert!(model.variables().is_empty());
    model.signature("serving_default").unwrap();
    let names: Vec<String> = model.named_variables().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["b", "w"]);
    let frozen = folder().join("frozen.pb");
    let f = tf::saved_model::import_graph_def(frozen, &["x"], &["y", "MatMul:0"]).unwrap();
    let arrays = arrays(&folder().join("tensorflow_1.safetensors"));
    let x = arrays["in.x"].to_tensor().unwrap();
    let results = f.call([("x", &x)]).unwrap();
    let y = HostArray::from_tensor(&results.tensor("y").unwrap()).unwrap();
    assert_near("y", &y, &arrays["out.y"], 1e-5);
    assert_eq!(results.tensor("MatMul:0").unwrap().shape(), [3, 3]);
}

#[test]
fn tables_of_strings() {
    let model = tf::saved_model::load(folder().join("tables")).unwrap();
    let f = model.signature("serving_default").unwrap();
    let words = [&b"blue"[..], b"red", b"pink"].map(<[u8]>::to_vec).to_vec();
    let words = HostArray::from_strings([3], words).unwrap();
    let results = f.call([("s", words)]).unwrap();
    let place = results.value("place").unwrap().to_host_array().unwrap();
    assert_eq!(place.to_array::<i64>().unwrap().into_raw_vec_and_offset().0, [2, 0, -1]);
    let word = results.value("word").unwrap().to_host_array().unwrap();
    assert_eq!(word.strings().unwrap(), [&b"blau"[..], b"rot", b"?"]);
    assert_eq!(results.tensor("row").unwrap().to_vec::<f32>().unwrap(), [3.0, 1.0, 1.0]);
}

/// A loaded model is trained on: the loss falls, and only the trainable variables change.
#[test]
fn loaded_models_train() {
    let model = tf::saved_model::load(folder().join("cnn")).unwrap();
    let f = model.signature("serving_default").unwrap();
    let x = pictures();
    let labels = tf::constant([0, 3, 1]).unwrap();
    let before = values(&model);
    let optimizer = Sgd::new(0.05);
    let mut losses = Vec::new();
    for _ in 0..20 {
        let tape = GradientTape::new();
        let scores = f.predict(&x).unwrap();
        let loss = tf::sparse_softmax_cross_entropy_with_logits(&labels, &scores).unwrap();
        let loss = loss.reduce_mean(()).unwrap();
        optimizer.minimize(&loss, tape, &model).unwrap();
        losses.push(loss.item::<f32>().unwrap());
    }
    assert!(losses[19] < losses[0] / 4.0, "{losses:?}");
    // The function has the new values, as have those that are taken later.
    assert_ne!(values(&model), before);
    let scores = f.predict(&x).unwrap().to_vec::<f32>().unwrap();
    let again = model.signature("serving_default").unwrap();
    assert_eq!(again.predict(&x).unwrap().to_vec::<f32>().unwrap(), scores);
}

/// The only input of the Keras model.
fn pictures() -> Tensor {
    let inputs = part(&arrays(&folder().join("cnn.safetensors")), "in.");
    inputs.values().next().unwrap().to_tensor().unwrap()
}

fn values(model: &tf::saved_model::SavedModel) -> Vec<Vec<f32>> {
    let variables = model.trainable_variables();
    assert_eq!(variables.len(), 6);
    variables.iter().map(|variable| variable.read().to_vec().unwrap()).collect()
}

/// Weights that were trained here are saved in a checkpoint, and restored into the model as TensorFlow wrote it.
#[test]
fn checkpoints_hold_loaded_models() {
    let load = || {
        let model = tf::saved_model::load(folder().join("cnn")).unwrap();
        let f = model.signature("serving_default").unwrap();
        (model, f)
    };
    let (model, f) = load();
    let x = pictures();
    let variable = &model.trainable_variables()[0];
    variable.assign(variable.read().multiply(3.0).unwrap()).unwrap();
    let scores = f.predict(&x).unwrap().to_vec::<f32>().unwrap();
    let files = crate::support::folder::Folder::new("saved-model-checkpoint");
    let path = tf::train::Checkpoint::new().with("model", &model).save(files.path("ckpt")).unwrap();
    let (model, f) = load();
    assert_ne!(f.predict(&x).unwrap().to_vec::<f32>().unwrap(), scores);
    tf::train::Checkpoint::new()
        .with("model", &model)
        .restore(path)
        .unwrap()
        .assert_consumed()
        .unwrap();
    assert_eq!(f.predict(&x).unwrap().to_vec::<f32>().unwrap(), scores);
}

/// The sizes of a batch vary; each has the results that its rows have alone.
#[test]
fn batches_of_any_size() {
    let model = tf::saved_model::load(folder().join("lstm")).unwrap();
    let f = model.signature("serving_default").unwrap();
    let x = tf::random::stateless_normal([9, 7, 5], [1, 2]).unwrap();
    let all = f.predict(&x).unwrap().to_vec::<f32>().unwrap();
    for (n, turns) in [(1, 3), (4, 2), (9, 1), (2, 1)] {
        for _ in 0..turns {
            let part: Tensor = f.predict(x.slice(&[0, 0, 0], &[n, -1, -1]).unwrap()).unwrap();
            let part = part.to_vec::<f32>().unwrap();
            let worst = part.iter().zip(&all).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(part.len() == 2 * n as usize && worst < 1e-6, "{n}: {worst}");
        }
    }
    assert_eq!(f.predict(tf::Tensor::zeros([0, 7, 5]).unwrap()).unwrap().shape(), [0, 2]);
}
