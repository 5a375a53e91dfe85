//! The calls whose kernels the catalog gathers.

use ndarray::s;

use super::Catalog;
use crate::dtype::DType::{self, Bool, F16, F32, I32, U8, U32};
use crate::eager::dispatch;
use crate::error::Result;
use crate::ops::binary::{self, Binary};
use crate::ops::inventory;
use crate::ops::pad::pad_with;
use crate::ops::unary::{self, Unary};
use crate::ops::{
    Conv2dOptions, Distribution, GatherOptions, GeluOptions, MatmulOptions, OneHotOptions, PadMode,
    Padding, Pool2dOptions, concat, eye, fill, iota, multinomial, one_hot, one_hot_with,
    philox_random, philox_random_of, select,
};
use crate::shape::{Axes, Shape};
use crate::tape::GradientTape;
use crate::tensor::Tensor;

const FLOATS: [DType; 2] = [F32, F16];
const NUMERIC: [DType; 4] = [F32, F16, I32, U32];

/// Shapes whose elements fill whole vectors, and shapes whose elements do not.
const SHAPES: [&[usize]; 5] = [&[], &[5], &[8], &[3, 5, 7], &[2, 3, 1, 2, 3, 4]];

/// Pairs of shapes that broadcast: equal shapes, a scalar, rows of whole vectors, single elements, six axes.
const PAIRS: [(&[usize], &[usize]); 7] = [
    (&[7], &[7]),
    (&[8], &[]),
    (&[], &[3]),
    (&[3, 8], &[8]),
    (&[3, 1], &[1, 5]),
    (&[4, 1, 8], &[2, 1]),
    (&[2, 1, 3, 1, 2, 3], &[1, 4, 1, 2, 2, 1]),
];

impl Catalog {
    /// Makes every call.
    pub(super) fn gather(&mut self) {
        self.inventory();
        self.rows();
        self.creations();
        self.views();
        self.indexing();
        self.reductions();
        self.products();
        self.images();
        self.composed();
        self.side_by_side();
        self.cut_loops();
    }

    /// The calls in the ops' own entries, and the gradients that tests check.
    fn inventory(&mut self) {
        for entry in inventory::all() {
            for &dtype in entry.dtypes {
                for call in entry.kernels {
                    let name = format!("{} {dtype}", entry.name);
                    self.add(name, |c| call(&|shape, dtype| c.tensor(shape, dtype), dtype));
                }
            }
            for case in entry.own_cases() {
                self.add(format!("the gradient of {}", case.name), |c| {
                    let inputs = case.inputs.iter().map(|(shape, _)| c.tensor(*shape, F32));
                    let inputs: Vec<Tensor> = inputs.collect();
                    let tape = GradientTape::new();
                    inputs.iter().try_for_each(|x| tape.watch(x))?;
                    tape.gradient(&(case.f)(&inputs)?, &inputs[..])
                });
            }
        }
    }

    /// All elementwise ops, with every dtype that they accept.
    fn rows(&mut self) {
        for &row in unary::ROWS {
            for dtype in DType::ALL.into_iter().filter(|d| row.takes(*d)) {
                for shape in SHAPES {
                    self.add(format!("{} {dtype} {shape:?}", row.method), |c| {
                        dispatch(Unary { row }, &[&c.tensor(shape, dtype)])
                    });
                }
            }
        }
        for &row in binary::ROWS {
            for dtype in DType::ALL.into_iter().filter(|d| row.takes(*d)) {
                for (a, b) in PAIRS {
                    self.add(format!("{} {dtype} {a:?} {b:?}", row.method), |c| {
                        dispatch(Binary { row }, &[&c.tensor(a, dtype), &c.tensor(b, dtype)])
                    });
                }
                self.add(format!("{} {dtype} with a number", row.method), |c| {
                    let one = if dtype == Bool { true.into() } else { 1.into() };
                    let one = fill(&c.device, row.name, Shape::default(), one, dtype)?;
                    dispatch(Binary { row }, &[&c.tensor([3, 5], dtype), &one])
                });
                self.add(format!("{} {dtype} with itself", row.method), |c| {
                    let x = c.tensor([6], dtype);
                    dispatch(Binary { row }, &[&x, &x])
                });
            }
        }
        for dtype in DType::ALL {
            for (a, b) in PAIRS {
                self.add(format!("select {dtype} {a:?} {b:?}"), |c| {
                    select(&c.tensor(a, Bool), &c.tensor(b, dtype), &c.tensor(a, dtype))
                });
            }
            for to in DType::ALL {
                for shape in SHAPES {
                    self.add(format!("cast {dtype} {to}"), |c| c.tensor(shape, dtype).cast(to));
                }
            }
        }
    }

