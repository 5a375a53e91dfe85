//! Models with weights written by PyTorch compute PyTorch's outputs. `tests/data/pytorch/make.py` made the files.

#![cfg(feature = "safetensors")]
#![allow(clippy::unwrap_used)]

use crate::support::compare::close;
use crate::support::root;

use wgrad::keras::layers::{
    BatchNormalization, Bidirectional, Conv1D, Conv1DTranspose, Conv2D, Dense, DepthwiseConv2D,
    Dropout, Embedding, Flatten, Gru, LayerNormalization, Lstm, MaxPooling2D, MultiHeadAttention,
    Prelu, Relu, SimpleRnn,
};
use wgrad::keras::{Activation, INFERENCE, Layer, Sequential};
use wgrad::weights::{LoadOptions, SafetensorsFile, SaveOptions};
use wgrad::{DType, Padding, Tensor, Trackable};

fn path(name: &str) -> std::path::PathBuf {
    root::root().join(format!("tests/data/pytorch/{name}.safetensors"))
}

/// The input and the output of a model.
fn io(name: &str) -> (Tensor, Tensor) {
    let file = SafetensorsFile::open(path(&format!("{name}.io"))).unwrap();
    (file.tensor("x0").unwrap(), file.tensor("y").unwrap())
}

/// Loads, compares with PyTorch's output, and checks that the weights written for PyTorch equal PyTorch's own.
#[track_caller]
fn there_and_back(name: &str, model: &Sequential, options: LoadOptions, x: &Tensor, y: &Tensor) {
    model.load_weights_with(path(name), options).unwrap();
    close(&model.call(x, INFERENCE).unwrap(), y);
}

fn mlp() -> Sequential {
    Sequential::new()
        .add(Dense::new(8).activation(Activation::Relu))
        .add(Dense::new(5).activation(Activation::Tanh))
        .add(Dense::new(3))
}

#[test]
fn a_line_of_modules_is_read_by_its_numbers() {
    let (x, y) = io("mlp");
    // Before and after the first input.
    there_and_back("mlp", &mlp(), LoadOptions::new().from_pytorch(), &x, &y);
    let built = mlp();
    built.build([3, 4]).unwrap();
    there_and_back("mlp", &built, LoadOptions::new().from_pytorch(), &x, &y);
    // With patterns only, as for any library.
    let patterns = LoadOptions::new()
        .rename("0.{p}", "dense/{p}")
        .rename("2.{p}", "dense_1/{p}")
        .rename("4.{p}", "dense_2/{p}");
    let error = mlp().load_weights_with(path("mlp"), patterns).unwrap_err().to_string();
    assert!(error.contains("'dense/weight'"), "{error}");
    let patterns = LoadOptions::new()
        .rename("0.weight", "dense/kernel")
        .rename("2.weight", "dense_1/kernel")
        .rename("4.weight", "dense_2/kernel")
        .rename("0.bias", "dense/bias")
        .rename("2.bias", "dense_1/bias")
        .rename("4.bias", "dense_2/bias")
        .transpose("{layer}/kernel", &[1, 0]);
    there_and_back("mlp", &mlp(), patterns, &x, &y);
}

/// The contents of a safetensors file of tensors without elements.
fn empty_tensors(names: impl Iterator<Item = String>) -> Vec<u8> {
    let tensor = |name: String| {
        format!("{name:?}:{{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}")
    };
    let header = format!("{{{}}}", names.map(tensor).collect::<Vec<_>>().join(","));
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat()
}

/// With both numbers and names the order is unknown: no layer is found, and nothing panics.
#[test]
fn modules_of_numbers_and_names_are_no_line() {
    for seed in 0..20 {
        let mut random = fastrand::Rng::with_seed(seed);
        let names: std::collections::BTreeSet<String> = (0..200)
            .map(|_| match random.u8(0..5) {
                0 => format!("n{}.weight", random.u32(0..1000)),
                1 => format!("{}.n{}.weight", random.u32(0..10), random.u32(0..1000)),
                _ => format!("{}.weight", random.u32(0..1000)),
            })
            .collect();
        let bytes = empty_tensors(names.into_iter());
        let error = mlp().load_safetensors_with(&bytes, LoadOptions::new().from_pytorch());
        let error = error.unwrap_err().to_string();
        assert!(
            error
                .starts_with("load: the layer 'dense' (Dense: kernel, bias) takes its kernel from"),
            "{error}"
        );
    }
    // A hundred thousand modules, and three layers.
    let names = (0..100_000).map(|number| format!("{number}.weight"));
    let error =
        mlp().load_safetensors_with(&empty_tensors(names), LoadOptions::new().from_pytorch());
    assert_eq!(
        error.unwrap_err().to_string(),
        "load: the weights hold 100000 modules in a line ('0', '1', '2', '3', '4', '5' and 99994 more), and the model has 3 \
         layers with weights ('dense', 'dense_1', 'dense_2'). Load the weights of a model with the same layers, or give the \
         modules the layers' names by LoadOptions::rename."
    );
}

