//! Models with layers for strings compute the same in TensorFlow and here, whoever exports them: `cargo xtask judge`.

use std::process::Command;
use std::sync::Arc;

use serde_json::{Value, json};
use wgrad::keras::layers::{Dense, HostLayer, OutputMode, StringLookup, TextVectorization};
use wgrad::keras::{FrontModel, HostSymbol, INFERENCE, Sequential};
use wgrad::{HostArray, Tensor};

use crate::support::exported_fronts::{KINDS, SIZES, TEXTS, WORDS, inputs, model, models, several};
use crate::support::folder::Folder;

fn flat(y: &Tensor) -> Value {
    json!({"shape": y.shape(), "values": y.to_vec::<f32>().unwrap()})
}

#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn tensorflow_computes_what_exported_fronts_compute() {
    let folder = Folder::new("exported-fronts");
    let mut cases = serde_json::Map::new();
    let floats: &[&str] = &["size"];
    let all = models().into_iter().map(|(name, model)| (name, model, &[][..]));
    for (name, model, floats) in all.chain([("several".to_string(), several(), floats)]) {
        let y = model.call_host(&inputs(&model, floats), INFERENCE);
        let y = y.unwrap_or_else(|error| panic!("{name}: {error}"));
        model.export(folder.path(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let names = model.input_names();
        cases.insert(name, json!({"inputs": names, "floats": floats, "y": flat(&y[0])}));
    }

    let words = TextVectorization::new().output_mode(OutputMode::Count);
    words.adapt(&TEXTS).unwrap();
    let model = FrontModel::new(Sequential::new().add(Dense::new(2))).front(words);
    let y = model.call_host(&TEXTS, INFERENCE).unwrap();
    model.export(folder.path("sequential")).unwrap();
    cases.insert("sequential".to_string(), json!({"inputs": ["input_layer"], "y": flat(&y)}));

    let strict = StringLookup::new().vocabulary(["red", "green"]).num_oov_indices(0);
    model_of(&folder, "strict", strict);
    let given = json!({
        "text": TEXTS, "input_layer": TEXTS, "word": WORDS, "kind": KINDS, "size": SIZES, "cases": cases,
        "strict": "StringLookup: a word is not in the vocabulary, and num_oov_indices is 0",
    });
    folder.write("cases.json", given.to_string().as_bytes());

    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("WGRAD_JUDGE_PYTHON names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/saved_model/judge_fronts.py");
    let output = Command::new(python).arg(script).arg(folder.path("")).output().unwrap();
    let (said, reported) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{reported}");
    assert!(said.contains(&format!("{} models agree", cases_of(&given))), "{said}");
}

fn cases_of(given: &Value) -> usize {
    given["cases"].as_object().map_or(0, serde_json::Map::len)
}

/// Exports a lookup that refuses unknown words.
fn model_of(folder: &Folder, name: &str, lookup: StringLookup) {
    let word = HostSymbol::input("word").then(Arc::new(lookup));
    let model = model(&word, 2, OutputMode::Int);
    model.call_host(&["red"], INFERENCE).unwrap();
    let refused = model.call_host(&["blue"], INFERENCE).unwrap_err().to_string();
    assert!(refused.contains("num_oov_indices is 0"), "{refused}");
    model.export(folder.path(name)).unwrap();
}

/// Models that Keras exports with layers for strings are loaded, with its results.
#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn models_with_texts_that_keras_exports_are_loaded() {
    let folder = Folder::new("keras-fronts");
    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("WGRAD_JUDGE_PYTHON names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/saved_model/make_fronts.py");
    let output = Command::new(python).arg(script).arg(folder.path("")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let made = std::fs::read(folder.path("made.json")).unwrap();
    let made: serde_json::Map<String, Value> = serde_json::from_slice(&made).unwrap();
    assert!(made.len() >= 12, "{}", made.len());
    for (name, case) in &made {
        let model = wgrad::saved_model::load(folder.path(name)).unwrap();
        let serve = model.signature("serving_default");
        let serve = serve.unwrap_or_else(|error| panic!("{name}: {error}"));
        let inputs = case["inputs"].as_object().unwrap().iter().map(|(input, values)| {
            let values = values.as_array().unwrap();
            let array = match values[0].is_string() {
                true => {
                    let text = |value: &Value| value.as_str().unwrap().as_bytes().to_vec();
                    let texts: Vec<Vec<u8>> = values.iter().map(text).collect();
                    HostArray::from_strings([texts.len(), 1], texts).unwrap()
                }
                false => {
                    let numbers = values.iter().map(|value| value.as_i64().unwrap()).collect();
                    let rows = [values.len(), 1];
                    HostArray::from(ndarray::Array2::from_shape_vec(rows, numbers).unwrap())
                }
            };
            (&input[..], array)
        });
        let results = serve.call(inputs).unwrap_or_else(|error| panic!("{name}: {error}"));
        let y = results.tensor("output_0").unwrap();
        assert_eq!(json!(y.shape()), case["y"]["shape"], "{name}");
        let wanted: Vec<f32> = serde_json::from_value(case["y"]["values"].clone()).unwrap();
        for (y, wanted) in y.to_vec::<f32>().unwrap().iter().zip(&wanted) {
            assert!((y - wanted).abs() < 1e-5, "{name}: {y}, not {wanted}");
        }
    }
}
