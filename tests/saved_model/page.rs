//! The programs of docs/saved-models.md and docs/onnx.md.

use wgrad as tf;
use wgrad::keras::layers::{Dense, Layer};
use wgrad::keras::optimizers::{Adam, Optimizer};
#[cfg(feature = "keras-files")]
use wgrad::keras::{CompileOptions, FitOptions, Model};
use wgrad::keras::{INFERENCE, Sequential};
use wgrad::saved_model::Signature;
use wgrad::{HostArray, Trackable};

use crate::results::folder;
use crate::support::folder::Folder;

#[test]
fn a_model_is_loaded() -> tf::Result<()> {
    let pictures = folder().join("cnn");
    let images = tf::Tensor::zeros([2, 16, 16, 3])?;
    let model = tf::saved_model::load(pictures)?;
    let serve = model.signature("serving_default")?;
    println!("{serve:?}"); // SavedFunction(serving_default(x0: float32[?, 16, 16, 3]) -> (output_0: float32[?, 5]))

    // One input, one result:
    let scores = serve.predict(&images)?;
    // Any number of them, by name:
    let results = serve.call([("x0", &images)])?;
    assert_eq!(results.tensor("output_0")?.shape(), scores.shape());
    println!("{} variables", model.variables().len());
    assert!(
        format!("{serve:?}")
            .starts_with("SavedFunction(serving_default(x0: float32[?, 16, 16, 3])")
    );
    Ok(())
}

#[test]
fn a_model_is_written() -> tf::Result<()> {
    let written = Folder::new("saved-models-page");
    let (exported, custom) = (written.path("exported"), written.path("custom"));
    let model = Sequential::new().add(Dense::new(64)).add(Dense::new(10));
    model.build([None, Some(784)])?;
    model.export(exported)?;

    let images = tf::TensorSpec::new([None, Some(28), Some(28)], tf::DType::U8);
    let classify = Signature::new("serving_default", [("images", images)], |inputs| {
        let pixels = inputs[0].cast(tf::DType::F32)?.divide(255.0)?.reshape([-1, 784])?;
        let scores = model.call(&pixels, INFERENCE)?;
        Ok((scores.argmax(-1)?, scores.softmax(-1)?))
    });
    tf::saved_model::save(&model, &custom, &[classify.outputs(["digit", "probabilities"])])?;
    let loaded = tf::saved_model::load(custom)?;
    let classify = loaded.signature("serving_default")?;
    let results =
        classify.call([("images", tf::Tensor::zeros([2, 28, 28])?.cast(tf::DType::U8)?)])?;
    assert_eq!(results.tensor("digit")?.shape(), [2]);
    assert_eq!(results.tensor("probabilities")?.shape(), [2, 10]);
    Ok(())
}

#[test]
fn a_model_is_trained_further() -> tf::Result<()> {
    let pictures = folder().join("cnn");
    let (images, labels) = (tf::Tensor::zeros([2, 16, 16, 3])?, tf::constant([0, 4])?);
    let model = tf::saved_model::load(pictures)?;
    let serve = model.signature("serving_default")?;
    let adam = Adam::new(1e-4);

    let tape = tf::GradientTape::new();
    let scores = serve.predict(&images)?;
    let loss = tf::sparse_softmax_cross_entropy_with_logits(&labels, &scores)?.reduce_mean(())?;
    adam.minimize(&loss, tape, &model)?;
    assert_eq!(adam.iterations(), 1);

    let model = Sequential::new().add(model.layer("serving_default")?).add(Dense::new(2));
    model.build([None, Some(16), Some(16), Some(3)])?;
    assert_eq!(model.call(&images, INFERENCE)?.shape(), [2, 2]);
    Ok(())
}

#[test]
fn strings_stay_on_the_host() -> tf::Result<()> {
    let model = tf::saved_model::load(folder().join("tables"))?;
    let lookup = model.signature("serving_default")?;
    let words = HostArray::from_strings([2], vec![b"red".to_vec(), b"blue".to_vec()])?;
    let results = lookup.call([("s", words)])?;
    println!("{:?}", results.value("place")?.to_host_array()?); // HostArray(int64 [2]: [0, 2])
    let place = results.value("place")?.to_host_array()?;
    assert_eq!(format!("{place:?}"), "HostArray(int64 [2]: [0, 2])");
    Ok(())
}

