//! Tests of concrete functions and of the options: which traces there are, and what they refuse.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::dtype::DType;
use crate::function::{FunctionOptions, function, function_with};
use crate::tensor::constant;
use crate::variable::Variable;

fn vec(x: &Tensor) -> Vec<f32> {
    x.to_vec().unwrap()
}

fn ones(count: usize) -> Tensor {
    Tensor::ones([count]).unwrap()
}

#[test]
fn a_concrete_function_runs_with_present_variables() -> Result<()> {
    let (total, rate) = (Variable::new(constant(0.0)?), constant(10.0)?);
    let unused = Variable::new(constant(1.0)?);
    let f = function({
        let total = total.clone();
        move |x: Tensor, scale: f32| {
            // Nothing needs it, so the trace does not have it.
            unused.read().exp()?;
            total.assign_add(x.reduce_sum(())?)?;
            Ok((total.read().multiply(scale)?, x.multiply(&rate)?))
        }
    });
    let concrete = f.get_concrete_function((ones(3), 2.0))?;
    assert_eq!((total.read().item::<f32>()?, f.tracing_count()), (0.0, 1));
    let text = concrete.pretty_printed_signature();
    assert_eq!(text, "(f32[3], 2.0) -> (f32[], f32[3])");
    assert_eq!(concrete.inputs(), [TensorSpec::new([Some(3)], DType::F32)]);
    let outputs = [TensorSpec::new([], DType::F32), TensorSpec::new([Some(3)], DType::F32)];
    assert_eq!(concrete.outputs(), outputs);
    assert_eq!((concrete.variables().len(), concrete.captured_inputs().len()), (1, 1));
    let results = concrete.call(&[ones(3)])?;
    assert_eq!((vec(&results[0]), vec(&results[1])), (vec![6.0], vec![10.0; 3]));
    // The function and the handle share the trace.
    assert_eq!(vec(&f(ones(3), 2.0)?.0), [12.0]);
    assert_eq!(f.tracing_count(), 1);
    // The handle keeps the trace alive.
    drop(f);
    total.assign(&constant(100.0)?)?;
    assert_eq!(vec(&concrete.call(&[ones(3)])?[0]), [206.0]);
    Ok(())
}

#[test]
fn a_concrete_function_refuses_other_inputs() -> Result<()> {
    let f = function(|x: Tensor| x.square());
    let concrete = f.get_concrete_function((ones(2),))?;
    let error = concrete.call(&[]).unwrap_err();
    assert!(
        matches!(&error, Error::Shape(text) if text.contains("got 0 tensors, but (f32[2]) takes 1")),
        "{error}"
    );
    let error = concrete.call(&[ones(3)]).unwrap_err();
    assert!(
        matches!(&error, Error::Shape(text) if text.contains("input 0 is f32[3], but the function was traced for f32[2]")),
        "{error}"
    );
    let error = concrete.call(&[constant([1, 2])?]).unwrap_err();
    assert!(matches!(&error, Error::DType(text) if text.contains("input 0 is i32[2]")), "{error}");
    Ok(())
}

#[test]
fn a_concrete_function_is_a_part_of_another_one() -> Result<()> {
    let square = function(|x: Tensor| x.square());
    let concrete = square.get_concrete_function((ones(2),))?;
    let outer = function(move |x: Tensor| concrete.call(&[x.add(1.0)?])?[0].add(0.5));
    assert_eq!(vec(&outer(ones(2))?), [4.5, 4.5]);
    assert_eq!(vec(&outer(constant([2.0, 3.0])?)?), [9.5, 16.5]);

    let inner = function(|x: Tensor| x.add(1.0));
    let refused = function(move |x: Tensor| Ok(inner.get_concrete_function((x,))?.outputs().len()));
    let error = refused(ones(2)).unwrap_err();
    assert!(
        matches!(&error, Error::Trace(text) if text.contains("while another function is traced")),
        "{error}"
    );
    Ok(())
}

