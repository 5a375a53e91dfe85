//! Calls for which other libraries silently returned wrong numbers on some GPU, according to reports, run on this adapter.
//! `docs/portability.md` names the reports. Each test runs with the kernels for this adapter, and with those for a GPU with
//! only WebGPU's guaranteed limits.

use wgrad as tf;
use wgrad::{
    Conv2dOptions, DType, Device, GradientTape, MatmulOptions, Padding, Tensor, Variable, f16,
};

use crate::support::child;

/// Numbers between -1 and 1, different for each seed.
fn numbers(count: usize, seed: u64) -> Vec<f32> {
    let mut rng = fastrand::Rng::with_seed(seed);
    (0..count).map(|_| rng.f32() * 2.0 - 1.0).collect()
}

/// Compares the product of `[m,k]` and `[k,n]` at 400 positions and at the last one with sums in `f64`.
fn product(m: usize, k: usize, n: usize) -> tf::Result<()> {
    let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
    let (x, y) = (Tensor::from_slice(&a, [m, k])?, Tensor::from_slice(&b, [k, n])?);
    // The same numbers as transposes of stored tensors.
    let (across_x, across_y) = (x.transpose(())? + 0.0, y.transpose(())? + 0.0);
    let [ta, tb] = [MatmulOptions::new().transpose_a(true), MatmulOptions::new().transpose_b(true)];
    let results = [
        ("plain", x.matmul(&y)?),
        ("a view of a transpose", across_x.transpose(())?.matmul(&y)?),
        ("transpose_a", across_x.matmul_with(&y, ta)?),
        ("transpose_b", x.matmul_with(&across_y, tb)?),
    ];
    let mut rng = fastrand::Rng::with_seed(3);
    let places: Vec<(usize, usize)> = (0..400)
        .map(|_| (rng.usize(..m), rng.usize(..n)))
        .chain([(m - 1, n - 1), (0, 0)])
        .collect();
    for (how, result) in results {
        let c = result.to_vec::<f32>()?;
        for &(i, j) in &places {
            let terms = (0..k).map(|p| f64::from(a[i * k + p]) * f64::from(b[p * n + j]));
            let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
            let got = f64::from(c[i * n + j]);
            // A sum of `k` terms in f32, in any order.
            let bound = k as f64 * f64::from(f32::EPSILON) / 2.0 * size;
            assert!(
                (got - sum).abs() <= bound,
                "[{m},{k}] x [{k},{n}], {how}, at [{i},{j}]: {got} for {sum}"
            );
        }
    }
    Ok(())
}

/// Sizes that are not multiples of tiles, with rows from 500 on, odd numbers of steps along `k`, and partial subgroups.
#[test]
fn products_of_odd_sizes() -> tf::Result<()> {
    for (m, k, n) in [
        (257, 384, 1152),
        (499, 64, 33),
        (500, 1024, 64),
        (513, 1000, 65),
        (64, 104, 208),
        (64, 440, 440),
        (128, 64, 45),
        (45, 128, 64),
        (1, 4095, 3),
        (3, 4097, 1),
        (1, 1, 1),
        (1, 1, 700),
        (700, 1, 1),
        (2, 3, 2),
    ] {
        product(m, k, n)?;
    }
    child::also_portable(module_path!(), "products_of_odd_sizes");
    Ok(())
}

