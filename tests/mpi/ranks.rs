//! What each process of a job runs. These tests do not run by themselves: a process alone has no others.

use std::path::PathBuf;
use std::time::Duration;

use tf::config::{self, LogicalDeviceConfiguration};
use tf::distribute::{
    AutoShardPolicy, CommunicationOptions, MirroredStrategy, MultiWorkerMirroredStrategy,
    PerReplica, ReduceOp, get_replica_context,
};
use tf::keras::callbacks::{BackupAndRestore, BackupOptions, Callback, LambdaCallback, Logs, Run};
use tf::keras::layers::Dense;
use tf::keras::optimizers::{Optimizer, Sgd};
use tf::keras::{
    Activation, CompileOptions, FitOptions, Layer, Model, Sequential, StopSignal, TRAINING,
};
use tf::{Tensor, Trackable, Variable, VariableAggregation, VariableOptions};
use wgrad as tf;

use crate::models::{
    BATCH, by_fit, by_hand, digits, fit_in_order, images_in_order, loss, network, noisy_network,
};

fn folder() -> PathBuf {
    std::env::var_os("WGRAD_TEST_FOLDER").expect("a test starts this program by mpirun").into()
}

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

fn save(name: &str, numbers: &[f32]) {
    let text: Vec<String> = numbers.iter().map(f32::to_string).collect();
    std::fs::write(folder().join(name), text.join("\n")).unwrap();
}

fn strategy() -> MultiWorkerMirroredStrategy {
    MultiWorkerMirroredStrategy::new().unwrap()
}

#[test]
#[ignore = "mpirun starts it"]
fn values() {
    exchange_values(&strategy());
}

/// As `values`, in messages of a few bytes.
#[test]
#[ignore = "mpirun starts it"]
fn values_in_pieces() {
    let options = CommunicationOptions::new().bytes_per_message(7);
    exchange_values(&MultiWorkerMirroredStrategy::with(options).unwrap());
}

