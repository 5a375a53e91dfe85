//! Tests of functions under tapes around them.

use super::*;
use crate as tf;
use crate::runtime::Device;

/// A function of a tensor as a trace.
fn traced(x: &Tensor, f: &dyn Fn(&Tensor) -> Result<Tensor>) -> (Concrete, OuterTapes) {
    let program = Program::new(Device::current().unwrap())
        .recorded(&[x.spec().clone()], &|arguments| Ok(vec![f(&arguments[0])?]))
        .unwrap();
    (Concrete::new(program), OuterTapes::default())
}

/// Sixteen calls and more.
fn deep(x: &Tensor, w: &Tensor) -> Result<Tensor> {
    (0..6).try_fold(x.clone(), |y, _| y.multiply(w)?.sin()?.add(x))
}

fn close(a: &Tensor, b: &Tensor) {
    assert_eq!(a.spec(), b.spec());
    for (a, b) in a.to_vec::<f32>().unwrap().iter().zip(b.to_vec::<f32>().unwrap()) {
        assert!((a - b).abs() <= 1e-5 * (1.0 + b.abs()), "{a} and {b}");
    }
}

/// How many pairs of plans there are, and how many sets of sources that need replays.
fn pairs(tapes: &OuterTapes) -> (usize, usize) {
    let known = tapes.halves.lock().unwrap();
    let some = known.values().filter(|halves| halves.is_some()).count();
    (some, known.len() - some)
}

#[test]
fn gradients_are_those_of_the_eager_calls() {
    let x = tf::constant([0.3, -1.2, 2.0]).unwrap();
    let captured = tf::constant([1.5, 0.5, -0.7]).unwrap();
    let w = tf::Variable::new(tf::constant([0.9, 1.1, 0.4]).unwrap());
    let f = |x: &Tensor| deep(x, &w.read())?.multiply(&captured);
    let (concrete, tapes) = traced(&x, &f);
    for watch_x in [true, false] {
        let run = |f: &dyn Fn(&Tensor) -> Result<Tensor>| {
            let tape = GradientTape::new();
            if watch_x {
                tape.watch(&x).unwrap();
            }
            tape.watch(&captured).unwrap();
            let z = f(&x.identity().unwrap()).unwrap().square().unwrap();
            let sources = [
                TensorOrVariable::Tensor(x.clone()),
                TensorOrVariable::Tensor(captured.clone()),
                TensorOrVariable::Variable(w.clone()),
            ];
            (z.clone(), tape.gradient(&z, &sources[..]).unwrap())
        };
        let (z, expected) = run(&f);
        let by_function =
            |x: &Tensor| Ok(tapes.call(&concrete, std::slice::from_ref(x))?.remove(0));
        for _ in 0..3 {
            let (own, gradients) = run(&by_function);
            close(&own, &z);
            assert_eq!(gradients[0].is_some(), watch_x);
            for (gradient, expected) in gradients.iter().zip(&expected) {
                assert_eq!(gradient.is_some(), expected.is_some());
                if let (Some(gradient), Some(expected)) = (gradient, expected) {
                    close(gradient, expected);
                }
            }
        }
    }
    // One with the argument's gradient, and one without.
    assert_eq!(pairs(&tapes), (2, 0));
}

#[test]
fn an_argument_that_is_given_twice_gets_both_gradients() {
    let x = tf::constant([0.3, -1.2]).unwrap();
    let program = Program::new(Device::current().unwrap())
        .recorded(&[x.spec().clone(), x.spec().clone()], &|both| {
            Ok(vec![deep(&both[0], &both[1])?])
        })
        .unwrap();
    let (concrete, tapes) = (Concrete::new(program), OuterTapes::default());
    let gradient = |f: &dyn Fn() -> Result<Tensor>| {
        let tape = GradientTape::new();
        tape.watch(&x).unwrap();
        tape.required_gradient(f().unwrap(), &x).unwrap()
    };
    let expected = gradient(&|| deep(&x, &x));
    close(&gradient(&|| Ok(tapes.call(&concrete, &[x.clone(), x.clone()])?.remove(0))), &expected);
    assert_eq!(pairs(&tapes), (1, 0));
}

#[test]
fn what_no_tape_wants_runs_as_one_plan() {
    let x = tf::constant([0.3, -1.2]).unwrap();
    let (concrete, tapes) = traced(&x, &|x| deep(x, x));
    let tape = GradientTape::new();
    let y = tapes.call(&concrete, std::slice::from_ref(&x)).unwrap().remove(0);
    close(&y, &deep(&x, &x).unwrap());
    assert!(tape.gradient(&y, &x).unwrap().is_none());
    assert_eq!(pairs(&tapes), (0, 0));
}

