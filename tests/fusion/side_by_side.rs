//! Small unrelated computations share kernels, mainly an optimizer's step over all parameters. Kernels are counted, and the
//! results must equal those of single ops.

#![allow(clippy::unwrap_used)]

use crate::support::child;
use crate::support::compare::{near, noise};
use wgrad as tf;
use wgrad::Trackable;
use wgrad::keras::layers::{Dense, Layer};
use wgrad::keras::optimizers::{Adam, Optimizer, Sgd};
use wgrad::keras::{Activation, Sequential, TRAINING};
use wgrad::{Device, PlanReport, Tensor};

/// Like `tf.clip_by_global_norm`.
fn clip_by_global_norm(gradients: &[Option<Tensor>], norm: f32) -> tf::Result<Vec<Option<Tensor>>> {
    let mut squares = Vec::new();
    for gradient in gradients.iter().flatten() {
        squares.push(gradient.square()?.reduce_sum(())?);
    }
    let squares: Vec<&Tensor> = squares.iter().collect();
    let global = tf::stack(&squares, 0)?.reduce_sum(())?.sqrt()?;
    let scale = tf::constant(norm)?.divide(global.maximum(norm)?)?;
    let scaled = |gradient: &Option<Tensor>| -> tf::Result<Option<Tensor>> {
        gradient.as_ref().map(|gradient| gradient.multiply(&scale)).transpose()
    };
    gradients.iter().map(scaled).collect()
}

/// A network of five layers, with ten parameters of nine sizes.
fn network() -> tf::Result<Sequential> {
    let mut model = Sequential::new();
    for units in [64, 48, 32, 20] {
        model = model.add(Dense::new(units).activation(Activation::Tanh));
    }
    let model = model.add(Dense::new(10));
    model.build([16, 40])?;
    let mut weights = model.get_weights()?;
    for (k, weight) in weights.iter_mut().enumerate() {
        let values = noise(k as u64 + 1, weight.len());
        weight.iter_mut().zip(values).for_each(|(w, v)| *w = 0.3 * v);
    }
    model.set_weights(&weights)?;
    Ok(model)
}

/// A step whose gradients are clipped by their global norm.
fn step(model: &Sequential, optimizer: &dyn Optimizer, seed: u64) -> tf::Result<Tensor> {
    let x = Tensor::from_slice(&noise(100 + seed, 16 * 40), [16, 40])?;
    let labels: Vec<i32> = (0..16).map(|i| (i * 7 + seed as i32) % 10).collect();
    let labels = Tensor::from_slice(&labels, [16])?;
    let tape = tf::GradientTape::new();
    let logits = model.call(&x, TRAINING)?;
    let loss = tf::sparse_softmax_cross_entropy_with_logits(&labels, &logits)?.reduce_mean(())?;
    let variables = model.trainable_variables();
    let gradients = clip_by_global_norm(&tape.gradient(&loss, &variables)?, 0.5)?;
    optimizer.apply_gradients(&gradients, &variables)?;
    Ok(loss)
}

/// The plan of a step after warm-up, and all weights after it.
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

/// The plan of Adam's step over ten parameters of ten sizes with held gradients, and the weights after it.
fn held_gradients(fusion: bool) -> tf::Result<(PlanReport, Vec<Vec<f32>>)> {
    let device = Device::new()?;
    device.set_fusion(fusion);
    device.scope(|| {
        let size = |k: usize| 90 * k + 3;
        let (mut variables, mut gradients) = (Vec::new(), Vec::new());
        for k in 0..10 {
            let at = k as u64;
            let value = Tensor::from_slice(&noise(at, size(k)), [size(k)])?;
            variables.push(tf::Variable::new(&value));
            gradients.push(Some(Tensor::from_slice(&noise(50 + at, size(k)), [size(k)])?));
        }
        let adam = Adam::new(0.01);
        for _ in 0..3 {
            adam.apply_gradients(&gradients, &variables)?;
        }
        let plan = device.last_plan().unwrap();
        let weights: tf::Result<Vec<Vec<f32>>> =
            variables.iter().map(|variable| variable.read().to_vec()).collect();
        // The held gradients are unchanged.
        for (at, gradient) in gradients.iter().flatten().enumerate() {
            assert_eq!(gradient.to_vec::<f32>()?, noise(50 + at as u64, size(at)));
        }
        Ok((plan, weights?))
    })
}