/// Parts of matrices, batches with one broadcast operand, and batches beyond a grid's size along one axis.
#[test]
fn products_of_parts_and_batches() -> tf::Result<()> {
    let m = [
        0.943_755,
        0.162_902,
        -0.287_733,
        -0.241_071,
        0.066_987_6,
        -0.946_367,
        -0.316_074,
        0.150_359,
        -0.323_79,
        0.279_022,
        -0.904_05,
        -0.540_78,
        0.0,
        0.0,
        0.0,
        1.0f32,
    ];
    let m = Tensor::from_slice(&m, [4, 4])?;
    let (r, t) = (m.slice(&[0, 0], &[3, 3])?, m.slice(&[0, 3], &[3, 1])?);
    let y = r.matmul(&t)?.to_vec::<f32>()?;
    for (got, want) in y.iter().zip([-0.047_417_9, 0.012_482_9, 0.608_902]) {
        assert!((got - want).abs() < 1e-6, "{y:?}");
    }
    // [8,64,45]; the first operand is one matrix for all.
    let (a, b) = (numbers(64 * 128, 1), numbers(8 * 128 * 45, 2));
    let (x, y) = (Tensor::from_slice(&a, [1, 64, 128])?, Tensor::from_slice(&b, [8, 128, 45])?);
    let c = x.matmul(&y)?.to_vec::<f32>()?;
    for (batch, i, j) in [(0, 0, 0), (3, 17, 44), (7, 63, 44), (7, 0, 1)] {
        let terms = (0..128).map(|p| a[i * 128 + p] as f64 * b[(batch * 128 + p) * 45 + j] as f64);
        let (got, want) = (c[(batch * 64 + i) * 45 + j] as f64, terms.sum::<f64>());
        assert!((got - want).abs() < 1e-4, "{batch}, {i}, {j}: {got} for {want}");
    }
    const MANY: usize = 70_001;
    let x = numbers(MANY * 2, 5);
    let rows = Tensor::from_slice(&x, [MANY, 1, 2])?;
    let y = rows.matmul(&rows.transpose([0, 2, 1])?)?.to_vec::<f32>()?;
    for at in [0, 1, 65_534, 65_535, 65_536, MANY - 1] {
        let want = x[2 * at] * x[2 * at] + x[2 * at + 1] * x[2 * at + 1];
        assert!((y[at] - want).abs() <= 2e-7, "{at}: {} for {want}", y[at]);
    }
    child::also_portable(module_path!(), "products_of_parts_and_batches");
    Ok(())
}

/// Convolutions of 1x1 are products; their channels are not multiples of steps.
#[test]
fn convolutions_of_one_by_one() -> tf::Result<()> {
    for (channels, filters) in [(104, 208), (440, 440), (3, 5)] {
        let (x, w) = (numbers(2 * 49 * channels, 1), numbers(channels * filters, 2));
        let image = Tensor::from_slice(&x, [2, 7, 7, channels])?;
        let kernel = Tensor::from_slice(&w, [1, 1, channels, filters])?;
        let options = Conv2dOptions::new().padding(Padding::Same);
        let tape = GradientTape::new();
        tape.watch(&kernel)?;
        let y = image.conv2d(&kernel, options)?;
        let sum = y.reduce_sum(())?;
        let dw = tape.required_gradient(&sum, &kernel)?.to_vec::<f32>()?;
        let y = y.to_vec::<f32>()?;
        for (at, f) in [(0, 0), (48, filters - 1), (97, 1), (97, filters - 1)] {
            let terms =
                (0..channels).map(|c| x[at * channels + c] as f64 * w[c * filters + f] as f64);
            let (got, want) = (y[at * filters + f] as f64, terms.sum::<f64>());
            assert!((got - want).abs() < 1e-4, "{channels} to {filters}: {got} for {want}");
        }
        // For the sum: each weight of a channel gets the channel's sum.
        for c in [0, channels - 1] {
            let want: f64 = (0..98).map(|at| x[at * channels + c] as f64).sum();
            let got = dw[c * filters + filters - 1] as f64;
            assert!((got - want).abs() < 1e-4, "channel {c} of {channels}: {got} for {want}");
        }
    }
    child::also_portable(module_path!(), "convolutions_of_one_by_one");
    Ok(())
}

