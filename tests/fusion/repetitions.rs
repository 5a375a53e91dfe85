//! Repeated calls use the same kernels: counts how many shaders are compiled for loops of other lengths and for deeper nets. A
//! driver needs tens to hundreds of milliseconds per shader, so a loop with a shader for each length would compile for ever.
//! The values are checked, too.

#![allow(clippy::unwrap_used)]

use crate::support::compare::near;
use ndarray::s;
use wgrad as tf;
use wgrad::{DType, Device, GradientTape, Tensor, Variable, where_};

/// Kernels of a recurrent net over all lengths from 5 to 40, including those that the last 34 lengths add.
const LSTM_ALL: u64 = 12;
const LSTM_LATER: u64 = 5;
/// Kernels that the other lengths from 5 to 40 add, with gradients and gradient descent, after the lengths 12 and 40.
const LSTM_GRADIENTS_LATER: u64 = 12;
/// Kernels that a net of 100 layers needs in addition to those of one of 20, with its gradients.
const DEPTH: u64 = 5;
/// Kernels for applying the same function 100 times.
const CHAIN: u64 = 3;
/// Kernels of the mean of the last two values, for each number of iterations.
const MEAN: u64 = 3;
/// Kernels of 100 log-softmaxes.
const LOG_SOFTMAX: u64 = 8;
/// Kernels of 50 iterations of z^2 + c.
const MANDELBROT: u64 = 10;
/// Kernels that 60 generations of life need in addition to those of 30.
const LIFE: u64 = 4;

fn device() -> Device {
    let device = Device::new().unwrap();
    // The counts are those with fusion, whatever the environment sets.
    device.set_fusion(true);
    device
}

/// The number of pipelines that `f` compiles, and its result.
fn compiled<T>(device: &Device, f: impl FnOnce() -> tf::Result<T>) -> tf::Result<(u64, T)> {
    device.synchronize()?;
    let before = device.stats().pipelines;
    let value = device.scope(f)?;
    device.synchronize()?;
    Ok((device.stats().pipelines - before, value))
}

/// Some numbers of either sign, with absolute values of at most 1.
fn numbers(n: usize, from: usize) -> Vec<f32> {
    (from..from + n).map(|i| (i * 7 % 33) as f32 / 16.0 - 1.0).collect()
}

/// Runs `f` with fusion off.
fn apart<T>(f: impl FnOnce() -> tf::Result<T>) -> tf::Result<T> {
    let device = Device::new()?;
    device.set_fusion(false);
    device.scope(f)
}

const BATCH: usize = 4;
const FEATURES: usize = 5;
const UNITS: usize = 8;
const MOST_STEPS: usize = 40;

/// The last state of an LSTM (Hochreiter and Schmidhuber 1997) over the first `steps` of x.
fn lstm(steps: usize) -> tf::Result<Vec<f32>> {
    let x = Tensor::from_slice(&numbers(BATCH * steps * FEATURES, 3), [BATCH, steps, FEATURES])?;
    let w = Tensor::from_slice(&numbers(FEATURES * 4 * UNITS, 1), [FEATURES, 4 * UNITS])?;
    let u = Tensor::from_slice(&numbers(UNITS * 4 * UNITS, 5), [UNITS, 4 * UNITS])?;
    let b = Tensor::from_slice(&numbers(4 * UNITS, 9), [4 * UNITS])?;
    let mut h = Tensor::zeros([BATCH, UNITS])?;
    let mut c = h.clone();
    for t in 0..steps {
        let now = x.slice(&[0, t, 0], &[-1, 1, -1])?.reshape([BATCH as i64, FEATURES as i64])?;
        let z = now.matmul(&w)?.add(h.matmul(&u)?)?.add(&b)?;
        let gate = |k: usize| z.slice(&[0, k * UNITS], &[-1, UNITS as i64]);
        let (input, forget) = (gate(0)?.sigmoid()?, gate(1)?.sigmoid()?);
        let (new, output) = (gate(2)?.tanh()?, gate(3)?.sigmoid()?);
        c = forget.multiply(&c)?.add(input.multiply(&new)?)?;
        h = output.multiply(c.tanh()?)?;
    }
    h.to_vec()
}

