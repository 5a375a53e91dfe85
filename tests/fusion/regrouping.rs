//! Programs that compensate a rounding error: fused kernels compute the same bits as single ops, although WGSL lets a driver
//! regroup.

#![allow(clippy::unwrap_used)]

use wgrad as tf;
use wgrad::keras::layers::{Conv2D, Dense, Flatten, LayerNormalization, MaxPooling2D};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Layer, Sequential, TRAINING};
use wgrad::{DType, Device, Result, Tensor, Trackable};

/// Numbers of many magnitudes and both signs.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut random = fastrand::Rng::with_seed(seed);
    let size = |random: &mut fastrand::Rng| 10f32.powi(random.i32(-4..5));
    (0..count).map(|_| (random.f32() - 0.4) * size(&mut random)).collect()
}

fn vector(values: &[f32]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).unwrap()
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|x| if x.is_nan() { u32::MAX } else { x.to_bits() }).collect()
}

/// The results of `program`, which are the same in one kernel as with single ops. When fused, there are `kernels` kernels.
fn same(
    name: &str,
    kernels: usize,
    inputs: &[Vec<f32>],
    program: impl Fn(&[Tensor]) -> Result<Vec<Tensor>>,
) -> Vec<Vec<f32>> {
    let device = Device::new().unwrap();
    device.scope(|| {
        let inputs: Vec<Tensor> = inputs.iter().map(|values| vector(values)).collect();
        let run = || -> Vec<Vec<f32>> {
            let results = program(&inputs).unwrap();
            device.flush().unwrap();
            results.iter().map(|y| y.to_vec::<f32>().unwrap()).collect()
        };
        device.set_fusion(false);
        let single = run();
        device.set_fusion(true);
        // The first runs may use single ops.
        let mut fused = false;
        for _ in 0..100 {
            let results = program(&inputs).unwrap();
            device.flush().unwrap();
            drop(results);
            fused |= device.last_plan().unwrap().kernels().len() <= kernels;
            if fused {
                break;
            }
        }
        assert!(fused, "{name} is not fused: {}", device.last_plan().unwrap());
        let fused = run();
        for (k, (fused, single)) in fused.iter().zip(&single).enumerate() {
            let differ = bits(fused).iter().zip(bits(single)).position(|(a, b)| *a != b);
            let at = differ.map(|i| (i, fused[i], single[i]));
            assert_eq!(
                at,
                None,
                "{name}, result {k}: fused and single\n{}",
                device.last_plan().unwrap().wgsl()
            );
        }
        single
    })
}

#[test]
fn errors_of_sums() {
    let (x, y) = (numbers(1000, 1), numbers(1000, 2));
    let on_the_host = |x: f32, y: f32| {
        let s = x + y;
        let b = s - x;
        (x - (s - b)) + (y - b)
    };
    let exact: Vec<f32> = x.iter().zip(&y).map(|(&x, &y)| on_the_host(x, y)).collect();
    assert!(exact.iter().filter(|e| **e != 0.0).count() > 500);
    // Knuth's two-sum, for any order of magnitudes.
    let results = same("two-sum", 1, &[x.clone(), y.clone()], |v| {
        let (x, y) = (&v[0], &v[1]);
        let s = x + y;
        let b = &s - x;
        let e = (x - (&s - &b)) + (y - &b);
        Ok(vec![s, e])
    });
    assert_eq!(results[1], exact);
    // Dekker's, which requires that the first is larger.
    let results = same("fast two-sum", 1, &[x, y], |v| {
        let larger = tf::where_(&v[0].abs()?.greater_equal(v[1].abs()?)?, &v[0], &v[1])?;
        let smaller = tf::where_(&v[0].abs()?.greater_equal(v[1].abs()?)?, &v[1], &v[0])?;
        let s = &larger + &smaller;
        Ok(vec![&smaller - (&s - &larger)])
    });
    assert_eq!(results[0], exact);
}

