//! Tests of functions: what they compute, when they are traced, and what they refuse.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};

use super::traces::TRACES;
use super::*;
use crate::dtype::DType;
use crate::eager;
use crate::error::Error;
use crate::keras::layers::{Dense, Dropout};
use crate::keras::optimizers::{Adam, Optimizer};
use crate::keras::{Activation, INFERENCE, Initializer, Layer, Sequential, TRAINING};
use crate::random::Generator;
use crate::runtime::Device;
use crate::tape::{GradientTape, TensorOrVariable};
use crate::tensor::{Operand, Tensor, constant};
use crate::variable::Variable;

fn vec(x: &Tensor) -> Vec<f32> {
    x.to_vec().unwrap()
}

#[test]
fn a_function_is_traced_for_each_signature() -> Result<()> {
    let seen = Arc::new(AtomicUsize::new(0));
    let f = function({
        let seen = seen.clone();
        move |x: Operand, scale: f32| {
            seen.fetch_add(1, Ordering::Relaxed);
            match x {
                Operand::Tensor(x) => x.multiply(scale),
                number => constant(1.0)?.multiply(number)?.multiply(scale),
            }
        }
    });
    let run = |x: Operand, scale: f32| -> Result<usize> {
        f(x, scale)?;
        Ok(seen.load(Ordering::Relaxed))
    };
    let tensor = |x: f32| -> Result<Operand> { Ok(constant(x)?.into()) };
    assert_eq!(run(tensor(1.0)?, 2.0)?, 1);
    assert_eq!(run(tensor(5.0)?, 2.0)?, 1);
    assert_eq!(run(tensor(5.0)?, 3.0)?, 2);
    assert_eq!(run(constant([1.0, 2.0])?.into(), 3.0)?, 3);
    assert!(run(constant([1, 2])?.into(), 3.0).is_err());
    assert_eq!(run(1.into(), 3.0)?, 5);
    assert_eq!(run(1.into(), 3.0)?, 5);
    assert_eq!(run(1.0.into(), 3.0)?, 6);
    assert_eq!((f.tracing_count(), f(4.0.into(), 0.5)?.item::<f32>()?), (5, 2.0));
    assert_eq!(f(constant([1.0, 2.0])?.into(), 3.0)?.to_vec::<f32>()?, [3.0, 6.0]);
    let signatures = f.pretty_printed_concrete_signatures();
    assert!(
        signatures.contains("(f32[2], 3.0)\n") && signatures.contains("(f32[], 2.0)\n"),
        "{signatures}"
    );
    Ok(())
}

#[test]
fn structures_go_in_and_come_out() -> Result<()> {
    let f = function(|pairs: Vec<(Tensor, bool)>, more: Option<[Tensor; 2]>| {
        let mut sum = constant(0.0)?;
        for (x, add) in &pairs {
            sum = if *add { sum.add(x)? } else { sum.subtract(x)? };
        }
        Ok((sum, pairs.len(), more.map(|[a, b]| vec![b, a])))
    });
    let x = |x: f32| constant(x).unwrap();
    let (sum, count, swapped) = f(vec![(x(5.0), true), (x(2.0), false)], Some([x(1.0), x(2.0)]))?;
    assert_eq!((sum.item::<f32>()?, count), (3.0, 2));
    assert_eq!(swapped.unwrap().iter().map(|x| vec(x)[0]).collect::<Vec<_>>(), [2.0, 1.0]);
    let (sum, count, none) = f(vec![(x(7.0), true)], None)?;
    assert_eq!((sum.item::<f32>()?, count, none.is_none()), (7.0, 1, true));
    let (sum, ..) = f(vec![(x(9.0), true), (x(4.0), false)], Some([x(1.0), x(2.0)]))?;
    assert_eq!((sum.item::<f32>()?, f.tracing_count()), (5.0, 2));
    // Nothing in, and nothing computed.
    let kept = x(3.0);
    let constant_function = function(move || Ok(kept.clone()));
    assert_eq!((vec(&constant_function()?), vec(&constant_function()?)), (vec![3.0], vec![3.0]));
    let identity = function(|x: Tensor| Ok((x.clone(), x)));
    let (a, b) = identity(x(8.0))?;
    assert_eq!((vec(&a), vec(&b)), (vec![8.0], vec![8.0]));
    Ok(())
}

#[test]
fn variables_are_read_and_assigned_in_order() -> Result<()> {
    let (a, b) = (Variable::new(constant(1.0)?), Variable::new(constant([10.0, 20.0])?));
    let f = function({
        let (a, b) = (a.clone(), b.clone());
        move |x: Tensor| {
            let before = a.read();
            a.assign_add(&x)?;
            let between = a.read();
            a.assign(a.read().multiply(2.0)?)?;
            b.assign_sub(b.read().multiply(0.5)?)?;
            Ok([before, between, a.read()])
        }
    });
    let eager = |a: f32, x: f32| [a, a + x, (a + x) * 2.0];
    let mut now = 1.0;
    for x in [1.0, 2.0, 3.0] {
        let found = f(constant(x)?)?.map(|x| vec(&x)[0]);
        assert_eq!(found, eager(now, x));
        now = found[2];
        assert_eq!(vec(&a.read()), [now]);
    }
    assert_eq!(vec(&b.read()), [1.25, 2.5]);
    // A value that the program holds is not overwritten, and an assignment in between is seen.
    let held = b.read();
    a.assign(100.0)?;
    assert_eq!(f(constant(1.0)?)?.map(|x| vec(&x)[0]), eager(100.0, 1.0));
    assert_eq!((vec(&held), vec(&b.read())), (vec![1.25, 2.5], vec![0.625, 1.25]));
    assert_eq!(f.tracing_count(), 1);
    // The variables outlive their owner in the function.
    drop((a, b));
    f(constant(1.0)?)?;
    Ok(())
}

#[test]
fn random_numbers_are_drawn_at_each_run_as_eagerly() -> Result<()> {
    let (eager, traced) = (Generator::from_seed(5), Arc::new(Generator::from_seed(5)));
    let f = function({
        let traced = traced.clone();
        move |x: Tensor| {
            let noise = traced.normal([3])?;
            x.add(noise)?.add(traced.uniform([3])?)
        }
    });
    let x = constant([1.0, 2.0, 3.0])?;
    for _ in 0..4 {
        let expected = x.add(eager.normal([3])?)?.add(eager.uniform([3])?)?;
        assert_eq!(vec(&f(x.clone())?), vec(&expected));
        assert_eq!(eager.state(), traced.state());
    }
    Ok(())
}

/// A model with dropout, and its optimizer.
fn model() -> (Sequential, Adam) {
    let model = Sequential::new()
        .add(
            Dense::new(16)
                .activation(Activation::Tanh)
                .kernel_initializer(Initializer::GlorotUniform.seed(3)),
        )
        .add(Dropout::new(0.25).seed(7))
        .add(Dense::new(1).kernel_initializer(Initializer::GlorotUniform.seed(4)));
    let schedule = crate::keras::optimizers::schedules::ExponentialDecay::new(0.05, 3, 0.9);
    (model, Adam::new(schedule))
}

fn step(model: &Sequential, adam: &Adam, x: &Tensor, y: &Tensor) -> Result<Tensor> {
    let tape = GradientTape::new();
    let loss = model.call(x, TRAINING)?.subtract(y)?.square()?.reduce_mean(())?;
    adam.minimize(&loss, tape, model)?;
    Ok(loss)
}

