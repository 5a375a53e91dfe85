//! Loop iterations that one kernel executes: how many kernels there are, and their results.

#![allow(clippy::unwrap_used)]

use crate::support::child;

use wgrad as tf;
use wgrad::interop::DeviceExt;
use wgrad::{DType, Device, Tensor};

fn device() -> Device {
    let device = Device::new().unwrap();
    device.set_fusion(true);
    device
}

/// The number of kernels of the plan that computes the result of `f`, and the values.
fn run(device: &Device, f: impl FnOnce() -> tf::Result<Vec<Tensor>>) -> (usize, Vec<Vec<f32>>) {
    device.synchronize().unwrap();
    let tensors = device.scope(f).unwrap();
    device.flush().unwrap();
    let kernels = device.last_plan().unwrap().kernels().len();
    let read = |x: &Tensor| x.cast(DType::F32).unwrap().to_vec::<f32>().unwrap();
    (kernels, tensors.iter().map(read).collect())
}

/// The same with fusion and without; the results must agree except for rounding.
#[track_caller]
fn agrees(f: impl Fn() -> tf::Result<Vec<Tensor>>) -> usize {
    let (fused, apart) = (device(), Device::new().unwrap());
    apart.set_fusion(false);
    let (kernels, got) = run(&fused, &f);
    let (_, want) = run(&apart, &f);
    assert_eq!(got.len(), want.len());
    for (got, want) in got.iter().zip(&want) {
        assert_eq!(got.len(), want.len());
        for (g, w) in got.iter().zip(want) {
            let same = (g - w).abs() <= 1e-5 * w.abs().max(1.0) || (g.is_nan() && w.is_nan());
            assert!(same || g == w, "{g} and {w}");
        }
    }
    kernels
}

fn ramp(n: usize) -> tf::Result<Tensor> {
    let values: Vec<f32> = (0..n).map(|i| (i % 17) as f32 / 8.0 - 1.0).collect();
    Tensor::from_slice(&values, [n])
}

#[test]
fn a_thousand_additions_are_one_small_kernel() {
    let device = device();
    let add = |turns: usize| {
        run(&device, || {
            let (mut x, y) = (Tensor::zeros([5])?, tf::constant([0.5, 1.0, 2.0, 3.0, 4.0])?);
            for _ in 0..turns {
                x = x.add(&y)?;
            }
            Ok(vec![x])
        })
    };
    let (kernels, values) = add(1000);
    assert!(kernels <= 2, "{kernels}");
    assert_eq!(values, [[500.0, 1000.0, 2000.0, 3000.0, 4000.0]]);
    let pipelines = device.stats().pipelines;
    let longest = device.last_plan().unwrap().kernels().iter().map(|k| k.wgsl.len()).max();
    assert!(longest.unwrap() < 2000, "{longest:?}");
    assert_eq!(add(700).1, [[350.0, 700.0, 1400.0, 2100.0, 2800.0]]);
    assert_eq!(device.stats().pipelines, pipelines, "the number of turns is a parameter");
}

#[test]
fn what_each_turn_hands_on_may_be_older_than_the_last() {
    // x[t] = (x[t-1] + x[t-3]) / 2; the last three are wanted.
    let kernels = agrees(|| {
        let mut x = [ramp(37)?, ramp(37)?.square()?, ramp(37)?.abs()?];
        for _ in 0..60 {
            let next = x[2].add(&x[0])?.multiply(0.5)?;
            x = [x[1].clone(), x[2].clone(), next];
        }
        Ok(x.to_vec())
    });
    assert!(kernels <= 6, "{kernels}");
}

/// `x[t]` from the previous five and two inputs; the last five are wanted.
fn long_memory() -> tf::Result<Vec<Tensor>> {
    let (a, b) = (ramp(29)?.multiply(0.125)?, ramp(29)?.square()?.multiply(0.0625)?);
    let mut x: Vec<Tensor> =
        (1..6).map(|k| ramp(29)?.multiply(0.2 * k as f32)).collect::<Result<_, _>>()?;
    for _ in 0..40 {
        let sum = x[0].add(&x[1])?.add(&x[2])?.add(&x[3])?.add(&x[4])?;
        x.push(sum.multiply(&a)?.add(&b)?);
        x.remove(0);
    }
    Ok(x)
}

