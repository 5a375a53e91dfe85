//! Runs a golden case in one of three ways.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use wgrad::Trackable;
use wgrad::{Device, GradientTape, Tensor, TensorOrVariable};

use super::call::{Answer, Call, Stop, to_tensor};
use super::calls;
use super::oracle::{Case, Oracle};
use super::sheet::{Excused, Sheet};
use super::{derivatives, keras, sequence_layers};

/// How the case's ops are combined in plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Results are read before gradients are computed: forward, backward and second order run separately, fused.
    Fused,
    /// The same, with one kernel per op.
    Unfused,
    /// Nothing is read before everything is called: forward, backward and second order are one flush, fused.
    Late,
}

impl Way {
    pub const ALL: [Way; 3] = [Way::Fused, Way::Unfused, Way::Late];

    /// How often the case runs: the first run of a structure may use single ops, and repetitions are fused.
    pub fn runs(self) -> usize {
        if self == Way::Unfused { 1 } else { 2 }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Way::Fused => "fused",
            Way::Unfused => "unfused",
            Way::Late => "late",
        })
    }
}

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    Run,
    /// wgrad does not support this attribute or argument, or the op ("").
    Lacks(String),
    /// Like `Lacks`, but composed of other functions and compared.
    Composed(String),
}

/// Runs the case on `device`, which has the fusion mode of this way. Returns its fate and the differences.
pub fn run(
    golden: &Oracle,
    case: &Case,
    device: &Device,
    way: Way,
    excused: &mut Excused,
) -> (Fate, Vec<String>) {
    let mut fate = Fate::Run;
    for turn in 0..way.runs() {
        // In a late case the device does not split the stream itself, so that only calls cause ops to run.
        device.set_stream_limit((way == Way::Late).then_some(usize::MAX));
        let once = || device.scope(|| turn_of(golden, case, way, excused));
        let misses;
        (fate, misses) = catch_unwind(AssertUnwindSafe(once)).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
            (Fate::Run, vec![format!("it panicked: {text}")])
        });
        if !misses.is_empty() || matches!(fate, Fate::Lacks(_)) {
            let words = ["first run", "second run"][turn];
            return (fate, misses.into_iter().map(|miss| format!("{words}, {miss}")).collect());
        }
    }
    (fate, Vec::new())
}

fn turn_of(golden: &Oracle, case: &Case, way: Way, excused: &mut Excused) -> (Fate, Vec<String>) {
    let mut sheet = Sheet::new(case, way == Way::Late);
    let call = match Call::new(golden, case) {
        Ok(call) => call,
        Err(error) => return (Fate::Run, vec![format!("the inputs: {error}")]),
    };
    let done = check(&call, &mut sheet);
    let unread = call.unread();
    match (done, unread) {
        // An unsupported argument may be the reason for the failure.
        (Ok(()) | Err(Stop::Failed(_)), Some(key)) => return (Fate::Lacks(key), Vec::new()),
        (Err(Stop::Lacks(what)), _) => return (Fate::Lacks(what), Vec::new()),
        (Err(Stop::Failed(error)), None) => sheet.miss("call", error),
        (Ok(()), None) => {}
    }
    let fate = call.composed().map_or(Fate::Run, Fate::Composed);
    (fate, sheet.compare(golden, excused))
}

fn check(call: &Call, sheet: &mut Sheet) -> Answer<()> {
    let op = call.case.op.as_str();
    match op {
        "tf.GradientTape" => derivatives::tape_behaviour(call, sheet),
        "initializer limits" => keras::initialize(call, sheet),
        _ if op.starts_with("keras.optimizers.schedules.") => {
            keras::optimizers::schedule(call, sheet)
        }
        _ if op.starts_with("keras.optimizers.") => keras::optimizers::optimize(call, sheet),
        _ if op.starts_with("keras.metrics.") => keras::metrics::measure(call, sheet),
        _ => function(call, sheet),
    }
}

/// A source of gradients: the argument (or `weight:<name>`), the index of its tensor, and the tensor or variable for the tape.
type Source = (String, usize, TensorOrVariable);

/// A function or a layer: results, gradients, second order.
fn function(call: &Call, sheet: &mut Sheet) -> Answer<()> {
    let (golden, case) = (call.golden, call.case);
    let stored = |name: &str| golden.tensor(case, name);
    let over_sequences = sequence_layers::layer(call)?;
    let layer = match case.op.starts_with("keras.layers.") && over_sequences.is_none() {
        true => Some(keras::layers::layer(call)?),
        false => None,
    };
    let training = layer.is_some() && call.flag("training")?;
    let mut sources: Vec<Source> = Vec::new();
    for (key, tensors) in call.tensors() {
        let floats = tensors.iter().enumerate().filter(|(_, x)| x.dtype().is_float());
        sources.extend(floats.map(|(i, x)| (key.clone(), i, TensorOrVariable::Tensor(x.clone()))));
    }
    let variables = match (&layer, &over_sequences) {
        (Some(layer), _) => layer.variables(),
        (None, Some(layer)) => layer.variables.clone(),
        (None, None) => Vec::new(),
    };
    for (variable, (key, _)) in variables.iter().zip(&case.weights) {
        let source = TensorOrVariable::Variable(variable.clone());
        sources.push((format!("weight:{key}"), 0, source));
    }

    // Creating a layer's weights has run ops. From here on nothing runs in a late case.
    let device = Device::current()?;
    let flushes = device.stats().flushes;
    differentiate(call, sheet, &sources, || match (&layer, &over_sequences) {
        (Some(layer), _) => Ok(vec![layer.call(call.x()?, training.into())?]),
        (None, Some(layer)) => layer.call(call),
        (None, None) if case.op.starts_with("keras.losses.") => keras::losses::call(call),
        (None, None) => calls::call(call),
    })?;
    for (key, name) in &case.state_after {
        let at = case.weights.iter().position(|(weight, _)| weight == key);
        let variable = at.and_then(|at| variables.get(at));
        sheet.add(&format!("after.{key}"), &call.need(key, variable)?.read(), &stored(name));
    }
    let waits = sheet.is_late() && !wgrad_syncs() && !COUNTED.contains(&case.op.as_str());
    if waits && device.stats().flushes != flushes {
        sheet.miss("late", "a call asked for a run before all was called");
    }
    Ok(())
}

