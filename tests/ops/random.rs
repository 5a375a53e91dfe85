//! The distributions: moments, the Kolmogorov-Smirnov distance for those with a density, chi-square for integers.
//!
//! Seeds are fixed, so a test has the same result in every run. A correct distribution exceeds the bounds in at most one of a
//! thousand samples.

#![allow(clippy::unwrap_used)]

use std::f64::consts::PI;

use wgrad as tf;
use wgrad::random::{self, Generator};
use wgrad::{DType, Device, GradientTape, Result, Tensor};

const N: usize = 40_000;

fn list(x: Result<Tensor>) -> Vec<f64> {
    x.unwrap().to_vec::<f32>().unwrap().into_iter().map(f64::from).collect()
}

fn integers(x: Result<Tensor>) -> Vec<f64> {
    list(x.unwrap().cast(DType::F32))
}

/// The largest distance between the distribution function of `drawn` and `cdf`, times the square root of the sample size.
#[track_caller]
fn fits(what: &str, mut drawn: Vec<f64>, cdf: impl Fn(f64) -> f64) {
    drawn.sort_by(f64::total_cmp);
    let n = drawn.len() as f64;
    let apart = drawn.iter().enumerate().map(|(i, &x)| {
        let (below, above) = (i as f64 / n, (i + 1) as f64 / n);
        (cdf(x) - below).abs().max((above - cdf(x)).abs())
    });
    let distance = apart.fold(0.0, f64::max) * n.sqrt();
    // Kolmogorov's distribution: beyond 1.95 with a probability of 0.001.
    assert!(distance < 1.95, "{what}: {distance}");
}

/// The chi-square statistic of `drawn` for the probabilities of 0, 1, 2, ..; rare numbers are combined.
#[track_caller]
fn counts_fit(what: &str, drawn: &[f64], chance: impl Fn(usize) -> f64) {
    let most = drawn.iter().fold(0.0, |a: f64, &b| a.max(b)) as usize + 1;
    let mut counts = vec![0.0; most];
    for x in drawn {
        assert!(*x >= 0.0 && x.fract() == 0.0, "{what} drew {x}");
        counts[*x as usize] += 1.0;
    }
    let n = drawn.len() as f64;
    let (mut sum, mut bins) = (0.0, 0.0);
    let (mut expected, mut seen, mut total) = (0.0, 0.0, 0.0);
    for (k, count) in counts.iter().enumerate() {
        expected += n * chance(k);
        seen += count;
        total += chance(k);
        if expected >= 10.0 {
            sum += (seen - expected) * (seen - expected) / expected;
            bins += 1.0;
            (expected, seen) = (0.0, 0.0);
        }
    }
    // The rest, including numbers that were never drawn.
    expected += n * (1.0 - total).max(0.0);
    assert!(
        seen <= expected + 6.0 * expected.sqrt() + 6.0,
        "{what}: {seen} in the tail, not {expected}"
    );
    let freedom: f64 = f64::max(bins - 1.0, 1.0);
    assert!(
        sum < freedom + 4.0 * (2.0 * freedom).sqrt() + 4.0,
        "{what}: chi-square {sum} of {freedom}"
    );
}

#[track_caller]
fn moments(what: &str, drawn: &[f64], mean: f64, variance: f64) {
    let n = drawn.len() as f64;
    let got = drawn.iter().sum::<f64>() / n;
    let spread = drawn.iter().map(|x| (x - got) * (x - got)).sum::<f64>() / n;
    assert!(
        (got - mean).abs() < 4.0 * (variance / n).sqrt() + 1e-9,
        "{what}: mean {got}, not {mean}"
    );
    // The fourth moment is at most about twelve times the square of the variance here.
    assert!(
        (spread / variance - 1.0).abs() < 4.0 * (11.0 / n).sqrt(),
        "{what}: {spread}, not {variance}"
    );
}

fn ln_gamma(x: f64) -> f64 {
    // Stirling's series from 12 on, and the recurrence for smaller numbers.
    let (mut x, mut shift) = (x, 0.0);
    while x < 12.0 {
        shift -= x.ln();
        x += 1.0;
    }
    let z = 1.0 / (x * x);
    shift + (x - 0.5) * x.ln() - x
        + 0.5 * (2.0 * PI).ln()
        + (1.0 / 12.0 - z * (1.0 / 360.0 - z * (1.0 / 1260.0 - z / 1680.0))) / x
}

