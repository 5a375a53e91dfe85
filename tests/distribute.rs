//! `tf.distribute` on virtual devices of one adapter. They belong to the process, so this is a program of its own.
#![allow(clippy::unwrap_used)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use tf::config::{self, LogicalDeviceConfiguration};
use tf::distribute::{
    CentralStorageStrategy, MirroredStrategy, OneDeviceStrategy, PerReplica, ReduceOp, Strategy,
    get_replica_context, has_strategy, in_cross_replica_context,
};
use tf::keras::layers::{BatchNormalization, Conv2D, Dense, Dropout, Flatten, MaxPooling2D};
use tf::keras::optimizers::{Adam, LossScaleOptimizer, Optimizer, RmsProp, Sgd};
use tf::keras::{
    Activation, CompileOptions, EvaluateOptions, FitOptions, INFERENCE, Layer, Model,
    PredictOptions, Sequential, TRAINING,
};
use tf::{
    Tensor, Trackable, Variable, VariableAggregation, VariableOptions, VariableSynchronization,
};
use wgrad as tf;

/// The names of four virtual devices of the first adapter.
fn names() -> Vec<String> {
    static DIVIDED: Once = Once::new();
    let first = &config::list_physical_devices(None).unwrap()[0];
    DIVIDED.call_once(|| {
        let parts = vec![LogicalDeviceConfiguration::new(); 4];
        config::set_logical_device_configuration(first, &parts).unwrap();
    });
    (0..4).map(|i| format!("{}:{i}", first.device_type())).collect()
}

/// The tests share the devices, their counters and the global generator, so they run one after another.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    names();
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn mirrored(replicas: usize) -> MirroredStrategy {
    MirroredStrategy::of(&names()[..replicas]).unwrap()
}

fn vec(x: &Tensor) -> Vec<f32> {
    x.to_vec::<f32>().unwrap()
}

/// Numbers without a pattern that a small network could miss, from -0.5 to 0.5.
fn numbers(shape: &[usize], seed: usize) -> Tensor {
    let n = shape.iter().product::<usize>();
    let values: Vec<f32> =
        (0..n).map(|i| ((i * 7919 + seed * 104_729) % 1009) as f32 / 1009.0 - 0.5).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

/// Sets equal weights in each run.
fn set_weights(model: &dyn Trackable) {
    for (i, variable) in model.variables().iter().enumerate() {
        // Moving variances must be positive.
        let value = numbers(variable.shape(), i).multiply(0.4).unwrap();
        variable.assign(if variable.trainable() { value } else { variable.read() }).unwrap();
    }
}

/// The losses of training steps by hand, with a batch of 24 examples.
fn train(
    strategy: &Strategy,
    model: &Sequential,
    optimizer: &dyn Optimizer,
    x: &Tensor,
    steps: usize,
) -> tf::Result<Vec<f32>> {
    let rows = x.shape()[0];
    let y: Vec<i32> = (0..rows as i32).map(|i| (i * i + i / 3) % 3).collect();
    let y = Tensor::from_slice(&y, [rows])?;
    let (x, y) = (strategy.split(x)?, strategy.split(&y)?);
    let mut losses = Vec::new();
    for _ in 0..steps {
        let parts = strategy.run(
            |(x, y): (Tensor, Tensor)| {
                let tape = tf::GradientTape::new();
                let logits = model.call(&x, TRAINING)?;
                let loss = tf::sparse_softmax_cross_entropy_with_logits(&y, &logits)?;
                let loss = loss.reduce_sum(())?.divide(rows as f32)?;
                optimizer.minimize(&loss, tape, model)?;
                Ok(loss)
            },
            (&x, &y),
        )?;
        losses.push(strategy.reduce(ReduceOp::Sum, &parts, None)?.item::<f32>()?);
    }
    Ok(losses)
}

fn assert_close(a: &[f32], b: &[f32], within: f32, what: &str) {
    assert_eq!(a.len(), b.len());
    for (step, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() <= within, "{what}, step {step}: {a} and {b}");
    }
}

fn mlp() -> Sequential {
    Sequential::new().add(Dense::new(16).activation(Activation::Relu)).add(Dense::new(3))
}

fn cnn() -> Sequential {
    Sequential::new()
        .add(Conv2D::new(4, [3, 3]).activation(Activation::Relu))
        .add(MaxPooling2D::new([2, 2]))
        .add(Flatten::new())
        .add(Dense::new(3))
}

#[test]
fn replicas_train_as_one_device_with_the_whole_batch() -> tf::Result<()> {
    let _turn = turn();
    type Make = fn() -> (Sequential, Box<dyn Optimizer>, Tensor);
    let models: [(&str, Make); 2] = [
        ("MLP", || (mlp(), Box::new(Adam::new(0.01)), numbers(&[24, 8], 3))),
        ("CNN", || (cnn(), Box::new(Sgd::new(0.1).momentum(0.9)), numbers(&[24, 8, 8, 1], 4))),
    ];
    for (name, make) in models {
        let mut all = Vec::new();
        for replicas in [1, 2, 4] {
            let strategy = mirrored(replicas);
            let losses = strategy.scope(|| {
                let (model, optimizer, x) = make();
                model.build(x.shape())?;
                set_weights(&model);
                train(&strategy, &model, &*optimizer, &x, 50)
            })?;
            assert!(losses[49] < 0.9 * losses[0], "{name} does not learn: {losses:?}");
            all.push(losses);
        }
        assert_close(&all[0], &all[1], 1e-5, name);
        assert_close(&all[0], &all[2], 1e-5, name);
    }
    Ok(())
}