#[test]
fn a_training_step_is_the_eager_one_bit_for_bit() -> Result<()> {
    let generator = Generator::from_seed(1);
    let x = generator.normal([32, 8])?;
    let y = x.reduce_sum(1)?.sin()?.expand_dims(1)?;
    let (eager_model, eager_adam) = model();
    let (function_model, function_adam) = model();
    let (function_model, function_adam) = (Arc::new(function_model), Arc::new(function_adam));
    let train = function({
        let (model, adam) = (function_model.clone(), function_adam.clone());
        move |x: Tensor, y: Tensor| step(&model, &adam, &x, &y)
    });
    for number in 0..12 {
        let expected = step(&eager_model, &eager_adam, &x, &y)?.item::<f32>()?;
        let found = train(x.clone(), y.clone())?.item::<f32>()?;
        assert_eq!(found.to_bits(), expected.to_bits(), "step {number}: {found} and {expected}");
        assert_eq!(function_adam.iterations(), eager_adam.iterations());
    }
    assert_eq!(train.tracing_count(), 1);
    let (a, b) = (eager_model.call(&x, INFERENCE)?, function_model.call(&x, INFERENCE)?);
    assert_eq!(vec(&a), vec(&b));
    // Steps of both kinds continue each other.
    step(&eager_model, &eager_adam, &x, &y)?;
    step(&function_model, &function_adam, &x, &y)?;
    let (a, b) = (step(&eager_model, &eager_adam, &x, &y)?, train(x.clone(), y.clone())?);
    assert_eq!(vec(&a), vec(&b));
    Ok(())
}

#[test]
fn a_run_is_one_submission_and_no_call() -> Result<()> {
    let device = Device::open(&Default::default())?;
    device.scope(|| {
        let w = Variable::new(Generator::from_seed(2).normal([8, 8])?);
        let f = function({
            let w = w.clone();
            move |x: Tensor| {
                let y = x.matmul(&w)?.tanh()?;
                w.assign_sub(y.reduce_mean(0)?.multiply(0.1)?.add(w.read().zeros_like()?)?)?;
                y.reduce_sum(())
            }
        });
        let x = Generator::from_seed(3).normal([4, 8])?;
        for _ in 0..3 {
            f(x.clone())?;
        }
        device.synchronize()?;
        let before = device.stats();
        for _ in 0..10 {
            f(x.clone())?;
        }
        let after = device.stats();
        assert_eq!(after.submits - before.submits, 10);
        assert_eq!(after.nodes, before.nodes);
        assert_eq!(after.plan_misses, before.plan_misses);
        assert_eq!(f.tracing_count(), 1);
        Ok(())
    })
}

#[test]
fn tapes_record_what_a_function_does() -> Result<()> {
    let w = Variable::new(constant([2.0, -1.0])?);
    let body = {
        let w = w.clone();
        move |x: Tensor| {
            x.multiply(&w)?
                .tanh()?
                .add(x.stop_gradient().multiply(&x)?.multiply(w.read().square()?)?)
        }
    };
    let eager = body.clone();
    let f = function(body);
    let x = constant([0.3, 0.7])?;
    f(x.clone())?;
    let derive = |f: &dyn Fn(Tensor) -> Result<Tensor>| -> Result<[Vec<f32>; 4]> {
        let outer = GradientTape::new();
        outer.watch(&x)?;
        let inner = GradientTape::persistent();
        inner.watch(&x)?;
        let y = f(x.clone())?;
        let (dx, dw) = (inner.gradient(&y, &x)?.unwrap(), inner.gradient(&y, &w)?.unwrap());
        drop(inner);
        let second = outer.gradient(&dx, &x)?.unwrap();
        Ok([vec(&y), vec(&dx), vec(&dw), vec(&second)])
    };
    assert_eq!(derive(&|x| f(x))?, derive(&eager)?);
    // With a custom gradient, tapes follow its rule alone.
    let clipped = |x: Tensor| {
        let rule = |x: &Tensor| Ok((x.square()?, |dy: &Tensor| dy.multiply(10.0)));
        crate::tape::custom_gradient(rule)(&x)
    };
    let g = function(clipped);
    let slope = |g: &dyn Fn(Tensor) -> Result<Tensor>| -> Result<Vec<f32>> {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let y = g(x.clone())?;
        Ok(vec(&tape.gradient(&y, &x)?.unwrap()))
    };
    assert_eq!(slope(&|x| g(x))?, slope(&clipped)?);
    assert_eq!(slope(&|x| g(x))?, [10.0, 10.0]);
    Ok(())
}

#[test]
fn functions_nest_and_run_on_several_threads() -> Result<()> {
    let square = function(|x: Tensor| x.square());
    let both = function({
        let square = square.clone();
        move |x: Tensor| square(x.clone())?.add(square(x.add(1.0)?)?)
    });
    assert_eq!(both(constant(2.0)?)?.item::<f32>()?, 13.0);
    assert_eq!((square.tracing_count(), both.tracing_count()), (0, 1));
    let count = Variable::new(constant(0.0)?);
    let add = function({
        let count = count.clone();
        move |x: Tensor| count.assign_add(x)
    });
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..25 {
                    add(constant(1.0).unwrap()).unwrap();
                    count.assign_add(1.0).unwrap();
                    both(constant(1.0).unwrap()).unwrap();
                }
            });
        }
    });
    assert_eq!(count.read().item::<f32>()?, 200.0);
    Ok(())
}

#[test]
fn checks_happen_at_each_run() -> Result<()> {
    // Another test that reads from the same device would receive the error.
    Device::open(&Default::default())?.scope(check_at_each_run)
}

fn check_at_each_run() -> Result<()> {
    let f = function(|x: Tensor| {
        crate::debugging::assert_positive(&x, "x")?;
        x.add(1.0)
    });
    assert_eq!(f(constant(1.0)?)?.item::<f32>()?, 2.0);
    let wrong = f(constant(-1.0)?)?.item::<f32>().unwrap_err().to_string();
    assert!(wrong.contains("x: "), "{wrong}");
    assert_eq!(f(constant(2.0)?)?.item::<f32>()?, 3.0);
    Ok(())
}

#[test]
fn what_a_trace_cannot_do_is_refused() -> Result<()> {
    let x = constant([1.0, -2.0])?;
    let error = |error: Error| match error {
        Error::Trace(text) => text.to_string(),
        other => panic!("{other}"),
    };
    let reads = function(|x: Tensor| x.reduce_sum(())?.item::<f32>());
    let text = error(reads(x.clone()).unwrap_err());
    assert!(text.contains("it belongs to a function that is being traced"), "{text}");
    let makes = function(|x: Tensor| {
        let v = Variable::new(constant([0.0, 0.0])?);
        v.assign(&x)?;
        Ok(v.read())
    });
    let text = error(makes(x.clone()).unwrap_err());
    assert!(text.contains("makes a variable each time"), "{text}");
    // A variable that only the first trace makes is the function's.
    let made = std::sync::OnceLock::new();
    let counts = function(move |x: Tensor| {
        let v: &Variable = made.get_or_init(|| Variable::new(constant([0.0, 0.0]).unwrap()));
        v.assign_add(x)?;
        Ok(v.read())
    });
    counts(x.clone())?;
    assert_eq!(vec(&counts(x.clone())?), [2.0, -4.0]);
    // An error or a panic in a trace leaves everything as it was, and the next call traces again.
    let v = Variable::new(constant(1.0)?);
    let tries = Arc::new(AtomicUsize::new(0));
    let fails = function({
        let (v, tries) = (v.clone(), tries.clone());
        move |x: Tensor| {
            v.assign(5.0)?;
            match tries.fetch_add(1, Ordering::Relaxed) {
                0 => x.reshape([7]),
                1 => panic!("on purpose"),
                _ => Ok(x),
            }
        }
    });
    assert!(matches!(fails(x.clone()), Err(Error::Shape(_))));
    assert!(catch_unwind(AssertUnwindSafe(|| fails(x.clone()))).is_err());
    assert_eq!(v.read().item::<f32>()?, 1.0);
    assert!(!eager::in_trace() && !eager::observed());
    fails(x.clone())?;
    assert_eq!(v.read().item::<f32>()?, 5.0);
    Ok(())
}

#[test]
fn a_function_that_calls_itself_is_refused() -> Result<()> {
    type Own = Function<dyn Fn(Tensor) -> Result<Tensor> + Send + Sync>;
    let own: Arc<std::sync::OnceLock<Own>> = Arc::default();
    let f = function({
        let own = own.clone();
        move |x: Tensor| own.get().unwrap()(x.add(1.0)?)
    });
    own.set(f.clone()).unwrap();
    let text = f(constant(1.0)?).unwrap_err().to_string();
    assert!(text.contains("it calls itself while it is traced"), "{text}");
    Ok(())
}