#[test]
fn an_onnx_model_is_written() -> tf::Result<()> {
    let written = Folder::new("onnx-page");
    let path = written.path("digits.onnx");
    let model = Sequential::new().add(Dense::new(64)).add(Dense::new(10));
    let images = tf::TensorSpec::new([None, Some(784)], tf::DType::F32);
    let classify = Signature::new("classify", [("images", images)], |inputs| {
        model.call(&inputs[0], INFERENCE)
    });
    tf::onnx::save(&model, &path, &classify.outputs(["scores"]))?;
    let loaded = tf::onnx::load(&path)?;
    assert_eq!(loaded.inputs()[0].to_string(), "images: float32[?, 784]");
    let pixels = tf::Tensor::ones([3, 784])?;
    let results = loaded.call([("images", &pixels)])?;
    let expected = model.call(&pixels, INFERENCE)?.to_vec::<f32>()?;
    assert_eq!(results.tensor("scores")?.to_vec::<f32>()?, expected);
    let names: Vec<String> = loaded.named_variables().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]);
    Ok(())
}

#[test]
fn an_onnx_model_is_loaded_and_trained() -> tf::Result<()> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/onnx/mlp.onnx");
    let (rows, labels) = (tf::Tensor::zeros([2, 6])?, tf::constant([0, 2])?);
    let model = tf::onnx::load(path)?;
    println!("{}: {}", model.producer(), model.inputs()[0]); // make.py: x: float32[?, 6]

    // One input, one result:
    let scores = model.predict(&rows)?;
    // Any number of them, by name:
    let results = model.call([("x", &rows)])?;
    assert_eq!(results.tensor("y")?.shape(), scores.shape());

    let adam = Adam::new(1e-3);
    let tape = tf::GradientTape::new();
    let scores = model.predict(&rows)?;
    let loss = tf::sparse_softmax_cross_entropy_with_logits(&labels, &scores)?.reduce_mean(())?;
    adam.minimize(&loss, tape, &model)?;
    assert_eq!(model.inputs()[0].to_string(), "x: float32[?, 6]");
    assert_eq!(adam.iterations(), 1);
    Ok(())
}

#[test]
fn a_forest_of_scikit_learn_is_loaded() -> tf::Result<()> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/onnx/exported");
    let path = format!("{folder}/sklearn_forest_two.onnx");
    let rows = tf::Tensor::zeros([3, 5])?;
    let results = tf::onnx::load(path)?.call([("X", &rows)])?;
    let (labels, probabilities) = (results.tensor("label")?, results.tensor("probabilities")?);
    assert_eq!((labels.shape(), probabilities.shape()), (&[3][..], &[3, 2][..]));
    Ok(())
}

#[cfg(feature = "keras-files")]
#[test]
fn models_of_keras_2() -> tf::Result<()> {
    let keras_2 = folder().join("keras_2_sequential");

    let layers = tf::saved_model::load_keras_model(keras_2)?.sequential()?;
    layers.compile(Adam::new(1e-3), "sparse_categorical_crossentropy", CompileOptions::new())?;

    let (x, labels) = (tf::Tensor::zeros([4, 8, 8, 2])?, tf::constant([0, 1, 2, 0])?);
    layers.fit((&x, &labels), FitOptions::new().verbose(0))?;
    Ok(())
}

#[cfg(feature = "keras-files")]
#[test]
fn models_of_tensorflow_js() -> tf::Result<()> {
    let models = folder().join("../tfjs");
    let converted = models.join("graph_pictures/model.json");
    let layers = models.join("layers_sequential/model.json");
    let small = tf::Tensor::zeros([1, 12, 12, 3])?;

    let pictures = tf::tfjs::load_graph_model(converted)?;
    let scores = pictures.signature("serving_default")?.predict(&small)?;
    let layers = tf::tfjs::load_layers_model(layers)?.sequential()?;

    assert_eq!(scores.shape(), [1, 5]);
    assert_eq!(layers.layers().count(), 7);
    Ok(())
}

#[cfg(all(feature = "json", feature = "preprocessing"))]
#[test]
fn a_model_of_texts_is_exported() -> tf::Result<()> {
    use wgrad::keras::FrontModel;
    use wgrad::keras::layers::{HostLayer, OutputMode, TextVectorization};

    let folder = Folder::new("exported-texts");
    let texts = folder.path("texts");
    let words = TextVectorization::new().output_mode(OutputMode::MultiHot);
    words.adapt(&["a good film", "a bad film"])?;
    let model = FrontModel::new(Sequential::new().add(Dense::new(1))).front(words);
    model.call_host(&["a good film"], INFERENCE)?;
    model.export(&texts)?;

    let loaded = tf::saved_model::load(&texts)?;
    let given = HostArray::from_strings([2, 1], vec![b"good!".to_vec(), b"a film".to_vec()])?;
    let y = loaded.signature("serving_default")?.predict(given)?;
    let wanted = model.call_host(&["good!", "a film"], INFERENCE)?;
    assert_eq!(y.to_vec::<f32>()?, wanted.to_vec::<f32>()?);
    Ok(())
}
