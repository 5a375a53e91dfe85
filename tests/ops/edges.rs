//! Edge cases of ops and of the runtime: numbers, sizes and orders of calls that could fail unnoticed.

use ndarray::s;
use wgrad as tf;
use wgrad::interop::DeviceExt;
use wgrad::{Device, DeviceOptions, Error, GradientTape, Tensor, Variable};

use crate::support::{child, driver};

#[test]
fn cross_entropy_keeps_its_digits_for_large_logits() -> tf::Result<()> {
    let label = tf::constant([0])?;
    for size in [1e2f32, 1e4, 1e6, 1e8] {
        let logits = tf::constant([[size, size]])?;
        let loss = tf::sparse_softmax_cross_entropy_with_logits(&label, &logits)?;
        assert!((loss.item::<f32>()? - 2f32.ln()).abs() < 1e-6, "{size}");
        let apart = tf::constant([[size, -size]])?;
        let loss = tf::sparse_softmax_cross_entropy_with_logits(&label, &apart)?;
        assert_eq!(loss.item::<f32>()?, 0.0);
    }
    Ok(())
}

#[test]
fn cube_roots_are_exact_at_cubes_and_edges() -> tf::Result<()> {
    let inf = f32::INFINITY;
    let x = tf::constant([-27.0, 8.0, 1e15, 0.0, -0.0, inf, -inf, f32::NAN, 2.0, f32::MAX, 1e-40])?;
    let y = x.cbrt()?.to_vec::<f32>()?;
    assert_eq!(y[3..7], [0.0, 0.0, inf, -inf]);
    assert!(y[4].is_sign_negative() && y[7].is_nan());
    // The last one has only 17 digits in f32.
    let want =
        [(0, -3.0), (1, 2.0), (2, 1e5), (8, 1.259_921), (9, 6.981_463_6e12), (10, 4.641_588_4e-14)];
    for (at, want) in want {
        let near = (y[at] - want).abs() <= 3e-7 * f32::abs(want);
        assert!(
            near || (at == 10 && (y[at] == 0.0 || (y[at] / want - 1.0).abs() < 1e-5)),
            "{at}: {}",
            y[at]
        );
    }
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let dx = tape.gradient(&x.cbrt()?, &x)?.unwrap().to_vec::<f32>()?;
    // 1 / (3 cbrt(x)^2)
    assert!((dx[0] - 1.0 / 27.0).abs() < 1e-8 && (dx[1] - 1.0 / 12.0).abs() < 1e-7, "{dx:?}");
    assert_eq!((dx[3], dx[5]), (inf, 0.0));
    Ok(())
}

/// Compared with NumPy's logaddexp.
#[test]
fn logaddexp_is_stable_everywhere() -> tf::Result<()> {
    let inf = f32::INFINITY;
    let a = tf::constant([0.0, 0.0, 1000.0, -1000.0, -inf, -inf, inf, inf, inf, f32::NAN])?;
    let b = tf::constant([0.0, -18.0, 999.0, -1000.0, -inf, 3.0, inf, -inf, 3.0, inf])?;
    let y = a.logaddexp(&b)?.to_vec::<f32>()?;
    // log 2; e^-18, for which log(1 + x) would be 0; 1000 + log(1 + 1/e); -1000 + log 2.
    let ln_2 = std::f32::consts::LN_2;
    let want = [ln_2, 1.522_998e-8, 1_000.313_26, -1000.0 + ln_2, -inf, 3.0, inf, inf, inf];
    for (got, want) in y.iter().zip(want) {
        assert!(
            *got == want
                || f64::from((got - want).abs()) <= driver::looser() * 2e-7 * f64::from(want.abs()),
            "{y:?}"
        );
    }
    assert!(y[9].is_nan());
    // Equal arguments share the gradient, and -inf gets none.
    let tape = tf::GradientTape::new();
    let (a, b) = (tf::constant([2.0, 3.0])?, tf::constant([2.0, -inf])?);
    tape.watch(&a)?;
    tape.watch(&b)?;
    let [da, db] = tape.gradient(&a.logaddexp(&b)?, [&a, &b])?;
    for (got, want) in [(da, [0.5, 1.0]), (db, [0.5, 0.0])] {
        let got = got.unwrap().to_vec::<f32>()?;
        assert!(got.iter().zip(want).all(|(got, want)| driver::same(*got, want)), "{got:?}");
    }
    Ok(())
}

