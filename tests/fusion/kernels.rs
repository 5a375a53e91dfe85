//! Which ops share a kernel: counted in the plans that ran, whose values must still be right.

#![allow(clippy::unwrap_used)]

use wgrad as tf;
use wgrad::{Conv2dOptions, Device, Padding, Pool2dOptions, Tensor};

/// The number of kernels of the plan that computes the result of `f`, which is read.
fn kernels(
    device: &Device,
    f: impl FnOnce() -> tf::Result<Tensor>,
) -> tf::Result<(usize, Vec<f32>)> {
    device.synchronize()?;
    let values = f()?.to_vec::<f32>()?;
    let plan = device.last_plan().expect("the read has run one");
    Ok((plan.kernels().len(), values))
}

fn device() -> Device {
    let device = Device::new().unwrap();
    // The counts are those with fusion, whatever the environment sets.
    device.set_fusion(true);
    device
}

fn ramp(device: &Device, shape: impl Into<tf::Shape>) -> Tensor {
    let shape = shape.into();
    let values: Vec<f32> = (0..shape.elements()).map(|i| (i % 23) as f32 / 8.0 - 1.25).collect();
    device.scope(|| Tensor::from_slice(&values, shape)).unwrap()
}

/// The number of kernels of a small product and the ops after it: a processor would compile a shader for each of the following
/// values, and launches twice in less time.
fn of_little_product(device: &Device) -> usize {
    let processor = device.adapter().kind == tf::AdapterKind::Cpu;
    if processor && std::env::var_os("WGRAD_PORTABLE").is_none() { 2 } else { 1 }
}

#[test]
fn a_softmax_is_one_kernel() -> tf::Result<()> {
    let device = device();
    let x = ramp(&device, [6, 10]);
    let (count, values) = kernels(&device, || x.softmax(-1))?;
    assert_eq!(count, 1);
    for row in values.chunks(10) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-6, "{row:?}");
    }
    Ok(())
}

/// What a selection between new and old values leaves in memory, after the old tensor is gone, and whether only threads with new
/// values stored some.
fn updated(
    device: &Device,
    n: usize,
    new: impl FnOnce(&Tensor) -> tf::Result<Tensor>,
) -> tf::Result<(bool, Vec<f32>)> {
    let values: Vec<f32> = (0..n).map(|i| if i == 2 { f32::NAN } else { i as f32 }).collect();
    let mut x = device.scope(|| Tensor::from_slice(&values, [n]))?.add(0.0)?;
    let third: Vec<bool> = (0..n).map(|i| i % 3 == 0).collect();
    let third = device.scope(|| Tensor::from_slice(&third, [n]))?;
    device.synchronize()?;
    let fresh = new(&x)?;
    x = tf::where_(&third, &fresh, &x)?;
    drop(fresh);
    device.synchronize()?;
    let plan = device.last_plan().expect("synchronize has run one");
    let partial = plan.wgsl().contains("if (any(");
    Ok((partial, x.to_vec::<f32>()?))
}

#[test]
fn an_update_of_some_elements_touches_no_others() -> tf::Result<()> {
    let device = device();
    for n in [1, 7, 1000, 4099] {
        let (partial, values) = updated(&device, n, |x| x.zeros_like()?.subtract(5.0))?;
        assert!(partial, "{n}");
        for (i, value) in values.iter().enumerate() {
            match i {
                _ if i % 3 == 0 => assert_eq!(*value, -5.0, "{n}: {i}"),
                2 => assert!(value.is_nan()),
                _ => assert_eq!(*value, i as f32, "{n}: {i}"),
            }
        }
        // A new value that depends on the old one.
        let (_, values) = updated(&device, n, |x| x.multiply(2.0)?.add(1.0))?;
        for (i, value) in values.iter().enumerate().filter(|(i, _)| *i != 2) {
            let old = i as f32;
            assert_eq!(*value, if i % 3 == 0 { 2.0 * old + 1.0 } else { old }, "{n}: {i}");
        }
    }
    Ok(())
}

