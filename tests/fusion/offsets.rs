//! The start of a slice, the shift of a roll and the offset of a padding may change from step to step: the structure is the
//! same, so one plan serves all steps. Values are compared with those of the host.

#![allow(clippy::unwrap_used)]

use wgrad as tf;
use wgrad::keras::optimizers::{Optimizer, Sgd};
use wgrad::{Device, GradientTape, Tensor, Variable};

fn device() -> Device {
    let device = Device::new().unwrap();
    // The counts are those with fusion, whatever the environment sets.
    device.set_fusion(true);
    device
}

/// Calls `step` with each number, in `epochs` epochs. Returns how many plans and pipelines were made, and how many of them
/// after the first `settled` steps.
fn counts(
    device: &Device,
    epochs: usize,
    numbers: impl Iterator<Item = usize> + Clone,
    settled: usize,
    mut step: impl FnMut(usize) -> tf::Result<()>,
) -> tf::Result<[u64; 4]> {
    let first = device.stats();
    let mut then = device.stats();
    let mut steps = 0;
    for _ in 0..epochs {
        for i in numbers.clone() {
            device.scope(|| step(i))?;
            steps += 1;
            if steps == settled {
                then = device.stats();
            }
        }
    }
    let last = device.stats();
    Ok([
        last.plan_misses - first.plan_misses,
        last.pipelines - first.pipelines,
        last.plan_misses - then.plan_misses,
        last.pipelines - then.pipelines,
    ])
}

fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 37) % 101) as f32 / 64.0).collect()
}

#[track_caller]
fn equal(what: &str, got: &Tensor, want: &[f32]) {
    let got: Vec<f32> = got.to_vec().unwrap();
    assert_eq!(got, want, "{what}");
}

#[test]
fn a_batch_from_any_place_takes_one_plan() -> tf::Result<()> {
    let device = device();
    let (rows, columns, batch) = (12_800, 3, 32);
    let host = ramp(rows * columns);
    let x = device.scope(|| Tensor::from_slice(&host, [rows, columns]))?;
    let step = |i: usize| {
        let y = x.slice(&[i * batch, 0], &[batch as i64, -1])?.multiply(2.0)?.add(1.0)?;
        let want: Vec<f32> =
            host[i * batch * columns..][..batch * columns].iter().map(|v| v * 2.0 + 1.0).collect();
        equal(&format!("batch {i}"), &y, &want);
        Ok(())
    };
    let [plans, pipelines, ..] = counts(&device, 3, 0..400, 1, step)?;
    assert!(plans <= 2 && pipelines <= 2, "{plans} plans, {pipelines} pipelines");
    Ok(())
}

#[test]
fn training_on_slices_takes_one_plan() -> tf::Result<()> {
    let device = device();
    let (steps, batch, inputs) = (400, 8, 5);
    let host = ramp(steps * batch * inputs);
    let (x, w) = device.scope(|| {
        let x = Tensor::from_slice(&host, [steps * batch, inputs])?;
        tf::Result::Ok((x, Variable::new(&Tensor::ones([inputs, 3])?)))
    })?;
    let optimizer = Sgd::new(0.001);
    let mut weights = vec![1.0f64; inputs * 3];
    let step = |i: usize| {
        let tape = GradientTape::new();
        let rows = x.slice(&[i * batch, 0], &[batch as i64, -1])?;
        let loss = rows.matmul(w.read())?.square()?.reduce_sum(())?;
        optimizer.minimize(&loss, tape, &w)?;
        // The same on the host.
        let rows = &host[i * batch * inputs..][..batch * inputs];
        let mut gradient = vec![0.0f64; inputs * 3];
        for row in rows.chunks(inputs) {
            for k in 0..3 {
                let y: f64 = (0..inputs).map(|j| f64::from(row[j]) * weights[j * 3 + k]).sum();
                (0..inputs).for_each(|j| gradient[j * 3 + k] += 2.0 * y * f64::from(row[j]));
            }
        }
        weights.iter_mut().zip(gradient).for_each(|(w, g)| *w -= 0.001 * g);
        if i % 50 == 7 {
            let got: Vec<f32> = w.read().to_vec()?;
            for (got, want) in got.iter().zip(&weights) {
                assert!((f64::from(*got) - want).abs() < 1e-4, "step {i}: {got}, not {want}");
            }
        }
        Ok(())
    };
    let [_, _, plans, pipelines] = counts(&device, 2, 0..400, 3, step)?;
    assert_eq!([plans, pipelines], [0, 0], "after three steps");
    Ok(())
}

