//! Work that a single invocation would compute with longer loops than some drivers permit: Mesa's llvmpipe silently ends all
//! loops of an invocation after 65,535 iterations. Tests each op's longest loop, with sums that are integers.
#![allow(clippy::unwrap_used)]

use wgrad as tf;
use wgrad::{Conv2dOptions, GradientTape, Padding, Pool2dOptions, Result, Tensor};

/// `0, 1, ..., k - 1, 0, 1, ...`
fn cycle(len: usize, k: usize) -> Vec<i32> {
    (0..len).map(|i| (i % k) as i32).collect()
}

fn ids(values: &[i32]) -> Result<Tensor> {
    Tensor::from_slice(values, [values.len()])
}

#[test]
fn segments_of_many_rows_are_summed() -> Result<()> {
    // 40,000 ones sum to 40,000, wherever they are.
    let all = ids(&[0; 40_000])?;
    for (inner, want) in [(1, 1), (3, 3), (4, 4)] {
        let y = Tensor::ones([40_000, inner])?.unsorted_segment_sum(&all, 2)?;
        let mut sums = vec![40_000.0; want];
        sums.resize(2 * want, 0.0);
        assert_eq!(y.to_vec::<f32>()?, sums, "{inner}");
    }
    // Seven segments cyclically, over 100,003 rows; those with the number 6 belong to no segment.
    let turns = ids(&cycle(100_003, 7))?;
    let y = Tensor::ones([100_003, 2])?.unsorted_segment_sum(&turns, 6)?.to_vec::<f32>()?;
    let want: Vec<f32> = (0..12).map(|e| if e / 2 < 1 { 14_287.0 } else { 14_286.0 }).collect();
    assert_eq!(y, want);
    // Segments that begin and end within the pieces of a long list; every row has its own number.
    let order: Vec<i32> = (0..90_000).map(|i| i / 25_000).collect();
    let x = Tensor::from_slice(&cycle(90_000, 5), [90_000])?;
    let y = x.unsorted_segment_sum(&ids(&order)?, 4)?.to_vec::<i32>()?;
    assert_eq!(y, [50_000, 50_000, 50_000, 30_000]);
    Ok(())
}

#[test]
fn gathering_often_has_a_gradient() -> Result<()> {
    for (columns, axis) in [(1, 0), (4, 0), (3, 1)] {
        let table = match axis {
            0 => Tensor::ones([3, columns])?,
            _ => Tensor::ones([2, 3])?,
        };
        let index = ids(&cycle(40_000, 2))?;
        let tape = GradientTape::new();
        tape.watch(&table)?;
        let y = table.gather(&index, axis)?;
        let grad = tape.required_gradient(&y, &table)?.to_vec::<f32>()?;
        let want: Vec<f32> = match axis {
            0 => (0..3 * columns).map(|e| if e / columns < 2 { 20_000.0 } else { 0.0 }).collect(),
            _ => vec![20_000.0, 20_000.0, 0.0, 20_000.0, 20_000.0, 0.0],
        };
        assert_eq!(grad, want, "{columns} {axis}");
    }
    Ok(())
}

/// Windows of the whole image, with the largest element last but one.
fn pools([h, w, c]: [usize; 3]) -> Result<()> {
    let count = h * w;
    let mut x = vec![1.0f32; count * c];
    let at = (count - 2) * c;
    x[at..at + c].fill(3.0);
    let x = Tensor::from_slice(&x, [1, h, w, c])?;
    let options = Pool2dOptions::new().strides([1, 1]).padding(Padding::Valid);
    let tape = GradientTape::persistent();
    tape.watch(&x)?;
    let (max, mean) = (x.max_pool2d([h, w], options)?, x.avg_pool2d([h, w], options)?);
    assert_eq!(max.to_vec::<f32>()?, vec![3.0; c]);
    for mean in mean.to_vec::<f32>()? {
        let want = 1.0 + 2.0 / count as f32;
        assert!((mean - want).abs() < 1e-6, "{h} x {w}: {mean}, not {want}");
    }
    let dx = tape.gradient(&max, &x)?.unwrap().to_vec::<f32>()?;
    let ones: Vec<usize> = (0..dx.len()).filter(|&e| dx[e] == 1.0).collect();
    assert_eq!(ones, (at..at + c).collect::<Vec<usize>>());
    assert_eq!(dx.iter().sum::<f32>(), c as f32);
    let dx = tape.gradient(&mean, &x)?.unwrap().to_vec::<f32>()?;
    assert!(dx.iter().all(|d| (d * count as f32 - 1.0).abs() < 1e-6));
    Ok(())
}

#[test]
fn windows_of_pools_may_be_large() -> Result<()> {
    pools([250, 250, 2])?;
    pools([256, 256, 1])?;
    pools([300, 300, 4])?;
    // One long row.
    pools([1, 70_001, 1])
}

