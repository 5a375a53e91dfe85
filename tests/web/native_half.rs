//! The native half of the browsers' tests (`cargo xtask web --test`): the results that a page must match.
//!
//! `tests/data/web/losses.json` specifies a training run for both sides. The two ignored tests exchange weights with the
//! browsers through the folder that `WGRAD_WEB_EXCHANGE` names.

use std::path::PathBuf;

use serde_json::{Value, json};
use wgrad as tf;
use wgrad::Trackable;
use wgrad::data::Dataset;
use wgrad::data::drawn_digits::draw_digits;
use wgrad::keras::layers::{Conv2D, Dense, Dropout, Flatten, Layer, MaxPooling2D};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, INFERENCE, Sequential, TRAINING};
use wgrad::train::Checkpoint;
use wgrad::{Padding, Tensor};

use crate::alone;
use crate::support::root::root;

/// The model of a list of layers in the JavaScript API's format.
fn model(layers: &Value) -> Sequential {
    let mut model = Sequential::new();
    for layer in layers.as_array().unwrap() {
        let size = |key: &str| usize::try_from(layer[key].as_u64().unwrap()).unwrap();
        let activation = match layer["activation"].as_str() {
            None => Activation::Linear,
            Some("relu") => Activation::Relu,
            Some(other) => panic!("no activation {other}"),
        };
        model = match layer["type"].as_str().unwrap() {
            "flatten" => model.add(Flatten::new()),
            "dense" => model.add(Dense::new(size("units")).activation(activation)),
            "dropout" => model.add(Dropout::new(layer["rate"].as_f64().unwrap() as f32)),
            "maxPooling2d" => model.add(MaxPooling2D::new([size("poolSize"); 2])),
            "conv2d" => {
                assert_eq!(layer["padding"], "same");
                let conv = Conv2D::new(size("filters"), [size("kernelSize"); 2]);
                model.add(conv.padding(Padding::Same).activation(activation))
            }
            other => panic!("no layer {other}"),
        };
    }
    model
}

fn step(model: &Sequential, adam: &Adam, x: &Tensor, y: &Tensor) -> Tensor {
    let tape = tf::GradientTape::new();
    let logits = model.call(x, TRAINING).unwrap();
    let loss = tf::sparse_softmax_cross_entropy_with_logits(y, &logits).unwrap();
    let loss = loss.reduce_mean(()).unwrap();
    let variables = model.trainable_variables();
    let gradients = tape.gradient(&loss, &variables).unwrap();
    adam.apply_gradients(&gradients, &variables).unwrap();
    loss
}

/// The losses of a run. Random numbers are drawn in this order: the images' permutation, the weights, dropout.
fn train(run: &Value) -> Vec<f64> {
    let number = |key: &str| run[key].as_u64().unwrap();
    let size = |key: &str| usize::try_from(number(key)).unwrap();
    let images = draw_digits(size("images"), number("seed"));
    tf::random::set_seed(number("seed"));
    let order = tf::random::global().permutation(images.len()).unwrap();
    let model = model(&run["layers"]);
    let adam = Adam::new(run["learningRate"].as_f64().unwrap() as f32);
    let steps = run["losses"].as_array().unwrap().len();
    let batches = order.chunks(size("batchSize")).take(steps);
    let losses: Vec<Tensor> = batches
        .map(|places| images.tensors(places).unwrap())
        .map(|(x, y)| step(&model, &adam, &x, &y))
        .collect();
    losses.iter().map(|loss| loss.item::<f32>().unwrap().into()).collect()
}