/// Filters' gradients of one or two images, whose sums a GPU also splits at the rows of the images, and of images with short
/// rows, of which it combines several.
#[test]
fn filters_gradients_of_few_and_of_small_images() -> tf::Result<()> {
    for (images, size, channels, filters, side, stride) in [
        (1, 56, 16, 32, 3, 1),
        (2, 31, 64, 33, 3, 2),
        (1, 9, 256, 64, 5, 1),
        (1, 120, 3, 5, 7, 3),
        (5, 16, 24, 18, 3, 1),
        (3, 13, 40, 41, 5, 1),
        (40, 7, 9, 20, 2, 1),
        (70, 3, 17, 17, 3, 1),
    ] {
        let out = (size - side) / stride + 1;
        let x = numbers(images * size * size * channels, 1);
        let g = numbers(images * out * out * filters, 2);
        let image = Tensor::from_slice(&x, [images, size, size, channels])?;
        let dy = Tensor::from_slice(&g, [images, out, out, filters])?;
        let kernel = Tensor::zeros([side, side, channels, filters])?;
        let tape = GradientTape::new();
        tape.watch(&kernel)?;
        let options = Conv2dOptions::new().strides([stride, stride]);
        let y = image.conv2d(&kernel, options)?;
        let dw = tape.gradient_from(&y, Some(&[&dy]), &kernel)?.unwrap().to_vec::<f32>()?;
        for at in (0..dw.len()).step_by(dw.len() / 50).chain([dw.len() - 1]) {
            let (f, c) = (at % filters, at / filters % channels);
            let (v, u) = (at / filters / channels % side, at / filters / channels / side);
            let (mut want, mut weight) = (0.0, 0.0);
            for place in 0..images * out * out {
                let (n, i, j) = (place / out / out, place / out % out, place % out);
                let pixel = (n * size + i * stride + u) * size + j * stride + v;
                let term = f64::from(x[pixel * channels + c]) * f64::from(g[place * filters + f]);
                (want, weight) = (want + term, weight + term.abs());
            }
            let got = f64::from(dw[at]);
            let bound = 1e-6 * weight;
            assert!((got - want).abs() <= bound, "{size}, {side}, at {at}: {got} for {want}");
        }
    }
    child::also_portable(module_path!(), "filters_gradients_of_few_and_of_small_images");
    Ok(())
}

/// Sums of rows by number, which are sorted in a workgroup's memory if they fit; tests sizes around that limit.
#[test]
fn rows_are_added_by_their_numbers() -> tf::Result<()> {
    for (count, segments) in
        [(300, 7), (2048, 2000), (2049, 50_257), (4095, 3), (4096, 100), (4097, 100)]
    {
        let which: Vec<i32> = (0..count).map(|i| (i * 7919 % 4999 % segments) as i32).collect();
        let x = numbers(count * 3, 4);
        let mut want = vec![0f64; segments * 3];
        for (i, at) in which.iter().enumerate() {
            (0..3).for_each(|c| want[*at as usize * 3 + c] += f64::from(x[i * 3 + c]));
        }
        let x = Tensor::from_slice(&x, [count, 3])?;
        let which = Tensor::from_slice(&which, [count])?;
        let table = Tensor::zeros([segments, 3])?;
        let tape = GradientTape::new();
        tape.watch(&table)?;
        let y = table.gather(&which, 0)?;
        let of_gather = tape.gradient_from(&y, Some(&[&x]), &table)?.unwrap().to_vec::<f32>()?;
        let of_segments = x.unsorted_segment_sum(&which, segments)?.to_vec::<f32>()?;
        for (got, what) in [(of_gather, "gather"), (of_segments, "segments")] {
            for (at, (got, want)) in got.into_iter().zip(&want).enumerate() {
                let off = (f64::from(got) - want).abs();
                assert!(off <= 1e-3, "{count} rows, {what}, {at}: {got} for {want}");
            }
        }
    }
    child::also_portable(module_path!(), "rows_are_added_by_their_numbers");
    Ok(())
}