/// Compared with Keras 3.15.
#[test]
fn nan_to_num_replaces_what_is_no_number() -> tf::Result<()> {
    let inf = f32::INFINITY;
    let x = tf::constant([f32::NAN, inf, -inf, 1.5, -0.0, 3e38])?;
    let tape = GradientTape::new();
    tape.watch(&x)?;
    let y = x.nan_to_num()?;
    assert_eq!(y.to_vec::<f32>()?, [0.0, f32::MAX, f32::MIN, 1.5, 0.0, 3e38]);
    let dx = tape.gradient(&y, &x)?.unwrap();
    assert_eq!(dx.to_vec::<f32>()?, [0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    let options = tf::NanToNumOptions::new().nan(2.0).posinf(3.0).neginf(-4.0);
    let y = x.nan_to_num_with(options)?;
    assert_eq!(y.to_vec::<f32>()?, [2.0, 3.0, -4.0, 1.5, 0.0, 3e38]);
    assert_eq!(tf::constant([1, -2])?.nan_to_num()?.to_vec::<i32>()?, [1, -2]);
    Ok(())
}

#[test]
fn sigmoid_cross_entropy_keeps_its_digits() -> tf::Result<()> {
    let logits = tf::constant([10.0, 15.0, 20.0, -20.0, 0.0])?;
    let labels = tf::constant([1.0, 1.0, 1.0, 0.0, 0.25])?;
    let tape = GradientTape::new();
    tape.watch(&logits)?;
    let loss = tf::sigmoid_cross_entropy_with_logits(&labels, &logits)?;
    // log(1 + e^-x) for label 1, log(1 + e^x) for label 0
    let want = [4.539_89e-5, 3.059_02e-7, 2.061_15e-9, 2.061_15e-9, 2f32.ln()];
    for (got, want) in loss.to_vec::<f32>()?.into_iter().zip(want) {
        assert!((got - want).abs() < 1e-5 * want, "{got} and {want}");
    }
    // sigmoid(0) - 0.25
    let grad = tape.required_gradient(&loss, &logits)?.to_vec::<f32>()?;
    assert!((grad[4] - 0.25).abs() < 1e-6, "{}", grad[4]);
    Ok(())
}

#[test]
fn cross_entropy_of_distributions_has_gradients_for_both() -> tf::Result<()> {
    let labels = tf::constant([[0.0, 1.0]])?;
    let logits = tf::constant([[1.0, 2.0]])?;
    let tape = GradientTape::new();
    tape.watch(&labels)?;
    let loss = tf::softmax_cross_entropy_with_logits(&labels, &logits)?;
    // -log softmax: log(1 + e), log(1 + 1/e)
    let grad = tape.required_gradient(&loss, &labels)?.to_vec::<f32>()?;
    assert!((grad[0] - 1.313_262).abs() < 1e-5 && (grad[1] - 0.313_262).abs() < 1e-5, "{grad:?}");
    // An impossible class that does not occur: no NaN.
    let logits = tf::constant([[f32::NEG_INFINITY, 2.0]])?;
    let loss = tf::softmax_cross_entropy_with_logits(&labels, &logits)?;
    assert_eq!(loss.to_vec::<f32>()?, [0.0]);
    Ok(())
}

#[test]
fn a_mean_of_f16_is_summed_in_f32() -> tf::Result<()> {
    let x = Tensor::full([100], 1000.0)?;
    match x.cast(tf::DType::F16) {
        Ok(x) => assert_eq!(x.reduce_mean(())?.item::<tf::f16>()?.to_f32(), 1000.0),
        Err(error) => assert!(error.to_string().contains("has no f16"), "{error}"),
    }
    Ok(())
}

#[test]
fn large_divisors_are_no_infinities() -> tf::Result<()> {
    // The reciprocal of a number beyond 2^126 is too small for a GPU's f32.
    let (a, b) = (tf::constant([3e38, 1e38, -3e38])?, tf::constant([1e38, 3e38, 3e38])?);
    let near = |got: Tensor, want: [f32; 3]| -> tf::Result<()> {
        for (got, want) in got.to_vec::<f32>()?.into_iter().zip(want) {
            assert!((got - want).abs() <= 4e-7 * want.abs(), "{got}, not {want}");
        }
        Ok(())
    };
    near(a.divide(&b)?, [3.0, 1.0 / 3.0, -1.0])?;
    near(a.divide_no_nan(&b)?, [3.0, 1.0 / 3.0, -1.0])?;
    near(a.softsign()?, [1.0, 1.0, -1.0])?;
    near(a.atan2(&b)?, [1.249_045_8, 0.321_750_55, -std::f32::consts::FRAC_PI_4])?;
    near(a.tanh()?, [1.0, 1.0, -1.0])?;
    near(a.floordiv(&b)?, [3.0, 0.0, -1.0])
}

#[test]
fn means_of_nothing_are_nan() -> tf::Result<()> {
    // A driver may compute 0 for 0 / 0.
    let x = Tensor::zeros([2, 0])?;
    let means = [x.reduce_mean(1)?.to_vec::<f32>()?, vec![x.reduce_mean(())?.item()?]].concat();
    assert!(means.len() == 3 && means.iter().all(|mean| mean.is_nan()), "{means:?}");
    Ok(())
}

#[test]
fn a_narrow_dtype_between_two_ops_narrows() -> tf::Result<()> {
    // A value that is never stored separately is still rounded or wrapped.
    let x = tf::constant([300, -1])?.cast(tf::DType::U8)?.cast(tf::DType::I32)?;
    assert_eq!(x.to_vec::<i32>()?, [44, 255]);
    match tf::constant([2049.0, 0.1])?.cast(tf::DType::F16) {
        Ok(half) => {
            assert_eq!(half.cast(tf::DType::F32)?.to_vec::<f32>()?, [2048.0, 0.099_975_586]);
            // Too large; the smallest numbers; halfway between two of them; too small.
            let edges = [65520.0, -1e9, 5.960_464_5e-8, -8.940_697e-8, 6e-5, 2e-8, f32::INFINITY];
            let narrow = tf::constant(edges)?.cast(tf::DType::F16)?;
            let want = edges.map(|x| tf::f16::from_f32(x).to_f32());
            assert_eq!(narrow.cast(tf::DType::F32)?.to_vec::<f32>()?, want);
        }
        Err(error) => assert!(error.to_string().contains("has no f16"), "{error}"),
    }
    Ok(())
}

#[test]
fn argmax_passes_over_nan() -> tf::Result<()> {
    let nan = f32::NAN;
    assert_eq!(tf::constant([nan, 1.0, 3.0])?.argmax(0)?.item::<i32>()?, 2);
    assert_eq!(tf::constant([0.0, nan, -3.0])?.argmin(0)?.item::<i32>()?, 2);
    assert_eq!(tf::constant([nan, nan])?.argmax(0)?.item::<i32>()?, 0);
    // More than one thread searches these; a NaN is at the start of the second part.
    let mut values = vec![0f32; 8192];
    (values[4096], values[5000]) = (nan, 100.0);
    assert_eq!(Tensor::from_slice(&values, [8192])?.argmax(0)?.item::<i32>()?, 5000);
    Ok(())
}

/// One thread or many search rows and columns, whole or in chunks: compared with a search here.
#[test]
fn the_largest_of_rows_and_columns_are_found() -> tf::Result<()> {
    let mut rng = fastrand::Rng::with_seed(7);
    for (rows, columns) in [
        (1, 1),
        (3, 63),
        (5, 64),
        (9, 200),
        (2, 257),
        (70, 1024),
        (9000, 3),
        (100_001, 2),
        (1, 50_257),
    ] {
        // Few different values, so that many are equal, and some NaNs.
        let few = (rows * columns / 3).clamp(2, 5000) as u32;
        let mut x: Vec<f32> = (0..rows * columns).map(|_| 1.0 + rng.u32(0..few) as f32).collect();
        x.iter_mut().filter(|_| rng.u32(0..50) == 0).for_each(|x| *x = f32::NAN);
        x[..columns.min(60)].fill(f32::NAN);
        let wanted = |of: &dyn Fn(usize) -> f32, len: usize, smallest: bool| {
            let mut best = 0;
            for i in 1..len {
                let (a, b) = (of(i), of(best));
                let beats = if smallest { a < b } else { a > b };
                best = if beats || (b.is_nan() && !a.is_nan()) { i } else { best };
            }
            best as i32
        };
        let tensor = Tensor::from_slice(&x, [rows, columns])?;
        for smallest in [false, true] {
            let of = |axis| if smallest { tensor.argmin(axis) } else { tensor.argmax(axis) };
            let of_rows: Vec<i32> =
                (0..rows).map(|r| wanted(&|c| x[r * columns + c], columns, smallest)).collect();
            assert_eq!(of(1)?.to_vec::<i32>()?, of_rows, "rows of [{rows}, {columns}]");
            let of_columns: Vec<i32> =
                (0..columns).map(|c| wanted(&|r| x[r * columns + c], rows, smallest)).collect();
            assert_eq!(of(0)?.to_vec::<i32>()?, of_columns, "columns of [{rows}, {columns}]");
        }
        let turned = tensor.transpose(())? + 0.0;
        assert_eq!(turned.argmax(0)?.to_vec::<i32>()?, tensor.argmax(1)?.to_vec::<i32>()?);
    }
    child::also_portable(module_path!(), "the_largest_of_rows_and_columns_are_found");
    Ok(())
}

#[test]
fn steps_beyond_an_axis_take_one_element() -> tf::Result<()> {
    let x = tf::constant([[1, 2], [3, 4]])?;
    assert_eq!(x.strided_slice(s![..;isize::MAX, ..])?.to_vec::<i32>()?, [1, 2]);
    assert_eq!(x.strided_slice(s![..;isize::MIN + 1, ..])?.to_vec::<i32>()?, [3, 4]);
    Ok(())
}

#[test]
fn empty_tensors_may_have_huge_axes() -> tf::Result<()> {
    let x = Tensor::zeros([0, 1 << 29, 1 << 29])?;
    assert_eq!(x.reduce_sum(())?.item::<f32>()?, 0.0);
    assert_eq!(x.reduce_max(())?.item::<f32>()?, f32::NEG_INFINITY);
    assert!(x.reduce_mean(())?.item::<f32>()?.is_nan());
    assert!(x.transpose(())?.is_empty());
    let ids = Tensor::from_slice::<i32>(&[], [0])?;
    assert!(matches!(x.unsorted_segment_sum(&ids, 0), Ok(y) if y.is_empty()));
    Ok(())
}

#[test]
fn the_gradient_of_a_product_is_right_at_zeros() -> tf::Result<()> {
    let x = tf::constant([0.0, 2.0, 3.0])?;
    let outer = GradientTape::persistent();
    outer.watch(&x)?;
    let inner = GradientTape::new();
    inner.watch(&x)?;
    let grad = inner.required_gradient(&x.reduce_prod(())?, &x)?;
    assert_eq!(grad.to_vec::<f32>()?, [6.0, 0.0, 0.0]);
    // The Hessian of x0 x1 x2: off the diagonal the third number, on it 0.
    let rows = [[0.0, 3.0, 2.0], [3.0, 0.0, 0.0], [2.0, 0.0, 0.0]];
    for (element, row) in grad.unstack(0)?.iter().zip(rows) {
        assert_eq!(outer.gradient(element, &x)?.unwrap().to_vec::<f32>()?, row);
    }
    Ok(())
}

#[test]
fn the_gradient_of_a_long_product_is_right_at_zeros() -> tf::Result<()> {
    // Factors near 1, so that their product is finite; some rows have a zero, some two.
    for [rows, n] in [[1, 4097], [1000, 130], [3, 17], [2, 257]] {
        let mut values: Vec<f32> =
            (0..rows * n).map(|i| 1.0 + ((i * 37 % 61) as f32 - 30.0) / 4096.0).collect();
        for row in 0..rows {
            for zero in 0..row % 3 {
                values[row * n + (row * 7 + zero * 11) % n] = 0.0;
            }
        }
        values[n / 2] = 0.0;
        let x = Tensor::from_slice(&values, [rows, n])?;
        let outer = GradientTape::new();
        outer.watch(&x)?;
        let inner = GradientTape::new();
        inner.watch(&x)?;
        let grad = inner.required_gradient(&x.reduce_prod(1)?, &x)?;
        let second = outer.required_gradient(&grad, &x)?.to_vec::<f32>()?;
        let grad = grad.to_vec::<f32>()?;
        let zeros = |row: &[f32]| row.iter().filter(|v| **v == 0.0).count();
        let product =
            |row: &[f32]| row.iter().map(|v| f64::from(*v)).filter(|v| *v != 0.0).product::<f64>();
        for (r, row) in values.chunks(n).enumerate() {
            let (all, count) = (product(row), zeros(row));
            // d/dx_i sum_j d_j, where d_j is the product of all but x_j: the sum over j of the products of all but two.
            let inverse: f64 = row.iter().filter(|v| **v != 0.0).map(|v| 1.0 / f64::from(*v)).sum();
            for (i, v) in row.iter().enumerate() {
                let v = f64::from(*v);
                let (want, want_second) = match (count, v == 0.0) {
                    (0, _) => (all / v, all / v * (inverse - 1.0 / v)),
                    (1, true) => (all, all * inverse),
                    (1, false) => (0.0, all / v),
                    (2, true) => (0.0, all),
                    _ => (0.0, 0.0),
                };
                let (got, got_second) = (f64::from(grad[r * n + i]), f64::from(second[r * n + i]));
                assert!(
                    (got - want).abs() <= driver::looser_sums() * 2e-5 * want.abs(),
                    "[{r},{i}] of [{rows},{n}]: {got}, not {want}"
                );
                let bound = driver::looser_sums() * 1e-4 * want_second.abs();
                assert!(
                    (got_second - want_second).abs() <= bound,
                    "[{r},{i}] of [{rows},{n}]: {got_second}, not {want_second}"
                );
            }
        }
    }
    Ok(())
}

#[test]
fn an_earlier_read_of_a_variable_is_a_constant() -> tf::Result<()> {
    let v = Variable::new(&tf::constant(3.0)?);
    let old = v.read();
    let tape = GradientTape::new();
    let y = v.read() * &old;
    assert_eq!(tape.required_gradient(&y, &v)?.item::<f32>()?, 3.0);

    let tape = GradientTape::new();
    let still = tape.stop_recording(|| v.read());
    let y = v.read() * &still;
    assert_eq!(tape.required_gradient(&y, &v)?.item::<f32>()?, 3.0);

    // The same holds for values computed from a recorded one.
    let tape = GradientTape::new();
    let now = v.read();
    let twice = tape.stop_recording(|| &now * 2.0);
    let y = &now * &twice;
    assert_eq!(tape.required_gradient(&y, &v)?.item::<f32>()?, 6.0);

    let tape = GradientTape::new();
    tape.watch(&old)?;
    let y = &v * &v;
    assert_eq!(tape.required_gradient(&y, &v)?.item::<f32>()?, 6.0);
    Ok(())
}

#[test]
fn updates_from_several_threads_are_all_counted() -> tf::Result<()> {
    let device = Device::new()?;
    let count = device.scope(|| tf::constant(0))?;
    let count = Variable::untrainable(&count);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..500 {
                    count.assign_add(1).unwrap();
                }
            });
        }
    });
    assert_eq!(count.read().item::<i32>()?, 1000);
    Ok(())
}

