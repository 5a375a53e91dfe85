//! Graphs that are hard for a planner: too wide, too deep, too long, too large, of odd shapes, without elements, with NaN. Each
//! ends with the right answer or with an error that explains what to do, and the device remains usable.

#![allow(clippy::unwrap_used)]

use crate::programs;

use programs::check::{Promise, judge};
use programs::run::Devices;
use programs::table::{Fold, binary, reduction, unary};
use programs::{Node, Op, Program};
use wgrad as tf;
use wgrad::Trackable;
use wgrad::keras::layers::{Dense, Layer};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Sequential, TRAINING};
use wgrad::{DType, Device, DeviceFault, DeviceOptions, Error, Tensor, Variable};

/// A manually written program: calls are appended, and its outputs are wanted.
#[derive(Default)]
struct Writer(Program);

impl Writer {
    fn call(&mut self, op: Op, inputs: &[usize]) -> usize {
        self.0.nodes.push(Node { op, inputs: inputs.to_vec(), wanted: false, flush: false });
        self.0.nodes.len() - 1
    }

    fn input(&mut self, shape: &[usize], dtype: DType, value: impl Fn(usize) -> f64) -> usize {
        let values = (0..shape.iter().product()).map(value).collect();
        self.call(Op::Input { values, shape: shape.to_vec(), dtype, kept: false }, &[])
    }

    /// A float input with positive and negative numbers.
    fn floats(&mut self, shape: &[usize]) -> usize {
        self.input(shape, DType::F32, |i| (i * 7 % 23) as f64 / 8.0 - 1.25)
    }

    fn one(&mut self, name: &str, x: usize) -> usize {
        self.call(Op::Unary(unary(name)), &[x])
    }

    fn two(&mut self, name: &str, a: usize, b: usize) -> usize {
        self.call(Op::Binary(binary(name)), &[a, b])
    }

    fn fold(&mut self, fold: Fold, x: usize, axes: &[usize], keep: bool) -> usize {
        self.call(Op::Reduce(reduction(fold), axes.to_vec(), keep), &[x])
    }

    /// Judges the program with all its outputs wanted.
    #[track_caller]
    fn judge(mut self, promise: Promise) {
        for (node, last) in self.0.last_readers().into_iter().enumerate() {
            self.0.nodes[node].wanted |= last.is_none();
        }
        if let Err(words) = judge(&self.0, &Devices::new(), promise) {
            panic!("{words}\n{}", self.0);
        }
    }
}

#[test]
fn a_sum_of_five_hundred_tensors() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let tensors: Vec<Tensor> = (0..500)
            .map(|k| Tensor::from_slice(&[k as f32; 33], [33]))
            .collect::<tf::Result<_>>()?;
        let sum = tf::add_n(tensors.iter().collect::<Vec<_>>())?;
        // 0 + 1 + ... + 499
        assert_eq!(sum.to_vec::<f32>()?, [124_750.0; 33]);
        // As a tree: all inputs are computed first, and each has one reader.
        let mut level: Vec<Tensor> =
            tensors.iter().map(|x| x.multiply(2.0)).collect::<tf::Result<_>>()?;
        drop(tensors);
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(
                    |pair| {
                        if pair.len() == 2 { pair[0].add(&pair[1]) } else { Ok(pair[0].clone()) }
                    },
                )
                .collect::<tf::Result<_>>()?;
        }
        assert_eq!(level[0].to_vec::<f32>()?, [249_500.0; 33]);
        Ok(())
    })
}

#[test]
fn three_hundred_outputs_of_one_flush() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let x = tf::range(0, 37, 1)?.cast(DType::F32)?;
        let shared = x.add(1.0)?;
        let mut outputs: Vec<Tensor> = Vec::new();
        for k in 0..300 {
            let y = shared.multiply(k as f32)?;
            // A third of them through another value, which is also wanted.
            outputs.push(if k % 3 == 1 { y.add(&outputs[k / 2])? } else { y });
        }
        let before = device.stats().flushes;
        device.flush()?;
        assert_eq!(device.stats().flushes - before, 1);
        let mut want: Vec<Vec<f32>> = Vec::new();
        for k in 0..300usize {
            let own: Vec<f32> = (0..37).map(|i| (i as f32 + 1.0) * k as f32).collect();
            let other = if k % 3 == 1 { want[k / 2].clone() } else { vec![0.0; 37] };
            want.push(own.iter().zip(&other).map(|(a, b)| a + b).collect());
        }
        for (k, output) in outputs.iter().enumerate() {
            assert_eq!(output.to_vec::<f32>()?, want[k], "output {k}");
        }
        Ok(())
    })
}

