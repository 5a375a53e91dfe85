//! Keras loads feature spaces and models with lookups that wgrad wrote, with the same results, and vice versa: `cargo xtask judge`.

use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use wgrad::keras::layers::{
    Concatenate, Cross, Dense, Embedding, Feature, FeatureSpace, Flatten, GlobalAveragePooling1D,
    HashedCrossing, Hashing, HostLayer, IntegerLookup, Layer, OutputMode, StringLookup, Table,
    TextVectorization,
};
use wgrad::keras::{
    FrontModel, Functional, HostSymbol, INFERENCE, Input, LayerExt, Sequential, saving,
};

use crate::support::folder::Folder;

const TEXTS: [&str; 4] = ["A good film", "a bad, bad film!", "the film", "no words known"];

fn text(values: &[f32]) -> Value {
    json!(values)
}

#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn keras_and_wgrad_read_each_others_vocabularies() {
    let folder = Folder::new("preprocessing");
    let table = Table::new()
        .column("word", &["x", "y", "x", "z"])
        .column("kind", &[3, 5, 3, 9])
        .column("age", &[1.0f32, 2.0, 4.0, 9.0]);
    let space = FeatureSpace::new()
        .feature("word", Feature::string_categorical())
        .feature("kind", Feature::integer_categorical())
        .feature("age", Feature::float_normalized())
        .feature("old", Feature::float_discretized(2))
        .feature("half", Feature::float_rescaled(0.5, 1.0))
        .feature("hash", Feature::string_hashed(7))
        .cross(Cross::new(["word", "kind"], 8));
    let table = ["old", "half"]
        .iter()
        .fold(table.clone(), |all, name| all.column(*name, table.get("age").unwrap()));
    let table = table.clone().column("hash", table.get("word").unwrap());
    space.adapt(&table).unwrap();
    space.save(folder.path("space.keras")).unwrap();
    let rows = space.apply(&table).unwrap();

    let mut wanted = json!({"space": text(rows.to_array::<f32>().unwrap().as_slice().unwrap())});
    for mode in [OutputMode::Int, OutputMode::TfIdf] {
        let name = if mode == OutputMode::Int { "front_int" } else { "front_tf_idf" };
        let mut words = TextVectorization::new().output_mode(mode).ngrams(2);
        if mode == OutputMode::Int {
            words = words.output_sequence_length(5);
        }
        words.adapt(&TEXTS).unwrap();
        let model = match mode {
            OutputMode::Int => Sequential::new()
                .add(Embedding::new(words.vocabulary_size().unwrap(), 3))
                .add(GlobalAveragePooling1D::new())
                .add(Dense::new(2)),
            _ => Sequential::new().add(Dense::new(2)),
        };
        let model = FrontModel::new(model).front(words);
        let y = model.call_host(&TEXTS, INFERENCE).unwrap().to_vec::<f32>().unwrap();
        model.save(folder.path(&format!("{name}.keras"))).unwrap();
        let again = FrontModel::load(folder.path(&format!("{name}.keras"))).unwrap();
        assert_eq!(again.call_host(&TEXTS, INFERENCE).unwrap().to_vec::<f32>().unwrap(), y);
        wanted[name] = text(&y);
    }
    for mode in [OutputMode::Int, OutputMode::TfIdf] {
        let name = if mode == OutputMode::Int { "numbers_int" } else { "numbers_tf_idf" };
        let lookup = IntegerLookup::new().num_oov_indices(2).output_mode(mode);
        lookup.adapt(&[[4, 7], [7, 1000], [4, 4]]).unwrap();
        let size = lookup.vocabulary_size().unwrap();
        let mut model = Sequential::new().add(lookup);
        if mode == OutputMode::Int {
            model = model.add(Embedding::new(size, 3)).add(Flatten::new());
        }
        let model = model.add(Dense::new(2));
        let x = wgrad::constant([[4, 9], [1000, 7], [8, 8]]).unwrap();
        let y = model.call(&x, INFERENCE).unwrap().to_vec::<f32>().unwrap();
        model.save(folder.path(&format!("{name}.keras"))).unwrap();
        wanted[name] = text(&y);
    }
    wanted["graph"] = text(&graph(&folder));
    folder.write("wanted.json", wanted.to_string().as_bytes());

    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("WGRAD_JUDGE_PYTHON names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/keras/preprocessing_judge.py");
    let output = Command::new(python).arg(script).arg(folder.path("")).output().unwrap();
    let (said, reported) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{reported}");
    assert!(said.contains("6 files agree"), "{said}");

    let made: Value =
        serde_json::from_slice(&std::fs::read(folder.path("made.json")).unwrap()).unwrap();
    let close = |name: &str, y: &[f32]| {
        let wanted: Vec<f32> = serde_json::from_value(made[name].clone()).unwrap();
        assert_eq!(y.len(), wanted.len(), "{name}");
        let near = y.iter().zip(&wanted).all(|(a, b)| (a - b).abs() < 1e-5);
        assert!(near, "{name}: {y:?}, not {wanted:?}");
    };
    let space = FeatureSpace::load(folder.path("made_space.keras")).unwrap();
    close("space", space.apply(&table).unwrap().to_array::<f32>().unwrap().as_slice().unwrap());
    for name in ["front_int", "front_tf_idf"] {
        let model = FrontModel::load(folder.path(&format!("made_{name}.keras"))).unwrap();
        close(name, &model.call_host(&TEXTS, INFERENCE).unwrap().to_vec::<f32>().unwrap());
    }
    let model = FrontModel::load_functional(folder.path("made_graph.keras")).unwrap();
    assert_eq!(model.input_names(), ["size", "text", "first", "second", "kind"]);
    let y = model.call_host(&graph_inputs(), INFERENCE).unwrap();
    close("graph", &y[0].to_vec::<f32>().unwrap());
    // Written again, it is the same.
    model.save(folder.path("again.keras")).unwrap();
    let again = FrontModel::load_functional(folder.path("again.keras")).unwrap();
    assert_eq!(again.to_json().unwrap(), model.to_json().unwrap());
    let y = again.call_host(&graph_inputs(), INFERENCE).unwrap();
    close("graph", &y[0].to_vec::<f32>().unwrap());
    for name in ["numbers_int", "numbers_tf_idf"] {
        let model = saving::load_model(folder.path(&format!("made_{name}.keras"))).unwrap();
        let x = wgrad::constant([[4, 9], [1000, 7], [8, 8]]).unwrap();
        close(
            name,
            &model.sequential().unwrap().call(&x, INFERENCE).unwrap().to_vec::<f32>().unwrap(),
        );
    }
}