    /// Ops without inputs.
    fn creations(&mut self) {
        for dtype in DType::ALL {
            let one = if dtype == Bool { true.into() } else { 1.into() };
            for shape in SHAPES {
                self.add(format!("fill {dtype}"), |c| {
                    fill(&c.device, "Fill", shape.into(), one, dtype)
                });
            }
        }
        self.add("arange i32", |_| crate::tensor::range(0, 7, 2));
        self.add("arange f32", |_| crate::tensor::range(0.0, 7.0, 0.5));
        self.add("eye", |_| eye(3, 5));
        for dtype in [F32, I32, U32] {
            self.add(format!("iota {dtype}"), |c| {
                iota::iota(Some(&c.device), 9, 1.into(), 2.into(), dtype)
            });
        }
        for distribution in [
            Distribution::UNIFORM,
            Distribution::NORMAL,
            Distribution::TRUNCATED_NORMAL,
            Distribution::BITS,
        ] {
            for shape in SHAPES {
                self.add(format!("{distribution:?}"), |c| {
                    let words = crate::graph::RuntimeScalars::from_slice(&[1, 2, 0, 0, 0, 0]);
                    philox_random(Some(&c.device), distribution, shape.into(), words, None)
                });
            }
        }
        for distribution in [
            Distribution::GAMMA,
            Distribution::LOG_GAMMA,
            Distribution::POISSON,
            Distribution::BINOMIAL,
        ] {
            for shape in SHAPES {
                self.add(format!("{distribution:?}"), |c| {
                    let words = crate::graph::RuntimeScalars::from_slice(&[1, 2, 0, 0, 0, 0]);
                    let (each, one) = (c.tensor(shape, F32), c.tensor([], F32));
                    let parameters = [&each, &one];
                    let count = distribution.parameters.len();
                    philox_random_of(distribution, shape.into(), words, None, &parameters[..count])
                });
            }
        }
        for (rows, samples, classes) in [(1, 7, 3), (5, 64, 1000)] {
            self.add("multinomial", |c| {
                multinomial(&c.tensor([rows, samples], U32), &c.tensor([rows, classes], U32))
            });
        }
    }

