//! Loops without explicit flushes: where their streams are split, according to the counters, and their results.
#![allow(clippy::unwrap_used)]

use crate::support::compare::near;
use wgrad as tf;
use wgrad::Trackable;
use wgrad::keras::layers::{Dense, Layer};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Sequential, TRAINING};
use wgrad::{Device, DeviceStats, Tensor, Variable};

type Result<T> = tf::Result<T>;

/// Runs `turn` this many times on `device`. Returns the counters after five iterations, or where they were last recorded, and
/// at the end.
fn run(
    device: &Device,
    turns: usize,
    mut turn: impl FnMut(usize) -> Result<()>,
) -> Result<(DeviceStats, DeviceStats)> {
    let mut settled = device.stats();
    for t in 0..turns {
        turn(t)?;
        if t < 5 {
            settled = device.stats();
        }
    }
    Ok((settled, device.stats()))
}

/// Nothing was planned or compiled between the two.
#[track_caller]
fn nothing_new((before, after): &(DeviceStats, DeviceStats)) {
    assert_eq!(after.plan_misses, before.plan_misses, "{before:?}\n{after:?}");
    assert_eq!(after.pipelines, before.pipelines);
    assert_eq!(after.buffers, before.buffers);
}

/// Like [`nothing_new`], but a structure may be planned in full after a thousand runs.
#[track_caller]
fn one_plan_more((before, after): &(DeviceStats, DeviceStats)) {
    assert!(after.plan_misses <= before.plan_misses + 1, "{before:?}\n{after:?}");
    assert!(after.pipelines <= before.pipelines + 4, "{before:?}\n{after:?}");
    assert!(after.buffers <= before.buffers + 4, "{before:?}\n{after:?}");
}

/// README's line, fitted manually.
struct Line {
    inputs: Tensor,
    outputs: Tensor,
    w: Variable,
    b: Variable,
}

impl Line {
    fn new() -> Result<Self> {
        let inputs = tf::random::Generator::from_seed(1).normal([200])?;
        let outputs = &inputs * 3.0 + 2.0;
        let (w, b) = (Variable::new(&tf::constant(5.0)?), Variable::new(&tf::constant(10.0)?));
        Ok(Line { inputs, outputs, w, b })
    }

    fn turn(&self) -> Result<()> {
        let tape = tf::GradientTape::new();
        let error = &self.inputs * &self.w + &self.b - &self.outputs;
        let loss = error.square()?.reduce_mean(())?;
        let [dw, db] = tape.required_gradient(&loss, [&self.w, &self.b])?;
        self.w.assign_sub(dw * 0.01)?;
        self.b.assign_sub(db * 0.01)
    }

    fn values(&self) -> Result<[f32; 2]> {
        Ok([self.w.read().item()?, self.b.read().item()?])
    }
}

#[test]
fn a_line_fitted_by_hand_settles() -> Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let line = Line::new()?;
        let stats = run(&device, 3000, |_| line.turn())?;
        one_plan_more(&stats);
        assert!(stats.1.plan_misses <= 3 && stats.1.pipelines <= 12, "{:?}", stats.1);
        assert_eq!(stats.1.flushes - stats.0.flushes, 2995, "one flush a turn");
        let values = line.values()?;
        let flushed = Line::new()?;
        run(&device, 3000, |_| flushed.turn().and_then(|()| device.flush()))?;
        near("", &values, &flushed.values()?, 1e-5);
        assert!((values[0] - 3.0).abs() < 1e-3 && (values[1] - 2.0).abs() < 1e-3, "{values:?}");
        Ok(())
    })
}

#[test]
fn ten_thousand_turns_take_no_more_memory() -> Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let line = Line::new()?;
        run(&device, 1200, |_| line.turn())?;
        let before = device.stats();
        run(&device, 9900, |_| line.turn())?;
        let after = device.stats();
        nothing_new(&(before, after));
        assert_eq!(after.live_bytes + after.pooled_bytes, before.live_bytes + before.pooled_bytes);
        assert_eq!(after.peak_bytes, before.peak_bytes);
        assert_eq!(after.bind_groups, before.bind_groups);
        Ok(())
    })
}