fn graph_inputs() -> Table {
    let names = ["ann", "bob", "cid", "ann"];
    Table::new()
        .column("text", &TEXTS)
        .column("first", &names)
        .column("second", &names)
        .column("kind", &[3, 5, 3, 9])
        .column("size", &[1.0f32, 2.0, 3.0, 4.0])
}

/// Writes a functional model in which layers for strings are shared, crossed and called on several inputs; returns its results.
fn graph(folder: &Folder) -> Vec<f32> {
    let [text, first, second] = ["text", "first", "second"].map(HostSymbol::input);
    let kind = HostSymbol::integers("kind");
    let counts = |ngrams: usize| {
        let words = TextVectorization::new().output_mode(OutputMode::TfIdf).ngrams(ngrams);
        words.adapt(&TEXTS).unwrap();
        (words.vocabulary_size().unwrap(), text.then(Arc::new(words)))
    };
    let ((size_1, words), (size_2, pairs)) = (counts(1), counts(2));
    let names: Arc<dyn HostLayer> =
        Arc::new(StringLookup::new().vocabulary(["ann", "bob"]).output_mode(OutputMode::MultiHot));
    let cross = HostSymbol::cross(&[&first, &kind], HashedCrossing::new(8));
    let hashed = kind.then(Arc::new(Hashing::new(4).output_mode(OutputMode::OneHot)));

    let input = |size: usize, name: &str| Input::new([size]).with_name(name);
    let (x, z, size) = (input(size_1, "words_in"), input(size_2, "pairs_in"), input(1, "size"));
    let (a, b, h) = (input(3, "a"), input(3, "b"), input(4, "h"));
    let crossed = input(1, "crossed").with_dtype(wgrad::DType::I32);
    let embedded = Flatten::new().on(&Embedding::new(8, 3).on(&crossed).unwrap()).unwrap();
    let joined = Concatenate::new().on_all([&x, &z, &a, &b, &embedded, &h, &size]).unwrap();
    let y = Dense::new(2).on(&joined).unwrap();
    let model = Functional::new([&x, &z, &a, &b, &crossed, &h, &size], &y).unwrap();
    let feeds = [
        ("words_in", &words),
        ("pairs_in", &pairs),
        ("a", &first.then(names.clone())),
        ("b", &second.then(names)),
        ("crossed", &cross),
        ("h", &hashed),
    ];
    let model = FrontModel::functional(model, feeds).unwrap();
    model.save(folder.path("graph.keras")).unwrap();
    let y = model.call_host(&graph_inputs(), INFERENCE).unwrap()[0].to_vec::<f32>().unwrap();
    let again = FrontModel::load_functional(folder.path("graph.keras")).unwrap();
    let z = again.call_host(&graph_inputs(), INFERENCE).unwrap();
    assert_eq!(z[0].to_vec::<f32>().unwrap(), y);
    y
}
