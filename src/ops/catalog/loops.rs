//! The longest loops of every op. On every adapter a kernel declares at most the adapter's bound of iterations, and
//! runs at most as many as it declares: a driver that ends loops at that count (`plan/strict.rs`) must compute the
//! same.
//!
//! An op that loops lists its calls in the inventory; this file adds calls that use several ops or many shapes.

use std::sync::OnceLock;

use super::Catalog;
use crate::device::Caps;
use crate::dtype::DType::{self, F16, F32, I32};
use crate::error::Result;
use crate::ops::inventory::{self, Make};
use crate::ops::{Conv2dOptions, MatmulOptions, Padding, Pool2dOptions};
use crate::runtime::Device;
use crate::shape::Axes;
use crate::tape::GradientTape;
use crate::tensor::Tensor;

type Run = Box<dyn Fn(Make) -> Result<Vec<Tensor>>>;

type Call = (String, Run);

/// Calls of everything that loops, with about `n` steps for each result.
fn calls(n: usize) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut add = |name: String, call: Run| {
        calls.push((format!("{name}, {n} steps"), call));
    };
    for entry in inventory::all() {
        for &call in entry.loops {
            add(entry.name.into(), Box::new(move |make| call(make, n)));
        }
    }
    add(
        "the gradient of gather".into(),
        Box::new(move |make| {
            let (table, index) = (make(&[2, 6, 3], F32), make(&[n], I32));
            let tape = GradientTape::new();
            tape.watch(&table)?;
            let y = table.gather(&index, 1)?;
            Ok(vec![tape.required_gradient(&y, &table)?])
        }),
    );
    for (shape, axis) in [(vec![n], 0), (vec![2, n], 1), (vec![n, 3], 0), (vec![n / 2, 2, 2], 0)] {
        add(
            format!("folds of {shape:?} along {axis}"),
            Box::new(move |make| {
                let x = make(&shape, F32);
                Ok(vec![
                    x.argmax(axis)?,
                    x.argmin(axis)?,
                    x.reduce_sum(axis)?,
                    x.tanh()?.reduce_max(axis)?,
                    x.log1p()?.expm1()?.reduce_min(Axes::from(axis).keepdims(true))?,
                    x.softmax(axis)?,
                    x.subtract(x.reduce_mean(Axes::from(axis).keepdims(true))?)?
                        .square()?
                        .reduce_sum(axis)?,
                    x.reduce_variance(axis)?,
                ])
            }),
        );
    }
    let (tall, wide) = (n / 64, 64);
    for c in [1, 4] {
        let valid = Pool2dOptions::new().strides([1, 1]);
        let cases = [
            ([1, tall, wide, c], [tall, wide], valid),
            ([1, 1, n, c], [1, n], valid),
            ([2, 20, 24, c], [31, 31], valid.padding(Padding::Same)),
        ];
        for (image, window, options) in cases {
            add(
                format!("pools of {image:?}"),
                Box::new(move |make| {
                    let x = make(&image, F32);
                    let tape = GradientTape::persistent();
                    tape.watch(&x)?;
                    let (max, mean) =
                        (x.max_pool2d(window, options)?.tanh()?, x.avg_pool2d(window, options)?);
                    let dx = [tape.gradient(&max, &x)?, tape.gradient(&mean, &x)?];
                    Ok([max, mean].into_iter().chain(dx.into_iter().flatten()).collect())
                }),
            );
        }
    }
    let spread = Conv2dOptions { strides: [2, 3], padding: Padding::Same, dilations: [3, 2] };
    for (image, filter, options) in [
        ([1, tall, wide, 1], [tall, wide, 1, 1], Conv2dOptions::default()),
        ([1, tall, wide, 4], [tall, wide - 1, 4, 1], Conv2dOptions::default()),
        ([1, tall, wide, 1], [3, 3, 1, 4], Conv2dOptions::default()),
        ([1, tall, wide, 4], [3, 2, 4, 3], spread),
        ([1, 1, n, 1], [1, 3, 1, 4], Conv2dOptions::default()),
        ([1, 1, n, 3], [1, 7, 3, 5], spread),
        ([1, 2, 2, n / 4], [2, 1, n / 4, 2], Conv2dOptions::default()),
        ([1, 2, 2, 2], [1, 2, 2, n / 4], Conv2dOptions::default()),
        ([3, 24, 23, 2], [19, 20, 2, 2], spread),
    ] {
        for depthwise in [false, true] {
            add(
                format!("convolutions of {image:?} by {filter:?}, {depthwise}"),
                Box::new(move |make| {
                    let (x, w) = (make(&image, F32), make(&filter, F32));
                    let tape = GradientTape::new();
                    tape.watch(&x)?;
                    tape.watch(&w)?;
                    let y = match depthwise {
                        true => x.depthwise_conv2d(&w, options)?,
                        false => x.conv2d(&w, options)?,
                    };
                    let grads = tape.gradient(&y, [&x, &w])?;
                    Ok(grads.into_iter().flatten().chain([y.log1p()?]).collect())
                }),
            );
        }
    }
    for (m, k) in [(1, 1), (3, 5), (9, 40)] {
        add(
            format!("products of {m} and {k}"),
            Box::new(move |make| {
                let (a, b, n) = (make(&[m, n / 32], F32), make(&[n / 32, k], F32), n / 32);
                let (at, bt) = (make(&[n, m], I32), make(&[k, n], I32));
                Ok(vec![
                    a.matmul(&b)?.tanh()?,
                    at.matmul_with(&bt, MatmulOptions::new().transpose_a(true).transpose_b(true))?,
                ])
            }),
        );
    }
    add(
        "a product of long rows".into(),
        Box::new(move |make| Ok(vec![make(&[1, n], F32).matmul(make(&[n, 1], F32))?])),
    );
    let turns = (n / 4).min(600);
    add(
        "turns with loops".into(),
        Box::new(move |make| {
            let mut x = make(&[9], F32).abs()?;
            for _ in 0..turns {
                x = x.log1p()?.tanh()?;
            }
            Ok(vec![x])
        }),
    );
    add(
        "folds side by side".into(),
        Box::new(|make| {
            let long = |rows: usize| make(&[rows, 4], F32).reduce_sum(0);
            [100, 90, 120, 100, 3, 110, 70].into_iter().map(long).collect()
        }),
    );
    calls
}

