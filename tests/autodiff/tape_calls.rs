//! Jacobians, forward mode, custom gradients and recomputation, of every op and of programs.

#![allow(clippy::unwrap_used)]

use crate::Numbers;
use std::panic::{AssertUnwindSafe, catch_unwind};

use wgrad as tf;
use wgrad::autodiff::{
    ForwardAccumulator, gradient_check, gradients_function, hessian, hvp, implicit_gradients,
    implicit_value_and_gradients,
};
use wgrad::inventory::{self, Case, OpKind, Values};
use wgrad::{
    Device, Error, GradientOptions, GradientTape, JacobianOptions, PersistentTape, Result, Tensor,
    UnconnectedGradients, Variable, constant,
};

/// The largest difference relative to the magnitude of the numbers.
fn off(got: &Tensor, want: &Tensor) -> Result<f32> {
    assert_eq!(got.shape(), want.shape());
    let (got, want) = (got.to_vec::<f32>()?, want.to_vec::<f32>()?);
    let size = want.iter().fold(1e-3f32, |most, v| most.max(v.abs()));
    let most = got.iter().zip(&want).map(|(a, b)| (a - b).abs());
    Ok(most.fold(0.0, |most, off| if off > most || off.is_nan() { off } else { most }) / size)
}

/// Rounding in sums of some hundred products.
const TOLERANCE: f32 = 1e-4;

/// Checks the Jacobian J of a case: w J equals the tape's gradient for upstream w, and J v the forward-mode derivative along v.
fn agrees(case: &Case) -> Result<Vec<String>> {
    let mut numbers = Numbers::new(case.name.len() as u64 * 7 + 11);
    let x: Vec<Tensor> =
        case.inputs.iter().map(|input| numbers.of(*input)).collect::<Result<_>>()?;
    let v: Vec<Tensor> = x.iter().map(|x| numbers.like(x)).collect::<Result<_>>()?;
    let (tape, (accumulator, y)) = PersistentTape::record(|tape| {
        x.iter().try_for_each(|x| tape.watch(x))?;
        ForwardAccumulator::record(&x, &v, |_| (case.f)(&x))
    })?;
    let w = numbers.like(&y)?;
    let grads = tape.gradient_from(&y, Some(&[&w]), &x)?;
    let jacobians = tape.jacobian(&y, &x)?;
    let row = w.reshape([1, -1])?;
    let mut pairs = Vec::new();
    let mut along: Option<Tensor> = None;
    for (i, (grad, jacobian)) in grads.iter().zip(&jacobians).enumerate() {
        let (Some(grad), Some(jacobian)) = (grad, jacobian) else {
            assert!(grad.is_none() && jacobian.is_none(), "{}: one of two", case.name);
            continue;
        };
        assert_eq!(jacobian.shape(), [y.shape(), x[i].shape()].concat());
        let matrix = jacobian.reshape([y.len() as i64, x[i].len() as i64])?;
        let product = row.matmul(&matrix)?.reshape_like(&x[i])?;
        pairs.push((format!("the Jacobian for input {i}"), product, grad.clone()));
        let part = matrix.matvec(v[i].reshape([-1])?)?.reshape_like(&y)?;
        along = Some(match along {
            None => part,
            Some(sum) => &sum + &part,
        });
    }
    let jvp = match accumulator.jvp(&y) {
        // A gradient without second order has no forward mode, and the error states this.
        Err(error) if !case.second && error.to_string().contains("has no forward mode") => None,
        jvp => Some(jvp?),
    };
    match (along, jvp.flatten()) {
        (Some(_), None) if !case.second => {}
        (Some(along), Some(jvp)) => pairs.push(("forward mode".into(), jvp, along)),
        (along, jvp) => assert!(along.is_none() && jvp.is_none(), "{}: one of two", case.name),
    }
    // One plan for all results.
    y.device().flush()?;
    let mut failures = Vec::new();
    for (what, got, want) in pairs {
        let wrong = off(&got, &want)?;
        if wrong.is_nan() || wrong > TOLERANCE {
            failures.push(format!("{}: {what} is off by {wrong}", case.name));
        }
    }
    Ok(failures)
}

trait ReshapeLike {
    fn reshape_like(&self, x: &Tensor) -> Result<Tensor>;
}

impl ReshapeLike for Tensor {
    fn reshape_like(&self, x: &Tensor) -> Result<Tensor> {
        let shape: Vec<i64> = x.shape().iter().map(|&n| n as i64).collect();
        self.reshape(&shape[..])
    }
}