#[test]
fn sums_that_correct_themselves() {
    let inputs: Vec<Vec<f32>> = (0..12).map(|seed| numbers(500, seed)).collect();
    let single = same("Kahan's sum", 2, &inputs, |v| {
        let (mut sum, mut lost) = (v[0].zeros_like()?, v[0].zeros_like()?);
        for x in v {
            let y = x - &lost;
            let t = &sum + &y;
            lost = (&t - &sum) - &y;
            sum = t;
        }
        Ok(vec![sum, lost])
    });
    for i in 0..500 {
        let exact: f64 = inputs.iter().map(|x| f64::from(x[i])).sum();
        let size: f64 = inputs.iter().map(|x| f64::from(x[i].abs())).sum();
        // Added sequentially, the sums have up to twelve times the error.
        assert!((f64::from(single[0][i]) - exact).abs() <= 1.3e-7 * size);
    }
    // A thousand iterations of a loop in one kernel.
    let x = vec![numbers(64, 3)];
    same("Kahan's sum in a loop", 2, &x, |v| {
        let (mut sum, mut lost) = (v[0].zeros_like()?, v[0].zeros_like()?);
        for _ in 0..1000 {
            let y = &v[0] - &lost;
            let t = &sum + &y;
            lost = (&t - &sum) - &y;
            sum = t;
        }
        Ok(vec![sum, lost])
    });
    same("Neumaier's sum", 3, &inputs, |v| {
        let (mut sum, mut lost) = (v[0].clone(), v[0].zeros_like()?);
        for x in &v[1..6] {
            let t = &sum + x;
            let first = (&sum - &t) + x;
            let second = (x - &t) + &sum;
            lost = lost + tf::where_(&sum.abs()?.greater_equal(x.abs()?)?, &first, &second)?;
            sum = t;
        }
        Ok(vec![sum + lost])
    });
}

#[test]
fn products_in_two_parts() {
    let split = |x: &Tensor| -> (Tensor, Tensor) {
        let c = x * 4097.0;
        let high = &c - (&c - x);
        let low = x - &high;
        (high, low)
    };
    let inputs: Vec<Vec<f32>> = (0..4).map(|seed| numbers(500, 20 + seed)).collect();
    let single = same("a product's error", 1, &inputs[..2], |v| {
        let (p, (ah, al), (bh, bl)) = (&v[0] * &v[1], split(&v[0]), split(&v[1]));
        let e = (((&ah * &bh) - &p) + (&ah * &bl)) + (&al * &bh) + (&al * &bl);
        Ok(vec![p, e])
    });
    for i in 0..500 {
        let exact = f64::from(inputs[0][i]) * f64::from(inputs[1][i]);
        let own = f64::from(single[0][i]) + f64::from(single[1][i]);
        assert!((own - exact).abs() <= 1e-13 * exact.abs() + 1e-44, "{exact} {own}");
    }
    same("a compensated dot product", 4, &inputs, |v| {
        let two = |a: &Tensor, b: &Tensor| {
            let (p, (ah, al), (bh, bl)) = (a * b, split(a), split(b));
            let e = (((&ah * &bh) - &p) + (&ah * &bl)) + (&al * &bh) + (&al * &bl);
            (p, e)
        };
        let ((p, e), (q, f)) = (two(&v[0], &v[1]), two(&v[2], &v[3]));
        let s = &p + &q;
        let b = &s - &p;
        let lost = (&p - (&s - &b)) + (&q - &b);
        Ok(vec![s + (e + f + lost)])
    });
}

#[test]
fn functions_by_tricks_that_need_a_rounding() {
    let x: Vec<f32> = (0..1000).map(|i| 1e-8 * 1.02f32.powi(i)).collect();
    let single = same("log1p by u - 1", 1, std::slice::from_ref(&x), |v| {
        let u = &v[0] + 1.0;
        let one = u.equal(1.0)?;
        Ok(vec![tf::where_(&one, &v[0], &(u.log()? * &v[0] / (&u - 1.0)))?])
    });
    for (x, y) in x.iter().zip(&single[0]) {
        let exact = f64::from(*x).ln_1p();
        assert!((f64::from(*y) - exact).abs() <= 4e-7 * exact, "{x}: {y} is not {exact}");
    }
    same("expm1 by log(u)", 1, &[numbers(500, 5)], |v| {
        let u = (&v[0] * 1e-5).exp()?;
        Ok(vec![(&u - 1.0) * &v[0] / u.log()?])
    });
    // The nearest integer.
    let x: Vec<f32> = numbers(500, 6);
    let single = same("rounding by 1.5 * 2^23", 1, std::slice::from_ref(&x), |v| {
        Ok(vec![(&v[0] + 12_582_912.0) - 12_582_912.0])
    });
    let exact: Vec<f32> = x.iter().map(|x| (x + 12_582_912.0) - 12_582_912.0).collect();
    assert_eq!(single[0], exact);
}