/// Adapters of every kind, with this bound on loops.
fn bounded(caps: &[Caps], bound: usize) -> Vec<Caps> {
    caps.iter().map(|caps| Caps { loop_iterations: bound, ..caps.clone() }).collect()
}

/// A bound so low that even short loops are split.
const LOW: usize = 256;

impl Catalog {
    /// Adds the texts of split loops to the catalog.
    pub(super) fn cut_loops(&mut self) {
        let all = self.caps.clone();
        self.caps = bounded(&all, LOW);
        self.add_loops(4096);
        self.caps = all;
    }

    fn add_loops(&mut self, n: usize) {
        for (name, call) in calls(n) {
            self.add(name, |catalog| call(&|shape, dtype| catalog.tensor(shape, dtype)));
        }
    }
}

#[test]
fn no_loop_is_longer_than_any_driver_lets_it() {
    let mut catalog = Catalog::new();
    assert!(catalog.caps.iter().all(|caps| caps.loop_iterations == 32_768));
    // The sizes of the longest loops make some temporary buffers too large, and the device rejects them.
    for caps in &mut catalog.caps {
        (caps.binding_bytes, caps.buffer_bytes) = (u64::MAX, u64::MAX);
    }
    for n in [1 << 12, 1 << 17, 1 << 22] {
        catalog.add_loops(n);
    }
}