#[test]
fn second_derivatives_see_every_call() {
    let x = tf::constant([0.3, -1.2]).unwrap();
    let (concrete, tapes) = traced(&x, &|x| deep(x, x));
    let by_function = |x: &Tensor| Ok(tapes.call(&concrete, std::slice::from_ref(x))?.remove(0));
    let second = |f: &dyn Fn(&Tensor) -> Result<Tensor>| {
        let outer = GradientTape::new();
        outer.watch(&x).unwrap();
        let inner = GradientTape::new();
        inner.watch(&x).unwrap();
        let dx = inner.required_gradient(f(&x).unwrap(), &x).unwrap();
        outer.required_gradient(&dx, &x).unwrap()
    };
    let by_one_tape = |f: &dyn Fn(&Tensor) -> Result<Tensor>| {
        let (tape, dx) = tf::PersistentTape::record(|tape| {
            tape.watch(&x)?;
            tape.required_gradient(&f(&x)?, &x)
        })
        .unwrap();
        tape.required_gradient(&dx, &x).unwrap()
    };
    // The tape learns after the call that it shall record gradients.
    let by_late_choice = |f: &dyn Fn(&Tensor) -> Result<Tensor>| {
        let tape = GradientTape::persistent();
        tape.watch(&x).unwrap();
        let y = f(&x).unwrap();
        let tape = tape.keep_recording();
        let dx = tape.required_gradient(&y, &x).unwrap();
        tape.required_gradient(&dx, &x).unwrap()
    };
    let expected = second(&|x| deep(x, x));
    close(&second(&by_function), &expected);
    close(&by_one_tape(&by_function), &expected);
    close(&by_late_choice(&by_function), &expected);
    assert_eq!(pairs(&tapes), (0, 0));
}

#[test]
fn jacobians_and_forward_mode_go_through_a_function() {
    let x = tf::constant([0.3, -1.2]).unwrap();
    let (concrete, tapes) = traced(&x, &|x| deep(x, &x.reverse([0])?));
    let by_function = |x: &Tensor| Ok(tapes.call(&concrete, std::slice::from_ref(x))?.remove(0));
    let eager = |x: &Tensor| deep(x, &x.reverse([0])?);
    let jacobian = |f: &dyn Fn(&Tensor) -> Result<Tensor>| {
        let tape = GradientTape::new();
        tape.watch(&x).unwrap();
        tape.jacobian(&f(&x).unwrap(), &x).unwrap().unwrap()
    };
    let expected = jacobian(&eager);
    close(&jacobian(&by_function), &expected);
    assert_eq!(pairs(&tapes), (1, 0));
    let forward = |f: &dyn Fn(&Tensor) -> Result<Tensor>| {
        let v = tf::constant([1.0, 0.0]).unwrap();
        let accumulator = tf::autodiff::ForwardAccumulator::new(&x, &v).unwrap();
        accumulator.jvp(f(&x).unwrap()).unwrap().unwrap()
    };
    close(&forward(&by_function), &forward(&eager));
}

#[test]
fn random_numbers_and_assignments_happen_once() {
    let x = Tensor::ones([64]).unwrap();
    let generator = tf::random::Generator::from_seed(3);
    let count = tf::Variable::untrainable(tf::constant(0.0).unwrap());
    let (concrete, tapes) = traced(&x, &|x| {
        count.assign_add(1.0)?;
        let kept = x.dropout(0.5, &generator)?;
        (0..16).try_fold(kept, |y, _| y.multiply(1.0))
    });
    let mut before: Option<Vec<f32>> = None;
    for run in 1..=3 {
        let tape = GradientTape::new();
        tape.watch(&x).unwrap();
        let y = tapes.call(&concrete, std::slice::from_ref(&x)).unwrap().remove(0);
        let kept = y.to_vec::<f32>().unwrap();
        // The gradient has the mask of the result.
        assert_eq!(tape.required_gradient(&y, &x).unwrap().to_vec::<f32>().unwrap(), kept);
        assert!(kept.contains(&0.0) && kept.contains(&2.0));
        assert_eq!(count.read().item::<f32>().unwrap(), run as f32);
        assert_ne!(before.replace(kept.clone()), Some(kept));
    }
    assert_eq!(pairs(&tapes), (1, 0));
}

#[test]
fn a_missing_gradient_is_explained_as_in_eager_code() {
    let x = tf::constant([0.3, -1.2]).unwrap();
    let f = |x: &Tensor| {
        deep(&x.floor()?.cast(tf::DType::I32)?.cast(tf::DType::F32)?, &Tensor::ones([2])?)
    };
    let (concrete, tapes) = traced(&x, &f);
    let message = |y: &dyn Fn() -> Result<Tensor>| {
        let tape = GradientTape::new();
        tape.watch(&x).unwrap();
        tape.required_gradient(y().unwrap(), &x).unwrap_err().to_string()
    };
    let own = message(&|| Ok(tapes.call(&concrete, std::slice::from_ref(&x))?.remove(0)));
    assert_eq!(own, message(&|| f(&x)));
    assert_eq!(pairs(&tapes), (0, 1));
}