/// The numbers of kernels of each kind of step: clipped gradients with Adam, with momentum, without, and held gradients.
fn counts() -> tf::Result<[usize; 4]> {
    let kernels = |optimizer: &dyn Optimizer| -> tf::Result<usize> {
        Ok(trained(optimizer, true)?.0.kernels().len())
    };
    Ok([
        kernels(&Adam::new(1e-3))?,
        kernels(&Sgd::new(1e-2).momentum(0.9))?,
        kernels(&Sgd::new(1e-2))?,
        held_gradients(true)?.0.kernels().len(),
    ])
}

/// With the eight bindings of a browser. Forward and backward take 18 kernels without the norms. A kernel computes four of ten
/// norms. Adam's ten steps have four bindings each and are five kernels if the gradients exist; those of clipped gradients,
/// which are stored as well, have more.
const IN_A_BROWSER: [usize; 4] = [34, 29, 28, 5];

#[test]
fn a_step_takes_as_few_kernels_as_the_bindings_allow() -> tf::Result<()> {
    let counts = counts()?;
    if Device::current()?.adapter().name.contains("llvmpipe") {
        // Each kernel stays separate, as there are few.
        assert_eq!(counts, [51, 51, 51, 10]);
        return Ok(());
    }
    let most = counts.iter().zip(IN_A_BROWSER).all(|(count, most)| *count <= most);
    assert!(most, "{counts:?} and {IN_A_BROWSER:?}");
    Ok(())
}

/// Run by `a_browser_s_eight_bindings_hold_two_steps_of_adam`.
#[test]
#[ignore = "run by a_browser_s_eight_bindings_hold_two_steps_of_adam"]
fn counts_in_a_browser() {
    assert_eq!(counts().unwrap(), IN_A_BROWSER);
    let plan = held_gradients(true).unwrap().0;
    for kernel in plan.kernels() {
        assert_eq!(kernel.label, "2 x Sub");
        assert_eq!(kernel.outputs.len(), 6);
        assert_eq!(kernel.wgsl.matches("var<storage").count(), 8);
    }
    the_numbers_are_those_of_single_ops().unwrap();
    parts_of_every_kind_share_a_kernel().unwrap();
}

