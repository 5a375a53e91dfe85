//! TensorFlow.js's models have its results (tests/data/tfjs, of make.py there).

use std::fs;
use std::path::{Path, PathBuf};

use wgrad as tf;
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{INFERENCE, Layer, saving::LoadedModel};
use wgrad::{GradientTape, HostArray, Tensor, Trackable};

use crate::support::folder::Folder;
use crate::support::saved_models::{arrays, assert_near, part};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/tfjs")
}

/// The files of a model but `model.json`, by name.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_string();
    files
        .map(|path| (name(&path), fs::read(&path).unwrap()))
        .filter(|(name, _)| name != "model.json")
        .collect()
}

fn compare_graph(name: &str, tolerance: f64) {
    let arrays = arrays(&folder().join(format!("{name}.safetensors")));
    let inputs: Vec<(String, Tensor)> = part(&arrays, "in.")
        .into_iter()
        .map(|(name, array)| (name, array.to_tensor().unwrap()))
        .collect();
    let json = folder().join(name).join("model.json");
    let from_disk = tf::tfjs::load_graph_model(&json).unwrap();
    let json = fs::read(json).unwrap();
    assert_eq!(tf::tfjs::is_graph_model(&json), Some(true));
    let from_memory =
        tf::tfjs::load_graph_model_from_bytes(&json, files(&folder().join(name))).unwrap();
    for model in [from_disk, from_memory] {
        let f = model.signature("serving_default").unwrap();
        // As a trace, then as its plan, and in the way of pages.
        for way in ["first", "again", "async"] {
            let results = match way {
                "async" => pollster::block_on(f.call_async(inputs.clone())).unwrap(),
                _ => f.call(inputs.clone()).unwrap(),
            };
            assert!(results.names().count() > 0);
            for (key, value) in results {
                let (what, value) = (format!("{name}, {way}: {key}"), value.to_host_array());
                assert_near(&what, &value.unwrap(), &arrays[&format!("out.{key}")], tolerance);
            }
        }
    }
}

#[test]
fn graph_models_with_fused_ops() {
    compare_graph("graph_pictures", 1e-5);
}

#[test]
fn quantized_weights() {
    ["graph_uint8", "graph_uint16", "graph_float16"]
        .iter()
        .for_each(|name| compare_graph(name, 1e-5));
}

#[test]
fn loops_and_branches_of_graph_models() {
    compare_graph("graph_control", 1e-5);
}

/// Tables are filled by a graph of their own.
#[test]
fn tables_of_graph_models() {
    let model = tf::tfjs::load_graph_model(folder().join("graph_tables/model.json")).unwrap();
    let f = model.signature("serving_default").unwrap();
    assert_eq!(f.inputs().len(), 1, "{f:?}");
    let words = [&b"blue"[..], b"red", b"pink"].map(<[u8]>::to_vec).to_vec();
    let words = HostArray::from_strings([3], words).unwrap();
    let results = f.call([("s", words)]).unwrap();
    assert_eq!(results.tensor("place").unwrap().to_vec::<i32>().unwrap(), [2, 0, -1]);
    let word = results.value("word").unwrap().to_host_array().unwrap();
    assert_eq!(word.strings().unwrap(), [&b"blau"[..], b"rot", b"?"]);
    assert_eq!(results.tensor("row").unwrap().to_vec::<f32>().unwrap(), [3.0, 1.0, 1.0]);
}

/// The weights of a graph model are variables.
#[test]
fn a_graph_model_is_trained_further() {
    let model = tf::tfjs::load_graph_model(folder().join("graph_pictures/model.json")).unwrap();
    let f = model.signature("serving_default").unwrap();
    let names: Vec<String> = model.named_variables().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 16, "{names:?}");
    tf::random::set_seed(1);
    let x = tf::random::normal([8, 12, 12, 3]).unwrap();
    let labels = tf::constant([0, 1, 2, 3, 4, 0, 1, 2]).unwrap();
    let adam = Adam::new(0.02);
    let mut losses = Vec::new();
    for _ in 0..30 {
        let tape = GradientTape::new();
        let scores = f.predict(&x).unwrap();
        let own = scores.gather_with(
            &labels.expand_dims(-1).unwrap(),
            1,
            tf::GatherOptions::new().batch_dims(1),
        );
        let loss = own
            .unwrap()
            .add(1e-6)
            .unwrap()
            .log()
            .unwrap()
            .reduce_mean(())
            .unwrap()
            .negative()
            .unwrap();
        adam.minimize(&loss, tape, &model).unwrap();
        losses.push(loss.item::<f32>().unwrap());
    }
    assert!(losses[29] < losses[0] / 2.0, "{losses:?}");
}

fn compare_layers(name: &str) -> LoadedModel {
    let arrays = arrays(&folder().join(format!("{name}.safetensors")));
    let (_, x) = part(&arrays, "in.").pop_first().unwrap();
    let x = x.to_tensor().unwrap();
    let json = folder().join(name).join("model.json");
    let from_disk = tf::tfjs::load_layers_model(&json).unwrap();
    let json = fs::read(json).unwrap();
    assert_eq!(tf::tfjs::is_graph_model(&json), Some(false));
    let bytes = tf::tfjs::load_layers_model_from_bytes(&json, files(&folder().join(name))).unwrap();
    for model in [&from_disk, &bytes] {
        let y = match model {
            LoadedModel::Sequential(model) => model.call(&x, INFERENCE).unwrap(),
            LoadedModel::Functional(model) => Layer::<Tensor>::call(model, &x, INFERENCE).unwrap(),
            _ => unreachable!(),
        };
        assert_near(name, &HostArray::from_tensor(&y).unwrap(), &arrays["out.y"], 1e-5);
    }
    from_disk
}