fn check(kind: OpKind, at_least: usize) {
    let mut failures = Vec::new();
    let ops = inventory::all().filter(|entry| entry.kind == kind);
    let cases: Vec<Case> = ops.flat_map(inventory::Entry::own_cases).collect();
    for case in &cases {
        match catch_unwind(AssertUnwindSafe(|| agrees(case))) {
            Ok(Ok(misses)) => failures.extend(misses),
            Ok(Err(error)) => failures.push(format!("{}: {error}", case.name)),
            Err(_) => failures.push(format!("{}: it panicked", case.name)),
        }
    }
    assert!(failures.is_empty(), "{} failures:\n  {}", failures.len(), failures.join("\n  "));
    assert!(cases.len() >= at_least, "{} cases only", cases.len());
}

#[test]
fn jacobians_and_forward_mode_agree_with_the_tape_for_rows() {
    check(OpKind::Row, 100);
}

#[test]
fn jacobians_and_forward_mode_agree_with_the_tape_for_composed_ops() {
    check(OpKind::Composed, 50);
}

#[test]
fn jacobians_and_forward_mode_agree_with_the_tape_for_kernels() {
    check(OpKind::Kernel, 50);
}

/// Two layers, and the Jacobian of the outputs for the inputs.
fn perceptron(inputs: usize, hidden: usize, outputs: usize) -> Result<[Tensor; 3]> {
    let mut numbers = Numbers::new(5);
    let mut of = |shape: &'static [usize]| numbers.of((shape, Values::Within(-0.3, 0.3)));
    assert_eq!((inputs, hidden), (64, 32));
    let w2 = match outputs {
        10 => of(&[32, 10])?,
        100 => of(&[32, 100])?,
        _ => of(&[32, 1000])?,
    };
    Ok([of(&[1, 64])?, of(&[64, 32])?, w2])
}

#[test]
fn a_jacobian_is_one_flush_of_no_more_kernels_for_more_rows() -> Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let mut kernels = Vec::new();
        for outputs in [10, 100, 1000] {
            let [x, w1, w2] = perceptron(64, 32, outputs)?;
            device.synchronize()?;
            let tape = GradientTape::new();
            tape.watch(&x)?;
            let y = x.matmul(&w1)?.tanh()?.matmul(&w2)?.sigmoid()?;
            let before = device.stats();
            let jacobian = tape.jacobian(&y, &x)?.unwrap();
            assert_eq!(jacobian.shape(), [1, outputs, 1, 64]);
            let jacobian = jacobian.to_vec::<f32>()?;
            let after = device.stats();
            assert_eq!(after.flushes - before.flushes, 1);
            kernels.push(after.kernels - before.kernels);
            // J = diag(s (1 - s)) w2' diag(1 - h^2) w1'
            let h = x.matmul(&w1)?.tanh()?.to_vec::<f32>()?;
            let s = y.to_vec::<f32>()?;
            let (w1, w2) = (w1.to_vec::<f32>()?, w2.to_vec::<f32>()?);
            for (row, column) in [(0, 0), (outputs - 1, 63), (outputs / 2, 17)] {
                let through =
                    |k: usize| w2[k * outputs + row] * (1.0 - h[k] * h[k]) * w1[column * 32 + k];
                let want: f32 = s[row] * (1.0 - s[row]) * (0..32).map(through).sum::<f32>();
                let got = jacobian[row * 64 + column];
                assert!((got - want).abs() < 1e-6, "{row}, {column}: {got}, wanted {want}");
            }
        }
        // On a processor, small products have separate kernels; ops after larger ones share theirs.
        assert!(kernels.windows(2).all(|pair| pair[0] >= pair[1]), "{kernels:?}");
        Ok(())
    })
}

/// A convolution, a pool and a product.
#[test]
fn rows_of_images_are_one_batch() -> Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let mut kernels = Vec::new();
        for outputs in [3, 30] {
            let mut numbers = Numbers::new(8);
            let x = numbers.of((&[2, 8, 8, 3], Values::Within(-1.0, 1.0)))?;
            let filters = numbers.of((&[3, 3, 3, 4], Values::Within(-0.5, 0.5)))?;
            let w = numbers
                .of((if outputs == 3 { &[64, 3] } else { &[64, 30] }, Values::Within(-0.5, 0.5)))?;
            device.synchronize()?;
            let tape = GradientTape::persistent();
            tape.watch(&x)?;
            tape.watch(&filters)?;
            let y = x.conv2d(&filters, tf::Conv2dOptions::new().padding(tf::Padding::Same))?;
            let y = y.relu()?.max_pool2d([2, 2], tf::Pool2dOptions::new())?;
            let y = y.reshape([2, 64])?.matmul(&w)?.reduce_sum(0)?;
            let before = device.stats().kernels;
            let [dx, dw] = tape.jacobian(&y, [&x, &filters])?;
            let (dx, dw) = (dx.unwrap(), dw.unwrap());
            device.flush()?;
            kernels.push(device.stats().kernels - before);
            for row in [0, outputs - 1] {
                let unit = tf::one_hot(&constant(row as i32)?, outputs)?;
                let [x1, w1] = tape.gradient_from(&y, Some(&[&unit]), [&x, &filters])?;
                let own = |all: &Tensor, one: &Tensor| {
                    let all = all.to_vec::<f32>().unwrap();
                    let all = &all[row * one.len()..(row + 1) * one.len()];
                    off(&Tensor::from_slice(all, one.shape())?, one)
                };
                assert!(own(&dx, &x1.unwrap())? < TOLERANCE && own(&dw, &w1.unwrap())? < TOLERANCE);
            }
        }
        assert_eq!(kernels[0], kernels[1], "{kernels:?}");
        Ok(())
    })
}