/// The mean over time of the squares of all states, and the weights after a step of gradient descent.
fn lstm_step(steps: usize) -> tf::Result<Vec<f32>> {
    const UNITS: usize = 16;
    let x = Tensor::from_slice(&numbers(BATCH * steps * FEATURES, 3), [BATCH, steps, FEATURES])?;
    let weights = |rows: usize, from: usize| -> tf::Result<Variable> {
        let values: Vec<f32> = numbers(rows * 4 * UNITS, from).iter().map(|v| v * 0.4).collect();
        Ok(Variable::new(&Tensor::from_slice(&values, [rows, 4 * UNITS])?))
    };
    let parameters =
        [weights(FEATURES, 1)?, weights(UNITS, 2)?, Variable::new(&Tensor::zeros([4 * UNITS])?)];
    let [w, u, b] = &parameters;
    let tape = GradientTape::new();
    let (mut h, mut c) = (Tensor::zeros([BATCH, UNITS])?, Tensor::zeros([BATCH, UNITS])?);
    let mut total = Tensor::zeros([])?;
    for t in 0..steps {
        let now = x.slice(&[0, t, 0], &[-1, 1, -1])?.squeeze([1])?;
        let gates = (now.matmul(w)? + h.matmul(u)? + b).split(4, 1)?;
        let (i, f, o) = (gates[0].sigmoid()?, gates[1].sigmoid()?, gates[2].sigmoid()?);
        c = f * c + i * gates[3].tanh()?;
        h = o * c.tanh()?;
        total = total + h.square()?.reduce_mean(())?;
    }
    let loss = total / steps as f32;
    let gradients = tape.required_gradient(&loss, parameters.as_slice())?;
    for (parameter, gradient) in parameters.iter().zip(gradients) {
        parameter.assign_sub(gradient * 0.1)?;
    }
    let mut all = loss.to_vec::<f32>()?;
    for parameter in &parameters {
        all.extend(parameter.read().to_vec::<f32>()?);
    }
    Ok(all)
}

#[test]
fn a_recurrent_net_s_gradients_have_one_set_of_kernels_for_all_lengths() -> tf::Result<()> {
    let device = device();
    let run = |steps: usize| -> tf::Result<u64> {
        let (count, got) = compiled(&device, || lstm_step(steps))?;
        if steps % 7 == 5 {
            let want = apart(|| lstm_step(steps))?;
            near(&format!("{steps} steps"), &got, &want, 1e-4);
        }
        Ok(count)
    };
    let first = run(12)? + run(MOST_STEPS)?;
    let mut later = 0;
    for steps in (5..=MOST_STEPS).filter(|&steps| steps != 12 && steps != MOST_STEPS) {
        later += run(steps)?;
        assert!(later <= LSTM_GRADIENTS_LATER, "{later} up to {steps} steps, after {first}");
    }
    Ok(())
}

fn lstm_in_f64(steps: usize) -> Vec<f64> {
    let wide = |n: usize, from: usize| -> Vec<f64> {
        numbers(n, from).into_iter().map(f64::from).collect()
    };
    let (x, w) = (wide(BATCH * steps * FEATURES, 3), wide(FEATURES * 4 * UNITS, 1));
    let (u, b) = (wide(UNITS * 4 * UNITS, 5), wide(4 * UNITS, 9));
    let sigmoid = |v: f64| 1.0 / (1.0 + (-v).exp());
    let mut all = Vec::new();
    for row in 0..BATCH {
        let (mut h, mut c) = (vec![0.0; UNITS], vec![0.0; UNITS]);
        for t in 0..steps {
            let z: Vec<f64> = (0..4 * UNITS)
                .map(|j| {
                    let now = (0..FEATURES)
                        .map(|k| x[(row * steps + t) * FEATURES + k] * w[k * 4 * UNITS + j]);
                    let before = (0..UNITS).map(|k| h[k] * u[k * 4 * UNITS + j]);
                    b[j] + now.sum::<f64>() + before.sum::<f64>()
                })
                .collect();
            for k in 0..UNITS {
                c[k] = sigmoid(z[UNITS + k]) * c[k] + sigmoid(z[k]) * z[2 * UNITS + k].tanh();
                h[k] = sigmoid(z[3 * UNITS + k]) * c[k].tanh();
            }
        }
        all.extend(h);
    }
    all
}

#[test]
fn a_recurrent_net_has_one_set_of_kernels_for_all_lengths() -> tf::Result<()> {
    let device = device();
    let run = |steps: usize| -> tf::Result<u64> {
        let (count, h) = compiled(&device, || lstm(steps))?;
        // Most gates halve a difference, and it enters through products of length 8.
        near(&format!("{steps} steps"), &h, &lstm_in_f64(steps), 1e-4);
        Ok(count)
    };
    let first = run(12)? + run(MOST_STEPS)?;
    let mut later = 0;
    for steps in (5..=MOST_STEPS).filter(|&steps| steps != 12 && steps != MOST_STEPS) {
        later += run(steps)?;
        assert!(later <= LSTM_LATER, "{later} new texts up to {steps} steps, after {first}");
    }
    assert!(first + later <= LSTM_ALL, "{first} texts for 12 and {MOST_STEPS}, {later} later");
    Ok(())
}