#[test]
fn an_expression_five_thousand_deep() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let leaves: Vec<Tensor> = (0..7)
            .map(|k| Tensor::from_slice(&[k as f32, -1.0, 0.5], [3]))
            .collect::<tf::Result<_>>()?;
        let mut x = Tensor::zeros([3])?;
        let mut want = [0f32; 3];
        for i in 0..5000 {
            // Halved to stay small; exact except for one rounding.
            x = x.add(&leaves[i % 7])?.multiply(0.5)?;
            let leaf = [(i % 7) as f32, -1.0, 0.5];
            want = std::array::from_fn(|k| (want[k] + leaf[k]) * 0.5);
        }
        for (got, want) in x.to_vec::<f32>()?.into_iter().zip(want) {
            assert!((got - want).abs() <= 1e-6 * want.abs(), "{got} and {want}");
        }
        // Its gradient, with as many tape entries.
        let y = tf::constant([1.0, 2.0, 3.0])?;
        let tape = tf::GradientTape::new();
        tape.watch(&y)?;
        let mut z = y.clone();
        for _ in 0..5000 {
            z = z.multiply(1.0)?;
        }
        assert_eq!(tape.required_gradient(&z, &y)?.to_vec::<f32>()?, [1.0; 3]);
        Ok(())
    })
}

#[test]
fn twenty_thousand_ops_in_one_loop() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let mut x = Tensor::zeros([5])?;
        let mut kept = Vec::new();
        for i in 0..6_667 {
            let y = x.add(1.0)?;
            // Never read.
            let _dead = y.exp()?;
            if i % 1000 == 0 {
                kept.push((i, y.clone()));
            }
            x = y.minimum(4000.0)?;
        }
        assert_eq!(x.to_vec::<f32>()?, [4000.0; 5]);
        for (i, y) in kept {
            let want = (i as f32 + 1.0).min(4001.0);
            assert_eq!(y.to_vec::<f32>()?, [want; 5], "after {i} turns");
        }
        Ok(())
    })
}

#[test]
fn a_tensor_beyond_the_binding_limit() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let side = 1 << 17;
        let (column, row) = (Tensor::ones([side, 1])?, Tensor::ones([1, side])?);
        let error = column.add(&row).unwrap_err();
        assert!(matches!(error, Error::Device(DeviceFault::Limit, _)), "{error}");
        assert!(
            error.to_string().starts_with("AddV2") && error.to_string().contains("131072"),
            "{error}"
        );
        let error = column.broadcast_to([side, side]).unwrap_err();
        assert!(matches!(error, Error::Device(DeviceFault::Limit, _)), "{error}");
        let error = column.matmul(&row).unwrap_err();
        assert!(matches!(error, Error::Device(DeviceFault::Limit, _)), "{error}");
        // Earlier pending values are not lost.
        assert_eq!(column.reduce_sum(())?.item::<f32>()?, side as f32);
        Ok(())
    })
}

/// A value before, all reductions, and a value after, for rows along `axis`.
fn reduced(shape: &[usize], axis: usize) {
    let mut w = Writer::default();
    let x = w.floats(shape);
    let y = w.one("tanh", x);
    for fold in [Fold::Sum, Fold::Max, Fold::Mean] {
        let r = w.fold(fold, y, &[axis], true);
        let z = w.call(Op::Scalar(binary("multiply"), 0.5), &[r]);
        if fold == Fold::Max {
            w.two("subtract", y, z);
        }
    }
    let on = w.call(Op::Scalar(binary("greater"), 1.375), &[x]);
    w.fold(Fold::Any, on, &[axis], false);
    w.judge(Promise::Special);
}

