//! The golden cases of Keras: layers, optimizers, metrics and initializers, by their public types.

pub mod losses;
pub mod metrics;

use ndarray::Axis;
use serde_json::Value;
use wgrad::Trackable;
use wgrad::keras::layers::{
    AveragePooling2D, Conv2D, Dense, Dropout, Flatten, LayerNormalization, MaxPooling2D,
};
use wgrad::keras::optimizers::{Adam, Optimizer, RmsProp, Sgd};
use wgrad::keras::{Activation, INFERENCE, Initializer, Layer};
use wgrad::random::Generator;
use wgrad::{Error, Padding, Variable};

use super::call::{Answer, Call, Stop, to_tensor};
use super::sheet::Sheet;
use crate::oracle::Array;

// ---- layers -------------------------------------------------------------------------------------------------

/// The layer of a case with the case's weights.
pub fn layer(c: &Call) -> Answer<Box<dyn Layer>> {
    let layer = unbuilt(c)?;
    layer.call(c.x()?, INFERENCE)?;
    let variables = layer.variables();
    if variables.len() != c.case.weights.len() {
        let (got, want) = (variables.len(), c.case.weights.len());
        return Err(Error::Shape(format!("{got} variables, Keras has {want}").into()).into());
    }
    for (variable, (_, name)) in variables.iter().zip(&c.case.weights) {
        variable.assign(&to_tensor(&c.golden.tensor(c.case, name))?)?;
    }
    Ok(layer)
}

fn unbuilt(c: &Call) -> Answer<Box<dyn Layer>> {
    Ok(match c.case.op.as_str() {
        "keras.layers.Dense" => {
            Box::new(Dense::new(outputs(c)?).activation(activation(c)?).use_bias(use_bias(c)?))
        }
        "keras.layers.Conv2D" => Box::new(
            Conv2D::new(outputs(c)?, c.need("kernel_size", c.two("kernel_size")?)?)
                .strides(c.two("strides")?.unwrap_or([1, 1]))
                .dilation_rate(c.two("dilation_rate")?.unwrap_or([1, 1]))
                .padding(padding(c)?)
                .activation(activation(c)?)
                .use_bias(use_bias(c)?),
        ),
        "keras.layers.MaxPooling2D" => {
            let size = c.two("pool_size")?.unwrap_or([2, 2]);
            let strides = c.two("strides")?.unwrap_or(size);
            Box::new(MaxPooling2D::new(size).strides(strides).padding(padding(c)?))
        }
        "keras.layers.AveragePooling2D" => {
            let size = c.two("pool_size")?.unwrap_or([2, 2]);
            let strides = c.two("strides")?.unwrap_or(size);
            Box::new(AveragePooling2D::new(size).strides(strides).padding(padding(c)?))
        }
        "keras.layers.LayerNormalization" => {
            let layer = LayerNormalization::new().axis(c.axes("axis")?);
            Box::new(layer.epsilon(c.need("epsilon", c.float("epsilon")?)? as f32))
        }
        "keras.layers.Flatten" => Box::new(Flatten::new()),
        "keras.layers.Dropout" => Box::new(Dropout::new(c.need("rate", c.float("rate")?)? as f32)),
        _ => return Err(Stop::Lacks(String::new())),
    })
}

fn outputs(c: &Call) -> Answer<usize> {
    let kernel = c.case.weights.iter().find(|(key, _)| key == "kernel");
    let (_, name) = c.need("kernel", kernel)?;
    c.need("kernel", c.golden.tensor(c.case, name).shape().last().copied())
}

fn activation(c: &Call) -> Answer<Activation> {
    let name = c.text("activation")?.unwrap_or_else(|| "linear".into());
    name.parse().map_err(|_| Stop::Lacks("activation".into()))
}

/// Keras's default is true.
fn use_bias(c: &Call) -> Answer<bool> {
    Ok(c.value("use_bias")?.is_none() || c.flag("use_bias")?)
}

fn padding(c: &Call) -> Answer<Padding> {
    match c.text("padding")?.as_deref() {
        None | Some("valid") => Ok(Padding::Valid),
        Some("same") => Ok(Padding::Same),
        Some(_) => Err(Stop::Lacks("padding".into())),
    }
}

// ---- optimizers ---------------------------------------------------------------------------------------------

/// Takes the case's steps. The numbers of a step are entered after it, before the next.
pub fn optimize(c: &Call, sheet: &mut Sheet) -> Answer<()> {
    let rates = rates(c)?;
    let optimizer = optimizer(c, rates.as_ref().map_or(0.0, |rates| rates(0)))?;
    let (mut variables, mut gradients, mut paths) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0.. {
        let key = format!("p{i}");
        let Ok(start) = c.arg(&key) else { break };
        variables.push(Variable::new(start));
        gradients.push(c.arg(&format!("g{i}"))?.unstack(0)?);
        paths.push(c.golden.tensor(c.case, &format!("out.{key}")).f32().clone());
    }
    // What it has beyond that would be left out.
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
        if let Some(rates) = &rates {
            optimizer.set_learning_rate(rates(step) as f32)?;
        }
        let now: Vec<_> = gradients.iter().map(|g| Some(g[step].clone())).collect();
        optimizer.apply_gradients(&now, &variables)?;
    }
    if optimizer.iterations() != steps as u64 {
        sheet.miss("iterations", optimizer.iterations());
    }
    let slots = optimizer.variables();
    let mut state: Vec<_> = c.case.state.iter().filter(|(key, _)| key.starts_with('p')).collect();
    // Keras lists slot by slot, here it is variable by variable.
    state.sort_by_key(|(key, _)| key.split('_').next());
    if slots.len() != state.len() {
        sheet.miss("state", format!("{} variables, Keras has {}", slots.len(), state.len()));
    }
    for (slot, (key, name)) in slots.iter().zip(state) {
        sheet.add(&format!("state.{key}"), &slot.read(), &c.golden.tensor(c.case, name));
    }
    Ok(())
}