/// The gradients of all weights of `layers` equal layers, and the loss.
fn net(layers: usize) -> tf::Result<Vec<Vec<f32>>> {
    const WIDTH: usize = 16;
    let mut y = Tensor::from_slice(&numbers(8 * WIDTH, 0), [8, WIDTH])?;
    let tape = GradientTape::new();
    let mut weights = Vec::new();
    for k in 0..layers {
        let w = Tensor::from_slice(&numbers(WIDTH * WIDTH, 3 * k), [WIDTH, WIDTH])?;
        let b = Tensor::from_slice(&numbers(WIDTH, k), [WIDTH])?;
        tape.watch(&w)?;
        tape.watch(&b)?;
        y = y.matmul(&w)?.add(&b)?.multiply(0.25)?.tanh()?;
        weights.extend([w, b]);
    }
    let loss = y.square()?.reduce_mean(())?;
    let mut results = tape.required_gradient(&loss, &weights)?;
    results.push(loss);
    drop((weights, y));
    results.iter().map(|x| x.to_vec()).collect()
}

#[test]
fn a_deeper_net_needs_hardly_more_kernels() -> tf::Result<()> {
    let device = device();
    let mut beyond = 0;
    for layers in [10, 20, 50, 100] {
        let (count, fused) = compiled(&device, || net(layers))?;
        let single = apart(|| net(layers))?;
        for (i, (fused, single)) in fused.iter().zip(&single).enumerate() {
            let largest = single.iter().fold(0f32, |m, v| m.max(v.abs()));
            for (a, b) in fused.iter().zip(single) {
                // Gradients of the first layers are small compared with those of the last.
                assert!(
                    (a - b).abs() <= 1e-3 * largest + 1e-9,
                    "{layers} layers, result {i}: {a} and {b}"
                );
            }
        }
        beyond += if layers > 20 { count } else { 0 };
        assert!(beyond <= DEPTH, "{beyond} new texts for {layers} layers beyond 20");
    }
    Ok(())
}

#[test]
fn a_hundred_times_the_same_function() -> tf::Result<()> {
    let start = numbers(33, 2);
    let device = device();
    let (count, y) = compiled(&device, || {
        let x = Tensor::from_slice(&start, [33])?;
        (0..100).try_fold(x, |x, _| x.tanh())?.to_vec::<f32>()
    })?;
    let want = |&x: &f32| (0..100).fold(f64::from(x), |x, _| x.tanh());
    // Errors of a driver's tanh, some units of 2^-23 each.
    near("tanh", &y, &start.iter().map(want).collect::<Vec<f64>>(), 1e-3);
    assert!(count <= CHAIN, "{count} texts");
    Ok(())
}

#[test]
fn the_mean_of_the_last_two_has_one_kernel_for_all_lengths() -> tf::Result<()> {
    let device = device();
    let mut counts = Vec::new();
    for turns in [50, 100, 500] {
        let (count, y) = compiled(&device, || {
            let (mut a, mut b) = (tf::constant([0.0, 1.0, -3.0])?, tf::constant([1.0, 1.0, 6.0])?);
            for _ in 0..turns {
                let c = a.add(&b)?.multiply(0.5)?;
                a = b;
                b = c;
            }
            b.to_vec::<f32>()
        })?;
        // (a + 2 b) / 3
        near(&format!("{turns} turns"), &y, &[2.0 / 3.0, 1.0, 3.0], 2e-6);
        counts.push(count);
    }
    assert!(counts.iter().all(|&count| count <= MEAN), "{counts:?} texts");
    assert_eq!(counts[2], 0, "500 turns need texts that 100 did not: {counts:?}");
    Ok(())
}

#[test]
fn a_hundred_log_softmaxes() -> tf::Result<()> {
    let start = numbers(6 * 10, 4);
    let device = device();
    let (count, y) = compiled(&device, || {
        let x = Tensor::from_slice(&start, [6, 10])?;
        (0..100).try_fold(x, |x, _| x.log_softmax(-1)?.multiply(-1.0))?.to_vec::<f32>()
    })?;
    let turn = |row: Vec<f64>| -> Vec<f64> {
        let sum: f64 = row.iter().map(|v| v.exp()).sum();
        row.iter().map(|v| sum.ln() - v).collect()
    };
    let row =
        |row: &[f32]| (0..100).fold(row.iter().map(|&v| f64::from(v)).collect(), |x, _| turn(x));
    near("log-softmax", &y, &start.chunks(10).flat_map(row).collect::<Vec<f64>>(), 1e-3);
    assert!(count <= LOG_SOFTMAX, "{count} texts");
    Ok(())
}