#[cfg(not(target_family = "wasm"))]
#[test]
fn a_trace_with_a_loop_is_no_part_of_another_one() -> Result<()> {
    let f = function(|n: Tensor| {
        crate::while_loop(|x: &Tensor| x.less(&n), |x| x.multiply(2.0), constant(1.0)?)
    });
    let concrete = f.get_concrete_function((constant(10.0)?,))?;
    assert_eq!(vec(&concrete.call(&[constant(100.0)?])?[0]), [128.0]);
    let outer = function(move |x: Tensor| Ok(concrete.call(&[x])?.remove(0)));
    let error = outer(constant(10.0)?).unwrap_err();
    assert!(
        matches!(&error, Error::Trace(text) if text.contains("Call the Function in its place")),
        "{error}"
    );
    Ok(())
}

#[test]
fn an_input_signature_is_checked() -> Result<()> {
    let signature =
        vec![TensorSpec::new([None, Some(2)], DType::F32), TensorSpec::new([], DType::I32)];
    let options = FunctionOptions::new().input_signature(signature);
    let f = function_with(
        |xs: Vec<Tensor>| match &xs[..] {
            [x, n] => x.multiply(n.cast(DType::F32)?),
            _ => unreachable!("the signature has two tensors"),
        },
        options,
    );
    for rows in 1..10 {
        let x = Tensor::ones([rows, 2])?;
        assert_eq!(vec(&f(vec![x, constant(3)?])?), vec![3.0; rows * 2]);
    }
    assert_eq!(f.tracing_count(), 9);
    let error = f(vec![ones(2)]).unwrap_err();
    assert!(
        matches!(&error, Error::Shape(text) if text.contains("the arguments have 1 tensors, but its input_signature (f32[?, 2], i32[]) has 2")),
        "{error}"
    );
    let error = f(vec![ones(2), constant(3)?]).unwrap_err();
    assert!(
        matches!(&error, Error::Shape(text) if text.contains("tensor 0 of the arguments is f32[2]")),
        "{error}"
    );
    let x = Tensor::ones([1, 2])?;
    let error = f(vec![x, constant(3.0)?]).unwrap_err();
    assert!(
        matches!(&error, Error::DType(text) if text.contains("tensor 1 of the arguments is f32[]")),
        "{error}"
    );
    assert_eq!(f.tracing_count(), 9);
    Ok(())
}

#[test]
fn reduce_retracing_traces_at_the_second_call() -> Result<()> {
    let runs = std::sync::Arc::new(AtomicUsize::new(0));
    let total = Variable::new(constant(0.0)?);
    let f = function_with(
        {
            let (runs, total) = (runs.clone(), total.clone());
            move |x: Tensor| {
                runs.fetch_add(1, Ordering::Relaxed);
                total.assign_add(x.reduce_sum(())?)?;
                total.read().add(0.5)
            }
        },
        FunctionOptions::new().reduce_retracing(true),
    );
    let mut sum = 0.0;
    let mut call = |count: usize| -> Result<(usize, usize)> {
        sum += count as f32;
        assert_eq!(vec(&f(ones(count))?), [sum + 0.5]);
        Ok((f.tracing_count(), runs.load(Ordering::Relaxed)))
    };
    assert_eq!(call(2)?, (1, 1));
    assert_eq!(call(2)?, (1, 1));
    // A size that occurs once is not traced, one that occurs again is.
    assert_eq!(call(3)?, (1, 2));
    assert_eq!(call(4)?, (1, 3));
    assert_eq!(call(3)?, (2, 4));
    assert_eq!(call(3)?, (2, 4));
    // Far more sizes than are remembered.
    for count in 10..1200 {
        call(count)?;
    }
    assert_eq!(call(3)?.0, 2);
    Ok(())
}

/// The sum of the first elements.
#[crate::function(crate = crate)]
fn head_sum(mut count: u32, x: Tensor) -> Result<Tensor> {
    let mut sum = constant(0.0)?;
    while count > 0 {
        count -= 1;
        sum = sum.add(x.slice(&[count as usize], &[1])?.squeeze(())?)?;
    }
    Ok(sum)
}