/// Of tf.keras, by the converter: branches, a model in a model, names in another order than the layers.
#[test]
fn layers_models_of_the_converter() {
    let model = compare_layers("layers_functional").functional().unwrap();
    assert!(model.summary().contains("bn_a"), "{}", model.summary());
}

/// Of TensorFlow.js: recurrent layers with the `hard_sigmoid` of Keras 2, options that are null.
#[test]
fn layers_models_of_tensorflow_js() {
    let model = compare_layers("layers_sequential").sequential().unwrap();
    // The activation keeps its name, so the model can be saved here.
    let copy = tf::keras::Sequential::from_json(&model.to_json().unwrap()).unwrap();
    copy.set_weights(&model.get_weights().unwrap()).unwrap();
    let x = tf::constant([[1, 2, 3, 4, 5]]).unwrap();
    let (a, b) = (model.call(&x, INFERENCE).unwrap(), copy.call(&x, INFERENCE).unwrap());
    assert_eq!(a.to_vec::<f32>().unwrap(), b.to_vec::<f32>().unwrap());
}

#[test]
fn broken_models_are_errors() {
    let own = Folder::new("tfjs-broken");
    let graph = |path: &Path| tf::tfjs::load_graph_model(path).unwrap_err().to_string();
    let text = graph(&own.path("none.json"));
    assert!(text.contains("none.json") && text.contains("No such file"), "{text}");
    assert!(graph(&own.write("a.json", b"{")).contains("it is not valid JSON"));
    let layers = folder().join("layers_sequential/model.json");
    assert!(graph(&layers).contains("\"layers-model\", not \"graph-model\""));
    let json = fs::read_to_string(folder().join("graph_pictures/model.json")).unwrap();
    let path = own.write("model.json", json.as_bytes());
    let text = graph(&path);
    assert!(text.contains("group1-shard1of2.bin"), "{text}");
    let all = files(&folder().join("graph_pictures"));
    let of = |json: &str, files: Vec<(String, Vec<u8>)>| match tf::tfjs::load_graph_model_from_bytes(
        json.as_bytes(),
        files,
    ) {
        Ok(model) => model.signature("serving_default").unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    let text = of(&json, all[..1].to_vec());
    assert!(text.contains("is missing: there are group1-shard"), "{text}");
    let short: Vec<(String, Vec<u8>)> =
        all.iter().map(|(name, bytes)| (name.clone(), bytes[..bytes.len() - 8].to_vec())).collect();
    assert!(of(&json, short).contains("The model is damaged"));
    let text = of(&json.replace("group1-shard1of2.bin", "../group1-shard1of2.bin"), all.clone());
    assert!(text.contains("which is outside its folder"), "{text}");
    let text = of(&json.replace("_FusedConv2D", "_FusedConv9D"), all.clone());
    assert!(text.contains("_FusedConv9D: node \"") && text.contains("reads it"), "{text}");
    let text = of(&json.replacen("/Neg\", \"shape\"", "/Nog\", \"shape\"", 1), all);
    assert!(text.contains("the weights lack the constant"), "{text}");
    // Layers: another shape, and a layer that is missing.
    let json = fs::read_to_string(&layers).unwrap();
    let all = files(&folder().join("layers_sequential"));
    let of = |json: String| {
        tf::tfjs::load_layers_model_from_bytes(json.as_bytes(), all.clone())
            .unwrap_err()
            .to_string()
    };
    let text = of(json.replace("\"units\":2", "\"units\":1"));
    assert!(text.contains("do not fit the layers: 'dense_Dense1/kernel' is [4, 2]"), "{text}");
    let text = of(json.replace("\"class_name\":\"GRU\"", "\"class_name\":\"Foo\""));
    assert!(text.contains("Foo"), "{text}");
    let text = of(json.replace("dense_Dense1/kernel", "dense_Dense9/kernel"));
    assert!(text.contains("'dense_Dense1/bias' is [2]") || text.contains("missing"), "{text}");
}

/// Whatever the bytes are, a model loads, or is an error.
fn mutate(name: &str, count: usize) {
    let json = fs::read(folder().join(name).join("model.json")).unwrap();
    let files = files(&folder().join(name));
    for _ in 0..count {
        let (mut json, mut files) = (json.clone(), files.clone());
        for _ in 0..fastrand::usize(1..4) {
            let at = fastrand::usize(..json.len());
            match fastrand::u8(..4) {
                0 => json[at] = fastrand::u8(..),
                1 => json[at] = b'0' + fastrand::u8(..10),
                2 => drop(json.drain(at..(at + fastrand::usize(1..40)).min(json.len()))),
                _ => {
                    let file = &mut files[0].1;
                    file.truncate(fastrand::usize(..=file.len()));
                }
            }
        }
        if name.starts_with("graph") {
            // A loop may have any number of turns, so no model runs.
            if let Ok(model) = tf::tfjs::load_graph_model_from_bytes(&json, files) {
                drop(model.signature("serving_default"));
            }
        } else {
            drop(tf::tfjs::load_layers_model_from_bytes(&json, files));
        }
    }
}

const MUTATED: [&str; 3] = ["graph_control", "layers_sequential", "graph_uint8"];

#[test]
fn mutated_models_are_errors_or_models() {
    fastrand::seed(5);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let none = Vec::<(String, Vec<u8>)>::new();
    assert!(tf::tfjs::load_graph_model_from_bytes(deep.as_bytes(), none).is_err());
    MUTATED.iter().for_each(|name| mutate(name, 150));
}

#[test]
#[ignore = "takes some minutes"]
fn a_hundred_thousand_mutations() {
    fastrand::seed(6);
    MUTATED.iter().for_each(|name| mutate(name, 34_000));
}
