//! Wrong calls, and files that are missing, damaged or hostile.

use std::fs;

use wgrad as tf;
use wgrad::keras::layers::{Dense, Embedding, Flatten, TextVectorization};
use wgrad::keras::{FrontModel, INFERENCE, Sequential};
use wgrad::{Error, HostArray};

use crate::results::folder;
use crate::support::folder::Folder;
use crate::support::saved_models::broken;

/// A copy of a model, for changes.
fn copy(name: &str) -> Folder {
    let copy = Folder::new(&format!("saved-model-{name}"));
    for part in ["", "variables", "assets"] {
        let Ok(files) = fs::read_dir(folder().join(name).join(part)) else { continue };
        fs::create_dir_all(copy.path(part)).unwrap();
        for file in files.map(|file| file.unwrap().path()).filter(|path| path.is_file()) {
            fs::copy(&file, copy.path(part).join(file.file_name().unwrap())).unwrap();
        }
    }
    copy
}

#[test]
fn unknown_ops_are_listed_all_at_once() {
    let model = tf::saved_model::load(folder().join("unknown")).unwrap();
    let error = model.signature("serving_default").unwrap_err();
    assert!(matches!(error, Error::Data(_)));
    let text = error.to_string();
    for op in ["UnicodeTranscode: node \"", "Substr", "StringToNumber", "UnicodeScript"] {
        assert!(text.contains(op), "{text}");
    }
    assert!(text.contains("reads it") && text.contains("Save the model without them"), "{text}");
}

#[test]
fn wrong_calls_say_what_fits() {
    let model = tf::saved_model::load(folder().join("case")).unwrap();
    let f = model.signature("serving_default").unwrap();
    let (i, x) = (tf::constant(1).unwrap(), tf::constant([1.0, 2.0, 3.0]).unwrap());
    let of = |inputs: Vec<(&str, &tf::Tensor)>| f.call(inputs).unwrap_err().to_string();
    let takes = "It takes (i: int32[], x: float32[3]).";
    let long = tf::constant([1.0, 2.0]).unwrap();
    for (inputs, words) in [
        (vec![("x", &x)], "lacks its input \"i\""),
        (vec![("i", &i), ("x", &x), ("z", &x)], "has no input \"z\""),
        (vec![("i", &i), ("i", &i)], "got the input \"i\" twice"),
        (vec![("i", &x), ("x", &x)], "got f32[3] for its input \"i\""),
        (vec![("i", &i), ("x", &long)], "got f32[2] for its input \"x\""),
    ] {
        let text = of(inputs);
        assert!(text.contains(words) && text.contains(takes), "{text}");
    }
    let text = f.predict(&x).unwrap_err().to_string();
    assert!(text.contains("has 2 inputs and 1 results"), "{text}");
    let error = model.signature("serve").unwrap_err().to_string();
    assert!(error.contains("no signature \"serve\": it has serving_default"), "{error}");
    let outputs = f.call([("i", &i), ("x", &x)]).unwrap();
    let error = outputs.tensor("z").unwrap_err().to_string();
    assert!(error.contains("no result \"z\"; the function has y"), "{error}");
    // Strings are no tensors.
    let tables = tf::saved_model::load(folder().join("tables")).unwrap();
    let f = tables.signature("serving_default").unwrap();
    let error = f.call([("s", &x)]).unwrap_err().to_string();
    assert!(error.contains("got f32[3] for its input \"s\""), "{error}");
}

#[test]
fn errors_of_ops_name_the_node() {
    let frozen = folder().join("frozen.pb");
    let f = tf::saved_model::import_graph_def(frozen, &["MatMul"], &["y"]).unwrap();
    let error = f.predict(tf::Tensor::zeros([2, 5]).unwrap()).unwrap_err();
    assert!(matches!(error, Error::Shape(_)), "{error:?}");
    assert!(error.to_string().contains("node \"add\" (AddV2): "), "{error}");
}