#[test]
fn places_may_belong_to_many_windows() -> Result<()> {
    // All 130 x 130 windows contain all positions.
    let x = Tensor::ones([1, 130, 130, 1])?;
    let options = Pool2dOptions::new().strides([1, 1]).padding(Padding::Same);
    let tape = GradientTape::persistent();
    tape.watch(&x)?;
    let window = [259, 259];
    let (max, mean) = (x.max_pool2d(window, options)?, x.avg_pool2d(window, options)?);
    // The first of equal elements gets the gradient: for all windows that is the first position.
    let dx = tape.gradient(&max, &x)?.unwrap().to_vec::<f32>()?;
    assert_eq!((dx[0], dx[1], dx[16_899]), (16_900.0, 0.0, 0.0));
    let dx = tape.gradient(&mean, &x)?.unwrap().to_vec::<f32>()?;
    assert!(dx.iter().all(|d| (d - 1.0).abs() < 1e-4), "{}", dx[0]);
    Ok(())
}

/// Images and filters of ones: results, gradients with respect to the images, and to the filters.
fn convolved([image, filter]: [[usize; 4]; 2], depthwise: bool, want: [f32; 3]) -> Result<()> {
    let (x, w) = (Tensor::ones(image)?, Tensor::ones(filter)?);
    let tape = GradientTape::new();
    tape.watch(&x)?;
    tape.watch(&w)?;
    let options = Conv2dOptions::default();
    let y = if depthwise { x.depthwise_conv2d(&w, options)? } else { x.conv2d(&w, options)? };
    let [dx, dw] = tape.gradient(&y, [&x, &w])?;
    let (dx, dw) = (dx.unwrap().to_vec::<f32>()?, dw.unwrap().to_vec::<f32>()?);
    assert!(y.to_vec::<f32>()?.iter().all(|v| *v == want[0]), "{image:?}: {y}");
    // The position in the middle is in the most windows.
    let [_, h, w, c] = image;
    assert_eq!(dx[(h / 2 * w + w / 2) * c], want[1], "{image:?}, dx");
    assert!(dw.iter().all(|v| *v == want[2]), "{image:?}, dw: {:?}", &dw[..dw.len().min(9)]);
    Ok(())
}

#[test]
fn convolutions_sum_over_many_places() -> Result<()> {
    // A filter of the image's size, and one smaller by one.
    convolved([[1, 300, 300, 1], [300, 300, 1, 1]], false, [9e4, 1.0, 1.0])?;
    convolved([[1, 300, 300, 4], [299, 300, 4, 2]], false, [299.0 * 1200.0, 4.0, 2.0])?;
    // Few small filters over a large image: the sums of their gradients are long.
    convolved([[1, 602, 602, 1], [3, 3, 1, 8]], false, [9.0, 72.0, 36e4])?;
    convolved([[1, 602, 602, 4], [3, 3, 4, 5]], false, [36.0, 45.0, 36e4])?;
    convolved([[1, 1, 600_002, 1], [1, 3, 1, 5]], false, [3.0, 15.0, 6e5])?;
    // One position, many channels.
    convolved([[1, 2, 2, 300_000], [2, 2, 300_000, 1]], false, [12e5, 1.0, 1.0])?;
    convolved([[1, 2, 2, 1], [2, 1, 1, 300_000]], false, [2.0, 3e5, 2.0])
}

#[test]
fn depthwise_convolutions_sum_over_many_places() -> Result<()> {
    for (c, m) in [(4, 1), (1, 4), (1, 1)] {
        let n = m as f32;
        convolved([[1, 300, 300, c], [300, 300, c, m]], true, [9e4, n, 1.0])?;
        convolved([[1, 1026, 1026, c], [3, 3, c, m]], true, [9.0, 9.0 * n, 1_048_576.0])?;
        convolved([[1, 1, 300_002, c], [1, 3, c, m]], true, [3.0, 3.0 * n, 3e5])?;
    }
    // The filters' gradient over 1,048,352 positions: 1024 rows of 1,023.78 are 181 of 5792.
    convolved([[1, 183, 5794, 1], [3, 3, 1, 1]], true, [9.0, 9.0, 1_048_352.0])?;
    // Many filters per channel.
    convolved([[1, 2, 2, 1], [1, 1, 1, 80_000]], true, [1.0, 8e4, 4.0])
}

