//! What training in several processes costs: `cargo bench --bench mpi --features mpi`. Starts `mpirun` with itself, and prints medians.
//!
//! The figures of single processes go into a simulation of a step, whose predictions stand next to what was measured; with the figures of
//! a network it predicts larger jobs (docs/many-workers.md).

#![allow(missing_docs, clippy::unwrap_used)]

use std::process::Command;
use std::time::{Duration, Instant};

use mpi::collective::SystemOperation;
use mpi::traits::{Communicator, CommunicatorCollectives};
use tf::distribute::{
    CommunicationOptions, MultiWorkerMirroredStrategy, PerReplica, ReduceOp, get_replica_context,
};
use tf::keras::layers::Dense;
use tf::keras::optimizers::{Optimizer, Sgd};
use tf::keras::{Activation, Layer, Sequential, TRAINING};
use tf::{GradientTape, Tensor, Trackable};
use wgrad as tf;

/// About as many values as a ResNet's stage: 13 MB.
const VALUES: usize = 3_250_000;
const BATCH: usize = 256;
const MODE: &str = "WGRAD_BENCH_MPI";

/// `cargo test` runs benches with this argument to check that they work.
fn turns() -> usize {
    match std::env::var("WGRAD_BENCH_TURNS") {
        Ok(turns) => turns.parse().unwrap(),
        Err(_) if std::env::args().any(|arg| arg == "--test") => 1,
        Err(_) => 21,
    }
}

fn main() {
    match std::env::var(MODE).as_deref() {
        Ok("bare") => bare(),
        Ok("sum") => sum(),
        Ok("step") => step(false),
        Ok("compressed") => step(true),
        Ok("packs") => packs(),
        Ok("alone") => alone(),
        _ => report(),
    }
}

/// The output of a job: names and medians.
fn job(ranks: usize, mode: &str) -> Vec<(String, f64)> {
    job_with(ranks, mode, 4 << 20)
}