#[test]
fn bfloat16_is_read_exactly() {
    let (x, y) = io("bfloat16");
    let model =
        Sequential::new().add(Dense::new(8).activation(Activation::Relu)).add(Dense::new(3));
    there_and_back("bfloat16", &model, LoadOptions::new().from_pytorch(), &x, &y);
}

fn cnn() -> Sequential {
    let same = || Padding::Same;
    Sequential::new()
        .add(Conv2D::new(4, [3, 3]).padding(same()))
        .add(BatchNormalization::new())
        .add(Relu::new())
        .add(MaxPooling2D::new([2, 2]))
        .add(DepthwiseConv2D::new([3, 3]).depth_multiplier(2).padding(same()))
        .add(Prelu::new().shared_axes([1, 2]))
        .add(Conv2D::new(3, [1, 1]))
        .add(Flatten::new())
        .add(Dropout::new(0.5))
        .add(Dense::new(5))
}

#[test]
fn convolutions_flattened_channels_first_are_put_in_order() {
    let (x, y) = io("cnn");
    let x = x.transpose([0, 2, 3, 1]).unwrap();
    let model = cnn();
    // The flattened shape is not known yet.
    let error = model.load_weights_with(path("cnn"), LoadOptions::new().from_pytorch());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("use build"), "{error}");
    model.build([2, 6, 8, 2]).unwrap();
    there_and_back("cnn", &model, LoadOptions::new().from_pytorch(), &x, &y);

    let theirs = SafetensorsFile::open(path("cnn")).unwrap();
    let save = model.to_safetensors_with_async(SaveOptions::new().to_pytorch());
    let ours = SafetensorsFile::from_bytes(pollster::block_on(save).unwrap()).unwrap();
    let modules =
        ["conv2d", "batch_normalization", "depthwise_conv2d", "p_re_lu", "conv2d_1", "dense"];
    for (module, number) in modules.into_iter().zip([0, 1, 4, 5, 6, 9]) {
        for parameter in ["weight", "bias", "running_mean", "running_var"] {
            let their_name = format!("{number}.{parameter}");
            if theirs.info(&their_name).is_none() {
                continue;
            }
            let (ours, theirs) = (
                ours.array(&format!("{module}.{parameter}")).unwrap(),
                theirs.array(&their_name).unwrap(),
            );
            assert_eq!(ours.array, theirs.array, "{their_name}");
        }
    }
}

#[test]
fn recurrent_layers_get_their_gates_and_biases() {
    let (x, y) = io("sequence");
    assert_eq!(x.dtype(), DType::I32);
    let model = Sequential::new()
        .add_named("embed", Embedding::new(11, 6))
        .add_named("lstm", Lstm::new(4).return_sequences(true))
        .add_named("gru", Bidirectional::new(Gru::new(3).return_sequences(true)))
        .add_named("norm", LayerNormalization::new().epsilon(1e-5))
        .add_named("rnn", SimpleRnn::new(5))
        .add_named("head", Dense::new(2));
    model.build([2, 7]).unwrap();
    there_and_back("sequence", &model, LoadOptions::new().from_pytorch(), &x, &y);
    // Weights written for PyTorch have its names, and can be read back.
    let save = model.to_safetensors_with_async(SaveOptions::new().to_pytorch());
    let bytes = pollster::block_on(save).unwrap();
    let (ours, theirs) = (
        SafetensorsFile::from_bytes(bytes.clone()).unwrap(),
        SafetensorsFile::open(path("sequence")).unwrap(),
    );
    assert!(ours.names().eq(theirs.names()));
    for name in ours.names() {
        assert_eq!(ours.info(name).unwrap().shape, theirs.info(name).unwrap().shape, "{name}");
    }
    let before = model.get_weights().unwrap();
    model.load_safetensors_with(&bytes, LoadOptions::new().from_pytorch()).unwrap();
    assert_eq!(model.get_weights().unwrap(), before);
}

