//! Keras loads what is written here as `.keras` and `.weights.h5`, and computes the same: `cargo xtask judge`.

#![allow(clippy::unwrap_used)]

#[path = "support/folder.rs"]
mod folder;

use std::process::Command;

use folder::Folder;
use wgrad::data::npy::{self, NpyArray};
use wgrad::keras::layers::*;
use wgrad::keras::{
    Activation, Functional, INFERENCE, Input, Layer, LayerExt, Sequential, Symbols, saving,
};
use wgrad::{DType, Padding, Tensor, Trackable};

/// Numbers that differ from each other; moving variances stay positive.
fn shaken(model: &impl Trackable) {
    for (at, (name, variable)) in model.named_variables().into_iter().enumerate() {
        let random = wgrad::random::Generator::from_seed(16 + at as u64);
        let value = random.normal(variable.shape()).unwrap().multiply(0.5).unwrap();
        let value =
            if name.contains("variance") { value.abs().unwrap().add(0.5).unwrap() } else { value };
        variable.assign(&value).unwrap();
    }
}

fn write(folder: &Folder, name: &str, inputs: &[Tensor], y: &Tensor, keras: Vec<u8>) {
    folder.write(&format!("{name}.keras"), &keras);
    let array = |x: &Tensor| pollster::block_on(NpyArray::from_tensor_async(x)).unwrap();
    let mut arrays: Vec<(String, NpyArray)> =
        inputs.iter().enumerate().map(|(at, x)| (format!("x{at}"), array(x))).collect();
    arrays.push(("y".to_string(), array(y)));
    npy::savez(folder.path(&format!("{name}.npz")), arrays).unwrap();
}

fn sequential(folder: &Folder, name: &str, model: &Sequential, x: &Tensor) {
    model.build(x.shape()).unwrap();
    shaken(model);
    let y = model.call(x, INFERENCE).unwrap();
    write(
        folder,
        name,
        std::slice::from_ref(x),
        &y,
        pollster::block_on(model.to_keras_async()).unwrap(),
    );
    saving::save_weights(model, folder.path(&format!("{name}.weights.h5"))).unwrap();
}

fn functional(
    folder: &Folder,
    name: &str,
    inputs: impl Symbols,
    outputs: impl Symbols,
    xs: &[Tensor],
) {
    let model = Functional::new(inputs, outputs).unwrap();
    shaken(&model);
    let y = Layer::<[Tensor], Vec<Tensor>>::call(&model, xs, INFERENCE).unwrap().remove(0);
    write(folder, name, xs, &y, pollster::block_on(model.to_keras_async()).unwrap());
    saving::save_weights(&model, folder.path(&format!("{name}.weights.h5"))).unwrap();
}

#[test]
#[ignore = "takes a Python with TensorFlow, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn keras_loads_what_is_written() {
    let folder = Folder::new("judge-keras-files");
    let normal = |shape: &[usize]| wgrad::random::Generator::from_seed(1).normal(shape).unwrap();
    let cnn = Sequential::new()
        .add(Conv2D::new(3, [3, 3]).activation(Activation::Relu).padding(Padding::Same))
        .add(BatchNormalization::new())
        .add(MaxPooling2D::new([2, 2]))
        .add(Dropout::new(0.25))
        .add(SeparableConv2D::new(2, [2, 2]))
        .add(DepthwiseConv2D::new([2, 2]))
        .add(Conv2DTranspose::new(2, [2, 2]))
        .add(Flatten::new())
        .add(Dense::new(4));
    sequential(&folder, "cnn", &cnn, &normal(&[2, 8, 8, 1]));
    let sequence = Sequential::new()
        .add(LSTM::new(4).return_sequences(true))
        .add(TimeDistributed::new(Dense::new(3)))
        .add(Bidirectional::new(GRU::new(3).return_sequences(true)))
        .add(SimpleRNN::new(3))
        .add(PReLU::new())
        .add(GroupNormalization::new().groups(3))
        .add(LayerNormalization::new())
        .add(Dense::new(2).activation(Activation::Softmax));
    sequential(&folder, "sequence", &sequence, &normal(&[2, 6, 5]));
    let inner =
        Sequential::new().add(Dense::new(3).activation(Activation::Tanh)).add(Dense::new(3));
    let nested = Sequential::new().add(Dense::new(4)).add(inner).add(Dense::new(2));
    sequential(&folder, "nested", &nested, &normal(&[2, 4]));
    // More layers than a node of a B-tree has room for.
    let mut deep = Sequential::new();
    for _ in 0..300 {
        deep = deep.add(Dense::new(2).activation(Activation::Tanh));
    }
    sequential(&folder, "deep", &deep, &normal(&[2, 2]));

    let words = Input::new([6]).dtype(DType::I32);
    let y = Embedding::new(20, 5).on(&words).unwrap();
    let y = Dense::new(3).on(&GlobalAveragePooling1D::new().on(&y).unwrap()).unwrap();
    let x = wgrad::constant([[1, 2, 3, 4, 5, 19], [0, 0, 7, 8, 9, 10]]).unwrap();
    functional(&folder, "words", &words, &y, &[x]);
    let a = Input::new([4]).name("a");
    let b = Input::new([3]).name("b");
    let z = Concatenate::new()
        .on_all(&[Dense::new(5).on(&a).unwrap(), Dense::new(5).on(&b).unwrap()])
        .unwrap();
    let y = Dense::new(2).on(&z).unwrap();
    functional(
        &folder,
        "two_inputs",
        &[(*a).clone(), (*b).clone()],
        &y,
        &[normal(&[2, 4]), normal(&[2, 3])],
    );

    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("WGRAD_JUDGE_PYTHON names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/keras_files/judge.py");
    let output = Command::new(python).arg(script).arg(folder.path("")).output().unwrap();
    let (said, told) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{told}");
    assert!(said.contains("6 models agree"), "{said}");
}
