//! Programs that a planner once computed wrongly, shrunk as far as possible.

#![allow(clippy::unwrap_used)]

use ndarray::s;
use wgrad as tf;
use wgrad::{DType, Device, GradientTape, Tensor};

#[test]
fn a_view_that_is_held_with_another_reader_of_its_source() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let (scaled, slice) = {
            let values: Vec<f32> = (0..20).map(|i| i as f32 / 4.0 - 2.0).collect();
            let wide = Tensor::from_slice(&values, [1, 2, 10])?.relu()?.broadcast_to([4, 2, 10])?;
            (wide.divide(-0.25)?, wide.strided_slice(s![1..4;-2, 0..2, 2..5])?)
        };
        device.flush()?;
        let relu = |i: usize| (i as f32 / 4.0 - 2.0).max(0.0);
        let want: Vec<f32> = (0..80).map(|i| relu(i % 20) / -0.25).collect();
        assert_eq!(scaled.to_vec::<f32>()?, want);
        assert_eq!(slice.shape(), [2, 2, 3]);
        let want: Vec<f32> = (0..12).map(|i| relu(i / 3 % 2 * 10 + 2 + i % 3)).collect();
        assert_eq!(slice.to_vec::<f32>()?, want);
        Ok(())
    })
}

#[test]
fn the_gradient_of_a_softmax_that_is_read_backwards() -> tf::Result<()> {
    let run = |fusion: bool| -> tf::Result<Vec<f32>> {
        let device = Device::new()?;
        device.set_fusion(fusion);
        device.scope(|| {
            let (grads, loss) = {
                let x = tf::constant([-1.5, 0.25, -1.25])?;
                let tape = GradientTape::new();
                tape.watch(&x)?;
                let c = tf::constant([-1.5])?;
                let w = tf::constant([-1.5, 0.25, -1.25])?;
                let y = c.divide(x.softmax(0)?.reverse([0])?)?.multiply(&w)?;
                let (c, w) = (tf::constant(-1.5)?, tf::constant(0.5)?);
                tape.watch(&c)?;
                tape.watch(&w)?;
                let loss = c.add(y.reduce_sum([0])?)?.add(&w)?;
                (tape.gradient(&loss, [&x, &c, &w])?, loss)
            };
            device.flush()?;
            let mut values = loss.to_vec::<f32>()?;
            for grad in grads {
                values.extend(grad.unwrap().to_vec::<f32>()?);
            }
            Ok(values)
        })
    };
    let (fused, apart) = (run(true)?, run(false)?);
    assert_eq!(fused.len(), 6);
    for (fused, apart) in fused.iter().zip(&apart) {
        assert!((fused - apart).abs() <= 1e-5 * apart.abs().max(1.0), "{fused} and {apart}");
    }
    Ok(())
}

#[test]
fn a_range_of_one_next_to_columns() -> tf::Result<()> {
    for n in [8usize, 7] {
        let y = {
            let x = Tensor::from_slice(&vec![1f32; n], [n, 1])?;
            let ids = Tensor::from_slice(&vec![0i32; n], [n, 1])?;
            let hit = ids.equal(&tf::range(0, 1, 1)?)?.cast(DType::F32)?;
            x.subtract(&hit)?.multiply(0.125)?
        };
        assert_eq!(y.to_vec::<f32>()?, vec![0.0; n]);
    }
    Ok(())
}

/// Runs a program with one result in both modes.
fn fused_and_apart(program: impl Fn() -> tf::Result<Tensor>) -> tf::Result<(Vec<f32>, Vec<f32>)> {
    // Fused, unless the environment disables it.
    let (fused, apart) = (Device::new()?, Device::new()?);
    apart.set_fusion(false);
    let run = |device: &Device| device.scope(|| program()?.to_vec());
    Ok((run(&fused)?, run(&apart)?))
}

/// Each element of `got` is within `bound` of `want`.
#[track_caller]
fn near(what: &str, got: &[f32], want: &[f64], bound: f64) {
    assert_eq!(got.len(), want.len(), "{what}");
    for (i, (&got, &want)) in got.iter().zip(want).enumerate() {
        let off = (f64::from(got) - want).abs();
        assert!(off <= bound, "{what}: element {i} is {got}, not {want}");
    }
}