#[test]
fn jacobians_of_batches_of_parts_and_of_what_is_not_connected() -> Result<()> {
    let mut numbers = Numbers::new(9);
    let x = numbers.of((&[4, 3], Values::Within(-1.0, 1.0)))?;
    let w = numbers.of((&[3, 2], Values::Within(-1.0, 1.0)))?;
    let tape = GradientTape::persistent();
    tape.watch(&x)?;
    tape.watch(&w)?;
    let y = x.matmul(&w)?.tanh()?;
    let whole = tape.jacobian(&y, &x)?.unwrap();
    assert_eq!(whole.shape(), [4, 2, 4, 3]);
    let batch = tape.batch_jacobian(&y, &x)?.unwrap();
    assert_eq!(batch.shape(), [4, 2, 3]);
    for i in 0..4 {
        let own = whole.slice(&[i, 0, i, 0], &[1, 2, 1, 3])?.to_vec::<f32>()?;
        assert_eq!(batch.slice(&[i, 0, 0], &[1, 2, 3])?.to_vec::<f32>()?, own);
    }
    // Three rows at once, of eight.
    let parts = JacobianOptions::new().parallel_iterations(3);
    let [dx, dw] = tape.jacobian_with(&y, [&x, &w], parts.clone())?;
    assert_eq!(dx.unwrap().to_vec::<f32>()?, whole.to_vec::<f32>()?);
    assert_eq!(dw.unwrap().shape(), [4, 2, 3, 2]);
    let in_parts =
        tape.batch_jacobian_with(&y, &x, JacobianOptions::new().parallel_iterations(1))?;
    assert_eq!(in_parts.unwrap().to_vec::<f32>()?, batch.to_vec::<f32>()?);

    let z = constant([1.0, 2.0])?;
    assert!(tape.jacobian(&y, &z)?.is_none());
    let zeros = parts.unconnected_gradients(UnconnectedGradients::Zero);
    let none = tape.jacobian_with(&y, &z, zeros.clone())?.unwrap();
    assert_eq!((none.shape(), none.to_vec::<f32>()?), (&[4, 2, 2][..], vec![0.0; 16]));
    let z = Tensor::ones([4, 5])?;
    assert_eq!(tape.batch_jacobian_with(&y, &z, zeros)?.unwrap().shape(), [4, 2, 5]);

    // For scalars, and for empty tensors.
    let sum = y.reduce_sum(())?;
    assert!(tape.jacobian(&sum, &x)?.is_none(), "it was computed after the first question");
    let s = constant(2.0)?;
    let tape = GradientTape::persistent();
    tape.watch(&s)?;
    let cube = s.pow(3.0)?;
    let empty = (&s * Tensor::zeros([0, 2])?).exp()?;
    assert_eq!(tape.jacobian(&cube, &s)?.unwrap().item::<f32>()?, 12.0);
    assert_eq!(tape.jacobian(&empty, &s)?.unwrap().shape(), [0, 2]);
    // The target is the source.
    assert_eq!(tape.jacobian(&s, &s)?.unwrap().item::<f32>()?, 1.0);
    Ok(())
}

#[test]
fn what_has_no_jacobian_says_so() -> Result<()> {
    let x = constant([1.0, 2.0])?;
    let error = GradientTape::new().jacobian(&constant([1, 2])?, &x).unwrap_err();
    assert_eq!(
        error.to_string(),
        "GradientTape.jacobian: a target of shape [2] is i32; only float tensors have gradients. Cast it to f32 first."
    );
    let error = GradientTape::new().batch_jacobian(&Tensor::ones([3, 2])?, &x).unwrap_err();
    assert_eq!(
        error.to_string(),
        "GradientTape.batch_jacobian: the target is [3, 2] and the source [2]; their first axes must have one size, the \
         batch. Use jacobian where there is no batch."
    );
    let error = ForwardAccumulator::new(&x, &constant(1.0)?).map(drop).unwrap_err();
    assert_eq!(
        error.to_string(),
        "ForwardAccumulator: the primals are [f32 [2]] and the tangents [f32 []]; give a tangent of the same shape and \
         dtype for each primal."
    );
    let i = constant([1, 2])?;
    let error = ForwardAccumulator::new(&i, &i).map(drop).unwrap_err();
    assert!(error.to_string().contains("a primal of shape [2] is i32"), "{error}");
    Ok(())
}

