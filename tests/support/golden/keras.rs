//! The golden cases of Keras: layers and initializers, by their public types.

pub mod losses;
pub mod metrics;
pub mod optimizers;

use wgrad::Trackable;
use wgrad::keras::layers::{
    AveragePooling2D, Conv2D, Dense, Dropout, Flatten, LayerNormalization, MaxPooling2D,
};
use wgrad::keras::{Activation, INFERENCE, Initializer, Layer};
use wgrad::random::Generator;
use wgrad::{Error, Padding};

use super::call::{Answer, Call, Stop, to_tensor};
use super::sheet::Sheet;

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