fn losses_file() -> Value {
    let path = root().join("tests/data/web/losses.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn check_losses(name: &str) {
    let file = losses_file();
    let run = &file[name];
    let want: Vec<f64> =
        run["losses"].as_array().unwrap().iter().map(|loss| loss.as_f64().unwrap()).collect();
    assert_eq!(want.len(), 20);
    let got = train(run);
    // Another adapter sums in another order, and Adam amplifies the differences.
    let fits = |(got, want): (&f64, &f64)| (got - want).abs() <= 1e-3 * want;
    assert!(got.iter().zip(&want).all(fits), "{name}: got\n{}\nwant\n{}", json!(got), json!(want));
    assert!(want[19] < 0.9 * want[0], "{name}: the run learns nothing, so it says little");
}

#[test]
fn what_browsers_train_has_the_same_losses_here() {
    let _alone = alone();
    for name in ["mlp", "cnn"] {
        check_losses(name);
    }
}

fn exchange() -> PathBuf {
    let folder = std::env::var_os("WGRAD_WEB_EXCHANGE");
    folder.map(PathBuf::from).expect("`cargo xtask web --test` sets WGRAD_WEB_EXCHANGE")
}

/// The model's logits for the first images of a seed.
fn logits(model: &Sequential) -> Vec<f32> {
    let (x, _) = draw_digits(20, 99).tensors(&(0..20).collect::<Vec<_>>()).unwrap();
    model.call(&x, INFERENCE).unwrap().to_vec::<f32>().unwrap()
}

/// The MLP after some training, so that its weights differ from any initial ones.
fn trained() -> Sequential {
    let file = losses_file();
    let images = draw_digits(1000, 5);
    let (model, adam) = (model(&file["mlp"]["layers"]), Adam::new(1e-3));
    for batch in &Dataset::from_tensor_slices(images).unwrap().batch(50).to_tensors() {
        let (x, y) = batch.unwrap();
        let x = x.cast(tf::DType::F32).unwrap() / 255.0;
        step(&model, &adam, &x, &y);
    }
    model
}

#[test]
#[ignore = "part of `cargo xtask web --test`, before the browsers"]
fn files_for_the_browsers() {
    let model = trained();
    model.save_weights(exchange().join("native.safetensors")).unwrap();
    let text = json!({ "logits": logits(&model) }).to_string();
    std::fs::write(exchange().join("native.json"), text).unwrap();
    #[cfg(feature = "saved-model")]
    crate::exported::export(&exchange().join("exported"), model);
}

#[test]
#[ignore = "part of `cargo xtask bench --web --models`"]
#[cfg(feature = "saved-model")]
fn models_for_the_benchmark() {
    crate::exported::for_benchmarks(&exchange(), trained());
}

#[test]
#[ignore = "part of `cargo xtask web --test`, after the browsers"]
fn checkpoints_from_the_browsers() {
    let mut files = 0;
    for entry in std::fs::read_dir(exchange()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "index") {
            continue;
        }
        let prefix = path.with_extension("");
        let said = std::fs::read_to_string(prefix.with_extension("json")).unwrap();
        let said: Value = serde_json::from_str(&said).unwrap();
        let (model, adam) = (model(&said["layers"]), Adam::new(1.0));
        let checkpoint = Checkpoint::new().with("model", &model).with("optimizer", &adam);
        checkpoint.read(&prefix).unwrap().assert_consumed().unwrap();
        assert_eq!((adam.iterations(), adam.learning_rate()), (4, 0.01));
        let want = said["logits"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap());
        for (got, want) in logits(&model).iter().zip(want) {
            assert!((f64::from(*got) - want).abs() < 1e-3, "{}: {got} and {want}", path.display());
        }
        files += 1;
    }
    assert!(files > 0, "no browser left a checkpoint in {}", exchange().display());
}

#[test]
#[ignore = "part of `cargo xtask web --test`, after the browsers"]
fn models_from_the_browsers() {
    let mut files = 0;
    for entry in std::fs::read_dir(exchange()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "model") {
            continue;
        }
        let said = std::fs::read_to_string(path.with_extension("model.json")).unwrap();
        let said: Value = serde_json::from_str(&said).unwrap();
        let (model, adam) = (model(&said["layers"]), Adam::new(1.0));
        model.build([1, 28, 28, 1]).unwrap();
        let checkpoint = Checkpoint::new().with("model", &model).with("optimizer", &adam);
        checkpoint.restore_safetensors(&std::fs::read(&path).unwrap()).unwrap();
        assert_eq!((adam.iterations(), adam.learning_rate()), (4, 0.01));
        let want = said["logits"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap());
        let got = logits(&model);
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(want) {
            assert!((f64::from(*got) - want).abs() < 1e-3, "{}: {got} and {want}", path.display());
        }
        files += 1;
    }
    assert!(files > 0, "no browser left a model in {}", exchange().display());
}

#[test]
#[ignore = "part of `cargo xtask web --test`, after the browsers"]
fn weights_from_the_browsers() {
    let mut files = 0;
    for entry in std::fs::read_dir(exchange()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.ends_with(".safetensors") || name.starts_with("native") {
            continue;
        }
        let said: Value =
            serde_json::from_str(&std::fs::read_to_string(path.with_extension("json")).unwrap())
                .unwrap();
        let model = model(&said["layers"]);
        model.build([1, 28, 28, 1]).unwrap();
        model.load_weights(&path).unwrap();
        let got = logits(&model);
        let want: Vec<f64> =
            said["logits"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        assert_eq!(got.len(), want.len(), "{name}");
        // The same weights on another adapter; logits have magnitudes of about 10.
        for (got, want) in got.iter().zip(&want) {
            assert!((f64::from(*got) - want).abs() < 1e-3, "{name}: {got} and {want}");
        }
        // Training continues from there.
        let images = draw_digits(50, 6);
        let (x, y) = images.tensors(&(0..50).collect::<Vec<_>>()).unwrap();
        let adam = Adam::new(1e-3);
        let losses: Vec<f32> =
            (0..5).map(|_| step(&model, &adam, &x, &y).item::<f32>().unwrap()).collect();
        assert!(losses[4] < losses[0], "{name}: {losses:?}");
        println!("{name}: {} logits agree; losses from there {losses:?}", want.len());
        files += 1;
    }
    assert!(files > 0, "no browser left weights in {}", exchange().display());
}