#[test]
fn random_crops_settle_on_few_plans() -> tf::Result<()> {
    // Eight crops per step: which of them begin at multiples of four, and which are equal, forms new patterns.
    let device = device();
    let side = 20;
    let host = ramp(side * side);
    let image = device.scope(|| Tensor::from_slice(&host, [side, side]))?;
    let step = |i: usize| {
        let at = |k: usize| ((i * 7 + k * 5) % 13, (i * 11 + k * k * 3) % 13);
        let crops: Vec<Tensor> =
            (0..8).map(|k| image.slice(&[at(k).0, at(k).1], &[8, 8])).collect::<tf::Result<_>>()?;
        let sum = crops[1..].iter().try_fold(crops[0].clone(), |sum, crop| sum.add(crop))?;
        let mut want = vec![0.0f32; 64];
        for k in 0..8 {
            for (e, want) in want.iter_mut().enumerate() {
                *want += host[(at(k).0 + e / 8) * side + at(k).1 + e % 8];
            }
        }
        equal(&format!("step {i}"), &sum, &want);
        Ok(())
    };
    let [plans, ..] = counts(&device, 2, 0..60, 1, step)?;
    assert!(plans <= 10, "{plans} plans");
    Ok(())
}

#[test]
fn slices_of_computed_values_take_one_plan() -> tf::Result<()> {
    // Sliced values are computed where they are needed: broadcast, transposed, reversed, sliced again.
    let device = device();
    let (rows, columns) = (40, 24);
    let (host, bias) = (ramp(rows * columns), ramp(columns));
    let (x, b) = device.scope(|| {
        tf::Result::Ok((
            Tensor::from_slice(&host, [rows, columns])?,
            Tensor::from_slice(&bias, [columns])?,
        ))
    })?;
    let step = |i: usize| {
        let (r, c, again) = (i % 29, (i * 5) % 17, (i * 3) % 6);
        let sum = x.add(&b)?;
        let turned = sum.transpose([1, 0])?.slice(&[c, r], &[8, 10])?;
        let back = turned.reverse([0, 1])?.slice(&[1, again], &[4, 5])?;
        let flat = sum.reshape([-1])?.slice(&[i * 7 + 3], &[20])?.reshape([4, 5])?;
        let y = back.multiply(&flat)?;
        let value = |at: usize| host[at] + bias[at % columns];
        let mut want = Vec::new();
        for p in 0..4 {
            for q in 0..5 {
                // In `turned`, row 7 - (1 + p) and column 9 - (again + q).
                let at = (r + 9 - again - q) * columns + c + 6 - p;
                want.push(value(at) * value(i * 7 + 3 + p * 5 + q));
            }
        }
        equal(&format!("step {i}"), &y, &want);
        Ok(())
    };
    // Which starts are multiples of four forms at most eight patterns, and all others are one.
    let [plans, _, _, pipelines] = counts(&device, 2, 0..100, 40, step)?;
    assert!(plans <= 10 && pipelines == 0, "{plans} plans, {pipelines} pipelines");
    Ok(())
}

#[test]
fn rolls_pads_and_single_elements_take_one_plan() -> tf::Result<()> {
    let device = device();
    let host = ramp(48);
    let x = device.scope(|| Tensor::from_slice(&host, [48]))?;
    let step = |i: usize| {
        let rolled = x.roll(&[i as i64], 0)?;
        let want: Vec<f32> = (0..48).map(|k| host[(k + 48 - i % 48) % 48]).collect();
        equal(&format!("rolled by {i}"), &rolled, &want);
        let at = x.i(i)?.multiply(3.0)?;
        equal(&format!("element {i}"), &at, &[host[i] * 3.0]);
        let padded = x.pad(&[(i, 50 - i)])?.add(1.0)?;
        let place = |k: usize| k.checked_sub(i).filter(|k| *k < 48);
        let want: Vec<f32> = (0..98).map(|k| place(k).map_or(1.0, |k| host[k] + 1.0)).collect();
        equal(&format!("padded by {i}"), &padded, &want);
        Ok(())
    };
    let [plans, ..] = counts(&device, 2, 1..48, 1, step)?;
    assert!(plans <= 5, "{plans} plans");
    Ok(())
}

