//! A structure's first run may use small kernels if fused ones would take long to compile; a repeated structure is fused.

#[path = "../../benches/peers/src/alone/models.rs"]
mod models;

use wgrad as tf;
use wgrad::keras::layers::{BatchNormalization, Dense, LayerNormalization};
use wgrad::keras::losses::SparseCategoricalCrossentropy;
use wgrad::keras::optimizers::{Adam, Optimizer, RmsProp, Sgd};
use wgrad::keras::{Activation, INFERENCE, Layer, Loss, Sequential, TRAINING};
use wgrad::{DType, Device, GradientTape, Tensor, Trackable, Variable};

/// The limit on the number of pipelines for the first twelve models.
const BOUND_OF_TWELVE: u64 = 45;

fn device() -> Device {
    let device = Device::new().unwrap();
    device.set_fusion(true);
    device
}

/// Forty ops without any repetition, most of them expensive functions; `x` stays within -1 and 1.
fn tried_once(x: &Tensor) -> tf::Result<Tensor> {
    let mut y = x.clone();
    let mut state = 12345u32;
    for _ in 0..40 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        y = match state >> 29 {
            0 => y.sin()?,
            1 => y.tanh()?,
            2 => y.erf()?,
            3 => y.cos()?.multiply(0.5)?,
            4 => y.atan()?,
            5 => y.multiply(x)?,
            6 => y.add(x)?.multiply(0.5)?,
            _ => y.square()?,
        };
    }
    Ok(y)
}

#[test]
fn what_is_slow_to_compile_runs_by_single_ops_at_first() -> tf::Result<()> {
    let device = device();
    device.scope(|| {
        let x = tf::constant([0.9, -0.4, 0.1, 0.7, -0.8])?;
        let mut runs = Vec::new();
        for _ in 0..600 {
            let values = tried_once(&x)?.to_vec::<f32>()?;
            let stats = device.stats();
            let kernels = device.last_plan().unwrap().kernels().len();
            runs.push((values, kernels, stats.plan_misses, stats.pipelines));
        }
        let (first, last) = (&runs[0], &runs[599]);
        assert!(first.1 > 20, "at first each op has a kernel: {first:?}");
        assert!(last.1 < first.1 / 2, "then they share: {last:?}");
        // Forty launches of 60 us are lost in each run, and compiling takes some hundreds of milliseconds.
        let single = runs.iter().take_while(|run| run.1 == first.1).count();
        assert!((100..550).contains(&single), "single ops run {single} times");
        // It is planned twice, then cached, and nothing more is compiled.
        for (at, run) in runs.iter().enumerate() {
            let (kernels, plans, pipelines) = match at < single {
                true => (first.1, 1, first.3),
                false => (last.1, 2, last.3),
            };
            assert_eq!((run.1, run.2, run.3), (kernels, plans, pipelines), "run {at}");
            for (a, b) in run.0.iter().zip(&first.0) {
                assert!((a - b).abs() <= 1e-6, "run {at}: {:?} {:?}", run.0, first.0);
            }
        }
        Ok(())
    })
}

#[test]
fn small_programs_are_fused_at_once() -> tf::Result<()> {
    let device = device();
    device.scope(|| {
        let x = tf::constant([[0.5, -1.0, 2.0], [1.0, 0.0, -0.5]])?;
        // The single ops' kernels exist already, but there is still no gain from using them.
        device.set_fusion(false);
        x.softmax(-1)?.to_vec::<f32>()?;
        device.set_fusion(true);
        let y = x.softmax(-1)?.to_vec::<f32>()?;
        assert_eq!(device.last_plan().unwrap().kernels().len(), 1);
        assert!((y[..3].iter().sum::<f32>() - 1.0).abs() < 1e-6);
        Ok(())
    })
}

#[test]
fn a_first_run_takes_no_memory_that_fusion_saves() -> tf::Result<()> {
    let device = device();
    device.scope(|| {
        // The distances between 5,000 points are 100 MB, and are never stored.
        let n = 5000;
        let x = tf::range(0, n, 1)?.cast(tf::DType::F32)?.multiply(1.0 / n as f32)?;
        let x = tried_once(&x)?;
        device.flush()?;
        let sums = || -> tf::Result<Tensor> {
            let [rows, columns] = [x.expand_dims(1)?, x.expand_dims(0)?];
            let distances = rows.subtract(&columns)?;
            let near = distances.square()?.negative()?.exp()?.multiply(distances.cos()?)?;
            let far = near.add(distances.tanh()?.square()?)?.multiply(distances.erf()?.abs()?)?;
            far.sin()?.reduce_sum(1)
        };
        let sums = sums()?;
        sums.to_vec::<f32>()?;
        let plan = device.last_plan().unwrap();
        assert!(plan.buffer_bytes() < 64 << 20, "{plan}");
        Ok(())
    })
}