#[test]
fn a_row_of_three_million() {
    reduced(&[1, 3_000_001], 1);
    reduced(&[1, 100_001], 0);
}

#[test]
fn a_column_of_three_million() {
    reduced(&[3_000_001, 1], 0);
    reduced(&[100_001, 1], 1);
}

#[test]
fn many_short_rows() {
    for axis in 0..3 {
        reduced(&[70_000, 1, 7], axis);
    }
}

#[test]
fn softmax_of_odd_shapes() {
    let shapes: [(&[usize], usize); 6] = [
        (&[1, 300_001], 1),
        (&[300_001, 1], 0),
        (&[70_000, 1, 7], 2),
        (&[70_000, 1, 7], 1),
        (&[3, 70_001], 0),
        (&[2, 4097, 3], 1),
    ];
    for (shape, axis) in shapes {
        let mut w = Writer::default();
        let x = w.floats(shape);
        let x = w.one("softsign", x);
        let p = w.call(Op::Softmax(axis), &[x]);
        w.call(Op::Scalar(binary("multiply"), 2.0), &[p]);
        let log = w.call(Op::LogSoftmax(axis), &[x]);
        w.fold(Fold::Sum, log, &[axis], false);
        w.judge(Promise::Special);
    }
}

#[test]
fn a_memory_limit_below_a_training_step() -> tf::Result<()> {
    let run = |limit: Option<u64>| -> tf::Result<(Vec<f32>, usize)> {
        let device = Device::open(&DeviceOptions::new())?;
        device.scope(|| {
            let model = Sequential::new()
                .add(Dense::new(64).activation(Activation::Relu))
                .add(Dense::new(3));
            model.build([256, 512])?;
            let mut weights = model.get_weights()?;
            for weight in &mut weights {
                weight
                    .iter_mut()
                    .enumerate()
                    .for_each(|(i, v)| *v = (i * 31 % 17) as f32 / 170.0 - 0.05);
            }
            model.set_weights(&weights)?;
            let optimizer = Adam::new(1e-3);
            let x: Vec<f32> = (0..256 * 512).map(|i| (i * 13 % 29) as f32 / 29.0 - 0.5).collect();
            let x = Tensor::from_slice(&x, [256, 512])?;
            let labels = Tensor::from_slice(&(0..256).map(|i| i % 3).collect::<Vec<i32>>(), [256])?;
            let step = || -> tf::Result<Tensor> {
                let tape = tf::GradientTape::new();
                let logits = model.call(&x, TRAINING)?;
                let loss = tf::sparse_softmax_cross_entropy_with_logits(&labels, &logits)?;
                let loss = loss.reduce_mean(())?;
                optimizer.minimize(&loss, tape, &model.trainable_variables())?;
                Ok(loss)
            };
            let mut losses = vec![step()?.item::<f32>()?];
            let mut refused = 0;
            if limit.is_some() {
                device.trim()?;
                // No less than what is in use now.
                let least = device.stats().live_bytes;
                device.set_memory_limit(limit.map(|limit| limit.max(least))).unwrap();
                for _ in 0..3 {
                    let error = match step() {
                        Err(error) => error,
                        Ok(loss) => loss.item::<f32>().unwrap_err(),
                    };
                    assert!(error.is_out_of_memory(), "{error}");
                    assert!(error.to_string().contains("limit"), "{error}");
                    refused += 1;
                }
                assert_eq!(optimizer.iterations(), 1, "a failed step is not counted");
                device.set_memory_limit(None).unwrap();
            }
            for _ in 0..4 {
                losses.push(step()?.item()?);
            }
            Ok((losses, refused))
        })
    };
    // The images alone need 512 KiB.
    let (free, _) = run(None)?;
    let (limited, refused) = run(Some(600 << 10))?;
    assert_eq!(refused, 3);
    assert_eq!(limited, free, "the steps that failed have left something behind");
    assert!(free.iter().all(|loss| loss.is_finite()) && free[4] != free[0], "{free:?}");
    Ok(())
}