#[test]
fn products_sum_over_long_axes() -> Result<()> {
    let k = 1_000_000;
    for (m, n) in [(1, 1), (4, 5)] {
        for (ta, tb) in [(false, false), (true, false), (false, true), (true, true)] {
            let a = Tensor::ones(if ta { [k, m] } else { [m, k] })?;
            let b = Tensor::ones(if tb { [n, k] } else { [k, n] })?;
            let y = a
                .matmul_with(&b, wgrad::MatmulOptions::new().transpose_a(ta).transpose_b(tb))?
                .to_vec::<f32>()?;
            assert_eq!(y, vec![1e6; m * n], "{m} {n} {ta} {tb}");
        }
    }
    Ok(())
}

#[test]
fn long_rows_and_columns_are_reduced() -> Result<()> {
    let long = 30_000_000;
    for (shape, axis) in [([1, long], 1), ([long, 1], 0), ([2, long / 2], 1), ([long / 2, 2], 0)] {
        let x = Tensor::full(shape, 1i32)?;
        let want = vec![shape[axis as usize] as i32; long / shape[axis as usize]];
        assert_eq!(x.reduce_sum(axis)?.to_vec::<i32>()?, want, "{shape:?}");
    }
    // An axis of size 1 needs no sum.
    let x = Tensor::full([1, 1_000_000], 1i32)?.reduce_sum(0)?;
    assert_eq!(x.reduce_sum(())?.item::<i32>()?, 1_000_000);
    Ok(())
}

#[test]
fn the_largest_of_many_is_found() -> Result<()> {
    let long = 30_000_000;
    let mut x = vec![0i32; long];
    x[long - 3] = 7;
    x[5] = -7;
    for (shape, axis) in [([1, long], 1), ([long, 1], 0)] {
        let x = Tensor::from_slice(&x, shape)?;
        assert_eq!(x.argmax(axis)?.item::<i32>()?, long as i32 - 3);
        assert_eq!(x.argmin(axis)?.item::<i32>()?, 5);
        assert_eq!(x.reduce_max(axis)?.item::<i32>()?, 7);
    }
    Ok(())
}

#[test]
fn long_rows_are_normalized() -> Result<()> {
    // Several passes over a row, in one kernel if there are many rows.
    for (rows, len) in [(1, 1 << 22), (250, 1 << 17)] {
        let y = Tensor::zeros([rows, len])?.add(Tensor::zeros([rows, 1])?)?.softmax(1)?;
        let sums = y.reduce_sum(1)?.to_vec::<f32>()?;
        assert!(sums.iter().all(|sum| (sum - 1.0).abs() < 1e-5), "{rows}: {}", sums[0]);
        assert_eq!(y.reduce_max(())?.item::<f32>()?, 1.0 / len as f32);
    }
    Ok(())
}

#[test]
fn loops_within_ops_count_in_every_turn() -> Result<()> {
    // log(1 + x) has its own loop.
    let mut x = Tensor::from_slice(&[0.25f32, 1.0, 0.5, 0.125], [4])?;
    let mut want = x.to_vec::<f32>()?.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
    for _ in 0..4200 {
        x = x.log1p()?.expm1()?.log1p()?;
        want.iter_mut().for_each(|x| *x = x.ln_1p());
    }
    for (got, want) in x.to_vec::<f32>()?.iter().zip(want) {
        assert!((f64::from(*got) / want - 1.0).abs() < 5e-3, "{got}, not {want}");
    }
    Ok(())
}

#[test]
fn small_folds_side_by_side_are_whole() -> Result<()> {
    // On a processor one thread processes all of them.
    let xs: Vec<Tensor> = (0..16)
        .map(|i| Tensor::from_slice(&vec![i + 1; 4 * 8000], [8000, 4]))
        .collect::<Result<_>>()?;
    let sums: Vec<Tensor> = xs.iter().map(|x| x.reduce_sum(0)).collect::<Result<_>>()?;
    for (i, sum) in sums.iter().enumerate() {
        assert_eq!(sum.to_vec::<i32>()?, vec![8000 * (i as i32 + 1); 4]);
    }
    Ok(())
}

#[test]
fn repeating_gives_the_same_bits() -> Result<()> {
    let x: Vec<f32> = (0..70_000 * 2).map(|i| ((i * 37) % 101) as f32 * 0.1).collect();
    let x = Tensor::from_slice(&x, [70_000, 2])?;
    let index = ids(&cycle(70_000, 3))?;
    let image = x.reshape([1, 280, 250, 2])?;
    let options = Pool2dOptions::new().strides([2, 2]);
    let run = || -> Result<Vec<u32>> {
        let sums = x.unsorted_segment_sum(&index, 3)?.to_vec::<f32>()?;
        let mean = image.avg_pool2d([280, 250], options)?.to_vec::<f32>()?;
        Ok(sums.iter().chain(&mean).map(|v| v.to_bits()).collect())
    };
    assert_eq!(run()?, run()?);
    let _ = tf::Device::current()?;
    Ok(())
}
