//! Models that Keras 2 wrote as SavedModels have its results (tests/data/saved_model, of keras_2.py there).

use std::fs;
use std::path::{Path, PathBuf};

use wgrad as tf;
use wgrad::keras::{INFERENCE, Layer, saving::LoadedModel};
use wgrad::{HostArray, Trackable};

use crate::support::folder::Folder;
use crate::support::saved_models::{arrays, assert_near};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/saved_model").join(name)
}

/// The files of a folder and of those in it, by their paths.
fn files(folder: &Path, prefix: &str, all: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{prefix}{}", path.file_name().unwrap().to_str().unwrap());
        match path.is_dir() {
            true => files(&path, &format!("{name}/"), all),
            false => all.push((name, fs::read(path).unwrap())),
        }
    }
}

fn contents(name: &str) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    files(&folder(name), "", &mut all);
    all
}

fn compare(name: &str) {
    let arrays = arrays(&folder(&format!("{name}.safetensors")));
    let x = arrays["x"].to_tensor().unwrap();
    let from_disk = tf::saved_model::load_keras_model(folder(name)).unwrap();
    let from_memory = tf::saved_model::load_keras_model_from_bytes(contents(name)).unwrap();
    for model in [from_disk, from_memory] {
        let y = match model {
            LoadedModel::Sequential(model) => model.call(&x, INFERENCE),
            LoadedModel::Functional(model) => model.call(&x, INFERENCE),
            _ => panic!("another kind of model"),
        };
        assert_near(name, &HostArray::from_tensor(&y.unwrap()).unwrap(), &arrays["y"], 1e-5);
    }
}

#[test]
fn a_model_of_calls_with_a_model_in_it() {
    compare("keras_2_functional");
}

#[test]
fn a_list_of_layers() {
    compare("keras_2_sequential");
    let model = tf::saved_model::load_keras_model(folder("keras_2_sequential")).unwrap();
    let model = model.sequential().unwrap();
    // It can be trained, and saved as a file of Keras 3.
    assert!(model.variables().iter().any(tf::Variable::trainable));
    let own = Folder::new("keras-2");
    model.save(own.path("model.keras")).unwrap();
    let copy = tf::keras::saving::load_model(own.path("model.keras")).unwrap();
    assert_eq!(copy.sequential().unwrap().get_weights().unwrap(), model.get_weights().unwrap());
}

#[test]
fn folders_that_do_not_describe_layers_are_refused() {
    let words = |name: &str| {
        tf::saved_model::load_keras_model(folder(name)).map(drop).unwrap_err().to_string()
    };
    let own = words("keras_2_subclass");
    assert!(own.contains("the model 'own' is a 'Own', a class of its own"), "{own}");
    assert!(own.contains("Load its functions with saved_model::load"), "{own}");
    // Keras 3 wrote this one.
    assert!(words("cnn").contains("no file keras_metadata.pb"), "{}", words("cnn"));
    assert!(words("nothing").contains("keras_metadata.pb"), "{}", words("nothing"));
    let file = tf::keras::saving::load_model(folder("cnn")).map(drop).unwrap_err().to_string();
    assert!(file.contains("it is a folder") && file.contains("load_keras_model"), "{file}");

    let without = |part: &str| {
        let rest =
            contents("keras_2_sequential").into_iter().filter(|(name, _)| !name.contains(part));
        let loaded = tf::saved_model::load_keras_model_from_bytes(rest);
        loaded.map(drop).unwrap_err().to_string()
    };
    assert!(without("metadata").contains("no file keras_metadata.pb"));
    assert!(!without("data-0").is_empty());
    assert!(without("index").contains("'conv2d"), "{}", without("index"));
}

#[test]
fn damaged_folders_are_errors() {
    let whole = contents("keras_2_sequential");
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..300 {
        let mut files = whole.clone();
        let at = random.usize(..files.len());
        let bytes = &mut files[at].1;
        match random.bool() {
            true => bytes.truncate(random.usize(..=bytes.len())),
            false => {
                for _ in 0..random.usize(1..20) {
                    let place = random.usize(..bytes.len());
                    bytes[place] = random.u8(..);
                }
            }
        }
        // It may still be a model.
        let _ = tf::saved_model::load_keras_model_from_bytes(files);
    }
}