    /// Ops that are index arithmetic.
    fn views(&mut self) {
        for dtype in DType::ALL {
            let zero = || if dtype == Bool { false.into() } else { 0.into() };
            for (from, to) in [
                (&[][..], &[5][..]),
                (&[1], &[8]),
                (&[3, 1], &[3, 4]),
                (&[3], &[2, 3]),
                (&[4], &[2, 3, 4]),
                (&[2, 1, 3, 1, 2, 1], &[2, 4, 3, 5, 2, 3]),
            ] {
                self.add(format!("broadcast_to {dtype} {from:?} {to:?}"), |c| {
                    c.tensor(from, dtype).broadcast_to(to)
                });
            }
            for (shape, perm) in [
                (&[3, 5][..], &[1, 0][..]),
                (&[4, 8], &[1, 0]),
                (&[2, 3, 8], &[1, 0, 2]),
                (&[2, 3, 5], &[2, 0, 1]),
                (&[2, 3, 1, 2, 3, 4], &[5, 0, 3, 2, 4, 1]),
            ] {
                self.add(format!("transpose {dtype} {shape:?} {perm:?}"), |c| {
                    c.tensor(shape, dtype).transpose(perm)
                });
            }
            self.add(format!("slices {dtype}"), |c| {
                let (flat, odd, even) =
                    (c.tensor([11], dtype), c.tensor([5, 7], dtype), c.tensor([6, 16], dtype));
                let deep = c.tensor([2, 3, 4, 2, 3, 5], dtype);
                Ok([
                    flat.slice(&[1], &[7])?,
                    flat.slice(&[4], &[4])?,
                    flat.strided_slice(s![1..10;3])?,
                    flat.strided_slice(s![-3])?,
                    odd.strided_slice(s![1..4, 2..])?,
                    odd.strided_slice(s![..;2, ..;-3])?,
                    odd.strided_slice(s![2, ..])?,
                    even.slice(&[1, 4], &[3, 8])?,
                    even.slice(&[1, 3], &[3, 8])?,
                    even.strided_slice(s![..;2, ..;2])?,
                    deep.strided_slice(s![.., 1.., 0, ..;-1, ..;2, 1..4])?,
                ])
            });
            self.add(format!("reverse {dtype}"), |c| {
                Ok([
                    c.tensor([5], dtype).reverse([0])?,
                    c.tensor([3, 8], dtype).reverse([0])?,
                    c.tensor([3, 8], dtype).reverse([0, 1])?,
                    c.tensor([2, 3, 1, 2, 3, 5], dtype).reverse([1, -1])?,
                ])
            });
            self.add(format!("roll {dtype}"), |c| {
                Ok([
                    c.tensor([5], dtype).roll(&[2], 0)?,
                    c.tensor([3, 8], dtype).roll(&[1, -3], [0, 1])?,
                ])
            });
            self.add(format!("pad {dtype}"), |c| {
                let (line, table) = (c.tensor([5], dtype), c.tensor([3, 8], dtype));
                let edges = |list: &[(i64, i64, i64)]| list.iter().copied().collect();
                Ok([
                    line.pad_with(&[(1, 2)], PadMode::Constant(zero()))?,
                    table.pad_with(&[(1, 0), (0, 0)], PadMode::Constant(zero()))?,
                    table.pad_with(&[(0, 2), (3, 5)], PadMode::Constant(zero()))?,
                    table.pad_with(&[(1, 1), (2, 2)], PadMode::Reflect)?,
                    table.pad_with(&[(1, 1), (2, 2)], PadMode::Symmetric)?,
                    pad_with(&line, edges(&[(0, 3, 2)]), zero())?,
                    pad_with(&table, edges(&[(1, 0, 3), (0, 0, 1)]), zero())?,
                    pad_with(&table, edges(&[(-1, 0, 1), (-2, -2, 2)]), zero())?,
                ])
            });
            for count in 2..=7 {
                self.add(format!("concat of {count} {dtype}"), |c| {
                    let parts = |sizes: [usize; 2], odd: usize| -> Vec<Tensor> {
                        let [rows, columns] = sizes;
                        (0..count).map(|i| c.tensor([rows, columns + odd * i], dtype)).collect()
                    };
                    let join =
                        |parts: Vec<Tensor>, axis| concat(parts.iter().collect::<Vec<_>>(), axis);
                    Ok([
                        join(parts([3, 8], 0), 0)?,
                        join(parts([3, 5], 0), 0)?,
                        join(parts([3, 4], 4), 1)?,
                        join(parts([3, 2], 1), 1)?,
                    ])
                });
            }
            self.add(format!("constants between tensors {dtype}"), |c| {
                let x = c.tensor([2, 3], dtype);
                Ok([
                    concat([&x, &x.zeros_like()?], 1)?,
                    concat([&x.zeros_like()?, &x], 0)?,
                    concat([&x.zeros_like()?, &x.ones_like()?], 0)?,
                    x.zeros_like()?.pad_with(&[(1, 1), (0, 2)], PadMode::Constant(zero()))?,
                    x.ones_like()?.transpose([1, 0])?,
                    x.ones_like()?.strided_slice(s![1.., ..;-1])?,
                ])
            });
        }
    }

    fn indexing(&mut self) {
        for dtype in [F32, F16, I32, U32, Bool] {
            self.add(format!("gather {dtype}"), |c| {
                let index = |shape: &[usize]| c.tensor(shape, I32);
                Ok([
                    c.tensor([5], dtype).gather(&index(&[]), 0)?,
                    c.tensor([5, 3], dtype).gather(&index(&[4]), 0)?,
                    c.tensor([2, 5, 3], dtype).gather(&index(&[2, 2]), 1)?,
                    c.tensor([2, 3, 5], dtype).gather_with(
                        &index(&[2, 4]),
                        2,
                        GatherOptions::new().batch_dims(1),
                    )?,
                ])
            });
        }
        for dtype in [I32, U32] {
            self.add(format!("one_hot {dtype}"), |c| {
                Ok([
                    one_hot(&c.tensor([5], dtype), 3)?,
                    one_hot_with(
                        &c.tensor([5], dtype),
                        4,
                        OneHotOptions::new().on_value(true).off_value(false),
                    )?,
                ])
            });
        }
    }

