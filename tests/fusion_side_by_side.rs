//! Small work that has nothing to do with each other shares kernels: the step of an optimizer over all parameters above
//! all. Kernels are counted, and the numbers are those of single ops.

#![allow(clippy::unwrap_used)]

use wgrad as tf;
use wgrad::keras::layers::{Dense, Layer};
use wgrad::keras::optimizers::{Adam, Optimizer, Sgd};
use wgrad::keras::{Activation, Sequential};
use wgrad::{Device, PlanReport, Tensor};

/// Numbers in -1 to 1, the same in every run.
fn numbers(seed: u64, n: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0
    };
    (0..n).map(|_| next()).collect()
}

/// As `tf.clip_by_global_norm`.
fn clip_by_global_norm(gradients: &[Option<Tensor>], norm: f32) -> tf::Result<Vec<Option<Tensor>>> {
    let mut squares = Vec::new();
    for gradient in gradients.iter().flatten() {
        squares.push(gradient.square()?.reduce_sum((), false)?);
    }
    let squares: Vec<&Tensor> = squares.iter().collect();
    let global = tf::stack(&squares, 0)?.reduce_sum((), false)?.sqrt()?;
    let scale = tf::constant(norm)?.divide(global.maximum(norm)?)?;
    let scaled = |gradient: &Option<Tensor>| -> tf::Result<Option<Tensor>> {
        gradient.as_ref().map(|gradient| gradient.multiply(&scale)).transpose()
    };
    gradients.iter().map(scaled).collect()
}

/// A network of five layers, which are ten parameters of nine sizes.
fn network() -> tf::Result<Sequential> {
    let mut model = Sequential::new();
    for units in [64, 48, 32, 20] {
        model = model.add(Dense::new(units).activation(Activation::Tanh));
    }
    let model = model.add(Dense::new(10));
    model.build([16, 40])?;
    let mut weights = model.get_weights()?;
    for (k, weight) in weights.iter_mut().enumerate() {
        let values = numbers(k as u64 + 1, weight.len());
        weight.iter_mut().zip(values).for_each(|(w, v)| *w = 0.3 * v);
    }
    model.set_weights(&weights)?;
    Ok(model)
}

/// A step whose gradients are clipped together.
fn step(model: &Sequential, optimizer: &dyn Optimizer, seed: u64) -> tf::Result<Tensor> {
    let x = Tensor::from_slice(&numbers(100 + seed, 16 * 40), [16, 40])?;
    let labels: Vec<i32> = (0..16).map(|i| (i * 7 + seed as i32) % 10).collect();
    let labels = Tensor::from_slice(&labels, [16])?;
    let tape = tf::GradientTape::new();
    let logits = model.call(&x, true)?;
    let loss =
        tf::sparse_softmax_cross_entropy_with_logits(&labels, &logits)?.reduce_mean((), false)?;
    let variables = model.trainable_variables();
    let gradients = clip_by_global_norm(&tape.gradient(&loss, &variables)?, 0.5)?;
    optimizer.apply_gradients(&gradients, &variables)?;
    Ok(loss)
}

/// The plan of a settled step, and all weights after it.
fn trained(optimizer: &dyn Optimizer, fusion: bool) -> tf::Result<(PlanReport, Vec<f32>)> {
    let device = Device::new()?;
    device.set_fusion(fusion);
    device.scope(|| {
        let model = network()?;
        let mut loss = None;
        for seed in 0..4 {
            loss = Some(step(&model, optimizer, seed)?);
        }
        let plan = device.last_plan().unwrap();
        assert!((0.5..5.0).contains(&loss.unwrap().item::<f32>()?));
        let weights = model.get_weights()?;
        Ok((plan, weights.iter().flatten().copied().collect()))
    })
}

/// The plan of Adam's step over ten parameters of ten sizes, whose gradients somebody holds, and the weights after it.
fn held_gradients(fusion: bool) -> tf::Result<(PlanReport, Vec<Vec<f32>>)> {
    let device = Device::new()?;
    device.set_fusion(fusion);
    device.scope(|| {
        let size = |k: usize| 90 * k + 3;
        let (mut variables, mut gradients) = (Vec::new(), Vec::new());
        for k in 0..10 {
            let at = k as u64;
            let value = Tensor::from_slice(&numbers(at, size(k)), [size(k)])?;
            variables.push(tf::Variable::new(&value));
            gradients.push(Some(Tensor::from_slice(&numbers(50 + at, size(k)), [size(k)])?));
        }
        let adam = Adam::new(0.01);
        for _ in 0..3 {
            adam.apply_gradients(&gradients, &variables)?;
        }
        let plan = device.last_plan().unwrap();
        let weights: tf::Result<Vec<Vec<f32>>> =
            variables.iter().map(|variable| variable.read().to_vec()).collect();
        // They are what they were.
        for (at, gradient) in gradients.iter().flatten().enumerate() {
            assert_eq!(gradient.to_vec::<f32>()?, numbers(50 + at as u64, size(at)));
        }
        Ok((plan, weights?))
    })
}

/// Kernels of the steps, and those of the first that update parameters.
fn counts() -> tf::Result<[usize; 5]> {
    let adam = trained(&Adam::new(1e-3), true)?.0;
    let updates = adam.kernels().iter().filter(|kernel| kernel.ops.contains(&"Sqrt")).count();
    let momentum = trained(&Sgd::new(1e-2).momentum(0.9), true)?.0.kernels().len();
    let plain = trained(&Sgd::new(1e-2), true)?.0.kernels().len();
    Ok([adam.kernels().len(), updates, momentum, plain, held_gradients(true)?.0.kernels().len()])
}

#[test]
fn a_step_takes_as_few_kernels_as_the_bindings_allow() -> tf::Result<()> {
    let counts = counts()?;
    println!("{}\n{}", trained(&Adam::new(1e-3), true)?.0, held_gradients(true)?.0);
    assert_eq!(counts, [0; 5]);
    Ok(())
}

/// Run by `a_step_takes_as_few_kernels_as_a_browser_allows`.
#[test]
#[ignore = "run by a_step_takes_as_few_kernels_as_a_browser_allows"]
fn counts_in_a_browser() {
    let counts = counts().unwrap();
    println!("{}", trained(&Adam::new(1e-2), true).unwrap().0);
    assert_eq!(counts, [0; 5]);
}