#[test]
fn variables_that_the_function_assigns_and_a_tape_watches_are_replayed() {
    let x = tf::constant([0.3, -1.2]).unwrap();
    let w = tf::Variable::new(tf::constant([2.0, 3.0]).unwrap());
    let (concrete, tapes) = traced(&x, &|x| {
        let y = deep(x, &w.read())?;
        w.assign(w.read().multiply(2.0)?)?;
        y.multiply(w.read())
    });
    let value = |x: &Tensor, w: &Tensor| deep(x, w)?.multiply(w.multiply(2.0)?);
    for run in 0..2 {
        let start = w.peek();
        let expected = value(&x, &start).unwrap();
        let tape = GradientTape::new();
        tape.watch(&x).unwrap();
        let y = tapes.call(&concrete, std::slice::from_ref(&x)).unwrap().remove(0);
        close(&y, &expected);
        assert!(tape.gradient(&y, &w).unwrap().is_some());
        assert_eq!(w.read().to_vec::<f32>().unwrap()[0], 2.0f32.powi(run + 2));
    }
    assert_eq!(pairs(&tapes), (0, 1));
}

#[test]
fn residuals_keep_values_that_a_later_run_replaces() {
    // The function assigns a variable that its gradient needs as it was.
    let x = tf::constant([0.3, -1.2]).unwrap();
    let scale = tf::Variable::untrainable(tf::constant([2.0, 3.0]).unwrap());
    let (concrete, tapes) = traced(&x, &|x| {
        let y = deep(x, &scale.read())?;
        scale.assign(scale.read().multiply(2.0)?)?;
        Ok(y)
    });
    let gradient = |scale: &Tensor| {
        let tape = GradientTape::new();
        tape.watch(&x).unwrap();
        tape.required_gradient(deep(&x, scale).unwrap(), &x).unwrap()
    };
    let runs: Vec<(Recorded, Tensor)> = (0..4)
        .map(|_| {
            let expected = gradient(&scale.peek());
            let tape = GradientTape::new();
            tape.watch(&x).unwrap();
            let y = tapes.call(&concrete, std::slice::from_ref(&x)).unwrap().remove(0);
            tape.stop();
            ((tape, y), expected)
        })
        .collect();
    for ((tape, y), expected) in runs {
        close(&tape.required_gradient(&y, &x).unwrap(), &expected);
    }
    assert_eq!(pairs(&tapes), (1, 0));
}

/// A tape and the result that it has recorded.
type Recorded = (GradientTape, Tensor);

#[test]
fn a_gradient_of_ones_and_another_one_agree() {
    let x = tf::constant([0.3, -1.2]).unwrap();
    let (concrete, tapes) = traced(&x, &|x| deep(x, x)?.reduce_sum(()));
    let gradient = |dy: Option<&Tensor>| {
        let tape = GradientTape::new();
        tape.watch(&x).unwrap();
        let y = tapes.call(&concrete, std::slice::from_ref(&x)).unwrap().remove(0);
        let dys = dy.map(|dy| [dy]);
        tape.gradient_from(&y, dys.as_ref().map(|dys| &dys[..]), &x).unwrap().unwrap()
    };
    let one = gradient(None);
    let halves = tapes.halves.lock().unwrap().values().next().cloned().flatten().unwrap();
    assert!(halves.backward.of_ones.get().is_some_and(Option::is_some));
    let expected = {
        let tape = GradientTape::new();
        tape.watch(&x).unwrap();
        tape.required_gradient(deep(&x, &x).unwrap().reduce_sum(()).unwrap(), &x).unwrap()
    };
    close(&one, &expected);
    // A number that waits and is not one, and one that the device has.
    close(&gradient(Some(&Tensor::full([], 3.0).unwrap())), &(&expected * 3.0));
    let one = Tensor::ones([]).unwrap();
    one.item::<f32>().unwrap();
    close(&gradient(Some(&one)), &expected);
}

#[test]
fn results_without_gradients_come_along() {
    let x = tf::constant([0.3, -1.2]).unwrap();
    let program = Program::new(Device::current().unwrap())
        .recorded(&[x.spec().clone()], &|arguments| {
            let y = deep(&arguments[0], &arguments[0])?;
            Ok(vec![y.greater(0.0)?.cast(tf::DType::I32)?, y.reduce_sum(())?])
        })
        .unwrap();
    let (concrete, tapes) = (Concrete::new(program), OuterTapes::default());
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    let results = tapes.call(&concrete, std::slice::from_ref(&x)).unwrap();
    assert_eq!(results[0].to_vec::<i32>().unwrap(), [1, 0]);
    let own = tape.required_gradient(&results[1], &x).unwrap();
    let tape = GradientTape::new();
    tape.watch(&x).unwrap();
    let y = deep(&x, &x).unwrap().reduce_sum(()).unwrap();
    close(&own, &tape.required_gradient(&y, &x).unwrap());
    let halves = tapes.halves.lock().unwrap().values().next().cloned().flatten().unwrap();
    assert!(halves.backward.of_ones.get().is_some_and(Option::is_some));
}