#[test]
fn fifty_turns_of_mandelbrot() -> tf::Result<()> {
    const SIDE: usize = 24;
    const TURNS: usize = 50;
    let along = |k: usize, low: f32, high: f32| low + (high - low) * k as f32 / SIDE as f32;
    let real: Vec<f32> = (0..SIDE).map(|k| along(k, -2.0, 0.6)).collect();
    let imaginary: Vec<f32> = (0..SIDE).map(|k| along(k, -1.2, 1.2)).collect();
    let device = device();
    let (count, turns) = compiled(&device, || {
        let shape = [SIDE, SIDE];
        let a = Tensor::from_slice(&real, [1, SIDE])?.broadcast_to(shape)?;
        let b = Tensor::from_slice(&imaginary, [SIDE, 1])?.broadcast_to(shape)?;
        let (mut x, mut y) = (a.zeros_like()?, a.zeros_like()?);
        let mut turns = a.zeros_like()?;
        for _ in 0..TURNS {
            let (xx, yy) = (x.square()?, y.square()?);
            let inside = xx.add(&yy)?.less_equal(4.0)?;
            turns = turns.add(inside.cast(DType::F32)?)?;
            let next = x.multiply(&y)?.multiply(2.0)?.add(&b)?;
            x = where_(&inside, &xx.subtract(&yy)?.add(&a)?, &x)?;
            y = where_(&inside, &next, &y)?;
        }
        turns.to_vec::<f32>()
    })?;
    let mut off = 0;
    for (k, &got) in turns.iter().enumerate() {
        let (a, b) = (f64::from(real[k % SIDE]), f64::from(imaginary[k / SIDE]));
        let (mut x, mut y, mut want) = (0.0, 0.0, 0);
        while want < TURNS && x * x + y * y <= 4.0 {
            (x, y) = (x * x - y * y + a, 2.0 * x * y + b);
            want += 1;
        }
        off += usize::from(got as usize != want);
    }
    // Rounding puts a few points near the edge on the other side.
    assert!(off <= SIDE * SIDE / 50, "{off} of {} are wrong", SIDE * SIDE);
    assert!(count <= MANDELBROT, "{count} texts");
    Ok(())
}

/// Conway's game of life; cells beyond the edges are dead.
fn life_on_the_host(cells: &[f32], side: usize) -> Vec<f32> {
    let at = |i: usize, j: usize| {
        // Counted from 1.
        let inside = (1..=side).contains(&i) && (1..=side).contains(&j);
        if inside { cells[(i - 1) * side + j - 1] } else { 0.0 }
    };
    let next = |k: usize| {
        let (i, j) = (k / side, k % side);
        let around: f32 = (0..9).filter(|&n| n != 4).map(|n| at(i + n / 3, j + n % 3)).sum();
        f32::from(u8::from(around == 3.0 || (around == 2.0 && at(i + 1, j + 1) == 1.0)))
    };
    (0..side * side).map(next).collect()
}

#[test]
fn generations_of_life_by_slices() -> tf::Result<()> {
    const SIDE: usize = 16;
    let start: Vec<f32> =
        (0..SIDE * SIDE).map(|k| f32::from(u8::from((k * k + 3 * k) % 7 < 3))).collect();
    let device = device();
    let mut counts = Vec::new();
    for generations in [10, 30, 60] {
        let (count, cells) = compiled(&device, || {
            let mut cells = Tensor::from_slice(&start, [SIDE, SIDE])?;
            for _ in 0..generations {
                let wide = cells.pad(&[(1, 1), (1, 1)])?;
                let n = SIDE as isize;
                let mut around = wide.strided_slice(s![0..n, 0..n])?;
                for (i, j) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1), (2, 2)] {
                    around = around.add(wide.strided_slice(s![i..i + n, j..j + n])?)?;
                }
                let born = around.equal(3.0)?;
                let stays = around.equal(2.0)?.logical_and(cells.equal(1.0)?)?;
                cells = born.logical_or(&stays)?.cast(DType::F32)?;
            }
            cells.to_vec::<f32>()
        })?;
        let want = (0..generations).fold(start.clone(), |cells, _| life_on_the_host(&cells, SIDE));
        assert_eq!(cells, want, "{generations} generations");
        counts.push(count);
    }
    assert!(counts[2] <= LIFE, "{counts:?} new texts for 10, 30 and 60 generations");
    Ok(())
}