#[test]
fn the_statistics_of_a_layer_normalization_are_one_kernel() -> tf::Result<()> {
    let device = device();
    let x = ramp(&device, [5, 64]);
    let (count, values) = kernels(&device, || {
        let mean = x.reduce_mean(wgrad::Axes::from(-1).keepdims(true))?;
        let variance =
            x.squared_difference(&mean)?.reduce_mean(wgrad::Axes::from(-1).keepdims(true))?;
        x.subtract(&mean)?.divide(variance.add(1e-5)?.sqrt()?)
    })?;
    assert_eq!(count, 1);
    for row in values.chunks(64) {
        assert!(row.iter().sum::<f32>().abs() < 1e-4);
        assert!((row.iter().map(|v| v * v).sum::<f32>() / 64.0 - 1.0).abs() < 1e-3);
    }
    Ok(())
}

#[test]
fn a_mean_of_squares_and_a_logsumexp_are_one_kernel_each() -> tf::Result<()> {
    let device = device();
    let x = ramp(&device, [50, 7]);
    let (count, values) = kernels(&device, || x.square()?.reduce_mean(()))?;
    assert_eq!(count, 1);
    let expected = x.to_vec::<f32>()?.iter().map(|v| v * v).sum::<f32>() / 350.0;
    assert!((values[0] - expected).abs() < 1e-6);
    let (count, values) = kernels(&device, || x.reduce_logsumexp(-1))?;
    assert_eq!(count, 1);
    let row: f32 = x.to_vec::<f32>()?[..7].iter().map(|v| v.exp()).sum();
    assert!((values[0] - row.ln()).abs() < 1e-6);
    Ok(())
}

#[test]
fn bias_activation_and_residual_follow_a_product_in_its_kernel() -> tf::Result<()> {
    let device = device();
    let (x, w) = (ramp(&device, [9, 12]), ramp(&device, [12, 6]));
    let (bias, residual) = (ramp(&device, [6]), ramp(&device, [9, 6]));
    let all = || x.matmul(&w)?.add(&bias)?.relu()?.multiply(0.5)?.add(&residual);
    let (count, values) = kernels(&device, all)?;
    assert_eq!(count, of_little_product(&device));
    let (a, b) = (x.to_vec::<f32>()?, w.to_vec::<f32>()?);
    let (c, r) = (bias.to_vec::<f32>()?, residual.to_vec::<f32>()?);
    for (at, value) in values.iter().enumerate() {
        let (i, j) = (at / 6, at % 6);
        let sum: f32 = (0..12).map(|k| a[12 * i + k] * b[6 * k + j]).sum();
        let expected = (sum + c[j]).max(0.0) * 0.5 + r[at];
        assert!((value - expected).abs() < 1e-5, "[{i}, {j}]: {value} and {expected}");
    }
    Ok(())
}

#[test]
fn an_activation_follows_a_convolution_and_a_pooling_in_their_kernels() -> tf::Result<()> {
    let device = device();
    let (x, w) = (ramp(&device, [2, 6, 6, 4]), ramp(&device, [3, 3, 4, 8]));
    let same = Conv2dOptions::new().padding(Padding::Same);
    let (count, values) = kernels(&device, || x.conv2d(&w, same)?.relu())?;
    assert_eq!(count, of_little_product(&device));
    assert!(values.iter().all(|v| *v >= 0.0) && values.iter().any(|v| *v > 0.0));
    let (count, values) =
        kernels(&device, || x.max_pool2d([2, 2], Pool2dOptions::new())?.negative())?;
    assert_eq!(count, 1);
    assert_eq!(values.len(), 2 * 3 * 3 * 4);
    Ok(())
}

#[test]
fn views_are_no_kernels() -> tf::Result<()> {
    let device = device();
    let x = ramp(&device, [8, 12]);
    let (count, values) = kernels(&device, || {
        let turned = x.transpose([1, 0])?.slice(&[2, 1], &[4, 6])?.expand_dims(0)?;
        turned.broadcast_to([3, 4, 6])?.reverse([1])?.add(1.0)
    })?;
    assert_eq!(count, 1);
    let host = x.to_vec::<f32>()?;
    for (at, value) in values.iter().enumerate() {
        let (i, j) = ((at / 6) % 4, at % 6);
        assert_eq!(*value, host[12 * (j + 1) + 2 + (3 - i)] + 1.0);
    }
    Ok(())
}