#[test]
fn replicas_may_be_on_devices_that_share_nothing() -> tf::Result<()> {
    let _turn = turn();
    let strategy = MirroredStrategy::on(vec![tf::Device::new()?, tf::Device::new()?])?;
    let mut all = Vec::new();
    for strategy in [&mirrored(1), &strategy] {
        all.push(strategy.scope(|| {
            let (model, adam, x) = (mlp(), Adam::new(0.01), numbers(&[24, 8], 3));
            model.build(x.shape())?;
            set_weights(&model);
            train(strategy, &model, &adam, &x, 20)
        })?);
    }
    assert_close(&all[0], &all[1], 1e-5, "two devices");
    // One of them is lost: the step ends with its error, in both replicas.
    let (model, sgd) = strategy.scope(|| (mlp(), Sgd::new(0.1)));
    let x = numbers(&[24, 8], 3);
    train(&strategy, &model, &sgd, &x, 2)?;
    strategy.devices()[1].destroy();
    let error = train(&strategy, &model, &sgd, &x, 2).unwrap_err();
    assert!(error.is_device_lost(), "{error}");
    Ok(())
}

#[test]
fn every_option_of_optimizers_works_in_replicas() -> tf::Result<()> {
    let _turn = turn();
    type Make = fn() -> Box<dyn Optimizer>;
    let optimizers: [(&str, Make); 7] = [
        ("rmsprop", || Box::new(RmsProp::new(0.01))),
        ("clipped", || Box::new(Sgd::new(0.5).global_clipnorm(0.1))),
        ("averaged", || Box::new(Sgd::new(0.1).use_ema(true).ema_overwrite_frequency(3))),
        ("decayed", || Box::new(Adam::new(0.01).weight_decay(0.1))),
        ("accumulating", || Box::new(Adam::new(0.01).gradient_accumulation_steps(2))),
        ("scaled", || Box::new(LossScaleOptimizer::new(Sgd::new(0.1)))),
        ("scheduled", || {
            Box::new(Sgd::new(tf::keras::optimizers::schedules::ExponentialDecay::new(0.5, 2, 0.5)))
        }),
    ];
    for (name, optimizer) in optimizers {
        let mut all = Vec::new();
        for replicas in [1, 3] {
            let strategy = mirrored(replicas);
            let result = strategy.scope(|| {
                let (model, optimizer, x) = (mlp(), optimizer(), numbers(&[24, 8], 5));
                model.build(x.shape())?;
                set_weights(&model);
                let losses = train(&strategy, &model, &*optimizer, &x, 8)?;
                let iterations = if name == "accumulating" { 4 } else { 8 };
                assert_eq!(optimizer.iterations(), iterations, "{name}");
                Ok::<_, tf::Error>(losses)
            })?;
            all.push(result);
        }
        assert_close(&all[0], &all[1], 1e-5, name);
        assert!(all[0][0] != all[0][7], "{name} changes nothing");
    }
    Ok(())
}

#[test]
fn models_are_built_in_the_replicas_too() -> tf::Result<()> {
    let _turn = turn();
    // Without `build`, the replica that calls a layer first makes its variables, for all.
    let strategy = mirrored(2);
    tf::random::set_seed(3);
    let (model, sgd) = strategy.scope(|| (mlp(), Sgd::new(0.1)));
    let losses = train(&strategy, &model, &sgd, &numbers(&[24, 8], 1), 10)?;
    assert!(losses[9] < losses[0], "{losses:?}");
    for variable in model.variables() {
        let values = strategy.run(|()| Ok(vec(&variable.read())), ())?;
        assert_eq!(values.values()[0], values.values()[1]);
    }
    Ok(())
}

#[test]
fn variables_have_a_value_in_each_replica() -> tf::Result<()> {
    let _turn = turn();
    let strategy = mirrored(2);
    let (weight, mean, count) = strategy.scope(|| -> tf::Result<_> {
        assert!(has_strategy() && in_cross_replica_context());
        let mean = Variable::untrainable(tf::constant([1.0, 2.0])?);
        let count = Variable::untrainable(tf::constant(7)?);
        Ok((Variable::new(tf::constant([1.0, 2.0])?), mean, count))
    })?;
    let devices = strategy.run(|()| Ok(weight.read().device().clone()), ())?;
    assert_eq!(devices.values(), strategy.devices());
    // Outside, a new value is for all.
    weight.assign(&tf::constant([3.0, 4.0])?)?;
    weight.assign_add(1.0)?;
    let values = strategy.run(|()| Ok(vec(&weight.read())), ())?;
    assert_eq!(values.values(), [[4.0, 5.0], [4.0, 5.0]]);
    // Inside, only an optimizer changes what is trained.
    let error = strategy.run(|()| weight.assign_add(1.0), ()).unwrap_err().to_string();
    assert!(error.contains("a replica cannot assign a trainable variable"), "{error}");
    // Each replica has its own moving average; outside it is the mean of all.
    strategy.run(
        |()| {
            let context = get_replica_context().unwrap();
            assert!(!in_cross_replica_context() && context.num_replicas_in_sync() == 2);
            let own = context.replica_id_in_sync_group() as f32;
            mean.assign(&tf::constant([own, 10.0 * own + 2.0])?)?;
            mean.assign_add(1.0)
        },
        (),
    )?;
    assert_eq!(vec(&mean.read()), [1.5, 8.0]);
    let own = strategy.run(|()| Ok(vec(&mean.read())), ())?;
    assert_eq!(own.values(), [[1.0, 3.0], [2.0, 13.0]]);
    mean.assign(mean.read())?;
    assert_eq!(strategy.run(|()| Ok(vec(&mean.read())), ())?.values(), [[1.5, 8.0], [1.5, 8.0]]);
    assert_eq!(count.read().item::<i32>()?, 7);
    assert!(get_replica_context().is_none() && !has_strategy());
    Ok(())
}

