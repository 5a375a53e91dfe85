//! Code shared by the objects that describe layers and optimizers.

use js_sys::{Array, Reflect};
use wasm_bindgen::{JsCast, JsValue};
use wgrad::Padding;
use wgrad::keras::{Activation, Initializer};

use crate::args::{Options, show};
use crate::error::{Result, bad_type};

/// One kind of thing that a plain object can describe, selected by the object's `type`.
pub(crate) struct Described<T: 'static> {
    pub(crate) name: &'static str,
    pub(crate) options: &'static [&'static str],
    pub(crate) make: fn(&Options) -> Result<T>,
}

/// The kind that `config` names, as a string or by its `type`. Errors start with `what` and ask for
/// `noun`.
pub(crate) fn find<'a, T>(
    what: &str,
    noun: &str,
    config: &JsValue,
    kinds: &'a [Described<T>],
) -> Result<&'a Described<T>> {
    let by_type = || Reflect::get(config, &"type".into()).ok()?.as_string();
    let name = config.as_string().or_else(by_type);
    kinds.iter().find(|kind| name.as_deref() == Some(kind.name)).ok_or_else(|| {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name).collect();
        let (given, names) = (show(config), names.join(", "));
        bad_type(format!("{what}: {given} is not {noun}; its type must be one of {names}."))
    })
}

const INITIALIZERS: [(&str, Initializer); 8] = [
    ("glorot_uniform", Initializer::GlorotUniform),
    ("glorot_normal", Initializer::GlorotNormal),
    ("he_uniform", Initializer::HeUniform),
    ("he_normal", Initializer::HeNormal),
    ("lecun_uniform", Initializer::LecunUniform),
    ("lecun_normal", Initializer::LecunNormal),
    ("zeros", Initializer::Zeros),
    ("ones", Initializer::Ones),
];

pub(crate) fn initializer(options: &Options) -> Result<Initializer> {
    let read = |value: &JsValue| {
        let name = value.as_string()?;
        INITIALIZERS.iter().find(|(known, _)| *known == name).map(|(_, found)| found.clone())
    };
    let wanted = INITIALIZERS.map(|(name, _)| name).join(", ");
    let found = options.read("kernelInitializer", &format!("one of {wanted}"), read)?;
    Ok(found.unwrap_or(Initializer::GlorotUniform))
}

/// The option `axis`: one axis or several.
pub(crate) fn axes(options: &Options) -> Result<Option<Vec<i64>>> {
    let whole = |value: JsValue| value.as_f64().filter(|n| n.fract() == 0.0).map(|n| n as i64);
    options.read("axis", "a whole number or a list of them", |value| {
        match value.dyn_ref::<Array>() {
            Some(list) => list.iter().map(whole).collect(),
            None => Some(vec![whole(value.clone())?]),
        }
    })
}

pub(crate) fn activation(options: &Options) -> Result<Option<Activation>> {
    let name = options.string("activation")?;
    Ok(name.map(|name| named(&name)).transpose()?)
}

#[cfg(feature = "ops")]
fn named(name: &str) -> wgrad::Result<Activation> {
    name.parse()
}

/// The page offers these alone and does not load the code of the others.
#[cfg(not(feature = "ops"))]
fn named(name: &str) -> wgrad::Result<Activation> {
    match name {
        "linear" => Ok(Activation::Linear),
        "relu" => Ok(Activation::Relu),
        "sigmoid" => Ok(Activation::Sigmoid),
        "tanh" => Ok(Activation::Tanh),
        _ => Err(wgrad::Error::Data(
            "Activation: the page has linear, relu, sigmoid and tanh.".to_string().into(),
        )),
    }
}

/// VALID by default.
pub(crate) fn padding(options: &Options) -> Result<Padding> {
    let read = |value: &JsValue| match value.as_string()?.as_str() {
        "same" => Some(Padding::Same),
        "valid" => Some(Padding::Valid),
        _ => None,
    };
    Ok(options.read("padding", "'same' or 'valid'", read)?.unwrap_or(Padding::Valid))
}