/// The gamma distribution function with scale 1, as a series.
fn gamma_cdf(a: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    let (mut term, mut sum) = (1.0 / a, 1.0 / a);
    for k in 1..100_000 {
        term *= x / (a + f64::from(k));
        sum += term;
        if term < sum * 1e-15 {
            break;
        }
    }
    (sum.ln() + a * x.ln() - x - ln_gamma(a)).exp().min(1.0)
}

fn normal_cdf(x: f64) -> f64 {
    // erf^2 is the distribution function of a chi-square number: P(1/2, x^2 / 2).
    0.5 + 0.5 * gamma_cdf(0.5, x * x / 2.0).copysign(x)
}

#[test]
fn uniform_and_normal_numbers() {
    let generator = Generator::from_seed(1);
    fits("uniform", list(generator.uniform([N])), |x| x);
    fits("normal", list(generator.normal([N])), normal_cdf);
    let kept = normal_cdf(2.0) - normal_cdf(-2.0);
    let truncated = |x: f64| (normal_cdf(x) - normal_cdf(-2.0)) / kept;
    fits("truncated", list(generator.truncated_normal([N])), truncated);
    for rate in [0.25, 1.0, 40.0] {
        fits("exponential", list(generator.exponential([N], rate)), |x| 1.0 - (-rate * x).exp());
    }
    let ints = integers(generator.uniform_int([N], -3, 7));
    counts_fit("integers", &ints.iter().map(|x| x + 3.0).collect::<Vec<_>>(), |_| 0.1);
    let wide = generator.uniform_int([N], i32::MIN, i32::MAX).unwrap().to_vec::<i32>().unwrap();
    let below = wide.iter().filter(|x| **x < 0).count() as f64;
    assert!((below - N as f64 / 2.0).abs() < 2.0 * (N as f64).sqrt());
}

#[test]
fn gamma_numbers() {
    for (seed, alpha) in [0.1, 0.3, 0.999, 1.0, 1.5, 7.0, 300.0, 1e4, 1e6].into_iter().enumerate() {
        let drawn = list(random::stateless_gamma([N], [seed as i32, 5], alpha as f32, 1.0));
        let alpha = f64::from(alpha as f32);
        fits(&format!("gamma {alpha}"), drawn.clone(), |x| gamma_cdf(alpha, x));
        // The fourth moment for a small alpha is large, and the mean of the squares has not converged.
        if alpha > 0.2 {
            moments(&format!("gamma {alpha}"), &drawn, alpha, alpha);
        }
    }
    let rates = tf::constant([0.5, 4.0]).unwrap();
    let drawn = random::stateless_gamma([N, 2], [1, 2], 3.0, &rates).unwrap().transpose([1, 0]);
    let drawn = list(drawn);
    moments("gamma of rate 0.5", &drawn[..N], 6.0, 12.0);
    moments("gamma of rate 4", &drawn[N..], 0.75, 3.0 / 16.0);
}

#[test]
fn numbers_made_of_gamma_numbers() {
    let generator = Generator::from_seed(3);
    fits("beta(0.5, 0.5)", list(generator.beta([N], 0.5, 0.5)), |x| 2.0 / PI * x.sqrt().asin());
    fits("beta(2, 3)", list(generator.beta([N], 2.0, 3.0)), |x| {
        x * x * (6.0 - 8.0 * x + 3.0 * x * x)
    });
    fits("beta(0.1, 1)", list(random::stateless_beta([N], [4, 4], 0.1, 1.0)), |x| x.powf(0.1));
    fits("t of 1", list(generator.student_t([N], 1.0)), |x| 0.5 + x.atan() / PI);
    fits("t of 2", list(generator.student_t([N], 2.0)), |x| 0.5 + 0.5 * x / (2.0 + x * x).sqrt());
    let alpha = tf::constant([0.5, 1.0, 4.5]).unwrap();
    let drawn = generator.dirichlet([N, 3], &alpha).unwrap();
    for sum in list(drawn.reduce_sum(1)) {
        assert!((sum - 1.0).abs() < 1e-5, "{sum}");
    }
    let drawn = list(drawn.transpose([1, 0]));
    for (at, alpha) in [0.5, 1.0, 4.5f64].into_iter().enumerate() {
        let variance = alpha * (6.0 - alpha) / (36.0 * 7.0);
        moments("dirichlet", &drawn[at * N..(at + 1) * N], alpha / 6.0, variance);
    }
}