#[track_caller]
fn both_near(what: &str, (fused, apart): &(Vec<f32>, Vec<f32>), want: &[f64], bound: f64) {
    near(&format!("{what}, one by one"), apart, want, bound);
    near(&format!("{what}, fused"), fused, want, bound);
}

#[test]
fn the_mean_of_the_last_two_goes_to_two_thirds() -> tf::Result<()> {
    for turns in [260, 300, 1000] {
        let run = fused_and_apart(|| {
            let (mut a, mut b) = (tf::constant([0.0, 1.0])?, tf::constant([1.0, 4.0])?);
            for _ in 0..turns {
                let c = a.add(&b)?.multiply(0.5)?;
                a = b;
                b = c;
            }
            Ok(b)
        })?;
        let want = |mut a: f64, mut b: f64| {
            for _ in 0..turns {
                (a, b) = (b, (a + b) * 0.5);
            }
            b
        };
        // (a + 2 b) / 3: 2/3 and 3.
        let want = [want(0.0, 1.0), want(1.0, 4.0)];
        assert!((want[0] - 2.0 / 3.0).abs() < 1e-12 && (want[1] - 3.0).abs() < 1e-12);
        both_near(&format!("{turns} turns"), &run, &want, 2e-6);
    }
    Ok(())
}

#[test]
fn numbers_are_not_multiplied_with_each_other_across_a_chain() -> tf::Result<()> {
    // 1000^60 is infinite and 0.001^60 is 0, their product NaN; step by step nothing grows.
    for (up, down) in [(1000.0, 0.001), (1e20, 1e-20), (3e-19, 1.0 / 3e-19)] {
        let run = fused_and_apart(|| {
            let mut x = tf::constant([1.0, -2.5, 1e-3, 7e4])?;
            for _ in 0..60 {
                x = x.multiply(up)?.multiply(down)?;
            }
            Ok(x)
        })?;
        let (up, down) = (f64::from(up as f32), f64::from(down as f32));
        let whole = (up * down).powi(60);
        for (k, x) in [1.0, -2.5, f64::from(1e-3f32), 7e4].into_iter().enumerate() {
            let got = (vec![run.0[k]], vec![run.1[k]]);
            // 120 roundings of half a unit of 2^-23.
            both_near(&format!("{up} and {down}"), &got, &[x * whole], 1e-5 * x.abs());
        }
    }
    Ok(())
}

#[test]
fn inputs_are_not_multiplied_with_each_other_across_a_chain() -> tf::Result<()> {
    let run = fused_and_apart(|| {
        let mut x = tf::constant([1.0, -2.5, 0.75])?;
        let (up, down) = (tf::constant(1e5)?, tf::constant([1e-5, 1e-5, 1e-5])?);
        for _ in 0..60 {
            x = x.multiply(&up)?.multiply(&down)?;
        }
        Ok(x)
    })?;
    let whole = (1e5 * f64::from(1e-5f32)).powi(60);
    both_near("1e5 and 1e-5", &run, &[whole, -2.5 * whole, 0.75 * whole], 3e-5);
    Ok(())
}

#[test]
fn a_common_factor_is_not_taken_out_of_nested_sums() -> tf::Result<()> {
    // x u + y u, where (x + y) u is the same except for rounding, and u u u ... is 0.
    for turns in [60, 400] {
        let run = fused_and_apart(|| {
            let (mut x, mut y) = (tf::constant([1.0, -3.0])?, tf::constant([2.0, 0.5])?);
            let u = tf::constant(0.5)?;
            for _ in 0..turns {
                let z = x.multiply(&u)?.add(y.multiply(&u)?)?;
                x = y;
                y = z;
            }
            Ok(y)
        })?;
        both_near(&format!("{turns} turns"), &run, &[5.0 / 3.0, -2.0 / 3.0], 2e-6);
    }
    Ok(())
}