/// Transposes whose sides are or are not multiples of a workgroup's tile, fused with other ops.
#[test]
fn transposes_of_any_sides() -> tf::Result<()> {
    for shape in [[16, 1, 32], [17, 1, 36], [100, 1, 132], [33, 3, 40], [250, 2, 16], [64, 5, 64]] {
        let [a, b, c] = shape;
        let count = a * b * c;
        let x = tf::range(0, count, 1)?.reshape([c as i64, b as i64, a as i64])?;
        // Element [i,j,k] of a result, and its original position.
        let places =
            || (0..a).flat_map(|i| (0..b).flat_map(move |j| (0..c).map(move |k| (i, j, k))));
        let ends = places().map(|(i, j, k)| (k * b + j) * a + i);
        let across = x.transpose([2, 1, 0])?;
        assert!((&across + 0).to_vec::<i32>()?.into_iter().eq(ends.clone()), "{shape:?}");
        // Of bytes and halves, reversed, and of a part.
        let bytes = x.floormod(251)?.cast(DType::U8)?.transpose([2, 1, 0])?.to_vec::<u8>()?;
        assert!(bytes.into_iter().eq(ends.clone().map(|x| (x % 251) as u8)), "{shape:?}");
        let halves = x.floormod(2000)?.cast(DType::F16)?.transpose([2, 1, 0])?;
        let halves = (halves * 2.0).to_vec::<f16>()?;
        assert!(halves.into_iter().eq(ends.clone().map(|x| f16::from_f32((x % 2000 * 2) as f32))));
        let back = (x.reverse([2])?.transpose([2, 1, 0])? + 0).to_vec::<i32>()?;
        let turned = places().map(|(i, j, k)| (k * b + j) * a + a - 1 - i);
        assert!(back.into_iter().eq(turned), "{shape:?}");
        // With its own transpose, and in a batch.
        let own = tf::range(0, count, 1)?.reshape([a as i64, b as i64, c as i64])?;
        let both = (&own * 3 - &across).to_vec::<i32>()?;
        let wanted = ends.clone().enumerate().map(|(e, x)| 3 * e as i32 - x);
        assert!(both.into_iter().eq(wanted), "{shape:?}");
        let pair = tf::stack([&x, &(&x + count)], 0)?.transpose([0, 3, 2, 1])?;
        let wanted = ends.clone().chain(ends.map(|x| x + count));
        assert!((pair + 0).to_vec::<i32>()?.into_iter().eq(wanted), "{shape:?}");
    }
    child::also_portable(module_path!(), "transposes_of_any_sides");
    Ok(())
}

/// More elements, rows and segments than a grid has workgroups along one axis.
#[test]
fn grids_of_more_than_one_row() -> tf::Result<()> {
    // A thread has four elements and a workgroup at most 256 threads, on a GPU 64.
    const MANY: i32 = 17_000_001;
    let x = tf::range(0, MANY, 1)?;
    let y = (&x + 1).to_vec::<i32>()?;
    assert!(y.iter().zip(1..).all(|(got, want)| *got == want));
    let back = x.reverse([0])?.to_vec::<i32>()?;
    assert!(back.iter().rev().zip(0..).all(|(got, want)| *got == want));
    // A workgroup per row, or per few rows.
    const ROWS: usize = 70_003;
    let rows = tf::range(0, 3 * ROWS as i32, 1)?.reshape([ROWS as i64, 3])?;
    let floats = rows.cast(DType::F32)?;
    let sums = floats.reduce_sum(1)?.to_vec::<f32>()?;
    let running = rows.cumsum(1)?.to_vec::<i32>()?;
    let largest = rows.argmax(1)?.to_vec::<i32>()?;
    let shares = (floats.multiply(1e-5)?).softmax(1)?.reduce_sum(1)?.to_vec::<f32>()?;
    let (top, _) = rows.top_k(1)?;
    let (top, sorted) = (top.to_vec::<i32>()?, rows.reverse([1])?.sort(1)?.to_vec::<i32>()?);
    for r in 0..ROWS {
        let first = 3 * r as i32;
        assert_eq!(sums[r], (3 * first + 3) as f32, "row {r}");
        assert_eq!(running[3 * r..][..3], [first, 2 * first + 1, 3 * first + 3], "row {r}");
        assert_eq!((largest[r], top[r]), (2, first + 2), "row {r}");
        assert_eq!(sorted[3 * r..][..3], [first, first + 1, first + 2], "row {r}");
        assert!((shares[r] - 1.0).abs() < 1e-6, "row {r}: {}", shares[r]);
    }
    // Each position is its own segment, and rows of a table in another order.
    let places = tf::range(0, ROWS as i32, 1)?;
    let summed = floats.unsorted_segment_sum(&places, ROWS)?.to_vec::<f32>()?;
    let moved = rows.gather(&places.reverse([0])?, 0)?.to_vec::<i32>()?;
    for r in [0, 65_534, 65_535, 65_536, ROWS - 1] {
        assert_eq!(summed[3 * r], 3.0 * r as f32);
        assert_eq!(moved[3 * r], 3 * (ROWS - 1 - r) as i32);
    }
    child::also_portable(module_path!(), "grids_of_more_than_one_row");
    Ok(())
}

