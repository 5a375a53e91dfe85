//! Speed of calls, kernels and a training step. `cargo bench`; ratios to other libraries come with their own harness.
#![allow(missing_docs, clippy::unwrap_used)]

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use wgrad as tf;
use wgrad::keras::layers::{Dense, Flatten, Layer};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Sequential};
use wgrad::{Device, Tensor};

/// The host's cost of a call: a hundred small ops that are never waited for.
fn calls(c: &mut Criterion) {
    let device = Device::current().unwrap();
    let x = Tensor::ones([16]).unwrap();
    let mut group = c.benchmark_group("calls");
    group.throughput(Throughput::Elements(100));
    group.bench_function("100 adds on 16 floats, not flushed", |b| {
        b.iter_batched(
            || device.synchronize().unwrap(),
            |()| (0..100).fold(x.clone(), |y, _| y + &x),
            BatchSize::PerIteration,
        );
    });
    group.bench_function("100 adds on 16 floats, read", |b| {
        b.iter(|| (0..100).fold(x.clone(), |y, _| y + &x).to_vec::<f32>().unwrap());
    });
}

fn kernels(c: &mut Criterion) {
    let device = Device::current().unwrap();
    let generator = tf::random::Generator::from_seed(1);
    let mut group = c.benchmark_group("kernels");
    group.sample_size(10);
    for n in [256usize, 512, 1024] {
        let a = generator.normal([n, n]).unwrap();
        let b = generator.normal([n, n]).unwrap();
        device.synchronize().unwrap();
        group.throughput(Throughput::Elements(2 * (n * n * n) as u64));
        group.bench_function(format!("matmul {n}"), |bench| {
            bench.iter(|| {
                let product = a.matmul(&b).unwrap();
                device.synchronize().unwrap();
                product
            });
        });
    }
    let x = generator.normal([4096, 1024]).unwrap();
    group.throughput(Throughput::Bytes(4 * x.len() as u64));
    group.bench_function("sum of [4096, 1024]", |b| {
        b.iter(|| x.reduce_sum((), false).unwrap().item::<f32>().unwrap());
    });
}

/// The step of `examples/mnist.rs` for the MLP, batch 50.
fn step(c: &mut Criterion) {
    let device = Device::current().unwrap();
    let model = Sequential::new()
        .add(Flatten::new())
        .add(Dense::new(100).activation(Activation::Relu))
        .add(Dense::new(10));
    let adam = Adam::new(1e-3);
    let digits = tf::data::drawn_digits::draw_digits(50, 1);
    let all: Vec<usize> = (0..50).collect();
    let mut group = c.benchmark_group("training");
    group.sample_size(30);
    group.bench_function("MNIST MLP step, batch 50", |b| {
        b.iter(|| {
            let (x, y) = digits.tensors(&all).unwrap();
            let tape = tf::GradientTape::new();
            let logits = model.call(&x, true).unwrap();
            let loss = tf::sparse_softmax_cross_entropy_with_logits(&y, &logits).unwrap();
            let loss = loss.reduce_mean((), false).unwrap();
            let variables = model.trainable_variables();
            let grads = tape.gradient(&loss, &variables).unwrap();
            adam.apply_gradients(&grads, &variables).unwrap();
            device.synchronize().unwrap();
        });
    });
}

criterion_group!(benches, calls, kernels, step);
criterion_main!(benches);