#[test]
fn what_is_added_and_taken_away_is_not_gathered() -> tf::Result<()> {
    // In each step x is near x and x + y near x + y; sums of several y are infinite or cancel x.
    for (x, y) in [(3e20, 1e20), (1e38, 2e38), (1e20, -3e20)] {
        let run = fused_and_apart(|| {
            let mut z = tf::constant([x as f32, -(x as f32)])?;
            let y = tf::constant([y as f32, -(y as f32)])?;
            for _ in 0..40 {
                z = z.add(&y)?.subtract(&y)?;
            }
            Ok(z)
        })?;
        // 80 roundings, each of half a unit of the largest value.
        let bound = 80.0 * 0.5 * 2f64.powi(-23) * (f64::abs(x) + f64::abs(y));
        let start = f64::from(x as f32);
        both_near(&format!("{x} and {y}"), &run, &[start, -start], bound);
    }
    // With numbers, first all of one sign.
    let run = fused_and_apart(|| {
        let mut z = tf::constant([1.0, -2.0])?;
        for _ in 0..60 {
            z = z.add(1e20)?.subtract(1e20)?;
        }
        Ok(z)
    })?;
    both_near("1e20", &run, &[0.0, 0.0], 1e13);
    Ok(())
}

#[test]
fn a_descent_of_many_turns_without_a_flush_or_a_read() -> tf::Result<()> {
    const TURNS: usize = 150;
    let starts: Vec<f32> = (0..12).map(|i| i as f32 * 0.5 - 3.0).collect();
    let targets: Vec<f32> = (0..12).map(|i| if i % 2 == 0 { 5.0 } else { -4.5 }).collect();
    let run = fused_and_apart(|| {
        let mut x = Tensor::from_slice(&starts, [3, 4])?;
        let target = Tensor::from_slice(&targets, [3, 4])?;
        for _ in 0..TURNS {
            let tape = GradientTape::new();
            tape.watch(&x)?;
            let d = x.subtract(&target)?.square()?;
            let far = d.sqrt()?.add(0.1)?.log()?.reduce_sum(())?;
            let y = far.add(d.reduce_mean(())?)?;
            let g = tape.required_gradient(&y, &x)?;
            x = x.subtract(g.multiply(1e-3)?)?;
        }
        Ok(x)
    })?;
    // The derivative: sign(x - t) / (|x - t| + 0.1) + 2 (x - t) / 12.
    let want: Vec<f64> = starts
        .iter()
        .zip(&targets)
        .map(|(&x, &target)| {
            let (mut x, target) = (f64::from(x), f64::from(target));
            for _ in 0..TURNS {
                let off = x - target;
                x -= 1e-3 * (off.signum() / (off.abs() + 0.1) + off / 6.0);
            }
            x
        })
        .collect();
    both_near("the descent", &run, &want, 5e-5);
    Ok(())
}

#[test]
fn a_window_in_rows_of_three_behind_a_product_in_rows_of_four() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let a = Tensor::from_slice(&[1.0, -2.0, 3.0], [1, 3])?;
        let b: Vec<f32> = (0..36).map(|i| (i % 7) as f32).collect();
        let b = Tensor::from_slice(&b, [3, 12])?;
        let z = Tensor::from_slice(&[10.0, 20.0, 30.0, 40.0, 50.0, 60.0], [3, 2])?;
        device.flush()?;
        let sum = a.matmul(&b)?.reshape([4, 3])?.add(z.pad(&[(1, 0), (0, 1)])?)?;
        let product = |j: usize| {
            let b = |k: usize| ((k * 12 + j) % 7) as f32;
            b(0) - 2.0 * b(1) + 3.0 * b(2)
        };
        let padded = [0.0, 0.0, 0.0, 10.0, 20.0, 0.0, 30.0, 40.0, 0.0, 50.0, 60.0, 0.0];
        let want: Vec<f32> = (0..12).map(|j| product(j) + padded[j]).collect();
        assert_eq!(sum.to_vec::<f32>()?, want);
        Ok(())
    })
}
