//! The optimizers and schedules of Keras's golden cases.

use std::cell::RefCell;
use std::collections::HashSet;

use ndarray::Axis;
use serde_json::{Map, Value};
use wgrad::keras::optimizers::schedules::{
    CosineDecay, CosineDecayRestarts, ExponentialDecay, InverseTimeDecay, PiecewiseConstantDecay,
    PolynomialDecay, Schedule,
};
use wgrad::keras::optimizers::{
    Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Ftrl, Lamb, LearningRate, Lion, Muon, Nadam,
    Optimizer, RmsProp, Sgd,
};
use wgrad::{Trackable, Variable};

use super::super::call::{Answer, Call, Stop};
use super::super::oracle::Array;
use super::super::sheet::Sheet;

/// Makes the case's steps, and records the numbers after each.
pub fn optimize(c: &Call, sheet: &mut Sheet) -> Answer<()> {
    let optimizer = with_options(optimizer(c)?, c)?;
    let (mut variables, mut gradients, mut paths) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0.. {
        let key = format!("p{i}");
        let Ok(start) = c.arg(&key) else { break };
        variables.push(Variable::new(start));
        gradients.push(c.arg(&format!("g{i}"))?.unstack(0)?);
        paths.push(c.golden.tensor(c.case, &format!("out.{key}")).f32().clone());
    }
    // Additional options would be ignored.
    if let Some(key) = c.unread() {
        return Err(Stop::Lacks(key));
    }
    let steps = c.need("g0", gradients.first())?.len();
    for step in 0..=steps {
        for (i, (variable, path)) in variables.iter().zip(&paths).enumerate() {
            let want = Array::F32(path.index_axis(Axis(0), step).to_owned());
            sheet.add(&format!("p{i} after {step}"), &variable.read(), &want);
        }
        if step == steps {
            break;
        }
        let now: Vec<_> = gradients.iter().map(|g| Some(g[step].clone())).collect();
        optimizer.apply_gradients(&now, &variables)?;
    }
    let several = c.int("gradient_accumulation_steps")?.unwrap_or(1) as u64;
    if optimizer.iterations() != steps as u64 / several {
        sheet.miss("iterations", optimizer.iterations());
    }
    if let Some((_, name)) = c.case.state.iter().find(|(key, _)| key == "learning_rate") {
        let want = c.golden.tensor(c.case, name).f32().sum();
        if optimizer.learning_rate() != want {
            sheet.miss("state.learning_rate", optimizer.learning_rate());
        }
    }
    // Keras's `p0_momentum` is `momentum/0` here.
    let slots = optimizer.named_variables();
    let state: Vec<_> = c.case.state.iter().filter(|(key, _)| key.starts_with('p')).collect();
    let mut found = HashSet::new();
    for (name, slot) in &slots {
        let (kind, i) = name.split_once('/').unwrap_or_default();
        // Adafactor's rows and columns have the same name; the cases have the columns.
        let key = match kind {
            "r" => continue,
            "c" => format!("p{i}"),
            _ => format!("p{i}_{kind}"),
        };
        match state.iter().find(|(known, _)| *known == key) {
            Some((_, stored)) => {
                let want = c.golden.tensor(c.case, stored);
                sheet.add(&format!("state.{key}"), &slot.read(), &want);
                found.insert(key);
            }
            None => sheet.miss("state", format!("Keras has no '{key}'")),
        }
    }
    for (key, _) in state.iter().filter(|(key, _)| !found.contains(key)) {
        sheet.miss("state", format!("there is no '{key}'"));
    }
    Ok(())
}

fn optimizer(c: &Call) -> Answer<Box<dyn Optimizer>> {
    let key = "learning_rate";
    let rate = match c.value(key)? {
        Some(Value::Object(schedule)) => match schedule.iter().next() {
            Some((name, Value::Object(of))) => LearningRate::from(read_schedule(name, of)?),
            _ => return Err(Stop::Lacks(key.into())),
        },
        rate => c.need(key, rate.and_then(|rate| rate.as_f64()))?.into(),
    };
    // Passes each option to the setter of the same name.
    macro_rules! options {
        ($optimizer:expr; $($float:ident)*; $($flag:ident)*) => {{
            let mut optimizer = $optimizer;
            $(if let Some(value) = c.float(stringify!($float))? {
                optimizer = optimizer.$float(value);
            })*
            $(if c.value(stringify!($flag))?.is_some() {
                optimizer = optimizer.$flag(c.flag(stringify!($flag))?);
            })*
            Box::new(optimizer)
        }};
    }
    Ok(match c.case.op.trim_start_matches("keras.optimizers.") {
        "SGD" => options!(Sgd::new(rate); momentum; nesterov),
        "RMSprop" => options!(RmsProp::new(rate); rho momentum epsilon; centered),
        "Adam" => options!(Adam::new(rate); beta_1 beta_2 epsilon; amsgrad),
        "AdamW" => options!(AdamW::new(rate); beta_1 beta_2 epsilon; amsgrad),
        "Adamax" => options!(Adamax::new(rate); beta_1 beta_2 epsilon;),
        "Nadam" => options!(Nadam::new(rate); beta_1 beta_2 epsilon;),
        "Adagrad" => options!(Adagrad::new(rate); initial_accumulator_value epsilon;),
        "Adadelta" => options!(Adadelta::new(rate); rho epsilon;),
        "Ftrl" => options!(
            Ftrl::new(rate);
            learning_rate_power initial_accumulator_value l1_regularization_strength
            l2_regularization_strength l2_shrinkage_regularization_strength beta;
        ),
        "Lion" => options!(Lion::new(rate); beta_1 beta_2;),
        "Lamb" => options!(Lamb::new(rate); beta_1 beta_2 epsilon;),
        "Muon" => options!(
            Muon::new(rate);
            adam_beta_1 adam_beta_2 adam_weight_decay epsilon muon_a muon_b muon_c adam_lr_ratio momentum rms_rate;
            exclude_embeddings nesterov
        ),
        "Adafactor" => options!(
            Adafactor::new(rate);
            beta_2_decay epsilon_1 epsilon_2 clip_threshold; relative_step
        ),
        _ => return Err(Stop::Lacks(String::new())),
    })
}