#[test]
fn jacobians_can_be_differentiated() -> Result<()> {
    let x = constant([[0.5, -1.0, 2.0]])?;
    let w = constant([[1.0, 0.5], [0.25, -1.0], [-0.5, 0.75]])?;
    // The sum of the squares of the Jacobian of tanh(x w), and its gradient for w.
    let f = |w: &Tensor| -> Result<Tensor> {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let y = x.matmul(w)?.tanh()?.softmax(-1)?;
        let jacobian = tape.jacobian(&y, &x)?.unwrap();
        jacobian.square()?.reduce_sum(())
    };
    let check = gradient_check(f, &w)?;
    assert!(check.max_error() < 2e-4, "{check:?}");
    // A Jacobian within a Jacobian: d^3 of x^4 is diagonal.
    let x = constant([1.0, 2.0])?;
    let outer = GradientTape::new();
    outer.watch(&x)?;
    let inner = hessian(|x| x.pow(4.0)?.reduce_sum(()), &x)?;
    let third = outer.jacobian(&inner, &x)?.unwrap();
    assert_eq!(third.to_vec::<f32>()?, [24.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 48.0]);
    Ok(())
}

#[test]
fn jacobians_of_jacobians_of_windows() -> Result<()> {
    let options = tf::Conv2dOptions::new().padding(tf::Padding::Same);
    let pool = tf::Pool2dOptions::new();
    type F<'a> = &'a dyn Fn(&Tensor, &Tensor) -> Result<Tensor>;
    let functions: [(&'static [usize], F); 4] = [
        (&[2, 2, 2, 2], &|x, w| x.conv2d(w, options)?.square()),
        (&[2, 2, 2, 1], &|x, w| x.depthwise_conv2d(w, options)?.square()),
        (&[2, 2, 2, 2], &|x, w| x.conv2d(w, options)?.square()?.max_pool2d([2, 2], pool)),
        (&[2, 2, 2, 2], &|x, w| x.conv2d(w, options)?.square()?.avg_pool2d([2, 2], pool)),
    ];
    for (k, (filters, f)) in functions.into_iter().enumerate() {
        let mut numbers = Numbers::new(12);
        let x = numbers.of((&[1, 3, 2, 2], Values::Within(-1.0, 1.0)))?;
        let w = numbers.of((filters, Values::Within(-1.0, 1.0)))?;
        let outer = GradientTape::persistent();
        outer.watch(&x)?;
        outer.watch(&w)?;
        let inner = GradientTape::new();
        inner.watch(&x)?;
        let y = f(&x, &w)?;
        let first = inner.jacobian(&y, &x)?.unwrap();
        let upstream = numbers.like(&first)?;
        for source in [&w, &x] {
            let second = outer.jacobian(&first, source)?.unwrap();
            let want = outer.gradient_from(&first, Some(&[&upstream]), source)?.unwrap();
            let matrix = second.reshape([first.len() as i64, source.len() as i64])?;
            let got = upstream.reshape([1, -1])?.matmul(&matrix)?.reshape_like(source)?;
            let wrong = off(&got, &want)?;
            assert!(wrong < TOLERANCE, "function {k}: {wrong}");
        }
    }
    Ok(())
}

#[test]
fn second_order_three_ways() -> Result<()> {
    let x = constant([0.5, -1.0, 2.0])?;
    let v = constant([1.0, 0.5, -0.25])?;
    let f = |x: &Tensor| -> Result<Tensor> {
        let shifted = x.roll_by_one()?;
        (x.square()? * shifted.sin()?).reduce_sum(())
    };
    let h = hessian(f, &x)?;
    let want = h.matvec(&v)?;
    let linear = |x: &Tensor| x.multiply(3.0)?.reduce_sum(());
    assert_eq!(hessian(linear, &x)?.to_vec::<f32>()?, [0.0; 9]);
    assert_eq!(hvp(linear, &x, &v)?.to_vec::<f32>()?, [0.0; 3]);
    assert!(off(&hvp(f, &x, &v)?, &want)? < 1e-5, "reverse over reverse");
    // Forward over reverse.
    let (accumulator, grad) = ForwardAccumulator::record(&x, &v, |_| gradients_function(f)(&x))?;
    assert!(off(&accumulator.jvp(&grad)?.unwrap(), &want)? < 1e-5, "forward over reverse");
    // Reverse over forward.
    let (tape, jvp) = GradientTape::record(|tape| {
        tape.watch(&x)?;
        let (accumulator, y) = ForwardAccumulator::record(&x, &v, |_| f(&x))?;
        Ok(accumulator.jvp(&y)?.unwrap())
    })?;
    assert!(off(&tape.required_gradient(&jvp, &x)?, &want)? < 1e-5, "reverse over forward");
    // Forward over forward: v H v. The inner derivative is read after both have stopped.
    let (outer, (inner, y)) =
        ForwardAccumulator::record(&x, &v, |_| ForwardAccumulator::record(&x, &v, |_| f(&x)))?;
    let inner = inner.jvp(&y)?.unwrap();
    let got = outer.jvp(&inner)?.unwrap().item::<f32>()?;
    let want = (&want * &v).reduce_sum(())?.item::<f32>()?;
    assert!((got - want).abs() < 1e-4, "{got}, wanted {want}");
    Ok(())
}

trait RollByOne {
    fn roll_by_one(&self) -> Result<Tensor>;
}

impl RollByOne for Tensor {
    fn roll_by_one(&self) -> Result<Tensor> {
        let parts = self.split_sizes(&[1, self.len() - 1], 0)?;
        tf::concat([&parts[1], &parts[0]], 0)
    }
}

#[test]
fn accumulators_follow_variables_and_stop() -> Result<()> {
    let w = Variable::new(&constant(3.0)?);
    let one = constant(1.0)?;
    let accumulator = ForwardAccumulator::new(&w, &one)?;
    let y = &w * &w;
    assert_eq!(accumulator.jvp(&y)?.unwrap().item::<f32>()?, 6.0);
    assert_eq!(accumulator.jvp(&w)?.unwrap().item::<f32>()?, 1.0);
    accumulator.stop();
    assert!(accumulator.jvp(&(&y * 2.0))?.is_none());
    let zero = accumulator.jvp_with(&one, UnconnectedGradients::Zero)?.unwrap();
    assert_eq!(zero.item::<f32>()?, 0.0);
    // A primal that is given twice moves along both tangents.
    let accumulator = ForwardAccumulator::new([&w, &w], [&one, &one])?;
    assert_eq!(accumulator.jvp(&w.read().square()?)?.unwrap().item::<f32>()?, 12.0);
    // A stopped value and an index have no tangent.
    assert!(accumulator.jvp(w.read().stop_gradient())?.is_none());
    assert!(accumulator.jvp(&w.read().reshape([1])?.argmax(0)?)?.is_none());
    Ok(())
}

#[test]
fn forgotten_tangents_are_freed() -> Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let x = Tensor::ones([64, 64])?;
        let accumulator = ForwardAccumulator::new(&x, &x)?;
        let mut y = x.clone();
        let mut live = Vec::new();
        for turn in 0..3000 {
            y = y.sin()?;
            // A pending stream holds its values.
            if turn % 50 == 49 {
                device.flush()?;
                live.push(device.stats().live_bytes);
            }
        }
        let most = live.iter().max().unwrap() / (64 * 64 * 4);
        assert!(most < 600, "{most} tangents");
        assert!(accumulator.jvp(&y)?.is_some());
        Ok(())
    })
}

