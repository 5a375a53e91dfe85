//! Every golden case of TensorFlow's functions, through the public API: values, gradients, second order.
//!
//! A case holds to its own tolerance. What this crate has no function for stands in [`NOT_YET`], what it does
//! in another way in [`EXCEPTIONS`]; neither list may name anything that is not so.

#![allow(clippy::unwrap_used)]

#[path = "support/calls.rs"]
mod calls;
#[path = "support/formula.rs"]
mod formula;
#[path = "support/oracle.rs"]
mod oracle;

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use calls::{Args, call};
use ndarray::ArrayD;
use oracle::{Array, Case, Oracle};
use serde_json::Value;
use wgrad::{DType, Device, GradientTape, Result, Tensor};

/// Functions, or single cases, that this crate has nothing for.
const NOT_YET: &[(&str, &str)] = &[
    ("where_indices", "a result whose shape depends on values"),
    ("log1pexp_custom", "gradients written by the user"),
    (
        "initializer limits",
        "no function of tensors; the tests of the initializers have these numbers",
    ),
    ("keras.losses.SparseCategoricalCrossentropy", "the tests of keras run these"),
];

/// What the whole collection has beyond the selection in the repository.
const NOT_YET_IN_FULL: &[(&str, &str)] = &[
    ("conv2d_grouped", "no convolution or pool but of images"),
    ("keras.losses.BinaryCrossentropy", "the tests of keras run what there is"),
    ("keras.losses.CategoricalCrossentropy", "the tests of keras run what there is"),
    ("tf.argsort", "no sorting"),
    ("tf.boolean_mask", "a result whose shape depends on values"),
    ("tf.clip_by_global_norm", "no function of its own"),
    ("tf.clip_by_norm", "no function of its own"),
    ("tf.einsum", "products by a formula"),
    ("tf.gather_nd", "no gather or scatter by coordinates"),
    ("tf.linalg.band_part", "no function of its own"),
    ("tf.linalg.diag", "no function of its own"),
    ("tf.linalg.diag_part", "no function of its own"),
    ("tf.linalg.global_norm", "no function of its own"),
    ("tf.linalg.trace", "no function of its own"),
    ("tf.math.bincount", "no function of its own"),
    ("tf.math.cumprod", "running sums and products"),
    ("tf.math.cumsum", "running sums and products"),
    ("tf.math.segment_max", "unsorted_segment_sum alone"),
    ("tf.math.segment_mean", "unsorted_segment_sum alone"),
    ("tf.math.segment_min", "unsorted_segment_sum alone"),
    ("tf.math.segment_sum", "unsorted_segment_sum alone"),
    ("tf.math.top_k", "no sorting"),
    ("tf.math.unsorted_segment_max", "no sorting"),
    ("tf.math.unsorted_segment_mean", "no sorting"),
    ("tf.math.unsorted_segment_min", "no sorting"),
    ("tf.meshgrid", "no function of its own"),
    ("tf.nn.avg_pool1d", "no convolution or pool but of images"),
    ("tf.nn.conv1d", "no convolution or pool but of images"),
    ("tf.nn.conv2d_transpose", "no convolution or pool but of images"),
    ("tf.nn.conv3d", "no convolution or pool but of images"),
    ("tf.nn.depth_to_space", "no convolution or pool but of images"),
    ("tf.nn.max_pool1d", "no convolution or pool but of images"),
    ("tf.nn.space_to_depth", "no convolution or pool but of images"),
    ("tf.nn.weighted_cross_entropy_with_logits", "no function of its own"),
    ("tf.repeat", "no function of its own"),
    ("tf.roll", "no function of its own"),
    ("tf.scatter_nd", "no gather or scatter by coordinates"),
    ("tf.searchsorted", "no sorting"),
    ("tf.sequence_mask", "no function of its own"),
    ("tf.sort", "no sorting"),
    ("tf.tensor_scatter_nd_add", "no gather or scatter by coordinates"),
    ("tf.tensor_scatter_nd_max", "no gather or scatter by coordinates"),
    ("tf.tensor_scatter_nd_min", "no gather or scatter by coordinates"),
    ("tf.tensor_scatter_nd_sub", "no gather or scatter by coordinates"),
    ("tf.tensor_scatter_nd_update", "no gather or scatter by coordinates"),
    ("tf.tensordot", "products by a formula"),
];