#[test]
fn traces_are_bounded() -> Result<()> {
    let f = function(|x: Tensor, number: i32| x.add(number));
    let x = constant(1.0)?;
    for number in 0..300 {
        assert_eq!(f(x.clone(), number)?.item::<f32>()?, 1.0 + number as f32);
    }
    assert_eq!(f.pretty_printed_concrete_signatures().lines().count(), TRACES);
    assert_eq!(f(x, 0)?.item::<f32>()?, 1.0);
    assert_eq!(f.tracing_count(), 301);
    Ok(())
}

#[test]
fn the_program_is_text() -> Result<()> {
    let v = Variable::new(constant(3.0)?);
    let f = function({
        let v = v.clone();
        move |x: Tensor| {
            let dead = x.exp()?;
            drop(dead);
            v.assign_add(1.0)?;
            v.read().multiply(x.stop_gradient())
        }
    });
    f(constant([1.0, 2.0])?)?;
    let text = f.graph_text();
    assert!(text.starts_with("(f32[2])\n%0 = argument 0\n"), "{text}");
    assert!(text.contains("assign variable 0 = ") && text.contains("stop_gradient(%0)"), "{text}");
    assert!(
        text.contains("multiply}(%6, %7): f32[2]\nreturn (%8)") && !text.contains("exp"),
        "{text}"
    );
    Ok(())
}

/// Trains two equal pairs of a model and an optimizer, one of them in a function, and compares losses and weights bit for bit.
fn same_training<M: crate::Trackable + Send + Sync + 'static>(
    name: &str,
    make: &dyn Fn() -> (M, Box<dyn Optimizer>),
    loss: fn(&M, &Tensor) -> Result<Tensor>,
    x: &Tensor,
    steps: usize,
) -> Result<()> {
    let step = move |model: &M, optimizer: &dyn Optimizer, x: &Tensor| {
        let tape = GradientTape::new();
        let loss = loss(model, x)?;
        optimizer.minimize(&loss, tape, model)?;
        Ok(loss)
    };
    let (eager, function_s) = (make(), Arc::new(make()));
    let train = function({
        let own = function_s.clone();
        move |x: Tensor| step(&own.0, &*own.1, &x)
    });
    for number in 0..steps {
        let expected = step(&eager.0, &*eager.1, x)?.item::<f32>()?;
        let found = train(x.clone())?.item::<f32>()?;
        assert_eq!(
            found.to_bits(),
            expected.to_bits(),
            "{name}, step {number}: {found}, {expected}"
        );
    }
    assert_eq!(eager.0.get_weights()?, function_s.0.get_weights()?, "{name}");
    assert_eq!((train.tracing_count(), eager.1.iterations()), (1, function_s.1.iterations()));
    Ok(())
}

#[test]
fn every_optimizer_steps_as_eagerly() -> Result<()> {
    let x = Generator::from_seed(4).normal([6, 4])?;
    let layers = || {
        let initializer = || Initializer::GlorotUniform.seed(3);
        Sequential::new()
            .add(Dense::new(4).activation(Activation::Tanh).kernel_initializer(initializer()))
            .add(Dense::new(2).kernel_initializer(initializer()))
    };
    let loss = |model: &Sequential, x: &Tensor| {
        model
            .call(x, TRAINING)?
            .subtract(x.reduce_sum(1)?.expand_dims(1)?)?
            .square()?
            .reduce_mean(())
    };
    for name in [
        "adadelta",
        "adafactor",
        "adagrad",
        "adam",
        "adamax",
        "adamw",
        "ftrl",
        "lamb",
        "lion",
        "muon",
        "nadam",
        "rmsprop",
        "sgd",
    ] {
        let make = || (layers(), crate::keras::optimizers::get(name).unwrap());
        same_training(name, &make, loss, &x, 7)?;
    }
    let averaged = || -> (Sequential, Box<dyn Optimizer>) {
        let adam = Adam::new(0.1).use_ema(true).ema_overwrite_frequency(3).clipnorm(0.5);
        (layers(), Box::new(adam.weight_decay(0.01)))
    };
    same_training("averaged", &averaged, loss, &x, 8)?;
    let scaled = || -> (Sequential, Box<dyn Optimizer>) {
        let adam = crate::keras::optimizers::LossScaleOptimizer::new(Adam::new(0.1));
        (layers(), Box::new(adam.dynamic_growth_steps(2)))
    };
    same_training("scaled", &scaled, loss, &x, 7)?;
    // What only every third call does is refused.
    let accumulating = Adam::new(0.1).gradient_accumulation_steps(3);
    let w = Variable::new(constant(1.0)?);
    let refused = function(move |x: Tensor| accumulating.apply_gradients(&[Some(x)], &w));
    let text = refused(constant(1.0)?).unwrap_err().to_string();
    assert!(text.contains("gradient_accumulation_steps"), "{text}");
    Ok(())
}

#[test]
fn models_with_state_train_as_eagerly() -> Result<()> {
    use crate::keras::layers::{BatchNormalization, Embedding, GaussianNoise, Lstm};
    let x = Generator::from_seed(4).uniform([5, 6, 3])?;
    let make = || -> (Sequential, Box<dyn Optimizer>) {
        let initializer = || Initializer::GlorotUniform.seed(3);
        let model = Sequential::new()
            .add(GaussianNoise::new(0.1).seed(5))
            .add(
                Lstm::new(8)
                    .kernel_initializer(initializer())
                    .recurrent_initializer(Initializer::GlorotUniform.seed(1)),
            )
            .add(BatchNormalization::new())
            .add(Dropout::new(0.5).seed(6))
            .add(Dense::new(1).kernel_initializer(initializer()));
        (model, Box::new(Adam::new(0.01)))
    };
    let loss = |model: &Sequential, x: &Tensor| {
        model
            .call(x, TRAINING)?
            .subtract(x.reduce_sum(2)?.reduce_sum(1)?.expand_dims(1)?)?
            .square()?
            .reduce_mean(())
    };
    same_training("recurrent", &make, loss, &x, 6)?;
    // A gradient penalty: a gradient inside of the function, through which another passes.
    let penalty = |model: &Sequential, x: &Tensor| {
        let tape = GradientTape::new();
        tape.watch(x)?;
        let y = model.call(x, crate::keras::INFERENCE)?;
        let slope = tape.required_gradient(&y, x)?;
        slope.square()?.reduce_mean(())?.add(y.square()?.reduce_mean(())?)
    };
    same_training("penalty", &make, penalty, &x, 4)?;
    let words = crate::tensor::constant([[1, 2, 3], [3, 1, 0]])?;
    let make = || -> (Sequential, Box<dyn Optimizer>) {
        let model = Sequential::new()
            .add(Embedding::new(4, 5).embeddings_initializer(Initializer::GlorotUniform.seed(2)));
        (model, Box::new(Adam::new(0.01)))
    };
    let loss = |model: &Sequential, x: &Tensor| model.call(x, TRAINING)?.square()?.reduce_sum(());
    same_training("embedding", &make, loss, &words, 4)
}

#[test]
fn functions_that_cross_their_variables_do_not_wait_for_each_other() -> Result<()> {
    let (a, b) = (Variable::new(constant(1.0)?), Variable::new(constant(1.0)?));
    let cross = |to: &Variable, from: &Variable| {
        let (to, from) = (to.clone(), from.clone());
        function(move |x: Tensor| to.assign(from.read().multiply(0.5)?.add(x)?))
    };
    let (first, second) = (cross(&a, &b), cross(&b, &a));
    let x = constant(1.0)?;
    std::thread::scope(|scope| {
        for f in [&first, &second] {
            scope.spawn(|| (0..500).for_each(|_| f(x.clone()).unwrap()));
        }
    });
    // Both converge to x / (1 - 0.5).
    assert!((a.read().item::<f32>()? - 2.0).abs() < 1.0);
    Ok(())
}

#[test]
fn arguments_of_two_devices_are_named() -> Result<()> {
    let other = Device::open(&Default::default())?;
    let f = function(|x: Tensor, y: Tensor| x.add(y));
    let x = constant([1.0, 2.0])?;
    assert_eq!(vec(&f(x.clone(), x.clone())?), [2.0, 4.0]);
    let text = f(x.clone(), x.to(&other)?).unwrap_err().to_string();
    assert!(text.contains("x.to(&device)"), "{text}");
    Ok(())
}