#[test]
fn gradients_for_what_is_not_connected_may_be_zeros() -> Result<()> {
    let (x, z) = (constant([1.0, 2.0])?, constant([[1.0]])?);
    let w = Variable::new(&constant([3.0, 4.0, 5.0])?);
    let zeros = GradientOptions::new().unconnected_gradients(UnconnectedGradients::Zero);
    let tape = GradientTape::persistent();
    tape.watch(&x)?;
    let y = x.square()?;
    let [dx, dz] = tape.gradient_with(&y, [&x, &z], zeros.clone())?;
    assert_eq!(dx.unwrap().to_vec::<f32>()?, [2.0, 4.0]);
    let dz = dz.unwrap();
    assert_eq!((dz.shape(), dz.item::<f32>()?), (&[1, 1][..], 0.0));
    let dw = tape.gradient_with(&y, &w, zeros.clone())?.unwrap();
    assert_eq!(dw.to_vec::<f32>()?, [0.0; 3]);
    let given = zeros.output_gradients(vec![constant([10.0, 1.0])?]);
    assert_eq!(tape.gradient_with(&y, &x, given)?.unwrap().to_vec::<f32>()?, [20.0, 4.0]);
    assert!(tape.gradient_with(&y, &z, GradientOptions::new())?.is_none());
    Ok(())
}