/// Case, role and reason, where this crate means to give something else.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("sin_special", "out.0", HUGE_ANGLE),
    ("sin_special", "grad.x", HUGE_ANGLE),
    ("cos_special", "out.0", HUGE_ANGLE),
    ("cos_special", "grad.x", HUGE_ANGLE),
    ("tan_special", "out.0", HUGE_ANGLE),
    ("tan_special", "grad.x", HUGE_ANGLE),
    (
        "log1pexp_plain",
        "out.grad",
        "at 88 TensorFlow flushes the subnormal 1 / (1 + e^88) to 0; it need not be flushed, and the \
         gradient is then the right one",
    ),
];

const HUGE_ANGLE: &str =
    "at 1e30 the driver's sine is any number; WGSL promises one within -pi to pi alone";

const FAMILIES: [&str; 11] = [
    "unary",
    "binary",
    "reduction",
    "matmul",
    "conv",
    "pool",
    "softmax",
    "gather",
    "array",
    "higher_order",
    "random",
];

macro_rules! family_tests {
    ($($family:ident)*) => {$(
        #[test]
        fn $family() {
            let golden = Oracle::open(&oracle::data_dir().join("oracle"));
            report(run_family(&golden, stringify!($family)).failures);
        }
    )*};
}
// Each becomes a test that runs all cases of the family and then lists those that failed.
family_tests!(unary binary reduction matmul conv pool softmax gather array higher_order random);

#[test]
fn every_case_can_be_read() {
    let golden = Oracle::open(&oracle::data_dir().join("oracle"));
    for case in golden.all() {
        let lists = [&case.inputs, &case.grads];
        let lists = lists.into_iter().flatten().flat_map(|(_, names)| names);
        let singles = [
            &case.outputs,
            &case.upstream,
            &case.upstream2,
            &case.grads2,
            &case.weights,
            &case.state,
            &case.state_after,
        ];
        let singles = singles.into_iter().flatten().map(|(_, name)| name);
        for name in lists.chain(singles) {
            // Panics where there is none.
            golden.tensor(case, name);
        }
    }
}

#[test]
fn lists_name_nothing_that_is_not_so() {
    let golden = Oracle::open(&oracle::data_dir().join("oracle"));
    let in_families = |case: &&Case| FAMILIES.contains(&case.family.as_str());
    for (name, _) in NOT_YET {
        let of_name: Vec<&Case> =
            golden.all().iter().filter(in_families).filter(|c| is(c, name)).collect();
        assert!(!of_name.is_empty(), "NOT_YET: there is no {name}");
        for case in of_name {
            let outcome = run_case(&golden, case);
            assert!(outcome.missing, "NOT_YET: {name} has a counterpart by now");
        }
    }
    for (name, role, _) in EXCEPTIONS {
        let case = golden.all().iter().find(|case| case.name == *name);
        let case = case.unwrap_or_else(|| panic!("EXCEPTIONS: there is no {name}"));
        assert!(
            run_case(&golden, case).excused.contains(*role) || !on_lavapipe(),
            "EXCEPTIONS: {name} {role} agrees by now"
        );
    }
}

#[test]
#[ignore = "needs the full oracle: set WGRAD_ORACLE"]
fn full_collection() {
    let golden = Oracle::open(&oracle::default_dir());
    let mut failures = Vec::new();
    let mut missing = BTreeSet::new();
    for family in FAMILIES {
        let outcome = run_family(&golden, family);
        let (ran, failed) = (outcome.ran, outcome.failures.len());
        println!("{family}: {ran} of {} cases ran, {failed} failures", golden.cases(family).len());
        failures.extend(outcome.failures);
        missing.extend(outcome.missing);
    }
    for (name, _) in NOT_YET_IN_FULL {
        if !missing.contains(*name) {
            failures.push(format!("NOT_YET_IN_FULL: {name} is not missing"));
        }
    }
    report(failures);
}

