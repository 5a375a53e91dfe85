//! Checkpoints: what is saved and restored, also beside TensorFlow.

#![allow(clippy::unwrap_used)]

#[path = "support/folder.rs"]
mod folder;

use std::sync::atomic::{AtomicU64, Ordering};

use folder::Folder;
use wgrad::keras::layers::Dense;
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Layer, Sequential, TRAINING};
use wgrad::train::Checkpoint;
use wgrad::{GradientTape, Tensor, Trackable};

/// TensorFlow's own checkpoint of a Keras model and its Adam after three steps.
const KERAS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/checkpoint/keras/ckpt-1");

fn program() -> (Sequential, Adam, AtomicU64) {
    let relu = Activation::Relu;
    let model = Sequential::new().add(Dense::new(4).activation(relu)).add(Dense::new(2));
    (model, Adam::new(0.01), AtomicU64::new(0))
}

fn checkpoint<'a>((model, adam, step): &'a (Sequential, Adam, AtomicU64)) -> Checkpoint<'a> {
    Checkpoint::new().with("model", model).with("optimizer", adam).with("step", step)
}

fn step((model, adam, step): &(Sequential, Adam, AtomicU64)) -> f32 {
    let tape = GradientTape::new();
    let x = (0..24).map(|i| (i as f32).sin()).collect::<Vec<_>>();
    let x = Tensor::from_slice(&x, [4, 6]).unwrap();
    let loss = model.call(&x, TRAINING).unwrap().square().unwrap().reduce_mean(()).unwrap();
    adam.minimize(&loss, tape, model).unwrap();
    step.fetch_add(1, Ordering::Relaxed);
    loss.item().unwrap()
}

#[test]
fn a_run_goes_on_from_its_files() {
    let folder = Folder::new("checkpoint-goes-on");
    let run = program();
    step(&run);
    step(&run);
    let path = checkpoint(&run).save(folder.path("ckpt")).unwrap();
    assert_eq!(path, folder.path("ckpt-1"));
    let whole: Vec<f32> = (0..3).map(|_| step(&run)).collect();

    let resumed = program();
    let its = checkpoint(&resumed);
    its.restore(&path).unwrap().assert_consumed().unwrap();
    assert_eq!(its.save_counter(), 1);
    assert_eq!((resumed.2.load(Ordering::Relaxed), resumed.1.iterations()), (2, 2));
    assert_eq!((0..3).map(|_| step(&resumed)).collect::<Vec<f32>>(), whole);
    assert_eq!(its.save(folder.path("ckpt")).unwrap(), folder.path("ckpt-2"));
}

#[test]
fn a_checkpoint_of_keras_is_restored_before_the_first_call() {
    let run = program();
    let status = checkpoint(&run).restore(KERAS).unwrap();
    assert_eq!((status.unused(), status.missing()), (&[][..], &[][..]));
    status.assert_consumed().unwrap();
    run.0.build([1, 6]).unwrap();
    run.1.build(&run.0).unwrap();
    let arrays = std::fs::read(format!("{KERAS}.safetensors")).unwrap();
    let arrays = safetensors::SafeTensors::deserialize(&arrays).unwrap();
    let array = |name: &str| {
        let name = format!("{name}/.ATTRIBUTES/VARIABLE_VALUE");
        let bytes = arrays.tensor(&name).unwrap().data().to_vec();
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect::<Vec<_>>()
    };
    let mut wanted: Vec<Vec<f32>> =
        (0..4).map(|i| array(&format!("optimizer/_trainable_variables/{i}"))).collect();
    wanted.extend((2..10).map(|i| array(&format!("optimizer/_variables/{i}"))));
    let found = (&run.0, &run.1).variables();
    let found: Vec<Vec<f32>> = found.iter().map(|v| v.read().to_vec().unwrap()).collect();
    assert_eq!(found, wanted);
}