fn job_with(ranks: usize, mode: &str, pack: usize) -> Vec<(String, f64)> {
    let mpirun = std::env::var("WGRAD_MPIRUN").unwrap_or_else(|_| "mpirun".into());
    let output = Command::new(mpirun)
        .args(["-n", &ranks.to_string()])
        .arg(std::env::current_exe().unwrap())
        .env(MODE, mode)
        .env("WGRAD_BENCH_PACK", pack.to_string())
        .env("WGRAD_BENCH_TURNS", turns().to_string())
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let (name, value) = line.strip_prefix("median ")?.rsplit_once(' ')?;
        Some((name.to_string(), value.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

fn one(ranks: usize, mode: &str) -> f64 {
    job(ranks, mode)[0].1
}

fn report() {
    println!("{}\n", tf::Device::current().unwrap().adapter());
    println!("Sums of {} values, ms:\n", VALUES);
    println!("| processes | MPI alone | a strategy | of MPI's speed |\n|---|---|---|---|");
    let mut sums = Vec::new();
    for ranks in [2, 4] {
        let (bare, sum) = (one(ranks, "bare"), one(ranks, "sum"));
        println!("| {ranks} | {:.1} | {:.1} | {:.2} |", bare * 1e3, sum * 1e3, bare / sum);
        sums.push((ranks, bare));
    }
    println!("\nSteps of an MLP with {VALUES} parameters, {BATCH} examples in each process, ms:\n");
    println!(
        "| processes | without sums | with sums | with f16 | sums alone | hidden behind the backward pass | simulated |"
    );
    println!("|---|---|---|---|---|---|---|");
    for ranks in [1, 2, 4] {
        let alone = one(ranks, "alone");
        let step = job(ranks, "step");
        let (step, backward, reduce) = (step[0].1, step[1].1, step[2].1);
        let compressed = one(ranks, "compressed");
        let node = Node { forward: alone - backward, backward, reduce };
        let hidden = match ranks {
            1 => "-".to_string(),
            _ => format!("{:.0} %", 100.0 * (1.0 - (step - alone) / reduce).clamp(0.0, 1.0)),
        };
        println!(
            "| {ranks} | {:.1} | {:.1} | {:.1} | {:.1} | {hidden} | {:.1} |",
            alone * 1e3,
            step * 1e3,
            compressed * 1e3,
            reduce * 1e3,
            node.simulate(ranks) * 1e3
        );
    }
    println!("\nBytes of a pack, and ms of a step of two processes:\n");
    for bytes in [1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26] {
        println!("- {bytes}: {:.1}", job_with(2, "packs", bytes)[0].1 * 1e3);
    }
    let (_, two) = sums[0];
    larger_jobs(two);
}

/// What was measured on one machine.
struct Node {
    forward: f64,
    backward: f64,
    /// All sums, one after another, with nothing else to do.
    reduce: f64,
}

const PACKS: usize = 4;

impl Node {
    /// The time of a step: packs become ready evenly during the backward pass, and their sums follow one after another.
    fn simulate(&self, ranks: usize) -> f64 {
        let mut sent = 0.0_f64;
        if ranks > 1 {
            for pack in 1..=PACKS {
                let ready = self.backward * pack as f64 / PACKS as f64;
                sent = sent.max(ready) + self.reduce / PACKS as f64;
            }
        }
        self.forward + sent.max(self.backward)
    }
}

/// Ring all-reduces in machines of eight GPUs and between them, with the figures of usual networks.
fn larger_jobs(two: f64) {
    let bytes = VALUES as f64 * 4.0;
    println!(
        "\nSimulated: a step of 100 ms with 60 ms of backward pass, 13 MB of gradients; ms:\n"
    );
    println!(
        "| processes | 25 Gbit/s, 20 us | 100 Gbit/s, 10 us | 400 Gbit/s, 5 us |\n|---|---|---|---|"
    );
    for ranks in [8, 64, 512, 4096] {
        let step = |gigabits: f64, latency: f64| {
            let machines = (ranks as f64 / 8.0).max(1.0);
            // Within a machine through memory, as measured with two processes; between them a ring of machines, or a tree where the ring's
            // latencies cost more.
            let inside = two * 7.0 / 8.0;
            let volume = 2.0 * (machines - 1.0) / machines * bytes / (gigabits * 1e9 / 8.0);
            let ring = 2.0 * (machines - 1.0) * latency;
            let tree = 2.0 * machines.log2() * latency;
            let reduce = inside + volume + ring.min(tree) * PACKS as f64;
            Node { forward: 0.040, backward: 0.060, reduce }.simulate(ranks) * 1e3
        };
        println!(
            "| {ranks} | {:.1} | {:.1} | {:.1} |",
            step(25.0, 20e-6),
            step(100.0, 10e-6),
            step(400.0, 5e-6)
        );
    }
}

fn print_median(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    println!("median {name} {}", times[times.len() / 2].as_secs_f64());
}

/// An all-reduce by MPI alone.
fn bare() {
    let universe = mpi::initialize().unwrap();
    let world = universe.world();
    let own = vec![1f32; VALUES];
    let mut sum = vec![0f32; VALUES];
    let mut times = Vec::new();
    for _ in 0..=turns() {
        world.barrier();
        let began = Instant::now();
        world.all_reduce_into(&own[..], &mut sum[..], SystemOperation::sum());
        times.push(began.elapsed());
    }
    if world.rank() == 0 {
        print_median("bare", times.split_off(1));
    }
}

/// The same through a strategy, of a tensor on the device.
fn sum() {
    let strategy = MultiWorkerMirroredStrategy::new().unwrap();
    let own = PerReplica::new(vec![Tensor::ones([VALUES]).unwrap()]);
    let mut times = Vec::new();
    for _ in 0..=turns() {
        own.values()[0].device().synchronize().unwrap();
        strategy.barrier().unwrap();
        let began = Instant::now();
        let sum = strategy
            .run(|own| get_replica_context().unwrap().all_reduce(ReduceOp::Sum, &own), &own)
            .unwrap();
        sum.values()[0].slice(&[0], &[1]).unwrap().to_vec::<f32>().unwrap();
        times.push(began.elapsed());
    }
    if strategy.is_chief() {
        print_median("sum", times.split_off(1));
    }
}

fn model() -> Sequential {
    let wide = || Dense::new(1024).activation(Activation::Relu);
    Sequential::new().add(wide()).add(wide()).add(wide()).add(Dense::new(336))
}

/// One step, and the values that its backward pass needs before it is done.
fn train(model: &Sequential, sgd: &Sgd, x: &Tensor) -> tf::Result<()> {
    let tape = GradientTape::new();
    let loss = model.call(x, TRAINING)?.square()?.reduce_mean(())?;
    sgd.minimize(&loss, tape, model)
}

/// The times of steps, and of their parts.
fn step(compressed: bool) {
    let options = CommunicationOptions::new().f16_compression(compressed);
    let strategy = MultiWorkerMirroredStrategy::with(options).unwrap();
    let (model, sgd) = strategy.scope(|| (model(), Sgd::new(1e-3)));
    let x = PerReplica::new(vec![Tensor::ones([BATCH, 784]).unwrap()]);
    let run = || {
        strategy.run(|x: Tensor| train(&model, &sgd, &x), &x).unwrap();
        x.values()[0].device().synchronize().unwrap();
    };
    run();
    let (mut steps, mut backward, mut reduce) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..=turns() {
        strategy.barrier().unwrap();
        let began = Instant::now();
        run();
        steps.push(began.elapsed());
    }
    let forward = || {
        let began = Instant::now();
        model
            .call(&x.values()[0], TRAINING)
            .unwrap()
            .square()
            .unwrap()
            .reduce_mean(())
            .unwrap()
            .item::<f32>()
            .unwrap();
        began.elapsed()
    };
    let gradients = || -> (Vec<Tensor>, Duration) {
        let began = Instant::now();
        let tape = GradientTape::new();
        let y = model.call(&x.values()[0], TRAINING).unwrap();
        let loss = y.square().unwrap().reduce_mean(()).unwrap();
        let variables = model.trainable_variables();
        let grads = tape.gradient(&loss, &variables).unwrap();
        x.values()[0].device().synchronize().unwrap();
        (grads.into_iter().flatten().collect(), began.elapsed())
    };
    for _ in 0..=turns() {
        strategy.barrier().unwrap();
        let first = forward();
        let (grads, both) = gradients();
        backward.push(both.saturating_sub(first));
        strategy.barrier().unwrap();
        let began = Instant::now();
        let flat: Vec<Tensor> = grads
            .iter()
            .map(|grad| grad.reshape([grad.shape().iter().product::<usize>()]).unwrap())
            .collect();
        for grad in flat {
            strategy.reduce(ReduceOp::Sum, &PerReplica::new(vec![grad]), None).unwrap();
        }
        reduce.push(began.elapsed());
    }
    if strategy.is_chief() {
        print_median("step", steps.split_off(1));
        print_median("backward", backward.split_off(1));
        print_median("reduce", reduce.split_off(1));
    }
}

/// The same step without sums, in as many processes at once.
fn alone() {
    let strategy = MultiWorkerMirroredStrategy::new().unwrap();
    let (model, sgd) = (model(), Sgd::new(1e-3));
    let x = Tensor::ones([BATCH, 784]).unwrap();
    let mut times = Vec::new();
    for _ in 0..=turns() + 1 {
        strategy.barrier().unwrap();
        let began = Instant::now();
        train(&model, &sgd, &x).unwrap();
        x.device().synchronize().unwrap();
        times.push(began.elapsed());
    }
    if strategy.is_chief() {
        print_median("alone", times.split_off(2));
    }
}

/// Steps with packs of different sizes. Options belong to a process, so each size has a job of its own.
fn packs() {
    let bytes: usize = std::env::var("WGRAD_BENCH_PACK").unwrap().parse().unwrap();
    let options = CommunicationOptions::new().bytes_per_pack(bytes);
    let strategy = MultiWorkerMirroredStrategy::with(options).unwrap();
    let (model, sgd) = strategy.scope(|| (model(), Sgd::new(1e-3)));
    let x = PerReplica::new(vec![Tensor::ones([BATCH, 784]).unwrap()]);
    let mut times = Vec::new();
    for _ in 0..=turns() + 1 {
        strategy.barrier().unwrap();
        let began = Instant::now();
        strategy.run(|x: Tensor| train(&model, &sgd, &x), &x).unwrap();
        x.values()[0].device().synchronize().unwrap();
        times.push(began.elapsed());
    }
    if strategy.is_chief() {
        print_median(&bytes.to_string(), times.split_off(2));
    }
}