fn report(failures: Vec<String>) {
    assert!(failures.is_empty(), "{} failures:\n  {}", failures.len(), failures.join("\n  "));
}

/// The driver on which the exceptions were seen; others flush subnormals or turn huge angles in ways of their own.
fn on_lavapipe() -> bool {
    Device::current().is_ok_and(|device| device.adapter().name.contains("llvmpipe"))
}

fn is(case: &Case, op_or_name: &str) -> bool {
    case.op == op_or_name || case.name == op_or_name
}

#[derive(Default)]
struct Family {
    ran: usize,
    failures: Vec<String>,
    /// Entries of the lists that were met.
    missing: BTreeSet<&'static str>,
}

fn run_family(golden: &Oracle, family: &str) -> Family {
    let mut all = Family::default();
    for case in golden.cases(family) {
        let outcome = run_case(golden, case);
        all.failures.extend(outcome.failures);
        all.ran += usize::from(!outcome.missing);
        if outcome.missing {
            let mut lists = NOT_YET.iter().chain(NOT_YET_IN_FULL);
            match lists.find(|(name, _)| is(case, name)) {
                Some((name, _)) => _ = all.missing.insert(name),
                None => all.failures.push(format!(
                    "{}: {} has no counterpart and is not in NOT_YET",
                    case.name, case.op
                )),
            }
        }
    }
    all
}

#[derive(Default)]
struct Outcome {
    missing: bool,
    failures: Vec<String>,
    /// Roles that differ, as [`EXCEPTIONS`] says.
    excused: BTreeSet<String>,
}

impl Outcome {
    fn miss(&mut self, case: &Case, role: &str, what: impl std::fmt::Display) {
        if EXCEPTIONS.iter().any(|(name, at, _)| *name == case.name && *at == role) {
            self.excused.insert(role.to_owned());
        } else {
            self.failures.push(format!("{} ({}) {role}: {what}", case.name, case.op));
        }
    }

    fn compare(&mut self, case: &Case, role: &str, got: &Tensor, want: &Array) {
        if got.dtype().name() != want.dtype() {
            return self.miss(case, role, format!("{}, wanted {}", got.dtype(), want.dtype()));
        }
        match to_f64(got) {
            Ok(got) => {
                let (atol, rtol) = (case.tol.atol, case.tol.rtol);
                if let Some(what) = oracle::mismatch(&got, &want.as_f64(), atol, rtol) {
                    self.miss(case, role, what);
                }
            }
            Err(error) => self.miss(case, role, error),
        }
    }
}

fn to_f64(x: &Tensor) -> Result<ArrayD<f64>> {
    Ok(match x.dtype() {
        DType::F32 => x.to_array::<f32>()?.mapv(f64::from),
        DType::I32 => x.to_array::<i32>()?.mapv(f64::from),
        DType::Bool => x.to_array::<bool>()?.mapv(|b| f64::from(u8::from(b))),
        other => panic!("no case has {other}"),
    })
}

fn to_tensor(array: &Array) -> Tensor {
    match array {
        Array::F32(a) => Tensor::from_array(a),
        Array::I32(a) => Tensor::from_array(a),
        Array::U8(a) => Tensor::from_array(a),
        Array::Bool(a) => Tensor::from_array(a),
    }
    .unwrap()
}

fn run_case(golden: &Oracle, case: &Case) -> Outcome {
    let mut outcome = Outcome::default();
    let ran = catch_unwind(AssertUnwindSafe(|| check(golden, case, &mut outcome)));
    match ran {
        Ok(Ok(())) => {}
        Ok(Err(error)) => outcome.miss(case, "call", error),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            outcome.miss(case, "call", text);
        }
    }
    outcome
}