#[test]
fn who_tries_one_thing_after_another_compiles_little() -> tf::Result<()> {
    let device = device();
    device.scope(|| {
        // Sums of two functions with a new scale and order each time, of seven functions in total.
        let x = tf::constant([0.5, -0.25, 0.75])?;
        let apply = |x: &Tensor, k: usize| match k % 7 {
            0 => x.tanh(),
            1 => x.sin(),
            2 => x.erf(),
            3 => x.cos(),
            4 => x.exp(),
            5 => x.atan(),
            _ => x.square(),
        };
        let mut pipelines = Vec::new();
        for k in 0..40 {
            let y = apply(&x, k)?.add(apply(&apply(&x, k / 7 + 1)?, k / 7 + k)?)?;
            let value = y.to_vec::<f32>()?[0];
            let want = {
                let f = |x: f64, k: usize| match k % 7 {
                    0 => x.tanh(),
                    1 => x.sin(),
                    // erf(x) as a series.
                    2 => {
                        (0..40).rev().fold(0.0, |sum, n| {
                            let n = f64::from(n);
                            let term = (1..=n as i32).fold(x, |t, i| -t * x * x / f64::from(i));
                            sum + term / (2.0 * n + 1.0)
                        }) * std::f64::consts::FRAC_2_SQRT_PI
                    }
                    3 => x.cos(),
                    4 => x.exp(),
                    5 => x.atan(),
                    _ => x * x,
                };
                f(0.5, k) + f(f(0.5, k / 7 + 1), k / 7 + k)
            };
            assert!((f64::from(value) - want).abs() < 1e-5, "{k}: {value} and {want}");
            pipelines.push(device.stats().pipelines);
        }
        let (first, later) = (pipelines[9], pipelines[39] - pipelines[9]);
        assert!(first >= 9, "at first each structure has its own: {pipelines:?}");
        assert!(later <= 15, "then they use the same small kernels: {pipelines:?}");
        Ok(())
    })
}

/// Calls with new structures: subsequent structures are assumed to be new, too.
fn look_around() -> tf::Result<()> {
    for n in 2..14 {
        let x = Tensor::ones([n])?.add(1.0)?;
        assert_eq!(x.reduce_sum(())?.item::<f32>()?, 2.0 * n as f32);
    }
    Ok(())
}

/// A process that resumes another's training must round as that one would have, so its first step has the same kernels as all
/// others.
#[test]
fn a_training_step_is_fused_from_the_first_on() -> tf::Result<()> {
    let start = tf::constant([0.9, -0.4, 0.1, 0.7, -0.8])?.to_vec::<f32>()?;
    // In a manual loop, in a manual loop that reads the loss before the gradients, and with an optimizer.
    for way in 0..3 {
        let device = device();
        device.scope(|| {
            look_around()?;
            let w = Variable::new(&Tensor::from_slice(&start, [5])?);
            let optimizer = Sgd::new(0.01);
            let mut kernels = Vec::new();
            for _ in 0..4 {
                let before = device.stats().kernels;
                let tape = GradientTape::new();
                let loss = tried_once(&w.read())?.reduce_sum(())?;
                if way == 1 {
                    assert!(loss.item::<f32>()?.is_finite());
                }
                if way == 2 {
                    optimizer.minimize(&loss, tape, &w)?;
                } else {
                    w.assign_sub(tape.required_gradient(&loss, &w)? * 0.01)?;
                    device.flush()?;
                }
                kernels.push(device.stats().kernels - before);
            }
            assert_eq!(kernels, [kernels[3]; 4], "way {way}");
            assert!(kernels[0] < 40, "way {way}: {kernels:?}");
            Ok::<(), tf::Error>(())
        })?;
    }
    Ok(())
}

/// A classifier, its loss, and a batch.
fn small_network() -> tf::Result<(Sequential, SparseCategoricalCrossentropy, Tensor, Tensor)> {
    tf::random::set_seed(1);
    let model = Sequential::new()
        .add(Dense::new(12).activation(Activation::Relu))
        .add(Dense::new(7).activation(Activation::Tanh))
        .add(Dense::new(3));
    let loss = SparseCategoricalCrossentropy::new().from_logits(true);
    let x = tf::linspace(-1.0, 1.0, 40)?.reshape([8, 5])?;
    let y = tf::constant([0, 1, 2, 0, 1, 2, 0, 1])?;
    Ok((model, loss, x, y))
}

