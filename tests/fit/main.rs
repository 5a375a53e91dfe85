//! `compile`, `fit`, `evaluate` and `predict`: results compared with a manual loop and with Keras, kinds of data, backups, the
//! cost of a step.
#![allow(clippy::unwrap_used)]

#[path = "../support/mod.rs"]
mod support;

mod backup;
mod by_hand;
mod cost;
mod datasets;
mod ends;
mod epochs;
mod functions;
mod inputs;
mod keras;
mod labels;
mod losses;
mod outputs;
mod shuffle;
mod steps;

use ndarray::{Array1, Array2};
use support::compare::noise;
use wgrad as tf;
use wgrad::keras::layers::Dense;
use wgrad::keras::losses::SparseCategoricalCrossentropy;
use wgrad::keras::metrics::SparseCategoricalAccuracy;
use wgrad::keras::{Activation, History, Sequential};

fn near(got: f64, want: f64, what: &str) {
    assert!((got - want).abs() <= 1e-5 * want.abs().max(1e-3), "{what}: {got} is not {want}");
}

fn all_near(got: &[f64], want: &[f64], what: &str) {
    assert_eq!(got.len(), want.len(), "{what}: {got:?} and {want:?}");
    got.iter().zip(want).for_each(|(got, want)| near(*got, *want, what));
}

/// Tests draw from the single global generator, so only one that does runs at a time.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn data(rows: usize) -> (Array2<f32>, Array1<i32>) {
    let x = Array2::from_shape_vec((rows, 6), noise(1, rows * 6)).unwrap();
    let y =
        x.rows().into_iter().map(|row| i32::from(row[0] + row[1] > 0.0) + i32::from(row[2] > 0.5));
    let y = y.collect();
    (x, y)
}

/// A network with the same weights each time.
fn network() -> Sequential {
    tf::random::set_seed(3);
    Sequential::new().add(Dense::new(8).activation(Activation::Tanh)).add(Dense::new(3))
}

fn loss() -> SparseCategoricalCrossentropy {
    SparseCategoricalCrossentropy::new().from_logits(true)
}

fn accuracy() -> SparseCategoricalAccuracy {
    SparseCategoricalAccuracy::new("accuracy")
}

fn series(history: &History, name: &str) -> Vec<f64> {
    history.get(name).unwrap_or_else(|| panic!("no {name} in {history:?}")).to_vec()
}