#[test]
fn moving_averages_are_those_of_all_parts() -> tf::Result<()> {
    let _turn = turn();
    let strategy = mirrored(2);
    let layer = strategy.scope(BatchNormalization::new);
    let x = numbers(&[8, 3], 9);
    let parts = strategy.split(&x)?;
    strategy.run(|x: Tensor| layer.call(&x, TRAINING).map(drop), &parts)?;
    // Each replica moves by the mean of its half: together by the mean of the whole batch.
    let moved = layer.variables().into_iter().find(|variable| !variable.trainable()).unwrap();
    let expected = x.reduce_mean(0)?.multiply(0.01)?;
    assert_close(&vec(&moved.read()), &vec(&expected), 1e-6, "moving mean");
    assert_eq!(layer.call(&x, INFERENCE)?.shape(), [8, 3]);
    Ok(())
}

#[test]
fn values_are_reduced_and_gathered() -> tf::Result<()> {
    let _turn = turn();
    let strategy = mirrored(3);
    let values = strategy.distribute_values_from_function(|i| tf::fill([i + 1, 2], i as f32))?;
    assert_eq!(strategy.reduce(ReduceOp::Sum, &values, Some(0)).map(|x| vec(&x))?, [8.0, 8.0]);
    // Of six rows, as in TensorFlow, not of three replicas.
    assert_eq!(strategy.reduce(ReduceOp::Mean, &values, Some(0)).map(|x| vec(&x))?, [8.0 / 6.0; 2]);
    assert_eq!(strategy.gather(&values, 0)?.shape(), [6, 2]);
    let numbers = strategy.run(
        |()| {
            let context = get_replica_context().unwrap();
            let own = tf::constant(context.replica_id_in_sync_group() as f32 + 1.0)?;
            let sum = context.all_reduce(ReduceOp::Sum, &own)?.item::<f32>()?;
            let mean = context.all_reduce(ReduceOp::Mean, &own)?.item::<f32>()?;
            let all = context.all_gather(&own.reshape([1])?, 0)?;
            assert_eq!(all.device(), own.device());
            Ok((sum, mean, vec(&all)))
        },
        (),
    )?;
    assert_eq!(numbers.values(), vec![(6.0, 2.0, vec![1.0, 2.0, 3.0]); 3]);
    let parts = strategy.split(&tf::range(0, 7, 1)?)?;
    let sizes: Vec<usize> = parts.values().iter().map(|part| part.shape()[0]).collect();
    assert_eq!(sizes, [3, 2, 2]);
    assert_eq!(strategy.gather(&parts, 0)?.to_vec::<i32>()?, [0, 1, 2, 3, 4, 5, 6]);
    Ok(())
}

#[test]
fn random_numbers_do_not_depend_on_which_replica_is_first() -> tf::Result<()> {
    let _turn = turn();
    let strategy = mirrored(2);
    let run = |late: usize| -> tf::Result<Vec<Vec<f32>>> {
        tf::random::set_seed(11);
        let dropout = strategy.scope(|| Dropout::new(0.5));
        let mut drawn = Vec::new();
        for _ in 0..3 {
            let values = strategy.run(
                |()| {
                    let own = get_replica_context().unwrap().replica_id_in_sync_group();
                    if own == late {
                        std::thread::sleep(Duration::from_millis(30));
                    }
                    let noise = tf::random::normal([4])?;
                    Ok([vec(&noise), vec(&dropout.call(&Tensor::ones([16])?, TRAINING)?)].concat())
                },
                (),
            )?;
            drawn.extend(values.into_values());
        }
        drawn.push(vec(&tf::random::normal([4])?));
        Ok(drawn)
    };
    let (first, second) = (run(0)?, run(1)?);
    assert_eq!(first, second);
    for (i, a) in first.iter().enumerate() {
        assert!(first[..i].iter().all(|b| a[..4] != b[..4]), "numbers occur twice");
    }
    // One replica draws what a program without a strategy draws.
    tf::random::set_seed(11);
    let alone = vec(&tf::random::normal([4])?);
    tf::random::set_seed(11);
    let one = mirrored(1).run(|()| Ok(vec(&tf::random::normal([4])?)), ())?;
    assert_eq!(one.values(), [alone]);
    Ok(())
}

#[test]
fn checkpoints_carry_over_between_numbers_of_replicas() -> tf::Result<()> {
    let _turn = turn();
    let folder = std::env::temp_dir().join(format!("wgrad-distribute-{}", std::process::id()));
    let x = numbers(&[24, 8], 6);
    let make = |strategy: &Strategy| -> tf::Result<(Sequential, Adam)> {
        strategy.scope(|| {
            let (model, adam) = (mlp(), Adam::new(0.01));
            model.build(x.shape())?;
            adam.build(&model)?;
            Ok((model, adam))
        })
    };
    let four = mirrored(4);
    let (model, adam) = make(&four)?;
    set_weights(&model);
    train(&four, &model, &adam, &x, 5)?;
    let path = tf::train::Checkpoint::new()
        .with("model", &model)
        .with("optimizer", &adam)
        .save(folder.join("ckpt"))?;
    let expected = train(&four, &model, &adam, &x, 5)?;
    for replicas in [1, 2, 3, 4] {
        let strategy = mirrored(replicas);
        let (model, adam) = make(&strategy)?;
        tf::train::Checkpoint::new()
            .with("model", &model)
            .with("optimizer", &adam)
            .restore(&path)?
            .assert_consumed()?;
        assert_eq!(adam.iterations(), 5);
        let losses = train(&strategy, &model, &adam, &x, 5)?;
        assert_close(&expected, &losses, 1e-5, &format!("{replicas} replicas"));
    }
    std::fs::remove_dir_all(folder).unwrap();
    Ok(())
}