/// An image that approaches a pattern.
fn image(turns: usize, flush: bool) -> Result<((DeviceStats, DeviceStats), Vec<f32>)> {
    let device = Device::new()?;
    device.scope(|| {
        let pattern = tf::random::Generator::from_seed(2).normal([8, 8, 3])?;
        let mut image = Tensor::zeros([8, 8, 3])?;
        let stats = run(&device, turns, |_| {
            let tape = tf::GradientTape::new();
            tape.watch(&image)?;
            let loss = (&image - &pattern).square()?.reduce_sum(())?;
            let gradient = tape.required_gradient(&loss, &image)?;
            image = &image - &(gradient * 0.1);
            if flush { device.flush() } else { Ok(()) }
        })?;
        Ok((stats, image.to_vec::<f32>()?))
    })
}

#[test]
fn an_image_optimized_by_hand_settles() -> Result<()> {
    let (stats, values) = image(3000, false)?;
    one_plan_more(&stats);
    assert!(stats.1.plan_misses <= 3 && stats.1.pipelines <= 12, "{:?}", stats.1);
    near("", &values, &image(3000, true)?.1, 1e-5);
    Ok(())
}

#[test]
fn a_loop_of_assignments_settles() -> Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let (x, v) = (Variable::new(&Tensor::ones([64])?), Variable::new(&Tensor::zeros([64])?));
        // A spring with friction, computed manually.
        let turn = |_| -> Result<()> {
            let force = (x.read() * -1.0 - v.read() * 0.1).tanh()?;
            let drag = (v.read().square()? + 1.0).sqrt()? * 0.01 * v.read();
            v.assign_add((force - drag) * 0.05)?;
            x.assign_add(v.read() * 0.05)
        };
        let stats = run(&device, 1000, turn)?;
        nothing_new(&stats);
        assert_eq!(stats.1.flushes - stats.0.flushes, 995, "one flush a turn");
        // At the end of the iteration nothing is pending, so a flush does nothing.
        device.flush()?;
        assert_eq!(device.stats().flushes, stats.1.flushes);
        assert!(x.read().to_vec::<f32>()?[0].abs() < 1.0);
        Ok(())
    })
}

#[test]
fn sixty_parameters_with_momentum_are_one_flush() -> Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let cell = |i: usize| Tensor::full([4], i as f32).map(|x| Variable::new(&x));
        let weights = (0..60).map(cell).collect::<Result<Vec<_>>>()?;
        let slots = (0..60).map(|_| cell(0)).collect::<Result<Vec<_>>>()?;
        let stats = run(&device, 30, |_| {
            for (weight, slot) in weights.iter().zip(&slots) {
                // The gradient of w^2 / 2.
                slot.assign(&(slot.read() * 0.9 + weight.read()))?;
                weight.assign_sub(slot.read() * 0.1)?;
            }
            Ok(())
        })?;
        nothing_new(&stats);
        assert_eq!(stats.1.flushes - stats.0.flushes, 25, "one flush a turn");
        let (mut w, mut m) = (59f32, 0f32);
        for _ in 0..30 {
            m = m * 0.9 + w;
            w -= m * 0.1;
        }
        near("", &weights[59].read().to_vec::<f32>()?, &[w; 4], 1e-5);
        Ok(())
    })
}

/// `ops` ops per iteration without marks; the last op is different.
fn pure_turn(x: &Tensor, ops: usize) -> Result<Tensor> {
    let mut y = x.clone();
    for _ in 0..ops - 1 {
        y = y.negative()?;
    }
    y.abs()
}

#[test]
fn loops_without_marks_settle() -> Result<()> {
    for (ops, turns) in [(28, 3000), (2, 20_000)] {
        let device = Device::new()?;
        device.scope(|| {
            let mut x = tf::constant([-2.0, 3.0])?;
            let (_, after) = run(&device, turns, |_| {
                x = pure_turn(&x, ops)?;
                Ok(())
            })?;
            assert!(after.plan_misses <= 4, "{ops} ops a turn: {after:?}");
            assert!(after.flushes >= (ops * turns / 4096) as u64, "{ops} ops a turn: {after:?}");
            assert_eq!(x.to_vec::<f32>()?, [2.0, 3.0]);
            Ok::<(), tf::Error>(())
        })?;
    }
    Ok(())
}