fn check(golden: &Oracle, case: &Case, outcome: &mut Outcome) -> Result<()> {
    if case.op == "tf.GradientTape" {
        return tape_behaviour(case, outcome);
    }
    let stored = |name: &str| golden.tensor(case, name);
    let tensors = |names: &[String]| names.iter().map(|name| to_tensor(&stored(name))).collect();
    let args: Args = case.inputs.iter().map(|(key, names)| (key.clone(), tensors(names))).collect();
    let floats: Vec<&Tensor> = args.values().flatten().filter(|x| x.dtype().is_float()).collect();

    let second = !case.upstream2.is_empty();
    let (outer, tape) = (GradientTape::new(), GradientTape::new());
    for x in &floats {
        outer.watch(*x)?;
        tape.watch(*x)?;
    }
    let Some(results) = call(case, &args)? else {
        outcome.missing = true;
        return Ok(());
    };
    if results.len() != case.outputs.len() {
        let what = format!("{} results, wanted {}", results.len(), case.outputs.len());
        outcome.miss(case, "out", what);
        return Ok(());
    }
    for ((key, name), result) in case.outputs.iter().zip(&results) {
        outcome.compare(case, &format!("out.{key}"), result, &stored(name));
    }
    if case.upstream.is_empty() {
        return Ok(());
    }

    let upstream: Vec<(usize, Tensor)> = case
        .upstream
        .iter()
        .map(|(key, name)| {
            let at = case.outputs.iter().position(|(output, _)| output == key).unwrap();
            (at, to_tensor(&stored(name)))
        })
        .collect();
    let targets: Vec<&Tensor> = upstream.iter().map(|(at, _)| &results[*at]).collect();
    let seeds: Vec<&Tensor> = upstream.iter().map(|(_, seed)| seed).collect();
    let grads = tape.gradient_from(&targets[..], Some(&seeds), &floats[..])?;
    let grad_of = |x: &Tensor| {
        let at = floats.iter().position(|f| std::ptr::eq(*f, x)).unwrap();
        grads[at].as_ref()
    };
    for (key, names) in &case.grads {
        for (i, (name, x)) in names.iter().zip(&args[key]).enumerate() {
            let role =
                if names.len() == 1 { format!("grad.{key}") } else { format!("grad.{key}.{i}") };
            match grad_of(x) {
                Some(grad) => outcome.compare(case, &role, grad, &stored(name)),
                None => outcome.miss(case, &role, "no gradient"),
            }
        }
    }
    for key in &case.none_grads {
        if args[key].iter().any(|x| grad_of(x).is_some()) {
            outcome.miss(case, &format!("grad.{key}"), "a gradient where TensorFlow has none");
        }
    }
    if !second {
        return Ok(());
    }

    let up2: Vec<(&Tensor, Tensor)> = case
        .upstream2
        .iter()
        .map(|(key, name)| (grad_of(&args[key][0]).unwrap(), to_tensor(&stored(name))))
        .collect();
    let targets: Vec<&Tensor> = up2.iter().map(|(grad, _)| *grad).collect();
    let seeds: Vec<&Tensor> = up2.iter().map(|(_, seed)| seed).collect();
    let grads2 = outer.gradient_from(&targets[..], Some(&seeds), &floats[..])?;
    let place = |key: &str| floats.iter().position(|f| std::ptr::eq(*f, &args[key][0])).unwrap();
    for (key, name) in &case.grads2 {
        let role = format!("grad2.{key}");
        match &grads2[place(key)] {
            Some(grad) => outcome.compare(case, &role, grad, &stored(name)),
            // A gradient that no longer depends on the input: zero and none say the same.
            None if stored(name).as_f64().iter().all(|&v| v == 0.0) => {}
            None => outcome.miss(case, &role, "no gradient"),
        }
    }
    for key in &case.none_grads2 {
        let Some(grad) = &grads2[place(key)] else { continue };
        if to_f64(grad)?.iter().any(|&v| v != 0.0) {
            outcome.miss(case, &format!("grad2.{key}"), "a gradient where TensorFlow has none");
        }
    }
    Ok(())
}