/// Whole numbers from -2 to 2, or from 0 to 4 if they may be used as an index.
fn numbers(shape: &[usize], dtype: DType) -> Tensor {
    let count: usize = shape.iter().product();
    let of = |i: usize| (i * 7 + i / 11 + i / 64) as i32 % 5;
    // Without f16, f32 is used instead.
    let known = dtype != F16 || Device::current().unwrap().caps().f16;
    match if known { dtype } else { F32 } {
        I32 => {
            let values: Vec<i32> = (0..count).map(of).collect();
            Tensor::from_slice(&values, shape).unwrap()
        }
        dtype => {
            let values: Vec<f32> = (0..count).map(|i| of(i) as f32 - 2.0).collect();
            Tensor::from_slice(&values, shape).unwrap().cast(dtype).unwrap()
        }
    }
}

/// The results of all calls, in `f32`.
fn results(device: &Device, n: usize) -> Vec<(String, Vec<Vec<f32>>)> {
    device.scope(|| {
        let values = |(name, call): Call| {
            let results = call(&numbers).unwrap_or_else(|e| panic!("{name}: {e}"));
            device.flush().unwrap_or_else(|e| panic!("{name}: {e}"));
            let values = results.iter().map(|y| y.cast(F32)?.to_vec::<f32>());
            (name, values.collect::<Result<Vec<_>>>().unwrap())
        };
        calls(n).into_iter().map(values).collect()
    })
}

/// Compares the results of a strict driver with those of a normal one.
fn check(change: impl Fn(&mut Caps)) {
    static PLAIN: OnceLock<Vec<(String, Vec<Vec<f32>>)>> = OnceLock::new();
    let n = 3000;
    let plain = PLAIN.get_or_init(|| results(&Device::new().unwrap(), n));
    let strict = Device::new().unwrap();
    strict.set_tuning(crate::plan::Tuning::Off);
    strict.change_caps(|caps| {
        caps.strict = true;
        change(caps);
    });
    for ((name, got), (_, want)) in results(&strict, n).into_iter().zip(plain) {
        for (k, (got, want)) in got.iter().zip(want).enumerate() {
            let near = |(a, b): (&f32, &f32)| {
                a.to_bits() == b.to_bits() || (a - b).abs() <= 2e-5 * b.abs().max(1.0)
            };
            let wrong = got.iter().zip(want).position(|pair| !near(pair));
            let pair = wrong.map(|at| (at, got[at], want[at]));
            assert_eq!(pair, None, "{name}, result {k}");
        }
    }
}

#[test]
fn loops_make_no_more_iterations_than_they_state() {
    check(|_| {});
}

#[test]
fn loops_that_are_cut_come_to_the_same() {
    check(|caps| caps.loop_iterations = LOW);
}

#[test]
fn loops_that_are_cut_for_gpus_come_to_the_same() {
    check(|caps| {
        caps.loop_iterations = LOW;
        caps.cpu = false;
        caps.subgroups = None;
    });
}

#[test]
fn what_cannot_be_cut_is_refused() {
    let device = Device::new().unwrap();
    device.set_tuning(crate::plan::Tuning::Off);
    device.change_caps(|caps| {
        caps.loop_iterations = 100;
        caps.cpu = true;
    });
    let error = device.scope(|| {
        let (a, b) = (numbers(&[3, 500], F32), numbers(&[500, 3], F32));
        a.matmul(b).unwrap().to_vec::<f32>().unwrap_err()
    });
    assert_eq!(
        error.to_string(),
        "MatMul: a thread would iterate 195 times, and at most 100 are safe on every adapter. Split the tensors along \
         an axis."
    );
}

#[test]
fn what_kernels_hand_on_is_refused_where_no_binding_covers_it() {
    let device = Device::new().unwrap();
    device.change_caps(|caps| {
        caps.loop_iterations = 256;
        caps.binding_bytes = 1 << 16;
    });
    let error = device.scope(|| {
        let ids = numbers(&[3000], I32);
        numbers(&[3000], F32).unsorted_segment_sum(&ids, 2000).unwrap().to_vec::<f32>().unwrap_err()
    });
    assert_eq!(
        error.to_string(),
        "UnsortedSegmentSum: its kernels pass on 752000 bytes, and at most 65536 fit into one binding on this \
         adapter. Split the tensors along an axis."
    );
}