#[test]
fn gradients_of_moving_views_take_one_plan() -> tf::Result<()> {
    let device = device();
    let host = ramp(60);
    let x = device.scope(|| Tensor::from_slice(&host, [12, 5]))?;
    let step = |i: usize| {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let y = x.slice(&[i % 9, 1], &[3, 3])?;
        let z = x.roll(&[1 + i as i64 % 11], 0)?.slice(&[0, i % 3], &[3, 3])?;
        let padded = y.multiply(&z)?.pad(&[(i % 4, 4 - i % 4), (0, 0)])?;
        let loss = padded.multiply(&padded)?.reduce_sum(())?;
        let gradient = tape.required_gradient(&loss, &x)?;
        let mut want = vec![0.0f64; 60];
        for r in 0..3 {
            for c in 0..3 {
                let a = (i % 9 + r) * 5 + 1 + c;
                let b = (r + 12 - (1 + i % 11)) % 12 * 5 + i % 3 + c;
                let (u, v) = (f64::from(host[a]), f64::from(host[b]));
                want[a] += 2.0 * u * v * v;
                want[b] += 2.0 * u * u * v;
            }
        }
        let got: Vec<f32> = gradient.to_vec()?;
        for (k, (got, want)) in got.iter().zip(want).enumerate() {
            assert!((f64::from(*got) - want).abs() < 1e-4, "step {i}, {k}: {got}, not {want}");
        }
        Ok(())
    };
    let [_, _, plans, pipelines] = counts(&device, 2, 0..99, 60, step)?;
    assert_eq!([plans, pipelines], [0, 0]);
    Ok(())
}

/// A token's key is written into a buffer of fixed size, and the query attends to the written part.
#[test]
fn a_cache_of_fixed_size_takes_one_plan_for_all_tokens() -> tf::Result<()> {
    let device = device();
    let (most, width) = (64, 8);
    let host = ramp(most * width);
    let mut keys = device.scope(|| Tensor::zeros([most, width]))?;
    let all = device.scope(|| Tensor::from_slice(&host, [most, width]))?;
    let [_, _, plans, pipelines] = counts(&device, 1, 0..most, 4, |t| {
        let token = all.slice(&[t, 0], &[1, width as i64])?;
        keys = keys.add(&token.pad(&[(t, most - 1 - t), (0, 0)])?)?;
        let scores = token.matmul(&keys.transpose([1, 0])?)?;
        let known = tf::range(0, most as i32, 1)?.less_equal(t as i32)?;
        let scores = tf::where_(&known, &scores, &tf::constant(-1e9f32)?)?.softmax(1)?;
        let read: Vec<f32> = scores.matmul(&keys)?.to_vec()?;
        let row = |k: usize| host[k * width..][..width].iter().map(|v| f64::from(*v));
        let score = |k: usize| row(t).zip(row(k)).map(|(a, b)| a * b).sum::<f64>();
        let top = (0..=t).map(score).fold(f64::MIN, f64::max);
        let weights: Vec<f64> = (0..=t).map(|k| (score(k) - top).exp()).collect();
        let sum: f64 = weights.iter().sum();
        for (c, got) in read.iter().enumerate() {
            let want: f64 =
                (0..=t).map(|k| weights[k] / sum * f64::from(host[k * width + c])).sum();
            assert!((f64::from(*got) - want).abs() < 1e-5, "token {t}: {got}, not {want}");
        }
        Ok(())
    })?;
    assert_eq!([plans, pipelines], [0, 0], "after four tokens");
    Ok(())
}

#[test]
fn equal_offsets_are_computed_once_only_where_they_are_equal() -> tf::Result<()> {
    let device = device();
    let host = ramp(64);
    let x = device.scope(|| Tensor::from_slice(&host, [8, 8]))?;
    for (a, b) in [(1, 1), (1, 2), (5, 5), (4, 0), (0, 4), (3, 3), (2, 7)] {
        let y = device.scope(|| x.i(a)?.subtract(&x.i(b)?))?;
        let want: Vec<f32> = (0..8).map(|k| host[a * 8 + k] - host[b * 8 + k]).collect();
        equal(&format!("rows {a} and {b}"), &y, &want);
    }
    Ok(())
}

#[test]
fn a_slice_at_the_beginning_may_not_be_overwritten_by_its_reader() -> tf::Result<()> {
    // The first step reads the first half, where indices are unchanged; the plan also serves the other steps.
    let device = device();
    for i in 0..4 {
        let y = device.scope(|| {
            let x = Tensor::from_slice(&ramp(32), [32])?.add(0.5)?;
            let part = x.slice(&[i * 4], &[16])?;
            drop(x);
            part.multiply(2.0)
        })?;
        let want: Vec<f32> = ramp(32)[i * 4..][..16].iter().map(|v| (v + 0.5) * 2.0).collect();
        equal(&format!("from {}", i * 4), &y, &want);
    }
    Ok(())
}
