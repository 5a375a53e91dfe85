//! ONNX models have onnxruntime's results (tests/data/onnx), can be trained, and broken ones are errors.

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use wgrad as tf;
use wgrad::keras::optimizers::{Optimizer, Sgd};
use wgrad::saved_model::SavedValue;
use wgrad::{GradientTape, HostArray, Tensor, Trackable};

use crate::support::folder::Folder;
use crate::support::saved_models::{arrays, assert_near, broken, part};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/onnx")
}

/// The inputs of a model on the device, with 64-bit integers as 32 bits.
fn inputs(path: &Path) -> Vec<(String, Tensor)> {
    let inputs = part(&arrays(&path.with_extension("safetensors")), "in.");
    inputs.into_iter().map(|(name, array)| (name, array.to_tensor().unwrap())).collect()
}

/// Compares a model with the results in the file of its name.
fn compare_file(path: &Path) {
    let model = tf::onnx::load(path).unwrap_or_else(|error| panic!("{error}"));
    let expected = part(&arrays(&path.with_extension("safetensors")), "out.");
    // The first call traces, the second one runs the plan.
    for turn in ["first", "second"] {
        let what = format!("{}, the {turn} call", path.display());
        let results = model.call(inputs(path)).unwrap_or_else(|error| panic!("{what}: {error}"));
        let mut names: Vec<&str> = results.names().collect();
        names.sort_unstable();
        assert_eq!(names, expected.keys().collect::<Vec<_>>(), "{what}");
        for (key, value) in results {
            let what = format!("{what}: {key}");
            assert_near(&what, &value.to_host_array().unwrap(), &expected[&key], 1e-5);
        }
    }
}

fn compare(name: &str) {
    compare_file(&folder().join(format!("{name}.onnx")));
}

/// Compares all models in a folder, and lists those that differ.
fn compare_all(folder: &Path) {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|kind| kind == "onnx")).collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} has no models", folder.display());
    let differ: Vec<&PathBuf> =
        paths.iter().filter(|path| catch_unwind(|| compare_file(path)).is_err()).collect();
    println!("{} of {} models agree", paths.len() - differ.len(), paths.len());
    assert!(differ.is_empty(), "{} of {} models differ: {differ:#?}", differ.len(), paths.len());
}

/// The models of exporters.py: what PyTorch, scikit-learn and Keras have as layers, their exporters write as ops.
#[test]
fn exported_models_have_the_results_of_onnxruntime() {
    compare_all(&folder().join("exported"));
}

/// The models that exporters.py writes with --all, or any others with their results.
#[test]
#[ignore = "takes a folder of models, in WGRAD_ONNX_FOLDER"]
fn models_of_a_folder_have_the_results_of_onnxruntime() {
    compare_all(Path::new(&std::env::var("WGRAD_ONNX_FOLDER").unwrap()));
}

#[test]
fn layers_have_the_results_of_onnxruntime() {
    ["mlp", "cnn", "attention", "recurrent", "attention_23"].into_iter().for_each(compare);
}

/// Models of each family, as PyTorch exports them.
#[test]
fn networks_have_the_results_of_onnxruntime() {
    let images = ["resnet", "mobile", "unet", "densenet", "vision", "upscale", "volume"];
    let rows = ["encoder", "sequence", "audio", "tabular"];
    images.into_iter().chain(rows).for_each(compare);
}

#[test]
fn branches_and_loops_have_the_results_of_onnxruntime() {
    compare("control");
}

#[test]
fn integers_of_8_bits_have_the_results_of_onnxruntime() {
    compare("quantized");
    // Scales and zero points are not trained.
    let model = tf::onnx::load(folder().join("quantized.onnx")).unwrap();
    let trained: Vec<String> = model
        .named_variables()
        .into_iter()
        .filter(|(_, variable)| variable.trainable())
        .map(|(name, _)| name)
        .collect();
    assert_eq!(trained, ["b"]);
}

#[test]
fn boxes_places_and_losses_have_the_results_of_onnxruntime() {
    compare("detection");
}

/// A function may have the name of a standard op.
#[test]
fn functions_in_a_file_have_their_own_names() {
    compare("functions");
}

#[test]
fn a_model_says_what_it_takes() {
    let model = tf::onnx::load(folder().join("mlp.onnx")).unwrap();
    assert_eq!((model.producer(), model.opset()), ("make.py", 18));
    assert_eq!(model.inputs()[0].to_string(), "x: float32[?, 6]");
    assert_eq!(model.outputs()[0].to_string(), "y: float32[?, 3]");
    let error = model.predict(Tensor::zeros([2, 5]).unwrap()).unwrap_err().to_string();
    assert!(error.contains("got f32[2, 5] for its input \"x\""), "{error}");
    let names: Vec<String> = model.named_variables().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["w1", "b1", "w2", "b2"]);
    // Another size of the batch, on the host.
    let rows = HostArray::from(ndarray::Array2::<f32>::zeros((1, 6)));
    let y = model.call([("x", SavedValue::from(rows))]).unwrap().tensor("y").unwrap();
    assert_eq!(y.shape(), [1, 3]);
}