#[crate::function(crate = crate)]
pub(crate) fn pi() -> Result<Tensor> {
    constant(3.5)
}

#[test]
fn an_fn_is_a_function() -> Result<()> {
    let x = constant([1.0, 2.0, 4.0])?;
    assert_eq!(vec(&head_sum(2, x.clone())?), [3.0]);
    assert_eq!(vec(&head_sum(3, x.clone())?), [7.0]);
    assert_eq!(vec(&head_sum(2, x)?), [3.0]);
    assert_eq!(head_sum.tracing_count(), 2);
    assert_eq!(vec(&pi()?), [3.5]);
    Ok(())
}

#[test]
fn generators_of_the_closure_start_again_at_each_run() -> Result<()> {
    use crate::random::Generator;
    let draw = |parent: &Generator, kept: &Generator, own: &std::sync::OnceLock<Generator>| {
        let local = Generator::from_seed(7);
        let split = parent.split();
        kept.reset_from_seed(3);
        let own = own.get_or_init(|| Generator::from_seed(11));
        let all = [&local, &local, &split, kept, own];
        all.into_iter().map(|generator| generator.normal([2])).collect::<Result<Vec<Tensor>>>()
    };
    let new = || (Generator::from_seed(1), Generator::from_seed(2), std::sync::OnceLock::new());
    let (parent, kept, own) = new();
    let f = function(move || draw(&parent, &kept, &own));
    let (parent, kept, own) = new();
    for _ in 0..4 {
        let (traced, eager) = (f()?, draw(&parent, &kept, &own)?);
        for (traced, eager) in traced.iter().zip(&eager) {
            assert_eq!(vec(traced), vec(eager));
        }
    }
    Ok(())
}

#[test]
fn a_read_in_a_trace_is_refused_with_its_line() -> Result<()> {
    let f = function(|x: Tensor| if x.item::<f32>()? > 0.0 { Ok(x) } else { x.negative() });
    let line = line!() - 1;
    let error = f(constant(1.0)?).unwrap_err();
    let place = format!("(It is read at src/function/concrete_function_tests.rs:{line}:");
    assert!(matches!(&error, Error::Trace(text) if text.contains(&place)), "{error}");
    Ok(())
}

#[test]
fn a_trace_is_drawn_with_frames_around_its_blocks() {
    let f = crate::function(|x: Tensor, n: Tensor| {
        let start = (crate::constant(0)?, x.square()?);
        let body = |(i, y): (Tensor, Tensor)| Ok((i.add(1)?, y.multiply(&x)?));
        let (_, y) = crate::while_loop(|(i, _)| i.less(&n), body, start)?;
        y.add("a < b".len() as f32)
    });
    let arguments = (crate::constant([1.0, 2.0]).unwrap(), crate::constant(3).unwrap());
    let svg = f.get_concrete_function(arguments).unwrap().to_svg();
    assert!(svg.contains("<title>(f32[2], i32[]) -&gt; f32[2]</title>"), "{svg}");
    // Arguments; the start, the loop and its results; the sum.
    assert_eq!(svg.matches("class=\"model\"").count(), 3, "{svg}");
    assert_eq!(svg.matches("row: square").count(), 1, "{svg}");
    assert_eq!(svg.matches(">return<").count(), 3, "{svg}");
    assert!(svg.ends_with("</svg>\n"));
    let error = f
        .get_concrete_function((crate::constant([1.0, 2.0]).unwrap(), crate::constant(3).unwrap()));
    let error = error.unwrap().plan().unwrap_err();
    assert!(
        error.to_string().starts_with("ConcreteFunction::plan: the function has branches or loops"),
        "{error}"
    );
}

#[test]
fn a_trace_has_its_plan_before_it_runs() {
    let f = crate::function(|x: Tensor| x.matmul(&x)?.exp()?.add(2.0));
    let x = Tensor::ones([32, 32]).unwrap();
    let concrete = f.get_concrete_function((x.clone(),)).unwrap();
    let plan = concrete.plan().unwrap();
    let ops: Vec<_> = plan.kernels().iter().flat_map(|kernel| kernel.ops.clone()).collect();
    assert_eq!(ops, ["MatMul", "Exp", "AddV2"], "{plan}");
    assert!(plan.wgsl().contains("exp("), "{}", plan.wgsl());
    let made = concrete.call(&[x]).unwrap()[0].to_vec::<f32>().unwrap()[0];
    assert!((made / 32f32.exp() - 1.0).abs() < 1e-6, "{made}");
}