/// On a processor, a plan for a thousand runs is replaced by one with fewer kernels.
#[test]
fn what_has_run_a_thousand_times_is_planned_in_full() -> tf::Result<()> {
    let device = device();
    device.scope(|| {
        let (model, _, x, _) = small_network()?;
        let run = || -> tf::Result<(Vec<f32>, usize)> {
            let y = model.call(&x, INFERENCE)?;
            device.flush()?;
            Ok((y.to_vec::<f32>()?, device.last_plan().unwrap().kernels().len()))
        };
        run()?;
        let (few, first) = run()?;
        for _ in 0..1000 {
            run()?;
        }
        let settled = device.stats();
        let (many, later) = run()?;
        assert!(few.iter().zip(&many).all(|(a, b)| (a - b).abs() < 1e-6), "{few:?} {many:?}");
        assert!(if brief(&device) { later < first } else { later == first }, "{first}, {later}");
        assert_eq!(device.stats().pipelines, settled.pipelines, "it is planned once");
        Ok(())
    })
}

/// Whether first runs get special kernels.
fn brief(device: &Device) -> bool {
    let processor = device.adapter().kind == tf::AdapterKind::Cpu;
    processor && std::env::var_os("WGRAD_PORTABLE").is_none()
}

/// A driver may round differently if ops are in one kernel or in two. So the number of a step determines its kernels, not the
/// number of steps in this process.
#[test]
fn a_training_that_is_resumed_rounds_as_it_would_have_done() -> tf::Result<()> {
    // The weights after the last of `steps` steps that follow `made` earlier ones with `weights`, and the numbers of their
    // kernels.
    let train = |made: u64, weights: Option<&[ndarray::ArrayD<f32>]>, steps: usize| {
        let device = device();
        device.scope(|| -> tf::Result<(Vec<ndarray::ArrayD<f32>>, Vec<usize>)> {
            let model = Sequential::new()
                .add(Dense::new(40))
                .add(LayerNormalization::new())
                .add(Dense::new(16))
                .add(BatchNormalization::new())
                .add(Dense::new(3));
            let x = tf::linspace(-1.0, 1.0, 640)?.square()?.reshape([64, 10])?;
            let y = tf::range(0.0, 64.0, 1.0)?.floormod(3.0)?.cast(DType::I32)?;
            model.call(&x, TRAINING)?;
            if let Some(weights) = weights {
                model.set_weights(weights)?;
            }
            let loss = SparseCategoricalCrossentropy::new().from_logits(true);
            let optimizer = Sgd::new(0.01);
            optimizer.set_iterations(made);
            let mut kernels = Vec::new();
            for _ in 0..steps {
                let tape = GradientTape::new();
                let value = loss.call(&y, &model.call(&x, TRAINING)?)?;
                optimizer.minimize(&value, tape, &model)?;
                kernels.push(device.last_plan().unwrap().kernels().len());
            }
            Ok((model.get_weights()?, kernels))
        })
    };
    // Other tests draw initial weights at the same time, so these are the same for all.
    let (start, _) = train(985, None, 0)?;
    let (all, kernels) = train(985, Some(&start), 30)?;
    // The first steps also initialize weights.
    let changes: Vec<usize> = (3..30).filter(|&i| kernels[i] != kernels[i - 1]).collect();
    assert_eq!(changes, if brief(&device()) { &[15][..] } else { &[] }, "{kernels:?}");
    for before in [5, 20] {
        let (weights, _) = train(985, Some(&start), before)?;
        let (resumed, its) = train(985 + before as u64, Some(&weights), 30 - before)?;
        assert_eq!(its[3..], kernels[before + 3..], "after {before} steps");
        assert_eq!(resumed, all, "after {before} steps");
    }
    Ok(())
}

/// Compiling batches of many sizes in full would take longer than running them without.
#[test]
fn steps_of_many_structures_go_by_their_runs() -> tf::Result<()> {
    let device = device();
    device.scope(|| {
        let (model, loss, ..) = small_network()?;
        let optimizer = Sgd::new(0.01);
        optimizer.set_iterations(5000);
        let mut kernels = Vec::new();
        for batch in 1..=20 {
            let (x, y) = (Tensor::ones([batch, 5])?, Tensor::zeros([batch])?.cast(DType::I32)?);
            let tape = GradientTape::new();
            let value = loss.call(&y, &model.call(&x, TRAINING)?)?;
            optimizer.minimize(&value, tape, &model)?;
            kernels.push(device.last_plan().unwrap().kernels().len());
        }
        let fewer = kernels[3] < kernels[19];
        assert_eq!(fewer, brief(&device), "{kernels:?}");
        Ok(())
    })
}