#[test]
fn poisson_numbers() {
    for (seed, mean) in [0.01f64, 0.7, 3.0, 9.99, 10.0, 11.5, 80.0, 3000.0].into_iter().enumerate()
    {
        let drawn = list(random::stateless_poisson([N], [seed as i32, 6], mean as f32));
        let chance = |k: usize| (k as f64 * mean.ln() - mean - ln_gamma(k as f64 + 1.0)).exp();
        counts_fit(&format!("poisson {mean}"), &drawn, chance);
    }
    for mean in [1e5, 1e7] {
        let drawn = list(random::stateless_poisson([N], [9, 6], mean as f32));
        moments(&format!("poisson {mean}"), &drawn, mean, mean);
    }
    assert_eq!(list(random::stateless_poisson([5], [1, 1], 0.0)), [0.0; 5]);
}

#[test]
fn binomial_numbers() {
    let cases = [
        (1.0, 0.3),
        (12.0, 0.5),
        (40.0, 0.9),
        (40.0, 0.4),
        (500.0, 0.02),
        (500.0, 0.97),
        (3000.0, 0.5),
    ];
    for (seed, (counts, probs)) in cases.into_iter().enumerate() {
        let drawn = random::stateless_binomial([N], [seed as i32, 7], counts as f32, probs as f32);
        let chance = |k: usize| {
            let (k, n, p): (f64, f64, f64) = (k as f64, counts, f64::from(probs as f32));
            if k > n {
                return 0.0;
            }
            let ways = ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0);
            (ways + k * p.ln() + (n - k) * (1.0 - p).ln()).exp()
        };
        counts_fit(&format!("binomial {counts} {probs}"), &integers(drawn), chance);
    }
    let many = integers(random::stateless_binomial([N], [3, 3], 1e6, 0.25));
    moments("binomial of a million", &many, 250_000.0, 187_500.0);
    let sure = tf::constant([0.0, 1.0]).unwrap();
    assert_eq!(
        integers(random::stateless_binomial([2, 2], [1, 1], 9, &sure)),
        [0.0, 9.0, 0.0, 9.0]
    );
}

#[test]
fn bernoulli_numbers() {
    let probs = tf::constant([0.0, 0.25, 1.0, f32::NAN]).unwrap();
    let drawn = Generator::from_seed(5).bernoulli([N, 4], &probs).unwrap().cast(DType::F32);
    let sums = list(drawn.unwrap().reduce_sum(0));
    assert_eq!([sums[0], sums[2], sums[3]], [0.0, N as f64, 0.0]);
    assert!((sums[1] - N as f64 / 4.0).abs() < 4.0 * (N as f64 * 3.0 / 16.0).sqrt());
}

#[test]
fn categories() {
    // Five classes with probabilities 0.1, 0, 0.2, 0.3, 0.4, as logits far from normalized.
    let chances = [0.1f64, 0.0, 0.2, 0.3, 0.4];
    let logits: Vec<f32> = chances.iter().map(|p| p.ln() as f32 + 50.0).collect();
    let logits = tf::constant(logits).unwrap().reshape([1, 5]).unwrap();
    let drawn = integers(random::stateless_categorical(&logits, N, [8, 8]));
    counts_fit("categories", &drawn, |k| chances.get(k).copied().unwrap_or(0.0));
    // Two rows: one without a finite logit, and one with a NaN and an infinite logit.
    let rows = [[f32::NEG_INFINITY; 4], [0.0, f32::NAN, f32::INFINITY, -1.0]];
    let rows = tf::constant(rows).unwrap();
    let drawn = random::stateless_categorical(&rows, 100, [1, 2]).unwrap().to_vec::<i32>().unwrap();
    assert!(drawn[..100].iter().all(|class| *class == 3));
    assert!(drawn[100..].iter().all(|class| *class == 0 || *class == 3));
    // Many classes of equal probability.
    let many = Tensor::zeros([2, 70_001]).unwrap();
    let drawn = integers(random::stateless_categorical(&many, N, [3, 1]));
    fits("many classes", drawn, |k| (k + 1.0) / 70_001.0);
    assert_eq!(random::categorical(&rows, 0).unwrap().shape(), [2, 0]);
    let none = Tensor::zeros([0, 3]).unwrap();
    assert_eq!(random::categorical(&none, 2).unwrap().shape(), [0, 2]);
    // Not every adapter has f16.
    match logits.cast(DType::F16) {
        Ok(half) => {
            let same =
                [&logits, &half].map(|x| integers(random::stateless_categorical(x, 50, [8, 8])));
            assert_eq!(same[0], same[1]);
        }
        Err(error) => assert!(error.to_string().contains("SHADER_F16"), "{error}"),
    }
}