#[test]
fn a_replica_that_fails_ends_the_others() -> tf::Result<()> {
    let _turn = turn();
    let strategy = mirrored(3);
    let own = || get_replica_context().unwrap().replica_id_in_sync_group();
    let reduce = || get_replica_context().unwrap().all_reduce(ReduceOp::Sum, &tf::constant(1.0)?);
    for failing in 0..3 {
        // It ends with an error, which is that of the run.
        let error = strategy
            .run(
                |()| {
                    if own() == failing {
                        tf::constant([1.0])?.matmul(tf::constant([1.0])?)
                    } else {
                        reduce()
                    }
                },
                (),
            )
            .unwrap_err();
        assert!(error.to_string().starts_with("MatMul"), "{failing}: {error}");
        // It ends without making the call.
        let error = strategy
            .run(|()| if own() == failing { tf::constant(1.0) } else { reduce() }, ())
            .unwrap_err()
            .to_string();
        let words =
            format!("all_reduce: replica {failing} (/job:localhost/replica:0/task:0/device:");
        assert!(
            error.starts_with(&words) && error.contains("ended without making this call"),
            "{error}"
        );
        // It makes another call.
        let error = strategy
            .run(
                |()| match own() == failing {
                    true => get_replica_context().unwrap().all_gather(&tf::constant([1.0])?, 0),
                    false => reduce(),
                },
                (),
            )
            .unwrap_err()
            .to_string();
        assert!(error.contains("have to make the same calls in the same order"), "{error}");
        // It gives another shape.
        let error = strategy
            .run(
                |()| {
                    let x =
                        if own() == failing { tf::constant([1.0])? } else { tf::constant(1.0)? };
                    get_replica_context().unwrap().all_reduce(ReduceOp::Sum, &x)
                },
                (),
            )
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("all_reduce: tensor 0 of replica 0 is "), "{error}");
        // It panics.
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            strategy.run(|()| if own() == failing { panic!("on purpose") } else { reduce() }, ())
        }));
        assert_eq!(panicked.unwrap_err().downcast_ref::<&str>(), Some(&"on purpose"));
    }
    // The strategy works on.
    assert_eq!(strategy.run(|()| reduce()?.item::<f32>(), ())?.values(), [3.0; 3]);
    Ok(())
}

#[test]
fn a_failed_step_changes_no_replica() -> tf::Result<()> {
    let _turn = turn();
    let strategy = mirrored(2);
    let (model, sgd) = strategy.scope(|| (mlp(), Sgd::new(0.1).momentum(0.9)));
    let x = numbers(&[24, 8], 6);
    train(&strategy, &model, &sgd, &x, 2)?;
    let weights = |()| Ok(model.variables().iter().map(|v| vec(&v.read())).collect::<Vec<_>>());
    let before = strategy.run(weights, ())?;
    // Replica 1 has no memory for the new values of its variables.
    let second = &strategy.devices()[1];
    let parts = strategy.split(&x)?;
    let failed = strategy.run(
        |x: Tensor| {
            let tape = tf::GradientTape::new();
            let loss = model.call(&x, TRAINING)?.square()?.reduce_sum(())?;
            let gradients = tape.gradient(&loss, &model.trainable_variables())?;
            x.device().synchronize()?;
            if x.device() == second {
                second.trim()?;
                second.set_memory_limit(Some(second.memory_info().current))?;
            }
            sgd.apply_gradients(&gradients, &model)
        },
        &parts,
    );
    let error = failed.unwrap_err();
    assert!(error.is_out_of_memory(), "{error}");
    second.set_memory_limit(None)?;
    assert_eq!(sgd.iterations(), 2);
    assert_eq!(strategy.run(weights, ())?, before);
    train(&strategy, &model, &sgd, &x, 2)?;
    assert_eq!(sgd.iterations(), 4);
    Ok(())
}

#[test]
fn wrong_uses_are_errors() -> tf::Result<()> {
    let _turn = turn();
    let names = names();
    let error = |result: tf::Result<()>| result.unwrap_err().to_string();
    let twice = MirroredStrategy::of(&[&names[0], &names[0]]).map(drop);
    assert!(error(twice).contains("occurs twice"));
    let none: [&str; 0] = [];
    assert!(error(MirroredStrategy::of(&none).map(drop)).contains("no device in the list"));
    let absent = MirroredStrategy::of(&["GPU:99"]).map(drop);
    assert!(error(absent).contains("there is no /job:localhost/replica:0/task:0/device:GPU:99"));

    let strategy = mirrored(3);
    let few = strategy.split(&tf::constant([1.0, 2.0])?).map(drop);
    assert!(error(few).contains("cannot be split among 3 replicas"));
    assert!(error(strategy.split(&tf::constant(1.0)?).map(drop)).contains("shape []"));
    let other = mirrored(2).split(&tf::constant([1.0, 2.0])?)?;
    let parts = strategy.run(|_: Tensor| Ok(()), &other).map(drop);
    assert!(error(parts).contains("an argument has 2 parts, and the strategy 3 replicas"));
    assert!(
        error(strategy.reduce(ReduceOp::Sum, &other, None).map(drop))
            .contains("there are 2 values")
    );
    let nested = strategy.run(|()| strategy.run(|()| Ok(()), ()).map(drop), ()).map(drop);
    assert!(error(nested).contains("this is called in a replica"));
    let traced = strategy.clone();
    let function = tf::function(move |x: Tensor| traced.run(|()| Ok(()), ()).map(|_| x));
    assert!(
        error(function(tf::constant(1.0)?).map(drop))
            .contains("a function cannot be traced on several devices")
    );

    // Made outside of the scope, or with another strategy.
    for weight in [
        Variable::new(tf::constant(1.0)?),
        mirrored(2).scope(|| Variable::new(tf::constant(1.0).unwrap())),
    ] {
        let sgd = Sgd::new(0.1);
        let step = strategy.run(|()| sgd.apply_gradients(&[Some(tf::constant(1.0)?)], &weight), ());
        assert!(error(step.map(drop)).contains("was not made with this strategy"));
    }
    // Gradients of one replica only.
    let weight = strategy.scope(|| Variable::new(tf::constant(1.0).unwrap()));
    let other = strategy.scope(|| Variable::new(tf::constant(1.0).unwrap()));
    let sgd = Sgd::new(0.1);
    let step = strategy.run(
        |()| {
            let first = get_replica_context().unwrap().replica_id_in_sync_group() == 0;
            let gradient = if first { None } else { Some(tf::constant(1.0)?) };
            sgd.apply_gradients(
                &[gradient, Some(tf::constant(1.0)?)],
                &[weight.clone(), other.clone()][..].to_vec(),
            )
        },
        (),
    );
    let text = error(step.map(drop));
    assert!(text.contains("tensor 0 of replica 0 is none, and that of replica 1 is"), "{text}");
    Ok(())
}