#[test]
fn uploads_in_a_loop_make_room_for_themselves() -> tf::Result<()> {
    let options = DeviceOptions::new().memory_limit(64 << 20);
    let device = Device::open(&options)?;
    device.scope(|| {
        let mut sum = Tensor::zeros([])?;
        for _ in 0..40 {
            // 4 MiB each, held only by the pending op.
            let x = Tensor::from_slice(&vec![1f32; 1 << 20], [1 << 20])?;
            sum = sum + x.reduce_sum(())?;
        }
        assert_eq!(sum.item::<f32>()?, (40 << 20) as f32);
        Ok(())
    })
}

#[test]
fn a_lost_device_is_reported_as_lost_by_every_call() -> tf::Result<()> {
    for asynchronous in [false, true] {
        let device = Device::new()?;
        device.scope(|| {
            let x = tf::constant([1.0, 2.0])?;
            device.flush()?;
            device.wgpu().0.destroy();
            let error = match asynchronous {
                true => pollster::block_on(x.to_vec_async::<f32>()).unwrap_err(),
                false => x.to_vec::<f32>().unwrap_err(),
            };
            assert!(error.is_device_lost(), "{error}");
            tf::Result::Ok(())
        })?;
    }
    Ok(())
}

#[test]
fn empty_ranges_of_random_integers_are_refused() {
    for (low, high) in [(5, 5), (5, 3)] {
        let error = tf::random::stateless_uniform_int([3], [1, 2], low, high).unwrap_err();
        assert!(matches!(error, Error::Index(_)), "{error}");
    }
}