#[test]
fn trials_make_the_weights_of_all_branches() -> Result<()> {
    let (yes, no) = (Dense::new(2), Dense::new(2));
    let x = constant([[1.0, 2.0, 3.0]])?;
    eager::traced(|| -> Result<()> {
        let x = eager::placeholder(x.spec().clone())?;
        let positive = x.reduce_sum(())?.greater(0.0)?;
        cond(&positive, || yes.call(&x, TRAINING), || no.call(&x, TRAINING)).map(drop)
    })?;
    use crate::Trackable;
    assert_eq!((yes.trainable_variables().len(), no.trainable_variables().len()), (2, 2));
    // A panic in a branch that the closure catches is an error: its calls belong to no block any more.
    let f = function(|x: Tensor| {
        let caught = catch_unwind(AssertUnwindSafe(|| {
            cond(&x.greater(0.0)?, || -> Result<Tensor> { panic!("on purpose") }, || Ok(x.clone()))
        }));
        assert!(caught.is_err());
        x.add(1.0)
    });
    let text = f(constant(1.0)?).unwrap_err().to_string();
    assert!(text.contains("panicked"), "{text}");
    Ok(())
}

#[test]
fn many_runs_keep_the_same_memory() -> Result<()> {
    let device = Device::open(&Default::default())?;
    device.scope(|| {
        let w = Variable::new(Tensor::zeros([64])?);
        let f = function({
            let w = w.clone();
            move |x: Tensor| {
                w.assign_add(&x)?;
                w.read().reduce_sum(())
            }
        });
        let x = Tensor::ones([64])?;
        for _ in 0..100 {
            f(x.clone())?;
        }
        device.synchronize()?;
        let before = device.stats();
        for _ in 0..10_000 {
            f(x.clone())?;
        }
        device.synchronize()?;
        let after = device.stats();
        assert_eq!((after.buffers, after.pipelines), (before.buffers, before.pipelines));
        // After a thousand runs there is one other plan.
        assert!(after.bind_groups - before.bind_groups < 10);
        assert_eq!(w.read().to_vec::<f32>()?, [10_100.0; 64]);
        Ok(())
    })
}

#[test]
fn a_variable_may_move_and_values_may_wait_or_fail() -> Result<()> {
    let other = Device::open(&Default::default())?;
    let w = Variable::new(constant([1.0, 2.0])?);
    let f = function({
        let w = w.clone();
        move |x: Tensor| {
            w.assign_add(&x)?;
            Ok(w.read())
        }
    });
    // An argument that no flush has computed.
    let x = constant([1.0, 1.0])?.multiply(3.0)?;
    assert_eq!(vec(&f(x.clone())?), [4.0, 5.0]);
    // A variable that waits, and that the caller holds.
    w.assign(w.read().multiply(2.0)?)?;
    let held = w.read();
    assert_eq!((vec(&f(x.clone())?), vec(&held)), (vec![11.0, 13.0], vec![8.0, 10.0]));
    // After a move, calls on the old device say where both are.
    w.assign(w.read().to(&other)?)?;
    let text = f(x.clone()).unwrap_err().to_string();
    assert!(text.contains("x.to(&device)"), "{text}");
    assert_eq!(vec(&f(x.to(&other)?)?), [14.0, 16.0]);
    assert_eq!(f.tracing_count(), 2);
    let copies = function({
        let other = other.clone();
        move |x: Tensor| x.to(&other)?.add(1.0)
    });
    let text = copies(x).unwrap_err().to_string();
    assert!(text.contains("a function runs on one device"), "{text}");
    Ok(())
}

#[test]
fn branches_run_alone_and_have_their_gradients() -> Result<()> {
    let taken = Variable::untrainable(constant([0.0, 0.0])?);
    let w = Variable::new(constant(3.0)?);
    let body = {
        let (taken, w) = (taken.clone(), w.clone());
        move |x: Tensor| {
            let scale = w.read();
            let y = cond(
                &x.greater(0.0)?,
                || {
                    taken.assign_add(constant([1.0, 0.0])?)?;
                    // Its gradient at negative numbers is NaN.
                    x.sqrt()?.multiply(&scale)
                },
                || {
                    taken.assign_add(constant([0.0, 1.0])?)?;
                    x.square()?.multiply(w.read())
                },
            )?;
            Ok((y.add(1.0)?, taken.read()))
        }
    };
    let eager = body.clone();
    let f = function(body);
    let run = |f: &dyn Fn(Tensor) -> Result<(Tensor, Tensor)>, x: f32| -> Result<[Vec<f32>; 5]> {
        taken.assign(constant([0.0, 0.0])?)?;
        let x = constant(x)?;
        let outer = GradientTape::new();
        outer.watch(&x)?;
        let tape = GradientTape::persistent();
        tape.watch(&x)?;
        let (y, counts) = f(x.clone())?;
        let (dx, dw) = (tape.required_gradient(&y, &x)?, tape.required_gradient(&y, &w)?);
        drop(tape);
        let second = outer.required_gradient(&dx, &x)?;
        Ok([vec(&y), vec(&counts), vec(&dx), vec(&dw), vec(&second)])
    };
    for x in [4.0, -2.0] {
        assert_eq!(run(&|x| f(x), x)?, run(&eager, x)?);
    }
    assert_eq!(run(&|x| f(x), -2.0)?[..4], [vec![13.0], vec![0.0, 1.0], vec![-12.0], vec![4.0]]);
    assert_eq!(vec(&f(constant(4.0)?)?.0), [7.0]);
    assert_eq!(f.tracing_count(), 1);
    Ok(())
}

#[test]
fn loops_run_as_often_as_values_say() -> Result<()> {
    // Nested to a depth of three: Collatz steps of numbers below n, by a loop in a loop with a branch.
    let collatz = |n: Tensor| {
        let start = (constant(1)?, constant(0)?);
        let (_, total) = while_loop(
            |(i, _)| i.less(&n),
            |(i, total)| {
                let (_, steps) = while_loop(
                    |(x, _)| x.greater(1),
                    |(x, steps)| {
                        let odd = x.floormod(2)?.equal(1)?;
                        let x = cond(&odd, || x.multiply(3)?.add(1), || x.floordiv(2))?;
                        Ok((x, steps.add(1)?))
                    },
                    (i.clone(), constant(0)?),
                )?;
                Ok((i.add(1)?, total.add(steps)?))
            },
            start,
        )?;
        Ok(total)
    };
    let f = function(collatz);
    let native = |n: i32| {
        (1..n)
            .map(|mut x| {
                let mut steps = 0;
                while x > 1 {
                    x = if x % 2 == 1 { 3 * x + 1 } else { x / 2 };
                    steps += 1;
                }
                steps
            })
            .sum::<i32>()
    };
    for n in [0, 1, 2, 9] {
        assert_eq!(f(constant(n)?)?.item::<i32>()?, native(n), "{n}");
        assert_eq!(collatz(constant(n)?)?.item::<i32>()?, native(n), "{n}");
    }
    assert_eq!(f.tracing_count(), 1);
    // A power by a loop, its derivatives, and a bound.
    let power = |x: Tensor, n: Tensor| {
        let start = (constant(0)?, x.ones_like()?);
        let options = WhileLoopOptions::new().maximum_iterations(5);
        let (_, y) = while_loop_with(
            |(i, _)| i.less(&n),
            |(i, y)| Ok((i.add(1)?, y.multiply(&x)?)),
            start,
            options,
        )?;
        Ok(y)
    };
    let g = function(power);
    let x = constant(2.0)?;
    for (n, y, dx, second) in [(0, 1.0, 0.0, 0.0), (3, 8.0, 12.0, 12.0), (9, 32.0, 80.0, 160.0)] {
        let outer = GradientTape::new();
        outer.watch(&x)?;
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let found = g(x.clone(), constant(n)?)?;
        assert_eq!(found.item::<f32>()?, y);
        let Some(slope) = tape.gradient(&found, &x)? else {
            assert_eq!(n, 0);
            continue;
        };
        assert_eq!(slope.item::<f32>()?, dx);
        assert_eq!(outer.required_gradient(&slope, &x)?.item::<f32>()?, second);
    }
    // Many iterations, with a variable.
    let count = Variable::new(constant(0)?);
    let counts = function({
        let count = count.clone();
        move |n: Tensor| {
            while_loop(|_: &()| count.read().less(&n), |()| count.assign_add(1), ())?;
            Ok(count.read())
        }
    });
    assert_eq!(counts(constant(1000)?)?.item::<i32>()?, 1000);
    assert_eq!(counts(constant(1001)?)?.item::<i32>()?, 1001);
    Ok(())
}