#[test]
fn functions_run_in_replicas() -> tf::Result<()> {
    let _turn = turn();
    let strategy = mirrored(2);
    let weight = strategy.scope(|| Variable::new(tf::constant([2.0, 3.0]).unwrap()));
    let read = weight.clone();
    let calls = std::sync::Arc::new(AtomicUsize::new(0));
    let traced = calls.clone();
    let function = tf::function(move |x: Tensor| {
        traced.fetch_add(1, Ordering::Relaxed);
        x.multiply(read.read())?.reduce_sum(())
    });
    let parts = PerReplica::clone(&strategy.split(&tf::constant([[1.0, 1.0], [10.0, 10.0]])?)?);
    for _ in 0..3 {
        let sums = strategy.run(|x: Tensor| function(x)?.item::<f32>(), &parts)?;
        assert_eq!(sums.values(), [5.0, 50.0]);
    }
    Ok(())
}

#[test]
fn functions_assign_the_values_of_all_replicas() -> tf::Result<()> {
    let _turn = turn();
    let strategy = mirrored(2);
    let weight = strategy.scope(|| Variable::new(tf::constant([2.0, 3.0]).unwrap()));
    let assigned = weight.clone();
    let double = tf::function(move |x: Tensor| {
        assigned.assign(&assigned.read().multiply(&x)?)?;
        Ok(x)
    });
    for _ in 0..3 {
        double(strategy.scope(|| tf::constant(2.0))?)?;
    }
    let values = strategy.run(|()| Ok(vec(&weight.read())), ())?;
    assert_eq!(values.values(), [[16.0, 24.0], [16.0, 24.0]]);
    let inside = strategy.run(|()| double(tf::constant(2.0)?).map(drop), ());
    let error = inside.unwrap_err().to_string();
    assert!(error.contains("a replica cannot assign a trainable variable"), "{error}");
    Ok(())
}

#[test]
fn one_device_is_a_strategy() -> tf::Result<()> {
    let _turn = turn();
    let names = names();
    let strategy = OneDeviceStrategy::new(&names[2])?;
    assert_eq!(strategy.num_replicas_in_sync(), 1);
    let (model, sgd) = strategy.scope(|| (mlp(), Sgd::new(0.1)));
    let losses = train(&strategy, &model, &sgd, &numbers(&[24, 8], 1), 5)?;
    assert!(losses[4] < losses[0]);
    assert_eq!(model.variables()[0].read().device(), &tf::device(&names[2])?);
    Ok(())
}

#[test]
fn long_trainings_grow_nothing() -> tf::Result<()> {
    let _turn = turn();
    let strategy = mirrored(2);
    let (model, sgd) = strategy.scope(|| (mlp(), Sgd::new(0.01)));
    let x = numbers(&[24, 8], 1);
    train(&strategy, &model, &sgd, &x, 20)?;
    let stats = || strategy.devices().iter().map(tf::Device::stats).collect::<Vec<_>>();
    let before = stats();
    train(&strategy, &model, &sgd, &x, 300)?;
    for (before, after) in before.iter().zip(stats()) {
        assert_eq!(before.pipelines, after.pipelines);
        assert_eq!(before.plan_misses, after.plan_misses);
        assert!(after.live_bytes <= before.live_bytes + 4096, "{before:?} {after:?}");
    }
    Ok(())
}

/// The losses of `fit`, and the results of `evaluate` and `predict` after it.
fn fit(
    strategy: &Strategy,
    model: fn() -> Sequential,
    optimizer: &'static str,
    rows: usize,
    batch: usize,
) -> tf::Result<(Vec<f32>, Vec<f32>, Vec<f32>)> {
    let f32s = |values: &[f64]| values.iter().map(|value| *value as f32).collect::<Vec<_>>();
    strategy.scope(|| {
        tf::random::set_seed(7);
        let model = model();
        let x = numbers(&[rows, 8, 8, 1], 2);
        model.build([rows, 8, 8, 1])?;
        set_weights(&model);
        let y: Vec<i32> = (0..rows as i32).map(|i| (i * i + i / 3) % 3).collect();
        let y = Tensor::from_slice(&y, [rows])?;
        let options = CompileOptions::new().metrics(["accuracy"]);
        model.compile(
            optimizer,
            tf::keras::losses::SparseCategoricalCrossentropy::new().from_logits(true),
            options,
        )?;
        let options = FitOptions::new().epochs(3).batch_size(batch).shuffle(false).verbose(0);
        let history = model.fit((&x, &y), options)?;
        let mut logs = f32s(history.get("loss").unwrap());
        logs.extend(f32s(history.get("accuracy").unwrap()));
        let evaluated =
            model.evaluate((&x, &y), EvaluateOptions::new().batch_size(batch).verbose(0))?;
        let evaluated = f32s(&[evaluated.get("loss").unwrap(), evaluated.get("accuracy").unwrap()]);
        let predicted = model.predict(&x, PredictOptions::new().batch_size(batch).verbose(0))?;
        assert_eq!(predicted.shape(), [rows, 3]);
        Ok((logs, evaluated, vec(&predicted)))
    })
}

