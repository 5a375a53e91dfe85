//! Measures the host's part of a call, ops, kernels and a training step. `cargo bench`; comparisons with other libraries are in
//! `benches/peers`.
#![allow(missing_docs, clippy::unwrap_used)]

#[path = "support/idle_device.rs"]
mod idle_device;

use criterion::{BatchSize, Bencher, Criterion, Throughput, criterion_group, criterion_main};
use idle_device::idle_device;
use wgrad as tf;
use wgrad::Trackable;
use wgrad::keras::layers::{Dense, Flatten, Layer};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Sequential, TRAINING};
use wgrad::{Device, Tensor};

/// Ops in one chain, as many as a training step of a deep model has.
const CHAIN: usize = 1000;

fn chain(x: &Tensor, b: &Tensor) -> Tensor {
    (0..CHAIN).fold(x.clone(), |y, _| y.add(b).unwrap())
}

/// The host's cost of an op, without a driver's.
fn overhead(c: &mut Criterion) {
    let device = idle_device();
    let made = device.scope(|| (Tensor::zeros([16]).unwrap(), Tensor::ones([16]).unwrap()));
    let (x, b) = &made;
    let mut group = c.benchmark_group("host");
    group.throughput(Throughput::Elements(CHAIN as u64));
    // Earlier results are dropped without being read, so the flush in between has nothing to run.
    let calls = |c: &mut Bencher, call: &dyn Fn() -> Tensor| {
        c.iter_batched(|| device.flush().unwrap(), |()| call(), BatchSize::PerIteration);
    };
    group.bench_function("1000 adds, called", |c| calls(c, &|| chain(x, b)));
    group.bench_function("1000 adds of a number, called", |c| {
        calls(c, &|| (0..CHAIN).fold(x.clone(), |y, _| y.add(1.0).unwrap()));
    });
    for fusion in [true, false] {
        device.set_fusion(fusion);
        let how = if fusion { "fused" } else { "not fused" };
        group.bench_function(format!("1000 adds, called and flushed, {how}"), |c| {
            c.iter(|| {
                let y = chain(x, b);
                device.flush().unwrap();
                y
            });
        });
    }
    group.bench_function("1000 adds, each flushed", |c| {
        c.iter(|| {
            (0..CHAIN).fold(x.clone(), |y, _| {
                let y = y.add(b).unwrap();
                device.flush().unwrap();
                y
            })
        });
    });
}

/// The host's cost of a training step and of a single op: eager, and as a function.
fn functions(c: &mut Criterion) {
    let device = idle_device();
    device.scope(|| {
        let mut group = c.benchmark_group("function");
        let one = tf::function(|x: Tensor| x.add(1.0));
        let x = Tensor::ones([16]).unwrap();
        group.bench_function("an add, eager and flushed", |b| {
            b.iter(|| {
                let y = x.add(1.0).unwrap();
                device.flush().unwrap();
                y
            });
        });
        group.bench_function("an add, as a function", |b| b.iter(|| one(x.clone()).unwrap()));
        let eager = MlpStep::new();
        group.bench_function("MLP step, eager", |b| b.iter(|| eager.run(&eager.x, &eager.y)));
        let step = std::sync::Arc::new(MlpStep::new());
        let train = tf::function({
            let step = step.clone();
            move |x: Tensor, y: Tensor| step.run(&x, &y)
        });
        group.bench_function("MLP step, as a function", |b| {
            b.iter(|| train(step.x.clone(), step.y.clone()).unwrap());
        });
    });
}

/// A training step of the MLP of `examples/mnist`, batch 50.
struct MlpStep {
    model: Sequential,
    adam: Adam,
    x: Tensor,
    y: Tensor,
}

impl MlpStep {
    fn new() -> Self {
        let model = Sequential::new()
            .add(Flatten::new())
            .add(Dense::new(100).activation(Activation::Relu))
            .add(Dense::new(10));
        let digits = tf::data::drawn_digits::draw_digits(50, 1);
        let all: Vec<usize> = (0..50).collect();
        let (x, y) = digits.tensors(&all).unwrap();
        MlpStep { model, adam: Adam::new(1e-3), x, y }
    }

    fn run(&self, x: &Tensor, y: &Tensor) -> tf::Result<Tensor> {
        let tape = tf::GradientTape::new();
        let logits = self.model.call(x, TRAINING)?;
        let loss = tf::sparse_softmax_cross_entropy_with_logits(y, &logits)?.reduce_mean(())?;
        self.adam.minimize(&loss, tape, &self.model)?;
        Ok(loss)
    }
}

/// Small and large ops, each followed by a wait, and a chain that is read.
fn ops(c: &mut Criterion) {
    let device = Device::current().unwrap();
    let mut group = c.benchmark_group("ops");
    group.sample_size(20);
    for n in [16usize, 1 << 20] {
        let (x, b) = (Tensor::ones([n]).unwrap(), Tensor::ones([n]).unwrap());
        device.synchronize().unwrap();
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(format!("add of {n} floats"), |c| {
            c.iter(|| {
                let y = x.add(&b).unwrap();
                device.synchronize().unwrap();
                y
            });
        });
    }
    let (x, b) = (Tensor::zeros([16]).unwrap(), Tensor::ones([16]).unwrap());
    group.throughput(Throughput::Elements(CHAIN as u64));
    group.bench_function("1000 adds of 16 floats, read", |c| {
        c.iter(|| assert_eq!(chain(&x, &b).to_vec::<f32>().unwrap(), [CHAIN as f32; 16]));
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
        b.iter(|| x.reduce_sum(()).unwrap().item::<f32>().unwrap());
    });
}

/// The step of `examples/mnist/main.rs` for the MLP, batch 50.
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
    let eager = MlpStep::new();
    group.bench_function("MNIST MLP step of one batch, eager", |b| {
        b.iter(|| {
            eager.run(&eager.x, &eager.y).unwrap();
            device.synchronize().unwrap();
        });
    });
    let step = std::sync::Arc::new(MlpStep::new());
    let train = tf::function({
        let step = step.clone();
        move |x: Tensor, y: Tensor| step.run(&x, &y)
    });
    group.bench_function("MNIST MLP step of one batch, as a function", |b| {
        b.iter(|| {
            train(step.x.clone(), step.y.clone()).unwrap();
            device.synchronize().unwrap();
        });
    });
    group.bench_function("MNIST MLP step, batch 50", |b| {
        b.iter(|| {
            let (x, y) = digits.tensors(&all).unwrap();
            let tape = tf::GradientTape::new();
            let logits = model.call(&x, TRAINING).unwrap();
            let loss = tf::sparse_softmax_cross_entropy_with_logits(&y, &logits).unwrap();
            let loss = loss.reduce_mean(()).unwrap();
            let variables = model.trainable_variables();
            let grads = tape.gradient(&loss, &variables).unwrap();
            adam.apply_gradients(&grads, &variables).unwrap();
            device.synchronize().unwrap();
        });
    });
}

criterion_group!(benches, overhead, functions, ops, kernels, step);
criterion_main!(benches);