#[test]
fn control_flow_in_a_trace_is_checked() -> Result<()> {
    let x = constant(1.0)?;
    let text = |error: Error| match error {
        Error::Trace(text) => text.to_string(),
        other => panic!("{other}"),
    };
    let unlike =
        function(|x: Tensor| cond(&x.greater(0.0)?, || x.expand_dims(0), || Ok(x.clone())));
    let error = text(unlike(x.clone()).unwrap_err());
    assert!(error.contains("one branch returns f32[], another f32[1]"), "{error}");
    let grows = function(|x: Tensor| {
        while_loop(|x: &Tensor| x.reduce_sum(())?.less(9.0), |x| x.expand_dims(0), x)
    });
    let error = text(grows(x.clone()).unwrap_err());
    assert!(error.contains("are f32[] before an iteration and f32[1] after it"), "{error}");
    let leaks = function(|x: Tensor| {
        let mut leaked = x.clone();
        cond(
            &x.greater(0.0)?,
            || {
                leaked = x.add(1.0)?;
                Ok(())
            },
            || Ok(()),
        )?;
        Ok(leaked)
    });
    let error = text(leaks(x.clone()).unwrap_err());
    assert!(error.contains("that a branch or a loop has made is used outside of it"), "{error}");
    let pairs = constant([1.0, 2.0])?;
    assert!(matches!(cond(&pairs.greater(0.0)?, || Ok(1), || Ok(2)), Err(Error::Shape(_))));
    assert!(matches!(cond(&x, || Ok(1), || Ok(2)), Err(Error::DType(_))));
    // An error in a branch leaves the recorder as it was.
    let fails = function(|x: Tensor| {
        let bad = cond(&x.greater(0.0)?, || x.reshape([7]), || Ok(x.clone()));
        assert!(matches!(bad, Err(Error::Shape(_))));
        x.add(1.0)
    });
    assert_eq!(fails(x.clone())?.item::<f32>()?, 2.0);
    // The text shows blocks, and folds are recorded as their calls.
    let f = function(|x: Tensor| {
        let sums = scan(|sum, x| sum.add(x), &x, constant(0.0)?)?;
        let folded = foldr(|sum, x| sum.multiply(2.0)?.add(x), &x, constant(0.0)?)?;
        let mapped = map_fn(|x| x.negative(), &x)?;
        let branches: Vec<Branch<'_, Tensor>> =
            vec![Box::new(|| sums.add(folded.clone())), Box::new(|| Ok(mapped.clone()))];
        switch_case(&x.reduce_sum(())?.cast(DType::I32)?, branches)
    });
    assert_eq!(vec(&f(constant([1.0, 2.0, 3.0])?)?), [-1.0, -2.0, -3.0]);
    // 1 + 2 (0 + 2 (-1)) = -3.
    assert_eq!(vec(&f(constant([1.0, 0.0, -1.0])?)?), [-2.0, -2.0, -3.0]);
    let text = f.graph_text();
    assert!(text.contains("choose by %") && text.contains("  branch 1, capturing (%"), "{text}");
    Ok(())
}

// A metric counts its examples on the host.
#[test]
fn metrics_count_in_each_run() {
    use crate::keras::metrics::{Mean, Metric, R2Score};
    let mean = Arc::new(Mean::new("mean"));
    let f = function({
        let mean = mean.clone();
        move |x: Tensor| {
            mean.update_state(&x)?;
            mean.result()
        }
    });
    let batch = |values: &[f32]| Tensor::from_slice(values, [values.len()]).unwrap();
    let results: Vec<f32> =
        [[1.0, 3.0], [5.0, 7.0], [2.0, 0.0]].map(|x| f(batch(&x)).unwrap().item().unwrap()).into();
    assert_eq!(results, [2.0, 4.0, 3.0]);
    assert_eq!(f.tracing_count(), 1);
    assert_eq!(mean.result().unwrap().item::<f32>().unwrap(), 3.0);
    // Other batches, an eager one, and a weighted one.
    assert_eq!(f(batch(&[10.0])).unwrap().item::<f32>().unwrap(), 4.0);
    mean.update_state(&batch(&[4.0, 4.0, 4.0])).unwrap();
    assert_eq!(f(batch(&[4.0, 4.0])).unwrap().item::<f32>().unwrap(), 4.0);

    let start_over = function({
        let mean = mean.clone();
        move |x: Tensor| {
            mean.reset_state()?;
            mean.update_state(&x)?;
            mean.result()
        }
    });
    for value in [3.0, 4.0, 5.0] {
        let one = start_over(batch(&[value, value])).unwrap();
        assert_eq!(one.item::<f32>().unwrap(), value);
    }

    // The score is adjusted by the number of examples.
    let values = |seed: f32| batch(&[0.0, 1.0, 2.0 + seed, 3.0, 5.0]);
    let scores = |as_function: bool| -> Vec<f32> {
        let score = Arc::new(R2Score::new("r2").num_regressors(2));
        let step = {
            let score = score.clone();
            move |y_true: Tensor, y_pred: Tensor| {
                score.update_state(&y_true.expand_dims(1)?, &y_pred.expand_dims(1)?)?;
                score.result()
            }
        };
        let traced = function(step.clone());
        let calls = (0..3).map(|i| {
            let (y_true, y_pred) = (values(i as f32), values(0.5));
            match as_function {
                true => traced(y_true, y_pred),
                false => step(y_true, y_pred),
            }
        });
        calls.map(|score| score.unwrap().item::<f32>().unwrap()).collect()
    };
    assert_eq!(scores(true), scores(false));
}

/// `f` as a function and eagerly at each of these numbers: the numbers that it returns.
fn both_ways(
    f: impl Fn(Tensor) -> Result<Vec<Tensor>> + Clone + Send + Sync + 'static,
    at: &[f32],
) -> Vec<Vec<f32>> {
    let traced = function(f.clone());
    let numbers = |ys: Result<Vec<Tensor>>| -> Vec<f32> {
        ys.unwrap().iter().map(|y| y.item::<f32>().unwrap()).collect()
    };
    let of = |x: &f32| constant(*x).unwrap();
    let by_function: Vec<Vec<f32>> = at.iter().map(|x| numbers(traced(of(x)))).collect();
    assert_eq!(by_function, at.iter().map(|x| numbers(f(of(x)))).collect::<Vec<_>>());
    assert_eq!(traced.tracing_count(), 1);
    by_function
}