#[test]
fn what_is_taken_back_at_once() {
    let inputs: Vec<Vec<f32>> = (0..3).map(|seed| numbers(500, 40 + seed)).collect();
    let all = |v: &[Tensor]| -> Result<Vec<(&'static str, Tensor)>> {
        let (x, y, z) = (&v[0], &v[1], &v[2]);
        let s = x + y;
        Ok(vec![
            ("(x + c) - c", (x + 1e8) - 1e8),
            ("(x - c) + c", (x - 1e8) + 1e8),
            ("c - (c - x)", 1e8 - (1e8 - x)),
            ("(x + y) - x", &s - x),
            ("x - (x + y)", x - &s),
            ("(x + y + z) - x - y", &s + z - x - y),
            ("(x + y) + (z - (x + y))", &s + (z - &s)),
            ("-(x + y) + y", -&s + y),
            ("(x + y) + -y", &s + -y),
            ("(x + y) * z - y * z", &s * z - y * z),
            ("x * y + x * (z - y)", x * y + x * (z - y)),
            ("(x + y) / z - y / z", &s / z - y / z),
            ("x * y / y", x * y / y),
            ("x / y * y", x / y * y),
            ("x * (1 / x)", x * x.reciprocal()?),
            ("1 / (1 / x)", x.reciprocal()?.reciprocal()?),
            ("1 / rsqrt(x^2)", x.square()?.rsqrt()?.reciprocal()?),
            ("x * y / (y * z)", x * y / (y * z)),
            ("divide_no_nan(x * y, y)", (x * y).divide_no_nan(y)?),
            ("floordiv(x * y, y)", (x * y).floordiv(y)?),
            ("squared_difference(x + y, y)", s.squared_difference(y)?),
            ("x + y > x", s.greater(x)?.cast(DType::F32)?),
            ("x + y == x", s.equal(x)?.cast(DType::F32)?),
            ("square(sqrt(x))", x.abs()?.sqrt()?.square()?),
            ("sqrt(square(x))", x.square()?.sqrt()?),
            ("log(exp(x))", (x * 1e-4).exp()?.log()?),
            ("x - x", x - x),
            ("y / (x - x)", y / (x - x)),
            ("max(x + y, x) - y", s.maximum(x)? - y),
            ("abs(x + y) - y", s.abs()? - y),
            ("2 x - x", x * 2.0 - x),
        ])
    };
    let names: Vec<&str> = {
        let v: Vec<Tensor> = inputs.iter().map(|values| vector(values)).collect();
        all(&v).unwrap().into_iter().map(|(name, _)| name).collect()
    };
    for (k, name) in names.into_iter().enumerate() {
        same(name, 1, &inputs, |v| Ok(vec![all(v)?.swap_remove(k).1]));
    }
}

#[test]
fn in_kernels_of_all_kinds() {
    let inputs = vec![numbers(64 * 24, 50), numbers(24, 51), numbers(24 * 24, 52)];
    let shaped = |v: &[Tensor]| -> Result<(Tensor, Tensor, Tensor)> {
        Ok((v[0].reshape([64, 24])?, v[1].clone(), v[2].reshape([24, 24])?))
    };
    same("before a fold", 2, &inputs, |v| {
        let (x, row, _) = shaped(v)?;
        let s = &x + &row;
        Ok(vec![(&s - &x - &row).abs()?.reduce_max(1)?])
    });
    same("after a fold", 2, &inputs, |v| {
        let (x, ..) = shaped(v)?;
        let max = x.reduce_max(tf::Axes::from(1).keepdims(true))?;
        Ok(vec![(&x + &max) - &max])
    });
    same("after a product", 2, &inputs, |v| {
        let (x, row, w) = shaped(v)?;
        Ok(vec![(x.matmul(&w)? + &row) - &row])
    });
    same("with a broadcast", 2, &inputs, |v| {
        let (x, row, _) = shaped(v)?;
        Ok(vec![(&x + &row) - &row, (&x * &row) / &row])
    });
    same("along another axis", 3, &inputs, |v| {
        let (x, row, w) = shaped(v)?;
        let t = w.transpose([1, 0])?;
        let s = (&t + &row) * 2.0;
        Ok(vec![s - &t - &row - &row, x.reduce_sum(0)? - &row])
    });
}