#[test]
fn shuffled_rows() {
    for n in [0usize, 1, 2, 7, 1000, 70_001] {
        let x = tf::range(0, 2 * n as i64, 1).unwrap().reshape([n as i64, 2]).unwrap();
        let shuffle =
            |seed| random::stateless_shuffle(&x, [seed, 5]).unwrap().to_vec::<i32>().unwrap();
        let rows: Vec<[i32; 2]> = shuffle(1).chunks(2).map(|row| [row[0], row[1]]).collect();
        assert!(rows.iter().all(|[a, b]| a % 2 == 0 && *b == a + 1));
        let mut sorted: Vec<i32> = rows.iter().map(|row| row[0] / 2).collect();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..n as i32).collect::<Vec<_>>());
        assert_eq!(shuffle(1), rows.concat());
        assert!(n < 7 || shuffle(2) != shuffle(1));
    }
    // Each of the 24 orders of four rows has the same frequency.
    let x = tf::range(0, 4, 1).unwrap();
    let generator = Generator::from_seed(4);
    let orders: Vec<Tensor> = (0..2400).map(|_| generator.shuffle(&x).unwrap()).collect();
    let orders: Vec<&Tensor> = orders.iter().collect();
    let orders: Vec<f64> = pollster::block_on(Tensor::to_vecs_async::<i32>(&orders))
        .unwrap()
        .into_iter()
        .map(|order| {
            let below = |i: usize| order[i + 1..].iter().filter(|x| **x < order[i]).count();
            (below(0) * 6 + below(1) * 2 + below(2)) as f64
        })
        .collect();
    counts_fit("orders", &orders, |k| if k < 24 { 1.0 / 24.0 } else { 0.0 });
    let scalar = tf::constant(3.0).unwrap();
    assert_eq!(random::shuffle(&scalar).unwrap().item::<f32>().unwrap(), 3.0);
}

/// `tf.random.split([1, 2], 3)` and `tf.random.fold_in([1, 2], 7)` are words of the seed's own stream, as in TensorFlow's
/// source: `stateless_random_uniform(shape, seed, minval=None, maxval=None, dtype=int32)`.
#[test]
fn seeds_of_seeds() {
    let words = random::stateless_bits([7], [1, 2]).unwrap().to_vec::<u32>().unwrap();
    let words: Vec<i32> = words.into_iter().map(|word| word as i32).collect();
    let seeds = random::split([1, 2], 3).unwrap();
    assert_eq!(seeds.concat(), words[..6]);
    assert_eq!(random::fold_in([1, 2], 7), [words[0], 7]);
    assert!(random::split([1, 2], 0).unwrap().is_empty());
    let error = random::split([1, 2], usize::MAX / 2).unwrap_err().to_string();
    assert!(
        error.starts_with("split: the host has no memory for 9223372036854775807 seeds"),
        "{error}"
    );
}

#[test]
fn a_generator_goes_on_and_a_seed_stays() {
    let generator = Generator::from_seed(9);
    let draw = |f: &dyn Fn() -> Result<Tensor>| [list(f()), list(f())];
    let [a, b] = draw(&|| generator.gamma([8], 2.0, 1.0));
    assert_ne!(a, b);
    // 256 counters for each drawn number.
    assert_eq!(generator.state(), [9 + 2 * 8 * 256, 0, 0]);
    let [a, b] = draw(&|| random::stateless_gamma([8], [1, 2], 2.0, 1.0));
    assert_eq!(a, b);
    // An element's number depends only on its index.
    let [short, long] = [3, 9].map(|n| list(random::stateless_poisson([n], [1, 2], 50.0)));
    assert_eq!(short, long[..3]);
    assert_eq!(
        random::gamma([3, 2], tf::constant([1.0, 2.0]).unwrap(), 1.0).unwrap().shape(),
        [3, 2, 2]
    );
    assert_eq!(
        random::poisson([3], tf::constant([[1.0], [2.0]]).unwrap()).unwrap().shape(),
        [3, 2, 1]
    );
    assert_eq!(random::gamma([0], 1.0, 1.0).unwrap().shape(), [0]);
}