/// The value of `y` at `x`, and the gradient by a tape inside.
fn with_gradient(y: impl Fn(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Vec<Tensor>> {
    let tape = GradientTape::new();
    tape.watch(x)?;
    let y = y(x)?;
    let gradient = tape.required_gradient(&y, x)?;
    Ok(vec![y, gradient])
}

#[test]
fn a_tape_inside_of_a_function_sees_branches_and_loops() {
    let branch = |x: &Tensor| cond(&x.greater(0.0)?, || x.square(), || x.negative());
    let got = both_ways(move |x| with_gradient(branch, &x), &[3.0, -2.0]);
    assert_eq!(got, [[9.0, 6.0], [2.0, -1.0]]);

    // One tensor as two arguments.
    let f = function(|x: Tensor, y: Tensor| {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let z = cond(&x.greater(0.0)?, || x.square()?.add(&y), || x.negative())?;
        tape.required_gradient(&z, &x)
    });
    let x = constant(3.0).unwrap();
    assert_eq!(f(x.clone(), x).unwrap().item::<f32>().unwrap(), 6.0);

    // x to a power that depends on x, times 2, and a value that the loop only captures.
    let power = |x: &Tensor| {
        let start = (constant(0)?, x.clone());
        let count = x.abs()?.cast(DType::I32)?;
        let (_, y) =
            while_loop(|(i, _)| i.less(&count), |(i, y)| Ok((i.add(1)?, y.multiply(x)?)), start)?;
        y.multiply(2.0)
    };
    let got = both_ways(move |x| with_gradient(power, &x), &[2.0, 3.0, 0.5]);
    assert_eq!(got, [[16.0, 24.0], [162.0, 216.0], [1.0, 2.0]]);

    // A branch in a loop; an array that the loop fills; a call on the host.
    let nested = |x: &Tensor| {
        let array = TensorArray::new(DType::F32, 4).element_shape([]);
        let start = (constant(0)?, x.clone(), array);
        let body = |(i, y, array): (Tensor, Tensor, TensorArray)| {
            let y = cond(&y.greater(4.0)?, || y.multiply(0.5), || y.square())?;
            Ok((i.add(1)?, y.clone(), array.write(&i, y)?))
        };
        let (_, _, array) = while_loop(|(i, _, _)| i.less(4), body, start)?;
        let sums = host_call(
            |inp| Ok(vec![inp[0].reduce_sum(())?]),
            &[&array.stack()?],
            &[(&[], DType::F32)],
        )?;
        Ok(sums[0].clone())
    };
    // 1.5: 2.25, 5.0625, 2.53125, 6.407227; 3: 9, 4.5, 2.25, 5.0625.
    let got = both_ways(move |x| with_gradient(nested, &x), &[1.5, 3.0]);
    assert_eq!(got[1], [20.8125, 6.0 + 3.0 + 1.5 + 6.75]);

    // Variables that branches read.
    let train = |as_function: bool| -> Vec<f32> {
        let (a, b) =
            (Variable::new(constant(2.0).unwrap()), Variable::new(constant(-1.0).unwrap()));
        let step = {
            let variables = vec![a.clone(), b.clone()];
            move |x: Tensor| {
                let tape = GradientTape::new();
                let (a, b) = (&variables[0], &variables[1]);
                let y = cond(
                    &x.greater(0.0)?,
                    || x.multiply(a.read()),
                    || x.multiply(b.read())?.square(),
                )?;
                let loss = y.subtract(3.0)?.square()?;
                let gradients = tape.gradient(&loss, &variables[..])?;
                let pairs: Vec<(Tensor, &Variable)> = gradients
                    .into_iter()
                    .zip(&variables)
                    .filter_map(|(gradient, variable)| Some((gradient?, variable)))
                    .collect();
                // An untaken branch gives zeros in a function, and no gradient eagerly: only their sum is the same.
                let sum = pairs.iter().try_fold(constant(0.0)?, |sum, (g, _)| sum.add(g))?;
                for (gradient, variable) in &pairs {
                    variable.assign_add(gradient.multiply(-0.01)?)?;
                }
                Ok(sum)
            }
        };
        let traced = function(step.clone());
        let mut seen = Vec::new();
        for x in [1.0, -2.0, 0.5, -0.5] {
            let x = constant(x).unwrap();
            let sum = if as_function { traced(x) } else { step(x) };
            seen.push(sum.unwrap().item().unwrap());
        }
        seen.extend([a, b].map(|v| v.read().item::<f32>().unwrap()));
        seen
    };
    assert_eq!(train(true), train(false));
}

// Small branches become selects: one submission, and the host reads nothing.
#[test]
fn small_branches_are_part_of_the_graph() -> Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let w = Variable::new(constant([1.0, 2.0])?);
        let step = |w: &Variable, x: &Tensor, which: &Tensor| {
            let tape = GradientTape::new();
            let y = switch_case(
                which,
                vec![
                    Box::new(|| x.multiply(w.read())),
                    Box::new(|| {
                        cond(&x.reduce_sum(())?.greater(0.0)?, || x.exp(), || x.negative())
                    }),
                    // Its value and gradient at 0 are NaN or infinite, which must not reach the others.
                    Box::new(|| x.divide(x.subtract(x)?)?.multiply(w.read())?.log()),
                ],
            )?;
            let loss = y.square()?.reduce_sum(())?;
            let gradient = tape.gradient(&loss, w)?;
            let gradient = match gradient {
                Some(gradient) => gradient,
                None => w.read().zeros_like()?,
            };
            w.assign_sub(gradient.multiply(0.1)?)?;
            Ok((loss, gradient))
        };
        let f = function({
            let w = w.clone();
            move |x: Tensor, which: Tensor| step(&w, &x, &which)
        });
        let other = Variable::new(constant([1.0, 2.0])?);
        let x = constant([0.5, -0.25])?;
        for which in [0, 1, 0, 0] {
            let which = constant(which)?;
            let (loss, gradient) = f(x.clone(), which.clone())?;
            let (want_loss, want_gradient) = step(&other, &x, &which)?;
            assert_eq!(loss.item::<f32>()?, want_loss.item::<f32>()?);
            assert_eq!(vec(&gradient), vec(&want_gradient));
        }
        assert_eq!(vec(&w.read()), vec(&other.read()));
        let which = constant(0)?;
        x.device().synchronize()?;
        let before = device.stats();
        f(x.clone(), which)?;
        let after = device.stats();
        assert_eq!((after.submits - before.submits, after.reads - before.reads), (1, 0));
        // Graphs and texts show the choices that were traced.
        assert!(f.graph_text().contains("choose by"), "{}", f.graph_text());
        // Under a tape, only the chosen branch runs.
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let (loss, _) = f(x.clone(), constant(1)?)?;
        let gradient = tape.required_gradient(&loss, &x)?;
        let want: Vec<f32> = [0.5_f32, -0.25].map(|x| 2.0 * (2.0 * x).exp()).into();
        assert!(vec(&gradient).iter().zip(&want).all(|(got, want)| (got - want).abs() < 1e-4));
        Ok(())
    })
}

#[test]
fn branches_that_act_or_are_large_run_alone() -> Result<()> {
    let taken = Arc::new(AtomicUsize::new(0));
    let count = Variable::new(constant(0)?);
    let f = function({
        let (count, taken) = (count.clone(), taken.clone());
        move |x: Tensor| {
            let act = |by: i32| {
                taken.fetch_add(1, Ordering::Relaxed);
                count.assign_add(by)?;
                x.add(by as f32)
            };
            cond(&x.greater(0.0)?, || act(1), || act(100))
        }
    });
    assert_eq!(f(constant(2.0)?)?.item::<f32>()?, 3.0);
    assert_eq!(f(constant(-2.0)?)?.item::<f32>()?, 98.0);
    assert_eq!(count.read().item::<i32>()?, 101);
    assert_eq!(taken.load(Ordering::Relaxed), 2);
    let large =
        function(|x: Tensor| cond(&x.reduce_sum(())?.greater(0.0)?, || x.matmul(&x), || x.exp()));
    let x = Tensor::ones([300, 300])?;
    assert_eq!(vec(&large(x.clone())?)[7], 300.0);
    assert_eq!(vec(&large(x.negative()?)?)[7], (-1.0_f32).exp());
    Ok(())
}

/// The first three derivatives of `f` by `x` and by a variable that it reads.
fn three_derivatives(
    f: &dyn Fn(&Tensor) -> Result<Tensor>,
    x: &Tensor,
    w: &Variable,
) -> Result<Vec<Tensor>> {
    let tapes = [(); 3].map(|()| GradientTape::new());
    tapes.iter().try_for_each(|tape| tape.watch(x))?;
    let mut all = vec![f(x)?];
    for tape in tapes.into_iter().rev() {
        let sum = crate::ops::add_n(&all[all.len().saturating_sub(2)..])?;
        let sources = [TensorOrVariable::from(x), TensorOrVariable::from(w)];
        for gradient in tape.gradient(&sum, sources)? {
            all.push(gradient.map_or_else(|| x.zeros_like(), Ok)?);
        }
    }
    Ok(all)
}