#[test]
fn a_turn_longer_than_the_limit_settles() -> Result<()> {
    // Without marks, and with a tape around a part of it.
    for with_tape in [false, true] {
        let device = Device::new()?;
        device.scope(|| {
            let mut x = tf::constant([-2.0, 3.0])?;
            let mut lengths = Vec::new();
            let mut before = device.stats();
            for _ in 0..12 {
                let tape = with_tape.then(tf::GradientTape::new);
                x = pure_turn(&x, 2049)?;
                drop(tape);
                let after = device.stats();
                lengths
                    .push((after.flushes - before.flushes, after.plan_misses - before.plan_misses));
                before = after;
            }
            assert!(lengths[5..].iter().all(|turn| *turn == (1, 0)), "{with_tape}: {lengths:?}");
            assert!(before.plan_misses <= 6, "{with_tape}: {before:?}");
            assert_eq!(x.to_vec::<f32>()?, [2.0, 3.0]);
            Ok::<(), tf::Error>(())
        })?;
    }
    Ok(())
}

#[test]
fn an_optimizer_s_loop_is_flushed_by_the_optimizer_alone() -> Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let model =
            Sequential::new().add(Dense::new(8).activation(Activation::Relu)).add(Dense::new(1));
        let optimizer = Adam::new(1e-2);
        let x = tf::random::Generator::from_seed(3).normal([16, 4])?;
        let step = |tapes: usize| -> Result<()> {
            let mut sums: Vec<Option<Tensor>> = Vec::new();
            for _ in 0..tapes {
                let tape = tf::GradientTape::new();
                let loss = model.call(&x, TRAINING)?.square()?.reduce_mean(())?;
                let grads = tape.gradient(&loss, &model.trainable_variables())?;
                sums = match sums.is_empty() {
                    true => grads,
                    false => {
                        let pairs = sums.iter().zip(&grads);
                        pairs.map(|(a, b)| Some(a.as_ref()? + b.as_ref()?)).collect()
                    }
                };
            }
            optimizer.apply_gradients(&sums, &model.trainable_variables())
        };
        step(1)?;
        for tapes in [1, 4] {
            let stats = run(&device, 30, |_| step(tapes))?;
            nothing_new(&stats);
            assert_eq!(stats.1.flushes - stats.0.flushes, 25, "{tapes} tapes a step");
        }
        // A manual loop in between changes nothing.
        let line = Line::new()?;
        run(&device, 50, |_| line.turn())?;
        let stats = run(&device, 30, |_| step(1))?;
        nothing_new(&stats);
        assert_eq!(stats.1.flushes - stats.0.flushes, 25);
        Ok(())
    })
}

#[test]
fn a_limit_of_one_s_own_is_the_only_one() -> Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        device.set_stream_limit(Some(300));
        let v = Variable::new(&tf::constant([-2.0, 3.0])?);
        let turn = |_| {
            let tape = tf::GradientTape::new();
            let y = pure_turn(&v.read(), 100)?;
            drop(tape);
            v.assign(&y)
        };
        run(&device, 5, turn)?;
        assert_eq!(device.stats().flushes, 1);
        assert_eq!(v.read().to_vec::<f32>()?, [2.0, 3.0]);
        assert_eq!(device.stats().flushes, 2);
        device.set_stream_limit(None);
        run(&device, 5, turn)?;
        assert_eq!(device.stats().flushes, 2 + 4, "at every tape but the first");
        Ok(())
    })
}

#[test]
fn the_error_of_a_cut_is_returned_later() -> Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let line = Line::new()?;
        run(&device, 10, |_| line.turn())?;
        device.flush()?;
        device.set_memory_limit(Some(device.stats().live_bytes)).unwrap();
        let big = Tensor::ones([4 << 20])?;
        // The tapes' splits run ops that fail; no call panics, and the next flush reports it.
        run(&device, 3, |_| line.turn())?;
        assert!(device.flush().unwrap_err().is_out_of_memory());
        drop(big);
        device.set_memory_limit(None).unwrap();
        device.flush()
    })
}