#[test]
fn a_model_is_trained_further() {
    let model = tf::onnx::load(folder().join("cnn.onnx")).unwrap();
    // The moving statistics and the numbers of ops are not trained.
    let names: Vec<String> = model.named_variables().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["k1", "b1", "scale", "offset", "mean", "variance", "k2", "k3"]);
    assert_eq!(model.trainable_variables().len(), 6);
    let (_, x) = inputs(&folder().join("cnn.onnx")).remove(0);
    let labels = tf::constant([0, 3]).unwrap();
    let sgd = Sgd::new(1.0);
    let mut losses = Vec::new();
    for _ in 0..30 {
        let tape = GradientTape::new();
        let scores = model.predict(&x).unwrap();
        let loss = tf::sparse_softmax_cross_entropy_with_logits(&labels, &scores).unwrap();
        let loss = loss.reduce_mean(()).unwrap();
        sgd.minimize(&loss, tape, &model).unwrap();
        losses.push(loss.item::<f32>().unwrap());
    }
    assert!(losses[29] < losses[0] / 2.0, "{losses:?}");
}

#[test]
fn broken_models_are_errors() {
    let own = Folder::new("onnx-broken");
    let error = |path: &Path| tf::onnx::load(path).unwrap_err().to_string();
    assert!(error(&own.path("none.onnx")).contains("No such file"));
    assert!(error(&own.write("a.onnx", b"\xff\xff\xff")).contains("it is no ONNX model"));
    assert!(error(&own.write("b.onnx", b"")).contains("it has no graph"));
    let bytes = fs::read(folder().join("mlp.onnx")).unwrap();
    let path = own.write("mlp.onnx", &bytes);
    let text = error(&path);
    assert!(text.contains("mlp.data"), "{text}");
    // External data that are too short, and outside the folder.
    let data = fs::read(folder().join("mlp.data")).unwrap();
    own.write("mlp.data", &data[..data.len() - 4]);
    let text = error(&path);
    assert!(text.contains("should have") && text.contains("mlp.data, which has"), "{text}");
    let replaced = |old: &[u8], new: &[u8]| {
        let mut bytes = bytes.clone();
        let places: Vec<usize> =
            (0..bytes.len() - old.len()).filter(|at| bytes[*at..].starts_with(old)).collect();
        assert!(!places.is_empty());
        places.iter().for_each(|at| bytes[*at..at + old.len()].copy_from_slice(new));
        bytes
    };
    let text = error(&own.write("mlp.onnx", &replaced(b"mlp.data", b"../a.dat")));
    assert!(text.contains("\"../a.dat\", which is outside"), "{text}");
    // All unknown ops at once.
    let text = error(&own.write("mlp.onnx", &replaced(b"Softmax", b"Sofxmax")));
    own.write("mlp.data", &data);
    assert!(text.contains("should have"), "{text}");
    let text = error(&own.path("mlp.onnx"));
    assert!(text.contains("Sofxmax: node \"Sofxmax_y\", a result"), "{text}");
}

/// Whatever the bytes are, a model loads and runs, or is an error. A loop may have any number of turns, so only the model without one
/// runs.
fn mutate(name: &str, input: Option<&HostArray<'static>>, count: usize) {
    let own = Folder::new(&format!("onnx-mutated-{name}-{count}"));
    let bytes = fs::read(folder().join(name)).unwrap();
    let mut random = fastrand::Rng::with_seed(5);
    let (mut loaded, mut ran) = (0, 0);
    for _ in 0..count {
        let broken = broken(&bytes, &mut random);
        let Ok(model) = tf::onnx::load(own.write("m.onnx", &broken)) else { continue };
        loaded += 1;
        if let Some(input) = input {
            ran += usize::from(model.call([("ids", input.clone())]).is_ok());
        }
    }
    assert!(loaded > count / 20, "{name}: {loaded} loaded, {ran} ran");
    assert!(input.is_none() || ran > count / 50, "{name}: {loaded} loaded, {ran} ran");
}

fn mutate_both(count: usize) {
    mutate("control.onnx", None, count);
    mutate("attention.onnx", Some(&HostArray::from(ndarray::array![[1i64, 2, 3]])), count / 4);
}

#[test]
fn any_bytes_are_a_model_or_an_error() {
    mutate_both(1000);
}

#[test]
#[ignore = "takes minutes"]
fn a_hundred_thousand_times_any_bytes_are_a_model_or_an_error() {
    mutate_both(100_000);
}