#[test]
fn what_repeats_is_computed_once() -> tf::Result<()> {
    let device = device();
    let (x, w) = (ramp(&device, [5, 8]), ramp(&device, [8, 8]));
    // Two products of the same operands, two activations, one sum.
    let (count, values) = kernels(&device, || x.matmul(&w)?.tanh()?.add(x.matmul(&w)?.tanh()?))?;
    assert_eq!(count, of_little_product(&device));
    let once = x.matmul(&w)?.tanh()?.to_vec::<f32>()?;
    assert!(values.iter().zip(once).all(|(twice, once)| *twice == once + once));
    // Different numbers are not merged.
    let (_, values) = kernels(&device, || x.multiply(2.0)?.add(x.multiply(3.0)?))?;
    let host = x.to_vec::<f32>()?;
    assert!(values.iter().zip(host).all(|(v, x)| *v == x * 2.0 + x * 3.0));
    Ok(())
}

#[test]
fn a_thousand_dependent_adds_are_few_kernels() -> tf::Result<()> {
    let device = device();
    let b = ramp(&device, [16]);
    let (count, values) =
        kernels(&device, || (0..1000).try_fold(b.zeros_like()?, |x, _| x.add(&b)))?;
    assert!(count <= 2, "{count} kernels");
    let host = b.to_vec::<f32>()?;
    for (value, b) in values.iter().zip(host) {
        assert!((value - 1000.0 * b).abs() < 1e-2, "{value} and {}", 1000.0 * b);
    }
    Ok(())
}

#[test]
fn results_take_the_buffers_of_what_nobody_reads_again() -> tf::Result<()> {
    let device = device();
    let mut x = ramp(&device, [1 << 16]);
    for _ in 0..3 {
        x = x.multiply(0.5)?;
        device.flush()?;
    }
    let before = device.stats();
    for _ in 0..5 {
        x = x.multiply(0.5)?;
        device.flush()?;
        assert_eq!(device.last_plan().unwrap().buffer_bytes(), 0, "the run takes a buffer");
    }
    let after = device.stats();
    assert_eq!((after.buffers, after.live_bytes), (before.buffers, before.live_bytes));
    // A held value does not change.
    let held = x.clone();
    let was = held.to_vec::<f32>()?;
    x = x.add(1.0)?;
    device.flush()?;
    assert_eq!(held.to_vec::<f32>()?, was);
    assert!(x.to_vec::<f32>()?.iter().zip(was).all(|(new, old)| *new == old + 1.0));
    Ok(())
}

#[test]
fn values_that_never_live_together_share_their_place() -> tf::Result<()> {
    let device = device();
    let w = ramp(&device, [32, 32]).multiply(0.125)?;
    let x = ramp(&device, [32, 32]);
    device.flush()?;
    let bytes = 32 * 32 * 4;
    let chain = |n: usize| (0..n).try_fold(x.clone(), |x, _| x.matmul(&w));
    // A product is read while the next one is written; the third may reuse the memory of the first.
    for (products, between) in [(1, 0), (2, 1), (3, 2), (4, 2), (7, 2)] {
        let (count, values) = kernels(&device, || chain(products))?;
        assert_eq!((count, values.len()), (products, 32 * 32));
        assert_eq!(device.stats().arena_bytes, between * bytes, "{products} products");
        // The buffer for a plan's result does not count.
        assert_eq!(device.last_plan().unwrap().buffer_bytes(), (between + 1) * bytes);
    }
    // All of them are read later: they are results, and there are no intermediate values.
    let (a, b) = (x.matmul(&w)?, x.matmul(&w)?.matmul(&w)?);
    device.flush()?;
    assert_eq!(device.stats().arena_bytes, 0);
    assert_eq!(a.matmul(&w)?.to_vec::<f32>()?, b.to_vec::<f32>()?);
    Ok(())
}