/// The first step of a training has the same kernels as all others: weights and slots are created outside of it.
#[test]
fn a_cold_training_step_compiles_once() -> tf::Result<()> {
    let optimizers: [Box<dyn Optimizer>; 4] = [
        Box::new(Sgd::new(0.1)),
        Box::new(Sgd::new(0.1).momentum(0.9)),
        Box::new(Adam::new(0.01)),
        Box::new(RmsProp::new(0.01)),
    ];
    for optimizer in optimizers {
        let device = device();
        device.scope(|| {
            let (model, loss, x, y) = small_network()?;
            let mut seen = Vec::new();
            let mut losses = Vec::new();
            for _ in 0..4 {
                let tape = GradientTape::new();
                let value = loss.call(&y, &model.call(&x, TRAINING)?)?;
                optimizer.minimize(&value, tape, &model)?;
                losses.push(value.item::<f32>()?);
                seen.push(device.stats().pipelines);
            }
            assert_eq!(
                seen,
                [seen[0]; 4],
                "{}: later steps compile again",
                optimizer.state().name()
            );
            assert!(losses[3] < losses[0], "{losses:?}");
            Ok::<(), tf::Error>(())
        })?;
    }
    Ok(())
}

/// Models of other sizes reuse the kernels of earlier ones.
#[test]
fn small_models_share_their_kernels() -> tf::Result<()> {
    let device = device();
    device.scope(|| {
        let mut pipelines = Vec::new();
        for seed in 0..12 {
            let losses = models::mlp(seed)?;
            assert!(losses.iter().all(|loss| loss.is_finite()), "{seed}: {losses:?}");
            pipelines.push(device.stats().pipelines);
        }
        for seed in 0..2 {
            let losses = models::conv_net(seed)?;
            assert!(losses.iter().all(|loss| loss.is_finite()), "{seed}: {losses:?}");
        }
        assert!(pipelines[11] <= BOUND_OF_TWELVE, "{pipelines:?}");
        Ok(())
    })
}

/// The number of pipelines that two training steps of a small network add, with a batch of this size.
fn compiled_by_training(device: &Device, batch: usize) -> tf::Result<u64> {
    let before = device.stats().pipelines;
    let model =
        Sequential::new().add(Dense::new(12).activation(Activation::Tanh)).add(Dense::new(3));
    let loss = SparseCategoricalCrossentropy::new().from_logits(true);
    let x = tf::linspace(-1.0, 1.0, 5 * batch)?.reshape([batch as i64, 5])?;
    let y = Tensor::from_slice(&(0..batch).map(|i| i as i32 % 3).collect::<Vec<_>>(), [batch])?;
    let optimizer = Sgd::new(0.01);
    for _ in 0..2 {
        let tape = GradientTape::new();
        let value = loss.call(&y, &model.call(&x, TRAINING)?)?;
        optimizer.minimize(&value, tape, &model)?;
        assert!(value.item::<f32>()?.is_finite());
    }
    Ok(device.stats().pipelines - before)
}

/// If nothing is summed over the batch, one row uses the kernels of many rows.
#[test]
fn a_batch_of_one_takes_kernels_of_larger_ones() -> tf::Result<()> {
    let device = device();
    device.scope(|| {
        let many = compiled_by_training(&device, 8)?;
        assert_eq!(compiled_by_training(&device, 16)?, 0, "after {many}");
        let one = compiled_by_training(&device, 1)?;
        assert!(one < many / 2, "{one} after {many}");
        let x = tf::linspace(-1.0, 1.0, 35)?.reshape([7, 5])?;
        let bias = tf::linspace(0.0, 1.0, 5)?;
        device.flush()?;
        let f = |x: &Tensor| x.add(&bias)?.tanh()?.to_vec::<f32>();
        let all = f(&x)?;
        let row = Tensor::from_slice(&x.to_vec::<f32>()?[15..20], [1, 5])?;
        let before = device.stats().pipelines;
        assert_eq!(f(&row)?, all[15..20]);
        assert_eq!(device.stats().pipelines, before);
        Ok(())
    })
}

/// Whether two numbers of a program are equal does not affect its kernels.
#[test]
fn equal_numbers_take_no_other_kernels() -> tf::Result<()> {
    let device = device();
    device.scope(|| {
        let x = tf::constant([0.5, -1.5, 2.0, 4.0, -0.25])?;
        let f = |a: f32, b: f32| x.multiply(a)?.add(b)?.maximum(a)?.to_vec::<f32>();
        assert_eq!(f(2.0, 3.0)?, [4.0, 2.0, 7.0, 11.0, 2.5]);
        let before = device.stats().pipelines;
        assert_eq!(f(2.0, 2.0)?, [3.0, 2.0, 6.0, 10.0, 2.0]);
        assert_eq!(device.stats().pipelines, before);
        Ok(())
    })
}
