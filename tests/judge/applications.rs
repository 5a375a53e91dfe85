//! The known networks against Keras's, torchvision's and transformers', with the same random weights: `cargo xtask judge`.
//!
//! `tests/data/applications/judge.py` writes weights, results and gradients; here the weights are loaded as a user loads them. For
//! PyTorch's, WGRAD_TORCH_PYTHON names a Python with torch, torchvision, transformers and safetensors.

use std::path::Path;
use std::process::Command;

use wgrad::keras::applications::{
    ApplicationOptions, Arrangement, Bert, BertConfig, Gpt2, Gpt2Config, Llama, LlamaConfig, Vit,
    VitConfig, densenet, efficientnet, mobilenet_v2, mobilenet_v3, resnet, vgg16,
};
use wgrad::keras::{Activation, Context, Functional, INFERENCE, Layer, TRAINING};
use wgrad::weights::SafetensorsFile;
use wgrad::{DType, GradientTape, Tensor, Trackable};

use crate::support::folder::Folder;

type Build = fn(&ApplicationOptions) -> wgrad::Result<Functional>;

fn make(variable: &str, library: &str, folder: &Path, cases: &[&str]) {
    let python = std::env::var(variable).unwrap_or_else(|_| panic!("{variable} names a Python"));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/applications/judge.py");
    let output =
        Command::new(python).arg(script).arg(library).arg(folder).args(cases).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The distance between two lists of numbers, relative to the length of the second, and that length.
pub(super) fn apart(got: &Tensor, want: &Tensor) -> (f64, f64) {
    assert_eq!(got.shape(), want.shape());
    let (got, want) = (got.to_vec::<f32>().unwrap(), want.to_vec::<f32>().unwrap());
    let norm = |squares: f64| squares.sqrt();
    let length = norm(want.iter().map(|x| f64::from(*x).powi(2)).sum());
    let far = got.iter().zip(&want).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
    (norm(far) / length.max(1e-30), length)
}

fn read(folder: &Path, case: &str, name: &str) -> Tensor {
    let file = SafetensorsFile::open(folder.join(format!("{case}.io.safetensors"))).unwrap();
    file.tensor(name).unwrap()
}

/// Compares a network with the files of a case; `gradients` is the same network with the gradients as its weights.
fn compare<M: Layer>(folder: &Path, case: &str, model: &M, gradients: &M) {
    let io = |name: &str| read(folder, case, name);
    let noise: Vec<f32> = io("noise").to_vec().unwrap();
    // As near to the exact numbers as the library itself, if that is farther away than the tolerance.
    let bound = |at: usize, tolerance: f64| tolerance.max(4.0 * f64::from(noise[at]));
    let close = |what: &str, got: &Tensor, at: usize| {
        let (far, length) = apart(got, &io(what));
        assert!(far <= bound(at, 1e-4), "{case}: {what}: {far} of {length}, noise {noise:?}");
        far
    };
    let x = io("x");
    let y = close("y", &model.call(&x, INFERENCE).unwrap(), 0);
    let tape = GradientTape::new();
    let y_train = model.call(&x, TRAINING).unwrap();
    let loss = y_train.multiply(io("t")).unwrap().reduce_sum(()).unwrap();
    let variables = model.trainable_variables();
    let got = tape.gradient(&loss, &variables).unwrap();
    let train = close("y_train", &y_train, 1);
    let want = gradients.trainable_variables();
    let mut distances = Vec::new();
    let names = model.named_variables().into_iter().map(|(name, _)| name);
    // Those of normalizations are not trained.
    let names: Vec<String> =
        names.filter(|name| !name.contains("mov") && !name.starts_with("normalization")).collect();
    assert_eq!(names.len(), variables.len());
    for ((got, want), name) in got.iter().zip(&want).zip(&names) {
        let (far, length) = apart(got.as_ref().unwrap(), &want.read());
        // A bias before a normalization has no gradient but rounding.
        if length < 1e-3 {
            continue;
        }
        distances.push((far, name.clone()));
    }
    distances.sort_by(|a, b| a.0.total_cmp(&b.0));
    // One number that rounding moves across the kink of a ReLU changes all gradients before it by a few thousandths, and that of
    // a normalization of few positions by a few hundredths; without such, they differ by less than 1e-4. A wrong formula changes
    // the gradients before it by more than a hundredth, and those of its own weights by far more than a tenth.
    let most = &distances[(distances.len() - 1) * 19 / 20];
    let farthest = &distances[distances.len() - 1];
    assert!(most.0 <= bound(2, 1e-2), "{case}: gradients: {most:?}, noise {noise:?}");
    assert!(farthest.0 <= bound(3, 1e-1), "{case}: gradients: {farthest:?}, noise {noise:?}");
    println!(
        "{case}: y {y:.1e}, in training {train:.1e}, 19 of 20 gradients {:.1e}, all {:.1e} ({}); the library in f32: {noise:?}",
        most.0, farthest.0, farthest.1
    );
}

fn check(folder: &Path, case: &str, end: &str, build: Build, arrangement: Arrangement) {
    let options = || {
        ApplicationOptions::new()
            .classes(10)
            .input_shape([64, 64, 3])
            .classifier_activation(Activation::Linear)
            .dropout_rate(0.0)
            .arrangement(arrangement)
    };
    let file = |end: &str| folder.join(format!("{case}{end}"));
    let model = build(&options().weights(file(end))).unwrap();
    let gradients = build(&options().weights(file(&format!(".grads{end}")))).unwrap();
    compare(folder, case, &model, &gradients);
}

#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn networks_are_those_of_keras() {
    let cases: [(&str, Build); 7] = [
        ("VGG16", vgg16::vgg16),
        ("ResNet50", resnet::resnet50),
        ("MobileNetV2", mobilenet_v2::mobilenet_v2),
        ("MobileNetV3Small", mobilenet_v3::mobilenet_v3_small),
        ("MobileNetV3Large", mobilenet_v3::mobilenet_v3_large),
        ("EfficientNetB0", efficientnet::efficientnet_b0),
        ("DenseNet121", densenet::densenet121),
    ];
    let folder = Folder::new("judge-applications");
    make("WGRAD_JUDGE_PYTHON", "keras", &folder.path(""), &cases.map(|(name, _)| name));
    for (case, build) in cases {
        check(&folder.path(""), case, ".weights.h5", build, Arrangement::Keras);
    }
}