#[test]
fn a_tape_lists_its_variables_and_forgets_on_request() -> Result<()> {
    let v = Variable::new(&constant(3.0)?);
    let w = Variable::new(&constant(2.0)?);
    let counter = Variable::untrainable(&constant(0.0)?);
    let tape = GradientTape::new();
    let early = &w * &v * &w + &counter;
    let ids = |list: Vec<Variable>| {
        list.iter().map(|v| v.read().item::<f32>().unwrap()).collect::<Vec<_>>()
    };
    tape.stop_recording(|| assert_eq!(ids(tape.watched_variables()), [2.0, 3.0]));
    tape.reset()?;
    assert!(tape.watched_variables().is_empty());
    let late = &v * 5.0 + early;
    assert_eq!(ids(tape.watched_variables()), [3.0]);
    let [dv, dw] = tape.gradient(&late, [&v, &w])?;
    assert_eq!(dv.unwrap().item::<f32>()?, 5.0);
    assert!(dw.is_none(), "it was read before the reset");
    let tape = GradientTape::new();
    tape.stop();
    assert_eq!(
        tape.reset().unwrap_err().to_string(),
        "GradientTape.reset: the tape has stopped recording; open another tape."
    );
    Ok(())
}

#[test]
fn rules_of_the_caller_have_several_inputs_and_outputs_and_nest() -> Result<()> {
    // (a b, a + b), with wrong gradients to check that they are used: da = 10 d0 + d1, db = 100 d0 + 1000 d1.
    let f = tf::custom_gradient(|[a, b]: &[Tensor; 2]| {
        let values = [a.multiply(b)?, a.add(b)?];
        Ok((values, |[d0, d1]: &[Tensor; 2]| {
            Ok([d0.multiply(10.0)?.add(d1)?, d0.multiply(100.0)?.add(d1.multiply(1000.0)?)?])
        }))
    });
    let (a, b) = (constant([2.0, 3.0])?, constant([5.0, 7.0])?);
    let tape = GradientTape::persistent();
    tape.watch(&a)?;
    tape.watch(&b)?;
    let [product, sum] = f(&[a.clone(), b.clone()])?;
    assert_eq!(product.to_vec::<f32>()?, [10.0, 21.0]);
    assert_eq!(sum.to_vec::<f32>()?, [7.0, 10.0]);
    let loss = &product * 2.0 + &sum;
    let [da, db] = tape.required_gradient(&loss, [&a, &b])?;
    assert_eq!(da.to_vec::<f32>()?, [21.0, 21.0]);
    assert_eq!(db.to_vec::<f32>()?, [1200.0, 1200.0]);
    // If only one output is used, the other's gradient is zeros.
    let [da, db] = tape.required_gradient(&sum, [&a, &b])?;
    assert_eq!((da.to_vec::<f32>()?, db.to_vec::<f32>()?), (vec![1.0; 2], vec![1000.0; 2]));

    // Nested: only the outer rule counts.
    let inner = |x: &Tensor| {
        tf::custom_gradient(|x: &Tensor| Ok((x.square()?, |dy: &Tensor| dy.multiply(7.0))))(x)
    };
    let outer = tf::custom_gradient(move |x: &Tensor| {
        let y = inner(x)?.exp()?;
        Ok((y.clone(), move |dy: &Tensor| inner(&dy.multiply(&y)?)))
    });
    let x = constant(0.5)?;
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = outer(&x)?;
    let want = 0.25f32.exp().powi(2);
    assert!((tape.required_gradient(&y, &x)?.item::<f32>()? - want).abs() < 1e-5);
    Ok(())
}

#[test]
fn rules_of_the_caller_are_differentiated() -> Result<()> {
    // x^3 with the rule 3 x^2 dy: the second and third derivatives are the rule's own.
    let cube = tf::custom_gradient(|x: &Tensor| {
        let x = x.clone();
        Ok((x.pow(3.0)?, move |dy: &Tensor| dy.multiply(3.0)?.multiply(x.square()?)))
    });
    let x = constant([2.0, -1.0])?;
    let first = gradients_function(&cube);
    let second = gradients_function(&first);
    let third = gradients_function(&second);
    assert_eq!(first(&x)?.to_vec::<f32>()?, [12.0, 3.0]);
    assert_eq!(second(&x)?.to_vec::<f32>()?, [12.0, -6.0]);
    assert_eq!(third(&x)?.to_vec::<f32>()?, [6.0, 6.0]);
    // In forward mode and in Jacobians.
    let accumulator = ForwardAccumulator::new(&x, &x)?;
    let y = cube(&x)?;
    assert_eq!(accumulator.jvp(&y)?.unwrap().to_vec::<f32>()?, [24.0, -3.0]);
    drop(accumulator);
    let h = hessian(|x| cube(x)?.reduce_sum(()), &x)?;
    assert_eq!(h.to_vec::<f32>()?, [12.0, 0.0, 0.0, -6.0]);
    Ok(())
}