/// Integers whose bits are a denormal, an infinity or a NaN of `f32` are moved unchanged.
#[test]
fn integers_keep_their_bits() -> tf::Result<()> {
    let mut bits: Vec<i32> = (0..40).collect();
    let others = [
        0x0040_0000u32,
        0x007f_ffff,
        0x8000_0000,
        0x8000_0001,
        0x7f80_0000,
        0x7f80_0001,
        0xffc0_0000,
        u32::MAX,
    ];
    bits.extend(others.map(|bits| bits as i32));
    let (rows, columns) = (6, bits.len() / 6);
    let x = Tensor::from_slice(&bits, [rows, columns])?;
    let signed = x.to_vec::<i32>()?;
    assert_eq!(signed, bits);
    let words: Vec<u32> = bits.iter().map(|&bits| bits as u32).collect();
    let unsigned = Tensor::from_slice(&words, [rows, columns])?;
    for x in [&x, &unsigned] {
        let same = |how: &str, y: Tensor| {
            // Both dtypes are compared bit by bit.
            let y = match y.dtype() {
                DType::U32 => y.to_vec::<u32>().unwrap().iter().map(|&word| word as i32).collect(),
                _ => y.to_vec::<i32>().unwrap(),
            };
            assert_eq!(y, bits, "{how}");
        };
        same(
            "transposed twice",
            (x.transpose(())? + &x.zeros_like()?.transpose(())?).transpose(())?,
        );
        same("reversed twice", x.reverse([0, 1])?.reverse([0, 1])?);
        let (left, right) = (x.slice(&[0, 0], &[-1, 3])?, x.slice(&[0, 3], &[-1, -1])?);
        same("cut and joined", tf::concat([&left, &right], 1)?);
        same(
            "padded and cut",
            x.pad(&[(1, 2), (3, 1)])?.slice(&[1, 3], &[rows as i64, columns as i64])?,
        );
        same("rolled", x.roll(&[2, -3], [0, 1])?.roll(&[-2, 3], [0, 1])?);
        same("gathered", x.gather(&tf::range(0, rows as i32, 1)?, 0)?);
        let all = x.zeros_like()?.equal(&x.zeros_like()?)?;
        same("selected", tf::where_(&all, x, &x.ones_like()?)?);
        same(
            "repeated",
            x.repeat(&[2], 0)?
                .reshape([rows as i64, 2, columns as i64])?
                .slice(&[0, 0, 0], &[-1, 1, -1])?,
        );
        same("the largest of one", x.expand_dims(2)?.reduce_max(2)?);
        same("summed with nothing", x.add(x.zeros_like()?)?);
        same("assigned", {
            let variable = Variable::new(x);
            variable.assign(x)?;
            variable.read()
        });
        let flat = x.reshape([-1])?;
        let (sorted, order) = (flat.sort(0)?, flat.argsort(0)?);
        assert!(sorted.equal(flat.gather(&order, 0)?)?.reduce_all(())?.item::<bool>()?);
    }
    child::also_portable(module_path!(), "integers_keep_their_bits");
    Ok(())
}

/// Tensors of each number of bytes up to some words, whose buffers and copies are whole words.
#[test]
fn any_count_of_bytes_arrives() -> tf::Result<()> {
    for count in 1..=17usize {
        let bytes: Vec<u8> = (0..count).map(|i| (37 * i + 201) as u8).collect();
        let x = Tensor::from_slice(&bytes, [count])?;
        assert_eq!(x.to_vec::<u8>()?, bytes);
        assert_eq!(tf::concat([&x, &x], 0)?.slice(&[count], &[-1])?.to_vec::<u8>()?, bytes);
        let truths: Vec<bool> = bytes.iter().map(|byte| byte % 3 == 0).collect();
        let x = Tensor::from_slice(&truths, [count])?;
        assert_eq!(x.logical_not()?.logical_not()?.to_vec::<bool>()?, truths);
        let halves: Vec<f16> =
            bytes.iter().map(|byte| f16::from_f32(f32::from(*byte) / 8.0)).collect();
        if let Ok(x) = Tensor::from_slice(&halves, [count]) {
            assert_eq!(x.to_vec::<f16>()?, halves);
            let back = x.reverse([0])?.to_vec::<f16>()?;
            assert!(back.iter().rev().eq(&halves), "{count}");
        }
    }
    Ok(())
}

