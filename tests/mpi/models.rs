//! What jobs and single processes train, so that their losses can be compared.

use ndarray::{Array3, ArrayD, Axis, Ix4};
use tf::data::Dataset;
use tf::distribute::{AutoShardPolicy, Strategy};
use tf::keras::layers::{BatchNormalization, Conv2D, Dense, Dropout, Flatten, MaxPooling2D};
use tf::keras::optimizers::{Adam, Optimizer};
use tf::keras::{
    Activation, CompileOptions, EvaluateOptions, FitOptions, Layer, Model, PredictOptions,
    Sequential, TRAINING,
};
use tf::{Result, Tensor, Trackable};
use wgrad as tf;
use wgrad::data::drawn_digits::draw_digits;
use wgrad::data::mnist::{Mnist, MnistOptions};

pub const BATCH: usize = 32;
/// Not a multiple of the batch size: the last batch of an epoch is smaller.
pub const EXAMPLES: usize = 200;

/// Images and labels: of the real MNIST where it is found, otherwise drawn.
pub fn digits() -> Result<(Tensor, Tensor)> {
    let options = MnistOptions::new().train_count(EXAMPLES).test_count(1);
    Mnist::load(&options)?.train.tensors(&(0..EXAMPLES).collect::<Vec<_>>())
}

pub fn network() -> Sequential {
    Sequential::new()
        .add(Conv2D::new(8, [5, 5]).strides([2, 2]).activation(Activation::Relu))
        .add(MaxPooling2D::new([2, 2]))
        .add(Flatten::new())
        .add(Dense::new(10))
}

/// A network whose replicas have values of their own.
pub fn noisy_network() -> Sequential {
    Sequential::new()
        .add(Flatten::new())
        .add(Dense::new(16).activation(Activation::Relu))
        .add(BatchNormalization::new())
        .add(Dropout::new(0.25))
        .add(Dense::new(10))
}

pub fn loss() -> tf::keras::losses::SparseCategoricalCrossentropy {
    tf::keras::losses::SparseCategoricalCrossentropy::new().from_logits(true)
}

fn in_scope<R>(strategy: Option<&Strategy>, f: impl FnOnce() -> R) -> R {
    match strategy {
        Some(strategy) => strategy.scope(f),
        None => f(),
    }
}

/// Builds a model, with weights that do not depend on random numbers.
fn set_weights(model: &Sequential) -> Result<()> {
    model.call(&Tensor::zeros([1, 28, 28, 1])?, tf::keras::INFERENCE)?;
    for (at, variable) in model.trainable_variables().iter().enumerate() {
        let number = |i: usize| ((i * 7919 + at * 104_729) % 1009) as f32 / 1009.0 - 0.5;
        let values: Vec<f32> =
            (0..variable.shape().iter().product()).map(|i| 0.3 * number(i)).collect();
        variable.assign(Tensor::from_slice(&values, variable.shape())?)?;
    }
    Ok(())
}

/// The losses of 50 steps by hand, each on the whole batch; with a strategy, in its replicas.
pub fn by_hand(strategy: Option<&Strategy>) -> Result<Vec<f32>> {
    tf::random::set_seed(3);
    let (images, labels) = digits()?;
    let made = || (network(), Adam::new(1e-3));
    let (model, adam) = strategy.map_or_else(made, |strategy| strategy.scope(made));
    in_scope(strategy, || set_weights(&model))?;
    let step = |x: &Tensor, y: &Tensor| {
        let tape = tf::GradientTape::new();
        let logits = model.call(x, TRAINING)?;
        let loss = tf::sparse_softmax_cross_entropy_with_logits(y, &logits)?;
        let loss = loss.reduce_sum(())?.divide(BATCH as f32)?;
        adam.minimize(&loss, tape, &model)?;
        Ok(loss)
    };
    let mut losses = Vec::new();
    for at in 0..50 {
        let begin = at * 24 % (EXAMPLES - BATCH);
        let x = images.slice(&[begin, 0, 0, 0], &[BATCH as i64, -1, -1, -1])?;
        let y = labels.slice(&[begin], &[BATCH as i64])?;
        let loss = match strategy {
            None => step(&x, &y)?,
            Some(strategy) => {
                let parts = (strategy.split(&x)?, strategy.split(&y)?);
                let losses =
                    strategy.run(|(x, y): (Tensor, Tensor)| step(&x, &y), (&parts.0, &parts.1))?;
                strategy.reduce(tf::distribute::ReduceOp::Sum, &losses, None)?
            }
        };
        losses.push(loss.item::<f32>()?);
    }
    Ok(losses)
}