fn optimizer(c: &Call, first_rate: f64) -> Answer<Box<dyn Optimizer>> {
    let rate = match c.value("learning_rate")? {
        Some(Value::Number(rate)) => rate.as_f64().unwrap_or(0.0),
        _ => first_rate,
    } as f32;
    Ok(match c.case.op.as_str() {
        "keras.optimizers.SGD" => Box::new(
            Sgd::new(rate)
                .momentum(c.float("momentum")?.unwrap_or(0.0))
                .nesterov(c.flag("nesterov")?),
        ),
        "keras.optimizers.RMSprop" => Box::new(
            RmsProp::new(rate)
                .rho(c.float("rho")?.unwrap_or(0.9))
                .momentum(c.float("momentum")?.unwrap_or(0.0))
                .epsilon(c.float("epsilon")?.unwrap_or(1e-7))
                .centered(c.flag("centered")?),
        ),
        "keras.optimizers.Adam" => Box::new(
            Adam::new(rate)
                .beta_1(c.float("beta_1")?.unwrap_or(0.9))
                .beta_2(c.float("beta_2")?.unwrap_or(0.999))
                .epsilon(c.float("epsilon")?.unwrap_or(1e-7)),
        ),
        _ => return Err(Stop::Lacks(String::new())),
    })
}

type Rates = Box<dyn Fn(usize) -> f64>;

/// The learning rate of a step from 0, where the case has a schedule: wgrad has none, so it is computed here.
fn rates(c: &Call) -> Answer<Option<Rates>> {
    let key = "learning_rate";
    let Some(Value::Object(schedule)) = c.value(key)? else { return Ok(None) };
    c.composes(key);
    let Some((name, of)) = schedule.iter().next() else { return Err(Stop::Lacks(key.into())) };
    let number = |name: &str| c.need(key, of.get(name).and_then(Value::as_f64));
    let list = |name: &str| -> Answer<Vec<f64>> {
        let list = of.get(name).and_then(Value::as_array);
        c.need(key, list.and_then(|list| list.iter().map(Value::as_f64).collect()))
    };
    Ok(Some(match name.as_str() {
        "ExponentialDecay" => {
            let (start, steps) = (number("initial_learning_rate")?, number("decay_steps")?);
            let rate = number("decay_rate")?;
            Box::new(move |step| start * rate.powf(step as f64 / steps))
        }
        "PiecewiseConstantDecay" => {
            let (boundaries, values) = (list("boundaries")?, list("values")?);
            Box::new(move |step| values[boundaries.iter().filter(|&&b| step as f64 > b).count()])
        }
        _ => return Err(Stop::Lacks(key.into())),
    }))
}

// ---- initializers -------------------------------------------------------------------------------------------

/// The limits that Keras's initializers have for a fan-in and a fan-out, as attributes.
pub fn initialize(c: &Call, sheet: &mut Sheet) -> Answer<()> {
    c.only("truncation", "2 standard deviations")?;
    let fan = |key: &str| Ok::<_, Stop>(c.need(key, c.int(key)?)? as usize);
    let shape = [fan("fan_in")?, fan("fan_out")?];
    let generator = Generator::from_seed(11);
    let draw = |initializer: Initializer| initializer.init(shape, &generator);
    let largest = |w: &[f32]| w.iter().fold(0f32, |a, b| a.max(b.abs())) as f64;

    for (initializer, key) in [
        (Initializer::GlorotUniform, "glorot_uniform_limit"),
        (Initializer::HeUniform, "he_uniform_limit"),
        (Initializer::LecunUniform, "lecun_uniform_limit"),
    ] {
        let limit = c.need(key, c.float(key)?)?;
        let got = largest(&draw(initializer)?.to_vec()?);
        // Of 78,400 draws the largest comes within a thousandth of the end.
        if got > limit * (1.0 + 1e-6) || got < 0.999 * limit {
            sheet.miss(key, format!("the largest weight is {got}, the limit {limit}"));
        }
    }
    for (initializer, key) in [
        (Initializer::GlorotNormal, "glorot_normal_std_before_truncation"),
        (Initializer::HeNormal, "he_normal_std_before_truncation"),
    ] {
        let stddev = c.need(key, c.float(key)?)?;
        let weights: Vec<f32> = draw(initializer)?.to_vec()?;
        let got = largest(&weights);
        if got > 2.0 * stddev * (1.0 + 1e-6) || got < 1.99 * stddev {
            sheet.miss(key, format!("the largest weight is {got}, the cut at twice {stddev}"));
        }
        let squares: f64 = weights.iter().map(|&w| f64::from(w).powi(2)).sum();
        let after = (squares / weights.len() as f64).sqrt() / stddev;
        // What a normal distribution cut at two deviations keeps of its own.
        if (after - 0.8796).abs() > 0.01 {
            sheet.miss(key, format!("the deviation is {after} of it"));
        }
    }
    Ok(())
}