/// A tensor may be every input of an op, and also the one that the result replaces.
#[test]
fn one_tensor_is_every_input() -> tf::Result<()> {
    let x = Tensor::from_slice(&numbers(64 * 64, 7), [64, 64])? + 2.0;
    let once = x.to_vec::<f32>()?;
    let square: Vec<f32> = once.iter().map(|x| x * x).collect();
    assert_eq!((&x * &x).to_vec::<f32>()?, square);
    assert_eq!(tf::where_(&x.greater(&x)?, &x, &x)?.to_vec::<f32>()?, once);
    let twice = tf::concat([&x, &x, &x], 0)?.to_vec::<f32>()?;
    assert!(twice.chunks(once.len()).all(|part| part == once));
    let both = tf::stack([&x, &x], 0)?.reduce_sum(0)?.to_vec::<f32>()?;
    assert!(both.iter().zip(&once).all(|(got, x)| *got == 2.0 * x));
    let other = Tensor::from_slice(&once, [64, 64])?;
    assert_eq!(x.matmul(&x)?.to_vec::<f32>()?, x.matmul(&other)?.to_vec::<f32>()?);
    let ids = tf::constant([2, 0, 1])?;
    assert_eq!(ids.gather(&ids, 0)?.to_vec::<i32>()?, [1, 2, 0]);
    let (image, filter) = (x.reshape([1, 64, 64, 1])?, x.reshape([64, 64, 1, 1])?);
    let seen = image.conv2d(&filter, Conv2dOptions::new())?.item::<f32>()?;
    let want: f64 = square.iter().map(|&x| f64::from(x)).sum();
    assert!((f64::from(seen) - want).abs() < 1e-5 * want, "{seen} for {want}");
    // In place: the same buffer is read and written.
    let variable = Variable::new(&x);
    drop((x, image, filter));
    for _ in 0..3 {
        let value = variable.read();
        variable.assign(&value * 0.5 + &value * 0.5)?;
        drop(value);
        Device::current()?.flush()?;
    }
    assert_eq!(variable.read().to_vec::<f32>()?, once);
    child::also_portable(module_path!(), "one_tensor_is_every_input");
    Ok(())
}

/// Functions at the ends of their domains, where some built-in functions of WGSL fail.
#[test]
fn functions_at_their_ends() -> tf::Result<()> {
    let inf = f32::INFINITY;
    let x = tf::constant([1e3, -1e3, 88.0, -88.0, 3e38, -3e38, inf, -inf, 0.0])?;
    let one = |y: Tensor| y.to_vec::<f32>();
    assert_eq!(one(x.tanh()?)?, [1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 0.0]);
    let sigmoid = one(x.sigmoid()?)?;
    assert_eq!(sigmoid[..3], [1.0, 0.0, 1.0]);
    assert_eq!(sigmoid[4..], [1.0, 0.0, 1.0, 0.0, 0.5]);
    // The value that a mask adds, and the value that it keeps.
    let scores = tf::constant([[-0.03, -1e9, -1e9], [-0.2, 0.2, -inf], [7.0, 7.0, 7.0]])?;
    let shares = scores.softmax(1)?.to_vec::<f32>()?;
    assert_eq!(shares[..3], [1.0, 0.0, 0.0]);
    assert!((shares[3] + shares[4] - 1.0).abs() < 1e-6 && shares[5] == 0.0, "{shares:?}");
    assert!(shares[6..].iter().all(|share| (share - 1.0 / 3.0).abs() < 1e-6), "{shares:?}");
    // An infinity from the program, and one computed by the device.
    let five = tf::constant([5.0, -5.0])?;
    assert_eq!(one(five.multiply(inf)?)?, [inf, -inf]);
    assert_eq!(one(five.divide(&tf::constant([0.0, 0.0])?)?)?, [inf, -inf]);
    let nan = tf::constant([f32::NAN, 1.0, inf])?;
    assert_eq!(nan.is_nan()?.to_vec::<bool>()?, [true, false, false]);
    assert_eq!(nan.add(1.0)?.is_nan()?.to_vec::<bool>()?, [true, false, false]);
    let powers =
        tf::constant([-2.0, -2.0, -1.5, 0.0])?.pow(&tf::constant([2.0, 3.0, 1.0, 0.0])?)?;
    assert_eq!(one(powers)?, [4.0, -8.0, -1.5, 1.0]);
    // The angle of two large numbers: their quotient is not 0.
    let angle = tf::constant([-5.669_010_3e35])?.atan2(&tf::constant([2.869_936_4e38])?)?;
    let (got, want) = (angle.item::<f32>()?, -0.001_975_306_5f32);
    assert!((got - want).abs() < 1e-8, "{got} for {want}");
    child::also_portable(module_path!(), "functions_at_their_ends");
    Ok(())
}