/// The history of `fit` with shuffling and a validation, then an evaluation and a sum over predictions.
pub fn by_fit(strategy: Option<&Strategy>, model: fn() -> Sequential) -> Result<Vec<f32>> {
    tf::random::set_seed(4);
    let (images, labels) = digits()?;
    let model = strategy.map_or_else(model, |strategy| strategy.scope(model));
    in_scope(strategy, || set_weights(&model))?;
    let options = CompileOptions::new().metrics(["accuracy"]);
    model.compile(Adam::new(1e-3), loss(), options)?;
    let options = FitOptions::new().batch_size(BATCH).epochs(3).verbose(0).validation_split(0.2);
    let history = model.fit((&images, &labels), options)?;
    let mut numbers = Vec::new();
    for name in ["loss", "accuracy", "val_loss", "val_accuracy"] {
        numbers.extend(history.get(name).unwrap().iter().map(|value| *value as f32));
    }
    let options = EvaluateOptions::new().batch_size(48).verbose(0);
    let logs = model.evaluate((&images, &labels), options)?;
    numbers.extend(logs.iter().map(|(_, value)| value as f32));
    let options = PredictOptions::new().batch_size(48).verbose(0);
    let predicted = model.predict(&images, options)?;
    assert_eq!(predicted.shape(), [EXAMPLES, 10]);
    numbers.extend(predicted.square()?.reduce_mean(0)?.to_vec::<f32>()?);
    Ok(numbers)
}

/// 128 images with their labels.
pub fn images_in_order() -> Result<Dataset<(Array3<f32>, i32)>> {
    let digits = draw_digits(128, 2);
    let (images, labels) = digits.tensors(&(0..128).collect::<Vec<_>>())?;
    let images = images.to_array::<f32>()?.into_dimensionality::<Ix4>().unwrap();
    let labels = labels.to_vec::<i32>()?;
    let image = move |at: usize| (images.index_axis(Axis(0), at).to_owned(), labels[at]);
    Ok(tf::data::range(0..128).map(move |at: i64| Ok(image(at as usize))))
}

/// The losses and accuracies of two epochs with the batches of a dataset.
pub fn fit_in_order(
    strategy: Option<&Strategy>,
    dataset: &Dataset<(ArrayD<f32>, ArrayD<i32>)>,
    policy: AutoShardPolicy,
) -> Result<Vec<f32>> {
    let model = in_scope(strategy, network);
    in_scope(strategy, || set_weights(&model))?;
    let options = CompileOptions::new().metrics(["accuracy"]);
    model.compile(Adam::new(1e-3), loss(), options)?;
    let options = FitOptions::new().epochs(2).verbose(0).auto_shard_policy(policy);
    let history = model.fit(dataset, options)?;
    let values = ["loss", "accuracy"].map(|name| history.get(name).unwrap().to_vec());
    Ok(values.concat().iter().map(|value| *value as f32).collect())
}

/// Compares numbers that were computed in different orders.
pub fn assert_close(found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    for (at, (a, b)) in found.iter().zip(expected).enumerate() {
        let bound = tolerance * b.abs().max(1.0);
        assert!((a - b).abs() <= bound, "number {at}: {a} and {b}; {found:?} and {expected:?}");
    }
}