/// Compared with 64-bit sums; TensorFlow's means of integers are truncated, too.
#[test]
fn means_of_integers_are_exact_where_their_sums_overflow() -> tf::Result<()> {
    // A picture's bytes, all 200, with a sum of more than 2^31.
    let bytes = Tensor::full([7, 2048, 2048], 200)?;
    assert_eq!(bytes.reduce_mean(())?.item::<i32>()?, 200);
    assert_eq!(
        bytes.cast(tf::DType::U32)?.multiply(1000)?.reduce_mean(())?.item::<u32>()?,
        200_000
    );
    assert_eq!(Tensor::full([0], 1)?.reduce_mean(())?.item::<i32>()?, 0);
    for (rows, n) in [(3usize, 1usize), (5, 3), (4, 1000), (2, 40_000), (1, 70_001), (1, 300_007)] {
        let word = |i: usize| (i as u32).wrapping_mul(2_654_435_761).rotate_left(7) ^ 0x5bd1_e995;
        // All magnitudes, all near one end, and few different ones.
        let kinds: [fn(u32) -> u32; 4] =
            [|w| w, |w| w | 0x7fff_0000, |w| u32::MAX - (w & 1), |w| w % 7];
        for kind in kinds {
            let x: Vec<u32> = (0..rows * n).map(|i| kind(word(i))).collect();
            let want: Vec<u32> = x
                .chunks(n)
                .map(|row| (row.iter().map(|v| u64::from(*v)).sum::<u64>() / n as u64) as u32)
                .collect();
            let y = Tensor::from_slice(&x, [rows, n])?.reduce_mean(1)?;
            assert_eq!(y.to_vec::<u32>()?, want, "u32 {n}");
            let x: Vec<i32> = x.iter().map(|v| *v as i32).collect();
            let want: Vec<i32> = x
                .chunks(n)
                .map(|row| (row.iter().map(|v| i64::from(*v)).sum::<i64>() / n as i64) as i32)
                .collect();
            let x = Tensor::from_slice(&x, [rows, n])?;
            assert_eq!(x.reduce_mean(1)?.to_vec::<i32>()?, want, "i32 {n}");
            let first = x.transpose(())?.reduce_mean(tf::Axes::from(0).keepdims(true))?;
            assert_eq!(
                (first.shape(), first.to_vec::<i32>()?),
                (&[1, rows][..], want),
                "columns {n}"
            );
        }
    }
    Ok(())
}

