//! Copies between devices, compared with reading and uploading by wgpu alone and with the host's own copy, and what a strategy
//! costs. Ratios of medians, measured in turn in one run: `cargo bench --bench devices`.

#![allow(missing_docs, clippy::unwrap_used)]

use std::time::{Duration, Instant};

use tf::config::{self, LogicalDeviceConfiguration};
use tf::distribute::{MirroredStrategy, Strategy};
use tf::interop::DeviceExt;
use tf::keras::layers::Dense;
use tf::keras::optimizers::{Adam, Optimizer};
use tf::keras::{Activation, Layer, Sequential, TRAINING};
use tf::{Device, GradientTape, Tensor};
use wgrad as tf;

/// `cargo test` runs benches with this argument to check that they work.
fn turns() -> usize {
    if std::env::args().any(|arg| arg == "--test") { 1 } else { 31 }
}

fn main() {
    let physical = &config::list_physical_devices(None).unwrap()[0];
    let parts = vec![LogicalDeviceConfiguration::new(); 4];
    config::set_logical_device_configuration(physical, &parts).unwrap();
    let kind = physical.device_type();
    let virtual_devices: Vec<Device> =
        (0..4).map(|i| tf::device(&format!("{kind}:{i}")).unwrap()).collect();
    println!("{}\n", virtual_devices[0].adapter());

    let other = Device::new().unwrap();
    println!(
        "| bytes | to another device | wgpu's read and upload | host's copy | to a virtual device |"
    );
    println!("|---|---|---|---|---|");
    for bytes in [1 << 16, 1 << 20, 1 << 24, 1 << 26] {
        copies(&virtual_devices, &other, bytes);
    }

    println!("\n| model | no strategy | one replica | two replicas | four replicas |");
    println!("|---|---|---|---|---|");
    for (name, units, batch) in
        [("MLP 784-128-10, batch 64", 128, 64), ("MLP 784-1024-10, batch 256", 1024, 256)]
    {
        steps(name, units, batch, &virtual_devices);
    }
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64()
}

fn timed(f: impl FnOnce()) -> Duration {
    let began = Instant::now();
    f();
    began.elapsed()
}

/// Times of copies of so many bytes.
fn copies(devices: &[Device], other: &Device, bytes: usize) {
    let x =
        devices[0].scope(|| Tensor::from_slice(&vec![1.5_f32; bytes / 4], [bytes / 4])).unwrap();
    devices[0].synchronize().unwrap();
    let host = vec![1_u8; bytes];
    let mut times: [Vec<Duration>; 4] = Default::default();
    for _ in 0..turns() {
        times[0].push(timed(|| {
            let copy = x.to(other).unwrap();
            // A small value that depends on the copy.
            copy.slice(&[0], &[1]).unwrap().to_vec::<f32>().unwrap();
        }));
        times[1].push(timed(|| plain(&devices[0], other, bytes)));
        times[2].push(timed(|| drop(std::hint::black_box(host.clone()))));
        times[3].push(timed(|| {
            let copy = x.to(&devices[1]).unwrap();
            copy.slice(&[0], &[1]).unwrap().to_vec::<f32>().unwrap();
        }));
    }
    let [to, plain, copied, within] = times.map(|times| bytes as f64 / median(times) / 1e9);
    println!(
        "| {bytes} | {to:.2} GB/s | {plain:.2} GB/s: {:.2} of it | {copied:.2} GB/s | {within:.2} GB/s |",
        to / plain
    );
}

/// The same copy by wgpu alone: a mapped buffer, read and written with no copy in between.
fn plain(from: &Device, to: &Device, bytes: usize) {
    let (from, queue) = from.wgpu();
    let (to, to_queue) = to.wgpu();
    let size = bytes as u64;
    let buffer = |device: &wgpu::Device, usage| {
        device.create_buffer(&wgpu::BufferDescriptor {
            label: None,
            size,
            usage,
            mapped_at_creation: false,
        })
    };
    let source = buffer(from, wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC);
    let staging = buffer(from, wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
    let target = buffer(to, wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_DST);
    let mut encoder = from.create_command_encoder(&Default::default());
    encoder.copy_buffer_to_buffer(&source, 0, &staging, 0, size);
    queue.submit([encoder.finish()]);
    staging.slice(..).map_async(wgpu::MapMode::Read, |mapped| mapped.unwrap());
    from.poll(wgpu::PollType::wait_indefinitely()).unwrap();
    to_queue.write_buffer(&target, 0, &staging.slice(..).get_mapped_range().unwrap());
    to_queue.submit([]);
    to.poll(wgpu::PollType::wait_indefinitely()).unwrap();
}

/// Times of training steps by hand.
fn steps(name: &str, units: usize, batch: usize, devices: &[Device]) {
    let model = || {
        Sequential::new().add(Dense::new(units).activation(Activation::Relu)).add(Dense::new(10))
    };
    let (x, y) = devices[0]
        .scope(|| -> tf::Result<_> {
            Ok((Tensor::ones([batch, 784])?, Tensor::zeros([batch])?.cast(tf::DType::I32)?))
        })
        .unwrap();
    let step = |model: &Sequential, adam: &Adam, x: &Tensor, y: &Tensor| -> tf::Result<Tensor> {
        let tape = GradientTape::new();
        let logits = model.call(x, TRAINING)?;
        let loss = tf::sparse_softmax_cross_entropy_with_logits(y, &logits)?;
        let loss = loss.reduce_sum(())?.divide(batch as f32)?;
        adam.minimize(&loss, tape, model)?;
        Ok(loss)
    };
    let alone = devices[0].scope(|| (model(), Adam::new(1e-3)));
    let strategies: Vec<MirroredStrategy> =
        [1, 2, 4].map(|n| MirroredStrategy::on(devices[..n].to_vec()).unwrap()).into();
    let trained: Vec<(Sequential, Adam)> =
        strategies.iter().map(|strategy| strategy.scope(|| (model(), Adam::new(1e-3)))).collect();
    let in_replicas = |strategy: &Strategy, (model, adam): &(Sequential, Adam)| {
        let parts = (strategy.split(&x).unwrap(), strategy.split(&y).unwrap());
        strategy.run(|(x, y): (Tensor, Tensor)| step(model, adam, &x, &y), parts).unwrap();
        strategy.devices().iter().for_each(|device| device.synchronize().unwrap());
    };
    let mut times: [Vec<Duration>; 4] = Default::default();
    for turn in 0..10 + turns() {
        let mut now = vec![timed(|| {
            devices[0].scope(|| step(&alone.0, &alone.1, &x, &y)).unwrap();
            devices[0].synchronize().unwrap();
        })];
        for (strategy, trained) in strategies.iter().zip(&trained) {
            now.push(timed(|| in_replicas(strategy, trained)));
        }
        if turn >= 10 {
            times.iter_mut().zip(now).for_each(|(times, now)| times.push(now));
        }
    }
    let [alone, one, two, four] = times.map(|times| median(times) * 1e3);
    println!(
        "| {name} | {alone:.2} ms | {one:.2} ms: {:.2} | {two:.2} ms: {:.2} | {four:.2} ms: {:.2} |",
        one / alone,
        two / alone,
        four / alone
    );
}