/// The ops that read the size of their result from the device. `where` with three arguments does not, but has the same name.
const COUNTED: &[&str] = &[
    "tf.where",
    "tf.boolean_mask",
    "tf.unique",
    "tf.unique_with_counts",
    "tf.math.bincount",
    "tf.math.segment_sum",
    "tf.math.segment_mean",
    "tf.math.segment_prod",
    "tf.math.segment_max",
    "tf.math.segment_min",
];

/// Whether every op runs when it is called, which makes late cases impossible.
fn wgrad_syncs() -> bool {
    std::env::var_os("WGRAD_EAGER_SYNC").is_some()
}

/// Records results, gradients and second order of `forward`.
fn differentiate(
    call: &Call,
    sheet: &mut Sheet,
    sources: &[Source],
    forward: impl FnOnce() -> Answer,
) -> Answer<()> {
    let (golden, case) = (call.golden, call.case);
    let stored = |name: &str| golden.tensor(case, name);
    let asked: Vec<TensorOrVariable> = sources.iter().map(|(_, _, what)| what.clone()).collect();
    let (outer, tape) = (GradientTape::new(), GradientTape::new());
    for what in &asked {
        if let TensorOrVariable::Tensor(x) = what {
            outer.watch(x)?;
            tape.watch(x)?;
        }
    }
    let results = forward()?;
    if results.len() != case.outputs.len() {
        let want = case.outputs.len();
        sheet.miss("out", format!("{} results, wanted {want}", results.len()));
        return Ok(());
    }
    for ((key, name), result) in case.outputs.iter().zip(&results) {
        sheet.add(&format!("out.{key}"), result, &stored(name));
    }
    if case.upstream.is_empty() {
        return Ok(());
    }

    let mut targets = Vec::new();
    let mut seeds = Vec::new();
    for (key, name) in &case.upstream {
        let at = case.outputs.iter().position(|(output, _)| output == key);
        targets.push(&results[call.need(key, at)?]);
        seeds.push(to_tensor(&stored(name))?);
    }
    let seeds: Vec<&Tensor> = seeds.iter().collect();
    let grads = tape.gradient_from(&targets[..], Some(&seeds), asked.clone())?;
    let place = |key: &str, i: usize| {
        let at = sources.iter().position(|(known, j, _)| known == key && *j == i);
        call.need(key, at)
    };
    for (key, names) in &case.grads {
        for (i, name) in names.iter().enumerate() {
            let role =
                if names.len() == 1 { format!("grad.{key}") } else { format!("grad.{key}.{i}") };
            match &grads[place(key, i)?] {
                Some(grad) => sheet.add(&role, grad, &stored(name)),
                None => sheet.miss(&role, "no gradient"),
            }
        }
    }
    for key in &case.none_grads {
        let own = sources.iter().zip(&grads).filter(|((known, ..), _)| known == key);
        if own.into_iter().any(|(_, grad)| grad.is_some()) {
            sheet.miss(&format!("grad.{key}"), "a gradient where TensorFlow has none");
        }
    }
    if case.upstream2.is_empty() {
        return Ok(());
    }

    let mut targets = Vec::new();
    let mut seeds = Vec::new();
    for (key, name) in &case.upstream2 {
        let Some(grad) = &grads[place(key, 0)?] else {
            sheet.miss(&format!("grad2.{key}"), "there is no gradient to go on from");
            return Ok(());
        };
        targets.push(grad);
        seeds.push(to_tensor(&stored(name))?);
    }
    let seeds: Vec<&Tensor> = seeds.iter().collect();
    let grads2 = outer.gradient_from(&targets[..], Some(&seeds), asked.clone())?;
    for (key, name) in &case.grads2 {
        let role = format!("grad2.{key}");
        let want = stored(name);
        match &grads2[place(key, 0)?] {
            Some(grad) => sheet.add(&role, grad, &want),
            // A gradient that does not depend on the input: zero and none are equivalent.
            None if want.as_f64().iter().all(|&v| v == 0.0) => {}
            None => sheet.miss(&role, "no gradient"),
        }
    }
    for key in &case.none_grads2 {
        if let Some(grad) = &grads2[place(key, 0)?] {
            sheet.add_zeros(&format!("grad2.{key}"), grad);
        }
    }
    Ok(())
}