    /// All reductions: short ones and ones split into stages; neighbouring elements belong to the same or to different
    /// results.
    fn reductions(&mut self) {
        let cases: [(&[usize], &[i64]); 11] = [
            (&[7], &[0]),
            (&[1, 1], &[0, 1]),
            (&[3, 8], &[0]),
            (&[3, 8], &[1]),
            (&[2, 3, 4, 5], &[1, 3]),
            (&[2, 3, 4, 5], &[0, 2]),
            (&[2, 3, 1, 2, 3, 4], &[1, 3, 5]),
            (&[100_000], &[0]),
            (&[3, 70_000], &[1]),
            (&[70_000, 3], &[0]),
            (&[2, 300, 3, 300], &[1, 3]),
        ];
        for (shape, axes) in cases {
            for dtype in NUMERIC {
                self.add(format!("reduce {dtype} {shape:?} {axes:?}"), |c| {
                    let x = c.tensor(shape, dtype);
                    Ok([
                        x.reduce_sum(axes)?,
                        x.reduce_prod(Axes::from(axes).keepdims(true))?,
                        x.reduce_max(axes)?,
                        x.reduce_min(Axes::from(axes).keepdims(true))?,
                    ])
                });
            }
            self.add(format!("reduce bool {shape:?} {axes:?}"), |c| {
                let x = c.tensor(shape, Bool);
                Ok([x.reduce_any(axes)?, x.reduce_all(Axes::from(axes).keepdims(true))?])
            });
        }
    }

    /// Matrix products: one row, one column, edges of tiles, whole vectors, split sums, batches.
    fn products(&mut self) {
        let sizes = [
            [1, 1, 1],
            [2, 3, 4],
            [3, 70, 1],
            [5, 7, 9],
            [8, 16, 8],
            [64, 32, 64],
            [33, 65, 30],
            [4, 5000, 8],
            [3, 5000, 5],
            // Few columns of long sums, which threads share; then few rows.
            [300, 600, 1],
            [301, 601, 3],
            [200, 8000, 4],
            [1, 600, 300],
        ];
        for dtype in NUMERIC {
            for [m, k, n] in sizes {
                for (ta, tb) in [(false, false), (false, true), (true, false), (true, true)] {
                    self.add(format!("matmul {dtype} {m}x{k}x{n} {ta} {tb}"), |c| {
                        let a = c.tensor(if ta { [k, m] } else { [m, k] }, dtype);
                        let b = c.tensor(if tb { [n, k] } else { [k, n] }, dtype);
                        a.matmul_with(&b, MatmulOptions::new().transpose_a(ta).transpose_b(tb))
                    });
                }
            }
            self.add(format!("matmul of batches {dtype}"), |c| {
                let one = c.tensor([4, 8], dtype);
                let three = c.tensor([3, 8, 4], dtype);
                Ok([
                    one.matmul(&three)?,
                    three.matmul(&one)?,
                    three.matmul_with(&three, MatmulOptions::new().transpose_a(true))?,
                    c.tensor([2, 1, 5, 3], dtype).matmul(c.tensor([4, 3, 2], dtype))?,
                    one.matvec(c.tensor([8], dtype))?,
                ])
            });
        }
    }

    /// Convolutions and poolings with their gradients.
    fn images(&mut self) {
        let plain = Conv2dOptions::default();
        let spread = Conv2dOptions { strides: [2, 1], padding: Padding::Same, dilations: [1, 2] };
        for dtype in FLOATS {
            for (image, filter) in [
                ([2, 9, 8, 3], [3, 2, 3, 4]),
                ([1, 5, 5, 1], [1, 1, 1, 1]),
                ([1, 12, 12, 8], [5, 5, 8, 16]),
                ([1, 7, 7, 2], [3, 3, 2, 5]),
                ([1, 4, 4, 300], [3, 3, 300, 2]),
                ([1, 60, 60, 2], [2, 2, 2, 3]),
            ] {
                for options in [plain, spread] {
                    self.add(format!("conv2d {dtype} {image:?} {filter:?} {options:?}"), |c| {
                        let (x, w) = (c.tensor(image, dtype), c.tensor(filter, dtype));
                        let tape = GradientTape::new();
                        tape.watch(&x)?;
                        tape.watch(&w)?;
                        let y = x.conv2d(&w, options)?;
                        tape.gradient(&y, [&x, &w])
                    });
                }
            }
            for (image, filter) in [
                ([2, 7, 8, 4], [3, 2, 4, 1]),
                ([2, 7, 8, 3], [3, 2, 3, 4]),
                ([2, 7, 8, 3], [3, 2, 3, 1]),
                // A split sum.
                ([1, 60, 60, 4], [2, 2, 4, 1]),
                ([1, 60, 60, 1], [2, 2, 1, 3]),
            ] {
                self.add(format!("depthwise_conv2d {dtype} {image:?} {filter:?}"), |c| {
                    let (x, w) = (c.tensor(image, dtype), c.tensor(filter, dtype));
                    let tape = GradientTape::new();
                    tape.watch(&x)?;
                    tape.watch(&w)?;
                    let y = x.depthwise_conv2d(&w, plain)?;
                    tape.gradient(&y, [&x, &w])
                });
            }
            for (window, options) in [
                ([2, 2], Pool2dOptions::new()),
                ([3, 2], Pool2dOptions::new().strides([1, 2]).padding(Padding::Same)),
            ] {
                self.add(format!("pool {dtype} {window:?} {options:?}"), |c| {
                    let x = c.tensor([2, 7, 6, 3], dtype);
                    let tape = GradientTape::persistent();
                    tape.watch(&x)?;
                    let (max, mean) =
                        (x.max_pool2d(window, options)?, x.avg_pool2d(window, options)?);
                    Ok((tape.gradient(&max, &x)?, tape.gradient(&mean, &x)?, max, mean))
                });
            }
        }
    }

