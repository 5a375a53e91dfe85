//! Programs that run once, written as by a user who knows TensorFlow and nothing about flushes. Each returns what it would
//! print.

use std::f32::consts::TAU;

use wgrad as tf;
use wgrad::{Tensor, Variable};

use super::lstm::{BATCH, Lstm};
use crate::inputs::{positive, uniform};

pub type Program = fn() -> tf::Result<Vec<Tensor>>;

/// All programs: name, description and function.
pub const ALL: [(&str, &str, Program); 12] = [
    ("mandelbrot", "Mandelbrot set, 64 x 64, 50 turns", mandelbrot),
    ("life", "Conway's life, 32 x 32, 60 generations", life),
    ("lorenz", "Lorenz attractor, 1,000 points, 200 steps", lorenz),
    ("heat", "heat equation, 64 x 64, 100 steps", heat),
    ("power", "power iteration, 64 x 64, 60 turns", power_iteration),
    ("averages", "30 moving averages and 10 exponential ones", averages),
    ("softmaxes", "100 log-softmaxes in a row, [8,16]", log_softmaxes),
    ("deep", "net of 120 tanh layers, 16 wide, all gradients", deep_net),
    ("recurrence", "c = (a + b) / 2; a = b; b = c, 300 turns", recurrence),
    ("lstm", "LSTM by hand, 28 time steps, gradients", lstm),
    ("newton", "square roots by Newton, Horner of degree 60", newton_and_horner),
    ("kmeans", "k-means, 300 points, 4 centres, 15 turns", k_means),
];

/// `count` numbers from `start` to `stop`.
fn line(start: f32, stop: f32, count: usize) -> Vec<f32> {
    (0..count).map(|i| start + (stop - start) * i as f32 / (count - 1) as f32).collect()
}

fn mandelbrot() -> tf::Result<Vec<Tensor>> {
    let re = Tensor::from_slice(&line(-2.0, 0.6, 64), [1, 64])?.broadcast_to([64, 64])?;
    let im = Tensor::from_slice(&line(-1.3, 1.3, 64), [64, 1])?.broadcast_to([64, 64])?;
    let (mut x, mut y) = (re.zeros_like()?, im.zeros_like()?);
    let mut count = re.zeros_like()?;
    for _ in 0..50 {
        let inside = (&x * &x + &y * &y).less_equal(4.0)?;
        let next_x = &x * &x - &y * &y + &re;
        let next_y = 2.0 * &x * &y + &im;
        // Points that have escaped stay unchanged.
        x = tf::where_(&inside, &next_x, &x)?;
        y = tf::where_(&inside, &next_y, &y)?;
        count = count + inside.cast(tf::DType::F32)?;
    }
    Ok(vec![count])
}

fn life() -> tf::Result<Vec<Tensor>> {
    let start: Vec<f32> = positive(32 * 32, 3).iter().map(|&p| f32::from(p < 0.35)).collect();
    let mut cells = Tensor::from_slice(&start, [32, 32])?;
    for _ in 0..60 {
        // The edges wrap around.
        let (last, first) = (cells.slice(&[31, 0], &[1, -1])?, cells.slice(&[0, 0], &[1, -1])?);
        let tall = tf::concat([&last, &cells, &first], 0)?;
        let (last, first) = (tall.slice(&[0, 31], &[-1, 1])?, tall.slice(&[0, 0], &[-1, 1])?);
        let wide = tf::concat([&last, &tall, &first], 1)?;
        let mut around = cells.negative()?;
        for row in 0..3 {
            for column in 0..3 {
                around = around + wide.slice(&[row, column], &[32, 32])?;
            }
        }
        let born = around.equal(3.0)?;
        let stays = around.equal(2.0)?.logical_and(cells.greater(0.5)?)?;
        cells = born.logical_or(stays)?.cast(tf::DType::F32)?;
    }
    let population = cells.reduce_sum(())?;
    Ok(vec![cells, population])
}

fn lorenz() -> tf::Result<Vec<Tensor>> {
    let point = |seed| Tensor::from_slice(&uniform(1000, seed), [1000]);
    let (mut x, mut y, mut z) = (point(1)?, point(2)?, point(3)? + 20.0);
    let dt = 0.005;
    for _ in 0..200 {
        let dx = (&y - &x) * 10.0;
        let dy = &x * (28.0 - &z) - &y;
        let dz = &x * &y - &z * (8.0 / 3.0);
        x = x + dx * dt;
        y = y + dy * dt;
        z = z + dz * dt;
    }
    Ok(vec![x, y, z])
}

fn heat() -> tf::Result<Vec<Tensor>> {
    let mut plate = Tensor::from_slice(&positive(64 * 64, 5), [64, 64])?;
    for _ in 0..100 {
        let inner = |row, column| plate.slice(&[row, column], &[62, 62]);
        let middle = inner(1, 1)?;
        let around = inner(0, 1)? + inner(2, 1)? + inner(1, 0)? + inner(1, 2)?;
        let change = (around - 4.0 * &middle) * 0.2;
        plate = plate + change.pad(&[(1, 1), (1, 1)])?;
    }
    let mean = plate.reduce_mean(())?;
    Ok(vec![plate, mean])
}