#[test]
fn no_elements_through_every_family() {
    let mut w = Writer::default();
    let none = w.floats(&[0, 3]);
    let rows = w.floats(&[4, 0]);
    let some = w.floats(&[4, 3]);
    // Element-wise, broadcast, selected, cast.
    let e = w.one("exp", none);
    let row = w.floats(&[3]);
    let sum = w.two("add", e, row);
    let test = w.call(Op::Scalar(binary("less"), 0.5), &[sum]);
    w.call(Op::Select, &[test, sum, none]);
    w.call(Op::Cast(DType::I32), &[sum]);
    // Views, and values computed from empty tensors.
    w.call(Op::Transpose(vec![1, 0]), &[none]);
    w.call(Op::Reshape(vec![2, 0, 5]), &[none]);
    w.call(Op::Reverse(vec![0, 1]), &[none]);
    let padded = w.call(Op::Pad(vec![(1, 1), (0, 1)], 2.0), &[none]);
    w.call(Op::Scalar(binary("multiply"), 3.0), &[padded]);
    let joined = w.call(Op::Concat(0), &[none, some, none]);
    w.one("negative", joined);
    w.call(Op::Concat(1), &[some, rows]);
    w.call(Op::Slice(vec![(0, 0, 1), (2, 3, -1)]), &[some]);
    // Reductions: of empty tensors to non-empty and to empty ones.
    for fold in [
        Fold::Sum,
        Fold::Prod,
        Fold::Max,
        Fold::Min,
        Fold::Mean,
        Fold::Variance,
        Fold::LogSumExp,
        Fold::Norm,
    ] {
        let column = w.fold(fold, rows, &[1], true);
        w.two("add", some, column);
        w.fold(fold, none, &[0], false);
        w.fold(fold, none, &[1], false);
        w.fold(fold, none, &[0, 1], false);
    }
    let truth = w.input(&[0, 2], DType::Bool, |_| 0.0);
    w.fold(Fold::Any, truth, &[0], false);
    w.fold(Fold::All, truth, &[0, 1], false);
    w.call(Op::Softmax(1), &[none]);
    w.call(Op::Softmax(0), &[none]);
    w.call(Op::LogSoftmax(1), &[rows]);
    let labels = w.input(&[0], DType::I32, |_| 0.0);
    let loss = w.call(Op::CrossEntropy, &[labels, none]);
    w.fold(Fold::Mean, loss, &[0], false);
    // Products: no rows, no columns, no terms, no batch.
    let inner = w.floats(&[0, 5]);
    let product = w.call(Op::MatMul { ta: false, tb: false }, &[rows, inner]);
    let bias = w.floats(&[5]);
    let biased = w.two("add", product, bias);
    w.one("relu", biased);
    let square = w.floats(&[3, 3]);
    w.call(Op::MatMul { ta: false, tb: true }, &[none, square]);
    let batch = w.floats(&[0, 2, 3]);
    w.call(Op::MatMul { ta: false, tb: false }, &[batch, square]);
    let images = w.floats(&[0, 4, 4, 2]);
    let filters = w.floats(&[2, 2, 2, 3]);
    let conv = Op::Conv { strides: [1, 1], same: true, dilations: [1, 1] };
    let y = w.call(conv, &[images, filters]);
    w.one("relu", y);
    for max in [true, false] {
        w.call(Op::Pool { max, window: [2, 2], strides: [2, 2], same: false }, &[images]);
    }
    // Indices.
    let ids = w.input(&[0], DType::I32, |_| 0.0);
    w.call(Op::Gather(0), &[some, ids]);
    let two = w.input(&[2], DType::I32, |i| i as f64);
    w.call(Op::Gather(0), &[none, two]);
    w.call(Op::SegmentSum(2), &[none, ids]);
    w.call(Op::ArgMax { axis: 1, largest: true }, &[none]);
    w.judge(Promise::Special);

    let error = Tensor::zeros([0, 3]).unwrap().argmax(0).unwrap_err();
    assert!(matches!(error, Error::Shape(_)), "{error}");
}