#[cfg(all(feature = "saved-plans", feature = "keras"))]
mod saved_plans {
    use std::collections::HashSet;

    use super::*;
    use crate::Device;
    use crate::keras::layers::Dense;
    use crate::keras::optimizers::{Adam, Optimizer};
    use crate::keras::{Activation, Layer, Sequential, TRAINING};
    use crate::ops::{Conv2dOptions, Padding};
    use crate::plan::saved::sealed_again;
    use crate::trackable::Trackable;

    /// A training step on a device of its own.
    struct Step {
        device: Device,
        function: crate::Function<dyn Fn(Tensor) -> Result<Tensor> + Send + Sync>,
        x: Tensor,
    }

    impl Step {
        fn new(units: usize) -> Self {
            let device = Device::new().unwrap();
            let (function, x) = device.scope(|| {
                let model = Sequential::new()
                    .add(Dense::new(units).activation(Activation::Tanh))
                    .add(Dense::new(1));
                model.build([4, 3]).unwrap();
                let weights: Vec<_> = model.get_weights().unwrap();
                let weights: Vec<_> =
                    weights.iter().map(|w| w.mapv(|_| 0.25_f32) * w.len() as f32 / 16.0).collect();
                model.set_weights(&weights).unwrap();
                let adam = Adam::new(0.01);
                let function = crate::function(move |x: Tensor| {
                    let tape = crate::GradientTape::new();
                    let loss = model.call(&x, TRAINING)?.subtract(1.0)?.square()?.reduce_mean(())?;
                    adam.minimize(&loss, tape, &model)?;
                    Ok(loss)
                });
                let x: Vec<f32> = (0..12).map(|i| (i as f32).sin()).collect();
                (function, Tensor::from_slice(&x, [4, 3]).unwrap())
            });
            Step { device, function, x }
        }

        fn concrete(&self) -> ConcreteFunction {
            self.function.get_concrete_function((self.x.clone(),)).unwrap()
        }

        fn losses(&self) -> Vec<f32> {
            (0..4).map(|_| (self.function)(self.x.clone()).unwrap().item().unwrap()).collect()
        }
    }

    fn bytes(step: &Step) -> Vec<u8> {
        step.concrete().trace.concrete().plan_bytes().unwrap()
    }

    fn used(step: &Step, bytes: &[u8]) -> bool {
        step.concrete().trace.concrete().use_plan_bytes(bytes).is_ok()
    }

    /// What the steps of a new model did that runs by these plans.
    struct Ran {
        losses: Vec<f32>,
        /// How many plans it made.
        planned: u64,
        pipelines: u64,
        kernels: String,
    }

    fn ran_by(bytes: &[u8]) -> Ran {
        let step = Step::new(8);
        step.device.flush().unwrap();
        assert!(used(&step, bytes));
        let before = step.device.stats();
        let losses = step.losses();
        let after = step.device.stats();
        assert_eq!(after.flushes, before.flushes + 4);
        Ran {
            losses,
            planned: after.plan_misses - before.plan_misses,
            pipelines: after.pipelines - before.pipelines,
            kernels: step.device.last_plan().unwrap().wgsl(),
        }
    }

    #[test]
    fn a_saved_plan_needs_no_planning_and_has_the_kernels_that_ran() {
        let first = Step::new(8);
        let before_the_first_run = bytes(&first);
        first.device.flush().unwrap();
        let before = first.device.stats();
        let losses = first.losses();
        let after = first.device.stats();
        assert!(losses[3] < losses[0]);
        // The plan that was made to be saved is the one that ran.
        assert_eq!(after.plan_misses, before.plan_misses);
        for bytes in [bytes(&first), before_the_first_run] {
            let ran = ran_by(&bytes);
            assert_eq!((ran.losses, ran.planned), (losses.clone(), 0));
            assert_eq!(ran.kernels, first.device.last_plan().unwrap().wgsl());
            assert_eq!(ran.pipelines, after.pipelines - before.pipelines);
        }
    }