#[test]
fn a_browser_s_eight_bindings_hold_two_steps_of_adam() {
    let mut command = child::command(module_path!(), "counts_in_a_browser");
    let output = command.env("WGRAD_PORTABLE", "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn the_numbers_are_those_of_single_ops() -> tf::Result<()> {
    // Steps by the sign of a gradient, like almost Adam's first ones, would amplify errors in its last place.
    let momentum = || Sgd::new(0.05).momentum(0.9);
    let (plan, fused) = trained(&momentum(), true)?;
    let together = plan.kernels().iter().any(|kernel| kernel.label.contains(" x "));
    // On a processor, a few small kernels are not merged.
    let processor = Device::current()?.adapter().kind == tf::AdapterKind::Cpu;
    assert_eq!(together, !processor || std::env::var_os("WGRAD_PORTABLE").is_some(), "{plan}");
    near("", &fused, &trained(&momentum(), false)?.1, 1e-5);
    // Every run produces the same bits.
    assert_eq!(fused, trained(&momentum(), true)?.1);

    let (fused, apart) = (held_gradients(true)?.1, held_gradients(false)?.1);
    for (k, (fused, apart)) in fused.iter().zip(&apart).enumerate() {
        near("", fused, apart, 1e-5);
        // Three steps of the learning rate against the gradient's sign, unless it is tiny.
        let (before, gradient) = (noise(k as u64, fused.len()), noise(50 + k as u64, fused.len()));
        for ((after, before), gradient) in fused.iter().zip(before).zip(gradient) {
            let step = -0.03 * gradient.signum();
            let far = (after - before - step).abs();
            assert!(far < 1e-4 || gradient.abs() < 0.01, "{k}: {before} to {after}, {gradient}");
        }
    }
    Ok(())
}

/// Run by `a_browser_s_eight_bindings_hold_two_steps_of_adam`: on a processor, few parts are separate kernels.
fn parts_of_every_kind_share_a_kernel() -> tf::Result<()> {
    let device = Device::new()?;
    device.set_fusion(true);
    device.scope(|| {
        // Odd sizes, transposed and broadcast views, other dtypes, one element of a larger tensor.
        let a = Tensor::from_slice(&noise(1, 35), [5, 7])?;
        let b = Tensor::from_slice(&noise(2, 24), [4, 6])?;
        let c = Tensor::from_slice(&[3i32, -4, 5], [3])?;
        let results = {
            let turned = a.transpose([1, 0])?.add(1.0)?;
            let row = b.strided_slice(ndarray::s![1, ..])?.expand_dims(0)?.broadcast_to([3, 6])?;
            let row = row.multiply(2.0)?;
            let squares = c.multiply(&c)?;
            let truth = c.greater(0)?;
            [turned, row, squares.cast(tf::DType::F32)?, truth.cast(tf::DType::F32)?]
        };
        device.flush()?;
        let plan = device.last_plan().unwrap();
        assert_eq!(plan.kernels().len(), 1, "{plan}");
        let (a, b) = (noise(1, 35), noise(2, 24));
        let turned: Vec<f32> = (0..35).map(|i| a[i % 5 * 7 + i / 5] + 1.0).collect();
        assert_eq!(results[0].to_vec::<f32>()?, turned);
        let row: Vec<f32> = (0..18).map(|i| b[6 + i % 6] * 2.0).collect();
        assert_eq!(results[1].to_vec::<f32>()?, row);
        assert_eq!(results[2].to_vec::<f32>()?, [9.0, 16.0, 25.0]);
        assert_eq!(results[3].to_vec::<f32>()?, [1.0, 0.0, 1.0]);
        Ok(())
    })
}

#[test]
fn what_depends_on_small_work_waits_for_it() -> tf::Result<()> {
    let device = Device::new()?;
    device.set_fusion(true);
    device.scope(|| {
        let x = Tensor::from_slice(&noise(1, 64), [8, 8])?;
        let y = Tensor::from_slice(&noise(2, 20), [20])?;
        let eye = Tensor::from_slice(
            &(0..64).map(|i| f32::from(i % 9 == 0)).collect::<Vec<_>>(),
            [8, 8],
        )?;
        let (sum, product, late) = {
            // A small reduction that a product needs, and parallel work that reads values which other work replaces.
            let scale = x.reduce_sum(())?;
            let scaled = eye.multiply(&scale)?;
            let product = scaled.matmul(&eye)?;
            let late = y.add(&product.reduce_max(())?)?;
            (y.multiply(2.0)?, product, late)
        };
        device.flush()?;
        let (x, y) = (noise(1, 64), noise(2, 20));
        let scale: f32 = x.iter().sum();
        let doubled: Vec<f32> = y.iter().map(|y| y * 2.0).collect();
        assert_eq!(sum.to_vec::<f32>()?, doubled);
        for (i, value) in product.to_vec::<f32>()?.into_iter().enumerate() {
            let want = if i % 9 == 0 { scale } else { 0.0 };
            assert!((value - want).abs() < 1e-4, "{i}: {value} and {want}");
        }
        for (value, y) in late.to_vec::<f32>()?.into_iter().zip(y) {
            assert!((value - y - scale.max(0.0)).abs() < 1e-4, "{value}, {y} and {scale}");
        }
        Ok(())
    })
}