fn power_iteration() -> tf::Result<Vec<Tensor>> {
    let half = Tensor::from_slice(&positive(64 * 64, 7), [64, 64])?;
    let a = (&half + half.transpose([1, 0])?) * 0.5;
    let mut v = Tensor::ones([64, 1])?;
    let mut quotients = Vec::new();
    for _ in 0..60 {
        let w = a.matmul(&v)?;
        v = &w / w.reduce_euclidean_norm(())?;
        let quotient = (&v * a.matmul(&v)?).reduce_sum(())?;
        quotients.push(quotient);
    }
    Ok(vec![v, tf::stack(quotients.iter().collect::<Vec<_>>(), 0)?])
}

fn averages() -> tf::Result<Vec<Tensor>> {
    let steps = uniform(500, 9);
    let prices: Vec<f32> =
        steps.iter().enumerate().map(|(i, e)| (i as f32 / 40.0).sin() + e).collect();
    let series = Tensor::from_slice(&prices, [500])?;
    let mut results = Vec::new();
    for window in 2..=31_usize {
        let len = 500 - window + 1;
        let mut total = series.slice(&[0], &[len as i64])?;
        for k in 1..window {
            total = total + series.slice(&[k], &[len as i64])?;
        }
        results.push(total / window as f32);
    }
    // The exponential averages, next to each other, over the last hundred values.
    let spans: Vec<f32> = (1..=10).map(|k| 2.0 / (2.0 * k as f32 + 1.0)).collect();
    let alpha = Tensor::from_slice(&spans, [10])?;
    let mut ema = series.slice(&[400], &[1])?.broadcast_to([10])?;
    for t in 401..500 {
        ema = &ema + &alpha * (series.slice(&[t], &[1])? - &ema);
    }
    results.push(ema);
    Ok(results)
}

fn log_softmaxes() -> tf::Result<Vec<Tensor>> {
    let mut x = Tensor::from_slice(&uniform(8 * 16, 11), [8, 16])?;
    for _ in 0..100 {
        x = x.log_softmax(-1)?;
    }
    Ok(vec![x])
}

fn deep_net() -> tf::Result<Vec<Tensor>> {
    let mut weights = Vec::new();
    for layer in 0..120 {
        let values: Vec<f32> = uniform(256, layer).iter().map(|w| w * 0.43).collect();
        weights.push(Variable::new(&Tensor::from_slice(&values, [16, 16])?));
    }
    let mut y = Tensor::from_slice(&uniform(8 * 16, 500), [8, 16])?;
    let tape = tf::GradientTape::new();
    for w in &weights {
        y = y.matmul(w)?.tanh()?;
    }
    let loss = y.square()?.reduce_mean(())?;
    let mut results = tape.required_gradient(&loss, &weights)?;
    results.push(loss);
    Ok(results)
}

fn recurrence() -> tf::Result<Vec<Tensor>> {
    let mut a = Tensor::from_slice(&uniform(16, 13), [16])?;
    let mut b = Tensor::from_slice(&uniform(16, 14), [16])?;
    for _ in 0..300 {
        let c = (&a + &b) * 0.5;
        a = b;
        b = c;
    }
    Ok(vec![a, b])
}

fn lstm() -> tf::Result<Vec<Tensor>> {
    let lstm = Lstm::new()?;
    let x = Lstm::input(28, BATCH, 15)?;
    let tape = tf::GradientTape::new();
    let loss = lstm.loss(&x)?;
    let mut results = tape.required_gradient(&loss, lstm.parameters.as_slice())?;
    results.push(loss);
    Ok(results)
}

fn newton_and_horner() -> tf::Result<Vec<Tensor>> {
    let x = Tensor::from_slice(&line(0.5, 100.0, 256), [256])?;
    let mut root = &x * 0.5 + 0.5;
    for _ in 0..20 {
        root = (&root + &x / &root) * 0.5;
    }
    let t = &root / 10.0;
    let coefficients: Vec<f32> = (0..=60).map(|k| (TAU * k as f32 / 9.0).cos()).collect();
    let mut sum = t.zeros_like()?;
    for &coefficient in &coefficients {
        sum = sum * &t + coefficient;
    }
    Ok(vec![root, sum])
}

fn k_means() -> tf::Result<Vec<Tensor>> {
    let around: Vec<f32> = uniform(600, 17);
    let points: Vec<f32> = (0..600).map(|i| around[i] + [0.0, 1.5][(i / 2 + i) % 4 / 2]).collect();
    let points = Tensor::from_slice(&points, [300, 2])?;
    let mut centres = points.slice(&[0, 0], &[4, -1])?;
    let mut nearest = None;
    for _ in 0..15 {
        let apart = points.expand_dims(1)? - centres.expand_dims(0)?;
        let index = apart.square()?.reduce_sum(-1)?.argmin(-1)?;
        let mine = tf::one_hot(&index, 4)?;
        let totals = (mine.expand_dims(-1)? * points.expand_dims(1)?).reduce_sum(0)?;
        let counts = mine.reduce_sum(0)?.maximum(1.0)?;
        centres = totals / counts.expand_dims(-1)?;
        nearest = Some(index);
    }
    let index = nearest.map(|index| index.cast(tf::DType::F32)).transpose()?;
    Ok([Some(centres), index].into_iter().flatten().collect())
}
