//! Training steps as the planner runs them: the number of kernels, no growth over many steps, the same bits in every run, and
//! the same numbers as with single ops.

#![allow(clippy::unwrap_used)]

use crate::support::child;
use crate::support::compare::noise;

use ndarray::{ArrayD, IxDyn};
use wgrad as tf;
use wgrad::Trackable;
use wgrad::keras::layers::{Conv2D, Dense, Dropout, Flatten, Layer, MaxPooling2D};
use wgrad::keras::optimizers::{Adam, Optimizer, Sgd};
use wgrad::keras::{Activation, Sequential, TRAINING};
use wgrad::{Device, DeviceStats, Tensor};

/// The MNIST example's network without convolutions.
fn mlp() -> Sequential {
    Sequential::new()
        .add(Flatten::new())
        .add(Dense::new(100).activation(Activation::Relu))
        .add(Dense::new(10))
}

/// The example's network with convolutions; `width` is 1 for its original size.
fn cnn(width: usize) -> Sequential {
    let convolution = |filters: usize| {
        Conv2D::new(filters / width, [5, 5]).padding(tf::Padding::Same).activation(Activation::Relu)
    };
    Sequential::new()
        .add(convolution(32))
        .add(MaxPooling2D::new([2, 2]))
        .add(convolution(64))
        .add(MaxPooling2D::new([2, 2]))
        .add(Flatten::new())
        .add(Dense::new(1024 / width).activation(Activation::Relu))
        .add(Dropout::new(0.4).seed(7))
        .add(Dense::new(10))
}

/// Sets weights that do not depend on other tests, which also draw from the global generator.
fn set_weights(model: &Sequential, input: &[usize]) -> tf::Result<()> {
    model.build(input)?;
    let mut weights = model.get_weights()?;
    for (k, weight) in weights.iter_mut().enumerate() {
        let shape = weight.shape().to_vec();
        let fan: usize = shape[..shape.len() - 1].iter().product();
        let size = if shape.len() == 1 { 0.01 } else { (3.0 / fan as f32).sqrt() };
        let values = noise(k as u64 + 1, weight.len()).into_iter().map(|v| size * v).collect();
        *weight = ArrayD::from_shape_vec(IxDyn(&shape), values).unwrap();
    }
    model.set_weights(&weights)
}

/// Batch number `step`: images `[n,size,size,1]` and labels.
fn batch(step: u64, n: usize, size: usize) -> tf::Result<(Tensor, Tensor)> {
    let images = noise(1000 + step, n * size * size);
    let labels: Vec<i32> = (0..n).map(|i| ((step as usize * 3 + i * 7) % 10) as i32).collect();
    Ok((Tensor::from_slice(&images, [n, size, size, 1])?, Tensor::from_slice(&labels, [n])?))
}

/// One step, as in the MNIST example.
fn train_step(
    model: &Sequential,
    optimizer: &dyn Optimizer,
    (images, labels): &(Tensor, Tensor),
) -> tf::Result<Tensor> {
    let tape = tf::GradientTape::new();
    let logits = model.call(images, TRAINING)?;
    let loss = tf::sparse_softmax_cross_entropy_with_logits(labels, &logits)?.reduce_mean(())?;
    let variables = model.trainable_variables();
    let gradients = tape.gradient(&loss, &variables)?;
    optimizer.apply_gradients(&gradients, &variables)?;
    Ok(loss)
}

/// Kernels and submissions of one step after warm-up; every step must have the same numbers.
fn per_step(model: &Sequential, n: usize) -> tf::Result<(u64, u64)> {
    let device = Device::new()?;
    device.scope(|| {
        set_weights(model, &[n, 28, 28, 1])?;
        let optimizer = Adam::new(1e-3);
        let mut losses = Vec::new();
        let mut counts: Vec<(u64, u64)> = Vec::new();
        for step in 0..5 {
            let before = device.stats();
            losses.push(train_step(model, &optimizer, &batch(step, n, 28)?)?);
            let after = device.stats();
            counts.push((after.kernels - before.kernels, after.submits - before.submits));
            if step >= 2 {
                assert_eq!(after.plan_misses, before.plan_misses, "step {step} is planned");
            }
        }
        for loss in &losses {
            let loss = loss.item::<f32>()?;
            assert!((0.1..10.0).contains(&loss), "the loss is {loss}");
        }
        assert!(counts[2..].iter().all(|c| *c == counts[2]), "{counts:?}");
        Ok(counts[2])
    })
}

#[test]
fn a_step_of_the_mlp_takes_few_kernels() -> tf::Result<()> {
    let (kernels, submits) = per_step(&mlp(), 50)?;
    println!("a step of the MLP: {kernels} kernels, {submits} submissions");
    assert!(kernels <= 14, "{kernels} kernels");
    assert_eq!(submits, 1);
    Ok(())
}