#[test]
fn fit_evaluate_and_predict_are_as_on_one_device() -> tf::Result<()> {
    let _turn = turn();
    let flat = || {
        Sequential::new()
            .add(Flatten::new())
            .add(Dense::new(16).activation(Activation::Relu))
            .add(Dense::new(3))
    };
    for (model, optimizer) in [(flat as fn() -> Sequential, "adam"), (cnn, "sgd")] {
        // Whole batches; a last one that splits unevenly; a last one with fewer examples than replicas.
        for (rows, batch) in [(48, 24), (46, 24), (25, 24)] {
            let one = fit(&mirrored(1), model, optimizer, rows, batch)?;
            for replicas in [2, 4] {
                let several = fit(&mirrored(replicas), model, optimizer, rows, batch)?;
                let what = format!("{optimizer}, {rows} rows, {replicas} replicas");
                assert_close(&one.0, &several.0, 2e-5, &format!("{what}: fit"));
                assert_close(&one.1, &several.1, 2e-5, &format!("{what}: evaluate"));
                assert_close(&one.2, &several.2, 1e-4, &format!("{what}: predict"));
            }
        }
    }
    Ok(())
}

#[test]
fn fit_makes_what_is_missing_in_the_scope_of_the_model() -> tf::Result<()> {
    let _turn = turn();
    let strategy = mirrored(2);
    // Only the model is made in the scope; it has no weights yet.
    let model = strategy.scope(mlp);
    let options = CompileOptions::new().metrics(["mae"]);
    model.compile(Adam::new(0.01), "mse", options)?;
    let (x, y) = (numbers(&[24, 8], 1), numbers(&[24, 3], 2));
    let before = strategy.devices()[1].stats().kernels;
    let history = model.fit((&x, &y), FitOptions::new().epochs(4).batch_size(12).verbose(0))?;
    let losses = history.get("loss").unwrap();
    assert!(losses[3] < losses[0], "{losses:?}");
    assert!(strategy.devices()[1].stats().kernels > before);
    let logs = model.evaluate((&x, &y), EvaluateOptions::new().verbose(0))?;
    let error = model.predict(&x, PredictOptions::new().verbose(0))?.subtract(&y)?;
    let mae = f64::from(error.abs()?.reduce_mean(())?.item::<f32>()?);
    assert!((logs.get("mae").unwrap() - mae).abs() < 1e-5);
    model.train_on_batch((&x, &y))?;
    for variable in model.variables() {
        let values = strategy.run(|()| Ok(vec(&variable.read())), ())?;
        assert_eq!(values.values()[0], values.values()[1]);
    }
    Ok(())
}

#[test]
fn a_model_built_outside_of_the_scope_is_an_error() -> tf::Result<()> {
    let _turn = turn();
    let model = mirrored(2).scope(mlp);
    model.build([24, 8])?;
    model.compile("sgd", "mse", CompileOptions::new())?;
    let (x, y) = (numbers(&[24, 8], 1), Tensor::zeros([24, 3])?);
    let error = model.fit((&x, &y), FitOptions::new().verbose(0)).unwrap_err().to_string();
    assert!(error.contains("but its variable 'dense/kernel' was not"), "{error}");
    assert!(
        error.contains("Call build, or the model for the first time, in Strategy::scope"),
        "{error}"
    );
    Ok(())
}

#[test]
fn fit_adds_sums_and_penalties_once() -> tf::Result<()> {
    let _turn = turn();
    use tf::keras::losses::{MeanSquaredError, Reduction};
    let run = |replicas: usize| -> tf::Result<Vec<f64>> {
        let strategy = mirrored(replicas);
        strategy.scope(|| {
            let model = Sequential::new().add(
                Dense::new(2).kernel_regularizer(tf::keras::regularizers::Regularizer::l2(0.1)),
            );
            let (x, y) = (numbers(&[10, 3], 1), numbers(&[10, 2], 2));
            model.build([10, 3])?;
            set_weights(&model);
            let loss = MeanSquaredError::new().reduction(Reduction::Sum);
            model.compile(Sgd::new(0.01), loss, CompileOptions::new())?;
            let weights =
                Tensor::from_slice(&[1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 1.0, 0.0, 1.0, 1.0], [10])?;
            let options = FitOptions::new().epochs(4).batch_size(5).shuffle(false).verbose(0);
            let history = model.fit((&x, &y, &weights), options)?;
            Ok(history.get("loss").unwrap().to_vec())
        })
    };
    let (one, three) = (run(1)?, run(3)?);
    for (one, three) in one.iter().zip(&three) {
        assert!((one - three).abs() < 1e-5, "{one} and {three}");
    }
    Ok(())
}

#[test]
fn fit_moves_averages_and_drops_out_reproducibly() -> tf::Result<()> {
    let _turn = turn();
    let model = || {
        Sequential::new()
            .add(Flatten::new())
            .add(Dense::new(8))
            .add(BatchNormalization::new())
            .add(Dropout::new(0.3))
            .add(Dense::new(3))
    };
    let first = fit(&mirrored(3), model, "adam", 48, 24)?;
    assert_eq!(fit(&mirrored(3), model, "adam", 48, 24)?, first);
    assert!(first.0.iter().all(|loss| loss.is_finite()));
    Ok(())
}