#[test]
fn a_loop_hands_on_no_more_than_can_be_bound() {
    agrees(long_memory);
    let output = child::command(module_path!(), "long_memory_with_eight_bindings")
        .env("WGRAD_PORTABLE", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Seven values are read and five stored.
#[test]
#[ignore = "run by a_loop_hands_on_no_more_than_can_be_bound"]
fn long_memory_with_eight_bindings() {
    agrees(long_memory);
    let device = device();
    let _held = device.scope(long_memory).unwrap();
    device.flush().unwrap();
    for kernel in device.last_plan().unwrap().kernels() {
        let bindings = kernel.wgsl.matches("var<storage").count();
        assert!(bindings <= 8, "{} has {bindings} bindings", kernel.label);
    }
}

#[test]
fn loops_beyond_what_one_kernel_goes_through() -> tf::Result<()> {
    let device = device();
    device.set_stream_limit(Some(usize::MAX));
    device.scope(|| {
        // Eight parallel loops with more iterations in total than a driver permits per invocation.
        let mut states: Vec<Tensor> =
            (0..8).map(|k| tf::constant([k as f32, -1.0])).collect::<Result<_, _>>()?;
        let step = tf::constant([1.0, 0.5])?;
        for state in &mut states {
            for _ in 0..10_000 {
                *state = state.add(&step)?;
            }
        }
        for (k, state) in states.iter().enumerate() {
            assert_eq!(state.to_vec::<f32>()?, [10_000.0 + k as f32, 4999.0]);
        }
        Ok(())
    })
}

#[test]
fn values_of_turns_that_somebody_holds_are_stored() {
    agrees(|| {
        let (mut x, y) = (ramp(21)?, ramp(21)?.multiply(0.25)?);
        let mut held = Vec::new();
        for turn in 0..90 {
            x = x.multiply(0.75)?.add(&y)?;
            // In the middle, two adjacent ones, and the last but one.
            if [40, 41, 88].contains(&turn) {
                held.push(x.clone());
            }
        }
        held.push(x);
        Ok(held)
    });
}

#[test]
fn states_keep_their_dtype_from_turn_to_turn() {
    agrees(|| {
        let mut x = Tensor::from_slice(&[1i32, -7, 250, 99, 3], [5])?;
        let y = Tensor::from_slice(&[3i32, 11, -200, 1, 2], [5])?;
        for _ in 0..50 {
            x = x.multiply(&y)?.add(&x)?;
        }
        // Wraps, and is exact in f32 after the range is reduced.
        Ok(vec![x.floormod(1000)?])
    });
    agrees(|| {
        let mut on = Tensor::from_slice(&[true, false, true, true, false], [5])?;
        let mask = Tensor::from_slice(&[true, true, false, true, false], [5])?;
        for _ in 0..33 {
            on = on.logical_xor(&mask)?.logical_or(mask.logical_not()?)?;
        }
        Ok(vec![on])
    });
    let features = Device::new().unwrap().wgpu().0.features();
    if features.contains(wgpu::Features::SHADER_F16) {
        agrees(|| {
            let mut x = ramp(11)?.cast(DType::F16)?;
            let y = ramp(11)?.multiply(0.125)?.cast(DType::F16)?;
            for _ in 0..64 {
                x = x.multiply(&y)?.add(&y)?;
            }
            Ok(vec![x])
        });
    }
}

#[test]
fn invariants_may_be_views_and_states_may_not() {
    // A broadcast row and a transposed matrix are read in the same way in each iteration.
    let kernels = agrees(|| {
        let (mut x, row) = (ramp(35)?.reshape([5, 7])?, ramp(7)?);
        let turned = ramp(35)?.reshape([7, 5])?.transpose([1, 0])?;
        for _ in 0..40 {
            x = x.multiply(0.5)?.add(&row)?.subtract(&turned)?;
        }
        Ok(vec![x])
    });
    assert!(kernels <= 3, "{kernels}");
    // A transposed state belongs to another thread: it goes through memory in each iteration.
    agrees(|| {
        let mut x = ramp(36)?.reshape([6, 6])?;
        for _ in 0..40 {
            x = x.transpose([1, 0])?.multiply(0.5)?.add(1.0)?;
        }
        Ok(vec![x])
    });
    // So does a shorter row that is broadcast again in each iteration.
    agrees(|| {
        let (mut x, mut row) = (ramp(35)?.reshape([5, 7])?, ramp(7)?);
        for _ in 0..40 {
            row = row.multiply(0.5)?.add(1.0)?;
            x = x.multiply(0.25)?.add(&row)?;
        }
        Ok(vec![x, row])
    });
}

#[test]
fn numbers_that_change_from_turn_to_turn_are_distinguished() {
    agrees(|| {
        let mut x = ramp(9)?;
        for turn in 0..50 {
            x = x.multiply(0.5)?.add(turn as f32)?;
        }
        Ok(vec![x])
    });
    // The same in all iterations except one.
    agrees(|| {
        let mut x = ramp(9)?;
        for turn in 0..50 {
            x = x.multiply(if turn == 31 { 0.25 } else { 0.5 })?.add(1.0)?;
        }
        Ok(vec![x])
    });
}

#[test]
fn loops_inside_loops_and_side_by_side() {
    agrees(|| {
        let (mut x, mut y) = (ramp(12)?, ramp(20)?);
        for _ in 0..12 {
            for _ in 0..9 {
                x = x.multiply(0.5)?.add(0.25)?;
            }
            x = x.tanh()?;
            for _ in 0..7 {
                y = y.maximum(0.1)?.multiply(0.9)?;
            }
        }
        Ok(vec![x, y])
    });
    agrees(|| {
        let (mut x, mut y) = (ramp(12)?, ramp(12)?.square()?);
        for _ in 0..70 {
            let z = x.multiply(&y)?.tanh()?;
            (x, y) = (y.add(&z)?.multiply(0.5)?, x.subtract(&z)?.multiply(0.5)?);
        }
        Ok(vec![x, y])
    });
}

#[test]
fn gradients_go_back_through_a_rolled_loop() -> tf::Result<()> {
    // y = x (1/2)^n + sum of (1/2)^k: dy/dx = (1/2)^n.
    let device = device();
    device.scope(|| {
        let x = tf::constant([3.0, -2.0, 8.0])?;
        let tape = tf::GradientTape::new();
        tape.watch(&x)?;
        let mut y = x.clone();
        for _ in 0..40 {
            y = y.multiply(0.5)?.add(1.0)?;
        }
        let gradient = tape.required_gradient(&y, &x)?;
        let want = 0.5f32.powi(40);
        assert_eq!(gradient.to_vec::<f32>()?, [want; 3]);
        assert!(device.last_plan().unwrap().kernels().len() <= 4);
        Ok(())
    })
}

#[test]
fn a_loop_of_ten_thousand_turns_stays_small() -> tf::Result<()> {
    let device = device();
    device.scope(|| {
        let mut x = tf::constant([1.0, -1.0])?;
        for _ in 0..10_000 {
            x = x.negative()?.multiply(0.999)?.add(0.001)?;
        }
        let values = x.to_vec::<f32>()?;
        // x = 0.001 - 0.999 x has its fixed point at 0.001 / 1.999.
        let fixed = 0.001 / 1.999;
        for (value, start) in values.iter().zip([1.0f64, -1.0]) {
            let want = fixed + (start - fixed) * 0.999f64.powi(10_000);
            assert!((f64::from(*value) - want).abs() < 1e-6, "{value} and {want}");
        }
        let stats = device.stats();
        assert!(stats.pipelines <= 8 && stats.plan_misses <= 4, "{stats:?}");
        Ok(())
    })
}

#[test]
fn a_few_light_turns_are_taken_for_no_loop() {
    for turns in 4..=8 {
        let (kernels, values) = run(&device(), || {
            let (mut x, y) = (Tensor::zeros([5])?, tf::constant([0.5, 1.0, 2.0, 3.0, 4.0])?);
            for _ in 0..turns {
                x = x.add(&y)?.abs()?;
            }
            Ok(vec![x])
        });
        assert_eq!(kernels, 1, "{turns} turns");
        assert_eq!(values[0][3], 3.0 * turns as f32);
    }
}