#[test]
fn rules_of_the_caller_see_their_variables() -> Result<()> {
    let (w, b) = (Variable::new(&constant(3.0)?), Variable::new(&constant(1.0)?));
    let line = {
        let (w, b) = (w.clone(), b.clone());
        tf::custom_gradient_with_variables(move |x: &Tensor| {
            let (x, y) = (x.clone(), &w * x + &b);
            let rule = move |dy: &Tensor, variables: &[Variable]| {
                assert_eq!(variables.len(), 2);
                Ok((dy * &variables[0], vec![dy * &x, dy * 100.0]))
            };
            Ok((y, rule))
        })
    };
    let x = constant(2.0)?;
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = line(&x)?.square()?;
    assert_eq!(y.item::<f32>()?, 49.0);
    let sources = [
        tf::TensorOrVariable::Tensor(x),
        tf::TensorOrVariable::Variable(w.clone()),
        tf::TensorOrVariable::Variable(b),
    ];
    let [dx, dw, db] = tape.required_gradient(&y, sources)?;
    let each = [dx, dw, db].map(|grad| grad.item::<f32>().unwrap());
    assert_eq!(each, [42.0, 28.0, 1400.0]);

    let lost = tf::custom_gradient(move |x: &Tensor| Ok((&w * x, |dy: &Tensor| Ok(dy.clone()))));
    assert_eq!(
        lost(&constant(2.0)?).unwrap_err().to_string(),
        "custom_gradient: the function reads a trainable variable of shape [], for which the rule gives no gradient. Use \
         custom_gradient_with_variables, or read the variable outside and pass its value."
    );
    Ok(())
}

#[test]
fn rules_of_the_caller_that_do_not_fit_say_so() -> Result<()> {
    let x = constant([1.0, 2.0])?;
    let ask = |f: &dyn Fn(&Tensor) -> Result<Tensor>| {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let y = f(&x)?;
        tape.gradient(&y, &x)
    };
    let wrong = tf::custom_gradient(|x: &Tensor| Ok((x.exp()?, |dy: &Tensor| dy.reduce_sum(()))));
    assert_eq!(
        ask(&wrong).unwrap_err().to_string(),
        "CustomGradient: gradient 0 is f32 [] and its argument f32 [2]; they must have one shape and dtype."
    );
    let few = tf::custom_gradient(|x: &Vec<Tensor>| {
        Ok((x[0].exp()?, |_: &Tensor| Ok(Vec::<Tensor>::new())))
    });
    assert_eq!(
        ask(&|x| few(&vec![x.clone()])).unwrap_err().to_string(),
        "custom_gradient: the rule gave 0 gradients for 1 arguments, and 0 for 0 variables; give one for each."
    );
    let failing = tf::custom_gradient(|x: &Tensor| Ok((x.exp()?, |dy: &Tensor| dy.reshape([7]))));
    assert!(ask(&failing).unwrap_err().to_string().starts_with("Reshape: "));
    Ok(())
}

/// The gradients of a chain of `blocks` blocks of `tanh(x w)` in pairs, and the peak of bytes held.
fn chain(blocks: usize, recompute: bool) -> Result<(Vec<f32>, Vec<f32>, u64)> {
    let device = Device::new()?;
    device.scope(|| {
        const SIZE: usize = 64;
        let mut numbers = Numbers::new(3);
        let w = Variable::new(&numbers.of((&[SIZE, SIZE], Values::Within(-0.2, 0.2)))?);
        let x = numbers.of((&[1024, SIZE], Values::Within(-1.0, 1.0)))?;
        let block = {
            let w = w.clone();
            move |x: &Tensor| -> Result<Tensor> {
                let mut x = x.clone();
                for _ in 0..5 {
                    x = x.matmul(&w)?.tanh()?;
                }
                Ok(x)
            }
        };
        let again = tf::recompute_grad(block.clone());
        device.synchronize()?;
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let mut y = x.clone();
        for _ in 0..blocks {
            y = if recompute { again(&y)? } else { block(&y)? };
        }
        let sources =
            [tf::TensorOrVariable::Tensor(x.clone()), tf::TensorOrVariable::Variable(w.clone())];
        let [dx, dw] = tape.required_gradient(&y, sources)?;
        drop(y);
        device.flush()?;
        let peak = device.stats().peak_bytes;
        Ok((dx.to_vec::<f32>()?, dw.to_vec::<f32>()?, peak))
    })
}