    /// Sections of one kernel: several dtypes and views, one element shared by two of them, folds by one thread and by
    /// many.
    fn side_by_side(&mut self) {
        self.add("side by side", |c| {
            let scale = c.tensor(&[][..], F32);
            let turned = c.tensor([5, 7], F32).transpose([1, 0])?.multiply(&scale)?;
            Ok(vec![
                turned,
                c.tensor([9], F32).multiply(&scale)?.sqrt()?,
                c.tensor([8], F16).square()?,
                c.tensor([3], I32).greater(0)?,
                c.tensor([3, 7], F32).reduce_sum(1)?,
                c.tensor([600], F32).reduce_sum(())?,
                c.tensor([900], I32).reduce_max(())?,
                c.tensor([200_000], F32).reduce_sum(())?,
                c.tensor([100_000], F32).square()?.reduce_sum(())?,
            ])
        });
    }

    /// Composed ops have their own combinations of tensors and numbers, and their gradients.
    fn composed(&mut self) {
        for dtype in FLOATS {
            self.add(format!("compositions {dtype}"), |c| {
                let x = c.tensor([3, 5], dtype);
                let tape = GradientTape::persistent();
                tape.watch(&x)?;
                let results = [
                    x.reduce_mean(1)?,
                    x.reduce_std(Axes::from(0).keepdims(true))?,
                    x.reduce_logsumexp(-1)?,
                    x.softmax(-1)?,
                    x.log_softmax(0)?,
                    x.silu()?,
                    x.log_sigmoid()?,
                    x.relu6()?,
                    x.leaky_relu(0.1)?,
                    x.gelu_with(GeluOptions::new().approximate(true))?,
                    x.gelu()?,
                    x.mish()?,
                    x.hard_sigmoid()?,
                    x.clip_by_value(-1.0, 1.0)?,
                    x.tile(&[2, 3])?,
                    x.divide(2.0)?,
                    x.reduce_prod(1)?,
                    x.reduce_max(())?,
                    x.gather(&c.tensor([4], I32), 1)?,
                    x.unsorted_segment_sum(&c.tensor([3], I32), 2)?,
                    x.strided_slice(s![1.., ..;-2])?,
                    x.pad_with(&[(1, 1), (1, 1)], PadMode::Reflect)?,
                ];
                let gradients: Result<Vec<_>> =
                    results.iter().map(|y| tape.gradient(y, &x)).collect();
                Ok((gradients?, results))
            });
            for row in unary::ROWS.iter().copied().filter(|row| row.takes(dtype)) {
                self.add(format!("gradient of {} {dtype}", row.method), |c| {
                    let x = c.tensor([5], dtype);
                    let tape = GradientTape::new();
                    tape.watch(&x)?;
                    let y = dispatch(Unary { row }, &[&x])?;
                    if y.dtype().is_float() { tape.gradient(&y, &x) } else { Ok(None) }
                });
            }
            for row in binary::ROWS.iter().copied().filter(|row| row.takes(dtype)) {
                self.add(format!("gradient of {} {dtype}", row.method), |c| {
                    let (a, b) = (c.tensor([3, 5], dtype), c.tensor([3, 1], dtype));
                    let tape = GradientTape::new();
                    tape.watch(&a)?;
                    tape.watch(&b)?;
                    let y = dispatch(Binary { row }, &[&a, &b])?;
                    if y.dtype().is_float() {
                        tape.gradient(&y, [&a, &b])
                    } else {
                        Ok([None, None])
                    }
                });
            }
        }
        self.add("pixels", |c| c.tensor([2, 28, 28], U8).cast(F32)?.divide(255.0));
        self.add("integer quotient", |c| c.tensor([5], I32).divide(c.tensor([5], I32)));
    }
}