#[test]
fn whole_vectors_are_read_as_such() -> tf::Result<()> {
    let device = device();
    // Whether any load in the kernels of `f` is split into elements.
    let takes_apart = |f: &dyn Fn() -> tf::Result<Tensor>| -> tf::Result<bool> {
        let (count, _) = kernels(&device, f)?;
        assert_eq!(count, 1);
        let plan = device.last_plan().unwrap();
        let wgsl = plan.kernels()[0].wgsl.to_string();
        Ok(wgsl.lines().any(|line| line.starts_with("fn ") && line.contains("get")))
    };
    // On a processor, a kernel with little work uses the same kind of loads for all inputs.
    let rows = 3000;
    let (x, row) = (ramp(&device, [rows, 16]), ramp(&device, [16]));
    assert!(!takes_apart(&|| x.add(&row))?);
    let (odd, row) = (ramp(&device, [rows, 15]), ramp(&device, [15]));
    assert!(takes_apart(&|| odd.add(&row))?);
    // Also from the middle of rows, if it starts at a multiple of four.
    let wide = ramp(&device, [rows, 24]);
    assert!(!takes_apart(&|| x.add(wide.slice(&[0, 4], &[rows as i64, 16])?))?);
    assert!(takes_apart(&|| x.add(wide.slice(&[0, 3], &[rows as i64, 16])?))?);
    Ok(())
}

#[test]
fn rows_of_a_wider_matrix_are_not_one_row() -> tf::Result<()> {
    let device = device();
    // The distance to the next row is this row's length plus one.
    let x =
        device.scope(|| tf::constant([[1.0f32, 2.0, 9.0], [3.0, 4.0, 9.0], [5.0, 6.0, 9.0]]))?;
    let (count, values) = kernels(&device, || x.slice(&[0, 0], &[3, 2])?.square())?;
    assert_eq!((count, values), (1, vec![1.0, 4.0, 9.0, 16.0, 25.0, 36.0]));
    Ok(())
}

#[test]
fn two_long_walks_follow_each_other_in_a_kernel() -> tf::Result<()> {
    for shape in [[64, 4096], [4096, 64]] {
        let x: Vec<f32> = (0..64 * 4096).map(|i| (i % 7) as f32).collect();
        let x = Tensor::from_slice(&x, shape)?;
        let axis = i64::from(shape[1] == 4096);
        let y = x
            .subtract(x.reduce_max(wgrad::Axes::from(axis).keepdims(true))?)?
            .reduce_sum(axis)?
            .to_vec::<f32>()?;
        let (row, step) = if axis == 1 { (4096, 1) } else { (1, 64) };
        for (i, y) in y.into_iter().enumerate() {
            let want: f32 = (0..4096).map(|k| ((i * row + k * step) % 7) as f32 - 6.0).sum();
            assert_eq!(y, want, "row {i} of {shape:?}");
        }
    }
    Ok(())
}

#[test]
fn sums_of_what_reads_one_value_are_one_kernel() -> tf::Result<()> {
    let device = device();
    let (x, y) = (ramp(&device, [300, 40]), ramp(&device, [300, 40]));
    let y = (y + 0.5).tanh()?;
    device.synchronize()?;
    let (plain, weighted, squares) =
        (x.reduce_sum(0)?, x.multiply(&y)?.reduce_sum(0)?, x.square()?.reduce_sum(0)?);
    device.synchronize()?;
    assert_eq!(device.last_plan().expect("it has run one").kernels().len(), 1);
    let (a, b) = (x.to_vec::<f32>()?, y.to_vec::<f32>()?);
    let column = |c: usize, f: &dyn Fn(usize) -> f32| -> f64 {
        (0..300).map(|r| f64::from(f(r * 40 + c))).sum()
    };
    let results = [plain.to_vec::<f32>()?, weighted.to_vec::<f32>()?, squares.to_vec::<f32>()?];
    for c in 0..40 {
        let wanted =
            [column(c, &|e| a[e]), column(c, &|e| a[e] * b[e]), column(c, &|e| a[e] * a[e])];
        for (got, want) in results.iter().zip(wanted) {
            assert!((f64::from(got[c]) - want).abs() < 1e-3, "column {c}: {} for {want}", got[c]);
        }
    }
    Ok(())
}