#[test]
fn missing_and_damaged_files() {
    let none = Folder::new("saved-model-none");
    let error = tf::saved_model::load(none.path("")).unwrap_err();
    assert!(matches!(error, Error::Io(_)), "{error:?}");
    none.write("saved_model.pbtxt", b"");
    let error = tf::saved_model::load(none.path("")).unwrap_err();
    assert!(error.to_string().contains("in text format"), "{error}");
    none.write("saved_model.pb", b"\x0f\xff");
    let error = tf::saved_model::load(none.path("")).unwrap_err();
    assert!(error.to_string().contains("is no SavedModel"), "{error}");
    none.write("saved_model.pb", b"");
    let error = tf::saved_model::load(none.path("")).unwrap_err();
    assert!(error.to_string().contains("has no graph with the tags [\"serve\"]"), "{error}");

    let model = copy("cond");
    let options = tf::saved_model::LoadOptions::new().tags(["train".to_string()]);
    let error = tf::saved_model::load_with(model.path(""), options).unwrap_err();
    assert!(error.to_string().contains("it has [[\"serve\"]]"), "{error}");
    let data = model.path("variables").join("variables.data-00000-of-00001");
    let bytes = fs::read(&data).unwrap();
    let mut wrong = bytes.clone();
    wrong[5] ^= 1;
    fs::write(&data, wrong).unwrap();
    let loaded = tf::saved_model::load(model.path("")).unwrap();
    let error = loaded.signature("serving_default").unwrap_err();
    assert!(error.to_string().contains("corrupt"), "{error}");
    fs::remove_dir_all(model.path("variables")).unwrap();
    let loaded = tf::saved_model::load(model.path("")).unwrap();
    let error = loaded.signature("serving_default").unwrap_err();
    assert!(error.to_string().contains("no checkpoint with their values"), "{error}");
}

/// A name of a file never leads out of the model's folder.
#[test]
fn files_of_a_model_lie_in_its_folder() {
    let model = copy("tables");
    let secret = model.write("secret.txt", b"red\n");
    let path = model.path("saved_model.pb");
    let bytes = fs::read(&path).unwrap();
    let (old, new) = (b"words.txt", b"../secret");
    let mut changed = bytes.clone();
    let mut at = 0;
    while let Some(found) = changed[at..].windows(old.len()).position(|part| part == old) {
        changed[at + found..at + found + old.len()].copy_from_slice(new);
        at += found + old.len();
    }
    fs::rename(secret, model.path("secret")).unwrap();
    fs::write(&path, changed).unwrap();
    let loaded = tf::saved_model::load(model.path("")).unwrap();
    let error = loaded.signature("serving_default").unwrap_err();
    assert!(error.to_string().contains("\"../secret\", which is outside its folder"), "{error}");
}

/// Whatever the bytes are, a model loads and runs, or is an error.
fn mutate(model: &Folder, x: &HostArray<'static>, count: usize) {
    let path = model.path("saved_model.pb");
    let bytes = fs::read(&path).unwrap();
    let mut random = fastrand::Rng::with_seed(11);
    let (mut loaded, mut found, mut ran) = (0, 0, 0);
    for _ in 0..count {
        let broken = broken(&bytes, &mut random);
        fs::write(&path, broken).unwrap();
        let Ok(model) = tf::saved_model::load(model.path("")) else { continue };
        loaded += 1;
        let _ = model.functions();
        let Ok(f) = model.signature("serving_default") else { continue };
        found += 1;
        // On the host, so that nothing is traced.
        ran += usize::from(f.predict(x.clone()).is_ok());
    }
    assert!(loaded > count / 20 && found > count / 50, "{loaded} loaded, {found} found, {ran} ran");
}

/// A model of many ops without loops, and one that splits texts into n-grams and looks them up.
fn mutate_both(count: usize) {
    mutate(&copy("ops"), &HostArray::from(ndarray::Array3::<f32>::zeros((2, 3, 4))), count);

    let words = TextVectorization::new()
        .vocabulary(["a", "good", "a good", "film"])
        .ngrams(2)
        .output_sequence_length(4);
    let model = Sequential::new().add(Embedding::new(6, 2)).add(Flatten::new()).add(Dense::new(1));
    let model = FrontModel::new(model).front(words);
    model.call_host(&["a film", "good film"], INFERENCE).unwrap();
    let folder = Folder::new(&format!("mutated-texts-{count}"));
    model.export(folder.path("")).unwrap();
    let texts = ["A good film!", ""].map(|text| text.as_bytes().to_vec()).to_vec();
    mutate(&folder, &HostArray::from_strings([2, 1], texts).unwrap(), count);
}

#[test]
fn any_bytes_are_a_model_or_an_error() {
    mutate_both(300);
}

#[test]
#[ignore = "takes minutes"]
fn a_hundred_thousand_times_any_bytes_are_a_model_or_an_error() {
    mutate_both(100_000);
}