/// The statements that `values` has about tapes.
fn tape_behaviour(case: &Case, outcome: &mut Outcome) -> Result<()> {
    use wgrad::Variable;
    let mut got: BTreeMap<&str, Value> = BTreeMap::new();
    let item = |x: &Tensor| f64::from(x.item::<f32>().unwrap());
    let number = |x: &Option<Tensor>| x.as_ref().map_or(Value::Null, |x| item(x).into());
    let two = Variable::new(&Tensor::scalar(2f32)?);

    let x = Tensor::scalar(3f32)?;
    let tape = GradientTape::persistent();
    tape.watch(&x)?;
    let y = &x * &x;
    let z = &y * &y;
    let both = [number(&tape.gradient(&z, &x)?), number(&tape.gradient(&y, &x)?)];
    got.insert("persistent: x=3, y=x*x, z=y*y: dz/dx, dy/dx", both.to_vec().into());

    let tape = GradientTape::new();
    let grads = {
        let x0 = two.read();
        let sum = x0.square()? + x.square()?;
        let gradients = tape.gradient(&sum, [&x0, &x])?;
        vec![number(&gradients[0]), number(&gradients[1])]
    };
    got.insert("x0 Variable(2), x1 constant(3) unwatched, y=x0^2+x1^2: grads", grads.into());

    let tape = GradientTape::new();
    let targets = [two.read().square()?, 1.0 / &two];
    let sum = tape.gradient(&targets[..], &two)?;
    got.insert("two targets y0=x0^2, y1=1/x0 at 2: d(y0+y1)/dx0", number(&sum));

    let tape = GradientTape::new();
    let none = tape.gradient(&x.square()?, &two)?;
    got.insert("unconnected default", number(&none));
    let zeros = none.map_or_else(|| two.read().zeros_like(), Ok)?;
    got.insert("unconnected ZERO", item(&zeros).into());

    let tape = GradientTape::new();
    let five = tape.stop_recording(|| &two * 5.0);
    let out = two.read().square()? + five;
    let key = "stop_recording: out = x0*x0 + (x0*5 not recorded), d/dx0 at 2";
    got.insert(key, number(&tape.gradient(&out, &two)?));

    let tape = GradientTape::new();
    let mut s = Tensor::scalar(0f32)?;
    for i in 0..5 {
        s = if i % 2 == 0 { s + &two * i } else { s * &two };
    }
    let value = item(&s);
    let both = vec![value.into(), number(&tape.gradient(&s, &two)?)];
    got.insert("loop: s=0; i in 0..4: even s+=x0*i, odd s*=x0; s and ds/dx0 at 2", both.into());

    // TensorFlow warns and gives none; here the watch is the error.
    let watched = GradientTape::new().watch(&Tensor::scalar(3)?);
    got.insert("integer watched", if watched.is_err() { Value::Null } else { 0.into() });

    // Here the second call does not compile; the documentation of the tape tests that.
    let key = "second gradient of a non-persistent tape";
    let values = case.raw["values"].as_object().unwrap();
    got.insert(key, values[key].clone());

    let v = Variable::new(&Tensor::scalar(1f32)?);
    let tape = GradientTape::new();
    let a = &v * 2.0;
    v.assign(&Tensor::scalar(10f32)?)?;
    let b = &v * &a;
    let both = vec![item(&b).into(), number(&tape.gradient(&b, &v)?)];
    got.insert("v=1: a=v*2; v.assign(10); b=v*a: b, db/dv", both.into());

    for (key, want) in values {
        match got.get(key.as_str()) {
            Some(got) if got == want => {}
            got => outcome.miss(case, key, format!("got {got:?}, want {want}")),
        }
    }
    Ok(())
}
