//! The results of a run in a browser: the losses here are those of Chromium with the same seed, so that a change on either side
//! is noticed.

use wgrad::Trackable;
use wgrad::data::Dataset;
use wgrad::data::drawn_digits::draw_digits;
use wgrad::keras::layers::{Dense, Flatten, Layer};
use wgrad::keras::losses::{Loss, SparseCategoricalCrossentropy};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Sequential, TRAINING};

use crate::alone;

/// Seed 1, drawn digits in order, batches of 50, Adam at 1e-3: recorded in Chromium on SwiftShader.
const LOSSES: [f32; 20] = [
    2.361_383_2,
    2.283_800_4,
    2.241_062_9,
    2.234_955_8,
    2.124_810_7,
    2.095_656_4,
    2.023_520_2,
    1.948_205,
    1.957_433_3,
    1.834_111_9,
    1.886_162_5,
    1.839_325_9,
    1.837_666_7,
    1.802_877_2,
    1.722_017,
    1.707_066,
    1.631_583_6,
    1.610_928_3,
    1.518_353,
    1.623_908,
];

#[test]
fn the_first_losses_are_the_same() {
    let _alone = alone();
    wgrad::random::set_seed(1);
    let model = Sequential::new()
        .add(Flatten::new())
        .add(Dense::new(100).activation(Activation::Relu))
        .add(Dense::new(10));
    let loss_of = SparseCategoricalCrossentropy::new().from_logits(true);
    let optimizer = Adam::new(1e-3);
    let mut losses = Vec::new();
    let digits = Dataset::from_tensor_slices(draw_digits(1000, 1)).unwrap();
    for batch in &digits.batch(50).to_tensors() {
        let (x, y) = batch.unwrap();
        let x = x.cast(wgrad::DType::F32).unwrap() / 255.0;
        let tape = wgrad::GradientTape::new();
        let loss = loss_of.call(&y, &model.call(&x, TRAINING).unwrap()).unwrap();
        optimizer.minimize(&loss, tape, &model.trainable_variables()).unwrap();
        losses.push(loss);
    }
    assert_eq!(losses.len(), LOSSES.len());
    for (step, (loss, wanted)) in losses.iter().zip(LOSSES).enumerate() {
        let loss = loss.item::<f32>().unwrap();
        // Drivers order sums differently, and training amplifies the differences.
        assert!((loss - wanted).abs() < 1e-3, "step {step}: {loss}, in the browser {wanted}");
    }
}

#[cfg(feature = "safetensors")]
#[test]
fn a_file_that_a_browser_wrote_is_read() {
    let _alone = alone();
    // `web` saved it after setSeed(7), so the numbers are those of the same seed here.
    wgrad::random::set_seed(7);
    let make = || {
        let model = Sequential::new().add(Dense::new(3)).add(Dense::new(2));
        model.build([1, 4]).unwrap();
        model
    };
    let (seeded, loaded) = (make(), make());
    let path = crate::support::root::root().join("tests/data/browser.safetensors");
    assert_ne!(seeded.get_weights().unwrap(), loaded.get_weights().unwrap());
    loaded.load_weights(path).unwrap();
    let pairs = seeded.get_weights().unwrap().into_iter().zip(loaded.get_weights().unwrap());
    for (seeded, loaded) in pairs {
        assert!(seeded.iter().zip(&loaded).all(|(a, b)| (a - b).abs() < 1e-6), "{seeded} {loaded}");
    }
}