/// Numbers whose mean is a million times their deviation: a rounded mean would make the squares too large.
#[test]
fn variances_of_numbers_far_from_zero_keep_their_digits() -> tf::Result<()> {
    for n in [100usize, 4096, 100_003] {
        for (mean, spread) in
            [(1e6, 1.0), (-1e6, 1.0), (1e3, 1e-3), (1.0, 1e-6), (0.0, 1.0), (1e30, 1e24)]
        {
            let part = |i: usize| (i.wrapping_mul(2_654_435_761) & 0xff_ffff) as f64 / 8_388_608.0;
            let x: Vec<f32> = (0..n).map(|i| (mean + spread * (part(i) - 1.0)) as f32).collect();
            let wide: Vec<f64> = x.iter().map(|v| f64::from(*v)).collect();
            let middle = wide.iter().sum::<f64>() / n as f64;
            let want = wide.iter().map(|v| (v - middle) * (v - middle)).sum::<f64>() / n as f64;
            let (x, by_column) = (Tensor::from_slice(&x, [n])?, Tensor::from_slice(&x, [n, 1])?);
            let near = |name: &str, got: Tensor, want: f64| -> tf::Result<()> {
                let off = f64::from(got.item::<f32>()?) / want - 1.0;
                assert!(
                    off.abs() < driver::looser() * 3e-6,
                    "{name} of {n} around {mean:e}: off by {off:e}"
                );
                Ok(())
            };
            if spread > 1e20 {
                // Squares beyond the range are infinite, not NaN.
                assert_eq!(x.reduce_variance(())?.item::<f32>()?, f32::INFINITY);
                continue;
            }
            near("reduce_variance", x.reduce_variance(())?, want)?;
            near("reduce_std", x.reduce_std(0)?, want.sqrt())?;
            near("moments", x.moments(0)?.1, want)?;
            let weights = Tensor::full([n], 2.0)?;
            near("weighted_moments", x.weighted_moments(0, &weights)?.1, want)?;
            let ones = Tensor::ones([1])?;
            let options = tf::FusedBatchNormOptions::new();
            let [_, _, unbiased] = by_column.fused_batch_norm(&ones, &ones, options)?;
            near("fused_batch_norm", unbiased, want * n as f64 / (n - 1) as f64)?;
        }
    }
    // The variance of equal numbers is 0, not even slightly negative, which would make its root NaN.
    for x in [1.1e6f32, -0.3, 1e-3] {
        let deviation = Tensor::full([1_000_003], x)?.reduce_std(())?.item::<f32>()?;
        assert!(deviation <= 1e-4 * x.abs(), "{deviation} of equal {x}");
    }
    for dtype in [tf::DType::I32, tf::DType::U32, tf::DType::Bool] {
        let x = tf::constant([1, 2])?.cast(dtype)?;
        for error in [x.reduce_variance(()), x.reduce_std(())].map(|y| y.unwrap_err().to_string()) {
            assert!(
                error.contains("ReduceVariance: the dtype") && error.contains("Cast"),
                "{error}"
            );
        }
    }
    Ok(())
}