/// With central storage, only the first device has weights and slots, and the losses are those of mirrored ones.
#[test]
fn central_storage_trains_as_mirrored_variables_do() {
    let _turn = turn();
    let x = numbers(&[24, 6], 3);
    let mut all = Vec::new();
    for central in [false, true] {
        let strategy: Strategy = match central {
            false => (*mirrored(3)).clone(),
            true => (*CentralStorageStrategy::of(&names()[..3]).unwrap()).clone(),
        };
        tf::random::set_seed(1);
        let model = strategy.scope(|| Sequential::new().add(Dense::new(5)).add(Dense::new(3)));
        strategy.scope(|| model.call(&x, INFERENCE).unwrap());
        set_weights(&model);
        let adam = strategy.scope(|| Adam::new(0.01));
        all.push(train(&strategy, &model, &adam, &x, 6).unwrap());
        let weight = &model.trainable_variables()[0];
        assert_eq!(weight.read().device(), &strategy.devices()[0]);
        let expected = vec(&weight.read());
        let read = strategy.run(|()| Ok(weight.read()), ()).unwrap();
        for (value, device) in read.values().iter().zip(strategy.devices()) {
            assert_eq!(value.device(), device);
            assert_eq!(vec(value), expected);
        }
        let error = strategy.run(|()| weight.assign(weight.read()), ()).unwrap_err();
        assert!(error.to_string().contains("cannot assign a trainable variable"), "{error}");
    }
    assert_eq!(all[0], all[1]);
    assert!(all[0][5] < all[0][0]);
}

#[test]
fn datasets_are_distributed() {
    let _turn = turn();
    let strategy = mirrored(3);
    // 7 elements: the first replica has one more.
    let dataset = tf::data::range(0..14).batch(7);
    let mut seen = Vec::new();
    for parts in &strategy.experimental_distribute_dataset(&dataset) {
        let values = parts.unwrap().into_values().into_iter();
        seen.push(values.map(|part| part.iter().copied().collect()).collect::<Vec<Vec<i64>>>());
    }
    assert_eq!(
        seen,
        [[vec![0i64, 1, 2], vec![3, 4], vec![5, 6]], [vec![7, 8, 9], vec![10, 11], vec![12, 13]],]
    );
    // A last batch that is too small ends the pass with an error.
    let mut iter = strategy.experimental_distribute_dataset(&tf::data::range(0..5).batch(3)).iter();
    assert!(iter.next().unwrap().is_ok());
    let error = iter.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("a batch of 2 examples cannot be split among 3 replicas"), "{error}");
    assert!(iter.next().is_none());

    let dataset = strategy.distribute_datasets_from_function(|context| {
        assert_eq!((context.num_input_pipelines, context.input_pipeline_id), (1, 0));
        Ok(tf::data::range(0..8).batch(context.get_per_replica_batch_size(6)?))
    });
    let mut iter = dataset.unwrap().iter();
    let parts = iter.next().unwrap().unwrap();
    let parts: Vec<Vec<i64>> =
        parts.values().iter().map(|part| part.iter().copied().collect()).collect();
    assert_eq!(parts, [vec![0, 1], vec![2, 3], vec![4, 5]]);
    let error = iter.next().unwrap().unwrap_err().to_string();
    assert!(error.contains("batches for 1 of 3 replicas"), "{error}");
    let empty = strategy
        .distribute_datasets_from_function(|_| Ok(tf::data::range(0..0).batch(2)))
        .unwrap_err()
        .to_string();
    assert!(empty.contains("too small for so many shards"), "{empty}");
    let odd = strategy.input_context().get_per_replica_batch_size(7).unwrap_err().to_string();
    assert!(odd.contains("cannot be split evenly among 3 replicas"), "{odd}");
}

/// What each replica has, and what the variable is outside of them, after a call in each of two replicas on [10, 20].
type Shared = ([[f32; 2]; 2], [f32; 2]);

/// The values are those of TensorFlow 2.21's `MirroredStrategy` on two devices, where replica `r` assigns [2 r + 1, r + 5].
#[test]
fn replicas_share_variables_as_in_tensorflow() -> tf::Result<()> {
    use VariableAggregation::{Mean, None, OnlyFirstReplica, Sum};
    use VariableSynchronization::{Auto, OnRead, OnWrite};
    let _turn = turn();
    let strategy = mirrored(2);
    let own: [Shared; 3] = [
        ([[1., 5.], [3., 6.]], [1., 5.]),
        ([[11., 25.], [13., 26.]], [11., 25.]),
        ([[9., 15.], [7., 14.]], [9., 15.]),
    ];
    let alike = |values: [[f32; 2]; 3]| values.map(|value| ([value; 2], value));
    let sum = alike([[4., 11.], [14., 31.], [6., 9.]]);
    let mean = alike([[2., 5.5], [12., 25.5], [8., 14.5]]);
    let first = alike([[1., 5.], [11., 25.], [9., 15.]]);
    let with = |outside: [[f32; 2]; 3]| {
        let mut own = own;
        own.iter_mut().zip(outside).for_each(|(own, outside)| own.1 = outside);
        own
    };
    let shares = [
        ([[1., 5.], [3., 6.]], [4., 11.]),
        ([[6., 15.], [8., 16.]], [14., 31.]),
        ([[4., 5.], [2., 4.]], [6., 9.]),
    ];
    let cases = [
        (OnWrite, None, own),
        (OnWrite, Sum, sum),
        (OnWrite, Mean, mean),
        (OnWrite, OnlyFirstReplica, first),
        (Auto, Sum, sum),
        (Auto, Mean, mean),
        (Auto, OnlyFirstReplica, first),
        (OnRead, Sum, shares),
        (OnRead, Mean, with([[2., 5.5], [12., 25.5], [8., 14.5]])),
        (OnRead, OnlyFirstReplica, own),
    ];
    for (synchronization, aggregation, expected) in cases {
        for trainable in [false, true] {
            let what = format!("{synchronization:?} {aggregation:?} {trainable}");
            let options = VariableOptions::new()
                .trainable(trainable)
                .synchronization(synchronization)
                .aggregation(aggregation);
            let start = tf::constant([10f32, 20.])?;
            let v = strategy.scope(|| Variable::with_options(&start, options))?;
            assert_eq!(vec(&v.read()), [10., 20.], "{what}");
            type Call = fn(&Variable, Tensor) -> tf::Result<()>;
            let calls: [Call; 3] =
                [|v, x| v.assign(x), |v, x| v.assign_add(x), |v, x| v.assign_sub(x)];
            for (call, (inside, outside)) in calls.into_iter().zip(expected) {
                v.assign(&start)?;
                let values = strategy.run(
                    |()| {
                        let r = get_replica_context().unwrap().replica_id_in_sync_group() as f32;
                        call(&v, tf::constant([2. * r + 1., r + 5.])?)?;
                        Ok(vec(&v.read()))
                    },
                    (),
                )?;
                assert_eq!(values.values(), inside, "{what}");
                assert_eq!(vec(&v.read()), outside, "{what}");
            }
            v.assign(tf::constant([1f32, 2.])?)?;
            assert_eq!(vec(&v.read()), [1., 2.], "{what}");
            let added = v.assign_add(tf::constant([10f32, 20.])?);
            if (synchronization, aggregation) == (OnRead, Sum) {
                let text = added.unwrap_err().to_string();
                assert!(
                    text.contains("outside of the replicas, this variable is the sum"),
                    "{text}"
                );
                let halves = strategy.run(|()| Ok(vec(&v.read())), ())?;
                assert_eq!(halves.values(), [[0.5, 1.], [0.5, 1.]]);
            } else {
                added?;
                assert_eq!(vec(&v.read()), [11., 22.], "{what}");
            }
        }
    }
    Ok(())
}

