//! Models with layers for strings that are exported, and loaded again.

use wgrad as tf;
use wgrad::keras::layers::{Dense, Embedding, GlobalAveragePooling1D, Table, TextVectorization};
use wgrad::keras::{FrontModel, INFERENCE, Sequential};
use wgrad::saved_model::SavedModel;
use wgrad::{HostArray, Tensor};

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