/// The options that all optimizers have.
fn with_options(mut of: Box<dyn Optimizer>, c: &Call) -> Answer<Box<dyn Optimizer>> {
    let number = |key: &str| Ok::<_, Stop>(c.int(key)?.map(|number| number as u64));
    if let Some(value) = c.float("weight_decay")? {
        of = of.weight_decay(value);
    }
    if let Some(value) = c.float("clipnorm")? {
        of = of.clipnorm(value);
    }
    if let Some(value) = c.float("clipvalue")? {
        of = of.clipvalue(value);
    }
    if let Some(value) = c.float("global_clipnorm")? {
        of = of.global_clipnorm(value);
    }
    if c.flag("use_ema")? {
        of = of.use_ema(true);
    }
    if let Some(value) = c.float("ema_momentum")? {
        of = of.ema_momentum(value);
    }
    if let Some(value) = number("ema_overwrite_frequency")? {
        of = of.ema_overwrite_frequency(value);
    }
    if let Some(value) = c.float("loss_scale_factor")? {
        of = of.loss_scale_factor(value);
    }
    if let Some(value) = number("gradient_accumulation_steps")? {
        of = of.gradient_accumulation_steps(value);
    }
    Ok(of)
}

/// Evaluates the case's schedule at its steps.
pub fn schedule(c: &Call, sheet: &mut Sheet) -> Answer<()> {
    let name = c.case.op.trim_start_matches("keras.optimizers.schedules.");
    for key in c.case.attrs.keys() {
        c.value(key)?;
    }
    let schedule = read_schedule(name, &c.case.attrs)?;
    schedule.check()?;
    let list = |key: &str| {
        let list = c.case.raw.get(key).and_then(Value::as_array);
        c.need(key, list.map(|list| list.iter().filter_map(Value::as_f64).collect::<Vec<_>>()))
    };
    let (steps, values) = (list("steps")?, list("values")?);
    if steps.is_empty() || steps.len() != values.len() {
        sheet.miss("steps", format!("{} steps have {} values", steps.len(), values.len()));
    }
    for (step, want) in steps.into_iter().zip(values) {
        let got = schedule.at(step as u64);
        if c.case.tol.excess(got, want).is_some() {
            sheet.miss(&format!("step {step}"), format!("{got}, Keras has {want}"));
        }
    }
    Ok(())
}

/// A schedule from Keras's options.
fn read_schedule(name: &str, of: &Map<String, Value>) -> Answer<Box<dyn Schedule>> {
    let read = RefCell::new(HashSet::new());
    let value = |key: &'static str| {
        read.borrow_mut().insert(key);
        of.get(key).filter(|value| !value.is_null())
    };
    let lacks = |key: &str| Stop::Lacks(key.into());
    let maybe = |key: &'static str| value(key).and_then(Value::as_f64);
    let float = |key: &'static str| maybe(key).ok_or_else(|| lacks(key));
    let steps = |key: &'static str| value(key).and_then(Value::as_u64).ok_or_else(|| lacks(key));
    let flag = |key: &'static str| value(key).and_then(Value::as_bool).unwrap_or(false);
    let list = |key: &'static str| value(key).and_then(Value::as_array).ok_or_else(|| lacks(key));
    let start = "initial_learning_rate";
    let schedule: Box<dyn Schedule> = match name {
        "ExponentialDecay" => {
            let new =
                ExponentialDecay::new(float(start)?, steps("decay_steps")?, float("decay_rate")?);
            Box::new(new.staircase(flag("staircase")))
        }
        "InverseTimeDecay" => {
            let new =
                InverseTimeDecay::new(float(start)?, steps("decay_steps")?, float("decay_rate")?);
            Box::new(new.staircase(flag("staircase")))
        }
        "PiecewiseConstantDecay" => Box::new(PiecewiseConstantDecay::new(
            list("boundaries")?.iter().filter_map(Value::as_u64).collect::<Vec<_>>(),
            list("values")?.iter().filter_map(Value::as_f64).collect::<Vec<_>>(),
        )),
        "PolynomialDecay" => Box::new(
            PolynomialDecay::new(float(start)?, steps("decay_steps")?)
                .end_learning_rate(maybe("end_learning_rate").unwrap_or(1e-4))
                .power(maybe("power").unwrap_or(1.0))
                .cycle(flag("cycle")),
        ),
        "CosineDecay" => Box::new(
            CosineDecay::new(float(start)?, steps("decay_steps")?)
                .alpha(maybe("alpha").unwrap_or(0.0))
                .warmup_target(maybe("warmup_target"))
                .warmup_steps(value("warmup_steps").and_then(Value::as_u64).unwrap_or(0)),
        ),
        "CosineDecayRestarts" => Box::new(
            CosineDecayRestarts::new(float(start)?, steps("first_decay_steps")?)
                .t_mul(maybe("t_mul").unwrap_or(2.0))
                .m_mul(maybe("m_mul").unwrap_or(1.0))
                .alpha(maybe("alpha").unwrap_or(0.0)),
        ),
        _ => return Err(Stop::Lacks(String::new())),
    };
    let known = read.borrow();
    match of.keys().find(|key| !known.contains(key.as_str()) && *key != "name") {
        Some(key) => Err(Stop::Lacks(key.clone())),
        None => Ok(schedule),
    }
}