    fn numbers(shape: [usize; 2]) -> Result<Tensor> {
        let values = (0..shape[0] * shape[1]).map(|i| (i as f32 * 0.7).sin() * 0.3);
        Tensor::from_slice(&values.collect::<Vec<f32>>(), shape)
    }

    fn convolutions(x: Tensor) -> Result<Tensor> {
        let x = x.reshape([1, 16, 20, 1])?;
        let options = Conv2dOptions::new().padding(Padding::Same);
        let y = x.conv2d(numbers([9, 4])?.reshape([3, 3, 1, 4])?, options)?.relu()?;
        let filters = numbers([36, 6])?.reshape([3, 3, 4, 6])?;
        let y = y.conv2d(filters, options.strides([2, 2]))?.relu()?;
        y.reduce_mean([0, 1, 2])?.reshape([1, 6])?.matmul(numbers([6, 3])?)
    }

    fn recurrence(x: Tensor) -> Result<Tensor> {
        let x = x.reshape([20, 16])?;
        let (own, of_input) = (numbers([8, 8])?, numbers([16, 8])?);
        let mut state = Tensor::zeros([1, 8])?;
        for step in 0..20 {
            let input = x.slice(&[step, 0], &[1, 16])?.matmul(&of_input)?;
            state = state.matmul(&own)?.add(&input)?.tanh()?;
        }
        Ok(state)
    }

    /// A device that has run a function, by given plans or its own.
    struct Forward {
        device: Device,
        function: crate::Function<dyn Fn(Tensor) -> Result<Tensor> + Send + Sync>,
        x: Tensor,
        results: Vec<Vec<f32>>,
        planned: u64,
        pipelines: u64,
    }

    impl Forward {
        fn new(model: fn(Tensor) -> Result<Tensor>, runs: usize, plans: Option<&[u8]>) -> Self {
            let device = Device::new().unwrap();
            let (function, x) = device.scope(|| {
                let x: Vec<f32> = (0..320).map(|i| (i as f32).cos()).collect();
                (crate::function(model), Tensor::from_slice(&x, [320]).unwrap())
            });
            let (results, planned, pipelines) = (Vec::new(), 0, 0);
            let mut forward = Forward { device, function, x, results, planned, pipelines };
            let concrete = forward.concrete();
            forward.device.flush().unwrap();
            if let Some(plans) = plans {
                concrete.trace.concrete().use_plan_bytes(plans).unwrap();
            }
            let before = forward.device.stats();
            for _ in 0..runs {
                let result = forward.call();
                forward.results.push(result);
            }
            let after = forward.device.stats();
            forward.planned = after.plan_misses - before.plan_misses;
            forward.pipelines = after.pipelines - before.pipelines;
            forward
        }

        fn concrete(&self) -> ConcreteFunction {
            self.function.get_concrete_function((self.x.clone(),)).unwrap()
        }

        fn call(&self) -> Vec<f32> {
            vec(&(self.function)(self.x.clone()).unwrap())
        }

        fn saved(&self) -> Vec<u8> {
            self.concrete().trace.concrete().plan_bytes().unwrap()
        }
    }