fn exchange_values(strategy: &MultiWorkerMirroredStrategy) {
    let (rank, count) = (strategy.rank(), strategy.num_workers());
    assert_eq!(strategy.num_replicas_in_sync(), count);
    assert_eq!(strategy.is_chief(), rank == 0);
    strategy.barrier().unwrap();
    let own = strategy.distribute_values_from_function(|index| tf::constant([index as f32, 1.0]));
    let own = own.unwrap();
    let sum = strategy.reduce(ReduceOp::Sum, &own, None).unwrap();
    let ranks = (0..count).sum::<usize>() as f32;
    assert_eq!(sum.to_vec::<f32>().unwrap(), [ranks, count as f32]);
    let mean = strategy.reduce(ReduceOp::Mean, &own, Some(0)).unwrap();
    assert_eq!(mean.item::<f32>().unwrap(), (ranks + count as f32) / (2.0 * count as f32));
    let all = strategy.gather(&own, 0).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(all, (0..count).flat_map(|rank| [rank as f32, 1.0]).collect::<Vec<_>>());

    // Parts of different lengths, and integers beyond those that floats have.
    let rows = Tensor::from_slice(&vec![rank as i32; rank + 1], [rank + 1]).unwrap();
    let all = strategy.gather(&PerReplica::new(vec![rows]), 0).unwrap();
    let expected: Vec<i32> = (0..count).flat_map(|rank| vec![rank as i32; rank + 1]).collect();
    assert_eq!(all.to_vec::<i32>().unwrap(), expected);
    let big = PerReplica::new(vec![tf::constant([100_000_001 + rank as i32]).unwrap()]);
    let sums = strategy
        .run(
            |big: Tensor| {
                let context = get_replica_context().unwrap();
                assert_eq!(context.replica_id_in_sync_group(), rank);
                let sum = context.all_reduce(ReduceOp::Sum, &big)?;
                let all = context.all_gather(&big, 0)?;
                Ok((sum.item::<i32>()?, all.to_vec::<i32>()?))
            },
            &big,
        )
        .unwrap();
    let each: Vec<i32> = (0..count).map(|rank| 100_000_001 + rank as i32).collect();
    assert_eq!(sums.values()[0], (each.iter().sum(), each));

    // The whole batch is split among all: 7 rows.
    let batch = Tensor::from_slice(&[0f32, 1., 2., 3., 4., 5., 6.], [7]).unwrap();
    let own = strategy.split(&batch).unwrap();
    let joined = strategy.gather(&own, 0).unwrap();
    assert_eq!(joined.to_vec::<f32>().unwrap(), [0., 1., 2., 3., 4., 5., 6.]);

    // Variables begin with the chief's values, however they were made.
    let variable = strategy.scope(|| Variable::new(tf::constant([rank as f32 + 5.0]).unwrap()));
    let average =
        strategy.scope(|| Variable::untrainable(tf::constant([rank as f32 + 7.0]).unwrap()));
    strategy.run(|()| Ok(()), ()).unwrap();
    assert_eq!(variable.read().to_vec::<f32>().unwrap(), [5.0]);
    assert_eq!(average.read().to_vec::<f32>().unwrap(), [7.0]);
    let shift = |()| average.assign_add(rank as f32);
    strategy.run(shift, ()).unwrap();
    strategy.average_variables(&[variable.clone(), average.clone()]).unwrap();
    assert_eq!(average.read().to_vec::<f32>().unwrap(), [7.0 + ranks / count as f32]);
    variable.assign(tf::constant([rank as f32]).unwrap()).unwrap();
    strategy.broadcast_variables(std::slice::from_ref(&variable)).unwrap();
    assert_eq!(variable.read().to_vec::<f32>().unwrap(), [0.0]);

    // Random numbers: equal outside of replicas, different in them.
    let outside = tf::random::uniform([4]).unwrap();
    let all = strategy.gather(&PerReplica::new(vec![outside.clone()]), 0).unwrap();
    let outside = outside.to_vec::<f32>().unwrap();
    assert_eq!(all.to_vec::<f32>().unwrap(), outside.repeat(count));
    let inside = strategy.run(|()| tf::random::uniform([1]), ()).unwrap();
    let mut all = strategy.gather(&inside, 0).unwrap().to_vec::<f32>().unwrap();
    all.sort_by(f32::total_cmp);
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
#[ignore = "mpirun starts it"]
fn trains() {
    let strategy = strategy();
    let (rank, strategy) = (strategy.rank(), &*strategy);
    save(&format!("hand-{rank}.txt"), &by_hand(Some(strategy)).unwrap());
    save(&format!("fit-{rank}.txt"), &by_fit(Some(strategy), network).unwrap());
}

/// One process without a strategy, to compare with.
#[test]
#[ignore = "mpirun starts it"]
fn trains_alone() {
    save("hand.txt", &by_hand(None).unwrap());
    save("fit.txt", &by_fit(None, network).unwrap());
}

/// One process with two virtual devices, to compare with.
#[test]
#[ignore = "mpirun starts it"]
fn trains_mirrored() {
    let first = &config::list_physical_devices(None).unwrap()[0];
    let half = LogicalDeviceConfiguration::new();
    config::set_logical_device_configuration(first, &[half.clone(), half]).unwrap();
    let kind = first.device_type();
    let mirrored = MirroredStrategy::of(&[format!("{kind}:0"), format!("{kind}:1")]).unwrap();
    save("noisy.txt", &by_fit(Some(&mirrored), noisy_network).unwrap());
}

#[test]
#[ignore = "mpirun starts it"]
fn trains_noisily() {
    let strategy = strategy();
    let rank = strategy.rank();
    save(&format!("noisy-{rank}.txt"), &by_fit(Some(&strategy), noisy_network).unwrap());
}

#[test]
#[ignore = "mpirun starts it"]
fn trains_compressed() {
    // Packs smaller than some tensors.
    let options = CommunicationOptions::new().f16_compression(true).bytes_per_pack(1000);
    let strategy = MultiWorkerMirroredStrategy::with(options).unwrap();
    save(&format!("hand-{}.txt", strategy.rank()), &by_hand(Some(&strategy)).unwrap());
}

/// Ends the process at the beginning of a batch, as a power cut would.
struct PowerCut {
    rank: usize,
    batch: usize,
    seen: usize,
}

impl Callback for PowerCut {
    fn on_train_batch_begin(&mut self, _: usize, _: &mut Run<'_>) -> tf::Result<()> {
        self.seen += 1;
        if number("CUT_RANK") == Some(self.rank) && self.seen == self.batch {
            std::process::abort();
        }
        Ok(())
    }
}

#[test]
#[ignore = "mpirun starts it"]
fn resumes() {
    let strategy = strategy();
    let pid = std::process::id().to_string();
    std::fs::write(folder().join(format!("pid-{}.txt", strategy.rank())), pid).unwrap();
    tf::random::set_seed(5);
    let (images, labels) = digits().unwrap();
    let model = strategy.scope(network);
    let options = CompileOptions::new().metrics(["accuracy"]);
    model.compile(tf::keras::optimizers::Adam::new(1e-3), loss(), options).unwrap();
    let backup = BackupOptions::new().save_freq(tf::keras::callbacks::SaveFreq::Batches(3));
    let epochs = number("EPOCHS").unwrap();
    let cut = PowerCut { rank: strategy.rank(), batch: number("CUT_BATCH").unwrap_or(0), seen: 0 };
    let options = FitOptions::new()
        .batch_size(BATCH)
        .epochs(epochs)
        .verbose(0)
        .callback(BackupAndRestore::new(folder().join("backup"), backup))
        .callback(cut);
    let history = model.fit((&images, &labels), options).unwrap();
    let mut numbers = Vec::new();
    let names = ["loss", "accuracy"].map(|name| history.get(name).unwrap().to_vec());
    for (at, epoch) in history.epochs().iter().enumerate() {
        numbers.extend([*epoch as f32, names[0][at] as f32, names[1][at] as f32]);
    }
    if strategy.is_chief() {
        save("resumed.txt", &numbers);
    }
}

#[test]
#[ignore = "mpirun starts it"]
fn other_model() {
    let strategy = strategy();
    let units = if strategy.rank() == 1 { 3 } else { 4 };
    let model = strategy.scope(|| Sequential::new().add(Dense::new(units)).add(Dense::new(1)));
    model.compile("sgd", "mse", CompileOptions::new()).unwrap();
    let (x, y) = (Tensor::ones([8, 2]).unwrap(), Tensor::zeros([8, 1]).unwrap());
    let error = model.fit((&x, &y), FitOptions::new().verbose(0)).unwrap_err();
    println!("rank {}: {error}", strategy.rank());
    // A strategy that has failed fails in all later calls.
    let again = strategy.barrier().unwrap_err();
    assert_eq!(error.to_string(), again.to_string());
}

#[test]
#[ignore = "mpirun starts it"]
fn other_activation() {
    let strategy = strategy();
    let activation = if strategy.rank() == 1 { Activation::Tanh } else { Activation::Relu };
    let model = strategy
        .scope(|| Sequential::new().add(Dense::new(4).activation(activation)).add(Dense::new(1)));
    model.compile("sgd", "mse", CompileOptions::new()).unwrap();
    let (x, y) = (Tensor::ones([8, 2]).unwrap(), Tensor::zeros([8, 1]).unwrap());
    let error = model.fit((&x, &y), FitOptions::new().verbose(0)).unwrap_err();
    println!("rank {}: {error}", strategy.rank());
}

#[test]
#[ignore = "mpirun starts it"]
fn fewer_batches() {
    let strategy = strategy();
    let model = strategy.scope(|| Sequential::new().add(Dense::new(1)));
    model.compile("sgd", "mse", CompileOptions::new()).unwrap();
    let rows = if strategy.rank() == 0 { 24 } else { 16 };
    let (x, y) = (Tensor::ones([rows, 2]).unwrap(), Tensor::zeros([rows, 1]).unwrap());
    let error = model.fit((&x, &y), FitOptions::new().batch_size(8).verbose(0)).unwrap_err();
    println!("rank {}: {error}", strategy.rank());
}

/// One process ends early with an error of its own.
#[test]
#[ignore = "mpirun starts it"]
fn ends_early() {
    let strategy = strategy();
    let model = strategy.scope(|| Sequential::new().add(Dense::new(1)));
    model.compile("sgd", "mse", CompileOptions::new()).unwrap();
    let (x, y) = (Tensor::ones([16, 2]).unwrap(), Tensor::zeros([16, 1]).unwrap());
    let fails = strategy.rank() == 1;
    let full = LambdaCallback::new().on_epoch_begin(move |epoch, _| match fails && epoch == 2 {
        true => Err(tf::Error::Data("the disk is full".into())),
        false => Ok(()),
    });
    let options = FitOptions::new().epochs(5).batch_size(8).verbose(0).callback(full);
    let error = model.fit((&x, &y), options).unwrap_err();
    println!("rank {}: {error}", strategy.rank());
}

/// Where one process is interrupted, or one callback ends the training, all stop at the same batch.
#[test]
#[ignore = "mpirun starts it"]
fn stops_together() {
    struct Stops {
        here: bool,
        signal: Option<StopSignal>,
        seen: usize,
    }
    impl Callback for Stops {
        fn on_train_batch_begin(&mut self, _: usize, run: &mut Run<'_>) -> tf::Result<()> {
            self.seen += 1;
            if self.here && self.seen == 9 {
                match &self.signal {
                    Some(signal) => signal.stop(),
                    None => run.stop_training(),
                }
            }
            Ok(())
        }
    }
    let strategy = strategy();
    let (images, labels) = digits().unwrap();
    for interrupted in [false, true] {
        let model = strategy.scope(network);
        model.compile("adam", loss(), CompileOptions::new()).unwrap();
        let signal = StopSignal::new();
        let here = strategy.rank() == 1;
        let mut stops = Stops { here, signal: interrupted.then(|| signal.clone()), seen: 0 };
        let options = FitOptions::new()
            .batch_size(BATCH)
            .epochs(5)
            .verbose(0)
            .validation_split(0.2)
            .stop_signal(&signal)
            .callback(&mut stops);
        let history = model.fit((&images, &labels), options).unwrap();
        // Five batches in an epoch.
        assert_eq!((stops.seen, history.epochs().len()), (9, 2));
        assert_eq!(history.interrupted(), interrupted);
    }
}

/// Each process reads its own half of the examples, by `fit` and by hand.
#[test]
#[ignore = "mpirun starts it"]
fn reads_own_data() {
    let strategy = strategy();
    let (count, rank) = (strategy.num_workers(), strategy.rank());
    let per_replica = BATCH / count;
    let dataset = images_in_order().unwrap().shard(count, rank).batch(per_replica);
    let history = fit_in_order(Some(&strategy), &dataset, AutoShardPolicy::Off).unwrap();
    save(&format!("own-{rank}.txt"), &history);

    let shards = strategy.distribute_datasets_from_function(|context| {
        assert_eq!((context.num_input_pipelines, context.input_pipeline_id), (count, rank));
        let numbers = tf::data::range(0..40).shard(count, rank);
        Ok(numbers.batch(context.get_per_replica_batch_size(4 * count)?))
    });
    let mut total = 0;
    for batch in &shards.unwrap() {
        let sum: i64 = batch.unwrap().values()[0].iter().sum();
        let sum = PerReplica::new(vec![tf::constant([sum as i32]).unwrap()]);
        let all = strategy.gather(&sum, 0).unwrap().to_vec::<i32>().unwrap();
        total += all.iter().sum::<i32>();
    }
    assert_eq!(total, (0..40).sum::<i32>());

    // The second process has one batch less.
    let batches = 3 - i64::from(rank == 1);
    let unequal = strategy
        .distribute_datasets_from_function(|_| Ok(tf::data::range(0..2 * batches).batch(2)));
    let last = unequal.unwrap().iter().last().unwrap();
    println!("rank {rank}: {}", last.unwrap_err());
}

/// One process reads all, to compare with.
#[test]
#[ignore = "mpirun starts it"]
fn reads_all_data() {
    let dataset = images_in_order().unwrap().batch(BATCH);
    save("all.txt", &fit_in_order(None, &dataset, AutoShardPolicy::Data).unwrap());
}

/// Steps until another process ends it.
#[test]
#[ignore = "mpirun starts it"]
fn steps() {
    let strategy = strategy();
    let model = strategy.scope(|| Dense::new(1));
    let sgd = strategy.scope(|| Sgd::new(1e-3));
    let rank = strategy.rank();
    std::fs::write(folder().join(format!("pid-{rank}.txt")), std::process::id().to_string())
        .unwrap();
    for step in 0.. {
        if number("PANIC_RANK") == Some(rank) && step == 3 {
            panic!("rank {rank} panics at step {step}");
        }
        let x = PerReplica::new(vec![Tensor::ones([4, 2]).unwrap()]);
        let stepped = strategy.run(
            |x: Tensor| {
                let tape = tf::GradientTape::new();
                let loss = model.call(&x, TRAINING)?.square()?.reduce_mean(())?;
                sgd.minimize(&loss, tape, &model)
            },
            &x,
        );
        if let Err(error) = stepped {
            println!("rank {rank}: {error}");
            assert!(matches!(error, tf::Error::Unavailable(_)));
            assert!(model.variables().iter().all(|v| v.read().to_vec::<f32>().is_ok()));
            return;
        }
        if step == 5 {
            std::fs::write(folder().join(format!("steps-{rank}.txt")), "").unwrap();
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Logs are equal in all processes, and only the chief is notified by callbacks that write.
#[test]
#[ignore = "mpirun starts it"]
fn writes_once() {
    struct Seen(Vec<f64>);
    impl Callback for Seen {
        fn on_epoch_end(&mut self, _: usize, logs: &mut Logs, _: &mut Run<'_>) -> tf::Result<()> {
            self.0.extend(logs.iter().map(|(_, value)| value));
            Ok(())
        }
    }
    let strategy = strategy();
    let rank = strategy.rank();
    let model = strategy.scope(network);
    model.compile("adam", loss(), CompileOptions::new().metrics(["accuracy"])).unwrap();
    let (images, labels) = digits().unwrap();
    let path = folder().join(format!("log-{rank}.csv"));
    let mut seen = Seen(Vec::new());
    let options = FitOptions::new()
        .batch_size(BATCH)
        .epochs(2)
        .verbose(0)
        .callback(tf::keras::callbacks::CsvLogger::new(&path))
        .callback(&mut seen);
    model.fit((&images, &labels), options).unwrap();
    assert_eq!(path.exists(), rank == 0);
    let seen: Vec<f32> = seen.0.iter().map(|value| *value as f32).collect();
    let all = strategy.gather(&PerReplica::new(vec![tf::constant(seen.clone()).unwrap()]), 0);
    assert_eq!(all.unwrap().to_vec::<f32>().unwrap(), seen.repeat(strategy.num_workers()));
}

/// Sums of tensors without elements, of values at the ends of their range, and of many small variables.
#[test]
#[ignore = "mpirun starts it"]
fn odd_sums() {
    let compressed = number("COMPRESSED").is_some();
    let options = CommunicationOptions::new().f16_compression(compressed);
    let strategy = MultiWorkerMirroredStrategy::with(options).unwrap();
    let (rank, count) = (strategy.rank() as f32, strategy.num_workers() as f32);
    let sum = |x: Tensor| {
        let sum = |x: Tensor| get_replica_context().unwrap().all_reduce(ReduceOp::Sum, &x);
        strategy.run(sum, PerReplica::new(vec![x])).unwrap().into_values().remove(0)
    };
    let sums = |x: &[f32]| sum(tf::constant(x.to_vec()).unwrap()).to_vec::<f32>().unwrap();
    let near = |found: &[f32], expected: &[f32]| {
        let near = |(a, b): (&f32, &f32)| {
            a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= b.abs() * 1e-3
        };
        let all = found.len() == expected.len() && found.iter().zip(expected).all(near);
        assert!(all, "{found:?} {expected:?}");
    };
    for shape in [vec![0], vec![3, 0], vec![0, 5, 1]] {
        let none = sum(Tensor::zeros(&shape[..]).unwrap());
        assert_eq!((none.shape(), none.to_vec::<f32>().unwrap().len()), (&shape[..], 0));
    }
    let c = count;
    near(&sums(&[7e37, -1e38, 3e36, 0.0]), &[7e37 * c, -1e38 * c, 3e36 * c, 0.0]);
    near(&sums(&[3e38, -3e38, 1e38]), &[f32::INFINITY, f32::NEG_INFINITY, 1e38 * c]);
    near(
        &sums(&[f32::INFINITY, 1e6, f32::NAN, -2.0]),
        &[f32::INFINITY, 1e6 * c, f32::NAN, -2.0 * c],
    );
    near(&sums(&[1e-30, -3e-30]), &[1e-30 * c, -3e-30 * c]);
    // Only the second process has a value that is not finite.
    let odd = if rank == 1.0 { f32::NEG_INFINITY } else { 70_000.0 };
    near(&sums(&[odd, 70_000.0]), &[f32::NEG_INFINITY, 70_000.0 * c]);
    if !compressed {
        let large: Vec<f32> = (0..300_000).map(|at| at as f32 + rank).collect();
        let ranks = (0..count as usize).sum::<usize>() as f32;
        let expected: Vec<f32> = (0..300_000).map(|at| at as f32 * c + ranks).collect();
        assert!(sums(&large) == expected);
    }

    let variables: Vec<Variable> = strategy.scope(|| {
        let made = |at: usize| Variable::new(Tensor::full([at % 4], at as f32).unwrap());
        (0..1000).map(made).collect()
    });
    let sgd = strategy.scope(|| Sgd::new(1.0));
    let began = std::time::Instant::now();
    let steps = 5;
    for step in 0..steps {
        let grad = |(at, variable): (usize, &Variable)| {
            let value = (at % 7) as f32 * (rank + 1.0);
            // Some have no gradient at all, in every process.
            (at % 10 != step).then(|| Tensor::full(variable.shape(), value).unwrap())
        };
        let grads = || variables.iter().enumerate().map(grad).collect::<Vec<_>>();
        strategy.run(|()| sgd.apply_gradients(&grads(), &variables), ()).unwrap();
    }
    let total = (1..=count as usize).sum::<usize>();
    for (at, variable) in variables.iter().enumerate() {
        let made = steps - usize::from(at % 10 < steps);
        let change = ((at % 7) * total * made) as f32;
        let found = variable.read().to_vec::<f32>().unwrap();
        assert_eq!(found.len(), at % 4);
        let close = |value: &f32| (value - (at as f32 - change)).abs() <= change * 1e-3;
        assert!(found.iter().all(close), "{at}: {found:?}, {change}");
    }
    println!("rank {rank}: {:?} for a step of 1,000 variables", began.elapsed() / steps as u32);
}

/// One process gives another shape, or another dtype.
#[test]
#[ignore = "mpirun starts it"]
fn other_shape() {
    let strategy = strategy();
    let shape: &[usize] = if strategy.rank() == 1 { &[2, 3] } else { &[3, 2] };
    let own = PerReplica::new(vec![Tensor::ones(shape).unwrap()]);
    let error = strategy.reduce(ReduceOp::Sum, &own, None).unwrap_err();
    println!("rank {}: {error}", strategy.rank());
}

/// Replicas of all processes assign variables together.
#[test]
#[ignore = "mpirun starts it"]
fn aggregates() {
    let strategy = strategy();
    let (rank, count) = (strategy.rank() as f32, strategy.num_workers() as f32);
    let ranks = (0..count as usize).sum::<usize>() as f32;
    for (aggregation, expected) in [
        (VariableAggregation::Sum, 5.0 + ranks + 2.0 * count),
        (VariableAggregation::Mean, 5.0 + ranks / count + 2.0),
        (VariableAggregation::OnlyFirstReplica, 5.0 + 2.0),
    ] {
        let options = VariableOptions::new().trainable(false).aggregation(aggregation);
        let start = tf::constant([5.0f32]).unwrap();
        let v = strategy.scope(|| Variable::with_options(&start, options)).unwrap();
        strategy.run(|()| v.assign_add(tf::constant([rank + 2.0])?), ()).unwrap();
        let found = v.read().to_vec::<f32>().unwrap()[0];
        assert!((found - expected).abs() < 1e-5, "{aggregation:?}: {found} {expected}");
    }
}