#[test]
fn the_ends_of_parameters() {
    let alpha = tf::constant([0.0, -1.0, f32::NAN, f32::INFINITY, 1e-30]).unwrap();
    let drawn = random::stateless_gamma([5], [1, 1], &alpha, 1.0).unwrap().to_vec::<f32>().unwrap();
    assert_eq!((drawn[0], drawn[3], drawn[4]), (0.0, f32::INFINITY, 0.0));
    assert!(drawn[1].is_nan() && drawn[2].is_nan());
    let mean = tf::constant([-1.0, f32::NAN, f32::INFINITY, 1e20]).unwrap();
    let drawn = random::stateless_poisson([4], [1, 1], &mean).unwrap().to_vec::<f32>().unwrap();
    assert!(drawn[..3].iter().all(|x| x.is_nan()) && (drawn[3] / 1e20 - 1.0).abs() < 1e-6);
    let probs = tf::constant([-0.5, 1.5, f32::NAN, 0.0, 1.0]).unwrap();
    let drawn = random::stateless_binomial([5], [1, 1], 20, &probs);
    assert_eq!(integers(drawn), [0.0, 0.0, 0.0, 0.0, 20.0]);
    assert_eq!(integers(random::stateless_binomial([1], [1, 1], -3, 0.5)), [0.0]);
}

/// Draws with other seeds, or of other sizes, use the same kernels.
#[test]
fn a_draw_brings_no_new_pipeline() {
    let device = Device::new().unwrap();
    let draw = |n: usize, seed: i32| {
        device.scope(|| {
            let seed = [seed, 1];
            let alpha = random::stateless_uniform([n], seed).unwrap();
            list(random::stateless_gamma([n], seed, &alpha, 1.0));
            list(random::stateless_poisson([n], seed, &alpha));
            let logits = random::stateless_normal([3, n], seed).unwrap();
            integers(random::stateless_categorical(&logits, n, seed));
        });
    };
    // The first sizes compile the kernels for vectors and for single elements.
    draw(40, 1);
    draw(41, 1);
    draw(40, 1);
    draw(41, 1);
    let before = device.stats();
    draw(40, 2);
    draw(41, 3);
    let after = device.stats();
    assert_eq!((before.plan_misses, before.pipelines), (after.plan_misses, after.pipelines));
    draw(48, 4);
    draw(55, 4);
    draw(48, 5);
    assert_eq!(before.pipelines, device.stats().pipelines);
}

#[test]
fn gradients_pass_where_they_can() {
    let (rate, beta) = (tf::constant(2.0).unwrap(), tf::constant(4.0).unwrap());
    let tape = GradientTape::new();
    tape.watch(&rate).unwrap();
    tape.watch(&beta).unwrap();
    let seed = [3, 4];
    let x = random::stateless_exponential([5], seed, &rate).unwrap();
    let y = random::stateless_gamma([5], seed, beta.stop_gradient(), &beta).unwrap();
    let sums = [x.reduce_sum(()).unwrap(), y.reduce_sum(()).unwrap()];
    let [to_rate, to_beta] =
        <[_; 2]>::try_from(tape.gradient(&sums[..], &[rate, beta][..]).unwrap()).unwrap();
    let (to_rate, to_beta) = (to_rate.unwrap(), to_beta.unwrap());
    // d (e / r) / dr = - (e / r) / r.
    let sums = sums.map(|sum| sum.item::<f32>().unwrap());
    assert!((to_rate.item::<f32>().unwrap() + sums[0] / 2.0).abs() < 1e-5);
    assert!((to_beta.item::<f32>().unwrap() + sums[1] / 4.0).abs() < 1e-5);
}