    #[test]
    fn a_plan_is_saved_as_it_ran_so_its_kernels_are_compiled() {
        for model in [convolutions, recurrence] as [fn(Tensor) -> Result<Tensor>; 2] {
            // The first run may have a kernel for each op.
            for runs in [1, 3, 12] {
                let first = Forward::new(model, runs, None);
                let ran = first.device.last_plan().unwrap();
                assert!(first.planned > 0);
                let plans = first.saved();
                // By the saved plan, the same device compiles nothing.
                first.concrete().trace.concrete().use_plan_bytes(&plans).unwrap();
                let compiled = first.device.stats().pipelines;
                assert_eq!(first.call(), first.results[runs - 1]);
                assert_eq!(first.device.stats().pipelines, compiled, "after {runs} runs");

                let next = Forward::new(model, 1, Some(&plans));
                assert_eq!((&next.results[0], next.planned), (&first.results[runs - 1], 0));
                assert_eq!(next.device.last_plan().unwrap().wgsl(), ran.wgsl());
                let texts: HashSet<&str> =
                    ran.kernels().iter().map(|kernel| &*kernel.wgsl).collect();
                assert_eq!(next.pipelines, texts.len() as u64, "after {runs} runs");
            }
        }
    }

    #[test]
    fn a_saved_plan_lasts_as_long_as_the_one_that_it_was() {
        const MANY: usize = 1000;
        let small: fn(Tensor) -> Result<Tensor> = |x| x.square()?.add(1.0);
        let first = Forward::new(small, 3, None);
        assert_eq!(first.planned, 1);
        let next = Forward::new(small, MANY, Some(&first.saved()));
        assert_eq!(next.planned, 0);
        // A processor's first plan is for a thousand runs; the plan after it is the last.
        let before = next.device.stats().plan_misses;
        next.call();
        let planned = next.device.stats().plan_misses - before;
        assert_eq!(planned, u64::from(next.device.caps().cpu));
        let last = Forward::new(small, MANY + 1, Some(&next.saved()));
        assert_eq!(last.planned, 0);
    }

    #[test]
    fn what_a_process_has_proven_does_not_matter() {
        let saving = Step::new(8);
        let declared = saving.device.caps().cooperative.clone();
        saving.device.change_caps(|caps| {
            caps.cooperative.iter_mut().for_each(|kind| kind.proven = true);
        });
        assert!(used(&Step::new(8), &bytes(&saving)));
        saving.device.change_caps(|caps| caps.cooperative.clear());
        assert!(used(&Step::new(8), &bytes(&saving)));
        // A device without what the adapter has is another.
        let precise = Step::new(8);
        precise.device.change_caps(|caps| caps.cooperative = declared);
        precise.device.change_caps(|caps| caps.groups -= 1);
        assert!(!used(&Step::new(8), &bytes(&precise)));
    }

    #[test]
    fn a_plan_of_something_else_or_a_damaged_one_is_left_alone() {
        let losses = Step::new(8).losses();
        let bytes = bytes(&Step::new(8));
        assert!(!used(&Step::new(9), &bytes));

        let other = Step::new(8);
        let mut tries: Vec<Vec<u8>> = vec![Vec::new(), b"something else".to_vec()];
        let version = format!("version {}", env!("CARGO_PKG_VERSION")).into_bytes();
        let at = bytes.windows(version.len()).position(|part| part == version).unwrap();
        let mut older = bytes.clone();
        older[at + version.len() - 1] ^= 1;
        tries.push(sealed_again(&older));
        tries.extend((0..bytes.len()).step_by(397).map(|length| bytes[..length].to_vec()));
        tries.extend((0..bytes.len()).step_by(389).map(|at| {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x11;
            damaged
        }));
        for (at, damaged) in tries.iter().enumerate() {
            assert!(!used(&other, damaged), "try {at} was used");
        }
        assert_eq!(other.losses(), losses);

        // With a right checksum, whatever the numbers say: they are checked, and nothing runs here.
        let numbers = Step::new(8);
        for at in (24..bytes.len()).step_by(59) {
            for bits in [0x01, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] ^= bits;
                let _ = used(&numbers, &sealed_again(&damaged));
            }
        }
    }

    #[test]
    fn names_of_plans_are_file_names() {
        let concrete = Step::new(8).concrete();
        for name in ["", "../step", "a/b", ".hidden", "naïve", &"x".repeat(101)] {
            for error in [concrete.load_plan(name).map(drop), concrete.save_plan(name)] {
                let error = error.unwrap_err().to_string();
                assert!(error.contains(&format!("'{name}' is no name for a plan")), "{error}");
            }
        }
    }
}