#[test]
#[ignore = "takes a Python with torchvision, in WGRAD_TORCH_PYTHON: `cargo xtask judge`"]
fn pytorch_networks_are_those_of_torchvision() {
    let cases: [(&str, Build); 9] = [
        ("vgg16", vgg16::vgg16),
        ("resnet18", resnet::resnet18),
        ("resnet34", resnet::resnet34),
        ("resnet50", resnet::resnet50),
        ("mobilenet_v2", mobilenet_v2::mobilenet_v2),
        ("mobilenet_v3_small", mobilenet_v3::mobilenet_v3_small),
        ("mobilenet_v3_large", mobilenet_v3::mobilenet_v3_large),
        ("efficientnet_b0", efficientnet::efficientnet_b0),
        ("densenet121", densenet::densenet121),
    ];
    let folder = Folder::new("judge-torchvision");
    make("WGRAD_TORCH_PYTHON", "torch", &folder.path(""), &cases.map(|(name, _)| name));
    for (case, build) in cases {
        check(&folder.path(""), case, ".safetensors", build, Arrangement::Torchvision);
    }
}

/// A network whose input is tokens, as floats in a file.
#[derive(Trackable)]
struct OfTokens<M> {
    #[track(flatten)]
    model: M,
}

impl Layer for OfTokens<Bert> {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> wgrad::Result<Tensor> {
        let tokens = x.cast(DType::I32)?;
        // As in judge.py: the last three tokens of the second text do not count.
        let counts = |row: i32, column: i32| i32::from(row == 0 || column < 9);
        let mask: Vec<i32> = (0..24).map(|at| counts(at / 12, at % 12)).collect();
        let mask = Tensor::from_slice(&mask, [2, 12])?;
        let [x, pooled] = self.model.call(&[tokens.clone(), tokens.zeros_like()?, mask][..], cx)?;
        x.reduce_mean(1)?.add(&pooled)
    }
}

impl Layer for OfTokens<Gpt2> {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> wgrad::Result<Tensor> {
        self.model.call(&x.cast(DType::I32)?, cx)
    }
}

impl Layer for OfTokens<Llama> {
    fn call(&self, x: &Tensor, cx: Context<'_>) -> wgrad::Result<Tensor> {
        self.model.call(&x.cast(DType::I32)?, cx)
    }
}

#[test]
#[ignore = "takes a Python with transformers, in WGRAD_TORCH_PYTHON: `cargo xtask judge`"]
fn pytorch_transformers_are_those_of_hugging_face() {
    let own = Folder::new("judge-transformers");
    let folder = own.path("");
    make("WGRAD_TORCH_PYTHON", "torch", &folder, &["bert", "gpt2", "llama", "vit", "vit_b_16"]);
    let files =
        |case: &str| ["", ".grads"].map(|end| folder.join(format!("{case}{end}.safetensors")));
    let [model, gradients] = files("bert").map(|path| {
        let config = BertConfig::new().vocab_size(50).hidden_size(32).num_hidden_layers(2);
        let config = config.num_attention_heads(4).intermediate_size(48).dropout(0.0);
        let model = Bert::with_weights(config.max_position_embeddings(16), path).unwrap();
        OfTokens { model }
    });
    compare(&folder, "bert", &model, &gradients);
    let [model, gradients] = files("gpt2").map(|path| {
        let config = Gpt2Config::new().vocab_size(50).n_embd(32).n_layer(2).n_head(4);
        let config = config.n_positions(16).dropout(0.0);
        OfTokens { model: Gpt2::with_weights(config, path).unwrap() }
    });
    compare(&folder, "gpt2", &model, &gradients);
    let [model, gradients] = files("llama").map(|path| {
        let config = LlamaConfig::new().vocab_size(50).hidden_size(32).num_hidden_layers(2);
        let config = config.num_attention_heads(4).num_key_value_heads(2).intermediate_size(48);
        let config = config.max_position_embeddings(16);
        OfTokens { model: Llama::with_weights(config, path).unwrap() }
    });
    compare(&folder, "llama", &model, &gradients);
    for (case, epsilon) in [("vit", 1e-12), ("vit_b_16", 1e-6)] {
        let [model, gradients] = files(case).map(|path| {
            let config = VitConfig::new().image_size(64).hidden_size(32).num_hidden_layers(2);
            let config = config.num_attention_heads(4).intermediate_size(48).classes(10);
            let config = config.classifier_activation(Activation::Linear);
            Vit::with_weights(config.layer_norm_eps(epsilon), path).unwrap()
        });
        compare(&folder, case, &model, &gradients);
    }
}
