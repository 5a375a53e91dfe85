//! Models with layers for strings that are exported, and loaded again.

use std::sync::Arc;

use wgrad as tf;
use wgrad::keras::layers::{
    Dense, Embedding, Flatten, GlobalAveragePooling1D, Hashing, OutputMode, Standardize,
    StringLookup, Table, TextVectorization,
};
use wgrad::keras::{FrontModel, Functional, HostSymbol, INFERENCE, Input, LayerExt, Sequential};
use wgrad::saved_model::SavedModel;
use wgrad::{DType, HostArray, Tensor};

use crate::results::folder;
use crate::support::exported_fronts::{inputs, models, several};
use crate::support::folder::Folder;

/// What a loaded model makes of a table.
fn served(model: &SavedModel, table: &Table, names: &[&str]) -> Tensor {
    let serve = model.signature("serving_default").unwrap();
    let column = |name: &&'static str| (*name, table.get(name).unwrap().view().into_owned());
    let names: Vec<&'static str> =
        ["text", "word", "kind", "size"].into_iter().filter(|name| names.contains(name)).collect();
    serve.call(names.iter().map(column)).unwrap().tensor("output_0").unwrap()
}

#[test]
fn exported_models_take_strings_and_compute_the_same() {
    let folder = Folder::new("exported-fronts-here");
    let floats: &[&str] = &["size"];
    let all = models().into_iter().map(|(name, model)| (name, model, &[][..]));
    for (name, model, floats) in all.chain([("several".to_string(), several(), floats)]) {
        let table = inputs(&model, floats);
        let wanted = model.call_host(&table, INFERENCE).unwrap().remove(0);
        model.export(folder.path(&name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let loaded = tf::saved_model::load(folder.path(&name)).unwrap();
        let y = served(&loaded, &table, &model.input_names());
        assert_eq!(y.shape(), wanted.shape(), "{name}");
        let (y, wanted) = (y.to_vec::<f32>().unwrap(), wanted.to_vec::<f32>().unwrap());
        let near = y.iter().zip(&wanted).all(|(y, wanted)| (y - wanted).abs() < 1e-5);
        assert!(near, "{name}: {y:?}, not {wanted:?}");
    }
}

/// The model has seen texts of two words only.
#[test]
fn exported_models_take_texts_of_any_length() {
    let words = TextVectorization::new().vocabulary(["a", "good", "film"]);
    let model = Sequential::new()
        .add(Embedding::new(5, 4))
        .add(GlobalAveragePooling1D::new())
        .add(Dense::new(2));
    let model = FrontModel::new(model).front(words);
    model.call_host(&["a film", "good film"], INFERENCE).unwrap();
    let folder = Folder::new("exported-lengths");
    model.export(folder.path("texts")).unwrap();
    let loaded = tf::saved_model::load(folder.path("texts")).unwrap();
    let serve = loaded.signature("serving_default").unwrap();
    for texts in [["film", "a"], ["a good film, a good film", "a"], ["a b", "c d"]] {
        let given = texts.map(|text| text.as_bytes().to_vec()).to_vec();
        let y = serve.predict(HostArray::from_strings([2, 1], given).unwrap()).unwrap();
        let wanted = model.call_host(&texts, INFERENCE).unwrap().to_vec::<f32>().unwrap();
        let y = y.to_vec::<f32>().unwrap();
        let near = y.iter().zip(&wanted).all(|(y, wanted)| (y - wanted).abs() < 1e-5);
        assert!(near, "{texts:?}: {y:?}, not {wanted:?}");
    }
}

#[test]
fn what_cannot_be_exported_says_why() {
    let folder = Folder::new("exported-errors");
    let word = HostSymbol::input("word");
    let refused = |symbol: HostSymbol, x: Input, words: &str| {
        let flat = Flatten::new().on(&x).unwrap();
        let model = Functional::new([&x], Dense::new(2).on(&flat).unwrap()).unwrap();
        let model = FrontModel::functional(model, [("fed", &symbol)]).unwrap();
        let error = model.export(folder.path("never")).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert!(!folder.path("never").exists());
    };
    let fed = |size: usize| Input::new([size]).with_name("fed");
    let weightless = Hashing::new(3).output_mode(OutputMode::TfIdf);
    refused(word.then(Arc::new(weightless)), fed(3), "bins have no weights");
    refused(word.then(Arc::new(Hashing::new(0))), fed(1), "num_bins is 0");
    let both = TextVectorization::new().vocabulary(["a"]).output_mode(OutputMode::Count);
    let both = both.output_sequence_length(3);
    refused(word.then(Arc::new(both)), fed(3), "output_sequence_length is set");
    let own = TextVectorization::new()
        .vocabulary(["a"])
        .standardize(Standardize::custom(str::to_lowercase));
    refused(word.then(Arc::new(own)), fed(3), "function of the program");
    let wide = TextVectorization::new().vocabulary(["a"]).ngrams(1_000_000_000);
    refused(word.then(Arc::new(wide)), fed(3), "1024 is the most");
    let long = StringLookup::new().vocabulary(["a"]).output_mode(OutputMode::MultiHot);
    let long = long.max_tokens(1 << 40).pad_to_max_tokens(true);
    refused(word.then(Arc::new(long)), fed(3), "its rows have 1099511627776 elements");
    // The model takes three words, and a text may have any number.
    let any = TextVectorization::new().vocabulary(["a"]);
    refused(word.then(Arc::new(any)), fed(3), "set output_sequence_length if the model takes one");
}

#[test]
fn a_large_vocabulary_is_exported() {
    let words: Vec<String> = (0..200_000).map(|word| format!("w{word}")).collect();
    let lookup = StringLookup::new().vocabulary(words);
    let x = Input::new([1]).with_dtype(DType::I32).with_name("fed");
    let y = Embedding::new(200_001, 1).on(&x).unwrap();
    let word = HostSymbol::input("word").then(Arc::new(lookup));
    let model =
        FrontModel::functional(Functional::new([&x], &y).unwrap(), [("fed", &word)]).unwrap();
    let folder = Folder::new("exported-vocabulary");
    model.export(folder.path("words")).unwrap();
    let loaded = tf::saved_model::load(folder.path("words")).unwrap();
    let serve = loaded.signature("serving_default").unwrap();
    for texts in [["w0", "w199999"], ["w77", "none"]] {
        let given = texts.map(|text| text.as_bytes().to_vec()).to_vec();
        let y = serve.predict(HostArray::from_strings([2, 1], given).unwrap()).unwrap();
        let wanted = model.call_host(&texts, INFERENCE).unwrap().remove(0);
        assert_eq!(y.to_vec::<f32>().unwrap(), wanted.to_vec::<f32>().unwrap());
    }
}

#[test]
fn texts_of_keras() {
    let model = tf::saved_model::load(folder().join("text")).unwrap();
    let serve = model.signature("serve").unwrap();
    let texts =
        HostArray::from_strings([2, 1], vec![b"a B!".to_vec(), b"x, a a".to_vec()]).unwrap();
    let y = serve.predict(texts).unwrap();
    assert_eq!(y.shape(), [2, 4, 3]);
    let variables = tf::Trackable::variables(&model);
    let rows = variables.iter().find(|variable| variable.shape() == [5, 3]).unwrap();
    let rows = rows.read().to_vec::<f32>().unwrap();
    let wanted: Vec<f32> = [2, 3, 0, 0, 1, 2, 2, 0]
        .into_iter()
        .flat_map(|row: usize| rows[3 * row..3 * row + 3].to_vec())
        .collect();
    assert_eq!(y.to_vec::<f32>().unwrap(), wanted);
}