#[test]
fn aggregated_integers_and_errors() -> tf::Result<()> {
    use VariableAggregation::{Mean, Sum};
    use VariableSynchronization::OnRead;
    let _turn = turn();
    let strategy = mirrored(3);
    let options = VariableOptions::new().trainable(false);
    let make = |value: Tensor, options| strategy.scope(|| Variable::with_options(value, options));
    // Sums of integers are exact, on write and on read, and survive a checkpoint's way.
    let count = make(tf::constant(16_777_216)?, options.aggregation(Sum))?;
    let share = make(tf::constant(7)?, options.aggregation(Sum).synchronization(OnRead))?;
    strategy.run(|()| count.assign_add(1).and_then(|()| share.assign_add(5)), ())?;
    assert_eq!((count.read().item::<i32>()?, share.read().item::<i32>()?), (16_777_219, 22));
    share.assign(share.read())?;
    assert_eq!(share.read().item::<i32>()?, 22);

    let text = make(tf::constant(1)?, options.aggregation(Mean)).unwrap_err().to_string();
    assert!(text.contains("i32 values have no mean"), "{text}");
    let text = make(tf::constant([true])?, options.aggregation(Sum)).unwrap_err().to_string();
    assert!(text.contains("bool values have no sum"), "{text}");
    let text = make(tf::constant(1.)?, options.synchronization(OnRead)).unwrap_err().to_string();
    assert!(text.contains("without an aggregation"), "{text}");

    // A replica that does not make the call, one that assigns another variable, and a function.
    let (a, b) = (make(tf::constant(0.)?, options.aggregation(Sum))?, count);
    let c = make(tf::constant(1.)?, options.aggregation(Sum))?;
    let run = |step: &(dyn Fn(usize) -> tf::Result<()> + Sync)| {
        let step = |()| step(get_replica_context().unwrap().replica_id_in_sync_group());
        strategy.run(step, ()).unwrap_err().to_string()
    };
    let text = run(&|r| if r == 1 { Ok(()) } else { a.assign_add(1.) });
    assert!(text.contains("replica 1") && text.contains("without making this call"), "{text}");
    let text = run(&|r| if r == 2 { c.assign_add(1.) } else { a.assign_add(1.) });
    assert!(text.contains("different variables"), "{text}");
    let text = run(&|r| if r == 2 { b.assign_sub(1) } else { a.assign_add(1.) });
    assert!(text.contains("All replicas have to make the same calls"), "{text}");
    let own = a.clone();
    let traced = tf::function(move |x: Tensor| own.assign_add(&x).map(|()| x));
    let text = run(&|_| traced(tf::constant(1.)?).map(drop));
    assert!(text.contains("cannot be part of a function"), "{text}");
    let text = run(&|_| a.assign_add(tf::constant([1., 2.])?));
    assert!(text.contains("shape"), "{text}");
    assert_eq!(a.read().item::<f32>()?, 0.);
    assert_eq!((b.read().item::<i32>()?, c.read().item::<f32>()?), (16_777_219, 1.));

    // Without a strategy, the options change nothing.
    let alone = Variable::with_options(tf::constant(2.)?, options.aggregation(Sum))?;
    alone.assign_add(1.)?;
    assert_eq!((alone.read().item::<f32>()?, alone.trainable()), (3., false));

    // With central storage, too.
    let central = CentralStorageStrategy::of(&names()[..2])?;
    for trainable in [false, true] {
        let options = VariableOptions::new().trainable(trainable).aggregation(Mean);
        let v = central.scope(|| Variable::with_options(tf::constant(1.)?, options))?;
        let step = |()| {
            v.assign_add(get_replica_context().unwrap().replica_id_in_sync_group() as f32)?;
            v.read().item::<f32>()
        };
        assert_eq!(central.run(step, ())?.values(), [1.5, 1.5]);
        assert_eq!(v.read().item::<f32>()?, 1.5);
    }
    Ok(())
}
