//! Keras's files: HDF5 with weights for layers that have no sizes yet, and `.keras` archives.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wgrad::keras::saving::{LoadModelOptions, load_model_from_bytes, weights_from_h5};
use wgrad::keras::{Sequential, layers::Dense};

fuzz_target!(|bytes: &[u8]| {
    let model = Sequential::new().add(Dense::new(4)).add(Dense::new(2));
    let _ = weights_from_h5(&model, bytes);
    let _ = load_model_from_bytes(bytes, LoadModelOptions::new());
});