#[test]
fn infinities_and_nan() {
    let special = vec![0.0, -0.0, 1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 3e38, 1e-45];
    let inputs = [special.clone(), special.iter().rev().copied().collect()];
    let single = same("x - x and x / x", 1, &inputs, |v| {
        let (x, y) = (&v[0], &v[1]);
        Ok(vec![x - x, x / x, x * 0.0, y / (x - x), (x + y) - y, x * y / y, x / y * y])
    });
    let of = |f: fn(f32, f32) -> f32| -> Vec<f32> {
        inputs[0].iter().zip(&inputs[1]).map(|(&x, &y)| f(x, y)).collect()
    };
    // Numbers below the smallest normal one may count as 0.
    let normal = |values: &[f32]| bits(&values[..7]);
    assert_eq!(normal(&single[0]), normal(&of(|x, _| x - x)));
    assert_eq!(normal(&single[1]), normal(&of(|x, _| x / x)));
    assert_eq!(normal(&single[2])[3..6], [u32::MAX; 3]);
    assert_eq!(normal(&single[4])[1..], normal(&of(|x, y| (x + y) - y))[1..]);
    let single = same("comparisons with itself", 1, &inputs, |v| {
        let x = &v[0];
        let all = [x.equal(x)?, x.not_equal(x)?, x.less(x)?, x.less_equal(x)?];
        all.iter().map(|y| y.cast(DType::F32)).collect()
    });
    let nan = |yes: f32, no: f32| -> Vec<f32> {
        inputs[0].iter().map(|x| if x.is_nan() { yes } else { no }).collect()
    };
    assert_eq!(single, [nan(0.0, 1.0), nan(1.0, 0.0), nan(0.0, 0.0), nan(0.0, 1.0)]);
}

#[test]
fn random_programs_that_take_back() {
    let scale = std::env::var("WGRAD_PROPERTY_CASES").ok().and_then(|n| n.parse().ok());
    let count = (60.0 * scale.unwrap_or(1.0)) as u64;
    let inputs: Vec<Vec<f32>> = (0..2).map(|seed| numbers(128, 70 + seed)).collect();
    for seed in 0..count {
        same(&format!("program {seed}"), 1, &inputs, |v| {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut all = vec![v[0].clone(), v[1].clone(), Tensor::full([1], 1e4f32)?];
            for _ in 0..random.usize(3..9) {
                // New values are mostly computed from recent ones.
                let from = all.len().saturating_sub(3);
                let a = all[random.usize(from..all.len())].clone();
                let b = all[random.usize(0..all.len())].clone();
                let (a, b) = if random.bool() { (a, b) } else { (b, a) };
                all.push(match random.u8(0..9) {
                    0..3 => a + b,
                    3..6 => a - b,
                    6 => a * b,
                    7 => a / b,
                    _ => -a,
                });
            }
            Ok(all.split_off(all.len() - 1))
        });
    }
}

/// Models' kernels compensate nothing, so they have almost nothing to protect.
#[test]
fn kernels_of_models_stay_as_they_are() -> Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let dense = |units| Dense::new(units).activation(Activation::Gelu);
        let model = Sequential::new()
            .add(Conv2D::new(4, [3, 3]).activation(Activation::Relu))
            .add(MaxPooling2D::new([2, 2]))
            .add(Flatten::new())
            .add(dense(20))
            .add(LayerNormalization::new())
            .add(dense(16).activation(Activation::Tanh))
            .add(Dense::new(10));
        let adam = Adam::new(1e-3);
        let x = Tensor::from_slice(&numbers(8 * 100, 1), [8, 10, 10, 1])? * 1e-4;
        let y = Tensor::from_slice(&[1, 2, 3, 4, 5, 6, 7, 8], [8])?;
        for _ in 0..3 {
            let tape = tf::GradientTape::new();
            let loss =
                tf::sparse_softmax_cross_entropy_with_logits(&y, &model.call(&x, TRAINING)?)?
                    .reduce_mean(())?;
            let variables = model.trainable_variables();
            let grads = tape.gradient(&loss, &variables)?;
            adam.apply_gradients(&grads, &variables)?;
            device.flush()?;
        }
        let plan = device.last_plan().unwrap();
        assert!(plan.kernels().len() > 10, "{plan}");
        for kernel in plan.kernels() {
            // A sum in a reduction is protected, and so is the end of a chain of 16 ops; there may be two parallel chains.
            let (hidden, ops) = (kernel.wgsl.matches("zero)").count(), kernel.ops.len());
            let folds = kernel.ops.iter().filter(|op| **op == "Sum").count();
            let most = folds + if ops < 16 { 0 } else { 2 };
            assert!(hidden <= most, "{hidden} values of {ops} are hidden:\n{}", kernel.wgsl);
        }
        Ok(())
    })
}