#[test]
fn derivatives_of_any_order_pass_branches_and_loops_inside_of_a_function() -> Result<()> {
    type Body = fn(&Tensor, &Variable) -> Result<Tensor>;
    let bodies: [(&str, Body); 4] = [
        // Small, so it is a select; the root's derivatives at negative numbers are NaN.
        ("select", |x, w| {
            cond(&x.greater(0.0)?, || x.sqrt()?.multiply(w.read()), || x.square()?.multiply(x))
        }),
        // Too large for a select.
        ("branch", |x, w| {
            cond(
                &x.greater(0.0)?,
                || {
                    let all = crate::tensor::fill([300, 300], 1.0 / 90_000.0)?;
                    all.multiply(x.square()?.multiply(w.read())?)?.reduce_sum(())
                },
                || x.square()?.multiply(w.read()),
            )
        }),
        ("loop", |x, w| {
            let body = |(i, v): (Tensor, Tensor)| {
                Ok((i.add(1)?, v.multiply(x)?.multiply(w.read())?.sin()?))
            };
            Ok(while_loop(|(i, _)| i.less(3), body, (constant(0)?, x.clone()))?.1)
        }),
        ("choice in a loop", |x, w| {
            let body = |(i, v): (Tensor, Tensor)| {
                let odd = i.floormod(2)?.equal(1)?;
                let v = cond(&odd, || v.multiply(w.read())?.sin(), || v.square()?.add(x))?;
                Ok((i.add(1)?, v))
            };
            Ok(while_loop(|(i, _)| i.less(4), body, (constant(0)?, x.clone()))?.1)
        }),
    ];
    for (name, body) in bodies {
        let w = Variable::new(constant(0.75)?);
        let inside = function({
            let w = w.clone();
            move |x: Tensor| three_derivatives(&|x| body(x, &w), &x, &w)
        });
        for x in [0.5, -0.5, 0.25] {
            let x = constant(x)?;
            let eager = three_derivatives(&|x| body(x, &w), &x, &w)?;
            let own = inside(x.clone())?;
            for (at, (own, eager)) in own.iter().zip(&eager).enumerate() {
                let (own, eager) = (own.item::<f32>()?, eager.item::<f32>()?);
                let near = (own - eager).abs() <= 1e-5 * eager.abs().max(1.0);
                assert!(near, "{name}, value {at}: {own} in a function, {eager} eagerly");
            }
        }
        assert_eq!(inside.tracing_count(), 1);
    }
    Ok(())
}

#[test]
fn a_second_derivative_that_would_repeat_effects_is_refused() -> Result<()> {
    let count = Variable::untrainable(constant(0.0)?);
    let second = move |x: Tensor, assigns_in: bool| {
        let outer = GradientTape::new();
        outer.watch(&x)?;
        let inner = GradientTape::new();
        inner.watch(&x)?;
        let cube = || {
            if assigns_in {
                count.assign_add(1.0)?;
            }
            x.square()?.multiply(&x)?.multiply(count.read())
        };
        let y = cond(&x.greater(0.0)?, cube, || x.negative())?;
        let first = inner.required_gradient(&y, &x)?;
        if !assigns_in {
            count.assign_add(1.0)?;
        }
        outer.required_gradient(&first, &x)
    };
    let eager = second(constant(2.0)?, true)?;
    assert_eq!(eager.item::<f32>()?, 12.0);
    let f = function(second);
    for assigns_in in [true, false] {
        let error = f(constant(2.0)?, assigns_in).unwrap_err().to_string();
        assert!(error.contains("second derivative") && error.contains("outer tape"), "{error}");
    }
    // With the outer tape around the call.
    let first = function(|x: Tensor| {
        let y = |x: &Tensor| cond(&x.greater(0.0)?, || x.square()?.multiply(x), || x.negative());
        Ok(with_gradient(y, &x)?.remove(1))
    });
    let x = constant(2.0)?;
    let outer = GradientTape::new();
    outer.watch(&x)?;
    let dy = first(x.clone())?;
    assert_eq!(dy.item::<f32>()?, 12.0);
    assert_eq!(outer.required_gradient(&dy, &x)?.item::<f32>()?, 12.0);
    Ok(())
}

#[test]
fn what_a_branch_made_and_another_uses_is_refused() {
    let f = function(|x: Tensor| {
        let mut leaked = x.clone();
        cond(
            &x.greater(0.0)?,
            || {
                leaked = x.square()?;
                Ok(leaked.clone())
            },
            || x.negative(),
        )?;
        cond(&x.greater(1.0)?, || leaked.add(1.0), || leaked.exp())
    });
    let error = f(constant(2.0).unwrap()).unwrap_err().to_string();
    assert!(error.contains("used outside of it"), "{error}");
}

// A branch whose result is small, but not its work, runs only if it is chosen.
#[test]
fn a_branch_with_a_large_input_runs_alone() -> Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let large = Tensor::ones([300, 300])?;
        let f =
            function(move |x: Tensor| cond(&x.greater(0.0)?, || large.reduce_sum(()), || x.exp()));
        assert_eq!(f(constant(1.0)?)?.item::<f32>()?, 90_000.0);
        device.synchronize()?;
        let before = device.stats();
        let y = f(constant(-1.0)?)?;
        assert_eq!(device.stats().reads - before.reads, 1);
        assert_eq!(y.item::<f32>()?, (-1.0_f32).exp());
        Ok(())
    })
}

#[test]
fn vectorized_maps_are_maps() -> Result<()> {
    let w = Variable::new(constant([0.5, -1.0, 2.0])?);
    let row = {
        let w = w.clone();
        move |(x, scale): (Tensor, Tensor)| {
            let centred = x.subtract(x.reduce_mean(())?)?;
            let y = centred.multiply(w.read())?.multiply(&scale)?.stop_gradient().add(&x)?;
            Ok((y.multiply(w.read())?.reduce_sum(())?, constant(7.0)?))
        }
    };
    let elems = |rows: usize| -> Result<(Tensor, Tensor)> {
        let values: Vec<f32> = (0..3 * rows).map(|i| (i as f32).sin()).collect();
        let scales: Vec<f32> = (0..rows).map(|i| i as f32 - 1.0).collect();
        Ok((Tensor::from_slice(&values, [rows, 3])?, Tensor::from_slice(&scales, [rows])?))
    };
    let run = |vectorized: bool, (x, scale): (Tensor, Tensor)| -> Result<[Tensor; 4]> {
        let tape = GradientTape::new();
        tape.watch(&x)?;
        let elems = (x.clone(), scale);
        let (y, same) = match vectorized {
            true => vectorized_map(row.clone(), &elems)?,
            false => map_fn(row.clone(), &elems)?,
        };
        let loss = y.square()?.reduce_sum(())?;
        let sources = [TensorOrVariable::Tensor(x), TensorOrVariable::Variable(w.clone())];
        let [dx, dw] = tape.required_gradient(&loss, sources)?;
        Ok([y, same, dx, dw])
    };
    for rows in [1, 4, 300] {
        let got = run(true, elems(rows)?)?;
        for (got, want) in got.iter().zip(&run(false, elems(rows)?)?) {
            assert_eq!(got.shape(), want.shape());
            let pairs = vec(got).into_iter().zip(vec(want));
            pairs.for_each(|(a, b)| assert!((a - b).abs() <= 1e-3 * b.abs().max(1.0), "{a} {b}"));
        }
    }
    // In a function, the variable is read at each run.
    let f = function({
        let row = row.clone();
        move |x: Tensor, scale: Tensor| vectorized_map(row.clone(), &(x, scale))
    });
    for _ in 0..3 {
        let (x, scale) = elems(4)?;
        let (y, _) = f(x.clone(), scale.clone())?;
        let (want, _) = map_fn(row.clone(), &(x, scale))?;
        let pairs = vec(&y).into_iter().zip(vec(&want));
        pairs.for_each(|(a, b)| assert!((a - b).abs() < 1e-4, "{a} {b}"));
        w.assign_add(0.25)?;
    }
    assert_eq!(f.tracing_count(), 1);
    // A part has no value to read or to decide by, and the sizes must agree.
    let read = |x: Tensor| constant(x.reduce_sum(())?.item::<f32>()?);
    let decide = |x: Tensor| cond(&x.greater(1.5)?, || x.exp(), || x.negative());
    let x = constant([1.0, 2.0])?;
    let error = vectorized_map(read, &x).unwrap_err().to_string();
    assert!(error.contains("no value yet"), "{error}");
    let error = vectorized_map(decide, &x).unwrap_err().to_string();
    assert!(error.contains("where_") && error.contains("map_fn"), "{error}");
    for f in [
        function(move |x: Tensor| vectorized_map(read, &x)),
        function(move |x: Tensor| vectorized_map(decide, &x)),
    ] {
        assert!(matches!(f(x.clone()), Err(Error::Trace(_))));
    }
    let uneven = (constant([1.0, 2.0])?, constant([1.0])?);
    let error = map_fn(|(a, b): (Tensor, Tensor)| a.add(b), &uneven).unwrap_err().to_string();
    assert!(error.contains("[2]") && error.contains("[1]"), "{error}");
    Ok(())
}