#[test]
fn attention_is_taken_apart() {
    #[derive(Trackable)]
    struct Model {
        attn: MultiHeadAttention,
    }
    let (x, y) = io("attention");
    let model = Model { attn: MultiHeadAttention::new(2, 4) };
    let options = || LoadOptions::new().from_pytorch();
    let error = model.load_weights_with(path("attention"), options()).unwrap_err().to_string();
    assert!(error.contains("Call the model once"), "{error}");
    let _ = Layer::<Tensor>::call(&model.attn, &x, INFERENCE).unwrap();
    model.load_weights_with(path("attention"), options()).unwrap();
    close(&Layer::<Tensor>::call(&model.attn, &x, INFERENCE).unwrap(), &y);
}

#[test]
fn convolutions_of_lines_and_their_reverse() {
    let (x, y) = io("upwards");
    let model = Sequential::new()
        .add_named("line", Conv1D::new(4, 3).padding(Padding::Same).activation(Activation::Relu))
        .add_named("up", Conv1DTranspose::new(2, 2).strides(2));
    let (x, y) = (x.transpose([0, 2, 1]).unwrap(), y.transpose([0, 2, 1]).unwrap());
    there_and_back("upwards", &model, LoadOptions::new().from_pytorch(), &x, &y);
}

/// Types of a program that bear the names of Keras's layers.
mod own {
    use wgrad::{Class, Layout, PyTorchParameter, Trackable, Variable};

    #[derive(Trackable)]
    pub struct Dense {
        pub kernel: Variable,
        pub bias: Variable,
    }

    #[derive(Trackable)]
    #[allow(clippy::upper_case_acronyms)] // Keras's name.
    pub struct LSTM {
        pub lstm_cell: Dense,
    }

    static LINEAR: Class = Class::new("own>Linear").pytorch(&[PyTorchParameter::new(
        "kernel",
        &["weight"],
        Layout::Permuted(&[1, 0]),
    )]);

    #[derive(Trackable)]
    #[track(class = &LINEAR, kind = "Linear")]
    pub struct Renamed {
        pub kernel: Variable,
    }
}

fn matrix() -> wgrad::Variable {
    let numbers: Vec<f32> = (0..6u8).map(f32::from).collect();
    wgrad::Variable::new(Tensor::from_slice(&numbers, [2, 3]).unwrap())
}

#[test]
fn a_type_has_the_names_of_its_class_and_not_of_its_rust_name() {
    let dense =
        || own::Dense { kernel: matrix(), bias: wgrad::Variable::new(Tensor::ones([3]).unwrap()) };
    let model = (dense(), own::LSTM { lstm_cell: dense() }, own::Renamed { kernel: matrix() });
    assert!(model.0.class().is_none() && model.0.kind() == "Dense");
    assert_eq!((model.2.class().unwrap().name(), model.2.kind()), ("own>Linear", "Linear"));

    let save = model.to_safetensors_with_async(SaveOptions::new().to_pytorch());
    let bytes = pollster::block_on(save).unwrap();
    let file = SafetensorsFile::from_bytes(bytes.clone()).unwrap();
    let names: Vec<&str> = file.names().collect();
    assert_eq!(
        names,
        ["0.bias", "0.kernel", "1.lstm_cell.bias", "1.lstm_cell.kernel", "2.weight"],
        "only the class that declares a name has another one"
    );
    let values = |name: &str| file.tensor(name).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(file.info("0.kernel").unwrap().shape, [2, 3]);
    assert_eq!(values("0.kernel"), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!(file.info("2.weight").unwrap().shape, [3, 2]);
    assert_eq!(values("2.weight"), [0.0, 3.0, 1.0, 4.0, 2.0, 5.0]);

    let before = model.get_weights().unwrap();
    for variable in model.variables() {
        variable.assign(Tensor::zeros(variable.shape().to_vec()).unwrap()).unwrap();
    }
    model.load_safetensors_with(&bytes, LoadOptions::new().from_pytorch()).unwrap();
    assert_eq!(model.get_weights().unwrap(), before);
}