/// Sums of `f16` whose squares exceed its largest number: the variance is computed in `f32`.
#[test]
fn outliers_in_half_precision() -> tf::Result<()> {
    let mut values = vec![f16::from_f32(0.5); 768];
    (values[5], values[700]) = (f16::from_f32(795.0), f16::from_f32(-600.0));
    let Ok(x) = Tensor::from_slice(&values, [1, 768]) else { return Ok(()) };
    let wide: Vec<f64> = values.iter().map(|x| x.to_f64()).collect();
    let mean = wide.iter().sum::<f64>() / 768.0;
    let variance = wide.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 768.0;
    let y = x.layer_normalization(-1, tf::NormalizationOptions::new())?.to_vec::<f16>()?;
    for at in [0, 5, 700, 767] {
        let want = (wide[at] - mean) / (variance + 1e-3).sqrt();
        let got = y[at].to_f64();
        assert!((got - want).abs() <= 2e-3 * want.abs().max(1.0), "{at}: {got} for {want}");
    }
    // 60,000 ones: a sum in f16 would stop at 2,048.
    let ones = Tensor::from_slice(&vec![f16::ONE; 60_000], [60_000])?;
    assert_eq!(ones.reduce_sum(())?.item::<f16>()?.to_f32(), 60_000.0f32);
    assert_eq!(ones.reduce_mean(())?.item::<f16>()?, f16::ONE);
    let shares = ones.softmax(0)?.to_vec::<f16>()?;
    assert!(shares.iter().all(|share| (share.to_f64() - 1.0 / 60_000.0).abs() < 1e-6));
    child::also_portable(module_path!(), "outliers_in_half_precision");
    Ok(())
}

/// Matrices of one element, alone and in batches.
#[test]
fn matrices_of_one_element() -> tf::Result<()> {
    let values = [4.0f32, 0.25, 9.0];
    for shape in [vec![1, 1], vec![3, 1, 1]] {
        let count: usize = shape.iter().product();
        let x = Tensor::from_slice(&values[..count], shape)?;
        let near = |what: &str, y: &Tensor, f: fn(f32) -> f32| {
            for (got, x) in y.to_vec::<f32>().unwrap().into_iter().zip(values) {
                assert!((got - f(x)).abs() <= 1e-6 * f(x).abs(), "{what} of {x}: {got}");
            }
        };
        near("matmul", &x.matmul(&x)?, |x| x * x);
        near("cholesky", &tf::linalg::cholesky(&x)?, f32::sqrt);
        near("inv", &tf::linalg::inv(&x)?, |x| 1.0 / x);
        near("det", &tf::linalg::det(&x)?, |x| x);
        near("solve", &tf::linalg::solve(&x, &x)?, |_| 1.0);
        near("the singular value", &tf::linalg::svd(&x)?.0, |x| x);
        near("the eigenvalue", &tf::linalg::eigh(&x)?.0, |x| x);
        let (q, r) = tf::linalg::qr(&x)?;
        near("q r", &q.matmul(&r)?, |x| x);
    }
    child::also_portable(module_path!(), "matrices_of_one_element");
    Ok(())
}