#[test]
fn a_step_of_the_cnn_takes_few_kernels() -> tf::Result<()> {
    let (kernels, submits) = per_step(&cnn(1), 4)?;
    println!("a step of the CNN: {kernels} kernels, {submits} submissions");
    assert!(kernels <= 34, "{kernels} kernels");
    assert_eq!(submits, 1);
    Ok(())
}

/// The counters that must not change between two steps of a loop after warm-up.
fn settled(stats: DeviceStats) -> [u64; 7] {
    [
        stats.pipelines,
        stats.plan_misses,
        stats.bind_groups,
        stats.buffers,
        stats.live_bytes,
        stats.pooled_bytes,
        stats.peak_bytes,
    ]
}

#[test]
fn nothing_grows_in_ten_thousand_steps() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let model = Sequential::new().add(Dense::new(4).activation(Activation::Tanh));
        set_weights(&model, &[8, 3])?;
        let optimizer = Sgd::new(0.05).momentum(0.5);
        let target = Tensor::from_slice(&noise(9, 32), [8, 4])?;
        let mut loss = None;
        let mut step = |i: u64| -> tf::Result<()> {
            let x = Tensor::from_slice(&noise(i % 5, 24), [8, 3])?;
            let tape = tf::GradientTape::new();
            let y = model.call(&x, TRAINING)?;
            let error = y.squared_difference(&target)?.reduce_mean(())?;
            optimizer.minimize(&error, tape, &model.trainable_variables())?;
            loss = Some(error);
            Ok(())
        };
        // A plan for few runs is replaced by one for many after a thousand runs.
        for i in 0..1200 {
            step(i)?;
        }
        let before = device.stats();
        for i in 1200..11_200 {
            step(i)?;
            if i % 1000 == 0 {
                assert_eq!(settled(device.stats()), settled(before), "after {i} steps");
            }
        }
        device.synchronize()?;
        let after = device.stats();
        assert_eq!(settled(after), settled(before));
        assert_eq!(after.flushes - before.flushes, 10_000);
        assert_eq!(after.submits - before.submits, 10_000);
        let loss = loss.unwrap().item::<f32>()?;
        assert!((0.0..1.0).contains(&loss), "the loss is {loss}");
        Ok(())
    })
}

/// A run of some steps: losses, and then all weights.
fn trajectory(
    model: &Sequential,
    optimizer: &dyn Optimizer,
    steps: u64,
) -> tf::Result<Vec<Vec<f32>>> {
    set_weights(model, &[8, 12, 12, 1])?;
    let mut losses = Vec::new();
    for step in 0..steps {
        losses.push(train_step(model, optimizer, &batch(step % 4, 8, 12)?)?);
    }
    let losses: tf::Result<Vec<f32>> = losses.iter().map(|loss| loss.item()).collect();
    let mut values = vec![losses?];
    for weight in model.get_weights()? {
        values.push(weight.iter().copied().collect());
    }
    Ok(values)
}

/// A name, losses and weights.
type Run = (&'static str, Vec<Vec<f32>>);

/// The runs to compare: a network of each kind with an optimizer of each kind.
fn runs() -> tf::Result<Vec<Run>> {
    Device::new()?.scope(|| {
        Ok(vec![
            ("mlp", trajectory(&mlp(), &Adam::new(1e-3), 20)?),
            ("cnn", trajectory(&cnn(8), &Sgd::new(0.05).momentum(0.9), 20)?),
        ])
    })
}

#[test]
fn two_runs_give_the_same_bits() -> tf::Result<()> {
    let bits = |runs: Vec<Run>| -> Vec<Vec<u32>> {
        let all = runs.into_iter().flat_map(|(_, values)| values);
        all.map(|values| values.into_iter().map(f32::to_bits).collect()).collect()
    };
    let (first, second) = (bits(runs()?), bits(runs()?));
    // Two losses, and the weights of two and four layers.
    assert_eq!(first.len(), 2 + 4 + 8);
    assert!(first == second);
    Ok(())
}

#[test]
fn single_ops_give_the_same_losses() -> tf::Result<()> {
    let output = child::command(module_path!(), "losses_of_single_ops")
        .env("WGRAD_EAGER_SYNC", "1")
        .env("WGRAD_FUSION", "0")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    for (name, values) in runs()? {
        let head = format!("losses of {name}: ");
        let line =
            text.lines().find_map(|line| line.split_once(&head)).expect("they are printed").1;
        let apart: Vec<f32> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        assert_eq!(apart.len(), 20);
        assert!(values[0][0] > values[0][16], "{name} learns nothing: {:?}", values[0]);
        for (step, (fused, apart)) in values[0].iter().zip(&apart).enumerate() {
            let far = (fused - apart).abs();
            assert!(far <= 1e-5 * apart.abs().max(1.0), "{name}, step {step}: {fused} and {apart}");
        }
    }
    Ok(())
}

#[test]
#[ignore = "run by single_ops_give_the_same_losses"]
fn losses_of_single_ops() {
    for (name, values) in runs().unwrap() {
        let losses: Vec<String> = values[0].iter().map(f32::to_string).collect();
        println!("\nlosses of {name}: {}", losses.join(" "));
    }
}