#[test]
fn a_custom_gradient_inside_of_a_function_is_used() {
    let x = tf::constant([0.3, -1.2]).unwrap();
    let clipped =
        tf::custom_gradient(|x: &Tensor| Ok((x.exp()?, |dy: &Tensor| dy.clip_by_value(-0.1, 0.1))));
    let f = |x: &Tensor| deep(&clipped(x)?, x);
    let (concrete, tapes) = traced(&x, &f);
    let gradient = |f: &dyn Fn() -> Result<Tensor>| {
        let tape = GradientTape::new();
        tape.watch(&x).unwrap();
        tape.required_gradient(f().unwrap(), &x).unwrap()
    };
    let own = gradient(&|| Ok(tapes.call(&concrete, std::slice::from_ref(&x))?.remove(0)));
    close(&own, &gradient(&|| f(&x)));
    assert_eq!(pairs(&tapes), (1, 0));
}

#[cfg(feature = "keras")]
#[test]
fn a_model_that_is_a_function_trains_under_a_tape_as_in_eager_code() {
    use tf::Trackable;
    use tf::keras::layers::{BatchNormalization, Dense, Layer};
    use tf::keras::optimizers::{Adam, Optimizer};
    use tf::keras::{Activation, Sequential, TRAINING};

    let x = tf::random::Generator::from_seed(1).normal([32, 8]).unwrap();
    let y = x.reduce_sum(1).unwrap().sin().unwrap().reshape([32, 1]).unwrap();
    let model = || {
        let hidden = Dense::new(16).activation(Activation::Tanh);
        let model = Sequential::new().add(hidden).add(BatchNormalization::new()).add(Dense::new(1));
        model.call(&x, TRAINING).unwrap();
        Arc::new(model)
    };
    let train = |model: &Sequential, predict: &dyn Fn(&Tensor) -> Result<Tensor>| -> Vec<f32> {
        let adam = Adam::new(0.01);
        let step = || {
            let tape = GradientTape::new();
            let loss = predict(&x)?.subtract(&y)?.square()?.reduce_mean(())?;
            adam.minimize(&loss, tape, model)?;
            loss.item::<f32>()
        };
        (0..50).map(|_| step().unwrap()).collect()
    };
    let (first, second) = (model(), model());
    for (from, to) in first.variables().iter().zip(second.variables()) {
        to.assign(from.peek()).unwrap();
    }
    let eager = train(&first, &|x| first.call(x, TRAINING));
    let function = tf::function({
        let model = second.clone();
        move |x: Tensor| model.call(&x, TRAINING)
    });
    let by_function = train(&second, &|x| function(x.clone()));
    assert_eq!(function.tracing_count(), 1);
    assert!(eager[49] < 0.5 * eager[0], "{eager:?}");
    for (step, (a, b)) in eager.iter().zip(&by_function).enumerate() {
        assert!((a - b).abs() <= 1e-3 * a.abs() + 1e-5, "step {step}: {a} and {b}");
    }
    // The moving averages, too.
    for (a, b) in first.variables().iter().zip(second.variables()) {
        let (a, b) = (a.read().to_vec::<f32>().unwrap(), b.read().to_vec::<f32>().unwrap());
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-3 * (1.0 + a.abs())));
    }
}

#[test]
fn residuals_live_as_long_as_the_tape() -> Result<()> {
    let device = Device::open(&Default::default())?;
    device.scope(|| {
        let x = Tensor::ones([1 << 16])?;
        let (concrete, tapes) = traced(&x, &|x| deep(x, &x.cos()?)?.reduce_mean(()));
        let live = || device.flush().map(|()| device.stats().live_bytes);
        let start = live()?;
        let mut held = Vec::new();
        for _ in 0..20 {
            let tape = GradientTape::new();
            tape.watch(&x)?;
            let y = tapes.call(&concrete, std::slice::from_ref(&x))?.remove(0);
            held.push(live()?);
            tape.required_gradient(&y, &x)?;
        }
        // The sines and products of one run.
        assert!(held.iter().all(|held| *held > start + (5 << 18)), "{held:?} and {start}");
        assert_eq!(held[19], held[1]);
        assert_eq!(live()?, start);
        assert_eq!(pairs(&tapes), (1, 0));
        Ok(())
    })
}