#[test]
fn recomputation_gives_the_same_gradients_in_less_memory() -> Result<()> {
    // 50 layers in 10 blocks of 5: without recomputation, 50 activations of 256 KiB are held; with it, 10 and those of one
    // block.
    let (dx, dw, kept) = chain(10, false)?;
    let (dx2, dw2, recomputed) = chain(10, true)?;
    assert_eq!(dx, dx2);
    let size = dw.iter().fold(0f32, |most, v| most.max(v.abs()));
    let most = dw.iter().zip(&dw2).map(|(a, b)| (a - b).abs()).fold(0f32, f32::max);
    assert!(most < 1e-5 * size, "{most} of {size}");
    println!("the peak of 50 layers: {kept} bytes, recomputed {recomputed}");
    assert!(kept > 50 * 256 * 1024, "{kept}");
    assert!(recomputed < kept / 2, "{kept} and recomputed {recomputed}");
    Ok(())
}

#[test]
fn recomputation_is_differentiated() -> Result<()> {
    let w = Variable::new(&constant(0.75)?);
    let f = {
        let w = w.clone();
        tf::recompute_grad(move |x: &Tensor| (x * &w).sin()?.exp())
    };
    let plain = |x: &Tensor| (x * &w).sin()?.exp();
    let x = constant([0.5, -1.0])?;
    let h = |f: &dyn Fn(&Tensor) -> Result<Tensor>| hessian(|x| f(x)?.reduce_sum(()), &x);
    assert!(off(&h(&f)?, &h(&plain)?)? < 1e-5);
    let of_w = |f: &dyn Fn(&Tensor) -> Result<Tensor>| -> Result<Tensor> {
        let (outer, dx) = GradientTape::record(|_| gradients_function(f)(&x))?;
        outer.required_gradient(&dx, &w)
    };
    assert!(off(&of_w(&f)?, &of_w(&plain)?)? < 1e-5);
    Ok(())
}

#[test]
fn functions_give_gradients_for_what_they_read() -> Result<()> {
    let (w, b) = (Variable::new(&constant(3.0)?), Variable::new(&constant(1.0)?));
    let unused = Variable::new(&constant(1.0)?);
    let f = implicit_value_and_gradients(|(x, y): &(Tensor, f32)| {
        unused.read();
        (&w * x + &b - *y).square()
    });
    let x = constant(2.0)?;
    let (value, (grads, variables)) = f(&(x.clone(), 5.0))?;
    assert_eq!(value.item::<f32>()?, 4.0);
    assert_eq!(variables.len(), 3);
    let grads: Vec<Option<f32>> =
        grads.iter().map(|g| g.as_ref().map(|g| g.item().unwrap())).collect();
    assert_eq!(grads, [None, Some(8.0), Some(4.0)]);
    let error = implicit_gradients(|()| x.square())(&()).unwrap_err();
    assert!(matches!(error, Error::Gradient(_)));
    assert!(error.to_string().contains("read no trainable variable"), "{error}");
    let error = gradients_function(|x: &Tensor| x.floor())(&x).unwrap_err();
    assert!(error.to_string().contains("Gradients ended at Floor"), "{error}");
    Ok(())
}

#[test]
fn wrong_rules_are_found() -> Result<()> {
    let x = constant([[0.5, -1.0, 2.0], [0.3, 0.1, -0.7]])?;
    let right = gradient_check(|x: &Tensor| x.sin()?.reduce_sum(1), &x)?;
    assert_eq!((right.theoretical[0].dim(), right.numeric[0].dim()), ((2, 6), (2, 6)));
    assert!(right.max_error() < 1e-4, "{}", right.max_error());
    let wrong = tf::custom_gradient(|x: &Tensor| {
        let x = x.clone();
        Ok((x.sin()?, move |dy: &Tensor| dy.multiply(x.cos()?)?.multiply(1.01)))
    });
    let found = gradient_check(|x: &Tensor| wrong(x), &x)?;
    assert!((found.max_error() - 0.00995).abs() < 1e-4, "{}", found.max_error());
    // With two arguments, and with one that does not affect the result.
    let both = gradient_check(|[a, _]: &[Tensor; 2]| a.square(), &[x.clone(), x.clone()])?;
    assert!(both.theoretical[1].iter().all(|v| *v == 0.0) && both.max_error() < 1e-3);
    let options = |delta| tf::autodiff::GradientCheckOptions::new().delta(delta);
    let check =
        |delta| tf::autodiff::gradient_check_with(|x: &Tensor| x.square(), &x, options(delta));
    assert!(check(-1.0).unwrap_err().to_string().contains("it must be a positive number"));
    assert!(check(1e-12).unwrap_err().to_string().contains("is lost in an element"));
    Ok(())
}