// The states of a stateful layer are variables that its first call makes.
#[test]
fn stateful_layers_continue_from_run_to_run() {
    use crate::keras::Model;
    use crate::keras::layers::Lstm;
    use crate::trackable::Trackable;
    let x = |phase: f32| {
        let values: Vec<f32> = (0..24).map(|i| (i as f32 + phase).sin()).collect();
        Tensor::from_slice(&values, [2, 4, 3]).unwrap()
    };
    // Other tests draw from the same stream, so both models get the weights of a third.
    let lstm = || Sequential::new().add(Lstm::new(3).stateful(true));
    let first = lstm();
    first.call(&x(0.0), INFERENCE).unwrap();
    let weights = first.get_weights().unwrap();
    let results = |as_function: bool| -> Vec<Vec<f32>> {
        let model = Arc::new(lstm());
        let call = {
            let model = model.clone();
            move |x: Tensor| model.call(&x, INFERENCE)
        };
        let traced = function(call.clone());
        let run = |phase: f32| {
            let y = if as_function { traced(x(phase)) } else { call(x(phase)) };
            y.unwrap().to_vec::<f32>().unwrap()
        };
        // Makes the variables.
        run(0.0);
        model.set_weights(&weights).unwrap();
        model.reset_states();
        let mut results = vec![run(0.0), run(1.0)];
        model.reset_states();
        results.extend([run(0.0), run(1.0), run(2.0)]);
        model.reset_states();
        // An eager call in between, then the function again.
        results.push(call(x(0.0)).unwrap().to_vec::<f32>().unwrap());
        results.push(run(1.0));
        results
    };
    let (function, eager) = (results(true), results(false));
    assert_eq!(function, eager);
    assert_eq!(eager[0..2], eager[2..4]);
    assert_ne!(eager[0], eager[4]);
}

#[test]
fn a_branch_leaves_nothing_to_the_values_of_later_ones() -> Result<()> {
    let f = function(|x: Tensor, y: Tensor| {
        let inner = |x: &Tensor, y: &Tensor| {
            // Blocks whose values are dropped, and whose addresses the next ones get.
            let map = || {
                let rows = crate::ops::stack([x], 0)?;
                crate::vectorized_map(|row: Tensor| row.tanh()?.add(y), &rows)?
                    .reduce_sum(0)?
                    .tanh()
            };
            let array = || {
                let array = crate::TensorArray::new(DType::F32, 3).element_shape([2]);
                let start = (constant(0)?, x.clone(), array);
                let body = |(i, v, array): (Tensor, Tensor, crate::TensorArray)| {
                    let v = v.tanh()?;
                    let array = array.write(&i, &v)?;
                    Ok((i.add(1)?, v, array))
                };
                let (_, _, array) = crate::while_loop(|(i, ..)| i.less(3), body, start)?;
                array.stack()?.reduce_sum(0)
            };
            crate::cond(&x.reduce_sum(())?.greater(-0.3)?, map, array)
        };
        let x = x.tanh()?;
        crate::cond(&y.reduce_sum(())?.greater(0.0)?, || inner(&x, &y)?.tanh(), || x.tanh())
    });
    let tanh = f32::tanh;
    for _ in 0..3 {
        let (x, y) = (constant([0.5, 0.25])?, constant([1.0, 2.0])?);
        let expected = [(0.5, 1.0), (0.25, 2.0)].map(|(x, y)| tanh(tanh(tanh(tanh(x)) + y)));
        for (own, expected) in vec(&f(x.clone(), y.clone())?).iter().zip(expected) {
            assert!((own - expected).abs() < 1e-5, "{own} and {expected}");
        }
        let expected = [0.5, 0.25].map(|x| {
            let (mut v, mut sum) = (tanh(-x), 0.0);
            for _ in 0..3 {
                v = tanh(v);
                sum += v;
            }
            tanh(sum)
        });
        for (own, expected) in vec(&f(x.negative()?, y)?).iter().zip(expected) {
            assert!((own - expected).abs() < 1e-5, "{own} and {expected}");
        }
    }
    Ok(())
}

#[test]
fn a_branch_repeats_no_calls_that_it_does_not_need() -> Result<()> {
    let device = Device::open(&Default::default())?;
    device.scope(|| {
        let f = function(|x: Tensor, y: Tensor| {
            // With a loop, the program is no graph.
            crate::while_loop(|i: &Tensor| i.less(1), |i| i.add(1), constant(0)?)?;
            let map = || {
                y.exp()?;
                let rows = crate::ops::stack([&x], 0)?;
                crate::vectorized_map(|row: Tensor| row.tanh()?.add(&y), &rows)?.reduce_sum(0)
            };
            crate::cond(&x.reduce_sum(())?.greater(0.0)?, map, || x.tanh())
        });
        let (x, y) = (constant([0.5, 0.25])?, constant([1.0, 2.0])?);
        let expected = [0.5_f32.tanh() + 1.0, 0.25_f32.tanh() + 2.0];
        for (own, expected) in vec(&f(x, y)?).iter().zip(expected) {
            assert!((own - expected).abs() < 1e-5);
        }
        // Calls on the stand-in of a row would have failed.
        device.flush()?;
        let text = f.graph_text();
        assert!(!text.contains("captured: f32") && !text.contains("exp"), "{text}");
        Ok(())
    })
}

#[test]
fn a_value_of_another_trace_breaks_only_the_function_that_uses_it() -> Result<()> {
    let device = Device::open(&Default::default())?;
    device.scope(|| {
        let leaked = Arc::new(std::sync::Mutex::new(None));
        let first = function({
            let leaked = leaked.clone();
            move |x: Tensor| {
                *leaked.lock().unwrap() = Some((x.clone(), x.exp()?));
                x.square()
            }
        });
        first(constant(2.0)?)?;
        let (argument, value) = leaked.lock().unwrap().take().expect("the first trace leaks");
        for other in [argument, value] {
            // As a graph, and with a loop as a replay.
            let graph = function({
                let other = other.clone();
                move |x: Tensor| x.add(&other)
            });
            let looping = function(move |x: Tensor| {
                crate::while_loop(|y: &Tensor| y.less(9.0), |y| y.add(&other)?.add(1.0), x)
            });
            for _ in 0..2 {
                assert!(matches!(graph(constant(1.0)?), Err(Error::Trace(_))));
                assert!(matches!(looping(constant(1.0)?), Err(Error::Trace(_))));
                // The device has seen nothing of it.
                device.flush()?;
            }
        }
        assert_eq!(first(constant(3.0)?)?.item::<f32>()?, 9.0);
        Ok(())
    })
}

#[test]
fn a_loop_knows_no_value_that_was_assigned_before_it() -> Result<()> {
    let v = Variable::new(constant(5.0)?);
    let count = function(move |n: Tensor| {
        v.assign(0.0)?;
        let body = |i: Tensor| {
            v.assign_add(1.0)?;
            // Each iteration has another one.
            assert!(matches!(v.read().item::<f32>(), Err(Error::Trace(_))));
            i.add(1)
        };
        crate::while_loop(|i: &Tensor| i.less(&n), body, constant(0)?)?;
        Ok(v.read())
    });
    assert_eq!(count(constant(3)?)?.item::<f32>()?, 3.0);
    Ok(())
}