#[test]
fn gradients_of_nothing() -> tf::Result<()> {
    let (x, w) = (Variable::new(&Tensor::zeros([0, 3])?), Variable::new(&Tensor::ones([3, 2])?));
    let tape = tf::GradientTape::new();
    let y = x.read().matmul(&w)?.tanh()?.softmax(-1)?;
    let loss = y.reduce_sum(())?;
    let [dx, dw] = tape.required_gradient(&loss, [&x, &w])?;
    assert_eq!(dx.shape(), [0, 3]);
    assert_eq!(dw.to_vec::<f32>()?, [0.0; 6]);
    assert_eq!(loss.item::<f32>()?, 0.0);
    Ok(())
}

#[test]
fn rows_with_nan_and_infinities() {
    let rows: [[f64; 4]; 8] = [
        [1.0, 2.0, 3.0, 4.0],
        [1.0, f64::NAN, 3.0, 4.0],
        [f64::INFINITY, 0.0, 1.0, 2.0],
        [f64::NEG_INFINITY, 0.0, 1.0, 2.0],
        [f64::INFINITY, f64::NEG_INFINITY, 1.0, 2.0],
        [f64::NEG_INFINITY; 4],
        [f64::NAN; 4],
        [f64::INFINITY, f64::NAN, 0.0, 0.0],
    ];
    // Adjacent rows, and rows far apart in long ones, where other threads compute.
    for (width, scale) in [(4, 1), (1000, 250), (9000, 2250)] {
        let mut w = Writer::default();
        let at = |i: usize| {
            let (row, column) = (i / width, i % width);
            if column % scale == scale / 2 { rows[row][column / scale] } else { -0.5 }
        };
        let x = w.input(&[8, width], DType::F32, at);
        let x = w.call(Op::Scalar(binary("multiply"), 2.0), &[x]);
        let p = w.call(Op::Softmax(1), &[x]);
        w.call(Op::Scalar(binary("add"), 1.0), &[p]);
        w.call(Op::LogSoftmax(1), &[x]);
        for fold in [Fold::Max, Fold::Min, Fold::Sum, Fold::LogSumExp] {
            let y = w.fold(fold, x, &[1], true);
            let seen = w.one("is_nan", y);
            w.call(Op::Cast(DType::I32), &[seen]);
            w.two("maximum", x, y);
        }
        w.call(Op::ArgMax { axis: 1, largest: true }, &[x]);
        w.call(Op::ArgMax { axis: 1, largest: false }, &[x]);
        let y = w.one("relu", x);
        w.fold(Fold::Max, y, &[1], false);
        let columns = w.call(Op::Transpose(vec![1, 0]), &[x]);
        w.call(Op::Softmax(0), &[columns]);
        w.fold(Fold::Max, columns, &[0], false);
        let labels = w.input(&[8], DType::I32, |i| (i % 4) as f64);
        w.call(Op::CrossEntropy, &[labels, x]);
        w.judge(Promise::Special);
    }
}

#[test]
fn nan_is_true() -> tf::Result<()> {
    let x = tf::constant([f32::NAN, 0.0, -0.0, 1.0, f32::INFINITY])?;
    assert_eq!(x.cast(DType::Bool)?.to_vec::<bool>()?, [true, false, false, true, true]);
    Ok(())
}

#[test]
fn a_failed_value_fails_what_is_fused_with_it() -> tf::Result<()> {
    let device = Device::open(&DeviceOptions::new().memory_limit(4 << 20))?;
    device.scope(|| {
        let kept = tf::constant([1.0, 2.0, 3.0])?;
        let big = Tensor::ones([4 << 20])?;
        // One graph with values that fit and values that do not.
        let (fits, not) = (kept.multiply(2.0)?, big.add(1.0)?);
        let both = not.reduce_sum(())?.add(&fits)?;
        let error = not.to_vec::<f32>().unwrap_err();
        assert!(error.is_out_of_memory(), "{error}");
        // Each of the others has its value or the same error.
        for value in [&fits, &both] {
            if let Err(error) = value.to_vec::<f32>() {
                assert!(error.is_out_of_memory(), "{error}");
            }
        }
        // Earlier failures are reported once.
        let _ = device.flush();
        assert_eq!(kept.multiply(3.0)?.to_vec::<f32>()?, [3.0, 6.0, 9.0]);
        Ok(())
    })
}
